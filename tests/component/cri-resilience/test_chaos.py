# SPDX-License-Identifier: Apache-2.0
"""Pods are created and removed while the daemon is killed and its programs fail or hang.

Four are in work at a time, as with a kubelet; crun, the monitor and the CNI plugins have the
faults. All that was acknowledged must be true afterwards, and in the end nothing is left.
"""
import itertools
import json
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import leaks
import pytest
from nodenstest import runtimes
from nodenstest.pods import Container, Pod, Pods

WORKERS = 4
RESTART = 90.0                  # its self-test runs crun, which may hang here until the test's own deadline
PATIENCE = 240.0                # for a step that is tried again and again, as the kubelet does
FAULTS = {"crun": (8, 4, 2, 2), "monitor": (8, 0, 2, 0), "bridge": (8, 8, 2, 2)}    # of a thousand: fails, fails late, hangs, hangs late
GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


def place_faulty(directory: Path, name: str, real: Path | str, faults: tuple[int, ...]) -> Path:
    """A copy of the program that fails now and then, before the real one."""
    path = directory / "faulty" / name
    path.parent.mkdir(exist_ok=True)
    shutil.copy(runtimes.BUILD / "tests/component/cri-resilience/faulty", path)
    set_faults(path, real, faults)
    return path


def set_faults(path: Path, real: Path | str, faults: tuple[int, ...]) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(" ".join(map(str, (real, *faults))) + "\n")
    new.rename(path.with_name(path.name + ".faults"))


@dataclass
class Chaos:
    """The daemon, its killer, and what has happened."""

    runtime: runtimes.NodensCri
    dice: random.Random
    kills: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    events: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def kill_at_random(self) -> None:
        while not self.over.wait(self.dice.uniform(0.05, 1.2)):
            self.runtime.stop(signal.SIGKILL)
            self.kills += 1
            try:
                self.runtime.start(RESTART).close()
            except (AssertionError, TimeoutError) as error:
                self.lie(f"a killed daemon does not come back: {error}")
                return

    def note(self, what: str) -> None:
        with self.lock:
            self.events[what] += 1

    def lie(self, what: str) -> None:
        with self.lock:
            self.wrong.append(what)


def insist(chaos: Chaos, what: str, call: Callable[[], Any]) -> Any:
    """Tries until it succeeds, as a kubelet does with what must come about."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            chaos.note(f"{what}: {error.code().name}")
            if chaos.wrong:
                raise
            if time.monotonic() > deadline:
                chaos.lie(f"{what} did not succeed within {PATIENCE:.0f} s: {error.details()}")
                raise
            time.sleep(0.1)


def live(chaos: Chaos, world: Pods, number: int) -> None:
    """One pod's life. A failed pod is removed and, if its start failed, retried with the next attempt."""
    userns = number % 2 == 0
    uid = f"chaos-{number}-{time.monotonic_ns()}"
    for attempt in itertools.count():
        metadata = world.pb.PodSandboxMetadata(name=f"chaos-{number}", uid=uid, namespace="chaos", attempt=attempt)
        try:
            pod = world.run(userns=userns, name=f"chaos-{number}", metadata=metadata)
        except grpc.RpcError as error:
            chaos.note(f"RunPodSandbox: {error.code().name}")
            remove_strays(chaos, world, uid)
            continue
        if try_containers(chaos, world, pod, number):
            chaos.note("lives")
            return
        end(chaos, pod)


def remove_strays(chaos: Chaos, world: Pods, uid: str) -> None:
    """A sandbox whose run was not acknowledged may be there nevertheless, if the answer was lost; then it is whole and can be removed."""
    for item in insist(chaos, "ListPodSandbox", world.sandboxes):
        if item.metadata.uid == uid:
            chaos.note("sandboxes of lost answers")
            stray = Pod(world, item.id, None)
            end(chaos, stray)


def try_containers(chaos: Chaos, world: Pods, pod: Pod, number: int) -> bool:
    code = number % 100
    try:
        short = pod.container(f"exit {code}", name="short", start=False)
        long = pod.container(name="long", start=False)
        for one in (short, long):
            start(chaos, one)
    except grpc.RpcError as error:
        chaos.note(f"containers: {error.code().name}")
        return False
    check(chaos, world, pod, short, long, code)
    end(chaos, pod)
    return True


def start(chaos: Chaos, one: Container) -> None:
    try:
        one.start()
    except grpc.RpcError as error:
        if error.code() not in GONE:
            raise
        if insist(chaos, "ContainerStatus", lambda: one.state) == one.pods.pb.CONTAINER_CREATED:    # otherwise only the answer was lost
            insist_started(chaos, one)
        # the next daemon tried on its own, and says that it could not
        if insist(chaos, "ContainerStatus", one.status).reason == "StartError":
            raise


def insist_started(chaos: Chaos, one: Container) -> None:
    """An earlier try may have come through without our knowing it."""
    def started() -> None:
        try:
            one.start()
        except grpc.RpcError:
            if one.state == one.pods.pb.CONTAINER_CREATED:
                raise

    insist(chaos, "StartContainer", started)


def check(chaos: Chaos, world: Pods, pod: Pod, short: Container, long: Container, code: int) -> None:
    """Acknowledged operations have taken effect, however often the daemon has been killed since."""
    listed = {item.id for item in insist(chaos, "ListContainers", lambda: world.containers(pod_sandbox_id=pod.id))}
    if not {short.id, long.id} <= listed:
        chaos.lie(f"containers of {pod.id} are lost")
    if insist(chaos, "ContainerStatus", lambda: long.state) != world.pb.CONTAINER_RUNNING:
        chaos.lie(f"a running container is reported as {long.status()}")
    if insist(chaos, "PodSandboxStatus", lambda: pod.status().state) != world.pb.SANDBOX_READY:
        chaos.lie(f"a ready sandbox is reported as {pod.status()}")
    found = insist(chaos, "ContainerStatus", lambda: ended(short))
    if found.exit_code != code:
        chaos.lie(f"a container that ended with {code} is reported with {found.exit_code} ({found.reason}: {found.message})")


