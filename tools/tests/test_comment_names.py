# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint names` over comments of C: names that are not there are found."""
from pathlib import Path

import pytest
from nodensdev.checks import comment_names

CODE = """#include <sys/mount.h>
#include "cri/core/record.h"
static int made(void) { return mount(0, 0, 0, 0, 0); }
struct table { int (*stop)(void); };
struct table t = { .start = made };
char *text = "only_text()";
"""


def found(top: Path, comment: str, exempt: list[str] | None = None) -> list[str]:
    (top / "src/cri/core").mkdir(parents=True, exist_ok=True)
    (top / "src/cri/core/record.h").write_text("")
    (top / "src/cri/core/record.c").write_text(f"{CODE}/* {comment} */\n")
    return comment_names.problems(top, exempt or [])


@pytest.mark.parametrize("comment", ["made() calls mount()", "the table has stop() and start()",
                                     "see record.h, core/record.c and sys/mount.h", "a.b.c and *.c"])
def test_names_that_exist_pass(tmp_path: Path, comment: str) -> None:
    assert found(tmp_path, comment) == []


@pytest.mark.parametrize("name", ["gone()", "only_text()"])
def test_a_function_that_does_not_exist_is_found(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, f"as {name} does it") == [f"src/cri/core/record.c:7: no function '{name}'"]


@pytest.mark.parametrize("name", ["gone.c", "gone.h", "pod/record.c", "cord.h"])
def test_a_file_that_does_not_exist_is_found(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, f"see {name}.") == [f"src/cri/core/record.c:7: no file '{name}'"]


def test_names_of_other_projects_are_exempt_by_the_list(tmp_path: Path) -> None:
    assert found(tmp_path, "as do_mount() in fs/namespace.c", ["do_*", "fs/*.c"]) == []
    assert len(found(tmp_path, "as do_mount() in fs/namespace.c")) == 2


def test_every_exception_has_a_reason() -> None:
    lines = [line for line in comment_names.EXCEPTIONS.read_text().splitlines() if not line.startswith("#")]
    assert all(len(line.split()) > 2 for line in lines)
