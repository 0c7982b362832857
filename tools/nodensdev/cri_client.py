# SPDX-License-Identifier: Apache-2.0
"""A client of the Container Runtime Interface, for system tests and benchmarks: what a kubelet asks of a runtime.

    client = CriClient("/run/containerd/containerd.sock", messages_from(Path("api.proto")))
    pod = client.pod("one", userns_base=131072)
    pod_id = client.run_sandbox(pod)

The message classes are made at run time from the CRI's api.proto with grpc_tools (Debian's python3-grpc-tools), so
that no generated code is kept. Runs inside a guest; everything else of the tools needs only Python itself.
"""
import importlib
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = "runtime.v1"
BLOCK = 65536
TIMEOUT = 300.0
# What a kubelet sends for a container with the default procMount.
MASKED_PATHS = ("/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
                "/sys/devices/virtual/powercap")
READONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


@dataclass(frozen=True)
class Messages:
    """The generated modules: `pb` has the messages, `grpc` the stubs."""

    pb: Any
    grpc: Any


def messages_from(proto: Path) -> Messages:
    """Compiles api.proto. protoc before version 22 does not know debug_redact, which says nothing about the wire."""
    from grpc_tools import protoc
    directory = Path(tempfile.mkdtemp(prefix="cri-messages-"))
    (directory / "api.proto").write_text(re.sub(r"\s*\[debug_redact = true\]", "", proto.read_text()))
    outputs = [f"--python_out={directory}", f"--grpc_python_out={directory}"]
    code = protoc.main(["protoc", f"-I{directory}", *outputs, "api.proto"])
    if code != 0:
        raise RuntimeError(f"protoc cannot compile {proto} (exit code {code})")
    sys.path.insert(0, str(directory))
    return Messages(importlib.import_module("api_pb2"), importlib.import_module("api_pb2_grpc"))


@dataclass(frozen=True)
class Pod:
    """What a pod is made from."""

    name: str
    userns_base: int | None = None      # first host ID of the pod's block; None: the host's users
    host_network: bool = False
    cgroup_parent: str = "/cri-client"
    log_directory: str = "/var/log/cri-client"


