# SPDX-License-Identifier: Apache-2.0
"""Fuzzing: every fuzz-* program of the fuzz build, from its committed corpus, for a share of time.

A fuzzer `fuzz-NAME` starts from tests/fuzz/NAME. New inputs go to build/fuzz-corpus/NAME, where the
next run finds them; an input that crashes is kept in build/fuzz-crashes and named in the report.

The time is each fuzzer's own CPU time: on a busy host twenty minutes are still twenty minutes of
work. As many run at once as there are CPUs.
"""
import argparse
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from .. import build
from ..command import Command, Failure
from ..env import chroot
from ..project import BUILD, INSIDE, TESTS, TOP

CRASHES = BUILD / "fuzz-crashes"
GROWN = BUILD / "fuzz-corpus"
MEMORY_LIMIT = 2048      # MiB, per fuzzer
KEPT = ("crash", "leak", "oom", "timeout")     # libFuzzer's words in the names of inputs that it keeps
INPUT_TIMEOUT = 10       # seconds that one input may take
PATIENCE = 8             # times its CPU time by the clock, after which a fuzzer that waits instead of working is ended
INTO_LOG = 'log=$1; shift; "$@" >>"$log" 2>&1; code=$?; times >"$log.times"; exit $code'
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


@dataclass(frozen=True)
class Outcome:
    """How one fuzzer fared."""

    name: str
    seconds: float
    runs: int
    crashes: list[Path]
    exit_code: int
    log: Path

    @property
    def good(self) -> bool:
        return self.exit_code == 0 and not self.crashes


def programs(directory: Path) -> list[Path]:
    """The fuzzers that were built."""
    found = [path for path in directory.rglob("fuzz-*") if path.is_file() and os.access(path, os.X_OK)]
    return sorted(path for path in found if "." not in path.name)


def found_by(name: str, where: Path = CRASHES) -> set[Path]:
    """The inputs that a fuzzer has kept. Another's name may begin with its own, and so may that one's log."""
    return {path for kind in KEPT for path in where.glob(f"{name}-{kind}-*")}


def command_line(program: Path, name: str, seconds: int) -> list[str]:
    prefix = f"{INSIDE}/{CRASHES.relative_to(TOP)}/{name}-"
    dictionary = TESTS / "fuzz" / f"{name}.dict"
    return [f"./{program.relative_to(TOP)}", *([f"-dict={dictionary.relative_to(TOP)}"] if dictionary.is_file() else []),
            f"-max_total_time={seconds}", f"-timeout={INPUT_TIMEOUT}", f"-rss_limit_mb={MEMORY_LIMIT}",
            f"-artifact_prefix={prefix}", "-print_final_stats=1", f"{(GROWN / name).relative_to(TOP)}", f"tests/fuzz/{name}"]


def children_seconds(times: str) -> float:
    """The CPU time of a shell's children, from the second line that its `times` prints: 1m2.5s 0m0.25s."""
    return sum(int(minutes) * 60 + float(seconds) for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", times.splitlines()[1]))


def run_one(inside: chroot.Prepared, program: Path, seconds: int) -> Outcome:
    """Runs a fuzzer until it has used its CPU time.

    libFuzzer knows only wall-clock time, so it is started again for the rest.
    """
    name = program.name.removeprefix("fuzz-")
    corpus, log = TESTS / "fuzz" / name, CRASHES / f"{name}.log"
    if not corpus.is_dir():
        raise Failure(f"{program.name} has no corpus: {corpus.relative_to(TOP)} is not there")
    (GROWN / name).mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    before = found_by(name)
    started, spent, code = time.monotonic(), 0.0, 0
    while code == 0 and spent < seconds and time.monotonic() - started < seconds * PATIENCE:
        rest = max(1, round(seconds - spent))
        code = inside.run(["sh", "-c", INTO_LOG, "sh", f"{INSIDE}/{log.relative_to(TOP)}", *command_line(program, name, rest)])
        spent += children_seconds(Path(f"{log}.times").read_text())
    executed = re.findall(r"number_of_executed_units:\s*(\d+)", log.read_text(errors="replace"))
    return Outcome(name, spent, sum(int(count) for count in executed), sorted(found_by(name) - before), code, log)


def report(outcome: Outcome) -> None:
    verdict = "ok  " if outcome.good else "FAIL"
    print(f"{verdict} {outcome.name:<24} {outcome.seconds:6.0f} s CPU {outcome.runs:>12,} runs", flush=True)
    for crash in outcome.crashes:
        print(f"     input: {crash.relative_to(TOP)}")
    if not outcome.good:
        print("\n".join(outcome.log.read_text(errors="replace").splitlines()[-60:]))


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=int, default=60, help="CPU time in all, shared among the fuzzers (default: 60)")
    parser.add_argument("name", nargs="*", help="which fuzzers, without 'fuzz-' (default: all)")


def run(args: argparse.Namespace) -> int:
    CRASHES.mkdir(parents=True, exist_ok=True)
    with chroot.prepared(chroot.Chroot(env=ENVIRONMENT)) as inside:
        built = programs(build.ensure(inside, "fuzz"))
        chosen = [path for path in built if not args.name or path.name.removeprefix("fuzz-") in args.name]
        if not chosen or len(chosen) < len(set(args.name)):
            names = ", ".join(path.name.removeprefix("fuzz-") for path in built)
            raise Failure(f"no such fuzzer; there are: {names or 'none'}")
        outcomes = []
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for done in as_completed(pool.submit(run_one, inside, path, max(1, args.seconds // len(chosen))) for path in chosen):
                outcomes.append(done.result())
                report(outcomes[-1])
    return 0 if all(outcome.good for outcome in outcomes) else 1


COMMANDS = [Command("fuzz", "fuzz every parser for a while", run, options)]
