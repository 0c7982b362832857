# SPDX-License-Identifier: Apache-2.0
"""docs/upstream-tests.md: the newest result of every set and runtime. Written by `tools/dev e2e report`, never by hand."""
import json
from collections import Counter
from pathlib import Path
from typing import Any

from ..command import Failure
from ..project import BUILD, TOP
from .selection import ROOTLESS

RESULTS = BUILD / "e2e"
DOCUMENT = TOP / "docs" / "upstream-tests.md"
HEAD = """# Results of Kubernetes' own tests

*Written by `tools/dev e2e report` from the newest run of every set (`tools/dev e2e SET --runtime NAME`, and `--rootless`); do not edit.*

Kubernetes' own end-to-end tests, on a cluster of the testbed with one node.
A test counts as failed if it failed among others and twice more alone; *only alone* counts the tests that passed then.
*Skipped* tests are skipped by the suite itself, *excluded* ones by `tests/cluster/excluded.toml`.

| set | runtime | node | passed | only alone | failed | skipped | excluded | not reached | minutes | date | commit |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|---|
"""


def newest(results: Path = RESULTS) -> list[dict[str, Any]]:
    """The newest result by set, runtime, kernel and kind of node."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for path in results.glob("*/result.json"):
        data = json.loads(path.read_text())
        key = (data.get("set") or "", data["runtime"], place(data))
        if key[0] and data["date"] >= found.get(key, data)["date"]:
            found[key] = data
    return [found[key] for key in sorted(found)]


def place(data: dict[str, Any]) -> str:
    """The kernel, and that the node is a rootless one."""
    return f"rootless, {data['kernel']}" if data.get("node") == ROOTLESS else str(data["kernel"])


def line(data: dict[str, Any]) -> str:
    counts = data["counts"]
    numbers = [counts[name] for name in ("passed", "flaky", "failed", "skipped", "excluded", "missing")]
    cells = [data["set"], data["runtime"], place(data), *numbers, f"{data['seconds'] / 60:.0f}", data["date"], data["commit"]]
    return "| " + " | ".join(map(str, cells)) + " |"


def first_line(message: str) -> str:
    return (message.splitlines() or ["no message"])[0][:160]


def details(data: dict[str, Any]) -> list[str]:
    """What did not pass at once, with the reason."""
    found = [f"- {word}: {item['name']}  \n  `{first_line(item['message'])}`"
             for word, name in (("failed", "failed"), ("passed only alone", "flaky"), ("skipped by the suite", "skipped"))
             for item in data[name]]
    found += [f"- not reached: {name}" for name in data["missing"]]
    reasons = Counter(item["reason"] for item in data["excluded"])
    found += [f"- excluded: {count} x {reason}" for reason, count in reasons.most_common()]
    return [f"\n## {data['set']} on {data['runtime']} ({place(data)})", *found] if found else []


def key_of(row: str) -> tuple[str, ...]:
    """Set, runtime and node of a line of the table."""
    return tuple(cell.strip() for cell in row.split("|")[1:4])


def kept(page: str, found: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Lines and sections of an earlier page about runs of which build/e2e has no result."""
    known = {(data["set"], data["runtime"], place(data)) for data in found}
    table, *sections = page.split("\n\n## ")
    rows = [row for row in table.splitlines() if row.startswith("| ") and not row.startswith("| set |") and key_of(row) not in known]
    titles = {f"{name} on {runtime} ({where})" for name, runtime, where in known}
    return rows, [f"\n## {text.rstrip()}" for text in sections if text.splitlines()[0] not in titles]


def write() -> None:
    found = newest()
    if not found:
        raise Failure("no results in build/e2e; `tools/dev e2e SET` makes them")
    rows, sections = kept(DOCUMENT.read_text() if DOCUMENT.exists() else "", found)
    lines = sorted([line(data) for data in found] + rows, key=key_of)
    DOCUMENT.write_text(HEAD + "\n".join(lines + [text for data in found for text in details(data)] + sections) + "\n")
