# SPDX-License-Identifier: Apache-2.0
"""Comments and string literals of C files, for the lints that read text."""
import re
from dataclasses import dataclass
from pathlib import Path

# A quote after a digit separates digits (1'000); the name of an included file is not text for
# users.
TOKEN = re.compile(r"""
    (?P<comment> /\*.*?\*/ | //[^\n]* )
  | (?P<include> ^[ \t]*\#[ \t]*include\b[^\n]* )
  | (?P<string> "(?:[^"\\\n]|\\.)*" )
  | (?P<char> (?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)*' )
""", re.DOTALL | re.MULTILINE | re.VERBOSE)
LICENCE = re.compile(r"SPDX-License-Identifier:[^\n*]*|Copyright[^\n*]*")
DECORATION = re.compile(r"^/\*+|\*+/$|^\s*\*(?!/)|^//+|-{3,}", re.MULTILINE)


@dataclass(frozen=True)
class Piece:
    """A comment or a string literal."""

    line: int
    text: str


def comments(text: str) -> list[Piece]:
    return [Piece(text.count("\n", 0, match.start()) + 1, match[0]) for match in TOKEN.finditer(text) if match.lastgroup == "comment"]


def strings(text: str) -> list[Piece]:
    """String literals without their quotes; adjacent ones are one, as for the compiler."""
    found: list[Piece] = []
    end = -1
    for match in TOKEN.finditer(text):
        if match.lastgroup != "string":
            continue
        if found and not text[end:match.start()].strip():
            found[-1] = Piece(found[-1].line, found[-1].text + match[0][1:-1])
        else:
            found.append(Piece(text.count("\n", 0, match.start()) + 1, match[0][1:-1]))
        end = match.end()
    return found


def prose(comment: str) -> str:
    """The words of a comment, without its frame and licence lines."""
    return DECORATION.sub(" ", LICENCE.sub("", comment))


def code(text: str) -> str:
    """A file without comments and string literals; lines stay where they are."""
    def blank(match: re.Match[str]) -> str:
        return match[0] if match.lastgroup == "include" else "\n" * match[0].count("\n") or " "

    return TOKEN.sub(blank, text)


def is_test(path: Path) -> bool:
    return path.name.startswith(("test-", "fuzz-"))


def sources(top: Path, *bases: str) -> list[Path]:
    """The C files below some directories of a tree."""
    return sorted(path for base in bases for path in (top / base).rglob("*.[ch]"))
