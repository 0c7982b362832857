# SPDX-License-Identifier: Apache-2.0
"""`nodens-guard authorize` as the first authorizer of a stock API server, and clients with certificates of nodes."""
import contextlib
import dataclasses
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import alone
import pytest
from conftest import GUARD, PATIENCE, Plane, guarded, wait_until
from nodensdev import cluster
from nodensdev.cluster.controlplane import STATE
from nodensdev.cluster.options import Webhook
from nodensdev.cluster.pki import Certificate, kubeconfig
from nodensdev.env import chroot
from nodensdev.project import TOP
from test_floor import node_object, report, send_status

OUTSIDE, INSIDE = TOP / "build/guard-authorizer", "/nodens/build/guard-authorizer"
PORT = 9444
NODES = "/api/v1/nodes"


def with_authorizer(options: cluster.Options) -> cluster.Options:
    """The API server asks the authorizer first, by files of `nodens-guard manifest`, with the paths of this cluster."""
    OUTSIDE.mkdir(parents=True, exist_ok=True)
    words = ["--kubeconfig", f"{INSIDE}/kubeconfig", "--client-certificate", f"{STATE}/pki/apiserver-kubelet.crt",
             "--client-key", f"{STATE}/pki/apiserver-kubelet.key"]
    with chroot.prepared(chroot.Chroot(root="build")) as prepared:
        for part, name in (("authorization", "authorization.yaml"), ("authorization-kubeconfig", "kubeconfig")):
            done = prepared.capture([GUARD, "manifest", part, *words])
            assert done.returncode == 0, done.stderr
            (OUTSIDE / name).write_text(done.stdout.replace("/etc/nodens/authorizer/ca.crt", f"{STATE}/pki/ca.crt"))
    return dataclasses.replace(options, authorization_config=OUTSIDE / "authorization.yaml")


def certificate(plane: Plane, name: str, subject: str) -> str:
    """A client certificate of the cluster's authority, and a kubeconfig with it: the path of this."""
    done = plane.inside.capture(["sh", "-c", f"cd {STATE}/pki && {Certificate(name, subject).command()}"])
    assert done.returncode == 0, done.stderr
    (plane.one.state / f"{name}.kubeconfig").write_text(kubeconfig(plane.one.state / "pki", name))
    return f"{STATE}/{name}.kubeconfig"


@contextlib.contextmanager
def authorizing(plane: Plane) -> Iterator[subprocess.Popen[bytes]]:
    config = {"port": PORT, "certificate": f"{STATE}/pki/webhook-authorizer.crt", "key": f"{STATE}/pki/webhook-authorizer.key",
              "clientCA": f"{STATE}/pki/ca.crt", "kubeconfig": f"{STATE}/authorizer.kubeconfig", "namespace": "nodens-system"}
    (plane.one.state / "authorizer.yaml").write_text(json.dumps(config))
    log = plane.one.state / "logs/authorizer.log"
    with log.open("ab") as file:
        process = subprocess.Popen(plane.inside.command([GUARD, "authorize", "--config", f"{STATE}/authorizer.yaml"]),
                                   stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    ready = ["python3", "-c",
             "import ssl, sys, urllib.request as r; r.urlopen(sys.argv[1], context=ssl._create_unverified_context(), timeout=10)",
             f"https://127.0.0.1:{PORT}/readyz"]
    try:
        wait_until(lambda: process.poll() is not None or plane.one.run(ready).returncode == 0, "the authorizer's readiness")
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
        said = log.read_text()
        assert "SUMMARY: " not in said and "runtime error: " not in said, said[-6000:]


@pytest.fixture(scope="module")
def bare() -> Iterator[Plane]:
    """A cluster whose API server has an authorizer that does not run yet."""
    options = cluster.Options(name="guard-authorizer", nodes=0, images=(), webhooks=(
        Webhook("guard", "exec sleep infinity"), Webhook("authorizer", "exec sleep infinity")))
    with guarded(with_authorizer(options), allocateRanges=False) as plane:
        certificate(plane, "authorizer", "/CN=nodens-authorizer")
        plane.kubectl("apply", "-f", "-", stdin=plane.guard_output("manifest", "nodes"))
        yield plane


@pytest.fixture(scope="module")
def locking(bare: Plane) -> Iterator[Plane]:
    with authorizing(bare):
        yield bare


class Node:
    """A client with a certificate of a node."""

    def __init__(self, plane: Plane, name: str) -> None:
        self.plane, self.name = plane, name
        self.kubeconfig = certificate(plane, f"node-{name}", f"/O=system:nodes/CN=system:node:{name}")

    def run(self, *arguments: str, stdin: str | None = None) -> Any:
        return self.plane.one.kubectl("--kubeconfig", self.kubeconfig, *arguments, stdin=stdin)

    def does(self, *arguments: str, stdin: str | None = None) -> bool:
        return self.run(*arguments, stdin=stdin).returncode == 0

    def join(self, version: str) -> Any:
        return self.run("create", "-f", "-", stdin=json.dumps(node_object(self.name, version)))

    def report(self, version: str) -> Any:
        return send_status(self.plane, f"node-{self.name}", self.name, {"nodeInfo": {"kubeletVersion": version}}, [])

    def lists_pods(self) -> bool:
        return self.does("get", "pods", "-A", "--field-selector", f"spec.nodeName={self.name}")

    def renews(self) -> bool:
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self.name, "namespace": "kube-node-lease"},
                 "spec": {"holderIdentity": self.name, "leaseDurationSeconds": 40}}
        return self.does("apply", "--server-side", "-f", "-", stdin=json.dumps(lease))


