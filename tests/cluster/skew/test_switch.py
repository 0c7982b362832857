# SPDX-License-Identifier: Apache-2.0
"""Another kubelet, or other feature gates, under running pods: upgrades, downgrades, a gate turned off and on."""
import pytest
from nodensdev.cluster import Cluster
from nodenstest import skew
from nodenstest.people import Person
from nodenstest.skew import HOST, NAMESPACE, NOTHING_LEFT, REFUSED, STOPPED, USERNS, Journal, Kubelet

ON, OFF = {USERNS: True}, {USERNS: False}
CONTINUES = f"{skew.CONTINUES}, {NAMESPACE}"
# From one kubelet to the next: what becomes of a running pod with hostUsers: false, and of a new one.
SWITCHES = [
    (Kubelet("1.33"), Kubelet("1.34"), CONTINUES, NAMESPACE),
    (Kubelet("1.34"), Kubelet("1.36"), CONTINUES, NAMESPACE),
    (Kubelet("1.36"), Kubelet("1.34"), CONTINUES, NAMESPACE),
    (Kubelet("1.34"), Kubelet("1.33"), CONTINUES, NAMESPACE),
    (Kubelet("1.34"), Kubelet("1.34", OFF), CONTINUES, REFUSED),
    (Kubelet("1.33"), Kubelet("1.33", OFF), CONTINUES, REFUSED),
    (Kubelet("1.32", ON), Kubelet("1.32"), CONTINUES, REFUSED),
    (Kubelet("1.33"), Kubelet("1.32"), CONTINUES, REFUSED),
    (Kubelet("1.33"), Kubelet("1.29"), STOPPED, HOST),
    (Kubelet("1.29", ON), Kubelet("1.29"), CONTINUES, HOST),
    (Kubelet("1.29"), Kubelet("1.33"), STOPPED, NAMESPACE),
]

@pytest.mark.parametrize(("old", "new", "running", "created"), SWITCHES, ids=[f"{old} to {new}" for old, new, _, _ in SWITCHES])
def test_pods_survive_another_kubelet_and_leave_nothing(one: Cluster, person: Person, journal: Journal, old: Kubelet, new: Kubelet,
                                                        running: str, created: str) -> None:
    old.start(one)
    before = skew.traces(person)
    skew.create(person, "old", skew.spec_of(hostUsers=False))
    skew.outcome(person, "old")
    ran = skew.identity(person, "old")
    new.start(one)
    skew.create(person, "new", skew.spec_of(hostUsers=False))
    found = skew.outcome(person, "new")
    skew.seen(person, new)
    row = f"{old} → {new}"
    journal.write("switch", row, "running pod", skew.since(person, "old", ran, running), running)
    journal.write("switch", row, "new pod", found, created)
    journal.write("switch", row, "deleted", skew.delete(person, before), NOTHING_LEFT)
