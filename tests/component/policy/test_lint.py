# SPDX-License-Identifier: Apache-2.0
"""`nodens lint` on the command line and in pipelines."""
import json
import os
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pod_generator import draw_pod

NODENS = "build/gcc/src/nodens"
HERE = Path(__file__).parent
MANIFESTS = HERE.parents[1] / "fixtures/manifests"


def lint(*arguments: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([NODENS, "lint", *map(str, arguments)], input=stdin, text=True, capture_output=True, timeout=60)


def pods(*arguments: object) -> dict[str, dict[str, Any]]:
    done = lint("--json", *arguments)
    assert done.returncode in (0, 1), done.stderr
    return {pod["name"]: pod for pod in json.loads(done.stdout)["pods"]}


def test_the_text_output() -> None:
    done = lint(MANIFESTS / "workloads.yaml")
    assert done.returncode == 0
    assert done.stdout.startswith(f"{MANIFESTS}/workloads.yaml:7: Deployment web\n")
    assert "  USERS             LEVEL       ADMITTED BY\n" in done.stdout  # "privileged, if granted" is not a level
    assert "  host's users      baseline    anyuid, if granted   (as it is)\n" in done.stdout
    assert "  user namespace    baseline    userns-root, if granted\n" in done.stdout
    assert "  for restricted    set spec.template.spec.hostUsers: false\n" in done.stdout
    assert "  user namespace    not with spec.hostPID\n" in done.stdout
    assert done.stdout.endswith("\nnot judged: Service 1\n")


def test_expectations_hold_and_break(tmp_path: Path) -> None:
    assert lint("--expect", MANIFESTS / "expected.yaml", MANIFESTS / "workloads.yaml").returncode == 0
    wrong = (MANIFESTS / "expected.yaml").read_text().replace("constraint: restricted-v2", "constraint: nonroot-v2")
    (tmp_path / "wrong.yaml").write_text(wrong + "- name: nobody\n  level: baseline\n")
    done = lint("--expect", tmp_path / "wrong.yaml", MANIFESTS / "workloads.yaml")
    assert done.returncode == 1
    assert "NOT AS EXPECTED   constraint: expected nonroot-v2, found restricted-v2" in done.stdout
    assert "nobody: expected, but not in any file" in done.stdout
    (tmp_path / "typo.yaml").write_text("- name: web\n  levle: baseline\n")
    done = lint("--expect", tmp_path / "typo.yaml", MANIFESTS / "workloads.yaml")
    assert done.returncode == 2 and "unknown key 'levle'" in done.stderr


@pytest.mark.parametrize(("level", "code"), [("privileged", 0), ("baseline", 1), ("restricted", 1)])
def test_a_demanded_level_decides_the_exit_code(level: str, code: int) -> None:
    assert lint("--level", level, MANIFESTS / "workloads.yaml").returncode == code


def test_advice_reaches_the_level(tmp_path: Path) -> None:
    """Applies the edits of every advice and checks that the level is met."""
    rng = random.Random(8)
    path = tmp_path / "pod.json"
    tried = 0
    while tried < 100:
        pod = draw_pod(rng)
        path.write_text(json.dumps(pod))
        done = lint("--json", "--level", "restricted", path)
        if done.returncode == 2 or not pod.get("spec", {}).get("containers"):  # some are generated to be unreadable
            continue
        changes = json.loads(done.stdout)["pods"][0]["changes"]
        for change in reversed(changes):  # from the end, so that indices of lists stay valid
            apply(pod, change)
        path.write_text(json.dumps(pod))
        again = json.loads(lint("--json", "--level", "restricted", path).stdout)["pods"][0]
        assert not again["findings"], (changes, pod)
        tried += bool(changes)


def apply(pod: dict[str, Any], change: dict[str, Any]) -> None:
    """Applies one edit of the advice to the object."""
    steps: list[str | int] = []
    if change["path"].startswith("metadata.annotations["):
        steps = ["metadata", "annotations", change["path"].split("[", 1)[1][:-1]]
    else:
        for name, index in re.findall(r"(\w+)(?:\[(\d+)\])?", change["path"]):
            steps += [name, int(index)] if index else [name]
    at: Any = pod
    for step in steps[:-1]:
        if isinstance(at, dict) and at.get(step) is None:
            at[step] = {}
        at = at[step]
    if change["action"] == "set":
        at[steps[-1]] = change["value"]
    else:
        del at[steps[-1]]


def test_older_standards_have_no_user_namespaces() -> None:
    new, old = pods(MANIFESTS / "workloads.yaml")["builder"], pods("--policy-version", "v1.34", MANIFESTS / "workloads.yaml")["builder"]
    assert new["withUserNamespace"]["level"] == "baseline"
    assert old["withUserNamespace"]["level"] == "privileged"


def test_sarif_has_a_location_for_every_finding() -> None:
    done = lint("--sarif", "--level", "baseline", MANIFESTS / "workloads.yaml")
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["version"] == "2.1.0"
    results = report["runs"][0]["results"]
    assert {"hostNamespaces", "runAsNonRoot"} <= {result["ruleId"] for result in results}
    assert [r["ruleId"] for r in results if r["level"] == "error"] == ["hostNamespaces"]
    assert all(r["locations"][0]["physicalLocation"]["region"]["startLine"] > 0 for r in results)


def test_constraints_from_a_file() -> None:
    done = lint("--json", "--constraints", MANIFESTS / "constraints.yaml", MANIFESTS / "workloads.yaml")
    found = {pod["name"]: pod["withHostUsers"] for pod in json.loads(done.stdout)["pods"]}
    assert found["web"]["constraint"] == "root-only"
    assert found["plain"]["constraint"] == "root-only"
    assert found["agent"]["constraint"] is None and "Host PID is not allowed" in found["agent"]["refusal"]


def test_standard_input_and_lists() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x\x1b[31m"}, "spec": {"containers": [{"name": "c"}]}}
    done = lint("-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod, pod]}))
    assert done.returncode == 0 and done.stdout.count("Pod x?[31m") == 2 and "\x1b" not in done.stdout


@pytest.mark.parametrize(("text", "words"), [
    ("kind: Pod\nspec: {hostUsers: maybe}\n", "line 1: spec.hostUsers: true or false is expected"),
    ("kind: Service\n", "no pods or workload objects found"),
    ("kind: Pod\nspec: [\n", "line "),
    ("kind: Pod\nspec:\n  a: \x01\n", "line 3: control characters are not allowed"),
    ("kind: Pod\nspec: {hostPID: true, hostPID: false}\n", "a second time"),
])
def test_unreadable_input_is_reported(text: str, words: str) -> None:
    done = lint("-", stdin=text)
    assert done.returncode == 2 and words in done.stderr


def test_pods_that_the_api_server_would_refuse_are_reported() -> None:
    done = lint("-", stdin="kind: Pod\nmetadata: {name: a}\nspec: {hostUsers: false, hostPID: true, containers: [{name: c}]}\n")
    assert done.returncode == 1
    assert "NOT VALID         spec.HostPID: Forbidden: when `hostUsers` is false" in done.stdout


# ---- what the API server would refuse, or not see ----

HEAD = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"
CONTAINERS = "  containers:\n  - name: a\n    image: x\n"


@pytest.mark.parametrize(("manifest", "path"), [
    (HEAD + "spec:\n  container:\n  - name: a\n    image: x\n", "spec.containers"),
    (HEAD + "spec: {}\n", "spec.containers"),
    (HEAD, "spec.containers"),
    (HEAD + "spec:\n  containers: []\n  initContainers:\n  - name: a\n", "spec.containers"),
    ("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec:\n  template: {}\n", "spec.template.spec.containers"),
    ("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", "spec.template.spec.containers"),
    ("apiVersion: batch/v1\nkind: CronJob\nspec: {jobTemplat: {}}\n", "spec.jobTemplate.spec.template.spec.containers"),
])
def test_a_pod_without_containers_is_not_valid(manifest: str, path: str) -> None:
    for arguments in (["--level", "restricted"], []):
        done = lint(*arguments, "-", stdin=manifest)
        assert done.returncode == 1
        assert f"NOT VALID         {path}: Required value" in done.stdout
        assert "restricted" not in done.stdout  # no level is claimed
    pod = json.loads(lint("--json", "-", stdin=manifest).stdout)["pods"][0]
    assert not pod["ok"] and "level" not in pod["withHostUsers"] and "level" not in pod["withUserNamespace"]


@pytest.mark.parametrize(("spec", "line", "field", "suggestion"), [
    (CONTAINERS + "    securityContext: {privilegd: true}\n", 8, "containers[0].securityContext.privilegd", "privileged"),
    (CONTAINERS + "    privileged: true\n", 8, "containers[0].privileged", "securityContext.privileged"),
    (CONTAINERS + "  hostusers: false\n", 8, "hostusers", "hostUsers"),
    ("  initcontainers: []\n" + CONTAINERS, 5, "initcontainers", "initContainers"),
    (CONTAINERS + "  volumes:\n  - name: v\n    hostpath: {path: /}\n", 10, "volumes[0].hostpath", "hostPath"),
])
def test_an_unknown_field_is_a_warning_and_with_a_level_an_error(tmp_path: Path, spec: str, line: int, field: str, suggestion: str) -> None:
    (tmp_path / "pod.yaml").write_text(HEAD + "spec:\n" + spec)
    (tmp_path / "expected.yaml").write_text("- name: x\n")
    words = f"spec.{field} (line {line}); did you mean {suggestion}?"
    done = lint(tmp_path / "pod.yaml")
    assert done.returncode == 0 and f"unknown field     {words}" in done.stdout
    for arguments in (["--level", "privileged"], ["--expect", tmp_path / "expected.yaml"]):
        done = lint(*arguments, tmp_path / "pod.yaml")
        assert done.returncode == 1 and f"UNKNOWN FIELD     {words}" in done.stdout and "1 of 1 failed." in done.stdout
    pod = pods(tmp_path / "pod.yaml")["x"]
    assert [(one["path"], one["line"], one["suggestion"]) for one in pod["unknownFields"]] == [(f"spec.{field}", line, suggestion)]


def test_objects_without_a_kind_and_kinds_of_other_groups_are_not_passed_over_silently() -> None:
    done = lint("-", stdin="spec: {containers: []}\n---\n" + HEAD + "spec:\n" + CONTAINERS)
    assert done.returncode == 2 and "line 1: an object without 'kind'" in done.stderr and "Pod x" in done.stdout
    others = "".join(f"---\napiVersion: {version}\nkind: {kind}\n" for version, kind in (
        ("argoproj.io/v1alpha1", "Rollout"), ("cert-manager.io/v1", "Certificate"), ("batch.volcano.sh/v1alpha1", "Job"),
        ("cert-manager.io/v1", "Certificate"), ("v1", '"Ser\\x9bvice"')))
    done = lint("--level", "baseline", "-", stdin=HEAD + "spec:\n" + CONTAINERS + others)
    assert done.returncode == 0
    assert done.stdout.endswith("not judged: Certificate 2, Job.batch.volcano.sh 1, Rollout 1, Ser?vice 1\n")


# ---- files ----

def test_links_pipes_and_standard_input_are_read(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(HEAD + "spec:\n" + CONTAINERS)
    (tmp_path / "link.yaml").symlink_to("pod.yaml")
    assert "Pod x" in lint(tmp_path / "link.yaml").stdout
    assert "Pod x" in lint("/dev/stdin", stdin=HEAD + "spec:\n" + CONTAINERS).stdout
    done = subprocess.run(["bash", "-c", f"{NODENS} lint <(cat {tmp_path}/pod.yaml) <(cat {tmp_path}/pod.yaml)"], text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stdout.count("Pod x") == 2
    done = lint("--expect", "/dev/stdin", tmp_path / "pod.yaml", stdin="- name: x\n  level: baseline\n")
    assert done.returncode == 0
    done = lint("/dev/zero", tmp_path / "pod.yaml")
    assert done.returncode == 2 and "read '/dev/zero': more than 16777216 bytes" in done.stderr and "Pod x" in done.stdout


def test_a_directory_is_read_as_kubectl_reads_it(tmp_path: Path) -> None:
    pod = HEAD + "spec:\n" + CONTAINERS
    for name in ("b.yaml", "a.yml", "c.txt", "sub/e.yaml", "sub/deep/f.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(pod.replace("name: x", f"name: {name.replace('/', '-')}"))
    (tmp_path / "d.json").write_text(json.dumps({"kind": "Pod", "metadata": {"name": "d.json"}, "spec": {"containers": [{"name": "c"}]}}))
    (tmp_path / "linked.yaml").symlink_to("b.yaml")
    (tmp_path / "sub" / "up").symlink_to("..")  # no circles

    def names(*arguments: object) -> list[str]:
        done = lint("--json", *arguments)
        assert done.returncode == 0, done.stderr
        return [pod["file"].removeprefix(f"{tmp_path}/") for pod in json.loads(done.stdout)["pods"]]

    assert names(tmp_path) == ["a.yml", "b.yaml", "d.json", "linked.yaml"]
    assert names("-R", tmp_path) == ["a.yml", "b.yaml", "d.json", "linked.yaml", "sub/deep/f.yml", "sub/e.yaml"]
    (tmp_path / "empty").mkdir()
    done = lint(tmp_path / "empty", tmp_path / "b.yaml")
    assert done.returncode == 2 and f"no *.json, *.yaml or *.yml in '{tmp_path}/empty'; --recursive" in done.stderr
    assert "Pod b.yaml" in done.stdout


def test_a_fifo_or_a_broken_link_in_a_directory_does_not_stop_the_others(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").symlink_to("nowhere")
    (tmp_path / "c.yaml").write_text(HEAD + "spec:\n" + CONTAINERS)
    done = lint(tmp_path)
    assert done.returncode == 2 and "Pod x" in done.stdout
    assert "a.yaml': not a regular file" in done.stderr and "b.yaml': No such file or directory" in done.stderr


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path) -> None:
    for name, text in (("one.yaml", HEAD + "spec:\n" + CONTAINERS), ("bad.yaml", "kind: Pod\nspec: [\n"),
                       ("two.yaml", HEAD + "spec:\n  hostPID: maybe\n---\n" + HEAD.replace("x", "y") + "spec:\n" + CONTAINERS)):
        (tmp_path / name).write_text(text)
    paths = [tmp_path / name for name in ("one.yaml", "bad.yaml", "two.yaml")]
    done = lint("--level", "restricted", *paths)
    assert done.returncode == 2
    assert "Pod x" in done.stdout and "two.yaml:7: Pod y" in done.stdout
    assert f"nodens lint: {tmp_path}/bad.yaml: line 3: " in done.stderr
    assert f"nodens lint: {tmp_path}/two.yaml: line 1: spec.hostPID: true or false is expected" in done.stderr
    report = json.loads(lint("--json", *paths).stdout)
    assert [one["file"] for one in report["unreadable"]] == [str(paths[1]), str(paths[2])] and len(report["pods"]) == 2
    run = json.loads(lint("--sarif", *paths).stdout)["runs"][0]
    assert not run["invocations"][0]["executionSuccessful"] and len(run["invocations"][0]["toolExecutionNotifications"]) == 2


ANCHORS = HEAD.replace("Pod", "Deployment").replace("v1", "apps/v1") + """\
spec:
  template:
    spec:
      containers:
      - &base
        name: a
        image: x
        securityContext: &strict
          privileged: true
        volumeMounts: [{name: sock, mountPath: /sock}]
      - <<: *base
        name: b
      - name: c
        securityContext: *strict
      volumes:
      - name: tmp
        emptyDir: {}
      - name: sock
        hostPath: {path: /run/docker.sock}
"""


def test_anchors_aliases_and_merge_keys_are_read() -> None:
    report = json.loads(lint("--json", "-", stdin=ANCHORS).stdout)["pods"][0]
    assert report["withHostUsers"]["level"] == "privileged" and not report["unknownFields"]
    finding = next(one for one in report["findings"] if one["check"] == "privileged")
    assert finding["detail"].startswith('containers "a", "b", "c"')


def test_a_billion_laughs_are_refused() -> None:
    laughs = "a0: &a0 [lol]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 13))
    for bomb in (laughs, laughs.replace("[", "{<<: [").replace("]", "]}").replace("[lol]", "{x: 1}").replace("{<<: {x: 1}}", "{x: 1}"),
                 f"a: &a {'x' * 1000000}\nb: [{', '.join(['*a'] * 1000)}]\n"):
        done = lint("-", stdin="kind: Pod\n" + bomb)
        assert done.returncode == 2 and "after aliases are expanded" in done.stderr, done.stderr


# ---- reports ----

def test_sarif_has_rules_and_the_line_of_each_field(tmp_path: Path) -> None:
    path = tmp_path / "a b.yaml"
    path.write_text(ANCHORS)
    run = json.loads(lint("--sarif", "--level", "baseline", path).stdout)["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules) and all(rule["shortDescription"]["text"] for rule in rules)
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    where = [(r["ruleId"], r["locations"][0]["physicalLocation"]["region"]["startLine"]) for r in run["results"]]
    # the hostPath volume; privileged of the anchor, merged and as an alias
    assert where == [("hostPathVolumes", 21), ("privileged", 12), ("privileged", 12), ("privileged", 12)]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == f"file://{tmp_path}/a%20b.yaml"
    assert "spec.template.spec.containers[2].securityContext.privileged: not baseline" in run["results"][3]["message"]["text"]


def test_every_check_has_a_rule() -> None:
    """Generated pods violate all checks; each must have an index into the rules."""
    rng = random.Random(8)
    items = [draw_pod(rng) | {"kind": "Pod"} for _ in range(300)]
    seen = set()
    for level in ("baseline", "restricted"):
        run = json.loads(lint("--sarif", "--level", level, "-", stdin=json.dumps({"kind": "List", "items": items})).stdout)["runs"][0]
        rules = run["tool"]["driver"]["rules"]
        for result in run["results"]:
            assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
            seen.add(result["ruleId"])
    assert {rule["id"] for rule in rules} - seen <= {"expectation", "unknownField"}


def test_lines_of_missing_fields_and_of_json() -> None:
    """A field that is missing has the line of the innermost object around it that exists."""
    text = json.dumps({"kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [{"name": "a"}, {"name": "b",
                      "securityContext": {"allowPrivilegeEscalation": True}}]}}, indent=1)
    lines = text.splitlines()
    found = json.loads(lint("--json", "--level", "restricted", "-", stdin=text).stdout)["pods"][0]["findings"]
    escalation = next(one for one in found if one["check"] == "allowPrivilegeEscalation")
    assert [one["line"] for one in escalation["fields"]] == [
        next(i for i, line in enumerate(lines, 1) if '"containers"' in line) + 1,
        next(i for i, line in enumerate(lines, 1) if "allowPrivilegeEscalation" in line)]


def test_values_of_changes_are_json_and_a_volume_goes_with_its_mounts() -> None:
    changes = json.loads(lint("--json", "--level", "restricted", "-", stdin=ANCHORS).stdout)["pods"][0]["changes"]
    values = {change["path"]: change["value"] for change in changes if change["action"] == "set"}
    assert values["spec.template.spec.containers[0].securityContext.allowPrivilegeEscalation"] is False
    assert values["spec.template.spec.containers[0].securityContext.capabilities.drop"] == ["ALL"]
    removed = [change["path"].removeprefix("spec.template.spec.") for change in changes if change["action"] == "remove"]
    assert [path for path in removed if "olume" in path] == ["volumes[1]", "containers[0].volumeMounts[0]", "containers[1].volumeMounts[0]"]


@pytest.mark.parametrize(("arguments", "words"), [
    (["--policy-version", "v1.99", "-"], "--policy-version v1.99: must be latest, or v1.0 to v1.37"),
    (["--policy-version", "v1.38", "-"], "must be latest, or v1.0 to v1.37"),
    (["--policy-version", "1.30", "-"], "must be latest, or v1.0 to v1.37"),
    (["--level", "strict", "-"], "--level strict: must be one of privileged, baseline, restricted"),
    (["--json", "--sarif", "-"], "--json cannot be combined with --sarif"),
    (["--constraints", "x", "--as", "y", "-"], "--constraints cannot be combined"),
    ([], "missing manifest files"),
    (["--nosuch", "-"], "--nosuch"),
])
def test_a_wrong_command_line_has_the_exit_status_64(arguments: list[str], words: str) -> None:
    done = lint(*arguments, stdin="")
    assert done.returncode == 64 and words in done.stderr and not done.stdout


@pytest.mark.parametrize("version", ["latest", "v1.0", "v1.37"])
def test_known_policy_versions_are_taken(version: str) -> None:
    assert lint("--policy-version", version, MANIFESTS / "workloads.yaml").returncode == 0
