# SPDX-License-Identifier: Apache-2.0
"""Cases of the CRI's validation suite: runtime information, PodSandbox, idempotence, networking."""
import json
import re
import socket
import threading
import time
import urllib.request

import grpc
import pytest
from conftest import Subject
from nodenstest import runtimes
from nodenstest.pods import TIMEOUT, Pods, eventually, refused

UNKNOWN = "0" * 64


# Runtime info

def test_the_version_names_runtime_and_api(subject: Subject) -> None:
    found = subject.client.version()
    assert found.version and found.runtime_name and found.runtime_version and found.runtime_api_version


def test_runtime_and_network_are_ready(subject: Subject) -> None:
    status = subject.client.runtime.Status(subject.client.pb.StatusRequest(), timeout=TIMEOUT).status
    found = {condition.type: condition.status for condition in status.conditions}
    assert found["RuntimeReady"] and found["NetworkReady"], status.conditions


def test_the_status_names_the_default_handler_and_its_features(subject: Subject) -> None:
    answer = subject.client.runtime.Status(subject.client.pb.StatusRequest(), timeout=TIMEOUT)
    default = [handler for handler in answer.runtime_handlers if handler.name == ""]
    assert len(default) == 1 and default[0].features.user_namespaces and default[0].features.recursive_read_only_mounts
    assert answer.features.supplemental_groups_policy


def test_the_runtime_reports_its_cgroup_driver(subject: Subject) -> None:
    answer = subject.client.runtime.RuntimeConfig(subject.client.pb.RuntimeConfigRequest(), timeout=TIMEOUT)
    assert answer.linux.cgroup_driver in (subject.client.pb.SYSTEMD, subject.client.pb.CGROUPFS)


def test_a_verbose_status_has_more_information(subject: Subject) -> None:
    answer = subject.client.runtime.Status(subject.client.pb.StatusRequest(verbose=True), timeout=TIMEOUT)
    assert answer.info and all(isinstance(value, str) for value in answer.info.values())


def test_a_pod_cidr_may_be_set(subject: Subject) -> None:
    pb = subject.client.pb
    request = pb.UpdateRuntimeConfigRequest(runtime_config=pb.RuntimeConfig(network_config=pb.NetworkConfig(pod_cidr="10.200.0.0/24")))
    subject.client.runtime.UpdateRuntimeConfig(request, timeout=TIMEOUT)


# PodSandbox basic

def test_a_sandbox_runs_and_is_found_by_its_id(pods: Pods) -> None:
    pod = pods.run()
    assert pod.status().state == pods.pb.SANDBOX_READY
    assert [item.id for item in pods.sandboxes(id=pod.id)] == [pod.id]


def test_a_stopped_sandbox_is_not_ready(pods: Pods) -> None:
    pod = pods.run()
    pod.stop()
    assert pod.status().state == pods.pb.SANDBOX_NOTREADY
    assert [item.state for item in pods.sandboxes(id=pod.id)] == [pods.pb.SANDBOX_NOTREADY]


def test_a_removed_sandbox_is_listed_no_more(pods: Pods) -> None:
    pod = pods.run()
    pod.stop()
    pod.remove()
    assert pods.sandboxes(id=pod.id) == []
    refused(pod.status, grpc.StatusCode.NOT_FOUND)


def test_a_running_sandbox_is_removed_with_its_containers(pods: Pods) -> None:
    pod = pods.run()
    one = pod.container()
    pod.remove()
    assert pods.sandboxes(id=pod.id) == [] and pods.containers(id=one.id) == []


def test_status_and_list_give_back_what_was_asked(pods: Pods) -> None:
    metadata = pods.pb.PodSandboxMetadata(name="attributes", uid="uid-of-attributes", namespace="space", attempt=7)
    labels, annotations = {"one": "1", "two.example/x": "2"}, {"note": "line\nline", "empty": ""}
    pod = pods.run(metadata=metadata, labels=labels, annotations=annotations)
    for found in (pod.status(), pods.sandboxes(id=pod.id)[0]):
        assert found.metadata == metadata and dict(found.labels) == labels and dict(found.annotations) == annotations
        assert abs(found.created_at / 1e9 - time.time()) < 60


