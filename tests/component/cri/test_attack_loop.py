# SPDX-License-Identifier: Apache-2.0
"""Attacks of containers on nodens-cri's event loop, its workers and the container's own monitor.

Each case says what the attack tries.
"""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from conftest import Subject
from nodenstest import runtimes
from nodenstest.pods import Container, Pod, Pods, eventually

ANSWER_S = 10.0    # a loop that waits for a container does so forever; this is enough for a slow host
MIB = 1 << 20


@pytest.fixture
def hostile(plain_pods: Pods, subject: Subject, tmp_path: Path) -> Path:
    """The directory with the containers' program, where volumes can be idmapped also in a rootless node with images on the disk."""
    if not isinstance(subject.runtime, runtimes.NodensCri):
        pytest.skip("these are about how nodens-cri is built")
    shutil.copy(runtimes.program("tests/component/cri/attack-loop"), tmp_path)
    tmp_path.chmod(0o755)
    return tmp_path


def attack(pods: Pods, program: Path, *words: str, privileged: bool = False, userns: bool = True, **config: Any) -> Container:
    """A container in a user namespace of its own that runs the program, with CAP_SYS_ADMIN there and FUSE where that is asked for."""
    pod = pods.run(userns=userns, name=f"attack-{words[0]}-{len(pods.made)}")
    more: dict[str, Any] = {}
    if privileged and words[0].startswith("fuse") and not Path("/dev/fuse").exists():
        pytest.skip("this kernel has no FUSE")
    if privileged:
        more = {"security": {"capabilities": pods.pb.Capability(add_capabilities=["SYS_ADMIN"])}}
    if words[0].startswith("fuse"):
        more["devices"] = [pods.pb.Device(host_path="/dev/fuse", container_path="/dev/fuse", permissions="rwm")]
    return pod.container(["/attack/attack-loop", *words], name="attack", mounts=[pod.mount(program, "/attack", readonly=True)], **more,
                         **config)


def wait_until_ready(one: Container, seconds: float = 60) -> None:
    eventually(lambda: ("stdout", "ready") in one.log(), seconds, f"'ready' of {one.config.command}: {one.log()[:3]}")


def answers(pods: Pods) -> float:
    """How long the slowest of the usual questions took; each must be answered."""
    pb, slowest = pods.pb, 0.0
    for ask in (lambda: pods.runtime.Version(pb.VersionRequest(), timeout=20), lambda: pods.runtime.Status(pb.StatusRequest(), timeout=20),
                lambda: pods.runtime.ListContainers(pb.ListContainersRequest(), timeout=20),
                lambda: pods.runtime.ListPodSandbox(pb.ListPodSandboxRequest(), timeout=20)):
        begin = time.monotonic()
        ask()
        slowest = max(slowest, time.monotonic() - begin)
    return slowest


def monitor_of(one: Container) -> int:
    """The process number of the container's nodens-mon, by its cgroup or its command line."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"nodens-mon") and one.id.encode() in words:
                return int(entry.name)
    raise AssertionError(f"no monitor of {one.id}")


def status_of(process: int) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines() if ":\t" in line)


def used_by(one: Container) -> int:
    answer = one.pods.runtime.ContainerStats(one.pods.pb.ContainerStatsRequest(container_id=one.id), timeout=30)
    return answer.stats.writable_layer.used_bytes.value


# ---- the loop ----

def test_a_root_that_answers_nothing_does_not_stop_the_daemon(plain_pods: Pods, hostile: Path) -> None:
    """The container replaces its root by FUSE below an overlay, so that the daemon waits forever if it accesses the image's files there."""
    made = []
    for _ in range(8):    # the daemon looks once after each start: each is another try to be quicker
        made.append(attack(plain_pods, hostile, "fuse-root", privileged=True))
        assert answers(plain_pods) < ANSWER_S
    for one in made:
        wait_until_ready(one)
    assert answers(plain_pods) < ANSWER_S
    for one in made:
        one.stop()
        one.remove()


def test_a_mount_table_without_an_end_does_not_slow_the_daemon(plain_pods: Pods, hostile: Path) -> None:
    """The container makes a mount table of a megabyte and is asked about in every way: none of the answers may read it on the loop."""
    one = attack(plain_pods, hostile, "mounts", "3000", privileged=True)
    for _ in range(20):
        assert answers(plain_pods) < ANSWER_S
    wait_until_ready(one, 120)
    begin = time.monotonic()
    one.status(verbose=True)
    used_by(one)
    assert time.monotonic() - begin < ANSWER_S + 2    # the figure of the writable layer is waited for, up to a limit
    one.stop()
    one.remove()


