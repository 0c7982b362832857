# SPDX-License-Identifier: Apache-2.0
"""docs/rootless-workloads.md: each row names a test that exists, and each test of workloads is named."""
import re
from pathlib import Path

import pytest
from nodensdev.project import TOP

PAGE = TOP / "docs/rootless-workloads.md"
SCENARIOS = TOP / "tests/cluster/scenarios/rootless"
FILES = ("test_pods.py", "test_volumes.py", "test_limits.py")
WORKS = ("yes", "no", "-", "in the node", "if ", "[with ")


def rows(text: str) -> list[list[str]]:
    """The cells of the page's one table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def scenario_names(directory: Path) -> set[str]:
    return {name for file in FILES for name in re.findall(r"^def (test_\w+)", (directory / file).read_text(), re.MULTILINE)}


def problems(text: str, tests: set[str]) -> list[str]:
    found, named = [], set()
    for row in rows(text):
        names = re.findall(r"`(test_\w+)`", row[-1]) if len(row) == 4 else []
        named.update(names)
        if len(row) != 4 or not names:
            found.append(f"row without a test: {row[0]}")
        elif not row[1].startswith(WORKS):
            found.append(f"neither works nor does not: {row[0]}")
        elif row[1] == "no" and not row[2]:
            found.append(f"what one sees is missing: {row[0]}")
        found += [f"there is no test {name}" for name in names if name not in tests]
    return found + [f"no row names {name}" for name in sorted(tests - named)]


def test_every_row_names_a_test_and_every_test_has_a_row() -> None:
    tests = scenario_names(SCENARIOS)
    assert len(tests) > 30 and problems(PAGE.read_text(), tests) == []


def test_the_suites_run_these_files_with_both_runtimes() -> None:
    text = (TOP / "tools/nodensdev/checks/tests.py").read_text()
    for suite in ("rootless-node", "rootless-node-containerd"):
        assert re.search(rf'"{suite}": Suite\([^)]*?pytest_on_machine\("tests/cluster/scenarios/rootless"', text, re.DOTALL), suite


@pytest.mark.parametrize(("row", "message"), [
    ("| x | yes | | nothing |", "row without a test"),
    ("| x | perhaps | | `test_a` |", "neither works nor does not"),
    ("| x | no | | `test_a` |", "what one sees is missing"),
    ("| x | yes | | `test_absent` |", "there is no test test_absent"),
    ("| x | yes | | `test_absent` |", "no row names test_a"),
])
def test_a_wrong_row_is_found(row: str, message: str) -> None:
    page = f"| feature | works | what you see | test |\n|---|---|---|---|\n{row}\n"
    assert any(message in one for one in problems(page, {"test_a"}))
