# SPDX-License-Identifier: Apache-2.0
"""The cases of the CRI's validation suite for containers: life cycle, exec, statistics, volumes, logs, limits; and cases it lacks."""
import os
import subprocess
import threading
import time
from pathlib import Path

import grpc
import pytest
from conftest import Subject
from nodenstest.pods import TIMEOUT, Container, Pods, controllers, eventually, mounted, peer_pid, refused

needs_memory = pytest.mark.skipif("memory" not in controllers(),
                                  reason="cgroups have no memory controller here: tools/dev test cri-guest runs it")


# Container basic

def test_a_created_container_is_listed(pods: Pods) -> None:
    one = pods.run().container(start=False)
    assert one.listed().state == pods.pb.CONTAINER_CREATED == one.state


def test_status_and_list_give_back_what_was_asked(pods: Pods) -> None:
    metadata = pods.pb.ContainerMetadata(name="attributes", attempt=5)
    labels, annotations = {"one": "1", "two.example/x": "2"}, {"note": "line\nline", "empty": ""}
    one = pods.run().container(start=False, metadata=metadata, labels=labels, annotations=annotations)
    for found in (one.status(), one.listed()):
        assert found.metadata == metadata and dict(found.labels) == labels and dict(found.annotations) == annotations
        assert abs(found.created_at / 1e9 - time.time()) < 60
    assert one.listed().pod_sandbox_id == one.pod.id


def test_a_started_container_runs(pods: Pods) -> None:
    one = pods.run().container(start=False)
    before = one.status()
    one.start()
    found = one.status()
    assert before.state == pods.pb.CONTAINER_CREATED and found.state == pods.pb.CONTAINER_RUNNING
    assert found.created_at <= found.started_at and found.finished_at == 0


def test_a_container_starts_once(pods: Pods) -> None:
    one = pods.run().container()
    refused(one.start)
    assert one.state == pods.pb.CONTAINER_RUNNING


def test_a_stopped_container_has_exited(pods: Pods) -> None:
    one = pods.run().container()
    one.stop(grace=1)
    found = one.status()
    assert found.state == pods.pb.CONTAINER_EXITED and found.exit_code == 137 and found.finished_at >= found.started_at


@pytest.mark.parametrize("state", ["created", "running", "stopped"])
def test_a_container_is_removed_in_any_state(pods: Pods, state: str) -> None:
    one = pods.run().container(start=state != "created")
    if state == "stopped":
        one.stop()
    one.remove()
    assert one.listed() is None
    refused(one.status, grpc.StatusCode.NOT_FOUND)


def test_containers_are_listed_by_pod_state_and_label(pods: Pods) -> None:
    first, second = pods.run(name="a"), pods.run(name="b")
    here, there = first.container(labels={"which": "here"}), second.container(labels={"which": "there"}, start=False)
    running = pods.pb.ContainerStateValue(state=pods.pb.CONTAINER_RUNNING)
    assert [item.id for item in pods.containers(pod_sandbox_id=first.id)] == [here.id]
    assert there.id not in [item.id for item in pods.containers(state=running)]
    assert [item.id for item in pods.containers(label_selector={"which": "there"})] == [there.id]
    assert pods.containers(id=here.id, pod_sandbox_id=second.id) == []


@pytest.mark.parametrize(("command", "code", "reason"), [("exit 0", 0, "Completed"), ("exit 7", 7, "Error"), ("kill -9 $$", 137, "Error")])
def test_the_exit_code_and_its_reason_are_reported(pods: Pods, command: str, code: int, reason: str) -> None:
    found = pods.run().container(command).ended()
    if command.startswith("kill"):    # the first process of a pid namespace cannot kill itself
        assert found.exit_code in (0, 137)
        return
    assert (found.exit_code, found.reason) == (code, reason)


def test_a_command_that_does_not_exist_is_an_error_for_people(pods: Pods) -> None:
    pod = pods.run()
    error = refused(lambda: pod.container(["/no/such/program"]))
    assert "/no/such/program" in error.details() or "not found" in error.details().lower() or "no such file" in error.details().lower()


