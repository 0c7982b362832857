# SPDX-License-Identifier: Apache-2.0
"""nodens-fetch and nodens-unpack when system calls fail: every one that changes something, one after the other, in every one of their processes.

One of the two programs is faulty.c's: the program itself with a table of system calls in which the n-th call of a kind fails. Whatever
fails, both must end by themselves, one says why, and they leave no process behind and nothing outside of their staging directory; and if they
say that they are done, then what was unpacked is whole.
"""
import errno
import hashlib
import os
import stat
import tarfile
from pathlib import Path

import pytest
from nodenstest import fake_registry, puller
from nodenstest import images as make
from nodenstest.images import Image, directory, entry, hardlink, symlink, tar

# The argument of puller.Running that names the program, and the faulty one.
PROGRAMS = {"program": "tests/component/pull/faulty-fetch", "unpacker": "tests/component/pull/faulty-unpack"}
FULL, BROKEN, DENIED = errno.ENOSPC, errno.EIO, errno.EPERM
# Each call that a pull makes, with an errno that it may give. A call that is not made at all fails the test.
CALLS = {
    "clone3": errno.EAGAIN, "fchmod": DENIED, "fchown": DENIED, "fchownat": DENIED, "fchmodat": DENIED, "fsetxattr": FULL,
    "linkat": FULL, "mkdirat": FULL, "mknodat": DENIED, "mount": DENIED, "mount_setattr": errno.EINVAL, "move_mount": DENIED,
    "open_tree": DENIED, "openat": FULL, "pipe2": errno.EMFILE, "pivot_root": DENIED, "pwrite": FULL, "renameat": BROKEN,
    "setns": DENIED, "symlinkat": FULL, "syncfs": BROKEN, "umount2": DENIED, "unlinkat": BROKEN, "unshare": errno.ENOSPC,
    "utimensat": BROKEN, "write": FULL,
}
SURELY = 400        # no pull of this image makes so many calls of a kind


def image() -> Image:
    """A little of everything: three layers in three encodings, links, marks, attributes, a directory that is only implied."""
    capability = {"SCHILY.xattr.security.capability": make.file_capability()}
    first = tar(directory("etc", uid=7), entry("etc/passwd", b"root:x:0:0\n"), directory("opt"), entry("opt/old", b"x"),
                directory("var/lib/app"), entry("tool", b"t" * 70000, mode=0o4755), hardlink("tool2", "tool"), symlink("link", "tool"),
                entry("fifo", kind=tarfile.FIFOTYPE), entry("caps", b"x", pax=capability))
    second = tar(entry("etc/.wh.passwd"), entry("var/lib/app/new", b"y"), entry("etc/hosts", b"z"))
    third = tar(entry("opt/.wh..wh..opq"), entry("opt/new", b"x"))
    return Image().layer(first).layer(second, "zstd").layer(third, "none")


def tree(staging: Path) -> dict[str, tuple[object, ...]]:
    """Everything about the unpacked layers that a container could see."""
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
    """One image on a registry, what it looks like unpacked, and pulls of it that meet a fault."""

    def __init__(self, store: puller.Store, registry: fake_registry.Registry) -> None:
        self.store = store
        self.reference = registry.serve(image())
        result, staging = puller.pull(store, self.reference)
        assert result.done
        self.wanted = tree(staging)
        self.told = self.silent = 0

    def strike(self, which: str, call: str, nth: int, number: int, *more: str) -> bool:
        """False when the pull ended without meeting the fault."""
        staging = self.store.staging()
        running = puller.Running(self.store, staging, puller.request(self.reference, self.store), **{which: str(puller.BUILD / PROGRAMS[which])},
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
            assert tree(staging) == self.wanted, f"{what}: it says that it is done, and it is not"
        elif last["event"] == "error":
            self.told += 1
            lost = what.startswith("write ") and last["message"].endswith("nodens-unpack exited unexpectedly")     # its own words met the fault
            assert met and result.code == 1 and (reason in last["message"] or lost), f"{what}: {result.explain()}"
        else:   # the fault hit the event itself, and nodens-cri takes a helper that does not say "done" for failed
            assert what.startswith("write "), f"{what}: {result.explain()}"


@pytest.fixture
def trial(store: puller.Store, registry: fake_registry.Registry) -> Trial:
    return Trial(store, registry)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_fails(trial: Trial, call: str) -> None:
    calls = 0
    for which in PROGRAMS:
        nth = 1
        while trial.strike(which, call, nth, CALLS[call]):
            nth += 1
            assert nth < SURELY, f"the pull calls {call} without end"
        calls += nth - 1
    assert calls > 0, f"a pull does not call {call} at all"
    print(f"{call}: {calls} calls failed, {trial.told} pulls with them, {trial.silent} went on")
    result, staging = puller.pull(trial.store, trial.reference)
    assert result.done and tree(staging) == trial.wanted, "the next pull is not whole"


@pytest.mark.parametrize("call", ["write", "pwrite", "openat", "mkdirat"])
def test_a_disk_that_is_full_from_some_call_on(trial: Trial, call: str) -> None:
    calls = 0
    for which in PROGRAMS:
        nth = 1
        while trial.strike(which, call, nth, FULL, "onwards"):
            nth += 1
        calls += nth - 1
    assert calls > 0
    result, staging = puller.pull(trial.store, trial.reference)
    assert result.done and tree(staging) == trial.wanted, "the pull after somebody made room is not whole"


def test_no_fault_no_difference(trial: Trial) -> None:
    """The faulty program is the real one: without a fault it does the same."""
    assert not any(trial.strike(which, "write", 100000, FULL) for which in PROGRAMS) and (trial.told, trial.silent) == (0, 0)
