# SPDX-License-Identifier: Apache-2.0
"""What operators and the kubelet see of a pod while it runs, and after a reboot.

A reboot is simulated by what it leaves: records of another boot, and no running part of the pod.
"""
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodenstest import runtimes
from nodenstest.pods import Container, Pods, eventually


@pytest.fixture
def runtime(directory: Path, messages: runtimes.Messages, site: runtimes.registry_server.Site) -> Iterator[runtimes.NodensCri]:
    runtimes.make_state_writable()
    made = runtimes.NodensCri(directory / "r", messages)
    runtimes.trust(site, made.certificates)
    yield made
    if made.process and made.process.poll() is None:
        made.stop()


def nodens(runtime: runtimes.NodensCri, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([runtimes.program("src/nodens"), *arguments, "--socket", runtime.socket], capture_output=True, text=True,
                          timeout=30)


def reboot(runtime: runtimes.NodensCri, container: Container) -> None:
    """The daemon, the monitor and the container end, what is in memory is gone, and the records are of a boot that is over."""
    pid = container.pid()
    runtime.stop(signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    for record in (runtime.directory / "state/pods").glob("*/sandbox.json"):
        found = json.loads(record.read_text())
        found["boot"] = "00000000-0000-0000-0000-000000000000"
        record.write_text(json.dumps(found))
    for mounted in sorted(Path("/proc/mounts").read_text().splitlines(), reverse=True):
        place = mounted.split()[1]
        if place.startswith((f"{runtime.directory}/state/", f"{runtime.directory}/run/", f"{runtime.directory}/netns/")):
            subprocess.run(["umount", "-l", place], check=True)
    for gone in ("run", "netns"):
        shutil.rmtree(runtime.directory / gone)


def test_operators_see_the_resources_of_a_pod_and_its_checks(runtime: runtimes.NodensCri, directory: Path, shell: str) -> None:
    world = Pods(runtime.start(), shell, directory, "cgroupfs", users=True)
    world.pull(shell)
    pod = world.run(name="seen")
    (directory / "volume").mkdir()
    container = pod.container(mounts=[pod.mount(directory / "volume", "/volume")])

    def checked() -> bool:
        return json.loads(nodens(runtime, "pods", "--json").stdout)[0]["containers"][0]["checksPassed"] > 0

    listed = nodens(runtime, "pods")
    assert "seen" in listed.stdout and f"{pod.block}-" in listed.stdout, listed
    eventually(checked, 15, "the checks after the start")
    inspected = nodens(runtime, "inspect", "seen")
    assert inspected.returncode == 0, inspected.stdout + inspected.stderr
    for words in ("user IDs", "idmapped", "/volume", "image's files", container.id, "net namespace"):
        assert words in inspected.stdout, inspected.stdout
    assert "failed" not in inspected.stdout
    assert nodens(runtime, "inspect", "nobody").returncode == 1
    world.clean()


def test_containers_from_before_a_reboot_have_exited_and_can_be_removed(runtime: runtimes.NodensCri, directory: Path, shell: str) -> None:
    world = Pods(runtime.start(), shell, directory, "cgroupfs", users=True)
    world.pull(shell)
    pod = world.run(name="once")
    ended = pod.container(["sh", "-c", "echo before; exit 3"], name="ended")
    assert ended.ended().exit_code == 3
    container = pod.container(name="running")
    reboot(runtime, container)
    again = Pods(runtime.start(), shell, directory, "cgroupfs", users=True)

    sandbox = again.runtime.PodSandboxStatus(again.pb.PodSandboxStatusRequest(pod_sandbox_id=pod.id), timeout=30).status
    assert sandbox.state == again.pb.SANDBOX_NOTREADY
    status = again.runtime.ContainerStatus(again.pb.ContainerStatusRequest(container_id=container.id), timeout=30).status
    assert (status.state, status.exit_code, status.reason) == (again.pb.CONTAINER_EXITED, 255, "NodeRestarted")
    assert status.finished_at > status.started_at > 0
    status = again.runtime.ContainerStatus(again.pb.ContainerStatusRequest(container_id=ended.id), timeout=30).status
    assert (status.state, status.exit_code) == (again.pb.CONTAINER_EXITED, 3)
    assert Path(status.log_path).read_text().endswith("stdout F before\n")

    again.runtime.StopPodSandbox(again.pb.StopPodSandboxRequest(pod_sandbox_id=pod.id), timeout=60)
    again.runtime.RemovePodSandbox(again.pb.RemovePodSandboxRequest(pod_sandbox_id=pod.id), timeout=60)
    assert not again.sandboxes() and not again.containers()
    assert not list((runtime.directory / "state/pods").iterdir())
    assert not [path for path in (runtime.directory / "addresses").rglob("10.*")], "the network plugin still remembers an address"
