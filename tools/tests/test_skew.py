# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/version-skew.md and the results they come from."""
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from nodensdev import page_tables, skew
from nodensdev.command import Failure
from nodensdev.skew import Cell


def whole() -> list[Cell]:
    """A row in each table."""
    return [Cell(name, "row", column, "fine") for name, table in skew.TABLES.items() for column in table.columns]


def page() -> str:
    blocks = [page_tables.BEGIN.format(name=name) + "old\n" + page_tables.END for name in skew.TABLES]
    return "# Title\n" + "text\n".join(blocks) + "Results of 2000-01-01, commit none, 0 cells.\nend\n"


def test_the_page_is_what_the_last_results_give() -> None:
    assert skew.problems() == []


def test_whole_results_are_fine() -> None:
    assert skew.problems_of(whole()) == []


@pytest.mark.parametrize(("cells", "problem"), [
    (whole()[1:], "no result for pods / row / unset"),
    ([*whole(), whole()[0]], "two results for pods / row / unset"),
    ([*whole(), Cell("pods", "row", "other", "fine")], "no table has the cell pods / row / other"),
    ([*whole(), Cell("other", "row", "unset", "fine")], "no table has the cell other / row / unset"),
    ([cell for cell in whole() if cell.table != "start"], "no result for the table 'start'"),
])
def test_cells_that_are_missing_unknown_or_there_twice_are_named(cells: Sequence[Cell], problem: str) -> None:
    assert problem in skew.problems_of(cells)


def test_a_table_has_a_row_for_each_row_and_its_messages_once() -> None:
    cells = [Cell("static", "a", "static pod", "refused", "no `x`"), Cell("static", "b", "static pod", "runs"),
             Cell("static", "c", "static pod", "refused", "no `x`")]
    assert skew.render(cells, "static").splitlines() == [
        "| API server and kubelet | static pod |", "|---|---|", "| a | refused (1) |", "| b | runs |", "| c | refused (1) |",
        "", "Messages:", "", "1. ``no `x` ``"]


def test_tables_of_the_page_are_replaced_and_its_text_stays() -> None:
    cells = whole()
    new = skew.page_from(page(), cells, {"date": "2026-11-16", "commit": "c0ffee"})
    assert "old" not in new and new.startswith("# Title\n") and new.endswith("end\n") and new.count("text\n") == len(skew.TABLES) - 1
    assert f"Results of 2026-11-16 (last run: commit c0ffee), {len(cells)} cells." in new
    assert skew.page_from(new, cells, {"date": "2026-11-16", "commit": "c0ffee"}) == new
    changed = [replace(cells[0], outcome="worse"), *cells[1:]]
    assert skew.page_from(new, changed, {"date": "2026-11-16", "commit": "c0ffee"}) != new


def test_a_page_without_a_place_for_a_table_is_refused() -> None:
    with pytest.raises(Failure, match="no place for the table 'start'"):
        skew.page_from(page().replace(page_tables.BEGIN.format(name="start"), ""), whole(), {"date": "2026-11-16", "commit": "c0ffee"})


def test_new_results_replace_those_of_their_cells_only(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    skew.keep(path, whole())
    skew.keep(path, [Cell("static", "row", "static pod", "runs"), Cell("start", "other", "outcome", "fine")])
    cells, facts = skew.read(path)
    assert [cell.outcome for cell in cells if cell.table == "static"] == ["runs"] and len(cells) == len(whole()) + 1
    assert set(facts) == {"commit", "date"} and skew.rows_of(cells, "start") == ["other", "row"]
