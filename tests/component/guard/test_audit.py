# SPDX-License-Identifier: Apache-2.0
"""`nodens audit` beside a stock API server: what it finds on a prepared cluster, nothing on a clean one, and hostile servers and lists."""
import contextlib
import json
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import BUILD, STATE, Plane, guarded, wait_until
from nodensdev import cluster
from nodensdev.cluster.options import Webhook
from nodenstest.audit_workloads import IMAGE_IDS, WORKLOADS, disk, objects

NODENS = f"{BUILD}/src/nodens"
GOOD, OLD, PLAIN = "good-node", "old-node", "plain-node"
RBAC = "rbac.authorization.k8s.io"
REPORTS = "wgpolicyk8s.io"
# The rights that man nodens-audit lists.
RULES = [
    ("", ["namespaces", "nodes", "pods", "replicationcontrollers", "persistentvolumes", "persistentvolumeclaims"]),
    ("apps", ["deployments", "statefulsets", "daemonsets", "replicasets"]), ("batch", ["jobs", "cronjobs"]),
    ("node.k8s.io", ["runtimeclasses"]), (RBAC, ["roles", "clusterroles", "rolebindings", "clusterrolebindings"]),
    ("security.nodens.io", ["securitycontextconstraints", "nodeversionfloors"]),
    ("security.openshift.io", ["securitycontextconstraints"])]
SEVEN = {"nested-container-pod", "user-namespace-constraint-pod", "user-namespace-constraint-grant", "node-without-user-namespaces",
         "host-id-map", "required-constraint-template", "host-network-user-namespace"}


def audit(plane: Plane, *arguments: str, status: int | None = None, kubeconfig: str = "admin") -> subprocess.CompletedProcess[str]:
    files = any(one.startswith("/") for one in arguments)
    live = () if files else ("--kubeconfig", f"{STATE}/{kubeconfig}.kubeconfig")
    done = plane.inside.capture([NODENS, "audit", *live, *arguments])
    assert status is None or done.returncode == status, f"{done.returncode}: {done.stdout[-3000:]}{done.stderr}"
    assert "SUMMARY: " not in done.stderr and "runtime error: " not in done.stderr, done.stderr
    return done


def result(plane: Plane, *arguments: str, status: int | None = None, **more: Any) -> Any:
    return json.loads(audit(plane, "--json", *arguments, status=status, **more).stdout)


def found(output: Any) -> set[str]:
    return {one["finding"] for one in output["findings"]}


def of(output: Any, finding: str) -> list[dict[str, Any]]:
    return [one for one in output["findings"] if one["finding"] == finding]


def node_object(plane: Plane, name: str, version: str, offers: bool) -> None:
    plane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    info = dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeProxyVersion",
                          "architecture"), "x") | {"kubeletVersion": version, "operatingSystem": "linux"}
    status = {"status": {"nodeInfo": info, "runtimeHandlers": [{"name": "", "features": {"userNamespaces": offers}}]}}
    plane.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps(status))


@pytest.fixture(scope="module")
def audited() -> Iterator[Plane]:
    """A cluster of its own: the others' objects would be findings. One node object offers user namespaces."""
    options = cluster.Options(name="guard-audit", nodes=0, images=(), webhooks=(Webhook("guard", "exec sleep infinity"),))
    with guarded(options, allocateRanges=False) as made:
        node_object(made, GOOD, "v1.36.3", True)
        yield made


