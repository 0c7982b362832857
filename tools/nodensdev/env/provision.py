# SPDX-License-Identifier: Apache-2.0
"""Base disks on which a guest has run a script once, so that later guests need not."""
import hashlib
import os
import subprocess
from pathlib import Path

from ..command import Failure
from . import cache, disk, guest, machine

DEADLINE = 900
MEMORY = 4096


def ensure(base: Path, name: str, script: str, files: list[Path], trees: dict[str, Path] | None = None, kernel: str = "uml") -> Path:
    """A copy of a base disk on which `script` has run, with cached `files` in /share, and directories under the names of `trees`."""
    digest = hashlib.sha256(script.encode()).hexdigest()
    found = trees or {}
    key = cache.key_of(str(base.relative_to(cache.top())), digest,
                       *[str(path.relative_to(cache.top())) for path in (*files, *found.values())])
    return cache.ensure("disks", name, key, lambda entry: provision(entry, base, script, files, found, kernel)) / disk.IMAGE


def provision(entry: Path, base: Path, script: str, files: list[Path], trees: dict[str, Path], kernel: str) -> None:
    machine.say(f"preparing a node's disk: {len(files)} image archives to import (a minute or two)")
    with cache.scratch("provision") as work:
        subprocess.run(["cp", "--sparse=always", str(base), str(work / disk.IMAGE)], check=True)
        share = work / "share"
        share.mkdir()
        for path in files:
            os.link(path, share / f"{path.parent.parent.name}-{path.name}")
        for name, tree in trees.items():
            subprocess.run(["cp", "-a", str(tree), str(share / name)], check=True)
        one = guest.Guest(guest.Options(kernel, memory=MEMORY, share=share, in_place=True), work)
        with (work / "output").open("wb") as output:
            result = one.boot(script, DEADLINE, output=output)
        if result.exit_code != 0:
            text = (work / "output").read_text(errors="replace")[-3000:]
            why = f"{result.end.value}, exit code {result.exit_code}"
            raise Failure(f"preparing the disk failed ({why}):\n{text}\n{result.console_tail()}")
        (work / disk.IMAGE).rename(entry / disk.IMAGE)
