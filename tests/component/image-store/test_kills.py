# SPDX-License-Identifier: Apache-2.0
"""The store stays consistent if nodens-cri or its helper is killed during pulls and removals.

Garbage collection is interrupted too; the next daemon checks the store.
"""
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import world
from nodenstest import runtimes

SPAN = 1.5          # seconds, of which a random part passes before the kill
ABOUT_ENGINE = "OCI runtime has a known flaw"  # the self-test's warning about Debian's crun
ALL_AGAIN = 20      # rounds after which everything is pulled once more


class Round:
    """A daemon at work: a few orders at once, what it acknowledged, and its end."""

    def __init__(self, client: Any, known: world.Known, dice: random.Random, there: set[str]) -> None:
        self.client, self.there, self.unsure, self.threads = client, set(there), set[str](), []
        for name in dice.sample(known.names, 3):
            removing = name in there and dice.random() < 0.7
            self.unsure.add(name)
            self.threads.append(threading.Thread(target=self.order, args=(name, removing)))

    def order(self, name: str, removing: bool) -> None:
        pb, stub = self.client.pb, self.client.images
        spec = pb.ImageSpec(image=name)
        try:
            if removing:
                stub.RemoveImage(pb.RemoveImageRequest(image=spec), timeout=60)
            else:
                stub.PullImage(pb.PullImageRequest(image=spec), timeout=60)
        except grpc.RpcError:
            return      # nothing was promised
        (self.there.discard if removing else self.there.add)(name)
        self.unsure.discard(name)

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(90)
            assert not thread.is_alive(), "a call does not end though the daemon has"


HELPERS = ("nodens-fetch", "nodens-unpack")


def below(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            yield int(child)
            yield from below(int(child))


def kill_a_helper(pid: int, dice: random.Random) -> bool:
    """One of the processes that unpack and fetch."""
    try:
        helpers = [child for child in below(pid) if Path(f"/proc/{child}/comm").read_text().strip() in HELPERS]
        if helpers:
            os.kill(dice.choice(helpers), signal.SIGKILL)
        return bool(helpers)
    except (FileNotFoundError, ProcessLookupError):
        return False


def no_helper_is_left(seconds: float = 10) -> None:
    """Processes of a killed daemon must not go on writing into the store. No other daemon runs here."""
    deadline = time.monotonic() + seconds
    while True:
        left = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "comm").read_text().strip() in HELPERS and ") Z " not in (process / "stat").read_text():
                    left.append(process.name)
            except OSError:
                continue
        if not left:
            return
        assert time.monotonic() < deadline, f"helpers outlive their daemon: {left}"
        time.sleep(0.02)


def test_the_store_is_consistent_after_any_kill(site: runtimes.registry_server.Site, known: world.Known, directory: Path,
                                                messages: runtimes.Messages,
                                                request: pytest.FixtureRequest) -> None:
    seed = request.config.getoption("--seed") or random.randrange(1 << 32)
    dice, wanted, kills = random.Random(seed), request.config.getoption("--kills"), {"nodens-cri": 0, "helpers": 0}
    print(f"--seed {seed}")
    runtime = runtimes.NodensCri(directory / "r", messages)
    runtimes.trust(site, runtime.certificates)
    there: set[str] = set()
    rounds = 0
    while sum(kills.values()) < wanted:
        rounds += 1
        client = runtime.start()
        assert runtime.process and runtime.store
        found = world.check(runtime.store, client, known)
        assert there <= found, f"round {rounds}: acknowledged and lost: {there - found}"
        if rounds % ALL_AGAIN == 0:
            world.wait_until_swept(runtime.store)
            for name in known.names:
                client.pull(name)
            assert world.check(runtime.store, client, known) == set(known.names)
            found = set(known.names)
        one = Round(client, known, dice, found)
        one.start()
        time.sleep(dice.random() ** 2 * SPAN)
        if dice.random() < 0.3 and kill_a_helper(runtime.process.pid, dice):
            kills["helpers"] += 1
            one.join()
            world.check(runtime.store, client, known)
            assert runtime.process.poll() is None, "the daemon ended with its helper"
        kills["nodens-cri"] += 1
        runtime.stop(signal.SIGKILL)
        one.join()
        client.close()
        no_helper_is_left()
        there = one.there - one.unsure
        gone = set(known.names) - one.there - one.unsure
        client = runtime.start()
        found = world.check(runtime.store, client, known)
        assert not found & gone, f"round {rounds}: removed and back: {found & gone}"
        client.close()
        runtime.stop()
    client = runtime.start()
    assert runtime.store
    world.wait_until_swept(runtime.store)
    for name in known.names:
        client.pull(name)
    assert world.check(runtime.store, client, known) == set(known.names)
    for name in known.names:
        client.remove_image(name)
    world.wait_until_swept(runtime.store)
    assert not list((runtime.store / "layers").iterdir()) and not list((runtime.store / "blobs/sha256").iterdir()), "garbage is left"
    assert runtime.stop() == 0
    warnings = [line for line in runtime.log.read_text().splitlines() if line.startswith(("warning", "error")) and ABOUT_ENGINE not in line]
    assert not warnings, warnings[:5]
    print(f"{kills['nodens-cri']} kills of nodens-cri, {kills['helpers']} of its helpers, in {rounds} rounds")
