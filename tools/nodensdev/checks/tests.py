# SPDX-License-Identifier: Apache-2.0
"""`tools/dev test`: the test suites, each with what has to be built for it."""
import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from .. import build, package, registry
from ..command import Command, Failure
from ..env import chroot, deps, goprograms, machine, root
from ..project import TOP
from . import guest_tests


@dataclass(frozen=True)
class Suite:
    """A word that `tools/dev test` understands."""

    purpose: str
    run: Callable[[chroot.Prepared], bool]
    default: bool = True


def meson(variant: str, *suites: str) -> Callable[[chroot.Prepared], bool]:
    """Runs meson suites; a suite without tests is an error, not a success."""
    def run_suites(inside: chroot.Prepared) -> bool:
        directory = build.ensure(inside, variant)
        chosen = [argument for suite in suites for argument in ("--suite", suite)]
        base = ["meson", "test", "--no-rebuild", "-C", f"build/{directory.name}", *chosen]
        if not inside.capture([*base, "--list"]).stdout.strip():
            raise Failure(f"meson knows no test in the suites {', '.join(suites)}")
        return inside.run([*base, "--print-errorlogs"]) == 0
    return run_suites


def environment(inside: chroot.Prepared, variant: str) -> dict[str, str]:
    """For tests that start programs of a build, which is made first; those without a variant start none."""
    if not variant:
        return {}
    build.ensure(inside, variant)
    return {"NODENS_VARIANT": variant}


NIGHTLY = ("-m", "nightly")    # tests that are random or measure time; tests/conftest.py leaves them out unless they are named


def pytest(directory: str, *arguments: str, variant: str = "") -> Callable[[chroot.Prepared], bool]:
    def run_pytest(inside: chroot.Prepared) -> bool:
        return inside.run(pytest_words(*arguments, directory, settings=environment(inside, variant))) == 0
    return run_pytest


def together(*suites: Callable[[chroot.Prepared], bool]) -> Callable[[chroot.Prepared], bool]:
    """Runs all of them, also after one has failed."""
    def run_suites(inside: chroot.Prepared) -> bool:
        return all([suite(inside) for suite in suites])
    return run_suites


def with_root(name: str, suite: Callable[[chroot.Prepared], bool]) -> Callable[[chroot.Prepared], bool]:
    """For tests that lay another root's files over theirs."""
    def run_suite(inside: chroot.Prepared) -> bool:
        root.ensure(name)
        return suite(inside)
    return run_suite


