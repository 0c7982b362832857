# SPDX-License-Identifier: Apache-2.0
"""Benchmark of nodens-rootless and RootlessKit 3.1 in one run: `tools/dev bench rootless`.

It measures ports, egress, memory and start time, in the chroot. All setups run at once and take
turns, so that load on the host affects them alike. Each transfers the same bytes between the same
two programs: a client on the host and a server in the node ("direct" and "bare splice": next to
it). Prints the results and writes them as JSON.
"""
import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nodenstest import machine
from nodenstest.machine import ALPHA4

SINK = 7001                 # on the router: target of egress
# an address of the router behind a link with this round-trip time, for streams over a distance
FAR4, FAR_MS = "10.99.0.1", 10
# per setup and round, into the node: short ones, so that disturbances hit all setups alike
STREAMS = 4
REQUESTS, BURST = 5000, 25  # per setup and round; consecutive requests before the next setup's turn
SERVE = """
import fcntl, os, socket, sys, time
s = socket.socket(); s.setsockopt(1, 2, 1); s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(4096); print("ready", flush=True)
def sink(c):                                 # counts until EOF, then sends the total
    n, buffer = 0, bytearray(1 << 20)
    while got := c.recv_into(buffer): n += got
    c.sendall(str(n).encode())
def echo(c):                                 # for small requests
    while data := c.recv(100): c.sendall(data)
def leave(c):                                # egress; sends back Gbit/s
    address, port, seconds = c.recv(100).decode().split()
    data, o = bytes(1 << 20), socket.create_connection((address, int(port)), 10)
    o.sendall(b"s"); sent = 0; started = time.monotonic(); o.settimeout(0.1)
    while time.monotonic() - started < float(seconds):
        try: sent += o.send(data)
        except TimeoutError: pass
    waits = int.from_bytes(fcntl.ioctl(o.fileno(), 0x5411, bytes(4)), sys.byteorder)    # SIOCOUTQ: unsent
    c.sendall(str((sent - waits) * 8 / (time.monotonic() - started) / 1e9).encode())
    o.setsockopt(1, 13, bytes([1, 0, 0, 0, 0, 0, 0, 0]))    # discard unsent data
while True:
    c, _ = s.accept()
    if os.fork() == 0:
        c.setsockopt(6, 1, 1)
        try: {b"s": sink, b"e": echo, b"l": leave}[c.recv(1)](c)
        except ConnectionResetError: pass    # how a stream out of a node ends
        os._exit(0)
    c.close()
    try:
        while os.waitpid(-1, os.WNOHANG)[0]: pass
    except ChildProcessError: pass
"""
# For short connections: a server that does not fork for each.
ONCE = """
import socket, sys
s = socket.socket(); s.setsockopt(1, 2, 1); s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(4096); print("ready", flush=True)
while True:
    c, _ = s.accept(); c.sendall(b"x"); c.close()
"""
# Only splice(), with two threads per connection.
SPLICE = """
import fcntl, os, socket, sys, threading
def carry(a, b):
    r, w = os.pipe(); fcntl.fcntl(w, 1031, 1 << 20)
    while True:
        n = os.splice(a.fileno(), w, 1 << 20)
        if n == 0: break
        while n: n -= os.splice(r, b.fileno(), n)
    try: b.shutdown(1)
    except OSError: pass
    os.close(r); os.close(w)
l = socket.create_server(("", int(sys.argv[1])), backlog=4096); print("ready", flush=True)
while True:
    a, _ = l.accept(); b = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    for s in (a, b): s.setsockopt(6, 1, 1)
    for x, y in ((a, b), (b, a)): threading.Thread(target=carry, args=(x, y), daemon=True).start()
"""


# A link between two network namespaces that delays packets, by two tun devices. The kernel of a
# small machine has no netem.
DELAY = """
import collections, fcntl, os, select, struct, sys, time
delay = float(sys.argv[1]) / 2000
def tun(network):
    os.setns(os.open("/run/netns/" + network, os.O_RDONLY), os.CLONE_NEWNET)
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", b"far0", 0x5001))    # TUNSETIFF: a tun with virtio headers
    fcntl.ioctl(fd, 0x400454d0, 7)                                          # TUNSETOFFLOAD: TCP segments of 64 KiB
    return fd
ends = [tun("alpha"), tun("router")]; queues = [collections.deque(), collections.deque()]; print("ready", flush=True)
while True:
    now = time.monotonic()
    for queue, to in zip(queues, reversed(ends)):
        while queue and queue[0][0] <= now:
            try: os.write(to, queue.popleft()[1])
            except OSError: pass        # the device is not up
    due = [queue[0][0] for queue in queues if queue]
    for fd in select.select(ends, [], [], max(0, min(due) - time.monotonic()) if due else None)[0]:
        try:
            for _ in range(16): queues[ends.index(fd)].append((time.monotonic() + delay, os.read(fd, 70000)))
        except BlockingIOError: pass
"""


