# SPDX-License-Identifier: Apache-2.0
"""The bench inside the guest: `python3 -m nodensdev.bench.guest CONFIG RESULT`.

The subjects take turns, pod by pod: what disturbs the machine for a second disturbs all of them, and the ratios hold.
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ...cri_client import messages_from
from . import daemons, engine, memory, subjects
from .subjects import START, STEPS, Bare, Runtime, Subject

PULLS = 5
SYSTEM = {"udevadm", "python3.13"}  # udev's workers, which come with every veth, and the bench itself
CGROUPS = Path("/sys/fs/cgroup")
END = ("StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox")


class Bench:
    """One run: the subjects, and what was measured of them."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.results: dict[str, Any] = {}
        self.messages = messages_from(Path(config["proto"]))
        self.known = set(memory.processes())
        self.daemons = {one["name"]: daemons.install(one, Path(config["programs"])) for one in config["runtimes"]}
        self.runtimes = [self.start_runtime(daemon, offset) for offset, daemon in enumerate(self.daemons.values())]
        self.engines = [Bare(Path(config["path"])) for _ in range(config["parallel"])]

    def start_runtime(self, daemon: daemons.Daemon, offset: int) -> Runtime:
        daemon.start()
        client = subjects.connect(daemon.socket, self.messages)
        for image in (self.config["pause"], self.config["image"]):
            client.pull(image)
        return Runtime(daemon.name, client, self.config["image"], offset)

    @property
    def subjects(self) -> list[Subject]:
        return [self.engines[0], *self.runtimes]

    def run(self) -> dict[str, Any]:
        for mode in self.config["userns"]:
            self.results[mode] = {subject.name: {} for subject in self.subjects}
            self.warm_up(mode == "on")
            self.serial(mode)
            self.parallel(mode)
        self.results["pull"] = self.pulls()
        return self.results

    def warm_up(self, userns: bool) -> None:
        """One whole life per subject, not counted: first uses load programs and make bridges."""
        for subject in self.subjects:
            for step in STEPS:
                subject.step(step, 0, userns)

    def serial(self, mode: str) -> None:
        userns = mode == "on"
        numbers = range(1, self.config["pods"] + 1)
        times: dict[str, dict[str, list[float]]] = {subject.name: {step: [] for step in STEPS} for subject in self.subjects}
        lines: dict[str, list[int]] = {subject.name: [] for subject in self.subjects}
        for number in numbers:
            for subject in self.subjects:
                before = memory.mount_lines()
                for step in START:
                    times[subject.name][step].append(subject.step(step, number, userns))
                lines[subject.name].append(memory.mount_lines() - before)
        for number in numbers:
            for subject in self.subjects:
                times[subject.name]["ExecSync"].append(subject.step("ExecSync", number, userns))
        self.measure_memory(mode)
        self.measure_restart(mode)
        for number in numbers:
            for subject in self.subjects:
                for step in END:
                    times[subject.name][step].append(subject.step(step, number, userns))
        for name, result in self.results[mode].items():
            result["serial"] = times[name]
            result["mount_lines"] = lines[name]

    def measure_memory(self, mode: str) -> None:
        time.sleep(2)
        workloads = [subjects.WORKLOAD, engine.WORKLOAD]
        for runtime in self.runtimes:
            daemon = self.daemons[runtime.name]
            usage = memory.measure(daemon.programs, daemon.per_pod, workloads, self.known)
            strangers = {name: count for name, count in usage.strangers.items() if name not in daemons.claimed() | SYSTEM}
            self.results[mode][runtime.name]["memory"] = asdict(usage) | {"strangers": strangers}

    def measure_restart(self, mode: str) -> None:
        """From the order to restart until the runtime lists every pod and container as it was."""
        for runtime in self.runtimes:
            wanted = self.config["pods"]
            started = time.perf_counter()
            self.daemons[runtime.name].restart()
            runtime.client.close()
            runtime.client = subjects.connect(self.daemons[runtime.name].socket, self.messages)
            while len(runtime.client.ready_sandboxes()) < wanted or len(runtime.client.running_containers()) < wanted:
                if time.perf_counter() - started > 120:
                    raise RuntimeError(f"{runtime.name} does not find its {wanted} pods again after a restart")
                time.sleep(0.01)
            self.results[mode][runtime.name]["restart_ms"] = (time.perf_counter() - started) * 1000

    def parallel(self, mode: str) -> None:
        """Many pods at once, in rounds in which the subjects take turns; wall time of each round, up and down."""
        size = self.config["parallel"]
        names = [subject.name for subject in self.subjects]
        times: dict[str, dict[str, list[float]]] = {name: {"up_ms": [], "down_ms": []} for name in names}
        rounds = [range(start, start + size) for start in range(1001, 1001 + self.config["pods"], size)]
        for part, steps in (("up_ms", START), ("down_ms", END)):
            for numbers in rounds:
                for name in names:
                    times[name][part].append(self.at_once(name, numbers, steps, mode == "on") / size)
        for name in names:
            self.results[mode][name]["parallel"] = times[name]

    def at_once(self, name: str, numbers: range, steps: tuple[str, ...], userns: bool) -> float:
        workers: SimpleQueue[Subject] = SimpleQueue()
        shared = {runtime.name: [runtime] * self.config["parallel"] for runtime in self.runtimes}
        for subject in shared.get(name, self.engines):
            workers.put(subject)

        def life(number: int) -> None:
            subject = workers.get()
            try:
                for step in steps:
                    subject.step(step, number, userns)
            finally:
                workers.put(subject)

        started = time.perf_counter()
        with ThreadPoolExecutor(self.config["parallel"]) as pool:
            list(pool.map(life, numbers))
        return (time.perf_counter() - started) * 1000

    def pulls(self) -> dict[str, list[float]]:
        times: dict[str, list[float]] = {subject.name: [] for subject in self.subjects}
        for _ in range(PULLS):
            for subject in self.subjects:
                times[subject.name].append(subject.pull(self.config["pulled"]))
        return times

    def close(self) -> None:
        for one in self.engines:
            one.close()
        for runtime in self.runtimes:
            runtime.client.close()


