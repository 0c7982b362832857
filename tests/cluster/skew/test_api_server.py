# SPDX-License-Identifier: Apache-2.0
"""Feature gates of the API server, switched with pods running.

UserNamespacesSupport cannot be turned off in 1.36; an API server that emulates 1.35 can.
"""
from collections.abc import Iterator

import pytest
from nodensdev.cluster import Cluster, switch
from nodenstest import skew
from nodenstest.people import Person
from nodenstest.skew import (
    ENDED,
    HOST,
    HOST_NETWORK,
    INVALID,
    NAMESPACE,
    NOTHING_LEFT,
    REFUSED,
    UNSCHEDULED,
    USERNS,
    Journal,
    Kubelet,
    Outcome,
)

ALLOWS = f"--feature-gates={HOST_NETWORK}=true"
WITHOUT = ("--emulated-version=1.35", f"--feature-gates={USERNS}=false,ProcMountType=false")
CONTINUES = f"{skew.CONTINUES}, {NAMESPACE}"
ACCEPTED = "accepted"
ON, OFF = Kubelet("1.36", {HOST_NETWORK: True}), Kubelet("1.36")
BOTH = skew.spec_of(hostUsers=False, hostNetwork=True)


@pytest.fixture(autouse=True)
def restored(one: Cluster) -> Iterator[None]:
    yield
    switch.flags(one, "kube-apiserver")


def new_pod(person: Person, name: str, spec: dict[str, object]) -> Outcome:
    return skew.create(person, name, spec) or skew.outcome(person, name)


def update(person: Person, name: str, value: str) -> str:
    person.kubectl("label", "--overwrite", "pod", name, f"step={value}")
    return ACCEPTED


# Gates of API server and kubelet: what becomes of a pod that runs since both were on, and of a new one.
HOST_NETWORK_STEPS = {
    "API server off, kubelet on": ((), ON, CONTINUES, INVALID),
    "API server off, kubelet off": ((), OFF, ENDED, INVALID),
    "API server on, kubelet off": ((ALLOWS,), OFF, ENDED, UNSCHEDULED),
    "API server off and on again, kubelet on": ((ALLOWS,), ON, CONTINUES, NAMESPACE),
}


@pytest.mark.parametrize("row", list(HOST_NETWORK_STEPS))
def test_host_network_is_switched_with_a_pod_running(one: Cluster, person: Person, journal: Journal, row: str) -> None:
    """The API server's gate decides about new pods only; the kubelet's also about those that run."""
    flags, kubelet, running, created = HOST_NETWORK_STEPS[row]
    ON.start(one)
    switch.flags(one, "kube-apiserver", ALLOWS)
    before = skew.traces(person)
    assert new_pod(person, "pod", BOTH) == Outcome(NAMESPACE)
    ran = skew.identity(person, "pod")
    if "again" in row:
        switch.flags(one, "kube-apiserver")
    switch.flags(one, "kube-apiserver", *flags)
    kubelet.start(one)
    skew.seen(person, kubelet)
    journal.write("host network", row, "running pod", skew.since(person, "pod", ran, running), running)
    journal.write("host network", row, "its update", update(person, "pod", "label"), ACCEPTED)
    journal.write("host network", row, "new pod", new_pod(person, "new", BOTH), created)
    journal.write("host network", row, "deleted", skew.delete(person, before), NOTHING_LEFT)


def test_an_api_server_without_user_namespaces_drops_the_field(one: Cluster, person: Person, journal: Journal) -> None:
    """Pods that have the field keep it. Static pods never reach the API server, and the kubelet alone decides."""
    on, off = Kubelet("1.34"), Kubelet("1.34", {USERNS: False})
    spec = skew.spec_of(hostUsers=False)
    on.start(one)
    before = skew.traces(person)
    assert new_pod(person, "pod", spec) == Outcome(NAMESPACE)
    ran = skew.identity(person, "pod")
    steps = [("API server off, kubelet 1.34 on", WITHOUT, on, HOST), ("API server off, kubelet 1.34 off", WITHOUT, off, HOST),
             ("API server on, kubelet 1.34 off", (), off, REFUSED), ("API server on, kubelet 1.34 on", (), on, NAMESPACE)]
    for number, (row, flags, kubelet, expected) in enumerate(steps):
        switch.flags(one, "kube-apiserver", *flags)
        kubelet.start(one)
        found = new_pod(person, f"new{number}", spec)
        assert ("hostUsers" in person.get("pod", f"new{number}")["spec"]) == (expected != HOST)
        skew.seen(person, kubelet)
        journal.write("gate", row, "running pod", skew.since(person, "pod", ran, CONTINUES), CONTINUES)
        journal.write("gate", row, "its update", update(person, "pod", str(number)), ACCEPTED)
        journal.write("gate", row, "new pod", found, expected)
        assert person.get("pod", "pod")["spec"]["hostUsers"] is False
    assert skew.delete(person, before).word == NOTHING_LEFT


@pytest.mark.parametrize(("kubelet", "expected"), [(Kubelet("1.34"), NAMESPACE), (Kubelet("1.34", {USERNS: False}), REFUSED)], ids=str)
def test_a_static_pod_follows_the_kubelets_gate_alone(one: Cluster, person: Person, journal: Journal, kubelet: Kubelet,
                                                      expected: str) -> None:
    switch.flags(one, "kube-apiserver", *WITHOUT)
    kubelet.start(one)
    spec = skew.spec_of(hostUsers=False) | {"volumes": [{"name": "empty", "emptyDir": {}}, {"name": "words", "emptyDir": {}}]}
    spec["containers"][0]["command"] = ["sh", "-c", "sleep 100000"]
    journal.write("static", f"API server off, kubelet {kubelet}", "static pod", skew.static_pod(person, "skew", spec), expected)
