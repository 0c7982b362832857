# SPDX-License-Identifier: Apache-2.0
"""Bringing a cluster up: everything that can be made beforehand is made on the machine, then one process is started.

Theory of operation
  The state directory is filled (certificates, kubeconfigs, every node's exchange, the supervisor's plan), then a gate
  (enter_chroot.py) opens a chroot of the testbed root with pid, mount and network namespaces of its own, in which the supervisor starts
  the processes. All of the cluster is below the gate: killing it ends everything, and the network goes with its namespace.
  As long as we wait for the nodes, the supervisor watches a pipe from us; only when they are Ready do we write `keep` to it.
  So an interrupted `up`, even a killed one, leaves no process behind.
"""
import base64
import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from .. import registry
from ..command import Failure
from ..env import cache, chroot, goprograms, guest, kernel, machine, root
from ..project import BUILD, INSIDE, TOP
from . import addresses, controlplane, handle, node, pki, rootless
from .controlplane import STATE, Service
from .handle import Cluster
from .options import Options

SUPERVISOR = INSIDE / Path(__file__).with_name("supervisor.py").relative_to(TOP)
FAILED_LOGS = BUILD / "cluster-logs"


def up(options: Options) -> Cluster:
    """Starts a cluster and returns when every node is Ready."""
    machine.need_root("a cluster")
    options.check()
    with handle.reserved(options.name):
        one = Cluster(options.name)
        if one.is_running():
            raise Failure(f"a cluster '{options.name}' is running already; "
                          f"end it with `tools/dev cluster down --name {options.name}`")
        one.end()  # what a killed command may have left on disk
        base, binaries = kind(options).node_disk(options) if options.nodes else None, goprograms.ensure(options.plane_programs())
        started = time.monotonic()
        try:
            site = prepare(one, options, base, binaries)
            start_and_wait(one, options, site, (base.parent, binaries) if base else (binaries,))
        except BaseException:
            save_logs(one)
            one.end()
            raise
    state = "Ready" if options.join else "prepared"
    machine.say(f"cluster '{one.name}' is up: {options.nodes} {state} after {time.monotonic() - started:.1f} s")
    return one


def kind(options: Options) -> ModuleType:
    """What makes a guest a node."""
    return rootless if options.rootless else node


def prepare(one: Cluster, options: Options, base: Path | None, binaries: Path) -> registry.Site | None:
    """Fills the state directory."""
    for name in ("pki", "logs", "scratch"):
        (one.state / name).mkdir(parents=True)
    one.state.chmod(0o711)
    (one.state / "cluster.json").write_text(json.dumps({
        "nodes": options.nodes, "runtime": options.runtime, "kernel": options.kernel, "rootless": options.rootless,
        "binaries": str(chroot.seen_inside(binaries))}))
    place = chroot.Chroot(root="testbed", binds=(chroot.Bind(one.state, STATE),), cwd=STATE / "pki")
    with chroot.prepared(place) as inside:
        guest.checked(inside, ["sh", "-c", pki.script(options)])
        site = prepare_registry(one, options)
        write_configuration(one, options)
        for number in range(1, options.nodes + 1):
            work = one.state / addresses.node_name(number)
            work.mkdir()
            kind(options).write(options, number, one.state / "pki", work / kernel.EXCHANGE, site)
            assert base
            boot = node.boot(options, number, base, STATE / work.name)
            guest.make_disks(inside, kernel.KERNELS[options.kernel], boot, work)
    services = guests(options, base) + registry_services(one, site) + controlplane.services(options, chroot.seen_inside(binaries))
    controlplane.write_plan(one.state / "plan.json", controlplane.network(options), services)
    return site


def write_configuration(one: Cluster, options: Options) -> None:
    nodes = [addresses.node_name(number) for number in range(1, options.nodes + 1)]
    for name in ("admin", "controller-manager", "scheduler", "proxy", *nodes):
        (one.state / f"{name}.kubeconfig").write_text(pki.kubeconfig(one.state / "pki", name))
    (one.state / "proxy.json").write_text(json.dumps(
        controlplane.proxy_configuration(STATE / "proxy.kubeconfig", addresses.node_name(1), masquerade_all=True)))
    host_key = (one.state / "pki/ssh-host.pub").read_text()
    (one.state / "known_hosts").write_text("".join(f"{addresses.node(n)} {host_key}" for n in range(1, options.nodes + 1)))
    if options.authorization_config:
        text = options.authorization_config.read_text().replace("@STATE@", str(STATE))
        (one.state / "authorization.yaml").write_text(text)


