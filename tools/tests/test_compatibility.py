# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/compatibility.md and the results they come from."""
import subprocess
from pathlib import Path

import pytest
from nodensdev import compatibility, critools, page_tables, skew
from nodensdev.command import Failure
from nodensdev.compatibility import NO_RESULT, NOT_RECORDED, Record
from nodensdev.skew import Cell

NODE = {"kernel": "6.12.1-x", "architecture": "x86_64", "distribution": "Debian GNU/Linux 13", "crun": "1.21"}
PAGE = "".join(page_tables.BEGIN.format(name=name) + page_tables.END for name in ("combinations", "versions"))


def test_the_page_is_what_the_results_of_the_tree_give() -> None:
    assert compatibility.problems() == []


def test_facts_about_a_node_are_read_from_the_commands() -> None:
    done = subprocess.run(compatibility.FACTS, capture_output=True, text=True, check=True)
    assert compatibility.facts_of(done.stdout)["crun"][0].isdigit()
    assert compatibility.facts_of("6.12.1-x\nx86_64\nDebian GNU/Linux 13\ncrun version 1.21\n") == NODE


@pytest.mark.parametrize("output", ["", "6.12\nx86_64\nDebian 13\n", "6.12\nx86_64\nDebian 13\nsh: crun: not found\n"])
def test_incomplete_facts_are_refused(output: str) -> None:
    with pytest.raises(Failure, match="unexpected facts"):
        compatibility.facts_of(output)


def test_what_a_result_does_not_have_is_shown_as_not_recorded() -> None:
    line = compatibility.render([Record("`t`", "fine", "2026-11-17", "c0ffee", kubelet="1.36.3")]).splitlines()[2]
    assert line == f"| `t` | 1.36.3 | {NOT_RECORDED} | {NOT_RECORDED} | {NOT_RECORDED} | fine | 2026-11-17 | c0ffee |"


def test_versions_without_a_result_are_named() -> None:
    found = [Record("`a`", "fine", "", "", **NODE), Record("`b`", "fine", "", "", kernel="6.120", crun="1.21")]
    lines = compatibility.render_asked(found, (("kernel", "6.12"), ("kernel", "6.6"), ("crun", "1.21"), ("crun", "1.2"))).splitlines()[2:]
    assert lines == ["| kernel | 6.12 | `a` |", f"| kernel | 6.6 | {NO_RESULT} |", "| crun | 1.21 | `a`, `b` |",
                     f"| crun | 1.2 | {NO_RESULT} |"]


def test_kubelets_that_no_result_has_are_on_the_page() -> None:
    page = compatibility.page_from(PAGE, [Record("`t`", "fine", "2026-11-17", "c0ffee", kubelet="1.36.3")], ["1.36.3", "1.99.0"])
    assert "| kubelet | 1.36.3 | `t` |" in page and f"| kubelet | 1.99.0 | {NO_RESULT} |" in page


def test_kubelets_of_the_tests_are_in_the_order_of_their_versions() -> None:
    found = compatibility.pinned_kubelets()
    assert found == sorted(found, key=lambda text: [int(part) for part in text.split(".")]) and len(found) > 3


def test_only_lines_about_nodens_are_taken_from_upstreams_tests() -> None:
    page = ("| set | runtime | node | passed |\n| node | containerd | uml | 9 | 0 | 0 | 0 | 0 | 0 | 1 | 2026-11-15 07:00 | aaa |\n"
            "| node | nodens | rootless, uml-nft | 7 | 1 | 2 | 3 | 4 | 0 | 1 | 2026-11-16 07:00 | bbb |\n")
    assert compatibility.of_upstream(page) == [Record("`e2e node`, rootless node", "7 passed, 2 failed, 7 skipped", "2026-11-16", "bbb",
                                                      kernel=f"guest `uml-nft`, {NOT_RECORDED}")]


def test_a_partial_run_of_skew_keeps_only_facts_that_are_true_of_all_cells(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    skew.keep(path, [Cell("static", "a", "static pod", "runs"), Cell("static", "b", "static pod", "runs")], NODE)
    assert skew.read(path)[1].items() >= NODE.items()
    skew.keep(path, [Cell("static", "a", "static pod", "runs")], NODE | {"kernel": "7.2"})
    facts = skew.read(path)[1]
    assert "kernel" not in facts and facts["crun"] == "1.21"


def test_a_run_of_critest_without_our_runtime_does_not_change_its_node() -> None:
    old: tuple[critools.Results, dict[str, str]] = ({critools.OURS: []}, {"kernel": "6.12", "containerd": "1"})
    assert critools.merged(old, ({"containerd": []}, {"kernel": "7.2", "crun": "1.28", "containerd": "2"})) == (
        {critools.OURS: [], "containerd": []}, {"kernel": "6.12", "containerd": "2"})
    assert critools.merged(old, ({critools.OURS: []}, NODE))[1]["kernel"] == NODE["kernel"]
