"""`tools/dev e2e`: Kubernetes' own end-to-end tests against a cluster of the testbed."""
import argparse
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from .. import machine
from ..command import Command, Failure
from ..project import BUILD
from . import judge, report, selection, suite
from .judge import Verdict
from .suite import Target

PROCESSES = 5
RUNTIMES = ("containerd", "nodens")


@contextlib.contextmanager
def target(args: argparse.Namespace, directory: Path) -> Iterator[Target]:
    """The cluster to test: the one that was named, or a new one for this run, whose logs are kept."""
    from .. import cluster
    if args.cluster:
        found = cluster.find(args.cluster)
        yield Target(found.kubeconfig, found.netns)
        return
    wanted = cluster.Options(name=f"e2e-{os.getpid()}", runtime=args.runtime, kernel=args.kernel, memory="6G", registry="none")
    made = cluster.up(wanted)
    try:
        yield Target(made.kubeconfig, made.netns)
    finally:
        made.copy_logs(directory / "cluster")
        made.end()


def names_of(args: argparse.Namespace) -> list[str]:
    focus = args.focus or selection.SETS[args.set].focus
    names = suite.list_tests(focus)
    if not names:
        raise Failure(f"no test of the suite matches '{focus}'")
    return names


def new_directory(args: argparse.Namespace) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return BUILD / "e2e" / f"{args.runtime}-{args.set or 'focus'}-{stamp}"


def run_tests(args: argparse.Namespace) -> Verdict:
    chosen, excluded = judge.split(names_of(args), args.kernel, selection.exclusions())
    if not chosen:
        raise Failure("every test of this choice is in the list of exclusions (tests/e2e/excluded.toml)")
    directory = new_directory(args)
    machine.say(f"{len(chosen)} tests on {args.runtime} ({len(excluded)} excluded), {args.processes} at once; log: {directory}/all/log")
    started = time.monotonic()
    with target(args, directory) as where:
        verdict = judge.judge(where, chosen, args.processes, directory)
    verdict.excluded = excluded
    seconds = time.monotonic() - started
    title = f"{args.set or args.focus} on {args.runtime}"
    print(report.summary(title, verdict, seconds, directory))
    report.write(directory / "result.json", {"set": args.set, "focus": args.focus, "runtime": args.runtime, "kernel": args.kernel}, verdict, seconds)
    return verdict


def stale_entries(names: list[str], known: list[selection.Exclusion]) -> list[selection.Exclusion]:
    return [entry for entry in known if not any(entry.test in name for name in names)]


def check_excluded(args: argparse.Namespace) -> int:
    """Runs every excluded test alone: an entry whose test passes has lost its reason."""
    known = selection.exclusions()
    everything = suite.list_tests("")
    stale = stale_entries(everything, known)
    of_interest = set(names_of(args)) if args.set or args.focus else set(everything)
    _, excluded = judge.split(sorted(of_interest), args.kernel, known)
    directory = new_directory(args)
    passing = []
    with target(args, directory) as where:
        for number, (name, entry) in enumerate(excluded, 1):
            machine.say(f"excluded, {number} of {len(excluded)}: {name}")
            outcomes = suite.run(where, [name], 1, directory / f"excluded-{number}")
            if outcomes and all(outcome.state == "passed" for outcome in outcomes):
                passing.append((name, entry))
    for entry in stale:
        print(f"no test is called '{entry.test}' any more; remove the entry")
    for name, entry in passing:
        print(f"passes, so it must not be excluded: {name}\n  (the entry says: {entry.reason})")
    print(f"{len(excluded)} excluded tests tried, {len(passing)} pass; {len(stale)} entries without a test")
    return 1 if passing or stale else 0


def list_names(args: argparse.Namespace) -> int:
    chosen, excluded = judge.split(names_of(args), args.kernel, selection.exclusions())
    for name in chosen:
        print(name)
    for name, entry in excluded:
        print(f"excluded: {name}\n  {entry.reason}")
    return 0


def options(parser: argparse.ArgumentParser) -> None:
    sets = "; ".join(f"{name}: {item.purpose}" for name, item in selection.SETS.items())
    parser.add_argument("set", nargs="?", choices=list(selection.SETS), help=sets)
    parser.add_argument("--focus", metavar="RE", help="tests whose full names match (Go's syntax), instead of a set")
    parser.add_argument("--runtime", choices=RUNTIMES, default="containerd")
    parser.add_argument("--kernel", choices=("uml", "debian"), default="uml", help="of the node")
    parser.add_argument("--cluster", metavar="NAME", help="a cluster that is up already; default: a new one for this run")
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"tests at once (default: {PROCESSES})")
    parser.add_argument("--list", action="store_true", help="only say which tests would run")
    parser.add_argument("--check-excluded", action="store_true", help="run the excluded tests instead: one that passes fails the check")


def run(args: argparse.Namespace) -> int:
    if args.check_excluded:
        return check_excluded(args)
    if bool(args.set) == bool(args.focus):
        raise Failure("give either a set or --focus RE; `tools/dev e2e --help` lists the sets")
    if args.list:
        return list_names(args)
    return 0 if run_tests(args).good else 1


COMMANDS = [Command("e2e", "run Kubernetes' own end-to-end tests against a cluster", run, options)]