def prepare_registry(one: Cluster, options: Options) -> registry.Site | None:
    if options.registry is None:
        return None
    site = registry.Site(one.state / "registry", addresses.CONTROL_PLANE, registry.PORT, options.registry)
    site.prepare(registry.storage.filled())
    return site


def registry_services(one: Cluster, site: registry.Site | None) -> list[Service]:
    if site is None:
        return []

    def inside(path: Path) -> Path:
        if path.is_relative_to(one.state):
            return STATE / path.relative_to(one.state)
        return chroot.seen_inside(path) if path.is_relative_to(cache.top()) else INSIDE / path.relative_to(TOP)

    commands = site.commands(inside)
    return [Service(f"registry-{number}", argv, cwd=str(STATE / "registry")) for number, argv in enumerate(commands, 1)]


def guests(options: Options, base: Path | None) -> list[Service]:
    """The nodes' guests, which start first, because they take longest.

    The kubelet retries until the API server is up.
    """
    if base is None:
        return []
    chosen = kernel.KERNELS[options.kernel]
    names = {number: addresses.node_name(number) for number in range(1, options.nodes + 1)}
    return [Service(name, chosen.command(node.boot(options, number, base, STATE / name)), console=True)
            for number, name in names.items()]


def start_and_wait(one: Cluster, options: Options, site: registry.Site | None, holds: tuple[Path, ...]) -> None:
    place = chroot.Chroot(root="testbed", binds=(chroot.Bind(one.state, STATE),), cwd=STATE, new_netns=True,
                          holds=(*holds, *kernel_of(options)))
    inside = chroot.furnished(place, root.ensure("testbed"), one.state / "scratch")
    command = inside.command(["python3", "-B", str(SUPERVISOR)], die_with_parent=False)
    with (one.state / "logs/supervisor.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
                                   start_new_session=True)
    born = handle.Process.of(process.pid)
    (one.state / "gate").write_text(f"{born.pid} {born.born}\n")
    wait(one, options, process, site)
    assert process.stdin
    process.stdin.write(b"keep\n")
    process.stdin.close()
    process.returncode = 0  # it lives on without us: no warning about that


def kernel_of(options: Options) -> list[Path]:
    if options.nodes == 0:
        return []
    return [kernel.KERNELS[options.kernel].entry()]


def wait(one: Cluster, options: Options, process: subprocess.Popen[bytes], site: registry.Site | None) -> None:
    """Waits for the control plane, then for the nodes, applying what was asked for in between."""
    deadline = time.monotonic() + options.timeout
    wait_until(lambda: one.status()["state"] == "up", process, deadline, "the control plane did not come up")
    for path in options.apply:
        apply(one, path)
    if options.rootless:
        checked_kubectl(one, "apply", "-f", "-", stdin=rootless.CONTROLLER_ROLE)
    if site:
        site.wait(one.netns)
    if options.join:
        wait_until(lambda: len(one.ready_nodes()) == options.nodes, process, deadline, "not every node became Ready")
    else:
        wait_until(lambda: all(one.node_exec(["true"], number + 1).returncode == 0 for number in range(options.nodes)), process, deadline,
                   "not every host came up")
    wait_until(one.takes_pods, process, deadline, "the default service account was not made")


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes], deadline: float, problem: str) -> None:
    while not condition():
        if process.poll() is not None:
            raise Failure(f"{problem}: its supervisor ended (logs: {FAILED_LOGS.relative_to(TOP)})")
        if time.monotonic() > deadline:
            raise Failure(f"{problem} in time (logs: {FAILED_LOGS.relative_to(TOP)})")
        time.sleep(0.2)


def apply(one: Cluster, path: Path) -> None:
    bundle = base64.b64encode((one.state / "pki/ca.crt").read_bytes()).decode()
    checked_kubectl(one, "apply", "-f", "-", stdin=path.read_text().replace("@CA_BUNDLE@", bundle))


def checked_kubectl(one: Cluster, *arguments: str, stdin: str | None = None) -> None:
    done = one.kubectl(*arguments, stdin=stdin)
    if done.returncode != 0:
        raise Failure(f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()}")


def save_logs(one: Cluster) -> None:
    """Keeps the logs of a cluster that did not start, outside its state directory."""
    target = FAILED_LOGS / one.name
    shutil.rmtree(target, ignore_errors=True)
    with contextlib.suppress(OSError, Failure):
        one.copy_logs(target)
    for path in sorted(target.glob(f"{addresses.node_name(1)}*.log")):
        print(f"the end of {path.relative_to(TOP)}:", file=sys.stderr)
        print("\n".join("| " + line for line in path.read_text(errors="replace").splitlines()[-20:]), file=sys.stderr)
