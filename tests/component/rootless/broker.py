# SPDX-License-Identifier: Apache-2.0
"""Pulls through the broker of a rootless node: how fast they are, and what root of the node can reach by the broker.

Kubelet and kube-proxy are scripts here; nodens-cri and its helpers are real, and so is the registry's network.
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import native
import pytest
from nodenstest import images, machine
from nodenstest.machine import ALPHA4, ALPHA6, HOME, ROUTER4, RUNTIME, SECRET, node
from test_components import STAY, component

PROGRAMS, KUBECONFIG, STORE = HOME / "broker-programs", HOME / "broker-kubeconfig", Path("/tmp/registry")
PORT = 5000
LAYER_MB = 192
OPTIONS = ("--join", str(KUBECONFIG), "--programs", str(PROGRAMS), "--no-cgroups", "--node-name", "worker", "--bind", "/nodens:ro")
READY = """python3 -c 'import os, socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])'
"""

# A registry without a password, which answers GET and HEAD of manifests and blobs from files.
REGISTRY = f"""
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *words): pass
    def do_HEAD(self): self.answer(False)
    def do_GET(self): self.answer(True)
    def answer(self, body):
        path = os.path.join({str(STORE)!r}, self.path.strip("/").replace("/", "_").replace(":", "-"))
        if self.path in ("/v2/", "/v2"): self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers(); return
        if not os.path.exists(path): self.send_response(404); self.send_header("Content-Length", "0"); self.end_headers(); return
        size = os.path.getsize(path)
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        if "manifests" in path: self.send_header("Content-Type", {images.MANIFEST!r})
        self.send_header("X-Client", self.client_address[0])
        self.end_headers()
        open({str(STORE)!r} + "/clients", "a").write(self.client_address[0] + " " + str(self.client_address[1]) + " " + self.path + chr(10))
        if body:
            self.wfile.flush()
            with open(path, "rb") as file:
                done = 0
                while done < size: done += os.sendfile(self.connection.fileno(), file.fileno(), done, size - done)
print("ready", flush=True)
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def store(path: str, data: bytes) -> None:
    (STORE / path.strip("/").replace("/", "_").replace(":", "-")).write_bytes(data)


def make_images() -> None:
    shutil.rmtree(STORE, ignore_errors=True)
    STORE.mkdir()
    block = os.urandom(1 << 20)
    layers = {"small": images.tar(images.entry("hello", b"hello\n")),
              "big": images.tar(*(images.entry(f"file-{i}", block * 16) for i in range(LAYER_MB // 16)))}
    for name, layer in layers.items():
        config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "created": name,
                             "rootfs": {"type": "layers", "diff_ids": [images.digest(layer)]}}).encode()
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": images.MANIFEST,
            "config": {"mediaType": images.CONFIG, "digest": images.digest(config), "size": len(config)},
            "layers": [{"mediaType": images.LAYER, "digest": images.digest(layer), "size": len(layer)}]}).encode()
        store(f"v2/{name}/manifests/1", manifest)
        for data in (layer, config, manifest):
            store(f"v2/{name}/blobs/{images.digest(data)}", data)
        store(f"v2/{name}/manifests/{images.digest(manifest)}", manifest)


@pytest.fixture(scope="module", autouse=True)
def registry(the_machine: None) -> Iterator[None]:
    make_images()
    shutil.rmtree(PROGRAMS, ignore_errors=True)
    PROGRAMS.mkdir()
    for name, built in native.OURS.items():
        shutil.copy(machine.BUILD / "src" / built, PROGRAMS / name)
    for name, script in {"kubelet": READY + STAY, "kube-proxy": STAY}.items():
        (PROGRAMS / name).write_text(f"#!/bin/sh\n{script}")
        (PROGRAMS / name).chmod(0o755)
    KUBECONFIG.write_text(native.kubeconfig())
    for path in (PROGRAMS, KUBECONFIG):
        os.chown(path, machine.UID, machine.UID)
    words = machine.within("router", sys.executable, "-c", REGISTRY, "0.0.0.0", str(PORT))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout and server.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            server.kill()
            shutil.rmtree(STORE)


@contextlib.contextmanager
def joined(name: str, *options: str) -> Iterator[machine.Node]:
    shutil.rmtree(HOME / f".local/share/nodens/{name}", ignore_errors=True)
    with node(name, *OPTIONS, *options) as made:
        machine.wait_for(lambda: component(made, "runtime")["ready"], what="nodens-cri is ready")
        hosts = f"/etc/nodens/certs.d/{ROUTER4}:{PORT}"
        made.shell("sh", "-ec", f"mkdir -p {hosts}; echo 'server = \"http://{ROUTER4}:{PORT}\"' >{hosts}/hosts.toml")
        yield made


