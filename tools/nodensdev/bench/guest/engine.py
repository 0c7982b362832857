# SPDX-License-Identifier: Apache-2.0
"""engine.py - the bare engine: what a pod costs with only CNI plugins and crun

Theory of operation
  A separate process (`python3 -m nodensdev.bench.guest.engine CONFIG`), without threads, that reads
  one JSON request per line and answers with the milliseconds that the step took. Its steps have the
  names of the CRI's calls and do what is left of them without a daemon, a store or a record:
    RunPodSandbox     namespaces created and pinned by a child, CNI ADD (loopback, bridge)
    CreateContainer   overlay over the layer (idmapped in a user namespace), spec, crun create
    StartContainer    crun start
    ExecSync          crun exec /bin/true
    StopContainer     crun kill, and the wait for the process's end
    RemoveContainer   crun delete, overlay unmounted
    StopPodSandbox    CNI DEL, pins unmounted
    RemovePodSandbox  directory removed
  Filesystems, plugins and crun are those of the runtimes under test; only the caller differs.
"""
import ctypes
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...cri_client import BLOCK, MASKED_PATHS, READONLY_PATHS

STATE = Path("/run/bench-engine")
STORE = Path("/var/lib/bench-engine")
CNI = Path("/usr/lib/cni")
WORKLOAD = ["/bin/sleep", "86398"]
CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWNET = 0x04000000, 0x08000000, 0x10000000, 0x40000000
MS_BIND, MNT_DETACH = 0x1000, 2
PINNED = ("net", "ipc", "uts")
CAPABILITIES = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID",
                "CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE"]

libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Pod:
    """A pod of the bare engine: a name, and the first host ID of its block if it has a user namespace."""

    name: str
    base: int | None

    @property
    def state(self) -> Path:
        return STATE / self.name

    @property
    def files(self) -> Path:
        return STORE / self.name


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None) -> None:
    words = [text.encode() if text else None for text in (source, target, kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), data.encode() if data else None) < 0:
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}")


def unmount(target: Path) -> None:
    if libc.umount2(str(target).encode(), MNT_DETACH) < 0:
        raise OSError(ctypes.get_errno(), f"umount {target}")


def run(*argv: str, **options: Any) -> None:
    subprocess.run(argv, check=True, close_fds=False, **options)


def make_namespaces(pod: Pod) -> None:
    """A child makes the namespaces, waits to be mapped and pinned, and ends."""
    to_child, from_child = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        namespaces_child(pod, to_child[0], from_child[1])
    os.close(to_child[0])
    os.close(from_child[1])
    pinned = list(PINNED)
    if pod.base is not None:
        pinned.append("user")
        os.read(from_child[0], 1)
        for kind in ("uid", "gid"):
            Path(f"/proc/{child}/{kind}_map").write_text(f"0 {pod.base} {BLOCK}\n")
        os.write(to_child[1], b"m")
    os.read(from_child[0], 1)
    for kind in pinned:
        (pod.state / kind).touch()
        mount(f"/proc/{child}/ns/{kind}", str(pod.state / kind), None, MS_BIND, None)
    os.write(to_child[1], b"e")
    os.waitpid(child, 0)
    os.close(to_child[1])
    os.close(from_child[0])


def namespaces_child(pod: Pod, requests: int, answers: int) -> None:
    try:
        if pod.base is not None:
            os.unshare(CLONE_NEWUSER)
            os.write(answers, b"u")
            os.read(requests, 1)
        os.unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
        socket.sethostname(pod.name)
        os.write(answers, b"n")
        os.read(requests, 1)
    finally:
        os._exit(0)


