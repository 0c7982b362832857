# SPDX-License-Identifier: Apache-2.0
"""Changes components of a running cluster: the kubelet of a node, its feature gates, flags of the control plane.

    switch.kubelet(one, "1.33", {"UserNamespacesSupport": False})      # returns when the node is Ready
    switch.flags(one, "kube-apiserver", "--feature-gates=A=true")      # returns when it answers

Pods keep running meanwhile: a kubelet is stopped and another one started on the same files, as in an upgrade.
"""
import calendar
import json
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..command import Failure
from ..env import goprograms
from . import addresses, controlplane, node
from .handle import Cluster
from .options import KUBELETS

OWN = "1.37"        # the control plane's own kubelet, as `version`
PROGRAMS = "/usr/local/lib/kubelets"
CONFIGURATION = "/etc/kubernetes/kubelet.json"
TIMEOUT = 300.0
# Starts another kubelet in place of the one that runs, which is what an upgrade of its package does.
REPLACE = f"""\
set -e
systemctl stop kubelet.service
cat >{CONFIGURATION}.new
mv {CONFIGURATION}.new {CONFIGURATION}
ln -sfn "{PROGRAMS}/$1" {node.KUBELET}
systemctl reset-failed kubelet.service 2>/dev/null || :    # fails unless it had failed
systemctl start kubelet.service
"""


def program(version: str) -> Path:
    return goprograms.ensure("kubernetes" if version == OWN else KUBELETS[version]) / "kubelet"


def reported_version(version: str) -> str:
    """What the Node object says about this kubelet."""
    name = "kubernetes" if version == OWN else KUBELETS[version]
    return goprograms.recipe_of(name).version or goprograms.pinned_version(name, "k8s.io/kubernetes")


def kubelet(one: Cluster, version: str, gates: Mapping[str, bool], number: int = 1, ready: bool = True) -> None:
    """Gives a node another kubelet, with these feature gates instead of those it has.

    Returns when the Node object is that of the new kubelet and Ready; with ready=False at once.
    """
    put_program(one, version, number)
    settings = json.loads(on_node(one, number, ["cat", CONFIGURATION]))
    settings["featureGates"] = dict(gates)
    since = now(one, number)
    on_node(one, number, ["sh", "-c", REPLACE, "replace", version], stdin=json.dumps(settings, indent=1))
    if ready:
        wait_for(lambda: is_ready_since(one, number, version, since), f"kubelet {version} of {addresses.node_name(number)} to be Ready")


def put_program(one: Cluster, version: str, number: int) -> None:
    """Copies a kubelet to a node, unless it is there."""
    target = f"{PROGRAMS}/{version}"
    if one.node_exec(["test", "-x", target], number).returncode == 0:
        return
    script = f"mkdir -p {PROGRAMS} && cat >{target}.new && chmod 755 {target}.new && mv {target}.new {target}"
    one.send(program(version), ["sh", "-c", script], number)


def is_ready_since(one: Cluster, number: int, version: str, since: float) -> bool:
    """Whether the kubelet has reported, after a moment of the node's clock, that it is Ready."""
    done = one.kubectl("get", "node", addresses.node_name(number), "-o", "json", timeout=20)
    if done.returncode != 0:
        return False
    status = json.loads(done.stdout)["status"]
    ready: dict[str, Any] = next((item for item in status.get("conditions", []) if item["type"] == "Ready"), {})
    return (status.get("nodeInfo", {}).get("kubeletVersion") == reported_version(version) and ready.get("status") == "True"
            and seconds_of(ready["lastHeartbeatTime"]) > since)


def seconds_of(stamp: str) -> float:
    return float(calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")))


def now(one: Cluster, number: int) -> float:
    return float(on_node(one, number, ["date", "+%s"]))


def on_node(one: Cluster, number: int, argv: list[str], stdin: str | None = None) -> str:
    done = one.node_exec(argv, number, stdin=stdin)
    if done.returncode != 0:
        raise Failure(f"`{' '.join(argv)[:60]}` failed on {addresses.node_name(number)}: {done.stderr.strip()}")
    return done.stdout


def flags(one: Cluster, service: str, *more: str) -> None:
    """Starts a component of the control plane again, with flags after those it was started with; those of an earlier call go."""
    path = one.state / "plan.json"
    plan: dict[str, Any] = json.loads(path.read_text())
    known = {item["name"]: item for item in plan["services"]}
    if service not in known:
        raise Failure(f"the cluster '{one.name}' has no service '{service}' (there are: {', '.join(known)})")
    known[service]["more"] = list(more)
    controlplane.replace_plan(path, plan)
    one.start_again(service)
    wait_for(lambda: answers(one, service), f"{service} to be ready")


def answers(one: Cluster, service: str) -> bool:
    if service in one.status()["ended"]:
        end = (one.state / f"logs/{service}.log").read_text(errors="replace").splitlines()[-1:]
        raise Failure(f"{service} ended: {' '.join(end)}")
    try:
        return one.kubectl("get", "--raw", "/readyz", timeout=10).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(f"waited {TIMEOUT:.0f} s for {what}")
        time.sleep(0.3)
