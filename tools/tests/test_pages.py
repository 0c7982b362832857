# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint links`, and the blocks of commands in pages."""
from pathlib import Path

import pytest
from nodensdev.checks import pages

INDEX = "# Pages\n[guard](guard.md) [home](../README.md)\n"


def tree(top: Path, readme: str = "", index: str = INDEX, guard: str = "") -> Path:
    (top / "docs").mkdir(exist_ok=True)
    (top / "README.md").write_text("[docs](docs/README.md)\n" + readme)
    (top / "docs/README.md").write_text(index)
    (top / "docs/guard.md").write_text(guard)
    return top


@pytest.mark.parametrize("text", ["[a](docs/guard.md)", "[a](/docs/guard.md)", "[a](https://example.org/x)", "![a](docs)", "`[a](gone.md)`",
                                  "```\n[a](gone.md)\n```",
                                  "[a](docs/guard.md \"title\")", "[a][1]\n\n[1]: docs/guard.md", "# A `b`: c, d\n[a](#a-b-c-d)",
                                  "# A\n# A\n[a](#a-1)"])
def test_links_that_lead_somewhere_pass(tmp_path: Path, text: str) -> None:
    assert pages.problems(tree(tmp_path, text)) == []


@pytest.mark.parametrize(("text", "problem"), [
    ("[a](gone.md)", "no file 'gone.md'"), ("[a](docs/gone.md#x)", "no file 'docs/gone.md#x'"),
    ("[a][1]\n\n[1]: gone.md", "no file 'gone.md'"),
    ("[a](#gone)", "no heading '#gone' in README.md"), ("[a](docs/guard.md#gone)", "no heading '#gone' in docs/guard.md"),
    ("[a](../)", "'../' is outside the tree"),
])
def test_links_that_lead_nowhere_fail(tmp_path: Path, text: str, problem: str) -> None:
    found = pages.problems(tree(tmp_path, text))
    assert len(found) == 1 and found[0].endswith(problem)


def test_a_page_that_the_index_does_not_reach_fails(tmp_path: Path) -> None:
    assert pages.problems(tree(tmp_path, index="# Pages\n")) == ["docs/guard.md: no way of links leads here from docs/README.md"]
    (tmp_path / "docs/far.md").write_text("")
    assert pages.problems(tree(tmp_path, guard="[far](far.md)")) == []


def test_a_tree_without_an_index_or_without_a_link_to_it_fails(tmp_path: Path) -> None:
    (tree(tmp_path) / "README.md").write_text("")
    assert pages.problems(tmp_path) == ["README.md: no link to docs/README.md"]
    (tmp_path / "docs/README.md").unlink()
    assert "no docs/README.md: it is the index of the pages" in pages.problems(tmp_path)


PAGE = """# Title
<!-- run: none needs a cluster -->

Text.

```sh
kubectl get nodes
```

<!-- run: chroot -->
```console
$ nodens --version
nodens 0.1.0
```

```
neither
```
"""


def test_blocks_have_the_marker_above_them_or_that_of_the_page(tmp_path: Path) -> None:
    tree(tmp_path, guard=PAGE)
    found = pages.blocks(tmp_path / "docs/guard.md")
    assert [(block.line, block.language, block.place, block.reason)
            for block in found] == [(6, "sh", "none", "needs a cluster"), (11, "console", "chroot", "")]
    assert found[1].text == "$ nodens --version\nnodens 0.1.0\n" and pages.marker_problems(tmp_path / "docs/guard.md", tmp_path) == []


@pytest.mark.parametrize(("marker", "problem"),
                         [("", "no '<!-- run:"), ("<!-- run: moon -->", "'moon' is not one of"), ("<!-- run: none -->", "wants a reason")])
def test_blocks_without_a_marker_and_markers_that_say_nothing_are_found(tmp_path: Path, marker: str, problem: str) -> None:
    tree(tmp_path, guard=f"# T\n{marker}\n```sh\nls\n```\n")
    found = pages.marker_problems(tmp_path / "docs/guard.md", tmp_path)
    assert len(found) == 1 and problem in found[0]
