# SPDX-License-Identifier: Apache-2.0
"""`nodens lint` about a cluster says beforehand what admission says when a pod comes."""
import json
from typing import Any

from conftest import BUILD, STATE, Plane, scc, wait_until

NODENS = f"{BUILD}/src/nodens"
OWN_USERS = {"hostUsers": False}
PODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {      # a pod's spec and its container's context
    "plain": ({}, {}),
    "own-users": (OWN_USERS, {}),
    "named-user": (OWN_USERS, {"runAsUser": 1234}),
    "root": (OWN_USERS, {"runAsUser": 0}),
    "host-root": ({"hostUsers": True}, {"runAsUser": 0}),
    "host-pid": ({"hostPID": True}, {}),
    "engine": (OWN_USERS, {"runAsUser": 1000, "procMount": "Unmasked", "capabilities": {"add": ["SETUID", "SETGID"]}}),
    "other-account": (OWN_USERS | {"serviceAccountName": "strong"}, {"runAsUser": 0}),
}


def lint(plane: Plane, *arguments: str) -> dict[str, dict[str, Any]]:
    """What lint says about each of the pods, as it is written."""
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x", "securityContext": context}], **spec}}
            for name, (spec, context) in PODS.items()]
    (plane.one.state / "lint.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    done = plane.inside.capture([NODENS, "lint", "--json", *arguments, "--kubeconfig", f"{STATE}/admin.kubeconfig", f"{STATE}/lint.json"])
    assert done.returncode in (0, 1), done.stderr
    told = {pod["name"]: pod for pod in json.loads(done.stdout)["pods"]}
    return {name: one["withUserNamespace" if one["withUserNamespace"]["asWritten"] else "withHostUsers"] for name, one in told.items()}


def compare(plane: Plane, ns: str, user: str, told: dict[str, dict[str, Any]]) -> dict[str, str]:
    """What admission makes of the same pods, which has to be what lint said."""
    found = {}
    for name, (spec, context) in PODS.items():
        if told[name]["constraint"] == "none" or told[name]["needsGrant"]:
            plane.create(ns, spec, user=user, context=context, ok=False)
            found[name] = "refused"
        else:
            found[name] = scc(plane.create(ns, spec, user=user, context=context))
            assert found[name] == told[name]["constraint"], name
    return found


def test_lint_for_somebody_says_what_admission_does(plane: Plane, node: str) -> None:
    ns = plane.namespace("linted")
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "strong", "namespace": ns}})
    plane.grant(ns, "nodens:scc:userns-root", f"system:serviceaccount:{ns}:strong")
    alone = {"plain": "restricted-v2", "own-users": "restricted-v3", "named-user": "restricted-v3", "other-account": "userns-root"}
    who = ("--as", "alice", "--namespace", ns)
    wait_until(lambda: not lint(plane, *who)["other-account"]["needsGrant"], "the service account's grant")
    told = lint(plane, *who)
    assert compare(plane, ns, "alice", told) == dict.fromkeys(PODS, "refused") | alone
    assert told["root"]["constraint"] == "userns-root" and told["engine"]["constraint"] == "nested-container"    # which would help
    for constraint in ("userns-root", "nested-container"):
        plane.grant(ns, f"nodens:scc:{constraint}", "alice")
    wait_until(lambda: not lint(plane, *who)["engine"]["needsGrant"], "alice's grants")
    more = alone | dict.fromkeys(("root", "engine", "other-account"), "nested-container")    # which has fewer points than userns-root
    assert compare(plane, ns, "alice", lint(plane, *who)) == dict.fromkeys(PODS, "refused") | more


def test_lint_for_oneself_asks_about_the_kubeconfigs_user(plane: Plane, node: str) -> None:
    ns = plane.namespace("linted-by-root")
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "strong", "namespace": ns}})
    told = lint(plane, "--namespace", ns)
    assert "refused" not in compare(plane, ns, "", told).values()
    assert told["host-pid"]["constraint"] in ("hostaccess", "privileged")


def test_lint_takes_the_namespaces_own_ranges(plane: Plane) -> None:
    ns = plane.namespace("linted-ranges")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "image": "x", "securityContext": {"runAsUser": 1000650007}}]}}
    (plane.one.state / "ranged.json").write_text(json.dumps(pod))
    words = [NODENS, "lint", "--json", "--as", "alice", "--namespace", ns, "--kubeconfig", f"{STATE}/admin.kubeconfig", f"{STATE}/ranged.json"]
    told = json.loads(plane.inside.capture(words).stdout)["pods"][0]["withHostUsers"]
    assert (told["constraint"], told["needsGrant"]) == ("restricted-v2", False)
    assert scc(plane.create(ns, {}, context={"runAsUser": 1000650007})) == "restricted-v2"
    offline = json.loads(plane.inside.capture([NODENS, "lint", "--json", f"{STATE}/ranged.json"]).stdout)["pods"][0]["withHostUsers"]
    assert offline["needsGrant"] is True    # the first block's range, which is not this namespace's