def test_a_missing_command_fails_at_the_step_that_the_page_from_containerd_names(pods: Pods, subject: Subject) -> None:
    pod = pods.run()
    if subject.name == "containerd":
        one = pod.container(["/no/such/program"], start=False)
        refused(one.start)
        status = one.status()
        assert (status.reason, status.exit_code) == ("StartError", 128)
    else:
        refused(lambda: pod.container(["/no/such/program"], start=False))
        assert pods.containers(pod_sandbox_id=pod.id) == []


def test_stopping_sends_the_images_signal_first(pods: Pods, subject: Subject) -> None:
    script = "trap 'echo got USR1; exit 3' USR1; trap 'echo got TERM; exit 4' TERM; echo ready; while :; do sleep 0.1; done"
    one = pods.run().container(script, image=subject.images.tag("signal"))
    eventually(lambda: ("stdout", "ready") in one.log())
    one.stop(grace=60)
    assert one.status().exit_code == 3


def test_stopping_sends_sigterm_and_waits_for_the_end(pods: Pods) -> None:
    one = pods.run().container("trap 'sleep 0.5; exit 5' TERM; echo ready; while :; do sleep 0.1; done")
    eventually(lambda: ("stdout", "ready") in one.log())
    started = time.monotonic()
    one.stop(grace=600)
    assert one.status().exit_code == 5 and 0.4 < time.monotonic() - started < 300


def test_the_images_settings_are_the_defaults(pods: Pods, subject: Subject) -> None:
    one = pods.run().container(None, image=subject.images.tag("environment"))
    assert one.ended().exit_code == 0 and one.log() == [("stdout", "entry default")]


def test_arguments_replace_the_images_and_keep_its_entry_point(pods: Pods, subject: Subject) -> None:
    one = pods.run().container(None, image=subject.images.tag("environment"), args=["other", "words"])
    one.ended()
    assert one.log() == [("stdout", "entry other words")]


def test_a_command_replaces_entry_point_and_arguments(pods: Pods, subject: Subject) -> None:
    one = pods.run().container(["echo", "mine"], image=subject.images.tag("environment"))
    one.ended()
    assert one.log() == [("stdout", "mine")]


def test_environment_and_directory_come_from_pod_and_image(pods: Pods, subject: Subject) -> None:
    one = pods.run().container(image=subject.images.tag("environment"),
                               envs=[pods.pb.KeyValue(key="BOTH", value=b"pod"), pods.pb.KeyValue(key="MINE", value=b"a=b c")])
    assert one.output("echo $PATH $FROM_IMAGE $BOTH; echo \"$MINE\"; pwd").splitlines() == ["/bin:/odd 1 pod", "a=b c", "/made/by/runtime"]
    elsewhere = pods.run(name="b").container(working_dir="/tmp")
    assert elsewhere.output("pwd") == "/tmp"


# ExecSync

def test_an_exec_gives_exactly_its_output(pods: Pods) -> None:
    done = pods.run().container().execute(["echo", "-n", "hello"])
    assert (done.stdout, done.stderr, done.code) == ("hello", "", 0)


def test_an_exec_gives_both_streams_and_its_code(pods: Pods) -> None:
    done = pods.run().container().execute("echo out; echo err >&2; exit 42")
    assert (done.stdout, done.stderr, done.code) == ("out\n", "err\n", 42)


@pytest.mark.parametrize("command", ["exec sleep 2345", "sleep 1234 & sleep 2345"])
def test_an_exec_that_takes_too_long_is_ended_with_all_its_processes(pods: Pods, command: str) -> None:
    one = pods.run().container()
    started = time.monotonic()
    with pytest.raises(grpc.RpcError) as caught:
        one.execute(command, timeout=1)
    assert time.monotonic() - started < 60, "the call outlived its time"
    assert caught.value.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNKNOWN), caught.value.details()
    eventually(lambda: one.execute("ps | grep -v grep | grep -E 'sleep (1234|2345)'").code != 0, 10, "the end of the exec's processes")
    assert one.state == pods.pb.CONTAINER_RUNNING


