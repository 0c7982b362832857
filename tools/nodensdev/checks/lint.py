# SPDX-License-Identifier: Apache-2.0
"""Static checks: clang-format, texts, names, clang-tidy, cppcheck, gcc -fanalyzer, ruff, mypy."""
import argparse
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .. import build, compatibility, critools, deploy, skew, storage, version
from ..command import Command, Failure, one_of
from ..env import chroot
from ..project import INSIDE, TOOLS, TOP
from . import comment_names, commits, doc_names, idioms, pages, python, sizes, symbols, width

SUPPRESSIONS = TOOLS / "cppcheck.suppress"


def sources() -> list[str]:
    """Every C file of ours, relative to the top of the tree."""
    found = [path for base in ("src", "tests") for path in (TOP / base).rglob("*.[ch]")]
    return sorted(str(path.relative_to(TOP)) for path in found)


def compiled(directory: Path) -> list[str]:
    """The files of ours in a build's compile commands (generated ones are not ours)."""
    entries = json.loads((directory / "compile_commands.json").read_text())
    paths = {(INSIDE / "build" / directory.name / entry["file"]) for entry in entries}
    resolved = {Path(*collapse(path.parts)) for path in paths}
    return sorted(str(path) for path in resolved if (TOP / path.relative_to(INSIDE)).is_file()
                  and "build" not in path.relative_to(INSIDE).parts)


def collapse(parts: tuple[str, ...]) -> list[str]:
    """Path parts without `..`; the path is one of a root, so the machine cannot resolve it for us."""
    kept: list[str] = []
    for part in parts:
        if part == "..":
            kept.pop()
        else:
            kept.append(part)
    return kept


def format_code(inside: chroot.Prepared, check: bool) -> bool:
    files = sources()
    if not files:
        raise Failure("no C files under src and tests")
    mode = ["--dry-run", "-Werror"] if check else ["-i"]
    return inside.run(["clang-format", "--style=file", *mode, *files]) == 0


def ships(path: str) -> bool:
    """Whether a file of src/ goes into a program that people get."""
    return path.startswith(f"{INSIDE}/src/") and not Path(path).name.startswith(("test-", "fuzz-"))


def tidy(inside: chroot.Prepared) -> bool:
    """Checks the files that ship, one by one.

    A file takes seconds, so files that were clean and have not changed are not read again. Tests
    are read by both compilers, cppcheck and the sanitizers.
    """
    directory = build.ensure(inside, "clang")
    files = [path for path in compiled(directory) if ships(path)]
    return inside.run(["tools/tidy", str(chroot.MEMORIES["tidy"]), f"build/{directory.name}", *files]) == 0


def cppcheck_project(directory: Path) -> Path:
    """The build's compile commands as cppcheck understands them.

    It knows neither -iquote nor quoted definitions, and generated code is not ours to fix.
    """
    entries = json.loads((directory / "compile_commands.json").read_text())
    for entry in entries:
        command = entry["command"].replace("-iquote ", "-I")
        entry["command"] = re.sub(r"""'(-D\w+=)"([^"']*)"'""", r'\1\"\2\"', command)
    project = directory / "cppcheck.json"
    project.write_text(json.dumps([entry for entry in entries if not entry["file"].startswith("src/api/")]))
    return project


def cppcheck(inside: chroot.Prepared) -> bool:
    directory = build.ensure(inside, "gcc")
    command = ["cppcheck", "--quiet", "--error-exitcode=1", "--inline-suppr", "-j2", "--std=c23", "-D__x86_64__=1",
               "--enable=warning,performance,portability", "--check-level=normal", "-i", "build",
               f"--project=build/{directory.name}/{cppcheck_project(directory).name}"]
    if SUPPRESSIONS.is_file():
        command.append(f"--suppressions-list={SUPPRESSIONS.relative_to(TOP)}")
    return inside.run(command) == 0


def analyzer(inside: chroot.Prepared) -> bool:
    build.ensure(inside, "analyzer")
    return True


def report(found: list[str], good: str) -> bool:
    print("\n".join(found) if found else good)
    return not found


