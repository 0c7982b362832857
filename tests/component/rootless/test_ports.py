# SPDX-License-Identifier: Apache-2.0
"""Published ports: clients reach servers in the node, which see the clients' addresses."""
import ctypes
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodenstest import machine
from nodenstest.machine import ALPHA4, ALPHA6, HOME, ROUTER4, ROUTER6, RUNTIME, node, rootless

SERVER = 5000   # in the node: returns the client's address
FAMILIES = [(ALPHA4, ROUTER4), (ALPHA6, ROUTER6)]


def start_server(made: machine.Node, *addresses: str) -> None:
    words = addresses or (f"0.0.0.0/{SERVER}", f"::/{SERVER}")
    code = machine.SERVER.replace("s.bind(", "family == socket.AF_INET6 and s.setsockopt(41, 26, 1); s.bind(")
    made.shell("sh", "-c", 'setsid python3 -c "$0" "$@" >/run/server 2>&1 & while ! grep -q ready /run/server; do sleep 0.02; done', code,
               *words)


def ask(address: str, port: int, kind: str = "tcp", network: str = "router", seconds: float = machine.LIMIT) -> str:
    """Returns the reply of a server to a client in another network."""
    return machine.run(*machine.within(network, *machine.python(machine.client(address, port, kind, seconds)))).stdout.strip()


def ports(made: machine.Node) -> list[dict[str, Any]]:
    return json.loads(rootless("ports", "--json", "--name", made.name).stdout)


def active(made: machine.Node, number: int) -> int:
    """Returns the number of connections of a port."""
    return next(port["counters"]["active"] for port in ports(made) if port["id"] == number)


def add(made: machine.Node, *specs: str) -> list[int]:
    return [int(word) for word in rootless("ports", "--name", made.name, "add", *specs).stdout.split()]


@pytest.fixture(scope="module")
def served() -> Iterator[machine.Node]:
    with node("ports") as made:
        start_server(made)
        yield made


@pytest.mark.parametrize("kind", ["tcp", "udp"])
@pytest.mark.parametrize(("address", "client"), FAMILIES)
def test_a_server_in_the_node_sees_the_clients_address(served: machine.Node, kind: str, address: str, client: str) -> None:
    port = add(served, f"8100:{SERVER}/{kind}")
    try:
        for _ in range(5):
            assert ask(address, 8100, kind) == client
    finally:
        rootless("ports", "--name", served.name, "remove", str(port[0]))
    assert ask(address, 8100, kind, seconds=0.5) in ("ConnectionRefusedError", "TimeoutError")


@pytest.mark.parametrize("kind", ["tcp", "udp"])
@pytest.mark.parametrize(("address", "client"), FAMILIES)
def test_a_pod_behind_dnat_sees_the_clients_address(served: machine.Node, kind: str, address: str, client: str) -> None:
    """As with kube-proxy and hostPorts, the packet goes on to another network namespace.

    Its source address is unchanged.
    """
    served.shell(
        "sh",
        "-ec",
        """
        test -e /run/pod && exit
        ip link add br0 type bridge; ip addr add 10.244.0.1/24 dev br0; ip -6 addr add fd44::1/64 dev br0 nodad; ip link set br0 up
        touch /run/pod; unshare --net=/run/pod true; ip link add veth0 type veth peer name eth0; ip link set veth0 master br0 up
        ip link set eth0 netns /run/pod
        nsenter --net=/run/pod sh -ec 'ip addr add 10.244.0.2/24 dev eth0; ip -6 addr add fd44::2/64 dev eth0 nodad; ip link set eth0 up; ip link set lo up
            ip route add default via 10.244.0.1; ip -6 route add default via fd44::1'
        nft -f - <<'end'
        table inet services {
            chain output { type nat hook output priority dstnat; fib daddr type local meta l4proto { tcp, udp } th dport 31000 jump pod; }
            chain prerouting { type nat hook prerouting priority dstnat; fib daddr type local meta l4proto { tcp, udp } th dport 31000 jump pod; }
            chain pod { meta nfproto ipv4 meta l4proto { tcp, udp } dnat ip to 10.244.0.2:5000; meta nfproto ipv6 meta l4proto { tcp, udp } dnat ip6 to [fd44::2]:5000; }
        }
end
        """,
    )
    served.shell("sh", "-ec",
                 'test -e /run/pod-server && exit; touch /run/pod-server; setsid nsenter --net=/run/pod python3 -c "$0" 10.244.0.2/5000 '
                 'fd44::2/5000 >/run/pod-server 2>&1 & '
                 "while ! grep -q ready /run/pod-server; do sleep 0.02; done", machine.SERVER)
    port = add(served, f"8101:31000/{kind}")
    try:
        for _ in range(5):
            assert ask(address, 8101, kind) == client
    finally:
        rootless("ports", "--name", served.name, "remove", str(port[0]))


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_clients_on_the_host_itself(served: machine.Node, kind: str) -> None:
    port = add(served, f"8102:{SERVER}/{kind}")
    for address in ("127.0.0.1", "::1", ALPHA4, ALPHA6):
        said = ask(address, 8102, kind, network="alpha")
        assert said in (ALPHA4, ALPHA6), "clients on the host's loopback appear with the node's address"
    rootless("ports", "--name", served.name, "remove", str(port[0]))


