# SPDX-License-Identifier: Apache-2.0
"""Generated pods that an API server accepts, except, on request, for the rules around hostUsers."""
import random
from typing import Any

Json = dict[str, Any]

SYSCTLS = [{"name": "net.ipv4.tcp_syncookies", "value": "1"}, {"name": "kernel.shm_rmid_forced", "value": "1"},
           {"name": "kernel.msgmax", "value": "65536"}, {"name": "net.ipv4.tcp_keepalive_time", "value": "600"}]
VOLUMES: list[Json] = [{"emptyDir": {}}, {"configMap": {"name": "m"}}, {"secret": {"secretName": "s"}}, {"hostPath": {"path": "/x"}},
                       {"nfs": {"server": "n", "path": "/"}}, {"downwardAPI": {"items": []}}, {"persistentVolumeClaim": {"claimName": "c"}},
                       {"projected": {"sources": []}}, {"csi": {"driver": "d"}}, {"image": {"reference": "r"}}]
CAPABILITIES = ["NET_BIND_SERVICE", "CHOWN", "KILL", "SETUID", "NET_RAW", "SYS_TIME", "NET_ADMIN", "MKNOD"]


def maybe(rng: random.Random, target: Json, key: str, chance: float, values: list[Any]) -> None:
    if rng.random() < chance:
        target[key] = rng.choice(values)


def profile(rng: random.Random) -> Json:
    kind = rng.choice(["RuntimeDefault", "RuntimeDefault", "Localhost", "Unconfined"])
    return {"type": kind} | ({"localhostProfile": "p.json"} if kind == "Localhost" else {})


def selinux(rng: random.Random) -> Json:
    return {"type": rng.choice(["container_t", "container_init_t", "spc_t", ""]),
            "level": "s0:c1,c2"} | rng.choice([{}, {}, {"user": "u"}, {"role": "r"}])


def context(rng: random.Random, proc_mounts: list[str]) -> Json:
    made: Json = {}
    maybe(rng, made, "privileged", 0.15, [True, False])
    maybe(rng, made, "allowPrivilegeEscalation", 0.6, [False, False, True])
    if made.get("privileged"):
        made.pop("allowPrivilegeEscalation", None)
    maybe(rng, made, "runAsNonRoot", 0.4, [True, False])
    maybe(rng, made, "runAsUser", 0.4, [1000, 0])
    maybe(rng, made, "procMount", 0.3, proc_mounts)
    if rng.random() < 0.6:
        made["capabilities"] = {"drop": rng.choice([["ALL"], ["KILL"], []]), "add": rng.sample(CAPABILITIES, rng.choice([0, 0, 1, 2]))}
    if rng.random() < 0.3:
        made["seLinuxOptions"] = selinux(rng)
    if rng.random() < 0.5:
        made["seccompProfile"] = profile(rng)
    if rng.random() < 0.2:
        made["appArmorProfile"] = {"type": rng.choice(["RuntimeDefault", "Unconfined"])}
    return made


def container(rng: random.Random, name: str, host_network: bool, devices: bool, proc_mounts: list[str]) -> Json:
    made: Json = {"name": name, "image": "i"}
    if rng.random() < 0.85:
        made["securityContext"] = context(rng, proc_mounts)
    if rng.random() < 0.2:
        port = rng.randrange(1000, 60000)
        made["ports"] = [{"containerPort": port} | ({"hostPort": port} if host_network or rng.random() < 0.3 else {})]
    if rng.random() < 0.15 and name.startswith("c"):  # init containers have none
        made["lifecycle"] = {"preStop": {"httpGet": {"port": 80} | rng.choice([{}, {"host": "example.com"}])}}
    if devices and rng.random() < 0.5:
        made["volumeDevices"] = [{"name": "block", "devicePath": "/dev/x"}]
    return made


def draw(rng: random.Random, name: str, obeys: bool) -> Json:
    """A pod; without obeys it sometimes breaks the rules around hostUsers."""
    spec: Json = {}
    maybe(rng, spec, "hostUsers", 0.6, [False, False, True])
    isolated = spec.get("hostUsers") is False
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if not (obeys and isolated):
            maybe(rng, spec, key, 0.2, [True, False])
    devices = not (obeys and isolated) and rng.random() < 0.15
    proc_mounts = ["Default", "Unmasked"] if isolated or not obeys else ["Default"]
    host_network = bool(spec.get("hostNetwork"))
    if rng.random() < 0.7:
        whole: Json = {}
        maybe(rng, whole, "runAsNonRoot", 0.6, [True, True, False])
        maybe(rng, whole, "runAsUser", 0.3, [1000, 0])
        maybe(rng, whole, "fsGroup", 0.2, [1000, 0])
        if rng.random() < 0.3 and not host_network:
            whole["sysctls"] = rng.sample([one for one in SYSCTLS if not spec.get("hostIPC") or one["name"].startswith("net.")],
                                          rng.choice([1, 1, 2]))
        if rng.random() < 0.3:
            whole["seLinuxOptions"] = selinux(rng)
        if rng.random() < 0.6:
            whole["seccompProfile"] = profile(rng)
        spec["securityContext"] = whole
    kinds = {"containers": rng.choice([1, 1, 2]), "initContainers": rng.choice([0, 0, 1])}
    for kind, count in kinds.items():
        spec[kind] = [container(rng, f"{kind[0]}{number}", host_network, devices, proc_mounts) for number in range(count)]
    spec["volumes"] = [{"name": f"v{number}", **rng.choice(VOLUMES)} for number in range(rng.choice([0, 0, 1, 2]))]
    if devices:
        spec["volumes"].append({"name": "block", "persistentVolumeClaim": {"claimName": "b"}})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
