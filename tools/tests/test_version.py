# SPDX-License-Identifier: Apache-2.0
"""The version in one place: its forms, and the texts that are compared with it."""
import shutil
import subprocess
from pathlib import Path

import pytest
from nodensdev import package, version
from nodensdev.command import Failure
from nodensdev.project import TOP

COPIED = ("VERSION", "meson.build", "NEWS.md", "README.md", "ROADMAP.md", "debian/changelog", "deploy/chart/Chart.yaml",
          "deploy/kustomize/base/guard.yaml", "docs/node-commands.md")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files of this tree that have a version."""
    for name in COPIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, tmp_path / name)
    return tmp_path


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_this_tree_has_one_version() -> None:
    assert version.problems() == []
    assert package.version() == version.read().debian()


@pytest.mark.parametrize("text", ["0.1.0", "1.20.3", "0.2.0-dev", "0.2.0-rc.1", "0.2.0-rc.12"])
def test_releases_and_prereleases_are_read_and_written_alike(text: str) -> None:
    assert str(version.parse(text)) == text


@pytest.mark.parametrize("text", ["", "1", "1.2", "v1.2.3", "1.2.3 ", "01.2.3", "1.2.3-", "1.2.3-beta.1", "1.2.3-rc", "1.2.3-rc.0",
                                  "1.2.3+x", "1.2.3\n"])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(Failure, match="invalid version"):
        version.parse(text)


def test_debian_orders_prereleases_before_their_release() -> None:
    order = [version.parse(text).debian() for text in ("0.1.9", "0.2.0-dev", "0.2.0-rc.2", "0.2.0-rc.10", "0.2.0", "0.2.1-dev")]
    assert order[1:3] == ["0.2.0~dev", "0.2.0~rc.2"]
    for older, newer in zip(order, order[1:], strict=False):
        assert subprocess.run(["dpkg", "--compare-versions", older, "lt", newer]).returncode == 0, f"{older} < {newer}"


def test_each_text_with_another_version_is_named(tree: Path) -> None:
    (tree / "VERSION").write_text("7.8.9-rc.1\n")
    found = version.problems(tree)
    for name, wanted in (("debian/changelog", "7.8.9~rc.1"), ("NEWS.md", "7.8.9"), ("ROADMAP.md", "7.8.9"), ("README.md", "7.8.9"),
                         ("deploy/chart/Chart.yaml", "7.8.9-rc.1"), ("deploy/kustomize/base/guard.yaml", "7.8.9-rc.1"),
                         ("docs/node-commands.md", "7.8.9-rc.1")):
        assert any(line.startswith(name) and line.endswith(f"VERSION gives {wanted}") for line in found), name
    assert sum(line.startswith("deploy/chart/Chart.yaml") for line in found) == 2


def test_a_text_without_a_version_is_named(tree: Path) -> None:
    replace(tree / "README.md", "**Status: ", "**State: ")
    assert version.problems(tree) == [f"README.md: no version where {version.read().release} is expected"]


def test_a_page_that_shows_an_older_program_is_named(tree: Path) -> None:
    (tree / "docs/old.md").write_text("text\n\nnodens-cri 0.0.9 answers\n")
    assert version.problems(tree) == [f"docs/old.md:3: 0.0.9, but VERSION gives {version.read()}"]


def test_a_version_that_only_one_text_calls_released_is_named(tree: Path) -> None:
    release = version.read().release
    (tree / "NEWS.md").write_text(f"# News\n\n## {release} (2026-12-01)\n")
    replace(tree / "debian/changelog", ") UNRELEASED;", ") unstable;")
    assert version.problems(tree) == []
    (tree / "NEWS.md").write_text(f"# News\n\n## {release} (unreleased)\n")
    assert len(version.problems(tree)) == 1


def test_a_build_with_a_version_of_its_own_is_named(tree: Path) -> None:
    replace(tree / "meson.build", "files('VERSION')", "'0.1.0'")
    assert version.problems(tree) == ["meson.build does not read VERSION"]


def test_a_damaged_version_is_named(tree: Path) -> None:
    (tree / "VERSION").write_text("0.1\n")
    assert version.problems(tree) == ["VERSION: invalid version '0.1': must be X.Y.Z, X.Y.Z-dev or X.Y.Z-rc.N"]
