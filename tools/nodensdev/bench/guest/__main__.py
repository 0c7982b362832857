# SPDX-License-Identifier: Apache-2.0
"""The bench inside the guest: `python3 -m nodensdev.bench.guest CONFIG RESULT`.

Theory of operation
  The subjects take turns, pod by pod, in an order that rotates: what disturbs the machine for a second disturbs all of
  them. The n-th sample of every subject comes from the same turn, so a ratio can be taken turn by turn. A turn begins when
  the guest is idle (quiet.py). Everything is done in several rounds, each with new pods and all modes: what changes slowly
  (caches that fill, directories that grow) is spread over both sides of every ratio. The lives that each round begins
  with are not counted.
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
from . import daemons, engine, memory, quiet, subjects
from .subjects import START, STEPS, Bare, Runtime, Subject

PULLS = 7
WARM_UP = 5         # turns of probes that are not counted
EXECS = 2           # of a pod: they are quick, and vary
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

    def turn(self, number: int) -> list[Subject]:
        """The subjects in the order of this turn, which rotates."""
        first = number % len(self.subjects)
        return self.subjects[first:] + self.subjects[:first]

    def run(self) -> dict[str, Any]:
        self.results = {mode: {subject.name: empty() for subject in self.subjects} for mode in self.config["userns"]}
        for _ in range(self.config["rounds"]):
            for mode in self.config["userns"]:
                self.warm_up(mode == "on")
                self.serial(mode)
                self.parallel(mode)
        both = {"pair": self.pairs()} if set(self.config["userns"]) == {"on", "off"} else {}
        return self.results | both | {"pull": self.pulls()}

    def warm_up(self, userns: bool) -> None:
        """One whole life per subject, not counted: first uses load programs and make bridges."""
        for subject in self.subjects:
            for step in STEPS:
                subject.step(step, 0, userns)
        quiet.wait()

    def serial(self, mode: str) -> None:
        numbers = range(1, self.config["pods"] + 1)
        for number in numbers:
            for subject in self.turn(number):
                lines = memory.mount_lines()
                self.measure(subject, mode, number, "start", START)
                self.results[mode][subject.name]["mount_lines"].append(memory.mount_lines() - lines)
        for number in numbers:
            for _ in range(EXECS):
                for subject in self.turn(number):
                    self.measure(subject, mode, number, "exec", ("ExecSync",))
        self.measure_memory(mode)
        self.measure_restart(mode)
        for number in numbers:
            for subject in self.turn(number):
                self.measure(subject, mode, number, "end", END)

    def measure(self, subject: Subject, mode: str, number: int, part: str, steps: tuple[str, ...]) -> None:
        """A turn of one subject: the steps, and the wait for what they leave behind."""
        result = self.results[mode][subject.name]
        for step in steps:
            result["serial"][step].append(subject.step(step, number, mode == "on"))
        result["left"][part].append(quiet.wait())

    def measure_memory(self, mode: str) -> None:
        time.sleep(2)
        workloads = [subjects.WORKLOAD, engine.WORKLOAD]
        for runtime in self.runtimes:
            daemon = self.daemons[runtime.name]
            usage = memory.measure(daemon.programs, daemon.per_pod, workloads, self.known)
            strangers = {name: count for name, count in usage.strangers.items() if name not in daemons.claimed() | SYSTEM}
            self.results[mode][runtime.name]["memory"].append(asdict(usage) | {"strangers": strangers})

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
            self.results[mode][runtime.name]["restart_ms"].append((time.perf_counter() - started) * 1000)
            quiet.wait()

    def parallel(self, mode: str) -> None:
        """Many pods at once, in batches in which the subjects take turns; wall time of each batch, up and down."""
        size = self.config["parallel"]
        batches = [range(start, start + size) for start in range(1001, 1001 + self.config["pods"], size)]
        for part, steps in (("up_ms", START), ("down_ms", END)):
            for position, numbers in enumerate(batches):
                for subject in self.turn(position):
                    took = self.at_once(subject.name, numbers, steps, mode == "on") / size
                    self.results[mode][subject.name]["parallel"][part].append(took)
                    quiet.wait()

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

    def pairs(self) -> dict[str, dict[str, list[float]]]:
        """Starts pods with a user namespace and without, in pairs: the cost of the namespace."""
        times: dict[str, dict[str, list[float]]] = {subject.name: {"on": [], "off": []} for subject in self.subjects}
        for number in range(1, self.config["pods"] + 1):
            for subject in self.turn(number):
                for mode in ("on", "off") if number % 2 else ("off", "on"):
                    times[subject.name][mode].append(sum(subject.step(step, number, mode == "on") for step in START))
                    quiet.wait()
                    for step in END:
                        subject.step(step, number, mode == "on")
                    quiet.wait()
        return times

    def pulls(self) -> dict[str, list[float]]:
        times: dict[str, list[float]] = {subject.name: [] for subject in self.subjects}
        for number in range(PULLS):
            for subject in self.turn(number):
                times[subject.name].append(subject.pull(self.config["pulled"]))
                quiet.wait()
        return times

    def probes(self) -> dict[str, dict[str, list[float]]]:
        """Pods that stay: the time of a command in one of their containers, and of all statistics.

        The bare engine has one container in each, and no statistics.
        """
        userns = self.config["userns"][0] == "on"
        for number in range(1, self.config["pods"] + 1):
            for subject in self.subjects:
                for step in START:
                    subject.step(step, number, userns)
            for runtime in self.runtimes:
                runtime.add_containers(number, self.config["containers"] - 1, userns)
        found: dict[str, dict[str, list[float]]] = {subject.name: {} for subject in self.subjects}
        for turn in range(-WARM_UP, self.config["rounds"]):
            for subject in self.turn(turn):
                for step in ("ExecSync", "ListContainerStats", "ListPodSandboxStats"):
                    if step != "ExecSync" and subject in self.engines:
                        continue
                    quiet.wait()
                    took = subject.step(step, turn % self.config["pods"] + 1, userns)
                    if turn >= 0:
                        found[subject.name].setdefault(step, []).append(took)
        return found

    def close(self) -> None:
        for one in self.engines:
            one.close()
        for runtime in self.runtimes:
            runtime.client.close()


def empty() -> dict[str, Any]:
    """A subject's results in one mode, before the first round."""
    return {"serial": {step: [] for step in STEPS}, "left": {part: [] for part in ("start", "exec", "end")}, "mount_lines": [],
            "parallel": {"up_ms": [], "down_ms": []}, "memory": [], "restart_ms": []}


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
        results = bench.probes() if config["kind"] == "probes" else bench.run()
    finally:
        bench.close()
        registry.terminate()
    machine = {"kernel": os.uname().release, "cpus": os.cpu_count()}
    Path(arguments[1]).write_text(json.dumps({"machine": machine, "results": results}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
