# SPDX-License-Identifier: Apache-2.0
"""The limits of `tools/dev lint layout` are where they are said to be."""
from pathlib import Path

from nodensdev.checks import sizes
from nodensdev.checks.symbols import Symbol


def folder(top: Path, name: str = "src/cri/core") -> Path:
    path = top / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def test_a_file_of_701_lines_is_too_long(tmp_path: Path) -> None:
    path = folder(tmp_path) / "record.c"
    path.write_text("x\n" * 700)
    assert sizes.problems(tmp_path) == []
    path.write_text("x\n" * 701)
    assert sizes.problems(tmp_path) == ["src/cri/core/record.c: 701 lines, more than 700"]


def test_tests_and_tools_are_sources_too(tmp_path: Path) -> None:
    for name in ("src/cri/test-a.c", "tests/unit/a.h", "tests/cri/test_a.py", "tools/nodensdev/a.py"):
        folder(tmp_path, str(Path(name).parent))
        (tmp_path / name).write_text("x\n" * 701)
    assert [line.split(":")[0] for line in sizes.problems(tmp_path)] == ["src/cri/test-a.c", "tests/cri/test_a.py", "tests/unit/a.h",
                                                                         "tools/nodensdev/a.py"]


def test_a_folder_of_46_files_is_too_full(tmp_path: Path) -> None:
    for number in range(45):
        (folder(tmp_path) / f"{number}.c").write_text("")
    for name in ("test-1.c", "fuzz-1.c", "meson.build"):
        (folder(tmp_path) / name).write_text("")
    assert sizes.problems(tmp_path) == []
    (folder(tmp_path) / "one-more.h").write_text("")
    assert sizes.problems(tmp_path) == ["src/cri/core: 46 files without tests, more than 45"]


def function(lines: int, path: str = "src/base/text.c") -> Symbol:
    return Symbol(Path(path), 11, "function", "f", "", "", False, 10 + lines)


def test_lengths_count_from_the_name_to_the_closing_brace() -> None:
    found = sizes.lengths([function(count) for count in range(1, 101)] + [function(900, "src/base/text.h")])
    assert found == sizes.Lengths(100, 50.5, 100, 100)
    assert str(found) == "100 functions: median 50.5 lines, 99 % at most 100, longest 100"