def test_the_host_and_node_addresses_can_be_chosen(served: machine.Node) -> None:
    start_server(served, "127.0.0.1/5001")
    ids = add(served, "127.0.0.1:8103:5000/tcp", f"{ALPHA4}:8104:127.0.0.1:5001/tcp", "[::1]:8105:5000/tcp6")
    assert ask("127.0.0.1", 8103, network="alpha") == ALPHA4 and ask(ALPHA4, 8103) == "ConnectionRefusedError"
    assert ask(ALPHA4, 8104) == "127.0.0.1", "a server on the node's loopback sees only the node"
    assert ask("::1", 8105, network="alpha") == ALPHA6
    for number in ids:
        rootless("ports", "--name", served.name, "remove", str(number))


def test_servers_on_the_nodes_loopback_are_not_published_by_default(served: machine.Node) -> None:
    start_server(served, "127.0.0.1/5002")
    number = add(served, "8106:5002/tcp")
    assert ask(ALPHA4, 8106) in ("ConnectionResetError", "ConnectionRefusedError")
    listed = next(port for port in ports(served) if port["id"] == number[0])
    assert listed["counters"]["refused"] == 1
    rootless("ports", "--name", served.name, "remove", str(number[0]))


BULK = """
import hashlib, os, socket, sys
kind, role, address, port, size = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
if role == "serve":
    s = socket.create_server(("", port)); print("ready", flush=True)
    while True:
        c, _ = s.accept(); h = hashlib.sha256(); n = 0
        while True:
            data = c.recv(1 << 20)
            if not data: break
            h.update(data); n += len(data)
        c.sendall(f"{n} {h.hexdigest()}".encode() + b"x" * n); c.close()
else:
    s = socket.create_connection((address, port)); data = os.urandom(size); s.sendall(data); s.shutdown(socket.SHUT_WR)
    got = bytearray()
    while True:
        piece = s.recv(1 << 20)
        if not piece: break
        got += piece
    head = f"{size} {hashlib.sha256(data).hexdigest()}".encode()
    print("same" if got == head + b"x" * size else f"differs: {len(got)} {got[:80]}")
"""


@pytest.mark.parametrize("size", [0, 1, 16383, 16384, 16385, 1 << 20, 40_000_000])
def test_data_is_complete_in_both_directions_and_half_closed(served: machine.Node, size: int) -> None:
    served.shell("sh", "-c",
                 'test -e /run/bulk || { setsid python3 -c "$0" tcp serve - 5003 0 >/run/bulk 2>&1 & }; while ! grep -q ready /run/bulk; '
                 'do sleep 0.02; done', BULK)
    number = add(served, "8107:5003")[0]
    done = machine.run(*machine.within("router", "python3", "-c", BULK, "tcp", "ask", ALPHA4, "8107", str(size)))
    assert done.stdout == "same\n"
    machine.wait_for(lambda: active(served, number) == 0, what="the connection is over")
    counters = next(p for p in ports(served) if p["id"] == number)["counters"]
    assert counters["bytesIn"] == size and counters["bytesOut"] >= size and counters["connections"] == 1
    rootless("ports", "--name", served.name, "remove", str(number))


