# SPDX-License-Identifier: Apache-2.0
"""The subjects of a measurement: container runtimes behind the CRI, and the bare engine.

All take the same steps under the same names.
"""
import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ...cri_client import BLOCK, CriClient, Messages, Pod

START = ("RunPodSandbox", "CreateContainer", "StartContainer")
STEPS = (*START, "ExecSync", "StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox")
WORKLOAD = ["/bin/sleep", "86399"]
FIRST_BASE = 10 * BLOCK


class Subject(Protocol):
    """Runs the steps of a pod's life; a step returns the milliseconds that it took."""

    name: str

    def step(self, step: str, number: int, userns: bool) -> float: ...

    def pull(self, image: str) -> float: ...


def base_of(number: int, offset: int, userns: bool) -> int | None:
    """The first host ID of a pod's block: different for every pod of every subject."""
    return FIRST_BASE + (number * 4 + offset) * BLOCK if userns else None


@dataclass
class Runtime:
    """A runtime behind its CRI socket."""

    name: str
    client: CriClient
    image: str
    offset: int
    pods: dict[int, str] = field(default_factory=dict)
    containers: dict[int, str] = field(default_factory=dict)

    def step(self, step: str, number: int, userns: bool) -> float:
        pod = Pod(f"bench-{number}", base_of(number, self.offset, userns), cgroup_parent=f"/bench/pod{number}-{self.offset}")
        started = time.perf_counter()
        self.perform(step, number, pod)
        return (time.perf_counter() - started) * 1000

    def perform(self, step: str, number: int, pod: Pod) -> None:
        client = self.client
        if step == "RunPodSandbox":
            self.pods[number] = client.run_sandbox(pod)
        elif step == "CreateContainer":
            self.containers[number] = client.create_container(self.pods[number], pod, "work", self.image, WORKLOAD)
        elif step == "StartContainer":
            client.start_container(self.containers[number])
        elif step == "ExecSync":
            answer = client.exec_sync(self.containers[number], ["/bin/true"])
            if answer.exit_code != 0:
                raise RuntimeError(f"{self.name}: ExecSync of /bin/true gives {answer.exit_code}: {answer.stderr!r}")
        elif step == "ListContainerStats":
            client.container_stats()
        elif step == "ListPodSandboxStats":
            client.sandbox_stats()
        elif step == "StopContainer":
            client.stop_container(self.containers[number])
        elif step == "RemoveContainer":
            client.remove_container(self.containers.pop(number))
        elif step == "StopPodSandbox":
            client.stop_sandbox(self.pods[number])
        elif step == "RemovePodSandbox":
            client.remove_sandbox(self.pods.pop(number))

    def add_containers(self, number: int, count: int, userns: bool) -> None:
        """More of them in a pod that runs."""
        pod = Pod(f"bench-{number}", base_of(number, self.offset, userns), cgroup_parent=f"/bench/pod{number}-{self.offset}")
        for place in range(count):
            self.client.start_container(self.client.create_container(self.pods[number], pod, f"more-{place}", self.image, WORKLOAD))

    def pull(self, image: str) -> float:
        started = time.perf_counter()
        self.client.pull(image)
        took = (time.perf_counter() - started) * 1000
        self.client.remove_image(image)
        return took


class Bare:
    """The bare engine, a process of its own (engine.py)."""

    name = "engine"

    def __init__(self, config: Path) -> None:
        self.lock = threading.Lock()
        command = [sys.executable, "-m", "nodensdev.bench.guest.engine", str(config)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.read()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the bare engine has ended; its error is above")
        return json.loads(line)

    def ask(self, **request: Any) -> float:
        assert self.process.stdin
        with self.lock:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            return self.read()["ms"]

    def step(self, step: str, number: int, userns: bool) -> float:
        return self.ask(step=step, pod=f"engine-{number}", base=base_of(number, 3, userns))

    def pull(self, image: str) -> float:
        return self.ask(step="Pull", image=image)

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(10)


def connect(socket: str, messages: Messages, patience: float = 60.0) -> CriClient:
    """A client of a runtime that is ready, network included."""
    import grpc
    deadline = time.monotonic() + patience
    while True:
        client = CriClient(socket, messages)
        try:
            if client.network_ready():
                return client
        except grpc.RpcError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no runtime answers on {socket}: {error}") from error
        client.close()
        time.sleep(0.02)
