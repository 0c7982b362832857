# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/compatibility.md: which kubelet, kernel, crun and distribution were tested together.

They come from results that are in the tree: those of `tools/dev test skew`, `critest` and `bridge-storage`, and the page of upstream's
tests. A value that a result does not have is shown as not recorded, never derived from the tree: a kernel or a crun may have been
another one on that day. `tools/dev compat-table` writes the tables, `tools/dev lint tables` compares them.
"""
import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from . import critools, page_tables, skew, storage
from .command import Command, Failure
from .e2e import scores
from .project import TESTS, TOP

PAGE = TOP / "docs/compatibility.md"
PEERS = TESTS / "peers"
NOT_RECORDED, NO_RESULT, NONE = "not recorded", "no recorded result", "-"

# What a node is: the commands whose output facts_of() reads.
FACTS = ["sh", "-ec", 'uname -r; uname -m; . /etc/os-release; echo "$NAME $VERSION_ID"; crun --version | head -n 1']
# Versions of which operators ask whether they work, beside the kubelets of tests/peers.
ASKED = (
    ("kernel", "6.6"), ("kernel", "6.8"), ("kernel", "6.12"), ("kernel", "6.18"), ("kernel", "7.2"),
    ("crun", "1.21"), ("crun", "1.28"),
    ("distribution", "Debian GNU/Linux 13"), ("distribution", "Ubuntu 24.04"), ("distribution", "Ubuntu 26.04"), ("distribution", "Fedora"),
    ("distribution", "Red Hat Enterprise Linux 10"),
    ("architecture", "x86_64"), ("architecture", "aarch64"),
)


@dataclass(frozen=True)
class Record:
    """One result and the versions with which it was had."""

    tests: str
    result: str
    date: str
    commit: str
    kubelet: str = NOT_RECORDED
    kernel: str = NOT_RECORDED
    crun: str = NOT_RECORDED
    distribution: str = NOT_RECORDED
    architecture: str = NOT_RECORDED


def facts_of(output: str) -> dict[str, str]:
    """The facts about a node, from the output of FACTS."""
    lines = output.splitlines()
    if len(lines) != 4 or not lines[3].startswith("crun version "):
        raise Failure(f"unexpected facts about a node: {output[:200]!r}")
    return {"kernel": lines[0], "architecture": lines[1], "distribution": lines[2].strip(), "crun": lines[3].removeprefix("crun version ")}


def node_of(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: facts.get(name, NOT_RECORDED) for name in ("kernel", "crun", "distribution", "architecture")}


# ---- the results of the tree ----

def of_skew() -> list[Record]:
    """The kubelets whose pods have a definite outcome with their default gates."""
    cells, facts = skew.read(skew.RESULTS)
    pods = {(cell.row, cell.column): cell.outcome for cell in cells if cell.table == "pods"}
    kubelets = [row for row in skew.rows_of(cells, "pods") if "=" not in row]
    return [Record("`skew`", f"`hostUsers` unset: {pods[row, 'unset']}; `false`: {pods[row, 'false']}; deleted: {pods[row, 'deleted']}",
                   facts["date"], facts["commit"], row, **node_of(facts)) for row in kubelets]


def counted(passed: int, failed: int, skipped: int = 0) -> str:
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def of_critest() -> list[Record]:
    results, facts = critools.read(critools.RESULTS)
    states = Counter(one.plain_state() for one in results[critools.OURS])
    return [Record("`critest`", counted(*(states[name] for name in critools.STATES)), facts["date"], facts["commit"], NONE,
                   **node_of(facts))]


def of_storage() -> list[Record]:
    """One for each kernel. The tests have neither a kubelet nor crun; which of the two suites ran is not recorded."""
    data = json.loads(storage.RESULTS.read_text())
    made = []
    for kernel in sorted({one["kernel"] for one in data["results"].values()}):
        kinds = [one for one in data["results"].values() if one["kernel"] == kernel]
        counts = counted(sum(len(one["passed"]) for one in kinds), sum(len(one["failed"]) for one in kinds))
        made.append(Record("storage", f"{len(kinds)} kinds of storage: {counts}", data["facts"]["date"], data["facts"]["commit"], NONE,
                           kernel, NONE))
    return made


def of_upstream(page: str) -> list[Record]:
    """The lines of docs/upstream-tests.md about nodens; the page is the record of these runs."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if re.match(r"\| [\w-]+ \| nodens \|", line)]
    return [Record(f"`e2e {name}`" + (", rootless node" if where.startswith("rootless") else ""),
                   counted(int(passed), int(failed), int(skipped) + int(excluded)), date.partition(" ")[0], commit,
                   kernel=f"guest `{where.split(', ')[-1]}`, {NOT_RECORDED}")
            for name, _, where, passed, _, failed, skipped, excluded, _, _, date, commit in rows]


def records() -> list[Record]:
    return of_skew() + of_critest() + of_storage() + of_upstream(scores.DOCUMENT.read_text())


def pinned_kubelets() -> list[str]:
    """The versions of the kubelets that tests can start."""
    paths = [*PEERS.glob("kubelet-*/go.mod"), *PEERS.glob("kubernetes*/go.mod")]
    found = {match[1] for path in paths if (match := re.search(r"\bk8s\.io/kubernetes v(\S+)", path.read_text()))}
    return sorted(found, key=lambda text: [int(part) for part in text.split(".")])


# ---- the tables ----

def render(found: Sequence[Record]) -> str:
    lines = ["| tests | kubelet | kernel | crun | distribution | result | date | commit |", "|---|---|---|---|---|---|---|---|"]
    for one in found:
        cells = (one.tests, one.kubelet, one.kernel, one.crun, one.distribution, one.result, one.date, one.commit)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def is_of(recorded: str, version: str) -> bool:
    """Whether a recorded version is the one asked for or a patch of it: 6.12.3-a is of 6.12, 6.120 is not."""
    return recorded == version or recorded.startswith(version) and recorded[len(version)] in ".-+ "


def render_asked(found: Sequence[Record], asked: Iterable[tuple[str, str]]) -> str:
    lines = ["| part | version | tests with a recorded result |", "|---|---|---|"]
    for part, version in asked:
        tests = list(dict.fromkeys(one.tests for one in found if is_of(getattr(one, part), version)))
        lines.append(f"| {part} | {version} | {', '.join(tests) or NO_RESULT} |")
    return "\n".join(lines) + "\n"


def page_from(page: str, found: Sequence[Record], kubelets: Sequence[str]) -> str:
    newest = max(found, key=lambda one: one.date)
    asked = [*(("kubelet", version) for version in kubelets), *ASKED]
    tables = {"combinations": render(found), "versions": render_asked(found, asked)}
    facts = {"date": newest.date, "commit": newest.commit}
    return page_tables.replaced(page, PAGE.name, tables, facts, f"{len(found)} combinations")


def problems() -> list[str]:
    """Says so if the page is not what the results of the tree give."""
    current = PAGE.read_text() == page_from(PAGE.read_text(), records(), pinned_kubelets())
    return [] if current else [f"{PAGE.relative_to(TOP)} is not what the results give: `tools/dev compat-table` writes it"]


def run(_args: argparse.Namespace) -> int:
    found = records()
    PAGE.write_text(page_from(PAGE.read_text(), found, pinned_kubelets()))
    print(f"{PAGE.relative_to(TOP)}: {len(found)} combinations")
    return 0


COMMANDS = [Command("compat-table", "write the results of the tree to docs/compatibility.md", run)]
