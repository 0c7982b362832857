# SPDX-License-Identifier: Apache-2.0
"""`tools/dev prove NAME`: shows that a capability works as specified.

tests/acceptance/NAME.py holds the checks, in the order in which they run:

    from nodensdev.checks.prove import Proof, check

    @check("all 65,534 blocks are handed out, recorded and recovered", full_only=True)
    def blocks(proof: Proof) -> None:
        done = proof.run(["build/gcc/test-all-blocks"])   # in the Debian root; raises when it fails
        proof.figure("p99 of an allocation", "1.2 us")    # shown beside the verdict
        proof.expect(done.stdout.count("lost") == 0, "no block is lost")

A check passes when its function returns, and fails when it raises: `proof.expect()` and the methods
that run commands raise on their own. A measured value that has a target goes through `proof.aim()`:
a target that is missed for a known reason is listed with its figure and that reason before the last
line, and fails if it gets worse. `full_only` checks run with --full. Points that have no check yet are in the module's PENDING:
they are listed as not reached, and counted in the last line.

Checks run one after the other in one process; the module is executed with tools/ on its path.
Output of commands is kept in build/prove/NAME/, and shown for a check that fails. The report ends
with 'N passed, N failed' alone on a line, which names a selection (--only); the exit status says the
same.
"""
import argparse
import importlib.util
import re
import subprocess
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..command import Command, Failure
from ..env import chroot
from ..project import BUILD, TESTS, TOOLS, TOP
from . import excerpt, tests

PROOFS = TESTS / "acceptance"
MARK = "_nodens_check"


class Refuted(Exception):
    """What was promised is not so."""


@dataclass(frozen=True)
class Check:
    """One promise and the function that tries it."""

    title: str
    run: "Callable[[Proof], None]"
    full_only: bool


@dataclass(frozen=True)
class Miss:
    """Why an aim is known to be missed, and how far a figure may be from it before that is news."""

    worst: float
    limit: str