def test_sandboxes_are_listed_by_state_and_label(pods: Pods) -> None:
    first, second = pods.run(name="a", labels={"which": "first", "all": "x"}), pods.run(name="b", labels={"which": "second", "all": "x"})
    second.stop()
    ready, stopped = pods.pb.PodSandboxStateValue(state=pods.pb.SANDBOX_READY), pods.pb.PodSandboxStateValue(state=pods.pb.SANDBOX_NOTREADY)
    assert [item.id for item in pods.sandboxes(state=ready, label_selector={"all": "x"})] == [first.id]
    assert [item.id for item in pods.sandboxes(state=stopped, label_selector={"all": "x"})] == [second.id]
    assert [item.id for item in pods.sandboxes(label_selector={"which": "second"})] == [second.id]
    assert pods.sandboxes(label_selector={"which": "third"}) == []


def test_the_status_has_address_and_namespaces(pods: Pods) -> None:
    pod = pods.run()
    found = pod.status()
    assert re.fullmatch(r"[0-9a-f.:]+", found.network.ip)
    options = found.linux.namespaces.options
    assert (options.network, options.pid, options.ipc) == (pods.pb.POD, pods.pb.CONTAINER, pods.pb.POD)


def test_a_verbose_sandbox_status_is_json(pods: Pods) -> None:
    answer = pods.run().status(verbose=True)
    assert all(isinstance(json.loads(value), dict | list | str) for value in answer.info.values()) and answer.info


def test_sandboxes_and_containers_come_as_streams_too(pods: Pods) -> None:
    one = pods.run().container()
    pb = pods.pb
    sandboxes = [item.id for answer in pods.runtime.StreamPodSandboxes(pb.StreamPodSandboxesRequest(), timeout=TIMEOUT)
                 for item in answer.pod_sandboxes]
    containers = [item.id for answer in pods.runtime.StreamContainers(pb.StreamContainersRequest(), timeout=TIMEOUT)
                  for item in answer.containers]
    assert one.pod.id in sandboxes and one.id in containers


def test_two_attempts_of_one_pod_are_two_sandboxes(pods: Pods) -> None:
    first = pods.run(metadata=pods.pb.PodSandboxMetadata(name="again", uid="again-uid", namespace="x", attempt=0))
    first.stop()
    second = pods.run(metadata=pods.pb.PodSandboxMetadata(name="again", uid="again-uid", namespace="x", attempt=1))
    assert first.id != second.id and second.status().metadata.attempt == 1


