"""Upstream's end-to-end suite as a program: listing tests, running some of them, reading what came out.

The suite runs on the machine, in the network namespace of the cluster's control plane, from which the API server, the
node and the pods can be reached. ginkgo spreads the tests over processes; its JSON report is what we read.
"""
import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import cache, gobin
from ..command import Failure

TEST_TIMEOUT = "4h"
ARGUMENTS = ["--provider=skeleton", "--num-nodes=1", "--minStartupPods=0", "--allowed-not-ready-nodes=0", "--disable-log-dump=true"]
FAILED_STATES = {"failed", "panicked", "timedout", "interrupted", "aborted"}


@dataclass(frozen=True)
class Outcome:
    """How one test ended."""

    name: str
    state: str                  # passed, failed or skipped
    seconds: float
    message: str = ""


@dataclass(frozen=True)
class Target:
    """The cluster that is tested."""

    kubeconfig: Path
    netns: Path | None


def programs() -> tuple[Path, Path, Path]:
    tests = gobin.ensure("e2e")
    return tests / "ginkgo", tests / "e2e.test", gobin.ensure("kubernetes") / "kubectl"


def full_name(report: dict[str, Any]) -> str:
    parts = [*(report["ContainerHierarchyTexts"] or []), report["LeafNodeText"]]
    return " ".join(part for part in parts if part)


def read_report(path: Path) -> list[Outcome]:
    """The tests of a JSON report; those that were not selected are left out."""
    if not path.exists():
        return []
    found = []
    for suite in json.loads(path.read_text()):
        for report in suite["SpecReports"] or []:
            if report["LeafNodeType"] == "It" and (report["NumAttempts"] > 0 or report["State"] in FAILED_STATES):
                found.append(outcome_from(report))
            elif report["State"] in FAILED_STATES:  # set-up and tear-down of the whole suite
                found.append(Outcome(f"({report['LeafNodeType']})", "failed", report["RunTime"] / 1e9, message_of(report)))
    return found


def outcome_from(report: dict[str, Any]) -> Outcome:
    state = "failed" if report["State"] in FAILED_STATES else report["State"]
    return Outcome(full_name(report), state, report["RunTime"] / 1e9, message_of(report))


def message_of(report: dict[str, Any]) -> str:
    return ((report.get("Failure") or {}).get("Message") or "").strip()


def list_tests(focus: str) -> list[str]:
    """The full names of the tests that an expression selects."""
    _, program, _ = programs()
    with cache.scratch("e2e") as work:
        command = [str(program), *ARGUMENTS, "--ginkgo.dry-run", "--ginkgo.no-color", f"--ginkgo.focus={focus}", f"--ginkgo.json-report={work}/list.json"]
        done = subprocess.run(command, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"the suite cannot list its tests:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        suites = json.loads((work / "list.json").read_text())
    reports = [report for suite in suites for report in suite["SpecReports"] if report["LeafNodeType"] == "It"]
    return sorted(full_name(report) for report in reports if report["State"] == "passed")


def exactly(names: Iterable[str]) -> str:
    """A Go expression for these tests and no others."""
    return "(" + "|".join(re.escape(name) for name in names) + ")$"


def run(target: Target, names: list[str], processes: int, directory: Path) -> list[Outcome]:
    """Runs tests; the logs, ginkgo's report and JUnit stay in the directory."""
    ginkgo, program, kubectl = programs()
    directory.mkdir(parents=True)
    (directory / "names").write_text("".join(f"{name}\n" for name in names))
    command = ["nsenter", f"--net={target.netns}", "--"] if target.netns else []
    command += [str(ginkgo), "run", "--no-color", f"--procs={processes}", f"--timeout={TEST_TIMEOUT}", f"--focus={exactly(names)}",
                f"--output-dir={directory}", "--json-report=report.json", "--junit-report=junit.xml", str(program), "--", *ARGUMENTS,
                f"--kubeconfig={target.kubeconfig}", f"--kubectl-path={kubectl}", f"--report-dir={directory}"]
    with open(directory / "log", "wb") as log, subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=log,
                                                                 stderr=subprocess.STDOUT) as process:
        try:
            process.wait()
        except BaseException:
            process.terminate()
            raise
    outcomes = read_report(directory / "report.json")
    if not outcomes:
        raise Failure(f"the suite ran no test; its log is {directory / 'log'}:\n{(directory / 'log').read_text(errors='replace')[-2000:]}")
    return outcomes
