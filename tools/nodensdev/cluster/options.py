# SPDX-License-Identifier: Apache-2.0
"""What can be asked of a cluster."""
import argparse
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..command import Failure
from ..env import disk, kernel

MAX_NODES = 3
DEFAULT_NAME = "dev"
# Beta or alpha gates that KEP-127 and KEP-5607 need beyond the release's defaults.
DEFAULT_GATES = ("UserNamespacesHostNetworkSupport=true",)
RUNTIMES = ("containerd", "nodens")
# Kubelets of older minors: each has a set of tests/peers/binaries.toml.
OLD_KUBELETS = {"1.36": "kubernetes-1.36", "1.35": "kubelet-35", "1.34": "kubelet-34", "1.33": "kubelet-33"}
OLD_PLANES = {"1.36": "kubernetes-1.36"}
# A kubelet may be at most three minors older than its API server.
PLANES_OF_KUBELETS = {"1.33": "1.36"}
# Kubelets that today's control plane does not support. "relinked" is the control plane's own, linked with an older version string.
UNSUPPORTED_KUBELETS = {"1.32": "kubelet-1.32", "1.29": "kubelet-1.29", "relinked": "kubelet-relinked"}
KUBELETS = OLD_KUBELETS | UNSUPPORTED_KUBELETS


@dataclass(frozen=True)
class Webhook:
    """A server for the API server to call: a command in the control plane's namespaces, with a certificate of its own."""

    name: str
    command: str


