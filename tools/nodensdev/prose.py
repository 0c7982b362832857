# SPDX-License-Identifier: Apache-2.0
"""Names in prose rot unless something looks: files, symbols and tests that the documents and the theories of operation name must exist."""
import re
from pathlib import Path

from .project import TOP

PATH = re.compile(r"`((?:src|tests|tools|docs|man|units)/[A-Za-z0-9_./-]+)`")
SYMBOL = re.compile(r"`(nd_[a-z0-9_]+)(?:\(\))?`")
MARKED = re.compile(r"(?<![\w.])@([A-Za-z_][A-Za-z0-9_]*)")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
REQUIREMENT = re.compile(r"^\| R(\d+) \|(.*)$", re.MULTILINE)
TEST = re.compile(r"`((?:src|tests)/[A-Za-z0-9_./-]+\.(?:c|py))` `([A-Za-z0-9_]+)`")
SECURITY_MODEL = TOP / "docs/security-model.md"
REQUIREMENTS = range(1, 28)


def c_files() -> list[Path]:
    return sorted([*(TOP / "src").rglob("*.c"), *(TOP / "src").rglob("*.h")])


def document_problems(code: str) -> list[str]:
    """What README and its neighbours name and the tree does not have."""
    found = []
    for document in sorted([*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")]):
        text = document.read_text()
        where = document.relative_to(TOP)
        found += [f"{where}: no file '{path}'" for path in sorted(set(PATH.findall(text)))
                  if "NAME" not in path and not (TOP / path).exists()]
        found += [f"{where}: no symbol '{name}'" for name in sorted(set(SYMBOL.findall(text))) if not re.search(rf"\b{name}\b", code)]
    return found


def has_test(path: Path, name: str) -> bool:
    """Whether a file defines a test of this name, and runs it: a C test must be in its main's table."""
    if not path.is_file():
        return False
    pattern = rf"^\s*def {name}\(" if path.suffix == ".py" else rf"cmocka_unit_test\w*\({name}\b"
    return re.search(pattern, path.read_text(), re.MULTILINE) is not None


def requirement_problems(text: str) -> list[str]:
    """Requirements without a test, and tests that the page names and nobody runs."""
    rows = [(int(number), row) for number, row in REQUIREMENT.findall(text)]
    numbers = [number for number, _ in rows]
    where = SECURITY_MODEL.relative_to(TOP)
    found = [f"{where}: R{number} has {'no row' if number not in numbers else 'two rows'}" for number in REQUIREMENTS if numbers.count(number) != 1]
    found += [f"{where}: nobody knows a requirement R{number}" for number in numbers if number not in REQUIREMENTS]
    for number, row in rows:
        tests = TEST.findall(row)
        found += [f"{where}: R{number} names no test"] if not tests else []
        found += [f"{where}: R{number}: no test '{name}' in {path}" for path, name in tests if not has_test(TOP / path, name)]
    return found


def theory_problems(path: Path) -> list[str]:
    """What a file's comments mark with @ and its code, or its own header, does not have."""
    text = path.read_text()
    marked = {name for comment in COMMENT.findall(text) for name in MARKED.findall(comment)}
    if not marked:
        return []
    header = path.with_suffix(".h")
    code = COMMENT.sub("", text) + (COMMENT.sub("", header.read_text()) if header.is_file() else "")
    return [f"{path.relative_to(TOP)}: '@{name}' is no name in it" for name in sorted(marked) if not re.search(rf"\b{name}\b", code)]


def problems() -> list[str]:
    files = c_files()
    code = "\n".join(path.read_text() for path in files)
    return document_problems(code) + requirement_problems(SECURITY_MODEL.read_text()) + [line for path in files for line in theory_problems(path)]
