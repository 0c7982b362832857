# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint words`: how often idioms occur that other projects of this field hardly use.

Counted per 1,000 words of the comments of src (without tests, fuzzers and licence lines) and of the
documents (without code blocks). Each may be twice as frequent as in the project that uses it most.
String literals of programs, which users read, have none. tools/words.exceptions lists texts that
are fixed by others, with the reason.
"""
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..project import TOOLS
from . import c_text

ANCHORS = ("passt", "crun", "conmon", "systemd ns*", "systemd basic+core", "curl")
ALLOWED = 2     # times the highest anchor
EXCEPTIONS = TOOLS / "words.exceptions"


@dataclass(frozen=True)
class Idiom:
    """Words, and how often each project of ANCHORS uses them per 1,000 words of comments."""

    name: str
    pattern: re.Pattern[str]
    anchors: tuple[float, ...]

    @property
    def limit(self) -> float:
        return ALLOWED * max(self.anchors)


# Counted in 2026 in passt 2c174f1, crun ba38286f, conmon c3f70a3, systemd ed22b5a (nsresourced,
# nspawn and machine; basic and core), curl 5c61e16.
IDIOMS = (
    Idiom("whoever, whatever, wherever", re.compile(r"\b(?:who|what|wher)ever\b", re.I), (0.00, 0.00, 0.18, 0.24, 0.12, 0.14)),
    Idiom("somebody, nobody, anybody, everybody", re.compile(r"\b(?:some|no|any|every)body\b", re.I), (0.17, 0.00, 0.18, 0.18, 0.32, 0.02)),
    Idiom("those, one, all + who, that", re.compile(r"\b(?:those|one|all)\s+(?:who|that)\b", re.I), (0.00, 0.00, 0.00, 0.12, 0.12, 0.07)),
    Idiom("tell, told", re.compile(r"\b(?:tells?|told|telling)\b", re.I), (0.07, 1.07, 0.71, 0.61, 0.23, 0.42)),
)
WORD = re.compile(r"[A-Za-z][\w'-]*")
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1[^\n]*$", re.DOTALL | re.MULTILINE)
# The user of that name: quoted, after the word "user" or with its group or number.
USER_NOBODY = re.compile(r"""[`'"]nobody[`'"]|\b(?:user|group|account|owner)s?\s+nobody\b|\bnobody(?=:|\s+user\b|\s+\(65534\))""")


@dataclass(frozen=True)
class Text:
    """A stretch of prose and where it stands."""

    path: Path
    line: int
    text: str


@dataclass(frozen=True)
class Count:
    """How much was read, and the places of each idiom."""

    words: int
    places: dict[str, list[str]]

    def rate(self, idiom: Idiom) -> float:
        return 1000 * len(self.places[idiom.name]) / max(self.words, 1)


def programs(top: Path) -> list[Path]:
    return [path for path in c_text.sources(top, "src") if not c_text.is_test(path)]


def comments(top: Path) -> list[Text]:
    return [Text(path, piece.line, c_text.prose(piece.text)) for path in programs(top) for piece in c_text.comments(path.read_text())]


def strings(top: Path) -> list[Text]:
    return [Text(path, piece.line, piece.text) for path in programs(top) for piece in c_text.strings(path.read_text())]


def documents(top: Path) -> list[Text]:
    """Markdown and man pages. docs/renames.md quotes old names."""
    paths = {*top.glob("*.md"), *(top / "docs").rglob("*.md"), *(top / "man").rglob("*.scd*")} - {top / "docs/renames.md"}
    return [Text(path, 1, FENCE.sub(lambda match: "\n" * match[0].count("\n"), path.read_text())) for path in sorted(paths)]


def count(texts: Iterable[Text], top: Path) -> Count:
    words = 0
    places: dict[str, list[str]] = {idiom.name: [] for idiom in IDIOMS}
    for text in texts:
        clean = USER_NOBODY.sub(lambda match: "\n" * match[0].count("\n"), text.text)
        words += len(WORD.findall(clean))
        for idiom in IDIOMS:
            places[idiom.name] += [f"{text.path.relative_to(top)}:{text.line + clean.count(chr(10), 0, match.start())}: '{match[0]}'"
                                   for match in idiom.pattern.finditer(clean)]
    return Count(words, places)


def exceptions(path: Path = EXCEPTIONS) -> set[str]:
    """String literals that are fixed by others: `text` and the reason, one a line."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return {line.split("`")[1] for line in lines if line.startswith("`")}


def seen_by_users(top: Path, fixed: set[str]) -> list[str]:
    found = [text for text in strings(top) if text.text not in fixed and text.text != "nobody"]
    return [place for places in count(found, top).places.values() for place in places]


def table(counts: dict[str, Count]) -> list[str]:
    """Ours beside the anchors, per 1,000 words."""
    columns = (*counts, *ANCHORS, "limit")
    rows = [("per 1,000 words", *columns)]
    for idiom in IDIOMS:
        values = (*(one.rate(idiom) for one in counts.values()), *idiom.anchors, idiom.limit)
        rows.append((idiom.name, *(f"{value:.2f}" for value in values)))
    rows.append(("words read", *(str(one.words) for one in counts.values()), *("" for _ in (*ANCHORS, "limit"))))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]).rstrip()
            for row in rows]


def problems(counts: dict[str, Count]) -> list[str]:
    found = []
    for name, one in counts.items():
        for idiom in IDIOMS:
            if one.rate(idiom) > idiom.limit:
                found += [f"{name}: {idiom.name}: {one.rate(idiom):.2f} per 1,000 words, more than {idiom.limit:.2f}",
                          *one.places[idiom.name]]
    return found


def of_tree(top: Path) -> tuple[list[str], list[str]]:
    """The table, and what is wrong."""
    counts = {"comments": count(comments(top), top), "documents": count(documents(top), top)}
    literals = seen_by_users(top, exceptions())
    lines = [*table(counts), f"idioms in string literals: {len(literals)}"]
    return lines, problems(counts) + [f"{place} in a string literal" for place in literals]