def test_programs_that_cannot_be_executed_end_a_probe_in_time(plain_pods: Pods, hostile: Path) -> None:
    """The container puts the silent filesystem over /bin: a probe hangs in execve(), past SIGKILL, and must not be waited for."""
    one = attack(plain_pods, hostile, "fuse-programs", privileged=True)
    wait_until_ready(one)
    for _ in range(3):
        begin = time.monotonic()
        with pytest.raises(grpc.RpcError) as refused:
            one.execute(["/bin/true"], timeout=1)
        assert refused.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED and time.monotonic() - begin < 40, refused.value.details()
        assert answers(plain_pods) < ANSWER_S
    one.stop()
    one.remove()
    one.pod.stop()
    one.pod.remove()


def test_a_container_that_cannot_be_killed_is_removed(plain_pods: Pods, hostile: Path) -> None:
    """The container waits for its own FUSE server forever, even after SIGKILL.

    Unless the daemon aborts the connection, the pod stays, and sync() blocks on the whole node.
    """
    one = attack(plain_pods, hostile, "fuse-self", privileged=True)
    wait_until_ready(one)
    process = one.pid()
    one.stop()
    assert one.state == plain_pods.pb.CONTAINER_EXITED and not Path(f"/proc/{process}").exists()
    one.remove()
    one.pod.stop()
    one.pod.remove()


def test_a_container_that_stops_itself_can_be_stopped(plain_pods: Pods, hostile: Path) -> None:
    """The container stops its own first process, or ends the first thread of it: a stop must see through both."""
    made = [attack(plain_pods, hostile, "stop"), attack(plain_pods, hostile, "zombie")]
    for one in made:
        wait_until_ready(one)
        begin = time.monotonic()
        one.stop(1)
        assert time.monotonic() - begin < 25
        assert one.state == plain_pods.pb.CONTAINER_EXITED
        one.remove()


class Manager:
    """A service manager that watches one daemon, as systemd does with WatchdogSec=."""

    def __init__(self, directory: Path, period: float) -> None:
        self.period = period
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(directory / "notify"))
        self.wrapper = ["env", f"NOTIFY_SOCKET={directory / 'notify'}", f"WATCHDOG_USEC={int(period * 1e6)}"]

    def hears(self, word: bytes, seconds: float) -> bool:
        """Whether the daemon says so in time; what it said before is read, too."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            with contextlib.suppress(TimeoutError):
                if word in self.socket.recv(4096).split(b"\n"):
                    return True
        return False

    def drain(self) -> None:
        self.socket.settimeout(0.01)
        with contextlib.suppress(TimeoutError):
            while True:
                self.socket.recv(4096)


def test_a_loop_that_stands_still_is_started_again_and_pods_live_on(subject: Subject, hostile: Path, messages: runtimes.Messages) -> None:
    """If the loop hangs nevertheless, the service manager notices and restarts the daemon; containers are not affected."""
    assert subject.runtime and hostile
    with runtimes.scratch() as directory:
        manager = Manager(directory, 2.0)
        runtime = runtimes.NodensCri(directory / "r", messages, wrapper=manager.wrapper)
        subprocess.run(["cp", "-a", f"{subject.runtime.certificates}/.", str(runtime.certificates)], check=True)
        client = runtime.start()
        pods = Pods(client, subject.images.shell, directory, "cgroupfs")
        try:
            one = pods.run().container()
            process = one.pid()
            for _ in range(3):
                assert manager.hears(b"WATCHDOG=1", 2.0)
            assert runtime.process
            os.kill(runtime.process.pid, signal.SIGSTOP)
            manager.drain()
            assert not manager.hears(b"WATCHDOG=1", 3.0)    # so the manager does what follows
            runtime.process.send_signal(signal.SIGABRT)
            runtime.process.send_signal(signal.SIGCONT)
            assert runtime.process.wait(20) == -signal.SIGABRT
            runtime.start().close()
            assert manager.hears(b"READY=1", 10) and manager.hears(b"WATCHDOG=1", 4)
            assert one.state == pods.pb.CONTAINER_RUNNING and one.pid() == process
            assert one.output("echo alive") == "alive"
        finally:
            pods.clean()
            client.close()
            runtime.stop()


def test_every_daemon_is_watched() -> None:
    """A daemon whose loop stands still must not stay so: each unit has a watchdog, but for the holder, whose end would be the node's."""
    for unit in sorted((runtimes.TOP / "units").glob("*.service.in")):
        watched = "\nWatchdogSec=" in unit.read_text()
        assert watched == (unit.name != "nodens-node@.service.in"), unit.name


# ---- the figures of disk use ----

def test_deep_directories_are_counted(plain_pods: Pods, hostile: Path) -> None:
    """The container hides what it writes below more directories than the daemon has descriptors or patience for."""
    one = attack(plain_pods, hostile, "deep", "4500", "100", userns=False, working_dir="/var")
    wait_until_ready(one, 120)
    eventually(lambda: used_by(one) >= 100 * MIB, 90, "a figure of at least 100 MiB")


