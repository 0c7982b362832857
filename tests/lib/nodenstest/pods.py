# SPDX-License-Identifier: Apache-2.0
"""Helpers for the CRI's cases: pods as a kubelet would create them; removed when a test ends.

    pod = pods.run(userns=True)
    one = pod.container(["sleep", "4321"])
    assert one.output("id -u") == "0"

The kubelet's part is done here: the pod's cgroup with its controllers, the log directory and the
block of IDs.
"""
import contextlib
import itertools
import os
import re
import shutil
import socket
import struct
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from nodensdev.cri_client import BLOCK, MASKED_PATHS, READONLY_PATHS, CriClient

CGROUPS = Path("/sys/fs/cgroup")
PARENT = f"nodens-cri-test-{uuid.uuid4().hex[:8]}"    # chroots share the host's cgroups: two runs at once must not collide
SLEEP = ["sleep", "4321"]
TIMEOUT = 120
PATIENCE = 60.0     # seconds that a loaded machine has for anything
FIRST_BLOCK = 20
LOG_LINE = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d)) (stdout|stderr) ([FP]) (.*)$")

blocks = itertools.count(FIRST_BLOCK)


def eventually(condition: Callable[[], Any], seconds: float = PATIENCE, what: str = "it") -> Any:
    """Waits for a condition and returns its value. Waits at least PATIENCE, for loaded hosts."""
    seconds = max(seconds, PATIENCE)
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:.0f} s"
        time.sleep(0.02)
    return found


def refused(call: Callable[[], Any], *codes: grpc.StatusCode) -> grpc.RpcError:
    """The error of a call that must not succeed."""
    try:
        call()
    except grpc.RpcError as error:
        assert not codes or error.code() in codes, f"{error.code().name}: {error.details()}"
        assert error.code() not in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE,
                                    grpc.StatusCode.UNIMPLEMENTED), error.details()
        return error
    raise AssertionError("the call should have been refused")


def controllers() -> set[str]:
    return set((CGROUPS / "cgroup.controllers").read_text().split())


def peer_pid(path: str) -> int:
    """The process behind a unix socket, as this pid namespace sees it."""
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)
        return struct.unpack("3i", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


@dataclass
class Output:
    """The result of an exec."""

    code: int
    stdout: str
    stderr: str


@dataclass
class Container:
    pods: "Pods"
    pod: "Pod"
    id: str
    config: Any

    def start(self) -> "Container":
        self.pods.runtime.StartContainer(self.pods.pb.StartContainerRequest(container_id=self.id), timeout=TIMEOUT)
        return self

    def stop(self, grace: int = 0) -> None:
        self.pods.runtime.StopContainer(self.pods.pb.StopContainerRequest(container_id=self.id, timeout=grace), timeout=TIMEOUT + grace)

    def remove(self) -> None:
        self.pods.runtime.RemoveContainer(self.pods.pb.RemoveContainerRequest(container_id=self.id), timeout=TIMEOUT)

    def status(self, verbose: bool = False) -> Any:
        request = self.pods.pb.ContainerStatusRequest(container_id=self.id, verbose=verbose)
        answer = self.pods.runtime.ContainerStatus(request, timeout=TIMEOUT)
        return answer if verbose else answer.status

    def listed(self) -> Any:
        return next(iter(self.pods.containers(id=self.id)), None)

    @property
    def state(self) -> int:
        return self.status().state

    def ended(self, seconds: float = 20.0) -> Any:
        """Its status once it has exited."""
        eventually(lambda: self.state == self.pods.pb.CONTAINER_EXITED, seconds, f"the exit of {self.config.command} {self.config.args}")
        return self.status()

    def execute(self, command: list[str] | str, timeout: int = 60, patience: int = TIMEOUT) -> Output:
        words = ["sh", "-c", command] if isinstance(command, str) else command
        request = self.pods.pb.ExecSyncRequest(container_id=self.id, cmd=words, timeout=timeout)
        answer = self.pods.runtime.ExecSync(request, timeout=patience + timeout)
        return Output(answer.exit_code, answer.stdout.decode(errors="replace"), answer.stderr.decode(errors="replace"))

    def output(self, command: list[str] | str) -> str:
        """The output of a command, which must succeed, without the last newline."""
        done = self.execute(command)
        assert done.code == 0, f"{command}: exit code {done.code}: {done.stdout}{done.stderr}"
        return done.stdout.rstrip("\n")

    @property
    def log_file(self) -> Path:
        return Path(self.pod.config.log_directory) / self.config.log_path

    def log(self) -> list[tuple[str, str]]:
        """Stream and text of each complete line. A line being written has no end yet."""
        lines, parts = [], {"stdout": "", "stderr": ""}
        for line in self.log_file.read_text().rpartition("\n")[0].splitlines():
            found = LOG_LINE.match(line)
            assert found, f"no line of a CRI log: {line!r}"
            parts[found[2]] += found[4]
            if found[3] == "F":
                lines.append((found[2], parts[found[2]]))
                parts[found[2]] = ""
        return lines

    def pid(self) -> int:
        """Its first process in this pid namespace, found by its cgroup: the CRI does not report it."""
        born: dict[Any, int] = {birth_of(entry): int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()
                                and self.id in cgroup_of(entry)
                and "/monitors/" not in cgroup_of(entry)}    # nodens-cri has a monitor per container, in a cgroup of that name
        born.pop(None, None)
        assert born, f"no process is in a cgroup named after {self.id}"
        return born[min(born)]


def birth_of(process: Path) -> tuple[int, int] | None:
    """Its start time and PID; None if it has exited meanwhile, as a shell's commands do."""
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[19]), int(process.name)
    except (FileNotFoundError, ProcessLookupError):
        return None


