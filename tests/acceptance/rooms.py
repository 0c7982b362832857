# SPDX-License-Identifier: Apache-2.0
"""Rooms and names: the layout of src and its shared names follow written rules, and the rearrangement changed nothing else.

BASELINE is the last commit before the rearrangement; figures of its functions were taken with the program that measures today's.
"""
import re
import shutil
from pathlib import Path

from nodensdev.bench import before
from nodensdev.checks import doc_names, sizes, symbols
from nodensdev.checks.prove import Proof, check
from nodensdev.env import chroot
from nodensdev.project import BUILD, TOP

BASELINE = "6022a49"
BASELINE_LENGTHS = sizes.Lengths(functions=4526, median=10, p99=32, most=71)
ORDERED = ("cri", "rootless", "guard", "cli")       # programs with folders; check-layers wants an order for each folder
RATIO = 1.1
MINUTE = 60
# What fits beside the benches into 30 minutes; the rest is in the full form.
SUITES = ("unit", "tools", "kernel", "userns", "grpc", "policy", "rootless", "cri-own", "pods-operator", "guard-node-short")
STEP = re.compile(r"(?:->|\.)step\s*=[^=]")


@check("point 1: includes point one way, also between the folders of a program, and no include circle has more than two modules")
def layers(proof: Proof) -> None:
    done = proof.run(["tools/check-layers", "--circles", "src"], timeout=MINUTE)
    proof.figure("circles", ", ".join("/".join(line.split()[1:]) for line in done.stdout.splitlines()) or "none")
    folders = [name for name in ORDERED if any(path.is_dir() for path in (TOP / "src" / name).iterdir())]
    proof.expect(folders == list(ORDERED), f"each of {', '.join(ORDERED)} has folders, not only {', '.join(folders)}")


def read_symbols(inside: chroot.Prepared, directory: Path) -> tuple[list[symbols.Symbol], list[str]]:
    """The names of a tree inside this one, and what the lint says of them."""
    def run(argv: list[str]) -> str:
        return inside.capture(["env", f"--chdir={directory.relative_to(TOP)}", *argv]).stdout

    return symbols.read(run), symbols.of_tree(directory, run)


@check("point 2: every shared symbol has its prefix, and none is there twice")
def prefixes(proof: Proof) -> None:
    proof.dev("lint", "symbols", timeout=2 * MINUTE)
    found, _ = read_symbols(proof.inside, TOP)
    proof.figure("shared names", str(len(list(symbols.shared(found, symbols.headers_of(TOP))))))


@check("point 2: the lint is a step of CI, and fails when one rename is reverted, in each program and in a library")
def reverted(proof: Proof) -> None:
    listed = proof.dev("ci", "--list", timeout=MINUTE).stdout
    proof.expect("tools/dev lint symbols" in listed, "CI runs `tools/dev lint symbols`")
    copy = BUILD / "prove" / "rooms" / "tree"
    for layer in ("base", *(name for name in symbols.PROGRAMS if (TOP / "src" / name).is_dir())):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(TOP / "src", copy / "src")
        names, _ = read_symbols(proof.inside, copy)
        chosen = next(one for one in names if one.layer == layer and one.kind == "prototype" and one.in_header)
        bare = chosen.name.removeprefix(symbols.PROGRAMS.get(layer, "nd_"))
        for path in (copy / "src").rglob("*.[ch]"):
            path.write_text(re.sub(rf"\b{chosen.name}\b", bare, path.read_text()))
        _, said = read_symbols(proof.inside, copy)
        proof.note("\n".join(said))
        proof.expect(any(f"'{bare}' lacks the prefix" in line for line in said), f"'{chosen.name}' without its prefix is found")
    shutil.rmtree(copy)


@check("point 3: no source file over 700 lines, no folder with more than 45 files without its tests, functions no longer than before")
def small(proof: Proof) -> None:
    proof.dev("lint", "layout", timeout=2 * MINUTE)
    found, _ = read_symbols(proof.inside, TOP)
    now = sizes.lengths(found)
    proof.figure("before", str(BASELINE_LENGTHS))
    proof.figure("now", str(now))
    proof.expect(now.median <= BASELINE_LENGTHS.median and now.p99 <= BASELINE_LENGTHS.p99,
                 "median and 99th percentile are not worse than before")


@check("one file writes the step of a container's operation")
def one_writer(proof: Proof) -> None:
    files = [path for path in (TOP / "src/cri").rglob("container*.[ch]") if STEP.search(path.read_text())]
    writers = [str(path.relative_to(TOP)) for path in sorted(files)]
    proof.expect(len(writers) == 1, f"one file writes the step, not {', '.join(writers) or 'none'}")
    proof.figure("writer", writers[0])


@check("point 4: ARCHITECTURE.md has the way of five requests, at most eight files each, and they exist")
def ways(proof: Proof) -> None:
    text = doc_names.ARCHITECTURE.read_text()
    found = doc_names.way_problems(text)
    proof.expect(not found, "; ".join(found))
    for title, files in doc_names.ways(text).items():
        proof.figure(title, f"{len(files)} files")


@check("old names lead to new ones: docs/renames.md names what there is")
def renames(proof: Proof) -> None:
    proof.expect(doc_names.RENAMES.is_file(), "docs/renames.md is there")
    text = doc_names.RENAMES.read_text()
    proof.figure("names", str(len(doc_names.new_names(text))))
    found = doc_names.rename_problems(text, doc_names.words_of_the_code())
    proof.expect(not found, "; ".join(found[:10]))


@check("point 5: the suites that fit pass")
def suites(proof: Proof) -> None:
    proof.suites(*SUITES)


def bench(proof: Proof, name: str) -> None:
    """Each figure of a bench within 10 % of the tree before, in turns in one run."""
    found = before.compare(name, BASELINE)
    proof.note("\n".join(f"{figure}: {ratio:.3f}" for figure, ratio in found.items()))
    for figure, ratio in found.items():
        proof.aim(figure, ratio, most=RATIO, unit=" x")


@check("point 5: bench cri costs at most 1.1 x the tree before, in turns")
def bench_cri(proof: Proof) -> None:
    bench(proof, "cri")


@check("point 5: bench guard costs at most 1.1 x the tree before, in turns")
def bench_guard(proof: Proof) -> None:
    bench(proof, "guard")


@check("point 5: bench rootless costs at most 1.1 x the tree before, in turns")
def bench_rootless(proof: Proof) -> None:
    bench(proof, "rootless")


@check("point 5: every step of the gate passes", full_only=True)
def gate(proof: Proof) -> None:
    proof.gate()


@check("point 5: all other proofs pass", full_only=True)
def others(proof: Proof) -> None:
    proof.others()
