# SPDX-License-Identifier: Apache-2.0
"""The version of nodens: the file VERSION is its one source.

meson.build and the tools read it. Texts that cannot read it (Debian's changelog, the chart, pages) are compared with it by
`tools/dev lint version`. RELEASES.md says what the numbers mean.
"""
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .command import Failure
from .project import TOP

FILE = "VERSION"
FORM = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-dev|-rc\.[1-9]\d*)?")


@dataclass(frozen=True)
class Version:
    """A semantic version; `pre` is empty, `dev` on the way to a release, or `rc.N` for a candidate."""

    release: str
    pre: str = ""

    def __str__(self) -> str:
        return f"{self.release}-{self.pre}" if self.pre else self.release

    def debian(self) -> str:
        """As dpkg orders it: a pre-release comes before its release."""
        return f"{self.release}~{self.pre}" if self.pre else self.release


def parse(text: str) -> Version:
    if not FORM.fullmatch(text):
        raise Failure(f"invalid version '{text}': must be X.Y.Z, X.Y.Z-dev or X.Y.Z-rc.N")
    release, _, pre = text.partition("-")
    return Version(release, pre)


def read(top: Path = TOP) -> Version:
    return parse((top / FILE).read_text().removesuffix("\n"))


# ---- the places that repeat it ----

@dataclass(frozen=True)
class Place:
    """A file, what stands before the version in it, and the form in which it is written there."""

    file: str
    before: str
    form: Callable[[Version], str] = str
    after: str = ""


def release_of(version: Version) -> str:
    return version.release


PLACES = (
    Place("debian/changelog", r"\Anodens \(", Version.debian),
    Place("NEWS.md", r"\A(?:(?!^## ).*\n)*## ", release_of),
    Place("ROADMAP.md", r"\A(?:(?!^## ).*\n)*## ", release_of, ":"),
    Place("README.md", r"^\*\*Status: ", release_of, ","),
    Place("deploy/chart/Chart.yaml", '^version: "', after='"'),
    Place("deploy/chart/Chart.yaml", '^appVersion: "', after='"'),
    Place("deploy/kustomize/base/guard.yaml", r"image: \S+/nodens-guard:"),
)
# Pages that show the programs or the image of this version; results of tests are of the version that was tested.
PAGES = ("README.md", "docs/*.md", "man/*.scd*", "deploy/chart/values.yaml")
SHOWN = re.compile(r"\bnodens(?:-\w+)*[ :_]+(\d+\.\d+\.\d+(?:[-~][\w.]*\w)?)")
MEASURED = ("docs/cri-tools.md",)


def wrong_places(top: Path, version: Version) -> list[str]:
    found = []
    for place in PLACES:
        match = re.search(place.before + r"([^\s:,)\"]+)" + place.after, (top / place.file).read_text(), re.MULTILINE)
        wanted = place.form(version)
        if not match:
            found.append(f"{place.file}: no version where {wanted} is expected")
        elif match[1] != wanted:
            found.append(f"{place.file}: {match[1]}, but {FILE} gives {wanted}")
    return found


def wrong_pages(top: Path, version: Version) -> list[str]:
    paths = sorted(path for pattern in PAGES for path in top.glob(pattern))
    lines = [(str(path.relative_to(top)), number, line) for path in paths for number, line in enumerate(path.read_text().splitlines(), 1)]
    return [f"{name}:{number}: {match[1]}, but {FILE} gives {version}" for name, number, line in lines if name not in MEASURED
            for match in SHOWN.finditer(line) if match[1] != str(version)]


def wrong_state(top: Path) -> list[str]:
    """NEWS.md and Debian's changelog agree whether the version is released."""
    news = re.search(r"^## (.*)$", (top / "NEWS.md").read_text(), re.MULTILINE)
    pending = bool(news and news[1].endswith("(unreleased)"))
    unreleased = ") UNRELEASED;" in (top / "debian/changelog").read_text().partition("\n")[0]
    return [] if pending == unreleased else ["NEWS.md and debian/changelog differ: '(unreleased)' there, UNRELEASED here, both or neither"]


def problems(top: Path = TOP) -> list[str]:
    try:
        version = read(top)
    except Failure as failure:
        return [f"{FILE}: {failure}"]
    reads = "version: files('VERSION')" in (top / "meson.build").read_text()
    return ([] if reads else [f"meson.build does not read {FILE}"]) + wrong_places(top, version) + wrong_pages(top, version) + \
        wrong_state(top)
