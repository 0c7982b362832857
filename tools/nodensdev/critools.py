# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/cri-tools.md, from the results of `tools/dev test critest`.

The tests write what became of each test of critest, by runtime, to build/critest/critest.json. `tools/dev cri-table` puts these results
into tests/component/cri-tools/results.json (those of runtimes that did not run stay) and the tables into the page, with the reasons
of tests/component/cri-tools/reasons.toml; `tools/dev lint tables` compares page, results and reasons.
"""
import argparse
import json
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import page_tables
from .command import Command, Failure
from .project import BUILD, TESTS, TOP, commit

NEWEST = BUILD / "critest/critest.json"
IN_GUEST = "$FILES/critest.json"        # where a suite in a guest writes it
RESULTS = TESTS / "component/cri-tools/results.json"
REASONS = TESTS / "component/cri-tools/reasons.toml"
PAGE = TOP / "docs/cri-tools.md"
OURS, BASELINE = "nodens-cri", "containerd"
NODE = ("kernel", "architecture", "distribution", "crun")
STATES = ("passed", "failed", "skipped")


@dataclass(frozen=True)
class Outcome:
    """What became of one test of critest."""

    test: str
    state: str
    message: str = ""

    def plain_state(self) -> str:
        """Ginkgo has several words for a failure."""
        return self.state if self.state in ("passed", "skipped") else "failed"


@dataclass(frozen=True)
class Reason:
    """Why a test does not pass on some runtimes."""

    test: str
    state: str
    runtimes: tuple[str, ...]
    reason: str
    sometimes: bool = False     # it passes in other runs


Results = dict[str, list[Outcome]]      # by runtime


def reasons() -> list[Reason]:
    return [Reason(entry["test"], entry["state"], tuple(entry["runtimes"]), entry["reason"], entry.get("sometimes", False))
            for entry in tomllib.loads(REASONS.read_text()).get("case", [])]


def write(path: Path, results: Results, facts: dict[str, str]) -> None:
    def plain(one: Outcome) -> dict[str, str]:
        return {key: value for key, value in asdict(one).items() if value}

    listed = {name: [plain(one) for one in sorted(found, key=lambda one: one.test)] for name, found in results.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"facts": facts, "results": listed}, indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> tuple[Results, dict[str, Any]]:
    data = json.loads(path.read_text())
    return {name: [Outcome(**one) for one in found] for name, found in data["results"].items()}, data["facts"]


def lost(results: Results) -> list[str]:
    """Tests that the baseline passes and we do not."""
    ours = {one.test: one for one in results.get(OURS, [])}
    return [f"{one.test}: {ours[one.test].state if one.test in ours else 'not run'} on {OURS}, passed on {BASELINE}"
            for one in results.get(BASELINE, []) if one.state == "passed" and (one.test not in ours or ours[one.test].state != "passed")]


def unexplained(results: Results, known: Sequence[Reason]) -> list[str]:
    """Failures and skips without a reason, and reasons of tests that pass."""
    listed = {(reason.test, runtime): reason for reason in known for runtime in reason.runtimes}
    found = {(one.test, runtime): one for runtime, every in results.items() for one in every}
    wrong = [f"{runtime}: {test}: {one.plain_state()}, without a reason: {one.message}" for (test, runtime), one in found.items()
             if one.state != "passed" and ((test, runtime) not in listed or listed[test, runtime].state != one.plain_state())]
    return wrong + [f"{runtime}: {test} has a reason to be {reason.state}, but is {found[test, runtime].state}"
                    if (test, runtime) in found else f"{runtime}: no test '{test}'"
                    for (test, runtime), reason in listed.items() if runtime in results
                    and ((test, runtime) not in found or found[test, runtime].state == "passed" and not reason.sometimes)]


def problems_of(results: Results, known: Sequence[Reason]) -> list[str]:
    missing = [f"no result of critest on {name}" for name in (OURS, BASELINE) if not results.get(name)]
    return missing + lost(results) + unexplained(results, known)


def render_counts(results: Results, facts: dict[str, Any]) -> str:
    lines = ["| | " + " | ".join(f"{name} {facts.get(name, '')}".strip() for name in results) + " |", "|---" * (len(results) + 1) + "|"]
    for state in STATES:
        counts = [sum(one.plain_state() == state for one in found) for found in results.values()]
        lines.append(f"| {state} | {' | '.join(map(str, counts))} |")
    return "\n".join([*lines, f"| in all | {' | '.join(str(len(found)) for found in results.values())} |"]) + "\n"


def render_reasons(results: Results, known: Sequence[Reason]) -> str:
    lines = ["| test | " + " | ".join(results) + " | reason |", "|---" * (len(results) + 2) + "|"]
    states = {(one.test, runtime): one.plain_state() for runtime, found in results.items() for one in found}
    for reason in sorted(known, key=lambda one: one.test):
        shown = [states.get((reason.test, runtime), "-") for runtime in results]
        lines.append(f"| {reason.test} | {' | '.join(shown)} | {reason.reason} |")
    return "\n".join(lines) + "\n"


def page_from(page: str, results: Results, facts: dict[str, Any], known: Sequence[Reason]) -> str:
    """The page with its tables replaced."""
    tables = {"counts": render_counts(results, facts), "reasons": render_reasons(results, known)}
    return page_tables.replaced(page, PAGE.name, tables, facts, f"on the kernel {facts.get('kernel', '?')}")


def problems() -> list[str]:
    """What is wrong with the page and the results that are committed."""
    results, facts = read(RESULTS)
    known = reasons()
    wanted = page_from(PAGE.read_text(), results, facts, known)
    return problems_of(results, known) + page_tables.stale(PAGE, wanted, RESULTS, "cri-table")


def merged(old: tuple[Results, dict[str, Any]], new: tuple[Results, dict[str, Any]]) -> tuple[Results, dict[str, Any]]:
    """New results in the place of old ones. What the node was is a fact about the run of our runtime."""
    facts = {name: value for name, value in new[1].items() if OURS in new[0] or name not in NODE}
    return old[0] | new[0], old[1] | facts


def options(parser: argparse.ArgumentParser) -> None:
    page_tables.add_committed(parser, RESULTS)


def run(args: argparse.Namespace) -> int:
    source = page_tables.source(args, RESULTS, NEWEST, "`tools/dev test critest` writes them")
    results, facts = read(source)
    if not args.committed and RESULTS.is_file():        # a run may have been of one runtime alone
        results, facts = merged(read(RESULTS), (results, facts))
    known = reasons()
    if wrong := problems_of(results, known):
        raise Failure("\n".join(wrong))
    if not args.committed:
        facts |= {"commit": commit(), "date": time.strftime("%Y-%m-%d", time.gmtime(source.stat().st_mtime))}
        write(RESULTS, {name: [Outcome(one.test, one.plain_state()) for one in found] for name, found in results.items()}, facts)
    PAGE.write_text(page_from(PAGE.read_text(), results, facts, known))
    print(f"{PAGE.relative_to(TOP)}: " + ", ".join(f"{len(found)} tests on {name}" for name, found in results.items()))
    return 0


COMMANDS = [Command("cri-table", "write the newest results of `tools/dev test critest` to docs/cri-tools.md", run, options)]
