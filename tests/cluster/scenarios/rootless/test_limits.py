# SPDX-License-Identifier: Apache-2.0
"""What does not work on a rootless node, with the error that its users see. docs/rootless-workloads.md names these tests."""
import re
from typing import Any

import pytest
from alice import HOST, Alice, web
from nodenstest.people import FOREVER, container, is_ready
from test_volumes import DEVICE, device_plugin, local_volume, mount, volumes

pytestmark = pytest.mark.rootless
__all__ = ["volumes"]        # a fixture
BEYOND = 70000               # alice has 65536 subordinate IDs, so the node has 0 to 65536


def refused(alice: Alice, name: str, word: str, *containers: dict[str, Any], **spec: Any) -> str:
    """The text with a word that the pod's status or an Event has, while the pod does not run."""
    alice.pod(name, *containers, **spec)
    text = alice.until(lambda: alice.waits(name, word), f"a reason with '{word}'")
    assert not is_ready(alice.status(name))
    return text


def reason(alice: Alice) -> str:
    """A word of the reason: nodens-cri names the ID; with containerd crun fails with the kernel's error."""
    return str(BEYOND) if alice.runtime() == "nodens" else "nvalid argument"


def test_a_user_beyond_the_subordinate_ids_is_refused(alice: Alice) -> None:
    text = refused(alice, "user", reason(alice), container(FOREVER, securityContext={"runAsUser": BEYOND}),
                   automountServiceAccountToken=False)
    assert alice.runtime() != "nodens" or f"user {BEYOND} does not exist on this rootless node, which has IDs 0 to 65536" in text, text


def test_with_a_token_a_user_beyond_the_subordinate_ids_already_fails_at_the_volume(alice: Alice) -> None:
    text = refused(alice, "token", "lchown", container(FOREVER, securityContext={"runAsUser": BEYOND}))
    assert 'MountVolume.SetUp failed for volume "kube-api-access-' in text and "invalid argument" in text, text


def test_a_group_beyond_the_subordinate_ids_is_refused(alice: Alice) -> None:
    text = refused(alice, "group", reason(alice), container(FOREVER, securityContext={"runAsUser": 1, "runAsGroup": BEYOND}))
    assert alice.runtime() != "nodens" or f"group {BEYOND} does not exist on this rootless node" in text, text


def test_a_block_volume_fails_because_the_node_has_no_block_devices(alice: Alice, volumes: None) -> None:
    local_volume(alice, "block", volumeMode="Block", local={"path": "/dev/vda"})
    text = refused(alice, "block", "MapVolume", container(FOREVER, volumeDevices=[{"name": "v", "devicePath": "/dev/x"}]),
                   volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "block"}}])
    assert "lstat /dev/vda: no such file or directory" in text, text


def test_an_nfs_volume_of_the_kernel_cannot_be_mounted(alice: Alice) -> None:
    text = refused(alice, "nfs", "mount failed", container(FOREVER, **mount("v")),
                   volumes=[{"name": "v", "nfs": {"server": "10.88.0.1", "path": "/export"}}])
    assert re.search(r"^Mounting arguments: +-t nfs 10\.88\.0\.1:/export ", text, re.MULTILINE), text   # kubelet 1.37: two spaces


def test_huge_pages_are_not_offered(alice: Alice) -> None:
    text = refused(alice, "huge", "hugepages", container(FOREVER, resources={"limits": {"hugepages-2Mi": "2Mi", "memory": "20Mi"}}))
    assert "Insufficient hugepages-2Mi" in text, text
    assert alice.node()["status"]["allocatable"].get("hugepages-2Mi", "0") == "0"


def test_device_nodes_cannot_be_made_even_by_a_privileged_pod(alice: Alice) -> None:
    alice.pod("mknod", container("mknod /x c 1 3 2>&1; mknod /y b 8 0 2>&1", securityContext={"privileged": True}), restartPolicy="Never")
    alice.phase("mknod", "Failed")
    assert alice.log("mknod").count("Operation not permitted") == 2


