# SPDX-License-Identifier: Apache-2.0
"""`tools/dev test`: the test suites, each with what has to be built for it."""
import argparse
import fnmatch
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from .. import build, critools, images, package, registry, storage
from ..command import Command, Failure, one_of
from ..env import chroot, deps, goprograms, machine, root
from ..project import TOP
from . import guest_tests, python

ONLY: ContextVar[str] = ContextVar("ONLY", default="")      # words of `tools/dev test -k`


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
        chosen = [argument for suite in suites for argument in ("--suite", suite)] + ([f"*{ONLY.get()}*"] if ONLY.get() else [])
        base = ["meson", "test", "--no-rebuild", "-C", f"build/{directory.name}", *chosen]
        if not inside.capture([*base, "--list"]).stdout.strip():
            raise Failure(f"meson knows no test in the suites {', '.join(suites)}" + (f" named *{ONLY.get()}*" if ONLY.get() else ""))
        return inside.run([*base, "--print-errorlogs"]) == 0
    return run_suites


def environment(inside: chroot.Prepared, variant: str) -> dict[str, str]:
    """For tests that start programs of a build, which is made first; those without a variant start none."""
    if not variant:
        return {}
    build.ensure(inside, variant)
    return {"NODENS_VARIANT": variant}


def selected(arguments: tuple[str, ...]) -> list[str]:
    """Arguments of pytest, narrowed to the tests that the command line chooses."""
    words, only = list(arguments), ONLY.get()
    if only and "-k" in words:
        place = words.index("-k") + 1
        words[place] = f"({words[place]}) and ({only})"
        return words
    return [*words, *(["-k", only] if only else [])]


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


def with_linters(suite: Callable[[chroot.Prepared], bool]) -> Callable[[chroot.Prepared], bool]:
    """For the tests of the lints that run ruff and mypy."""
    def run_suite(inside: chroot.Prepared) -> bool:
        python.ensure()
        return suite(inside)
    return run_suite


def with_root(name: str, suite: Callable[[chroot.Prepared], bool]) -> Callable[[chroot.Prepared], bool]:
    """For tests that lay another root's files over theirs."""
    def run_suite(inside: chroot.Prepared) -> bool:
        root.ensure(name)
        return suite(inside)
    return run_suite


def with_archives(suite: Callable[[chroot.Prepared], bool]) -> Callable[[chroot.Prepared], bool]:
    """For tests that import images from the cache and unpack our programs in a home directory."""
    def run_suite(inside: chroot.Prepared) -> bool:
        images.archive("e2e")
        package.tarball(inside)
        return suite(inside)
    return run_suite


def with_programs(name: str, suite: Callable[[chroot.Prepared], bool]) -> Callable[[chroot.Prepared], bool]:
    """For tests that run programs of `tools/dev gobin`."""
    def run_suite(inside: chroot.Prepared) -> bool:
        goprograms.ensure(name)
        return suite(inside)
    return run_suite


def pytest_on_machine(directory: str, *arguments: str, variant: str = "", marks: str = "") -> Callable[[chroot.Prepared], bool]:
    """For tests that start guests and clusters themselves, as a contributor does."""
    def run_pytest(inside: chroot.Prepared) -> bool:
        command = [python_with_pytest(), "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *(["-m", marks] if marks else []),
                   *selected(arguments), directory]
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
    """The same chroot with a network of its own, in which pods' bridges disturb no other test."""
    return replace(inside, chroot=replace(inside.chroot, new_netns=True))


def pytest_words(*arguments: str, settings: dict[str, str] | None = None) -> list[str]:
    """pytest in the chroot, with the loopback up also where the network is new."""
    words = [f"{name}={value}" for name, value in (settings or {}).items()]
    options = ["-q", "-W", "ignore::DeprecationWarning", "-p", "no:cacheprovider"]
    command = ["python3", "-B", "-m", "pytest", *options, *selected(arguments)]
    return ["sh", "-c", 'ip link set lo up; exec "$@"', "sh", "env", *words, *command]


def pytest_of_images(directory: str, *arguments: str, place: Callable[[chroot.Prepared], chroot.Prepared] | None = None,
                     variant: str = "gcc") -> Callable[[chroot.Prepared], bool]:
    def run_pytest(inside: chroot.Prepared) -> bool:
        settings = prepare_runtimes(inside, variant)
        return (place(inside) if place else inside).run(pytest_words(*arguments, directory, settings=settings)) == 0
    return run_pytest


