# SPDX-License-Identifier: Apache-2.0
"""The Kustomize base: the guard's objects with default values; and a component that takes the certificate from cert-manager."""
import copy
import hashlib
from typing import Any

from . import yaml
from .objects import CONFIG, NAMESPACE, Object, Objects, yaml_of

HEAD = "# SPDX-License-Identifier: Apache-2.0\n# Written by `tools/dev deploy` from src/guard/install; do not edit.\n"
CHECKSUM = "checksum/config"
TLS = "nodens-guard-tls"
SERVICE = f"nodens-guard.{NAMESPACE}.svc"


def checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def with_checksum(objects: list[Object]) -> list[Object]:
    """Pods are replaced when their configuration changes, which guards read only at their start."""
    found = copy.deepcopy(objects)
    text = next(one for one in found if one["kind"] == "ConfigMap")["data"]["guard.yaml"]
    for one in found:
        if one["kind"] == "Deployment":
            one["spec"]["template"]["metadata"]["annotations"] = {CHECKSUM: checksum(text)}
    return found


def certificate(issuer: Any) -> Object:
    """The guard's certificate, made by cert-manager."""
    return {"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": TLS, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/name": "nodens-guard"}},
            "spec": {"secretName": TLS, "dnsNames": [SERVICE], "usages": ["server auth", "digital signature"],
                     "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
                     "duration": "2160h", "renewBefore": "720h", "issuerRef": issuer}}


def own_issuer() -> list[Object]:
    """A self-signed root and an issuer of it, for clusters without one that API servers trust."""
    labels = {"app.kubernetes.io/name": "nodens-guard"}
    return [
        {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {
            "name": "nodens-guard-root", "namespace": NAMESPACE, "labels": labels}, "spec": {"selfSigned": {}}},
        {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {
            "name": "nodens-guard-ca", "namespace": NAMESPACE, "labels": labels},
         "spec": {"secretName": "nodens-guard-ca", "isCA": True, "commonName": "nodens-guard authority", "duration": "43800h",
                  "privateKey": {"algorithm": "ECDSA", "size": 256}, "issuerRef": {"name": "nodens-guard-root", "kind": "Issuer"}}},
        {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {
            "name": "nodens-guard", "namespace": NAMESPACE, "labels": labels}, "spec": {"ca": {"secretName": "nodens-guard-ca"}}},
    ]


def cert_manager() -> dict[str, str]:
    config = {key: value for key, value in CONFIG.items() if key != "certificate"}
    secret = {"$patch": "delete", "apiVersion": "v1", "kind": "Secret", "metadata": {"name": TLS, "namespace": NAMESPACE}}
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nodens-guard", "namespace": NAMESPACE},
            "data": {"guard.yaml": yaml_of(config)}}
    sources = [{"op": "add", "path": "/spec/template/spec/volumes/0/projected/sources/-", "value": {"secret": {"name": TLS}}},
               {"op": "replace", "path": "/spec/template/metadata/annotations/checksum~1config", "value": checksum(yaml_of(config))}]
    inject = [{"op": "add", "path": "/metadata/annotations",
               "value": {"cert-manager.io/inject-ca-from": f"{NAMESPACE}/{TLS}"}}]
    component = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "resources": ["certificate.yaml"],
        "patches": [{"path": "secret.yaml"}, {"path": "config.yaml"},
                    {"path": "deployment.yaml", "target": {"kind": "Deployment", "name": "nodens-guard"}},
                    {"path": "inject.yaml", "target": {"kind": "(Mutating|Validating)WebhookConfiguration", "name": "nodens-guard"}}]}
    return {"kustomization.yaml": HEAD + yaml.document(component),
            "certificate.yaml": yaml.stream([*own_issuer(), certificate({"name": "nodens-guard", "kind": "Issuer"})], HEAD),
            "secret.yaml": HEAD + yaml.document(secret), "config.yaml": HEAD + yaml.document(data),
            "deployment.yaml": HEAD + yaml.document(sources), "inject.yaml": HEAD + yaml.document(inject)}


def files(objects: Objects) -> dict[str, str]:
    parts = {"crd.yaml": objects.definitions(), "namespace.yaml": [objects.namespace()], "constraints.yaml": objects.constraints(),
             "rbac.yaml": objects.permissions(), "guard.yaml": with_checksum(objects.workload()), "webhooks.yaml": objects.webhooks()}
    base = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": list(parts)}
    made = {"base/kustomization.yaml": HEAD + yaml.document(base)}
    made |= {f"base/{name}": yaml.stream(found, HEAD) for name, found in parts.items()}
    return made | {f"cert-manager/{name}": text for name, text in cert_manager().items()}
