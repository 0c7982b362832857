# SPDX-License-Identifier: Apache-2.0
"""Resource usage of a daemon after a long time; nothing may grow.

It runs thousands of rounds of exec, attach, port-forward and log rotation, of pod lives, and of
probes. Each history begins with a share of itself, so that buffers, the allocator's arenas and the
like have their size before anything is measured.
"""
import contextlib
import gc
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import leaks
import pytest
from nodenstest import runtimes
from nodenstest.pods import TIMEOUT, Container, Pod, Pods, eventually
from nodenstest.spdy import Streams, Tunnels
from nodenstest.websocket import STDOUT, Channels
from test_chaos import no_trace

WORKERS = 4
GROWTH_AIM_KB = 256
RATE = 100                  # probes a second
WARM_UP = 10                # a tenth of a history, or so much that every worker had its turns
SAMPLES = 10
NO_LIMITS = {"cpu_shares": 0}    # so that crun itself runs where there are no controllers
SETTLING = 15.0             # until what ends in the background has ended


def pod_network(state: Path) -> dict[str, object]:
    return {"cniVersion": "1.0.0", "name": "soak", "plugins": [
        {"type": "ptp", "ipMasq": False, "ipam": {"type": "host-local", "dataDir": str(state), "ranges": [[{"subnet": "10.81.0.0/16"}]],
                                                  "routes": [{"dst": "0.0.0.0/0"}]}}]}


@dataclass
class Weight:
    """All resources of the daemon and its monitors that could grow."""

    anonymous_kb: int           # the daemon's own
    monitors_kb: int            # of all monitors
    descriptors: int
    monitors_descriptors: int
    children: int               # of the daemon, zombies among them
    mounts: int                 # of this mount namespace
    pins: int                   # of the mount namespaces that the daemon holds
    cgroups: int

    def beyond(self, before: "Weight") -> dict[str, int]:
        """The resources that have grown; memory has its own limit."""
        grown = {name: value - asdict(before)[name] for name, value in asdict(self).items()}
        return {name: value for name, value in grown.items() if value > (GROWTH_AIM_KB - 1 if name.endswith("_kb") else 0)}


def anonymous(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon:"))


def descriptors(pid: int) -> dict[str, str]:
    found = {}
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found[path.name] = os.readlink(path)
    return found


def by_name(name: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "comm").read_text().strip() == name:
                found.append(int(entry.name))
    return found


def children(pid: int) -> int:
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


# Enters a mount namespace without /proc: ours is bind-mounted. In a separate program, since gRPC's
# threads do not survive a fork.
COUNTING = """
import os, sys
proc, there = map(int, sys.argv[1:])
os.setns(there, os.CLONE_NEWNS)
with open(os.open("self/mountinfo", os.O_RDONLY, dir_fd=proc)) as stream:
    print(len(stream.readlines()))
"""


def mounts_in(namespace: str) -> int:
    proc, there = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY), os.open(namespace, os.O_RDONLY)
    try:
        done = subprocess.run([sys.executable, "-c", COUNTING, str(proc), str(there)], pass_fds=(proc, there), check=True,
                              capture_output=True, text=True)
        return int(done.stdout)
    finally:
        os.close(proc)
        os.close(there)


def held_mounts(pid: int) -> int:
    held = {target: name for name, target in descriptors(pid).items() if target.startswith("mnt:")}
    return sum(mounts_in(f"/proc/{pid}/fd/{name}") for name in held.values())


def weigh(pid: int) -> Weight:
    monitors = by_name("nodens-mon")
    return Weight(anonymous(pid), sum(map(anonymous, monitors)), len(descriptors(pid)), sum(len(descriptors(one)) for one in monitors),
                  children(pid),
                  len(leaks.mounts()), held_mounts(pid), len(leaks.cgroups()))


