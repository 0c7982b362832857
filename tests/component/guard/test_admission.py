# SPDX-License-Identifier: Apache-2.0
"""Pods and security context constraints on a stock API server."""
import json

from conftest import Plane, scc, wait_until

ROOT = {"runAsUser": 0}


def test_an_ordinary_pod_is_filled_by_restricted_v2(plane: Plane) -> None:
    ns = plane.namespace("plain")
    pod = plane.create(ns, {})
    assert scc(pod) == "restricted-v2"
    context = pod["spec"]["containers"][0]["securityContext"]
    assert context["runAsUser"] == 1000650000 and context["runAsNonRoot"] is True
    assert context["capabilities"] == {"drop": ["ALL"]} and context["allowPrivilegeEscalation"] is False
    whole = pod["spec"]["securityContext"]
    assert whole["fsGroup"] == 1000650000 and whole["seccompProfile"] == {"type": "RuntimeDefault"}
    assert whole["seLinuxOptions"] == {"level": "s0:c26,c5"}
    assert "hostUsers" not in pod["spec"]


def test_a_pod_with_a_user_namespace_gets_restricted_v3_and_an_id_of_its_window(plane: Plane, node: str) -> None:
    ns = plane.namespace("own-users")
    pod = plane.create(ns, {"hostUsers": False})
    assert scc(pod) == "restricted-v3"
    assert 1000 <= pod["spec"]["containers"][0]["securityContext"]["runAsUser"] <= 65534
    refused = plane.create(ns, {"hostUsers": False}, context={"runAsUser": 1000650000}, ok=False)
    assert "runAsUser" in refused


def test_root_is_refused_until_userns_root_is_granted(plane: Plane, node: str) -> None:
    ns = plane.namespace("roots")
    refused = plane.create(ns, {"hostUsers": False}, context=ROOT, ok=False)
    assert "unable to validate against any security context constraint" in refused
    assert "userns-root in a user namespace, but serviceaccount roots:default may not use it" in refused
    plane.grant(ns, "nodens:scc:userns-root", "alice")
    plane.eventually(lambda pod: scc(pod) == "userns-root", "the grant", ns, {"hostUsers": False}, context=ROOT)
    # no constraint fits without a user namespace, so one is set
    pod = plane.create(ns, {}, context=ROOT)
    assert scc(pod) == "userns-root" and pod["spec"]["hostUsers"] is False
    # a revoked grant takes effect
    plane.kubectl("delete", "rolebinding", "-n", ns, "alice-nodens-scc-userns-root")
    plane.eventually(lambda output: "may not use it" in output, "the end of the grant", ns, {"hostUsers": False}, context=ROOT,
                     ok=False)


def test_a_grant_applies_to_its_namespace_only(plane: Plane) -> None:
    here, there = plane.namespace("granted-here"), plane.namespace("granted-there")
    plane.grant(here, "nodens:scc:anyuid", "alice")
    plane.eventually(lambda pod: scc(pod) == "anyuid", "the grant", here, {}, context=ROOT)
    plane.create(there, {}, context=ROOT, ok=False)


def test_a_service_account_may_use_what_its_user_may_not(plane: Plane) -> None:
    ns = plane.namespace("accounts")
    plane.grant(ns, "nodens:scc:privileged", "system:serviceaccount:accounts:strong")
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "strong", "namespace": ns}})
    pod = plane.eventually(lambda pod: scc(pod) == "privileged", "the grant", ns, {"serviceAccountName": "strong", "hostPID": True},
                           context={"privileged": True})
    assert pod["metadata"]["annotations"]["security.nodens.io/validated-scc-subject-type"] == "serviceaccount"
    plane.create(ns, {"hostPID": True}, context={"privileged": True}, ok=False)


def test_host_access_is_refused_to_ordinary_users_and_allowed_to_administrators(plane: Plane) -> None:
    ns = plane.namespace("hosts")
    for spec in ({"hostNetwork": True}, {"hostPID": True}, {"hostIPC": True},
                 {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}):
        assert "not allowed to be used" in plane.create(ns, spec, ok=False)
        done = plane.kubectl("create", "--dry-run=server", "-f", "-", "-o", "json", stdin=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": ns},
            "spec": {"containers": [{"name": "c", "image": "x"}], **spec}}))
        assert scc(json.loads(done)) in ("hostnetwork-v2", "hostaccess", "privileged", "hostmount-anyuid", "hostmount-anyuid-v2")


