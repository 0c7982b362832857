# SPDX-License-Identifier: Apache-2.0
"""The chart on a cluster: installed, upgraded, rolled back and removed, with the guard's own image. `tools/dev test guard-chart`.

The tests run in this order, on one cluster with a stock kubelet and nodens-cri. Guards make their own certificate, and the API
server presents one to them.
"""
import base64
import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import GUARD, PATIENCE, Plane, scc, wait_until
from nodensdev import cluster, images
from nodensdev.cluster.controlplane import STATE
from nodensdev.env import chroot, goprograms
from nodensdev.images import guard
from nodensdev.project import TOP

pytestmark = pytest.mark.node
SYSTEM, RELEASE = "nodens-system", "nodens-guard"
BUSYBOX = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
SECRET = "nodens-guard-tls"
CONNECTIONS = 4
OVERLAP = 30
CONFIGURATIONS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")


def admission_files() -> str:
    """The files that give the API server its client certificate for the guard's Service."""
    outside, inside = TOP / "build/guard-chart", "/nodens/build/guard-chart"
    outside.mkdir(parents=True, exist_ok=True)
    words = ["--kubeconfig", f"{inside}/kubeconfig", "--client-certificate", f"{STATE}/pki/apiserver-kubelet.crt", "--client-key",
             f"{STATE}/pki/apiserver-kubelet.key"]
    with chroot.prepared(chroot.Chroot(root="build")) as prepared:
        for part in ("admission", "kubeconfig"):
            done = prepared.capture([GUARD, "manifest", part, *words])
            assert done.returncode == 0, done.stderr
            (outside / part).write_text(done.stdout)
    return f"{inside}/admission"


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    one = cluster.up(cluster.Options(name="guard-chart", runtime="nodens", images=("e2e",), apiserver_args=(
        f"--admission-control-config-file={admission_files()}",)))
    try:
        place = chroot.Chroot(root="build", netns=one.netns, binds=(chroot.Bind(one.state, STATE),))
        with chroot.prepared(place) as inside:
            made = Plane(one, inside)
            archive = base64.b64encode(images.archive("guard").read_bytes()).decode()
            for command, stdin in ((["sh", "-c", "base64 -d >/root/guard.tar"], archive), (["nodens", "import", "/root/guard.tar"], None)):
                done = one.node_exec(command, stdin=stdin)
                assert done.returncode == 0, done.stdout + done.stderr
            yield made
    finally:
        one.end()


def helm(plane: Plane, *words: str) -> str:
    program = chroot.seen_inside(goprograms.ensure("helm") / "helm")
    done = plane.inside.capture(["env", "HOME=/tmp", str(program), "--kubeconfig", f"{STATE}/admin.kubeconfig", "-n", SYSTEM, *words])
    if done.returncode != 0:
        pods = plane.kubectl("describe", "pods", "-n", SYSTEM)[-3000:]
        logs = plane.one.kubectl("logs", "-n", SYSTEM, "-l", "app.kubernetes.io/name=nodens-guard", "--tail=20")
        raise AssertionError(f"helm {' '.join(words)}: {done.stderr}\n{pods}\n{logs.stdout}{logs.stderr}")
    return done.stdout


def with_chart(*values: str) -> list[str]:
    repository, _, tag = guard.tag().rpartition(":")
    words = ["/nodens/deploy/chart", "--wait", "--timeout", "6m"]
    for value in (f"image.repository={repository}", f"image.tag={tag}", "image.pullPolicy=Never",
                  f"config.rotationOverlapSeconds={OVERLAP}", *values):
        words += ["--set", value]
    return words


def bundles(plane: Plane) -> list[str]:
    """The bundle of each webhook, decoded."""
    found = [hook["clientConfig"].get("caBundle", "") for kind in CONFIGURATIONS
             for hook in json.loads(plane.kubectl("get", kind, RELEASE, "-o", "json"))["webhooks"]]
    return [base64.b64decode(one).decode() for one in found]


def certificates(bundle: str) -> list[str]:
    return re.findall(r"-----BEGIN CERTIFICATE-----\n(.*?)-----END CERTIFICATE-----", bundle, re.DOTALL)


def judged(plane: Plane) -> None:
    """Reviews reach the guard, and the API server accepts its certificate."""
    wait_until(lambda: all(bundles(plane)), "the bundle of authorities in the webhooks")
    plane.eventually(lambda pod: scc(pod) == "restricted-v2", "an admitted pod", "shop", {})
    plane.eventually(lambda text: "unable to validate against any security context constraint" in text, "a refused pod", "shop",
                     {"hostPID": True}, ok=False)


