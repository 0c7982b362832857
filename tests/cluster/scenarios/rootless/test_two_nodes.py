# SPDX-License-Identifier: Apache-2.0
"""Two rootless nodes on two hosts, with a list of each other: `tools/dev test rootless-nodes`; or with flannel."""
import json
import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from alice import READY, Alice
from nodensdev import cluster
from nodensdev.cluster import addresses, rootless
from nodensdev.cluster.bringup import checked_kubectl
from nodensdev.images import flannel
from nodensdev.project import TOP
from nodenstest.people import AGNHOST, FOREVER, container, pod_spec
from nodenstest.scenario import running_cluster

pytestmark = [pytest.mark.rootless, pytest.mark.pair]
NODES = (1, 2)
LABELS = {"app": "web"}

# Asks a UDP server, as another machine does: its answer, or nothing.
ASK_UDP = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2)
for attempt in range(10):
    s.sendto(b"clientip", (sys.argv[1], int(sys.argv[2])))
    try: print(s.recv(200).decode()); break
    except (TimeoutError, ConnectionRefusedError): pass
"""


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest) -> Iterator[cluster.Cluster]:
    kernel = request.config.getoption("--kernel")
    options = cluster.Options(name=f"pair-{os.getpid()}", runtime=request.config.getoption("--runtime"), nodes=len(NODES),
                              kernel="uml-nft" if kernel == "uml" else kernel, rootless=True, timeout=1500,
                              flannel=request.config.getoption("--flannel"),
                              images=("e2e", "flannel") if request.config.getoption("--flannel") else ("e2e",))
    with running_cluster(request.config.getoption("--cluster"), options, TOP / "build/rootless-nodes" / options.runtime) as made:
        if options.flannel:
            start_flannel(made)
        yield made


def start_flannel(one: cluster.Cluster) -> None:
    """Docs/rootless-nodes.md, with a control plane that does not assign networks to Nodes by itself."""
    for number in NODES:
        network = json.dumps({"spec": {"podCIDR": rootless.POD_NETWORK.format(number), "podCIDRs": [rootless.POD_NETWORK.format(number)]}})
        checked_kubectl(one, "patch", "node", addresses.node_name(number), "-p", network)
    manifest = (TOP / "docs/examples/flannel.yaml").read_text().replace("registry.example/flannel:1", flannel.IMAGE)
    checked_kubectl(one, "apply", "-f", "-", stdin=manifest)
    checked_kubectl(one, "rollout", "status", "daemonset/flannel", "--namespace=kube-flannel", "--timeout=300s")


@pytest.fixture(scope="module")
def alice(running: cluster.Cluster) -> Iterator[Alice]:
    """A server on each node, and a client on each."""
    one = Alice(running, f"pair-{uuid.uuid4().hex[:8]}")
    one.kubectl("create", "namespace", one.namespace)
    for number in NODES:
        where = {"kubernetes.io/hostname": addresses.node_name(number)}
        server = container(["/agnhost", "netexec", "--http-port=8080", "--udp-port=8081"], "web", AGNHOST, readinessProbe=READY)
        one.apply("Pod", f"web{number}", metadata={"name": f"web{number}", "labels": LABELS}, spec=pod_spec(server, nodeSelector=where))
        one.pod(f"client{number}", container(FOREVER), nodeSelector=where)
    for number in NODES:
        one.ready(f"web{number}", 300)
        one.ready(f"client{number}", 300)
    yield one
    one.kubectl("delete", "namespace", one.namespace, "--wait=false")


def address(alice: Alice, name: str) -> str:
    return alice.status(name)["podIP"]


def asks(alice: Alice, client: str, url: str) -> str:
    return alice.kubectl("exec", client, "--", "wget", "-q", "-T", "20", "-O", "-", url)


def service(alice: Alice, name: str, **spec: Any) -> dict[str, Any]:
    alice.apply("Service", name, spec={"selector": LABELS, **spec})
    return alice.get("service", name)["spec"]


def test_pods_of_two_rootless_nodes_reach_each_other_by_their_addresses(alice: Alice) -> None:
    for here, there in ((1, 2), (2, 1)):
        said = asks(alice, f"client{here}", f"http://{address(alice, f'web{there}')}:8080/clientip")
        assert said.rsplit(":", 1)[0] == address(alice, f"client{here}"), "the pod's own address"
    assert {address(alice, f"web{number}").split(".")[2] for number in NODES} == {"1", "2"}


def test_pods_have_the_mtu_of_the_hosts_link_without_the_headers(alice: Alice) -> None:
    link = int(alice.on_host("cat $(ls -d /sys/class/net/*/ | grep -v /lo/ | head -n 1)mtu").strip())
    assert alice.kubectl("exec", "client1", "--", "cat", "/sys/class/net/eth0/mtu").strip() == str(link - 50)


def test_a_service_has_pods_of_both_nodes(alice: Alice) -> None:
    spec = service(alice, "both", ports=[{"port": 80, "targetPort": 8080}])
    for number in NODES:
        def answers(client: str = f"client{number}") -> set[str]:
            loop = f"for i in $(seq 10); do wget -q -T 10 -O - http://{spec['clusterIP']}/hostname && echo; done"
            return set(alice.kubectl("exec", client, "--", "sh", "-c", loop).split())
        alice.until(lambda answers=answers: answers() == {"web1", "web2"}, f"answers of both pods to client{number}", 120)


def test_a_udp_node_port_with_local_policy_sees_the_client(alice: Alice) -> None:
    spec = service(alice, "local", type="NodePort", externalTrafficPolicy="Local",
                   ports=[{"port": 81, "targetPort": 8081, "protocol": "UDP"}])
    for number in NODES:
        def client(number: int = number) -> str:
            done = alice.cluster.run(["python3", "-c", ASK_UDP, addresses.node(number), str(spec["ports"][0]["nodePort"])], timeout=60)
            return done.stdout.rsplit(":", 1)[0].strip()
        alice.until(lambda client=client: client() == addresses.CONTROL_PLANE, f"the pod of node {number} sees the client", 120)


def test_logs_and_exec_reach_both_nodes(alice: Alice) -> None:
    for number in NODES:
        assert "netexec" in alice.kubectl("get", "pod", f"web{number}", "-o", "json")
        assert alice.kubectl("exec", f"client{number}", "--", "hostname").strip() == f"client{number}"
        assert "started" in alice.log(f"web{number}").lower()
