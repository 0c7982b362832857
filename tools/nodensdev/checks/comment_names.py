# SPDX-License-Identifier: Apache-2.0
"""Names in comments of C: `name()` is a function or macro in C, and `file.c` a file of the tree.

A C file must call or declare the name. tools/names.exceptions lists names of other projects (the
kernel, libraries, engines) that no code of ours has, with the reason.
"""
import fnmatch
import re
from pathlib import Path

from ..project import TOOLS, TOP
from . import c_text

CALL = re.compile(r"(?<![\w.>*/-])([A-Za-z_]\w*)\(\)")
CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
FILE = re.compile(r"(?<![\w./*<-])((?:[\w-]+/)*[\w-]+\.[ch])(?![\w(/-])")
INCLUDED = re.compile(r"#\s*include\s*[<\"]([^>\"]+)[>\"]")
EXCEPTIONS = TOOLS / "names.exceptions"


def exceptions(path: Path = EXCEPTIONS) -> list[str]:
    """Names and patterns, one a line, each followed by its reason."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def has_file(name: str, known: set[str]) -> bool:
    """Whether a path of the tree ends with this name."""
    return name in known or any(path.endswith(f"/{name}") for path in known)


def problems(top: Path = TOP, exempt: list[str] | None = None) -> list[str]:
    texts = {path: path.read_text() for path in c_text.sources(top, "src", "tests")}
    codes = {path: c_text.code(text) for path, text in texts.items()}
    words = {word for code in codes.values() for word in WORD.findall(code)}
    called = {name for code in codes.values() for name in CALLED.findall(code)}
    included = {name for text in texts.values() for name in INCLUDED.findall(text)}
    known = {str(path.relative_to(top)) for path in texts} | included
    allowed = exceptions() if exempt is None else exempt
    found = []
    for path, text in texts.items():
        for piece in c_text.comments(text):
            where = f"{path.relative_to(top)}:{piece.line}"
            missing = [name for name in CALL.findall(piece.text) if name not in called and not (name in words and is_member(name, codes))]
            files = [name for name in FILE.findall(piece.text) if not has_file(name, known)]
            found += [f"{where}: no function '{name}()'" for name in missing if not any(fnmatch.fnmatchcase(name, one) for one in allowed)]
            found += [f"{where}: no file '{name}'" for name in files if not any(fnmatch.fnmatchcase(name, one) for one in allowed)]
    return found


def is_member(name: str, codes: dict[Path, str]) -> bool:
    """Whether code has a pointer to a function of this name, as in a table: `->name(`, `(*name)(`, `.name =`."""
    pattern = re.compile(rf"\(\*{name}\)|\.{name}\s*=|->{name}\b|&{name}\b|[,{{(]\s*{name}\s*[,}})]")
    return any(pattern.search(code) for code in codes.values())