def cni(pod: Pod, command: str) -> None:
    """Both plugins, in the order in which a runtime calls them."""
    environment = {"CNI_COMMAND": command, "CNI_CONTAINERID": pod.name, "CNI_NETNS": str(pod.state / "net"), "CNI_PATH": str(CNI),
                   "PATH": os.environ["PATH"]}
    addresses = {"type": "host-local", "ranges": [[{"subnet": "10.91.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge: dict[str, object] = {"cniVersion": "1.0.0", "name": "bench-engine", "type": "bridge", "bridge": "bench1", "isGateway": True,
              "ipMasq": False, "ipam": addresses}
    loopback: dict[str, object] = {"cniVersion": "1.0.0", "name": "lo", "type": "loopback"}
    steps = [(loopback, "lo"), (bridge, "eth0")]
    for config, interface in steps if command == "ADD" else reversed(steps):
        run(str(CNI / str(config["type"])), input=json.dumps(config).encode(), env=environment | {"CNI_IFNAME": interface},
            stdout=subprocess.DEVNULL)


def run_sandbox(pod: Pod) -> None:
    pod.state.mkdir(parents=True)
    make_namespaces(pod)
    cni(pod, "ADD")


def mount_root(pod: Pod, layer: Path) -> None:
    lower = layer
    for name in ("upper", "work", "root", "lower"):
        (pod.files / name).mkdir(parents=True)
    if pod.base is not None:
        lower = pod.files / "lower"
        run("mount", "--bind", "-o", f"X-mount.idmap=b:0:{pod.base}:{BLOCK}", str(layer), str(lower))
        for name in ("upper", "work"):
            os.chown(pod.files / name, pod.base, pod.base)
    options = f"lowerdir={lower},upperdir={pod.files}/upper,workdir={pod.files}/work,volatile"
    mount("overlay", str(pod.files / "root"), "overlay", 0, options)


def spec(pod: Pod) -> dict[str, Any]:
    """The spec that a runtime would write for a plain container."""
    kinds = [{"type": "pid"}, {"type": "mount"}, {"type": "cgroup"}, {"type": "network", "path": str(pod.state / "net")},
             {"type": "ipc", "path": str(pod.state / "ipc")}, {"type": "uts", "path": str(pod.state / "uts")}]
    linux: dict[str, Any] = {"namespaces": kinds, "cgroupsPath": f"/bench-engine/{pod.name}", "resources": {"cpu": {"shares": 2}},
                             "maskedPaths": list(MASKED_PATHS), "readonlyPaths": list(READONLY_PATHS)}
    if pod.base is not None:
        line = [{"containerID": 0, "hostID": pod.base, "size": BLOCK}]
        linux |= {"uidMappings": line, "gidMappings": line}
        kinds.append({"type": "user", "path": str(pod.state / "user")})
    sets = {name: CAPABILITIES for name in ("bounding", "effective", "permitted")}
    process = {"user": {"uid": 0, "gid": 0}, "args": WORKLOAD, "cwd": "/", "env": ["PATH=/bin"], "capabilities": sets,
               "oomScoreAdj": 1000}
    root = {"path": str(pod.files / "root")}
    return {"ociVersion": "1.0.2", "process": process, "root": root, "mounts": mounts(), "linux": linux}


def mounts() -> list[dict[str, Any]]:
    quiet = ["nosuid", "noexec", "nodev"]
    terminals = ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]
    table = [
        ("/proc", "proc", "proc", quiet),
        ("/dev", "tmpfs", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
        ("/dev/pts", "devpts", "devpts", terminals),
        ("/dev/mqueue", "mqueue", "mqueue", quiet),
        ("/dev/shm", "tmpfs", "shm", [*quiet, "mode=1777", "size=65536k"]),
        ("/sys", "sysfs", "sysfs", [*quiet, "ro"]),
        ("/sys/fs/cgroup", "cgroup", "cgroup", [*quiet, "relatime", "ro"]),
    ]
    return [{"destination": path, "type": kind, "source": source, "options": options} for path, kind, source, options in table]


def create_container(pod: Pod, layer: Path) -> None:
    mount_root(pod, layer)
    (pod.state / "config.json").write_text(json.dumps(spec(pod)))
    with open(pod.files / "log", "wb") as log:
        run("crun", "create", "--bundle", str(pod.state), "--pid-file", str(pod.state / "pid"), pod.name,
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def start_container(pod: Pod) -> None:
    run("crun", "start", pod.name)


def exec_sync(pod: Pod) -> None:
    run("crun", "exec", pod.name, "/bin/true", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def stop_container(pod: Pod) -> None:
    descriptor = os.pidfd_open(int((pod.state / "pid").read_text()))
    run("crun", "kill", pod.name, "KILL")
    select.select([descriptor], [], [], 30)
    os.close(descriptor)


def remove_container(pod: Pod) -> None:
    run("crun", "delete", pod.name)
    unmount(pod.files / "root")
    if pod.base is not None:
        unmount(pod.files / "lower")
    shutil.rmtree(pod.files)


def stop_sandbox(pod: Pod) -> None:
    cni(pod, "DEL")
    for kind in (*PINNED, *(["user"] if pod.base is not None else [])):
        unmount(pod.state / kind)


def remove_sandbox(pod: Pod) -> None:
    shutil.rmtree(pod.state)


def fetch(source: dict[str, str], path: str, target: Path) -> Path:
    accepted = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json"
    run("curl", "-sSf", "--cacert", source["authority"], "-H", f"Accept: {accepted}", "-o", str(target),
        f"https://{source['address']}/v2/{path}")
    return target


def pull(source: dict[str, str], image: str, target: Path) -> None:
    """Every layer fetched, checked and unpacked into one directory."""
    repository, _, tag = image.partition("/")[2].rpartition(":")
    target.mkdir(parents=True)
    blob = target.with_suffix(".blob")
    manifest = json.loads(fetch(source, f"{repository}/manifests/{tag}", blob).read_text())
    if "manifests" in manifest:
        native = next(item for item in manifest["manifests"] if item["platform"]["architecture"] == "amd64")
        manifest = json.loads(fetch(source, f"{repository}/manifests/{native['digest']}", blob).read_text())
    for layer in manifest["layers"]:
        with open(fetch(source, f"{repository}/blobs/{layer['digest']}", blob), "rb") as data:
            if hashlib.file_digest(data, "sha256").hexdigest() != layer["digest"].removeprefix("sha256:"):
                raise RuntimeError(f"layer {layer['digest']} of {image} is not what it should be")
        run("tar", "-xzf", str(blob), "-C", str(target))
    blob.unlink()


class Engine:
    """Serves the requests of one bench."""

    STEPS = {"RunPodSandbox": run_sandbox, "StartContainer": start_container, "ExecSync": exec_sync,
             "StopContainer": stop_container, "RemoveContainer": remove_container, "StopPodSandbox": stop_sandbox,
             "RemovePodSandbox": remove_sandbox}

    def __init__(self, config: dict[str, Any]) -> None:
        self.registry = config["registry"]
        self.layer = STORE / "image"
        for path in (STATE, STORE):
            path.mkdir(parents=True, exist_ok=True)
        if not self.layer.exists():
            pull(self.registry, config["image"], self.layer)

    def answer(self, request: dict[str, Any]) -> float:
        """Milliseconds that a step took."""
        started = time.perf_counter()
        if request["step"] == "Pull":
            pull(self.registry, request["image"], STORE / "pulled")
        else:
            pod = Pod(request["pod"], request["base"])
            if request["step"] == "CreateContainer":
                create_container(pod, self.layer)
            else:
                self.STEPS[request["step"]](pod)
        took = (time.perf_counter() - started) * 1000
        if request["step"] == "Pull":
            shutil.rmtree(STORE / "pulled")
        return took


def main(arguments: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    engine = Engine(json.loads(Path(arguments[0]).read_text()))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"ms": engine.answer(json.loads(line))}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
