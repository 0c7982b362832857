# SPDX-License-Identifier: Apache-2.0
"""Traffic to the ports of a node while parts of it are away, and an API server that does not answer."""
import contextlib
import json
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from alice import HOST, Alice

# Asks each port over and over, as another machine. Six clients take turns: while the port is away, requests hang for up to 1.5 s, and a
# request begins every quarter of a second all the same, so that the port is found soon after it is back.
# For each line on its input, it prints what it found since the start.
CLIENTS = """
import json, socket, sys, threading, time
found = {}
def ask(port):
    mine = found[port]
    while True:
        try:
            s = socket.create_connection((sys.argv[1], port), 0.5); s.settimeout(1)
            s.sendall(b"GET /hostname HTTP/1.0\\r\\n\\r\\n")
            said = b""
            while data := s.recv(1000): said += data
            s.close()
            if not said.endswith(b"web"): raise OSError(said)
            now = time.monotonic(); mine["gap"] = max(mine["gap"], now - mine["last"]); mine["last"] = now; mine["good"] += 1
        except OSError:
            mine["bad"] += 1
        time.sleep(0.3)
for word in sys.argv[2:]:
    found[int(word)] = {"good": 0, "bad": 0, "gap": 0.0, "last": time.monotonic()}
    for _ in range(6): threading.Thread(target=ask, args=(int(word),), daemon=True).start(); time.sleep(0.25)
for line in sys.stdin:
    now = time.monotonic()
    print(json.dumps({port: {**one, "gap": max(one["gap"], now - one["last"])} for port, one in found.items()}), flush=True)
"""


@dataclass(frozen=True)
class Found:
    """What the clients of one port saw."""

    good: int
    bad: int
    gap: float      # the longest time without an answer, in seconds


class Traffic:
    """Clients of some ports, from another machine."""

    def __init__(self, alice: Alice, ports: Iterable[int]) -> None:
        command = alice.cluster.command(["python3", "-c", CLIENTS, HOST, *map(str, ports)])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Traffic":
        self.settle()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def report(self) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def found(self, port: int) -> Found:
        one = self.report()[str(port)]
        return Found(one["good"], one["bad"], one["gap"])

    def settle(self) -> None:
        """Waits for three answers of each port."""
        before, deadline = {port: one["good"] for port, one in self.report().items()}, time.monotonic() + 60
        while time.monotonic() < deadline:
            now = self.report()
            if now and all(one["good"] >= before.get(port, 0) + 3 for port, one in now.items()):
                return
            time.sleep(0.1)
        raise AssertionError(f"no answers: {self.report()}")


@contextlib.contextmanager
def away(alice: Alice) -> Iterator[None]:
    """Stops the API server: connections to it hang, which is worse than a refusal."""
    found = alice.cluster.run(["pidof", "kube-apiserver"])
    assert found.returncode == 0, "the API server is a process of the cluster"
    pid = found.stdout.strip()
    alice.cluster.run(["kill", "-STOP", pid])
    try:
        yield
    finally:
        alice.cluster.run(["kill", "-CONT", pid])
