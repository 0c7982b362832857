# SPDX-License-Identifier: Apache-2.0
"""Pods for the tests, as kubectl takes them."""
import json
from typing import Any

BUSYBOX = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.66.1"


def pod(name: str, command: list[str], image: str = BUSYBOX, labels: dict[str, str] | None = None, **spec: Any) -> str:
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": command}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {"app": name}},
                       "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}})


def service(name: str, port: int, target: int) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
                       "spec": {"selector": {"app": name}, "ports": [{"port": port, "targetPort": target}]}})


def webhook_configuration() -> str:
    """Sends new pods to webhook.py."""
    return json.dumps({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                       "metadata": {"name": "testbed"}, "webhooks": [{
                           "name": "testbed.nodens.test", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                           "clientConfig": {"url": "https://127.0.0.1:8443/admit", "caBundle": "@CA_BUNDLE@"},
                           "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]}]})


def authorization_configuration(kubeconfig: str) -> str:
    """Asks webhook.py after Node and RBAC."""
    return json.dumps({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": [
        {"type": "Node", "name": "node"}, {"type": "RBAC", "name": "rbac"},
        {"type": "Webhook", "name": "testbed", "webhook": {
            "timeout": "3s", "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
            "failurePolicy": "NoOpinion", "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig}}}]})


def authorizer_kubeconfig() -> str:
    return json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x",
                       "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:8443/authorize",
                                                              "certificate-authority": "/run/cluster/pki/ca.crt"}}],
                       "users": [{"name": "x", "user": {}}], "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]})
