# SPDX-License-Identifier: Apache-2.0
"""The figures of `tools/dev bench bridge`, and its places on the page."""
from typing import Any

import pytest
from nodensdev import page_tables
from nodensdev.bench import bridge
from nodensdev.command import Failure


def times(bare: list[int], ours: list[int], operations: int = 1000) -> dict[str, Any]:
    return {way: [[spent, operations] for spent in (bare if way == "bare" else ours)] for way in bridge.WAYS}


def results(**changed: dict[str, Any]) -> dict[str, Any]:
    """Each load as fast as without the bridge, apart from those that are given."""
    same = {name: times([1000] * 3, [1000] * 3) for name in (*bridge.DATA, *bridge.METADATA)}
    one = {"memory_kb": {"bridge": 2000, "copied": 3000, "bindfs": 2000}, "times": same | changed}
    return {"commit": "c0ffee", "date": "2026-11-17", "rounds": 3, "cpus": 2, "kernels": dict.fromkeys(bridge.STORAGE, "6.18"),
            "results": dict.fromkeys(bridge.STORAGE, one)}


def page() -> str:
    blocks = [page_tables.BEGIN.format(name=name) + "old\n" + page_tables.END for name in (*bridge.STORAGE, "goals")]
    return "Results of 2026-01-01, none.\n" + "".join(blocks)


def test_a_ratio_is_taken_round_by_round() -> None:
    """The machine was ten times slower in the second round, for both."""
    assert bridge.ratio(times([1, 10, 1], [2, 20, 2]), "bridge") == 0.5


def test_data_is_shown_per_second_and_metadata_per_operation() -> None:
    assert bridge.megabytes([[1000, 500]]) == 500
    assert bridge.microseconds([[3000, 2]]) == 1.5


def test_a_load_that_was_not_measured_has_no_row() -> None:
    one = results()["results"]["tmpfs"]
    with_it = len(bridge.rows(one))
    del one["times"]["read-cold"]
    assert len(bridge.rows(one)) == with_it - 1


def test_metadata_has_a_goal_on_nfs_alone() -> None:
    assert bridge.misses(results()) == []
    assert bridge.misses(results(rename=times([10] * 3, [30] * 3))) == ["NFS 4.2, in a guest: rename: 0.33 x bare, goal 0.4"]


def test_too_much_memory_is_reported() -> None:
    data = results()
    data["results"]["ext4"]["memory_kb"]["bridge"] = 4000
    assert "ext4, natively: memory 4,000 kB, goal 3,000 kB" in bridge.misses(data)


def test_the_page_gets_its_tables_and_their_date() -> None:
    written = bridge.page_from(page(), results())
    assert "old" not in written and "All are met." in written
    assert written.startswith("Results of 2026-11-17 (last run: commit c0ffee), 3 rounds, 2 CPUs, Linux 6.18.\n")


def test_a_page_without_a_place_is_an_error() -> None:
    with pytest.raises(Failure, match="no place for the table 'tmpfs'"):
        bridge.page_from(page().replace(page_tables.BEGIN.format(name="tmpfs"), ""), results())


def test_the_real_page_has_all_places() -> None:
    bridge.page_from(bridge.PAGE.read_text(), results())