def ended(one: Container) -> Any:
    deadline = time.monotonic() + 30
    while (found := one.status()).state != one.pods.pb.CONTAINER_EXITED and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def end(chaos: Chaos, pod: Pod) -> None:
    insist(chaos, "StopPodSandbox", pod.stop)
    insist(chaos, "RemovePodSandbox", pod.remove)


@pytest.fixture
def wrapper() -> Iterator[list[str]]:
    with leaks.daemon_cgroup() as words:
        yield words


def test_a_thousand_pod_lives_while_everything_fails(request: pytest.FixtureRequest, directory: Path, messages: runtimes.Messages,
                                                     shell: str,
                                                    site: runtimes.registry_server.Site, wrapper: list[str]) -> None:
    lives, wanted_kills = request.config.getoption("--lives"), request.config.getoption("--kills")
    seed = request.config.getoption("--seed") or random.randrange(1 << 32)
    print(f"seed {seed}")
    runtimes.make_state_writable()
    runtime = runtimes.NodensCri(directory / "r", messages, wrapper=wrapper)
    runtimes.trust(site, runtime.certificates)
    fakes = make_fakes(directory, runtime)
    client = runtime.start()
    world = Pods(client, shell, directory, "cgroupfs")
    world.pull(shell)
    warm_up(world, fakes)
    before = leaks.take(directory / "r")
    chaos = Chaos(runtime, random.Random(seed))
    for path, real, faults in fakes:
        set_faults(path, real, tuple(often * request.config.getoption("--faults") for often in faults))

    killer = threading.Thread(target=chaos.kill_at_random)
    killer.start()
    work(chaos, world, lives, wanted_kills)
    chaos.over.set()
    killer.join()

    for path, real, _ in fakes:
        set_faults(path, real, (0, 0, 0, 0))
    if not chaos.wrong:
        collect(chaos, world)
    figures = {"lives": chaos.events["lives"], "kills": chaos.kills, "seed": seed, "events": dict(chaos.events.most_common())}
    print(json.dumps(figures, indent=1))
    if path := request.config.getoption("--figures"):
        path.write_text(json.dumps(figures))
    assert not chaos.wrong, "\n".join([*chaos.wrong[:20], runtime.tail()])
    world.clean()
    no_trace(directory / "r", before, runtime)
    assert chaos.kills >= wanted_kills and chaos.events["lives"] >= lives


def collect(chaos: Chaos, world: Pods) -> None:
    """A run whose rollback failed too is shown as not ready, for the kubelet's garbage collection.

    The test does the kubelet's part. Nothing else may be left.
    """
    for item in world.sandboxes():
        if item.state == world.pb.SANDBOX_READY:
            chaos.lie(f"a sandbox is left: {item}")
            continue
        chaos.note("sandboxes left to the kubelet")
        end(chaos, Pod(world, item.id, None))


def make_fakes(directory: Path, runtime: runtimes.NodensCri) -> list[tuple[Path, Path | str, tuple[int, ...]]]:
    """crun, the monitor and the bridge plugin, each behind a fake that does nothing wrong yet."""
    quiet = (0, 0, 0, 0)
    crun, monitor = (
        "/usr/bin/crun" if runtimes.has_controllers() else str(runtimes.WITHOUT_CONTROLLERS),
        runtimes.program("src/mon/nodens-mon"),
    )
    fakes: list[tuple[Path, Path | str, tuple[int, ...]]] = [
        (place_faulty(directory, "crun", crun, quiet), crun, FAULTS["crun"]),
        (place_faulty(directory, "nodens-mon", monitor, quiet), monitor, FAULTS["monitor"]),
        (place_faulty(directory, "bridge", "/usr/lib/cni/bridge", quiet), "/usr/lib/cni/bridge", FAULTS["bridge"])]
    runtime.settings |= {"crun": fakes[0][0], "monitor": fakes[1][0], "cniPlugins": f"[{fakes[2][0].parent}, /usr/lib/cni]"}
    return fakes


def warm_up(world: Pods, fakes: list[Any]) -> None:
    pod = world.run(name="warm-up")
    pod.container()
    pod.stop()
    pod.remove()
    world.made.clear()


def work(chaos: Chaos, world: Pods, lives: int, wanted_kills: int) -> None:
    """Until there were enough of both."""
    numbers = itertools.count()

    def worker() -> None:
        while chaos.events["lives"] < lives or chaos.kills < wanted_kills:
            if chaos.wrong:
                return
            live(chaos, world, next(numbers))

    threads = [threading.Thread(target=worker) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def no_trace(directory: Path, before: leaks.Traces, runtime: runtimes.NodensCri) -> None:
    """Nothing of any pod is there any more; what ends in the background has half a minute."""
    daemon = {f"{runtime.process.pid} "} if runtime.process else set()

    def beyond() -> dict[str, list[str]]:
        found = leaks.take(directory).beyond(before)
        ours = [entry for entry in found.get("processes", []) if entry.split()[0] + " " not in daemon and not mine(entry)]
        return {kind: entries for kind, entries in found.items() if kind != "processes"} | ({"processes": ours} if ours else {})

    deadline = time.monotonic() + 30
    while (left := beyond()) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not left, json.dumps(left, indent=1)


def mine(entry: str) -> bool:
    """Our own threads and the registry."""
    pid = int(entry.split()[0])
    return pid == os.getpid() or "registry serve" in entry