def test_an_exec_ends_with_its_first_process_though_a_child_keeps_its_output(pods: Pods) -> None:
    one = pods.run().container()
    assert one.execute("sleep 1567 & echo done").stdout == "done\n"
    assert one.execute("ps | grep -v grep | grep 'sleep 1567'").code == 0, "the child is there still"


def test_an_exec_of_nothing_is_an_error(pods: Pods) -> None:
    one = pods.run().container()
    refused(lambda: one.execute(["/no/such/program"]))
    refused(lambda: one.execute([]))


def test_an_exec_in_a_container_that_does_not_run_is_an_error(pods: Pods) -> None:
    pod = pods.run()
    one = pod.container(start=False)
    refused(lambda: one.execute(["true"]))
    two = pod.container(name="two")
    two.stop()
    refused(lambda: two.execute(["true"]))


def test_twenty_execs_at_once_all_answer(pods: Pods) -> None:
    one = pods.run().container()
    found: dict[int, str] = {}
    threads = [threading.Thread(target=lambda number=number: found.update({number: one.output(f"echo {number}")})) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: str(number) for number in range(20)}


def test_a_flood_of_output_costs_the_node_at_most_16_mebibytes(pods: Pods) -> None:
    one = pods.run().container()
    done = one.execute("dd if=/dev/zero bs=1M count=40 2>/dev/null | tr '\\0' x", timeout=60)
    assert done.code == 0 and 0 < len(done.stdout) <= 16 << 20


def test_three_hundred_execs_leave_no_descriptor_behind(plain_pods: Pods, subject: Subject) -> None:
    one = plain_pods.run(userns=True).container()
    path = subject.client.channel  # keeps the connection that all of them use
    assert path is not None
    daemon = Path(f"/proc/{peer_pid(subject.socket)}/fd")
    for _ in range(20):
        one.execute(["true"])
    before = len(list(daemon.iterdir()))
    for _ in range(300):
        one.execute(["true"])
    assert len(list(daemon.iterdir())) <= before + 5


# Statistics

def stats_of(pods: Pods, **conditions: object) -> list:
    request = (
        pods.pb.ListContainerStatsRequest(filter=pods.pb.ContainerStatsFilter(**conditions))
        if conditions
        else pods.pb.ListContainerStatsRequest()
    )
    return list(pods.runtime.ListContainerStats(request, timeout=TIMEOUT).stats)


def test_the_statistics_of_a_container_name_it_and_its_times(pods: Pods) -> None:
    one = pods.run().container(labels={"a": "b"})
    found = pods.runtime.ContainerStats(pods.pb.ContainerStatsRequest(container_id=one.id), timeout=TIMEOUT).stats
    assert found.attributes.id == one.id and found.attributes.metadata.name == "one" and dict(found.attributes.labels) == {"a": "b"}
    if "memory" in controllers():
        assert found.cpu.timestamp > 0 and found.memory.timestamp > 0 and found.memory.working_set_bytes.value > 0


def test_statistics_are_listed_by_id_by_label_and_without_a_filter(pods: Pods) -> None:
    pod = pods.run(labels={"pod": "x"})
    three = [pod.container(name=f"c{number}", labels={"number": str(number), "all": "x"}) for number in range(3)]
    ids = {one.id for one in three}
    assert [item.attributes.id for item in stats_of(pods, id=three[1].id)] == [three[1].id]
    assert ids <= {item.attributes.id for item in stats_of(pods)}
    assert {item.attributes.id for item in stats_of(pods, label_selector={"all": "x"})} == ids
    assert [item.attributes.id for item in stats_of(pods, label_selector={"number": "2"})] == [three[2].id]
    assert stats_of(pods, label_selector={"all": "y"}) == []
    assert {item.attributes.id for item in stats_of(pods, pod_sandbox_id=pod.id)} == ids


