# SPDX-License-Identifier: Apache-2.0
"""The gate: everything that must pass before a change lands, quick checks first: `.ci/run`.

Every step gives the same result each time it runs on one tree, also on a loaded host: seeds and
counts are fixed, tests wait for events, and each step has a time limit. Random search and measured
ratios are steps of `tools/dev nightly`; what they find becomes a fixed test here. The steps that
make what later ones use (roots, Go programs, images) come first, so that the limits of the tests
need not allow for them.
"""
import argparse

from ..command import Command
from ..project import BUILD
from . import steps
from .steps import Step

GO_PROGRAMS = ("registry", "containerd", "images", "criclient", "kubernetes", "policy", "e2e", "e2e-node", "kubelet-34",
               "nvidia-container-toolkit")

PREPARATION = (
    Step("Debian 13 root", ("root", "build"), 15),
    Step("pinned inputs", ("deps",), 5),
)
QUICK = (
    Step("format", ("format", "--check")),
    Step("subjects of new commits", ("lint", "commits")),
    Step("idioms in comments, documents and messages", ("lint", "words")),
    Step("columns of comments and Python", ("lint", "width")),
    Step("names in documents and comments", ("lint", "names")),
    Step("links between pages", ("lint", "links")),
    Step("tables of pages beside their results", ("lint", "tables")),
    Step("the version, in one place", ("lint", "version")),
    Step("ruff and mypy", ("lint", "python"), 10),
    Step("names of shared symbols", ("lint", "symbols")),
    Step("include circles, sizes of files and folders", ("lint", "layout")),
    Step("gcc build, include rules of the layers", ("build", "--variant", "gcc"), 10),
    Step("unit tests, and each fuzzer with 20,000 fixed inputs", ("test", "unit"), 10),
    Step("tests of the tools", ("test", "tools")),
    Step("clang build", ("build", "--variant", "clang"), 10),
    Step("release build", ("build", "--variant", "release"), 10),
    Step("the same under ASan + UBSan", ("test", "asan"), 15),
    Step("chart and Kustomize base beside the guard's manifests", ("lint", "deploy"), 10),
    Step("cppcheck", ("lint", "cppcheck"), 10),
    Step("clang-tidy", ("lint", "tidy"), 25),
    Step("gcc -fanalyzer", ("lint", "analyzer"), 15),
    Step("kernel tests", ("test", "kernel")),
    Step("volumes behind nodens-bridge", ("test", "bridge"), 10),
    Step("the user namespace manager, killed at every system call", ("test", "userns"), 10),
    Step("gRPC with a client that is not ours", ("test", "grpc"), 10),
)
PEERS = (
    Step("roots of guests and tests", ("root", "testbed", "guest", "lxc"), 20),
    Step("peers: Kubernetes, containerd, a registry", ("gobin", *GO_PROGRAMS), 60),
    Step("images in the registry", ("registry", "fill"), 15),
)
# Two tracks: what starts guests or an API server, and what does not.
SYSTEM = (
    Step("policy beside Kubernetes' own code", ("test", "policy"), 10, "machine"),
    Step("nodes without root", ("test", "rootless"), 10, "machine"),
    Step("nodes without root under ASan + UBSan", ("test", "rootless-asan"), 10, "machine"),
    Step("images: a real registry and hostile ones", ("test", "pull"), 15, "machine"),
    Step("the CRI's cases on nodens-cri, under ASan + UBSan", ("test", "cri-asan"), 25, "machine"),
    Step("the daemon's memory, without sanitizers", ("test", "cri-memory"), 5, "machine"),
    Step("nodens exec, logs, ps, rm, rmi and others", ("test", "pods-operator"), 10, "machine"),
    Step("nodens in terminals, pipes and on full devices", ("test", "terminal"), 5, "machine"),
    Step("admission beside an API server, under ASan + UBSan", ("test", "guard-asan"), 25, "cluster"),
    Step("testbed: guests and a cluster", ("test", "testbed-short"), 15, "cluster"),
    Step("upstream's userns tests on nodens-cri", ("e2e", "userns", "--runtime", "nodens"), 15, "cluster"),
    Step("stories of a node with a stock kubelet, short form", ("test", "stories-short"), 15, "cluster"),
    Step("an older kubelet, short form", ("test", "versions-short"), 10, "cluster"),
    Step("what the guard admits runs on a node, short form", ("test", "guard-node-short"), 10, "cluster"),
    Step("Debian packages: install, upgrade with pods alive, remove", ("test", "package"), 15, "cluster"),
)
STEPS = PREPARATION + QUICK + PEERS + SYSTEM


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", metavar="TEXT", help="only steps with TEXT in their title")
    parser.add_argument("--list", action="store_true", help="show the steps and stop")


def run(args: argparse.Namespace) -> int:
    chosen = [step for step in STEPS if not args.only or args.only in step.title]
    if args.list:
        steps.show(chosen)
        return 0
    return steps.run_all(chosen, BUILD / "ci")


COMMANDS = [Command("ci", "everything that must be green, quick checks first", run, options)]