def test_directories_that_move_during_the_count_hide_nothing_for_long(plain_pods: Pods, hostile: Path) -> None:
    """The container moves a directory to and fro while its layer is counted, so that the walk does not find back to what lies beside it."""
    one = attack(plain_pods, hostile, "move", "1000", "50", userns=False, working_dir="/var")
    wait_until_ready(one, 120)
    eventually(lambda: used_by(one) > 100 * MIB, 120, "a figure of more than 100 MiB")
    least = used_by(one)
    for _ in range(3):
        time.sleep(1)
        assert used_by(one) >= 100 * MIB, f"it was {least}"


# ---- the monitor ----

def test_a_monitor_has_no_rights_to_take_over(plain_pods: Pods, hostile: Path) -> None:
    """A container that takes over its monitor finds no capabilities and few system calls in it.

    It cannot get new capabilities, and the monitor still works.
    """
    del hostile
    for users in (False, True):
        pod = plain_pods.run(userns=users, name=f"confined-{users}")
        one = pod.container("echo first; read line; echo $line; exit 7", stdin=True, stdin_once=True)
        process = monitor_of(one)
        status = status_of(process)
        assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0000000000000000"}, status
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
        eventually(lambda one=one: one.log(), 20, "the first line")
        rotated = one.log_file.with_suffix(".1")
        one.log_file.rename(rotated)
        plain_pods.runtime.ReopenContainerLog(plain_pods.pb.ReopenContainerLogRequest(container_id=one.id), timeout=20)
        assert one.log_file.exists() and not one.log_file.read_text() and "first" in rotated.read_text()
        Path(f"/proc/{one.pid()}/fd/0").write_text("second\n")
        assert one.ended().exit_code == 7
        assert one.log() == [("stdout", "second")]
        eventually(lambda process=process: not Path(f"/proc/{process}").exists(), 20, "the monitor's end")


def test_a_stopped_monitor_does_not_keep_its_pod(plain_pods: Pods, hostile: Path) -> None:
    """A stopped monitor never reports its container's exit: stop and removal must work without it."""
    del hostile
    one = plain_pods.run().container()
    process = monitor_of(one)
    os.kill(process, signal.SIGSTOP)
    begin = time.monotonic()
    one.stop()
    assert time.monotonic() - begin < 30 and one.status().exit_code == 137
    one.remove()
    one.pod.stop()
    one.pod.remove()
    assert not Path(f"/proc/{process}").exists()


def test_an_engine_that_sends_no_terminal_does_not_keep_the_pod(subject: Subject, hostile: Path, messages: runtimes.Messages) -> None:
    """The engine connects for the terminal and sends nothing.

    The creation must end at its deadline, and the daemon must respond meanwhile.
    """
    assert subject.runtime and hostile
    with runtimes.scratch() as directory:
        engine = directory / "engine"
        engine.write_text(HANGING_ENGINE.format(marker=directory / "hang", real=runtimes.WITHOUT_CONTROLLERS
                                                if not runtimes.has_controllers() else "/usr/bin/crun"))
        engine.chmod(0o755)
        runtime = runtimes.NodensCri(directory / "r", messages, settings={"crun": engine})
        subprocess.run(["cp", "-a", f"{subject.runtime.certificates}/.", str(runtime.certificates)], check=True)
        client = runtime.start()
        pods = Pods(client, subject.images.shell, directory, "cgroupfs")
        try:
            pod = pods.run()
            (directory / "hang").touch()
            begin = time.monotonic()
            with pytest.raises(grpc.RpcError) as refused:
                creation_without_patience(pod)
            assert refused.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED and "did not end in time" in refused.value.details(), (
                refused.value.details()
            )
            assert time.monotonic() - begin < 90
            (directory / "hang").unlink()
            assert answers(pods) < ANSWER_S
            assert not list(pods.containers())
        finally:
            pods.clean()
            client.close()
            runtime.stop()


HANGING_ENGINE = """#!/usr/bin/python3 -IS
import os, socket, sys, time
if "create" in sys.argv and "--console-socket" in sys.argv and os.path.exists("{marker}"):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[sys.argv.index("--console-socket") + 1])
    time.sleep(100000)
os.execv("{real}", ["crun", *sys.argv[1:]])
"""


def creation_without_patience(pod: Pod) -> None:
    """CreateContainer with a terminal, waited for longer than the daemon itself does."""
    pb = pod.pods.pb
    config = pb.ContainerConfig(
        metadata=pb.ContainerMetadata(name="tty"),
        command=["sleep", "1"],
        image=pb.ImageSpec(image=pod.pods.pull(pod.pods.image)),
        tty=True,
        log_path="tty.log",
        linux=pb.LinuxContainerConfig(security_context=pb.LinuxContainerSecurityContext(namespace_options=pod.namespaces)),
    )
    pod.pods.runtime.CreateContainer(pb.CreateContainerRequest(pod_sandbox_id=pod.id, config=config, sandbox_config=pod.config),
                                     timeout=120)