def test_written_data_is_in_the_statistics_within_half_a_minute(pods: Pods) -> None:
    one = pods.run().container()
    one.output("dd if=/dev/urandom of=/big bs=1M count=8 conv=fsync 2>/dev/null")     # sync would wait for all dirty data of the host

    def used() -> int:
        return stats_of(pods, id=one.id)[0].writable_layer.used_bytes.value

    eventually(lambda: used() >= 8 << 20, 45, "8 MiB in the writable layer")
    found = stats_of(pods, id=one.id)[0].writable_layer
    assert found.fs_id.mountpoint.startswith("/") and found.inodes_used.value >= 1


@needs_memory
def test_the_statistics_of_a_pod_have_its_network_and_containers(pods: Pods) -> None:
    pod = pods.run()
    one = pod.container()
    one.execute("ping -c 1 -W 1 10.255.255.1")
    found = pods.runtime.PodSandboxStats(pods.pb.PodSandboxStatsRequest(pod_sandbox_id=pod.id), timeout=TIMEOUT).stats
    assert found.attributes.id == pod.id and [item.attributes.id for item in found.linux.containers] == [one.id]
    assert found.linux.network.default_interface.name == "eth0" and found.linux.network.default_interface.HasField("tx_bytes")
    assert found.linux.cpu.usage_core_nano_seconds.value > 0 and found.linux.memory.working_set_bytes.value > 0
    listed = pods.runtime.ListPodSandboxStats(pods.pb.ListPodSandboxStatsRequest(filter=pods.pb.PodSandboxStatsFilter(id=pod.id)),
                                              timeout=TIMEOUT).stats
    assert [item.attributes.id for item in listed] == [pod.id]


# Volumes

def test_a_directory_of_the_host_is_mounted(pods: Pods, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(tmp_path, str(tmp_path))])
    assert one.output(f"cat {tmp_path}/file") == "content"
    one.output(f"echo new >{tmp_path}/made")
    assert (tmp_path / "made").read_text() == "new\n"


def test_a_symlink_of_the_host_is_resolved_there(pods: Pods, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target/file").write_text("content")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    pod = pods.run()
    assert pod.container(mounts=[pod.mount(tmp_path / "link", "/mnt/deep/er")]).output("cat /mnt/deep/er/file") == "content"


def test_a_file_of_the_host_is_mounted(pods: Pods, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("content")
    pod = pods.run()
    assert pod.container(mounts=[pod.mount(tmp_path / "file", "/etc/some.conf")]).output("cat /etc/some.conf") == "content"


def test_a_path_that_the_host_does_not_have_is_an_error_that_names_it(pods: Pods, tmp_path: Path) -> None:
    pod = pods.run()
    error = refused(lambda: pod.container(mounts=[pod.mount(tmp_path / "missing", "/mnt")]))
    assert str(tmp_path / "missing") in error.details()


def test_mounts_at_any_order_of_paths_are_all_seen(pods: Pods, tmp_path: Path) -> None:
    for name in ("outer", "inner"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "name").write_text(name)
    (tmp_path / "outer/sub").mkdir()
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(tmp_path / "inner", "/mnt/sub"), pod.mount(tmp_path / "outer", "/mnt")])
    assert one.output("cat /mnt/name /mnt/sub/name") == "outerinner"


