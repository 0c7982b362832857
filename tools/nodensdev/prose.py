# SPDX-License-Identifier: Apache-2.0
"""Names in prose rot unless something looks: files and symbols that the documents and the theories of operation name must exist."""
import re
from pathlib import Path

from .project import TOP

PATH = re.compile(r"`((?:src|tests|tools|docs|man|units)/[A-Za-z0-9_./-]+)`")
SYMBOL = re.compile(r"`(nd_[a-z0-9_]+)(?:\(\))?`")
MARKED = re.compile(r"(?<![\w.])@([A-Za-z_][A-Za-z0-9_]*)")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


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
    return document_problems(code) + [line for path in files for line in theory_problems(path)]
