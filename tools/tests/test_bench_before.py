# SPDX-License-Identifier: Apache-2.0
"""The comparison with a tree before takes turns and its ratios are costs, new to old."""
from pathlib import Path

import pytest
from nodensdev.bench import before
from nodensdev.bench.guest.subjects import STEPS
from nodensdev.command import Failure

OLD, NEW = before.Tree(Path("/old")), before.Tree(Path("/new"))


def test_trees_take_turns_and_ratios_are_new_to_old() -> None:
    order = []

    def measure(tree: before.Tree) -> before.Samples:
        order.append(tree)
        return {"start": [2.0, 4.0] if tree == OLD else [3.0, 6.0], "memory": [10.0]}

    old, new = before.alternate(measure, OLD, NEW, 2)
    assert order == [OLD, NEW, OLD, NEW]
    assert old["start"] == [2.0, 4.0, 2.0, 4.0]
    assert before.ratios(old, new) == {"start": 1.5, "memory": 1.0}


def test_pods_are_compared_by_what_the_bare_engine_takes_in_the_same_turn() -> None:
    def subject(scale: float) -> dict[str, object]:
        return {"serial": {step: [scale, scale * 10] for step in STEPS}, "left": {part: [0.0] for part in ("start", "exec", "end")},
                "mount_lines": [],
                "parallel": {"up_ms": [], "down_ms": []}, "memory": [{"daemon_kb": 2048, "pods_kb": 0}], "restart_ms": []}

    found = before.cri_samples({"pods": 2, "results": {"on": {"engine": subject(10), "nodens": subject(15)}}})
    assert found["pod start in all"] == [1.5, 1.5] and found["ExecSync"] == [1.5, 1.5] and found[before.MEMORY_ROW] == [2.0]


def test_fewer_reviews_a_second_cost_more() -> None:
    flows = {flow: {"per_second": 10_000} for flow in ("mutate", "validate", "pod_security")}
    found = before.guard_samples({"index": flows | {"relisted": {"peak_rss": 20.0}}})
    assert found["mutate, us each"] == [100.0] and found["resident, most ever"] == [20.0]


def test_streams_into_a_node_are_compared_with_streams_beside_it() -> None:
    way = {"rounds": [{"gbit": 20.0, "cpu_per_gbit": 0.1}], "request_p50_us": 60.0, "connection_p50_us": 90.0, "start_ms": [100.0, 110.0],
           "pss_mb": 3.0}
    direct = {"rounds": [{"gbit": 40.0}], "request_p50_us": 30.0, "connection_p50_us": 30.0, "start_ms": []}
    found = before.rootless_samples({"ways": {before.WAY: way, "direct": direct}})
    assert found["stream"] == [2.0] and found["request"] == [2.0] and found["connection"] == [3.0] and found["start"] == [100.0, 110.0]


def test_a_tree_without_the_bench_is_said(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    with pytest.raises(Failure, match="no bench of guard"):
        before.Tree(tmp_path).script("guard")
