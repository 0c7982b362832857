# SPDX-License-Identifier: Apache-2.0
"""Two nodes of a user on two hosts: their pods reach each other by VXLAN, and no other host reaches them."""
import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import overlay
import pytest
from nodenstest import machine
from nodenstest.machine import ALPHA4, ECHO, LIMIT, ROUTER4, node, rootless, wait_for
from overlay import (
    ALPHA_PODS,
    BETA4,
    BETA_PODS,
    DEVICE,
    HOSTS6,
    OTHER_PODS,
    VXLAN,
    frame,
    in_pod,
    make_pod,
    ping,
    received,
    send,
    sender,
    two_nodes,
    write_list,
)
from test_ports import ports


@dataclass
class Pair:
    alpha: machine.Node
    beta: machine.Node
    file: Path


@contextlib.contextmanager
def pair(prefix: str, *options: str, text: str, mtu: int = 1450) -> Iterator[Pair]:
    """A node on each host, with a pod."""
    file = write_list(prefix, text)
    names = [("--node-name", f"{prefix}-{host}", "--peers", str(file), *options) for host in ("alpha", "beta")]
    with node(f"{prefix}-alpha", *names[0]) as alpha, node(f"{prefix}-beta", *names[1], host="beta") as beta:
        make_pod(alpha, ALPHA_PODS, mtu)
        make_pod(beta, BETA_PODS, mtu)
        for made in (alpha, beta):
            wait_for(lambda made=made: vxlan_port(made), LIMIT, f"{made.name} has published its port")
        yield Pair(alpha, beta, file)


def vxlan_port(made: machine.Node) -> dict[str, Any]:
    return next((port for port in ports(made) if port.get("owner") == "overlay" and "error" not in port), {})


@pytest.fixture(scope="module", autouse=True)
def hosts(the_machine: None) -> None:
    overlay.make_hosts()


@pytest.fixture(scope="module")
def joined() -> Iterator[Pair]:
    with pair("join", text=two_nodes("join")) as made:
        yield made


def asks(made: machine.Node, address: str, kind: str, port: int = 5000, seconds: float = LIMIT) -> str:
    return in_pod(made, *machine.python(machine.client(address, port, kind, seconds)))


def reach_each_other(made: Pair) -> None:
    for source, network, other in ((made.alpha, ALPHA_PODS, BETA_PODS), (made.beta, BETA_PODS, ALPHA_PODS)):
        for kind in ("tcp", "udp"):
            assert asks(source, f"{other}.2", kind) == f"{network}.2", kind


# ---- what works

def test_pods_of_two_hosts_reach_each_other_with_their_own_addresses(joined: Pair) -> None:
    reach_each_other(joined)
    assert ping(joined.alpha, f"{BETA_PODS}.2") == "reply"


@pytest.mark.parametrize("options", [("--net", "slirp4netns")])
def test_the_same_with_other_networks(options: tuple[str, ...]) -> None:
    with pair("other", *options, text=two_nodes("other", port=9010)) as made:
        reach_each_other(made)


def test_the_same_between_hosts_with_ipv6() -> None:
    with pair("six", text=two_nodes("six", HOSTS6, port=9010), mtu=1430) as made:
        reach_each_other(made)
        assert "mtu 1430" in made.alpha.shell("ip", "link", "show", DEVICE).stdout


def fragments(host: str) -> int:
    """IP fragments that a host has received."""
    text = machine.run(*machine.within(host, "cat", "/proc/net/snmp")).stdout
    lines = [line.split() for line in text.splitlines() if line.startswith("Ip:")]
    return int(lines[1][lines[0].index("ReasmReqds")])


def test_a_packet_of_the_computed_mtu_needs_no_fragments_and_a_larger_one_is_refused(joined: Pair) -> None:
    assert "mtu 1450" in joined.alpha.shell("ip", "link", "show", DEVICE).stdout
    before = fragments("beta")
    assert ping(joined.alpha, f"{BETA_PODS}.2", 1450 - 28, whole=True) == "reply"
    assert fragments("beta") == before
    assert ping(joined.alpha, f"{BETA_PODS}.2", 1450 - 26, whole=True) == "Message too long"
    assert ping(joined.alpha, f"{BETA_PODS}.2", 8000) == "reply", "in fragments"
    assert fragments("beta") == before, "fragments are the pod's, not the host's"