class CriClient:
    """One connection to a runtime."""

    def __init__(self, socket: str, messages: Messages) -> None:
        import grpc
        self.pb = messages.pb
        self.channel = grpc.insecure_channel(f"unix://{socket}",
                                             options=[("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 64 << 20)])
        self.runtime = messages.grpc.RuntimeServiceStub(self.channel)
        self.images = messages.grpc.ImageServiceStub(self.channel)

    def close(self) -> None:
        self.channel.close()

    def version(self) -> Any:
        return self.runtime.Version(self.pb.VersionRequest(), timeout=5)

    def namespaces(self, pod: Pod) -> Any:
        pb = self.pb
        options = pb.NamespaceOption(network=pb.NODE if pod.host_network else pb.POD, pid=pb.CONTAINER, ipc=pb.POD)
        if pod.userns_base is None:
            options.userns_options.mode = pb.NODE
        else:
            line = pb.IDMapping(host_id=pod.userns_base, container_id=0, length=BLOCK)
            options.userns_options.CopyFrom(pb.UserNamespace(mode=pb.POD, uids=[line], gids=[line]))
        return options

    def sandbox_config(self, pod: Pod) -> Any:
        pb = self.pb
        security = pb.LinuxSandboxSecurityContext(namespace_options=self.namespaces(pod))
        Path(pod.log_directory, pod.name).mkdir(parents=True, exist_ok=True)  # as the kubelet does
        return pb.PodSandboxConfig(
            metadata=pb.PodSandboxMetadata(name=pod.name, uid=f"uid-{pod.name}", namespace="default", attempt=0),
            hostname="" if pod.host_network else pod.name, log_directory=f"{pod.log_directory}/{pod.name}",
            dns_config=pb.DNSConfig(servers=["10.0.0.10"], searches=["default.svc.cluster.local"]),
            labels={"io.kubernetes.pod.name": pod.name, "io.kubernetes.pod.namespace": "default",
                    "io.kubernetes.pod.uid": f"uid-{pod.name}"},
            linux=pb.LinuxPodSandboxConfig(cgroup_parent=pod.cgroup_parent, security_context=security))

    def container_config(self, pod: Pod, name: str, image: str, command: list[str]) -> Any:
        pb = self.pb
        security = pb.LinuxContainerSecurityContext(namespace_options=self.namespaces(pod), run_as_user=pb.Int64Value(value=0),
                                                    masked_paths=MASKED_PATHS, readonly_paths=READONLY_PATHS)
        resources = pb.LinuxContainerResources(cpu_shares=2, oom_score_adj=1000)
        return pb.ContainerConfig(
            metadata=pb.ContainerMetadata(name=name, attempt=0), command=command,
            image=pb.ImageSpec(image=image, user_specified_image=image),
            log_path=f"{name}_0.log", labels={"io.kubernetes.container.name": name},
            linux=pb.LinuxContainerConfig(resources=resources, security_context=security))

    def run_sandbox(self, pod: Pod) -> str:
        request = self.pb.RunPodSandboxRequest(config=self.sandbox_config(pod))
        return self.runtime.RunPodSandbox(request, timeout=TIMEOUT).pod_sandbox_id

    def create_container(self, pod_id: str, pod: Pod, name: str, image: str, command: list[str]) -> str:
        config = self.container_config(pod, name, image, command)
        request = self.pb.CreateContainerRequest(pod_sandbox_id=pod_id, config=config, sandbox_config=self.sandbox_config(pod))
        return self.runtime.CreateContainer(request, timeout=TIMEOUT).container_id

    def start_container(self, container_id: str) -> None:
        self.runtime.StartContainer(self.pb.StartContainerRequest(container_id=container_id), timeout=TIMEOUT)

    def exec_sync(self, container_id: str, command: list[str]) -> Any:
        request = self.pb.ExecSyncRequest(container_id=container_id, cmd=command, timeout=60)
        return self.runtime.ExecSync(request, timeout=TIMEOUT)

    def container_stats(self) -> list[Any]:
        return list(self.runtime.ListContainerStats(self.pb.ListContainerStatsRequest(), timeout=TIMEOUT).stats)

    def sandbox_stats(self) -> list[Any]:
        return list(self.runtime.ListPodSandboxStats(self.pb.ListPodSandboxStatsRequest(), timeout=TIMEOUT).stats)

    def stop_container(self, container_id: str, grace: int = 0) -> None:
        self.runtime.StopContainer(self.pb.StopContainerRequest(container_id=container_id, timeout=grace), timeout=TIMEOUT)

    def remove_container(self, container_id: str) -> None:
        self.runtime.RemoveContainer(self.pb.RemoveContainerRequest(container_id=container_id), timeout=TIMEOUT)

    def stop_sandbox(self, pod_id: str) -> None:
        self.runtime.StopPodSandbox(self.pb.StopPodSandboxRequest(pod_sandbox_id=pod_id), timeout=TIMEOUT)

    def remove_sandbox(self, pod_id: str) -> None:
        self.runtime.RemovePodSandbox(self.pb.RemovePodSandboxRequest(pod_sandbox_id=pod_id), timeout=TIMEOUT)

    def ready_sandboxes(self) -> list[str]:
        found = self.runtime.ListPodSandbox(self.pb.ListPodSandboxRequest(), timeout=30).items
        return [item.id for item in found if item.state == self.pb.SANDBOX_READY]

    def running_containers(self) -> list[str]:
        found = self.runtime.ListContainers(self.pb.ListContainersRequest(), timeout=30).containers
        return [item.id for item in found if item.state == self.pb.CONTAINER_RUNNING]

    def network_ready(self) -> bool:
        status = self.runtime.Status(self.pb.StatusRequest(), timeout=5).status
        return all(condition.status for condition in status.conditions if condition.type in ("RuntimeReady", "NetworkReady"))

    def pull(self, image: str) -> str:
        return self.images.PullImage(self.pb.PullImageRequest(image=self.pb.ImageSpec(image=image)), timeout=600).image_ref

    def remove_image(self, image: str) -> None:
        self.images.RemoveImage(self.pb.RemoveImageRequest(image=self.pb.ImageSpec(image=image)), timeout=TIMEOUT)