def test_without_the_authorizer_nodes_are_denied_and_others_are_not(bare: Plane) -> None:
    """failurePolicy Deny is an error 500. The administrator, the guard and controllers go on, so that a cold start ends."""
    lost = Node(bare, "lost")
    done = lost.run("get", "node", "lost")
    assert done.returncode != 0 and f"127.0.0.1:{PORT}" in done.stderr, done.stderr
    bare.kubectl("get", "nodes")
    bare.settled("1.30.0")


def test_a_node_without_an_object_may_only_join(locking: Plane) -> None:
    fresh = Node(locking, "fresh")
    assert not fresh.lists_pods() and not fresh.renews()
    assert "is below the minimum 1.30.0" in fresh.join("v1.29.6").stderr
    done = fresh.join("v1.36.3")
    assert done.returncode == 0, done.stderr
    wait_until(fresh.lists_pods, "access after it has joined", 5)
    assert fresh.renews()


def test_a_node_below_the_floor_is_locked_at_once_and_unlocks_itself(locking: Plane) -> None:
    mine, other = Node(locking, "mine"), Node(locking, "other")
    for one in (mine, other):
        assert one.join("v1.36.3").returncode == 0
        wait_until(one.lists_pods, "access of the node", 5)
    done = mine.report("v1.29.6")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: not mine.lists_pods(), "the lock", 5)
    denial = mine.run("get", "pods", "-A").stderr
    assert 'kubelet version "v1.29.6" of node "mine" is below the minimum 1.30.0: upgrade it' in denial, denial
    assert mine.does("get", "node", "mine"), "its own object"
    assert not mine.does("get", "node", "other") and not mine.does("get", "nodes") and not mine.renews()
    assert not mine.does("get", "secrets", "-A") and not mine.does("get", "csidrivers") and not mine.does("delete", "node", "mine")
    assert "Forbidden" in mine.run("create", "-f", "-", stdin=json.dumps(
        {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "mine"},
         "spec": {"request": "LS0tLS1CRUdJTg==", "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
                  "usages": ["client auth"]}})).stderr
    assert not mine.does("get", "--raw", "/api/v1/nodes/mine/proxy/pods"), "a subresource"
    assert other.lists_pods(), "other nodes are not concerned"
    assert mine.report("v1.29.9").returncode != 0, "no report below the floor passes"
    assert mine.report("v1.30.0").returncode == 0
    wait_until(lambda: mine.lists_pods() and mine.renews(), "the end of the lock", 5)


@pytest.mark.parametrize("version", ["", "v1.36", "v1.36.3 ", "V1.36.3", "v1.036.3", "v1.30.0-rc.1", "v99999999.0.0",
                                     "v1.36.3\u200b", "latest"])
def test_odd_versions_lock_the_node(locking: Plane, version: str) -> None:
    odd = Node(locking, "odd")
    locking.kubectl("delete", "node", "odd", "--ignore-not-found")
    wait_until(lambda: not odd.lists_pods(), "the lock of a node without an object", 5)
    assert odd.join("v1.36.3").returncode == 0
    wait_until(odd.lists_pods, "access of the node", 5)
    report(locking, "odd", version)
    wait_until(lambda: not odd.lists_pods(), "the lock", 5)


