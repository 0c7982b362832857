# SPDX-License-Identifier: Apache-2.0
"""A Deployment with hostUsers: false through upgrade, downgrade and upgrade, of the kubelet's version and of its feature gate."""
import json

import pytest
from nodensdev.cluster import Cluster
from nodenstest import skew
from nodenstest.people import Person
from nodenstest.skew import NAMESPACE, NOTHING_LEFT, REFUSED, USERNS, Journal, Kubelet

ON, OFF = {USERNS: True}, {USERNS: False}
CONTINUES = f"{skew.CONTINUES}, {NAMESPACE}"
# Kubelets that a Deployment runs on, one after the other, and the pods that replace those of the kubelet before.
PATHS = {
    "versions": [(Kubelet("1.33"), NAMESPACE), (Kubelet("1.34"), NAMESPACE), (Kubelet("1.33"), NAMESPACE), (Kubelet("1.34"), NAMESPACE)],
    "gate": [(Kubelet("1.34"), NAMESPACE), (Kubelet("1.34", OFF), REFUSED), (Kubelet("1.34", ON), NAMESPACE)],
}


def deployment(person: Person) -> None:
    labels = {"app": "web"}
    person.apply("Deployment", "web", api="apps/v1", spec={
        "replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": skew.spec_of(hostUsers=False)}})


def pods(person: Person) -> list[str]:
    """Of the deployment, without those that end."""
    items = json.loads(person.kubectl("get", "pods", "-l", "app=web", "-o", "json"))["items"]
    return sorted(item["metadata"]["name"] for item in items if not item["metadata"].get("deletionTimestamp"))


def both(person: Person) -> list[str]:
    return person.until(lambda: (found := pods(person)) and len(found) == 2 and found, "two pods of the deployment")


def replaced(person: Person) -> str:
    """What becomes of the pods that replace all of a deployment."""
    old = pods(person)
    if old:
        person.kubectl("delete", "pods", *old, "--timeout=300s", timeout=330)
    words = {skew.outcome(person, name).word for name in both(person)}
    assert len(words) == 1, words
    return words.pop()


@pytest.mark.parametrize("path", list(PATHS))
def test_a_deployment_lives_through_upgrade_downgrade_and_upgrade(one: Cluster, person: Person, journal: Journal, path: str) -> None:
    (first, _), *steps = PATHS[path]
    first.start(one)
    before = skew.traces(person)
    deployment(person)
    assert {skew.outcome(person, name).word for name in both(person)} == {NAMESPACE}
    last = NAMESPACE
    for number, (kubelet, expected) in enumerate(steps, 1):
        names = both(person)
        ran = {name: skew.identity(person, name) for name in names} if last == NAMESPACE else {}
        kubelet.start(one)
        row = f"{path} {number}: {steps[number - 2][0] if number > 1 else first} → {kubelet}"
        skew.seen(person, kubelet)
        words = {(skew.since(person, name, ran[name], CONTINUES) if ran else skew.outcome(person, name)).word for name in names}
        journal.write("deployment", row, "running pods", " and ".join(sorted(words)), CONTINUES if ran else expected)
        journal.write("deployment", row, "pods that replace them", replaced(person), expected)
        last = expected
    person.kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=300s", timeout=330)
    assert skew.delete(person, before).word == NOTHING_LEFT