def make_cgroups(pods: int, parallel: int, runtimes: int) -> None:
    """The kubelet's part: pod cgroups with the usual controllers."""
    controllers = "+cpu +memory +pids"
    (CGROUPS / "cgroup.subtree_control").write_text(controllers)
    for name in ("bench", "bench-engine"):
        (CGROUPS / name).mkdir(exist_ok=True)
        (CGROUPS / name / "cgroup.subtree_control").write_text(controllers)
    for number in [*range(pods + 1), *range(1001, 1001 + pods + parallel)]:
        for offset in range(runtimes):
            pod = CGROUPS / "bench" / f"pod{number}-{offset}"
            pod.mkdir(exist_ok=True)
            (pod / "cgroup.subtree_control").write_text(controllers)


def start_registry(config: dict[str, Any]) -> subprocess.Popen[bytes]:
    """The registry, from a copy on the guest's own disk, with its files in the page cache."""
    site = Path("/var/lib/bench-registry")
    shutil.copytree(config["site"], site)
    with open("/etc/hosts", "a") as hosts:
        hosts.write("127.0.0.1 registry.nodens.test\n")
    for path in site.rglob("*"):
        if path.is_file():
            path.read_bytes()
    log = open("/var/log/bench-registry.log", "wb")
    return subprocess.Popen(["/usr/local/bin/registry", "serve", "config.json"], cwd=site, stdout=log, stderr=log)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not happen within 30 s")
        time.sleep(0.1)


def answers(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 1).close()
        return True
    except OSError:
        return False


def main(arguments: list[str]) -> None:
    config = json.loads(Path(arguments[0]).read_text()) | {"path": arguments[0]}
    shutil.copy(Path(config["programs"]) / "registry", "/usr/local/bin/registry")
    make_cgroups(config["pods"], config["parallel"], len(config["runtimes"]))
    registry = start_registry(config)
    daemons.configure(config["hosts_toml"], Path(config["registry"]["authority"]), config["registries"])
    wait_for(lambda: answers(config["registry"]["address"]), "the registry's first answer")
    bench = Bench(config)
    try:
        results = bench.run()
    finally:
        bench.close()
        registry.terminate()
    machine = {"kernel": os.uname().release, "cpus": os.cpu_count()}
    Path(arguments[1]).write_text(json.dumps({"machine": machine, "results": results}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