def test_a_mount_over_a_hostile_link_of_the_image_stays_inside(pods: Pods, subject: Subject, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    pod = pods.run()
    one = pod.container(image=subject.images.tag("hostile-users"), mounts=[pod.mount(tmp_path / "file", "/etc/group")])
    assert not Path("/etc/nodens-planted").exists() and one.output("cat /etc/group") == "mine"


def test_the_status_has_the_requested_mounts(pods: Pods, tmp_path: Path) -> None:
    pod = pods.run()
    asked = pod.mount(tmp_path, "/mnt", readonly=True)
    found = [mount for mount in pod.container(mounts=[asked]).status().mounts if mount.container_path == "/mnt"]
    assert (
        len(found) == 1
        and found[0].host_path == str(tmp_path)
        and found[0].readonly
        and found[0].propagation == pods.pb.PROPAGATION_PRIVATE
    )
    assert not found[0].selinux_relabel


# Mount options

OPTIONS = ("noexec", "nodev", "nosuid")


def flags(one: Container, place: str) -> set[str]:
    """The options of the mount at a place that mount_options can set."""
    lines = [line.split() for line in one.output("cat /proc/self/mountinfo").splitlines()]
    return set(next(line[5] for line in lines if line[4] == place).split(",")) & set(OPTIONS)


def flags_of_host(path: Path) -> set[str]:
    """A volume keeps the options that it has on the host."""
    found = os.statvfs(path).f_flag
    return {name for name, flag in zip(OPTIONS, (os.ST_NOEXEC, os.ST_NODEV, os.ST_NOSUID), strict=True) if found & flag}


@pytest.fixture
def with_options(subject: Subject) -> None:
    answer = subject.client.runtime.Status(subject.client.pb.StatusRequest(), timeout=30)
    if not answer.features.mount_options:
        pytest.skip("the runtime does not say that it can (Status.features.mount_options)")


@pytest.mark.usefixtures("with_options")
@pytest.mark.parametrize("asked", [["noexec"], ["nosuid", "nodev"], list(OPTIONS)])
@pytest.mark.parametrize("place", ["/mnt", "/dev/mnt"])
def test_a_volume_has_the_mount_options_that_were_asked_for(pods: Pods, tmp_path: Path, asked: list[str], place: str) -> None:
    program = tmp_path / "volume/program"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(program.parent, place, mount_options=asked)])
    assert set(asked) <= flags(one, place) <= set(asked) | flags_of_host(program)
    assert (one.execute(f"{place}/program").code == 0) == ("noexec" not in asked)
    assert set(next(mount for mount in one.status().mounts if mount.container_path == place).mount_options) == set(asked)


@pytest.mark.usefixtures("with_options")
def test_mount_options_hold_for_mounts_below_a_volume(pods: Pods, tmp_path: Path) -> None:
    with mounted(tmp_path / "top/sub", "-t", "tmpfs", "tmpfs"):
        pod = pods.run()
        one = pod.container(mounts=[pod.mount(tmp_path / "top", "/mnt", mount_options=["noexec"])])
        assert "noexec" in flags(one, "/mnt") and "noexec" in flags(one, "/mnt/sub")


@pytest.mark.usefixtures("with_options")
def test_an_unknown_mount_option_is_an_error_that_names_it(pods: Pods, tmp_path: Path) -> None:
    pod = pods.run()
    error = refused(lambda: pod.container(mounts=[pod.mount(tmp_path, "/mnt", mount_options=["exec"])]))
    assert "'exec'" in error.details() and "noexec" in error.details()


# Volumes that an image declares

def test_a_volume_that_the_image_declares_can_be_written_where_the_root_cannot(pods: Pods, subject: Subject) -> None:
    one = pods.run().container(image=subject.images.tag("volume"), security={"readonly_rootfs": True})
    assert one.execute("touch /data-not").code != 0
    assert one.output("cat /data/from-image /link/linked && ls /var/empty | wc -l").split() == ["imagelinked0"]
    assert one.output("stat -c %u:%g:%a /data /data/from-image /var/empty").split() == ["1000:1000:750", "1000:1000:644", "0:0:755"]
    assert one.output("for place in /data /var/empty /behind; do echo x >$place/new && cat $place/new; done").split() == ["x", "x", "x"]
    assert "overlay" not in one.output("grep ' /data ' /proc/mounts"), "it is not to be on an overlay, which some programs cannot work on"


def test_a_volume_that_the_image_declares_goes_with_its_container(pods: Pods, subject: Subject) -> None:
    pod = pods.run()
    one = pod.container(image=subject.images.tag("volume"))
    one.output("echo written >/data/from-image")
    source = mount_source(one.pid(), "/data")
    assert (source / "from-image").read_text() == "written\n"
    other = pod.container(image=subject.images.tag("volume"), name="other")
    assert other.output("cat /data/from-image") == "image"
    one.stop()
    one.remove()
    assert not source.exists() and other.output("cat /data/from-image") == "image"


