# SPDX-License-Identifier: Apache-2.0
"""Pods in user namespaces: what the CRI's validation suite leaves out, and what was broken in one runtime or another."""
import contextlib
import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest
from conftest import Subject
from nodenstest import runtimes
from nodenstest.pods import Container, Pods, mounted, overlaid, refused


@pytest.fixture
def pods(plain_pods: Pods) -> Pods:
    """All pods here have a user namespace."""
    plain_pods.users = True
    return plain_pods


def owner(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_uid, found.st_gid


def test_files_of_a_volume_have_the_same_owner_inside_and_outside(pods: Pods, tmp_path: Path) -> None:
    for number in (0, 1000, 65535):
        (tmp_path / str(number)).write_text("x")
        os.chown(tmp_path / str(number), number, number)
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(tmp_path, "/mnt")])
    assert one.output("stat -c %u:%g /mnt/0 /mnt/1000 /mnt/65535").split() == ["0:0", "1000:1000", "65535:65535"]
    one.output("touch /mnt/root && touch /mnt/user && chown 1000:2000 /mnt/user && mkdir /mnt/dir && ln -s x /mnt/link")
    assert (
        owner(tmp_path / "root") == (0, 0)
        and owner(tmp_path / "user") == (1000, 2000)
        and owner(tmp_path / "dir") == (0, 0) == owner(tmp_path / "link")
    )


def test_files_that_the_block_cannot_show_belong_to_nobody(pods: Pods, tmp_path: Path) -> None:
    (tmp_path / "foreign").write_text("x")
    os.chown(tmp_path / "foreign", 100000, 100000)
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(tmp_path, "/mnt")])
    assert one.output("stat -c %u:%g /mnt/foreign") == "65534:65534" and one.execute("rm -f /mnt/foreign; chown 0 /mnt/foreign").code != 0


@pytest.mark.skipif(not runtimes.rootless(), reason="only a rootless node lacks IDs")
def test_ids_that_the_node_does_not_have_are_refused(pods: Pods) -> None:
    last = int(Path("/proc/self/uid_map").read_text().split()[-1])
    for first in (last - 65535 + 1, 0xF0000000):
        users = {"userns_options": pods.user_namespace(True, host_id=first)}
        error = refused(lambda users=users: pods.run(namespaces=users), grpc.StatusCode.FAILED_PRECONDITION)
        assert f"IDs {first} to {first + 65535} of the pod's user namespace are not part of this rootless node, which has 0 to {last}" \
            in error.details()
    pods.run(namespaces={"userns_options": pods.user_namespace(True, host_id=last - 65535)})


@pytest.mark.skipif(not runtimes.rootless(), reason="the host's root can idmap its disks")
def test_a_volume_on_the_hosts_disk_is_refused_in_a_rootless_node(pods: Pods) -> None:
    place = Path("/var/lib/volume")
    place.mkdir(exist_ok=True)
    pod = pods.run()
    error = refused(lambda: pod.container(mounts=[pod.mount(place, "/mnt")]))
    assert "/var/lib/volume" in error.details() and "which the host mounted" in error.details()


def test_mounts_below_a_volume_are_mapped_too(pods: Pods, tmp_path: Path) -> None:
    with mounted(tmp_path / "top/sub", "-t", "tmpfs", "tmpfs") as below:
        (below / "file").write_text("x")
        pod = pods.run()
        one = pod.container(mounts=[pod.mount(tmp_path / "top", "/mnt")])
        assert one.output("stat -c %u:%g /mnt/sub/file") == "0:0"
        one.output("touch /mnt/sub/made")
        assert owner(below / "made") == (0, 0)


