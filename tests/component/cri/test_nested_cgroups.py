# SPDX-License-Identifier: Apache-2.0
"""Containers of a handler with writableCgroups: they enable controllers, make cgroups, and everything else goes on working for them.

Limits need controllers: `tools/dev test cri-guest -k nested_cgroups`, `cri-guest-systemd`.
"""
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from conftest import Subject
from nodensdev.cri_client import CriClient
from nodenstest import agents, runtimes
from nodenstest.pods import CGROUPS, SLEEP, TIMEOUT, Container, Pod, Pods, cgroup_of, eventually, refused

DESCENDANTS, DEPTH = 1024, 16
ROOT = "/sys/fs/cgroup"
needs_controllers = pytest.mark.skipif(not runtimes.has_controllers(), reason="there are no cgroup controllers here")


@dataclass
class Scene:
    pods: Pods
    runtime: runtimes.NodensCri
    directory: Path

    def pod(self, userns: bool = True, handler: str = "nested", **namespaces: Any) -> Pod:
        made = self.pods.sandbox_config("pod", userns, namespaces, {}, {}, {})
        request = self.pods.pb.RunPodSandboxRequest(config=made, runtime_handler=handler)
        pod = Pod(self.pods, self.pods.runtime.RunPodSandbox(request, timeout=TIMEOUT).pod_sandbox_id, made)
        self.pods.made.append(pod)
        return pod

    def container(self, command: list[str] | str = SLEEP, **more: Any) -> Container:
        return self.pod().container(command, **more)

    def restart(self) -> None:
        self.runtime.stop()
        self.runtime.start().close()


@pytest.fixture(scope="module")
def daemon(subject: Subject, cgroup_driver: str, messages: runtimes.Messages) -> Iterator[runtimes.NodensCri]:
    if subject.name != "nodens-cri" or subject.runtime is None:
        pytest.skip("handlers are configured for nodens-cri")
    with runtimes.scratch() as directory:
        crun = "/usr/bin/crun" if runtimes.has_controllers() else str(runtimes.WITHOUT_CONTROLLERS)
        settings: dict[str, object] = {
            "runtimeHandlers": json.dumps([{"name": "nested", "program": crun, "writableCgroups": True}])}
        runtime = runtimes.NodensCri(directory / "r", messages, settings=settings, cgroup_driver=cgroup_driver)
        runtime.certificates = subject.runtime.certificates
        runtime.start().close()
        yield runtime
        runtime.stop()


@pytest.fixture
def scene(daemon: runtimes.NodensCri, subject: Subject, cgroup_driver: str, messages: runtimes.Messages) -> Iterator[Scene]:
    client = CriClient(str(daemon.socket), messages)
    with runtimes.scratch() as directory:
        made = Pods(client, subject.images.shell, directory, cgroup_driver)
        try:
            yield Scene(made, daemon, directory)
        finally:
            made.clean()
            client.close()


def leaf_of(one: Container) -> Path:
    return CGROUPS / cgroup_of(Path(f"/proc/{one.pid()}")).lstrip("/")


def nested(one: Container) -> Path:
    """Enables controllers, and leaves a process in a cgroup that the container made; its path on the host."""
    one.output(f"for c in $(cat {ROOT}/cgroup.controllers); do echo +$c; done | xargs | tee {ROOT}/cgroup.subtree_control; "
               f"mkdir -p {ROOT}/nested/one")
    one.output(f"sleep 5432 >/dev/null 2>&1 & echo $! >{ROOT}/nested/one/cgroup.procs")
    path = leaf_of(one).parent / "nested/one"
    eventually(lambda: (path / "cgroup.procs").read_text(), what="a process in the nested cgroup")
    return path


# ---- the layout ----

def test_the_first_process_is_in_a_leaf_below_the_root_of_the_cgroup_namespace(scene: Scene) -> None:
    one = scene.container()
    assert one.output("grep ^0 /proc/1/cgroup") == f"0::/init:cri-containerd:{one.id}"
    assert one.output(f"cat {ROOT}/cgroup.procs") == ""
    above = leaf_of(one).parent.name
    assert above == (f"cri-containerd-{one.id}.scope" if scene.pods.cgroup_driver == "systemd" else one.id)
    assert one.output(f"stat -c %u {ROOT} {ROOT}/cgroup.procs {ROOT}/cgroup.subtree_control {ROOT}/init:*").split() == ["0"] * 4