def mount_source(pid: int, place: str) -> Path:
    """The host's directory that is mounted at a path of a container.

    Tests have it on the disk that holds their scratch directories.
    """
    line = next(line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines() if line.split()[4] == place)
    for host in (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()):
        below = line[3].removeprefix(host[3]) if host[3] != "/" else line[3]
        if host[2] == line[2] and line[3].startswith(host[3]) and (Path(host[4]) / below.lstrip("/")).is_dir():
            return Path(host[4]) / below.lstrip("/")
    raise AssertionError(f"{place} comes from nowhere: {' '.join(line)}")


def test_mounts_of_the_pod_override_volumes_of_the_image(pods: Pods, subject: Subject, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    pod = pods.run()
    one = pod.container(image=subject.images.tag("volume"), mounts=[pod.mount(tmp_path, "/data")])
    assert one.output("ls /data") == "mine"


def test_an_image_cannot_put_its_own_files_in_the_place_of_proc(pods: Pods, subject: Subject) -> None:
    """CVE-2019-16884: what processes believe to be /proc was the image's."""
    pod = pods.run()
    try:
        one = pod.container(image=subject.images.tag("hostile-volume"))
    except grpc.RpcError as error:
        assert "/to-proc" in error.details() or "/proc" in error.details()
        return
    assert "proc /proc proc" in one.output("grep ' /proc ' /proc/mounts")


# Mount propagation

@pytest.fixture
def shared(tmp_path: Path):
    """A directory that passes mounts on."""
    with mounted(tmp_path / "shared", "--bind", str(make(tmp_path / "source"))) as place:
        subprocess.run(["mount", "--make-rshared", str(place)], check=True)
        (place / "from-host").mkdir()
        (place / "from-container").mkdir()
        yield place
        for name in ("from-host", "from-container"):
            while os.path.ismount(place / name):
                subprocess.run(["umount", str(place / name)], check=True)


def make(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize(("propagation", "inwards", "outwards"),
                         [("PROPAGATION_PRIVATE", False, False), ("PROPAGATION_HOST_TO_CONTAINER", True, False),
                                                                  ("PROPAGATION_BIDIRECTIONAL", True, True)])
def test_mounts_are_passed_on_as_asked(plain_pods: Pods, shared: Path, propagation: str, inwards: bool, outwards: bool) -> None:
    value = plain_pods.pb.MountPropagation.Value(propagation)
    pod = plain_pods.run(security={"privileged": True})
    one = pod.container(security={"privileged": True}, mounts=[pod.mount(shared, "/mnt", propagation=value)])
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(shared / "from-host")], check=True)
    (shared / "from-host/file").write_text("")
    assert (one.execute("ls /mnt/from-host/file").code == 0) == inwards
    one.output("mount -t tmpfs tmpfs /mnt/from-container && touch /mnt/from-container/file")
    assert (shared / "from-container/file").exists() == outwards
    assert [mount.propagation for mount in one.status().mounts if mount.container_path == "/mnt"] == [value]


# Read-only mounts

def test_a_read_only_mount_leaves_the_mounts_below_it_writable(pods: Pods, tmp_path: Path) -> None:
    with mounted(tmp_path / "top/sub", "-t", "tmpfs", "tmpfs"):
        pod = pods.run()
        one = pod.container(mounts=[pod.mount(tmp_path / "top", "/mnt", readonly=True, propagation=pods.pb.PROPAGATION_PRIVATE)])
        assert one.execute("touch /mnt/file").code != 0 and one.execute("touch /mnt/sub/file").code == 0


