# SPDX-License-Identifier: Apache-2.0
"""`kubectl top`, answered by the metrics server that clusters have: it asks the kubelet, which has its figures from the runtime."""
import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from nodensdev import cluster
from nodensdev.cluster import addresses
from nodensdev.cluster.controlplane import STATE
from nodensdev.env import chroot, goprograms
from nodensdev.project import TOP
from nodenstest.people import FOREVER, Person, container

PORT = 4443
API = {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": True,
       "service": {"name": "metrics-server", "namespace": "kube-system"}}
BUSY = "while :; do :; done"
KEEPER = f"x=$(head -c 30000000 /dev/zero | tr '\\0' x); {FOREVER}; echo $x"    # a shell with 30 MB in a variable


def manifest(api: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "kube-system"} | fields.pop("metadata", {}), **fields}


def service() -> list[dict[str, Any]]:
    """A service whose only server is beside the API server, and the group of the API that is served there."""
    ports = [{"name": "https", "port": 443, "targetPort": PORT}]
    slices = manifest("discovery.k8s.io/v1", "EndpointSlice", "metrics-server", addressType="IPv4", ports=[{"name": "https", "port": PORT}],
                      endpoints=[{"addresses": [addresses.CONTROL_PLANE]}])
    slices["metadata"]["labels"] = {"kubernetes.io/service-name": "metrics-server"}
    api = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": API}
    return [manifest("v1", "Service", "metrics-server", spec={"ports": ports}), slices, api]


@pytest.fixture(scope="module")
def metrics(running: cluster.Cluster) -> Iterator[None]:
    program = chroot.seen_inside(goprograms.ensure("metrics-server") / "metrics-server")
    config = f"{STATE}/admin.kubeconfig"
    flags = [f"--kubeconfig={config}", f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
             f"--secure-port={PORT}",
             f"--cert-dir={STATE}/scratch", f"--kubelet-certificate-authority={STATE}/pki/ca.crt",
             "--kubelet-preferred-address-types=InternalIP",
             "--metric-resolution=10s", "--kubelet-request-timeout=8s"]
    log = TOP / "build/stories/metrics-server.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as stream:
        process = subprocess.Popen(running.command([str(program), *flags]), stdin=subprocess.DEVNULL, stdout=stream,
                                   stderr=subprocess.STDOUT)
    user = Person(running, "kube-system")
    try:
        for one in service():
            user.kubectl("apply", "-f", "-", stdin=json.dumps(one))
        user.until(lambda: process.poll() is not None
                   or running.kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes").returncode == 0,
                       "the metrics API", 120)
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        yield
    finally:
        running.kubectl("delete", "apiservice/v1beta1.metrics.k8s.io")
        running.kubectl("--namespace=kube-system", "delete", "service/metrics-server", "endpointslice/metrics-server")
        process.terminate()
        process.wait(timeout=30)


def figures(text: str) -> dict[str, tuple[int, int]]:
    """kubectl's table: millicores and mebibytes by the last name before them."""
    return {name: (int(cores), int(memory)) for name, cores,
            memory in re.findall(r"^(?:\S+ +)??(\S+) +(\d+)m +(?:\d+% +)?(\d+)Mi", text, re.MULTILINE)}


def top(person: Person, *arguments: str) -> dict[str, tuple[int, int]]:
    """Empty until the metrics server has scraped, which kubectl treats as an error."""
    done = person.cluster.kubectl(f"--namespace={person.namespace}", "top", *arguments, "--no-headers")
    return figures(done.stdout) if done.returncode == 0 else {}


def test_top_shows_usage_of_pods_and_their_containers(person: Person, metrics: None, host_users: bool) -> None:
    person.pod("taker", container(BUSY, name="busy", resources={"limits": {"cpu": "200m"}}),
               container(KEEPER, name="keeper"), hostUsers=host_users)
    person.ready("taker")

    def told() -> dict[str, tuple[int, int]]:
        found = top(person, "pod", "taker", "--containers")
        return found if found.get("busy", (0, 0))[0] >= 100 else {}

    by_container = person.until(told, "figures of both containers", 120)
    assert set(by_container) == {"busy", "keeper"} and by_container["busy"][0] <= 300 and by_container["busy"][1] < 20, by_container
    assert by_container["keeper"][0] < 100 and by_container["keeper"][1] >= 28, by_container
    whole = top(person, "pod", "taker")["taker"]
    assert whole[0] >= 100 and whole[1] >= max(memory for _, memory in by_container.values())


def test_top_shows_usage_of_the_node(person: Person, metrics: None) -> None:
    found = person.until(lambda: top(person, "node"), "the node's figures", 60)
    assert found["node1"][0] > 0 and found["node1"][1] > 50
