# SPDX-License-Identifier: Apache-2.0
"""Pods of a rootless node attack the node's credentials and the account of its user. Each name says what must hold.

There are two attackers: a pod as every user of the cluster may create it, and one with every privilege that Kubernetes has.
"""
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from alice import HOST, UID, Alice, web
from attack import server
from nodensdev import cluster
from nodenstest.people import AGNHOST, FOREVER, container

pytestmark = pytest.mark.rootless
HOME, RUNTIME = "/home/alice", f"/run/user/{UID}"
PORT = 19888
EVERYTHING: dict[str, Any] = {"hostPID": True, "hostNetwork": True, "hostIPC": True,
                              "volumes": [{"name": "root", "hostPath": {"path": "/"}}]}


@pytest.fixture(scope="module")
def attackers(running: cluster.Cluster) -> Iterator[Alice]:
    """Two pods: `plain`, and `strong`, which has the node's root directory at /host."""
    one = Alice(running, f"attack-{uuid.uuid4().hex[:8]}")
    one.kubectl("create", "namespace", one.namespace)
    one.pod("plain", container(FOREVER), container(["/agnhost", "pause"], "tools", AGNHOST))
    one.pod("strong", container(FOREVER, securityContext={"privileged": True},
                                volumeMounts=[{"name": "root", "mountPath": "/host", "mountPropagation": "HostToContainer"}]), **EVERYTHING)
    for name in ("plain", "strong"):
        one.ready(name)
    yield one
    one.kubectl("delete", "namespace", one.namespace, "--wait=false")


def run(attackers: Alice, pod: str, command: str) -> str:
    """What a command in a pod prints; it may fail."""
    done = attackers.cluster.kubectl(f"--namespace={attackers.namespace}", "exec", pod, "-c", "main", "--", "sh", "-c", command)
    return done.stdout + done.stderr


def events(attackers: Alice, name: str) -> str:
    """What is reported about an object."""
    return attackers.kubectl("get", "events", "--field-selector", f"involvedObject.name={name}")


def fails(attackers: Alice, pod: str, *commands: str) -> None:
    """Each command is tried, and none succeeds."""
    script = "\n".join(f"if ( {command} ) >/tmp/out 2>&1; then echo GOT: '{command.replace(chr(39), chr(34))}'; cat /tmp/out; fi"
                       for command in commands)
    said = run(attackers, pod, script + "\necho tried")
    assert said.rstrip().endswith("tried") and "GOT" not in said, said


def test_a_pod_does_not_read_the_nodes_credentials(attackers: Alice) -> None:
    fails(attackers, "plain", "cat /etc/kubernetes/kubelet.kubeconfig", "ls /var/lib/kubelet", "cat /proc/1/root/etc/kubernetes/*",
          "ls /run/nodens", "ls /run/user", "find / -xdev -name '*kubeconfig*' | grep .", "test -S /run/nodens/cri.sock",
          "grep -l '^[k]ubelet' /proc/[0-9]*/comm", "cat /proc/*/environ | tr '\\0' '\\n' | grep -i '^kubeconfig'")


def test_a_pod_gets_nothing_from_the_kubelets_ports(attackers: Alice) -> None:
    """Port 10250 is published on the host: without a credential, and with a pod's own token, it refuses."""
    token = "$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)"
    for address in (HOST, "10.244.1.1"):
        fails(attackers, "plain", *(f"wget -T 5 --no-check-certificate -q -O - https://{address}:10250/{path}"
                                    for path in ("pods", "configz", "logs/", "metrics", "runningpods/")),
              f'wget -T 5 --no-check-certificate -q -O - --header "Authorization: Bearer {token}" https://{address}:10250/pods',
              *(f"wget -T 3 -q -O - http://{address}:{port}/" for port in (10255, 10248, 10249, 10256 + 1, 4194)))


