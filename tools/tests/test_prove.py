# SPDX-License-Identifier: Apache-2.0
import contextlib
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from nodensdev.checks import prove
from nodensdev.checks.prove import Check, Miss, Proof, Refuted
from nodensdev.command import Failure


def proof(tmp_path: Path) -> Proof:
    return Proof("thing", None, tmp_path / "log", full=False)  # type: ignore[arg-type]


def test_checks_are_found_in_the_order_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thing.py").write_text(
        "from nodensdev.checks.prove import check\n"
        "@check('second things')\ndef b(proof): pass\n"
        "@check('first things', full_only=True)\ndef a(proof): pass\n")
    monkeypatch.setattr(prove, "PROOFS", tmp_path)
    assert [(item.title, item.full_only) for item in prove.load("thing")[0]] == [("second things", False), ("first things", True)]


def test_a_broken_promise_fails_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    item = Check("it holds", lambda proof: proof.expect(False, "water is dry"), False)
    assert not prove.try_check(item, proof(tmp_path))
    assert "not so: water is dry" in capsys.readouterr().out


def test_an_unexpected_exit_code_fails_the_check(tmp_path: Path) -> None:
    assert not prove.try_check(Check("x", lambda proof: none(proof.machine(["false"])), False), _in_tree(tmp_path))
    assert prove.try_check(Check("x", lambda proof: none(proof.machine(["false"], expect=1)), False), _in_tree(tmp_path))


def none(_: object) -> None:
    """A check returns nothing."""


def _in_tree(tmp_path: Path) -> Proof:
    """Logs are reported relative to the tree."""
    log = prove.BUILD / "prove" / tmp_path.name
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    return Proof("thing", None, log, full=False)  # type: ignore[arg-type]


def test_figures_stand_beside_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prove.try_check(Check("it is quick", lambda proof: proof.figure("p99", "1 us"), False), proof(tmp_path))
    assert "it is quick  [p99: 1 us]" in capsys.readouterr().out


def test_a_missed_aim_fails_the_check_unless_its_reason_is_known(tmp_path: Path) -> None:
    tried = proof(tmp_path)
    tried.aim("start", 0.24, most=0.25, unit=" x")
    tried.aim("rate", 12, least=10)
    assert tried.missed == []
    with pytest.raises(Refuted, match="start: 0.37 x"):
        tried.aim("start", 0.37, most=0.25, unit=" x")
    known = Miss(worst=0.4, limit="the engines alone take 0.36 x")
    tried.aim("start", 0.37, most=0.25, unit=" x", known=known)
    assert tried.missed == ["start: 0.37 x (aim: at most 0.25 x); the engines alone take 0.36 x"]
    with pytest.raises(Refuted):
        tried.aim("start", 0.41, most=0.25, unit=" x", known=known)
    with pytest.raises(Refuted):
        tried.aim("rate", 8, least=10, known=Miss(worst=9, limit="one core"))


class Scripted(Proof):
    """A proof whose `tools/dev` prints what a test says, and keeps what it was called with."""

    def __init__(self, tmp_path: Path, outputs: dict[tuple[str, ...], str]) -> None:
        super().__init__("thing", None, tmp_path / "log", full=False)  # type: ignore[arg-type]
        self.outputs = outputs
        self.called: list[tuple[str, ...]] = []

    def dev(self, *arguments: str, timeout: float | None = None, expect: int | None = 0) -> CompletedProcess[str]:
        assert timeout and expect == 0, "a proof waits for a limited time, and for success"
        self.called.append(arguments)
        return CompletedProcess([], 0, self.outputs[arguments], "")


def test_suites_are_shown_with_the_number_of_tests_that_passed(tmp_path: Path) -> None:
    meson = "Ok:                 12\nFail:               0\n\nOk:                 3\n"
    tried = Scripted(tmp_path, {("test", "unit"): meson, ("test", "cri"): "...\n7 passed, 1 skipped in 3.21s (0:00:03)\n"})
    tried.suites("unit", "cri")
    assert tried.figures == ["unit: 15 passed", "cri: 7 passed, 1 skipped"]


def test_a_suite_that_counts_nothing_is_shown_as_such(tmp_path: Path) -> None:
    tried = Scripted(tmp_path, {("test", "unit"): "nothing to do\n"})
    tried.suites("unit")
    assert tried.figures == ["unit: no count was printed"]


@pytest.mark.parametrize(("line", "passes"), [
    ("7 passed, 1 skipped, 2 xfailed in 3.21s", True), ("7 passed, 1 error in 3.21s", False), ("1 failed, 7 passed in 3.21s", False),
    ("2 passed in 1s", False)])
def test_tests_that_are_expected_to_fail_do_not_fail_a_check(tmp_path: Path, line: str, passes: bool) -> None:
    tried = Scripted(tmp_path, {})
    if passes:
        tried.passed(line, 3)
        return
    with pytest.raises(Refuted):
        tried.passed(line, 3)


def test_the_gate_is_shown_by_its_last_line(tmp_path: Path) -> None:
    tried = Scripted(tmp_path, {("ci",): "ok  build\n41 passed, 0 failed\n"})
    tried.gate()
    assert tried.figures == ["gate: 41 passed, 0 failed"]


def test_a_proof_runs_all_others_but_not_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("thing", "second", "first"):
        (tmp_path / f"{name}.py").touch()
    monkeypatch.setattr(prove, "PROOFS", tmp_path)
    tried = Scripted(tmp_path, {("prove", "first"): "2 passed, 0 failed\n", ("prove", "second"): "1 passed, 0 failed\n"})
    tried.others()
    assert tried.called == [("prove", "first"), ("prove", "second")]
    assert tried.figures == ["first: 2 passed, 0 failed", "second: 1 passed, 0 failed"]


def test_a_suite_that_fails_fails_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "TOOLS", tmp_path)
    (tmp_path / "dev").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "dev").chmod(0o755)
    for run in (lambda proof: proof.suites("unit"), lambda proof: proof.gate(), lambda proof: proof.others()):
        assert not prove.try_check(Check("x", run, False), _in_tree(tmp_path))


def test_the_closing_line_names_a_selection() -> None:
    assert prove.closing_line(3, 4, 4) == "3 passed, 1 failed"
    assert prove.closing_line(2, 2, 4) == "2 passed, 0 failed (a selection: 2 of 4 checks)"
    assert prove.closing_line(2, 2, 2, 3) == "2 passed, 0 failed, 3 not reached"


def test_only_the_checks_with_the_text_in_their_title_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                          capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thing.py").write_text(
        "from nodensdev.checks.prove import check\n"
        "@check('point 1: fails')\ndef a(proof): proof.expect(False, 'never')\n"
        "@check('point 2: passes')\ndef b(proof): pass\n")
    monkeypatch.setattr(prove, "PROOFS", tmp_path)
    monkeypatch.setattr(prove, "BUILD", tmp_path)
    monkeypatch.setattr(prove.chroot, "prepared", lambda _: contextlib.nullcontext())
    assert prove.prove("thing", full=False, only="point 2") == 0
    printed = capsys.readouterr().out
    assert "1 passed, 0 failed (a selection: 1 of 2 checks)" in printed and "point 1" not in printed
    with pytest.raises(Failure, match="no check of 'thing' was chosen"):
        prove.prove("thing", full=False, only="point 3")
