# SPDX-License-Identifier: Apache-2.0
"""How tests ended, read from ginkgo's JSON report."""
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FAILED_STATES = {"failed", "panicked", "timedout", "interrupted", "aborted"}


@dataclass(frozen=True)
class Outcome:
    """How one test ended."""

    name: str
    state: str                  # passed, failed or skipped
    seconds: float
    message: str = ""


def full_name(report: dict[str, Any]) -> str:
    parts = [*(report["ContainerHierarchyTexts"] or []), report["LeafNodeText"]]
    return " ".join(part for part in parts if part)


def message_of(report: dict[str, Any]) -> str:
    return ((report.get("Failure") or {}).get("Message") or "").strip()


def outcome_from(report: dict[str, Any]) -> Outcome:
    state = "failed" if report["State"] in FAILED_STATES else report["State"]
    kind = report["LeafNodeType"]
    name = full_name(report) if kind == "It" else f"({kind})"  # set-up and tear-down of the suite have no name
    return Outcome(name, state, report["RunTime"] / 1e9, message_of(report))


def read_report(path: Path) -> list[Outcome]:
    """The tests of a report that ran, and other failures, without tests that were not selected."""
    if not path.exists():
        return []
    reports = [report for suite in json.loads(path.read_text()) for report in suite["SpecReports"] or []]
    return [outcome_from(report) for report in reports
            if report["State"] in FAILED_STATES or (report["LeafNodeType"] == "It" and report["NumAttempts"] > 0)]


def read_list(path: Path) -> list[str]:
    """The names of the tests that a dry run has selected."""
    reports = [report for suite in json.loads(path.read_text()) for report in suite["SpecReports"] or []]
    return sorted(full_name(report) for report in reports if report["LeafNodeType"] == "It" and report["State"] == "passed")


def exactly(names: Iterable[str]) -> str:
    """A Go expression for these tests and no others."""
    return "(" + "|".join(re.escape(name) for name in names) + ")$"
