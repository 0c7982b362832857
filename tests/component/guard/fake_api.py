# SPDX-License-Identifier: Apache-2.0
"""A fake API server with a large cluster: lists in pages, watches that only send bookmarks.

    python3 tests/component/guard/fake_api.py PORT CERTIFICATE KEY

A real one with this cluster does not fit on a small host. `tools/dev bench guard` measures the
guard with it; the guard's behaviour is tested on a real one. SIGUSR1 ends all watches with 410, as
an API server restored from a backup does: then everything is listed again.
"""
import http.server
import json
import signal
import ssl
import sys
import threading
import urllib.parse
from typing import Any

NAMESPACES, BINDINGS, CONSTRAINTS, NODES, ROLES, CLUSTER_ROLES = 10_000, 30_000, 500, 5_000, 2_000, 150
BOOKMARK_SECONDS = 20
RBAC = "rbac.authorization.k8s.io"

gone = threading.Event()


def metadata(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "uid": f"00000000-0000-0000-0000-{abs(hash(name)) % 10**12:012d}", "resourceVersion": "1000",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": "kubectl-client-side-apply", "operation": "Update", "apiVersion": "v1",
                               "time": "2026-01-01T00:00:00Z",
                               "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, "f:x": {}},
                                                                                     "f:labels": {".": {}, "f:y": {}}}}}], **more}


def namespace(number: int) -> dict[str, Any]:
    name = f"team-{number}"
    level = ["restricted", "baseline"][number % 2]
    block = f"{1_000_000_000 + number * 10_000}/10000"
    return {"metadata": metadata(name, labels={"kubernetes.io/metadata.name": name, "security.nodens.io/constraints": "enforce",
                                               "pod-security.nodens.io/enforce": level, "pod-security.nodens.io/warn": "restricted",
                                               "pod-security.kubernetes.io/enforce": level,
                                               "pod-security.kubernetes.io/warn": "restricted"},
                                 annotations={"openshift.io/sa.scc.uid-range": block, "openshift.io/sa.scc.supplemental-groups": block,
                                              "openshift.io/sa.scc.mcs": f"s0:c{number % 500 + 1},c{number % 300}"}),
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def binding(number: int) -> dict[str, Any]:
    team, kind = number // 3, number % 3
    role = ["edit", "view", "nodens:scc:userns-root"][kind]
    subject: dict[str, Any] = {"kind": "Group", "apiGroup": RBAC, "name": f"group-{team}"}
    if kind == 2:
        subject = {"kind": "ServiceAccount", "namespace": f"team-{team}", "name": "builder"}
    return {"metadata": metadata(f"binding-{kind}", namespace=f"team-{team}"),
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [subject, {"kind": "User", "apiGroup": RBAC, "name": f"user-{team}"}]}


def constraint(number: int) -> dict[str, Any]:
    """Constraints for all users, ten that precede them, and many laxer ones.

    The ten fit nearly every pod, as anyuid does; operators install laxer ones.
    """
    common: dict[str, Any] = {"metadata": metadata(f"made-{number:03}"), "allowPrivilegedContainer": False,
                              "allowHostDirVolumePlugin": False,
                              "seLinuxContext": {"type": "MustRunAs"}, "fsGroup": {"type": "MustRunAs"},
                              "supplementalGroups": {"type": "RunAsAny"},
                              "volumes": ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim",
                                          "projected", "secret"]}
    if number < 2:
        level = ["AllowHostLevel", "RequirePodLevel"][number]
        user = [{"type": "MustRunAsRange"}, {"type": "MustRunAsRange", "uidRangeMin": 1000, "uidRangeMax": 65534}][number]
        window = {"type": "MustRunAs", "ranges": [{"min": 1000, "max": 65534}]}
        groups = [{}, {"fsGroup": window, "supplementalGroups": window}][number]
        return common | groups | {"metadata": metadata(["restricted-v2", "restricted-v3"][number]), "allowPrivilegeEscalation": False,
                                  "userNamespaceLevel": level,
                         "requiredDropCapabilities": ["ALL"], "allowedCapabilities": ["NET_BIND_SERVICE"],
                                  "seccompProfiles": ["runtime/default"], "runAsUser": user}
    if number < 12:
        return common | {"priority": number, "runAsUser": {"type": "RunAsAny"}, "fsGroup": {"type": "RunAsAny"},
                         "requiredDropCapabilities": ["MKNOD"]}
    return common | {"runAsUser": {"type": "RunAsAny"}, "allowedCapabilities": ["CHOWN", "KILL"][: number % 3],
                     "requiredDropCapabilities": ["MKNOD"],
                     "allowHostNetwork": number % 5 == 0, "allowHostPID": number % 7 == 0, "seccompProfiles": ["runtime/default"],
                     "users": [f"system:serviceaccount:operator-{number}:default"]}