def test_a_volume_that_holds_the_runtimes_own_directories_is_mapped(pods: Pods, subject: Subject) -> None:
    """The volume is mapped, and the mounts below it are not.

    Roots of containers are below it, this one's own among them, and no kernel can idmap an overlay.
    """
    if subject.runtime is None:
        pytest.skip("where a runtime has its directories is known only of one that this suite has started")
    place = subject.runtime.directory
    (place / "mine").write_text("x")
    os.chown(place / "mine", 1000, 1000)
    for _ in range(2):
        pod = pods.run()
        one = pod.container(mounts=[pod.mount(place, "/host")])
        assert one.output("stat -c %u:%g /host/mine /host").split() == ["1000:1000", "0:0"]
        assert "idmapped" in one.output("grep ' /host ' /proc/self/mountinfo")


def test_a_single_file_is_mapped_too(pods: Pods, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(tmp_path / "file", "/etc/hosts")])
    assert one.output("stat -c %u:%g /etc/hosts") == "0:0"


def test_a_volume_without_a_mapping_is_as_the_host_has_it(pods: Pods, tmp_path: Path) -> None:
    pod = pods.run()
    (tmp_path / "mine").write_text("x")
    os.chown(tmp_path / "mine", pod.host_root, pod.host_root)
    tmp_path.chmod(0o755)
    one = pod.container(mounts=[pods.pb.Mount(host_path=str(tmp_path), container_path="/mnt")])
    assert one.output("stat -c %u:%g /mnt/mine") == "0:0" and one.output("stat -c %u:%g /mnt") == "65534:65534"


def test_a_filesystem_that_cannot_be_mapped_is_named_with_path_and_kind(pods: Pods, tmp_path: Path) -> None:
    with overlaid(tmp_path) as place:
        pod = pods.run()
        error = refused(lambda: pod.container(mounts=[pod.mount(place, "/mnt")]))
        assert str(place) in error.details() and "overlay" in error.details() and "idmap" in error.details().lower()


def test_the_images_files_have_the_owners_of_the_image(pods: Pods, subject: Subject) -> None:
    one = pods.run().container(image=subject.images.tag("owners"))
    assert one.output("stat -c %u:%g /owners/0 /owners/1000 /owners/65535").split() == ["0:0", "1000:1000", "65535:65535"]
    assert one.output("stat -c %u /owners/65536 /owners/200000").split() == ["65534", "65534"]
    one.output("echo x >/owners/1000 && chown 7:8 /owners/0 && stat -c %u:%g /owners/0")


def test_a_volume_that_the_image_declares_has_its_content_and_owner(pods: Pods, subject: Subject) -> None:
    one = pods.run().container(image=subject.images.tag("volume"))
    assert one.output("cat /data/from-image") == "image" and one.output("stat -c %u:%g:%a /data") == "1000:1000:750"
    one.output("touch /data/made && chown 1000 /data/made")


# ---- read-only, against root of the pod with SYS_ADMIN ----

ADMIN = {"capabilities": {"add_capabilities": ["SYS_ADMIN"]}}


def unlock(one: Container, place: str) -> None:
    """Attacks of root with SYS_ADMIN on a mount: clear the flag, on it or on a copy, or unmount it. Some may succeed; writing must not."""
    one.output("mkdir -p /tmp/copy")
    for command in (f"mount -o remount,bind,rw {place}", f"mount -o remount,rw {place}",
                    f"mount --bind {place} /tmp/copy && mount -o remount,bind,rw /tmp/copy",
                    f"mount --rbind {place} /tmp/copy && mount -o remount,bind,rw /tmp/copy", f"mount --move {place} /tmp/copy",
                    f"umount -l {place}",
                    f"unshare -m sh -c 'mount -o remount,bind,rw {place} && touch {place}/made && echo x >>{place}/file'"):
        one.execute(command)


def is_read_only(one: Container, place: str) -> None:
    for command in (f"touch {place}/made", f"echo x >>{place}/file", "touch /tmp/copy/made", f"rm {place}/file"):
        done = one.execute(command)
        assert done.code != 0 and ("Read-only" in done.stderr or "/tmp/copy" in command), f"{command}: {done}"