def test_a_namespace_that_is_not_labelled_is_only_warned(plane: Plane) -> None:
    ns = plane.namespace("unlabelled", mode=None)
    pod = plane.create(ns, {})
    assert scc(pod) == "" and "securityContext" not in pod["spec"]["containers"][0]
    output = plane.kubectl("create", "--dry-run=server", "-f", "-", user="alice", stdin=json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": ns},
        "spec": {"hostPID": True, "containers": [{"name": "c", "image": "x"}]}}))
    assert "Warning: would be refused" in output and "Host PID is not allowed" in output


def test_mode_off_changes_and_denies_nothing(plane: Plane) -> None:
    ns = plane.namespace("offline", mode="off")
    output = plane.kubectl("create", "--dry-run=server", "-f", "-", user="alice", stdin=json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": ns},
        "spec": {"hostPID": True, "containers": [{"name": "c", "image": "x"}]}}))
    assert "Warning" not in output


def test_only_the_required_constraint_is_tried(plane: Plane, node: str) -> None:
    ns = plane.namespace("required")
    required = {"security.nodens.io/required-scc": "restricted-v3"}
    pod = plane.create(ns, {}, annotations=required)
    assert scc(pod) == "restricted-v3" and pod["spec"]["hostUsers"] is False
    assert scc(plane.create(ns, {"hostUsers": False}, annotations=required)) == "restricted-v3"
    assert "restricted-v3 with spec.hostUsers: false" in plane.create(ns, {"hostUsers": True}, annotations=required, ok=False)
    missing = plane.create(ns, {}, annotations={"openshift.io/required-scc": "nothing"}, ok=False)
    assert "security context constraint 'nothing', which does not exist" in missing


def test_updates(plane: Plane) -> None:
    ns = plane.namespace("updates")
    plane.create(ns, {}, dry_run=False)
    # any user who may change labels may do so, regardless of the pod's constraint
    plane.kubectl("label", "pod", "p", "-n", ns, "a=b", user="alice")
    assert "cannot be changed" in plane.kubectl("annotate", "pod", "p", "-n", ns, "security.nodens.io/scc=privileged", "--overwrite",
                                                user="alice", ok=False)
    assert "cannot be changed" in plane.kubectl("annotate", "pod", "p", "-n", ns, "security.nodens.io/scc-", user="alice", ok=False)
    plane.kubectl("set", "image", "pod/p", "c=y", "-n", ns, user="alice")


def test_changing_an_image_and_exec_need_access_to_the_pods_constraint(plane: Plane) -> None:
    ns = plane.namespace("strangers")
    plane.kubectl("create", "-f", "-", stdin=json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "strong", "namespace": ns},
        "spec": {"hostPID": True, "containers": [{"name": "c", "image": "x", "securityContext": {"privileged": True}}]}}))
    refused = plane.kubectl("set", "image", "pod/strong", "c=y", "-n", ns, user="alice", ok=False)
    assert "unable to validate against any security context constraint" in refused
    for verb in ("exec", "attach"):
        words = ["exec", "strong", "-n", ns, "--", "true"] if verb == "exec" else ["attach", "strong", "-n", ns]
        refused = plane.kubectl(*words, user="alice", ok=False)
        assert f"{verb} operation is not allowed because the pod's security context exceeds your permissions" in refused
        # an administrator gets further: no node runs it
        assert "not allowed because" not in plane.kubectl(*words, ok=False)
    plane.create(ns, {}, dry_run=False, name="weak")
    assert "not allowed because" not in plane.kubectl("exec", "weak", "-n", ns, "--", "true", user="alice", ok=False)


def test_ephemeral_containers_are_filled_and_checked(plane: Plane) -> None:
    ns = plane.namespace("ephemeral")
    plane.create(ns, {}, dry_run=False)

    def add(name: str, context: dict[str, object] | None, ok: bool) -> str:
        path = f"/api/v1/namespaces/{ns}/pods/p/ephemeralcontainers"
        pod = json.loads(plane.kubectl("get", "--raw", f"/api/v1/namespaces/{ns}/pods/p"))
        one = {"name": name, "image": "x"} | ({"securityContext": context} if context else {})
        pod["spec"].setdefault("ephemeralContainers", []).append(one)
        return plane.kubectl("replace", "--raw", path, "-f", "-", stdin=json.dumps(pod), user="alice", ok=ok)

    plane.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "ephemeral", "namespace": ns},
                 "rules": [{"apiGroups": [""], "resources": ["pods/ephemeralcontainers"], "verbs": ["*"]}]},
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "ephemeral", "namespace": ns},
                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "ephemeral"},
                 "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]})
    plane.may("alice", "update", "pods", ns, "--subresource=ephemeralcontainers")
    pod = json.loads(add("good", None, True))
    assert pod["spec"]["ephemeralContainers"][0]["securityContext"]["runAsUser"] == 1000650000
    assert "Privileged containers are not allowed" in add("bad", {"privileged": True}, False)


