# SPDX-License-Identifier: Apache-2.0
"""50 kills of the network helper and 50 of the launcher, while a client inside never stops asking. Run by the proof, not by every test run."""
import time

import machine
from machine import ALPHA4, ROUTER4

KILLS = 50
TRAFFIC = f"""
import socket, sys, time
good = bad = 0
while True:
    try:
        s = socket.create_connection(({ROUTER4!r}, {machine.ECHO}), 0.5); assert s.recv(100).strip() == {ALPHA4.encode()!r}; s.close(); good += 1
    except OSError:
        bad += 1
    open("/run/traffic", "w").write(f"{{good}} {{bad}}")
    time.sleep(0.005)
"""


def traffic(node: machine.Node) -> tuple[int, int]:
    while True:
        words = node.shell("cat", "/run/traffic", check=False).stdout.split()
        if len(words) == 2:
            return int(words[0]), int(words[1])


def await_traffic(node: machine.Node) -> float:
    """How long it takes until connections are made again."""
    started, before = time.monotonic(), traffic(node)[0]
    machine.wait_for(lambda: traffic(node)[0] > before + 3, 15, "connections are made again")
    return time.monotonic() - started


def start(name: str) -> machine.Node:
    node = machine.Node(name).start()
    node.shell("sh", "-c", "ip link add vx0 type vxlan id 7 dev tap0 dstport 8472; ip link set vx0 up")
    node.shell("sh", "-c", "setsid python3 -c \"$0\" >/dev/null 2>&1 &", TRAFFIC)
    return node


def check_end(node: machine.Node, holder: int, what: str, gaps: list[float]) -> None:
    state = node.state()
    assert state and state["pid"] == holder, "the holder is the same"
    assert "vx0" in node.shell("ls", "/sys/class/net").stdout, "so is the overlay device"
    good, bad = traffic(node)
    print(f"\n{KILLS} kills of the {what}: {good} connections made, {bad} failed, back after {sorted(gaps)[KILLS // 2] * 1e3:.0f} ms (median), {max(gaps) * 1e3:.0f} ms (longest)")
    node.down()


def test_the_helper_is_killed_and_the_node_lives_on() -> None:
    node = start("killed-helper")
    holder, gaps = node.state()["pid"], []  # type: ignore[index]
    for _ in range(KILLS):
        helper = node.state()["helper"]  # type: ignore[index]
        if helper:
            machine.kill(helper)
        gaps.append(await_traffic(node))
    check_end(node, holder, "helper", gaps)


def test_the_launcher_is_killed_and_the_node_lives_on() -> None:
    node = start("killed-launcher")
    holder, gaps = node.state()["pid"], []  # type: ignore[index]
    for _ in range(KILLS):
        assert node.process
        machine.kill(node.process.pid)
        node.process.wait()
        node.start()
        gaps.append(await_traffic(node))
    check_end(node, holder, "launcher", gaps)
