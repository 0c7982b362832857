# SPDX-License-Identifier: Apache-2.0
"""A stock control plane and an image for nodes that run pods where the kernel has no cgroup controllers, without a guest."""
import contextlib
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubernetes import TOKEN, WORK, call, control_plane, program
from nodenstest import images, machine
from nodenstest.machine import HOME, ROUTER4

PROGRAMS, KUBECONFIG, ARCHIVE = HOME / "kubernetes", HOME / "real-kubeconfig", HOME / "busybox.tar"
IMAGE = "nodens.test/busybox:1"
OURS = {"nodens-cri": "nodens-cri", "nodens-mon": "mon/nodens-mon", "nodens-fetch": "pull/nodens-fetch",
        "nodens-unpack": "pull/nodens-unpack", "nodens": "nodens"}
OPTIONS = ("--join", str(KUBECONFIG), "--programs", str(PROGRAMS), "--no-cgroups", "--bind", f"{ARCHIVE}:ro")


def kubeconfig() -> str:
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"https://{ROUTER4}:6443", "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}]})


def busybox_layer() -> bytes:
    """The layer with busybox of the project's own images."""
    for index in sorted(Path("/cache/images/own").glob("*/layout/index.json"), key=lambda path: path.stat().st_mtime, reverse=True):
        blobs = index.parent / "blobs/sha256"
        for listed in json.loads(index.read_text())["manifests"]:
            if listed["annotations"]["io.containerd.image.name"].endswith("/layers:none"):
                manifest = json.loads((blobs / listed["digest"].removeprefix("sha256:")).read_text())
                return (blobs / manifest["layers"][0]["digest"].removeprefix("sha256:")).read_bytes()
    raise AssertionError("`tools/dev images own` has not been run")


def write_archive(path: Path) -> None:
    """An OCI archive of one image with one layer."""
    layer = busybox_layer()
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/bin"], "Cmd": ["sh"]},
                         "rootfs": {"type": "layers", "diff_ids": [images.digest(layer)]}}).encode()
    manifest = json.dumps({
        "schemaVersion": 2, "mediaType": images.MANIFEST,
        "config": {"mediaType": images.CONFIG, "digest": images.digest(config), "size": len(config)},
        "layers": [{"mediaType": images.LAYER, "digest": images.digest(layer), "size": len(layer)}]}).encode()
    index = json.dumps({"schemaVersion": 2, "mediaType": images.INDEX, "manifests": [{
        "mediaType": images.MANIFEST, "digest": images.digest(manifest), "size": len(manifest),
        "annotations": {"io.containerd.image.name": IMAGE, "org.opencontainers.image.ref.name": "1"}}]}).encode()
    blobs = [images.entry("blobs/sha256/" + images.digest(data).removeprefix("sha256:"), data) for data in (layer, config, manifest)]
    path.write_bytes(images.tar(images.entry("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'), images.entry("index.json", index), *blobs,
                                format=tarfile.USTAR_FORMAT))


def install() -> None:
    """What a user has in the home directory: the programs of Kubernetes and of nodens, a kubeconfig and an image."""
    shutil.rmtree(PROGRAMS, ignore_errors=True)
    PROGRAMS.mkdir(parents=True)
    for name in ("kubelet", "kube-proxy"):
        shutil.copy(program(name), PROGRAMS / name)
    for name, built in OURS.items():
        shutil.copy(machine.BUILD / "src" / built, PROGRAMS / name)
    KUBECONFIG.write_text(kubeconfig())
    write_archive(ARCHIVE)
    for path in (PROGRAMS, KUBECONFIG, ARCHIVE):
        os.chown(path, machine.UID, machine.UID)


@contextlib.contextmanager
def whole_control_plane() -> Iterator[None]:
    """The API server with the scheduler and the controllers of a Job."""
    config = Path("/tmp/control-plane-kubeconfig")
    config.write_text(kubeconfig())
    with control_plane(), (WORK / "controllers-log").open("w") as log:
        started = [subprocess.Popen(machine.within("router", *command), stdout=log, stderr=log) for command in (
            [str(program("kube-scheduler")), f"--kubeconfig={config}", "--leader-elect=false"],
            [str(program("kube-controller-manager")), f"--kubeconfig={config}", "--leader-elect=false",
             "--use-service-account-credentials=false", f"--service-account-private-key-file={WORK}/sa.key",
             f"--root-ca-file={WORK}/apiserver.crt", "--allocate-node-cidrs=false"])]
        try:
            yield
        finally:
            for process in started:
                process.kill()
                process.wait()


def get(path: str) -> dict[str, Any]:
    with contextlib.suppress(AssertionError):
        return call("GET", path)
    return {}


def node_ready(name: str) -> bool:
    conditions = get(f"/api/v1/nodes/{name}").get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def pod(name: str, node: str, *command: str) -> dict[str, Any]:
    """A pod for one node, past the scheduler."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "nodeName": node, "restartPolicy": "Never", "automountServiceAccountToken": False, "enableServiceLinks": False,
        "containers": [{"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "command": list(command)}]}}


def phase(name: str) -> str:
    return get(f"/api/v1/namespaces/default/pods/{name}").get("status", {}).get("phase", "")


def make_pod(body: dict[str, Any]) -> None:
    machine.wait_for(lambda: get("/api/v1/namespaces/default/serviceaccounts/default").get("kind") == "ServiceAccount", 60,
                     "the namespace has its service account")
    call("POST", "/api/v1/namespaces/default/pods", body)
