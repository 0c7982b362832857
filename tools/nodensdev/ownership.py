# SPDX-License-Identifier: Apache-2.0
"""Returns files that root made in the source tree to the tree's owner, so that `sudo tools/dev` does not lock the owner out."""
import os
import stat
from pathlib import Path

KINDS = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFSOCK)


def give_back(top: Path) -> int:
    """Changes the owner of root's files below top to the owner of top; returns how many.

    Does nothing if the caller is not root or root owns the tree. Links are not followed and mounts are not entered.
    A file with several names stays as it is: one of its names may be outside the tree.
    """
    owner = top.lstat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return 0
    changed = 0
    for _, directories, files, descriptor in os.fwalk(top):
        if os.fstat(descriptor).st_dev != owner.st_dev:
            directories.clear()
            continue
        changed += sum(change(name, descriptor, owner) for name in (*directories, *files))
    return changed


def change(name: str, directory: int, owner: os.stat_result) -> bool:
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if found.st_uid != 0 or found.st_dev != owner.st_dev or stat.S_IFMT(found.st_mode) not in KINDS:
            return False
        if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
            return False
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:  # another command removed it
        return False
    return True