def template(namespace: str, name: str, spec: dict[str, Any], **annotations: str) -> dict[str, Any]:
    """A Deployment without pods."""
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace}, "spec": {
        "replicas": 0, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": {**spec, "restartPolicy": "Always"}}}}


def test_a_clean_cluster_has_no_findings(audited: Plane) -> None:
    output = result(audited, status=0)
    assert output["findings"] == [] and output["complete"] and output["errors"] == [] and output["objects"] > 50
    said = audit(audited, status=0)
    assert "0 findings, 0 violations" in said.stdout and said.stderr == ""


@pytest.fixture(scope="module")
def prepared(audited: Plane) -> Plane:
    """What six of the findings are about; the seventh is on a node."""
    for name in ("builders", "roots", "networks"):
        audited.namespace(name)
    audited.grant("builders", "nodens:scc:nested-container", "alice")
    audited.grant("roots", "nodens:scc:userns-root", "alice")
    node_object(audited, OLD, "v1.29.6", True)
    node_object(audited, PLAIN, "v1.36.3", False)
    engine = {"runAsUser": 1000, "procMount": "Unmasked", "capabilities": {"add": ["SETUID", "SETGID"]}}
    audited.eventually(lambda pod: True, "the grant", "builders", {"hostUsers": False}, context=engine)
    audited.eventually(lambda pod: True, "the grant", "roots", {"hostUsers": False}, context={"runAsUser": 0})
    audited.create("builders", {"hostUsers": False, "nodeName": GOOD}, context=engine, name="engine", dry_run=False)
    audited.create("roots", {"hostUsers": False, "nodeName": GOOD}, context={"runAsUser": 0}, name="root", dry_run=False)
    audited.kubectl("create", "namespace", "unlabelled")
    wait_until(lambda: audited.one.kubectl("get", "serviceaccount", "default", "-n", "unlabelled").returncode == 0, "the service account")
    for name, where in (("on-old", OLD), ("on-plain", PLAIN)):
        audited.create("unlabelled", {"hostUsers": False, "nodeName": where}, user="", name=name, dry_run=False)
    audited.create("unlabelled", {"hostUsers": False, "hostNetwork": True}, user="", name="own-users-host-network", dry_run=False)
    audited.apply(template("unlabelled", "comes-back", {"hostUsers": False, "containers": [{"name": "c", "image": "x"}]},
                           **{"security.nodens.io/required-scc": "nested-container"}))
    return audited


def beside_process(plane: Plane, uid: str, *arguments: str) -> Any:
    """The result beside a process of the host's user namespace in the cgroup of a pod, as a runtime without user namespaces starts it."""
    group = f"/sys/fs/cgroup/kubepods/pod{uid}/c"
    words = " ".join([NODENS, "audit", "--json", "--kubeconfig", f"{STATE}/admin.kubeconfig", *arguments])
    script = f"""
mkdir -p {group}
sh -c 'echo $$ >{group}/cgroup.procs && exec unshare -m sleep 1000' &
for i in $(seq 100); do grep -q sleep /proc/$!/comm && break; sleep 0.1; done
{words}
status=$?
kill $!; wait $!; rmdir {group} {group}/..
exit $status"""
    done = plane.inside.capture(["sh", "-c", script])
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)


def test_each_of_the_seven_is_found(prepared: Plane) -> None:
    output = result(prepared, status=1)
    assert found(output) - {"violates-pod-security"} == SEVEN - {"host-id-map"}
    assert [(one["namespace"], one["name"]) for one in of(output, "nested-container-pod")] == [("builders", "engine")]
    assert [(one["namespace"], one["name"]) for one in of(output, "user-namespace-constraint-pod")] == [("roots", "root")]
    assert {(one["kind"], one["namespace"], one["message"].split(",")[0]) for one in of(output, "user-namespace-constraint-grant")} == {
        ("RoleBinding", "builders", "user alice may use nested-container"), ("RoleBinding", "roots", "user alice may use userns-root")}
    assert {one["name"] for one in of(output, "node-without-user-namespaces")} == {"on-old", "on-plain"}
    assert [one["name"] for one in of(output, "required-constraint-template")] == ["comes-back"]
    assert [one["name"] for one in of(output, "host-network-user-namespace")] == ["own-users-host-network"]
    uid = json.loads(prepared.kubectl("get", "pod", "root", "-n", "roots", "-o", "json"))["metadata"]["uid"]
    assert found(beside_process(prepared, uid, "--node", GOOD)) >= SEVEN
    assert "host-id-map" not in found(beside_process(prepared, uid, "--node", PLAIN)), "the pod is on another node"
    assert "host-id-map" not in found(result(prepared, "--node", GOOD)), "no process"
    said = audit(prepared, status=1).stdout
    assert re.search(r"^nested-container-pod +builders +Pod engine ", said, re.MULTILINE)


def test_files_give_the_same_result_as_the_cluster(prepared: Plane) -> None:
    kinds = ("namespaces,nodes,runtimeclasses,clusterroles,roles,clusterrolebindings,rolebindings,pv,pvc,deployments,statefulsets,"
             "daemonsets,replicasets,rc,cronjobs,jobs,pods,securitycontextconstraints.security.nodens.io")
    (prepared.one.state / "lists.json").write_text(prepared.kubectl("get", "-A", "-o", "json", kinds))
    live, files = result(prepared, status=1), result(prepared, f"{STATE}/lists.json", status=1)
    assert live["findings"] == files["findings"] and live["workloads"] == files["workloads"] and live["namespaces"] == files["namespaces"]
    # a list as the API itself gives it, whose items have no kind
    raw = prepared.kubectl("get", "--raw", "/api/v1/pods")
    (prepared.one.state / "pods.json").write_text(raw)
    assert {one["finding"] for one in result(prepared, f"{STATE}/pods.json")["findings"]} >= {"nested-container-pod"}