def settled(pid: int, before: Weight | None = None) -> Weight:
    """The weight once what ends in the background has ended, or does not."""
    deadline = time.monotonic() + SETTLING
    gc.collect()
    while True:
        time.sleep(0.3)
        found = weigh(pid)
        quiet = not found.children and (before is None or not found.beyond(before))
        if quiet or time.monotonic() > deadline:
            return found


@dataclass
class Soak:
    """A daemon under work, and what it weighed at which point of it."""

    runtime: runtimes.NodensCri
    world: Pods
    before: leaks.Traces

    @property
    def pid(self) -> int:
        assert self.runtime.process
        return self.runtime.process.pid

    def work(self, name: str, count: int, turn: Callable[[int], None], workers: int = WORKERS) -> dict[str, Any]:
        """Turns, some at a time, after a share of them that is not counted; the weight before, while, and after."""
        numbers = itertools.count()
        run(max(count // WARM_UP, 20 * workers), turn, numbers, workers)
        first = settled(self.pid)
        while_at_it, started = [], time.monotonic()
        for part in range(SAMPLES):
            run(count * (part + 1) // SAMPLES - count * part // SAMPLES, turn, numbers, workers)
            while_at_it.append(anonymous(self.pid))
        took = time.monotonic() - started
        last = settled(self.pid, first)
        return {"what": name, "count": count, "seconds": round(took, 1), "per_second": round(count / took, 1), "before": asdict(first),
                "after": asdict(last),
                "anonymous_kb_while": while_at_it, "growth_kb": last.anonymous_kb - first.anonymous_kb, "grown": last.beyond(first),
                "descriptors": descriptors(self.pid) if last.descriptors > first.descriptors else {}}


def run(count: int, turn: Callable[[int], None], numbers: Iterator[int], workers: int) -> None:
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(turn, itertools.islice(numbers, count)))


@pytest.fixture
def soak(directory: Path, messages: runtimes.Messages, shell: str, site: runtimes.registry_server.Site) -> Iterator[Soak]:
    runtimes.make_state_writable()
    with leaks.daemon_cgroup() as wrapper:
        runtime = runtimes.NodensCri(directory / "r", messages, wrapper=wrapper, settings={"crun": "/usr/bin/crun"})
        (runtime.network / "10-test.conflist").write_text(json.dumps(pod_network(directory / "r/addresses")))
        runtimes.trust(site, runtime.certificates)
        world = Pods(runtime.start(), shell, directory, "cgroupfs", users=True)
        world.pull(shell)
        one_life(world, 0)
        before = leaks.take(directory / "r")
        yield Soak(runtime, world, before)
        world.clean()
        no_trace(directory / "r", before, runtime)
        assert runtime.stop() == 0, runtime.tail()


def told(request: pytest.FixtureRequest, found: dict[str, Any]) -> None:
    """Shows the figures and keeps them, one object to a line; what has grown fails the test."""
    print(json.dumps(found, indent=1))
    if path := request.config.getoption("--figures"):
        with path.open("a") as stream:
            stream.write(json.dumps({key: value for key, value in found.items() if key != "descriptors"}) + "\n")
    assert not found["grown"], found


# ---- exec, attach, port-forward, log rotation ----

@dataclass
class Desk:
    """A pod with something to attach to, to forward to and to rotate; one worker's at a time."""

    pod: Pod
    one: Container
    lock: threading.Lock

    def exec(self, number: int) -> None:
        words, terminal = f"echo {number}", number % 3 == 0
        request = self.pod.pods.pb.ExecRequest(container_id=self.one.id, cmd=["sh", "-c", words], stdout=True, tty=terminal)
        url = self.pod.pods.runtime.Exec(request, timeout=TIMEOUT).url
        if number % 2:
            channels = Channels(url)
            assert channels.read(STDOUT).split() == [str(number).encode()] and channels.exit_code() == 0
            channels.close()
        else:
            streams = Streams(url, ["error", "stdout", *(["resize"] if terminal else [])])
            assert streams.read("stdout").split() == [str(number).encode()] and streams.exit_code() == 0
            streams.close()

    def attach(self, number: int) -> None:
        request = self.pod.pods.pb.AttachRequest(container_id=self.one.id, stdin=True, stdout=True)
        streams = Streams(self.pod.pods.runtime.Attach(request, timeout=TIMEOUT).url, ["error", "stdin", "stdout"])
        words = f"attached {number}\n".encode()
        streams.write("stdin", words)
        streams.read("stdout", until=words)
        streams.close()

    def forward(self, number: int) -> None:
        url = self.pod.pods.runtime.PortForward(self.pod.pods.pb.PortForwardRequest(pod_sandbox_id=self.pod.id), timeout=TIMEOUT).url
        tunnels = Tunnels(url)
        name, words = tunnels.connect(7000, "0"), f"forwarded {number}\n".encode()
        tunnels.write(name, words)
        tunnels.read(name, until=words)
        if number % 2:
            tunnels.finish(name)
            tunnels.read(name)
        tunnels.close()

    def rotate(self) -> None:
        moved = self.one.log_file.with_suffix(".1")
        self.one.log_file.rename(moved)
        self.pod.pods.runtime.ReopenContainerLog(self.pod.pods.pb.ReopenContainerLogRequest(container_id=self.one.id), timeout=TIMEOUT)
        assert self.one.log_file.exists()

    def round(self, number: int) -> None:
        with self.lock:
            self.exec(number)
            self.attach(number)
            self.forward(number)
            self.rotate()


def make_desk(world: Pods, number: int) -> Desk:
    pod = world.run(name=f"desk-{number}")
    one = pod.container("nc -lk -p 7000 -e cat & exec cat", stdin=True, resources=NO_LIMITS)
    eventually(lambda: ":1B58 " in one.output("cat /proc/net/tcp /proc/net/tcp6"), what="a server at port 7000")
    return Desk(pod, one, threading.Lock())


def test_rounds_of_exec_attach_port_forward_and_log_rotation_leave_nothing(request: pytest.FixtureRequest, soak: Soak) -> None:
    desks = [make_desk(soak.world, number) for number in range(WORKERS)]
    told(request, soak.work("rounds", request.config.getoption("--rounds"), lambda number: desks[number % WORKERS].round(number)))


# ---- pod lives ----

def one_life(world: Pods, number: int) -> None:
    """A pod with two containers, one of which ends by itself; then all of it goes."""
    pod = world.run(name=f"life-{number}")
    short = pod.container(f"echo {number}; exit 3", name="short", resources=NO_LIMITS)
    pod.container(name="long", resources=NO_LIMITS).output("true")
    assert short.ended().exit_code == 3
    pod.stop()
    pod.remove()
    world.made.remove(pod)
    uid = pod.config.metadata.uid
    with contextlib.suppress(OSError):    # the kubelet's part: the pod's cgroup
        cgroup = next(path for path in world.cgroups if path.name == f"pod{uid}")
        world.cgroups.remove(cgroup)
        cgroup.rmdir()


def test_pod_lives_leave_nothing(request: pytest.FixtureRequest, soak: Soak) -> None:
    told(request, soak.work("lives", request.config.getoption("--soak-lives"), lambda number: one_life(soak.world, number)))


# ---- probes ----

def test_probes_at_a_hundred_a_second_leave_nothing(request: pytest.FixtureRequest, soak: Soak) -> None:
    containers = [soak.world.run(name=f"probed-{number}").container(resources=NO_LIMITS) for number in range(10)]
    started = [0.0]

    def probe(number: int) -> None:
        if number == 0:
            started[0] = time.monotonic()
        if (early := started[0] + number / RATE - time.monotonic()) > 0:
            time.sleep(early)
        done = containers[number % len(containers)].execute(["true"] if number % 10 else ["false"])
        assert done.code == (0 if number % 10 else 1), done

    found = soak.work("probes", int(request.config.getoption("--minutes") * 60 * RATE), probe, workers=8)
    told(request, found | {"wanted_per_second": RATE})
