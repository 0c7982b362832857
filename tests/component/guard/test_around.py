# SPDX-License-Identifier: Apache-2.0
"""Admission beyond a pod's creation: resizes, mirror pods, other webhooks, dry runs."""
import base64
import json

import batch
import injector
from conftest import Plane, scc, wait_until


def test_a_resize_must_fit_and_needs_access_to_the_constraint(plane: Plane) -> None:
    ns = plane.namespace("resized")
    resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "100m"}}
    plane.create(ns, {"containers": [{"name": "c", "image": "x", "resources": resources}]}, dry_run=False, name="weak")
    strong = {"hostPID": True, "containers": [{"name": "c", "image": "x", "resources": resources, "securityContext": {"privileged": True}}]}
    plane.create(ns, strong, user="", dry_run=False, name="strong")
    plane.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "resize", "namespace": ns},
                 "rules": [{"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["*"]}]},
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "resize", "namespace": ns},
                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "resize"},
                 "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]})
    plane.may("alice", "patch", "pods", ns, "--subresource=resize")
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m"}, "limits": {"cpu": "200m"}}}]}}

    def resize(name: str) -> batch.Answer:
        return batch.run(plane.one, [{"method": "PATCH", "path": f"/api/v1/namespaces/{ns}/pods/{name}/resize", "body": body,
                                      "type": "application/strategic-merge-patch+json", "user": "alice",
                                      "groups": ["system:authenticated"]}])[0]

    weak, strange = resize("weak"), resize("strong")
    assert weak[0] == 200, weak
    assert strange[0] == 403 and "unable to validate against any security context constraint" in strange[1]["message"], strange


def test_a_mirror_pod_of_a_node_is_not_changed(plane: Plane, node: str) -> None:
    ns = plane.namespace("mirrors")
    uid = json.loads(plane.kubectl("get", "node", node, "-o", "json"))["metadata"]["uid"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": f"static-{node}", "namespace": ns, "annotations": {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "x"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}]},
        "spec": {"nodeName": node, "hostPID": True, "enableServiceLinks": False, "tolerations": [{"operator": "Exists"}],
                 "containers": [{"name": "c", "image": "x", "securityContext": {"privileged": True}}]}}
    status, body, _, _ = batch.run(plane.one, [{"method": "POST", "path": f"/api/v1/namespaces/{ns}/pods", "body": pod,
                                                "user": f"system:node:{node}", "groups": ["system:nodes", "system:authenticated"]}])[0]
    assert status == 201, body
    assert scc(body) == "" and body["spec"]["containers"][0]["securityContext"] == {"privileged": True}


def test_a_sidecar_added_after_the_guard_is_filled_too(plane: Plane) -> None:
    ns = plane.namespace("meshed")
    ca = base64.b64encode((plane.one.state / "pki/ca.crt").read_bytes()).decode()
    plane.apply({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                 "metadata": {"name": "zz-injector"}, "webhooks": [
        {"name": "injector.example.com", "clientConfig": {"url": f"https://127.0.0.1:{injector.PORT}/", "caBundle": ca},
         "sideEffects": "None",
         "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
         "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}},
         "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]}]})
    try:
        wait_until(lambda: len(plane.create(ns, {})["spec"]["containers"]) == 2, "the injector")
        pod = plane.create(ns, {})
        assert scc(pod) == "restricted-v2"
        for container in pod["spec"]["containers"]:
            assert container["securityContext"]["runAsUser"] == 1000650000 and container["securityContext"]["capabilities"] == {
                "drop": ["ALL"]
            }
    finally:
        plane.kubectl("delete", "mutatingwebhookconfiguration", "zz-injector")


def test_a_dry_run_is_decided_and_leaves_nothing(plane: Plane) -> None:
    ns = plane.namespace("dry")
    assert scc(plane.create(ns, {}, name="never")) == "restricted-v2"
    plane.create(ns, {"hostPID": True}, name="never", ok=False)
    assert "not found" in plane.kubectl("get", "pod", "never", "-n", ns, ok=False)
