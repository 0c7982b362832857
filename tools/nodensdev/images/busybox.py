# SPDX-License-Identifier: Apache-2.0
"""The busybox of upstream's image, from the untouched source in Debian's archive.

Debian's own build will not do: its shell drops variables whose names are no shell names (`data-1`), which upstream's hands on
and two conformance tests look for; and another shell words its errors otherwise, which a third one looks for.
"""
import hashlib
import subprocess
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

from ..command import Failure
from ..env import cache, machine

VERSION = "1.37.0"
SOURCE = f"pool/main/b/busybox/busybox_{VERSION}.orig.tar.bz2"
SHA256 = "3311dff32e746499f4df0d5df04d7eb396382d7e108bb9250e7b519b837043a4"
# One static file; traffic control needs kernel headers that newer kernels do not have any more.
SETTINGS = {"CONFIG_STATIC": "y", "CONFIG_TC": "n", "CONFIG_FEATURE_TC_INGRESS": "n"}


def key() -> str:
    return cache.key_of(SHA256, repr(SETTINGS))


def ensure() -> Path:
    """The program."""
    return cache.ensure("programs", "busybox", key(), make) / "busybox"


def make(path: Path) -> None:
    machine.say(f"building busybox {VERSION} for the test images (a minute or two)")
    for program in ("gcc", "make", "bzip2"):
        machine.need_program(program, program)
    with cache.scratch("busybox") as work:
        with tarfile.open(fetch(work / "source.tar.bz2")) as tar:
            tar.extractall(work, filter="data")
        tree = work / f"busybox-{VERSION}"
        run(["make", "defconfig"], tree)
        configure(tree / ".config")
        run(["make", "oldconfig"], tree)
        run(["nice", "make", "-j2", "busybox"], tree)
        (tree / "busybox").rename(path / "busybox")


def fetch(target: Path) -> Path:
    address = f"{machine.mirror()}/{SOURCE}"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            data = answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise Failure(f"cannot fetch busybox's source from the Debian mirror ({address}): {error}") from error
    if hashlib.sha256(data).hexdigest() != SHA256:
        raise Failure(f"{address} is not the source that is pinned in images/busybox.py; do not use it before you know why")
    target.write_bytes(data)
    return target


def configure(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not any(f"{name}=" in line or f"{name} is" in line for name in SETTINGS)]
    lines += [f"{name}=y" if value == "y" else f"# {name} is not set" for name, value in SETTINGS.items()]
    path.write_text("\n".join(lines) + "\n")


def run(command: list[str], tree: Path) -> None:
    done = subprocess.run(command, cwd=tree, input="\n" * 1000, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"`{' '.join(command)}` failed for busybox {VERSION}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
