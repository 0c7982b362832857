# SPDX-License-Identifier: Apache-2.0
"""From outcomes to a verdict, by one rule for every runtime: a test has failed when it fails again, alone, twice.

A test that fails among others and passes alone is reported as `flaky` and counts as passed; its first failure stays in
the logs.
"""
from collections.abc import Sized
from dataclasses import dataclass, field
from pathlib import Path

from ..env import machine
from .outcome import Outcome
from .selection import ROOTFUL, Exclusion, exclusion_of
from .suite import Suite

RETRIES = 2


@dataclass
class Verdict:
    """What is known about a set of tests after a run."""

    passed: list[Outcome] = field(default_factory=list)
    flaky: list[Outcome] = field(default_factory=list)          # failed at first, passed alone
    failed: list[Outcome] = field(default_factory=list)
    skipped: list[Outcome] = field(default_factory=list)        # by the suite itself, which says why
    missing: list[str] = field(default_factory=list)            # asked for, but the suite never got to them
    excluded: list[tuple[str, Exclusion]] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.failed and not self.missing and bool(self.passed or self.flaky)

    def counts(self) -> dict[str, int]:
        fields: dict[str, Sized] = {"passed": self.passed + self.flaky, "flaky": self.flaky, "failed": self.failed, "skipped": self.skipped,
                  "missing": self.missing, "excluded": self.excluded}
        return {name: len(items) for name, items in fields.items()}


def split(names: list[str], kernel: str, known: list[Exclusion], node: str = ROOTFUL) -> tuple[list[str], list[tuple[str, Exclusion]]]:
    """The tests to run, and those that cannot run here, with their entries."""
    chosen, left = [], []
    for name in names:
        entry = exclusion_of(name, kernel, known, node)
        if entry:
            left.append((name, entry))
        else:
            chosen.append(name)
    return chosen, left


def judge(suite: Suite, names: list[str], processes: int, directory: Path, verdict: Verdict) -> None:
    """Runs the tests, and those that fail again, alone; adds what comes out to the verdict."""
    first = suite.run(names, processes, directory.with_name(f"{directory.name}-all"))
    seen = {outcome.name for outcome in first}
    verdict.missing += [name for name in names if name not in seen]
    for outcome in first:
        if outcome.state == "passed":
            verdict.passed.append(outcome)
        elif outcome.state == "skipped":
            verdict.skipped.append(outcome)
        elif outcome.name not in names:
            verdict.failed.append(outcome)  # the suite's own set-up: nothing to run alone
    failures = [outcome for outcome in first if outcome.state == "failed" and outcome.name in names]
    for number, outcome in enumerate(failures, 1):
        machine.say(f"alone, {number} of {len(failures)}: {outcome.name}")
        alone = directory.with_name(f"{directory.name}-alone-{number}")
        (verdict.failed if fails_alone(suite, outcome, alone) else verdict.flaky).append(outcome)


def fails_alone(suite: Suite, outcome: Outcome, directory: Path) -> bool:
    for attempt in range(1, RETRIES + 1):
        again = suite.run([outcome.name], 1, directory.with_name(f"{directory.name}.{attempt}"))
        if all(one.state == "passed" for one in again):
            return False
    return True
