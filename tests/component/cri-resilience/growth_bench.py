# SPDX-License-Identifier: Apache-2.0
"""Measures what pods cost on a node that fills up, nodens-cri beside containerd, in turns.

    python3 tests/component/cri-resilience/growth_bench.py ROUNDS PODS[,PODS...] RESULT.json

It runs in the Debian root; `tools/dev bench growth` prepares it and reports the result. Only one
runtime has pods at a time, since crun copies the mount table of containerd's host, which pods of
the other one would make longer. A node is measured each time it has one of these numbers of pods,
which have a user namespace and two containers each.
"""
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nodenstest import runtimes, validation
from nodenstest.pods import Pods
from test_size import lines, memory, pod_network, remove_all, restart, start_all, timed_pod

NICE = -15
PROBES = 20     # pods whose start is timed
ASKED = 5       # how often each list is asked for
IDLE_S = 10
MOST = {"containerd": 300}      # pods: a restart takes containerd 0.1 s per pod
PLUGINS = Path("/usr/lib/cni")
LISTS = ("ListPodSandbox", "ListContainers", "ListPodSandboxStats", "ListContainerStats")
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


# IPAM that counts: host-local reads the files of all addresses for each pod, as slowly for any runtime.
COUNTING = """#!/bin/sh
cat > /dev/null
[ "$CNI_COMMAND" = ADD ] || exit 0
exec 9>> {state}/lock
flock 9
read -r n < {state}/number
echo $((n + 1)) > {state}/number
printf '{{"cniVersion":"1.0.0","ips":[{{"address":"10.80.%d.%d/16","gateway":"10.80.0.1"}}],"routes":[{{"dst":"0.0.0.0/0"}}]}}' \
    $((n / 250)) $((n % 250 + 2))
"""


@contextlib.contextmanager
def counting_plugin(directory: Path) -> Iterator[None]:
    """Adds the plugin to those of the system, in this chroot alone."""
    made, state = directory / "plugins", directory / "addresses"
    shutil.copytree(PLUGINS, made)
    state.mkdir()
    (state / "number").write_text("1\n")
    (made / "counting").write_text(COUNTING.format(state=state))
    (made / "counting").chmod(0o755)
    subprocess.run(["mount", "--bind", str(made), str(PLUGINS)], check=True)
    yield
    subprocess.run(["umount", str(PLUGINS)], check=True)


def network() -> dict[str, Any]:
    found: dict[str, Any] = pod_network(Path("/"))
    found["plugins"][0]["ipam"] = {"type": "counting"}
    return found


def cpu_ms(pids: list[int]) -> float:
    """CPU time that these processes have used."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


def idle_cpu(pids: list[int]) -> float:
    """Milliseconds a minute while nothing is asked for."""
    before = cpu_ms(pids)
    time.sleep(IDLE_S)
    return (cpu_ms(pids) - before) * 60 / IDLE_S


def asked_ms(world: Pods, name: str) -> float:
    call, request = getattr(world.runtime, name), getattr(world.pb, f"{name}Request")

    def once() -> float:
        started = time.perf_counter()
        call(request(), timeout=60)
        return (time.perf_counter() - started) * 1000

    return statistics.median(once() for _ in range(ASKED))


def stage(runtime: runtimes.Runtime, world: Pods, pods: int, empty_lines: int) -> dict[str, Any]:
    """A node with this number of pods. Memory comes after the probes: both runtimes have worked, and have come to rest."""
    assert runtime.process
    found: dict[str, Any] = {"pods": pods, "one_more_pod_ms": [timed_pod(world, f"more-{number}") for number in range(PROBES)]}
    assert len(world.sandboxes()) == pods and len(world.containers()) == 2 * pods
    found["daemon_kb"] = memory(runtime.process.pid, "Pss")
    left = processes_of(PER_POD[runtime.name])
    found |= {"pods_kb": sum(memory(pid, "Pss") for pid in left), "processes": len(left), "mount_lines": lines() - empty_lines,
              "idle_cpu_ms": idle_cpu([runtime.process.pid, *left]), "asked_ms": {name: asked_ms(world, name) for name in LISTS}}
    return found | {"restart_s": restart(runtime, world, pods)}


def fill(runtime: runtimes.Runtime, directory: Path, site: runtimes.registry_server.Site, counts: list[int]) -> list[dict[str, Any]]:
    """One runtime, from an empty node to a full one; everything is removed afterwards."""
    (runtime.network / "10-test.conflist").write_text(json.dumps(network()))
    runtimes.trust(site, runtime.certificates)
    world = Pods(runtime.start(), f"{site.name}/{validation.SHELL}", directory, "cgroupfs", users=True)
    world.pull(world.image)
    timed_pod(world, "warm-up")
    empty, found, pods = lines(), [], 0
    for count in counts:
        if count > MOST.get(runtime.name, count):
            break
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
                with runtimes.scratch() as directory, counting_plugin(directory):
                    runtime = runtimes.KINDS[kind](directory / "r", messages, pause=f"{site.name}/pause:3.10.2")
                    found[kind].append(fill(runtime, directory, site, sorted(map(int, counts.split(",")))))
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