@needs_controllers
def test_controllers_can_be_enabled_inside(scene: Scene) -> None:
    one = scene.container(resources={"memory_limit_in_bytes": 256 << 20})
    nested(one)
    enabled = set(one.output(f"cat {ROOT}/cgroup.subtree_control").split())
    assert {"cpu", "memory", "pids"} <= enabled <= set(one.output(f"cat {ROOT}/cgroup.controllers").split())
    assert one.output(f"echo 3 >{ROOT}/nested/pids.max && cat {ROOT}/nested/pids.max") == "3"


@needs_controllers
def test_the_kernel_enforces_a_limit_that_is_set_inside(scene: Scene) -> None:
    """The nested process is killed; the container is not, and its exit is not reported as an OOM kill."""
    one = scene.container(["sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.1; done"], resources={"memory_limit_in_bytes": 512 << 20})
    one.output(f"mkdir -p {ROOT}/nested/one && echo +memory >{ROOT}/nested/cgroup.subtree_control; "
               f"echo 16777216 >{ROOT}/nested/one/memory.max; echo 0 >{ROOT}/nested/one/memory.swap.max || true")
    done = one.execute(f"echo $$ >{ROOT}/nested/one/cgroup.procs; exec dd if=/dev/zero of=/dev/null bs=64M count=1")
    assert done.code == 137, done
    assert "oom_kill 1" in one.output(f"cat {ROOT}/nested/one/memory.events")
    one.stop(30)
    status = one.status()
    assert (status.exit_code, status.reason) == (3, "Error"), status


@needs_controllers
def test_the_containers_own_limit_is_still_an_oom_kill(scene: Scene) -> None:
    one = scene.container(f"mkdir {ROOT}/other; exec dd if=/dev/zero of=/dev/null bs=128M count=1",
                          resources={"memory_limit_in_bytes": 32 << 20, "memory_swap_limit_in_bytes": 32 << 20})
    status = one.ended()
    assert (status.exit_code, status.reason) == (137, "OOMKilled"), status


@pytest.mark.parametrize("name", agents.AGENTS)
def test_an_agent_finds_the_container_of_the_process_in_the_leaf(scene: Scene, name: str) -> None:
    one = scene.container()
    parent = {"cgroupfs": "/kubepods/burstable/pod06adb67d-7f30-4631-a00e-55632f2f93b9",
              "systemd": "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod06adb67d_7f30_4631_a00e_55632f2f93b9.slice"}
    leaf = leaf_of(one)
    assert agents.AGENTS[name](f"{parent[scene.pods.cgroup_driver]}/{leaf.parent.name}/{leaf.name}") == one.id


# ---- everything else goes on working ----

def test_commands_run_and_end_beside_nested_cgroups(scene: Scene) -> None:
    one = scene.container()
    nested(one)
    assert one.output("echo in; cut -d: -f3- /proc/self/cgroup").split()[0] == "in"
    assert one.execute("exit 9").code == 9
    with pytest.raises(grpc.RpcError, match="did not end within 1000 ms"):
        one.execute("sleep 1000 & sleep 1000", timeout=1)
    eventually(lambda: not list(leaf_of(one).parent.glob("exec-*")), what="the end of the commands' cgroups")


def test_a_process_that_a_command_leaves_behind_goes_to_the_leaf(scene: Scene) -> None:
    """It must not go to the root of the namespace, which has controllers enabled, nor keep the command's cgroup."""
    one = scene.container()
    nested(one)
    one.output("sleep 6543 >/dev/null 2>&1 &")
    eventually(lambda: not list(leaf_of(one).parent.glob("exec-*")), what="the end of the commands' cgroups")
    assert len((leaf_of(one) / "cgroup.procs").read_text().split()) == 2
    assert (leaf_of(one).parent / "cgroup.procs").read_text() == ""