@dataclass
class Proof:
    """What a check works with."""

    name: str
    inside: chroot.Prepared
    log: Path
    full: bool
    figures: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def expect(self, condition: bool, promise: str) -> None:
        """Fails the check, naming the broken promise, unless the condition holds."""
        if not condition:
            raise Refuted(f"not so: {promise}")

    def figure(self, name: str, value: str) -> None:
        """Shows a measured value beside the verdict."""
        self.figures.append(f"{name}: {value}")

    def aim(self, name: str, value: float, most: float | None = None, least: float | None = None, unit: str = "",
            known: Miss | None = None) -> None:
        """Shows a measured value beside its target.

        A value that misses it fails the check; up to `known.worst` it is only listed as not reached.
        """
        aim, direction = (most, "at most") if most is not None else (least, "at least")
        assert aim is not None
        shown = f"{value:.3g}{unit} (aim: {direction} {aim:g}{unit})"
        self.figure(name, shown)
        if value <= aim if most is not None else value >= aim:
            return
        if known is None or (value > known.worst if most is not None else value < known.worst):
            raise Refuted(f"{name}: {shown}")
        self.missed.append(f"{name}: {shown}; {known.limit}")

    def run(self, argv: list[str], timeout: float | None = None, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Runs a command in the Debian root, in the tree.

        Any exit status but `expect` fails the check (None: all are good).
        """
        return self._run(self.inside.command(argv), " ".join(argv), timeout, expect)

    def dev(self, *arguments: str, timeout: float | None = None, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Runs `tools/dev ARGUMENTS` on the machine."""
        return self._run([str(TOOLS / "dev"), *arguments], "tools/dev " + " ".join(arguments), timeout, expect)

    def machine(self, argv: list[str], timeout: float | None = None, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Runs a command on the machine itself, in the tree."""
        return self._run(argv, " ".join(argv), timeout, expect)

    def pytest(self, *arguments: str, timeout: float = 1500, runtimes: bool = False, alone: bool = False, may_skip: bool = False) -> str:
        """Runs tests in the Debian root; returns their output.

        Some must have run and, unless `may_skip`, all of them. `runtimes`: they run our daemons,
        containerd and a registry; `alone`: in their own network.
        """
        settings = tests.prepare_runtimes(self.inside) if runtimes else tests.environment(self.inside, "gcc")
        place = tests.alone(self.inside) if alone else self.inside
        done = self._run(place.command(tests.pytest_words(*arguments, settings=settings)), " ".join(["pytest", *arguments]), timeout, 0)
        count = count_line(done.stdout)
        self.expect("passed" in count and (may_skip or "skipped" not in count), f"tests ran, and none was skipped: {count}")
        self.figure("tests", suite_figure(count))
        return done.stdout

    def suites(self, *names: str, timeout: float = 15 * 60) -> None:
        """Runs suites of `tools/dev test`, and shows how many tests of each passed."""
        for name in names:
            self.figure(name, suite_figure(self.dev("test", name, timeout=timeout).stdout))

    def passed(self, output: str, least: int) -> None:
        """Shows how many tests of pytest's output passed; fewer than this, or one that failed, fails the check."""
        found = re.search(r"^(?:=+ )?(\d+) passed(.*?)(?: in .*)?$", output, re.MULTILINE)
        self.expect(found is not None and int(found[1]) >= least and not re.search(r"\d (?:failed|error)", found[2]),
                    f"at least {least} tests passed")
        self.figure("tests", f"{found[1]} passed{found[2]}" if found else "none")

    def gate(self, timeout: float = 120 * 60) -> None:
        """Runs every step of the gate."""
        self.figure("gate", self.dev("ci", timeout=timeout).stdout.strip().splitlines()[-1])

    def others(self, timeout: float = 60 * 60) -> None:
        """Runs all other proofs, in their short form."""
        for name in proof_names():
            if name != self.name:
                self.figure(name, count_line(self.dev("prove", name, timeout=timeout).stdout))

    def note(self, text: str) -> None:
        """Adds to the check's log."""
        with self.log.open("a") as stream:
            stream.write(text.rstrip("\n") + "\n")

    def _run(self, command: list[str], title: str, timeout: float | None, expect: int | None) -> subprocess.CompletedProcess[str]:
        self.note(f"$ {title}")
        try:
            done = subprocess.run(command, cwd=TOP, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  errors="replace", timeout=timeout)
        except subprocess.TimeoutExpired as expired:
            raise Refuted(f"`{title}` did not end within {expired.timeout:.0f} s") from None
        self.note(done.stdout + done.stderr + f"[exit {done.returncode}]")
        if expect is not None and done.returncode != expect:
            raise Refuted(f"`{title}` ended with {done.returncode}, not {expect}")
        return done


def count_line(text: str) -> str:
    """The last line that counts something, for the report."""
    found = [line for line in text.splitlines() if re.search(r"\d+ (passed|ratios)", line)]
    return found[-1].strip() if found else "no count was printed"


def suite_figure(text: str) -> str:
    """How many tests of a suite passed, from the output of meson or pytest."""
    meson = re.findall(r"^Ok:\s+(\d+)", text, re.MULTILINE)
    return f"{sum(map(int, meson))} passed" if meson else re.sub(r" in [\d.]+s.*", "", count_line(text))


def check(title: str, full_only: bool = False) -> Callable[[Callable[[Proof], None]], Callable[[Proof], None]]:
    """Makes a function of a proof module a check."""
    def mark(function: Callable[[Proof], None]) -> Callable[[Proof], None]:
        setattr(function, MARK, Check(title, function, full_only))
        return function
    return mark


def proof_names() -> list[str]:
    return sorted(path.stem for path in PROOFS.glob("*.py"))


def load(name: str) -> tuple[list[Check], tuple[str, ...]]:
    """The checks of tests/acceptance/NAME.py, in the order of the file, and the points that have none."""
    path = PROOFS / f"{name}.py"
    if not path.is_file():
        there = ", ".join(proof_names()) or "none"
        raise Failure(f"nothing to prove by the name of '{name}'; there are: {there}")
    spec = importlib.util.spec_from_file_location(f"prove_{name}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [getattr(item, MARK) for item in vars(module).values() if hasattr(item, MARK)], getattr(module, "PENDING", ())


def try_check(item: Check, proof: Proof) -> bool:
    """Runs one check and reports it."""
    started = time.monotonic()
    problem = ""
    try:
        item.run(proof)
    except (Refuted, Failure) as refuted:
        problem = str(refuted)
    except Exception:
        problem = traceback.format_exc()
    duration = time.monotonic() - started
    figures = f"  [{'; '.join(proof.figures)}]" if proof.figures else ""
    print(f"{'FAIL' if problem else 'ok  '} {duration:7.1f} s  {item.title}{figures}", flush=True)
    if problem:
        print("     " + problem.rstrip("\n").replace("\n", "\n     "))
        if proof.log.exists():
            excerpt.show(proof.log)
    return not problem


def closing_line(passed: int, chosen: int, every: int, pending: int = 0) -> str:
    """The count; a part of the checks is no proof, and must not look like one."""
    selection = f" (a selection: {chosen} of {every} checks)" if chosen < every else ""
    absent = f", {pending} not reached" if pending else ""
    return f"{passed} passed, {chosen - passed} failed{absent}{selection}"


def prove(name: str, full: bool, only: str | None) -> int:
    found, pending = load(name)
    every = [item for item in found if full or not item.full_only]
    chosen = [item for item in every if not only or only in item.title]
    if not chosen:
        raise Failure(f"no check of '{name}' was chosen")
    logs = BUILD / "prove" / name
    logs.mkdir(parents=True, exist_ok=True)
    passed, missed = 0, []
    with chroot.prepared(chroot.Chroot()) as inside:
        for number, item in enumerate(chosen, 1):
            log = logs / f"{number:02}-{item.run.__name__}.log"
            log.unlink(missing_ok=True)
            proof = Proof(name, inside, log, full)
            passed += try_check(item, proof)
            missed += proof.missed
    for text in (*missed, *pending):
        print(f"not reached  {text}")
    print(closing_line(passed, len(chosen), len(every), len(pending)))
    return 0 if passed == len(chosen) else 1


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="what to prove: a file of tests/acceptance without .py")
    parser.add_argument("--full", action="store_true", help="with the checks that take long")
    parser.add_argument("--only", metavar="TEXT", help="only checks with TEXT in their title")


def run(args: argparse.Namespace) -> int:
    return prove(args.name, args.full, args.only)


COMMANDS = [Command("prove", "show that a capability does what was promised", run, options)]
