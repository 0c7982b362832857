# SPDX-License-Identifier: Apache-2.0
"""Volumes that cannot be idmapped, in pods with user namespaces: nodens-bridge serves them if the configuration allows it."""
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Subject
from nodenstest import runtimes
from nodenstest.bridged import wait_until
from nodenstest.pods import Pod, Pods, eventually, overlaid, refused
from nodenstest.scrape import scrape


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
    with overlaid(tmp_path) as place:
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


def inspect(subject: Subject, pod: Pod, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(runtimes.program("src/nodens")), "inspect", "--socket", subject.socket.removeprefix("unix://"), *arguments,
                           pod.id], capture_output=True, text=True, timeout=60, check=False)


def details(subject: Subject, pod: Pod) -> dict[str, Any]:
    """The only container of the pod, as `nodens inspect` shows it, after it was checked."""
    def look() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(inspect(subject, pod, "--json").stdout)["pods"][0]["containers"][0]
        return found

    eventually(lambda: look()["checks"], 30, "the checks of the container")
    return look()


@pytest.fixture
def metric(subject: Subject) -> Callable[[str], float]:
    """Reads a metric of nodens-cri, without the start of its name."""
    return lambda name: scrape(subject.runtime.directory / "metrics.sock")[f"nodens_cri_{name}"]    # type: ignore[union-attr]


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


def test_a_daemon_with_another_program_replaces_the_processes(pods: Pods, storage: Path, subject: Subject, tmp_path: Path) -> None:
    pod = pods.run()
    one = pod.container(["sh", "-c", "exec 3>/mnt/open; n=0; while mkdir /mnt/$n && rmdir /mnt/$n && echo $n >&3; do n=$((n + 1)); done"],
                        mounts=[pod.mount(storage, "/mnt")])
    before = bridges()
    other = Path(shutil.copy(runtimes.program("src/bridge/nodens-bridge"), tmp_path / "nodens-bridge"))
    subject.runtime.settings["bridgeHelper"] = other     # type: ignore[union-attr]
    subject.restart()
    wait_until(lambda: len(bridges()) == 3 and not set(bridges()) & set(before), "other processes")
    assert all(Path(f"/proc/{pid}/exe").readlink() == other for pid in bridges())
    written = (storage / "open").stat().st_size
    wait_until(lambda: (storage / "open").stat().st_size > written, "more lines in the file that was open")
    one.output("true")
    cgroups = {Path(f"/proc/{pid}/cgroup").read_text() for pid in bridges()}
    assert len(cgroups) == 1 and "nodens-bridge" in cgroups.pop(), "they are in the pod's cgroup"
    pod.stop()
    numbers = (storage / "open").read_text().split()
    assert numbers == [str(number) for number in range(len(numbers))]
    wait_until(lambda: not bridges(), "the end of the processes")


def test_a_killed_server_is_replaced_under_the_container(pods: Pods, storage: Path) -> None:
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(storage, "/mnt")])
    for number in range(3):
        server = max(bridges(), key=lambda pid: len(os.listdir(f"/proc/{pid}/task")))
        os.kill(server, signal.SIGKILL)
        one.output(f"mkdir /mnt/{number}")
    assert sorted(os.listdir(storage)) == ["0", "1", "2"]


def test_a_pod_whose_storage_does_not_respond_can_be_stopped(pods: Pods, storage: Path) -> None:
    pod, other = pods.run(), pods.run(name="other")
    one = pod.container(["sh", "-c", "while ls /mnt >/dev/null; do :; done"], mounts=[pod.mount(storage, "/mnt")])
    beside = other.container(mounts=[other.mount(storage, "/mnt")])
    first = [pid for pid in bridges() if pod.id in Path(f"/proc/{pid}/cmdline").read_text()]
    assert len(first) == 3
    for pid in first:
        os.kill(pid, signal.SIGSTOP)
    beside.output("echo text >/mnt/file")
    wait_until(lambda: is_waiting(one.pid()), "a process that waits for the volume")
    pod.stop()
    assert len(bridges()) == 3 and beside.output("cat /mnt/file") == "text"
    pod.remove()


