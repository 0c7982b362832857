# SPDX-License-Identifier: Apache-2.0
"""kube-proxy 1.37.1 in a node, and pod traffic between two nodes.

The proof runs it; the first test needs `tools/dev gobin kubernetes`.
"""
import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodenstest import machine
from nodenstest.machine import ALPHA4, HOME, ROUTER4, node
from test_ports import add, ask

TOKEN = "proof"
NODE_PORT, POD = 31080, "10.244.0.2"
WORK = Path("/tmp/control-plane")


def program(name: str) -> Path:
    found = sorted(Path("/cache/go/kubernetes").glob(f"*/{name}"), key=lambda path: path.stat().st_mtime)
    assert found, "`tools/dev gobin kubernetes` has not been run"
    return found[-1]


def call(method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Sends one request to the API server, from its own network."""
    code = f"""
import json, ssl, sys, urllib.request
request = urllib.request.Request("https://{ROUTER4}:6443{path}", method={method!r}, data=sys.stdin.buffer.read() or None,
    headers={{"Authorization": "Bearer {TOKEN}", "Content-Type": "application/json"}})
print(urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=5).read().decode())
"""
    done = machine.run(*machine.within("router", sys.executable, "-c", code), input=json.dumps(body) if body else "")
    return json.loads(done.stdout) if done.stdout.startswith("{") else {}


def ready() -> bool:
    try:
        return call("GET", "/api/v1/namespaces/default").get("kind") == "Namespace"
    except AssertionError:
        return False


@contextlib.contextmanager
def control_plane() -> Iterator[None]:
    """etcd and kube-apiserver on the router."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir()
    machine.run("openssl", "genrsa", "-out", str(WORK / "sa.key"), "2048")
    (WORK / "tokens").write_text(f'{TOKEN},admin,1,"system:masters"\n')
    etcd = ["etcd", "--data-dir", str(WORK / "etcd"), "--unsafe-no-fsync"]
    server = [str(program("kube-apiserver")), "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={ROUTER4}",
              "--secure-port=6443",
              f"--cert-dir={WORK}", f"--token-auth-file={WORK}/tokens", "--authorization-mode=AlwaysAllow",
              "--service-cluster-ip-range=10.96.0.0/16",
              "--service-account-issuer=https://proof", f"--service-account-key-file={WORK}/sa.key",
              f"--service-account-signing-key-file={WORK}/sa.key"]
    with (WORK / "log").open("w") as log, subprocess.Popen(machine.within("router", *etcd), stdout=log, stderr=log) as store, \
            subprocess.Popen(machine.within("router", *server), stdout=log, stderr=log) as api:
        try:
            machine.wait_for(ready, 120, "the API server answers")
            yield
        finally:
            api.kill()
            store.kill()


def make_objects(name: str) -> None:
    call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    made = call("GET", f"/api/v1/nodes/{name}")
    made["status"]["addresses"] = [{"type": "InternalIP", "address": ALPHA4}]
    call("PUT", f"/api/v1/nodes/{name}/status", made)
    both = [{"name": kind.lower(), "protocol": kind, "port": 80, "targetPort": 5000, "nodePort": NODE_PORT} for kind in ("TCP", "UDP")]
    call("POST", "/api/v1/namespaces/default/services", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "who"},
                                                       "spec": {"type": "NodePort", "externalTrafficPolicy": "Local", "ports": both}})
    call("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", {
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "who-1", "labels": {"kubernetes.io/service-name": "who"}},
        "endpoints": [{"addresses": [POD], "conditions": {"ready": True}, "nodeName": name}],
        "ports": [{"name": kind.lower(), "protocol": kind, "port": 5000} for kind in ("TCP", "UDP")]})


def start_kube_proxy(made: machine.Node) -> None:
    library = HOME / f".local/share/nodens/{made.name}/lib"
    shutil.copy(program("kube-proxy"), library / "kube-proxy")
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
              "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
              "clusters": [{"name": "c", "cluster": {"server": f"https://{ROUTER4}:6443", "insecure-skip-tls-verify": True}}],
              "users": [{"name": "u", "user": {"token": TOKEN}}]}
    (library / "kubeconfig").write_text(json.dumps(config))
    for path in library.iterdir():
        shutil.chown(path, machine.UID, machine.UID)
    made.shell("sh", "-c",
               f"setsid /var/lib/kube-proxy --kubeconfig=/var/lib/kubeconfig --proxy-mode=nftables --hostname-override={made.name} "
               f"--conntrack-max-per-core=0 "
               "--conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0 >/var/log/kube-proxy 2>&1 &")


def make_pod(made: machine.Node, address: str = POD, gateway: str = "10.244.0.1", mtu: int = 65000) -> None:
    """Creates a network namespace on a bridge, with a server that returns the client's address."""
    made.shell(
        "sh",
        "-ec",
        f"""
        ip link add br0 type bridge; ip addr add {gateway}/24 dev br0; ip link set br0 up
        touch /run/pod; unshare --net=/run/pod true; ip link add veth0 mtu {mtu} type veth peer name eth0 mtu {mtu}; ip link set veth0 master br0 up
        (setsid nsenter --net=/run/pod sleep 10000 >/dev/null 2>&1 & echo $! >/run/pod-pid); sleep 0.3; ip link set eth0 netns $(cat /run/pod-pid)
        nsenter --net=/run/pod sh -ec 'ip addr add {address}/24 dev eth0; ip link set eth0 up; ip link set lo up; ip route add default via {gateway}'
        """,
    )
    made.shell("sh", "-c",
               f'setsid nsenter --net=/run/pod python3 -c "$0" {address}/5000 >/run/server 2>&1 & while ! grep -q ready /run/server; do '
               f'sleep 0.02; done', machine.SERVER)