@pytest.fixture(scope="module")
def made(registry: None) -> Iterator[machine.Node]:
    with joined("brokered", "--offset", "1000", "--registry-ports", f"443,{PORT},{SECRET}") as one:
        machine.wait_for(lambda: (RUNTIME / "nodens/brokered/api/broker.sock").exists(), what="the broker listens")
        yield one


def pull(one: machine.Node, name: str) -> float:
    (STORE / "clients").unlink(missing_ok=True)
    start = time.monotonic()
    one.shell(str(PROGRAMS / "nodens"), "pull", "--quiet", f"{ROUTER4}:{PORT}/{name}:1", timeout=300)
    return time.monotonic() - start


def clients() -> list[str]:
    """The requests that the registry has seen since the last pull began: address, port and path."""
    return (STORE / "clients").read_text().splitlines()


CLIENT = """
import array, errno, os, socket, struct, sys, time
def broker():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(20); s.connect(sys.argv[1]); return s
def ask(s, address, port, family=None, version=1):
    family = family or (socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.send(struct.pack("=HHHH", version, family, port, 0) + socket.inet_pton(family, address).ljust(16, b"\\0"))
    data, fds, _, _ = socket.recv_fds(s, 64, 4)
    status = struct.unpack("=i", data)[0] if data else -1
    return status, (socket.socket(fileno=fds[0]) if fds else None)
def name(status): return "ok" if status == 0 else errno.errorcode.get(status, str(status))
"""


def attack(one: machine.Node, code: str) -> list[str]:
    """What root of the node prints, with the broker's socket as an argument."""
    path = RUNTIME / f"nodens/{one.name}/api/broker.sock"
    return one.shell("python3", "-c", CLIENT + code, str(path), timeout=120).stdout.splitlines()


# ---- pulls


def test_a_pull_is_carried_by_the_broker_and_not_by_the_nodes_network(made: machine.Node) -> None:
    # The node's own network cannot reach the registry any more: what arrives came through the broker.
    made.shell("nft", "add table inet wall; add chain inet wall out { type filter hook output priority 0; }; "
               f"add rule inet wall out tcp dport {PORT} drop")
    try:
        pull(made, "small")
        assert any("/blobs/" in line and line.startswith(ALPHA4) for line in clients())
    finally:
        made.shell("nft", "delete table inet wall")


def test_without_the_broker_the_nodes_network_carries_the_pull(made: machine.Node) -> None:
    with joined("unbrokered", "--registry-ports", "none") as one:
        assert not (RUNTIME / "nodens/unbrokered/api/broker.sock").exists()
        pull(one, "small")
        assert any("/blobs/" in line for line in clients())


def test_a_broker_that_is_away_or_refuses_does_not_stop_a_pull() -> None:
    with joined("refused", "--registry-ports", "443") as one:      # not the registry's port
        pull(one, "small")
        assert any("/blobs/" in line for line in clients())
        one.shell(str(PROGRAMS / "nodens"), "rmi", f"{ROUTER4}:{PORT}/small:1")
        os.rename(RUNTIME / "nodens/refused/api/broker.sock", RUNTIME / "nodens/refused/api/away")
        pull(one, "small")


def test_a_killed_broker_comes_back(made: machine.Node) -> None:
    def pids() -> list[str]:
        return subprocess.run(["pgrep", "-f", "nodens-rootless broker --name brokered"], text=True, capture_output=True).stdout.split()
    before = pids()
    assert before
    machine.kill(int(before[0]))
    machine.wait_for(lambda: pids() and pids() != before and attack(made, f"print(name(ask(broker(), '{ROUTER4}', {PORT})[0]))") == ["ok"],
                     what="the broker is back")


