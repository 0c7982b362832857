# SPDX-License-Identifier: Apache-2.0
"""Admitted pods on a node: their processes have the expected IDs. `tools/dev test guard-node`.

The node has a stock kubelet and nodens-cri.
"""
import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import GUARD, Plane, guarded, scc, wait_until
from nodensdev import cluster
from nodensdev.cluster.options import Webhook

pytestmark = pytest.mark.node
BUSYBOX = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
PODMAN = "registry.nodens.test:5000/nodens/podman:1"
IDS = 65536
NODE = "node1"


@pytest.fixture(scope="session")
def staffed() -> Iterator[Plane]:
    """A control plane with a node. The guard allocates the ranges of namespaces."""
    with guarded(cluster.Options(name="guard-node", runtime="nodens", images=("e2e", "podman"),
                                 webhooks=(Webhook("guard", "exec sleep infinity"),))) as made:
        yield made


def team(plane: Plane, name: str, **labels: str) -> str:
    """A namespace that enforces constraints and in which alice may edit."""
    plane.apply({"apiVersion": "v1", "kind": "Namespace",
                 "metadata": {"name": name, "labels": {"security.nodens.io/constraints": "enforce", **labels}}})
    plane.grant(name, "edit", "alice")
    wait_until(lambda: plane.one.kubectl("get", "serviceaccount", "default", "-n", name).returncode == 0, "the service account")
    wait_until(lambda: "sa.scc.uid-range" in plane.kubectl("get", "namespace", name, "-o", "json"), "the namespace's ranges")
    plane.eventually(scc, "the ranges in the guard's cache", name, {})
    return name


def running(plane: Plane, ns: str, name: str) -> dict[str, Any]:
    """The pod, once it is running."""
    def pod() -> dict[str, Any]:
        return json.loads(plane.kubectl("get", "pod", name, "-n", ns, "-o", "json"))

    try:
        wait_until(lambda: pod()["status"].get("phase") == "Running" and pod()["status"]["containerStatuses"][0]["ready"],
                   f"{name} running", 300)
    except AssertionError as error:
        raise AssertionError(f"{error}: {plane.kubectl('describe', 'pod', name, '-n', ns)[-2000:]}") from None
    return pod()


