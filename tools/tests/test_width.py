# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint width`: where the limits are, and what cannot be wrapped."""
from pathlib import Path

import pytest
from nodensdev.checks import width


def found(top: Path, line: str, name: str = "src/a.c") -> list[str]:
    (top / name).parent.mkdir(parents=True, exist_ok=True)
    (top / name).write_text(f"{'int x;' if name.endswith('.c') else '# x'}\n{line}\n")
    return width.problems(top)


def padded(begin: str, end: str, columns: int) -> str:
    """A line of so many columns, of short words."""
    filling = "ab " * columns
    return begin + filling[:columns - len(begin) - len(end)] + end


@pytest.mark.parametrize("begin", ["/* ", "int y;   /* ", "        /* "])
def test_a_line_with_a_comment_of_101_columns_is_too_wide(tmp_path: Path, begin: str) -> None:
    assert found(tmp_path, padded(begin, "*/", 100)) == []
    assert found(tmp_path, padded(begin, "*/", 101)) == ["src/a.c:2: 101 columns with a comment, more than 100"]


def test_later_lines_of_a_comment_and_lines_with_slashes_count(tmp_path: Path) -> None:
    assert len(found(tmp_path, "/* a\n" + padded(" * ", "*/", 101))) == 1
    assert len(found(tmp_path, padded("// ", "a", 101))) == 1


def test_code_is_left_to_clang_format(tmp_path: Path) -> None:
    assert found(tmp_path, 'char *y = "' + "ab " * 40 + '";') == []


@pytest.mark.parametrize("line", ["/* https://example.org/" + "a" * 100 + " */", padded("/* | a ", "| */", 110),
                                  padded("int y; ", " // NOLINT(x)", 110)])
def test_what_cannot_be_wrapped_is_exempt(tmp_path: Path, line: str) -> None:
    assert found(tmp_path, line) == []


@pytest.mark.parametrize("name", ["tools/a.py", "tests/x/a.py", "tools/dev"])
def test_a_line_of_python_of_141_columns_is_too_wide(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, "x" * 140, name) == []
    assert found(tmp_path, "x" * 141, name) == [f"{name}:2: 141 columns, more than 140"]


def test_texts_for_other_programs_are_exempt_and_docstrings_are_not(tmp_path: Path) -> None:
    wide = "ab " * 50
    assert found(tmp_path, f'SCRIPT = """\n{wide}\n"""', "tools/a.py") == []
    assert found(tmp_path, f'SCRIPT = f"""\n{wide}{{int}}\n"""', "tools/a.py") == []
    assert len(found(tmp_path, f'def f():\n    """{wide}"""', "tools/a.py")) == 1
    assert len(found(tmp_path, f'TEXT = ("{wide}"\n        "b")', "tools/a.py")) == 1
