# SPDX-License-Identifier: Apache-2.0
"""The version floor beside a stock API server: who sets it, what follows it, which kubelets it keeps out.

Nodes are objects without a machine. A request of a node is sent in its name, by impersonation; test_authorizer.py
has clients with certificates of nodes.
"""
import base64
import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Plane, guarded, scc, wait_until
from nodensdev import cluster
from nodensdev.cluster import addresses
from nodensdev.cluster.options import Webhook

ROOT = {"hostUsers": False, "securityContext": {"runAsUser": 0}}
FLOORS = "nodeversionfloors.security.nodens.io"
BELOW = "security.nodens.io/BelowVersionFloor"


def node_object(name: str, version: str, pool: str = "", ready: bool = True) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": pool} if pool else {}},
            "status": {"nodeInfo": {"kubeletVersion": version}, "conditions": [
                {"type": "Ready", "status": "True" if ready else "False", "reason": "Test", "message": "test"}]}}


def as_node(plane: Plane, name: str, *arguments: str, stdin: str | None = None) -> Any:
    return plane.one.kubectl("--as", f"system:node:{name}", "--as-group", "system:nodes", "--as-group", "system:authenticated",
                             *arguments, stdin=stdin)


@contextlib.contextmanager
def node(plane: Plane, name: str, version: str, pool: str = "", ready: bool = True) -> Iterator[str]:
    """An existing node, made by an administrator, whom the rule about joining nodes does not concern."""
    made = node_object(name, version, pool, ready)
    plane.kubectl("create", "-f", "-", stdin=json.dumps(made))
    report(plane, name, version, ready)
    try:
        yield name
    finally:
        plane.kubectl("delete", "node", name, "--ignore-not-found")


def report(plane: Plane, name: str, version: str, ready: bool = True) -> None:
    status = {"status": node_object(name, version, ready=ready)["status"]}
    plane.kubectl("patch", "node", name, "--subresource=status", "--type=strategic", "-p", json.dumps(status))


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    """A cluster of its own: nodes of other tests would hold the floor back, since none of them reports."""
    options = cluster.Options(name="guard-floor", nodes=0, images=(), webhooks=(Webhook("guard", "exec sleep infinity"),))
    with guarded(options, allocateRanges=False) as made:
        yield made


@pytest.fixture
def floor(plane: Plane) -> Iterator[Plane]:
    """The default floor, before and after."""
    plane.settled("1.30.0")
    yield plane
    plane.set_floor("1.30.0", poolLabel="", featureGates=None)
    plane.settled("1.30.0")


@pytest.fixture(scope="module")
def root(plane: Plane) -> str:
    """A namespace whose user may use the constraint userns-root."""
    name = plane.namespace("floor")
    plane.grant(name, "nodens:scc:userns-root", "alice")
    return name


def waits(plane: Plane) -> str:
    return next((one["message"] for one in plane.floor().get("status", {}).get("conditions", []) if one["status"] == "False"), "")


def known(plane: Plane, nodes: int) -> None:
    """Waits until the guard reports this number of nodes below the floor."""
    wait_until(lambda: plane.metrics()["nodens_guard_nodes_below_floor"] == nodes, f"{nodes} nodes below the floor in the guard's metrics")


def test_relaxations_follow_the_floor(floor: Plane, root: str) -> None:
    """A constraint that relies on user namespaces admits root only where kubelets are guaranteed to honour them."""
    pod = floor.eventually(lambda one: scc(one) == "userns-root", "admission by userns-root", root, ROOT)
    assert pod["spec"]["hostUsers"] is False
    floor.set_floor("1.29.9")
    denial = floor.eventually(lambda text: "the version floor does not guarantee" in text, "a denial", root, ROOT, ok=False)
    assert "pod would be admitted by userns-root" in denial and "NodeVersionFloor cluster" in denial
    assert scc(floor.create(root, {})) == "restricted-v2", "constraints that do not rely on user namespaces are not concerned"
    floor.settled("1.29.9")
    assert all(not gate["enabled"] for gate in floor.floor()["status"]["featureGates"])
    floor.set_floor("1.30.0")
    floor.eventually(lambda one: scc(one) == "userns-root", "admission by userns-root", root, ROOT)


