# SPDX-License-Identifier: Apache-2.0
"""Kills each process that serves a node 50 times under continuous traffic.

The proof runs it, not every test run.
"""
import json
import subprocess
import time
from pathlib import Path

import pytest
from nodenstest import machine
from nodenstest.machine import ALPHA4, ROUTER4

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
    """Returns how long it takes until connections succeed again."""
    started, before = time.monotonic(), traffic(node)[0]
    machine.wait_for(lambda: traffic(node)[0] > before + 3, 15, "connections succeed again")
    return time.monotonic() - started


def start(name: str) -> machine.Node:
    node = machine.Node(name).start()
    node.shell("sh", "-c", "ip link add vx0 type vxlan id 7 dev tap0 dstport 8472; ip link set vx0 up")
    node.shell("sh", "-c", "setsid python3 -c \"$0\" >/dev/null 2>&1 &", TRAFFIC)
    return node


def check_end(node: machine.Node, holder: int, what: str, gaps: list[float]) -> None:
    state = node.state()
    assert state and state["pid"] == holder, "init is the same process"
    assert "vx0" in node.shell("ls", "/sys/class/net").stdout, "so is the overlay device"
    good, bad = traffic(node)
    print(f"\n{KILLS} kills of the {what}: {good} connections made, {bad} failed, back after {sorted(gaps)[KILLS // 2] * 1e3:.0f} ms "
          f"(median), {max(gaps) * 1e3:.0f} ms (longest)")
    node.down()


def test_a_node_survives_the_death_of_its_network_helper() -> None:
    node = start("killed-helper")
    holder, gaps = node.state()["pid"], []  # type: ignore[index]
    for _ in range(KILLS):
        helper = node.state()["helper"]  # type: ignore[index]
        if helper:
            machine.kill(helper)
        gaps.append(await_traffic(node))
    check_end(node, holder, "helper", gaps)


def test_a_node_survives_the_death_of_its_launcher() -> None:
    node = start("killed-launcher")
    holder, gaps = node.state()["pid"], []  # type: ignore[index]
    for _ in range(KILLS):
        assert node.process
        machine.kill(node.process.pid)
        node.process.wait()
        node.start()
        gaps.append(await_traffic(node))
    check_end(node, holder, "launcher", gaps)


# ---- published ports: clients outside, a server inside, and one connection that stays open

CLIENTS = """
import socket, sys, time
good = bad = 0
while True:
    try:
        s = socket.create_connection((sys.argv[1], 8190), 5); said = s.recv(100).strip(); s.close()
        assert said in (b"", sys.argv[2].encode()); good += said != b""; bad += said == b""
    except OSError:
        bad += 1
    open("/tmp/clients", "w").write(f"{good} {bad}")
    time.sleep(0.005)
"""
HELD = """
import socket, sys
s = socket.create_connection((sys.argv[1], 8191)); s.settimeout(5)
for line in sys.stdin:
    s.sendall(line.encode()); print(s.recv(100).decode().strip(), flush=True)
"""
ECHO_SERVER = """
import socket, threading
def serve(c):
    while data := c.recv(100): c.sendall(data)
s = socket.create_server(("", 5001)); print("ready", flush=True)
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""


def clients() -> tuple[int, int]:
    while True:
        words = Path("/tmp/clients").read_text().split()
        if len(words) == 2:
            return int(words[0]), int(words[1])


def part(node: machine.Node, name: str) -> int:
    return int(json.loads((machine.RUNTIME / "nodens" / node.name / "parts").read_text())[name]["pid"])


class Held:
    """A connection that stays open, and whether it still works."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(machine.within("router", "python3", "-c", HELD, ALPHA4), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def answers(self, word: str) -> bool:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip() == word


def kill_launcher(node: machine.Node) -> None:
    assert node.process
    machine.kill(node.process.pid)
    node.process.wait()
    node.start()


@pytest.mark.parametrize("who", ["forward", "api", "launcher"])
def test_ports_survive_the_death_of_the_processes_that_serve_them(who: str) -> None:
    node = machine.Node(f"killed-{who}-ports").start()
    for code, words in ((machine.SERVER, ("0.0.0.0/5000",)), (ECHO_SERVER, ())):
        node.shell("sh", "-c",
                   'setsid python3 -c "$0" "$@" >/run/log 2>&1 & while ! grep -q ready /run/log; do sleep 0.02; done; rm /run/log', code,
                   *words)
    machine.rootless("ports", "--name", node.name, "add", "8190:5000", "8191:5001")
    Path("/tmp/clients").write_text("0 0")
    state = node.state()
    assert state
    with subprocess.Popen(machine.within("router", "python3", "-c", CLIENTS, ALPHA4, ROUTER4)) as traffic_process:
        held, gaps = Held(), []
        assert held.answers("before")
        for number in range(KILLS):
            if who == "launcher":
                kill_launcher(node)
            else:
                machine.kill(part(node, who))
            started, before = time.monotonic(), clients()[0]
            machine.wait_for(lambda before=before: clients()[0] > before + 3, 15, "clients are served again")
            gaps.append(time.monotonic() - started)
            if who != "forward":
                assert held.answers(f"after {number}"), "a connection goes on"
            machine.wait_for(lambda: machine.alive(part(node, "forward")) and machine.alive(part(node, "api")), 15, "both are back")
        traffic_process.kill()
        held.process.kill()
    after = node.state()
    assert after and after["pid"] == state["pid"], "init is the same process"
    listed = json.loads(machine.rootless("ports", "--json", "--name", node.name).stdout)
    assert [port["spec"]["parentPort"] for port in listed] == [8190, 8191]
    good, bad = clients()
    name = {"forward": "forwarder", "api": "controller", "launcher": "launcher, with ports"}[who]
    print(f"\n{KILLS} kills of the {name}: {good} connections served, {bad} failed, back after {sorted(gaps)[KILLS // 2] * 1e3:.0f} ms "
          f"(median), {max(gaps) * 1e3:.0f} ms (longest)")
    assert bad <= KILLS, "at most the connection in progress"
    node.down()
