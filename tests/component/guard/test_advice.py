# SPDX-License-Identifier: Apache-2.0
"""What users of the guard read: refusals that say what to do, warnings at workloads, and labels
with unknown values."""
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import alone
import pytest
from conftest import Plane, scc

ROOT = {"runAsUser": 0}
LENGTH = 1024
TEMPLATES = {"PodTemplate": "v1", "ReplicationController": "v1", "DaemonSet": "apps/v1", "Deployment": "apps/v1", "ReplicaSet": "apps/v1",
             "StatefulSet": "apps/v1", "CronJob": "batch/v1", "Job": "batch/v1"}


def reason(output: str) -> str:
    """The guard's own part of a refusal."""
    return output.partition("denied the request: ")[2].strip()


def workload(kind: str, name: str, namespace: str, pod: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"restartPolicy": "Never" if kind in ("Job", "CronJob") else "Always", **pod}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec: dict[str, Any] = {"template": template}
    if kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"):
        spec["selector"] = {"matchLabels": labels}
    if kind == "CronJob":
        spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": spec}}
    body = {"template": template} if kind == "PodTemplate" else {"spec": spec}
    return {"apiVersion": TEMPLATES[kind], "kind": kind, "metadata": {"name": name, "namespace": namespace}, **body}


def apply_workload(plane: Plane, kind: str, name: str, namespace: str, context: dict[str, Any], **pod: Any) -> str:
    """What kubectl prints about a dry run by alice, who may not create PodTemplates."""
    container = {"name": "c", "image": "x", "securityContext": context}
    thing = workload(kind, name, namespace, {"containers": [container], **pod})
    return plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(thing),
                         user="" if kind == "PodTemplate" else "alice")


def test_the_command_in_a_refusal_lets_the_pod_pass(plane: Plane, node: str) -> None:
    ns = plane.namespace("told")
    text = reason(plane.create(ns, {}, context=ROOT, ok=False))
    command = re.match(r"pod would be admitted by userns-root in a user namespace, but serviceaccount told:default may not use it "
                       r"\((kubectl create rolebinding [^()]*)\); a new grant takes effect within seconds; or by restricted-v2 without "
                       r"spec\.containers\[0\]\.securityContext\.runAsUser; unable to validate", text)
    assert command, text
    assert len(text.encode()) <= LENGTH and text.count("provider ") <= 3, text
    assert re.search(r"and \d+ others: nodens lint --json --as alice --namespace told FILE\]$", text), text
    # an administrator runs it
    plane.kubectl(*shlex.split(command[1])[1:])
    pod = plane.eventually(lambda pod: scc(pod) == "userns-root", "the grant", ns, {}, context=ROOT)
    assert pod["spec"]["hostUsers"] is False


def test_the_change_in_a_refusal_lets_the_pod_pass(plane: Plane) -> None:
    ns = plane.namespace("changes")
    text = reason(plane.create(ns, {"hostPID": True, "hostNetwork": True}, ok=False))
    assert text.startswith("pod would be admitted by restricted-v2 without spec.hostNetwork, without spec.hostPID; as it is it needs "
                           "hostaccess, which serviceaccount changes:default may not use; unable to validate"), text
    assert "kubectl" not in text and len(text.encode()) <= LENGTH
    assert scc(plane.create(ns, {})) == "restricted-v2"


def test_hostusers_is_suggested_only_if_the_result_may_be_used(plane: Plane, node: str) -> None:
    ns = plane.namespace("suggests")
    pod = {"hostUsers": True}
    text = reason(plane.create(ns, pod, context=ROOT, ok=False))
    assert "hostUsers: false" not in text and "provider userns-root: " not in text, text
    assert text.startswith("pod would be admitted by restricted-v2 without spec.containers[0].securityContext.runAsUser; "), text
    plane.grant(ns, "nodens:scc:userns-root", "alice")
    plane.eventually(lambda output: reason(output).startswith("pod would be admitted by userns-root with spec.hostUsers: false; "),
                     "the grant", ns, pod, context=ROOT, ok=False)
    assert scc(plane.create(ns, {"hostUsers": False}, context=ROOT)) == "userns-root"


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_workload_is_warned_about_pods_that_would_be_refused(plane: Plane, node: str, kind: str) -> None:
    ns = plane.namespace(f"trial-{kind.lower()}", mode=None)
    output = apply_workload(plane, kind, "web", ns, ROOT)
    where = "template." if kind == "PodTemplate" else "spec.jobTemplate.spec.template." if kind == "CronJob" else "spec.template."
    assert (f"Warning: pods of {kind} web with serviceaccount {ns}:default would be refused if security.nodens.io/constraints were "
            "enforce: pod would be admitted by userns-root in a user namespace, but ") in output, output
    assert f"; or by restricted-v2 without {where}spec.containers[0].securityContext.runAsUser; " in output, output
    # a dry run that passes names the constraint
    output = apply_workload(plane, kind, "web", ns, {})
    assert (f"Warning: pods of {kind} web with serviceaccount {ns}:default would be admitted by restricted-v2 as user "
            "1000650000") in output, output