def test_commands_run_although_the_container_makes_a_cgroup_of_an_old_name(scene: Scene) -> None:
    """Earlier versions had the container's processes in a cgroup `container` inside the scope."""
    one = scene.container()
    one.output(f"mkdir {ROOT}/container")
    assert one.output("echo in") == "in"


@needs_controllers
def test_stats_count_nested_processes_and_their_memory(scene: Scene) -> None:
    one = scene.container()
    nested(one)
    pids = len(one.output(f"cat {ROOT}/*/cgroup.procs {ROOT}/*/*/cgroup.procs").split())
    request = scene.pods.pb.ContainerStatsRequest(container_id=one.id)
    found = scene.pods.runtime.ContainerStats(request, timeout=TIMEOUT).stats
    assert pids >= 2 and found.memory.working_set_bytes.value > 0
    assert found.memory.usage_bytes.value == pytest.approx(int((leaf_of(one).parent / "memory.current").read_text()), rel=0.5)


@needs_controllers
def test_limits_are_updated_at_the_root_of_the_namespace(scene: Scene) -> None:
    one = scene.container(resources={"memory_limit_in_bytes": 256 << 20})
    nested(one)
    pb = scene.pods.pb
    scene.pods.runtime.UpdateContainerResources(pb.UpdateContainerResourcesRequest(
        container_id=one.id, linux=pb.LinuxContainerResources(memory_limit_in_bytes=128 << 20, cpu_quota=50000, cpu_period=100000)),
        timeout=TIMEOUT)
    assert one.output(f"cat {ROOT}/memory.max {ROOT}/cpu.max").split() == [str(128 << 20), "50000", "100000"]
    if scene.pods.cgroup_driver == "cgroupfs":
        assert one.output(f"cat {ROOT}/cgroup.max.descendants") == str(DESCENDANTS)


def test_a_restart_of_the_daemon_finds_the_container_with_its_nested_cgroups(scene: Scene) -> None:
    one = scene.container()
    path = nested(one)
    scene.restart()
    eventually(lambda: one.output("echo back") == "back", what="an answer after the restart")
    assert (path / "cgroup.procs").read_text()
    one.stop()
    one.remove()
    eventually(lambda: not path.exists(), what="the removal of the nested cgroup")


@pytest.mark.parametrize("away", [False, True], ids=["stopped", "killed while the daemon is away"])
def test_a_removal_kills_and_removes_what_the_container_made(scene: Scene, away: bool) -> None:
    one = scene.container()
    path = nested(one)
    scope, pid = leaf_of(one).parent, one.pid()
    orphan = (path / "cgroup.procs").read_text().split()[0]
    one.output(f"mkdir -p {ROOT}/left/behind/by/a/killed/engine")
    if away:
        scene.runtime.stop()
        os.kill(pid, 9)
        scene.runtime.start().close()
        one.ended()
    else:
        one.stop()
    one.remove()
    assert not Path(f"/proc/{orphan}").exists()
    eventually(lambda: not scope.exists(), what="the removal of the cgroups")


def test_a_container_that_froze_itself_can_be_stopped(scene: Scene) -> None:
    one = scene.container()
    nested(one)
    one.execute(f"echo 1 >{ROOT}/nested/cgroup.freeze; echo 1 >$(echo {ROOT}/init:*)/cgroup.freeze; true")
    one.stop(1)
    assert one.status().exit_code == 137
    one.remove()


def test_other_users_of_the_pod_than_root_may_not_write(scene: Scene) -> None:
    one = scene.container(security={"run_as_user": scene.pods.pb.Int64Value(value=1000)})
    done = one.execute(f"mkdir {ROOT}/child")
    assert done.code != 0 and "Permission denied" in done.stderr, done


def test_only_pods_of_the_handler_may_write(scene: Scene) -> None:
    assert scene.pod(handler="").container().execute(f"mkdir {ROOT}/child").code != 0


# ---- attacks ----

def test_a_pod_with_the_hosts_users_is_refused(scene: Scene) -> None:
    assert "safe only in a user namespace: set hostUsers: false" in refused(lambda: scene.pod(userns=False)).details()


@pytest.mark.parametrize("file", ["memory.max", "memory.high", "cpu.max", "pids.max", "cgroup.max.descendants", "cgroup.max.depth",
                                  "cgroup.freeze", "cgroup.kill", "cgroup.type"])
