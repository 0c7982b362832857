# SPDX-License-Identifier: Apache-2.0
"""A guest's disk in memory, so that other load on the host's disk delays no write."""
import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..env import cache

PLACE = Path("/dev/shm")
PREFIX = "nodens-bench-"


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """A directory in memory, gone at the end; those of benches that were killed go now."""
    for path in PLACE.glob(f"{PREFIX}*"):
        remove_if_abandoned(path)
    made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=PLACE))
    held = cache.lock_directory(made)
    try:
        made.chmod(0o711)
        yield made
    finally:
        cache.remove_tree(made)
        os.close(held)


def remove_if_abandoned(path: Path) -> None:
    with contextlib.suppress(BlockingIOError, FileNotFoundError), cache.open_directory(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        cache.remove_tree(path)
