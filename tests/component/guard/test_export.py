# SPDX-License-Identifier: Apache-2.0
"""`nodens-guard export`: the API server's verdicts by the exported policies, beside those of the webhook, for the same pods.

The policies are bound to a label of these tests, so that one namespace has the webhook and another the policies.
"""
import copy
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Plane, wait_until

Pod = dict[str, Any]
LABEL = "test.nodens.io/exported"
UID = 1000650000
USERS = ("alice", "bob")
BOBS = ("anyuid", "hostnetwork-v2", "userns-root", "nested-container")
PLAIN = {"runAsUser": UID, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
         "seccompProfile": {"type": "RuntimeDefault"}}


def policies(plane: Plane, *parts: str) -> list[dict[str, Any]]:
    return [json.loads(one) for one in plane.guard_output("export", "--json", *parts).split("\n---\n")]


def bound(plane: Plane, label: str, values: dict[str, str], *parts: str) -> None:
    """Applies policies; bindings select namespaces of the tests only."""
    made = policies(plane, *parts)
    for one in made:
        if one["kind"].endswith("Binding"):
            one["spec"]["matchResources"]["namespaceSelector"] = {"matchLabels": {label: values.get(one["spec"]["policyName"], "on")}}
    plane.apply(*made)


@pytest.fixture(scope="module")
def spaces(plane: Plane) -> Iterator[tuple[str, str]]:
    """A namespace of the webhook, and one of the policies."""
    ours, theirs = plane.namespace("by-webhook"), plane.namespace("by-policy", mode="off")
    for user, name in itertools.product(USERS, (ours, theirs)):
        plane.grant(name, "edit", user)
        plane.may(user, "create", "pods", name)
    for role, name in itertools.product(BOBS, (ours, theirs)):
        plane.grant(name, f"nodens:scc:{role}", "bob")
        plane.may("bob", "use", f"securitycontextconstraints.security.nodens.io/{role}", name)
    bound(plane, LABEL, {}, "constraints")
    plane.kubectl("label", "namespace", theirs, f"{LABEL}=on")
    wait_until(lambda: plane.one.kubectl(
        "create", "--as", "alice", "--as-group", "system:authenticated", "--dry-run=server", "-f", "-",
        stdin=json.dumps(pod_in(theirs, {"hostPID": True}))).returncode != 0, "the policy")
    plane.eventually(lambda one: True, "bob's grant", ours, {"hostNetwork": True}, user="bob", context=PLAIN)
    yield ours, theirs
    plane.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "nodens-guard-constraints")


def pod_in(namespace: str, change: Pod, **context: Any) -> Pod:
    """A pod that is complete: nothing is left for defaults, hostUsers included."""
    one: Pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}, "spec": {
        "hostUsers": True, "containers": [{"name": "c", "image": "x", "securityContext": PLAIN | context}]}}
    spec = copy.deepcopy(change)
    one["metadata"] |= spec.pop("metadata", {})
    container = spec.pop("container", {})
    one["spec"]["containers"][0] |= container
    one["spec"] |= spec
    return one


