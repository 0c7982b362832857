# SPDX-License-Identifier: Apache-2.0
"""Volumes and devices of pods on a rootless node. docs/rootless-workloads.md names these tests."""
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alice import NODE, UID, Alice
from nodenstest.people import FOREVER, container

pytestmark = pytest.mark.rootless
DATA = "~/.local/share/nodens/default/lib"     # /var/lib of the node


def mount(name: str, path: str = "/v", **more: Any) -> dict[str, Any]:
    return {"volumeMounts": [{"name": name, "mountPath": path, **more}]}


def run(alice: Alice, name: str, script: str, volume: dict[str, Any], **more: Any) -> list[str]:
    """What a script prints that has the volume at /v."""
    alice.pod(name, container(script, **mount("v")), volumes=[{"name": "v", **volume}], restartPolicy="Never", **more)
    alice.phase(name, "Succeeded")
    return alice.log(name).split()


def test_an_empty_directory_is_on_the_disk_of_the_user_and_ends_with_its_pod(alice: Alice) -> None:
    script = f"echo x >/v/made; stat -c %u /v/made; grep -c ' /v tmpfs' /proc/mounts; {FOREVER}"
    alice.pod("empty", container(script, **mount("v")), volumes=[{"name": "v", "emptyDir": {}}])
    alice.ready("empty")
    alice.until(lambda: alice.log("empty").split() == ["0", "0"], "root's file, and not on a tmpfs")
    uid = alice.get("pod", "empty")["metadata"]["uid"]
    path = f"{DATA}/kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/v/made"
    assert alice.on_host(f"stat -c %u {path}").strip() == str(UID), "root of the pod is alice outside"
    alice.kubectl("delete", "pod", "empty")
    alice.until(lambda: alice.on_host(f"ls {path} 2>/dev/null || true") == "", "the end of the volume")