@dataclass(frozen=True)
class Options:
    """A cluster, as asked for."""

    name: str = DEFAULT_NAME
    runtime: str = "containerd"
    kernel: str = "uml"
    nodes: int = 1
    memory: str = "4G"
    cpus: int = 2
    cgroup_driver: str = "cgroupfs"
    feature_gates: tuple[str, ...] = DEFAULT_GATES
    plane: str | None = None           # a minor of OLD_PLANES; None: what the kubelet needs, or the testbed's own
    kubelet: str | None = None         # a minor of KUBELETS; None: the testbed's own
    kubelet_gates: tuple[str, ...] | None = None    # None: those of all components; of an older kubelet: none
    kubelet_args: tuple[str, ...] = ()
    kubelet_config: dict[str, Any] = field(default_factory=dict)
    apiserver_args: tuple[str, ...] = ()
    authorization_config: Path | None = None
    webhooks: tuple[Webhook, ...] = ()
    apply: tuple[Path, ...] = ()
    images: tuple[str, ...] = ("e2e",)
    registry: str | None = None        # how it authenticates; None: no registry
    timeout: float = 600
    rootless: bool = False             # nodes of the user alice, by nodens-rootless
    join: bool = True                  # False: rootless hosts are prepared, and alice has not started her node
    subordinate_ids: int = 65536       # of alice
    flannel: bool = False              # of rootless nodes: their CNI configuration leaves other nodes to flannel, which is not started
    rootless_args: tuple[str, ...] = ()    # more words for `nodens-rootless up`

    def plane_programs(self) -> str:
        """The set of tests/peers/binaries.toml that the control plane is of."""
        minor = self.plane or PLANES_OF_KUBELETS.get(self.kubelet or "")
        return OLD_PLANES[minor] if minor else "kubernetes"

    def check(self) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,29}", self.name):
            raise Failure(f"'{self.name}' is no cluster name; use up to 30 of a-z, 0-9 and '-'")
        if not 0 <= self.nodes <= MAX_NODES:
            raise Failure(f"--nodes {self.nodes}: a cluster has 0 (a control plane alone) to {MAX_NODES} nodes")
        if self.rootless and not kernel.KERNELS[self.kernel].nat:
            raise Failure(f"--rootless needs a kernel with NAT for the nodes, not '{self.kernel}': use --kernel uml-nft or debian")
        if not self.join and not self.rootless:
            raise Failure("--no-join is for --rootless")
        disk.size_in_mebibytes(self.memory)
        for path in (*self.apply, *([self.authorization_config] if self.authorization_config else [])):
            if not path.is_file():
                raise Failure(f"{path}: no such file")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runtime", choices=RUNTIMES, default="containerd")
    parser.add_argument("--kernel", choices=list(kernel.KERNELS), default="uml", help="the nodes' kernel (see tools/dev vm)")
    parser.add_argument("--nodes", type=int, default=1, help=f"0, a control plane alone, to {MAX_NODES} (default: 1)")
    parser.add_argument("--memory", default="4G", help="of each node (default: 4G)")
    parser.add_argument("--cpus", type=int, default=2, help="of each node (default: 2; User-mode Linux has one)")
    parser.add_argument("--cgroup-driver", choices=("cgroupfs", "systemd"), default="cgroupfs")
    parser.add_argument("--feature-gates", default=",".join(DEFAULT_GATES), metavar="GATE=BOOL,...",
                        help=f"for all components (default: {','.join(DEFAULT_GATES)})")
    parser.add_argument("--kubelet", choices=list(KUBELETS), metavar="VERSION",
                        help=f"a stock kubelet of an older minor: {', '.join(OLD_KUBELETS)}; or one that the control plane does "
                             f"not support: {', '.join(UNSUPPORTED_KUBELETS)} (the testbed's own, with an older version string)")
    parser.add_argument("--control-plane", choices=list(OLD_PLANES), metavar="VERSION", dest="plane",
                        help=f"a control plane of an older minor: {', '.join(OLD_PLANES)} (default with --kubelet 1.33: 1.36)")
    parser.add_argument("--kubelet-gates", metavar="GATE=BOOL,...",
                        help="for the kubelet, instead of --feature-gates (default with --kubelet: none, since it does "
                        "not start with a gate that it does not know)")
    parser.add_argument("--kubelet-arg", action="append", default=[],
                        metavar="--FLAG=VALUE", help="a flag more for the kubelet")
    parser.add_argument("--kubelet-config", type=Path, metavar="FILE", help="JSON merged over the kubelet's configuration")
    parser.add_argument("--apiserver-arg", action="append", default=[],
                        metavar="--FLAG=VALUE", help="a flag more for the API server")
    parser.add_argument("--authorization-config", type=Path, metavar="FILE",
                        help="instead of Node,RBAC; @STATE@ in it becomes the directory with pki/ (CA and certificates)")
    parser.add_argument("--webhook", action="append", default=[], metavar="NAME=COMMAND",
                        help="run COMMAND beside the API server, with TLS_CERT, TLS_KEY and TLS_CA in its environment "
                             "(the certificate is for NAME, 127.0.0.1 and the control plane's address)")
    parser.add_argument("--apply", action="append", type=Path, default=[], metavar="FILE",
                        help="a manifest to apply when the API server is up; @CA_BUNDLE@ in it becomes the CA, in base64")
    parser.add_argument("--images", default="e2e", help="image sets that nodes have preloaded (default: e2e; empty: none)")
    parser.add_argument("--registry", nargs="?", const="none", metavar="AUTH",
                        help="serve the test images: none, basic or token")
    parser.add_argument("--rootless", action="store_true",
                        help="nodes of the user alice, without privileges, by nodens-rootless (--kernel uml-nft or debian)")
    parser.add_argument("--no-join", action="store_true",
                        help="with --rootless: prepare alice's account, and leave `~alice/join` to you; does not wait for nodes")
    parser.add_argument("--subordinate-ids", type=int, default=65536, metavar="N", help="with --rootless: alice's (default: 65536)")
    parser.add_argument("--rootless-arg", action="append", default=[], metavar="--OPTION=VALUE",
                        help="with --rootless: an option more for `nodens-rootless up`")
    parser.add_argument("--timeout", type=float, default=600, help="seconds until every node must be Ready (default: 600)")


def from_arguments(args: argparse.Namespace) -> Options:
    hooks = [text.partition("=") for text in args.webhook]
    if any(not name or not command for name, _, command in hooks):
        raise Failure("--webhook wants NAME=COMMAND")
    return Options(
        name=args.name, runtime=args.runtime, kernel=args.kernel, nodes=args.nodes, memory=args.memory, cpus=args.cpus,
        cgroup_driver=args.cgroup_driver, feature_gates=tuple(gate for gate in args.feature_gates.split(",") if gate),
        plane=args.plane, kubelet=args.kubelet,
        kubelet_gates=None if args.kubelet_gates is None else tuple(gate for gate in args.kubelet_gates.split(",") if gate),
        kubelet_args=tuple(args.kubelet_arg),
        kubelet_config=json.loads(args.kubelet_config.read_text()) if args.kubelet_config else {},
        apiserver_args=tuple(args.apiserver_arg), authorization_config=args.authorization_config,
        webhooks=tuple(Webhook(name, command) for name, _, command in hooks), apply=tuple(args.apply),
        images=tuple(name for name in args.images.split(",") if name), registry=args.registry, timeout=args.timeout,
        rootless=args.rootless, join=not args.no_join, subordinate_ids=args.subordinate_ids, rootless_args=tuple(args.rootless_arg))