# what changes in a pod -> context of its container that changes
NS = {"hostUsers": False}
CASES: dict[str, tuple[Pod, dict[str, Any]]] = {
    "plain": ({}, {}),
    "another user of the range": ({}, {"runAsUser": UID + 9999}),
    "a user above the range": ({}, {"runAsUser": UID + 10000}),
    "root": ({}, {"runAsUser": 0}),
    "user 1000": ({}, {"runAsUser": 1000}),
    "root in a user namespace": (NS, {"runAsUser": 0}),
    "root in a user namespace, able to escalate": (NS, {"runAsUser": 0, "allowPrivilegeEscalation": True, "capabilities": {}}),
    "user 1000 in a user namespace": (NS, {"runAsUser": 1000}),
    "a user of the range in a user namespace": (NS, {}),
    "privileged": ({}, {"privileged": True, "allowPrivilegeEscalation": True}),
    "host network": ({"hostNetwork": True}, {}),
    "host PID": ({"hostPID": True}, {}),
    "host IPC": ({"hostIPC": True}, {}),
    "host port": ({"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}, {}),
    "host path": ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, {}),
    "empty dir": ({"volumes": [{"name": "v", "emptyDir": {}}]}, {}),
    "secret, config map and claim": ({"volumes": [{"name": "a", "secret": {"secretName": "s"}}, {"name": "b", "configMap": {"name": "c"}},
                                                  {"name": "d", "persistentVolumeClaim": {"claimName": "e"}}]}, {}),
    "nfs": ({"volumes": [{"name": "v", "nfs": {"server": "a", "path": "/"}}]}, {}),
    "a harmless capability": ({}, {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}),
    "a capability": ({}, {"capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}}),
    "unconfined seccomp": ({}, {"seccompProfile": {"type": "Unconfined"}}),
    "unconfined seccomp of the pod": ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, {}),
    "unconfined AppArmor": ({}, {"appArmorProfile": {"type": "Unconfined"}}),
    "unconfined AppArmor by annotation": ({"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}}},
                                          {}),
    "fsGroup of the namespace": ({"securityContext": {"fsGroup": UID}}, {}),
    "fsGroup 0": ({"securityContext": {"fsGroup": 0}}, {}),
    "supplemental group 0": ({"securityContext": {"supplementalGroups": [0]}}, {}),
    "supplemental group 0 in a user namespace": (NS | {"securityContext": {"supplementalGroups": [0]}}, {"runAsUser": 1000}),
    "a safe sysctl": ({"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}}, {}),
    "an unsafe sysctl": ({"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}}, {}),
    "SELinux level of the namespace": ({}, {"seLinuxOptions": {"level": "s0:c26,c5"}}),
    "another SELinux level": ({}, {"seLinuxOptions": {"level": "s0:c1,c2"}}),
    "another SELinux type": ({}, {"seLinuxOptions": {"level": "s0:c26,c5", "type": "spc_t"}}),
    "an unmasked /proc": (NS, {"runAsUser": 1000, "procMount": "Unmasked"}),
    "an init container as root": ({"initContainers": [{"name": "i", "image": "x", "securityContext": PLAIN | {"runAsUser": 0}}]}, {}),
    "user of the pod": ({"securityContext": {"runAsUser": UID}, "container": {"securityContext": {
        key: value for key, value in PLAIN.items() if key != "runAsUser"}}}, {}),
    "user of the pod is root": ({"securityContext": {"runAsUser": 0}, "container": {"securityContext": {
        key: value for key, value in PLAIN.items() if key != "runAsUser"}}}, {}),
    "an ID above 65535 in a user namespace": (NS, {"runAsUser": 70000}),
    "runAsNonRoot false": ({}, {"runAsNonRoot": False, "runAsUser": 1000}),
}


def verdict(plane: Plane, namespace: str, user: str, change: Pod, context: dict[str, Any]) -> tuple[bool, str]:
    done = plane.one.kubectl("create", "--as", user, "--as-group", "system:authenticated", "--dry-run=server", "-f", "-", "-o", "name",
                             stdin=json.dumps(pod_in(namespace, change, **context)))
    return done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("user", USERS)
def test_policies_and_webhook_give_the_same_verdict(plane: Plane, spaces: tuple[str, str], user: str, name: str) -> None:
    ours, theirs = spaces
    webhook, said = verdict(plane, ours, user, *CASES[name])
    policy, answered = verdict(plane, theirs, user, *CASES[name])
    assert webhook == policy, f"webhook: {webhook} {said}\npolicy: {policy} {answered}"
    if not policy:
        assert "fits no security context constraint" in answered and "cost" not in answered, answered


def test_both_verdicts_occur_for_each_user(plane: Plane, spaces: tuple[str, str]) -> None:
    seen = {(user, verdict(plane, spaces[1], user, *CASES[name])[0]) for user in USERS
            for name in ("plain", "root", "root in a user namespace", "host network", "privileged")}
    assert seen == {(user, admitted) for user in USERS for admitted in (True, False)}


def test_a_pod_that_leaves_fields_open_is_refused_by_policies_alone(plane: Plane, spaces: tuple[str, str]) -> None:
    """Policies fill in nothing: the pod would run as its image says."""
    bare: Pod = {"container": {"securityContext": {}}}
    assert verdict(plane, spaces[0], "alice", bare, {}) == (True, "")
    admitted, said = verdict(plane, spaces[1], "alice", bare, {})
    assert not admitted and "as it is written fits no security context constraint that alice or serviceaccount by-policy:default" in said


def test_updates_of_metadata_pass_and_the_policy_has_no_type_errors(plane: Plane, spaces: tuple[str, str]) -> None:
    plane.kubectl("create", "-f", "-", stdin=json.dumps(pod_in(spaces[1], {})), user="alice")
    plane.kubectl("label", "pod", "p", "-n", spaces[1], "a=b", user="alice")
    plane.kubectl("delete", "pod", "p", "-n", spaces[1], "--now")
    found = json.loads(plane.kubectl("get", "validatingadmissionpolicy", "nodens-guard-constraints", "-o", "json"))
    print(json.dumps(found.get("status", {}).get("typeChecking", {}))[:2000])


def test_hosts_users_are_set_and_required_as_by_the_webhook(plane: Plane, node: str) -> None:
    bound(plane, "test.nodens.io/userns", {"nodens-guard-user-namespaces": "on", "nodens-guard-require-user-namespaces": "on"},
          "user-namespaces")
    ours, theirs = plane.namespace("userns-webhook"), plane.namespace("userns-policy", mode="off")
    plane.kubectl("label", "namespace", ours, "security.nodens.io/user-namespaces=require")
    plane.kubectl("label", "namespace", theirs, "test.nodens.io/userns=on")
    context = {"runAsUser": 1000}
    for name in (ours, theirs):
        plane.eventually(lambda pod: pod["spec"].get("hostUsers") is False, "hostUsers", name, {}, context=context)
    cases = (({"hostUsers": True}, False), ({"hostUsers": False}, True), ({"hostPID": True}, False), ({"hostIPC": True}, False))
    for change, admitted in cases:
        for name in (ours, theirs):
            output = plane.create(name, change, ok=admitted, context=context)
            assert not admitted or output["spec"]["hostUsers"] is False
            assert admitted or "hostUsers" in output or "user namespace" in output, output
    plane.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "nodens-guard-require-user-namespaces")
    plane.eventually(lambda pod: "hostUsers" not in pod["spec"], "pods that cannot have it stay as they are", theirs, {"hostPID": True})
    plane.kubectl("delete", "mutatingadmissionpolicybinding,mutatingadmissionpolicy", "nodens-guard-user-namespaces")
