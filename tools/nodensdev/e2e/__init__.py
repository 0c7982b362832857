# SPDX-License-Identifier: Apache-2.0
"""`tools/dev e2e`: Kubernetes' own end-to-end tests against a cluster of the testbed."""
import argparse
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import cluster
from ..cluster import Cluster
from ..command import Command, Failure
from ..env import machine
from ..project import BUILD, TOP, commit
from . import judge, node, own_images, report, scores, selection
from .judge import Verdict
from .suite import ClusterSuite, NodeSuite, Suite, list_tests

PROCESSES = 5
RUNTIMES = ("containerd", "nodens")
OWN_IMAGES = "own-images"
REPORT = "report"


@contextlib.contextmanager
def target(args: argparse.Namespace, directory: Path) -> Iterator[Cluster]:
    """The cluster to test: the one that was named, or a new one for this run, whose logs are kept."""
    if args.cluster:
        yield cluster.find(args.cluster)
        return
    wanted = cluster.Options(name=f"e2e-{os.getpid()}", runtime=args.runtime, kernel=args.kernel, memory="6G", registry="none",
                             rootless=args.rootless)
    made = cluster.up(wanted)
    try:
        if not args.rootless:
            node.prepare(made)
        yield made
    finally:
        made.copy_logs(directory / "cluster")
        made.end()


def names_of(args: argparse.Namespace) -> dict[str, list[str]]:
    """The tests that are asked for, by suite."""
    focus = {"e2e": args.focus or selection.SETS[args.set].focus}
    if args.set and selection.SETS[args.set].node_focus:
        focus["e2e-node"] = selection.SETS[args.set].node_focus
    names = {suite: list_tests(suite, expression) for suite, expression in focus.items()}
    for suite, found in names.items():
        if not found:
            raise Failure(f"no test of the {suite} suite matches '{focus[suite]}'")
    return names


def new_directory(args: argparse.Namespace) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return BUILD / "e2e" / f"{'rootless-' if args.rootless else ''}{args.runtime}-{args.set or 'focus'}-{stamp}"


def node_kind(args: argparse.Namespace) -> str:
    return selection.ROOTLESS if args.rootless else selection.ROOTFUL


def facts_of(args: argparse.Namespace) -> dict[str, Any]:
    return {"set": args.set, "runtime": args.runtime, "kernel": args.kernel, "node": node_kind(args)}


def suite_of(name: str, where: Cluster) -> Suite:
    return ClusterSuite(where) if name == "e2e" else NodeSuite(where)


def run_tests(args: argparse.Namespace) -> Verdict:
    known = selection.exclusions()
    parts = {name: judge.split(names, args.kernel, known, node_kind(args)) for name, names in names_of(args).items()}
    count = sum(len(chosen) for chosen, _ in parts.values())
    verdict = Verdict(excluded=[item for _, excluded in parts.values() for item in excluded])
    if not count:
        raise Failure("every test of this choice is in the list of exclusions (tests/cluster/excluded.toml)")
    directory = new_directory(args)
    machine.say(f"{count} tests on a {node_kind(args)} node with {args.runtime} ({len(verdict.excluded)} excluded), "
                f"{args.processes} at once; "
                f"logs: {directory}")
    started, tested = time.monotonic(), commit()     # the tree may go on while the tests run
    with target(args, directory) as where:
        for name, (chosen, _) in parts.items():
            if chosen:
                judge.judge(suite_of(name, where), chosen, args.processes, directory / name, verdict)
    seconds = time.monotonic() - started
    print(report.summary(f"{args.set or args.focus} on {args.runtime}", verdict, seconds, directory))
    report.write(directory / "result.json", facts_of(args) | {"focus": args.focus, "commit": tested}, verdict, seconds)
    return verdict


def run_own_images(args: argparse.Namespace) -> Verdict:
    directory = new_directory(args)
    started = time.monotonic()
    with target(args, directory) as where:
        verdict = own_images.run(where, directory / "pods")
    seconds = time.monotonic() - started
    print(report.summary(f"the project's own images on {args.runtime}", verdict, seconds, directory))
    report.write(directory / "result.json", facts_of(args), verdict, seconds)
    return verdict


