# SPDX-License-Identifier: Apache-2.0
"""Markdown pages: their links, headings and the commands that they show.

`tools/dev lint links`: every link leads to a file of the tree and, with #NAME, to a heading of it;
every page below docs/ can be reached from docs/README.md, and that one from README.md. Addresses
outside the tree are not fetched.

Commands are in blocks. ```sh has commands alone, ```console commands after `$ ` with the output
that they print. A comment on a line above a block says where a script can run it:

    <!-- run: chroot -->             in a clean Debian 13 root, where the packages are installed (see page_commands.py)
    <!-- run: guest -->              in a clean Debian 13 guest
    <!-- run: guest as alice -->     the same, as an ordinary user
    <!-- run: cluster -->            in a guest that is a cluster of one node (see page_cluster.py)
    <!-- run: machine -->            on the machine itself, in this tree
    <!-- run: none needs helm -->    not by a script, and why

A marker that is followed by text counts for all blocks of the page that have none of their own; it stands below the title.

Some steps of a page are sentences, which a script cannot read:

    <!-- run: merge /etc/nodens/cri.yaml -->   above a ```yaml block: its keys replace those of this file
    <!-- do: systemctl restart kubelet -->     the command for what the sentence above says; readers do not see it
    <!-- do guest: loginctl ... -->            the same, in another place than that of the page's marker
"""
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

