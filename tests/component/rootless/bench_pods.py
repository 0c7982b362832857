# SPDX-License-Identifier: Apache-2.0
"""Throughput of pods on a rootless node, beside those of a rootful node and of RootlessKit: `tools/dev bench rootless`.

Each node has two pods on the bridge of the CNI plugin, with the configuration that `nodens-rootless up --join` writes. They are
network namespaces: a runtime has no part in their traffic. The world is another machine, the router.
"""
import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import bench
from nodenstest import machine
from nodenstest.machine import ALPHA4, ROUTER4

SUBNET, PORT, MTU = "10.244.{}.0/24", 5001, 65520
# Of every node: two pods, made by the plugin, and their addresses.
MAKE = """
set -e
sysctl -qw net.ipv4.ip_forward=1
mkdir -p "$0"
for name in a b; do
    touch "$0/$name"; unshare --net="$0/$name" true
    CNI_COMMAND=ADD CNI_CONTAINERID=bench-$1-$name CNI_NETNS="$0/$name" CNI_IFNAME=eth0 CNI_PATH=/usr/lib/cni /usr/lib/cni/bridge <"$2" >"$0/$name.json"
    nsenter --net="$0/$name" ip link set lo up
done
"""
RULES = "table ip bench {{ chain in {{ type nat hook prerouting priority -100; tcp dport {port} dnat to {pod}:{inside}; }}; }}"


@dataclass
class PodNode:
    """How to run a command in each pod, where the world reaches a pod, and which processes forward for the node."""

    enter: Callable[[str], list[str]]       # by the pod's name: the start of a command line
    address: str                            # of the first pod
    port: int                               # of the host, that leads to the first pod
    pids: list[int] = field(default_factory=list)
    rounds: list[dict[str, float]] = field(default_factory=list)


SERVE = bench.SERVE
# One stream from where it runs to a server; prints Gbit/s.
SEND = """
import fcntl, socket, sys, time
o = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20); o.sendall(b"s"); o.settimeout(0.1)
data, sent, started = bytes(1 << 20), 0, time.monotonic()
while time.monotonic() - started < float(sys.argv[3]):
    try: sent += o.send(data)
    except TimeoutError: pass
waits = int.from_bytes(fcntl.ioctl(o.fileno(), 0x5411, bytes(4)), sys.byteorder)
print((sent - waits) * 8 / (time.monotonic() - started) / 1e9)
"""


def configuration(number: int) -> str:
    return json.dumps({"cniVersion": "1.0.0", "name": f"bench{number}", "type": "bridge", "bridge": "nodens0", "isGateway": True,
                       "mtu": MTU, "ipMasq": True, "hairpinMode": True,
                       "ipam": {"type": "host-local", "dataDir": f"/run/bench-cni-{number}", "routes": [{"dst": "0.0.0.0/0"}],
                                "ranges": [[{"subnet": SUBNET.format(number)}]]}})


def make_pods(run: Callable[..., str], number: int) -> tuple[str, str]:
    """Two pods in the node that `run` enters. Returns the directory of their namespaces and the address of the first."""
    directory = f"/run/bench-{number}"
    run("sh", "-c", f"mkdir -p {directory} && cat >{directory}/conf <<'END'\n{configuration(number)}\nEND")
    run("sh", "-c", MAKE, directory, str(number), f"{directory}/conf")
    made = json.loads(run("cat", f"{directory}/a.json"))
    return directory, made["ips"][0]["address"].split("/")[0]


def serve(enter: Callable[[str], list[str]], stack: contextlib.ExitStack) -> None:
    """A server in each pod."""
    for name in ("a", "b"):
        stack.callback(bench.end, bench.started([*enter(name), sys.executable, "-c", SERVE, "0.0.0.0", str(PORT)]))


@contextlib.contextmanager
def rootful(port: int, number: int) -> Iterator[PodNode]:
    """Root's node on alpha: the bridge is the host's, and a port of the host leads to a pod by DNAT."""
    def run(*command: str) -> str:
        return machine.run(*machine.within("alpha", *command)).stdout

    def enter(name: str) -> list[str]:
        return ["nsenter", f"--net=/run/bench-{number}/{name}"]

    with contextlib.ExitStack() as stack:
        _, address = make_pods(run, number)
        run("nft", RULES.format(port=port, pod=address, inside=PORT))
        serve(enter, stack)
        yield PodNode(enter, address, port)


@contextlib.contextmanager
def nodens(port: int, number: int, net: str, env: dict[str, str] | None = None) -> Iterator[PodNode]:
    name = f"pods{number}"
    with machine.node(name, "--net", net, env=env) as made, contextlib.ExitStack() as stack:
        directory, address = make_pods(lambda *command: made.shell(*command).stdout, number)
        state = made.state()
        assert state
        machine.rootless("ports", "--name", name, "add", f"{port}:{port}")
        made.shell("nft", RULES.format(port=port, pod=address, inside=PORT).replace("prerouting", "output"))

        def enter(pod: str) -> list[str]:
            return ["nsenter", f"--target={state['pid']}", "--net", "--mount", "nsenter", f"--net={directory}/{pod}"]

        serve(enter, stack)
        parts = json.loads((machine.RUNTIME / "nodens" / name / "parts").read_text())
        yield PodNode(enter, address, port, [state["pid"], state["helper"], parts["forward"]["pid"]])