def pytest_on_machine(directory: str, *arguments: str, variant: str = "", marks: str = "") -> Callable[[chroot.Prepared], bool]:
    """For tests that start guests and clusters themselves, as a contributor does."""
    def run_pytest(inside: chroot.Prepared) -> bool:
        command = [python_with_pytest(), "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *(["-m", marks] if marks else []), *arguments, directory]
        return subprocess.run(command, cwd=TOP, stdin=subprocess.DEVNULL, env=os.environ | environment(inside, variant)).returncode == 0
    return run_pytest


def prepare_runtimes(inside: chroot.Prepared, variant: str = "gcc") -> dict[str, str]:
    """For tests that run our daemons, containerd and a registry with images side by side; their environment."""
    deps.ensure()
    registry.storage.filled()
    for name in guest_tests.PEERS:
        goprograms.ensure(name)
    return environment(inside, variant)


def alone(inside: chroot.Prepared) -> chroot.Prepared:
    """The same chroot with a network of its own, in which pods' bridges disturb nobody."""
    return replace(inside, chroot=replace(inside.chroot, new_netns=True))


def pytest_words(*arguments: str, settings: dict[str, str] | None = None) -> list[str]:
    """pytest in the chroot, with the loopback up also where the network is new."""
    words = [f"{name}={value}" for name, value in (settings or {}).items()]
    options = ["-q", "-W", "ignore::DeprecationWarning", "-p", "no:cacheprovider"]
    return ["sh", "-c", 'ip link set lo up; exec "$@"', "sh", "env", *words, "python3", "-B", "-m", "pytest", *options, *arguments]


def pytest_of_images(directory: str, *arguments: str, place: Callable[[chroot.Prepared], chroot.Prepared] | None = None,
                     variant: str = "gcc") -> Callable[[chroot.Prepared], bool]:
    def run_pytest(inside: chroot.Prepared) -> bool:
        settings = prepare_runtimes(inside, variant)
        return (place(inside) if place else inside).run(pytest_words(*arguments, directory, settings=settings)) == 0
    return run_pytest


def pytest_in_guest(directory: str, kernel: str, *arguments: str) -> Callable[[chroot.Prepared], bool]:
    """For tests that need a kernel with everything, and systemd."""
    def run_pytest(inside: chroot.Prepared) -> bool:
        build.ensure(inside, "gcc")
        return guest_tests.run(directory, kernel, "gcc", arguments)
    return run_pytest


def packages_in_guest(inside: chroot.Prepared) -> bool:
    """Two versions of the packages, for a node that upgrades."""
    build.ensure(inside, "gcc")
    made = [path for path in package.build() if path.suffix == ".deb" and "dbgsym" not in path.name]
    return guest_tests.run("tests/component/package", extra={"packages": [*made, *package.renamed(made, f"{package.version()}+upgraded")]})


def policy_beside_kubernetes(inside: chroot.Prepared) -> bool:
    """A share of the comparison that `tools/dev prove guard-admission` makes in full."""
    build.ensure(inside, "gcc")
    oracle = chroot.seen_inside(goprograms.ensure("policy") / "policy")
    compared = inside.run(["python3", "-B", "tests/component/policy/compare.py", "--driver", "build/gcc/tests/component/policy/driver",
                           "--oracle", str(oracle), "--pods", "10000"]) == 0
    return pytest("tests/component/policy")(inside) and compared


def python_with_pytest() -> str:
    """The machine's Python that has pytest; installed from Debian where none has."""
    def has_pytest(python: str) -> bool:
        return subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode == 0

    candidates = [python for python in (sys.executable, "/usr/bin/python3") if has_pytest(python)]
    if candidates:
        return candidates[0]
    machine.install("python3-pytest", "pytest is missing")
    return "/usr/bin/python3"


COMMON = "not reboot and not versions and not throughput"    # stories that share a cluster
SHORT = f"gate and {COMMON}"                                 # and those of the gate among them
SUITES = {
    "unit": Suite("unit tests and the fuzzers' corpora", meson("gcc", "unit", "fuzz")),
    "asan": Suite("the same under ASan and UBSan", meson("asan", "unit", "fuzz")),
    "fuzz": Suite("the fuzzers' corpora alone", meson("gcc", "fuzz"), default=False),
    "kernel": Suite("what the design takes for granted of the kernel", meson("gcc", "kernel")),
    "userns": Suite("the user namespace manager under kills and with all its blocks", meson("gcc", "userns")),
    "grpc": Suite("Python's grpcio against our gRPC server", pytest("tests/component/grpc", variant="gcc")),
    "policy": Suite("nodens lint, and 10,000 generated pods judged as Kubernetes' own code does", policy_beside_kubernetes, default=False),
    "nightly": Suite("kills at random moments and figures, which a loaded machine breaks", together(
        meson("gcc", "nightly"), with_root("lxc", pytest("tests/component/rootless", *NIGHTLY, variant="gcc")), pytest_of_images("tests/component/pull", *NIGHTLY),
        pytest_of_images("tests/component/cri", *NIGHTLY, "--runtime", "nodens-cri", place=alone),
        pytest_on_machine("tests/component/guard", "-s", variant="gcc", marks="nightly")), default=False),
    "tools": Suite("tools/dev itself", pytest("tools/tests")),
    "pull": Suite("nodens-fetch and nodens-unpack with a real registry and hostile ones", pytest_of_images("tests/component/pull"), default=False),
    "pull-asan": Suite("the same under ASan and UBSan", pytest_of_images("tests/component/pull", variant="asan"), default=False),
    "cri": Suite("the CRI's cases on nodens-cri and containerd, side by side, and the trees of images", pytest_of_images("tests/component/cri", place=alone), default=False),
    "cri-own": Suite("the same without containerd's turn: half the time", pytest_of_images("tests/component/cri", "--runtime", "nodens-cri", place=alone), default=False),
    "cri-asan": Suite("the same with daemons, monitors and helpers under ASan and UBSan",
                      pytest_of_images("tests/component/cri", "--runtime", "nodens-cri", place=alone, variant="asan"), default=False),
    "cri-memory": Suite("of these, what looks at the daemon's memory, which says nothing under ASan", pytest_of_images(
        "tests/component/cri/test_scrape.py", "tests/component/cri/test_events.py", "--runtime", "nodens-cri", place=alone), default=False),
    "cri-streaming": Suite("of these, exec, attach and port-forward", pytest_of_images("tests/component/cri/test_streaming.py", "--runtime", "nodens-cri", place=alone), default=False),
    "cri-boundaries": Suite("of these, what docs/security-model.md asks for and no other case looks at", pytest_of_images("tests/component/cri/test_boundaries.py", place=alone), default=False),
    "cri-guest": Suite("the same with cgroup controllers, in a guest", pytest_in_guest("tests/component/cri", "uml"), default=False),
    "cri-guest-systemd": Suite("the same with systemd as the cgroup driver", pytest_in_guest("tests/component/cri", "uml", "--cgroup-driver", "systemd"), default=False),
    "cri-debian": Suite("what of it needs Debian's own kernel: host ports and AppArmor", pytest_in_guest("tests/component/cri", "debian", "-k", "apparmor or hosts_port"),
                        default=False),
    "pods-chaos": Suite("1,000 pod lives while the daemon is killed and its engines fail", pytest_of_images("tests/component/cri-resilience/test_chaos.py", "-s", place=alone), default=False),
    "pods-boot": Suite("what is told of a pod while it runs and after a reboot", pytest_of_images("tests/component/cri-resilience/test_boot.py", place=alone), default=False),
    "pods-operator": Suite("nodens exec, logs, stats, top and rm on a node without a kubelet", pytest_of_images("tests/component/cri-resilience/test_operator.py", place=alone), default=False),
    "pods-damage": Suite("what becomes of pods whose records are damaged", pytest_of_images("tests/component/cri-resilience/test_damage.py", place=alone), default=False),
    "pods-hostile": Suite("a container that does everything to make the runtime wait, beside twenty pods: one minute",
                          pytest_of_images("tests/component/cri-resilience/test_hostile.py", "-s", place=alone), default=False),
    "pods-hostile-full": Suite("the same for ten minutes", pytest_of_images("tests/component/cri-resilience/test_hostile.py", "-s", "--minutes", "10", place=alone), default=False),
    "pods-size": Suite("1,000 pods with 2,000 containers at once", pytest_of_images("tests/component/cri-resilience/test_size.py", "-s", place=alone), default=False),
    "pods-soak": Suite("1,000 rounds of exec, attach, port-forward and log rotation, 500 pod lives, a minute of probes: nothing grows",
                       pytest_of_images("tests/component/cri-resilience/test_soak.py", "-s", place=alone), default=False),
    "pods-soak-full": Suite("the same ten times over, and 10,000 pod lives",
                            pytest_of_images("tests/component/cri-resilience/test_soak.py", "-s", "--rounds", "10000", "--soak-lives", "10000", "--minutes", "10", place=alone),
                            default=False),
    "stories": Suite("what people do with a node, on a cluster with nodens-cri", pytest_on_machine("tests/cluster/scenarios", marks=COMMON), default=False),
    "stories-short": Suite("of these, those that CI runs", pytest_on_machine("tests/cluster/scenarios", "--ooms", "3", marks=SHORT), default=False),
    "streams": Suite("of these, kubectl exec, cp, attach, port-forward, debug, logs -f and top",
                     pytest_on_machine("tests/cluster/scenarios/test_streams.py", "tests/cluster/scenarios/test_top.py", "-s"), default=False),
    "streams-copy": Suite("kubectl cp of 1 GiB each way", pytest_on_machine("tests/cluster/scenarios/test_streams.py", "-s", "-k", "copy", "--copy-mib", "1024"), default=False),
    "stories-systemd": Suite("the same with systemd as the cgroup driver", pytest_on_machine("tests/cluster/scenarios", "--cgroup-driver", "systemd", marks=COMMON),
                             default=False),
    "versions": Suite("pods in user namespaces with kubelets of older minors", pytest_on_machine("tests/cluster/scenarios", "-s", marks="versions"), default=False),
    "versions-short": Suite("of these, what CI runs: one kubelet", pytest_on_machine("tests/cluster/scenarios", "-s", "--kubelets", "1.34", marks="versions and gate"), default=False),
    "throughput": Suite("how much goes through kubectl exec, beside containerd",
                        pytest_on_machine("tests/cluster/scenarios", "-s", "--figures", "build/throughput.json", marks="throughput"), default=False),
    "reboot": Suite("what a reboot and a power cut of the node make of its pods", pytest_on_machine("tests/cluster/scenarios", marks="reboot"), default=False),
    "package": Suite("the Debian packages: installed in a guest, and upgraded with pods alive", packages_in_guest, default=False),
    "images-store": Suite("images under 200 kills and on full disks", pytest_of_images("tests/component/image-store", "-s"), default=False),
    "rootless": Suite("nodes of an ordinary user: launcher, network, what root inside cannot reach", with_root("lxc", pytest("tests/component/rootless", variant="gcc"))),
    "rootless-asan": Suite("the same under ASan and UBSan", with_root("lxc", pytest("tests/component/rootless", variant="asan")), default=False),
    "guard": Suite("admission beside a stock API server, without nodes", pytest_on_machine("tests/component/guard", "-s", variant="gcc", marks="not node"), default=False),
    "guard-asan": Suite("the same under ASan and UBSan, but for what takes minutes", pytest_on_machine("tests/component/guard", "-s", variant="asan", marks="not node and not slow"),
                        default=False),
    "guard-node": Suite("what the guard admits, on a node with nodens-cri: users, root of a pod's own, podman in a pod",
                        pytest_on_machine("tests/component/guard/test_node.py", "-s", variant="gcc"), default=False),
    "guard-node-short": Suite("of these, those that CI runs", pytest_on_machine("tests/component/guard/test_node.py", "-s", variant="gcc", marks="gate"), default=False),
    "guard-ranges": Suite("of these, ranges of user IDs while leaders are killed", pytest_on_machine("tests/component/guard/test_ranges.py", "-s", variant="gcc"), default=False),
    "testbed": Suite("guests and clusters, and what they leave behind", pytest_on_machine("tests/cluster/testbed", marks="not slow"), default=False),
    "testbed-short": Suite("of these, what starts no cluster of its own; other steps of CI start some", pytest_on_machine(
        "tests/cluster/testbed", "-k", "not two_clusters and not two_nodes and not webhooks and not interrupted_start and not node_that_dies", marks="not slow"), default=False),
    "testbed-slow": Suite("the same on Debian's own kernel", pytest_on_machine("tests/cluster/testbed", marks="slow"), default=False),
}


def options(parser: argparse.ArgumentParser) -> None:
    text = "; ".join(f"{name}: {suite.purpose}" for name, suite in SUITES.items())
    parser.add_argument("suite", nargs="*", choices=[[], *SUITES], default=[], 
                        help=f"{text}. Default: {', '.join(name for name, suite in SUITES.items() if suite.default)}")


def run(args: argparse.Namespace) -> int:
    chosen = args.suite or [name for name, suite in SUITES.items() if suite.default]
    failed = []
    with chroot.prepared(chroot.Chroot()) as inside:
        for name in chosen:
            print(f"== {name}: {SUITES[name].purpose}", flush=True)
            if not SUITES[name].run(inside):
                failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


COMMANDS = [Command("test", "run test suites: " + ", ".join(SUITES), run, options)]
