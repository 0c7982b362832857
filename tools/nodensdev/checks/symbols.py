# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint symbols`: shared C names carry the prefix of their directory, and no name means two things.

ctags reads src/ without tests and fuzzers. A name is shared when a header declares it. The compilers complain about functions that
are neither static nor declared in a header (-Wmissing-prototypes), so headers have all of them. Macros and enumerators have no prefix rule.

- Libraries: `nd_MODULE_`, where MODULE is the file's name, its first words or the directory's name: `nd_api_` in src/net/api-client.h.
  tools/symbols.exceptions lists the names that deviate, with the reason.
- Programs: the prefix of PROGRAMS.
- No struct typedefs. No name twice. No file-local name with a shared prefix, or with the name of something shared in another file.
"""
import fnmatch
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..command import Failure
from ..project import TOOLS

LIBRARIES = ("base", "sys", "net", "userns", "kube", "policy", "oci")
PROGRAMS = {"cri": "cri_", "mon": "mon_", "bridge": "bridge_", "pull": "pull_", "agent": "agent_", "guard": "guard_",
            "rootless": "rootless_", "cli": "cli_"}
EXCEPTIONS = TOOLS / "symbols.exceptions"
CTAGS = ["ctags", "--quiet", "--options=NONE", "--languages=C", "--langmap=C:.c.h", "--kinds-C=fpstugvx", "--fields=+ne",
         "--fields-C=+{properties}",
         "--pattern-length-limit=0", "--output-format=json", "--recurse", "--exclude=test-*", "--exclude=fuzz-*", "-f", "-", "src"]
TAGS = {"struct", "union", "enum"}
ORDINARY = {"function", "prototype", "externvar", "variable", "typedef"}
MENTIONED = re.compile(r"\b(?:struct|union|enum)\s+(\w+)")
EXTERN = re.compile(r"^extern\b([^;()]*);", re.MULTILINE)
DECLARED = re.compile(r"(\w+)\s*(?:\[[^]]*\]\s*)*(?:,|$)")
FORWARD = re.compile(r"^(struct|union|enum) \w+;")
STRUCT_MACRO = re.compile(r"\btypedef\s+nd_vector\(")      # expands to a struct without a name


@dataclass(frozen=True)
class Symbol:
    """One name that ctags found."""

    path: Path          # from the top of the tree
    line: int
    kind: str
    name: str
    text: str           # the line of source
    type: str
    static: bool
    end: int            # last line, of functions

    @property
    def layer(self) -> str:
        return self.path.parts[1]

    @property
    def in_header(self) -> bool:
        return self.path.suffix == ".h"

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"


def parse(output: str) -> list[Symbol]:
    """The global names of ctags' output, in the order of files and lines."""
    rows = [json.loads(line) for line in output.splitlines()]
    found = [symbol(row) for row in rows if row["_type"] == "tag" and "scope" not in row and not row["name"].startswith("__anon")]
    return sorted((one for one in found if not FORWARD.match(one.text)), key=lambda one: (one.path, one.line, one.name))


def symbol(row: dict[str, str | int]) -> Symbol:
    text = str(row["pattern"]).removeprefix("/^").removesuffix("/").removesuffix("$")
    # ctags sometimes loses the storage class; the line has it.
    static = "static" in str(row.get("properties", "")).split(",") or text.startswith("static ")
    return Symbol(Path(str(row["path"])), int(row["line"]), str(row["kind"]), str(row["name"]), text, str(row.get("typeref", "")), static,
                  int(row.get("end", 0)))


def read(run: Callable[[list[str]], str]) -> list[Symbol]:
    """The names of a tree; `run` runs a command at its top and returns the output."""
    found = parse(run(CTAGS))
    if not found:
        raise Failure("ctags found no C names below src")
    return found


def unknown_layers(symbols: list[Symbol]) -> Iterator[str]:
    for layer in sorted({one.layer for one in symbols} - {*LIBRARIES, *PROGRAMS}):
        yield f"src/{layer}: no prefix is known for this directory; tools/nodensdev/symbols.py has the table"


# ---- prefixes

def prefixes(path: Path) -> list[str]:
    """The prefixes that shared names of a file may have, without the last underscore; the one to suggest first."""
    layer = path.parts[1]
    if layer in PROGRAMS:
        return [PROGRAMS[layer].removesuffix("_")]
    words = path.stem.split("-")
    return ["nd_" + "_".join(words[:count]) for count in range(len(words), 0, -1)] + [f"nd_{layer}"]


def is_prefixed(name: str, path: Path) -> bool:
    if path.parts[1] in PROGRAMS:
        return name.startswith(PROGRAMS[path.parts[1]])
    return any(name == prefix or name.startswith(prefix + "_") for prefix in prefixes(path))


def extern_variables(headers: str) -> set[str]:
    """ctags overlooks some of them, after a typedef."""
    return {name for declaration in EXTERN.findall(headers) for name in DECLARED.findall(declaration)}


