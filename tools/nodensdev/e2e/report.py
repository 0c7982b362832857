# SPDX-License-Identifier: Apache-2.0
"""The result of a run for people (text) and for machines (JSON)."""
import json
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..project import commit
from .judge import Verdict
from .outcome import Outcome


def summary(title: str, verdict: Verdict, seconds: float, directory: Path) -> str:
    counts = verdict.counts()
    lines = [f"{title}: {counts['passed']} passed ({counts['flaky']} of them only alone), {counts['failed']} failed, "
             f"{counts['skipped']} skipped by the suite, {counts['excluded']} excluded, {counts['missing']} not reached, "
             f"in {seconds / 60:.1f} min"]
    lines += block("failed, also alone twice:", [described(item) for item in verdict.failed])
    lines += block("passed only alone:", [described(item) for item in verdict.flaky])
    lines += block("not reached:", verdict.missing)
    lines += block("skipped by the suite:", [f"{item.name}\n      {first_line(item)}" for item in verdict.skipped])
    reasons = Counter(entry.reason for _, entry in verdict.excluded)
    lines += block("excluded:", [f"{count} x {reason}" for reason, count in reasons.most_common()])
    lines.append(f"logs and JUnit: {directory}")
    return "\n".join(lines)


def block(title: str, items: list[str]) -> list[str]:
    return [f"  {title}", *(f"    {item}" for item in items)] if items else []


def described(outcome: Outcome) -> str:
    return f"{outcome.name} ({outcome.seconds:.0f} s)\n      {first_line(outcome)}"


def first_line(outcome: Outcome) -> str:
    return (outcome.message.splitlines() or ["no message"])[0][:200]


def write(path: Path, facts: dict[str, Any], verdict: Verdict, seconds: float) -> None:
    """The whole verdict with what it was taken from."""
    now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    data = {"commit": commit()} | facts | {"date": now, "seconds": round(seconds), "counts": verdict.counts()}
    for name in ("passed", "flaky", "failed", "skipped"):
        data[name] = [asdict(item) for item in getattr(verdict, name)]
    data["missing"] = verdict.missing
    data["excluded"] = [{"name": name, "reason": entry.reason} for name, entry in verdict.excluded]
    path.write_text(json.dumps(data, indent=1))
