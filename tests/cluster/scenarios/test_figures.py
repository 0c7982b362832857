# SPDX-License-Identifier: Apache-2.0
"""The kubelet's metrics of pods, with the gate PodAndContainerStatsFromCRI and without it: docs/kubelet.md says what is missing then."""
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from nodenstest.people import Person, container

CONFIG = "/etc/kubernetes/kubelet.json"
BUSY = "dd if=/dev/zero of=/file bs=1M count=5; while :; do :; done"
# By place in the summary's tree; every figure must be there and more than nothing.
CONTAINER = ("cpu.usageNanoCores", "cpu.usageCoreNanoSeconds", "memory.usageBytes", "memory.workingSetBytes", "memory.rssBytes",
             "memory.availableBytes",
             "memory.pageFaults", "rootfs.usedBytes", "rootfs.inodesUsed", "rootfs.capacityBytes", "rootfs.availableBytes",
             "logs.capacityBytes")
POD = ("cpu.usageNanoCores", "cpu.usageCoreNanoSeconds", "memory.usageBytes", "memory.workingSetBytes", "memory.rssBytes",
       "ephemeral-storage.usedBytes")
ONLY_WITH_GATE = ("network.rxBytes", "network.txBytes", "process_stats.process_count")


def figure(tree: dict[str, Any], path: str) -> int:
    found: Any = tree
    for name in path.split("."):
        found = found.get(name, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, int) else 0


def summary(person: Person, name: str) -> dict[str, Any]:
    found = json.loads(person.node_says("stats/summary"))["pods"]
    return next((pod for pod in found if pod["podRef"]["name"] == name and pod["podRef"]["namespace"] == person.namespace), {})


def missing(pod: dict[str, Any], wanted: tuple[str, ...]) -> list[str]:
    containers = pod.get("containers") or [{}]
    return [path for path in CONTAINER if figure(containers[0], path) <= 0] + [path for path in wanted if figure(pod, path) <= 0]


def settle(person: Person, name: str, wanted: tuple[str, ...]) -> None:
    """The kubelet asks every 10 s, and a rate needs two answers."""
    try:
        person.until(lambda: not missing(summary(person, name), wanted), "figures", 90)
    except AssertionError:
        pytest.fail(f"missing in the summary: {missing(summary(person, name), wanted)} of {json.dumps(summary(person, name))}")


def samples(text: str, metric: str, pod: str) -> list[dict[str, str]]:
    """The labels of a metric's samples that are a pod's."""
    found = [dict(re.findall(r'(\w+)="([^"]*)"', line)) for line in text.splitlines() if line.startswith(metric + "{")]
    return [labels for labels in found if labels.get("pod") == pod]


@pytest.fixture
def busy(person: Person, host_users: bool) -> str:
    person.pod("busy", container(BUSY, resources={"limits": {"cpu": "200m", "memory": "64Mi"}}), hostUsers=host_users)
    person.ready("busy")
    return "busy"


def test_the_summary_is_complete(person: Person, busy: str) -> None:
    settle(person, busy, POD + ONLY_WITH_GATE)
    person.until(lambda: figure(summary(person, busy)["containers"][0], "rootfs.usedBytes") >= 5 << 20,
                 "all that was written, at most 30 s later", 60)
    used = summary(person, busy)["containers"][0]
    assert 50_000_000 < figure(used, "cpu.usageNanoCores") < 400_000_000


def test_metrics_have_the_names_of_pods_and_containers(person: Person, busy: str) -> None:
    person.until(lambda: samples(person.node_says("metrics/cadvisor"), "container_network_receive_bytes_total", busy), "the pod's metrics",
                 60)
    text = person.node_says("metrics/cadvisor")
    for metric in ("container_cpu_usage_seconds_total", "container_memory_working_set_bytes", "container_fs_usage_bytes"):
        assert any(labels["container"] == "main" and labels["namespace"] == person.namespace
                   for labels in samples(text, metric, busy)), metric
    person.until(lambda: samples(person.node_says("metrics/resource"), "container_memory_working_set_bytes", busy)
                 and samples(person.node_says("metrics/resource"), "container_cpu_usage_seconds_total", busy),
                 "what `kubectl top` asks for", 60)


@pytest.fixture
def without_gate(person: Person) -> Iterator[None]:
    """The same kubelet, started again without the gate."""
    before = person.on_node(f"cat {CONFIG}")
    config = json.loads(before)
    config["featureGates"]["PodAndContainerStatsFromCRI"] = False

    def restart(text: str) -> None:
        person.on_node(f"cat >{CONFIG} && systemctl restart kubelet", stdin=text)
        person.until(lambda: person.cluster.node_exec(["curl", "-sf", "http://127.0.0.1:10248/healthz"]).stdout == "ok", "the kubelet", 90)

    restart(json.dumps(config))
    try:
        yield
    finally:
        restart(before)


def test_without_the_gate_containers_names_the_network_and_processes_are_missing(person: Person, busy: str, without_gate: None) -> None:
    settle(person, busy, POD)
    assert [path for path in ONLY_WITH_GATE if figure(summary(person, busy), path)] == []
    text = person.node_says("metrics/cadvisor")
    found = samples(text, "container_memory_working_set_bytes", busy)
    assert found and not [labels for labels in found if labels["container"]], "the pod is named by its cgroup, its containers are not"
    assert not samples(text, "container_network_receive_bytes_total", busy)
    person.until(lambda: samples(person.node_says("metrics/resource"), "container_memory_working_set_bytes", busy),
                 "what `kubectl top` asks for", 60)
