# SPDX-License-Identifier: Apache-2.0
"""Measures images of many layers, nodens-cri beside containerd, in turns.

    python3 tests/component/cri-resilience/layers_bench.py storm LAYERS PODS ROUNDS RESULT.json
    python3 tests/component/cri-resilience/layers_bench.py large LAYOUT NAME ROUNDS RESULT.json

It runs in the Debian root; `tools/dev bench layers` and `tools/dev bench large` prepare it and report the result. Only one runtime
has pods at a time. *storm* starts pods of an image with small layers, some at a time, as a kubelet does after a reboot; each layer of
each container is mounted. *large* pulls an image into an empty store and starts a container of it.
"""
import json
import os
import select
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from growth_bench import PER_POD, go_first
from nodensdev.images.layout import Layout
from nodenstest import images as make
from nodenstest import runtimes, validation
from nodenstest.pods import Pods
from test_size import lines, pod_network, remove_all, timed_pod

WORKERS = 8         # pods that are started at a time
PROBES = 5          # pods whose start is timed, one after the other
INTERVAL = 0.1      # between two samples of memory


class Mounts(threading.Thread):
    """What every reader of the host's mount table sees, systemd among them: how often it changed, and how long it was."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.running, self.changes, self.most = True, 0, lines()
        self.start()

    def run(self) -> None:
        with open("/proc/self/mountinfo", "rb") as table:
            poll = select.poll()
            poll.register(table, select.POLLPRI)
            while self.running:
                if poll.poll(100):
                    self.changes += 1
                    table.seek(0)
                    self.most = max(self.most, len(table.read().splitlines()))


class Memory(threading.Thread):
    """The largest sum of the proportional sets of a daemon's helpers, while they run."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.running, self.helpers_kb = pid, True, 0
        self.start()

    def run(self) -> None:
        while self.running:
            self.helpers_kb = max(self.helpers_kb, sum(pss_kb(child) for child in below(self.pid)))
            time.sleep(INTERVAL)


def below(pid: int) -> list[int]:
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                found += [child, *below(child)]
    except OSError:
        pass
    return found


def pss_kb(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)


def peak_kb(pid: int) -> int:
    """The largest resident set that a process ever had."""
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM:"))


def cpu_s(pid: int) -> float:
    """Of a process and the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(kind: str, site: runtimes.registry_server.Site, messages: runtimes.Messages, image: str) -> Iterator[tuple[int, Pods]]:
    """A runtime with an empty store."""
    with runtimes.scratch() as directory:
        runtime = runtimes.KINDS[kind](directory / "r", messages, pause=f"{site.name}/pause:3.10.2")
        (runtime.network / "10-test.conflist").write_text(json.dumps(pod_network(runtime.directory / "addresses")))
        runtimes.trust(site, runtime.certificates)
        world = Pods(runtime.start(), image, directory, "cgroupfs", users=True)
        assert runtime.process
        try:
            yield runtime.process.pid, world
        finally:
            world.clean()
            runtime.stop()
            runtimes.unmount_below(directory / "r")
            shutil.rmtree(directory / "r")


def start_pods(world: Pods, count: int) -> list[float]:
    """Milliseconds of each."""
    def start(number: int) -> float:
        began = time.perf_counter()
        world.run(name=f"storm-{number}").container()
        return (time.perf_counter() - began) * 1000

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(start, range(count)))


def storm(daemon: int, world: Pods, pods: int) -> dict[str, Any]:
    world.pull(world.image)
    timed_pod(world, "warm-up")
    found: dict[str, Any] = {"one_pod_ms": [timed_pod(world, f"one-{number}") for number in range(PROBES)]}
    empty, before, mounts, began = lines(), cpu_s(daemon), Mounts(), time.perf_counter()
    found["pod_ms"] = start_pods(world, pods)
    found |= {"seconds": time.perf_counter() - began, "mounts": lines() - empty}
    assert len(world.sandboxes()) == len(world.containers()) == pods
    ended = time.perf_counter()
    remove_all(world)
    mounts.running = False
    mounts.join()
    return found | {"removal_s": time.perf_counter() - ended, "daemon_cpu_s": cpu_s(daemon) - before, "daemon_peak_kb": peak_kb(daemon),
                    "mount_changes": mounts.changes, "mounts_most": mounts.most - empty}


def large(daemon: int, world: Pods) -> dict[str, Any]:
    os.sync()
    memory, began = Memory(daemon), time.perf_counter()
    world.pull(world.image)
    found = {"pull_s": time.perf_counter() - began}
    memory.running = False
    memory.join()
    began = time.perf_counter()
    pod = world.run()
    assert pod.container().output("ls -d /layer*").split()
    found["first_start_s"] = time.perf_counter() - began
    found |= {"second_start_ms": timed_pod(world, "second"), "daemon_peak_kb": peak_kb(daemon), "helpers_peak_kb": memory.helpers_kb}
    began = time.perf_counter()
    remove_all(world)
    world.client.remove_image(world.image)
    return found | {"removal_s": time.perf_counter() - began}


def in_turns(rounds: int, site: runtimes.registry_server.Site, image: str, measure: Callable[[int, Pods], dict[str, Any]],
             result: str) -> None:
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in PER_POD}
    messages = runtimes.messages()
    for number in range(rounds):
        for kind in list(found)[::1 if number % 2 else -1]:
            with running(kind, site, messages, image) as (daemon, world):
                found[kind].append(measure(daemon, world))
            print(f"# {kind}: {json.dumps(found[kind][-1])}", flush=True)
    Path(result).write_text(json.dumps(found))


def publish_small(site: runtimes.registry_server.Site, layers: int) -> str:
    """The shell's image with small layers on top, each with a directory that all of them have."""
    image = validation.stored(site, validation.SHELL)
    while len(image.layers) < layers:
        number = len(image.layers)
        image.layer(make.tar(make.directory("small"), make.entry(f"small/{number}", b"%d" % number)))
    return site.publish(image, "bench/small:1")


def publish_large(site: runtimes.registry_server.Site, layout: str, name: str) -> str:
    site.client().push(Layout.open(Path(layout)), name)
    return f"{site.name}/{name.partition('/')[2]}"


def main(what: str, first: str, second: str, rounds: str, result: str) -> None:
    go_first()
    runtimes.make_state_writable()
    with runtimes.registry() as site:
        if what == "storm":
            in_turns(int(rounds), site, publish_small(site, int(first)), lambda daemon, world: storm(daemon, world, int(second)), result)
        else:
            in_turns(int(rounds), site, publish_large(site, first, second), large, result)


if __name__ == "__main__":
    main(*sys.argv[1:])