def test_gates_have_versions_of_their_own(floor: Plane, root: str) -> None:
    floor.set_floor("1.30.0", featureGates=[{"name": "RootInUserNamespace", "requiredMinimumVersion": "1.33.0"}])
    floor.eventually(lambda text: "version floor" in text, "a denial", root, ROOT, ok=False)
    pod = floor.eventually(lambda one: scc(one) == "restricted-v3", "admission by restricted-v3", root,
                           {"hostUsers": False, "securityContext": {"runAsUser": 2000}})
    assert pod["spec"]["hostUsers"] is False
    floor.settled("1.30.0")
    enabled = {gate["name"]: gate["enabled"] for gate in floor.floor()["status"]["featureGates"]}
    assert enabled == {"PodSecurityRelaxation": True, "RootInUserNamespace": False, "NestedContainer": True, "UnmaskedProcMount": True,
                       "WideIDs": True}


def test_a_floor_above_a_kubelet_is_refused_and_names_the_node(floor: Plane) -> None:
    with node(floor, "late", "v1.33.4-eks-1552ad0"):
        wait_until(lambda: "late (v1.33.4-eks-1552ad0)" in floor.one.kubectl(
            "patch", "nodeversionfloor", "cluster", "--type=merge", "--dry-run=server", "-p",
            '{"spec": {"minimumKubeletVersion": "1.34.0"}}').stderr, "a refusal that names the node")
        assert floor.floor()["spec"]["minimumKubeletVersion"] == "1.30.0"
        floor.set_floor("1.33.4")
        floor.settled("1.33.4")


def test_values_that_are_not_versions_are_refused(floor: Plane) -> None:
    for bad in ("1.30", "v1.30.0", "1.30.0-rc.1", "1a30b0", "01.30.0", "1.9999999.0", " 1.30.0"):
        assert "minimumKubeletVersion" in floor.set_floor(bad, ok=False), bad


def test_there_is_one_floor_and_it_stays(floor: Plane) -> None:
    other = {"apiVersion": "security.nodens.io/v1", "kind": "NodeVersionFloor", "metadata": {"name": "other"},
             "spec": {"minimumKubeletVersion": "9.0.0"}}
    assert "named 'cluster'" in floor.kubectl("create", "-f", "-", stdin=json.dumps(other), ok=False)
    assert "the version floor is in use" in floor.kubectl("delete", "nodeversionfloor", "cluster", ok=False)


def test_a_floor_is_deleted_after_it_was_lowered(floor: Plane, root: str) -> None:
    floor.set_floor("")
    floor.settled("")
    floor.kubectl("delete", "nodeversionfloor", "cluster")
    floor.eventually(lambda text: "version floor" in text, "a denial without a floor", root, ROOT, ok=False)
    floor.apply({"apiVersion": "security.nodens.io/v1", "kind": "NodeVersionFloor", "metadata": {"name": "cluster"},
                 "spec": {"minimumKubeletVersion": "1.30.0"}})
    floor.settled("1.30.0")
    floor.eventually(lambda one: scc(one) == "userns-root", "admission by userns-root", root, ROOT)


def lease(name: str, seconds: int) -> dict[str, Any]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "nodens-system", "labels": {"security.nodens.io/guard": "guard"},
                         "annotations": {"security.nodens.io/acts-on": "another/1"}},
            "spec": {"holderIdentity": f"holder-of-{name}", "leaseDurationSeconds": seconds, "renewTime": "2026-01-01T00:00:00.000000Z"}}


def test_a_replica_that_does_not_act_on_it_holds_the_floor_back(floor: Plane, root: str) -> None:
    """Raising: relaxations and existing nodes stay with the old value, and joining nodes get the new one."""
    floor.apply(lease("silent", 600))
    try:
        floor.set_floor("1.31.0")
        wait_until(lambda: "holder-of-silent does not act on it yet" in waits(floor), "the name of the replica")
        assert floor.floor()["status"]["minimumKubeletVersion"] == "1.30.0"
        assert floor.floor()["status"]["effectiveMinimumKubeletVersion"] == "1.30.0"
        assert scc(floor.create(root, ROOT)) == "userns-root"
        floor.set_floor("1.29.0")
        floor.eventually(lambda text: "version floor" in text, "relaxations end at once", root, ROOT, ok=False)
        assert floor.floor()["status"]["minimumKubeletVersion"] == "1.30.0", "nodes are judged by the former value"
    finally:
        floor.kubectl("delete", "lease", "silent", "-n", "nodens-system")
    floor.settled("1.29.0")


def test_a_replica_that_is_gone_does_not(floor: Plane) -> None:
    floor.apply(lease("gone", 10))
    try:
        began = time.monotonic()
        floor.set_floor("1.31.0")
        floor.settled("1.31.0")
        assert time.monotonic() - began > 5, "it counts as live at first"
    finally:
        floor.kubectl("delete", "lease", "gone", "-n", "nodens-system", "--ignore-not-found")


