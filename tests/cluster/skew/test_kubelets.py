# SPDX-License-Identifier: Apache-2.0
"""Pods with each value of hostUsers under each kubelet, with its feature gates on and off; the API server has all of them on."""
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from nodensdev.cluster import Cluster, switch
from nodenstest import skew
from nodenstest.people import Person
from nodenstest.skew import HOST, HOST_NETWORK, NAMESPACE, NOTHING_LEFT, REFUSED, UNSCHEDULED, USERNS, Journal, Kubelet, Outcome

COLUMNS = ("unset", "true", "false", "false, root, restricted", "false, host network", "the same, bound to the node")
ON, OFF = {USERNS: True}, {USERNS: False}
# What becomes of the pods of COLUMNS.
ROWS = {
    Kubelet("1.36", {HOST_NETWORK: True}): (HOST, HOST, NAMESPACE, NAMESPACE, NAMESPACE, NAMESPACE),
    Kubelet("1.36"): (HOST, HOST, NAMESPACE, NAMESPACE, UNSCHEDULED, REFUSED),
    Kubelet("1.34"): (HOST, HOST, NAMESPACE, NAMESPACE, UNSCHEDULED, NAMESPACE),
    Kubelet("1.34", OFF): (HOST, REFUSED, REFUSED, REFUSED, UNSCHEDULED, REFUSED),
    Kubelet("1.33"): (HOST, HOST, NAMESPACE, NAMESPACE, UNSCHEDULED, NAMESPACE),
    Kubelet("1.33", OFF): (HOST, REFUSED, REFUSED, REFUSED, UNSCHEDULED, REFUSED),
    Kubelet("1.32", ON): (HOST, HOST, NAMESPACE, NAMESPACE, UNSCHEDULED, NAMESPACE),
    Kubelet("1.32"): (HOST, REFUSED, REFUSED, REFUSED, UNSCHEDULED, REFUSED),
    Kubelet("1.29", ON): (HOST, HOST, NAMESPACE, NAMESPACE, UNSCHEDULED, NAMESPACE),
    Kubelet("1.29"): (HOST, HOST, HOST, HOST, UNSCHEDULED, HOST),
}
# Kubelets that do not start with a gate, and the end of what they say about it.
REFUSED_GATES = {
    Kubelet("1.36", OFF): "cannot set feature gate UserNamespacesSupport to false, feature is locked to true",
    Kubelet("1.34", {HOST_NETWORK: True}): "unrecognized feature gate: UserNamespacesHostNetworkSupport",
    Kubelet("1.33", {HOST_NETWORK: True}): "unrecognized feature gate: UserNamespacesHostNetworkSupport",
}


@dataclass(frozen=True)
class Row:
    """A kubelet with a pod for each column."""

    kubelet: Kubelet
    people: dict[str, Person]       # of each column
    before: set[str]
    refused: dict[str, Outcome] = field(default_factory=dict)       # by the API server


SPECS = {
    "unset": skew.spec_of(),
    "true": skew.spec_of(hostUsers=True),
    "false": skew.spec_of(hostUsers=False),
    "false, root, restricted": skew.restricted_root(),
    "false, host network": skew.spec_of(hostUsers=False, hostNetwork=True),
    "the same, bound to the node": skew.spec_of(hostUsers=False, hostNetwork=True, nodeName="node1"),
}


def pod_of(column: str) -> str:
    return f"pod{COLUMNS.index(column)}"


@pytest.fixture(scope="module", params=list(ROWS), ids=str)
def row(request: pytest.FixtureRequest, lenient: Cluster) -> Iterator[Row]:
    kubelet: Kubelet = request.param
    kubelet.start(lenient)
    plain = skew.new_person(lenient)
    strict = skew.new_person(lenient, **{"pod-security.kubernetes.io/enforce": "restricted"})
    made = Row(kubelet, {column: strict if "restricted" in column else plain for column in COLUMNS}, skew.traces(plain))
    for column in COLUMNS:
        answer = skew.create(made.people[column], pod_of(column), SPECS[column])
        if answer:
            made.refused[column] = answer
    yield made
    for person in (plain, strict):
        skew.end(person)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_pod_has_a_definite_outcome(row: Row, column: str, journal: Journal) -> None:
    found = row.refused.get(column) or skew.outcome(row.people[column], pod_of(column))
    journal.write("pods", str(row.kubelet), column, found, ROWS[row.kubelet][COLUMNS.index(column)])


def test_outcomes_are_final_and_deleted_pods_leave_nothing(row: Row, journal: Journal) -> None:
    """Nor has one that was refused been started since."""
    for column, expected in zip(COLUMNS, ROWS[row.kubelet], strict=True):
        if expected in (REFUSED, UNSCHEDULED):
            assert not row.people[column].status(pod_of(column)).get("containerStatuses", [{}])[0].get("started")
    plain, strict = row.people["unset"], row.people["false, root, restricted"]
    strict.kubectl("delete", "pods", "--all", "--timeout=300s", timeout=330)
    journal.write("pods", str(row.kubelet), "deleted", skew.delete(plain, row.before), NOTHING_LEFT)


@pytest.mark.parametrize("kubelet", list(REFUSED_GATES), ids=str)
def test_a_kubelet_does_not_start_with_a_gate_that_it_cannot_have(plain: Cluster, person: Person, kubelet: Kubelet,
                                                                  journal: Journal) -> None:
    """Pods that run keep running meanwhile."""
    skew.create(person, "pod", skew.spec_of(hostUsers=False))
    assert skew.outcome(person, "pod").word == NAMESPACE
    before = skew.identity(person, "pod")
    moment = person.on_node("date +%s").strip()
    switch.kubelet(plain, kubelet.version, kubelet.gates, ready=False)
    text = REFUSED_GATES[kubelet]
    person.until(lambda: text in person.on_node(f"journalctl -u kubelet.service --since=@{moment} --no-pager"), "the kubelet's error")
    assert person.on_node("systemctl show kubelet.service -p ActiveState --value").strip() != "active"
    Kubelet("1.36").start(plain)
    assert skew.since(person, "pod", before, skew.CONTINUES).word == f"{skew.CONTINUES}, {NAMESPACE}"
    journal.write("start", str(kubelet), "outcome", Outcome("does not start", text), "does not start")


@pytest.mark.parametrize(("gates", "expected"), [({}, REFUSED), (ON, NAMESPACE)], ids=["default gates", "gate on"])
def test_a_relinked_kubelet_reports_an_older_version_and_has_its_gates(plain: Cluster, person: Person, gates: dict[str, bool],
                                                                       expected: str) -> None:
    """For tests of what is decided by the version that a node reports."""
    Kubelet("relinked", gates).start(plain)
    assert person.get("node", "node1")["status"]["nodeInfo"]["kubeletVersion"] == "v1.28.15"
    skew.create(person, "pod", skew.spec_of(hostUsers=False))
    assert skew.outcome(person, "pod").word == expected