def test_a_pods_token_has_no_rights_over_the_node(attackers: Alice) -> None:
    """The account of a pod cannot reach what the node's programs can."""
    token = "$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)"
    ask = f'wget -T 10 --no-check-certificate -q -O - --header "Authorization: Bearer {token}" https://10.96.0.1'
    fails(attackers, "plain", *(f"{ask}/{path}" for path in
                                ("api/v1/nodes", "api/v1/secrets", "api/v1/nodes/node1/proxy/pods", "api/v1/pods")))


def test_a_pod_does_not_reach_the_loopback_of_host_or_node(attackers: Alice) -> None:
    with server(attackers, "stream", str(PORT), "127.0.0.1"):
        for pod in ("plain", "strong"):
            fails(attackers, pod, *(f"nc -w 2 {address} {PORT} </dev/null | grep alice" for address in
                                    ("127.0.0.1", HOST, "10.88.0.1", "10.244.1.1", "169.254.1.1", "169.254.2.2", "10.0.2.2", "10.96.0.1")))


def test_a_pod_sees_and_signals_no_process_but_its_own(attackers: Alice) -> None:
    names = run(attackers, "plain", "cat /proc/[0-9]*/comm | sort | uniq")
    assert not re.search(r"kubelet|nodens|systemd|sshd|pasta|kube-proxy", names), names
    fails(attackers, "plain", "kill -0 1000", "ls /proc/2000/root", "mount -t proc proc /tmp",
          "unshare -m true && mount -t tmpfs none /mnt", "mknod /tmp/disk b 98 0", "echo 1 >/proc/sys/kernel/panic",
          "echo b >/proc/sysrq-trigger",
          "echo 1 >/sys/fs/cgroup/cgroup.procs", "mkdir /sys/fs/cgroup/evil")


def test_the_strongest_pod_does_not_see_the_users_files(attackers: Alice) -> None:
    """Privileged, in all of the node's namespaces, with its root directory: it is root of the node, and not more."""
    assert "kubelet.yaml" in run(attackers, "strong", "ls /host/etc/kubernetes"), "it is in the node's root directory"
    assert "kubelet" in run(attackers, "strong", "cat /proc/[0-9]*/comm"), "and sees the node's processes"
    fails(attackers, "strong", f"ls /host{HOME}/.bashrc", f"ls /host{HOME}/join.kubeconfig", f"ls /proc/1/root{HOME}/.ssh",
          f"ls /host{RUNTIME}/bus", f"ls /host{RUNTIME}/systemd", f"ls /host{RUNTIME}/openssh_agent",
          f"ls /host{RUNTIME}/nodens/default/controller.kubeconfig",
          f"ls /host{RUNTIME}/nodens/default/holder.sock", "find /host -xdev -name join.kubeconfig | grep .",
          "grep -l systemd /proc/[0-9]*/comm", "cat /host/etc/shadow")


def test_the_strongest_pod_does_not_change_the_host(attackers: Alice) -> None:
    fails(attackers, "strong", "touch /host/usr/evil", "mount -o remount,rw /host/usr && touch /host/usr/evil",
          "chroot /host mount -o remount,bind,rw /usr", "chroot /host umount /usr",
          "mknod /tmp/disk b 98 0 && dd if=/tmp/disk of=/dev/null count=1", "ls /dev/ubda", "echo 99 >/proc/sys/kernel/panic",
          "echo b >/proc/sysrq-trigger", "echo '|/tmp/x' >/proc/sys/kernel/core_pattern",
          "chroot /host nsenter -t 1 -m ls /home/alice/.bashrc",
          "chroot /host insmod /dev/null", "chroot /host date -s 2000-01-01", "chroot /host sh -c 'echo max >/sys/fs/cgroup/../memory.max'",
          "echo -1000 >/proc/self/oom_score_adj")


