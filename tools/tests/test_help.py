# SPDX-License-Identifier: Apache-2.0
"""Help fits a screen, and its lists come from the tables."""
import argparse

import pytest
from nodensdev import main
from nodensdev.checks import ci, lint, tests


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
