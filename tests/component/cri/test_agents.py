# SPDX-License-Identifier: Apache-2.0
"""Monitoring agents find containers by the names of their cgroups: what they find for ours, with either cgroup driver."""
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Subject
from nodenstest import agents
from nodenstest.pods import TIMEOUT, Container, Pods, cgroup_of, eventually

MARK = "86421"
PARENTS = {"cgroupfs": "/kubepods/burstable/pod06adb67d-7f30-4631-a00e-55632f2f93b9",
           "systemd": "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod06adb67d_7f30_4631_a00e_55632f2f93b9.slice"}


@pytest.fixture(params=agents.AGENTS)
def agent(request: pytest.FixtureRequest) -> Callable[[str], str]:
    return agents.AGENTS[request.param]


def path_of(one: Container, pid: int | str) -> str:
    """The process's cgroup, as it would be called if a kubelet had made the pod's."""
    path = cgroup_of(Path(f"/proc/{pid}"))
    parent = one.pod.config.linux.cgroup_parent.rstrip("/").rpartition("/")[2]
    return PARENTS[one.pods.cgroup_driver] + path.rpartition(parent)[2] if parent in path else path


def processes_of(one: Container, word: str) -> list[str]:
    """Processes with this word in their command lines, in cgroups that are named after the container."""
    return [entry.name for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and one.id in cgroup_of(entry) and word in command_line(entry)]


def command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


def test_an_agent_finds_the_container_of_its_first_process(pods: Pods, agent: Callable[[str], str]) -> None:
    one = pods.run().container()
    assert agent(path_of(one, one.pid())) == one.id


def test_an_agent_finds_the_container_of_a_command(pods: Pods, agent: Callable[[str], str]) -> None:
    """Commands run in cgroups of their own, so that one that takes too long can be killed with its children."""
    one = pods.run().container()
    request = pods.pb.ExecSyncRequest(container_id=one.id, cmd=["sleep", MARK], timeout=TIMEOUT)
    running = pods.runtime.ExecSync.future(request, timeout=TIMEOUT)
    try:
        found = eventually(lambda: processes_of(one, MARK), what="the command's start")
        assert {agent(path_of(one, pid)) for pid in found} == {one.id}
    finally:
        one.stop()
        running.exception(TIMEOUT)


def test_an_agent_does_not_take_the_monitor_for_the_container(subject: Subject, pods: Pods, agent: Callable[[str], str]) -> None:
    if subject.name != "nodens-cri":
        pytest.skip("its monitors are not in cgroups that are named after containers")
    one = pods.run().container()
    found = processes_of(one, "nodens-mon")
    assert found and {agent(path_of(one, pid)) for pid in found} == {""}


def test_the_process_is_in_the_scope_itself(pods: Pods) -> None:
    """A second cgroup below the scope would cost the kubelet a walk, and hides the container from agents that look at the end."""
    one = pods.run().container()
    name = cgroup_of(Path(f"/proc/{one.pid()}")).rpartition("/")[2]
    assert name == (f"cri-containerd-{one.id}.scope" if pods.cgroup_driver == "systemd" else one.id)