@pytest.mark.parametrize("kind", ["plain", "recursive", "without-a-mapping", "tmpfs", "in-a-writable-one"])
def test_sys_admin_cannot_make_a_read_only_volume_writable(pods: Pods, tmp_path: Path, kind: str) -> None:
    """With an idmapped volume root of the pod is root on the host's files: only the read-only flag is between them."""
    volume = tmp_path / "volume"
    with contextlib.ExitStack() as stack:
        if kind == "tmpfs":
            stack.enter_context(mounted(volume, "-t", "tmpfs", "tmpfs"))
        volume.mkdir(exist_ok=True)
        (volume / "file").write_text("the host's\n")
        pod = pods.run()
        if kind == "without-a-mapping":
            os.chown(volume, pod.host_root, pod.host_root)
            os.chown(volume / "file", pod.host_root, pod.host_root)
            tmp_path.chmod(0o755)
            mounts = [pods.pb.Mount(host_path=str(volume), container_path="/mnt", readonly=True)]
        elif kind == "in-a-writable-one":
            (tmp_path / "outer").mkdir()
            mounts = [pod.mount(tmp_path / "outer", "/outer"), pod.mount(volume, "/outer/inner", readonly=True)]
        else:
            mounts = [pod.mount(volume, "/mnt", readonly=True, recursive_read_only=kind == "recursive")]
        one, place = pod.container(mounts=mounts, security=ADMIN), mounts[-1].container_path
        is_read_only(one, place)
        unlock(one, place)
        is_read_only(one, place)
        assert (volume / "file").read_text() == "the host's\n" and [path.name for path in volume.iterdir()] == ["file"]


def test_sys_admin_cannot_make_a_read_only_file_or_root_writable(pods: Pods, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("the host's\n")
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(tmp_path / "file", "/etc/secret", readonly=True), pod.mount(tmp_path, "/tmp")],
                        security=ADMIN | {"readonly_rootfs": True})
    unlock(one, "/etc/secret")
    unlock(one, "/")
    for command in ("echo x >>/etc/secret", "touch /made", "rm /etc/passwd"):
        done = one.execute(command)
        assert done.code != 0 and "Read-only" in done.stderr, f"{command}: {done}"
    assert (tmp_path / "file").read_text() == "the host's\n"


def test_mounts_of_the_host_come_into_a_volume_that_asks_for_them(pods: Pods, tmp_path: Path) -> None:
    """HostToContainer beside a private volume, both read-only, in a user namespace.

    The first sees later mounts of the host, the second does not. The engine mounts the first, so
    that it cannot be locked, nor can mounts in it.
    """
    with mounted(tmp_path / "shared", "--bind", str(tmp_path)) as shared:
        subprocess.run(["mount", "--make-shared", str(shared)], check=True)
        for name in ("later", "below", "inner"):
            (shared / name).mkdir()
        (shared / "inner/file").write_text("inner")
        pod = pods.run()
        mounts = [pod.mount(shared / "inner", "/slave/below", readonly=True), pod.mount(shared, "/private", readonly=True),
                  pod.mount(shared, "/slave", readonly=True, propagation=pods.pb.PROPAGATION_HOST_TO_CONTAINER)]
        assert "unlockedReadOnlyVolumes" in refused(lambda: pod.container(mounts=mounts, security=ADMIN)).details()
        one = pod.container(name="two", mounts=mounts)
        assert one.output("cat /slave/below/file") == "inner"
        with mounted(shared / "later", "-t", "tmpfs", "tmpfs") as later:
            (later / "file").write_text("x")
            assert one.output("cat /slave/later/file") == "x" and one.execute("ls /private/later/file").code != 0
        assert one.execute("ls /slave/later/file").code != 0 and one.output("ls /slave /private")
        one.stop()
        one.remove()
        assert os.path.ismount(shared)


def test_a_read_only_volume_follows_changes_of_the_host(pods: Pods, tmp_path: Path) -> None:
    """As the kubelet does with secrets: a link is replaced. And a socket in it can be connected to."""
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "key").write_text(name)
    (tmp_path / "data").symlink_to("1")
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(tmp_path, "/mnt", readonly=True)], security=ADMIN)
    assert one.output("cat /mnt/data/key") == "1"
    (tmp_path / "new").symlink_to("2")
    (tmp_path / "new").rename(tmp_path / "data")
    assert one.output("cat /mnt/data/key") == "2"