def test_a_sysctl_value_that_the_kernel_refuses_fails_the_pod(alice: Alice) -> None:
    ping = {"name": "net.ipv4.ping_group_range", "value": "0 2147483647"}
    text = refused(alice, "ping", "ping_group_range", container(FOREVER), securityContext={"sysctls": [ping]})
    assert "nvalid argument" in text, text


def test_a_sysctl_without_a_namespace_is_forbidden_by_the_kubelet(alice: Alice) -> None:
    text = refused(alice, "unsafe", "SysctlForbidden", container(FOREVER),
                   securityContext={"sysctls": [{"name": "vm.swappiness", "value": "1"}]})
    assert 'forbidden sysctl: "vm.swappiness" not allowlisted' in text, text


def test_safe_sysctls_work(alice: Alice) -> None:
    values = {"kernel.shm_rmid_forced": "1", "net.ipv4.ip_local_port_range": "20000\t30000", "net.ipv4.ip_unprivileged_port_start": "80",
              "net.ipv4.tcp_syncookies": "0", "net.ipv4.ping_group_range": "0\t1000"}
    script = "; ".join(f"cat /proc/sys/{name.replace('.', '/')}" for name in values)
    alice.pod("safe", container(script), restartPolicy="Never",
              securityContext={"sysctls": [{"name": name, "value": value.replace("\t", " ")} for name, value in values.items()]})
    alice.phase("safe", "Succeeded")
    assert alice.log("safe").splitlines() == list(values.values())


def test_a_pod_opens_port_80_of_its_own_and_of_the_node_but_not_of_the_host(alice: Alice) -> None:
    alice.pod("low", container("nc -l -p 80 -e true & sleep 1; netstat -ltn | grep -c ':80 '"), restartPolicy="Never", hostNetwork=True)
    alice.phase("low", "Succeeded")
    assert alice.log("low").strip() == "1", "port 80 of the node's network namespace"
    alice.pod("published", web(hostPort=80))
    alice.ready("published")
    text = alice.until(lambda: alice.waits("published", "PortNotPublished"), "an Event")
    assert "host port 80 is not published" in text, text
    assert alice.from_outside(f"http://{HOST}:80/hostname") == ""


def test_a_host_port_that_the_owner_does_not_allow_is_reported(alice: Alice) -> None:
    alice.pod("port", web(hostPort=17777))
    alice.ready("port")
    text = alice.until(lambda: alice.waits("port", "PortNotPublished"), "an Event")
    assert "host port 17777 is not published: the user of the node does not allow it; --host-ports (NODENS_HOST_PORTS)" in text, text


def test_the_api_server_does_not_reach_pods(alice: Alice) -> None:
    """The pod network is behind the node's own address. exec, logs and port-forward go through the kubelet, and work."""
    alice.pod("server", web())
    alice.ready("server")
    done = alice.cluster.kubectl("get", "--raw", f"/api/v1/namespaces/{alice.namespace}/pods/server:8080/proxy/hostname")
    assert done.returncode != 0 and "error trying to reach service: dial tcp" in done.stderr, done


def test_limits_of_devices_are_not_enforced(alice: Alice) -> None:
    """There is no device controller in a user namespace: the file's own permissions decide."""
    with device_plugin(alice, "r"):
        alice.pod("reader", container("exec 3<>/dev/fuse && echo written", resources={"limits": {DEVICE: "1"}}), restartPolicy="Never")
        alice.phase("reader", "Succeeded")
    assert alice.log("reader").strip() == "written"


def test_a_pod_with_its_own_users_is_refused_if_the_node_has_no_ids_for_them(alice: Alice) -> None:
    """nodens-cri reports it beforehand. containerd reports user namespaces, and fails when it makes one."""
    word = "does not support user namespaces" if alice.runtime() == "nodens" else "failed to set effective UID"
    assert word in refused(alice, "mapped", word, container(FOREVER), hostUsers=False)
