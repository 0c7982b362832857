# SPDX-License-Identifier: Apache-2.0
"""This tree beside an earlier commit, in turns in one run: the cost of a change.

The old tree is unpacked and built below build/before. `bench cri` and `bench guard` run as each
tree has them, in a short form; `bench rootless` as this tree has it, with the programs of both. Old
and new take turns, so that load on the host affects both. A figure is a cost: less is better. A
ratio is new to old, each the mean of the middle half of its samples.
"""
import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..command import Failure
from ..env import chroot
from ..project import BUILD, INSIDE, TOP
from . import figures, priority

OLD = BUILD / "before"
RESULT = BUILD / "bench" / "before-raw.json"
PODS, SECONDS = 20, 4
CRI_ROWS = ("RunPodSandbox", "container start (Create + Start)", "ExecSync", "pod start in all", "pod end in all")
MEMORY_ROW = "daemon's memory (PSS)"
WAY = "nodens, pasta"
Samples = dict[str, list[float]]        # by figure


@dataclass(frozen=True)
class Tree:
    """A source tree with a release build."""

    top: Path

    @property
    def inside(self) -> Path:
        """The tree as a room of this one sees it."""
        return INSIDE / self.top.relative_to(TOP)

    def dev(self, *arguments: str) -> None:
        """Runs the tree's own `tools/dev`."""
        done = subprocess.run([str(self.top / "tools/dev"), *arguments], cwd=self.top, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True)
        if done.returncode != 0:
            raise Failure(f"`tools/dev {' '.join(arguments)}` failed in {self.top}; the end of its "
                          f"output:\n{(done.stdout + done.stderr)[-4000:]}")

    def script(self, part: str) -> Path:
        """A bench in Python, seen from inside. The trees differ in where their tests are."""
        found = sorted((self.top / "tests").rglob(f"{part}/bench.py"))
        if len(found) != 1:
            raise Failure(f"no bench of {part} in {self.top / 'tests'}")
        return self.inside / found[0].relative_to(self.top)


def unpack(commit: str) -> Tree:
    """The tree of a commit, built."""
    stamp = OLD / ".unpacked"
    if not stamp.is_file() or stamp.read_text() != commit:
        archive = subprocess.run(["git", "-C", str(TOP), "archive", commit], capture_output=True)
        if archive.returncode != 0:
            raise Failure(f"no commit {commit} to compare with; fetch the whole history: {archive.stderr.decode().strip()}")
        shutil.rmtree(OLD, ignore_errors=True)
        OLD.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", str(OLD)], input=archive.stdout, check=True)
        stamp.write_text(commit)
    return built(Tree(OLD))


def built(tree: Tree) -> Tree:
    tree.dev("build", "--variant", "release")
    return tree


# ---- one turn of one tree

def cri(tree: Tree) -> Samples:
    """Pods in a guest, beside the bare engine in the same turns, for the ratio to it."""
    tree.dev("bench", "cri", "--runtime", "nodens", "--rounds", "1", "--pods", str(PODS), "--userns", "on")
    newest = max((tree.top / "build/bench").glob("cri-*.json"), key=lambda path: path.stat().st_mtime)
    return cri_samples(json.loads(newest.read_text()))


def cri_samples(data: dict[str, Any]) -> Samples:
    rows = {row.title: row for row in figures.rows_of(data, "on")}
    times = {title: [ours / floor for ours, floor in zip(rows[title].samples["nodens"], rows[title].samples[figures.ENGINE], strict=True)]
             for title in CRI_ROWS}
    return times | {MEMORY_ROW: rows[MEMORY_ROW].samples["nodens"]}


def measured(inside: chroot.Prepared, *argv: str) -> dict[str, Any]:
    """What a bench in Python has written into its last argument."""
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.unlink(missing_ok=True)
    done = inside.capture([*argv, str(INSIDE / RESULT.relative_to(TOP))])
    if done.returncode != 0 or not RESULT.is_file():
        raise Failure(f"`{' '.join(argv)}` failed; the end of its output:\n{(done.stdout + done.stderr)[-4000:]}")
    return json.loads(RESULT.read_text())


def guard(tree: Tree) -> Samples:
    with chroot.prepared(chroot.Chroot()) as inside, priority.raised("the machine's own"):
        return guard_samples(measured(inside, "python3", "-B", str(tree.script("guard")), "--builds", str(tree.inside / "build/release"),
                                      "--seconds", str(SECONDS)))


def guard_samples(data: dict[str, Any]) -> Samples:
    """With the index alone.

    The API server's answers come from a program in Python, whose time would dominate the figure.
    """
    times = {f"{flow}, us each": [1e6 / data["index"][flow]["per_second"]] for flow in ("mutate", "validate", "pod_security")}
    return times | {"resident, most ever": [data["index"]["relisted"]["peak_rss"]]}


def rootless(tree: Tree) -> Samples:
    variant = (tree.inside / "build/release").relative_to(INSIDE / "build")
    with chroot.prepared(chroot.Chroot()) as inside:
        return rootless_samples(measured(inside, "env", f"NODENS_VARIANT={variant}", "python3", "-B", str(Tree(TOP).script("rootless")),
                                         "--ways", f"direct/{WAY}",
                                         "--rounds", "1", "--starts", "5", "--connections", "2000", "--json"))


def rootless_samples(data: dict[str, Any]) -> Samples:
    """Streams and requests by what they cost without a node in the same run."""
    way, direct = data["ways"][WAY], data["ways"]["direct"]
    streams = [theirs["gbit"] / ours["gbit"] for ours, theirs in zip(way["rounds"], direct["rounds"], strict=True)]
    return {"stream": streams, "CPU per Gbit": [row["cpu_per_gbit"] for row in way["rounds"]],
            "request": [way["request_p50_us"] / direct["request_p50_us"]],
            "connection": [way["connection_p50_us"] / direct["connection_p50_us"]], "start": way["start_ms"], "memory": [way["pss_mb"]]}


# ---- turns

# with turns of each tree
BENCHES: dict[str, tuple[Callable[[Tree], Samples], int]] = {"cri": (cri, 2), "guard": (guard, 2), "rootless": (rootless, 8)}


def alternate(measure: Callable[[Tree], Samples], old: Tree, new: Tree, turns: int) -> tuple[Samples, Samples]:
    """The samples of both trees, taken in turns: old, new, old, new."""
    found: tuple[Samples, Samples] = (defaultdict(list), defaultdict(list))
    for _ in range(turns):
        for tree, samples in zip((old, new), found, strict=True):
            for name, values in measure(tree).items():
                samples[name] += values
    return found


def ratios(old: Samples, new: Samples) -> dict[str, float]:
    return {name: figures.middle_mean(new[name]) / figures.middle_mean(values) for name, values in old.items()}


def compare(bench: str, commit: str) -> dict[str, float]:
    """How many times the old tree's cost each figure of a bench is."""
    measure, turns = BENCHES[bench]
    return ratios(*alternate(measure, unpack(commit), built(Tree(TOP)), turns))