def stale_entries(names: list[str], known: list[selection.Exclusion]) -> list[selection.Exclusion]:
    return [entry for entry in known if not any(entry.test in name for name in names)]


def check_excluded(args: argparse.Namespace) -> int:
    """Runs every excluded test alone: an entry whose test passes has lost its reason."""
    known = selection.exclusions()
    everything = {suite: list_tests(suite, "") for suite in ("e2e", "e2e-node")}
    stale = stale_entries([name for names in everything.values() for name in names], known)
    asked = names_of(args) if args.set or args.focus else {"e2e": everything["e2e"]}
    excluded = [(suite, *item) for suite, names in asked.items() for item in judge.split(names, args.kernel, known, node_kind(args))[1]]
    directory = new_directory(args)
    passing = []
    if excluded:
        with target(args, directory) as where:
            for number, (suite, name, entry) in enumerate(excluded, 1):
                machine.say(f"excluded, {number} of {len(excluded)}: {name}")
                outcomes = suite_of(suite, where).run([name], 1, directory / f"excluded-{number}")
                if all(outcome.state == "passed" for outcome in outcomes):
                    passing.append((name, entry))
    for entry in stale:
        print(f"no test is called '{entry.test}' any more; remove the entry")
    for name, entry in passing:
        print(f"passes, so it must not be excluded: {name}\n  (the entry says: {entry.reason})")
    print(f"{len(excluded)} excluded tests tried, {len(passing)} pass; {len(stale)} entries without a test")
    return 1 if passing or stale else 0


def list_names(args: argparse.Namespace) -> int:
    for names in names_of(args).values():
        chosen, excluded = judge.split(names, args.kernel, selection.exclusions(), node_kind(args))
        for name in chosen:
            print(name)
        for name, entry in excluded:
            print(f"excluded: {name}\n  {entry.reason}")
    return 0


def options(parser: argparse.ArgumentParser) -> None:
    sets = "; ".join(f"{name}: {item.purpose}" for name, item in selection.SETS.items())
    parser.add_argument("set", nargs="?", choices=[*selection.SETS, OWN_IMAGES, REPORT],
                        help=f"{sets}; {OWN_IMAGES}: our own test images as pods; {REPORT}: no tests, but docs/upstream-tests.md")
    parser.add_argument("--focus", metavar="RE", help="tests whose full names match (Go's syntax), instead of a set")
    parser.add_argument("--runtime", choices=RUNTIMES, default="containerd")
    parser.add_argument("--kernel", choices=("uml", "uml-nft", "debian"), help="of the node (default: uml; uml-nft for a rootless node)")
    parser.add_argument("--rootless", action="store_true", help="on a rootless node")
    parser.add_argument("--cluster", metavar="NAME", help="a cluster that is up already; default: a new one for this run")
    parser.add_argument("--processes", type=int, default=PROCESSES, help=f"tests at once (default: {PROCESSES})")
    parser.add_argument("--list", action="store_true", help="only say which tests would run")
    parser.add_argument("--check-excluded", action="store_true",
                        help="run the excluded tests instead: one that passes fails the check")


def run(args: argparse.Namespace) -> int:
    args.kernel = args.kernel or ("uml-nft" if args.rootless else "uml")
    if args.set == REPORT:
        scores.write()
        print(scores.DOCUMENT.relative_to(TOP))
        return 0
    if args.set == OWN_IMAGES:
        return 0 if run_own_images(args).good else 1
    if args.check_excluded:
        return check_excluded(args)
    if bool(args.set) == bool(args.focus):
        raise Failure("give either a set or --focus RE; `tools/dev e2e --help` lists the sets")
    if args.list:
        return list_names(args)
    return 0 if run_tests(args).good else 1


COMMANDS = [Command("e2e", "run Kubernetes' own end-to-end tests against a cluster", run, options)]