def test_a_locked_node_does_not_get_out_by_another_name(locking: Plane) -> None:
    low, high = Node(locking, "low"), Node(locking, "high")
    assert high.join("v1.36.3").returncode == 0
    assert not low.does("--as", "system:node:high", "--as-group", "system:nodes", "get", "pods", "-A"), "impersonation"
    assert not low.does("get", "node", "high")
    assert send_status(locking, "node-low", "high", {"phase": "Running"}, []).returncode != 0
    stranger = certificate(locking, "stranger", "/O=system:nodes/CN=stranger")
    done = locking.one.kubectl("--kubeconfig", stranger, "get", "pods", "-A")
    assert "must be named system:node:NAME" in done.stderr, done.stderr
    nameless = certificate(locking, "nameless", "/O=system:nodes/CN=system:node:")
    assert "must be named" in locking.one.kubectl("--kubeconfig", nameless, "get", "nodes").stderr
    wait_until(high.lists_pods, "access of the other node", 5)


def test_a_raised_floor_waits_for_the_authorizer(bare: Plane, locking: Plane) -> None:
    """It reports in a Lease of its own that it acts on the new value."""
    leases = json.loads(locking.kubectl("get", "leases", "-n", "nodens-system", "-l", "security.nodens.io/guard=authorizer", "-o", "json"))
    floor = locking.floor()
    assert [one["metadata"]["annotations"]["security.nodens.io/acts-on"] for one in leases["items"]] == [
        f"{floor['metadata']['uid']}/{floor['metadata']['generation']}"]


def test_a_floor_that_is_lowered_unlocks(locking: Plane) -> None:
    late = Node(locking, "lowered")
    assert late.join("v1.36.3").returncode == 0
    wait_until(late.lists_pods, "access of the node", 5)
    assert late.report("v1.29.6").returncode == 0
    wait_until(lambda: not late.lists_pods(), "the lock", 5)
    locking.kubectl("patch", "node", "lowered", "--subresource=status", "--type=strategic", "-p", json.dumps(
        {"status": {"conditions": node_object("lowered", "")["status"]["conditions"]}}))
    locking.set_floor("1.29.0")
    locking.settled("1.29.0")
    wait_until(late.lists_pods, "access with the lowered floor", 5)
    assert "is above the kubelets of these nodes" in locking.set_floor("1.30.0", ok=False)
    locking.kubectl("delete", "node", "lowered")


# ---- with an API server under the test's control ----

def review(user: str = "system:node:a", verb: str = "list", resource: str = "pods", name: str = "") -> dict[str, Any]:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": user, "groups": ["system:nodes", "system:authenticated"],
        "resourceAttributes": {"verb": verb, "resource": resource, "version": "v1", "name": name}}}


def verdict(guard: alone.Alone, **request: str) -> str:
    status, text = guard.ask("POST", "/authorize", review(**request))
    assert status == 200, (status, text)
    answer = json.loads(text)["status"]
    assert answer["allowed"] is False, "it never grants"
    return answer.get("reason", "") if answer.get("denied") else ""


def node_item(name: str, version: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": "1"}, "status": {"nodeInfo": {"kubeletVersion": version}}}


def test_without_contact_every_node_is_locked(tmp_path: Path) -> None:
    """No verdict from data that may be old, and what a locked node may do works on."""
    items = {NODES: [node_item("a", "v1.36.3"), node_item("b", "v1.20.0")]}
    with alone.running(tmp_path, verb="authorize", items=items, staleSeconds=4, allocateRanges=None) as guard:
        assert verdict(guard) == "" and "below" in verdict(guard, user="system:node:b")
        guard.api.hold.set()
        wait_until(lambda: "not known" in verdict(guard), "the lock without contact")
        assert verdict(guard, verb="get", resource="nodes", name="a") == ""
        guard.api.hold.clear()
        wait_until(lambda: verdict(guard) == "", "verdicts after contact")


def test_a_floor_that_cannot_be_read_locks(tmp_path: Path) -> None:
    broken = {"metadata": {"name": "cluster", "resourceVersion": "1"}, "spec": {"minimumKubeletVersion": "soon"}}
    with alone.running(tmp_path, verb="authorize", items={NODES: [node_item("a", "v1.36.3")], alone.FLOORS: [broken]},
                       allocateRanges=None) as guard:
        assert "cannot be read" in verdict(guard)


def test_bodies_that_are_no_reviews_are_refused(tmp_path: Path) -> None:
    with alone.running(tmp_path, verb="authorize", items={NODES: []}, allocateRanges=None) as guard:
        assert guard.ask("POST", "/authorize", {"kind": "SubjectAccessReview"})[0] == 400
        assert guard.ask("GET", "/authorize")[0] == 405
        assert guard.ask("POST", "/validate", review())[0] == 404
        assert guard.ask("POST", "/authorize", review(), client=None)[0] == 401
