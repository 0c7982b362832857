# SPDX-License-Identifier: Apache-2.0
"""A container that tries everything to block the runtime, beside twenty well-behaved pods.

The runtime responds, notifies its watchdog, and leaves nothing behind.
"""
import contextlib
import itertools
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import leaks
import pytest
from nodenstest import runtimes
from nodenstest.pods import Container, Pod, Pods, eventually
from test_chaos import no_trace

NEIGHBOURS = 20
LONGEST = 2.0               # seconds that a call may take
WATCHDOG = 60.0             # seconds, as in units/nodens-cri.service
ROUNDS = (("fuse", "hang", "stop"), ("deep", "wide", "rename"), ("mounts", "forks"), ("pipes", "fifos"),
          ("fuse", "hang", "deep", "mounts", "pipes", "stop", "fifos"))
TREATMENT = 4.0             # seconds that a round leaves its actions


@dataclass
class Watch:
    """Asks the runtime everything that a kubelet asks all the time, and keeps how long each answer took."""

    world: Pods
    over: threading.Event = field(default_factory=threading.Event)
    longest: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    calls: int = 0

    def questions(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        pb, runtime, images = self.world.pb, self.world.runtime, self.world.client.images
        yield "Version", lambda: runtime.Version(pb.VersionRequest(), timeout=30)
        yield "Status", lambda: runtime.Status(pb.StatusRequest(), timeout=30)
        yield "ListImages", lambda: images.ListImages(pb.ListImagesRequest(), timeout=30)
        sandboxes = runtime.ListPodSandbox(pb.ListPodSandboxRequest(), timeout=30).items
        containers = runtime.ListContainers(pb.ListContainersRequest(), timeout=30).containers
        yield "ListPodSandbox", lambda: runtime.ListPodSandbox(pb.ListPodSandboxRequest(), timeout=30)
        yield "ListContainers", lambda: runtime.ListContainers(pb.ListContainersRequest(), timeout=30)
        yield "ListContainerStats", lambda: runtime.ListContainerStats(pb.ListContainerStatsRequest(), timeout=30)
        yield "ListPodSandboxStats", lambda: runtime.ListPodSandboxStats(pb.ListPodSandboxStatsRequest(), timeout=30)
        for one in sandboxes:
            yield (
                "PodSandboxStatus",
                lambda one=one: runtime.PodSandboxStatus(pb.PodSandboxStatusRequest(pod_sandbox_id=one.id, verbose=True), timeout=30),
            )
        for one in containers:
            yield "ContainerStatus", lambda one=one: runtime.ContainerStatus(pb.ContainerStatusRequest(container_id=one.id, verbose=True),
                                                                             timeout=30)

    def ask(self, name: str, call: Callable[[], Any]) -> None:
        started = time.monotonic()
        try:
            call()
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:    # it may have been removed since it was listed
                self.wrong.append(f"{name}: {error.code().name} {error.details()}")
        took = time.monotonic() - started
        self.longest[name] = max(self.longest.get(name, 0.0), took)
        self.calls += 1

    def run(self) -> None:
        while not self.over.is_set() and len(self.wrong) < 10:
            try:
                for name, call in self.questions():
                    self.ask(name, call)
            except grpc.RpcError as error:
                self.wrong.append(f"a list: {error.code().name} {error.details()}")


@dataclass
class Watchdog:
    """systemd's side of the watchdog: the longest time that the daemon let pass without a sign of life."""

    path: Path
    longest: float = 0.0
    signs: int = 0

    def listen(self, over: threading.Event) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.bind(str(self.path))
            sock.settimeout(0.5)
            last = None
            while not over.is_set():
                try:
                    message = sock.recv(65536)
                except TimeoutError:
                    message = b""
                now = time.monotonic()
                if last is not None:
                    self.longest = max(self.longest, now - last)
                if b"WATCHDOG=1" in message:
                    last, self.signs = now, self.signs + 1


@pytest.fixture(scope="session")
def program() -> Path:
    """The container's program, in a directory that is its volume, where it says when it is ready: its log may be full."""
    place = Path("/var/tmp/hostile")
    place.mkdir(mode=0o777)
    subprocess.run(["gcc", "-std=gnu23", "-D_GNU_SOURCE", "-O1", "-static", "-o", place / "hostile", Path(__file__).with_name("hostile.c")],
                   check=True)
    return place


def neighbour(world: Pods, number: int) -> Container:
    return world.run(name=f"good-{number}", userns=number % 2 == 0).container("i=0; while :; do echo line $i; i=$((i+1)); sleep 1; done")


def treat(world: Pods, program: Path, number: int, actions: tuple[str, ...]) -> Pod:
    """One hostile container's life up to its end: what a kubelet does to any container is done to it, and may fail, but not hang."""
    pb = world.pb
    pod = world.run(name=f"hostile-{number}", userns=True)
    fuse = pb.Device(host_path="/dev/fuse", container_path="/dev/fuse", permissions="rwm")
    one = pod.container(["/hostile/hostile", f"/hostile/ready-{number}", *actions], mounts=[pod.mount(program, "/hostile")], devices=[fuse],
                        security={"capabilities": pb.Capability(add_capabilities=["SYS_ADMIN"])})
    eventually(lambda: one.state == pb.CONTAINER_EXITED or (program / f"ready-{number}").exists(), 120, f"{actions} under way")
    assert one.state == pb.CONTAINER_RUNNING, one.log_file.read_bytes()[-500:]
    with contextlib.suppress(grpc.RpcError):    # its root, its passwd file and its processes are its own: an exec may fail
        one.execute(["/hostile/hostile", "/hostile/exec", "no-such-action"], timeout=2)
    with contextlib.suppress(grpc.RpcError):
        world.runtime.ContainerStats(pb.ContainerStatsRequest(container_id=one.id), timeout=30)
    time.sleep(TREATMENT)
    one.stop(1)
    one.remove()
    one.log_file.unlink(missing_ok=True)    # as the kubelet does; a flooded log has gigabytes
    return pod


def test_a_container_that_does_everything_it_can_makes_the_runtime_wait_for_nothing(
        request: pytest.FixtureRequest, directory: Path, messages: runtimes.Messages, shell: str, site: runtimes.registry_server.Site,
        program: Path) -> None:
    runtimes.make_state_writable()
    over = threading.Event()
    with leaks.daemon_cgroup() as wrapper:
        watchdog = Watchdog(directory / "notify")
        listener = threading.Thread(target=watchdog.listen, args=(over,))
        listener.start()
        settings = ["env", f"NOTIFY_SOCKET={watchdog.path}", f"WATCHDOG_USEC={int(WATCHDOG * 1e6)}"]
        runtime = runtimes.NodensCri(directory / "r", messages, wrapper=[*wrapper, *settings])
        runtimes.trust(site, runtime.certificates)
        world = Pods(runtime.start(), shell, directory, "cgroupfs")
        try:
            world.pull(shell)
            first = world.run(name="warm-up", userns=True)
            first.container()
            first.stop()
            first.remove()
            world.made.clear()
            before = leaks.take(directory / "r")
            good = [neighbour(world, number) for number in range(NEIGHBOURS)]
            watch = Watch(world)
            asking = threading.Thread(target=watch.run)
            asking.start()
            end, rounds = time.monotonic() + 60 * request.config.getoption("--minutes"), 0
            try:
                for number, actions in zip(itertools.count(), itertools.cycle(ROUNDS)):
                    if number >= len(ROUNDS) and time.monotonic() > end:
                        break
                    pod = treat(world, program, number, actions)
                    pod.stop()
                    pod.remove()
                    world.made.remove(pod)
                    rounds += 1
                    assert good[number % NEIGHBOURS].output("echo alive") == "alive"
            finally:
                watch.over.set()
                asking.join()
            figures = {"rounds": rounds, "calls": watch.calls,
                       "longest_s": {name: round(took, 3) for name, took in sorted(watch.longest.items())},
                       "watchdog_longest_s": round(watchdog.longest, 1), "watchdog_signs": watchdog.signs}
            print(json.dumps(figures, indent=1))
            if path := request.config.getoption("--figures"):
                path.write_text(json.dumps(figures))
            assert not watch.wrong, "\n".join([*watch.wrong, runtime.tail()])
            assert max(watch.longest.values()) < LONGEST, figures
            assert watchdog.signs > 0 and watchdog.longest < WATCHDOG, figures
            for one in good:
                assert one.state == world.pb.CONTAINER_RUNNING
            world.clean()
            no_trace(directory / "r", before, runtime)
            assert runtime.stop() == 0, runtime.tail()
        finally:
            over.set()
            listener.join()
