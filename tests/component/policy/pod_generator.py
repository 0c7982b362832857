# SPDX-License-Identifier: Apache-2.0
"""Generated pods: every field that a check evaluates, with good, bad, missing and null values.

Most pods are nearly good and bad in a few places, so that each check is reached alone as well as
among others; some are random. Now and then a value has the wrong type: then neither side may decode
the pod.
"""
import random
from collections.abc import Callable
from typing import Any

Json = Any

NAMES = ["a", "web", "side-car", "init", "x" * 63, "", 'q"uote', "n\u00e4me", "tab\t", "\U0001f600", "a, b"]
CAPABILITIES = ["NET_BIND_SERVICE", "CHOWN", "KILL", "SETUID", "SETGID", "SYS_ADMIN", "CAP_SYS_ADMIN", "NET_RAW", "ALL", "all", "", "chown",
                "SYS_CHROOT", "AUDIT_WRITE", "DAC_OVERRIDE", "FOWNER", "FSETID", "MKNOD", "SETFCAP", "SETPCAP", "SYS_TIME", "<&>"]
SYSCTLS = ["kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
           "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time",
           "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem",
           "net.ipv4.tcp_wmem", "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_slow_start_after_idle", "kernel.msgmax",
           "net/ipv4/tcp_syncookies", "kernel.shm*", ""]
GOOD_VOLUMES = ["configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"]
BAD_VOLUMES = ["hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd", "flexVolume",
               "cinder",
               "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk", "portworxVolume",
               "scaleIO", "storageos"]
SELINUX_TYPES = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", "spc_t", "super_t", "container_T"]
PROFILE_TYPES = ["RuntimeDefault", "Localhost", "Unconfined", "", "runtimedefault", "Other<"]
HOSTS = ["", "localhost", "127.0.0.1", "::1", "example.com", "a\\b"]
SECCOMP_VALUES = ["runtime/default", "docker/default", "localhost/x", "localhost/", "unconfined", "", 'a"b\n', "\u00e9\u2028"]
APPARMOR_VALUES = ["", "runtime/default", "localhost/", "localhost/p", "unconfined", "\x7f\x01", "LOCALHOST/x"]
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
# policy does not evaluate these, so their types do not matter
UNREAD = {"value", "port", "containerPort", "devicePath", "mountPath"}
WRONG = [[], {}, "", "yes", 7, -1, 1.5, True, False, [None], {"a": 1}, 2**63, 2**31, -(2**63) - 1]


