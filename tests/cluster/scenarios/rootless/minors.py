# SPDX-License-Identifier: Apache-2.0
"""A rootless node with kubelets of two minors; since 1.37 KubeletInUserNamespace is on by default.

The API server accepts only serving certificates of the cluster, so the kubelet asks for one (`up --server-tls-bootstrap`).
`tools/dev test rootless-minors` runs it; each minor has its own cluster.
"""
import json
import os
import uuid
from collections.abc import Iterator

import pytest
from alice import HOST, Alice, web
from nodensdev import cluster
from nodensdev.cluster import switch
from nodensdev.project import TOP
from nodenstest.people import FOREVER, container
from nodenstest.scenario import namespace_of, running_cluster

pytestmark = pytest.mark.rootless
# Whether KubeletInUserNamespace is on by default, and the node reports that it runs in a user namespace.
MINORS = {"1.37": True, "1.36": False}


@pytest.fixture(scope="module", params=list(MINORS))
def minor(request: pytest.FixtureRequest) -> Iterator[tuple[str, cluster.Cluster]]:
    options = cluster.Options(
        name=f"rootless-minors-{os.getpid()}", runtime=request.config.getoption("--runtime"), kernel="uml-nft", rootless=True,
        kubelet=None if request.param == switch.OWN else request.param, rootless_args=("--server-tls-bootstrap",),
        apiserver_args=("--kubelet-certificate-authority=/run/cluster/pki/ca.crt",), timeout=900)
    with running_cluster(request.config.getoption("--cluster"), options, TOP / f"build/rootless-node/{request.param}") as made:
        yield request.param, made


@pytest.fixture
def owner(minor: tuple[str, cluster.Cluster]) -> Iterator[Alice]:
    one = Alice(minor[1], f"story-{uuid.uuid4().hex[:8]}")
    with namespace_of(one, "services,pods"):
        yield one


def test_the_kubelet_has_this_minor(minor: tuple[str, cluster.Cluster], owner: Alice) -> None:
    assert owner.node()["status"]["nodeInfo"]["kubeletVersion"] == switch.reported_version(minor[0])
    assert json.loads(owner.kubectl("get", "--raw", "/version"))["gitVersion"] == switch.reported_version(switch.OWN)
    said = owner.in_node(f"{'/usr/local/bin' if minor[0] == switch.OWN else '/home/alice/kubernetes'}/kubelet --help"
                         " | grep -o 'KubeletInUserNamespace=.*default=[a-z]*'")
    assert said.strip().endswith(f"default={str(MINORS[minor[0]]).lower()}"), said


def test_the_node_reports_that_it_runs_in_a_user_namespace(minor: tuple[str, cluster.Cluster], owner: Alice) -> None:
    assert owner.node()["status"]["nodeInfo"].get("runningInUserNamespace") is (True if MINORS[minor[0]] else None)
    owner.until(lambda: owner.node()["metadata"]["labels"].get("kubernetes.io/running-in-user-namespace") == "true", "the label")


def test_the_api_server_refuses_a_certificate_that_is_not_approved_and_then_reaches_the_kubelet(owner: Alice) -> None:
    owner.pod("talker", container(f"echo said; {FOREVER}"))
    owner.ready("talker")
    waiting = [one for one in json.loads(owner.kubectl("get", "csr", "-o", "json"))["items"] if not one["status"].get("conditions")]
    assert waiting and all(one["spec"]["signerName"] == "kubernetes.io/kubelet-serving" for one in waiting), waiting
    refused = owner.cluster.kubectl(f"--namespace={owner.namespace}", "logs", "talker")
    assert refused.returncode != 0 and "tls" in refused.stderr, refused.stderr
    owner.kubectl("certificate", "approve", *(one["metadata"]["name"] for one in waiting))
    owner.until(lambda: owner.cluster.kubectl(f"--namespace={owner.namespace}", "logs", "talker").stdout == "said\n", "a log")
    assert owner.kubectl("exec", "talker", "--", "echo", "in").strip() == "in"


def test_a_node_port_reaches_a_pod(owner: Alice) -> None:
    owner.kubectl("create", "-f", "-", stdin=json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"containers": [web()]}}))
    owner.ready("web")
    owner.apply("Service", "web", spec={"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]})
    port = owner.get("service", "web")["spec"]["ports"][0]["nodePort"]
    assert owner.until(lambda: owner.from_outside(f"http://{HOST}:{port}/hostname"), "an answer of the node port") == "web"