@contextlib.contextmanager
def rootlesskit(port: int, number: int) -> Iterator[PodNode]:
    """RootlessKit as its documentation recommends it, with slirp4netns and the builtin port driver, and containerd in it."""
    found = sorted(Path("/cache/go/containerd").glob("*/containerd"), key=lambda path: path.stat().st_mtime)
    assert found, "`tools/dev gobin containerd` has not been run"
    state = Path(f"/tmp/rootlesskit-{number}")
    command = machine.as_user(bench.program("rootlesskit"), f"--state-dir={state}", "--net=slirp4netns", "--port-driver=builtin",
                              "--copy-up=/etc", "--copy-up=/run", "--copy-up=/var/lib", "--disable-host-loopback", "--mtu=65520",
                              "-p", f"0.0.0.0:{port}:{port}/tcp",
                              "sh", "-c", f"{found[-1]} >/tmp/containerd-{number}.log 2>&1 & echo ready; exec sleep 100000")
    process = bench.started(command, env=machine.environment(), cwd="/")
    try:
        time.sleep(2)
        child = int((state / "child_pid").read_text())

        def inside(*words: str) -> list[str]:
            return ["nsenter", f"--target={child}", "--user", "--preserve-credentials", "--mount", "--net", "--setuid=0", "--setgid=0",
                    *words]

        def enter(pod: str) -> list[str]:
            return ["nsenter", f"--target={child}", "--net", "--mount", "nsenter", f"--net=/run/bench-{number}/{pod}"]

        with contextlib.ExitStack() as stack:
            _, address = make_pods(lambda *words: machine.run(*inside(*words)).stdout, number)
            machine.run(*inside("nft", RULES.format(port=port, pod=address, inside=PORT).replace("prerouting", "output")))
            serve(enter, stack)
            pids = bench.named(bench.below(process.pid), "rootlesskit", "/proc/self/exe", "slirp4netns")
            yield PodNode(enter, address, port, pids)
    finally:
        bench.end(process)


NODES: dict[str, Callable[[int, int], contextlib.AbstractContextManager[PodNode]]] = {
    "rootful node": rootful,
    "nodens, pasta": lambda port, number: nodens(port, number, "pasta"),
    "nodens, newer pasta": lambda port, number: nodens(port, number, "pasta", bench.newer_pasta()),
    "nodens, slirp4netns": lambda port, number: nodens(port, number, "slirp4netns"),
    "RootlessKit and containerd": rootlesskit}


def send(command: list[str], address: str, port: int, seconds: float) -> float:
    words = [*command, sys.executable, "-c", SEND, address, str(port), str(seconds)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command} {address}: {done.stderr}"
    return float(done.stdout)


def measure(node: PodNode, seconds: float) -> dict[str, float]:
    """One stream in each direction, with the CPU time of the processes that forward."""
    second = [*node.enter("b")]
    row = {}
    for name, command, address, port in (("pods", second, node.address, PORT), ("out", second, ROUTER4, bench.SINK),
                                         ("in", machine.within("router"), ALPHA4, node.port)):
        before, began = bench.cpu(node.pids), time.monotonic()
        row[f"{name}_gbit"] = send(command, address, port, seconds)
        if node.pids and name != "pods" and row[f"{name}_gbit"] > 0:    # between pods of a node the kernel forwards
            row[f"{name}_cpu_per_gbit"] = (bench.cpu(node.pids) - before) / ((time.monotonic() - began) * row[f"{name}_gbit"])
    return row


def run(rounds: int, seconds: float) -> dict[str, list[dict[str, float]]]:
    """All nodes run at once and take turns."""
    with contextlib.ExitStack() as stack:
        stack.callback(bench.end, bench.started(machine.within("router", sys.executable, "-c", SERVE, "0.0.0.0", str(bench.SINK))))
        nodes = {name: stack.enter_context(start(9800 + number, number)) for number, (name, start) in enumerate(NODES.items())}
        names = list(nodes)
        for turn in range(rounds):
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                nodes[name].rounds.append(measure(nodes[name], seconds))
                print("pods of", name, {key: round(value, 3) for key, value in nodes[name].rounds[-1].items()}, flush=True)
        return {name: node.rounds for name, node in nodes.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each stream")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    os.setpriority(os.PRIO_PROCESS, 0, -20)     # as in bench.py
    machine.make_user()
    machine.make_networks()
    data = {"seconds": given.seconds, "mtu": MTU, "nodes": run(given.rounds, given.seconds)}
    if given.json:
        given.json.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