def test_kube_proxy_runs_inside_and_a_pod_behind_its_node_port_sees_the_client() -> None:
    with control_plane(), node("proxied") as made:
        make_objects(made.name)
        make_pod(made)
        start_kube_proxy(made)
        machine.wait_for(lambda: f". {NODE_PORT}" in made.shell("nft", "list", "ruleset").stdout, 60, "kube-proxy has written its rules")
        add(made, f"{NODE_PORT}:{NODE_PORT}", f"{NODE_PORT}:{NODE_PORT}/udp")
        for kind in ("tcp", "udp"):
            machine.wait_for(lambda kind=kind: ask(ALPHA4, NODE_PORT, kind, seconds=1) == ROUTER4, 10,
                             f"{kind}: the pod saw the client's address")
        version = made.shell("/var/lib/kube-proxy", "--version").stdout.strip()
        print(f"\n{version} in a node of an ordinary user: a pod behind a node port saw {ROUTER4}, TCP and UDP")


# ---- two hosts

BETA4 = "10.77.0.3"


@pytest.fixture(scope="module")
def beta_host() -> None:
    """Adds a second host beside alpha: the router's link becomes a bridge."""
    machine.run("ip", "netns", "add", "beta")
    machine.run("ip", "-n", "beta", "link", "set", "lo", "up")
    machine.run("ip", "link", "add", "eth0", "netns", "beta", "type", "veth", "peer", "name", "eth1", "netns", "router")
    for words in (("link", "add", "br0", "type", "bridge"), ("addr", "del", f"{ROUTER4}/24", "dev", "eth0"),
                  ("link", "set", "eth0", "master", "br0"),
                  ("link", "set", "eth1", "master", "br0"), ("link", "set", "eth1", "up"), ("link", "set", "br0", "up"),
                  ("addr", "add", f"{ROUTER4}/24", "dev", "br0")):
        machine.run("ip", "-n", "router", *words)
    machine.run("ip", "-n", "beta", "addr", "add", f"{BETA4}/24", "dev", "eth0")
    machine.run("ip", "-n", "beta", "link", "set", "eth0", "up")
    machine.run("ip", "-n", "beta", "route", "add", "default", "via", ROUTER4)


class BetaNode(machine.Node):
    """A node on the other host: the same user, with other directories."""

    def on_beta(self, argv: list[str]) -> list[str]:
        return [word.replace("/run/netns/alpha", "/run/netns/beta") for word in argv]

    def start(self) -> machine.Node:
        command = machine.as_user(machine.PROGRAM, "up", "--foreground", "--name", self.name, *self.options)
        self.process = subprocess.Popen(self.on_beta(command), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=self.env, cwd="/", start_new_session=True)
        machine.wait_for(lambda: (self.state() or {}).get("helper"), 20, "the node on beta is up")
        return self


def join(made: machine.Node, own: int, other: int, remote: str) -> None:
    """VXLAN as in flannel: one device, the other node's pods behind its address."""
    made.shell(
        "sh",
        "-ec",
        f"""
        ip link add vx0 type vxlan id 1 dev tap0 dstport 8472 nolearning; ip link set vx0 address 02:00:00:00:00:0{own}; ip addr add 10.244.{own}.0/32 dev vx0; ip link set vx0 up
        ip route add 10.244.{other}.0/24 via 10.244.{other}.0 dev vx0 onlink
        ip neigh add 10.244.{other}.0 lladdr 02:00:00:00:00:0{other} dev vx0 nud permanent
        bridge fdb add 02:00:00:00:00:0{other} dev vx0 dst {remote}
        """,
    )


@pytest.mark.parametrize("driver", ["pasta", "slirp4netns"])
@pytest.mark.usefixtures("beta_host")
def test_pods_of_two_hosts_reach_each_other_by_vxlan(driver: str) -> None:
    beta = BetaNode(f"on-beta-{driver[:4]}", "--net", driver)
    with node(f"on-alpha-{driver[:4]}", "--net", driver) as alpha:
        try:
            beta.start()
            for made, own in ((alpha, 1), (beta, 2)):
                make_pod(made, f"10.244.{own}.2", f"10.244.{own}.1", mtu=1400)
                add(made, "8472:8472/udp")
            join(alpha, 1, 2, BETA4)
            join(beta, 2, 1, ALPHA4)
            for made, other, source in ((alpha, "10.244.2.2", "10.244.1.2"), (beta, "10.244.1.2", "10.244.2.2")):
                for kind in ("tcp", "udp"):
                    said = made.shell("nsenter", "--net=/run/pod", *machine.python(machine.client(other, 5000, kind))).stdout.strip()
                    assert said == source, f"{kind} from {source} to {other}: {said}"
            print(f"\npods of two machines reach each other by VXLAN over {driver}, TCP and UDP, with their own addresses")
        finally:
            beta.down()


