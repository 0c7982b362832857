# SPDX-License-Identifier: Apache-2.0
"""Commands of pages: how they are read, run and compared."""
import subprocess
from pathlib import Path

import pytest
from nodensdev.checks import page_commands, pages
from nodensdev.project import TOP

PAGE = """# Title

<!-- run: chroot -->
```sh
cd /
x=3
```

<!-- run: chroot -->
```console
$ pwd
/
$ echo a; echo b; \\
echo $x
a
...
4
$ false
```

<!-- run: none needs a cluster -->
```sh
kubectl get nodes
```
"""


def session(top: Path, text: str = PAGE) -> list[page_commands.Shown]:
    (top / "README.md").write_text(text)
    return [shown for page in page_commands.sessions("chroot", top).values() for shown in page]


def tried(shown: list[page_commands.Shown]) -> list[str]:
    done = subprocess.run(["bash", "-c", page_commands.script(shown)], capture_output=True, text=True)
    return page_commands.problems(shown, done.stdout)


def test_commands_of_one_place_are_one_session(tmp_path: Path) -> None:
    shown = session(tmp_path)
    assert [one.text for one in shown] == ["cd /\nx=3\n", "pwd", "echo a; echo b; \\\necho $x", "false"]
    assert [one.output for one in shown] == [None, "/", "a\n...\n4", ""] and [one.where
                                                                              for one in shown] == ["README.md:4"] + 3 * ["README.md:10"]
    assert tried(shown) == []


@pytest.mark.parametrize(("old", "new", "problem"),
                         [("cd /\n", "cd /gone\n", "README.md:4: failed"), ("\n/\n$", "\n/tmp\n$", "`pwd` prints something else"),
                                                     ("\n4\n", "\nfour\n", "prints something else"),
                          ("$ false\n", "$ false\ntext\n", "`false` prints something else")])
def test_a_command_that_fails_and_an_output_that_is_not_real_are_found(tmp_path: Path, old: str, new: str, problem: str) -> None:
    changed = PAGE.replace(old, new)
    assert changed != PAGE
    found = tried(session(tmp_path, changed))
    assert len(found) == 1 and problem in found[0]


@pytest.mark.parametrize(("shown", "real", "equal"), [
    ("a  1 MiB", "a 23 MiB", True), ("v1.2.3", "v0.10.0", True), ("a\n...", "a\nb\nc", True), ("...\nc", "a\nb\nc", True),
    ("a", "a\nb", False), ("a b", "a c", False),
])
def test_numbers_and_left_out_lines_may_differ(shown: str, real: str, equal: bool) -> None:
    assert page_commands.same(shown, real) == equal


def test_every_marker_of_the_pages_is_one_that_a_script_knows() -> None:
    found = [line for page in pages.pages(TOP) for line in pages.marker_problems(page, TOP)]
    assert [line for line in found if "no '<!-- run:" not in line] == []