def pytest_in_guest(directory: str, kernel: str, *arguments: str, before: str = "", peers: tuple[str, ...] = guest_tests.PEERS,
                    keep: Path | None = None) -> Callable[[chroot.Prepared], bool]:
    """For tests that need a kernel with everything, and systemd."""
    def run_pytest(inside: chroot.Prepared) -> bool:
        build.ensure(inside, "gcc")
        return guest_tests.run(directory, kernel, "gcc", tuple(selected(arguments)), before=before, peers=peers, keep=keep)
    return run_pytest


def pytest_in_node(place: str, directory: str, *arguments: str, variant: str = "gcc") -> Callable[[chroot.Prepared], bool]:
    """For tests that run as root of a rootless node, with their files on the disk or in memory (tests/lib/nodenstest/in_node.py)."""
    def run_pytest(inside: chroot.Prepared) -> bool:
        settings = [f"{name}={value}" for name, value in prepare_runtimes(inside, variant).items()]
        node = ["env", *settings, "python3", "-B", "-m", "nodenstest.in_node", place]
        return inside.run([*node, *pytest_words(directory, *arguments)]) == 0
    return run_pytest


def packages_in_guest(inside: chroot.Prepared) -> bool:
    """Two versions of the packages, for a node that upgrades."""
    build.ensure(inside, "gcc")
    made = [path for path in package.build() if path.suffix == ".deb" and "dbgsym" not in path.name]
    both = [*made, *package.renamed(made, f"{package.version()}+upgraded")]
    return guest_tests.run("tests/component/package", arguments=tuple(selected(())), extra={"packages": both})


def image_of_guard(inside: chroot.Prepared) -> bool:
    """The guard's image, made from the package."""
    images.ensure("guard")
    return pytest_on_machine("tests/component/guard/test_image.py", "-s", marks="image")(inside)


def chart_of_guard(inside: chroot.Prepared) -> bool:
    """The chart with the guard's own image, on a cluster."""
    images.ensure("guard")
    goprograms.ensure("helm")
    return pytest_on_machine("tests/component/guard/test_chart.py", "-s", variant="gcc")(inside)


def policy_beside_kubernetes(inside: chroot.Prepared) -> bool:
    """A share of the comparison that `tools/dev prove guard-admission` makes in full."""
    build.ensure(inside, "gcc")

    def peer(name: str) -> str:
        return str(chroot.seen_inside(goprograms.ensure(name) / name))

    compared = [inside.run(["python3", "-B", f"tests/component/policy/{script}", "--driver", "build/gcc/tests/component/policy/driver",
                            *arguments]) == 0
                for script, arguments in (("compare.py", ["--oracle", peer("policy"), "--pods", "10000"]),
                                          ("compare_fields.py", ["--api", peer("api-1.36"), "--api", peer("api-1.37")]),
                                          ("compare_yaml.py", ["--peer", peer("manifests")]))]
    return pytest("tests/component/policy")(inside) and all(compared)


def python_with_pytest() -> str:
    """The machine's Python that has pytest; installed from Debian where none has."""
    def has_pytest(python: str) -> bool:
        return subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode == 0

    candidates = [python for python in (sys.executable, "/usr/bin/python3") if has_pytest(python)]
    if candidates:
        return candidates[0]
    machine.install("python3-pytest", "pytest is missing")
    return "/usr/bin/python3"


