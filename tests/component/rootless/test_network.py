# SPDX-License-Identifier: Apache-2.0
"""The node's network: addresses, streams out of the node that must not stall, and warnings about helpers that do."""
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from nodenstest import machine
from nodenstest.machine import HOME, ROUTER4, Node, node

SINK, MEBIBYTES = 7101, 64
COUNT = """
import socket, sys
s = socket.create_server((sys.argv[1], int(sys.argv[2]))); print("ready", flush=True)
while True:
    c, _ = s.accept(); buffer = bytearray(1 << 20); total = 0
    while got := c.recv_into(buffer): total += got
    c.sendall(str(total).encode()); c.close()
"""
# Sends a stream for as long as it takes, but not longer than a deadline. Prints how many bytes the
# server has got, or "stalled", and how often the kernel's retransmission timer has expired.
STREAM = f"""
import socket, time
def timeouts():
    names, values = [line.split() for line in open("/proc/net/netstat") if line.startswith("TcpExt:")]
    return int(values[names.index("TCPTimeouts")])
before, end = timeouts(), time.monotonic() + DEADLINE
s = socket.create_connection(({ROUTER4!r}, {SINK}), 30)
got = "stalled"
try:
    for _ in range({MEBIBYTES}):
        left = memoryview(bytes(1 << 20))
        while left:
            s.settimeout(max(0.01, end - time.monotonic())); left = left[s.send(left):]
    s.shutdown(socket.SHUT_WR); s.settimeout(max(0.01, end - time.monotonic())); got = s.recv(100).decode()
except TimeoutError:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
print(got, timeouts() - before)
"""


@contextlib.contextmanager
def counting_server() -> Iterator[None]:
    argv = machine.within("router", sys.executable, "-c", COUNT, ROUTER4, str(SINK))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            process.kill()


def stream(made: Node, seconds: float) -> tuple[str, int]:
    got, timeouts = made.python(STREAM.replace("DEADLINE", str(seconds))).split()
    return got, int(timeouts)


def test_a_stream_out_of_a_node_does_not_stall_with_slirp4netns() -> None:
    """With a helper that stalls, the sender's timer expires several times a second, and the stream takes minutes."""
    with counting_server(), node("stream", "--net", "slirp4netns") as made:
        got, timeouts = stream(made, machine.LIMIT)
        assert got == str(MEBIBYTES << 20)
        # a loaded machine may not schedule the helper for 200 ms now and then
        assert timeouts <= 3, f"{timeouts} retransmission timeouts in {MEBIBYTES} MiB"


@pytest.mark.nightly
def test_the_version_of_pasta_that_the_warning_is_about_stalls() -> None:
    """It stalls only as long as the sender is faster than pasta, which it is not on a busy host."""
    with counting_server(), node("stalls", "--net", "pasta") as made:
        state = made.state()
        assert state
        if not state["networkWarning"]:
            pytest.skip("the installed pasta is newer")
        got, timeouts = stream(made, 5)
        assert got == "stalled" and timeouts > 3, "pasta does not stall here: correct src/net/pasta.h and docs/rootless.md"


@pytest.mark.parametrize("driver", ["pasta", "slirp4netns"])
def test_the_tap_has_the_hosts_addresses(driver: str) -> None:
    prefixes = {"pasta": (24, 64), "slirp4netns": (32, 128)}[driver]
    shown = machine.node_run("ip", "-o", "addr", "show", "dev", "tap0", options=("--net", driver)).stdout
    assert f"{machine.ALPHA4}/{prefixes[0]} " in shown and f"{machine.ALPHA6}/{prefixes[1]} " in shown
    assert shown.count("scope global") == 2, "and no other"


@pytest.mark.parametrize("driver", ["pasta", "slirp4netns"])
def test_a_helper_whose_launcher_was_killed_ends_with_its_node(driver: str) -> None:
    with node("orphan", "--net", driver) as made:
        state = made.state()
        assert state and made.process
        machine.kill(made.process.pid)
        made.process.wait()
        machine.kill(state["pid"])
        machine.wait_for(lambda: not machine.alive(state["helper"]), what="the helper has exited")


STAND_IN = """#!/bin/sh
[ "$1" = --version ] && { echo "pasta VERSION"; exit; }
exec /usr/bin/pasta "$@"
"""


def with_pasta(version: str) -> dict[str, str]:
    """An environment with a pasta that prints another version."""
    directory = HOME / "pasta-of-another-version"
    directory.mkdir(exist_ok=True)
    (directory / "pasta").write_text(STAND_IN.replace("VERSION", version))
    (directory / "pasta").chmod(0o755)
    return machine.environment(PATH=f"{directory}:{os.environ['PATH']}")


WARNING = "streams out of the node stall with this version of pasta; install passt of 2026-05-07 or later"


def test_a_pasta_that_stalls_is_reported_and_a_newer_one_is_not() -> None:
    for version, warned in (("0.0~git20250503.587980c-2+deb13u1", True), ("0.0~git20260728.f8df3f1-1~bpo13+1", False)):
        made, env = Node("warned", "--net", "pasta", env=with_pasta(version)), with_pasta(version)
        made.log.unlink(missing_ok=True)
        try:
            made.start()
            status = machine.rootless("status", "--name", "warned", env=env).stdout
            up = machine.rootless("up", "--name", "warned", env=env)
            assert (f"WARNING: {WARNING}\n" in status) == warned
            assert up.stdout == "node 'warned' is running\n"
            assert up.stderr == (f"nodens-rootless: warning: {WARNING}\n" if warned else "")
            assert (WARNING in made.log.read_text()) == warned
        finally:
            made.down()


def test_slirp4netns_is_not_warned_about() -> None:
    with node("plain", "--net", "slirp4netns") as made:
        state = made.state()
        assert state and state["net"] == "slirp4netns" and state["networkWarning"] is None
        assert "WARNING" not in machine.rootless("status", "--name", "plain").stdout