def program(name: str) -> str:
    found = sorted(Path("/cache/go/rootlesskit").glob(f"*/{name}"), key=lambda path: path.stat().st_mtime)
    assert found, "`tools/dev gobin rootlesskit` has not been run"
    return str(found[-1])


# ---- measurements, from the host's side

@contextlib.contextmanager
def about(name: str) -> Iterator[None]:
    """Names the setup and the measurement in the error of a connection."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error


def connect(address: str, port: int) -> socket.socket:
    s = socket.create_connection((address, port), 10)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def throughput(address: str, port: int, seconds: float) -> float:
    """Returns Gbit/s of one stream into the node."""
    data, s = bytes(1 << 20), connect(address, port)
    s.sendall(b"s")
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        s.send(data)
    s.shutdown(socket.SHUT_WR)
    s.settimeout(30)
    got = int(s.recv(100))
    return got * 8 / (time.monotonic() - started) / 1e9


def egress(address: str, port: int, seconds: float, target: str = machine.ROUTER4) -> float:
    """Returns Gbit/s of one stream out of the node."""
    s = connect(address, port)
    s.sendall(b"l")
    s.sendall(f"{target} {SINK} {seconds}".encode())
    s.settimeout(30)
    return float(s.recv(100))


def requests(connection: socket.socket, count: int) -> list[float]:
    """Returns the latencies of small requests in microseconds."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        connection.sendall(b"0123456789")
        connection.recv(100)
        times.append((time.perf_counter() - started) * 1e6)
    return times


def connections(address: str, port: int, count: int) -> list[float]:
    """Returns microseconds from connect() to the first byte, per connection."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        s = socket.create_connection((address, port), 10)
        s.recv(1)
        times.append((time.perf_counter() - started) * 1e6)
        s.close()
    return times


def cpu(pids: list[int]) -> float:
    """Returns the CPU seconds that processes have used."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def pss(pids: list[int]) -> float:
    """Returns the proportional set size in MB."""
    return sum(int(line.split()[1]) for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
               if line.startswith("Pss:")) / 1024


# ---- setups

class Way:
    """Where to connect, and the processes that forward."""

    def __init__(self, address: str, port: int, once: int, pids: list[int]) -> None:
        self.address, self.port, self.once, self.pids = address, port, once, pids
        self.rounds: list[dict[str, float]] = []
        self.requests: list[float] = []
        self.connections: list[float] = []
        self.pss = 0.0


def started(argv: list[str], **options: Any) -> subprocess.Popen[str]:
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True, **options)
    assert process.stdout and process.stdout.readline() == "ready\n", argv
    return process


def end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)


def serve(address: str, port: int) -> list[subprocess.Popen[str]]:
    return [started([sys.executable, "-c", SERVE, address, str(port)]), started([sys.executable, "-c", ONCE, address, str(port + 1)])]


@contextlib.contextmanager
def local(port: int, proxy: bool) -> Iterator[Way]:
    processes = serve("127.0.0.1", port + 2)
    try:
        if proxy:
            processes.append(started([sys.executable, "-c", SPLICE, str(port), str(port + 2)]))
        # The Python proxy starts threads for each connection, which would not measure splice().
        yield Way("127.0.0.1", port if proxy else port + 2, 0 if proxy else port + 3, [processes[-1].pid] if proxy else [])
    finally:
        for process in processes:
            end(process)


def inside(port: int) -> list[str]:
    return ["sh", "-c", f'python3 -c "$0" 0.0.0.0 {port + 1} >/dev/null & exec python3 -c "$1" 0.0.0.0 {port}', ONCE, SERVE]


def below(pid: int) -> list[int]:
    children = [int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()]
    return [pid] + [number for child in children for number in below(child)]


def named(pids: list[int], *names: str) -> list[int]:
    return [pid for pid in pids if any(name in Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for name in names)]


def is_process_1(pid: int) -> bool:
    """Whether it is the first process of a PID namespace below ours."""
    numbers = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("NSpid:")).split()[1:]
    return len(numbers) > 1 and numbers[-1] == "1"


@contextlib.contextmanager
def far_link() -> Iterator[None]:
    process = started([sys.executable, "-c", DELAY, str(FAR_MS)])
    for network, words in (("alpha", ("addr", "add", "10.98.0.2/32", "dev", "far0")), ("alpha", ("link", "set", "far0", "up")),
                           ("router", ("addr", "add", f"{FAR4}/32", "dev", "far0")), ("router", ("link", "set", "far0", "up")),
                           ("router", ("route", "add", "10.98.0.2/32", "dev", "far0")),
                           ("alpha", ("route", "add", f"{FAR4}/32", "dev", "far0", "src", "10.98.0.2"))):
        machine.run("ip", "-n", network, *words)
    try:
        yield
    finally:
        end(process)