def test_each_of_many_udp_clients_gets_its_replies(served: machine.Node) -> None:
    number = add(served, f"8108:{SERVER}/udp")[0]
    code = f"""
import socket
socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(200)]
good = 0
for s in socks: s.settimeout(1); s.connect(({ALPHA4!r}, 8108)); s.send(b"x")
for s in socks:
    for _ in range({machine.LIMIT}):    # datagrams may be lost
        try: good += s.recv(100).strip() == {ROUTER4.encode()!r}; break
        except TimeoutError: s.send(b"x")
print(good)
"""
    assert machine.run(*machine.within("router", *machine.python(code))).stdout == "200\n"
    assert next(p for p in ports(served) if p["id"] == number)["counters"]["connections"] == 200
    rootless("ports", "--name", served.name, "remove", str(number))


def test_the_api_is_compatible_with_rootlesskit(served: machine.Node) -> None:
    api = RUNTIME / "nodens/ports/api/api.sock"

    def call(method: str, path: str, body: str = "") -> tuple[int, Any]:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(api))
            s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            answer = b"".join(iter(lambda: s.recv(65536), b"")).decode()
        head, content = answer.split("\r\n\r\n", 1)
        return int(head.split()[1]), json.loads(content) if content else None

    code, info = call("GET", "/v1/info")
    assert (
        code == 200
        and info["apiVersion"] == "1.1.2"
        and info["networkDriver"]["childIP"] == ALPHA4
        and "udp" in info["portDriver"]["protos"]
    )
    state = served.state()
    assert state and info["childPID"] == state["pid"]
    code, made = call("POST", "/v1/ports", json.dumps({"proto": "tcp", "parentIP": "0.0.0.0", "parentPort": 8109, "childPort": SERVER}))
    assert code == 201 and made["spec"] == {"proto": "tcp", "parentIP": "0.0.0.0", "parentPort": 8109, "childPort": SERVER}
    assert ask(ALPHA4, 8109) == ROUTER4
    code, listed = call("GET", "/v1/ports")
    assert code == 200 and made["id"] in [port["id"] for port in listed]
    code, error = call("POST", "/v1/ports", json.dumps(made["spec"]))
    assert code == 400 and "already" in error["message"]
    assert call("POST", "/v1/ports", "{")[0] == 400
    assert call("POST", "/v1/ports", '{"proto": "sctp", "parentPort": 1, "childPort": 1}')[0] == 400
    assert call("DELETE", f"/v1/ports/{made['id']}")[0] == 200
    assert call("DELETE", f"/v1/ports/{made['id']}")[0] == 400
    assert call("PUT", "/v1/ports")[0] == 405 and call("GET", "/nowhere")[0] == 404


def test_root_of_the_node_can_publish_by_the_same_api(served: machine.Node) -> None:
    code = """
import json, os, socket
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["ROOTLESSKIT_STATE_DIR"] + "/api.sock")
body = json.dumps({"proto": "tcp", "parentPort": 8110, "childPort": 5000}).encode()
s.sendall(b"POST /v1/ports HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
print(s.recv(1000).split()[1].decode())
"""
    assert served.python(code) == "201" and ask(ALPHA4, 8110) == ROUTER4


def test_a_port_in_use_is_rejected_with_an_explanation(served: machine.Node) -> None:
    with machine.servers("alpha", f"{ALPHA4}/8111"):
        done = rootless("ports", "--name", served.name, "add", "8111:80", check=False)
    assert done.returncode != 0 and "8111" in done.stderr and "in use" in done.stderr
    done = rootless("ports", "--name", served.name, "add", "80:80", check=False)
    assert done.returncode != 0 and "ip_unprivileged_port_start" in done.stderr
    for bad in ("x", "0:1", "1:2:3:4:5", "99999", "1:2/sctp", "[::1:80:80"):
        assert rootless("ports", "--name", served.name, "add", bad, check=False).returncode == 64, bad


def test_ports_persist_across_restarts_of_the_node() -> None:
    with node("kept-ports") as made:
        start_server(made)
        number = add(made, f"8120:{SERVER}", f"8121:{SERVER}/udp")
        rootless("ports", "--name", made.name, "remove", str(add(made, "8122:1")[0]))
        assert ask(ALPHA4, 8120) == ROUTER4
    with node("kept-ports") as made:
        start_server(made)
        assert [port["id"] for port in ports(made)] == number
        assert ask(ALPHA4, 8120) == ROUTER4 and ask(ALPHA4, 8121, "udp") == ROUTER4
        assert add(made, "8122:1")[0] > 3, "an ID is not reused"
    rootless("purge", "--name", "kept-ports")
    assert not (HOME / ".local/share/nodens/kept-ports").exists()


