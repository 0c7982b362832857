# SPDX-License-Identifier: Apache-2.0
"""A failed command's log in a few lines: the causes first, because a report may be cut."""
import re
from pathlib import Path

from ..project import TOP

CAUSES = 12  # lines that name a failure
END = 12  # the last lines of the log
WIDTH = 240  # characters of a line

# pytest's summary, meson's list of tests, compilers, ninja, sanitizers, a proof's and a fuzzer's
# verdict
CAUSE = re.compile(
    r"^(FAILED|ERROR|FAIL|E  ) |\berror: |^ *\d+/\d+ .*\b(FAIL|TIMEOUT|ERROR)\b|^SUMMARY: |runtime error|^ninja: |^not ok |: failed \(exit"
)


def excerpt(log: Path) -> list[str]:
    """The lines that name what went wrong, then the log's end."""
    lines = [line.rstrip()[:WIDTH] for line in log.read_text(errors="replace").splitlines()]
    before = max(len(lines) - END, 0)
    causes = [line for line in lines[:before] if CAUSE.search(line)]
    gap = ["..."] if causes else []
    return causes[-CAUSES:] + gap + lines[before:]


def show(log: Path) -> None:
    print(f"     of {log.relative_to(TOP)}:")
    print("\n".join("     | " + line for line in excerpt(log)), flush=True)