def newer_pasta() -> dict[str, str]:
    """An environment in which pasta is that of a newer suite."""
    found = sorted(Path("/cache/programs/passt").glob("*/usr/bin"), key=lambda path: path.stat().st_mtime)
    assert found, "the bench is started by `tools/dev bench rootless`, which fetches it"
    return machine.environment(PATH=f"{found[-1]}:{os.environ['PATH']}")


@contextlib.contextmanager
def nodens(port: int, net: str, env: dict[str, str] | None = None) -> Iterator[Way]:
    command = machine.as_user(machine.PROGRAM, "run", f"--net={net}", "--publish", f"{port}:{port + 2},{port + 1}:{port + 3}", "--",
                              *inside(port + 2))
    process = started(command, env=env or machine.environment(), cwd="/")
    try:
        time.sleep(0.5)
        every = below(process.pid)
        holder = [pid for pid in every if is_process_1(pid)]
        assert len(holder) == 1, every
        yield Way(ALPHA4, port, port + 1, named(every, " forward ") + holder)
    finally:
        process.terminate()
        process.wait(20)


@contextlib.contextmanager
def rootlesskit(port: int, net: str, port_driver: str) -> Iterator[Way]:
    # With pasta every listening port inside is published under the same number.
    implicit = port_driver == "implicit"
    publish = [] if implicit else ["-p", f"0.0.0.0:{port}:{port + 2}/tcp", "-p", f"0.0.0.0:{port + 1}:{port + 3}/tcp"]
    before = pastas()
    process = started(machine.as_user(program("rootlesskit"), f"--net={net}", f"--port-driver={port_driver}", "--copy-up=/etc",
                                      "--disable-host-loopback",
                                      "--mtu=65520", *publish, *inside(port if implicit else port + 2)), env=machine.environment(), cwd="/")
    try:
        time.sleep(3 if implicit else 1)
        yield Way(ALPHA4, port, port + 1,
                  named(below(process.pid), "rootlesskit", "/proc/self/exe", "slirp4netns") + sorted(pastas() - before))
    finally:
        end(process)


def pastas() -> set[int]:
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (path / "comm").read_text().startswith("pasta"):
                found.add(int(path.name))
    return found


WAYS: dict[str, Callable[[int], Any]] = {
    "direct": lambda port: local(port, False), "bare splice": lambda port: local(port, True),
    "nodens, slirp4netns": lambda port: nodens(port, "slirp4netns"), "nodens, pasta": lambda port: nodens(port, "pasta"),
    "nodens, newer pasta": lambda port: nodens(port, "pasta", newer_pasta()),
    "nodens, lxc-user-nic": lambda port: nodens(port, "lxc-user-nic"),
    "RootlessKit, builtin": lambda port: rootlesskit(port, "slirp4netns", "builtin"),
    "RootlessKit, slirp4netns": lambda port: rootlesskit(port, "slirp4netns", "slirp4netns"),
    "RootlessKit, pasta": lambda port: rootlesskit(port, "pasta", "implicit")}

KIT = ["--copy-up=/etc", "--disable-host-loopback", "--mtu=65520"]
STARTS: dict[str, Callable[[], list[str]]] = {
    "nodens, slirp4netns": lambda: [machine.PROGRAM, "run", "--net=slirp4netns", "--"],
    "nodens, pasta": lambda: [machine.PROGRAM, "run", "--net=pasta", "--"],
    "nodens, lxc-user-nic": lambda: [machine.PROGRAM, "run", "--net=lxc-user-nic", "--"],
    "RootlessKit, builtin": lambda: [program("rootlesskit"), "--net=slirp4netns", "--port-driver=builtin", *KIT],
    "RootlessKit, slirp4netns": lambda: [program("rootlesskit"), "--net=slirp4netns", "--port-driver=slirp4netns", *KIT],
    "RootlessKit, pasta": lambda: [program("rootlesskit"), "--net=pasta", "--port-driver=implicit", *KIT]}


def first_connection(argv: list[str]) -> float:
    """Milliseconds from the launcher's exec to a TCP connection made inside.

    They are measured with the clocks of the shells around it, which start quickly.
    """
    inside = f"exec 3<>/dev/tcp/{machine.ROUTER4}/{machine.ECHO} && read -r who <&3 && echo $EPOCHREALTIME"
    done = subprocess.run(machine.as_user("bash", "-c", 'echo $EPOCHREALTIME; exec "$@"', "bash", *argv, "bash", "-c", inside),
                          env=machine.environment(), cwd="/", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}"
    began, made = (float(word) for word in done.stdout.split())
    return (made - began) * 1e3


