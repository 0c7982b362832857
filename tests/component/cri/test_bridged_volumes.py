# SPDX-License-Identifier: Apache-2.0
"""Volumes that cannot be idmapped, in pods with user namespaces: nodens-bridge serves them if the configuration allows it."""
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Subject
from nodenstest import runtimes
from nodenstest.bridged import wait_until
from nodenstest.pods import Pods, mounted, refused


@pytest.fixture
def pods(plain_pods: Pods, subject: Subject) -> Iterator[Pods]:
    if subject.name != "nodens-cri" or subject.runtime is None:
        pytest.skip("nodens-bridge belongs to nodens-cri")
    if runtimes.rootless():
        pytest.skip("files of a rootless node's volumes get the pod's IDs instead")
    plain_pods.users = True
    settings = subject.runtime.settings     # type: ignore[attr-defined]
    settings |= {"volumes": "{bridge: auto}", "bridgeHelper": runtimes.program("src/bridge/nodens-bridge")}
    subject.restart()
    yield plain_pods
    del settings["volumes"], settings["bridgeHelper"]
    subject.restart()


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Path]:
    """A directory of a filesystem that no kernel can idmap."""
    for name in ("lower", "upper", "work"):
        (tmp_path / name).mkdir()
    overlay = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    with mounted(tmp_path / "overlay", "-t", "overlay", "-o", overlay, "overlay") as place:
        yield place


def bridges() -> list[int]:
    """Processes of nodens-bridge."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"nodens-bridge" in (entry / "cmdline").read_bytes().split(b"\0")[0]:
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def test_root_and_users_of_the_pod_own_their_files(pods: Pods, storage: Path) -> None:
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(storage, "/mnt")])
    one.output("echo text >/mnt/root && mkdir /mnt/d && chown 1000:1001 /mnt/d")
    assert (storage / "root").read_text() == "text\n" and (storage / "root").stat().st_uid == 0
    assert ((storage / "d").stat().st_uid, (storage / "d").stat().st_gid) == (1000, 1001)
    assert one.output("stat -c %u:%g /mnt/root /mnt/d").split() == ["0:0", "1000:1001"]
    assert "fuse.nodens-bridge" in one.output("grep ' /mnt ' /proc/self/mountinfo")


def test_containers_of_a_pod_share_a_volume_and_its_server(pods: Pods, storage: Path) -> None:
    pod = pods.run()
    first = pod.container(mounts=[pod.mount(storage, "/mnt")])
    second = pod.container(name="two", mounts=[pod.mount(storage, "/other", readonly=True)])
    assert len(bridges()) == 3
    first.output("echo one >/mnt/file")
    assert second.output("cat /other/file") == "one", "at once, without a cache in between"
    assert second.execute("touch /other/file").code != 0
    other = pods.run(name="another")
    other.container(mounts=[other.mount(storage, "/mnt")])
    assert len(bridges()) == 6, "another pod has its own"


def test_a_volume_stays_when_its_container_is_replaced_and_ends_with_the_pod(pods: Pods, storage: Path) -> None:
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(storage, "/mnt")])
    one.output("echo kept >/mnt/file")
    processes = sorted(bridges())
    one.stop()
    one.remove()
    assert sorted(bridges()) == processes
    assert pod.container(name="again", mounts=[pod.mount(storage, "/mnt")]).output("cat /mnt/file") == "kept"
    pod.stop()
    wait_until(lambda: not bridges(), "the end of the processes")
    pod.remove()
    assert "nodens-bridge" not in Path("/proc/self/mountinfo").read_text()


def test_a_restart_of_the_daemon_changes_nothing(pods: Pods, storage: Path, subject: Subject) -> None:
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(storage, "/mnt")])
    processes = sorted(bridges())
    subject.restart()
    one.output("echo text >/mnt/file")
    assert sorted(bridges()) == processes and (storage / "file").read_text() == "text\n"
    pod.stop()
    wait_until(lambda: not bridges(), "the end of the processes")


def test_a_killed_server_is_replaced_under_the_container(pods: Pods, storage: Path) -> None:
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(storage, "/mnt")])
    for number in range(3):
        server = max(bridges(), key=lambda pid: len(os.listdir(f"/proc/{pid}/task")))
        os.kill(server, signal.SIGKILL)
        one.output(f"mkdir /mnt/{number}")
    assert sorted(os.listdir(storage)) == ["0", "1", "2"]


def test_a_directory_below_and_a_single_file_are_volumes(pods: Pods, storage: Path) -> None:
    (storage / "sub").mkdir()
    (storage / "sub/inside").write_text("inside\n")
    (storage / "file").write_text("file\n")
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(storage / "sub", "/mnt"), pod.mount(storage / "file", "/etc/motd")])
    assert one.output("ls /mnt; cat /mnt/inside /etc/motd").split() == ["inside", "inside", "file"]
    one.output("echo more >>/etc/motd")
    assert (storage / "file").read_text() == "file\nmore\n"


def test_a_volume_that_can_be_idmapped_is_not_bridged(pods: Pods, tmp_path: Path) -> None:
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(tmp_path, "/mnt")])
    assert "idmapped" in one.output("grep ' /mnt ' /proc/self/mountinfo") and bridges() == []


def test_a_server_that_cannot_start_is_reported_with_the_volume(pods: Pods, storage: Path, subject: Subject) -> None:
    subject.runtime.settings["bridgeHelper"] = "/bin/false"         # type: ignore[union-attr]
    subject.restart()
    pod = pods.run()
    error = refused(lambda: pod.container(mounts=[pod.mount(storage, "/mnt")]))
    assert str(storage) in error.details() and "nodens-bridge" in error.details() and "overlay" in error.details()