def test_every_pool_must_have_a_node_that_reports(floor: Plane) -> None:
    with node(floor, "east", "v1.36.3", "east"), node(floor, "west", "v1.36.3", "west", ready=False):
        floor.set_floor("1.32.0", poolLabel="pool")
        wait_until(lambda: "no Ready node of pool 'west'" in waits(floor), "the name of the pool")
        assert floor.floor()["status"]["minimumKubeletVersion"] == "1.30.0"
        report(floor, "west", "v1.36.3")
        floor.settled("1.32.0")


def test_a_node_below_the_floor_is_marked(floor: Plane) -> None:
    known(floor, 0)
    with node(floor, "fallen", "v1.29.6"):
        known(floor, 1)

        def condition() -> dict[str, str]:
            made = json.loads(floor.kubectl("get", "node", "fallen", "-o", "json"))
            return next((one for one in made["status"]["conditions"] if one["type"] == BELOW), {"status": ""})

        wait_until(lambda: condition()["status"] == "True", "the condition")
        assert "kubelet version v1.29.6 is below the minimum 1.30.0" in condition()["message"]
        wait_until(lambda: "KubeletBelowVersionFloor" in floor.kubectl(
            "get", "events", "-n", "default", "--field-selector", "involvedObject.name=fallen"), "the event")
        report(floor, "fallen", "v1.30.0")
        wait_until(lambda: condition()["status"] == "False", "the end of the condition")
        known(floor, 0)


# ---- the rule about nodes ----

VERSIONS = {
    "v1.30.0": True, "1.30.0": True, "v1.36.3-eks-1552ad0": True, "v1.30.4+k3s1": True, "v1.30.0-rcustom": True, "v2.0.0": True,
    "v1.31.0-alpha.0": True,
    "": False, "v": False, "v1.29.99": False, "v1.30.0-rc.1": False, "v1.30.0-alpha": False, "v1.30.0-beta.2+x": False, "v1.36": False,
    "v1.36.3.4": False, " v1.36.3": False, "v1.36.3 ": False, "v1.36.3\n": False, "v01.36.3": False, "v1.036.3": False, "V1.36.3": False,
    "v1.36.3-": False, "v1.36.3-\u00e9": False, "v1.9999999.0": False, "v1.36.3-" + "a" * 200: False, "latest": False,
}


@pytest.fixture(scope="module")
def rule(plane: Plane) -> Iterator[Plane]:
    """The ValidatingAdmissionPolicy, once the API server applies it."""
    text = plane.guard_output("manifest", "nodes")
    plane.kubectl("apply", "-f", "-", stdin=text)
    with node(plane, "probe", "v1.0.0"):
        wait_until(lambda: patch_status(plane, "probe", {"phase": "Running"}).returncode != 0, "a refusal by the rule")
    yield plane
    plane.kubectl("delete", "-f", "-", stdin=text)


def join(plane: Plane, name: str, version: str) -> Any:
    return as_node(plane, name, "create", "--dry-run=server", "-f", "-", stdin=json.dumps(node_object(name, version)))


def test_an_old_kubelet_cannot_join(floor: Plane) -> None:
    for version, joins in VERSIONS.items():
        done = join(floor, "fresh", version)
        assert (done.returncode == 0) == joins, (version, done.stderr)
        assert joins or "is below the minimum 1.30.0 of NodeVersionFloor cluster" in done.stderr, (version, done.stderr)
    # others are not concerned: an administrator, a cloud's controller
    floor.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(node_object("fresh", "v1.0.0")))


def test_a_kubelet_that_restarts_learns_that_its_node_exists(rule: Plane, floor: Plane) -> None:
    """A refusal would keep it from reporting its version, and its leases would keep the node Ready."""
    with node(floor, "replaced", "v1.36.3"):
        def answer() -> str:
            return as_node(floor, "replaced", "create", "-f", "-", stdin=json.dumps(node_object("replaced", "v1.29.6"))).stderr

        wait_until(lambda: "AlreadyExists" in answer(), "the conflict that a kubelet expects")
        assert patch_status(floor, "replaced", {"nodeInfo": {"kubeletVersion": "v1.29.6"}}).returncode == 0, "its report"


def test_reports_of_a_node_below_the_floor_are_judged_by_their_versions(rule: Plane, floor: Plane) -> None:
    with node(floor, "reports", "v1.0.0"):
        for version, passes in VERSIONS.items():
            done = patch_status(floor, "reports", {"nodeInfo": {"kubeletVersion": version}})
            assert (done.returncode == 0) == passes, (version, done.stderr)
            if passes:
                report(floor, "reports", "v1.0.0")