class Drawer:
    """Draws one pod. `sin` is the probability of a bad value."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.sin = rng.choice([0.0, 0.02, 0.05, 0.15, 0.5, 0.9])

    def bad(self) -> bool:
        return self.rng.random() < self.sin

    def maybe(self, target: dict[str, Json], key: str, chance: float, draw: Callable[[], Json]) -> None:
        if self.rng.random() < chance:
            target[key] = draw()
        elif self.rng.random() < 0.02:
            target[key] = None

    def flag(self, good: bool) -> Json:
        return good != self.bad()

    def either(self, good: list[Json], every: list[Json]) -> Json:
        return self.rng.choice(every if self.bad() else good)

    def selinux(self) -> Json:
        options: dict[str, Json] = {}
        self.maybe(options, "type", 0.7, lambda: self.either(SELINUX_TYPES[:4], SELINUX_TYPES))
        self.maybe(options, "level", 0.4, lambda: "s0:c1,c2")
        self.maybe(options, "user", 0.1 + self.sin / 2, lambda: self.either([""], ["", "system_u"]))
        self.maybe(options, "role", 0.1 + self.sin / 2, lambda: self.either([""], ["", "system_r"]))
        return options

    def profile(self) -> Json:
        profile: dict[str, Json] = {}
        self.maybe(profile, "type", 0.97, lambda: self.either(PROFILE_TYPES[:2], PROFILE_TYPES))
        self.maybe(profile, "localhostProfile", 0.2, lambda: "p.json")
        return profile

    def windows(self) -> Json:
        options: dict[str, Json] = {}
        self.maybe(options, "hostProcess", 0.6, lambda: self.flag(False))
        return options

    def names(self, good: list[str], every: list[str]) -> Json:
        return [self.either(list(good), list(every)) for _ in range(self.rng.choice([0, 1, 1, 2, 3]))]

    def capabilities(self) -> Json:
        capabilities: dict[str, Json] = {}
        self.maybe(capabilities, "add", 0.5,
                   lambda: self.names(CAPABILITIES[:1] if self.rng.random() < 0.5 else CAPABILITIES[:5], CAPABILITIES))
        self.maybe(capabilities, "drop", 0.9, lambda: ["ALL"] if not self.bad() else self.names(["ALL"], CAPABILITIES))
        return capabilities

    def context(self) -> Json:
        context: dict[str, Json] = {}
        self.maybe(context, "privileged", 0.3, lambda: self.flag(False))
        self.maybe(context, "allowPrivilegeEscalation", 1 - self.sin, lambda: self.flag(False))
        self.maybe(context, "readOnlyRootFilesystem", 0.2, lambda: self.flag(True))
        self.maybe(context, "runAsNonRoot", 0.4, lambda: self.flag(True))
        self.maybe(context, "runAsUser", 0.4, lambda: self.either([1000], [0, 0, -1, 2**63 - 1]))
        self.maybe(context, "runAsGroup", 0.2, lambda: self.either([1000], [0, 65536]))
        self.maybe(context, "procMount", 0.3, lambda: self.either(["Default"], ["Unmasked", "Unmasked", "", "default", 'U"<x>']))
        self.maybe(context, "capabilities", 1 - self.sin / 2, self.capabilities)
        self.maybe(context, "seLinuxOptions", 0.3, self.selinux)
        self.maybe(context, "seccompProfile", 0.5, self.profile)
        self.maybe(context, "appArmorProfile", 0.3, self.profile)
        self.maybe(context, "windowsOptions", 0.2, self.windows)
        return context

    def handler(self) -> Json:
        handler: dict[str, Json] = {}
        for key in ("httpGet", "tcpSocket"):
            self.maybe(handler, key, 0.5, lambda: {"port": 80} | ({"host": self.either([""], HOSTS)} if self.rng.random() < 0.5 else {}))
        return handler

    def lifecycle(self) -> Json:
        lifecycle: dict[str, Json] = {}
        self.maybe(lifecycle, "postStart", 0.5, self.handler)
        self.maybe(lifecycle, "preStop", 0.5, self.handler)
        return lifecycle

    def port(self) -> Json:
        port: dict[str, Json] = {"containerPort": 80}
        self.maybe(port, "hostPort", 0.3, lambda: self.either([0], [0, 1, 9, 80, 443, 10000, -5]))
        return port

    def container(self, ephemeral: bool) -> Json:
        container: dict[str, Json] = {"image": "i"}
        self.maybe(container, "name", 0.98, lambda: self.rng.choice(NAMES[:4] if self.rng.random() < 0.9 else NAMES))
        self.maybe(container, "securityContext", 1 - self.sin / 3, self.context)
        if self.rng.random() < 0.3 and not (ephemeral and self.rng.random() < 0.7):
            self.maybe(container, "ports", 0.5, lambda: [self.port() for _ in range(self.rng.randrange(4))])
            for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
                self.maybe(container, probe, 0.3, self.handler)
            self.maybe(container, "lifecycle", 0.3, self.lifecycle)
            self.maybe(container, "volumeMounts", 0.3, lambda: [{"name": f"v{i}", "mountPath": "/m"} for i in range(self.rng.randrange(3))])
            self.maybe(container, "volumeDevices", 0.2, lambda: [{"name": "v", "devicePath": "/d"}][: self.rng.randrange(2)])
        return container

    def volume(self) -> Json:
        volume: dict[str, Json] = {"name": self.rng.choice(NAMES)}
        for _ in range(self.rng.choice([1, 1, 1, 1, 1, 1, 0, 2])):
            kind = str(self.either(list(GOOD_VOLUMES), BAD_VOLUMES + ["noSuchVolume"]))
            volume[kind] = {} if self.rng.random() < 0.97 else None
        return volume

    def pod_context(self) -> Json:
        context: dict[str, Json] = {}
        self.maybe(context, "runAsNonRoot", 0.6, lambda: self.flag(True))
        self.maybe(context, "runAsUser", 0.3, lambda: self.either([1000], [0, 0, 65536]))
        self.maybe(context, "fsGroup", 0.2, lambda: self.either([1000], [0]))
        self.maybe(context, "supplementalGroups", 0.2, lambda: [self.either([1000], [0]) for _ in range(self.rng.randrange(3))])
        self.maybe(context, "sysctls", 0.4, lambda: [{"name": self.either(list(SYSCTLS[:5]), list(SYSCTLS)), "value": "1"}
                                                     for _ in range(self.rng.randrange(4))])
        self.maybe(context, "seLinuxOptions", 0.3, self.selinux)
        self.maybe(context, "seccompProfile", 0.6, self.profile)
        self.maybe(context, "appArmorProfile", 0.3, self.profile)
        self.maybe(context, "windowsOptions", 0.2, self.windows)
        return context

    def annotations(self) -> Json:
        annotations: dict[str, Json] = {"other": "x"}
        if self.rng.random() < 0.4:
            annotations[SECCOMP_POD] = self.either(list(SECCOMP_VALUES[:4]), list(SECCOMP_VALUES))
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            annotations[SECCOMP_CONTAINER + self.rng.choice(NAMES)] = self.either(list(SECCOMP_VALUES[:4]), list(SECCOMP_VALUES))
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            annotations[APPARMOR + self.rng.choice(NAMES)] = self.either(list(APPARMOR_VALUES[:4]), list(APPARMOR_VALUES))
        return annotations

    def pod(self) -> dict[str, Json]:
        metadata: dict[str, Json] = {"name": "p"}
        spec: dict[str, Json] = {}
        self.maybe(metadata, "annotations", 0.5, self.annotations)
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            self.maybe(spec, key, 0.2, lambda: self.flag(False))
        self.maybe(spec, "hostUsers", 0.6, lambda: self.rng.random() < 0.4)
        self.maybe(spec, "os", 0.2, lambda: {"name": self.rng.choice(["linux", "windows", "windows", "Windows"])})
        self.maybe(spec, "securityContext", 0.85, self.pod_context)
        self.maybe(spec, "initContainers", 0.3, lambda: [self.container(False) for _ in range(self.rng.randrange(3))])
        self.maybe(spec, "containers", 0.98, lambda: [self.container(False) for _ in range(self.rng.choice([1, 1, 1, 2, 3]))])
        self.maybe(spec, "ephemeralContainers", 0.15, lambda: [self.container(True) for _ in range(self.rng.randrange(3))])
        self.maybe(spec, "volumes", 0.5, lambda: [self.volume() for _ in range(self.rng.randrange(4))])
        pod: dict[str, Json] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        if self.rng.random() < 0.02:
            self.spoil(pod)
        return pod

    def spoil(self, pod: dict[str, Json]) -> None:
        """Puts a value of any type in a random place."""
        at: Json = pod["spec"]
        while True:
            if isinstance(at, dict) and at:
                key: Json = self.rng.choice(list(at))
                if key in UNREAD:
                    return
            elif isinstance(at, list) and at:
                key = self.rng.randrange(len(at))
            else:
                return
            inner = at[key]
            if isinstance(inner, (dict, list)) and inner and self.rng.random() < 0.8:
                at = inner
                continue
            at[key] = self.rng.choice(WRONG)
            return


def draw_pod(rng: random.Random) -> dict[str, Json]:
    return Drawer(rng).pod()


def draw_labels(rng: random.Random) -> dict[str, str]:
    """Labels of a namespace."""
    labels = {}
    for mode in ("enforce", "audit", "warn"):
        if rng.random() < 0.6:
            labels[f"pod-security.kubernetes.io/{mode}"] = rng.choice(["privileged", "baseline", "restricted", "restricted", "", "Baseline",
                                                                       "x\n"])
        if rng.random() < 0.5:
            labels[f"pod-security.kubernetes.io/{mode}-version"] = rng.choice(
                ["latest", "v1.0", "v1.24", "v1.36", "v1.37", "v1.99", "v1.01", "1.24", "v2.0", "v1.", "v1.-1", "v1.+1", "v1.1\n",
                 "v1.4294967296", "v1.99999999999999999999", "Latest", ""])
    return labels


def draw_selector(rng: random.Random) -> tuple[Json, dict[str, str]]:
    """A label selector and labels to match."""
    keys = ["a", "b", "example.com/a", "A.b_c-d", "x" * 63]
    bad_keys = ["", "-a", "a-", "example.com/", "/a", "a/b/c", "Ex.com/a", "x" * 64, "a..b/c", "a-.b/c", "e" * 254 + "/a", "\u00e9", "a b"]
    values = ["", "1", "x", "v_1.-2", "x" * 63]
    bad_values = ["-", "x" * 64, "a b", ".a", "\u00e9"]

    def key() -> str:
        return rng.choice(keys if rng.random() < 0.93 else bad_keys)

    def value() -> str:
        return rng.choice(values if rng.random() < 0.95 else bad_values)

    labels = {rng.choice(keys): rng.choice(values) for _ in range(rng.randrange(4))}
    if rng.random() < 0.05:
        return None, labels
    selector: dict[str, Json] = {}
    if rng.random() < 0.5:
        selector["matchLabels"] = {key(): value() for _ in range(rng.randrange(3))}
    if rng.random() < 0.7:
        selector["matchExpressions"] = [
            {"key": key(), "operator": rng.choice(["In", "NotIn", "Exists", "DoesNotExist"] if rng.random() < 0.95 else ["in", "", "Gt"]),
             "values": [value() for _ in range(rng.choice([0, 0, 1, 2]))]} for _ in range(rng.randrange(3))]
        for expression in selector["matchExpressions"]:
            takes = expression["operator"] in ("In", "NotIn")
            if rng.random() < 0.9 and takes != bool(expression["values"]):
                expression["values"] = [value()] if takes else []
    return selector, labels
