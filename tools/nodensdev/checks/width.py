# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint width`: lines of C with a comment have at most 100 columns, lines of Python 140. clang-format looks after the rest of C.

Left out in comments, because they cannot be wrapped: a line with a URL or another word of more than 60 columns, a row of a table
(its text begins with `|`), and orders to clang-tidy and cppcheck, which must stand on the line that they are about.
Lines of Python inside a string in triple quotes, other than a docstring, are scripts and pages for other programs, and left out too.
So are the attacks of tests/audit, which are kept as they were tried; one of them reads the text of another.
"""
import ast
import re
from pathlib import Path

from . import c_text

COMMENT = 100
PYTHON = 140
LONG_WORD = re.compile(r"\S{61,}")
ROW = re.compile(r"^\s*(?:/\*|\*|//)\s*\|")
ORDER = re.compile(r"NOLINT|cppcheck-suppress|clang-format o(?:n|ff)")
SCRIPTS = ("tools/dev", "tools/tidy", "tools/check-layers")      # Python without .py in their names


def columns(line: str) -> int:
    return len(line.expandtabs(8))


def can_wrap(line: str) -> bool:
    return not (LONG_WORD.search(line) or ROW.match(line) or ORDER.search(line))


def wide_comments(path: Path, top: Path) -> list[str]:
    text = path.read_text()
    lines = text.splitlines()
    numbers = sorted({number for piece in c_text.comments(text) for number in range(piece.line, piece.line + piece.text.count("\n") + 1)})
    wide = [number for number in numbers if columns(lines[number - 1]) > COMMENT and can_wrap(lines[number - 1])]
    return [f"{path.relative_to(top)}:{number}: {columns(lines[number - 1])} columns with a comment, more than {COMMENT}"
            for number in wide]


def texts(source: str) -> set[int]:
    """The lines of strings in triple quotes that are not docstrings: scripts and pages, which other programs read."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {id(node.body[0].value) for node in nodes
                  if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body and isinstance(node.body[0], ast.Expr)}
    strings = [node for node in nodes if isinstance(node, ast.JoinedStr) or isinstance(node, ast.Constant)
               and isinstance(node.value, str)]
    return {number for node in strings if id(node) not in docstrings and node.end_lineno != node.lineno and multiline(source, node)
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def multiline(source: str, node: ast.expr) -> bool:
    """Whether a string is in triple quotes; one of several parts is not."""
    text = ast.get_source_segment(source, node) or ""
    return text.lstrip("rfbRFB").startswith(('"""', "'''"))


def wide_python(path: Path, top: Path) -> list[str]:
    source = path.read_text()
    wide = [(number, columns(line)) for number, line in enumerate(source.splitlines(), 1) if columns(line) > PYTHON]
    exempt = texts(source) if wide else set()
    return [f"{path.relative_to(top)}:{number}: {count} columns, more than {PYTHON}" for number, count in wide if number not in exempt]


def python_files(top: Path) -> list[Path]:
    found = [path for base in ("tools", "tests") for path in (top / base).rglob("*.py") if "audit" not in path.relative_to(top).parts]
    return sorted(found + [top / name for name in SCRIPTS if (top / name).is_file()])


def problems(top: Path) -> list[str]:
    comments = [line for path in c_text.sources(top, "src", "tests") for line in wide_comments(path, top)]
    return comments + [line for path in python_files(top) for line in wide_python(path, top)]
