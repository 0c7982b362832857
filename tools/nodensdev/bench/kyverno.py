# SPDX-License-Identifier: Apache-2.0
"""Kyverno's admission controller beside nodens-guard, driven on its webhook's port.

It has its own API server and one rule of pod security, and the lightest load possible: a cluster
with nothing but the load's namespaces, no reports, no events, the leader's work done before the
load.
"""
import json
import subprocess
from pathlib import Path
from typing import Any

from .. import cluster
from ..cluster.controlplane import STATE
from ..command import Failure
from ..env import chroot, goprograms
from ..project import TOP
from . import priority

MODULE = "github.com/kyverno/kyverno"
INSTALL = "config/install-latest-testing.yaml"    # of the module's own tree: definitions, settings, service accounts
POLICY = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "pod-security"},
          "spec": {"background": False, "rules": [
    {"name": "restricted", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
     "validate": {"failureAction": "Enforce", "podSecurity": {"level": "restricted", "version": "latest"}}}]}}


def checked(done: subprocess.CompletedProcess[str], what: str) -> None:
    if done.returncode != 0:
        raise Failure(f"{what}: {done.stderr[-2000:]}")


def fill(one: cluster.Cluster, namespaces: int) -> None:
    """What Kyverno finds: its definitions and settings, a policy, and the namespaces of the load."""
    sources = goprograms.source_directory("kyverno", MODULE)
    checked(one.kubectl("apply", "--server-side", "-f", "-", stdin=(sources / INSTALL).read_text(), timeout=300), "Kyverno's manifests")
    checked(one.kubectl("wait", "--for=condition=Established", "crd/clusterpolicies.kyverno.io", "--timeout=60s"), "Kyverno's definitions")
    checked(one.kubectl("apply", "-f", "-", stdin=json.dumps(POLICY)), "Kyverno's policy")
    made = [json.dumps({"method": "POST", "path": "/api/v1/namespaces",
                        "body": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number}"}}})
            for number in range(namespaces)]
    checked(one.run(["python3", "-B", "/nodens/tests/component/guard/batch.py"], timeout=300, stdin="\n".join(made)),
            "the load's namespaces")


def measure(seconds: int, namespaces: int, target: Path) -> dict[str, Any]:
    """`target` is a file of the tree for what tests/component/guard/bench.py finds."""
    program = goprograms.ensure("kyverno")
    one = cluster.up(cluster.Options(name="bench-kyverno", nodes=0, images=()))
    try:
        fill(one, namespaces)
        place = chroot.Chroot(root="build", netns=one.netns, binds=(chroot.Bind(one.state, STATE),), holds=(program,))
        with chroot.prepared(place) as inside, priority.raised("the machine's own"):
            code = inside.run(["python3", "-B", "tests/component/guard/bench.py", "--builds", "build/release", "--seconds", str(seconds),
                               "--kyverno", str(chroot.seen_inside(program / "kyverno")),
                               "--kubeconfig", str(STATE / "admin.kubeconfig"), str(target.relative_to(TOP))])
    finally:
        one.end()
    if code != 0:
        raise Failure(f"the bench of Kyverno ended with {code}")
    return json.loads(target.read_text())