def test_a_host_path_of_the_home_directory_is_not_the_users(attackers: Alice) -> None:
    """The directory is one of the node. It has the directory that alice shares by `up --cdi`, and nothing else of hers."""
    attackers.on_host("test -e ~/.bashrc")
    attackers.pod("home", container("ls -A /home; echo evil >/home/evil; sleep 100000",
                                    volumeMounts=[{"name": "home", "mountPath": "/home"}]),
                  volumes=[{"name": "home", "hostPath": {"path": HOME, "type": "DirectoryOrCreate"}}])
    attackers.ready("home")
    assert attackers.log("home").strip() == "cdi"
    assert attackers.on_host("ls ~/evil 2>/dev/null || echo absent").strip() == "absent"
    attackers.kubectl("delete", "pod", "home", "--grace-period=0", "--force")
    attackers.in_node(f"rm {HOME}/evil")


@pytest.mark.parametrize(("path", "kind"), [(f"{RUNTIME}/bus", "Socket"), (f"{RUNTIME}/openssh_agent", "Socket"),
                                            (f"{RUNTIME}/systemd/private", "Socket"), (f"{HOME}/.ssh", "Directory"),
                                            (f"{HOME}/join.kubeconfig", "File"), ("/dev/ubda", "BlockDevice")],
                         ids=["bus", "ssh-agent", "user-manager", "ssh-keys", "kubeconfig", "disk"])
def test_a_host_path_of_the_user_does_not_exist_for_the_kubelet(attackers: Alice, path: str, kind: str) -> None:
    name = re.sub(r"[^a-z]", "", path) + "-" + uuid.uuid4().hex[:4]
    attackers.on_host(f"test -e {path}", user="root")
    attackers.pod(name, container("ls -l /volume; sleep 100000", volumeMounts=[{"name": "volume", "mountPath": "/volume"}]),
                  volumes=[{"name": "volume", "hostPath": {"path": path, "type": kind}}])
    attackers.until(lambda: "FailedMount" in events(attackers, name), "the refusal")
    assert attackers.status(name)["phase"] == "Pending"
    attackers.kubectl("delete", "pod", name, "--grace-period=0", "--force")


def test_a_host_port_does_not_take_a_port_of_the_user(attackers: Alice) -> None:
    """18500 is in the range that alice allows, and a program of hers listens there."""
    with server(attackers, "stream", "18500", "0.0.0.0"):
        attackers.pod("thief", web(hostPort=18500))
        attackers.ready("thief")
        attackers.until(lambda: "PortNotPublished" in events(attackers, "thief")
                        or "in use" in attackers.on_host("nodens-rootless ports"), "the port being refused")
        ask = f"import socket; print(socket.create_connection(('{HOST}', 18500), 10).recv(100))"
        said = attackers.cluster.run(["python3", "-c", ask]).stdout
        assert said.strip() == "b'of alice'", said
    attackers.kubectl("delete", "pod", "thief", "--grace-period=0", "--force")


def test_a_host_port_outside_the_allowed_range_is_not_published(attackers: Alice) -> None:
    attackers.pod("greedy", web(hostPort=19500))
    attackers.ready("greedy")
    attackers.until(lambda: "PortNotPublished" in events(attackers, "greedy"), "the refusal")
    assert attackers.from_outside(f"http://{HOST}:19500/hostname") == ""
    attackers.kubectl("delete", "pod", "greedy", "--grace-period=0", "--force")


def test_output_of_a_pod_is_not_in_the_journal_of_the_user(attackers: Alice) -> None:
    attackers.pod("loud", container("i=0; while [ $i -lt 200 ]; do echo '<0>injected-by-a-pod'; i=$((i+1)); done; sleep 100000"))
    attackers.ready("loud")
    attackers.until(lambda: attackers.log("loud").count("injected") == 200, "its log")
    assert attackers.on_host("journalctl --user --no-pager -q -g '^<0>injected-by-a-pod' | wc -l").strip() == "0"
    attackers.kubectl("delete", "pod", "loud", "--grace-period=0", "--force")
