# SPDX-License-Identifier: Apache-2.0
"""`nodens lint` on the command line and in pipelines."""
import json
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
    assert "  host's users      baseline    anyuid, if granted   (as it is)\n" in done.stdout
    assert "  user namespace    baseline    userns-root, if granted\n" in done.stdout
    assert "  for restricted    set spec.template.spec.hostUsers: false\n" in done.stdout
    assert "  user namespace    not with spec.hostPID\n" in done.stdout


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
        if done.returncode == 2:  # some are generated to be unreadable
            continue
        changes = json.loads(done.stdout)["pods"][0]["changes"]
        for change in reversed(changes):  # from the end, so that indices of lists stay valid
            apply(pod, change)
        path.write_text(json.dumps(pod))
        again = json.loads(lint("--json", "--level", "restricted", path).stdout)["pods"][0]
        assert not again["findings"], (changes, pod)
        tried += bool(changes)


def apply(pod: dict[str, Any], change: dict[str, str]) -> None:
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
        at[steps[-1]] = json.loads(change["value"])
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
    ("kind: Pod\nspec: {hostPID: true, hostPID: false}\n", "a second time"),
])
def test_unreadable_input_is_reported(text: str, words: str) -> None:
    done = lint("-", stdin=text)
    assert done.returncode == 2 and words in done.stderr


def test_pods_that_the_api_server_would_refuse_are_reported() -> None:
    done = lint("-", stdin="kind: Pod\nmetadata: {name: a}\nspec: {hostUsers: false, hostPID: true, containers: [{name: c}]}\n")
    assert done.returncode == 1
    assert "NOT VALID         spec.HostPID: Forbidden: when `hostUsers` is false" in done.stdout
