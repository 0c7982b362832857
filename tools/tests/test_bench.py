# SPDX-License-Identifier: Apache-2.0
"""The bench's arithmetic, and that its outputs can be drawn."""
from typing import Any

from nodensdev.bench import figures, growth, probes, report, table
from nodensdev.bench.guest.subjects import STEPS


def run(factor: float) -> dict[str, Any]:
    def subject(scale: float, more: dict[str, Any]) -> dict[str, Any]:
        serial = {step: [scale, scale * 2, scale * 3] for step in STEPS}
        left = {part: [0.0, scale, scale] for part in ("start", "exec", "end")}
        return {"serial": serial, "left": left, "mount_lines": [4, 4, 4], "memory": [], "restart_ms": [],
                "parallel": {"up_ms": [scale * 2], "down_ms": [scale]}} | more

    memory = {"memory": [{"daemon_kb": 51200, "pods_kb": 30720, "pod_processes": 6, "strangers": {}}], "restart_ms": [100.0]}
    mode = {"engine": subject(10, {}), "containerd": subject(10 * factor, memory)}
    results = {"on": mode, "pull": {"engine": [100.0], "containerd": [300.0]}}
    return {"pods": 3, "rounds": 1, "date": "today", "commit": "c0ffee", "results": results}


def test_ratios_are_to_the_bare_engine() -> None:
    found = figures.ratios(run(4))
    assert found["on/containerd/pod start in all"] == 4
    assert found["pull/containerd/pull of a 64 MiB image"] == 3


def test_steps_that_runtimes_divide_differently_have_no_ratio() -> None:
    rows = {row.title: row for row in figures.rows_of(run(4), "on")}
    assert rows["CreateContainer"].ratio("containerd") is None
    assert rows["container start (Create + Start)"].ratio("containerd") == 4


def test_the_sum_of_a_pod_is_taken_pod_by_pod() -> None:
    assert figures.sums({"a": [1, 9, 2], "b": [9, 1, 2]}, ("a", "b")) == [10, 10, 4]


def test_a_ratio_is_taken_turn_by_turn() -> None:
    """The machine was ten times slower in the second turn, for both."""
    assert figures.Row("", "ms", {"engine": [1, 10, 1], "containerd": [2, 20, 2]}).ratio("containerd") == 2


def test_a_stray_turn_does_not_move_a_ratio() -> None:
    assert figures.middle_mean([2.0, 2.0, 2.0, 200.0]) == 2


def test_what_is_left_behind_is_a_mean_without_a_ratio() -> None:
    row = {row.title: row for row in figures.rows_of(run(4), "on")}["idle again after a pod's start, mean"]
    assert round(row.values["engine"], 1) == 6.7
    assert row.ratio("containerd") is None


def test_runs_that_disagree_are_named() -> None:
    assert figures.disagreements(figures.ratios(run(4)), figures.ratios(run(4.1)), 0.15) == []
    apart = figures.disagreements(figures.ratios(run(4)), figures.ratios(run(5)), 0.15)
    assert any("pod start in all" in line for line in apart)


def test_memory_is_per_pod_and_in_all() -> None:
    rows = {row.title: row for row in figures.rows_of(run(4), "on")}
    assert rows["memory of per-pod processes, each pod"].values == {"containerd": 10.0}
    assert rows["memory of all but the workload, 3 pods"].values == {"containerd": 80.0}


def test_the_table_has_a_column_per_subject_and_ratio() -> None:
    assert "bare engine  containerd  x engine" in table.as_text(run(4))


def test_the_cost_of_a_user_namespace_is_taken_pair_by_pair() -> None:
    data = run(4)
    data["results"]["pair"] = {"engine": {"on": [20, 200, 20], "off": [10, 100, 10]},
                               "containerd": {"on": [30, 30, 30], "off": [20, 20, 20]}}
    assert figures.userns_cost(data) == {"engine": 2, "containerd": 1.5}
    assert figures.modes_of(data) == ["on"]
    assert "what a user namespace costs" in table.as_text(data)


def test_the_page_announces_the_cost_of_a_user_namespace_only_with_the_figure() -> None:
    data = run(4) | {"machine": {"kernel": "7.2", "cpus": 1}, "kernel": "uml", "parallel": 5, "rounds": 1, "pods": 3}
    assert "What a user namespace costs" not in report.method(data)
    data["results"]["pair"] = {"engine": {"on": [20], "off": [10]}}
    assert "What a user namespace costs" in report.method(data)


def test_probes_are_compared_turn_by_turn() -> None:
    steps = {step: [10.0, 20.0, 40.0] for step in probes.STEPS}
    results = {"engine": {"ExecSync": [4.0, 8.0, 16.0]}, "containerd": steps, "nodens": {step: [5.0, 10.0, 20.0] for step in probes.STEPS}}
    data = {"pods": 20, "containers": 10, "rounds": 3, "date": "today", "commit": "c0ffee", "results": results}
    assert probes.ratio(data, "ListContainerStats", "nodens", "containerd") == 0.5
    assert (
        "ExecSync: engine 8.00 ms, containerd 20.00 ms, nodens 10.00 ms, nodens / containerd: 0.50, nodens / engine: 1.25"
        in probes.as_text(data)
    )
    assert "| ExecSync | 8.0 | 20.0 | 10.0 | 0.50 | 0.40 |" in probes.section(data)


def test_small_amounts_of_memory_are_not_rounded_away() -> None:
    assert [table.number(value, "MB") for value in (0.147, 5.62, 173.8)] == ["0.15", "5.6", "174"]
    assert table.number(0.44, "ms") == "0.4" and table.number(None, "MB") == "-"


def grown(factor: float) -> list[dict[str, Any]]:
    return [{"pods": pods, "one_more_pod_ms": [factor * 10, factor * 20, factor * 30], "daemon_kb": 1000 * factor, "pods_kb": pods * 100,
             "restart_s": 0.1 * factor, "idle_cpu_ms": 7 * factor, "asked_ms": {"ListContainers": 3 * factor}} for pods in (10, 1000)]


def test_growth_has_a_row_for_each_number_of_pods_with_figures_over_all_rounds() -> None:
    data = {"results": {"containerd": [grown(4), grown(4), grown(40)], "nodens-cri": [grown(1)] * 3}}
    heading, few, full = growth.rows(data)
    assert heading[:3] == ["pods", "containerd: one more pod (ms)", "nodens-cri: one more pod (ms)"]
    assert few == ["10", "60.0", "10.0", "5.1", "2.0", "400", "100", "28.0", "7.0"]
    assert full[0] == "1,000" and full[3:5] == ["106", "103"]
    assert growth.list_rows(data) == [["request (ms)", "containerd, 2,000 containers", "nodens-cri, 2,000 containers"],
                                      ["ListContainers", "12.0", "3.0"]]
    assert growth.ratio(data, 10, 1000) == 1


def test_growth_has_no_figures_of_a_runtime_with_more_pods_than_it_was_given() -> None:
    data = {"results": {"containerd": [grown(4)[:1]], "nodens-cri": [grown(1)]}}
    assert growth.rows(data)[2] == ["1,000", "-", "10.0", "-", "103", "-", "100", "-", "7.0"]
    assert growth.list_rows(data)[1] == ["ListContainers", "-", "3.0"]


def test_a_report_keeps_the_sections_that_were_not_measured_again() -> None:
    page = report.DOCUMENT.read_text()
    parts = report.parts_of(page)
    assert list(parts) == ["", *(heading for heading in report.SECTIONS if f"\n## {heading}\n" in page)] and len(parts) > 3
    assert "\n".join(parts.values()) == page
