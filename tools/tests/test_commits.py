# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint commits`: each rule about messages can fail, and copies without history pass."""
import subprocess
from pathlib import Path

import pytest
from nodensdev.checks import commits
from nodensdev.checks.commits import Commit
from nodensdev.project import TOP


def said(message: str) -> list[str]:
    return [line.split(": ", 2)[1] for line in commits.problems_of(Commit("1234567", message))]


@pytest.mark.parametrize(
    "message",
    [
        "cri: reject a tail of a log that is negative",
        "oci, userns: split the tests\n\nBecause.",
        "tests/cri: wait for the event",
        'Revert "a subject of before the rule, which git has quoted and which is longer than any other may be"',
    ],
)
def test_good_messages_pass(message: str) -> None:
    assert said(message) == []


@pytest.mark.parametrize("message", ["Reject a negative tail", "cri reject a negative tail", "CRI: reject a tail", "cri: ",
                                     "cri:reject a tail", "cri: reject a tail."])
def test_a_subject_without_an_area_or_with_a_full_stop_fails(message: str) -> None:
    assert said(message) == ["want 'area"]


def test_a_subject_of_73_columns_fails() -> None:
    assert said("cri: " + "x" * 67) == []
    assert said("cri: " + "x" * 68) == ["subject of 73 columns, more than 72"]


def test_a_verb_that_is_not_imperative_fails() -> None:
    assert said("cri: added a test") == ["want the imperative"]


def test_a_body_that_touches_the_subject_fails() -> None:
    assert said("cri: add a test\nbecause") == ["want an empty line below the subject"]


def git(directory: Path, *arguments: str) -> str:
    names = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *names, "-C", str(directory), *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "-q")
    for subject in ("Before the rule.", "cri: follow the rule", "Forgot the rule"):
        git(path, "commit", "-q", "--allow-empty", "-m", subject)
    return path


def test_only_commits_after_the_base_are_checked(repository: Path) -> None:
    read, found = commits.problems(repository, git(repository, "rev-parse", "HEAD~2"))
    assert read == "2 commits were checked" and len(found) == 1 and "Forgot the rule" in found[0]


def test_in_a_shallow_clone_what_is_there_is_checked(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", "shallow")
    read, found = commits.problems(tmp_path / "shallow", git(repository, "rev-parse", "HEAD~2"))
    assert read == "1 commits were checked" and len(found) == 1


def test_a_tree_without_history_passes_and_says_so(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    assert commits.problems(tmp_path / "export", "1234567") == ("no repository with 1234567 here: no commit was checked", [])
    assert commits.problems(repository, "1" * 40)[1] == []


def test_the_commits_of_this_tree_pass() -> None:
    assert commits.problems(TOP)[1] == []
