# SPDX-License-Identifier: Apache-2.0
"""Tests of tests/ inside a guest, with the paths that they have in a chroot.

The tests, the tools, our programs and the peers' are copied there.

    ok = guest_tests.run("tests/component/cri", kernel="uml", arguments=["-k", "oom"])
"""
import shutil
import sys
from pathlib import Path

from .. import registry
from ..env import cache, deps, goprograms, guest, machine
from ..project import BUILD, TOP

DEADLINE = 3600.0
PROGRAMS = ("src/nodens", "src/nodens-cri", "src/pull/nodens-fetch", "src/pull/nodens-unpack", "src/mon/nodens-mon",
            "src/bridge/nodens-bridge",
            "src/rootless/nodens-rootless", "src/rootless/nodens-rootless-controller",
            "src/rootless/nodens-rootless-plane",
            "tests/component/cri-resilience/faulty",
            "tests/component/cri/attack-loop", "tests/component/cri/stand-in-libcuda.so", "tests/component/cri/stand-in-libnvidia-ml.so")
PEERS = ("registry", "containerd", "criclient", "nvidia-container-toolkit")
SCRIPT = """#!/bin/sh
mkdir -p /nodens /cache /run/systemd/network
cp -a --no-preserve=ownership /share/tree/. /nodens
mount --bind /share/cache /cache
ip link set lo up
cp /nodens/units/*.link /run/systemd/network && udevadm control --reload
cd /nodens
exec {before} python3 -B -m pytest -q -W ignore::DeprecationWarning -p no:cacheprovider --color=no {arguments}
"""


def lay_out(share: Path, variant: str, peers: tuple[str, ...]) -> None:
    """What the guest sees: /nodens and /cache, with only what tests use."""
    tree = share / "tree"
    for name in ("tests", "tools", "units", "apparmor", "docs"):
        shutil.copytree(TOP / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "fuzz", "peers"))
    shutil.copy(TOP / "pyproject.toml", tree)
    for name in PROGRAMS:
        if (BUILD / variant / name).exists():
            (tree / "build" / variant / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(BUILD / variant / name, tree / "build" / variant / name)
    entries = [deps.ensure().parent, registry.storage.filled().parent, *(goprograms.ensure(name) for name in peers)]
    for entry in entries:
        target = share / "cache" / entry.relative_to(cache.top())
        shutil.copytree(entry, target, symlinks=True)
        target.with_name(target.name + ".lock").touch()


def run(directory: str, kernel: str = "uml", variant: str = "gcc", arguments: tuple[str, ...] = (),
        extra: dict[str, list[Path]] | None = None, before: str = "", peers: tuple[str, ...] = PEERS, keep: Path | None = None) -> bool:
    """Boots a guest and runs pytest in it; its output is ours.

    `extra`: files for directories of the tree there. `before`: words before pytest's command line. `keep`: where the files go that
    the tests have left in $FILES.
    """
    words = " ".join(f"'{word}'" for word in (*arguments, directory))
    with cache.scratch("guest-tests") as share:
        lay_out(share, variant, peers)
        for place, files in (extra or {}).items():
            (share / "tree" / place).mkdir(parents=True)
            for path in files:
                shutil.copy(path, share / "tree" / place)
        with guest.fresh(guest.Options(kernel=kernel, memory=4096, share=share)) as one:
            result = one.boot(SCRIPT.format(arguments=words, before=before), DEADLINE, output=sys.stdout.fileno())
            if result.end is not guest.End.JOB_DONE:
                machine.say(f"the guest ended without a result ({result.end.value}); the end of its console:\n{result.console_tail()}")
            if keep:
                shutil.copytree(result.files, keep, dirs_exist_ok=True)
            return result.exit_code == 0