def stream(name: str, way: Way, seconds: float) -> None:
    """One stream into the node."""
    row: dict[str, float] = {}
    before, began = cpu(way.pids), time.monotonic()
    with about(f"{name}, stream into the node"):
        row["gbit"] = throughput(way.address, way.port, seconds)
    if way.pids:
        row["cpu_per_gbit"] = (cpu(way.pids) - before) / ((time.monotonic() - began) * row["gbit"])
    way.rounds.append(row)
    print(name, {key: round(value, 3) for key, value in row.items()}, flush=True)


def measure(name: str, way: Way, seconds: float) -> None:
    """Measurements that need fewer turns: a stream out of the node, connections."""
    if name != "bare splice":       # ingress only
        with about(f"{name}, stream out of the node"):
            way.rounds[-1]["egress_gbit"] = egress(way.address, way.port, seconds)
        if "lxc" not in name:       # the router would answer on the short way
            with about(f"{name}, stream out of the node over a distance"):
                way.rounds[-1]["far_gbit"] = egress(way.address, way.port, 2 * seconds, FAR4)
    if way.once:
        with about(f"{name}, connections"):
            way.connections += connections(way.address, way.once, 200)


def exchange(ways: list[Way]) -> None:
    """Small requests on one connection of each setup, a few at a time.

    So scheduling noise affects all setups alike.
    """
    with contextlib.ExitStack() as stack:
        open_ones = [stack.enter_context(connect(way.address, way.port)) for way in ways]
        for connection in open_ones:
            connection.sendall(b"e")
        for _ in range(REQUESTS // BURST):
            for way, connection in zip(ways, open_ones, strict=False):
                with about(f"requests to port {way.port}"):
                    way.requests += requests(connection, BURST)


def quantile(values: list[float], part: float) -> float:
    return sorted(values)[int(len(values) * part)] if values else 0.0


def summary(way: Way, starts: list[float]) -> dict[str, Any]:
    found: dict[str, Any] = {"rounds": way.rounds, "start_ms": sorted(starts)}
    for name, values in (("request", way.requests), ("connection", way.connections)):
        if values:
            found |= {f"{name}_p50_us": quantile(values, 0.5), f"{name}_p99_us": quantile(values, 0.99)}
    if way.pss:
        found["pss_mb"] = way.pss
    return found


def run(given: argparse.Namespace) -> dict[str, Any]:
    names = [name for name in WAYS if name in given.ways.split("/")] if given.ways else list(WAYS)
    starts: dict[str, list[float]] = {name: [] for name in names}
    ways: dict[str, Way] = {}
    with contextlib.ExitStack() as stack:
        if any("lxc" in name for name in names):
            stack.enter_context(machine.bridge())
        stack.enter_context(machine.servers("router", f"{machine.ROUTER4}/{machine.ECHO}"))
        stack.callback(end, started(machine.within("router", sys.executable, "-c", SERVE, "0.0.0.0", str(SINK))))
        stack.enter_context(far_link())
        for _ in range(given.starts):
            for name in (name for name in names if name in STARTS):
                starts[name].append(first_connection(STARTS[name]()))
        print("starts", {name: round(quantile(times, 0.5), 1) for name, times in starts.items() if times}, flush=True)
        alpha = os.open("/run/netns/alpha", os.O_RDONLY)
        os.setns(alpha, os.CLONE_NEWNET)     # we are the client on the host
        for number, name in enumerate(names):
            ways[name] = stack.enter_context(WAYS[name](9000 + number * 10))
        for turn in range(given.rounds * STREAMS):
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                stream(name, ways[name], given.seconds / 2)
                if turn % STREAMS == 0:
                    measure(name, ways[name], given.seconds)
            if turn % STREAMS == 0:
                exchange(list(ways.values()))
        for name, way in ways.items():
            if way.pids and way.once:
                with about(f"{name}, {given.connections} connections"):
                    connections(way.address, way.once, given.connections)
                way.pss = pss(way.pids)
    return {"seconds": given.seconds, "far_ms": FAR_MS, "connections": given.connections, "burst": BURST, "streams": STREAMS,
            "stream_seconds": given.seconds / 2, "ways": {name: summary(way, starts[name]) for name, way in ways.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each stream out of the node; half of it for a stream into it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--connections", type=int, default=10000, help="number of connections before memory is measured")
    parser.add_argument("--ways", help="setups to run, separated by '/'")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    # inherited by everything that is measured: other processes on the host wait
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    machine.make_user()
    machine.make_networks()
    data = run(given)
    for name, row in data["ways"].items():
        print(name, {key: round(value, 3) for key, value in row.items() if isinstance(value, float)}, flush=True)
    if given.json:
        given.json.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
