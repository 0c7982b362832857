# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint layout`: how long files and functions are, and how many files a folder has."""
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .symbols import Symbol

FILE_LINES = 700
FOLDER_FILES = 45       # without tests, fuzzers and meson.build
NOT_COUNTED = ("test-", "fuzz-", "meson.build")
SOURCES = (("src", "*.[ch]"), ("tests", "*.[ch]"), ("tests", "*.py"), ("tools", "*.py"))


@dataclass(frozen=True)
class Lengths:
    """Lines of the functions of a tree, from the line with the name to the closing brace."""

    functions: int
    median: float
    p99: int
    most: int

    def __str__(self) -> str:
        return f"{self.functions} functions: median {self.median:g} lines, 99 % at most {self.p99}, longest {self.most}"


def lengths(symbols: Iterable[Symbol]) -> Lengths:
    """Of the .c files that ctags has read: those of src without tests and fuzzers."""
    lines = sorted(one.end - one.line + 1 for one in symbols if one.kind == "function" and not one.in_header and one.end)
    return Lengths(len(lines), statistics.median(lines), lines[int(len(lines) * 0.99)], lines[-1])


def long_files(top: Path) -> list[str]:
    paths = sorted({path for base, pattern in SOURCES for path in (top / base).rglob(pattern)})
    counted = [(path.relative_to(top), len(path.read_text().splitlines())) for path in paths]
    return [f"{path}: {count} lines, more than {FILE_LINES}" for path, count in counted if count > FILE_LINES]


def full_folders(top: Path) -> list[str]:
    folders = [path for path in sorted([top / "src", *(top / "src").rglob("*")]) if path.is_dir()]
    counted = [(folder.relative_to(top), sum(path.is_file() and not path.name.startswith(NOT_COUNTED) for path in folder.iterdir()))
               for folder in folders]
    return [f"{folder}: {count} files without tests, more than {FOLDER_FILES}" for folder, count in counted if count > FOLDER_FILES]


def problems(top: Path) -> list[str]:
    return long_files(top) + full_folders(top)