def started(plane: Plane, ns: str, name: str, spec: dict[str, Any], seconds: int, **container: Any) -> dict[str, Any]:
    """alice's pod whose container sleeps for a time that identifies its process on the node."""
    one = {"name": "c", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sleep", str(seconds)], **container}
    plane.create(ns, {"containers": [one], "terminationGracePeriodSeconds": 1, **spec}, name=name, dry_run=False)
    return running(plane, ns, name)


def inside(plane: Plane, ns: str, pod: str, command: str, ok: bool = True) -> str:
    """The output of a command in the pod, run by alice."""
    return plane.kubectl("exec", pod, "-n", ns, "--", "sh", "-c", command, user="alice", ok=ok)


def status(text: str) -> dict[str, list[str]]:
    return {key: value.split() for key, _, value in (line.partition(":") for line in text.splitlines())}


def block(text: str) -> int:
    """The first ID on the node of a namespace that maps 65536 IDs in one piece."""
    inner, outer, count = map(int, text.split())
    assert inner == 0 and count == IDS and outer >= IDS and outer % IDS == 0
    return outer


def on_node(plane: Plane, command_line: str) -> dict[str, list[str]]:
    """The status, as the node sees it, of the one process with this command line."""
    found = plane.one.node_exec(["sh", "-c", f"for p in $(pgrep -fx '{command_line}'); do cat /proc/$p/status; done"])
    assert found.stdout.count("\nPid:") == 1, found
    return status(found.stdout)


def granted(plane: Plane, ns: str, constraint: str) -> None:
    plane.grant(ns, f"nodens:scc:{constraint}", "alice")
    plane.eventually(lambda pod: scc(pod) == constraint, "the grant", ns, {}, annotations={"security.nodens.io/required-scc": constraint})


@pytest.mark.gate
def test_an_ordinary_users_pod_runs_with_a_user_of_restricted_v3(staffed: Plane) -> None:
    ns = team(staffed, "ordinary")
    pod = started(staffed, ns, "p", {"hostUsers": False}, 310001)
    user = pod["spec"]["containers"][0]["securityContext"]["runAsUser"]
    assert scc(pod) == "restricted-v3" and 1000 <= user <= 65534
    seen = status(inside(staffed, ns, "p", "cat /proc/1/status"))
    assert seen["Uid"] == [str(user)] * 4 and set(seen["CapBnd"] + seen["CapEff"]) == {"0" * 16}
    assert seen["NoNewPrivs"] == ["1"] and seen["Seccomp"] == ["2"]
    first = block(inside(staffed, ns, "p", "cat /proc/self/uid_map"))
    assert on_node(staffed, "sleep 310001")["Uid"] == [str(first + user)] * 4
    print(f"restricted-v3: user {user} inside, {first + user} on the node")


def test_a_deployments_pod_in_a_namespace_that_asks_for_user_namespaces(staffed: Plane) -> None:
    ns = team(staffed, "asking", **{"security.nodens.io/user-namespaces": "default"})
    staffed.kubectl("create", "deployment", "web", f"--image={BUSYBOX}", "-n", ns, user="alice", stdin=None)
    staffed.kubectl("patch", "deployment", "web", "-n", ns, "-p", json.dumps({"spec": {"template": {"spec": {"containers": [
        {"name": "busybox", "imagePullPolicy": "Never", "command": ["sleep", "310002"]}]}}}}), user="alice")
    staffed.kubectl("rollout", "status", "deployment/web", "-n", ns, "--timeout=90s")
    found = json.loads(staffed.kubectl("get", "pods", "-n", ns, "-o", "json"))["items"]
    pod = next(one for one in found if one["spec"]["containers"][0].get("command"))
    assert scc(pod) == "restricted-v3" and pod["spec"]["hostUsers"] is False
    assert int(on_node(staffed, "sleep 310002")["Uid"][0]) % IDS == pod["spec"]["containers"][0]["securityContext"]["runAsUser"]


@pytest.mark.gate
def test_a_granted_root_pod_is_root_of_its_own_user_namespace(staffed: Plane) -> None:
    ns = team(staffed, "roots")
    refused = staffed.create(ns, {"hostUsers": False}, context={"runAsUser": 0}, ok=False)
    assert "userns-root in a user namespace, but serviceaccount roots:default may not use it" in refused
    granted(staffed, ns, "userns-root")
    pod = started(staffed, ns, "p", {}, 310003, securityContext={"runAsUser": 0})
    assert scc(pod) == "userns-root" and pod["spec"]["hostUsers"] is False
    seen = status(inside(staffed, ns, "p", "cat /proc/1/status"))
    assert seen["Uid"] == ["0"] * 4 and seen["Seccomp"] == ["2"]
    assert inside(staffed, ns, "p", "touch /etc/mine && chown 33:44 /etc/mine && stat -c %u:%g /etc/mine").strip() == "33:44"
    first = block(inside(staffed, ns, "p", "cat /proc/self/uid_map"))
    there = on_node(staffed, "sleep 310003")["Uid"]
    assert there == [str(first)] * 4 and int(there[0]) >= IDS
    print(f"userns-root: user 0 inside, {there[0]} on the node")


def test_podman_runs_containers_in_a_nested_container_pod(staffed: Plane) -> None:
    ns = team(staffed, "builders")
    # The example of docs/guard.md.
    spec = {"hostUsers": False, "securityContext": {"fsGroup": 1000}, "volumes": [{"name": "storage", "emptyDir": {}}]}
    container = {"image": PODMAN, "volumeMounts": [{"name": "storage", "mountPath": "/storage"}], "securityContext": {
        "runAsUser": 1000, "procMount": "Unmasked", "capabilities": {"add": ["SETUID", "SETGID"]}}}
    refused = staffed.create(ns, spec | {"containers": [{"name": "c", **container}]}, ok=False)
    assert "nested-container in a user namespace, but serviceaccount builders:default may not use it" in refused
    granted(staffed, ns, "nested-container")
    pod = started(staffed, ns, "p", spec, 310004, **container)
    assert scc(pod) == "nested-container"
    image = inside(staffed, ns, "p", "podman --log-level=error pull -q oci-archive:/archive.tar").splitlines()[-1]
    output = inside(
        staffed,
        ns,
        "p",
        f"podman run --rm {image} sh -c 'id -u; hostname; ps -o pid= | head -n 1; touch /etc/mine && stat -c %u /etc/mine'",
    ).split()
    assert (output[0], output[2], output[3]) == ("0", "1", "0") and output[1] != "p", output
    assert inside(staffed, ns, "p", f"podman run --rm --user 33 {image} id -u").strip().endswith("33")
    inside(staffed, ns, "p", f"podman run -d --name kept {image} sleep 310005 && podman run -d --user 33 {image} sleep 310006")
    assert "uid=0(root)" in inside(staffed, ns, "p", "podman exec kept id")
    # User 0 of the inner container is the engine's user 1000 of the pod, and user 33 is the pod's
    # 33: on the node, both are IDs of the pod's own block.
    first = block(inside(staffed, ns, "p", "cat /proc/self/uid_map"))
    assert on_node(staffed, "sleep 310005")["Uid"] == [str(first + 1000)] * 4
    assert on_node(staffed, "sleep 310006")["Uid"] == [str(first + 33)] * 4
    print(f"nested-container: podman's container runs as user 0 inside, {first + 1000} on the node")


def test_podman_fails_in_the_same_pod_with_a_masked_proc(staffed: Plane) -> None:
    """Shows that podman above depends on what the constraint allows."""
    ns = team(staffed, "masked")
    granted(staffed, ns, "nested-container")
    started(staffed, ns, "p", {"hostUsers": False, "securityContext": {"fsGroup": 1000}, "volumes": [{"name": "storage", "emptyDir": {}}]},
            310007, image=PODMAN,
            volumeMounts=[{"name": "storage", "mountPath": "/storage"}],
            securityContext={"runAsUser": 1000, "capabilities": {"add": ["SETUID", "SETGID"]}})
    image = inside(staffed, ns, "p", "podman --log-level=error pull -q oci-archive:/archive.tar").splitlines()[-1]
    assert "proc" in inside(staffed, ns, "p", f"podman run --rm {image} true", ok=False)


@pytest.mark.gate
def test_a_static_pod_appears_in_a_namespace_that_enforces(staffed: Plane) -> None:
    ns = team(staffed, "static")
    spec = {"hostNetwork": True, "hostPID": True, "terminationGracePeriodSeconds": 1, "containers": [
        {"name": "c", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sleep", "310008"],
         "securityContext": {"privileged": True}}]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent", "namespace": ns}, "spec": spec}
    path = "/etc/kubernetes/manifests/agent.json"
    staffed.one.node_exec(["sh", "-c", f"cat >{path}"], stdin=json.dumps(manifest))
    try:
        wait_until(lambda: staffed.one.kubectl("get", "pod", f"agent-{NODE}", "-n", ns).returncode == 0, "the mirror pod", 60)
        assert scc(running(staffed, ns, f"agent-{NODE}")) == ""
        assert on_node(staffed, "sleep 310008")["Uid"] == ["0"] * 4
    finally:
        staffed.one.node_exec(["rm", "-f", path])


GUARD_IMAGE = "registry.nodens.test:5000/nodens/guard:1"


def archive(layer: bytes, name: str) -> bytes:
    """An OCI archive of an image with one layer."""
    files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def add(data: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    of_layer = add(layer, "layer.v1.tar")
    config = add(json.dumps({"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/usr/sbin"]}, "rootfs": {
        "type": "layers", "diff_ids": [of_layer["digest"]]}}).encode(), "config.v1+json")
    manifest = add(json.dumps({"schemaVersion": 2, "config": config, "layers": [of_layer]}).encode(), "manifest.v1+json")
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [
        manifest | {"annotations": {"io.containerd.image.name": name}}]}).encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, data in files.items():
            head = tarfile.TarInfo(path)
            head.size = len(data)
            tar.addfile(head, io.BytesIO(data))
    return out.getvalue()