def test_run_publishes_ports_until_it_ends() -> None:
    command = machine.as_user(machine.PROGRAM, "run", "--publish", f"8130:{SERVER},8130:{SERVER}/udp", "--", "python3", "-c",
                              machine.SERVER, f"0.0.0.0/{SERVER}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=machine.environment(), cwd="/") as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        assert ask(ALPHA4, 8130) == ROUTER4 and ask(ALPHA4, 8130, "udp") == ROUTER4
        process.terminate()
        process.wait(machine.LIMIT)
    assert ask(ALPHA4, 8130) == "ConnectionRefusedError"


def test_slirp4netns_keeps_client_addresses_too() -> None:
    with node("slirp-ports", "--net", "slirp4netns") as made:
        start_server(made)
        add(made, f"8140:{SERVER}", f"8140:{SERVER}/udp")
        assert ask(ALPHA4, 8140) == ROUTER4 and ask(ALPHA4, 8140, "udp") == ROUTER4


def test_a_node_without_a_network_has_ports_on_its_loopback() -> None:
    with node("lone-ports", "--net", "none") as made:
        start_server(made)
        add(made, f"8141:{SERVER}")
        assert ask(ALPHA4, 8141) == "127.0.0.1"


def part(made: machine.Node, name: str) -> int:
    return int(json.loads((RUNTIME / "nodens" / made.name / "parts").read_text())[name]["pid"])


def test_the_forwarder_is_confined(served: machine.Node) -> None:
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{part(served, 'forward')}/status").read_text().splitlines()
                  if ":\t" in line)
    assert status["CapEff"] == status["CapPrm"] == status["CapInh"] == "0" * 16
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"


def test_no_listener_is_lost_when_descriptors_run_out() -> None:
    made = machine.Node("few-files", prefix=("prlimit", "--nofile=200:200")).start()
    try:
        start_server(made)
        assert re.search(r"Max open files +200 +200 ", Path(f"/proc/{part(made, 'forward')}/limits").read_text())
        add(made, f"8150:{SERVER}")
        code = f"""
import socket
held = [socket.socket() for _ in range(300)]
for s in held: s.settimeout(60); s.connect(({ALPHA4!r}, 8150))
for s in held[:150]: s.close()
good = 0
for s in held[150:]:
    try: good += s.recv(100).strip() == {ROUTER4.encode()!r}
    except OSError as e: print(e)
    s.close()
print(good)
"""
        assert machine.run(*machine.within("router", *machine.python(code)), timeout=5 * machine.LIMIT).stdout.split()[-1] == "150"
        assert ask(ALPHA4, 8150) == ROUTER4
    finally:
        made.down()


def test_a_port_survives_the_death_of_forwarder_and_controller() -> None:
    with node("mortal") as made:
        start_server(made)
        add(made, f"8160:{SERVER}", f"8160:{SERVER}/udp")
        for name in ("forward", "api", "forward", "api"):
            before = part(made, name)
            machine.kill(before)
            assert ask(ALPHA4, 8160) == ROUTER4, "a client waits in the listening socket's backlog"
            machine.wait_for(lambda name=name, before=before: part(made, name) != before and machine.alive(part(made, name)),
                             what=f"{name} is back")
            machine.wait_for(lambda: ask(ALPHA4, 8160, "udp", seconds=1) == ROUTER4, what="and so are datagrams")
            machine.wait_for(lambda: len(ports(made)) == 2, what="the list is the same")