def node(number: int) -> dict[str, Any]:
    images = [{"names": [f"registry.example/image-{number % 50}-{one}:v1", f"registry.example/image@sha256:{one:064x}"],
               "sizeBytes": 10**8} for one in range(30)]
    conditions = [{"type": kind, "status": "False", "lastHeartbeatTime": "2026-01-01T00:00:00Z", "reason": "KubeletHasSufficientMemory",
                   "message": "kubelet has sufficient memory available"}
                  for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")]
    return {"metadata": metadata(f"node-{number}", labels={"kubernetes.io/hostname": f"node-{number}", "kubernetes.io/os": "linux"}),
            "spec": {"podCIDR": "10.0.0.0/24"}, "status": {"nodeInfo": {"kubeletVersion": "v1.36.3"}, "conditions": conditions,
                                                               "images": images, "runtimeHandlers": [
                {"name": "", "features": {"userNamespaces": True, "recursiveReadOnlyMounts": True}}]}}


def floor(number: int) -> dict[str, Any]:
    gates = ("PodSecurityRelaxation", "RootInUserNamespace", "NestedContainer", "UnmaskedProcMount", "WideIDs")
    return {"metadata": metadata("cluster", uid="f", generation=1), "spec": {"minimumKubeletVersion": "1.30.0"}, "status": {
        "minimumKubeletVersion": "1.30.0", "observedGeneration": 1, "conditions": [{"type": "Settled", "status": "True", "message": ""}],
        "featureGates": [{"name": gate, "requiredMinimumVersion": "1.30.0", "enabled": True} for gate in gates]}}


def role(number: int) -> dict[str, Any]:
    return {"metadata": metadata(f"role-{number % 4}", namespace=f"team-{number}"), "rules": [
        {"apiGroups": ["", "apps"], "resources": ["pods", "deployments"], "verbs": ["get", "list", "watch", "create"]}]}


def cluster_role(number: int) -> dict[str, Any]:
    name = ["restricted-v2", "restricted-v3", "userns-root"][number] if number < 3 else ""
    if name:
        rules = [{"apiGroups": ["security.nodens.io"], "resources": ["securitycontextconstraints"], "resourceNames": [name],
                  "verbs": ["use"]}]
        return {"metadata": metadata(f"nodens:scc:{name}"), "rules": rules}
    return {"metadata": metadata(["edit", "view"][number - 3] if number < 5 else f"cluster-role-{number}"), "rules": [
        {"apiGroups": [f"group-{one}"], "resources": ["a", "b", "c"], "verbs": ["get", "list", "watch"]} for one in range(20)]}


def cluster_binding(number: int) -> dict[str, Any]:
    name = ["nodens:scc:restricted-v2", "nodens:scc:restricted-v3"][number] if number < 2 else f"cluster-role-{number + 5}"
    return {"metadata": metadata(name), "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "Group", "apiGroup": RBAC, "name": "system:authenticated" if number < 2 else f"cluster-group-{number}"}]}


KINDS = {
    "/api/v1/namespaces": (NAMESPACES, namespace), "/api/v1/nodes": (NODES, node), "/apis/node.k8s.io/v1/runtimeclasses": (0, node),
    "/apis/security.nodens.io/v1/securitycontextconstraints": (CONSTRAINTS, constraint), f"/apis/{RBAC}/v1/roles": (ROLES, role),
    f"/apis/{RBAC}/v1/clusterroles": (CLUSTER_ROLES, cluster_role), f"/apis/{RBAC}/v1/rolebindings": (BINDINGS, binding),
    f"/apis/{RBAC}/v1/clusterrolebindings": (100, cluster_binding), "/apis/security.nodens.io/v1/nodeversionfloors": (1, floor),
}


# Kubernetes' own clients need the kind of a list; the guard does not
NAMES = {"/api/v1/namespaces": "Namespace"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # head and body are two writes: the second would wait for the acknowledgement of the first
    disable_nagle_algorithm = True

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def answer(self, body: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(body, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        address = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(address.query)
        if address.path not in KINDS:
            self.answer({"kind": "Status", "code": 404, "message": "not here"}, 404)
        elif "watch" in query:
            self.watch({"kind": NAMES.get(address.path, "List"), "apiVersion": "v1"})
        else:
            count, make = KINDS[address.path]
            first = int(query.get("continue", ["0"])[0])
            last = min(count, first + int(query.get("limit", [str(count)])[0]))
            more = {"continue": str(last), "remainingItemCount": count - last} if last < count else {}
            self.answer({"kind": NAMES.get(address.path, "") + "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1000", **more},
                         "items": [make(one) for one in range(first, last)]})

    def do_PATCH(self) -> None:
        """The Lease of the guard."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({"metadata": {"resourceVersion": "1"}})

    def do_POST(self) -> None:
        """Access reviews: only the roles above grant access, and the guard has an index of them."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({"kind": "SubjectAccessReview", "status": {"allowed": False}}, 201)

    def watch(self, kind: dict[str, str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while not gone.wait(BOOKMARK_SECONDS):
            self.chunk({"type": "BOOKMARK", "object": {**kind, "metadata": {"resourceVersion": "1000"}}})
        self.chunk({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "code": 410, "message": "too old resource version"}})
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, event: dict[str, Any]) -> None:
        data = json.dumps(event).encode() + b"\n"
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


def forget() -> None:
    gone.set()
    threading.Timer(1, gone.clear).start()


def main() -> int:
    port, certificate, key = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    # Python's 5 would drop connections in a burst
    http.server.ThreadingHTTPServer.request_queue_size = 128
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    signal.signal(signal.SIGUSR1, lambda *_: forget())
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