def test_speed_of_pulls(made: machine.Node) -> None:
    """With the broker, without it, and the host's own network, in one run; medians of three."""
    fetch = f"""
import time, urllib.request
start = time.monotonic(); n = 0
answer = urllib.request.urlopen("http://{ROUTER4}:{PORT}/v2/big/blobs/" + __import__("sys").argv[1])
while piece := answer.read(1 << 20): n += len(piece)
print(n / (time.monotonic() - start) / 1e6)
"""
    blob = next(path.name.removeprefix("v2_big_blobs_").replace("-", ":", 1) for path in STORE.glob("v2_big_blobs_*")
                if path.stat().st_size > 1 << 20)
    through_broker = f"""
import http.client, time, sys
for _ in range(3):
    status, s = ask(broker(), {ROUTER4!r}, {PORT}); assert s, status
    s.setblocking(True); start = time.monotonic(); n = 0
    s.sendall(b"GET /v2/big/blobs/{blob} HTTP/1.0\\r\\n\\r\\n")
    while piece := s.recv(1 << 20): n += len(piece)
    print(n / (time.monotonic() - start) / 1e6)
"""
    def median(values: list[float]) -> float:
        return sorted(values)[1]
    raw = {"host": median([float(machine.user("python3", "-c", fetch, blob).stdout) for _ in range(3)]),
           "broker": median([float(line) for line in attack(made, through_broker)]),
           "pasta": median([float(made.shell("python3", "-c", fetch, blob, timeout=300).stdout) for _ in range(3)])}
    pulls = {}
    with joined("direct", "--registry-ports", "none") as direct:
        for label, one in (("broker", made), ("pasta", direct)):
            times = []
            for _ in range(3):
                times.append(pull(one, "big"))
                one.shell(str(PROGRAMS / "nodens"), "rmi", f"{ROUTER4}:{PORT}/big:1")
            pulls[label] = LAYER_MB * 1.048576 / median(times)
    print("\ndownload of one blob, MB/s: " + ", ".join(f"{name} {value:.0f}" for name, value in raw.items()))
    print("whole pulls (download, digest, unpack), MB/s: " + ", ".join(f"{name} {value:.0f}" for name, value in pulls.items()))
    assert raw["broker"] > raw["host"] / 5


# ---- attacks by root of the node


def test_root_of_the_node_does_not_reach_the_hosts_loopback(made: machine.Node) -> None:
    said = attack(made, f"""
for address in ("127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "0.0.0.0", "::", "2002:7f00:1::1"):
    print(name(ask(broker(), address, {SECRET})[0]))
""")
    assert said == ["EACCES"] * 9, said


def test_root_of_the_node_does_not_reach_the_hosts_own_addresses(made: machine.Node) -> None:
    with machine.servers("alpha", f"{ALPHA4}/{PORT}"):
        said = attack(made, f"""
for address in ({ALPHA4!r}, {ALPHA6!r}, "::ffff:{ALPHA4}", "64:ff9b::{ALPHA4}"): print(name(ask(broker(), address, {PORT})[0]))
""")
        assert said == ["EACCES"] * 4, said


def test_an_address_that_the_host_gets_later_is_refused(made: machine.Node) -> None:
    code = f"print(name(ask(broker(), '10.77.0.99', {PORT})[0]))"
    machine.run("ip", "-n", "router", "addr", "add", "10.77.0.99/32", "dev", "eth0")
    try:
        assert attack(made, code) == ["ok"]
    finally:
        machine.run("ip", "-n", "router", "addr", "del", "10.77.0.99/32", "dev", "eth0")
    machine.run("ip", "-n", "alpha", "addr", "add", "10.77.0.99/32", "dev", "eth0")
    try:
        assert attack(made, code) == ["EACCES"]
    finally:
        machine.run("ip", "-n", "alpha", "addr", "del", "10.77.0.99/32", "dev", "eth0")


def test_a_network_that_is_routed_to_the_host_itself_is_refused(made: machine.Node) -> None:
    machine.run("ip", "-n", "alpha", "route", "add", "local", "192.0.2.0/24", "dev", "lo")
    try:
        with machine.servers("alpha", f"0.0.0.0/{PORT}"):
            assert attack(made, f"print(name(ask(broker(), '192.0.2.9', {PORT})[0]))") == ["EACCES"]
    finally:
        machine.run("ip", "-n", "alpha", "route", "del", "local", "192.0.2.0/24", "dev", "lo")


def test_link_local_and_multicast_addresses_are_refused(made: machine.Node) -> None:
    said = attack(made, f"""
for address in ("169.254.169.254", "fe80::1", "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1"):
    print(name(ask(broker(), address, {PORT})[0]))
""")
    assert said == ["EACCES"] * 6, said


def test_ports_of_other_services_are_refused(made: machine.Node) -> None:
    said = attack(made, f"for port in (22, 80, 6443, {machine.ECHO}, 0, 65535): print(name(ask(broker(), {ROUTER4!r}, port)[0]))")
    assert said == ["EACCES"] * 6, said


