# SPDX-License-Identifier: Apache-2.0
"""Everything that must be green, quick checks first. `.ci/run` is this command."""
import argparse
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from . import excerpt
from .command import Command
from .project import BUILD, TOOLS


@dataclass(frozen=True)
class Step:
    """One line of the report."""

    title: str
    command: tuple[str, ...]  # arguments of tools/dev


STEPS = (
    Step("Debian 13 root", ("root", "build")),
    Step("pinned inputs", ("deps",)),
    Step("format", ("format", "--check")),
    Step("names in the prose", ("lint", "names")),
    Step("gcc build, include rules of the layers", ("build", "--variant", "gcc")),
    Step("unit tests", ("test", "unit")),
    Step("tests of the tools", ("test", "tools")),
    Step("clang build", ("build", "--variant", "clang")),
    Step("release build", ("build", "--variant", "release")),
    Step("ASan + UBSan tests", ("test", "asan")),
    Step("kernel tests", ("test", "kernel")),
    Step("the user namespace manager under kills and at full size", ("test", "userns")),
    Step("gRPC with a client that is not ours", ("test", "grpc")),
    Step("policy beside Kubernetes' own code", ("test", "policy")),
    Step("nodes without root", ("test", "rootless")),
    Step("nodes without root under ASan + UBSan", ("test", "rootless-asan")),
    Step("cppcheck", ("lint", "cppcheck")),
    Step("clang-tidy", ("lint", "tidy")),
    Step("gcc -fanalyzer", ("lint", "analyzer")),
    Step("fuzzing, five minutes in all", ("fuzz", "--seconds", "300")),
    Step("images: a real registry and hostile ones", ("test", "pull")),
    Step("the CRI's cases on nodens-cri", ("test", "cri-own")),
    Step("the CRI's cases under ASan + UBSan", ("test", "cri-asan")),
    Step("nodens exec, logs, stats, top and rm", ("test", "pods-operator")),
    Step("admission beside an API server, under ASan + UBSan", ("test", "guard-asan")),
    Step("testbed: guests and clusters", ("test", "testbed")),
    Step("testbed: upstream's userns tests on containerd", ("e2e", "userns", "--runtime", "containerd")),
    Step("upstream's userns tests on nodens-cri", ("e2e", "userns", "--runtime", "nodens")),
)


def run_step(step: Step, log: Path) -> bool:
    started = time.monotonic()
    with log.open("wb") as stream:
        code = subprocess.run([str(TOOLS / "dev"), *step.command], stdin=subprocess.DEVNULL, stdout=stream,
                              stderr=subprocess.STDOUT, env=os.environ | {"CI": "true"}).returncode
    print(f"{'ok  ' if code == 0 else 'FAIL'} {time.monotonic() - started:7.1f} s  {step.title}", flush=True)
    if code != 0:
        print(f"     tools/dev {' '.join(step.command)} ended with {code}")
        excerpt.show(log)
    return code == 0


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="TEXT", help="only steps with TEXT in their title")
    parser.add_argument("--list", action="store_true", help="show the steps and stop")


def run(args: argparse.Namespace) -> int:
    chosen = [step for step in STEPS if not args.only or args.only in step.title]
    if args.list:
        print("\n".join(f"{step.title:<45} tools/dev {' '.join(step.command)}" for step in chosen))
        return 0
    logs = BUILD / "ci"
    logs.mkdir(parents=True, exist_ok=True)
    passed = sum(run_step(step, logs / f"{number:02}.log") for number, step in enumerate(chosen, 1))
    print(f"{passed} passed, {len(chosen) - passed} failed")
    return 0 if chosen and passed == len(chosen) else 1


COMMANDS = [Command("ci", "everything that must be green, quick checks first", run, options)]
