# SPDX-License-Identifier: Apache-2.0
"""Every command of crictl, which people use to look at a node, on nodens-cri. docs/cri-tools.md has the list."""
import contextlib
import json
import re
import signal
import socket
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nodensdev.project import TOP
from nodenstest import cri_tools, pods, runtimes

PAGE = TOP / "docs/cri-tools.md"
WEB = "echo ready; exec httpd -f -p 8080 -h /etc"
TRANSPORTS = ("spdy", "websocket")


@dataclass
class Node:
    """crictl with the endpoint of one runtime."""

    socket: Path
    directory: Path

    def run(self, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
        return cri_tools.crictl(self.socket, *words, **more)

    def ask(self, *words: str, **more: object) -> str:
        done = self.run(*words, **more)
        assert done.returncode == 0, f"crictl {' '.join(words)}: {done.stderr}{done.stdout}"
        return done.stdout

    def read(self, *words: str) -> Any:
        return json.loads(self.ask(*words))

    def config(self, data: dict[str, Any]) -> str:
        path = self.directory / f"{uuid.uuid4().hex}.json"
        path.write_text(json.dumps(data))
        return str(path)

    @contextlib.contextmanager
    def following(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A command that runs until it is interrupted."""
        command = [*cri_tools.crictl_words(self.socket), *words]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                yield process
            finally:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()


@dataclass
class Pod:
    """A pod with one container, and the files that crictl made them from."""

    node: Node
    name: str
    id: str
    container: str
    pod_file: str
    container_file: str
    logs: Path


@pytest.fixture(scope="session")
def node(subject: Any) -> Node:
    made = Node(subject.socket, subject.directory)
    made.ask("pull", cri_tools.SHELL)
    return made


def pod_config(name: str, logs: Path, users: bool = False) -> dict[str, Any]:
    """As people write it for crictl."""
    return {"metadata": {"name": name, "namespace": "default", "uid": str(uuid.uuid4()), "attempt": 1}, "log_directory": str(logs),
            "labels": {"app": name}, "linux": security(users) | {"cgroup_parent": cgroup_parent(name)}}


def cgroup_parent(name: str) -> str:
    """A cgroup of the pod's own, as from a kubelet: crictl statsp shows what is counted there."""
    return f"{name.replace('-', '')}.slice" if runtimes.systemd() else ""


def container_config(script: str, users: bool = False, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "main", "attempt": 0}, "image": {"image": cri_tools.SHELL}, "command": ["sh", "-c", script],
            "log_path": "main.log", "linux": security(users)} | more


def security(users: bool) -> dict[str, Any]:
    """Pod and container name the same user namespace."""
    mapping = [{"container_id": 0, "host_id": 65536 * 90, "length": 65536}]
    options = {"userns_options": {"mode": 0, "uids": mapping, "gids": mapping}} if users else {}
    return {"security_context": {"namespace_options": options}}


@pytest.fixture
def make(node: Node) -> Iterator[Callable[..., Pod]]:
    made: list[str] = []

    def make_pod(script: str = WEB, users: bool = False, **more: Any) -> Pod:
        name = f"crictl-{uuid.uuid4().hex[:8]}"
        logs = node.directory / f"logs-{name}"
        logs.mkdir()
        pod_file, container_file = node.config(pod_config(name, logs, users)), node.config(container_config(script, users, **more))
        made.append(node.ask("runp", pod_file).strip())
        container = node.ask("create", made[-1], container_file, pod_file).strip()
        assert node.ask("start", container).strip() == container
        return Pod(node, name, made[-1], container, pod_file, container_file, logs)

    yield make_pod
    for one in made:
        node.run("rmp", "--force", one)


def state(node: Node, container: str) -> str:
    return str(node.read("inspect", container)["status"]["state"])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def test_version(node: Node) -> None:
    text = node.ask("version")
    assert re.search(r"RuntimeName:\s+nodens\b", text), text
    assert re.search(r"RuntimeApiVersion:\s+v1", text)


def test_info(node: Node) -> None:
    conditions = {one["type"]: one["status"] for one in node.read("info")["status"]["conditions"]}
    assert conditions == {"RuntimeReady": True, "NetworkReady": True}
    assert node.ask("info", "--output", "go-template", "--template", "{{range .status.conditions}}{{.type}} {{end}}").split()


def test_runtime_config(node: Node) -> None:
    assert re.search("SYSTEMD|CGROUPFS", node.ask("runtime-config"))


def test_update_runtime_config(node: Node) -> None:
    done = node.run("update-runtime-config", "--pod-cidr", "10.1.2.0/24")
    assert done.returncode == 0, done.stderr


def test_config_of_crictl_itself(node: Node) -> None:
    path = node.directory / "crictl.yaml"
    path.touch()
    command = [cri_tools.program("crictl"), "--config", str(path), "config"]
    subprocess.run([*command, "--set", f"runtime-endpoint=unix://{node.socket}"], check=True)
    shown = subprocess.run([*command, "--get", "runtime-endpoint"], capture_output=True, text=True, check=True)
    assert str(node.socket) in shown.stdout
    asked = subprocess.run([*command[:3], "version"], capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(node: Node, shell: str) -> None:
    assert "crictl" in node.ask("completion", shell)


def test_pull_images_inspecti_and_rmi(node: Node) -> None:
    name = f"gcr.io/{cri_tools.STAGING}/test-image-tag:all"
    assert "Image is up to date for sha256:" in node.ask("pull", name)
    assert any(name in one["repoTags"] for one in node.read("images", "--output", "json")["images"])
    assert "test-image-tag" in node.ask("images", "--digests", name)
    found = node.read("inspecti", name)
    assert found["status"]["repoTags"] == [name]
    assert found["status"]["id"] in node.ask("images", "--no-trunc", "--quiet")
    assert "Deleted" in node.ask("rmi", name)
    assert node.run("inspecti", name).returncode != 0
    assert "no such image" in node.run("inspecti", name).stderr


def test_rmi_prune_keeps_images_in_use(node: Node, make: Callable[..., Pod]) -> None:
    make()
    name = f"gcr.io/{cri_tools.STAGING}/test-image-1:latest"
    node.ask("pull", name)
    node.ask("rmi", "--prune")
    left = [tag for one in node.read("images", "--output", "json")["images"] for tag in one["repoTags"]]
    assert cri_tools.SHELL in left and name not in left


def test_an_image_that_is_not_there(node: Node) -> None:
    done = node.run("pull", f"gcr.io/{cri_tools.STAGING}/missing:1")
    assert done.returncode != 0 and "NotFound" in done.stderr, done.stderr


def test_imagefsinfo(node: Node) -> None:
    found = node.read("imagefsinfo", "--output", "json")["status"]
    assert int(found["imageFilesystems"][0]["usedBytes"]["value"]) > 0


@pytest.mark.parametrize("users", [False, True], ids=["host users", "user namespace"])
def test_pods_ps_and_inspect(node: Node, make: Callable[..., Pod], users: bool) -> None:
    pod = make(users=users)
    assert pod.id in node.ask("pods", "--no-trunc", "--name", pod.name, "--state", "Ready")
    assert node.ask("pods", "--quiet", "--no-trunc", "--label", f"app={pod.name}").split() == [pod.id]
    assert node.ask("ps", "--quiet", "--no-trunc", "--pod", pod.id).split() == [pod.container]
    listed = node.read("ps", "--pod", pod.id, "--output", "json")["containers"]
    assert [one["metadata"]["name"] for one in listed] == ["main"]
    found = node.read("inspectp", pod.id)
    assert found["status"]["state"] == "SANDBOX_READY" and found["status"]["metadata"]["name"] == pod.name
    assert node.read("inspect", pod.container)["status"]["id"] == pod.container
    assert node.ask("inspect", "--output", "go-template", "--template", "{{.status.state}}", pod.container).strip() == "CONTAINER_RUNNING"
    assert pod.container[:13] in node.ask("ps"), "the table for people"


def test_run_starts_pod_and_container_at_once(node: Node, make: Callable[..., Pod]) -> None:
    model = make()
    pod_file = node.config(pod_config(f"{model.name}-second", model.logs))
    container = node.ask("run", model.container_file, pod_file).strip()
    pod = node.read("inspect", container)["info"].get("sandboxID") or node.ask("pods", "-q", "--no-trunc", "--name", f"{model.name}-second")
    assert state(node, container) == "CONTAINER_RUNNING"
    assert node.run("rmp", pod.strip()).returncode != 0, "a pod that runs needs --force"
    node.ask("rmp", "--force", pod.strip())


def test_stop_rm_stopp_and_rmp(node: Node, make: Callable[..., Pod]) -> None:
    pod = make()
    assert node.run("rm", pod.container).returncode != 0, "a container that runs needs --force"
    assert node.ask("stop", "--timeout", "0", pod.container).strip() == pod.container
    assert state(node, pod.container) == "CONTAINER_EXITED"
    node.ask("rm", pod.container)
    assert node.ask("ps", "--all", "--quiet", "--pod", pod.id).split() == []
    node.ask("stopp", pod.id)
    assert node.read("inspectp", pod.id)["status"]["state"] == "SANDBOX_NOTREADY"
    node.ask("rmp", pod.id)
    assert node.ask("pods", "--quiet", "--name", pod.name).split() == []


def test_exec_sync(node: Node, make: Callable[..., Pod]) -> None:
    pod = make()
    assert node.ask("exec", "--sync", pod.container, "echo", "hello").strip() == "hello"
    done = node.run("exec", "--sync", pod.container, "sh", "-c", "echo wrong >&2; exit 3")
    assert done.returncode != 0 and "wrong" in done.stderr
    late = node.run("exec", "--sync", "--timeout", "1", pod.container, "sleep", "60")
    assert late.returncode != 0 and "DeadlineExceeded" in late.stderr


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_exec_streams(node: Node, make: Callable[..., Pod], transport: str) -> None:
    pod = make(users=True)
    words = ("exec", "--transport", transport, "--interactive", pod.container, "cat")
    assert node.ask(*words, stdin=None, input="through stdin\n") == "through stdin\n"
    assert node.run("exec", "--transport", transport, pod.container, "sh", "-c", "exit 7").returncode != 0


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_attach(node: Node, make: Callable[..., Pod], transport: str) -> None:
    pod = make("while read line; do echo got $line; done", stdin=True)
    with node.following("attach", "--transport", transport, "--stdin", pod.container) as process:
        assert process.stdin and process.stdout
        process.stdin.write("one\n")
        process.stdin.flush()
        assert process.stdout.readline() == "got one\n"


def test_port_forward(node: Node, make: Callable[..., Pod]) -> None:
    pod = make()
    port = free_port()
    with node.following("port-forward", pod.id, f"{port}:8080") as process:
        assert process.stdout and "Forwarding from 127.0.0.1" in process.stdout.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/passwd", timeout=30) as answer:
            assert b"root:x:0:0" in answer.read()


def test_port_forward_refuses_spdy_inside_of_websocket(node: Node, make: Callable[..., Pod]) -> None:
    done = node.run("port-forward", "--transport", "websocket", make().id, f"{free_port()}:8080")
    assert done.returncode != 0
    assert "403 Forbidden" in done.stderr and "none of the client's stream protocols is supported" in done.stderr


def test_logs(node: Node, make: Callable[..., Pod]) -> None:
    pod = make("echo first; echo second >&2; exec sleep 4321")
    pods.eventually(lambda: "second" in (pod.logs / "main.log").read_text(), what="the log")
    assert node.ask("logs", "--stream", "stdout", pod.container) == "first\n"
    assert node.run("logs", pod.container).stderr == "second\n"
    assert node.run("logs", "--tail", "1", pod.container).stdout in ("", "first\n")
    (pod.logs / "main.log").rename(pod.logs / "main.log.1")
    node.ask("logs", "--reopen", pod.container)
    assert (pod.logs / "main.log").exists()


def test_logs_that_are_followed(node: Node, make: Callable[..., Pod]) -> None:
    pod = make("while read line; do echo got $line; done; sleep 4321", stdin=True)
    with node.following("logs", "--follow", pod.container) as log, node.following("attach", "--stdin", pod.container) as writer:
        assert log.stdout and writer.stdin
        writer.stdin.write("later\n")
        writer.stdin.flush()
        assert log.stdout.readline() == "got later\n"


def test_stats_and_statsp(node: Node, make: Callable[..., Pod]) -> None:
    pod = make()
    found = node.read("stats", "--output", "json", pod.container)["stats"]
    assert [one["attributes"]["id"] for one in found] == [pod.container]
    assert int(found[0]["writableLayer"]["usedBytes"]["value"]) >= 0
    of_pod = node.read("statsp", "--output", "json", "--id", pod.id)["stats"]
    assert [one["attributes"]["id"] for one in of_pod] == [pod.id]
    assert pod.container[:13] in node.ask("stats", "--all")
    assert pod.id[:13] in node.ask("statsp")


def test_metricdescs_and_metricsp(node: Node, make: Callable[..., Pod]) -> None:
    pod = make()
    names = {one["name"] for one in node.read("metricdescs")["descriptors"]}
    assert "container_cpu_usage_seconds_total" in names
    found = {one["podSandboxId"]: one for one in node.read("metricsp")["podMetrics"]}
    assert {one["name"] for one in found[pod.id]["metrics"]} <= names


def test_events(node: Node, make: Callable[..., Pod]) -> None:
    with node.following("events") as process:
        assert process.stdout
        time.sleep(1)       # crictl does not say when its stream is open
        pod = make()
        text = ""
        while pod.container not in text or "CONTAINER_STARTED_EVENT" not in text:
            line = process.stdout.readline()
            assert line, f"crictl events ended: {text}"
            text += line


@pytest.mark.skipif(not runtimes.has_controllers(), reason="limits need cgroup controllers, which this host does not have")
def test_update_of_limits(node: Node, make: Callable[..., Pod]) -> None:
    pod = make()
    node.ask("update", "--memory", str(64 << 20), "--cpu-quota", "20000", "--cpu-period", "100000", pod.container)
    resources = node.read("inspect", pod.container)["status"]["resources"]["linux"]
    assert resources["memoryLimitInBytes"] == str(64 << 20) and resources["cpuQuota"] == "20000"
    assert node.ask("exec", "--sync", pod.container, "cat", "/sys/fs/cgroup/memory.max").strip() == str(64 << 20)


def test_checkpoint_is_refused_as_unimplemented(node: Node, make: Callable[..., Pod]) -> None:
    pod = make()
    done = node.run("checkpoint", "--export", str(node.directory / "checkpoint.tar"), pod.container)
    assert done.returncode != 0 and "Unimplemented" in done.stderr, done.stderr
    assert state(node, pod.container) == "CONTAINER_RUNNING"


TESTED = {
    "attach": test_attach, "create": test_pods_ps_and_inspect, "exec": test_exec_streams, "version": test_version,
    "images": test_pull_images_inspecti_and_rmi, "inspect": test_pods_ps_and_inspect, "inspecti": test_pull_images_inspecti_and_rmi,
    "imagefsinfo": test_imagefsinfo, "inspectp": test_pods_ps_and_inspect, "logs": test_logs, "port-forward": test_port_forward,
    "ps": test_pods_ps_and_inspect, "pull": test_pull_images_inspecti_and_rmi, "run": test_run_starts_pod_and_container_at_once,
    "runp": test_pods_ps_and_inspect, "rm": test_stop_rm_stopp_and_rmp, "rmi": test_pull_images_inspecti_and_rmi,
    "rmp": test_stop_rm_stopp_and_rmp, "pods": test_pods_ps_and_inspect, "start": test_pods_ps_and_inspect,
    "info": test_info, "stop": test_stop_rm_stopp_and_rmp, "stopp": test_stop_rm_stopp_and_rmp,
    "update": test_update_of_limits, "config": test_config_of_crictl_itself, "stats": test_stats_and_statsp,
    "statsp": test_stats_and_statsp, "metricsp": test_metricdescs_and_metricsp, "metricdescs": test_metricdescs_and_metricsp,
    "completion": test_completion, "checkpoint": test_checkpoint_is_refused_as_unimplemented, "runtime-config": test_runtime_config,
    "events": test_events, "update-runtime-config": test_update_runtime_config,
}


def test_every_command_of_crictl_is_tested_and_on_the_page(node: Node) -> None:
    listed = node.ask("--help").split("COMMANDS:")[1].split("GLOBAL OPTIONS:")[0]
    known = {line.split()[0].rstrip(",") for line in listed.splitlines() if line.strip()} - {"help"}
    assert known == set(TESTED)
    missing = [name for name in known if f"| `{name}` |" not in PAGE.read_text()]
    assert not missing, f"{PAGE.name} has no row for {missing}"
