# SPDX-License-Identifier: Apache-2.0
"""Constraints as written by OpenShift, including nulls, in OpenShift's own API group."""
import contextlib
import json
from typing import Any

from conftest import Plane, guard_config, guard_running

V9 = ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"]
LEGACY = {"allowPrivilegeEscalation": True, "requiredDropCapabilities": ["KILL", "MKNOD", "SETUID", "SETGID"], "allowedCapabilities": None}
V2 = {"allowPrivilegeEscalation": False, "requiredDropCapabilities": ["ALL"], "allowedCapabilities": ["NET_BIND_SERVICE"],
      "seccompProfiles": ["runtime/default"]}
ANY = {"type": "RunAsAny"}
HOST = {"allowHostNetwork": True, "allowHostPorts": True}
MKNOD = {"allowPrivilegeEscalation": True, "requiredDropCapabilities": ["MKNOD"], "allowedCapabilities": None, "runAsUser": ANY,
         "fsGroup": ANY}


def window(least: int) -> dict[str, Any]:
    ranges = {"type": "MustRunAs", "ranges": [{"min": least, "max": 65534}]}
    return {"runAsUser": {"type": "MustRunAsRange", "uidRangeMin": least, "uidRangeMax": 65534}, "fsGroup": ranges,
            "supplementalGroups": ranges,
            "userNamespaceLevel": "RequirePodLevel"}


CONSTRAINTS: dict[str, dict[str, Any]] = {
    "restricted": LEGACY | {"groups": []}, "restricted-v2": V2, "restricted-v3": V2 | window(1000),
    "nonroot": LEGACY | {"runAsUser": {"type": "MustRunAsNonRoot"}, "fsGroup": ANY},
    "nonroot-v2": V2 | {"runAsUser": {"type": "MustRunAsNonRoot"}, "fsGroup": ANY},
    "nested-container": window(0)
    | {"allowPrivilegeEscalation": True, "requiredDropCapabilities": None, "allowedCapabilities": ["SETUID", "SETGID"],
                                     "seccompProfiles": ["*"],
       "seLinuxContext": {"type": "MustRunAs", "seLinuxOptions": {"type": "container_engine_t"}}},
    "anyuid": MKNOD | {"priority": 10, "groups": ["system:cluster-admins"]},
    "hostmount-anyuid": MKNOD | {"allowHostDirVolumePlugin": True, "volumes": [*V9, "hostPath", "nfs"],
                                 "users": ["system:serviceaccount:openshift-infra:pv-recycler-controller"]},
    "hostmount-anyuid-v2": MKNOD | {"allowHostDirVolumePlugin": True, "volumes": [*V9, "hostPath", "nfs"], "seLinuxContext": ANY},
    "hostnetwork": LEGACY | HOST | {"supplementalGroups": {"type": "MustRunAs"}},
    "hostnetwork-v2": V2 | HOST | {"supplementalGroups": {"type": "MustRunAs"}},
    "hostaccess": LEGACY | HOST
    | {"allowHostPID": True, "allowHostIPC": True, "allowHostDirVolumePlugin": True, "volumes": [*V9, "hostPath"]},
    "privileged": HOST
    | {"allowPrivilegedContainer": True, "allowHostPID": True, "allowHostIPC": True, "allowHostDirVolumePlugin": True, "volumes": ["*"],
                          "allowedCapabilities": ["*"], "requiredDropCapabilities": None, "allowedUnsafeSysctls": ["*"],
       "seccompProfiles": ["*"],
                          "runAsUser": ANY, "fsGroup": ANY, "seLinuxContext": ANY, "allowPrivilegeEscalation": True,
                          "users": ["system:admin", "system:serviceaccount:openshift-infra:build-controller"],
       "groups": ["system:cluster-admins", "system:nodes"]},
}


def manifest(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    common = {"allowHostDirVolumePlugin": False, "allowHostIPC": False, "allowHostNetwork": False, "allowHostPID": False,
              "allowHostPorts": False,
              "allowPrivilegedContainer": False, "defaultAddCapabilities": None, "fsGroup": {"type": "MustRunAs"}, "priority": None,
              "readOnlyRootFilesystem": False, "runAsUser": {"type": "MustRunAsRange"}, "seLinuxContext": {"type": "MustRunAs"},
              "supplementalGroups": ANY, "users": [], "groups": [], "volumes": V9}
    return {"apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints", "metadata": {"name": name, "annotations": {
        "include.release.openshift.io/self-managed-high-availability": "true", "kubernetes.io/description": "as OpenShift has it"}},
            **common, **fields}


def test_openshifts_manifests_apply_in_every_way_and_the_guard_uses_them(plane: Plane) -> None:
    guard_config(plane.one.state, "openshift", port=9461, group="security.openshift.io", allocateRanges=False,
                 kubeconfig="/run/cluster/admin.kubeconfig")
    with contextlib.ExitStack() as stack:
        plane.kubectl("apply", "-f", "-", stdin=plane.guard_output("manifest", "--config", "/run/cluster/openshift.yaml", "crd"))
        stack.callback(plane.kubectl, "delete", "crd", "securitycontextconstraints.security.openshift.io")
        plane.kubectl("wait", "--for=condition=Established", "crd/securitycontextconstraints.security.openshift.io")
        text = "\n---\n".join(json.dumps(manifest(name, fields)) for name, fields in CONSTRAINTS.items())
        for words in (["apply"], ["create"], ["apply", "--server-side"]):
            plane.kubectl(*words, "-f", "-", stdin=text)
            # and again, as operators do
            plane.kubectl(*words, "-f", "-", stdin=text, ok=words != ["create"])
            stored = json.loads(plane.kubectl("get", "securitycontextconstraints.security.openshift.io", "-o", "json"))["items"]
            assert {one["metadata"]["name"] for one in stored} == set(CONSTRAINTS)
            for one in stored:
                for key, value in manifest(one["metadata"]["name"], CONSTRAINTS[one["metadata"]["name"]]).items():
                    assert key in ("metadata",) or value is None or one[key] == value, (one["metadata"]["name"], key)
            if words != ["apply", "--server-side"]:
                plane.kubectl("delete", "securitycontextconstraints.security.openshift.io", "--all")
        stack.enter_context(guard_running(plane, plane.one.state, "openshift", 9461))
        assert "not usable" not in (plane.one.state / "logs/openshift.log").read_text()
