# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/cri-tools.md and the results they come from."""
from pathlib import Path

import pytest
from nodensdev import critools, page_tables
from nodensdev.command import Failure
from nodensdev.critools import Outcome, Reason

FACTS = {"date": "2026-11-17", "commit": "c0ffee", "kernel": "7.2", "nodens-cri": "1", "containerd": "2"}
KNOWN = [Reason("c", "failed", ("nodens-cri", "containerd"), "no image")]


def whole() -> critools.Results:
    return {name: [Outcome("a", "passed"), Outcome("b", "passed"), Outcome("c", "failed", "not found")]
            for name in ("nodens-cri", "containerd")}


def page() -> str:
    blocks = [page_tables.BEGIN.format(name=name) + "old\n" + page_tables.END for name in ("counts", "reasons")]
    return "# Title\n" + "text\n".join(blocks) + "Results of 2000-01-01 (commit none).\nend\n"


def test_the_page_is_what_the_last_results_give() -> None:
    assert critools.problems() == []


def test_results_with_a_reason_for_each_failure_are_fine() -> None:
    assert critools.problems_of(whole(), KNOWN) == []


@pytest.mark.parametrize(("name", "outcome", "problem"), [
    ("nodens-cri", Outcome("b", "failed", "why"), "b: failed on nodens-cri, passed on containerd"),
    ("nodens-cri", Outcome("b", "skipped", "why"), "nodens-cri: b: skipped, without a reason: why"),
    ("containerd", Outcome("b", "timedout", "why"), "containerd: b: failed, without a reason: why"),
    ("containerd", Outcome("c", "skipped", "why"), "containerd: c: skipped, without a reason: why"),
    ("nodens-cri", Outcome("c", "passed"), "nodens-cri: c has a reason to be failed, but is passed"),
])
def test_what_differs_from_the_reasons_is_named(name: str, outcome: Outcome, problem: str) -> None:
    results = whole()
    results[name] = [outcome if one.test == outcome.test else one for one in results[name]]
    assert problem in critools.problems_of(results, KNOWN)


def test_a_test_that_fails_sometimes_may_pass_but_none_of_ours_does() -> None:
    sometimes = [Reason("c", "failed", ("nodens-cri", "containerd"), "late", sometimes=True)]
    passes = {name: [Outcome("c", "passed")] for name in whole()}
    assert critools.problems_of(passes, sometimes) == [] and critools.problems_of(whole(), sometimes) == []
    assert not any(one.sometimes and critools.OURS in one.runtimes for one in critools.reasons())


def test_a_test_that_only_containerd_has_run_is_named() -> None:
    results = whole() | {"nodens-cri": whole()["nodens-cri"][1:]}
    assert "a: not run on nodens-cri, passed on containerd" in critools.problems_of(results, KNOWN)
    assert "nodens-cri: no test 'c'" in critools.unexplained({"nodens-cri": results["nodens-cri"][:1]}, KNOWN)
    assert "no result of critest on nodens-cri" in critools.problems_of({"containerd": whole()["containerd"]}, KNOWN)


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    critools.write(tmp_path / "below/results.json", whole(), FACTS)
    assert critools.read(tmp_path / "below/results.json") == (whole(), FACTS)


def test_tables_of_the_page_are_replaced_and_its_text_stays() -> None:
    new = critools.page_from(page(), whole(), FACTS, KNOWN)
    assert "old" not in new and new.startswith("# Title\n") and new.endswith("end\n") and new.count("text\n") == 1
    assert "Results of 2026-11-17 (last run: commit c0ffee), on the kernel 7.2." in new
    assert "| | nodens-cri 1 | containerd 2 |\n|---|---|---|\n| passed | 2 | 2 |\n| failed | 1 | 1 |" in new
    assert "| c | failed | failed | no image |" in new
    assert critools.page_from(new, whole(), FACTS, KNOWN) == new


def test_a_page_without_a_place_for_a_table_is_refused() -> None:
    with pytest.raises(Failure, match="no place for the table 'reasons'"):
        critools.page_from(page().replace("table: reasons", "table: other"), whole(), FACTS, KNOWN)