STORAGE = ("nfs4", "nfs3", "smb", "9p", "sshfs", "s3fs", "bindfs", "overlay", "ext4", "tmpfs", "nfs4-squash", "nfs3-squash")
LOCAL_STORAGE = ("xfs", "btrfs")            # which the kernel of guests does not have
STORAGE_TESTS = ("posix", "squash", "unowned")
LIMITS = "memory or oom or cpu or limit or pids or cgroup or stats or metrics"    # cases of the CRI that need cgroup controllers
COMMON = "not reboot and not versions and not throughput and not rootless and not nested and not storage"    # stories that share a cluster
SHORT = f"gate and {COMMON}"                                 # and those of the gate among them
# They are a suite of their own.
NO_ATTACKS = "--ignore-glob=*/test_attacks_*"
SUITES = {
    "unit": Suite("unit tests and the fuzzers' corpora", meson("gcc", "unit", "fuzz")),
    "asan": Suite("unit under ASan and UBSan", meson("asan", "unit", "fuzz")),
    "fuzz": Suite("the fuzzers' corpora alone", meson("gcc", "fuzz"), default=False),
    "kernel": Suite("kernel behaviour that the design relies on", meson("gcc", "kernel")),
    "userns": Suite("the user namespace manager, killed at every system call", meson("gcc", "userns")),
    "grpc": Suite("our gRPC server with Python's grpcio", pytest("tests/component/grpc", variant="gcc")),
    "policy": Suite("nodens lint; pods, YAML and field names beside Kubernetes' own code", policy_beside_kubernetes, default=False),
    "nightly": Suite("kills at random moments, and figures that depend on load", together(
        meson("gcc", "nightly"), with_root("lxc", pytest("tests/component/rootless", *NIGHTLY, variant="gcc")),
        pytest("tests/component/bridge", *NIGHTLY, variant="gcc"),
        pytest_of_images("tests/component/pull", *NIGHTLY),
        pytest_of_images("tests/component/cri", *NIGHTLY, "--runtime", "nodens-cri", place=alone),
        pytest_on_machine("tests/component/guard", "-s", variant="gcc", marks="nightly")), default=False),
    "tools": Suite("tools/dev itself", with_linters(pytest("tools/tests"))),
    "pull": Suite("nodens-fetch and nodens-unpack with a real registry and hostile ones", pytest_of_images("tests/component/pull"),
                  default=False),
    "pull-asan": Suite("pull under ASan and UBSan", pytest_of_images("tests/component/pull", variant="asan"), default=False),
    "cri": Suite("CRI cases on nodens-cri and containerd, side by side", pytest_of_images("tests/component/cri", place=alone),
                 default=False),
    "cri-own": Suite("cri without containerd: half the time",
                     pytest_of_images("tests/component/cri", "--runtime", "nodens-cri", place=alone), default=False),
    "cri-asan": Suite("cri-own with daemons, monitors and helpers under ASan and UBSan",
                      pytest_of_images("tests/component/cri", "--runtime", "nodens-cri", place=alone, variant="asan"), default=False),
    "cri-rootless": Suite("cri-own as root of a rootless node, and its pods from outside", together(
        pytest_of_images("tests/component/rootless-pods"),
        pytest_in_node("disk", "tests/component/cri", "--runtime", "nodens-cri"),
        pytest_in_node("memory", "tests/component/cri", "--runtime", "nodens-cri")), default=False),
    "rootless-ids": Suite("pods with user namespaces in a rootless node, and nodes with few IDs",
                          pytest_of_images("tests/component/rootless-pods/test_ids.py"), default=False),
    "cri-rootless-guest": Suite("of cri-rootless: limits, in a guest with cgroup controllers", pytest_in_guest(
        "tests/component/cri", "uml", "-k", LIMITS, "--runtime", "nodens-cri",
        before="env PYTHONPATH=/nodens/tools:/nodens/tests/lib python3 -B -m nodenstest.in_node memory"), default=False),
    "cri-memory": Suite("of cri: memory of the daemon, which ASan would distort", pytest_of_images(
        "tests/component/cri/test_scrape.py", "tests/component/cri/test_events.py", "--runtime", "nodens-cri", place=alone), default=False),
    "cri-streaming": Suite("of cri: exec, attach and port-forward", pytest_of_images("tests/component/cri/test_streaming.py", "--runtime",
                                                                                     "nodens-cri", place=alone), default=False),
    "cri-boundaries": Suite("of cri: requirements of docs/security-model.md",
                            pytest_of_images("tests/component/cri/test_boundaries.py", place=alone), default=False),
    "cri-guest": Suite("cri with cgroup controllers, in a guest", pytest_in_guest("tests/component/cri", "uml"), default=False),
    "cri-guest-systemd": Suite("cri-guest with systemd as the cgroup driver",
                               pytest_in_guest("tests/component/cri", "uml", "--cgroup-driver=systemd"), default=False),
    "cri-debian": Suite("of cri: host ports and AppArmor, on Debian's own kernel",
                        pytest_in_guest("tests/component/cri", "debian", "-k", "apparmor or hosts_port"),
                        default=False),
    "critest": Suite("the field's suite for CRI runtimes on nodens-cri, containerd and CRI-O", pytest_in_guest(
        "tests/component/cri-tools/test_critest.py", "uml-nft", "-s", f"--results={critools.IN_GUEST}",
        peers=(*guest_tests.PEERS, "cri-o", "cri-tools"), keep=critools.NEWEST.parent), default=False),
    "cri-crio": Suite("the CRI's cases on CRI-O, in a guest", pytest_in_guest(
        "tests/component/cri", "uml-nft", "--runtime=cri-o", "--cgroup-driver=systemd",
        peers=(*guest_tests.PEERS, "cri-o")), default=False),
    "crictl": Suite("each command of crictl on nodens-cri, in a guest", pytest_in_guest(
        "tests/component/cri-tools/test_crictl.py", "uml", peers=(*guest_tests.PEERS, "cri-tools")), default=False),
    "pods-chaos": Suite("1,000 pod lives while the daemon is killed and its engines fail",
                        pytest_of_images("tests/component/cri-resilience/test_chaos.py", "-s", place=alone), default=False),
    "pods-boot": Suite("what a pod's status says while it runs and after a reboot",
                       pytest_of_images("tests/component/cri-resilience/test_boot.py", place=alone), default=False),
    "pods-operator": Suite("nodens exec, logs, ps, rm, rmi and others without a kubelet",
                           pytest_of_images("tests/component/cri-resilience/test_operator.py",
                                            "tests/component/cri-resilience/test_operator_commands.py",
                                            "tests/component/cri-resilience/test_check.py", place=alone), default=False),
    "terminal": Suite("nodens in terminals of several sizes, in pipes and on full devices",
                      pytest_of_images("tests/component/terminal", place=alone), default=False),
    "pods-damage": Suite("pods whose records are damaged", pytest_of_images("tests/component/cri-resilience/test_damage.py", place=alone),
                         default=False),
    "pods-hostile": Suite("a container that tries to block the runtime, beside 20 pods: 1 minute",
                          pytest_of_images("tests/component/cri-resilience/test_hostile.py", "-s", place=alone), default=False),
    "pods-hostile-full": Suite("pods-hostile for 10 minutes", pytest_of_images("tests/component/cri-resilience/test_hostile.py", "-s",
                                                                               "--minutes", "10", place=alone), default=False),
    "pods-size": Suite("1,000 pods with 2,000 containers at once",
                       pytest_of_images("tests/component/cri-resilience/test_size.py", "-s", place=alone), default=False),
    "pods-soak": Suite("leaks: 1,000 rounds of exec, attach, port-forward, rotation; 500 pods",
                       pytest_of_images("tests/component/cri-resilience/test_soak.py", "-s", place=alone), default=False),
    "pods-soak-full": Suite("pods-soak with ten times the rounds and 10,000 pods",
                            pytest_of_images("tests/component/cri-resilience/test_soak.py", "-s", "--rounds", "10000", "--soak-lives",
                                             "10000", "--minutes", "10", place=alone),
                            default=False),
    "stories": Suite("use cases of a node, on a cluster with nodens-cri", pytest_on_machine("tests/cluster/scenarios", marks=COMMON),
                     default=False),
    "stories-short": Suite("of stories: those in the gate", pytest_on_machine("tests/cluster/scenarios", "--ooms", "3", marks=SHORT),
                           default=False),
    "audit-node": Suite("workloads that nodens audit judges, run both ways on a node",
                        pytest_on_machine("tests/cluster/scenarios/test_audit.py", "-s"), default=False),
    "streams": Suite("of stories: kubectl exec, cp, attach, port-forward, debug, logs, top",
                     pytest_on_machine("tests/cluster/scenarios/test_streams.py", "tests/cluster/scenarios/test_top.py", "-s"),
                     default=False),
    "streams-copy": Suite("kubectl cp of 1 GiB each way", pytest_on_machine("tests/cluster/scenarios/test_streams.py", "-s", "-k", "copy",
                                                                            "--copy-mib", "1024"), default=False),
    "stories-systemd": Suite("stories with systemd as the cgroup driver",
                             pytest_on_machine("tests/cluster/scenarios", "--cgroup-driver=systemd", marks=COMMON),
                             default=False),
    "versions": Suite("pods in user namespaces with kubelets of older minors",
                      pytest_on_machine("tests/cluster/scenarios", "-s", marks="versions"), default=False),
    "versions-short": Suite("of versions: one kubelet, in the gate", pytest_on_machine("tests/cluster/scenarios", "-s", "--kubelets",
                                                                                       "1.34", marks="versions and gate"), default=False),
    "skew": Suite("kubelets 1.29 to 1.36 and gates, switched under running pods",
                  pytest_on_machine("tests/cluster/skew"), default=False),
    "throughput": Suite("throughput of kubectl exec, beside containerd",
                        pytest_on_machine("tests/cluster/scenarios", "-s", "--figures", "build/throughput.json", marks="throughput"),
                        default=False),
    "reboot": Suite("pods after a reboot and a power cut of the node", pytest_on_machine("tests/cluster/scenarios", marks="reboot"),
                    default=False),
    "package": Suite("the Debian packages, installed in a guest and upgraded under pods", packages_in_guest, default=False),
    "journal": Suite("units that fail: what the journal and systemctl status say, in a guest",
                     pytest_in_guest("tests/component/journal", "uml"), default=False),
    "images-store": Suite("the image store under 200 kills and on full disks", pytest_of_images("tests/component/image-store", "-s"),
                          default=False),
    "bridge": Suite("volumes behind nodens-bridge: files, owners, locks, kills, attacks", pytest("tests/component/bridge", variant="gcc")),
    "bridge-storage": Suite("bridge on NFS, SMB, sshfs, S3 and others, in a guest", pytest_in_guest(
        "tests/component/bridge/test_files.py", "uml-nft", *[f"tests/component/bridge/test_{name}.py" for name in STORAGE_TESTS],
        "--storage=" + ",".join(STORAGE), f"--results={storage.IN_GUEST}", peers=("versitygw",), keep=storage.NEWEST), default=False),
    "bridge-local": Suite("bridge on xfs and btrfs", with_root("storage", pytest(
        "tests/component/bridge/test_files.py", "tests/component/bridge/test_posix.py", "--storage=" + ",".join(LOCAL_STORAGE),
        f"--results={storage.LOCAL}", variant="gcc")), default=False),
    "bridge-storage-kills": Suite("bridge on NFS: kills, in a guest", pytest_in_guest(
        "tests/component/bridge/test_kills.py", "uml-nft", "--storage=nfs4,nfs3", peers=()), default=False),
    "bridge-storage-nightly": Suite("bridge on NFS: 500 kills under load, and fsx with 500 kills", pytest_in_guest(
        "tests/component/bridge/test_kills.py", "uml-nft", *NIGHTLY, "--storage=nfs4,nfs3", peers=()), default=False),
    "bridge-storage-debian": Suite("bridge on NFS: kills and replacements, with Debian's kernel", pytest_in_guest(
        "tests/component/bridge/test_kills.py", "debian", "--storage=nfs4,nfs3", peers=()), default=False),
    "bridge-each-call": Suite("bridge: its server is killed before and after each system call",
                              pytest("tests/component/bridge/test_each_call.py", *NIGHTLY, variant="gcc"), default=False),
    "bridge-kills": Suite("bridge: 500 kills of its server on each kind of volume",
                          pytest("tests/component/bridge/test_kills.py", *NIGHTLY, variant="gcc"), default=False),
    "bridge-posix": Suite("bridge: 16,416 POSIX cases beside an idmapped mount",
                          pytest("tests/component/bridge/test_posix.py", *NIGHTLY, variant="gcc"), default=False),
    "bridge-asan": Suite("bridge under ASan and UBSan", pytest("tests/component/bridge", variant="asan"), default=False),
    "rootless": Suite("nodes of an ordinary user: launcher, network, isolation",
                      with_root("lxc", pytest("tests/component/rootless", variant="gcc"))),
    "rootless-asan": Suite("rootless under ASan and UBSan", with_root("lxc", pytest("tests/component/rootless", variant="asan")),
                           default=False),
    "rootless-kubelet": Suite("a stock kubelet in a rootless node, beside a stock API server", with_programs(
        "kubernetes", with_programs("containerd", pytest("tests/component/rootless/kubelet.py", variant="gcc"))), default=False),
    "rootless-inside": Suite("nodes in containers of rootless podman, beside a stock API server", with_root("podman", with_programs(
        "kubernetes", pytest("tests/component/rootless/inside.py", variant="gcc"))), default=False),
    "rootless-broker": Suite("pulls through the broker of a rootless node, and attacks on it",
                             pytest("tests/component/rootless/broker.py", "-s", variant="gcc"), default=False),
    "rootless-slurm": Suite("rootless nodes in batch jobs of a real Slurm", with_root("slurm", with_programs(
        "kubernetes", pytest("tests/component/rootless/slurm_job.py", variant="gcc"))), default=False),
    "rootless-services": Suite("ports of Services and pods on a rootless node, beside a stock API server",
                               with_programs("kubernetes", pytest("tests/component/rootless/services.py", variant="gcc")), default=False),
    "rootless-cluster": Suite("clusters of an ordinary user: up --control-plane, tokens, attacks", with_archives(with_programs(
        "kubernetes", pytest("tests/component/rootless/cluster.py", "-s", variant="gcc"))), default=False),
    "rootless-node": Suite("a rootless node with nodens-cri in a cluster",
                           pytest_on_machine("tests/cluster/scenarios/rootless", NO_ATTACKS, marks="not pair"), default=False),
    "rootless-minors": Suite("a rootless node with kubelet and kube-proxy 1.37 and 1.36", with_programs(
        "kubernetes-1.36", pytest_on_machine("tests/cluster/scenarios/rootless/minors.py")), default=False),
    "rootless-node-containerd": Suite("the same with containerd",
                                      pytest_on_machine("tests/cluster/scenarios/rootless", NO_ATTACKS, "--runtime", "containerd",
                                                        marks="not pair"), default=False),
    "rootless-nodes": Suite("two rootless nodes with nodens-cri, whose pods reach each other",
                            pytest_on_machine("tests/cluster/scenarios/rootless/test_two_nodes.py"), default=False),
    "rootless-nodes-containerd": Suite("rootless-nodes with containerd", pytest_on_machine(
        "tests/cluster/scenarios/rootless/test_two_nodes.py", "--runtime", "containerd"), default=False),
    "rootless-nodes-flannel": Suite("rootless-nodes with flannel", pytest_on_machine(
        "tests/cluster/scenarios/rootless/test_two_nodes.py", "--flannel"), default=False),
    "rootless-node-attacks": Suite("root of a rootless node and its pods attack the user's account", pytest_on_machine(
        "tests/cluster/scenarios/rootless/test_attacks_root.py", "tests/cluster/scenarios/rootless/test_attacks_pods.py"), default=False),
    "rootless-node-kills": Suite("50 kills of each part of a rootless node; two minutes without an API server",
                                 pytest_on_machine("tests/cluster/scenarios/rootless/test_kills.py", "-s", "-k", "killed or away",
                                                   "--kills", "50", "--api-away", "120"), default=False),
    "rootless-pod": Suite("a rootless node in a pod with hostUsers: false",
                          with_archives(pytest_on_machine("tests/cluster/scenarios/rootless-inside")), default=False),
    "storage-node": Suite("PersistentVolumes on NFS and S3, on a cluster with nodens-cri",
                          pytest_on_machine("tests/cluster/scenarios/storage"), default=False),
    "storage-node-containerd": Suite("what containerd says to the pods of storage-node",
                                     pytest_on_machine("tests/cluster/scenarios/storage", "-s", "--runtime", "containerd"), default=False),
    "nested": Suite("podman, buildah, docker, systemd and BuildKit in pods with writable cgroups",
                    pytest_on_machine("tests/cluster/scenarios/nested"), default=False),
    "rootless-node-ids": Suite("pods with hostUsers: false on a rootless node in a cluster",
                               pytest_on_machine("tests/cluster/scenarios/rootless-ids"), default=False),
    "guard": Suite("admission beside a stock API server, without nodes",
                   pytest_on_machine("tests/component/guard", "-s", variant="gcc", marks="not node and not image"), default=False),
    "guard-asan": Suite("guard under ASan and UBSan, without its slow tests",
                        pytest_on_machine("tests/component/guard", "-s", variant="asan", marks="not node and not image and not slow"),
                        default=False),
    "guard-node": Suite("admitted pods on a node with nodens-cri, podman in a pod",
                        pytest_on_machine("tests/component/guard/test_node.py", "-s", variant="gcc"), default=False),
    "guard-node-short": Suite("of guard-node: those in the gate",
                              pytest_on_machine("tests/component/guard/test_node.py", "-s", variant="gcc", marks="gate"), default=False),
    "floor-node": Suite("the version floor and the authorizer on a cluster with kubelets 1.29 to 1.37",
                        pytest_on_machine("tests/component/guard/test_floor_node.py", "-s", variant="gcc"), default=False),
    "guard-image": Suite("the image of the guard: size, contents, user, and that it serves", image_of_guard, default=False),
    "guard-chart": Suite("the Helm chart on a cluster: install, upgrade, rollback, rotation, removal", chart_of_guard,
                         default=False),
    "guard-ranges": Suite("of guard: ranges of user IDs while leaders are killed",
                          pytest_on_machine("tests/component/guard/test_ranges.py", "-s", variant="gcc"), default=False),
    "testbed": Suite("guests and clusters, and that they leave nothing behind",
                     pytest_on_machine("tests/cluster/testbed", marks="not slow"), default=False),
    "testbed-short": Suite("of testbed: those without a cluster of their own", pytest_on_machine(
        "tests/cluster/testbed", "-k",
        "not two_clusters and not two_nodes and not webhooks and not interrupted_start and not node_that_dies", marks="not slow"),
                           default=False),
    "testbed-slow": Suite("testbed on Debian's own kernel", pytest_on_machine("tests/cluster/testbed", marks="slow"), default=False),
}