def test_sixteen_sandboxes_at_once_are_ready_each_with_an_address(pods: Pods) -> None:
    threads = [threading.Thread(target=lambda number=number: pods.run(name=f"many-{number}")) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({pod.address() for pod in pods.made}) == 16


# Sysctls

def test_a_safe_sysctl_is_seen_inside(pods: Pods) -> None:
    one = pods.run(linux={"sysctls": {"kernel.shm_rmid_forced": "1"}}).container()
    assert one.output("cat /proc/sys/kernel/shm_rmid_forced") == "1"


def test_an_unsafe_sysctl_is_seen_inside(pods: Pods) -> None:
    one = pods.run(linux={"sysctls": {"fs.mqueue.msg_max": "100"}}).container()
    assert one.output("cat /proc/sys/fs/mqueue/msg_max") == "100"


def test_a_sysctl_of_the_network_is_seen_inside(pods: Pods) -> None:
    one = pods.run(linux={"sysctls": {"net.ipv4.tcp_syncookies": "0", "net.ipv4.ip_local_port_range": "20000 30000"}}).container()
    assert one.output("cat /proc/sys/net/ipv4/tcp_syncookies /proc/sys/net/ipv4/ip_local_port_range").split() == ["0", "20000", "30000"]


@pytest.mark.parametrize("name", ["kernel.core_pattern", "kernel.hostname+kernel.core_pattern", "vm.swappiness", "../../etc/passwd"])
def test_a_sysctl_of_the_whole_node_is_refused(pods: Pods, name: str) -> None:
    refused(lambda: pods.run(linux={"sysctls": {name: "1"}}).container())


def test_a_sysctl_of_the_hosts_network_is_refused_to_a_pod_on_it(plain_pods: Pods) -> None:
    with open("/proc/sys/net/ipv4/tcp_syncookies") as file:
        before = file.read()
    refused(lambda: plain_pods.run(namespaces={"network": plain_pods.pb.NODE},
                                   linux={"sysctls": {"net.ipv4.tcp_syncookies": "0"}}).container())
    with open("/proc/sys/net/ipv4/tcp_syncookies") as file:
        assert file.read() == before


# Idempotence

def test_stopping_an_unknown_sandbox_succeeds(plain_pods: Pods) -> None:
    plain_pods.runtime.StopPodSandbox(plain_pods.pb.StopPodSandboxRequest(pod_sandbox_id=UNKNOWN), timeout=TIMEOUT)


def test_removing_an_unknown_sandbox_succeeds(plain_pods: Pods) -> None:
    plain_pods.runtime.RemovePodSandbox(plain_pods.pb.RemovePodSandboxRequest(pod_sandbox_id=UNKNOWN), timeout=TIMEOUT)


def test_stopping_and_removing_a_sandbox_twice_succeeds(pods: Pods) -> None:
    pod = pods.run()
    for call in (pod.stop, pod.stop, pod.remove, pod.remove):
        call()


def test_stopping_an_unknown_container_succeeds(plain_pods: Pods) -> None:
    plain_pods.runtime.StopContainer(plain_pods.pb.StopContainerRequest(container_id=UNKNOWN), timeout=TIMEOUT)


def test_removing_an_unknown_container_succeeds(plain_pods: Pods) -> None:
    plain_pods.runtime.RemoveContainer(plain_pods.pb.RemoveContainerRequest(container_id=UNKNOWN), timeout=TIMEOUT)


def test_stopping_and_removing_a_container_twice_succeeds(pods: Pods) -> None:
    one = pods.run().container()
    for call in (one.stop, one.stop, one.remove, one.remove, one.stop):
        call()


def test_the_status_of_unknown_things_is_not_found(plain_pods: Pods) -> None:
    pb = plain_pods.pb
    refused(lambda: plain_pods.runtime.PodSandboxStatus(pb.PodSandboxStatusRequest(pod_sandbox_id=UNKNOWN), timeout=TIMEOUT),
            grpc.StatusCode.NOT_FOUND)
    refused(lambda: plain_pods.runtime.ContainerStatus(pb.ContainerStatusRequest(container_id=UNKNOWN), timeout=TIMEOUT),
            grpc.StatusCode.NOT_FOUND)
    refused(lambda: plain_pods.runtime.StartContainer(pb.StartContainerRequest(container_id=UNKNOWN), timeout=TIMEOUT),
            grpc.StatusCode.NOT_FOUND)
    refused(lambda: plain_pods.runtime.ExecSync(pb.ExecSyncRequest(container_id=UNKNOWN, cmd=["true"], timeout=5), timeout=TIMEOUT),
            grpc.StatusCode.NOT_FOUND)


# Networking

def test_the_dns_configuration_is_in_resolv_conf(pods: Pods) -> None:
    config = pods.pb.DNSConfig(servers=["10.10.10.10", "fd00::53"], searches=["google.com", "svc.cluster.local"],
                               options=["ndots:8", "edns0"])
    lines = pods.run(dns_config=config).container().output("cat /etc/resolv.conf").splitlines()
    assert [line for line in lines if line.startswith("nameserver")] == ["nameserver 10.10.10.10", "nameserver fd00::53"]
    assert "search google.com svc.cluster.local" in lines and "options ndots:8 edns0" in lines


def test_the_hostname_is_the_pods(pods: Pods) -> None:
    one = pods.run(hostname="test-hostname").container()
    assert one.output("hostname") == "test-hostname" and one.output("cat /etc/hostname") == "test-hostname"
    assert one.output("echo $HOSTNAME") == "test-hostname"


def test_a_pod_on_the_hosts_network_has_its_name(plain_pods: Pods) -> None:
    one = plain_pods.run(namespaces={"network": plain_pods.pb.NODE}).container()
    assert one.output("hostname") == socket.gethostname()


def test_a_server_answers_at_the_pods_address(pods: Pods) -> None:
    mapping = pods.pb.PortMapping(protocol=pods.pb.TCP, container_port=8080)
    pod = pods.run(port_mappings=[mapping])
    pod.container("mkdir /tmp/www && echo page >/tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www")
    assert fetch(pod.address(), 8080) == "page\n"


def test_a_server_answers_at_the_hosts_port(pods: Pods, subject: Subject) -> None:
    """With a given runtime this shows whether its network has a plugin for host ports; User-mode Linux has no NAT for it."""
    if not runtimes.translates():
        pytest.skip("this kernel has no NAT: tools/dev test cri-debian runs it")
    port = runtimes.free_ports()
    mapping = pods.pb.PortMapping(protocol=pods.pb.TCP, container_port=80, host_port=port)
    pod = pods.run(port_mappings=[mapping])
    pod.container("mkdir /tmp/www && echo port >/tmp/www/index.html && exec httpd -f -p 80 -h /tmp/www")
    assert fetch(pod.address(), 80) == "port\n"
    assert fetch(host_address(pod.address()), port) == "port\n"
    pod.stop()
    with pytest.raises(OSError):
        socket.create_connection((host_address("10.255.0.1"), port), 2).close()


def host_address(_: str) -> str:
    return "127.0.0.1"


def fetch(address: str, port: int) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def once() -> str:
        try:
            return opener.open(f"http://{address}:{port}/", timeout=3).read().decode()
        except OSError:
            return ""

    return eventually(once, 15, f"an answer from {address}:{port}")


def test_ports_below_1024_need_no_privilege(pods: Pods) -> None:
    one = pods.run().container(security={"run_as_user": {"value": 1000}, "capabilities": {"drop_capabilities": ["ALL"]}})
    assert one.output("cat /proc/sys/net/ipv4/ip_unprivileged_port_start") == "0"
    assert one.execute("timeout 1 nc -l -p 81 </dev/null; [ $? = 143 ]").code == 0


def test_ping_needs_no_privilege(pods: Pods) -> None:
    one = pods.run().container(security={"run_as_user": {"value": 1000}, "capabilities": {"drop_capabilities": ["ALL"]}})
    low, high = map(int, one.output("cat /proc/sys/net/ipv4/ping_group_range").split())
    assert low == 0 and high >= 1000


# Multiple containers

def test_two_containers_of_a_pod_share_its_network_and_nothing_else(pods: Pods) -> None:
    pod = pods.run()
    server = pod.container("mkdir /tmp/www && echo page >/tmp/www/index.html && echo serving && exec httpd -f -p 8080 -h /tmp/www",
                           name="server")
    client = pod.container("echo waiting; exec sleep 4321", name="client")
    assert client.output("for i in 1 2 3 4 5; do wget -q -O - http://127.0.0.1:8080/ && break; sleep 0.2; done") == "page"
    assert fetch(pod.address(), 8080) == "page\n"
    assert client.execute("ls /tmp/www").code != 0 and server.output("ls /tmp/www") == "index.html"
    assert client.execute("ps | grep -v grep | grep httpd").code != 0
    eventually(lambda: server.log() == [("stdout", "serving")] and client.log() == [("stdout", "waiting")], what="a line in each log")