def test_connections_survive_the_death_of_controller_and_launcher() -> None:
    with node("steady") as made:
        made.shell("sh", "-c", 'setsid python3 -c "$0" >/run/echo 2>&1 & while ! grep -q ready /run/echo; do sleep 0.02; done',
                   'import socket\ns = socket.create_server(("", 5000)); print("ready", flush=True); c, _ = s.accept()\nwhile True: '
                   'c.sendall(c.recv(100))')
        add(made, "127.0.0.1:8170:5000")
        code = """
import socket, sys
s = socket.create_connection(("127.0.0.1", 8170)); s.settimeout(60)
for line in sys.stdin:
    s.sendall(line.encode()); print(s.recv(100).decode().strip(), flush=True)
"""
        with subprocess.Popen(machine.within("alpha", "python3", "-c", code), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as client:
            def echo(word: str) -> str:
                assert client.stdin and client.stdout
                client.stdin.write(word + "\n")
                client.stdin.flush()
                return client.stdout.readline().strip()

            assert echo("one") == "one"
            machine.kill(part(made, "api"))
            assert echo("two") == "two"
            assert made.process
            machine.kill(made.process.pid)
            made.process.wait()
            assert echo("three") == "three"
            forwarder = part(made, "forward")
            made.start()
            assert echo("four") == "four" and part(made, "forward") == forwarder, "the same forwarder is adopted"
            client.kill()


def test_many_short_connections_leave_nothing_behind(served: machine.Node) -> None:
    number = add(served, f"8180:{SERVER}")[0]
    code = f"""
import socket
for _ in range(2000):
    s = socket.create_connection(({ALPHA4!r}, 8180)); assert s.recv(100); s.close()
"""
    forwarder = part(served, "forward")
    machine.run(*machine.within("router", *machine.python(code)), timeout=5 * machine.LIMIT)
    machine.wait_for(lambda: active(served, number) == 0, what="all are over")
    before = len(os.listdir(f"/proc/{forwarder}/fd"))
    machine.run(*machine.within("router", *machine.python(code)), timeout=5 * machine.LIMIT)
    machine.wait_for(lambda: active(served, number) == 0, what="all are over")
    machine.wait_for(lambda: abs(len(os.listdir(f"/proc/{forwarder}/fd")) - before) < 60, what="their descriptors are closed")
    assert part(served, "forward") == forwarder, "it has not died meanwhile"
    rootless("ports", "--name", served.name, "remove", str(number))


def watched(forwarder: int) -> int:
    """Returns the number of files in the forwarder's epoll."""
    number = next(path.name for path in Path(f"/proc/{forwarder}/fd").iterdir() if os.readlink(path) == "anon_inode:[eventpoll]")
    return Path(f"/proc/{forwarder}/fdinfo/{number}").read_text().count("tfd:")


def sockets_of(pid: int) -> list[int]:
    """Returns our own descriptors of the sockets of another process."""
    pidfd_getfd, process = 438, os.pidfd_open(pid)
    call = ctypes.CDLL(None, use_errno=True).syscall
    links = {int(path.name): os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()}
    taken = [call(pidfd_getfd, process, number, 0) for number, target in links.items() if target.startswith("socket:")]
    os.close(process)
    assert taken and all(fd >= 0 for fd in taken), os.strerror(ctypes.get_errno())
    return taken


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_a_closed_socket_that_another_process_holds_leaves_the_epoll(served: machine.Node, kind: str) -> None:
    """epoll must not keep freed objects.

    Init passes sockets, and may close its own descriptors later than the forwarder does.
    """
    forwarder = part(served, "forward")
    before = watched(forwarder)
    number = add(served, f"8190:{SERVER}/{kind}")[0]
    code = machine.client(ALPHA4, 8190, kind).replace("s.recv(100)", "s.recv(100, socket.MSG_PEEK)") + "print(flush=True); input()\n"
    with subprocess.Popen(machine.within("router", *machine.python(code)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as client:
        assert client.stdout and client.stdout.readline().strip() == ROUTER4
        assert watched(forwarder) > before
        others = sockets_of(forwarder)
        client.communicate("\n", timeout=machine.LIMIT)
    rootless("ports", "--name", served.name, "remove", str(number))
    machine.wait_for(lambda: watched(forwarder) == before, what="nothing of the connection is watched")
    for fd in others:
        os.close(fd)
    assert part(served, "forward") == forwarder


RUDE_SERVER = """
import random, socket, threading
listener = socket.create_server(("", 5010), backlog=100); print("ready", flush=True)
def serve(c, r):
    try:
        c.settimeout(r.choice([.001, .01, .1, 1]))
        while r.random() < .9 and (data := c.recv(65536)):
            c.sendall(data)
        if r.random() < .5: c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
    except OSError: pass
    c.close()
number = 0
while True:
    c, _ = listener.accept(); number += 1
    threading.Thread(target=serve, args=(c, random.Random(number)), daemon=True).start()
"""
RUDE_CLIENTS = """
import random, socket, sys, threading
address = sys.argv[1]
def datagram(r):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(r.choice([.001, .01, .05])); s.connect((address, 8211))
    s.send(b"x" * r.choice([0, 1, 1400, 60000])); s.recv(70000)
def stream(r):
    s = socket.create_connection((address, r.choice([8210, 8210, 8212])), timeout=1); s.settimeout(r.choice([.0005, .005, .05]))
    if r.random() < .5: s.sendall(b"y" * r.choice([1, 100, 20000, 400000]))
    if r.random() < .5: s.recv(r.choice([1, 100]))
    if r.random() < .3: s.shutdown(r.choice([socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR]))
    if r.random() < .5: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")
    s.close()
def rude(seed):
    r = random.Random(seed)
    for _ in range(150):
        try: r.choice([datagram, stream, stream, stream])(r)
        except OSError: pass
threads = [threading.Thread(target=rude, args=(seed,)) for seed in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_clients_that_disconnect_at_any_moment_do_not_affect_others(served: machine.Node) -> None:
    """Also during bulk transfers, where the kernel splices and reports a reset by a signal.

    No server listens behind 8212.
    """
    served.shell("sh", "-c", 'setsid python3 -c "$0" >/run/rude 2>&1 & while ! grep -qx ready /run/rude; do sleep 0.02; done', RUDE_SERVER)
    forwarder, controller = part(served, "forward"), part(served, "api")
    before = watched(forwarder)
    numbers = add(served, "8210:5010", f"8211:{SERVER}/udp", "8212:5999")
    machine.run(*machine.within("router", "python3", "-c", RUDE_CLIENTS, ALPHA4), timeout=5 * machine.LIMIT)

    def counters(number: int) -> dict[str, int]:
        return next(port["counters"] for port in ports(served) if port["id"] == number)

    machine.wait_for(lambda: counters(numbers[0])["active"] + counters(numbers[2])["active"] == 0, what="all connections are over")
    assert counters(numbers[0])["bytesIn"] > 1 << 20 and counters(numbers[2])["refused"] > 10
    assert ask(ALPHA4, 8211, "udp") == ROUTER4
    for number in numbers:
        rootless("ports", "--name", served.name, "remove", str(number))
    machine.wait_for(lambda: watched(forwarder) == before, what="nothing of them is watched")
    assert (part(served, "forward"), part(served, "api")) == (forwarder, controller), "none of them died"


# Runs the command in its arguments without NETLINK_NETFILTER, as on a kernel without nf_tables: socket(AF_NETLINK, ..., NETLINK_NETFILTER)
# is EPROTONOSUPPORT. Root needs no PR_SET_NO_NEW_PRIVS for the filter, so that newuidmap stays privileged.
WITHOUT_NETFILTER = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
code = [(LOAD, 0, 0, 0), (EQUAL, 0, 4, number), (LOAD, 0, 0, 16), (EQUAL, 0, 2, 16), (LOAD, 0, 0, 32), (EQUAL, 1, 0, 12),
        (RETURN, 0, 0, 0x7fff0000), (RETURN, 0, 0, 0x00050000 | 93)]
filter = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(filter)))
if ctypes.CDLL(None, use_errno=True).prctl(22, 2, program, 0, 0) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
"""
WARNING = "cannot keep client addresses"


def test_a_node_without_ports_is_not_warned_about_client_addresses(tmp_path: Path) -> None:
    said = tmp_path / "stderr"
    command = machine.as_user(machine.PROGRAM, "run", "--name", "quiet", "--", "sh", "-c", "echo ready; read line")
    with said.open("wb") as errors, subprocess.Popen(["python3", "-c", WITHOUT_NETFILTER, *command], stdin=subprocess.PIPE,
                                                     stdout=subprocess.PIPE, stderr=errors, env=machine.environment(), cwd="/") as process:
        assert process.stdin and process.stdout and process.stdout.readline() == b"ready\n", said.read_text()
        assert json.loads(rootless("ports", "--json", "--name", "quiet").stdout) == []     # the forwarder has answered
        assert WARNING not in said.read_text()
        rootless("ports", "--name", "quiet", "add", "8102:80", "8103:81")
        assert said.read_text().count(WARNING) == 1
        process.stdin.close()
        assert process.wait(machine.LIMIT) is not None