def test_a_recursively_read_only_mount_has_nothing_writable_below(pods: Pods, tmp_path: Path) -> None:
    with mounted(tmp_path / "top/sub", "-t", "tmpfs", "tmpfs"):
        pod = pods.run()
        one = pod.container(mounts=[pod.mount(tmp_path / "top", "/mnt", readonly=True, recursive_read_only=True)])
        assert one.execute("touch /mnt/file").code != 0 and one.execute("touch /mnt/sub/file").code != 0


@pytest.mark.parametrize("more", [{"propagation": "PROPAGATION_HOST_TO_CONTAINER"}, {"propagation": "PROPAGATION_BIDIRECTIONAL"},
                                  {"readonly": False}])
def test_a_recursively_read_only_mount_is_private_and_read_only_or_refused(plain_pods: Pods, tmp_path: Path, more: dict) -> None:
    pod = plain_pods.run()
    refused(lambda: pod.container(mounts=[pod.mount(tmp_path, "/mnt", **({"readonly": True, "recursive_read_only": True} | more))]))


# Logs

def test_a_log_has_a_line_for_each_line(pods: Pods) -> None:
    one = pods.run().container("echo one; echo two >&2; printf three")
    one.ended()
    eventually(lambda: len(one.log()) == 3 or len(one.log()) == 2 and "three" in one.log_file.read_text())
    assert ("stdout", "one") in one.log() and ("stderr", "two") in one.log() and "three" in one.log_file.read_text()


def test_a_long_line_is_logged_in_pieces_and_whole(pods: Pods) -> None:
    one = pods.run().container("head -c 100000 /dev/zero | tr '\\0' x; echo; echo after")
    one.ended()
    eventually(lambda: one.log()[-1:] == [("stdout", "after")])
    assert [len(text) for _, text in one.log()] == [100000, 5]
    assert max(map(len, one.log_file.read_text().splitlines())) < 17 << 10


def test_a_log_is_written_to_its_new_file_after_it_was_moved_and_reopened(pods: Pods) -> None:
    one = pods.run().container("i=0; while :; do echo $i; i=$((i + 1)); sleep 0.01; done")
    eventually(lambda: len(one.log()) > 3)
    moved = one.log_file.with_suffix(".1")
    one.log_file.rename(moved)
    pods.runtime.ReopenContainerLog(pods.pb.ReopenContainerLogRequest(container_id=one.id), timeout=TIMEOUT)
    assert one.log_file.exists()
    size = moved.stat().st_size
    eventually(lambda: one.log_file.stat().st_size > 0)
    time.sleep(2)
    assert moved.stat().st_size == size
    one.stop()
    lines = [line.split(" ", 3)[3] for path in (moved, one.log_file) for line in path.read_text().splitlines()]
    assert lines == [str(number) for number in range(len(lines))], "a line was lost, doubled or moved"


def test_a_log_that_is_reopened_without_being_moved_loses_nothing(pods: Pods) -> None:
    one = pods.run().container("i=0; while :; do echo $i; i=$((i + 1)); sleep 0.01; done")
    eventually(lambda: len(one.log()) > 3)
    for _ in range(3):
        pods.runtime.ReopenContainerLog(pods.pb.ReopenContainerLogRequest(container_id=one.id), timeout=TIMEOUT)
    one.stop()
    assert [text for _, text in one.log()] == [str(number) for number in range(len(one.log()))]