BYTES = 4 * 1024 * 1024
SINK = f"""
import hashlib, socket
s = socket.socket(); s.bind(("0.0.0.0", 5002)); s.listen(); print("ready", flush=True)
while True:
    c, _ = s.accept(); data = b""
    while len(data) < {BYTES}: data += c.recv(65536)
    c.sendall(hashlib.sha256(data).hexdigest().encode()); c.close()
"""


def test_a_stream_of_megabytes_arrives_intact(joined: Pair) -> None:
    joined.beta.shell("sh", "-c", 'setsid nsenter --net=/run/pod python3 -c "$0" >/run/sink 2>&1 & '
                      "while ! grep -q ready /run/sink; do sleep 0.02; done", SINK)
    said = in_pod(joined.alpha, *machine.python(
        f"import socket; s = socket.create_connection(('{BETA_PODS}.2', 5002), 60); "
        f"s.sendall(bytes(range(256)) * {BYTES // 256}); print(s.recv(100).decode())"))
    assert said == hashlib.sha256(bytes(range(256)) * (BYTES // 256)).hexdigest()


def test_datagrams_of_all_sizes_arrive(joined: Pair) -> None:
    code = f"""
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
for size in (0, 1, 1400, 1422, 1423, 1500, 9000, 60000):
    for attempt in range(30):
        s.sendto(bytes(size), ("{BETA_PODS}.2", 5000))
        try: s.recv(100); break
        except TimeoutError: pass
    else: sys.exit("no reply to %d bytes" % size)
print("all")
"""
    assert in_pod(joined.alpha, *machine.python(code)) == "all"


def test_a_node_reaches_pods_of_the_other_and_pods_reach_the_world(joined: Pair) -> None:
    assert joined.alpha.python(machine.client(f"{BETA_PODS}.2", 5000)) == f"{ALPHA_PODS}.0"
    assert asks(joined.alpha, ROUTER4, "tcp", ECHO) == ALPHA4, "masqueraded"


def test_dry_run_shows_the_network_of_the_pods(joined: Pair) -> None:
    shown = rootless("up", "--dry-run", "--name", "shown", "--node-name", "join-alpha", "--peers", str(joined.file)).stdout
    assert "overlay   10.244.1.0/24 of 'join-alpha', MTU 1450, 1 peers by VXLAN at UDP port 8472 of the host" in shown


def overlay_of(made: machine.Node) -> dict[str, Any]:
    return (made.state() or {})["overlay"]


def test_status_shows_the_peers_that_are_in_force() -> None:
    with pair("seen", text=two_nodes("seen", port=9010)) as made:
        assert overlay_of(made.alpha) == {"file": str(made.file), "error": None, "pods": f"{ALPHA_PODS}.0/24", "mtu": 1450, "peers": [
            {"name": "seen-beta", "pods": f"{BETA_PODS}.0/24", "host": f"{BETA4}:9010"}]}
        shown = rootless("status", "--name", made.alpha.name).stdout
        assert f"  peers      1, of {made.file}; pods of this node {ALPHA_PODS}.0/24, MTU 1450\n" in shown
        assert f"             seen-beta: pods {BETA_PODS}.0/24, by {BETA4}:9010\n" in shown
        more = "".join(f"more-{number} 10.9.{number}.0/24 198.51.100.{number}\n" for number in range(1, 31))
        write_list("seen", two_nodes("seen", more=more, port=9010))
        wait_for(lambda: len(overlay_of(made.alpha)["peers"]) == 31, LIMIT, "the longer list is in force")
        shown = rootless("status", "--name", made.alpha.name).stdout
        assert "             and 15 more: nodens-rootless status --json\n" in shown and "more-30" not in shown
        write_list("seen", "nonsense\n")
        wait_for(lambda: overlay_of(made.alpha)["error"] is not None, LIMIT, "status shows that the file is not in force")
        assert len(overlay_of(made.alpha)["peers"]) == 31
        assert "ERROR: the file is not in force" in rootless("status", "--name", made.alpha.name).stdout
        write_list("seen", two_nodes("seen", more="mtu 1300\n", port=9010))
        assert "it has changed; unless it is applied within 2 s" in overlay_of(made.alpha)["error"]


def test_two_nodes_of_one_host_with_different_ports() -> None:
    text = (f"same-1 {ALPHA_PODS}.0/24 {ALPHA4}:9001\nsame-2 {BETA_PODS}.0/24 {ALPHA4}:9002\n"
            f"same-3 {OTHER_PODS}.0/24 {BETA4}:9003\n")
    file = write_list("same", text)
    with node("same-1", "--node-name", "same-1", "--peers", str(file)) as one, \
            node("same-2", "--node-name", "same-2", "--peers", str(file)) as two, \
            node("same-3", "--node-name", "same-3", "--peers", str(file), host="beta") as three:
        for made, network in ((one, ALPHA_PODS), (two, BETA_PODS), (three, OTHER_PODS)):
            make_pod(made, network, 1450)
        for made, other, source in ((one, OTHER_PODS, ALPHA_PODS),
                                    (two, OTHER_PODS, BETA_PODS), (three, ALPHA_PODS, OTHER_PODS), (three, BETA_PODS, OTHER_PODS)):
            assert asks(made, f"{other}.2", "tcp") == f"{source}.2"
            assert asks(made, f"{other}.2", "udp") == f"{source}.2"


# ---- changes

def test_a_changed_list_is_applied_without_a_restart_and_an_invalid_one_is_not() -> None:
    with pair("change", text=two_nodes("change", port=9010)) as made:
        reach_each_other(made)
        before = (made.alpha.state() or {})["pid"]
        write_list("change", f"change-alpha {ALPHA_PODS}.0/24 {ALPHA4}:9010\nchange-gone {OTHER_PODS}.0/24 {BETA4}\n")
        wait_for(lambda: BETA_PODS not in made.alpha.shell("ip", "route").stdout, LIMIT, "the route to the removed node is gone")
        shown = made.alpha.shell("sh", "-c", f"ip route; ip neigh show dev {DEVICE}; bridge fdb show dev {DEVICE}").stdout
        assert f"{OTHER_PODS}.0/24 via {OTHER_PODS}.0" in shown and BETA_PODS not in shown
        assert shown.count("0e:6e:0a:f4:03:00") == 2 and "0e:6e:0a:f4:02:00" not in shown
        wait_for(lambda: f"{OTHER_PODS}.0/24" in vxlan_port(made.alpha).get("filter", ""), LIMIT, "the filter follows")
        send("beta", frame(f"{BETA_PODS}.2", f"{ALPHA_PODS}.2", "removed"), port=9010)
        write_list("change", two_nodes("change", port=9010))
        wait_for(lambda: f"{BETA_PODS}.0/24" in vxlan_port(made.alpha).get("filter", ""), LIMIT, "the filter follows")
        reach_each_other(made)
        for text, words in ((f"change-alpha {ALPHA_PODS}.0/24 {ALPHA4}\nx\n", "line 2"), ("", "empty"),
                            (f"change-alpha {OTHER_PODS}.0/24 {ALPHA4}\n", "cannot change while the node runs"),
                            (two_nodes("change", more="mtu 1300\n", port=9010), "the mtu cannot change"),
                            (f"someone {OTHER_PODS}.0/24 {ALPHA4}\n", "no line for this node")):
            write_list("change", text)
            wait_for(lambda words=words: words in made.alpha.log.read_text(), LIMIT, f"the log has: {words}")
        made.file.unlink()
        wait_for(lambda: "No such file" in made.alpha.log.read_text(), LIMIT, "the log says that the list is gone")
        reach_each_other(made)
        assert "removed" not in received(made.alpha)
        assert (made.alpha.state() or {})["pid"] == before


def test_a_killed_forwarder_port_controller_and_helper_come_back_with_the_filter(joined: Pair) -> None:
    for part in ("forward", "api"):
        pid = next(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()
                   and f"{part}\0--name\0join-alpha" in (path / "cmdline").read_text(errors="replace"))
        machine.kill(pid)
        wait_for(lambda: asks(joined.beta, f"{ALPHA_PODS}.2", "udp", seconds=1) == f"{BETA_PODS}.2", LIMIT,
                 f"traffic after the kill of {part}")
        refuses(joined, "gamma", frame(f"{BETA_PODS}.2", f"{ALPHA_PODS}.2", f"after-{part}"), f"after-{part}")
    machine.kill((joined.alpha.state() or {})["helper"])
    wait_for(lambda: asks(joined.alpha, f"{BETA_PODS}.2", "udp", seconds=1) == f"{ALPHA_PODS}.2", LIMIT,
             "traffic after the kill of the helper")


# ---- refusals

@pytest.mark.parametrize(("text", "options", "words"), [
    ("refused 10.244.1.0/24\n", (), "line 1: must be: NAME POD-NETWORK HOST-ADDRESS[:PORT]"),
    ("other 10.244.1.0/24 192.0.2.1\n", (), "no line for this node, 'refused'"),
    ("refused 10.244.1.0/24 192.0.2.1\nb 10.244.0.0/16 192.0.2.2\n", (), "the networks of pods of 'refused' and 'b' overlap"),
    ("refused 10.244.1.0/24 192.0.2.1\nb 10.244.2.0/24 192.0.2.1\n", (), "two nodes of one host need different ports"),
    ("refused 10.244.1.0/24 192.0.2.1\n", ("--net", "none"), "not --net none"),
    ("refused 10.244.1.0/24 192.0.2.1\n", ("--net", "host"), "not --net host"),
    ("refused 10.244.1.0/24 192.0.2.1\n", ("--pod-cidr", "10.244.9.0/24"), "--pod-cidr 10.244.9.0/24 differs"),
    ("\0", (), "null byte"),
])
def test_up_refuses_a_list_that_it_cannot_use(text: str, options: tuple[str, ...], words: str) -> None:
    file = write_list("refused", text)
    done = rootless("up", "--foreground", "--name", "refused", "--node-name", "refused", "--peers", str(file), *options, check=False)
    assert done.returncode != 0 and words in done.stderr, done.stderr


def test_up_refuses_a_port_that_another_node_of_the_host_has(joined: Pair) -> None:
    file = write_list("taken", f"taken {OTHER_PODS}.0/24 {ALPHA4}\n")
    done = rootless("up", "--foreground", "--name", "taken", "--node-name", "taken", "--peers", str(file), check=False)
    assert done.returncode != 0
    assert ("UDP port 8472 of this host, for VXLAN, is in use: another node or program has it, and nodes of one host share its "
            "address") in done.stderr


# ---- attacks on a node with peers

def refuses(made: Pair, network: str, datagram: bytes, text: str, host: str = ALPHA4) -> None:
    """A datagram does not arrive: a later one of a peer does."""
    marker = f"marker-{text}"
    send(network, datagram, host)

    def arrives() -> bool:
        send("beta", frame(f"{BETA_PODS}.9", f"{ALPHA_PODS}.2", marker))
        return f"{BETA_PODS}.9 {marker}" in received(made.alpha)
    wait_for(arrives, LIMIT, "a frame of a peer arrives")
    assert text not in received(made.alpha).replace(marker, "")


def test_a_host_that_is_not_a_peer_reaches_no_pod(joined: Pair) -> None:
    before = vxlan_port(joined.alpha)["counters"]["refused"]
    refuses(joined, "gamma", frame(f"{BETA_PODS}.2", f"{ALPHA_PODS}.2", "stranger"), "stranger")
    refuses(joined, "alpha", frame(f"{BETA_PODS}.2", f"{ALPHA_PODS}.2", "own-host"), "own-host")
    refuses(joined, "alpha", frame(f"{BETA_PODS}.2", f"{ALPHA_PODS}.2", "loopback"), "loopback", host="127.0.0.1")
    assert vxlan_port(joined.alpha)["counters"]["refused"] >= before + 9


@pytest.mark.parametrize("source", [f"{OTHER_PODS}.2", f"{ALPHA_PODS}.7", "127.0.0.1", "10.78.0.2", "8.8.8.8", "0.0.0.0"])
def test_a_peer_cannot_send_as_pods_of_another_node(joined: Pair, source: str) -> None:
    refuses(joined, "beta", frame(source, f"{ALPHA_PODS}.2", f"forged-{source}"), f"forged-{source}")


@pytest.mark.parametrize("destination", [ALPHA4, "127.0.0.1", ROUTER4, f"{OTHER_PODS}.2", "255.255.255.255", "224.0.0.1", "10.96.0.1"])
def test_a_peer_reaches_nothing_but_pods_of_this_node(joined: Pair, destination: str) -> None:
    before = vxlan_port(joined.alpha)["counters"]["refused"]
    refuses(joined, "beta", frame(f"{BETA_PODS}.2", destination, "beyond"), "beyond")
    assert vxlan_port(joined.alpha)["counters"]["refused"] >= before + 3


def test_frames_of_another_vxlan_network_are_refused(joined: Pair) -> None:
    refuses(joined, "beta", frame(f"{BETA_PODS}.2", f"{ALPHA_PODS}.2", "flannel", vni=1), "flannel")


def test_odd_datagrams_of_a_peer_do_no_harm(joined: Pair) -> None:
    good = frame(f"{BETA_PODS}.2", f"{ALPHA_PODS}.2", "odd")
    for datagram in (b"", b"\0", good[:8], good[:41], good[:42], b"\xff" * 1400, good[:20] + b"\x86\xdd" + good[22:], good + b"x" * 3000):
        send("beta", datagram)
    code = machine.python(f"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                          f"for i in range(300): s.sendto(bytes.fromhex({good[:42].hex()!r}) + bytes(65507 - 42), ({ALPHA4!r}, {VXLAN}))")
    machine.run(*machine.within("beta", *code))
    reach_each_other(joined)


def test_a_pod_cannot_send_frames_to_its_own_node(joined: Pair) -> None:
    for target in (ALPHA4, f"{ALPHA_PODS}.1", f"{ALPHA_PODS}.0"):
        in_pod(joined.alpha, *sender(frame(f"{BETA_PODS}.2", f"{ALPHA_PODS}.2", f"inside-{target}"), target))
    refuses(joined, "gamma", b"", "inside-")


def test_a_pod_cannot_send_frames_to_the_host_of_a_peer(joined: Pair) -> None:
    before = vxlan_port(joined.beta)["counters"]
    in_pod(joined.alpha, *sender(frame(f"{ALPHA_PODS}.9", f"{BETA_PODS}.2", "smuggled", BETA_PODS), BETA4))
    assert asks(joined.alpha, f"{BETA_PODS}.2", "udp") == f"{ALPHA_PODS}.2"
    assert "smuggled" not in received(joined.beta)
    assert vxlan_port(joined.beta)["counters"]["refused"] == before["refused"], "it did not leave the node"


def test_root_of_a_node_cannot_send_as_pods_of_another_node(joined: Pair) -> None:
    joined.beta.shell(*sender(frame(f"{OTHER_PODS}.2", f"{ALPHA_PODS}.2", "by-root"), ALPHA4))
    joined.beta.shell(*sender(frame(f"{BETA_PODS}.5", f"{ALPHA_PODS}.2", "as-itself"), ALPHA4))
    wait_for(lambda: f"{BETA_PODS}.5 as-itself" in received(joined.alpha), LIMIT, "root of a node can send as its own pods")
    refuses(joined, "gamma", b"", "by-root")


RAW = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
for i in range(3): s.sendto(bytes.fromhex(%r), (%r, 0))
"""


def test_a_pod_cannot_send_as_a_pod_of_another_node(joined: Pair) -> None:
    """With raw sockets a pod chooses its source address; the node of the receiver does not accept it."""
    packet = frame(f"{OTHER_PODS}.2", f"{BETA_PODS}.2", "raw-forged")[22:]
    own = frame(f"{ALPHA_PODS}.2", f"{BETA_PODS}.2", "raw-own")[22:]
    for one in (packet, own):
        in_pod(joined.alpha, *machine.python(RAW % (one.hex(), f"{BETA_PODS}.2")))
    wait_for(lambda: "raw-own" in received(joined.beta), LIMIT, "a packet with the pod's own address arrives")
    assert "raw-forged" not in received(joined.beta)