def test_a_joining_node_is_judged_by_the_higher_one(rule: Plane, floor: Plane) -> None:
    floor.apply(lease("silent", 600))
    try:
        floor.set_floor("1.34.0")
        wait_until(lambda: join(floor, "fresh", "v1.33.0").returncode != 0, "the new value for joining nodes")
        assert join(floor, "fresh", "v1.34.0").returncode == 0
        floor.set_floor("1.28.0")
        wait_until(lambda: "1.30.0" in join(floor, "fresh", "v1.29.0").stderr, "the status for joining nodes")
        assert join(floor, "fresh", "v1.30.0").returncode == 0
    finally:
        floor.kubectl("delete", "lease", "silent", "-n", "nodens-system")
    floor.settled("1.28.0")
    wait_until(lambda: join(floor, "fresh", "v1.29.0").returncode == 0, "the lowered value for joining nodes")


# kubectl reads the status before it patches it, which no kubelet does and no node may
PATCH = """
import json, ssl, sys, urllib.error, urllib.request
address, pki, certificate, node, body, heads = sys.argv[1:]
context = ssl.create_default_context(cafile=pki + "/ca.crt")
context.load_cert_chain(f"{pki}/{certificate}.crt", f"{pki}/{certificate}.key")
request = urllib.request.Request(f"{address}/api/v1/nodes/{node}/status", body.encode(), method="PATCH", headers={
    "Content-Type": "application/strategic-merge-patch+json"})
for key, value in json.loads(heads):
    request.add_header(key, value)
try:
    urllib.request.urlopen(request, context=context, timeout=60)
except urllib.error.HTTPError as error:
    sys.exit(error.read().decode())
"""


def send_status(plane: Plane, certificate: str, name: str, status: dict[str, Any], heads: list[tuple[str, str]]) -> Any:
    return plane.one.run(["python3", "-c", PATCH, addresses.API_SERVER, "/run/cluster/pki", certificate, name,
                          json.dumps({"status": status}), json.dumps(heads)], timeout=100)


def patch_status(plane: Plane, name: str, status: dict[str, Any]) -> Any:
    return send_status(plane, "admin", name, status, [("Impersonate-User", f"system:node:{name}"), ("Impersonate-Group", "system:nodes")])


def test_a_node_below_the_floor_cannot_report_that_it_is_ready(rule: Plane, floor: Plane) -> None:
    """The report that makes it fall passes: the authorizer must see it. The control plane can still write."""
    with node(floor, "mine", "v1.36.3"):
        assert patch_status(floor, "mine", {"nodeInfo": {"kubeletVersion": "v1.29.6"}}).returncode == 0, "the fall"
        wait_until(lambda: patch_status(floor, "mine", {"phase": "Running"}).returncode != 0, "a refusal of the next report")
        done = patch_status(floor, "mine", {"nodeInfo": {"kubeletVersion": "v1.29.7"}})
        assert "kubelet version v1.29.7 is below the minimum 1.30.0" in done.stderr, done.stderr
        report(floor, "mine", "v1.29.6", ready=False)
        done = patch_status(floor, "mine", {"nodeInfo": {"kubeletVersion": "v1.30.1"}})
        assert done.returncode == 0, done.stderr
        assert patch_status(floor, "mine", {"phase": "Running"}).returncode == 0


def test_no_rule_without_a_floor(rule: Plane, floor: Plane) -> None:
    floor.set_floor("")
    floor.settled("")
    wait_until(lambda: join(floor, "fresh", "v1.0.0").returncode == 0, "no minimum")


def request(plane: Plane, name: str) -> dict[str, Any]:
    made = plane.inside.capture(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                                 f"/O=system:nodes/CN=system:node:{name}", "-keyout", "/dev/null"])
    assert made.returncode == 0, made.stderr
    return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {"request": base64.b64encode(made.stdout.encode()).decode(),
                     "signerName": "kubernetes.io/kube-apiserver-client-kubelet", "usages": ["client auth"]}}


def test_a_locked_node_gets_no_certificate(floor: Plane) -> None:
    with node(floor, "expired", "v1.29.6"):
        known(floor, 1)
        done = as_node(floor, "expired", "create", "-f", "-", stdin=json.dumps(request(floor, "expired")))
        assert "the node is locked and gets no certificate" in done.stderr, done.stderr
        done = as_node(floor, "unheard-of", "create", "-f", "-", stdin=json.dumps(request(floor, "unheard-of")))
        assert "has not reported" in done.stderr, done.stderr
        report(floor, "expired", "v1.36.3")
        known(floor, 0)
        done = as_node(floor, "expired", "create", "-f", "-", stdin=json.dumps(request(floor, "expired")))
        assert done.returncode == 0, done.stderr
        floor.kubectl("delete", "csr", "expired")
