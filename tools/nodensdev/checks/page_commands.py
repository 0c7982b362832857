# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that README.md and the pages of docs/ show, and compares the output.

pages.py describes the markers. The blocks of a page with one marker are one session of bash, in the
order of the page: variables, directories and background processes stay.
- chroot: the Debian 13 root with the build's programs in PATH, in a copy of the tree. The root is
  read-only, so `apt install` only verifies that it has the packages.
- guest: a fresh Debian 13 guest in which the project's Debian packages are installed, in a copy of
  the tree.

A ```sh block fails at its first command that fails. Commands of a ```console block may fail; their
output must be that of the page: `...` on a line of its own stands for any lines, numbers and the
width of columns may differ.
"""
import re
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .. import build, package
from ..env import cache, chroot, guest
from ..project import BUILD, INSIDE, TOP
from . import pages
from .pages import Block

ANYTHING = "..."
LEFT_OUT = ("build", ".git", "__pycache__")
DEADLINE = 1200.0
PRELUDE = """\
exec 2>&1 </dev/null
sudo() { "$@"; }
"""
CHROOT_PRELUDE = PRELUDE + """\
apt() {
        [ "$1" = install ] || { echo "apt $1: the root is read-only"; return 1; }
        shift
        dpkg-query -W -f '' "$@"
}
export DESTDIR=/var/tmp/destdir
"""


@dataclass(frozen=True)
class Shown:
    """A command of a page, and the output below it; None: the page does not show any."""

    where: str
    text: str
    output: str | None


def commands(block: Block, top: Path = TOP) -> list[Shown]:
    where = f"{block.path.relative_to(top)}:{block.line}"
    if block.language == "sh":
        return [Shown(where, block.text, None)]
    found: list[tuple[list[str], list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif found and not found[-1][1] and (line.startswith("> ") or found[-1][0][-1].endswith("\\")):
            found[-1][0].append(line.removeprefix("> "))
        elif found:
            found[-1][1].append(line)
    return [Shown(where, "\n".join(text), "\n".join(output)) for text, output in found]


def script(shown: Iterable[Shown], prelude: str = PRELUDE) -> str:
    """A script that prints each command's output between two lines that nothing else prints."""
    parts = [prelude]
    for number, one in enumerate(shown):
        parts += [f"echo; echo '@@begin {number}'", f"set {'-e' if one.output is None else '+e'}", one.text.rstrip("\n"),
                  f"set +e; echo '@@end {number}'"]
    return "\n".join(parts) + "\n"


def outputs(text: str) -> dict[int, str]:
    """The outputs of the commands that ended."""
    return {int(number): output for number, output in re.findall(r"^@@begin (\d+)\n(.*?)^@@end \1$", text, re.MULTILINE | re.DOTALL)}


def plain(line: str) -> str:
    return " ".join(re.sub(r"\d+(?:\.\d+)*", "N", line).split())


def same(shown: str, real: str) -> bool:
    """Whether a page's output is the real one."""
    pattern = ""
    for line in shown.strip("\n").splitlines():
        pattern += r"(?:[^\n]*\n)*" if line.strip() == ANYTHING else re.escape(plain(line)) + r"\n"
    text = "".join(plain(line) + "\n" for line in real.strip("\n").splitlines())
    return re.fullmatch(pattern, text) is not None


def problems(shown: list[Shown], printed: str) -> list[str]:
    real = outputs(printed)
    for number, one in enumerate(shown):
        if number not in real:
            return [f"{one.where}: failed: {one.text.strip()}\n{printed[-2000:]}"]
    return [f"{one.where}: `{one.text.strip()}` prints something else:\n{real[number].strip()}" for number, one in enumerate(shown)
            if one.output is not None and not same(one.output, real[number])]


def sessions(place: str, top: Path = TOP) -> dict[Path, list[Shown]]:
    """The commands for one place, by page."""
    found = {page: [shown for block in pages.blocks(page) if block.place == place for shown in commands(block, top)]
             for page in pages.pages(top)}
    return {page: shown for page, shown in found.items() if shown}


def copy_tree(target: Path) -> None:
    shutil.copytree(TOP, target, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))


def in_chroot(inside: chroot.Prepared, shown: list[Shown]) -> list[str]:
    """Runs a page's session in the Debian root."""
    directory = build.ensure(inside, "gcc")
    programs = sorted({path.parent for path in (BUILD / directory.name / "src").rglob("nodens*") if path.is_file()
                       and path.stat().st_mode & 0o111})
    path = ":".join(str(INSIDE / one.relative_to(TOP)) for one in programs)
    copy_tree(inside.scratch / "tmp" / "tree")
    try:
        text = script(shown, f"cd /var/tmp/tree; PATH={shlex.quote(path)}:$PATH\n{CHROOT_PRELUDE}")
        return problems(shown, inside.capture(["bash", "-c", text]).stdout)
    finally:
        shutil.rmtree(inside.scratch / "tmp" / "tree", ignore_errors=True)


def in_guest(shown: list[Shown]) -> list[str]:
    """Runs a page's session in a fresh guest, after the packages were installed."""
    made = [path for path in package.build() if path.suffix == ".deb" and "dbgsym" not in path.name]
    with cache.scratch("page") as share:
        copy_tree(share / "tree")
        for path in made:
            shutil.copy(path, share)
        prelude = f"dpkg -i /share/*.deb >/dev/null 2>&1; cp -r /share/tree /root/nodens; cd /root/nodens\n{PRELUDE}"
        (share / "session").write_text(script(shown, prelude))
        with guest.fresh(guest.Options(memory=4096, share=share)) as one:
            result = one.boot('#!/bin/sh\nbash /share/session >"$FILES/output"\n', DEADLINE)
            output = result.files / "output"
            printed = output.read_text(errors="replace") if output.is_file() else result.console_tail()
            return problems(shown, printed)