def is_waiting(pid: int) -> bool:
    """Whether a process, or a child of it, waits in the kernel."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return any(Path(f"/proc/{one}/wchan").read_text() == "request_wait_answer" for one in (pid, *children))


def test_a_volume_whose_processes_were_all_killed_is_served_anew_to_the_next_container(pods: Pods, storage: Path) -> None:
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(storage, "/mnt")])
    while bridges():
        for pid in bridges():
            os.kill(pid, signal.SIGKILL)
    assert one.execute("ls /mnt").code != 0
    assert pod.container(name="next", mounts=[pod.mount(storage, "/mnt")]).output("touch /mnt/file && ls /mnt") == "file"


def test_rules_give_all_files_to_one_user(pods: Pods, storage: Path, subject: Subject) -> None:
    (storage / "file").write_text("text")
    os.chown(storage / "file", 70000, 70000)
    storage.chmod(0o755)
    rules = "{bridge: auto, rules: [{filesystem: overlay, forceOwner: '1000:1001'}]}"
    subject.runtime.settings["volumes"] = rules         # type: ignore[union-attr]
    subject.restart()
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(storage, "/mnt")], security={"run_as_user": pods.pb.Int64Value(value=1000)})
    assert one.output("stat -c %u:%g /mnt /mnt/file").split() == ["1000:1001"] * 2
    one.output("echo more >>/mnt/file && mkdir /mnt/d && touch /mnt/d/x && chown 1000 /mnt/file")
    assert (storage / "file").read_text() == "textmore\n" and (storage / "file").stat().st_uid == 70000
    assert (storage / "d").stat().st_uid == 0, "who made it does not matter to storage without owners"


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


def test_inspect_shows_how_each_volume_is_mapped(pods: Pods, storage: Path, tmp_path: Path, subject: Subject) -> None:
    (tmp_path / "plain").mkdir()
    pod = pods.run()
    pod.container(mounts=[pod.mount(storage, "/bridged"), pod.mount(tmp_path / "plain", "/idmapped"),
                          pods.pb.Mount(host_path=str(tmp_path / "plain"), container_path="/same")])
    for _ in range(2):
        found = details(subject, pod)
        shown = {mount["containerPath"]: (mount["mapping"], mount["idmapped"], mount["filesystem"]) for mount in found["mounts"]}
        assert shown == {"/bridged": ("bridged", False, "overlay"), "/idmapped": ("idmapped", True, None), "/same": ("none", False, None)}
        checks = {check["name"]: (check["result"], check["found"]) for check in found["checks"]}
        assert checks["mount /bridged"] == ("passed", "bridged, writable")
        table = inspect(subject, pod)
        assert table.returncode == 0
        for words in ("writable, bridged from overlay", "writable, idmapped", "writable, as it is"):
            assert words in table.stdout
        subject.restart()       # and the record has it


def test_metrics_count_bridges_by_state_and_by_result(pods: Pods, storage: Path, metric: Callable[[str], float]) -> None:
    started, failed = metric("bridges_started_total"), metric("bridges_failed_total")
    pod = pods.run()
    pod.container(mounts=[pod.mount(storage, "/mnt")])
    pod.container(name="two", mounts=[pod.mount(storage, "/mnt")])
    assert metric('bridges{state="serving"}') == 1 and metric('bridges{state="dead"}') == 0
    for process in bridges():
        os.kill(process, signal.SIGSTOP)        # none can be replaced by another one
    for process in bridges():
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: metric('bridges{state="dead"}') == 1, "the end of all processes")
    assert metric('bridges{state="serving"}') == 0
    pod.stop()
    assert metric('bridges{state="dead"}') == 0
    assert metric("bridges_started_total") == started + 1 and metric("bridges_failed_total") == failed


def test_a_start_that_failed_is_counted_and_can_be_repeated(pods: Pods, storage: Path, subject: Subject,
                                                            metric: Callable[[str], float]) -> None:
    settings = subject.runtime.settings     # type: ignore[union-attr]
    helper = settings["bridgeHelper"]
    settings["bridgeHelper"] = "/bin/false"
    subject.restart()
    pod = pods.run()
    refused(lambda: pod.container(mounts=[pod.mount(storage, "/mnt")]))
    assert metric("bridges_failed_total") == 1 and metric("bridges_started_total") == 0
    assert metric('bridges{state="serving"}') == 0 and metric('bridges{state="dead"}') == 0
    settings["bridgeHelper"] = helper
    subject.restart()
    pod.container(name="again", mounts=[pod.mount(storage, "/mnt")]).output("mkdir /mnt/d")
    assert metric("bridges_started_total") == 1 and metric('bridges{state="serving"}') == 1


def test_without_the_bridge_the_error_names_volume_filesystem_and_remedy(pods: Pods, storage: Path, subject: Subject) -> None:
    subject.runtime.settings["volumes"] = "{bridge: off}"           # type: ignore[union-attr]
    subject.restart()
    pod = pods.run()
    error = refused(lambda: pod.container(mounts=[pod.mount(storage, "/mnt/data")]))
    for words in (str(storage), "at '/mnt/data'", "it is on overlay", "volumes: {bridge: auto}", "MOUNT_ATTR_IDMAP"):
        assert words in error.details()
