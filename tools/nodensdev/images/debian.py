# SPDX-License-Identifier: Apache-2.0
"""File trees of Debian packages for images: unpacked, not installed, so that they come out alike, without scripts' traces."""
import re
import subprocess
from pathlib import Path

from ..command import Failure
from ..env import machine
from ..env.root import SUITE
from ..project import TESTS

LISTS = TESTS / "fixtures/images"
EXCLUDED = (
    "/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/perl*", "/usr/share/i18n/*",
    "/usr/lib/*/perl*", "/usr/lib/*/gconv/*", "/usr/lib/systemd/*", "/var/lib/dpkg/*", "/var/lib/apt/*", "/var/cache/*",
)
RECIPE = "3"  # a change of how trees are made


def packages(name: str) -> list[str]:
    """The packages of tests/fixtures/images/NAME.list; a line is a package and, after #, its reason."""
    found = []
    for line in (LISTS / f"{name}.list").read_text().splitlines():
        words = line.split("#", 1)[0].split()
        if words[:1] == ["@include"]:
            found += packages(words[1])
        else:
            found += words
    return sorted(set(found))


def unpack(wanted: list[str], path: Path, kept: tuple[str, ...] = ()) -> None:
    """Unpacks packages and all that they depend on into a new directory, without what is EXCLUDED and not kept."""
    machine.need_root("unpacking Debian packages for images")
    machine.need_program("mmdebstrap", "mmdebstrap")
    command = ["mmdebstrap", "--mode=root", "--format=directory", "--variant=extract", f"--include={','.join(wanted)}"]
    command += [f"--aptopt={option}" for option in machine.apt_options()]
    command += [SUITE, str(path), "-"]
    done = subprocess.run(command, input="\n".join(machine.debian_sources(SUITE)), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise Failure(f"mmdebstrap failed for an image's packages; the end of its output:\n{done.stdout[-3000:]}")
    for pattern in set(EXCLUDED) - set(kept):
        remove_matching(path, pattern)


def remove_matching(root: Path, pattern: str) -> None:
    for path in root.glob(pattern.lstrip("/")):
        subprocess.run(["rm", "-rf", "--", str(path)], check=True)


def applets(busybox: Path) -> list[str]:
    """The commands that a busybox can be, in its own words."""
    done = subprocess.run([str(busybox), "--list"], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.split() if re.fullmatch(r"[A-Za-z0-9_.\[-]+", line) and line != "busybox"]