def test_volumes_in_volumes_are_all_seen_also_behind_links_of_the_image(pods: Pods, tmp_path: Path) -> None:
    """Read-only ones in writable ones, writable ones in read-only ones, and one whose way is a link into another (/var/run is /run)."""
    for name in "abcd":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(name)
    (tmp_path / "b" / "c").mkdir()    # nothing is made in a read-only volume
    pod = pods.run()
    one = pod.container(["sh", "-c", "exec sleep 4321"], mounts=[
        pod.mount(tmp_path / "d", "/a/b/c/d", readonly=True), pod.mount(tmp_path / "c", "/a/b/c"),
        pod.mount(tmp_path / "b", "/a/b", readonly=True),
        pod.mount(tmp_path / "a", "/a")], security=ADMIN)
    assert one.output("cat /a/a /a/b/b /a/b/c/c /a/b/c/d/d") == "abcd"
    one.output("touch /a/made /a/b/c/made")
    for place in ("/a/b", "/a/b/c/d"):
        unlock(one, place)
        assert "Read-only" in one.execute(f"touch {place}/made").stderr


def test_a_read_only_volume_in_dev_is_refused_with_sys_admin_alone(pods: Pods, tmp_path: Path) -> None:
    """The engine mounts /dev itself, over the existing directory: nothing below it can be locked."""
    (tmp_path / "file").write_text("x")
    pod = pods.run()
    mounts = [pod.mount(tmp_path / "file", "/dev/secret", readonly=True)]
    assert "unlockedReadOnlyVolumes" in refused(lambda: pod.container(mounts=mounts, security=ADMIN)).details()
    one = pod.container(mounts=mounts, name="two")
    assert one.output("cat /dev/secret") == "x" and "Read-only" in one.execute("echo x >>/dev/secret").stderr
    assert pod.container(mounts=[pod.mount(tmp_path / "file", "/dev/log")], name="three",
                         security=ADMIN).output("echo y >/dev/log; cat /dev/log") == "y"


def test_sys_admin_cannot_change_the_mount_options_of_a_volume(pods: Pods, tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "program").chmod(0o755)
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(tmp_path, "/mnt", mount_options=["noexec"])], security=ADMIN)
    for command in ("mount -o remount,bind,exec /mnt", "mount --bind /mnt /tmp && mount -o remount,bind,exec /tmp"):
        one.execute(command)
        done = one.execute("/mnt/program; /tmp/program")
        assert "ran" not in done.stdout, f"{command}: {done}"
    error = refused(lambda: pod.container(mounts=[pod.mount(tmp_path, "/dev/mnt", mount_options=["noexec"])], name="two",
                                          security=ADMIN))
    assert "change its mount options" in error.details()


def test_nothing_of_the_nodes_cgroups_lies_under_the_hosts_sys(pods: Pods, subject: Subject) -> None:
    """On the host's network /sys is the host's. What is mounted in it there must not come along, not even covered."""
    answer = subject.client.runtime.Status(subject.client.pb.StatusRequest(), timeout=30)
    if not answer.features.user_namespaces_host_network:
        pytest.skip("the runtime does not say that it can (Status.features.user_namespaces_host_network)")
    one = pods.run(namespaces={"network": pods.pb.NODE}).container(security=ADMIN)
    assert "cgroup.procs" in one.output("ls /sys/fs/cgroup") and one.output("ls /sys/class/net")
    for _ in range(4):
        one.execute("umount -l /sys/fs/cgroup")
        assert one.output("ls /sys/fs/cgroup") == "", "a cgroup came to light"
    one.execute("mount -o remount,bind,rw /sys")
    assert "cgroup" not in one.output("cat /proc/self/mountinfo")
    assert " ro," in one.output("grep ' /sys ' /proc/self/mountinfo")


