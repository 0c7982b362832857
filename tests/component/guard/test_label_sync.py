# SPDX-License-Identifier: Apache-2.0
"""Labels of pod security that follow from constraints: computed, reported in a dry run, written, and never beyond a grant."""
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Plane, guard_config, guard_running, wait_until

KINDS = ("enforce", "warn", "audit")
PREFIX = "pod-security.kubernetes.io/"
OPT_IN = "security.nodens.io/pod-security-labels=sync"
PORT = 9481
METRIC = "nodens_guard_label_sync_namespaces_"


def labels(plane: Plane, namespace: str) -> dict[str, str]:
    found = json.loads(plane.kubectl("get", "namespace", namespace, "-o", "json"))["metadata"]["labels"]
    return {key.removeprefix(PREFIX): value for key, value in found.items() if key.startswith(PREFIX)}


def of_level(level: str) -> dict[str, str]:
    return {kind: level for kind in KINDS} | {f"{kind}-version": "latest" for kind in KINDS}


def has_level(plane: Plane, namespace: str, level: str) -> None:
    try:
        wait_until(lambda: labels(plane, namespace) == of_level(level), f"the level {level} in {namespace}")
    except AssertionError as error:
        raise AssertionError(f"{error}: {labels(plane, namespace)}") from None


def wait_for_look(plane: Plane, name: str) -> None:
    """Waits until the guard has looked at all namespaces twice, with every grant of before.

    It sees grants in the order of their creation, and looks at all namespaces after each.
    """
    plane.namespace(name)
    plane.kubectl("label", "namespace", name, OPT_IN)
    grant(plane, name, "privileged", f"--serviceaccount={name}:default")
    has_level(plane, name, "privileged")
    plane.kubectl("delete", "rolebinding", "privileged", "-n", name)
    has_level(plane, name, "restricted")


def grant(plane: Plane, namespace: str, constraint: str, subject: str) -> None:
    plane.kubectl("create", "rolebinding", constraint, "-n", namespace, "--clusterrole", f"nodens:scc:{constraint}", subject)


@contextlib.contextmanager
def syncing(plane: Plane, mode: str) -> Iterator[None]:
    """A second guard, with the rights that its configuration needs."""
    state = plane.one.state
    guard_config(state, "labels", port=PORT, allocateRanges=False, podSecurityLabelSync=mode)
    plane.kubectl("apply", "-f", "-", stdin=plane.guard_output("manifest", "rbac", "--config", "/run/cluster/labels.yaml"))
    with guard_running(plane, state, "labels", PORT):
        yield


@pytest.fixture(scope="module")
def on(plane: Plane) -> Iterator[Plane]:
    with syncing(plane, "on"):
        yield plane


def test_a_dry_run_reports_and_changes_nothing(plane: Plane) -> None:
    name = plane.namespace("dry")
    plane.kubectl("label", "namespace", name, OPT_IN)
    with syncing(plane, "dry-run"):
        wait_until(lambda: plane.metrics(PORT)[METRIC + "pending"] == 1, "the report")
        assert plane.metrics(PORT)["nodens_guard_label_sync_labels_written_total"] == 0
    assert labels(plane, name) == {}
    said = (plane.one.state / "logs/labels.log").read_text()
    assert said.count("would label a namespace (dry run): pod security restricted") == 1 and "namespace=dry" in said
    plane.kubectl("delete", "namespace", name)


def test_a_namespace_that_asks_when_it_is_created_is_labelled(on: Plane) -> None:
    """Its service account is created after it."""
    key, value = OPT_IN.split("=")
    on.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "at-once", "labels": {key: value}}})
    has_level(on, "at-once", "restricted")


def test_levels_follow_grants_of_service_accounts(on: Plane) -> None:
    name = on.namespace("followed")
    on.kubectl("label", "namespace", name, OPT_IN)
    has_level(on, name, "restricted")
    for constraint, level in (("userns-root", "baseline"), ("nested-container", "baseline"), ("privileged", "privileged")):
        grant(on, name, constraint, f"--serviceaccount={name}:default")
        has_level(on, name, level)
    on.kubectl("delete", "rolebinding", "privileged", "-n", name)
    has_level(on, name, "baseline")
    managers = {one["manager"] for one in json.loads(on.kubectl("get", "namespace", name, "-o", "json", "--show-managed-fields"))
                ["metadata"]["managedFields"]}
    assert {f"nodens-guard-pod-security-{kind}" for kind in KINDS} <= managers
    wait_until(lambda: on.metrics(PORT)[METRIC + "synced"] >= 1, "the metric")