def test_a_link_in_the_place_of_a_log_is_not_followed(pods: Pods, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    pod = pods.run()
    path = Path(pod.config.log_directory) / "planted.log"
    path.symlink_to(victim)
    try:
        pod.container("echo hello", log_path="planted.log").ended()
    except grpc.RpcError:
        pass
    assert victim.read_text() == "kept"


def test_an_exit_is_reported_though_the_logs_disk_is_full(pods: Pods, tmp_path: Path) -> None:
    with mounted(tmp_path / "full", "-t", "tmpfs", "-o", "size=64k", "tmpfs") as logs:
        pod = pods.run(log_directory=str(logs))
        one = pod.container("i=0; while [ $i -lt 3000 ]; do echo $i is a line that fills the disk; i=$((i + 1)); done; exit 9")
        assert one.ended(30).exit_code == 9
        pod.stop()


# Limits

@needs_memory
def test_a_container_that_takes_too_much_memory_is_oom_killed(pods: Pods) -> None:
    one = pods.run().container("dd if=/dev/zero of=/dev/null bs=20M count=1",
                               resources={"memory_limit_in_bytes": 15 << 20, "memory_swap_limit_in_bytes": 15 << 20})
    found = one.ended()
    assert (found.reason, found.exit_code) == ("OOMKilled", 137)


@needs_memory
def test_a_child_that_is_oom_killed_is_not_the_containers_end(pods: Pods) -> None:
    """A cgroup is killed whole unless the kubelet says otherwise; this one says so by memory.oom.group=0."""
    one = pods.run().container("dd if=/dev/zero of=/dev/null bs=20M count=1; sleep 4321", resources={
        "memory_limit_in_bytes": 15 << 20, "memory_swap_limit_in_bytes": 15 << 20, "unified": {"memory.oom.group": "0"}})
    time.sleep(1)
    assert one.state == pods.pb.CONTAINER_RUNNING


@needs_memory
def test_limits_are_in_the_cgroup_and_change_while_it_runs(pods: Pods) -> None:
    one = pods.run().container(resources={"memory_limit_in_bytes": 64 << 20, "cpu_period": 100000, "cpu_quota": 20000, "cpu_shares": 512})
    path = Path("/sys/fs/cgroup") / proc_cgroup(one)
    assert (path / "memory.max").read_text().strip() == str(64 << 20) and (path / "cpu.max").read_text().split() == ["20000", "100000"]
    pb = pods.pb
    resources = pb.LinuxContainerResources(memory_limit_in_bytes=96 << 20, cpu_period=100000, cpu_quota=50000, cpu_shares=1024)
    pods.runtime.UpdateContainerResources(pb.UpdateContainerResourcesRequest(container_id=one.id, linux=resources), timeout=TIMEOUT)
    assert (path / "memory.max").read_text().strip() == str(96 << 20) and (path / "cpu.max").read_text().split() == ["50000", "100000"]
    told = one.status().resources.linux
    assert told.memory_limit_in_bytes == 96 << 20 and told.cpu_quota == 50000


def proc_cgroup(one: Container) -> str:
    lines = Path(f"/proc/{one.pid()}/cgroup").read_text().splitlines()
    return next(line[3:] for line in lines if line.startswith("0::")).lstrip("/")


def test_the_oom_score_is_as_requested(pods: Pods) -> None:
    one = pods.run().container(resources={"oom_score_adj": 555})
    assert one.output("cat /proc/1/oom_score_adj") == "555"


def test_the_cgroup_is_below_the_pods(pods: Pods) -> None:
    one = pods.run().container()
    assert one.pod.config.linux.cgroup_parent.strip("/") in proc_cgroup(one)


# Other cases

def test_a_pods_life_leaves_no_mount_and_no_network_namespace(pods: Pods) -> None:
    def lines() -> list[str]:
        return sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())

    first = pods.run(name="warm-up")
    first.container()
    first.remove()
    before = lines()
    for number in range(3):
        pod = pods.run(name=f"p{number}")
        pod.container()
        pod.container(name="two").stop()
    for pod in pods.made[1:]:
        pod.stop()
        pod.remove()
    eventually(lambda: lines() == before, 10, "the end of all mounts")


def test_a_checkpoint_is_refused_with_the_reason(plain_pods: Pods, subject: Subject) -> None:
    if subject.name != "nodens-cri":
        pytest.skip("what containerd answers depends on whether criu is there")
    one = plain_pods.run().container()
    with pytest.raises(grpc.RpcError) as refusal:
        plain_pods.runtime.CheckpointContainer(plain_pods.pb.CheckpointContainerRequest(container_id=one.id, location="/tmp/x.tar"),
                                               timeout=TIMEOUT)
    assert refusal.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "checkpoint" in refusal.value.details()