def cgroup_of(process: Path) -> str:
    try:
        lines = (process / "cgroup").read_text().splitlines()
    except OSError:
        return ""
    return next((line[3:] for line in lines if line.startswith("0::")), "")


@dataclass
class Pod:
    pods: "Pods"
    id: str
    config: Any

    @property
    def namespaces(self) -> Any:
        return self.config.linux.security_context.namespace_options

    @property
    def block(self) -> int | None:
        """The first host ID of its user namespace."""
        options = self.namespaces.userns_options
        return options.uids[0].host_id if options.uids else None

    @property
    def host_root(self) -> int:
        """The host ID of root in a pod that has a user namespace."""
        assert self.block is not None, "the pod has no user namespace"
        return self.block

    def status(self, verbose: bool = False) -> Any:
        request = self.pods.pb.PodSandboxStatusRequest(pod_sandbox_id=self.id, verbose=verbose)
        answer = self.pods.runtime.PodSandboxStatus(request, timeout=TIMEOUT)
        return answer if verbose else answer.status

    def address(self) -> str:
        found = self.status().network.ip
        assert found, "the pod has no address"
        return found

    def stop(self) -> None:
        self.pods.runtime.StopPodSandbox(self.pods.pb.StopPodSandboxRequest(pod_sandbox_id=self.id), timeout=TIMEOUT)

    def remove(self) -> None:
        self.pods.runtime.RemovePodSandbox(self.pods.pb.RemovePodSandboxRequest(pod_sandbox_id=self.id), timeout=TIMEOUT)

    def mappings(self) -> dict[str, Any]:
        """The fields that a kubelet adds to every mount of a pod in a user namespace."""
        options = self.namespaces.userns_options
        return {"uidMappings": list(options.uids), "gidMappings": list(options.gids)} if self.block is not None else {}

    def mount(self, host: Path | str, inside: str, **more: Any) -> Any:
        return self.pods.pb.Mount(host_path=str(host), container_path=inside, **self.mappings(), **more)

    def container(self, command: list[str] | str | None = SLEEP, start: bool = True, name: str = "one", image: str | None = None,
                  security: dict[str, Any] | None = None, resources: dict[str, Any] | None = None, namespaces: dict[str, Any] | None = None,
                  **config: Any) -> Container:
        """Creates a container and, by default, starts it. `security`, `resources` and `config` are fields of the CRI's messages."""
        pb = self.pods.pb
        options = pb.NamespaceOption()
        options.CopyFrom(self.namespaces)
        for key, value in (namespaces or {}).items():
            setattr(options, key, value)
        context = {"namespace_options": options, "masked_paths": MASKED_PATHS, "readonly_paths": READONLY_PATHS} | (security or {})
        if context.get("privileged"):
            context |= {"masked_paths": [], "readonly_paths": []}
        words = ["sh", "-c", command] if isinstance(command, str) else command or []
        number = next(self.pods.numbers)
        image = image or self.pods.image
        made = pb.ContainerConfig(**{
            "metadata": pb.ContainerMetadata(name=name, attempt=0), "command": words,
            "image": pb.ImageSpec(image=self.pods.pull(image), user_specified_image=image), "log_path": f"{name}-{number}.log",
            "linux": pb.LinuxContainerConfig(resources=pb.LinuxContainerResources(**({"cpu_shares": 100, "oom_score_adj": 1000}
                                                                                     | (resources or {}))),
                                             security_context=pb.LinuxContainerSecurityContext(**context))} | config)
        request = pb.CreateContainerRequest(pod_sandbox_id=self.id, config=made, sandbox_config=self.config)
        one = Container(self.pods, self, self.pods.runtime.CreateContainer(request, timeout=TIMEOUT).container_id, made)
        return one.start() if start else one


