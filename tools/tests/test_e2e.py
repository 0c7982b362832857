# SPDX-License-Identifier: Apache-2.0
"""The judge of upstream's tests: the flake rule, exclusions, and how reports are read."""
import json
from pathlib import Path

import pytest
from nodensdev.command import Failure
from nodensdev.e2e import judge, scores, selection
from nodensdev.e2e import report as results
from nodensdev.e2e.judge import Verdict
from nodensdev.e2e.outcome import Outcome, exactly, read_report
from nodensdev.e2e.selection import Exclusion


class Script:
    """A suite whose tests end as written: one letter per run, p(assed), f(ailed), s(kipped)."""

    def __init__(self, **runs: str) -> None:
        self.runs = {name: iter(states) for name, states in runs.items()}

    def run(self, names: list[str], processes: int, directory: Path) -> list[Outcome]:
        states = {"p": "passed", "f": "failed", "s": "skipped"}
        return [Outcome(name, states[next(self.runs[name])], 1.0) for name in names if name in self.runs]


def judged(tmp_path: Path, names: list[str], **runs: str) -> Verdict:
    verdict = Verdict()
    judge.judge(Script(**runs), names, 1, tmp_path / "run", verdict)
    return verdict


@pytest.mark.parametrize(("runs", "wanted"),
                         [("p", "passed"), ("fp", "flaky"), ("ffp", "flaky"), ("fff", "failed"), ("s", "skipped")])
def test_a_test_has_failed_when_it_fails_alone_twice_more(tmp_path: Path, runs: str, wanted: str) -> None:
    verdict = judged(tmp_path, ["one"], one=runs)
    assert [outcome.name for outcome in getattr(verdict, wanted)] == ["one"]
    assert verdict.good == (wanted in ("passed", "flaky"))


def test_a_skip_when_alone_is_no_pass(tmp_path: Path) -> None:
    assert judged(tmp_path, ["one"], one="fss").counts()["failed"] == 1


def test_a_test_that_was_never_reached_spoils_the_verdict(tmp_path: Path) -> None:
    verdict = judged(tmp_path, ["one", "two"], one="p")
    assert verdict.missing == ["two"] and not verdict.good


def test_nothing_run_is_not_good() -> None:
    assert not Verdict().good


def test_exclusions_hold_on_their_kernels_only() -> None:
    known = [Exclusion("slow", "why", ("uml",)), Exclusion("never", "why")]
    chosen, excluded = judge.split(["a slow test", "a never test", "a test"], "debian", known)
    assert chosen == ["a slow test", "a test"] and [name for name, _ in excluded] == ["a never test"]


def test_exclusions_hold_on_their_kind_of_node_only(tmp_path: Path) -> None:
    path = tmp_path / "excluded.toml"
    path.write_text('[[excluded]]\ntest = "host"\nreason = "why"\nnodes = ["rootless"]\n')
    known = selection.exclusions(path)
    assert judge.split(["a host test"], "uml", known)[0] == ["a host test"]
    assert judge.split(["a host test"], "uml", known, "rootless")[0] == []
    path.write_text('[[excluded]]\ntest = "host"\nreason = "why"\nnodes = ["rootlss"]\n')
    with pytest.raises(Failure, match="`nodes` has"):
        selection.exclusions(path)


def test_an_exclusion_without_a_reason_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "excluded.toml"
    path.write_text('[[excluded]]\ntest = "x"\n')
    with pytest.raises(Failure, match="needs `test` and `reason`"):
        selection.exclusions(path)


def test_the_list_in_the_tree_can_be_read() -> None:
    assert all(entry.reason for entry in selection.exclusions())


def report(state: str, attempts: int, kind: str = "It") -> dict[str, object]:
    return {"ContainerHierarchyTexts": ["[sig] A"], "LeafNodeText": "works", "LeafNodeType": kind, "State": state,
            "NumAttempts": attempts, "RunTime": 2e9}


def test_a_report_has_the_tests_that_ran_and_other_failures(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    found = [report("passed", 1), report("skipped", 0), report("timedout", 1), report("failed", 1, "SynchronizedBeforeSuite"),
             report("passed", 1, "ReportAfterSuite")]
    path.write_text(json.dumps([{"SpecReports": found}]))
    assert [(outcome.name, outcome.state) for outcome in read_report(path)] == [
        ("[sig] A works", "passed"), ("[sig] A works", "failed"), ("(SynchronizedBeforeSuite)", "failed")]


def test_names_are_matched_exactly() -> None:
    assert exactly(["a [b] (c)"]) == r"(a\ \[b\]\ \(c\))$"


def test_the_newest_result_of_a_set_is_reported(tmp_path: Path) -> None:
    for number, state in ((1, "f"), (2, "p")):
        (tmp_path / str(number)).mkdir()
        path = tmp_path / str(number) / "result.json"
        facts = {"set": "node", "runtime": "containerd", "kernel": "uml"}
        results.write(path, facts, judged(tmp_path, ["one"], one=state * 3), 60)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"date": f"2026-01-0{number} 00:00"}))
    found = scores.newest(tmp_path)
    assert [data["counts"]["passed"] for data in found] == [1] and not scores.details(found[0])
    assert "| node | containerd | uml | 1 | 0 | 0 |" in scores.line(found[0])


def test_a_report_keeps_lines_of_runs_without_a_result() -> None:
    page = ("| set | runtime | node |\n|---|---|---|\n| node | nodens | uml | 250 |\n| node | nodens | rootless, uml-nft | 1 |\n"
            "\n## node on nodens (uml)\n- failed: one\n\n## node on nodens (rootless, uml-nft)\n- failed: two\n")
    rows, sections = scores.kept(page, [{"set": "node", "runtime": "nodens", "kernel": "uml-nft", "node": "rootless"}])
    assert rows == ["| node | nodens | uml | 250 |"] and sections == ["\n## node on nodens (uml)\n- failed: one"]