# The order of `tools/dev test --help`. A pattern counts for the suites that no group above has.
GROUPS = (
    ("unit: in the Debian root, minutes at most", ("unit", "asan", "fuzz", "kernel", "userns", "grpc", "tools", "policy")),
    ("long: sizes, soaks and chaos",
     ("pods-chaos", "pods-hostile*", "pods-size", "pods-soak*", "images-store", "streams-copy", "throughput", "guard-ranges",
      "critest")),
    ("nightly: random search and measured bounds", ("nightly",)),
    ("cluster: guests and a cluster",
     ("stories*", "streams", "audit-node", "versions*", "skew", "reboot", "guard-node*", "floor-node", "guard-chart", "testbed*",
      "rootless-node*", "rootless-pod", "nested", "storage-node*")),
    ("component: a program of ours with real peers",
     ("pull*", "bridge*", "cri*", "pods-*", "terminal", "rootless*", "guard", "guard-asan", "guard-image", "package", "journal")),
)
SHOWN = ("unit", "component", "cluster", "long", "nightly")


def grouped() -> dict[str, list[str]]:
    """The suites below the title of their group, in the order of SHOWN."""
    found: dict[str, list[str]] = {title: [] for title, _ in sorted(GROUPS, key=lambda group: SHOWN.index(group[0].split(":")[0]))}
    for name in SUITES:
        title = next(title for title, patterns in GROUPS if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))
        found[title].append(name)
    return found


