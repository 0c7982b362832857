# SPDX-License-Identifier: Apache-2.0
"""`nodens lint` with a cluster predicts the verdicts of admission."""
import json
from typing import Any

from conftest import BUILD, STATE, Plane, scc, wait_until

NODENS = f"{BUILD}/src/nodens"
OWN_USERS = {"hostUsers": False}
# a pod's spec and its container's context
PODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
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
    """Results of lint for each of the pods, as written."""
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
             "spec": {"containers": [{"name": "c", "image": "x", "securityContext": context}], **spec}}
            for name, (spec, context) in PODS.items()]
    (plane.one.state / "lint.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    done = plane.inside.capture([NODENS, "lint", "--json", *arguments, "--kubeconfig", f"{STATE}/admin.kubeconfig", f"{STATE}/lint.json"])
    assert done.returncode in (0, 1), done.stderr
    output = {pod["name"]: pod for pod in json.loads(done.stdout)["pods"]}
    return {name: one["withUserNamespace" if one["withUserNamespace"]["asWritten"] else "withHostUsers"] for name, one in output.items()}


def compare(plane: Plane, ns: str, user: str, output: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Verdicts of admission on the same pods, which must equal those of lint."""
    found = {}
    for name, (spec, context) in PODS.items():
        if output[name]["constraint"] == "none" or output[name]["needsGrant"]:
            plane.create(ns, spec, user=user, context=context, ok=False)
            found[name] = "refused"
        else:
            found[name] = scc(plane.create(ns, spec, user=user, context=context))
            assert found[name] == output[name]["constraint"], name
    return found


def test_lint_for_a_user_predicts_admission(plane: Plane, node: str) -> None:
    ns = plane.namespace("linted")
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "strong", "namespace": ns}})
    plane.grant(ns, "nodens:scc:userns-root", f"system:serviceaccount:{ns}:strong")
    alone = {"plain": "restricted-v2", "own-users": "restricted-v3", "named-user": "restricted-v3", "other-account": "userns-root"}
    who = ("--as", "alice", "--namespace", ns)
    wait_until(lambda: not lint(plane, *who)["other-account"]["needsGrant"], "the service account's grant")
    output = lint(plane, *who)
    assert compare(plane, ns, "alice", output) == dict.fromkeys(PODS, "refused") | alone
    # these would admit them
    assert output["root"]["constraint"] == "userns-root" and output["engine"]["constraint"] == "nested-container"
    for constraint in ("userns-root", "nested-container"):
        plane.grant(ns, f"nodens:scc:{constraint}", "alice")
    wait_until(lambda: not lint(plane, *who)["engine"]["needsGrant"], "alice's grants")
    # it has fewer points than userns-root
    more = alone | dict.fromkeys(("root", "engine", "other-account"), "nested-container")
    assert compare(plane, ns, "alice", lint(plane, *who)) == dict.fromkeys(PODS, "refused") | more


def test_lint_without_a_user_checks_the_kubeconfigs_user(plane: Plane, node: str) -> None:
    ns = plane.namespace("linted-by-root")
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "strong", "namespace": ns}})
    output = lint(plane, "--namespace", ns)
    assert "refused" not in compare(plane, ns, "", output).values()
    assert output["host-pid"]["constraint"] in ("hostaccess", "privileged")


def test_lint_uses_the_ranges_of_the_namespace(plane: Plane) -> None:
    ns = plane.namespace("linted-ranges")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "image": "x", "securityContext": {"runAsUser": 1000650007}}]}}
    (plane.one.state / "ranged.json").write_text(json.dumps(pod))
    words = [NODENS, "lint", "--json", "--as", "alice", "--namespace", ns, "--kubeconfig", f"{STATE}/admin.kubeconfig",
             f"{STATE}/ranged.json"]
    output = json.loads(plane.inside.capture(words).stdout)["pods"][0]["withHostUsers"]
    assert (output["constraint"], output["needsGrant"]) == ("restricted-v2", False)
    assert scc(plane.create(ns, {}, context={"runAsUser": 1000650007})) == "restricted-v2"
    offline = json.loads(plane.inside.capture([NODENS, "lint", "--json", f"{STATE}/ranged.json"]).stdout)["pods"][0]["withHostUsers"]
    assert offline["needsGrant"] is True  # the range of the first block, not of this namespace