INDEX = "docs/README.md"
START = "README.md"
FENCE = re.compile(r"^( *)(```+|~~~+)(\S*)[^\n]*\n(.*?)^\1\2[ \t]*$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
ANCHOR = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")
OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
MARKER = re.compile(r"<!--\s*run:\s*(\S+)\s*(.*?)\s*-->")
STEP = re.compile(r"<!--\s*do(?: (\w+))?:\s*(.*?)\s*-->", re.DOTALL)
USER = re.compile(r"as (\S+)")
PLACES = ("chroot", "guest", "cluster", "machine", "none")
SHELL = ("sh", "console")
DO, MERGE = "do", "merge"


@dataclass(frozen=True)
class Block:
    """A fenced block of commands, or a step that only the script sees."""

    path: Path
    line: int
    language: str       # of SHELL, or DO, or MERGE: `text` is YAML for the file `target`
    text: str
    place: str          # of PLACES; empty: not marked
    reason: str         # of "none"; in other places empty or what USER matches
    target: str = ""

    def user(self) -> str:
        """The user of a marker; empty: root."""
        match = USER.fullmatch(self.reason)
        return match[1] if match else ""


# ---- links

def pages(top: Path) -> list[Path]:
    return sorted({*top.glob("*.md"), *(top / "docs").rglob("*.md"), *(top / ".github").rglob("*.md")})


def without_code(text: str) -> str:
    """A page without blocks and `code`; its lines stay where they are."""
    text = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    return CODE.sub(lambda match: "\n" * match[0].count("\n"), text)


def links(text: str) -> Iterator[tuple[int, str]]:
    """Targets, with their lines."""
    plain = without_code(text)
    for pattern in (LINK, DEFINITION):
        for match in pattern.finditer(plain):
            yield plain.count("\n", 0, match.start()) + 1, match[1]


def slug(heading: str) -> str:
    """The name that forges give a heading: lower case, without punctuation, spaces as hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """The names in a page that a link can lead to. The second heading of the same text gets -1."""
    blocks = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    found: set[str] = set(ANCHOR.findall(blocks))
    for heading in HEADING.findall(blocks):
        name, number = slug(heading), 0
        while (name if not number else f"{name}-{number}") in found:
            number += 1
        found.add(name if not number else f"{name}-{number}")
    return found


def target(page: Path, link: str, top: Path) -> tuple[Path, str]:
    """The file and the heading that a link of a page leads to."""
    path, _, name = link.partition("#")
    if not path:
        return page, name
    return (top / path.lstrip("/") if path.startswith("/") else page.parent / path).resolve(), name


def link_problems(page: Path, top: Path) -> list[str]:
    found = []
    for line, link in links(page.read_text()):
        if OUTSIDE.match(link):
            continue
        path, name = target(page, link, top)
        where = f"{page.relative_to(top)}:{line}"
        if not path.exists():
            found.append(f"{where}: no file '{link}'")
        elif not path.is_relative_to(top):
            found.append(f"{where}: '{link}' is outside the tree")
        elif name and path.suffix == ".md" and name not in anchors(path.read_text()):
            found.append(f"{where}: no heading '#{name}' in {path.relative_to(top)}")
    return found


def reached(start: Path, top: Path) -> set[Path]:
    """The pages that links lead to from one, and itself."""
    found, waiting = set(), [start.resolve()]
    while waiting:
        page = waiting.pop()
        if page in found or page.suffix != ".md" or not page.is_file():
            continue
        found.add(page)
        waiting += [target(page, link, top)[0] for _, link in links(page.read_text()) if not OUTSIDE.match(link)]
    return found


def reach_problems(top: Path) -> list[str]:
    index = top / INDEX
    if not index.is_file():
        return [f"no {INDEX}: it is the index of the pages"]
    found = [] if index in {target(top / START, link, top)[0] for _,
                            link in links((top / START).read_text())} else [f"{START}: no link to {INDEX}"]
    there = reached(index, top)
    return found + [f"{page.relative_to(top)}: no way of links leads here from {INDEX}" for page in sorted((top / "docs").rglob("*.md"))
                    if page not in there]


# ---- blocks of commands

def blocks(path: Path) -> list[Block]:
    """The blocks of shell commands of a page, and its steps, in its order."""
    text = path.read_text()
    fences = list(FENCE.finditer(text))

    def outside(pattern: re.Pattern[str]) -> list[re.Match[str]]:
        return [match for match in pattern.finditer(text) if not any(one.start() <= match.start() < one.end() for one in fences)]

    markers = outside(MARKER)
    own = {fence.start(): match for fence in fences for match in markers
           if match.end() <= fence.start() and not text[match.end():fence.start()].strip()}
    general = next((match for match in markers if match not in own.values()), None)
    place, reason = (general[1], general[2]) if general else ("", "")

    def block(start: int, language: str, body: str, marker: tuple[str, str], target: str = "") -> Block:
        return Block(path, text.count("\n", 0, start) + 1, language, body, *marker, target)

    found = {step.start(): block(step.start(), DO, step[2] + "\n", (step[1] or place, "")) for step in outside(STEP)}
    for fence in fences:
        match = own.get(fence.start())
        body = "".join(line.removeprefix(fence[1]) for line in fence[4].splitlines(keepends=True))
        if match and match[1] == MERGE:
            found[fence.start()] = block(fence.start(), MERGE, body, (place, ""), match[2])
        elif fence[3] in SHELL:
            found[fence.start()] = block(fence.start(), fence[3], body, (match[1], match[2]) if match else (place, reason))
    return [found[start] for start in sorted(found)]


def marker_problems(path: Path, top: Path) -> list[str]:
    """Blocks without a marker, and markers that say nothing."""
    found = []
    for block in blocks(path):
        where = f"{path.relative_to(top)}:{block.line}"
        if not block.place:
            found.append(f"{where}: no '<!-- run: {'|'.join(PLACES)} -->' above this block or below the page's title")
        elif block.place not in PLACES:
            found.append(f"{where}: '{block.place}' is not one of {', '.join(PLACES)}")
        elif block.place == "none" and block.language not in SHELL:
            found.append(f"{where}: this step is never run: the page's own marker says 'none'")
        elif block.place == "none" and not block.reason:
            found.append(f"{where}: 'run: none' wants a reason")
        elif block.place != "none" and block.reason and not block.user():
            found.append(f"{where}: '{block.reason}' after '{block.place}' is not 'as USER'")
    return found


def problems(top: Path) -> list[str]:
    return [line for page in pages(top) for line in link_problems(page, top)] + reach_problems(top)