def listing() -> str:
    lines = []
    for title, names in grouped().items():
        lines += [title, *(f"  {name:<17} {SUITES[name].purpose}" for name in names), ""]
    return "\n".join([*lines, f"Without SUITE: {', '.join(name for name, suite in SUITES.items() if suite.default)}"])


def options(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("suite", nargs="*", metavar="SUITE", type=one_of("suite", SUITES), default=[], help="which ones, of those below")
    parser.add_argument("-k", metavar="WORDS", default="", dest="only",
                        help="only tests with these words in their names; pytest's expressions work where pytest runs them")
    parser.epilog = listing()


def summary(chosen: list[str], passed: list[str], failed: list[str], seconds: float) -> str:
    """The last line of a run."""
    skipped = [name for name in chosen if name not in (*passed, *failed)]
    counts = [f"{len(passed)} passed", f"{len(failed)} failed" + (f" ({', '.join(failed)})" if failed else "")]
    counts += [f"{len(skipped)} not run ({', '.join(skipped)})"] if skipped else []
    return f"== {len(chosen)} suite{'s' if len(chosen) != 1 else ''} in {seconds:.0f} s: {', '.join(counts)}"


def run(args: argparse.Namespace) -> int:
    if args.only and not args.suite:
        raise Failure(f"-k {args.only} needs the suite that has the test; --help lists them")
    chosen = list(dict.fromkeys(args.suite)) or [name for name, suite in SUITES.items() if suite.default]
    passed: list[str] = []
    failed: list[str] = []
    began = time.monotonic()
    ONLY.set(args.only)
    try:
        with chroot.prepared(chroot.Chroot()) as inside:
            for name in chosen:
                print(f"== {name}: {SUITES[name].purpose}", flush=True)
                failed.append(name)     # until it has passed: it may raise
                if SUITES[name].run(inside):
                    passed.append(failed.pop())
    finally:
        print(summary(chosen, passed, failed, time.monotonic() - began), flush=True)
    return 1 if failed else 0


COMMANDS = [Command("test", "run test suites; without a name those that need no guest", run, options)]
