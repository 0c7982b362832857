# SPDX-License-Identifier: Apache-2.0
"""Pod security under our labels, beside the plugin in the API server.

The same labels under both prefixes give the same texts.
"""
import itertools
import json
import random
from typing import Any

import batch
import valid_pods
from conftest import Plane, wait_until

OURS, THEIRS = "pod-security.nodens.io/", "pod-security.kubernetes.io/"
ADVICE = [{"warn": level, "warn-version": version, "audit": audit, "audit-version": "v1.28"} for level, version, audit in
          [("restricted", "latest", "baseline"), ("restricted", "v1.24", "restricted"), ("baseline", "v1.36", "privileged"),
           ("restricted", "v1.30", "baseline"), ("baseline", "v1.0", "restricted")]]
PODS, TEMPLATES, REFUSALS = 240, 60, 120
WORDS = "admission webhook \"pod-security.security.nodens.io\" denied the request: "


def make_namespace(plane: Plane, name: str, labels: dict[str, str]) -> str:
    plane.apply({"apiVersion": "v1", "kind": "Namespace",
                 "metadata": {"name": name, "labels": {"security.nodens.io/constraints": "off", **labels}}})
    plane.namespace_known(name)
    return name


def twins(plane: Plane, name: str, labels: dict[str, str]) -> tuple[str, str]:
    """Two namespaces with the same labels, one under our prefix and one under the plugin's.

    An API server sends equal warnings once.
    """
    return (make_namespace(plane, f"{name}-ours", {OURS + key: value for key, value in labels.items()}),
            make_namespace(plane, f"{name}-theirs", {THEIRS + key: value for key, value in labels.items()}))


def creation(namespace: str, thing: dict[str, Any]) -> dict[str, Any]:
    kinds = {"Pod": "api/v1", "ReplicationController": "api/v1", "PodTemplate": "api/v1", "Deployment": "apis/apps/v1",
             "ReplicaSet": "apis/apps/v1",
             "StatefulSet": "apis/apps/v1", "DaemonSet": "apis/apps/v1", "Job": "apis/batch/v1", "CronJob": "apis/batch/v1"}
    path = f"/{kinds[thing['kind']]}/namespaces/{namespace}/{thing['kind'].lower()}s?dryRun=All"
    return {"method": "POST", "path": path, "body": thing, "user": "alice", "groups": ["system:masters", "system:authenticated"]}


def audit_of(plane: Plane, ids: set[str]) -> dict[str, dict[str, str]]:
    """Annotations of pod security in the audit log, by event and as [ours, theirs].

    An event may be written after its response.
    """
    found: dict[str, dict[str, str]] = {}

    def complete() -> bool:
        for line in (plane.one.state / "logs/audit.log").read_text().split("\n")[:-1]:
            event = json.loads(line)
            if event["auditID"] in ids and event["stage"] == "ResponseComplete":
                found[event["auditID"]] = event.get("annotations", {})
        return len(found) == len(ids)

    wait_until(complete, "every event in the audit log")
    return found


def ours(annotations: dict[str, str]) -> dict[str, str]:
    return {key.split("/")[1]: value for key, value in annotations.items() if ".security.nodens.io/" in key
            and key.startswith("pod-security")}


def theirs(annotations: dict[str, str]) -> dict[str, str]:
    return {key.split("/")[1]: value for key, value in annotations.items() if key.startswith(THEIRS)}


