"""`tools/dev test`: the test suites, each with what has to be built for it."""
import argparse
from collections.abc import Callable
from dataclasses import dataclass

from . import build, room
from .command import Command, Failure


@dataclass(frozen=True)
class Suite:
    """A word that `tools/dev test` understands."""

    purpose: str
    run: Callable[[room.Prepared], bool]
    default: bool = True


def meson(variant: str, *suites: str) -> Callable[[room.Prepared], bool]:
    """Runs meson suites; a suite without tests is an error, not a success."""
    def run_suites(inside: room.Prepared) -> bool:
        directory = build.ensure(inside, variant)
        chosen = [argument for suite in suites for argument in ("--suite", suite)]
        base = ["meson", "test", "--no-rebuild", "-C", f"build/{directory.name}", *chosen]
        if not inside.capture([*base, "--list"]).stdout.strip():
            raise Failure(f"meson knows no test in the suites {', '.join(suites)}")
        return inside.run([*base, "--print-errorlogs"]) == 0
    return run_suites


def pytest(directory: str) -> Callable[[room.Prepared], bool]:
    def run_pytest(inside: room.Prepared) -> bool:
        return inside.run(["python3", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", directory]) == 0
    return run_pytest


SUITES = {
    "unit": Suite("unit tests and the fuzzers' corpora", meson("gcc", "unit", "fuzz")),
    "asan": Suite("the same under ASan and UBSan", meson("asan", "unit", "fuzz")),
    "fuzz": Suite("the fuzzers' corpora alone", meson("gcc", "fuzz"), default=False),
    "kernel": Suite("what the design takes for granted of the kernel", meson("gcc", "kernel")),
    "tools": Suite("tools/dev itself", pytest("tools/tests")),
}


def options(parser: argparse.ArgumentParser) -> None:
    text = "; ".join(f"{name}: {suite.purpose}" for name, suite in SUITES.items())
    parser.add_argument("suite", nargs="*", choices=[[], *SUITES], default=[], help=f"{text}. Default: all but 'fuzz', which 'unit' contains")


def run(args: argparse.Namespace) -> int:
    chosen = args.suite or [name for name, suite in SUITES.items() if suite.default]
    failed = []
    with room.prepared(room.Room()) as inside:
        for name in chosen:
            print(f"== {name}: {SUITES[name].purpose}", flush=True)
            if not SUITES[name].run(inside):
                failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


COMMANDS = [Command("test", "run test suites: " + ", ".join(SUITES), run, options)]
