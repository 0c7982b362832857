# SPDX-License-Identifier: Apache-2.0
"""The cases of the CRI's validation suite for PodSandboxMetrics: the descriptors, and a sample for each."""
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Subject
from nodenstest.pods import TIMEOUT, Pods, controllers, eventually

TOLERATED = {    # that no runtime is held to: the kernel or the container may have none
    "container_hugetlb_max_usage_bytes", "container_hugetlb_usage_bytes", "container_spec_cpu_quota",
             "container_spec_memory_reservation_limit_bytes",
    "container_ulimits_soft", "container_blkio_device_usage_total",
    *(f"container_pressure_{what}_{kind}_seconds_total" for what in ("cpu", "io", "memory") for kind in ("stalled", "waiting")),
    *(f"container_fs_{name}_total" for name in ("reads", "reads_bytes", "writes", "writes_bytes"))}
NAMES = {
    f"container_{name}"
    for name in """
    blkio_device_usage_total cpu_cfs_periods_total cpu_cfs_throttled_periods_total cpu_cfs_throttled_seconds_total cpu_system_seconds_total
    cpu_usage_seconds_total cpu_user_seconds_total file_descriptors fs_inodes_free fs_inodes_total fs_limit_bytes fs_reads_bytes_total fs_reads_total
    fs_usage_bytes fs_writes_bytes_total fs_writes_total last_seen memory_cache memory_failcnt memory_failures_total memory_kernel_usage
    memory_mapped_file memory_max_usage_bytes memory_rss memory_swap memory_usage_bytes memory_working_set_bytes network_receive_bytes_total
    network_receive_errors_total network_receive_packets_dropped_total network_receive_packets_total network_transmit_bytes_total
    network_transmit_errors_total network_transmit_packets_dropped_total network_transmit_packets_total oom_events_total processes sockets
    spec_cpu_period spec_cpu_shares spec_memory_limit_bytes spec_memory_swap_limit_bytes start_time_seconds threads threads_max""".split()
}

pytestmark = pytest.mark.skipif("memory" not in controllers(),
                                reason="cgroups have no memory controller here: tools/dev test cri-guest runs it")


def test_every_metric_is_described(plain_pods: Pods) -> None:
    answer = plain_pods.runtime.ListMetricDescriptors(plain_pods.pb.ListMetricDescriptorsRequest(), timeout=TIMEOUT)
    found = {descriptor.name: descriptor for descriptor in answer.descriptors}
    assert NAMES - TOLERATED <= found.keys(), f"missing: {sorted(NAMES - TOLERATED - found.keys())}"
    assert all(descriptor.help for descriptor in found.values())


def test_nodens_describes_all_metrics_of_the_kernel(plain_pods: Pods, subject: Subject) -> None:
    if subject.name != "nodens-cri":
        pytest.skip("upstream holds no runtime to these")
    answer = plain_pods.runtime.ListMetricDescriptors(plain_pods.pb.ListMetricDescriptorsRequest(), timeout=TIMEOUT)
    # cgroup v2 has no such figure
    assert not TOLERATED - {descriptor.name for descriptor in answer.descriptors} - {"container_hugetlb_max_usage_bytes"}


def test_nodens_has_a_sample_of_pressure_devices_and_limits(pods: Pods, subject: Subject) -> None:
    if subject.name != "nodens-cri":
        pytest.skip("upstream holds no runtime to these")
    pod = pods.run()
    pod.container("dd if=/dev/zero of=/file bs=1M count=4 conv=fsync; exec sleep 4321")
    expected = {"container_spec_cpu_quota", "container_spec_memory_reservation_limit_bytes", "container_ulimits_soft"}
    if "io" in controllers() and os.environ.get("NODENS_NODE") != "memory":    # what is written there reaches no device
        expected.add("container_blkio_device_usage_total")
    if Path("/proc/pressure").exists():
        expected |= {name for name in TOLERATED if name.startswith("container_pressure_")}

    def missing() -> set[str]:
        answer = pods.runtime.ListPodSandboxMetrics(pods.pb.ListPodSandboxMetricsRequest(), timeout=TIMEOUT)
        mine = next(one for one in answer.pod_metrics if one.pod_sandbox_id == pod.id)
        return expected - {metric.name for container in mine.container_metrics for metric in container.metrics}

    eventually(lambda: not missing(), 20, f"a sample of each of {sorted(expected)}")


def test_every_metric_that_is_described_has_a_sample_with_its_labels(pods: Pods) -> None:
    pod = pods.run()
    pod.container("dd if=/dev/zero of=/file bs=1M count=4 conv=fsync; exec sleep 4321",
                  resources={"cpu_period": 100000, "cpu_quota": 20000, "memory_limit_in_bytes": 64 << 20,
                             "memory_swap_limit_in_bytes": 64 << 20})
    descriptors = {one.name: one
                   for one in pods.runtime.ListMetricDescriptors(pods.pb.ListMetricDescriptorsRequest(), timeout=TIMEOUT).descriptors}
    samples: list[Any] = []

    def missing() -> set[str]:      # slow measurements are not waited for
        answer = pods.runtime.ListPodSandboxMetrics(pods.pb.ListPodSandboxMetricsRequest(), timeout=TIMEOUT)
        mine = [one for one in answer.pod_metrics if one.pod_sandbox_id == pod.id]
        assert len(mine) == 1
        samples[:] = [*mine[0].metrics, *(metric for container in mine[0].container_metrics for metric in container.metrics)]
        return descriptors.keys() - TOLERATED - {sample.name for sample in samples}

    eventually(lambda: not missing(), what="a sample of everything that is described")
    for sample in samples:
        assert len(sample.label_values) == len(descriptors[sample.name].label_keys), sample
