# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint commits`: subjects of commits since BASE read `area: imperative summary`.

They have at most 72 columns, with an empty line below. The area is a part of the tree or several
(`cri`, `guard`, `oci, userns`, `tests/cri`); a git revert is left as git writes it. A copy without
.git has nothing to check; in a shallow clone that does not reach back to BASE, what is there is
checked.
"""
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

BASE = "6022a4954546"      # the rule holds for the commits after this one
COLUMNS = 72
AREA = r"[a-z0-9][a-z0-9_./*-]*"
SUBJECT = re.compile(rf"{AREA}(?:, {AREA})*: \S.*[^\s.]$")
REVERT = re.compile(r'Revert "')
# Words that are not imperative, at the place of the verb.
NOT_IMPERATIVE = re.compile(
    r"^[^:]+: (?:added|adds|adding|fixed|fixes|fixing|changed|changes|changing|removed|removes|removing|updated|updates|updating)\b", re.I
)


@dataclass(frozen=True)
class Commit:
    """What git says of a commit."""

    name: str
    message: str


def problems_of(commit: Commit) -> list[str]:
    lines = commit.message.splitlines() or [""]
    subject = lines[0]
    if REVERT.match(subject):
        return []
    found = []
    if len(subject) > COLUMNS:
        found.append(f"subject of {len(subject)} columns, more than {COLUMNS}")
    if not SUBJECT.match(subject):
        found.append("want 'area: imperative summary', without a full stop")
    elif NOT_IMPERATIVE.match(subject):
        found.append("want the imperative: 'add', not 'added' or 'adds'")
    if len(lines) > 1 and lines[1]:
        found.append("want an empty line below the subject")
    return [f"{commit.name}: {text}: '{subject}'" for text in found]


def git(top: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """git, also in a tree of another owner, as in a container of a forge."""
    return subprocess.run(["git", "-c", f"safe.directory={top}", "-C", str(top), *arguments], capture_output=True, text=True,
                          errors="replace")


def read(top: Path, base: str = BASE) -> list[Commit] | None:
    """The commits after `base`, without merges; None where there is no repository or no program git."""
    try:
        if not (top / ".git").exists() or git(top, "rev-parse", "--git-dir").returncode != 0:
            return None
    except FileNotFoundError:
        return None
    since = [f"^{base}"] if git(top, "cat-file", "-e", f"{base}^{{commit}}").returncode == 0 else []
    shallow = git(top, "rev-parse", "--is-shallow-repository").stdout.strip() == "true"
    if not since and not shallow:
        return None
    listed = git(top, "log", "--no-merges", "-z", "--format=%h%n%B", "HEAD", *since).stdout
    return [Commit(*entry.split("\n", 1)) for entry in listed.split("\0") if entry]


def problems(top: Path, base: str = BASE) -> tuple[str, list[str]]:
    """What was read, and what is wrong."""
    commits = read(top, base)
    if commits is None:
        return f"no repository with {base} here: no commit was checked", []
    return f"{len(commits)} commits were checked", [line for commit in commits for line in problems_of(commit)]
