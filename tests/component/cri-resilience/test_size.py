# SPDX-License-Identifier: Apache-2.0
"""A node full of pods: how fast they start, what they cost, how long a list and a restart take.

At the end all of it is removed.
"""
import json
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import leaks
import pytest
from nodenstest import runtimes
from nodenstest.pods import Pod, Pods
from test_chaos import no_trace

WORKERS = 4
PROBES = 10                 # pods whose start is timed, before and after


def pod_network(state: Path) -> dict[str, object]:
    """Point to point: a bridge takes 1,023 ports."""
    return {"cniVersion": "1.0.0", "name": "size", "plugins": [
        {"type": "ptp", "ipMasq": False, "ipam": {"type": "host-local", "dataDir": str(state), "ranges": [[{"subnet": "10.80.0.0/16"}]],
                                                  "routes": [{"dst": "0.0.0.0/0"}]}}]}


@dataclass
class Lists:
    """Asks for all sandboxes and containers once a second, as a kubelet does, and notes how long that takes."""

    world: Pods
    over: threading.Event = field(default_factory=threading.Event)
    seconds: list[float] = field(default_factory=list)

    def run(self) -> None:
        while not self.over.wait(1.0):
            started = time.perf_counter()
            self.world.sandboxes()
            self.world.containers()
            self.seconds.append(time.perf_counter() - started)


def memory(pid: int, key: str) -> int:
    text = Path(f"/proc/{pid}/{'status' if key == 'VmRSS' else 'smaps_rollup'}").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(key + ":"))


def monitors() -> Iterator[int]:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text().strip() in ("nodens-mon", "catatonit"):
                yield int(entry.name)
        except OSError:
            continue


def lines() -> int:
    return len(Path("/proc/self/mountinfo").read_text().splitlines())


def timed_pod(world: Pods, name: str) -> float:
    """Milliseconds from nothing to a running container; the pod is gone afterwards."""
    started = time.perf_counter()
    pod = world.run(name=name)
    pod.container()
    took = (time.perf_counter() - started) * 1000
    pod.stop()
    pod.remove()
    world.made.remove(pod)
    return took


def start_all(world: Pods, count: int) -> list[Pod]:
    def start(number: int) -> Pod:
        pod = world.run(name=f"size-{number}")
        for name in ("one", "two"):
            pod.container(name=name)
        return pod

    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(start, range(count)))


def restart(runtime: runtimes.Runtime, world: Pods, pods: int) -> float:
    """Seconds from the order to start until all is listed as it was."""
    runtime.stop(signal.SIGTERM)
    started = time.perf_counter()
    runtime.start().close()
    while True:
        try:
            ready = [item for item in world.sandboxes() if item.state == world.pb.SANDBOX_READY]
            running = [item for item in world.containers() if item.state == world.pb.CONTAINER_RUNNING]
            if len(ready) >= pods and len(running) >= 2 * pods:
                return time.perf_counter() - started
        except grpc.RpcError:
            pass
        assert time.perf_counter() - started < 60, "not everything is there again after a restart"
        time.sleep(0.01)


def test_a_node_carries_a_thousand_pods_with_two_containers_each(request: pytest.FixtureRequest, directory: Path,
                                                                 messages: runtimes.Messages, shell: str,
                                                                site: runtimes.registry_server.Site) -> None:
    count = request.config.getoption("--pods")
    runtimes.make_state_writable()
    runtime = runtimes.NodensCri(directory / "r", messages)
    (runtime.network / "10-test.conflist").write_text(json.dumps(pod_network(directory / "r/addresses")))
    runtimes.trust(site, runtime.certificates)
    world = Pods(runtime.start(), shell, directory, "cgroupfs", users=True)
    world.pull(shell)
    timed_pod(world, "warm-up")
    before = leaks.take(directory / "r")
    figures = measure(world, runtime, count)
    print(json.dumps(figures, indent=1))
    if path := request.config.getoption("--figures"):
        path.write_text(json.dumps(figures))
    world.clean()
    no_trace(directory / "r", before, runtime)


def measure(world: Pods, runtime: runtimes.NodensCri, count: int) -> dict[str, Any]:
    assert runtime.process
    first_lines = lines()
    found: dict[str, Any] = {"pods": count, "containers": 2 * count, "rss_idle_kb": memory(runtime.process.pid, "VmRSS")}
    found["first_pod_ms"] = statistics.median(timed_pod(world, f"first-{number}") for number in range(PROBES))
    lists = Lists(world)
    lister = threading.Thread(target=lists.run)
    lister.start()
    started = time.perf_counter()
    start_all(world, count)
    found["start_s"] = time.perf_counter() - started
    found["pods_per_s"] = count / found["start_s"]
    found["one_more_pod_ms"] = statistics.median(timed_pod(world, f"more-{number}") for number in range(PROBES))
    time.sleep(5)
    lists.over.set()
    lister.join()
    found |= {"list_ms_median": statistics.median(lists.seconds) * 1000, "list_ms_max": max(lists.seconds) * 1000}
    found["rss_full_kb"] = memory(runtime.process.pid, "VmRSS")
    found["rss_per_container_kb"] = (found["rss_full_kb"] - found["rss_idle_kb"]) / (2 * count)
    found["monitors_pss_kb_per_pod"] = sum(memory(pid, "Pss") for pid in monitors()) / count
    found["mount_lines_per_pod_with_two"] = (lines() - first_lines) / count
    found["restart_s"] = restart(runtime, world, count)
    found["rss_after_restart_kb"] = memory(runtime.process.pid, "VmRSS")
    started = time.perf_counter()
    remove_all(world)
    found["remove_s"] = time.perf_counter() - started
    return found | {"cpus": os.cpu_count()}


def remove_all(world: Pods) -> None:
    def remove(pod: Pod) -> None:
        pod.stop()
        pod.remove()

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(remove, list(world.made)))
    world.made.clear()
    assert world.sandboxes() == [] and world.containers() == []