def compare(plane: Plane, pairs: list[tuple[str, str]], things: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Creates each object in both namespaces of a pair; all answers must be equal.

    These are status, denial, warnings and audit annotations. Returns how many there were of each.
    """
    requests = [creation(name, thing) for thing, pair in zip(things, itertools.cycle(pairs)) for name in pair]
    answers = batch.run(plane.one, requests)
    notes = audit_of(plane, {answer[3] for answer in answers})
    refused = warned = noted = 0
    for request, mine, other in zip(requests[::2], answers[::2], answers[1::2], strict=False):
        assert mine[0] == other[0] in (201, 403), f"{json.dumps(request)}\n{mine}\n{other}"
        assert mine[2] == other[2], f"{json.dumps(request)}\n{mine[2]}\n{other[2]}"
        notes_here, notes_there = ours(notes[mine[3]]), theirs(notes[other[3]])
        assert notes_here == notes_there, f"{json.dumps(request)}\n{notes_here}\n{notes_there}"
        if mine[0] == 403:
            assert mine[1]["message"] == WORDS + other[1]["message"]
        refused += mine[0] == 403
        warned += any("PodSecurity" in text for text in mine[2])
        noted += "audit-violations" in notes_here
    return refused, warned, noted


def test_warnings_and_audit_annotations_are_the_plugins(plane: Plane) -> None:
    rng = random.Random(1)
    pairs = [twins(plane, f"advice-{number}", labels) for number, labels in enumerate(ADVICE)]
    refused, warned, noted = compare(plane, pairs, [valid_pods.draw(rng, f"p{number}", obeys=True) for number in range(PODS)])
    assert refused == 0 and PODS / 3 < warned < PODS and PODS / 4 < noted < PODS
    print(f"{PODS} pods: {warned} warned about, {noted} in the audit, all equal to the plugin's")


def template(rng: random.Random, number: int) -> dict[str, Any]:
    pod = valid_pods.draw(rng, "x", obeys=True)
    kind = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController", "PodTemplate"][number % 8]
    inner: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
    name = {"metadata": {"name": f"t{number}"}}
    if kind in ("Job", "CronJob"):
        inner["spec"]["restartPolicy"] = "Never"
        job: dict[str, Any] = {"spec": {"template": inner}}
        body = job if kind == "Job" else {"spec": {"schedule": "* * * * *", "jobTemplate": job}}
        return {"apiVersion": "batch/v1", "kind": kind, **name, **body}
    if kind == "PodTemplate":
        return {"apiVersion": "v1", "kind": kind, **name, "template": inner}
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    selector: dict[str, Any] = {"a": "b"} if version == "v1" else {"matchLabels": {"a": "b"}}
    return {"apiVersion": version, "kind": kind, **name,
            "spec": {"selector": selector, "template": inner} | ({"serviceName": "s"} if kind == "StatefulSet" else {})}


def test_templates_of_controllers_are_warned_about_and_never_refused(plane: Plane) -> None:
    rng = random.Random(2)
    # a namespace that enforces also warns
    pair = twins(plane, "templates", {"enforce": "restricted", "audit": "baseline"})
    refused, warned, noted = compare(plane, [pair], [template(rng, number) for number in range(TEMPLATES)])
    assert refused == 0 and warned > TEMPLATES / 2 and noted > TEMPLATES / 8


def test_denials_have_the_plugins_texts(plane: Plane) -> None:
    rng = random.Random(3)
    levels = [("restricted", "latest"), ("baseline", "v1.29"), ("restricted", "v1.34")]
    pairs = [twins(plane, f"refuses-{number}", {"enforce": level, "enforce-version": version}) for number,
             (level, version) in enumerate(levels)]
    refused, _, _ = compare(plane, pairs, [valid_pods.draw(rng, f"p{number}", obeys=True) for number in range(REFUSALS)])
    assert REFUSALS / 4 < refused < REFUSALS
    print(f"{REFUSALS} pods: {refused} denied with the plugin's texts")


def test_a_stricter_namespace_warns_about_pods_it_would_deny(plane: Plane) -> None:
    name = make_namespace(plane, "stricter", {})
    bad: list[dict[str, Any]] = [{"hostPID": True}, {"hostPID": True}, {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, {}]
    for number, spec in enumerate(bad):
        plane.create(name, dict(spec), user="", name=f"there-{number}", dry_run=False)
    answers = batch.run(plane.one,
                        [{"method": "PATCH", "path": f"/api/v1/namespaces/{name}?dryRun=All", "type": "application/merge-patch+json",
                                     "body": {"metadata": {"labels": {prefix + "enforce": level}}}}
                                    for level in ("baseline", "restricted", "privileged") for prefix in (OURS, THEIRS)])
    for mine, other in zip(answers[::2], answers[1::2], strict=False):
        assert mine[0] == other[0] == 200 and mine[2] == other[2]
    assert answers[0][2] == ['existing pods in namespace "stricter" violate the new PodSecurity enforce level "baseline:latest"',
                             "there-0 (and 1 other pod): host namespaces", "there-2: hostPath volumes"]
    assert len(answers[2][2]) > 2 and answers[4][2] == []


def test_invalid_labels_are_denied_when_they_are_written(plane: Plane) -> None:
    for labels in ({"enforce": "mild"}, {"enforce": "baseline", "warn": "x", "enforce-version": "v2"},
                   {"warn-version": "new", "warn": "baseline"}):
        answers = batch.run(plane.one, [{"method": "POST", "path": "/api/v1/namespaces?dryRun=All", "body": {
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "odd", "labels": {prefix + key: value for key, value in labels.items()}}}}
            for prefix in (OURS, THEIRS)])
        mine, other = [body["message"] for _, body, _, _ in answers]
        assert answers[0][0] == answers[1][0] == 422
        assert mine.partition("denied the request: ")[2].replace(OURS, THEIRS) == other


def test_updates_that_change_no_image_pass(plane: Plane) -> None:
    name = make_namespace(plane, "relabelled", {})
    plane.create(name, {"hostPID": True}, user="", dry_run=False)
    plane.kubectl("label", "namespace", name, OURS + "enforce=baseline")
    words = 'violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'
    wait_until(lambda: words in plane.one.kubectl("set", "image", "pod/p", "c=y", "-n", name, "--dry-run=server").stderr, "a refusal")
    plane.kubectl("label", "pod", "p", "-n", name, "a=b")
