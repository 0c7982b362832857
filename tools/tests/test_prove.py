# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from nodensdev.checks import prove
from nodensdev.checks.prove import Check, Miss, Proof, Refuted


def proof(tmp_path: Path) -> Proof:
    return Proof(None, tmp_path / "log", full=False)  # type: ignore[arg-type]


def test_checks_are_found_in_the_order_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thing.py").write_text(
        "from nodensdev.checks.prove import check\n"
        "@check('second things')\ndef b(proof): pass\n"
        "@check('first things', full_only=True)\ndef a(proof): pass\n")
    monkeypatch.setattr(prove, "PROOFS", tmp_path)
    assert [(item.title, item.full_only) for item in prove.load("thing")] == [("second things", False), ("first things", True)]


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
    return Proof(None, log, full=False)  # type: ignore[arg-type]


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
