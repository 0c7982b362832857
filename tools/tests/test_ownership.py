# SPDX-License-Identifier: Apache-2.0
"""Files that root makes in a tree of another user go back to this user."""
import os
from pathlib import Path

import pytest
from nodensdev import main, ownership
from nodensdev.command import Command, Failure

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of other users")
ALICE = 12345


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree of alice in which root has worked."""
    top = tmp_path / "tree"
    (top / "build/gcc").mkdir(parents=True)
    (top / "build/gcc/nodens").write_text("")
    (top / "source.c").write_text("")
    (top / "link").symlink_to(tmp_path)
    os.chown(top, ALICE, ALICE)
    return top


def owners(top: Path) -> set[int]:
    return {path.lstat().st_uid for path in (top, *top.rglob("*"))}


def test_root_s_files_go_to_the_owner_of_the_tree(tree: Path) -> None:
    assert ownership.give_back(tree) == 5
    assert owners(tree) == {ALICE}
    assert tree.parent.stat().st_uid == 0, "a link was followed"
    assert ownership.give_back(tree) == 0


def test_a_tree_of_root_stays_as_it_is(tree: Path) -> None:
    os.chown(tree, 0, 0)
    os.chown(tree / "source.c", ALICE, ALICE)
    assert ownership.give_back(tree) == 0
    assert owners(tree) == {0, ALICE}


def test_files_of_other_users_and_with_other_names_stay(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("")
    os.link(tmp_path / "outside", tree / "inside")
    os.chown(tree / "source.c", 999, 999)
    ownership.give_back(tree)
    assert (tmp_path / "outside").stat().st_uid == 0
    assert (tree / "source.c").stat().st_uid == 999


def test_a_command_returns_files_even_if_it_fails(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(args: object) -> int:
        (tree / "made").write_text("")
        raise Failure("on purpose")

    monkeypatch.setattr(main, "TOP", tree)
    monkeypatch.setattr(main, "commands", lambda: {"fails": Command("fails", "", fails)})
    assert main.main(["fails"]) == 1
    assert (tree / "made").stat().st_uid == ALICE


def test_a_missing_right_is_a_message_and_not_a_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def forbidden(args: object) -> int:
        raise PermissionError(13, "Permission denied", "/var/cache/nodens/scratch")

    monkeypatch.setattr(main, "commands", lambda: {"cache": Command("cache", "", forbidden)})
    monkeypatch.setattr(os, "geteuid", lambda: ALICE)
    assert main.main(["cache"]) == 1
    assert capsys.readouterr().err == \
        "tools/dev cache: [Errno 13] Permission denied: '/var/cache/nodens/scratch'; run it as root: sudo tools/dev cache\n"
