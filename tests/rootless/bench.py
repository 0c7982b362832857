# SPDX-License-Identifier: Apache-2.0
"""nodens-rootless beside RootlessKit 3.1: ports and starts, in one run. `python3 tests/rootless/bench.py` in the room prints a table and writes JSON.

Every way carries the same bytes between the same two programs: a client on the machine and a server in the node (for "direct" and "splice" beside it). Figures
are of one run on one machine; what means something is a row's ratio to another's.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import machine  # noqa: E402
from machine import ALPHA4  # noqa: E402

PORT, SERVER = 9000, 5000
SERVE = """
import os, socket, sys
s = socket.socket(); s.setsockopt(1, 2, 1); s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(4096); print("ready", flush=True)
while True:
    c, _ = s.accept()
    if os.fork() == 0:
        c.setsockopt(6, 1, 1); word = c.recv(1)
        buffer = bytearray(1 << 20)
        if word == b"s":                     # sink: counts until the end, then says how much
            n = 0
            while got := c.recv_into(buffer): n += got
            c.sendall(str(n).encode())
        while word == b"e":                  # echo of small requests
            data = c.recv(100)
            if not data: break
            c.sendall(data)
        os._exit(0)
    c.close()
    try:
        while os.waitpid(-1, os.WNOHANG)[0]: pass
    except ChildProcessError: pass
"""
# The short connections of the last test: a server that does not fork for each.
ONCE = """
import socket, sys
s = socket.socket(); s.setsockopt(1, 2, 1); s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(4096); print("ready", flush=True)
while True:
    c, _ = s.accept(); c.sendall(b"x"); c.close()
"""
SPLICE = """
import os, socket, sys, threading
def carry(a, b):
    r, w = os.pipe(); import fcntl; fcntl.fcntl(w, 1031, 1 << 20)
    while True:
        n = os.splice(a.fileno(), w, 1 << 20)
        if n == 0: break
        while n: n -= os.splice(r, b.fileno(), n)
    try: b.shutdown(1)
    except OSError: pass
    os.close(r); os.close(w)
l = socket.create_server(("", 9000), backlog=4096); print("ready", flush=True)
while True:
    a, _ = l.accept(); b = socket.create_connection(("127.0.0.1", 5000))
    for s in (a, b): s.setsockopt(6, 1, 1)
    for x, y in ((a, b), (b, a)): threading.Thread(target=carry, args=(x, y), daemon=True).start()
