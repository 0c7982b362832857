# SPDX-License-Identifier: Apache-2.0
"""Names in documents and theories of operation: these files, symbols and tests must exist."""
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
RENAMES = TOP / "docs/renames.md"
TABLES = {"R": range(1, 28), "F": range(1, 18)}  # requirements, and findings of the audit, by their numbers


def c_files() -> list[Path]:
    return sorted([*(TOP / "src").rglob("*.c"), *(TOP / "src").rglob("*.h")])


def document_problems(code: str) -> list[str]:
    """What README and its neighbours name and the tree does not have."""
    found = []
    for document in sorted({*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")} - {RENAMES}):
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


# ---- the way of five requests, in ARCHITECTURE.md

ARCHITECTURE = TOP / "ARCHITECTURE.md"
WAYS = "The way of five requests"
REQUESTS = ("RunPodSandbox", "PullImage", "AdmissionReview", "Exec bytes", "User namespace mapping")
WAY_FILES = 8
STATION = re.compile(r"^\d+\. `([^`]+)`: +\S")      # 1. `src/cri/rpc/sandbox.c`: decodes the request


def section(text: str, title: str, level: int) -> str | None:
    """The lines below a heading, up to the next one of its level or above."""
    found = re.search(rf"^{'#' * level} {re.escape(title)}\n(.*?)(?=^#{{1,{level}}} |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else None


def ways(text: str) -> dict[str, list[str]]:
    """The numbered lines below each request's heading."""
    part = section(text, WAYS, 2) or ""
    parts = {title: section(part, title, 3) for title in REQUESTS}
    return {title: [line for line in (body or "").splitlines() if re.match(r"\d+\.", line)] for title, body in parts.items()}


def way_problems(text: str) -> list[str]:
    """Each of the five requests passes one to eight files, which exist."""
    where = ARCHITECTURE.name
    if section(text, WAYS, 2) is None:
        return [f"{where}: no section '{WAYS}'"]
    found = []
    for title, lines in ways(text).items():
        if not lines:
            found.append(f"{where}: no way of '{title}' in '{WAYS}'")
        if len(lines) > WAY_FILES:
            found.append(f"{where}: the way of '{title}' has {len(lines)} files, more than {WAY_FILES}")
        stations = [(line, STATION.match(line)) for line in lines]
        found += [f"{where}: want '1. `src/FILE`: what it does', not '{line}'" for line, match in stations if not match]
        found += [f"{where}: no file '{match[1]}' on the way of '{title}'" for _, match in stations if match
                  and not (TOP / match[1]).is_file()]
    return found


# ---- docs/renames.md

def new_names(text: str) -> list[tuple[int, str]]:
    """The names in the second column of `| old | new |`, with their lines. A remark in parentheses is no name."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 4 or cells[2] in ("new", "") or set(cells[2]) <= set("-: "):
            continue
        words = [word.strip(" `") for word in re.sub(r"\(.+\)", "", cells[2]).split(",")]
        found += [(number, re.sub(r"^(struct|union|enum) |\(\)$", "", word)) for word in words if word]
    return found


def rename_problems(text: str, words: set[str]) -> list[str]:
    """New names that are neither a file nor a word of the code."""
    return [f"{RENAMES.relative_to(TOP)}:{number}: no file or symbol '{name}'" for number, name in new_names(text)
            if name not in words and not (TOP / name).exists() and not (TOP / "src" / name).exists()]


def words_of_the_code() -> set[str]:
    """Every word of the sources, tests and tools."""
    paths = [path for base in ("src", "tests", "tools") for pattern in ("*.[ch]", "*.py", "meson.build")
             for path in (TOP / base).rglob(pattern)]
    return {word for path in paths for word in re.findall(r"\w+", path.read_text())}


def problems() -> list[str]:
    files = c_files()
    code = "\n".join(path.read_text() for path in files)
    found = document_problems(code) + row_problems(SECURITY_MODEL.read_text()) + [line for path in files for line in theory_problems(path)]
    found += way_problems(ARCHITECTURE.read_text())
    return found + (rename_problems(RENAMES.read_text(), words_of_the_code()) if RENAMES.is_file() else [])