@dataclass
class Pods:
    """The pods of one test."""

    client: CriClient
    image: str
    directory: Path
    cgroup_driver: str
    made: list[Pod] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    pulled: dict[str, str] = field(default_factory=dict)
    users: bool = False                 # whether pods get a user namespace by default
    cgroups: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pb, self.runtime = self.client.pb, self.client.runtime

    def pull(self, image: str) -> str:
        """The image's id, as the kubelet gives it to CreateContainer; pulled where it is not there."""
        if image not in self.pulled:
            found = self.client.images.ImageStatus(self.pb.ImageStatusRequest(image=self.pb.ImageSpec(image=image)), timeout=TIMEOUT)
            self.pulled[image] = found.image.id if found.HasField("image") else self.client.pull(image)
        return self.pulled[image]

    def user_namespace(self, userns: bool, host_id: int | None = None, length: int = BLOCK) -> Any:
        pb = self.pb
        if not userns:
            return pb.UserNamespace(mode=pb.NODE)
        line = pb.IDMapping(host_id=next(blocks) * BLOCK if host_id is None else host_id, container_id=0, length=length)
        return pb.UserNamespace(mode=pb.POD, uids=[line], gids=[line])

    def run(self, userns: bool | None = None, name: str = "pod", namespaces: dict[str, Any] | None = None,
            security: dict[str, Any] | None = None,
            linux: dict[str, Any] | None = None, **config: Any) -> Pod:
        """Runs a sandbox. `namespaces`, `security`, `linux` and `config` are fields of the CRI's messages."""
        pb = self.pb
        made = self.sandbox_config(name, self.users if userns is None else userns, namespaces or {}, security or {}, linux or {}, config)
        pod = Pod(self, self.runtime.RunPodSandbox(pb.RunPodSandboxRequest(config=made), timeout=TIMEOUT).pod_sandbox_id, made)
        self.made.append(pod)
        return pod

    def sandbox_config(self, name: str, userns: bool, namespaces: dict[str, Any], security: dict[str, Any], linux: dict[str, Any],
                       config: dict[str, Any]) -> Any:
        pb = self.pb
        uid = str(uuid.uuid4())
        options = pb.NamespaceOption(**({"network": pb.POD, "pid": pb.CONTAINER, "ipc": pb.POD,
                                         "userns_options": self.user_namespace(userns)} | namespaces))
        logs = self.directory / "logs" / uid
        logs.mkdir(parents=True)
        fields = {
            "metadata": pb.PodSandboxMetadata(name=name, uid=uid, namespace="cri-test", attempt=0), "log_directory": str(logs),
            "hostname": "" if options.network == pb.NODE else name,
            "linux": pb.LinuxPodSandboxConfig(**({"cgroup_parent": self.cgroup(uid), "security_context": pb.LinuxSandboxSecurityContext(
                **({"namespace_options": options} | security))} | linux))}
        return pb.PodSandboxConfig(**(fields | config))

    def cgroup(self, uid: str) -> str:
        """A pod's cgroup, as the kubelet makes it and calls it."""
        if self.cgroup_driver == "systemd":
            return f"{PARENT.replace('-', '_')}-pod{uid.replace('-', '_')}.slice"
        path = CGROUPS / PARENT / f"pod{uid}"
        path.mkdir(parents=True)
        self.cgroups.append(path)
        wanted = " ".join(f"+{name}" for name in sorted(controllers() & {"cpu", "memory", "pids", "cpuset", "io"}))
        for place in (CGROUPS, path.parent, path):
            if wanted:
                (place / "cgroup.subtree_control").write_text(wanted)
        return f"/{PARENT}/pod{uid}"

    def sandboxes(self, **conditions: Any) -> list[Any]:
        request = self.pb.ListPodSandboxRequest(filter=self.pb.PodSandboxFilter(**conditions))
        return list(self.runtime.ListPodSandbox(request, timeout=TIMEOUT).items)

    def containers(self, **conditions: Any) -> list[Any]:
        request = self.pb.ListContainersRequest(filter=self.pb.ContainerFilter(**conditions))
        return list(self.runtime.ListContainers(request, timeout=TIMEOUT).containers)

    def clean(self) -> None:
        """Removes what the test has made, as the kubelet would; what cannot be removed is an error of the test."""
        for pod in self.made:
            pod.stop()
            pod.remove()
        for path in self.cgroups:
            remove_cgroup(path)
        with contextlib.suppress(OSError):
            (CGROUPS / PARENT).rmdir()
        shutil.rmtree(self.directory / "logs", ignore_errors=True)


def remove_cgroup(path: Path) -> None:
    def emptied() -> bool:
        for base, _, _ in os.walk(path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(base)
        return not path.exists()

    eventually(emptied, 10, f"the end of all processes in {path}")


@contextlib.contextmanager
def mounted(place: Path, *arguments: str) -> Iterator[Path]:
    """Something mounted for a while."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *arguments, str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextlib.contextmanager
def overlaid(directory: Path) -> Iterator[Path]:
    """An overlay below a directory: a filesystem that no kernel can idmap."""
    for name in ("lower", "upper", "work"):
        (directory / name).mkdir()
    options = f"lowerdir={directory}/lower,upperdir={directory}/upper,workdir={directory}/work"
    with mounted(directory / "overlay", "-t", "overlay", "-o", options, "overlay") as place:
        yield place
