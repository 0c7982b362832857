# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that README.md and the pages of docs/ show, and compares the output.

The blocks of a page with one marker are one session of bash, in the order of the page: variables, directories and background processes
stay. A block with a user is a shell of its own.
- chroot: the Debian 13 root with the build's programs in PATH, in a copy of the tree. The root is read-only, so `apt install` only
  verifies that it has the packages.
- guest: a fresh Debian 13 guest. The project's packages are in the working directory, a copy of the tree; they are installed, unless the
  page does it. A block's user is created before it, and stays logged in.
- cluster: a fresh guest with a control plane and a kubelet (page_cluster.py).
- machine: this machine, in the tree itself.

A ```sh block fails at its first command that fails. Commands of a ```console block may fail; their output must be that of the page: `...`
on a line of its own stands for any lines; numbers, durations, sizes, IDs and the width of columns may differ.
"""
import functools
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .. import build, cluster, package
from ..command import Failure
from ..env import cache, chroot, guest
from ..project import BUILD, INSIDE, TOP
from . import page_cluster, pages
from .pages import Block

ANYTHING = "..."
LEFT_OUT = ("build", ".git", "__pycache__")
DEADLINE = 1200.0
PRELUDE = """\
exec 2>&1 </dev/null
sudo() { "$@"; }
"""
# A shell of an ordinary user; YAML keys that replace those of a file; the journal when a session ends early.
GUEST_PRELUDE = PRELUDE + """\
as() {
        local id
        id "$1" >/dev/null 2>&1 || { useradd --create-home --shell /bin/bash "$1" && loginctl enable-linger "$1"; }
        id=$(id -u "$1")
        until [ -S "/run/user/$id/bus" ]; do sleep 0.2; done
        runuser -u "$1" -- env -C "/home/$1" HOME="/home/$1" USER="$1" XDG_RUNTIME_DIR="/run/user/$id" \\
                DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/$id/bus" bash "-${3-c}" "$2"
}
merge() {
        python3 -c 'import sys, yaml
path = sys.argv[1]
old = yaml.safe_load(open(path)) or {}
yaml.safe_dump(old | yaml.safe_load(sys.stdin), open(path, "w"))' "$1"
}
trap '[ $? = 0 ] || journalctl --no-pager -n 40' EXIT
"""
PACKAGES = """\
cp -r /share/tree /root/nodens; cd /root/nodens; cp /share/*.deb .
"""
NETWORK = """\
ip link set lo up
ip link add eth0 type dummy
ip addr add 192.0.2.2/24 dev eth0
ip link set eth0 up
ip route add default via 192.0.2.1
"""
INSTALL = "dpkg -i ./*.deb >/dev/null 2>&1\n"
CHROOT_PRELUDE = PRELUDE + """\
apt() {
        [ "$1" = install ] || { echo "apt $1: the root is read-only"; return 1; }
        shift
        dpkg -s "$@" >/dev/null
}
export DESTDIR=/var/tmp/destdir
"""


@dataclass(frozen=True)
class Shown:
    """A command of a page, and the output below it; None: the page does not show any."""

    where: str
    text: str
    output: str | None
    user: str = ""


def commands(block: Block, top: Path = TOP) -> list[Shown]:
    where, user = f"{block.path.relative_to(top)}:{block.line}", block.user()
    if block.language == pages.MERGE:
        return [Shown(where, f"merge {shlex.quote(block.target)} <<'@@yaml'\n{block.text}@@yaml\n", None)]
    if block.language != "console":
        return [Shown(where, block.text, None, user)]
    found: list[tuple[list[str], list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif found and not found[-1][1] and (line.startswith("> ") or found[-1][0][-1].endswith("\\")):
            found[-1][0].append(line.removeprefix("> "))
        elif found:
            found[-1][1].append(line)
    return [Shown(where, "\n".join(text), "\n".join(output), user) for text, output in found]


def script(shown: Iterable[Shown], prelude: str = PRELUDE) -> str:
    """A script that prints each command's output between two lines that nothing else prints."""
    parts = [prelude]
    for number, one in enumerate(shown):
        flags = "-ec" if one.output is None else "-c"
        text = f"as {one.user} {shlex.quote(one.text)} {flags[1:]}" if one.user else one.text.rstrip("\n")
        parts += [f"echo; echo '@@begin {number}'", f"set {'-e' if one.output is None else '+e'}", text, f"set +e; echo '@@end {number}'"]
    return "\n".join(parts) + "\n"


def outputs(text: str) -> dict[int, str]:
    """The outputs of the commands that ended."""
    return {int(number): output for number, output in re.findall(r"^@@begin (\d+)\n(.*?)^@@end \1$", text, re.MULTILINE | re.DOTALL)}


def plain(line: str) -> str:
    """A line without what differs from run to run: IDs in hexadecimal, durations, sizes, numbers, the width of columns."""
    line = re.sub(r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|\b(?=[a-f]*\d)[0-9a-f]{12,}\b", "ID", line)
    line = re.sub(r"\b(?:\d+(?:\.\d+)?(?:ms|[dhms]))+\b", "Ns", line)
    line = re.sub(r"\b\d+(?:\.\d+)? [kMG]i?B\b", "N B", line)
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
    """Runs a page's session in a fresh guest. The packages are installed first, unless the page does it."""
    install = "" if any("apt install ./" in one.text for one in shown) else INSTALL
    with cache.scratch("page") as share:
        options = guest.Options(memory=4096, share=share)
        return session(share, shown, PACKAGES + install + NETWORK + GUEST_PRELUDE, options)


def in_cluster(shown: list[Shown]) -> list[str]:
    """Runs a page's session in a fresh guest with a control plane and a kubelet."""
    with cache.scratch("page") as share:
        base = page_cluster.lay_out(share)
        options = guest.Options(memory=6144, share=share, base=base)
        return session(share, shown, PACKAGES + page_cluster.PRELUDE + GUEST_PRELUDE, options)


def session(share: Path, shown: list[Shown], prelude: str, options: guest.Options) -> list[str]:
    copy_tree(share / "tree")
    for path in debs():
        shutil.copy(path, share)
    (share / "session").write_text(script(shown, prelude))
    with guest.fresh(options) as one:
        result = one.boot('#!/bin/sh\nbash /share/session >"$FILES/output" 2>&1\n', DEADLINE, mode="cut")
        output = result.files / "output"
        printed = output.read_text(errors="replace") if output.is_file() else result.console_tail()
        kept = BUILD / "pages"
        kept.mkdir(parents=True, exist_ok=True)
        (kept / f"{shown[0].where.partition(':')[0].replace('/', '-')}.log").write_text(printed)
        return problems(shown, printed)


@functools.cache
def debs() -> tuple[Path, ...]:
    return tuple(path for path in package.build() if path.suffix == ".deb" and "dbgsym" not in path.name)


def on_machine(shown: list[Shown]) -> list[str]:
    """Runs a page's session here. A cluster that it starts is down afterwards in any case, so none may run before."""
    running = [one.name for one in cluster.every() if one.is_running()]
    if running:
        raise Failure(f"clusters of this tree are running: {', '.join(running)}; end them with `tools/dev cluster down --all`")
    try:
        done = subprocess.run(["bash", "-c", script(shown)], cwd=TOP, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=DEADLINE)
        return problems(shown, done.stdout)
    finally:
        subprocess.run([str(TOP / "tools/dev"), "cluster", "down"], stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE)