def test_an_empty_directory_in_memory_has_its_size_limit(alice: Alice) -> None:
    script = "grep -c ' /v tmpfs.*size=1024k' /proc/mounts; dd if=/dev/zero of=/v/x bs=1M count=2 2>&1 | grep -o 'No space' | head -1"
    said = run(alice, "memory", script, {"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}})
    assert said == ["1", "No", "space"]


def test_a_group_owns_the_volumes_of_its_pod(alice: Alice) -> None:
    said = run(alice, "group", "stat -c %g /v; id -G; touch /v/x && stat -c %g /v/x", {"emptyDir": {}},
               securityContext={"runAsUser": 1234, "runAsGroup": 1234, "fsGroup": 4321})
    assert said == ["4321", "1234", "4321", "4321"]


def test_a_host_path_is_one_of_the_node_and_not_of_the_host(alice: Alice) -> None:
    alice.in_node("mkdir -p /var/lib/story && printf inside >/var/lib/story/key")
    assert run(alice, "path", "cat /v/key", {"hostPath": {"path": "/var/lib/story"}}) == ["inside"]
    alice.on_host("test -e ~/join.kubeconfig")
    said = run(alice, "root", "test -e /v/home/alice/join.kubeconfig || echo hidden; touch /v/usr/x 2>&1 | grep -o 'Read-only'",
               {"hostPath": {"path": "/"}})
    assert said == ["hidden", "Read-only"], "neither alice's home directory nor a writable /usr"


def local_volume(alice: Alice, name: str, **spec: Any) -> None:
    """A volume of the node's disk, and a claim that gets it."""
    here = {"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}]}}
    common: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "storageClassName": name,
                              "volumeMode": spec.pop("volumeMode", "Filesystem")}
    alice.apply("PersistentVolume", f"{alice.namespace}-{name}", spec={
        "capacity": {"storage": "1Gi"}, "persistentVolumeReclaimPolicy": "Delete", "nodeAffinity": here, **common, **spec})
    alice.apply("PersistentVolumeClaim", name, spec={"resources": {"requests": {"storage": "1Gi"}}, **common})


@pytest.fixture
def volumes(alice: Alice) -> Iterator[None]:
    yield
    alice.kubectl("delete", "pods,persistentvolumeclaims", "--all", "--timeout=300s", timeout=330)
    for line in alice.kubectl("get", "persistentvolumes", "-o", "name").split():
        if alice.namespace in line:
            alice.kubectl("delete", line, "--timeout=120s")


def test_a_local_persistent_volume_keeps_its_data_between_pods(alice: Alice, volumes: None) -> None:
    alice.in_node("mkdir -p /var/lib/local-volume && rm -f /var/lib/local-volume/*")
    local_volume(alice, "local", local={"path": "/var/lib/local-volume"})
    claim = {"persistentVolumeClaim": {"claimName": "local"}}
    assert run(alice, "first", "echo kept >/v/key; cat /v/key", claim) == ["kept"]
    assert run(alice, "second", "cat /v/key", claim) == ["kept"]


def test_config_maps_and_secrets_follow_their_objects(alice: Alice) -> None:
    alice.kubectl("create", "configmap", "settings", "--from-literal=key=before")
    alice.kubectl("create", "secret", "generic", "hidden", "--from-literal=key=secret")
    volumes = [{"name": "c", "configMap": {"name": "settings"}}, {"name": "s", "secret": {"secretName": "hidden", "defaultMode": 0o400}}]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("c", "s")]
    script = "cat /s/key; echo; stat -Lc %a /s/key; grep -c ' /s tmpfs' /proc/mounts; while sleep 0.5; do cat /c/key; echo; done"
    alice.pod("follows", container(script, volumeMounts=mounts), volumes=volumes)
    alice.ready("follows")
    alice.until(lambda: alice.log("follows").split()[:4] == ["secret", "400", "1", "before"], "the first content")
    alice.apply("ConfigMap", "settings", data={"key": "after"})
    alice.until(lambda: "after" in alice.log("follows").split(), "the new content")


def test_a_projected_token_is_accepted_by_the_api_server(alice: Alice) -> None:
    sources = [{"serviceAccountToken": {"path": "token", "expirationSeconds": 600}},
               {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]
    script = ("cat /v/labels; echo; wget -T 20 -q -O - --no-check-certificate --header \"Authorization: Bearer $(cat /v/token)\" "
              "https://10.96.0.1/apis/authentication.k8s.io 2>&1 | grep -c APIGroup")
    alice.kubectl("create", "-f", "-", stdin=json.dumps({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "token", "labels": {"app": "story"}}, "spec": {
            "restartPolicy": "Never", "volumes": [{"name": "v", "projected": {"sources": sources}}],
            "containers": [container(script, **mount("v"))]}}))
    alice.phase("token", "Succeeded")
    assert alice.log("token").split() == ['app="story"', "1"]


def test_a_downward_volume_has_the_pods_own_limits(alice: Alice) -> None:
    items = [{"path": "memory", "resourceFieldRef": {"containerName": "main", "resource": "limits.memory", "divisor": "1Mi"}},
             {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]
    alice.pod("downward", container("cat /v/memory; echo; cat /v/name", resources={"limits": {"memory": "64Mi"}}, **mount("v")),
              volumes=[{"name": "v", "downwardAPI": {"items": items}}], restartPolicy="Never")
    alice.phase("downward", "Succeeded")
    assert alice.log("downward").split() == ["64", "downward"]


def test_a_sub_path_shows_one_directory_and_not_what_a_link_leads_to(alice: Alice) -> None:
    volume = {"name": "v", "emptyDir": {}}
    first = container("mkdir /v/part; echo seen >/v/part/key; ln -s /etc /v/link", "first", **mount("v"))
    alice.pod("part", container("cat /v/key; ls /v", **mount("v", subPath="part")), volumes=[volume], initContainers=[first],
              restartPolicy="Never")
    alice.phase("part", "Succeeded")
    assert alice.log("part").split() == ["seen", "key"]
    alice.pod("link", container("ls /v", **mount("v", subPath="link")), volumes=[volume], initContainers=[first], restartPolicy="Never")
    reason = alice.until(lambda: alice.waits("link", "subPath"), "the refusal")
    assert "failed to prepare subPath for volumeMount" in reason, reason


# ---- FUSE

PYTHON = [{"name": name, "hostPath": {"path": f"/usr/{name}".replace("/usr/usr", "/usr")}} for name in ("usr", "lib", "lib64")]
SERVER = "/usr/bin/python3 /program/fuse_file.py"


def fuse(alice: Alice) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes and mounts with /dev/fuse, the server, and Python of the node for it."""
    alice.apply("ConfigMap", "program", data={"fuse_file.py": (Path(__file__).parent / "fuse_file.py").read_text()})
    volumes = [*PYTHON, {"name": "fuse", "hostPath": {"path": "/dev/fuse", "type": "CharDevice"}},
               {"name": "program", "configMap": {"name": "program"}}]
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}", "readOnly": True} for one in PYTHON]
    return volumes, [*mounts, {"name": "fuse", "mountPath": "/dev/fuse"}, {"name": "program", "mountPath": "/program"}]


def test_a_pod_mounts_a_fuse_filesystem_for_itself(alice: Alice) -> None:
    volumes, mounts = fuse(alice)
    script = f"mkdir /f; {SERVER} /f hello & until grep -q ' /f fuse' /proc/mounts; do sleep 0.2; done; cat /f/greeting; kill $!"
    alice.pod("own", container(script, volumeMounts=mounts, securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}), volumes=volumes,
              restartPolicy="Never")
    alice.phase("own", "Succeeded")
    assert "hello" in alice.log("own")
    assert "greeting" not in alice.on_host("cat /proc/mounts"), "the host does not see it"


def test_a_fuse_filesystem_of_a_sidecar_is_a_volume_of_another_container(alice: Alice) -> None:
    volumes, mounts = fuse(alice)
    # a mount that is left over keeps the kubelet from removing the volume, so the server removes it, as storage drivers do
    served = f"mkdir -p /v/f; trap 'umount -l /v/f; exit' TERM; {SERVER} /v/f shared & wait"
    server = container(served, "server", securityContext={"privileged": True},
                       volumeMounts=[*mounts, {"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}])
    reader = container(f"until cat /v/f/greeting 2>/dev/null; do sleep 0.2; done; echo; {FOREVER}", "reader",
                       volumeMounts=[{"name": "v", "mountPath": "/v", "mountPropagation": "HostToContainer"}])
    alice.pod("sidecar", server, reader, volumes=[*volumes, {"name": "v", "emptyDir": {}}])
    alice.until(lambda: alice.status("sidecar").get("phase") == "Running" and "shared" in alice.log("sidecar", "-c", "reader"),
                "the file of the sidecar")
    alice.kubectl("delete", "pod", "sidecar", "--timeout=120s", timeout=150)
    assert "greeting" not in alice.in_node("cat /proc/mounts"), "the mount ends with the pod"


# ---- CDI

DEVICE = "story.example/device"      # of ~alice/cdi, which her node has by `up --cdi`


@contextlib.contextmanager
def device_plugin(alice: Alice, answer: str) -> Iterator[None]:
    """A device plugin as root of the node: with CDI devices of alice's own file, or /dev/fuse with these permissions."""
    plugin = (Path(__file__).parent.parent / "device_plugin.py").read_text()
    put = alice.cluster.node_exec(["sh", "-c", f"cat >{DATA}/story-plugin.py"], stdin=plugin, user="alice")
    assert put.returncode == 0, put.stderr
    alice.on_host("systemd-run --user --unit=story-plugin --collect nodens-rootless shell -- "
                  f"python3 -B /var/lib/story-plugin.py {DEVICE} {answer}")
    try:
        alice.until(lambda: alice.node()["status"]["allocatable"].get(DEVICE) == "4", "the device plugin")
        yield
    finally:
        alice.on_host("systemctl --user stop story-plugin")
        alice.until(lambda: alice.node()["status"]["allocatable"].get(DEVICE) == "0", "the end of the device plugin")


def test_a_cdi_device_of_the_users_own_file_is_in_the_container(alice: Alice) -> None:
    script = "echo $STORY; exec 3<>/dev/fuse && echo opened"
    with device_plugin(alice, f"{DEVICE}=one"):
        alice.pod("cdi", container(script, resources={"limits": {DEVICE: "1"}}), restartPolicy="Never")
        alice.phase("cdi", "Succeeded")
    assert alice.log("cdi").split() == ["from-cdi", "opened"]


def test_without_the_device_a_container_has_none_of_it(alice: Alice) -> None:
    alice.pod("plain", container("echo ${STORY:-none}; test -e /dev/fuse || echo absent"), restartPolicy="Never")
    alice.phase("plain", "Succeeded")
    assert alice.log("plain").split() == ["none", "absent"]