def test_the_service_account_of_the_template_counts_not_its_author(plane: Plane, node: str) -> None:
    ns = plane.namespace("authors")
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "strong", "namespace": ns}})
    plane.grant(ns, "nodens:scc:userns-root", "alice")
    plane.eventually(lambda pod: scc(pod) == "userns-root", "alice's grant", ns, {}, context=ROOT)
    output = apply_workload(plane, "Deployment", "web", ns, ROOT, serviceAccountName="strong")
    assert "Warning: pods of Deployment web with serviceaccount authors:strong will be refused: " in output, output
    plane.grant(ns, "nodens:scc:userns-root", f"system:serviceaccount:{ns}:strong")
    plane.eventually(lambda pod: scc(pod) == "userns-root", "the account's grant", ns, {"serviceAccountName": "strong"}, context=ROOT,
                     user="system:serviceaccount:kube-system:replicaset-controller")
    output = apply_workload(plane, "Deployment", "web", ns, ROOT, serviceAccountName="strong")
    assert "would be admitted by userns-root as user 0 in a user namespace" in output and "refused" not in output, output


def test_unknown_values_of_labels_are_refused_with_the_known_ones(plane: Plane) -> None:
    ns = plane.namespace("typos")
    refused = plane.kubectl("label", "namespace", ns, "security.nodens.io/constraints=enforced", "--overwrite", ok=False)
    assert ('Namespace "typos" is invalid: metadata.labels[security.nodens.io/constraints]: Invalid value: "enforced": must be one of '
            "off, warn, enforce") in refused
    refused = plane.kubectl("label", "namespace", ns, "security.nodens.io/user-namespaces=requir", ok=False)
    assert '"requir": must be one of default, require' in refused
    refused = plane.kubectl("create", "-f", "-", ok=False, stdin=json.dumps({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "odd", "labels": {"security.nodens.io/constraints": "yes"}}}))
    assert '"yes": must be one of off, warn, enforce' in refused
    plane.kubectl("label", "namespace", ns, "security.nodens.io/constraints=warn", "--overwrite")


def test_a_namespace_that_only_warns_does_not_warn_about_what_cannot_be_decided(tmp_path: Path) -> None:
    """The API server does not answer access reviews about this user."""
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    slow: dict[str, Any] = {"object": pod, "userInfo": {"username": "slow", "groups": []}}
    with alone.running(tmp_path) as one:
        one.api.namespace("unlabelled", None)
        one.api.slow_users = {"slow"}
        passed = one.decide("/validate/warn", namespace="unlabelled", **slow)
        assert passed["allowed"] is True and "warnings" not in passed, passed
        refused = one.decide("/validate/enforce", **slow)
        assert refused["allowed"] is False and refused["status"]["code"] == 503, refused


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[alone.Alone]:
    """A guard without a cluster: no roles, no node that offers user namespaces."""
    with alone.running(tmp_path_factory.mktemp("lone")) as one:
        yield one


ROOT_POD = {"containers": [{"name": "c", "image": "x", "securityContext": ROOT}]}


def test_a_refusal_is_short_and_begins_with_a_sentence(lone: alone.Alone) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": ROOT_POD}
    text = lone.decide("/mutate/enforce", object=pod)["status"]["message"]
    assert text.startswith("pod would be admitted by anyuid, but user dev may not use it; unable to validate against any security context "
                           "constraint: [provider "), text
    assert text.endswith(" others: nodens lint --json --as dev --namespace n FILE]") and text.count("provider ") == 3, text
    assert len(text) <= LENGTH


def test_a_template_is_never_refused(lone: alone.Alone) -> None:
    answer = lone.decide("/validate", resource={"group": "apps", "version": "v1", "resource": "deployments"},
                         object=workload("Deployment", "web", "n", ROOT_POD))
    assert answer["allowed"] is True
    assert answer["warnings"][0].startswith("pods of Deployment web with serviceaccount n:default will be refused: pod would be "), answer


def test_a_label_with_an_unknown_value_is_invalid(lone: alone.Alone) -> None:
    namespaces = {"group": "", "version": "v1", "resource": "namespaces"}
    thing = {"kind": "Namespace", "metadata": {"name": "p", "labels": {"security.nodens.io/user-namespaces": "requir"}}}
    answer = lone.decide("/validate", resource=namespaces, object=thing)
    assert answer["allowed"] is False and answer["status"]["code"] == 422, answer
    assert answer["status"]["message"].endswith('Invalid value: "requir": must be one of default, require'), answer
    # a value that is there already does not prevent other changes
    assert lone.decide("/validate", resource=namespaces, operation="UPDATE", object=thing, oldObject=thing)["allowed"] is True
