# SPDX-License-Identifier: Apache-2.0
"""Steps that the gate leaves out because they are random, measure time or take long.

Random steps print their seed; a finding becomes a fixed test of the gate. `--hours` gives the
fuzzers their time; the other steps have no limit of that kind.
"""
import argparse

from ..command import Command
from ..project import BUILD
from . import steps
from .steps import Step

HOUR = 3600


def nightly_steps(hours: float) -> list[Step]:
    seconds = max(60, round(hours * HOUR))
    return [
        Step("fuzzing at random", ("fuzz", "--seconds", str(seconds)), 10 + seconds / 60 * 4),
        Step("random kills and figures", ("test", "nightly"), 60),
        Step("images under random kills and on full disks", ("test", "images-store"), 60),
        Step("pods under random kills and failing engines", ("test", "pods-chaos"), 60),
        Step("a hostile container beside twenty pods, ten minutes", ("test", "pods-hostile-full"), 30),
        Step("a soak of pods and streams", ("test", "pods-soak"), 120),
        Step("1,000 pods at once", ("test", "pods-size"), 60),
        Step("images under ASan + UBSan", ("test", "pull-asan"), 30),
        Step("the CRI's cases beside containerd's", ("test", "cri"), 40),
        Step("the CRI's cases with cgroup controllers", ("test", "cri-guest"), 60),
        Step("AppArmor and host ports on Debian's own kernel", ("test", "cri-debian"), 60),
        Step("ranges of user IDs while leaders are killed", ("test", "guard-ranges"), 30),
        Step("all stories of a node", ("test", "stories"), 60),
        Step("all older kubelets", ("test", "versions"), 40),
        Step("kubelets and gates switched under running pods", ("test", "skew"), 60),
        Step("what the guard admits, on a node", ("test", "guard-node"), 30),
        Step("engines in pods with writable cgroups", ("test", "nested"), 40),
        Step("reboot and power cut", ("test", "reboot"), 30),
        Step("units that fail, and their journal", ("test", "journal"), 30),
        Step("guests and clusters, and what they leave behind", ("test", "testbed"), 30),
        Step("upstream's userns tests on containerd", ("e2e", "userns", "--runtime", "containerd"), 15),
        Step("guests and clusters on Debian's own kernel", ("test", "testbed-slow"), 40),
    ]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hours", type=float, default=4, help="CPU time for the fuzzers (default: 4)")
    parser.add_argument("--only", metavar="TEXT", help="only steps with TEXT in their title")
    parser.add_argument("--list", action="store_true", help="show the steps and stop")


def run(args: argparse.Namespace) -> int:
    chosen = [step for step in nightly_steps(args.hours) if not args.only or args.only in step.title]
    if args.list:
        steps.show(chosen)
        return 0
    return steps.run_all(chosen, BUILD / "nightly")


COMMANDS = [Command("nightly", "random search, measured ratios and long runs, which the gate leaves out", run, options)]
