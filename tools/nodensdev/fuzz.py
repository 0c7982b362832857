# SPDX-License-Identifier: Apache-2.0
"""Fuzzing: every fuzz-* program of the fuzz build, from its committed corpus, for its share of the time.

A fuzzer `fuzz-NAME` starts from tests/fuzz/NAME. New inputs go to build/fuzz-corpus/NAME, where the next run finds
them; an input that crashes is kept in build/fuzz-crashes and named in the report.
"""
import argparse
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from . import build, room
from .command import Command, Failure
from .project import BUILD, INSIDE, TESTS, TOP

CRASHES = BUILD / "fuzz-crashes"
GROWN = BUILD / "fuzz-corpus"
MEMORY_LIMIT = 2048      # MiB, per fuzzer
KEPT = ("crash", "leak", "oom", "timeout")     # libFuzzer's words in the names of inputs that it keeps
INPUT_TIMEOUT = 10       # seconds that one input may take
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


def run_one(inside: room.Prepared, program: Path, seconds: int) -> Outcome:
    name = program.name.removeprefix("fuzz-")
    corpus, grown, log = TESTS / "fuzz" / name, GROWN / name, CRASHES / f"{name}.log"
    if not corpus.is_dir():
        raise Failure(f"{program.name} has no corpus: {corpus.relative_to(TOP)} is not there")
    grown.mkdir(parents=True, exist_ok=True)
    prefix = f"{INSIDE}/{CRASHES.relative_to(TOP)}/{name}-"
    command = [f"./{program.relative_to(TOP)}", f"-max_total_time={seconds}", f"-timeout={INPUT_TIMEOUT}",
               f"-rss_limit_mb={MEMORY_LIMIT}", f"-artifact_prefix={prefix}", "-print_final_stats=1",
               str(grown.relative_to(TOP)), str(corpus.relative_to(TOP))]
    dictionary = TESTS / "fuzz" / f"{name}.dict"
    if dictionary.is_file():
        command.insert(1, f"-dict={dictionary.relative_to(TOP)}")
    before = found_by(name)
    started = time.monotonic()
    into_log = ["sh", "-c", 'log=$1; shift; exec "$@" >"$log" 2>&1', "sh", f"{INSIDE}/{log.relative_to(TOP)}"]
    code = inside.run([*into_log, *command])
    executed = re.search(r"number_of_executed_units:\s*(\d+)", log.read_text(errors="replace"))
    return Outcome(name, time.monotonic() - started, int(executed[1]) if executed else 0,
                   sorted(found_by(name) - before), code, log)


def report(outcome: Outcome) -> None:
    verdict = "ok  " if outcome.good else "FAIL"
    print(f"{verdict} {outcome.name:<24} {outcome.seconds:6.0f} s {outcome.runs:>12,} runs", flush=True)
    for crash in outcome.crashes:
        print(f"     input: {crash.relative_to(TOP)}")
    if not outcome.good:
        print("\n".join(outcome.log.read_text(errors="replace").splitlines()[-60:]))


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=int, default=60, help="time in all, shared among the fuzzers (default: 60)")
    parser.add_argument("name", nargs="*", help="which fuzzers, without 'fuzz-' (default: all)")


def run(args: argparse.Namespace) -> int:
    CRASHES.mkdir(parents=True, exist_ok=True)
    with room.prepared(room.Room(env=ENVIRONMENT)) as inside:
        built = programs(build.ensure(inside, "fuzz"))
        chosen = [path for path in built if not args.name or path.name.removeprefix("fuzz-") in args.name]
        if not chosen or len(chosen) < len(set(args.name)):
            names = ", ".join(path.name.removeprefix("fuzz-") for path in built)
            raise Failure(f"no such fuzzer; there are: {names or 'none'}")
        outcomes = []
        for path in chosen:
            outcomes.append(run_one(inside, path, max(1, args.seconds // len(chosen))))
            report(outcomes[-1])
    return 0 if all(outcome.good for outcome in outcomes) else 1


COMMANDS = [Command("fuzz", "fuzz every parser for a while", run, options)]
