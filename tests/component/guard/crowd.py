# SPDX-License-Identifier: Apache-2.0
"""Two thousand users whose access a guard must query: prints the cost as JSON.

    python3 tests/component/guard/crowd.py BUILD patient|rude        in the Debian root

The API server has no HTTP/2. The patient ones wait for their answers. The rude ones disconnect at
any moment, in the middle of a request or of the guard's own queries, while the API server forces a
relist and denies every access review: then each pod would cost a thousand queries.
"""
import contextlib
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bench

# at least so many; connections of each
PATIENT_REVIEWS, RUDE_CLIENTS, RUDE_CONNECTIONS = 200, 24, 30
RESET = b"\1\0\0\0\0\0\0\0"      # struct linger


def sockets(pid: int) -> int:
    links = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return sum(link.startswith("socket:") for link in links)


def most_sockets(pid: int, over: threading.Event) -> int:
    most = 0
    while not over.wait(0.05):
        most = max(most, sockets(pid))
    return most


def patient(build: Path, where: Path, guard: subprocess.Popen[bytes], _: subprocess.Popen[bytes]) -> dict[str, Any]:
    over, found = threading.Event(), []
    watcher = threading.Thread(target=lambda: found.append(most_sockets(guard.pid, over)))
    watcher.start()
    reviews = allowed = 0
    while reviews < PATIENT_REVIEWS:
        output = bench.load(build, "/mutate", where / "reviews", 1)
        reviews, allowed = reviews + output["reviews"], allowed + output["allowed"]
    over.set()
    watcher.join()
    return {"reviews": reviews, "allowed": allowed, "sockets": found[0]}


def ask_rudely(rng: random.Random, review: bytes) -> None:
    context = ssl._create_unverified_context()
    with context.wrap_socket(socket.create_connection(("127.0.0.1", bench.GUARD_PORT))) as connection:
        for _ in range(rng.randrange(1, 4)):
            head = b"POST /mutate HTTP/1.1\r\nHost: guard\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(review)
            connection.sendall(head + review[: rng.choice([len(review)] * 3 + [rng.randrange(len(review))])])
            connection.settimeout(rng.choice([0.001, 0.005, 0.02, 0.05, 1]))
            connection.recv(65536)
        if rng.random() < 0.3:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def rude_client(seed: int, reviews: list[bytes], count: list[int]) -> None:
    rng = random.Random(seed)
    for _ in range(RUDE_CONNECTIONS):
        count[seed] += 1
        with contextlib.suppress(OSError):
            ask_rudely(rng, rng.choice(reviews))


def rude(_: Path, where: Path, guard: subprocess.Popen[bytes], api: subprocess.Popen[bytes]) -> dict[str, Any]:
    reviews, count = [line.encode() for line in (where / "reviews").read_text().splitlines()], [0] * RUDE_CLIENTS
    clients = [threading.Thread(target=rude_client, args=(number, reviews, count)) for number in range(RUDE_CLIENTS)]
    for one in clients:
        one.start()
    for share in (0.25, 0.6):  # everything is listed again meanwhile
        while sum(count) < share * RUDE_CLIENTS * RUDE_CONNECTIONS:
            time.sleep(0.02)
        api.send_signal(signal.SIGUSR1)
    for one in clients:
        one.join()
    peak = bench.memory(guard.pid)["peak_rss"]
    return {"connections": sum(count), "peak_mb": peak, "ready_seconds": bench.wait_ready(guard, where / "log")}


@contextlib.contextmanager
def world(build: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    """A guard that is ready, with a large cluster."""
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch)
        bench.certificate(where)
        bench.write_reviews(where / "reviews", False)
        bench.write_config(where, rbac_only=False)
        guard = [str(build / "src/guard/nodens-guard"), "serve", "--config", str(where / "guard.yaml")]
        with bench.large_cluster(where, bench.all_cpus(), where / "api.log") as behind:
            with bench.running(guard, bench.all_cpus(), where / "log") as front:
                bench.wait_ready(front, where / "log")
                yield where, front, behind
        said = (where / "log").read_text()
        if front.returncode != 0 or "SUMMARY: " in said or "runtime error: " in said:
            raise SystemExit(f"the guard ended with {front.returncode}: {said[-6000:]}")


def main() -> int:
    build = Path(sys.argv[1])
    act: Callable[..., dict[str, Any]] = {"patient": patient, "rude": rude}[sys.argv[2]]
    with world(build) as (where, guard, api):
        found = act(build, where, guard, api)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
