# SPDX-License-Identifier: Apache-2.0
"""Workloads whose readiness for a user namespace `nodens audit` judges.

Each has a script that succeeds when the workload gets what it asks for, so that the verdict can be compared with two runs: with the
host's users and with hostUsers: false. tests/component/guard/test_audit.py compares the verdicts, tests/cluster/scenarios/test_audit.py
runs the pods.
"""
from dataclasses import dataclass, field
from typing import Any

BUSYBOX = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
HIGH_IDS = "registry.nodens.test:5000/nodens/high-ids:1"
HIGH_ID = 2_000_000_000     # the highest owner in that image
IMAGE_IDS = f"# highest owner, image\n{HIGH_ID} {HIGH_IDS}\n65534 {BUSYBOX}\n"
ADD_USER = "echo u:x:1000:1000::/:/bin/sh >>/etc/passwd"
SETTINGS, KEYS, CLAIM = "settings", "keys", "disk"


@dataclass(frozen=True)
class Workload:
    name: str
    verdict: str        # yes, check, no
    script: str
    reason: str = ""    # a part of the first one
    spec: dict[str, Any] = field(default_factory=dict)
    container: dict[str, Any] = field(default_factory=dict)
    runs: bool = True   # with the host's users, on a node of the testbed

    def pod_spec(self) -> dict[str, Any]:
        one = {"name": "c", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-ec", self.script], **self.container}
        return {"containers": [one], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **self.spec}


def added(*names: str, only: bool = True) -> dict[str, Any]:
    """The context of a container with these capabilities."""
    return {"securityContext": {"capabilities": {"add": list(names)} | ({"drop": ["ALL"]} if only else {})}}


def mounted(path: str = "/v", **more: Any) -> dict[str, Any]:
    return {"volumeMounts": [{"name": "v", "mountPath": path, **more}]}


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


def sysctl(name: str, value: str) -> dict[str, Any]:
    return {"securityContext": {"sysctls": [{"name": name, "value": value}]}}


def same_value(name: str, value: str) -> str:
    return f"test \"$(cat /proc/sys/{name.replace('.', '/')})\" = '{value}'"


def safe_sysctl(name: str, value: str) -> Workload:
    return Workload(f"sysctl-{name.split('.')[-1].replace('_', '-')}", "yes", same_value(name, value), spec=sysctl(name, value))


YES = (
    Workload("plain", "yes", "test $(id -u) = 0; touch /etc/mine; chown 33:44 /etc/mine; test $(stat -c %u:%g /etc/mine) = 33:44"),
    Workload("user-1000", "yes", "test $(id -u):$(id -g) = 1000:1001", spec={"securityContext": {"runAsUser": 1000, "runAsGroup": 1001}}),
    Workload("last-user", "yes", "test $(id -u) = 65535", spec={"securityContext": {"runAsUser": 65535}}),
    Workload("groups", "yes", "id -G | grep -qw 3000", spec={"securityContext": {"supplementalGroups": [3000, 65000]}}),
    Workload("fs-group", "yes", "touch /v/x; test $(stat -c %g /v/x) = 2000",
             spec=volume(emptyDir={}) | {"securityContext": {"runAsUser": 1000, "fsGroup": 2000}}, container=mounted()),
    Workload("empty-dir", "yes", "touch /v/x; chown 65534 /v/x; chmod 4755 /v/x; test $(stat -c %a:%u /v/x) = 4755:65534",
             spec=volume(emptyDir={}), container=mounted()),
    Workload("empty-dir-memory", "yes", "grep -q ' /v tmpfs' /proc/mounts; touch /v/x; chown 7 /v/x; test $(stat -c %u /v/x) = 7",
             spec=volume(emptyDir={"medium": "Memory"}), container=mounted()),
    Workload("config-map", "yes", "test $(cat /v/key) = value; test $(stat -c %u /v/key) = 0", spec=volume(configMap={"name": SETTINGS}),
             container=mounted(readOnly=True)),
    Workload("secret", "yes", "test $(cat /v/key) = value; test $(stat -Lc %a /v/key) = 440",
             spec=volume(secret={"secretName": KEYS, "defaultMode": 0o400}) | {"securityContext": {"runAsUser": 1000, "fsGroup": 1000}},
             container=mounted(readOnly=True)),
    Workload("projected", "yes", "test -s /v/token; test $(cat /v/key) = value", container=mounted(), spec=volume(projected={"sources": [
        {"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": SETTINGS}}]})),
    Workload("downward", "yes", "grep -q downward /v/name; test $(stat -Lc %u /v/name) = 0", container=mounted(),
             spec=volume(downwardAPI={"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]})),
    Workload("sub-path", "yes", "test $(cat /etc/key) = value", spec=volume(configMap={"name": SETTINGS}),
             container=mounted("/etc/key", subPath="key")),
    Workload("init", "yes", "test $(cat /v/x) = init", spec=volume(emptyDir={}) | {"initContainers": [
        {"name": "i", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", "echo init >/v/x"], **mounted()}]},
             container=mounted()),
    Workload("sidecar", "yes", "for i in $(seq 100); do test -e /v/ready && exit 0; sleep 0.2; done; exit 1",
             spec=volume(emptyDir={}) | {"initContainers": [
                 {"name": "s", "image": BUSYBOX, "imagePullPolicy": "Never", "restartPolicy": "Always", **mounted(),
                  "command": ["sh", "-c", "touch /v/ready; sleep 1000"]}]}, container=mounted()),
    Workload("one-process-namespace", "yes", "for i in $(seq 100); do pgrep -f 'sleep 7777' && exit 0; sleep 0.2; done; exit 1",
             spec={"shareProcessNamespace": True, "initContainers": [
                 {"name": "s", "image": BUSYBOX, "imagePullPolicy": "Never", "restartPolicy": "Always", "command": ["sleep", "7777"]}]}),
    Workload("chown", "yes", "touch /tmp/x; chown 1000:1000 /tmp/x; echo y >/tmp/x; chmod 600 /tmp/x; test $(stat -c %u /tmp/x) = 1000",
             container=added("CHOWN", "DAC_OVERRIDE", "FOWNER")),
    Workload("low-port", "yes", "nc -l -p 80 & sleep 0.5; kill %1", container=added("NET_BIND_SERVICE")),
    Workload("raw-socket", "yes", "ping -c 1 -W 5 127.0.0.1", container=added("NET_RAW")),
    Workload("network-admin", "yes", "ip addr add 10.255.0.1/32 dev lo; ip link set lo mtu 1400; ip addr show lo | grep -q 10.255.0.1",
             container=added("NET_ADMIN")),
    Workload("chroot", "yes", "mkdir -p /tmp/r/bin; cp /bin/busybox /tmp/r/bin/ 2>/dev/null || cp /bin/sh /tmp/r/bin/busybox; "
             "chroot /tmp/r /bin/busybox true", container=added("SYS_CHROOT")),
    Workload("other-user", "yes", f"{ADD_USER}; test $(su u -c 'id -u') = 1000", container=added("SETUID", "SETGID")),
    Workload("ptrace", "yes", f"{ADD_USER}; su u -c 'exec sleep 100' & sleep 1; cat /proc/$!/environ >/dev/null; kill $!",
             container=added("SETUID", "SETGID", "KILL", "DAC_OVERRIDE", "SYS_PTRACE")),
    Workload("read-only-root", "yes", "! touch /x 2>/dev/null; touch /v/x", spec=volume(emptyDir={}),
             container=mounted() | {"securityContext": {"readOnlyRootFilesystem": True}}),
    Workload("restricted", "yes", "test $(id -u) = 1000; grep -q '^NoNewPrivs:.1' /proc/self/status",
             spec={"securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}},
             container={"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}),
    Workload("unconfined", "yes", "grep -q '^Seccomp:.0' /proc/self/status", spec={"securityContext": {"seccompProfile": {
        "type": "Unconfined"}}}),
    Workload("limits", "yes", "test $(cat /sys/fs/cgroup/memory.max) = 33554432",
             container={"resources": {"limits": {"cpu": "100m", "memory": "32Mi"}}}),
    Workload("hooks", "yes", "for i in $(seq 100); do test -e /tmp/hook && exit 0; sleep 0.2; done; exit 1",
             container={"lifecycle": {"postStart": {"exec": {"command": ["touch", "/tmp/hook"]}}}}),
    safe_sysctl("net.ipv4.ip_unprivileged_port_start", "0"),
    safe_sysctl("kernel.shm_rmid_forced", "1"),
    safe_sysctl("net.ipv4.tcp_keepalive_time", "600"),
)

CHECK = (
    Workload("mounts-inside", "check", "mount -t tmpfs t /mnt || mount -t tmpfs t /tmp", "capability SYS_ADMIN",
             container=added("SYS_ADMIN", only=False)),
    Workload("host-directory", "check", "test -d /v/apt", "volume v is /etc of the host", spec=volume(hostPath={"path": "/etc"}),
             container=mounted(readOnly=True)),
    Workload("local-volume", "check", "touch /v/x; chown 5 /v/x; test $(stat -c %u /v/x) = 5", "volume v is of type local",
             spec=volume(persistentVolumeClaim={"claimName": CLAIM}), container=mounted()),
    Workload("ping-groups", "check", same_value("net.ipv4.ping_group_range", "0\t2147483647"), "sysctl net.ipv4.ping_group_range",
             spec=sysctl("net.ipv4.ping_group_range", "0 2147483647")),
    Workload("says-host-users", "check", "true", "hostUsers is set to true", spec={"hostUsers": True}),
)

NO = (
    Workload("host-processes", "no", "pgrep -f kubelet", "spec.hostPID", spec={"hostPID": True}),
    Workload("host-ipc", "no", "true", "spec.hostIPC", spec={"hostIPC": True}),
    Workload("host-network", "no", "ip addr | grep -q 10.88.0", "spec.hostNetwork", spec={"hostNetwork": True}),
    Workload("privileged", "no", "mknod /tmp/d b 7 250 && echo 1 >/proc/sys/vm/drop_caches", "container c is privileged",
             container={"securityContext": {"privileged": True}}),
    Workload("device-node", "no", "mknod /tmp/d c 1 3", "capability MKNOD", container=added("MKNOD")),
    Workload("priority", "no", "nice -n -5 true 2>&1 | grep -q . && exit 1; test $(nice -n -5 nice) = -5", "capability SYS_NICE",
             container=added("SYS_NICE")),
    Workload("user-70000", "no", "test $(id -u) = 70000", "runAsUser 70000", spec={"securityContext": {"runAsUser": 70000}}),
    Workload("group-100000", "no", "id -G | grep -qw 100000", "supplementalGroups 100000",
             spec={"securityContext": {"supplementalGroups": [100000]}}),
    Workload("host-device", "no", "test -c /v/null", "volume v is /dev of the host", spec=volume(hostPath={"path": "/dev"}),
             container=mounted()),
    Workload("high-ids", "no", "test $(stat -c %u /ids/owned-70000) = 70000", f"image {HIGH_IDS} has files of ID {HIGH_ID}",
             container={"image": HIGH_IDS, "imagePullPolicy": "IfNotPresent"}),
    Workload("nfs", "no", "true", "network filesystem", spec=volume(nfs={"server": "10.88.0.1", "path": "/x"}), container=mounted(),
             runs=False),    # the testbed has no such server
)

WORKLOADS = (*YES, *CHECK, *NO)


def objects() -> list[dict[str, Any]]:
    """What the workloads need in their namespace."""
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SETTINGS}, "data": {"key": "value"}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": KEYS}, "stringData": {"key": "value"}}]


def disk(namespace: str, node: str, path: str) -> list[dict[str, Any]]:
    """A volume of a directory on the node, bound to a claim of the namespace."""
    name, storage = f"{CLAIM}-{namespace}", {"storage": "1Mi"}
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return [{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": storage, "accessModes": ["ReadWriteOnce"], "local": {"path": path}, "storageClassName": "",
        "claimRef": {"namespace": namespace, "name": CLAIM}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": CLAIM, "namespace": namespace}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": storage}, "storageClassName": "", "volumeName": name}}]
