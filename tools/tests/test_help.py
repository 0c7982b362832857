# SPDX-License-Identifier: Apache-2.0
"""Help fits a screen, and its lists come from the tables."""
import argparse
import subprocess
import sys

import pytest
from nodensdev import main
from nodensdev.checks import ci, lint, tests
from nodensdev.project import TOP


def test_the_list_of_commands_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    main.show_help(main.commands())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 100


def test_every_suite_is_in_one_group() -> None:
    groups = tests.grouped()
    assert [title.split(":")[0] for title in groups] == ["unit", "component", "cluster", "long", "nightly"] and all(groups.values())
    assert sorted(name for names in groups.values() for name in names) == sorted(tests.SUITES)


def test_lines_of_suites_and_lints_fit_a_screen() -> None:
    for options in (tests.options, lint.lint_options):
        parser = argparse.ArgumentParser(prog="tools/dev x")
        options(parser)
        assert max(map(len, parser.format_help().splitlines())) <= 100


def test_the_gate_runs_every_lint() -> None:
    assert {step.command[1] for step in ci.STEPS if step.command[0] == "lint"} == set(lint.CHECKS)


@pytest.mark.parametrize(("arguments", "said"), [
    (["tset"], "tools/dev: no command 'tset'; near: test; `tools/dev help` lists them"),
    (["test", "unitt"], "no suite 'unitt'; near: unit; --help lists them"),
    (["lint", "nmaes"], "no check 'nmaes'; near: names; --help lists them"),
    (["test", "-k", "table"], "tools/dev test: -k table needs the suite that has the test; --help lists them"),
])
def test_a_wrong_word_is_answered_with_the_nearest_ones(arguments: list[str], said: str) -> None:
    done = subprocess.run([sys.executable, TOP / "tools/dev", *arguments], capture_output=True, text=True)
    assert done.returncode in (1, 2) and done.stderr.splitlines()[-1].endswith(said), done.stderr
    assert len(done.stderr.splitlines()[-1]) < 120


@pytest.mark.parametrize("arguments", ("help", "test --help"))
def test_help_that_is_read_in_part_ends_quietly(arguments: str) -> None:
    script = f"set -o pipefail; {sys.executable} {TOP}/tools/dev {arguments} | true"
    for _ in range(3):      # `true` may end before or after the first write
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        assert done.stderr == "" and done.returncode in (0, 141), done


def test_a_run_can_be_narrowed_to_some_tests() -> None:
    before = tests.ONLY.set("fits")
    try:
        assert tests.selected(("-s",)) == ["-s", "-k", "fits"]
        assert tests.selected(("-k", "a or b")) == ["-k", "(a or b) and (fits)"]
    finally:
        tests.ONLY.reset(before)
    assert tests.selected(("-s",)) == ["-s"]