def shared(symbols: list[Symbol], headers: str) -> Iterator[Symbol]:
    """Names that headers declare, once each; with tags that a .c file defines and a header names."""
    mentioned, externs = set(MENTIONED.findall(headers)), extern_variables(headers)
    seen = set()
    for one in sorted(symbols, key=lambda one: not one.in_header):
        is_declared = one.kind in TAGS and one.name in mentioned or one.kind == "variable" and one.name in externs and not one.static
        if (one.in_header or is_declared) and (one.kind in TAGS, one.name) not in seen:
            seen.add((one.kind in TAGS, one.name))
            yield one


def exceptions(text: str) -> list[str]:
    """Names of libraries without the prefix of their module, one a line with the reason.

    For example `nd_streq short for strcmp() == 0`. A pattern may stand for several.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if len(words) == 1:
            raise Failure(f"tools/{EXCEPTIONS.name}:{number}: '{words[0]}' has no reason")
        found += words[:1]
    return found


def prefix_problems(symbols: list[Symbol], headers: str, excepted: list[str]) -> Iterator[str]:
    used = set()
    for one in shared(symbols, headers):
        if one.layer not in {*LIBRARIES, *PROGRAMS} or is_prefixed(one.name, one.path):
            continue
        covering = [pattern for pattern in excepted if one.layer in LIBRARIES and fnmatch.fnmatchcase(one.name, pattern)]
        used.update(covering)
        if not covering:
            yield f"{one.where}: '{one.name}' lacks the prefix '{prefixes(one.path)[0]}_'"
    yield from (f"tools/{EXCEPTIONS.name}: '{pattern}' is not needed" for pattern in excepted if pattern not in used)


# ---- typedefs, duplicates, statics

def typedef_problems(symbols: list[Symbol]) -> Iterator[str]:
    for one in symbols:
        is_struct = one.type.startswith(("struct:", "union:", "enum:")) and "(" not in one.type + one.text
        if one.kind == "typedef" and (is_struct or STRUCT_MACRO.search(one.text)):
            yield f"{one.where}: '{one.name}' is a typedef of a struct, union or enum; name the type by its tag"


def definitions(symbols: list[Symbol], headers: str) -> list[Symbol]:
    """What defines a name for more than its file."""
    externs = extern_variables(headers)
    functions = [one for one in symbols if one.kind == "function" and (one.in_header or not one.static) and one.name != "main"]
    variables = [one for one in symbols if one.kind == "variable" and (one.in_header or one.name in externs and not one.static)]
    types = [one for one in symbols if one.in_header and (one.kind in TAGS or one.kind == "typedef")]
    return functions + variables + types


def duplicate_problems(symbols: list[Symbol], headers: str) -> Iterator[str]:
    """Tags and other names are apart, as in C."""
    by_name: dict[tuple[bool, str], list[Symbol]] = defaultdict(list)
    for one in definitions(symbols, headers):
        by_name[one.kind in TAGS, one.name].append(one)
    for (_, name), found in sorted(by_name.items()):
        yield from (f"{other.where}: '{name}' is also defined at {found[0].where}" for other in found[1:])


def local_names(symbols: list[Symbol], headers: str) -> Iterator[Symbol]:
    """Functions, variables and tags of .c files that no header declares."""
    mentioned, externs = set(MENTIONED.findall(headers)), extern_variables(headers)
    for one in (one for one in symbols if not one.in_header):
        is_variable = one.kind == "variable" and (one.static or one.name not in externs)
        if one.kind == "function" and one.static or is_variable or one.kind in TAGS and one.name not in mentioned:
            yield one


def static_problems(symbols: list[Symbol], headers: str) -> Iterator[str]:
    shared_names = {(one.kind in TAGS, one.name): one for one in definitions(symbols, headers)}
    for one in local_names(symbols, headers):
        other = shared_names.get((one.kind in TAGS, one.name))
        own = [prefix for prefix in ("nd_", PROGRAMS.get(one.layer, "nd_")) if one.name.startswith(prefix)]
        if own:
            yield f"{one.where}: file-local '{one.name}' carries the shared prefix '{own[0]}'"
        elif other and other.path != one.path:
            yield f"{one.where}: file-local '{one.name}' has the name of a shared {other.kind} at {other.where}"


def problems(symbols: list[Symbol], headers: str, excepted: list[str]) -> list[str]:
    return [*unknown_layers(symbols), *prefix_problems(symbols, headers, excepted), *typedef_problems(symbols),
            *duplicate_problems(symbols, headers),
            *static_problems(symbols, headers)]


def headers_of(top: Path) -> str:
    """The text of all headers below src."""
    return "\n".join(path.read_text() for path in sorted((top / "src").rglob("*.h")) if not path.name.startswith(("test-", "fuzz-")))


def of_tree(top: Path, run: Callable[[list[str]], str]) -> list[str]:
    listed = EXCEPTIONS.read_text() if EXCEPTIONS.is_file() else ""
    return problems(read(run), headers_of(top), exceptions(listed))