def test_other_namespaces_are_left_alone(on: Plane) -> None:
    without = on.namespace("not-asked")
    for name in ("kube-mine", "openshift-mine"):
        on.kubectl("create", "namespace", name)
        on.kubectl("label", "namespace", name, OPT_IN)
    on.kubectl("label", "namespace", "nodens-system", OPT_IN)
    before = labels(on, "nodens-system")
    wait_for_look(on, "after-others")
    assert [labels(on, name) for name in (without, "kube-mine", "openshift-mine")] == [{}, {}, {}]
    assert labels(on, "nodens-system") == before
    on.kubectl("label", "namespace", "nodens-system", OPT_IN.split("=")[0] + "-")


def test_labels_of_other_writers_stay(on: Plane) -> None:
    name = on.namespace("foreign")
    on.kubectl("label", "namespace", name, f"{PREFIX}enforce=baseline")
    on.kubectl("label", "namespace", name, OPT_IN)
    wait_until(lambda: on.metrics(PORT)[METRIC + "foreign"] == 1, "the report")
    wait_until(lambda: labels(on, name).get("audit") == "restricted", "the labels without an owner")
    wait_for_look(on, "after-foreign")
    assert labels(on, name) == {key: value for key, value in of_level("restricted").items() if "enforce" not in key} | {
        "enforce": "baseline"}
    # a user takes a label of the guard over
    on.kubectl("label", "namespace", name, f"{PREFIX}warn=privileged", "--overwrite")
    wait_for_look(on, "after-takeover")
    assert labels(on, name)["warn"] == "privileged"


@pytest.mark.parametrize(("name", "subject"), [
    ("user", "--user=alice"),
    ("elsewhere", "--serviceaccount=not-here:default"),
    ("group", "--group=system:serviceaccounts:not-here"),
    ("missing", "--serviceaccount=attack-missing:none"),
])
def test_grants_to_others_do_not_raise_the_level(on: Plane, name: str, subject: str) -> None:
    space = on.namespace(f"attack-{name}")
    on.kubectl("label", "namespace", space, OPT_IN)
    has_level(on, space, "restricted")
    grant(on, space, "privileged", subject)
    wait_for_look(on, f"after-{name}")
    assert labels(on, space) == of_level("restricted")


def test_an_owner_of_a_namespace_cannot_raise_its_level(on: Plane) -> None:
    """With all rights in it, but without the constraint."""
    name = on.namespace("owned")
    on.grant(name, "admin", "mallory")
    on.may("mallory", "create", "rolebindings", name)
    on.kubectl("label", "namespace", name, OPT_IN)
    has_level(on, name, "restricted")
    rule: dict[str, Any] = {"apiGroups": ["security.nodens.io"], "resources": ["securitycontextconstraints"],
                            "resourceNames": ["privileged"], "verbs": ["use"]}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "mine", "namespace": name}, "rules": [rule]}
    assert "forbidden" in on.kubectl("create", "-f", "-", stdin=json.dumps(role), user="mallory", ok=False)
    assert "forbidden" in on.kubectl("create", "rolebinding", "mine", "-n", name, "--clusterrole", "nodens:scc:privileged",
                                     f"--serviceaccount={name}:default", user="mallory", ok=False)
    # annotations, names and pods do not count
    on.kubectl("create", "serviceaccount", "privileged", "-n", name, user="mallory")
    on.kubectl("create", "serviceaccount", "system.masters", "-n", name, user="mallory")
    on.kubectl("create", "role", "privileged", "-n", name, "--verb=get", "--resource=pods", user="mallory")
    on.kubectl("create", "rolebinding", "privileged", "-n", name, "--role=privileged", f"--serviceaccount={name}:privileged",
               user="mallory")
    wait_for_look(on, "after-owner")
    assert labels(on, name) == of_level("restricted")
