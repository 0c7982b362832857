# SPDX-License-Identifier: Apache-2.0
"""Fault injection in nodens-fetch and nodens-unpack: each system call fails once.

These are all calls that change something, one in each run, in each of their processes. One of the two programs is built from
faulty.c: the program itself with a table of system calls in which the n-th call of a kind fails.
After any fault both must exit by themselves, one must report the reason, and no process and nothing
outside their staging directory may be left. If they report success, the unpacked image must be
complete.
"""
import errno
import hashlib
import os
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest
from nodenstest import fake_registry, puller
from nodenstest import images as make
from nodenstest.images import Image, directory, entry, hardlink, symlink, tar

# The argument of puller.Running that names the program, and the faulty one.
PROGRAMS = {"program": "tests/component/pull/faulty-fetch", "unpacker": "tests/component/pull/faulty-unpack"}
FULL, BROKEN, DENIED = errno.ENOSPC, errno.EIO, errno.EPERM
# The system calls of a pull, each with an errno that it may return. A call that is never made fails
# the test.
CALLS = {
    "clone3": errno.EAGAIN, "fchmod": DENIED, "fchown": DENIED, "fchownat": DENIED, "fchmodat": DENIED, "fsetxattr": FULL,
    "linkat": FULL, "mkdirat": FULL, "mknodat": DENIED, "mount": DENIED, "mount_setattr": errno.EINVAL, "move_mount": DENIED,
    "open_tree": DENIED, "openat": FULL, "pipe2": errno.EMFILE, "pivot_root": DENIED, "pwrite": FULL, "renameat": BROKEN,
    "setns": DENIED, "symlinkat": FULL, "syncfs": BROKEN, "umount2": DENIED, "unlinkat": BROKEN, "unshare": errno.ENOSPC,
    "utimensat": BROKEN, "write": FULL,
}
SURELY = 400        # more calls of one kind than any pull of this image makes


def image() -> Image:
    """Three layers in three encodings, with links, marks, attributes and an implied directory."""
    capability = {"SCHILY.xattr.security.capability": make.file_capability()}
    first = tar(directory("etc", uid=7), entry("etc/passwd", b"root:x:0:0\n"), directory("opt"), entry("opt/old", b"x"),
                directory("var/lib/app"), entry("tool", b"t" * 70000, mode=0o4755), hardlink("tool2", "tool"), symlink("link", "tool"),
                entry("fifo", kind=tarfile.FIFOTYPE), entry("caps", b"x", pax=capability))
    second = tar(entry("etc/.wh.passwd"), entry("var/lib/app/new", b"y"), entry("etc/hosts", b"z"))
    third = tar(entry("opt/.wh..wh..opq"), entry("opt/new", b"x"))
    return Image().layer(first).layer(second, "zstd").layer(third, "none")


def tree(staging: Path) -> dict[str, tuple[object, ...]]:
    """Everything in the unpacked layers that is visible to a container."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(puller.trees(staging).rglob("*")):
        at = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(at.st_mode) else ""
        if stat.S_ISLNK(at.st_mode):
            content = os.readlink(path)
        names = os.listxattr(path, follow_symlinks=False)
        attributes = str({name: os.getxattr(path, name, follow_symlinks=False) for name in names})
        links = at.st_nlink if content else 0
        found[str(path.relative_to(staging))] = (at.st_mode, at.st_uid, at.st_gid, links, content, attributes)
    return found


class Trial:
    """One image on a registry, its unpacked trees, and pulls of it that meet a fault."""

    def __init__(self, store: puller.Store, registry: fake_registry.Registry) -> None:
        self.store = store
        self.reference = registry.serve(image())
        result, staging = puller.pull(store, self.reference)
        assert result.done
        self.wanted = tree(staging)
        self.reported = self.silent = 0

    def strike(self, which: str, call: str, nth: int, number: int, *more: str) -> bool:
        """Returns False when the pull ended without meeting the fault."""
        staging = self.store.staging()
        faulty: dict[str, Any] = {which: str(puller.BUILD / PROGRAMS[which])}
        running = puller.Running(self.store, staging, puller.request(self.reference, self.store), **faulty,
                                 env={"FAULT": " ".join([call, str(nth), str(number), *more])})
        result = running.finish()
        met = "fault met" in result.errors
        self.judge(result, staging, met, f"{call} number {nth} fails with {os.strerror(number)}", os.strerror(number))
        assert not puller.left_running(*running.sessions()), "processes are left behind"
        assert (self.store.root / "canary").read_text() == "untouched" and not list(self.store.layers.iterdir())
        return met

    def judge(self, result: puller.Result, staging: Path, met: bool, what: str, reason: str) -> None:
        last = result.events[-1] if result.events else {"event": "nothing"}
        assert result.code in (0, 1), f"{what}: {result.explain()}"
        if result.code == 0 and last["event"] == "done":
            self.silent += met
            assert tree(staging) == self.wanted, f"{what}: it reports success, but the image is incomplete"
        elif last["event"] == "error":
            self.reported += 1
            # its own report met the fault
            lost = what.startswith("write ") and last["message"].endswith("nodens-unpack exited unexpectedly")
            assert met and result.code == 1 and (reason in last["message"] or lost), f"{what}: {result.explain()}"
        else:   # the fault hit the event: for nodens-cri the pull failed
            assert what.startswith("write "), f"{what}: {result.explain()}"


@pytest.fixture
def trial(store: puller.Store, registry: fake_registry.Registry) -> Trial:
    return Trial(store, registry)


@pytest.mark.parametrize("call", CALLS)
def test_each_failing_call_is_reported(trial: Trial, call: str) -> None:
    calls = 0
    for which in PROGRAMS:
        nth = 1
        while trial.strike(which, call, nth, CALLS[call]):
            nth += 1
            assert nth < SURELY, f"endless calls of {call}"
        calls += nth - 1
    assert calls > 0, f"a pull never calls {call}"
    print(f"{call}: {calls} calls failed, {trial.reported} pulls with them, {trial.silent} went on")
    result, staging = puller.pull(trial.store, trial.reference)
    assert result.done and tree(staging) == trial.wanted, "the next pull is incomplete"


@pytest.mark.parametrize("call", ["write", "pwrite", "openat", "mkdirat"])
def test_a_full_disk_is_reported(trial: Trial, call: str) -> None:
    calls = 0
    for which in PROGRAMS:
        nth = 1
        while trial.strike(which, call, nth, FULL, "onwards"):
            nth += 1
        calls += nth - 1
    assert calls > 0
    result, staging = puller.pull(trial.store, trial.reference)
    assert result.done and tree(staging) == trial.wanted, "the pull after space was freed is incomplete"


def test_without_a_fault_the_faulty_program_works(trial: Trial) -> None:
    """The faulty program is the real one: without a fault it behaves the same."""
    assert not any(trial.strike(which, "write", 100000, FULL) for which in PROGRAMS) and (trial.reported, trial.silent) == (0, 0)
