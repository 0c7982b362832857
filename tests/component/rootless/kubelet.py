# SPDX-License-Identifier: Apache-2.0
"""A real kubelet, kube-proxy and containerd in a node, with a real API server, where the kernel has no cgroup controllers."""
import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import call, control_plane
from nodenstest import machine
from nodenstest.machine import HOME, ROUTER4, node
from test_components import component, ready

PROGRAMS, KUBECONFIG = HOME / "kubernetes", HOME / "real-kubeconfig"
NAMES = {"kubernetes": ("kubelet", "kube-proxy"), "containerd": ("containerd", "containerd-shim-runc-v2", "ctr")}


def cached(directory: str, name: str) -> Path:
    found = sorted(Path(f"/cache/go/{directory}").glob(f"*/{name}"), key=lambda path: path.stat().st_mtime)
    if not found:
        pytest.skip(f"`tools/dev gobin {directory}` has not been run")
    return found[-1]


@pytest.fixture
def cluster() -> Iterator[None]:
    PROGRAMS.mkdir(exist_ok=True)
    for directory, names in NAMES.items():
        for name in names:
            shutil.copy(cached(directory, name), PROGRAMS / name)
    KUBECONFIG.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"https://{ROUTER4}:6443", "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": {"token": "proof"}}]}))
    os.chown(KUBECONFIG, machine.UID, machine.UID)
    try:
        with control_plane():
            yield
    finally:
        shutil.rmtree(PROGRAMS)


def node_object(name: str) -> dict[str, Any]:
    with contextlib.suppress(AssertionError):
        return call("GET", f"/api/v1/nodes/{name}")
    return {}


@contextlib.contextmanager
def stock(name: str, *options: str) -> Iterator[machine.Node]:
    """A node with the stock programs. A failed test shows the end of its log."""
    with node(name, "--join", str(KUBECONFIG), "--runtime", "containerd", "--programs", str(PROGRAMS), "--no-cgroups", *options) as made:
        try:
            yield made
        finally:
            print("\n".join(line[:300] for line in made.log.read_text(errors="replace").splitlines() if "watcher.go" not in line))


def registered(name: str) -> bool:
    return bool(node_object(name).get("status", {}).get("addresses"))


def test_a_stock_node_joins_and_registers(cluster: None) -> None:
    with stock("stock", "--node-name", "worker-1", "--labels", "site=lab", "--taint", "--max-pods", "7") as made:
        ready(made, "runtime", "proxy", "kubelet")
        machine.wait_for(lambda: registered("worker-1"), 90, "the kubelet has registered the node")
        found = node_object("worker-1")
        assert found["metadata"]["labels"]["site"] == "lab" and found["status"]["capacity"]["pods"] == "7"
        assert {"key": "kubernetes.io/running-in-user-namespace", "value": "true", "effect": "NoSchedule"} in found["spec"]["taints"]
        assert found["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
        assert [one["address"] for one in found["status"]["addresses"] if one["type"] == "InternalIP"] == [machine.ALPHA4]
        machine.wait_for(lambda: "table ip kube-proxy" in made.shell("nft", "list", "tables").stdout, 60, "kube-proxy has its table")
        listed = made.shell("nft", "list", "ruleset").stdout
        assert "10.96.0.1" in listed, "the API server's own Service"


def test_a_killed_kubelet_and_runtime_come_back(cluster: None) -> None:
    with stock("again", "--node-name", "worker-2") as made:
        ready(made, "runtime", "proxy", "kubelet")
        for name in ("kubelet", "runtime", "proxy"):
            before = component(made, name)["pid"]
            machine.kill(before)
            machine.wait_for(lambda name=name, old=before: component(made, name)["pid"] not in (0, old), 30, f"{name} has been restarted")
            ready(made, "runtime", "proxy", "kubelet")
        machine.wait_for(lambda: registered("worker-2"), 90, "the kubelet has registered the node")