def test_the_connection_cannot_be_turned_to_another_address(made: machine.Node) -> None:
    """A TCP socket could be, as the last lines show: that is why the broker does not give its own away."""
    said = attack(made, f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
status, s = ask(broker(), {ROUTER4!r}, {PORT})
print(s.family.name, s.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_UNIX)
unspecified = struct.pack("=H14x", socket.AF_UNSPEC)
print("dissolve", libc.connect(s.fileno(), unspecified, len(unspecified)) == 0)
target = struct.pack("=H", socket.AF_INET) + struct.pack("!H", {SECRET}) + socket.inet_aton("127.0.0.1") + bytes(8)
print("reconnect", libc.connect(s.fileno(), target, len(target)) == 0)
try: s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); print("tcp")
except OSError: print("not tcp")
""")
    assert said == ["AF_UNIX True", "dissolve False", "reconnect False", "not tcp"], said
    shown = machine.user("python3", "-c", f"""
import ctypes, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
s = socket.create_connection(({ROUTER4!r}, {PORT}))
unspecified = struct.pack("=H14x", socket.AF_UNSPEC)
assert libc.connect(s.fileno(), unspecified, len(unspecified)) == 0
s.connect(("127.0.0.1", {SECRET})); print(s.recv(100).decode().strip())
""").stdout.strip()
    assert shown == "127.0.0.1"


def test_malformed_requests_end_their_connection_only(made: machine.Node) -> None:
    said = attack(made, f"""
good = struct.pack("=HHHH", 1, socket.AF_INET, {PORT}, 0) + socket.inet_aton({ROUTER4!r}).ljust(16, b"\\0")
for bad in (b"", b"x", good[:-1], good + b"x", b"\\0" * 60000):
    s = broker()
    try: s.send(bad); print("ended" if s.recv(64) == b"" else "answered")
    except OSError: print("ended")
s = broker(); socket.send_fds(s, [good], [0, 1, 2])
try: print("ended" if s.recv(64) == b"" else "answered")
except OSError: print("ended")
for version, family in ((2, socket.AF_INET), (1, socket.AF_UNIX), (1, socket.AF_NETLINK), (1, 0)):
    s = broker(); s.send(struct.pack("=HHHH", version, family, {PORT}, 0) + bytes(16)); print(name(struct.unpack("=i", s.recv(64))[0]))
print(name(ask(broker(), {ROUTER4!r}, {PORT})[0]))
""")
    assert said == ["ended"] * 6 + ["EINVAL"] * 4 + ["ok"], said


def test_numbers_and_rates_of_connections_are_limited(made: machine.Node) -> None:
    said = attack(made, f"""
s, kept, seen = broker(), [], []
for _ in range(300):
    status, one = ask(s, {ROUTER4!r}, {PORT}); seen.append(name(status)); kept.append(one)
print(sum(one is not None for one in kept), "EAGAIN" in seen)
for one in kept:
    if one: one.close()
clients = []
for _ in range(200):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); one.setblocking(False)
    try: one.connect(sys.argv[1]); clients.append(one)
    except OSError: break
print(len(clients) < 200)
for one in clients: one.close()
time.sleep(4)
print(name(ask(broker(), {ROUTER4!r}, {PORT})[0]))
""")
    assert int(said[0].split()[0]) <= 64 and said[0].endswith("True") and said[1:] == ["True", "ok"], said


def test_a_server_that_never_answers_does_not_stop_the_broker(made: machine.Node) -> None:
    machine.run(*machine.within("router", "nft", "add table ip hole; add chain ip hole in { type filter hook input priority 0; }; "
                                "add rule ip hole in ip daddr 10.77.0.98 drop"))
    machine.run("ip", "-n", "router", "addr", "add", "10.77.0.98/32", "dev", "eth0")
    try:
        said = attack(made, f"""
slow = broker(); start = time.monotonic()
slow.send(struct.pack("=HHHH", 1, socket.AF_INET, {PORT}, 0) + socket.inet_aton("10.77.0.98").ljust(16, b"\\0"))
print(name(ask(broker(), {ROUTER4!r}, {PORT})[0]), time.monotonic() - start < 2)
print(name(struct.unpack("=i", slow.recv(64))[0]))
""")
        assert said == ["ok True", "ETIMEDOUT"], said
    finally:
        machine.run("ip", "-n", "router", "addr", "del", "10.77.0.98/32", "dev", "eth0")
        machine.run(*machine.within("router", "nft", "delete table ip hole"))


def test_a_node_without_a_network_has_no_broker() -> None:
    with node("none", *OPTIONS, "--net", "none"):
        assert not (RUNTIME / "nodens/none/api/broker.sock").exists() and not (RUNTIME / "nodens/none/broker").exists()


def test_the_broker_is_confined(made: machine.Node) -> None:
    pid = subprocess.run(["pgrep", "-f", "nodens-rootless broker --name brokered"], text=True, capture_output=True).stdout.split()[0]
    status = Path(f"/proc/{pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status and "CapEff:\t0000000000000000" in status