def test_a_namespace_can_ask_for_user_namespaces_and_can_require_them(plane: Plane, node: str) -> None:
    ns = plane.namespace("asks")
    plane.kubectl("label", "namespace", ns, "security.nodens.io/user-namespaces=default")
    plane.eventually(lambda pod: pod["spec"].get("hostUsers") is False and scc(pod) == "restricted-v3", "the label", ns, {})
    assert "hostUsers" in plane.create(ns, {"hostUsers": True})["spec"]
    plane.kubectl("label", "namespace", ns, "security.nodens.io/user-namespaces=require", "--overwrite")
    plane.eventually(lambda output: "the pod sets spec.hostUsers to true" in output, "the label", ns, {"hostUsers": True}, ok=False)
    plane.kubectl("cordon", node)
    plane.eventually(lambda output: "no schedulable node offers them" in output, "a refusal", ns, {}, ok=False)
    plane.kubectl("uncordon", node)
    plane.eventually(lambda pod: pod["spec"].get("hostUsers") is False, "the node's return", ns, {})


def test_a_pod_created_before_its_ranges_gets_a_retryable_denial(plane: Plane) -> None:
    plane.apply({"apiVersion": "v1", "kind": "Namespace",
                 "metadata": {"name": "young", "labels": {"security.nodens.io/constraints": "enforce"}}})
    plane.grant("young", "edit", "alice")
    plane.namespace_known("young")
    plane.may("alice", "create", "pods", "young")
    assert "has no ranges of user IDs yet; try again" in plane.create("young", {}, ok=False)


def test_an_invalid_constraint_does_not_affect_others(plane: Plane) -> None:
    ns = plane.namespace("broken")
    plane.apply({"apiVersion": "security.nodens.io/v1", "kind": "SecurityContextConstraints", "metadata": {"name": "broken"},
                 "priority": 99, "runAsUser": {"type": "MustRunAsRange", "uidRangeMin": 5}, "seLinuxContext": {"type": "RunAsAny"},
                 "groups": ["system:authenticated"]})
    plane.apply({"apiVersion": "security.nodens.io/v1", "kind": "SecurityContextConstraints", "metadata": {"name": "whole"},
                 **{field: {"type": "RunAsAny"} for field in ("runAsUser", "seLinuxContext", "fsGroup", "supplementalGroups")}})
    # a watch reports in order: once the later one is known, so is the invalid one
    plane.eventually(lambda output: "which does not exist" not in output, "the constraints in the guard's cache", ns, {},
                     annotations={"security.nodens.io/required-scc": "whole"}, ok=False)
    assert scc(plane.create(ns, {})) == "restricted-v2"
    plane.kubectl("delete", "scc", "broken", "whole")


def test_the_definition_refuses_contradictory_constraints(plane: Plane) -> None:
    def refused(**fields: object) -> str:
        return plane.kubectl("apply", "-f", "-", ok=False, stdin=json.dumps({
            "apiVersion": "security.nodens.io/v1", "kind": "SecurityContextConstraints", "metadata": {"name": "odd"}, **fields}))

    assert "capability is listed in allowedCapabilities" in refused(allowedCapabilities=["KILL"], requiredDropCapabilities=["KILL"])
    assert "if 'none' is specified" in refused(volumes=["none", "secret"])
    assert "MustRunAs requires a uid" in refused(runAsUser={"type": "MustRunAs"})
    assert "uidRangeMin cannot be greater" in refused(runAsUser={"type": "MustRunAsRange", "uidRangeMin": 9, "uidRangeMax": 2})
    assert "priority" in refused(priority=-1)
    assert "Unsupported value" in refused(userNamespaceLevel="Sometimes")


def test_controllers_create_pods_as_their_own_user(plane: Plane) -> None:
    ns = plane.namespace("controllers")
    plane.kubectl("create", "deployment", "web", "--image=x", "-n", ns, user="alice")

    def pods() -> list[dict[str, object]]:
        return json.loads(plane.kubectl("get", "pods", "-n", ns, "-o", "json"))["items"]

    wait_until(lambda: len(pods()) == 1, "the deployment's pod")
    assert scc(pods()[0]) == "restricted-v2"