def test_the_documented_rights_suffice_and_missing_ones_are_reported(prepared: Plane) -> None:
    rules = [{"apiGroups": [group], "resources": names, "verbs": ["get", "list"]} for group, names in RULES]
    for name, some in (("auditor", rules), ("half-auditor", rules[:1])):
        prepared.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}},
            {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": some},
            {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
             "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
             "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]})
        config = json.loads((prepared.one.state / "admin.kubeconfig").read_text())
        config["users"] = [{"name": "admin", "user": {"token": prepared.kubectl("create", "token", name).strip()}}]
        (prepared.one.state / f"{name}.kubeconfig").write_text(json.dumps(config))
    wait_until(lambda: audit(prepared, kubeconfig="auditor").returncode == 1, "the rights")
    assert result(prepared, status=1, kubeconfig="auditor")["findings"] == result(prepared, status=1)["findings"]
    half = audit(prepared, "--json", status=2, kubeconfig="half-auditor")
    assert "/apis/apps/v1/deployments" in half.stderr and "403" in half.stderr
    assert not json.loads(half.stdout)["complete"] and "host-network-user-namespace" in found(json.loads(half.stdout))


def test_pods_that_are_older_than_a_rule_are_violations(prepared: Plane) -> None:
    ns = prepared.namespace("rules", mode=None)
    prepared.create(ns, {"hostPID": True}, user="", name="older", dry_run=False)
    prepared.kubectl("label", "namespace", ns, "security.nodens.io/constraints=enforce", "security.nodens.io/user-namespaces=require",
                     "pod-security.kubernetes.io/enforce=baseline")
    mine = {one["finding"] for one in result(prepared)["findings"] if one["namespace"] == ns}
    assert mine == {"violates-constraints", "violates-user-namespaces", "violates-pod-security"}


def test_verdicts_of_the_workloads_of_the_table(audited: Plane) -> None:
    """tests/cluster/scenarios/test_audit.py runs the same workloads."""
    ns = "table"
    audited.kubectl("create", "namespace", ns)
    audited.kubectl("apply", "-n", ns, "-f", "-", stdin="\n---\n".join(map(json.dumps, objects())))
    audited.apply(*disk(ns, GOOD, "/var/lib/disk"), *(template(ns, one.name, one.pod_spec()) for one in WORKLOADS))
    (audited.one.state / "image-ids").write_text(IMAGE_IDS)
    for name in (OLD, PLAIN):
        audited.kubectl("delete", "node", name, "--ignore-not-found")
    output = result(audited, f"--image-ids={STATE}/image-ids")
    judged = {one["name"]: one for one in output["workloads"] if one["namespace"] == ns}
    wrong = [f"{one.name}: {judged[one.name]['ready']} {judged[one.name]['reasons']}, not {one.verdict}" for one in WORKLOADS
             if judged[one.name]["ready"] != one.verdict or one.reason not in " ".join(judged[one.name]["reasons"])]
    assert len(WORKLOADS) >= 40 and wrong == []
    summary = next(one for one in output["namespaces"] if one["name"] == ns)
    assert summary["label"] == "default" and "hostUsers: true in" in summary["before"]
    assert summary["command"] == f"kubectl label --overwrite namespace {ns} security.nodens.io/constraints=enforce " \
                                 "security.nodens.io/user-namespaces=default"
    # without its nodes a cluster is ready for nothing
    audited.kubectl("cordon", GOOD)
    assert all(one["ready"] != "yes" for one in result(audited)["workloads"])
    audited.kubectl("uncordon", GOOD)


def test_the_label_of_the_advice_gives_pods_a_user_namespace(audited: Plane) -> None:
    ns = audited.namespace("ratchet", mode=None)
    audited.apply(template(ns, "web", {"containers": [{"name": "c", "image": "x", "securityContext": {"runAsUser": 1000}}]}))
    advice = next(one for one in result(audited)["namespaces"] if one["name"] == ns)
    assert advice["label"] == "require" and advice["before"] == ""
    audited.kubectl(*advice["command"].split()[1:])
    audited.kubectl("scale", "deployment", "web", "-n", ns, "--replicas=1")

    def pods() -> list[dict[str, Any]]:
        return json.loads(audited.kubectl("get", "pods", "-n", ns, "-o", "json"))["items"]

    wait_until(pods, "a pod of the deployment")
    assert pods()[0]["spec"]["hostUsers"] is False
    after = next(one for one in result(audited)["namespaces"] if one["name"] == ns)
    assert after["command"] == "", "nothing is left to do"


# ---- policy reports ----

def report_definition(kind: str, plural: str, scope: str) -> dict[str, Any]:
    """The fields and values of wgpolicyk8s.io/v1alpha2 that a report may have."""
    text, texts = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}
    count = {"type": "integer"}
    item = {"type": "object", "required": ["policy"], "properties": {
        "source": text, "policy": text, "rule": text, "category": text, "message": text, "properties": texts, "scored": {"type": "boolean"},
        "severity": {"type": "string", "enum": ["critical", "high", "low", "medium", "info"]},
        "result": {"type": "string", "enum": ["pass", "fail", "warn", "error", "skip"]},
        "resources": {"type": "array", "items": {"type": "object", "properties": dict.fromkeys(
            ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"), text)}}}}
    schema = {"type": "object", "properties": {"results": {"type": "array", "items": item}, "summary": {
        "type": "object", "properties": dict.fromkeys(("pass", "fail", "warn", "error", "skip"), count)}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
        "name": f"{plural}.{REPORTS}", "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}}, "spec": {
        "group": REPORTS, "scope": scope, "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
        "versions": [{"name": "v1alpha2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}


def test_policy_reports_are_printed_applied_and_removed(prepared: Plane) -> None:
    names = (("PolicyReport", "policyreports", "Namespaced"), ("ClusterPolicyReport", "clusterpolicyreports", "Cluster"))
    prepared.apply(*(report_definition(*one) for one in names))
    for _, plural, _ in names:
        prepared.kubectl("wait", "--for=condition=Established", f"crd/{plural}.{REPORTS}")
    subjects = [{"apiGroup": RBAC, "kind": "Group", "name": "team"}]
    prepared.apply({"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "wide"}, "subjects": subjects,
                    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "nodens:scc:userns-root"}})
    printed = audit(prepared, "--policy-report", status=1).stdout
    prepared.kubectl("apply", "--validate=strict", "--dry-run=server", "-f", "-", stdin=printed)
    wait_until(lambda: audit(prepared, "--policy-report", "--apply").returncode == 1, "the definitions in the API server")

    def reports() -> dict[str, Any]:
        listed = json.loads(prepared.kubectl("get", "policyreports,clusterpolicyreports", "-A", "-o", "json"))["items"]
        return {one["metadata"].get("namespace", ""): one for one in listed}

    builders = reports()["builders"]
    rules = {one["rule"] for one in builders["results"]}
    assert {"nested-container-pod", "user-namespace-constraint-grant"} <= rules and builders["summary"]["fail"] == len(
        [one for one in builders["results"] if one["result"] == "fail"])
    assert [one["resources"][0]["name"] for one in reports()[""]["results"]] == ["wide"]
    prepared.kubectl("delete", "clusterrolebinding", "wide")
    audit(prepared, "--policy-report", "--apply", status=1)
    assert "" not in reports() and "builders" in reports()


# ---- hostile input ----

def listed(kind: str, *items: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": kind, **one} for one in items]})


def test_control_characters_of_names_do_not_reach_a_terminal(audited: Plane) -> None:
    evil = "a\x1b]0;owned\x07\x1b[2J\u202e\r\n$(id)`id`;reboot"
    metadata = {"name": evil, "namespace": evil, "uid": evil, "annotations": {"openshift.io/scc": "nested-container"}}
    (audited.one.state / "evil.json").write_text(listed("Pod", {"metadata": metadata, "spec": {
        "containers": [{"name": evil, "image": evil, "securityContext": {"privileged": True}}]}}, {"metadata": {"name": evil}, "spec": 5}))
    for words in ((), ("--workloads",), ("--json",), ("--policy-report",)):
        done = audit(audited, *words, f"{STATE}/evil.json", status=2)
        for text in (done.stdout, done.stderr):
            assert not any(c in text for c in "\x1b\x07\u202e\r"), repr(text)
            assert not any(ord(c) < 32 and c not in "\n" for c in text), repr(text)
        assert "kubectl" not in done.stdout, "a hostile name is in no command"


def test_files_beyond_the_limits_are_refused(audited: Plane) -> None:
    deep = "[" * 100000 + "]" * 100000
    (audited.one.state / "deep.json").write_text(deep)
    assert "deep.json" in audit(audited, f"{STATE}/deep.json", status=2).stderr
    (audited.one.state / "empty.json").write_text("{}")
    assert "no objects" in audit(audited, f"{STATE}/empty.json", status=2).stderr
    with (audited.one.state / "long.json").open("wb") as file:
        file.truncate((256 << 20) + 1)
    assert "long.json" in audit(audited, f"{STATE}/long.json", status=2).stderr
    (audited.one.state / "long.json").unlink()


def test_a_large_cluster_is_audited_in_little_memory(audited: Plane) -> None:
    """100,000 pods in one file of 60 MB; a live cluster is read in pages."""
    items = ",".join(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": f"p{i}", "namespace": f"n{i % 1000}", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"r{i % 5000}", "controller": True}],
        "annotations": {"security.nodens.io/scc": "nested-container"}}, "spec": {
            "hostUsers": False, "containers": [{"name": "c", "image": "registry.example/x:1"}]}}) for i in range(100_000))
    (audited.one.state / "large.json").write_text(f'{{"apiVersion": "v1", "kind": "List", "items": [{items}]}}')
    began = time.monotonic()
    output = result(audited, f"{STATE}/large.json", status=1)
    print(f"100,000 pods of a file in {time.monotonic() - began:.1f} s")
    assert sum(one["pods"] for one in output["findings"]) == 100_000 and len(output["findings"]) == 5000
    assert "and 4000 more" in audit(audited, f"{STATE}/large.json", status=1).stdout
    (audited.one.state / "large.json").unlink()


@contextlib.contextmanager
def hostile_server(plane: Plane, name: str, script: str) -> Iterator[str]:
    """A server in the cluster's network; returns the name of a kubeconfig."""
    (plane.one.state / f"{name}.py").write_text(SERVER + script)
    process = subprocess.Popen(plane.inside.command(["python3", "-B", f"{STATE}/{name}.py"]), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        port = int(process.stdout.readline())
        (plane.one.state / f"{name}.kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [
                {"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{port}"}}], "users": [{"name": "x", "user": {}}]}))
        yield name
    finally:
        process.kill()
        process.wait(timeout=30)


SERVER = """
import http.server, json, sys, time
count = 0
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *words): pass
    def do_GET(self):
        try: answer(self)
        except OSError: pass
def send(self, body, status=200, length=None):
    self.send_response(status)
    self.send_header("Content-Length", str(length or len(body)))
    self.end_headers()
    self.wfile.write(body)
def page(token, items=()):
    return json.dumps({"kind": "List", "metadata": {"continue": token}, "items": list(items)}).encode()
def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
"""
HOSTILE: dict[str, tuple[str, str]] = {
    "new-token-forever": ("""
def answer(self):
    global count
    count += 1
    send(self, page(f"t{count}"))
serve()
""", "--timeout"),
    "same-token-forever": ("""
def answer(self): send(self, page("again"))
serve()
""", "the server repeats a page"),
    "never-ends": ("""
def answer(self):
    self.send_response(200)
    self.send_header("Transfer-Encoding", "chunked")
    self.end_headers()
    while True:
        self.wfile.write(b"1\\r\\n \\r\\n")
        self.wfile.flush()
        time.sleep(0.05)
serve()
""", ""),
    "endless-bytes": ("""
def answer(self):
    send(self, b"", length=1 << 40)
    while True: self.wfile.write(b"x" * 65536)
serve()
""", ""),
    "always-busy": ("""
def answer(self):
    self.send_response(429)
    self.send_header("Retry-After", "100000")
    self.send_header("Content-Length", "0")
    self.end_headers()
serve()
""", "429"),
    "deep": ("""
def answer(self): send(self, b"[" * 1000000)
serve()
""", ""),
    "wrong-types": ("""
def answer(self): send(self, json.dumps({"metadata": {"continue": 5}, "items": [5, None, [], {"metadata": 7}, {"spec": []}]}).encode())
serve()
""", ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_server_cannot_hold_the_audit(audited: Plane, name: str) -> None:
    script, words = HOSTILE[name]
    with hostile_server(audited, name, script) as config:
        began = time.monotonic()
        done = audit(audited, "--json", "--timeout", "5", status=2, kubeconfig=config)
        seconds = time.monotonic() - began
    assert words in done.stderr and seconds < 60, f"{seconds:.0f} s: {done.stderr}"
    assert not json.loads(done.stdout)["complete"] and json.loads(done.stdout)["findings"] == []


def test_wrong_options_are_refused(audited: Plane) -> None:
    for words in (("--apply",), ("--json", "--policy-report"), ("--minimum-version", "new"), ("--policy-report", "--apply", "/dev/null"),
                  ("--timeout", "100000")):
        audit(audited, *words, status=64)
