# SPDX-License-Identifier: Apache-2.0
"""The guard's decisions compared with the API server's: hostUsers, and access to constraints."""
import json
import os
import random
from typing import Any

import batch
import valid_pods
from conftest import BUILD, Plane

PODS = 600
QUESTIONS = int(os.environ.get("NODENS_GUARD_QUESTIONS", "21000"))
NAMESPACES = [f"rbac-{number}" for number in range(6)]
GROUP = "rbac.authorization.k8s.io"
CONSTRAINTS = ["restricted-v2", "anyuid", "privileged", "userns-root", "made-up"]
# users that the other tests do not use: some of the generated roles grant a lot
USERS = ["dora", "emil", "frida", "system:serviceaccount:rbac-0:one", "system:serviceaccount:rbac-1:one",
         "system:serviceaccount:rbac-0:two", "a:b"]
GROUPS = ["devs", "ops", "system:unheard-of", "system:serviceaccounts:rbac-0", "system:serviceaccounts:rbac-1"]


def lines(plane: Plane, program: str, things: list[dict[str, Any]]) -> list[str]:
    """The answers of one of our programs, line by line."""
    path = plane.one.state / "questions"
    path.write_text("".join(json.dumps(thing) + "\n" for thing in things))
    done = plane.inside.capture(["sh", "-c", f"exec {BUILD}/{program} </run/cluster/questions"])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_rules_around_hostusers_equal_the_api_servers(plane: Plane) -> None:
    rng = random.Random(4)
    pods = [valid_pods.draw(rng, f"p{number}", obeys=False) for number in range(PODS)]
    plane.apply({"apiVersion": "v1", "kind": "Namespace",
                 "metadata": {"name": "host-users", "labels": {"security.nodens.io/constraints": "off"}}})
    answers = batch.run(plane.one, [{"method": "POST", "path": "/api/v1/namespaces/host-users/pods?dryRun=All", "body": pod | {
        "spec": pod["spec"] | {"serviceAccountName": "default", "automountServiceAccountToken": False}}} for pod in pods])
    ours = lines(plane, "tests/component/policy/driver", [{"op": "hostusers", "pod": pod, "gate": True} for pod in pods])
    refused = 0
    for pod, (status, body, _, _), mine in zip(pods, answers, ours, strict=False):
        said = sorted(f"{cause['field']}: {cause['message']}" for cause in body["details"]["causes"]) if status == 422 else []
        assert status in (201, 422), body
        assert said == sorted(json.loads(mine)), f"{json.dumps(pod)}\nAPI server: {said}\nnodens: {mine}"
        refused += status == 422
    assert PODS / 10 < refused < PODS * 9 / 10
    print(f"{PODS} pods, {refused} of them refused by the API server for hostUsers, with the same texts")


def rule(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.05:
        return {"nonResourceURLs": ["/metrics"], "verbs": ["use", "get"]}
    made: dict[str, Any] = {"apiGroups": rng.choice([["security.nodens.io"], ["security.nodens.io"], ["*"], [""], ["security.openshift.io"],
                                                     ["apps", "security.nodens.io"]]),
                            "resources": rng.choice([["securitycontextconstraints"]] * 3
                                                    + [["*"], ["pods"], ["*/status"], ["securitycontextconstraints/status"]]),
                            "verbs": rng.choice([["use"], ["use"], ["*"], ["get", "list"], ["get", "use"]])}
    if rng.random() < 0.6:
        made["resourceNames"] = rng.sample([*CONSTRAINTS, ""], rng.choice([1, 1, 2]))
    return made


def subject(rng: random.Random, cluster: bool) -> dict[str, Any]:
    kind = rng.choice(["User", "Group", "ServiceAccount"])
    if kind == "ServiceAccount":
        return {"kind": kind, "name": rng.choice(["one", "two"]), "namespace": rng.choice(NAMESPACES[:3])}
    return {"kind": kind, "apiGroup": GROUP, "name": rng.choice(USERS if kind == "User" else GROUPS)}


def cluster_of_rights(rng: random.Random) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]
    for number in range(40):
        made.append({"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": f"test-{number}"},
                     "rules": [rule(rng) for _ in range(rng.choice([0, 1, 1, 2]))]})
    for number in range(40):
        made.append({"apiVersion": f"{GROUP}/v1", "kind": "Role",
                     "metadata": {"name": f"test-{number % 10}", "namespace": NAMESPACES[number % len(NAMESPACES)]},
                     "rules": [one for one in (rule(rng) for _ in range(2)) if "apiGroups" in one]})
    for number in range(90):
        cluster = rng.random() < 0.15
        role = rng.choice(["ClusterRole", "Role"]) if not cluster else "ClusterRole"
        name = f"test-{rng.randrange(42 if role == 'ClusterRole' else 12)}"  # some do not exist
        made.append({"apiVersion": f"{GROUP}/v1", "kind": "ClusterRoleBinding" if cluster else "RoleBinding",
                     "metadata": {"name": f"test-{number}"} | ({} if cluster else {"namespace": rng.choice(NAMESPACES)}),
                     "roleRef": {"apiGroup": GROUP, "kind": role, "name": name},
                     "subjects": [subject(rng, cluster) for _ in range(rng.choice([0, 1, 1, 2, 3]))]})
    return made


def question(rng: random.Random) -> dict[str, Any]:
    return {"user": rng.choice([*USERS, "nobody"]), "groups": rng.sample(GROUPS, rng.choice([0, 0, 1, 2])),
            "namespace": rng.choice([*NAMESPACES, "elsewhere"]), "name": rng.choice([*CONSTRAINTS, "none"])}


def access_review(asked: dict[str, Any]) -> dict[str, Any]:
    return {"method": "POST", "path": "/apis/authorization.k8s.io/v1/subjectaccessreviews", "body": {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": asked["user"], "groups": asked["groups"], "resourceAttributes": {
                "namespace": asked["namespace"], "verb": "use", "group": "security.nodens.io", "resource": "securitycontextconstraints",
                "name": asked["name"]}}}}


def test_the_rbac_index_agrees_with_the_api_server(plane: Plane) -> None:
    rng = random.Random(5)
    plane.apply(*cluster_of_rights(rng))
    objects = []
    for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"):
        listed = json.loads(plane.kubectl("get", "--raw", f"/apis/{GROUP}/v1/{kind.lower()}s"))["items"]
        objects += [{"kind": kind} | item for item in listed]
    asked = [question(rng) for _ in range(QUESTIONS)]
    ours = lines(plane, "tests/component/guard/rbac-driver", [*objects, *asked])
    theirs = batch.run(plane.one, [access_review(one) for one in asked])
    allowed = 0
    for one, mine, (status, body, _, _) in zip(asked, ours, theirs, strict=False):
        assert status == 201, body
        assert (mine == "yes") == body["status"]["allowed"], f"{one}: nodens {mine}, API server {body['status']}"
        allowed += mine == "yes"
    assert QUESTIONS / 20 < allowed < QUESTIONS * 19 / 20
    print(f"{QUESTIONS} questions, {allowed} of them allowed, no difference")
