# SPDX-License-Identifier: Apache-2.0
"""`nodens audit` says yes only to workloads that run in a user namespace as they do without.

Every workload of the table runs twice, with the host's users and with hostUsers: false.
"""
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from nodensdev import cluster
from nodensdev.cluster.controlplane import STATE
from nodensdev.env import chroot
from nodenstest.audit_workloads import IMAGE_IDS, WORKLOADS, Workload, disk, objects
from nodenstest.people import PATIENCE, Person

NODENS = f"/nodens/build/{os.environ.get('NODENS_VARIANT', 'gcc')}/src/nodens"
NODE = "node1"
BATCH = 12                  # workloads at a time, two pods each
STUCK = 90                  # seconds after which a pod that is not expected to start, or waits with an error, will not start
TEMPLATES, HOST, OWN = "audit-templates", "audit-host", "audit-own"


@pytest.fixture(scope="module")
def people(running: cluster.Cluster) -> Iterator[dict[str, Person]]:
    """The same objects in three namespaces."""
    made = {name: Person(running, name) for name in (TEMPLATES, HOST, OWN)}
    for one in made.values():
        one.kubectl("create", "namespace", one.namespace)
        one.kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, objects())))
        path = f"/var/lib/{one.namespace}"
        one.on_node(f"mkdir -p {path}")
        one.cluster.kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, disk(one.namespace, NODE, path))))
        one.until(lambda one=one: one.cluster.kubectl("get", "serviceaccount", "default", "-n", one.namespace).returncode == 0,
                  "the service account")
    yield made
    for one in made.values():
        one.kubectl("delete", "pods,deployments", "--all", "--timeout=300s", timeout=330)
        one.kubectl("delete", "namespace", one.namespace, "--wait=false")


def verdicts(running: cluster.Cluster) -> dict[str, Any]:
    (running.state / "image-ids").write_text(IMAGE_IDS)
    place = chroot.Chroot(root="build", netns=running.netns, binds=(chroot.Bind(running.state, STATE),))
    with chroot.prepared(place) as inside:
        done = inside.capture([NODENS, "audit", "--json", f"--image-ids={STATE}/image-ids", "--kubeconfig", f"{STATE}/admin.kubeconfig"])
    assert done.returncode in (0, 1), done.stderr
    return {one["name"]: one for one in json.loads(done.stdout)["workloads"] if one["namespace"] == TEMPLATES}


def template(one: Workload) -> dict[str, Any]:
    labels = {"app": one.name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": one.name}, "spec": {
        "replicas": 0, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": one.pod_spec() | {"restartPolicy": "Always"}}}}


@dataclass
class Run:
    """What became of a pod."""

    works: bool
    what: str


def create(person: Person, one: Workload, spec: dict[str, Any]) -> Run | None:
    """None if the API accepts the pod."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": one.name}, "spec": spec}
    done = person.cluster.kubectl("create", "-n", person.namespace, "-f", "-", stdin=json.dumps(pod))
    return None if done.returncode == 0 else Run(False, f"refused: {done.stderr.strip()[-200:]}")


def outcome(pod: dict[str, Any], age: float, patience: float) -> Run | None:
    """None while it is open."""
    status = pod["status"]
    if status.get("phase") in ("Succeeded", "Failed"):
        return Run(status["phase"] == "Succeeded", f"{status['phase']} {status.get('message', '')}".strip())
    states = [one["state"].get("waiting", {}) for one in status.get("initContainerStatuses", []) + status.get("containerStatuses", [])]
    errors = [f"{one['reason']}: {one.get('message', '')[:200]}" for one in states if "Err" in one.get("reason", "")]
    if age > (STUCK if errors else patience):
        return Run(False, errors[0] if errors else f"{status.get('phase')} after {age:.0f} s")
    return None


def finish(person: Person, names: dict[str, str]) -> dict[str, Run]:
    """Waits for the pods, whose verdicts are given, with limits for those that never start, and removes them."""
    ended: dict[str, Run] = {}
    began = time.monotonic()
    while names.keys() - ended.keys():
        for pod in json.loads(person.kubectl("get", "pods", "-o", "json"))["items"]:
            name = pod["metadata"]["name"]
            if name in names and name not in ended and (
                    run := outcome(pod, time.monotonic() - began, PATIENCE if names[name] == "yes" else STUCK)):
                ended[name] = run
        assert time.monotonic() - began < 2 * PATIENCE + STUCK, f"{names.keys() - ended.keys()} did not end"
        time.sleep(1)
    if names:
        person.kubectl("delete", "pods", *names, "--wait=false")
    return ended


def run_both(people: dict[str, Person], batch: list[Workload]) -> dict[str, tuple[Run, Run]]:
    done: dict[str, dict[str, Run]] = {HOST: {}, OWN: {}}
    for one in batch:
        for where, spec in ((HOST, one.pod_spec()), (OWN, one.pod_spec() | {"hostUsers": False})):
            if refused := create(people[where], one, spec):
                done[where][one.name] = refused
    for where, known in done.items():
        open_ones = {one.name: one.verdict if where == OWN else "yes" for one in batch if one.name not in known}
        known.update(finish(people[where], open_ones))
    return {one.name: (done[HOST][one.name], done[OWN][one.name]) for one in batch}


def test_no_workload_that_is_called_ready_breaks_in_a_user_namespace(running: cluster.Cluster, people: dict[str, Person]) -> None:
    people[TEMPLATES].kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(template(one)) for one in WORKLOADS))
    judged = verdicts(running)
    assert {one.name: judged[one.name]["ready"] for one in WORKLOADS} == {one.name: one.verdict for one in WORKLOADS}
    run = [one for one in WORKLOADS if one.runs]
    runs: dict[str, tuple[Run, Run]] = {}
    for first in range(0, len(run), BATCH):
        runs |= run_both(people, run[first:first + BATCH])
    for one in run:
        host, own = runs[one.name]
        print(f"{one.name:24} {one.verdict:6} host users: {'works' if host.works else host.what}; user namespace: "
              f"{'works' if own.works else own.what}")
    broken = [one.name for one in run if not runs[one.name][0].works]
    assert broken == [], "with the host's users every workload works"
    wrong = [one.name for one in run if one.verdict == "yes" and not runs[one.name][1].works]
    ready = [one for one in run if one.verdict == "yes"]
    late = [one.name for one in run if one.verdict == "no" and runs[one.name][1].works]
    print(f"{len(run)} workloads run both ways, {len(ready)} of them ready, false yes: {len(wrong)}, false no: {len(late)} {late}")
    assert len(run) >= 40 and wrong == []


def test_the_kernels_maps_of_a_nodes_pods_agree_with_the_api(running: cluster.Cluster, people: dict[str, Person]) -> None:
    """On the node itself: one pod with a user namespace, one without, and no finding about either."""
    forever = Workload("forever", "yes", "sleep 100000")
    for where, spec in ((HOST, forever.pod_spec()), (OWN, forever.pod_spec() | {"hostUsers": False})):
        assert create(people[where], forever, spec) is None
        people[where].ready("forever")
    people[OWN].on_node("umask 077; cat >/run/audit.kubeconfig", stdin=(running.state / "admin.kubeconfig").read_text())
    said = people[OWN].on_node(f"nodens audit --json --node {NODE} --kubeconfig /run/audit.kubeconfig || test $? = 1; "
                               "rm /run/audit.kubeconfig")
    output = json.loads(said)
    assert not [one for one in output["findings"] if one["finding"] == "host-id-map"] and output["complete"]
    own = next(one for one in output["workloads"] if one["namespace"] == OWN and one["name"] == "forever")
    assert own["ready"] == "already"