def test_a_process_is_unprivileged_on_the_host(pods: Pods) -> None:
    pod = pods.run()
    one = pod.container(security={"run_as_user": {"value": 1000}})
    status = Path(f"/proc/{one.pid()}/status").read_text()
    assert f"Uid:\t{pod.host_root + 1000}\t" in status
    root = pod.container(name="b")
    assert Path(f"/proc/{root.pid()}").stat().st_uid == pod.host_root


def test_all_containers_of_a_pod_are_in_one_user_namespace(pods: Pods) -> None:
    pod = pods.run()
    spaces = {os.readlink(f"/proc/{pod.container(name=name).pid()}/ns/user") for name in "ab"}
    assert len(spaces) == 1 and spaces != {os.readlink("/proc/self/ns/user")}


def test_the_pods_network_belongs_to_its_user_namespace(pods: Pods) -> None:
    one = pods.run().container(security={"capabilities": {"add_capabilities": ["NET_ADMIN"]}})
    one.output("ip link add bridge0 type bridge && ip addr add 192.0.2.1/32 dev bridge0 && ip link set bridge0 up")


def test_sys_admin_inside_is_none_outside(pods: Pods, tmp_path: Path) -> None:
    pod = pods.run()
    one = pod.container(security={"capabilities": {"add_capabilities": ["SYS_ADMIN", "SYS_TIME", "SYS_MODULE", "MKNOD"]}, "seccomp": None})
    one.output("mount -t tmpfs tmpfs /tmp")
    assert one.execute("mknod /tmp/disk b 8 0").code != 0 and "not permitted" in one.execute("date -s \"$(date +%Y-%m-%d)\"").stderr
    assert one.execute("echo x >/proc/sys/kernel/core_pattern").code != 0


def test_shared_memory_and_message_queues_work_and_are_the_pods(pods: Pods) -> None:
    pod = pods.run()
    one, two = pod.container(), pod.container(name="two")
    one.output("echo shared >/dev/shm/file && chmod 600 /dev/shm/file")
    assert two.output("cat /dev/shm/file") == "shared" and one.output("stat -c %a /dev/shm") == "1777"
    assert [line.split()[2] for line in one.output("cat /proc/mounts").splitlines() if line.split()[1] == "/dev/shm"] == ["tmpfs"]
    assert int(one.output("df -k /dev/shm | tail -n 1 | awk '{print $2}'")) == 65536
    one.output("mkdir -p /dev/mqueue && ls /dev/mqueue")
    other = pods.run(name="other").container()
    assert other.execute("cat /dev/shm/file").code != 0


# busybox's ping knows raw sockets only. This one joins the container as its user and asks without
# any capability.
PING = """
import os, socket, sys
namespaces = [os.open(f"/proc/{sys.argv[1]}/ns/{kind}", os.O_RDONLY) for kind in ("user", "net")]
for namespace in namespaces:
    os.setns(namespace)
os.setgroups([])
os.setresgid(0, 0, 0)
os.setresuid(1000, 1000, 1000)
pinger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
pinger.settimeout(60)
pinger.sendto(bytes([8, 0, 0, 0, 0, 0, 0, 1]), ("127.0.0.1", 0))
assert pinger.recv(100)[0] == 0
"""