"""


def program(name: str) -> str:
    found = sorted(Path("/cache/go/rootlesskit").glob(f"*/{name}"), key=lambda path: path.stat().st_mtime)
    assert found, "`tools/dev gobin rootlesskit` has not been run"
    return str(found[-1])


# ---- measures, from the machine's side

def connect(address: str, port: int) -> socket.socket:
    s = socket.create_connection((address, port), 10)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def throughput(address: str, port: int, seconds: float) -> float:
    """Gbit/s of one stream into the node."""
    data, sent, s = bytes(1 << 20), 0, connect(address, port)
    s.sendall(b"s")
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        sent += s.send(data)
    s.shutdown(socket.SHUT_WR)
    s.settimeout(30)
    got = int(s.recv(100))
    return got * 8 / (time.monotonic() - started) / 1e9


def requests(address: str, port: int, count: int) -> tuple[float, float]:
    """Median and 99th percentile of a small request on one connection, in microseconds."""
    s, times = connect(address, port), []
    s.sendall(b"e")
    for _ in range(count):
        started = time.perf_counter()
        s.sendall(b"0123456789")
        s.recv(100)
        times.append(time.perf_counter() - started)
    times.sort()
    return times[count // 2] * 1e6, times[count * 99 // 100] * 1e6


def connections(address: str, port: int, count: int) -> tuple[float, float]:
    """Median and 99th percentile of a connection, from connect() to its first byte, in microseconds."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        s = socket.create_connection((address, port), 10)
        s.recv(1)
        times.append(time.perf_counter() - started)
        s.close()
    times.sort()
    return times[count // 2] * 1e6, times[count * 99 // 100] * 1e6


def cpu(pids: list[int]) -> float:
    """Seconds of CPU that processes have used."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def pss(pids: list[int]) -> float:
    """MB."""
    return sum(int(line.split()[1]) for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line.startswith("Pss:")) / 1024


# ---- ways into the node

class Way:
    """Where to connect, and who carries."""

    def __init__(self, address: str, port: int, once: int, pids: list[int]) -> None:
        self.address, self.port, self.once, self.pids = address, port, once, pids


def started(argv: list[str], **options: Any) -> subprocess.Popen[str]:
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True, **options)
    assert process.stdout and process.stdout.readline() == "ready\n", argv
    return process


@contextlib.contextmanager
def local(proxy: bool) -> Iterator[Way]:
    processes = [started([sys.executable, "-c", SERVE, "127.0.0.1", str(SERVER)]), started([sys.executable, "-c", ONCE, "127.0.0.1", str(SERVER + 1)])]
    try:
        if proxy:
            processes.append(started([sys.executable, "-c", SPLICE]))
        yield Way("127.0.0.1", PORT if proxy else SERVER, 0 if proxy else SERVER + 1, [processes[-1].pid] if proxy else [])
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


INSIDE = f'python3 -c "$0" 0.0.0.0 {SERVER + 1} >/dev/null & exec python3 -c "$1" 0.0.0.0 {SERVER}'


def below(pid: int) -> list[int]:
    children = [int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()]
    return [pid] + [number for child in children for number in below(child)]


def named(pids: list[int], *names: str) -> list[int]:
    return [pid for pid in pids if any(name in Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") for name in names)]


@contextlib.contextmanager
def nodens() -> Iterator[Way]:
    command = machine.as_user(machine.PROGRAM, "run", "--publish", f"{PORT}:{SERVER},{PORT + 1}:{SERVER + 1}", "--", "sh", "-c", INSIDE, ONCE, SERVE)
    process = started(command, env=machine.environment(), cwd="/")
    try:
        time.sleep(0.5)
        every = below(process.pid)
        holder = [pid for pid in every if Path(f"/proc/{pid}/comm").read_text().strip() == "nodens-holder"]
        yield Way(ALPHA4, PORT, PORT + 1, named(every, " forward ") + holder)
    finally:
        process.terminate()
        process.wait(20)


@contextlib.contextmanager
def rootlesskit(net: str, port_driver: str) -> Iterator[Way]:
    command = machine.as_user(program("rootlesskit"), f"--net={net}", f"--port-driver={port_driver}", "--copy-up=/etc", "--disable-host-loopback", "--mtu=65520",
                              "-p", f"0.0.0.0:{PORT}:{SERVER}/tcp", "-p", f"0.0.0.0:{PORT + 1}:{SERVER + 1}/tcp", "sh", "-c", INSIDE, ONCE, SERVE)
    process = started(command, env=machine.environment(), cwd="/")
    try:
        time.sleep(1)
        yield Way(ALPHA4, PORT, PORT + 1, named(below(process.pid), "rootlesskit", "/proc/self/exe", "slirp4netns") + pasta_of(net))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)
        time.sleep(0.5)


def pasta_of(net: str) -> list[int]:
    if net != "pasta":
        return []
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if (path / "comm").read_text().startswith("pasta")]


def first_connection(argv: list[str], rounds: int) -> float:
    """Median milliseconds from exec to a TCP connection made inside."""
    code = f"import socket; socket.create_connection(({machine.ROUTER4!r}, {machine.ECHO}), 10).recv(10)"
    times = []
    for _ in range(rounds):
        began = time.monotonic()
        subprocess.run(machine.as_user(*argv, "python3", "-S", "-c", code), env=machine.environment(), cwd="/", check=True, capture_output=True)
        times.append(time.monotonic() - began)
    return sorted(times)[rounds // 2] * 1e3


WAYS = {"direct": lambda: local(False), "bare splice": lambda: local(True), "nodens": nodens,
        "RootlessKit builtin": lambda: rootlesskit("slirp4netns", "builtin"), "RootlessKit slirp4netns": lambda: rootlesskit("slirp4netns", "slirp4netns"),
        "RootlessKit pasta (implicit)": lambda: rootlesskit("pasta", "implicit")}


def measure(way: Way, seconds: float, many: int) -> dict[str, float]:
    row: dict[str, float] = {}
    before, began = cpu(way.pids), time.monotonic()
    row["gbit"] = throughput(way.address, way.port, seconds)
    if way.pids:
        row["cpu_per_gbit"] = (cpu(way.pids) - before) / ((time.monotonic() - began) * row["gbit"])
    row["request_p50_us"], row["request_p99_us"] = requests(way.address, way.port, 5000)
    if way.once == 0:   # the proxy in Python starts threads, which says nothing about splice
        return row
    row["connection_p50_us"], row["connection_p99_us"] = connections(way.address, way.once, 1000)
    if way.pids:
        connections(way.address, way.once, many)
        row["pss_mb"] = pss(way.pids)
    return row


def on_alpha(name: str, seconds: float, many: int) -> dict[str, float]:
    with WAYS[name]() as way:
        return measure(way, seconds, many)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    machine.make_user()
    machine.make_networks()
    rows: dict[str, dict[str, float]] = {}
    alpha = os.open("/run/netns/alpha", os.O_RDONLY)
    with machine.servers("router", f"{machine.ROUTER4}/{machine.ECHO}"):
        rows["nodens"] = {"start_ms": first_connection([machine.PROGRAM, "run", "--"], given.rounds)}
        rows["RootlessKit builtin"] = {"start_ms": first_connection([program("rootlesskit"), "--net=slirp4netns", "--port-driver=builtin", "--copy-up=/etc", "--disable-host-loopback"], given.rounds)}
        os.setns(alpha, os.CLONE_NEWNET)     # we are the client on the machine
        for name in WAYS:
            try:
                rows.setdefault(name, {}).update(on_alpha(name, given.seconds, given.connections))
            except (AssertionError, OSError, subprocess.SubprocessError, ValueError) as error:
                print(f"{name}: {error!r}", file=sys.stderr)
            print(name, {key: round(value, 3) for key, value in rows.get(name, {}).items()}, flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
