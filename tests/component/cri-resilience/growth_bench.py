# SPDX-License-Identifier: Apache-2.0
"""Measures what pods cost on a node that fills up, nodens-cri beside containerd, in turns.

    python3 tests/component/cri-resilience/growth_bench.py ROUNDS PODS[,PODS...] RESULT.json

It runs in the Debian root; `tools/dev bench growth` prepares it and reports the result. Only one
runtime has pods at a time, since crun copies the host's mount table, which pods of the other one
would make longer. A node is measured while it is empty and each time it has one of these numbers
of pods, which have a user namespace and two containers each.
"""
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from nodenstest import runtimes, validation
from nodenstest.pods import Pods
from test_size import lines, memory, pod_network, remove_all, restart, start_all, timed_pod

NICE = -15
PROBES = 20     # pods whose start is timed
# Names of the processes that a runtime leaves running for its pods, as the kernel shortens them.
PER_POD = {"nodens-cri": ("nodens-mon", "catatonit"), "containerd": ("containerd-shim", "pause")}


def go_first() -> None:
    """Keeps other load on the host out of the figures, as far as a nice value can."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICE))


def processes_of(names: tuple[str, ...]) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "comm").read_text().strip() in names:
                found.append(int(entry.name))
    return found


def stage(runtime: runtimes.Runtime, world: Pods, pods: int, empty_lines: int) -> dict[str, Any]:
    """A node with this number of pods. Memory comes after the probes: both runtimes have worked, and have come to rest."""
    assert runtime.process
    found: dict[str, Any] = {"pods": pods, "one_more_pod_ms": [timed_pod(world, f"more-{number}") for number in range(PROBES)]}
    assert len(world.sandboxes()) == pods and len(world.containers()) == 2 * pods
    found["daemon_kb"] = memory(runtime.process.pid, "Pss")
    left = processes_of(PER_POD[runtime.name])
    found |= {"pods_kb": sum(memory(pid, "Pss") for pid in left), "processes": len(left), "mount_lines": lines() - empty_lines}
    return found | {"restart_s": restart(runtime, world, pods)}


def fill(runtime: runtimes.Runtime, directory: Path, site: runtimes.registry_server.Site, counts: list[int]) -> list[dict[str, Any]]:
    """One runtime, from an empty node to a full one; everything is removed afterwards."""
    (runtime.network / "10-test.conflist").write_text(json.dumps(pod_network(runtime.directory / "addresses")))
    runtimes.trust(site, runtime.certificates)
    world = Pods(runtime.start(), f"{site.name}/{validation.SHELL}", directory, "cgroupfs", users=True)
    world.pull(world.image)
    timed_pod(world, "warm-up")
    empty, found, pods = lines(), [], 0
    for count in [0, *counts]:
        start_all(world, count - pods)
        pods = count
        found.append(stage(runtime, world, pods, empty))
        print(f"# {runtime.name}: {json.dumps(found[-1])}", flush=True)
    remove_all(world)
    world.clean()
    runtime.stop()
    return found


def main(rounds: str, counts: str, result: str) -> None:
    go_first()
    runtimes.make_state_writable()
    messages = runtimes.messages()
    found: dict[str, list[list[dict[str, Any]]]] = {kind: [] for kind in PER_POD}
    with runtimes.registry() as site:
        for number in range(int(rounds)):
            for kind in list(found)[::1 if number % 2 else -1]:
                with runtimes.scratch() as directory:
                    runtime = runtimes.KINDS[kind](directory / "r", messages, pause=f"{site.name}/pause:3.10.2")
                    found[kind].append(fill(runtime, directory, site, sorted(map(int, counts.split(",")))))
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