def test_a_user_inside_may_ping(pods: Pods) -> None:
    one = pods.run().container(security={"run_as_user": {"value": 1000}, "capabilities": {"drop_capabilities": ["ALL"]}})
    low, high = map(int, one.output("cat /proc/sys/net/ipv4/ping_group_range").split())
    assert low == 0 and 1000 <= high <= 65535
    done = subprocess.run([sys.executable, "-c", PING, str(one.pid())], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_files_that_the_runtime_makes_belong_to_the_pods_root(pods: Pods) -> None:
    one = pods.run().container()
    found = one.output("stat -c '%n %u' /etc/hostname /etc/resolv.conf /dev/shm /dev/null /dev/pts /proc /proc/1 / /etc /dev").splitlines()
    strangers = [line for line in found if not line.endswith(" 0") and not line.startswith(("/dev/null", "/proc "))]
    assert strangers == []


def test_the_cgroup_belongs_to_the_pods_root(pods: Pods) -> None:
    one = pods.run().container()
    path = next(line[3:] for line in Path(f"/proc/{one.pid()}/cgroup").read_text().splitlines() if line.startswith("0::"))
    assert path.startswith(one.pod.config.linux.cgroup_parent) or one.pod.config.linux.cgroup_parent in path
    assert one.output("cat /proc/self/cgroup | grep '^0::'") in ("0::/", "0::" + path) or ".." not in one.output("cat /proc/self/cgroup")


def test_on_the_hosts_network_a_pod_may_still_have_its_users(pods: Pods, subject: Subject) -> None:
    answer = subject.client.runtime.Status(subject.client.pb.StatusRequest(), timeout=30)
    if not answer.features.user_namespaces_host_network:
        pytest.skip("the runtime does not say that it can (Status.features.user_namespaces_host_network)")
    pod = pods.run(namespaces={"network": pods.pb.NODE})
    one = pod.container(security={"capabilities": {"add_capabilities": ["NET_ADMIN"]}})
    assert one.output("cat /proc/self/uid_map").split()[1] == str(pod.block)
    assert os.readlink(f"/proc/{one.pid()}/ns/net") == os.readlink("/proc/self/ns/net")
    assert one.execute("ip link add foobar type bridge").code != 0, "the host's network is not the pod's to change"
    seen = {line.split()[4]: line for line in one.output("cat /proc/self/mountinfo").splitlines()}  # the topmost at each place
    for place, line in seen.items():
        if place == "/sys" or place.startswith("/sys/"):
            assert "ro" in line.split()[5].split(","), f"writable: {line}"


def test_a_restart_of_the_runtime_keeps_the_mapping(pods: Pods, subject: Subject) -> None:
    pod = pods.run()
    first = pod.container()
    before = os.readlink(f"/proc/{first.pid()}/ns/user")
    subject.restart()
    assert first.state == pods.pb.CONTAINER_RUNNING and pod.status().state == pods.pb.SANDBOX_READY
    assert first.output("cat /proc/self/uid_map").split()[1] == str(pod.block)
    second = pod.container(name="second")
    assert os.readlink(f"/proc/{second.pid()}/ns/user") == before


def test_containers_that_ended_while_the_runtime_was_away_have_their_codes(pods: Pods, subject: Subject) -> None:
    one = pods.run().container("sleep 1; exit 33")
    subject.restart(away=2)
    assert one.ended().exit_code == 33


def test_a_block_that_another_living_pod_has_is_refused(pods: Pods) -> None:
    """No other runtime checks this: two pods that share IDs are not isolated from each other."""
    first = pods.run()
    options = pods.user_namespace(True, first.block)
    refused(lambda: pods.run(name="thief", namespaces={"userns_options": options}))


def test_inotify_instances_of_a_pod_are_not_the_hosts(pods: Pods) -> None:
    one = pods.run().container("for i in $(seq 200); do inotifyd true /tmp:c & done; exec sleep 4321")
    time.sleep(1)
    libc = ctypes.CDLL(None)
    mine = libc.inotify_init1(0o2000000)
    assert mine >= 0 and one.state == pods.pb.CONTAINER_RUNNING
    os.close(mine)


def test_the_mount_table_of_the_host_grows_by_few_lines(pods: Pods, tmp_path: Path) -> None:
    def lines() -> int:
        return len(Path("/proc/self/mountinfo").read_text().splitlines())

    before = lines()
    pod = pods.run()
    sandbox = lines() - before
    mounts = [pod.mount(tmp_path, f"/mnt/{number}", readonly=number % 2 == 0) for number in range(4)]
    pod.container(mounts=mounts)
    pod.container(name="b", mounts=mounts)
    containers = lines() - before - sandbox
    assert sandbox <= 2 and containers == 0, f"{sandbox} for the pod, {containers} for two containers"
