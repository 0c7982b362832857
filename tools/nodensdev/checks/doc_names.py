# SPDX-License-Identifier: Apache-2.0
"""Names in prose rot unless something looks: files, symbols and tests that the documents and the theories of operation name must exist."""
import re
from pathlib import Path

from ..project import TOP

PATH = re.compile(r"`((?:src|tests|tools|docs|man|units)/[A-Za-z0-9_./-]+)`")
SYMBOL = re.compile(r"`(nd_[a-z0-9_]+)(?:\(\))?`")
MARKED = re.compile(r"(?<![\w.])@([A-Za-z_][A-Za-z0-9_]*)")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
ROW = re.compile(r"^\| (R|F)(\d+) \|(.*)$", re.MULTILINE)
TEST = re.compile(r"`((?:src|tests)/[A-Za-z0-9_./-]+\.(?:c|py))` `([A-Za-z0-9_]+)`")
SECURITY_MODEL = TOP / "docs/security-model.md"
TABLES = {"R": range(1, 28), "F": range(1, 18)}  # requirements, and findings of the audit, by their numbers


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


def row_problems(text: str) -> list[str]:
    """Requirements and findings without a row or a test, and tests that the page names and no suite runs."""
    rows = [(f"{letter}{number}", row) for letter, number, row in ROW.findall(text)]
    names = [name for name, _ in rows]
    wanted = [f"{letter}{number}" for letter, numbers in TABLES.items() for number in numbers]
    where = SECURITY_MODEL.relative_to(TOP)
    found = [f"{where}: {name} has {'no row' if name not in names else 'two rows'}" for name in wanted if names.count(name) != 1]
    found += [f"{where}: {name} is not the number of a requirement or finding" for name in names if name not in wanted]
    for name, row in rows:
        tests = TEST.findall(row)
        found += [f"{where}: {name} names no test"] if not tests else []
        found += [f"{where}: {name}: no test '{test}' in {path}" for path, test in tests if not has_test(TOP / path, test)]
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
    return document_problems(code) + row_problems(SECURITY_MODEL.read_text()) + [line for path in files for line in theory_problems(path)]