@contextlib.contextmanager
def load(plane: Plane) -> Iterator[dict[str, Any]]:
    """Pods are created in dry runs, over several connections; the results are there at the end."""
    results: dict[str, Any] = {}
    process = subprocess.Popen(plane.inside.command(["python3", "-B", "/nodens/tests/component/guard/creates.py",
                                                     f"{STATE}/admin.kubeconfig", "shop", str(CONNECTIONS)]),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield results
        output, _ = process.communicate("", timeout=PATIENCE)
        results |= json.loads(output)
    finally:
        process.kill()
        process.wait()


def pods(plane: Plane) -> list[str]:
    return plane.kubectl("get", "pods", "-n", SYSTEM, "-l", "app.kubernetes.io/name=nodens-guard", "-o", "name").split()


def failures(results: dict[str, Any]) -> dict[str, int]:
    return {text: count for text, count in results["results"].items() if text != "admitted"}


def test_the_chart_installs_and_the_guard_makes_its_certificate(plane: Plane) -> None:
    plane.kubectl("create", "namespace", SYSTEM)
    plane.kubectl("label", "namespace", SYSTEM, "pod-security.kubernetes.io/enforce=restricted")
    helm(plane, "install", RELEASE, *with_chart())
    secret = json.loads(plane.kubectl("get", "secret", SECRET, "-n", SYSTEM, "-o", "json"))
    assert {"ca.crt", "ca.key", "tls.crt", "tls.key"} <= set(secret["data"])
    plane.kubectl("create", "namespace", "shop")
    plane.kubectl("label", "namespace", "shop", "security.nodens.io/constraints=enforce")
    plane.grant("shop", "edit", "alice")
    judged(plane)
    plane.settled("1.30.0")
    assert {len(certificates(one)) for one in bundles(plane)} == {1}


def test_a_refused_deployment_says_why_in_its_events(plane: Plane) -> None:
    spec = {"containers": [{"name": "c", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sleep", "3600"],
                            "securityContext": {"runAsUser": 0}}]}
    plane.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec}}})

    def events() -> str:
        return plane.kubectl("get", "events", "-n", "shop", "--field-selector", "reason=FailedCreate")

    wait_until(lambda: "denied the request" in events(), "the event")
    said = events()
    print("kubectl get events: " + next(line for line in said.splitlines() if "denied" in line))
    assert "userns-root in a user namespace, but serviceaccount shop:default may not use it (kubectl create rolebinding" in said
    plane.kubectl("delete", "deployment", "web", "-n", "shop")


def test_an_upgrade_and_a_rollback_lose_no_review(plane: Plane) -> None:
    with load(plane) as results:
        helm(plane, "upgrade", RELEASE, *with_chart("config.staleSeconds=30", "podAnnotations.step=upgraded"))
        assert "staleSeconds: 30" in plane.kubectl("get", "configmap", "nodens-guard", "-n", SYSTEM, "-o", "yaml")
        judged(plane)
        helm(plane, "rollback", RELEASE, "1", "--wait", "--timeout", "6m")
        assert "staleSeconds" not in plane.kubectl("get", "configmap", "nodens-guard", "-n", SYSTEM, "-o", "yaml")
        judged(plane)
        wait_until(lambda: len(pods(plane)) == 2, "the end of the former replicas")
    print(f"upgrade and rollback: {results['results'].get('admitted', 0)} pods in {results['seconds']:.0f} s, failed: {failures(results)}")
    assert not failures(results) and results["results"]["admitted"] > 100


def test_a_rotation_of_the_authority_loses_no_review(plane: Plane) -> None:
    before = certificates(bundles(plane)[0])
    with load(plane) as results:
        plane.kubectl("annotate", "secret", SECRET, "-n", SYSTEM, "security.nodens.io/rotate=now")
        wait_until(lambda: {len(certificates(one)) for one in bundles(plane)} == {2}, "two authorities in the bundle")
        wait_until(lambda: {len(certificates(one)) for one in bundles(plane)} == {1}, "the end of the rotation", 10 * OVERLAP)
        judged(plane)
    print(f"rotation: {results['results'].get('admitted', 0)} pods in {results['seconds']:.0f} s, failed: {failures(results)}")
    assert certificates(bundles(plane)[0]) != before
    assert not failures(results) and results["results"]["admitted"] > 100
    secret = json.loads(plane.kubectl("get", "secret", SECRET, "-n", SYSTEM, "-o", "json"))
    assert "security.nodens.io/rotate" not in secret["metadata"].get("annotations", {})
    assert "app.kubernetes.io/name" in secret["metadata"]["labels"]


def test_a_replica_that_is_deleted_loses_no_review(plane: Plane) -> None:
    with load(plane) as results:
        plane.kubectl("delete", "-n", SYSTEM, pods(plane)[0])
        plane.kubectl("rollout", "status", "deployment/nodens-guard", "-n", SYSTEM, "--timeout=180s")
    print(f"a deleted replica: {results['results'].get('admitted', 0)} pods in {results['seconds']:.0f} s, failed: {failures(results)}")
    assert not failures(results)


def test_the_release_is_removed_and_pods_start_without_the_guard(plane: Plane) -> None:
    helm(plane, "uninstall", RELEASE, "--wait", "--timeout", "3m")
    for kind in CONFIGURATIONS:
        assert "NotFound" in plane.kubectl("get", kind, RELEASE, ok=False)
    assert scc(plane.create("shop", {"hostPID": True}, user="")) == ""
    kinds = "all,secrets,roles,rolebindings,poddisruptionbudgets,networkpolicies"
    wait_until(lambda: plane.one.kubectl("get", kinds, "-n", SYSTEM, "-o", "name").stdout.strip() == "", "the end of the last pod")
    assert plane.floor()["spec"]["minimumKubeletVersion"] == "1.30.0", "Helm leaves the version floor"
    plane.kubectl("delete", "crd", "securitycontextconstraints.security.nodens.io", "nodeversionfloors.security.nodens.io")
    plane.kubectl("delete", "namespace", SYSTEM)
    assert "nodens" not in plane.kubectl("get", "clusterroles,clusterrolebindings,namespaces,crds", "-o", "name")