def test_root_of_the_pod_cannot_change_its_own_limits(scene: Scene, file: str) -> None:
    one = scene.container()
    if not runtimes.has_controllers() and not file.startswith("cgroup."):
        pytest.skip("there are no cgroup controllers here")
    done = one.execute(f"echo max >{ROOT}/{file}")
    assert done.code != 0 and "Permission denied" in done.stderr, done


def test_a_process_cannot_leave_its_subtree(scene: Scene) -> None:
    """Not by a path, nor by a second mount of cgroups: both end at the root of the cgroup namespace."""
    one = scene.container()
    other = scene.container()
    assert "cri-containerd" not in one.output(f"ls {ROOT}/..")
    seen = one.output(f"find {ROOT} -type d").splitlines()
    assert other.id not in " ".join(seen) and all(path == ROOT or "exec-" in path or "init:" in path for path in seen), seen
    done = one.execute("mkdir /m && mount -t cgroup2 none /m && ls /m")
    assert done.code != 0 or "kubepods" not in done.stdout


def test_the_monitor_is_not_in_the_containers_subtree(scene: Scene) -> None:
    one = scene.container()
    monitors = [path for path in Path("/proc").iterdir()
                if path.name.isdigit() and one.id in cgroup_of(path) and "/monitors/" in cgroup_of(path)]
    scope = "/" + str(leaf_of(one).parent.relative_to(CGROUPS))
    assert monitors and not any(cgroup_of(path).startswith(f"{scope}/") for path in monitors)


@needs_controllers
@pytest.mark.parametrize("shape", ["wide", "deep"])
def test_the_number_and_depth_of_cgroups_are_bounded(scene: Scene, shape: str) -> None:
    """Each costs kernel memory and, at the end, a removal."""
    one = scene.container()
    wide = f"cd {ROOT} && i=0; while mkdir c$i; do i=$((i+1)); done 2>/dev/null; echo $i"
    deep = f"cd {ROOT} && i=0; while mkdir d && cd d; do i=$((i+1)); done 2>/dev/null; echo $i"
    made = int(one.execute(wide if shape == "wide" else deep, timeout=120).stdout)
    assert made == (DEPTH if shape == "deep" else pytest.approx(DESCENDANTS, abs=8))
    scope = leaf_of(one).parent
    begun = time.monotonic()
    one.stop()
    one.remove()
    assert not scope.exists()
    print(f"{shape}: {made} cgroups, removed within {time.monotonic() - begun:.1f} s")


@needs_controllers
def test_cgroups_of_an_ordinary_pod_are_bounded_too(scene: Scene) -> None:
    """Its /sys/fs/cgroup is read-only, but with SYS_ADMIN it mounts another one."""
    one = scene.pod(handler="").container(security={"capabilities": scene.pods.pb.Capability(add_capabilities=["SYS_ADMIN"])})
    made = one.execute("mkdir /m && mount -t cgroup2 none /m && cd /m && i=0; while mkdir c$i; do i=$((i+1)); done 2>/dev/null; echo $i",
                       timeout=120)
    assert int(made.stdout) == pytest.approx(DESCENDANTS, abs=8), made


def test_the_bound_does_not_keep_the_daemon_from_running_commands_after_the_container_frees_some(scene: Scene) -> None:
    """Commands need a cgroup of the same bound: a container that uses all of it only keeps commands out of itself."""
    if not runtimes.has_controllers():
        pytest.skip("the bound is not set without controllers")
    one = scene.container(f"cd {ROOT}; for i in $(seq {DESCENDANTS}); do mkdir c$i; done 2>/dev/null; touch /made; "
                          "while ! test -e /free; do sleep 0.1; done; rmdir c*; touch /freed; exec sleep 4321")
    root = Path(f"/proc/{one.pid()}/root")
    eventually(lambda: (root / "made").exists(), 120, "the container's cgroups")
    refused(lambda: one.execute("true"))
    (root / "free").write_text("")
    eventually(lambda: (root / "freed").exists(), 120, "the end of the container's cgroups")
    assert one.output("echo in") == "in"
