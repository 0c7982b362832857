# SPDX-License-Identifier: Apache-2.0
"""`tools/dev cluster`: stock Kubernetes on one machine, with nodes in guests.

    one = cluster.up(cluster.Options(name="mine", nodes=2))
    one.kubectl("get", "nodes"); one.node_exec(["crun", "--version"], node=2)
    one.end()

bringup.py starts a cluster, handle.py is one that runs, switch.py changes it, controlplane.py and node.py say what is in it.
"""
import argparse
import os
import shutil
import sys
from pathlib import Path

from .. import images
from ..command import Command, Failure
from . import switch
from .bringup import up
from .handle import Cluster, every, find, reserved
from .options import DEFAULT_NAME, KUBELETS, Options, Webhook, add_arguments, from_arguments

__all__ = ["COMMANDS", "Cluster", "Options", "Webhook", "every", "find", "up"]


def options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="up|down|status|kubectl|kubelet|logs|ssh")
    parsers = {name: actions.add_parser(name, help=text) for name, text in (
        ("up", "start a cluster and wait until its nodes are Ready"),
        ("down", "end a cluster: nothing of it is left"),
        ("status", "show the clusters that run"),
        ("kubectl", "kubectl as the cluster's administrator; its arguments after --"),
        ("kubelet", "give a node another kubelet, while its pods run"),
        ("logs", "show or copy a component's log, or a node's journal"),
        ("ssh", "a prompt or a command on a node"))}
    for one in parsers.values():
        one.add_argument("--name", default=DEFAULT_NAME, help=f"which cluster (default: {DEFAULT_NAME})")
    add_arguments(parsers["up"])
    parsers["down"].add_argument("--all", action="store_true", help="all clusters of this tree")
    parsers["kubectl"].add_argument("arguments", nargs=argparse.REMAINDER)
    parsers["kubelet"].add_argument("version", choices=[switch.OWN, *KUBELETS], metavar="VERSION",
                                    help=f"{switch.OWN}, the control plane's, or one of `cluster up --kubelet`")
    parsers["kubelet"].add_argument("--gates", default="", metavar="GATE=BOOL,...", help="all its feature gates (default: none)")
    parsers["kubelet"].add_argument("--node", type=int, default=1)
    parsers["kubelet"].add_argument("--no-wait", action="store_true", help="do not wait until the node is Ready")
    parsers["logs"].add_argument("--to", type=Path, metavar="DIR", help="copy all logs there, the nodes' journals included")
    parsers["logs"].add_argument("component", nargs="?", help="etcd, kube-apiserver, node1, node1-console, ...")
    parsers["ssh"].add_argument("--node", type=int, default=1)
    parsers["ssh"].add_argument("--user", default="root", help="default: root; alice on the host of a rootless node")
    parsers["ssh"].add_argument("arguments", nargs=argparse.REMAINDER)


def without_dashes(arguments: list[str]) -> list[str]:
    return arguments[1:] if arguments[:1] == ["--"] else arguments


def next_steps(wanted: Options) -> str:
    """What to do with a new cluster, as commands that can be copied."""
    sudo = "sudo " if "SUDO_USER" in os.environ else ""
    name = "" if wanted.name == DEFAULT_NAME else f" --name {wanted.name}"
    found = sorted(image for one in wanted.images for image in images.layout(one).images)
    shown = next((image for image in found if "/busybox:" in image), "")
    overrides = """ --overrides='{"spec":{"hostUsers":false}}'"""
    lines = ["", "images on the nodes, which cannot reach the Internet:" if found else "the nodes have no images (--images)",
             *(f"  {image}" for image in found), "", "next:"]
    if shown:
        lines.append(f"  {sudo}tools/dev cluster kubectl{name} -- run show --image={shown} --restart=Never{overrides} -- sleep 3600")
    return "\n".join([*lines, f"  {sudo}tools/dev cluster ssh{name} -- nodens pods" if wanted.runtime == "nodens" else
                      f"  {sudo}tools/dev cluster ssh{name}", f"  {sudo}tools/dev cluster down{name}"])


def run_up(args: argparse.Namespace) -> int:
    wanted = from_arguments(args)
    one = up(wanted)
    print(one.kubectl("get", "nodes", "-o", "wide").stdout, end="")
    print(next_steps(wanted))
    return 0


def run_down(args: argparse.Namespace) -> int:
    for one in every() if args.all else [Cluster(args.name)]:
        with reserved(one.name):
            one.end()
    return 0


def run_status(args: argparse.Namespace) -> int:
    running = [one for one in every() if one.is_running()]
    for one in running:
        status, record = one.status(), one.record
        ended = ", ".join(f"{name} ({code})" for name, code in status["ended"].items())
        ready = ", ".join(one.ready_nodes()) or "none"
        print(f"{one.name}: {status['state']}, {record['runtime']} on {record['kernel']}, Ready: {ready}"
              + (f", ended: {ended}" if ended else ""))
    if not running:
        print("no cluster is running")
    return 0


def run_kubectl(args: argparse.Namespace) -> int:
    command = find(args.name).kubectl_command(*without_dashes(args.arguments))
    os.execvp(command[0], command)


def run_kubelet(args: argparse.Namespace) -> int:
    gates = {gate: value == "true" for gate, _, value in (text.partition("=") for text in args.gates.split(",") if text)}
    switch.kubelet(find(args.name), args.version, gates, args.node, ready=not args.no_wait)
    return 0


def run_logs(args: argparse.Namespace) -> int:
    one = Cluster(args.name)
    if args.to:
        one.copy_logs(args.to)
        return 0
    logs = {path.stem: path for path in sorted((one.state / "logs").glob("*.log"))}
    if args.component not in logs:
        if args.component:
            raise Failure(f"no log '{args.component}'; there are: {', '.join(logs) or 'none'}")
        print("\n".join(logs))
        return 0
    with logs[args.component].open() as stream:
        shutil.copyfileobj(stream, sys.stdout)
    return 0


def run_ssh(args: argparse.Namespace) -> int:
    one = find(args.name)
    terminal = ["-t"] if sys.stdin.isatty() else []
    start, *rest = one.ssh_command(args.node, args.user)
    command = one.command([start, *terminal, *rest, *without_dashes(args.arguments)])
    os.execvp(command[0], command)


ACTIONS = {"up": run_up, "down": run_down, "status": run_status, "kubectl": run_kubectl, "kubelet": run_kubelet, "logs": run_logs,
           "ssh": run_ssh}


def run(args: argparse.Namespace) -> int:
    return ACTIONS[args.action](args)


COMMANDS = [Command("cluster", "stock Kubernetes on this machine: up, down, status, kubectl, kubelet, logs, ssh", run, options)]