def names(_inside: chroot.Prepared) -> bool:
    return report(doc_names.problems() + comment_names.problems(), "every file and symbol that documents and comments name exists")


def commit_messages(_inside: chroot.Prepared) -> bool:
    read, found = commits.problems(TOP)
    print(read)
    return report(found, "every subject has its form")


def words(_inside: chroot.Prepared) -> bool:
    table, found = idioms.of_tree(TOP)
    passed = report(found, "no idiom is more frequent than its limit")
    print("\n".join(table))
    return passed


def line_width(_inside: chroot.Prepared) -> bool:
    return report(width.problems(TOP), f"comments have at most {width.COMMENT} columns, Python {width.PYTHON}")


def page_links(_inside: chroot.Prepared) -> bool:
    return report(pages.problems(TOP), "every link leads somewhere, and every page is reachable")


def tables(_inside: chroot.Prepared) -> bool:
    return report(skew.problems() + critools.problems() + storage.problems() + compatibility.problems(),
                  "the tables of version-skew.md, cri-tools.md, storage.md and compatibility.md are those of the last results")


def version_everywhere(_inside: chroot.Prepared) -> bool:
    return report(version.problems(), f"every text has the version of the file {version.FILE}")


def symbol_names(inside: chroot.Prepared) -> bool:
    found = symbols.of_tree(TOP, lambda argv: inside.capture(argv).stdout)
    return report(found, "every shared symbol has its prefix, and no name is there twice")


def layout(inside: chroot.Prepared) -> bool:
    found = sizes.problems(TOP)
    print("\n".join([*found, str(sizes.lengths(symbols.read(lambda argv: inside.capture(argv).stdout)))]))
    return inside.run(["tools/check-layers", "--circles", "src"]) == 0 and not found


def deployed(inside: chroot.Prepared) -> bool:
    build.ensure(inside, "gcc")
    return report(deploy.problems(inside), "the chart and the Kustomize base are those of the guard's manifests")


@dataclass(frozen=True)
class Lint:
    """A word that `tools/dev lint` understands."""

    purpose: str
    run: Callable[[chroot.Prepared], bool]


CHECKS = {
    "commits": Lint("subjects of new commits", commit_messages),
    "words": Lint("idioms in comments, documents and strings, beside other projects", words),
    "width": Lint("columns of comments and of Python", line_width),
    "names": Lint("files, symbols and tests that documents and comments name", names),
    "links": Lint("links between pages, and the index", page_links),
    "tables": Lint("tables of pages, beside the results that they show", tables),
    "version": Lint("the version in packages, chart and pages, beside the file VERSION", version_everywhere),
    "symbols": Lint("prefixes of shared C symbols", symbol_names),
    "layout": Lint("include circles, sizes of files, folders and functions", layout),
    "python": Lint("ruff and mypy over tools and tests", python.check),
    "deploy": Lint("files of deploy/, beside the guard's manifests", deployed),
    "cppcheck": Lint("cppcheck over the gcc build", cppcheck),
    "tidy": Lint("clang-tidy over the clang build", tidy),
    "analyzer": Lint("gcc -fanalyzer", analyzer),
}


def format_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="change nothing; fail when something would change")


def run_format(args: argparse.Namespace) -> int:
    with chroot.prepared(chroot.Chroot()) as inside:
        return 0 if format_code(inside, args.check) else 1


def lint_options(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("check", nargs="*", metavar="CHECK", type=one_of("check", CHECKS), default=[], help="which ones (default: all)")
    parser.epilog = "checks:\n" + "\n".join(f"  {name:<9} {lint.purpose}" for name, lint in CHECKS.items())


def run_lint(args: argparse.Namespace) -> int:
    with chroot.prepared(chroot.Chroot()) as inside:
        failed = [name for name in args.check or CHECKS if not CHECKS[name].run(inside)]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


COMMANDS = [
    Command("format", "put C files into the project's format, or check it", run_format, format_options),
    Command("lint", "check the tree without running it: texts, names, C and Python", run_lint, lint_options),
]