def guard_image(plane: Plane) -> None:
    """The guard and its libraries as an image in the node's store."""
    done = plane.inside.capture(["sh", "-c", f"""
        exec tar -chf /run/cluster/guard-layer.tar --transform 's,.*/nodens-guard$,usr/sbin/nodens-guard,' -C / {GUARD[1:]} \
            $(ldd {GUARD} | grep -o '/[^ ]*' | sed 's,^/,,')"""])
    assert done.returncode == 0, done.stderr
    made = archive((plane.one.state / "guard-layer.tar").read_bytes(), GUARD_IMAGE)
    for command, stdin in ((["sh", "-c", "base64 -d >/root/guard.tar"], base64.b64encode(made).decode()),
                           (["nodens", "import", "/root/guard.tar"], None)):
        on_node = plane.one.node_exec(command, stdin=stdin)
        assert on_node.returncode == 0, on_node.stdout + on_node.stderr


def test_the_deployment_of_the_manifest_becomes_ready_with_its_own_token(staffed: Plane) -> None:
    guard_image(staffed)
    pki = staffed.one.state / "deployed-pki"
    pki.mkdir()
    staffed.guard_output("certificate", "--address", "nodens-guard.nodens-system.svc", "--directory", "/run/cluster/deployed-pki")
    staffed.kubectl("create", "secret", "tls", "nodens-guard-tls", "-n", "nodens-system", "--cert=/run/cluster/deployed-pki/tls.crt",
                    "--key=/run/cluster/deployed-pki/tls.key")
    staffed.kubectl("label", "namespace", "nodens-system", "pod-security.kubernetes.io/enforce=restricted")
    staffed.kubectl("apply", "-f", "-", stdin=staffed.guard_output(
        "manifest", "rbac", "deployment", "--image", GUARD_IMAGE, "--client-ca-file", "/run/cluster/pki/ca.crt"))
    try:
        staffed.kubectl("rollout", "status", "deployment/nodens-guard", "-n", "nodens-system", "--timeout=240s")
    except AssertionError as error:
        raise AssertionError(f"{error}: {staffed.kubectl('describe', 'pods', '-n', 'nodens-system')[-3000:]}") from None
    said = staffed.kubectl("logs", "deployment/nodens-guard", "-n", "nodens-system")
    assert "ready: " in said and "not authenticated" not in said, said
    endpoints = json.loads(staffed.kubectl("get", "endpointslices", "-n", "nodens-system", "-l", "kubernetes.io/service-name=nodens-guard",
                                           "-o", "json"))["items"]
    assert len([one for slice in endpoints for one in slice["endpoints"] if one["conditions"]["ready"]]) == 2, endpoints
