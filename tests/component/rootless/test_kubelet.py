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


def test_a_stock_node_joins_and_registers(cluster: None) -> None:
    with node("stock", "--join", str(KUBECONFIG), "--runtime", "containerd", "--programs", str(PROGRAMS), "--node-name", "worker-1",
              "--labels", "site=lab", "--taint", "--max-pods", "7", "--no-cgroups") as made:
        try:
            ready(made, "runtime", "proxy")
            machine.wait_for(lambda: node_object("worker-1").get("kind") == "Node", 90, "the kubelet has registered the node")
            ready(made, "kubelet")
        finally:
            print("\n".join(line[:300] for line in made.log.read_text(errors="replace").splitlines()[-60:]))
        found = node_object("worker-1")
        assert found["metadata"]["labels"]["site"] == "lab" and found["status"]["capacity"]["pods"] == "7"
        assert {"key": "kubernetes.io/running-in-user-namespace", "value": "true", "effect": "NoSchedule"} in found["spec"]["taints"]
        assert found["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
        assert [one["address"] for one in found["status"]["addresses"] if one["type"] == "InternalIP"] == [machine.ALPHA4]
        machine.wait_for(lambda: "table ip kube-proxy" in made.shell("nft", "list", "tables").stdout, 60, "kube-proxy has its table")
        assert machine.alive(component(made, "kubelet")["pid"])
