# SPDX-License-Identifier: Apache-2.0
"""Attacks on volumes: on their flags, on the paths that lead to them, on the places where they are mounted, and on what is left of them.

The attacker is root of a pod in a user namespace, often with SYS_ADMIN, and may write to a volume that other containers mount as well."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from conftest import Subject
from nodenstest import runtimes
from nodenstest.pods import TIMEOUT, Pod, Pods, eventually, refused

ADMIN = {"capabilities": {"add_capabilities": ["SYS_ADMIN", "SYS_PTRACE"]}}


@pytest.fixture
def pods(plain_pods: Pods) -> Pods:
    """All pods here have a user namespace unless a case says otherwise."""
    plain_pods.users = True
    return plain_pods


def mount_points() -> list[str]:
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


# ---- flags ----

def test_a_neighbour_with_sys_admin_cannot_unlock_a_volume(pods: Pods, tmp_path: Path) -> None:
    """A second container of the pod, which sees the first one's processes, enters its mount namespace and remounts the volume there."""
    (tmp_path / "file").write_text("the host's\n")
    pod = pods.run(namespaces={"pid": pods.pb.POD})
    pod.container(["sleep", "1234567"], mounts=[pod.mount(tmp_path, "/mnt", readonly=True)])
    other = pod.container(name="other", security=ADMIN)
    inside = "nsenter -t $(pgrep -f 'sleep 1234567' | head -n 1) -m"
    assert other.output(f"{inside} cat /mnt/file") == "the host's", "the attacker must get as far as that"
    other.execute(f"{inside} mount -o remount,bind,rw /mnt; {inside} umount -l /mnt")
    assert other.execute(f"{inside} sh -c 'echo x >>/mnt/file'").code != 0 and other.execute(f"{inside} touch /mnt/made").code != 0
    assert (tmp_path / "file").read_text() == "the host's\n" and os.listdir(tmp_path) == ["file"]


def test_files_below_a_root_or_a_volume_cannot_be_uncovered(pods: Pods, tmp_path: Path) -> None:
    """A copy of the root without its mounts, or the volume moved away, would show what the volume covers, and be writable."""
    for name in ("file", "hosts", "hostname", "resolv.conf"):    # the runtime mounts three of them, and makes nothing in a read-only volume
        (tmp_path / name).write_text("x")
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(tmp_path, "/etc", readonly=True)], security=ADMIN)
    one.output("mkdir -p /tmp/root /tmp/old")
    for command in ("mount --bind / /tmp/root", "mount --move /etc /tmp/root", "umount /etc", "umount -l /etc",
                    "unshare -m sh -c 'mount -o remount,bind,rw /etc && touch /etc/made'", "unshare -m umount /etc"):
        assert one.execute(command).code != 0, command
    assert one.output("cat /etc/file") == "x" and one.execute("touch /etc/made").code != 0


def test_no_limit_is_lifted_when_the_mount_of_the_cgroup_is_made_writable(pods: Pods) -> None:
    """The container makes the mount of its cgroup writable, and writes to the limits.

    The engine sets the read-only flag inside, where root may clear it. The limits are protected by
    the owner of their files.
    """
    one = pods.run().container(security=ADMIN)
    one.execute("mount -o remount,bind,rw /sys/fs/cgroup; mount -o remount,rw /sys/fs/cgroup")
    assert " rw," in one.output("grep ' /sys/fs/cgroup ' /proc/self/mountinfo"), "the attacker must get as far as that"
    for name in ("cgroup.max.depth", "cgroup.max.descendants", "cgroup.freeze", "cgroup.kill", "memory.max", "pids.max", "cpu.max",
                 "io.max"):
        done = one.execute(f"[ ! -e /sys/fs/cgroup/{name} ] && exit 2; echo 1 >/sys/fs/cgroup/{name}")
        assert done.code != 0, f"{name}: {done}"


HANDLE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
handle, pid = bytes.fromhex(sys.argv[1]), sys.argv[2]
namespaces = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in ("user", "mnt")]
for namespace in namespaces:
    os.setns(namespace)
os.setgroups([])
os.setresgid(0, 0, 0)
os.setresuid(0, 0, 0)
mount = os.open("/mnt", os.O_RDONLY)
fd = libc.open_by_handle_at(mount, ctypes.create_string_buffer(handle, len(handle)), os.O_RDONLY)
sys.exit(0 if fd >= 0 else ctypes.get_errno() or 1)
"""


def handle_of(path: Path) -> str:
    """The handle of a file from name_to_handle_at(), for open_by_handle_at()."""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    room = ctypes.create_string_buffer((128).to_bytes(4, sys.byteorder), 8 + 128)
    assert libc.name_to_handle_at(-100, str(path).encode(), room, ctypes.byref(ctypes.c_int()), 0) == 0, os.strerror(ctypes.get_errno())
    return room.raw[: 8 + int.from_bytes(room.raw[0:4], sys.byteorder)].hex()


def test_no_file_handle_leads_out_of_a_volume(pods: Pods, tmp_path: Path) -> None:
    """Root of the pod opens a file of the volume's filesystem that is not in the volume, by a handle that it guesses."""
    (tmp_path / "volume").mkdir()
    (tmp_path / "secret").write_text("the host's")
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(tmp_path / "volume", "/mnt", readonly=True)], security=ADMIN)
    for path in (tmp_path / "secret", tmp_path):
        done = subprocess.run([sys.executable, "-c", HANDLE, handle_of(path), str(one.pid())], capture_output=True, text=True, timeout=30)
        assert done.returncode in (1, 116) and not done.stderr, f"{path}: {done}"    # EPERM, ESTALE


# ---- paths ----

@dataclass
class Scene:
    """A separate daemon whose engine first runs a case's function.

    At that moment the paths have been checked, and the engine has not used them yet.
    """

    pods: Pods
    runtime: runtimes.NodensCri
    hook: Path

    def run(self, userns: bool, name: str = "pod") -> Pod:
        made = self.pods.sandbox_config(name, userns, {}, {}, {}, {})
        request = self.pods.pb.RunPodSandboxRequest(config=made, runtime_handler="hooked")
        pod = Pod(self.pods, self.pods.runtime.RunPodSandbox(request, timeout=TIMEOUT).pod_sandbox_id, made)
        self.pods.made.append(pod)
        return pod

    def at_creation(self, script: str) -> None:
        self.hook.write_text(script)


@pytest.fixture
def scene(subject: Subject, messages: runtimes.Messages, tmp_path: Path) -> Iterator[Scene]:
    if subject.name != "nodens-cri" or subject.runtime is None:
        pytest.skip("the engine is replaced by way of nodens-cri's configuration")
    with runtimes.scratch() as directory:
        crun = "/usr/bin/crun" if runtimes.has_controllers() else str(runtimes.WITHOUT_CONTROLLERS)
        hook, program = directory / "hook", directory / "engine"
        program.write_text(f'#!/bin/sh\ncase " $* " in *" create "*) [ -e {hook} ] && . {hook} ;; esac\nexec {crun} "$@"\n')
        program.chmod(0o755)
        runtime = runtimes.NodensCri(directory / "r", messages,
                                     settings={"runtimeHandlers": json.dumps([{"name": "hooked", "program": str(program)}])})
        runtime.certificates = subject.runtime.certificates
        client = runtime.start()
        (directory / "pods").mkdir()
        made = Scene(Pods(client, subject.images.shell, directory / "pods", "cgroupfs"), runtime, hook)
        yield made
        hook.unlink(missing_ok=True)
        made.pods.clean()
        client.close()
        runtime.stop()


@pytest.mark.parametrize("users", [True, False], ids=["userns", "host-users"])
def test_a_path_that_is_exchanged_after_it_was_checked_leads_nowhere_else(scene: Scene, tmp_path: Path, users: bool) -> None:
    """Another container, which can write to a directory on the way to the volume, puts a link in its place before the engine mounts."""
    for name in ("real", "secret"):
        (tmp_path / name / "volume").mkdir(parents=True)
        (tmp_path / name / "volume/file").write_text(name)
    (tmp_path / "real/one").write_text("real")
    (tmp_path / "secret/one").write_text("secret")
    os.rename(tmp_path / "real", tmp_path / "way")
    scene.at_creation(f"mv {tmp_path}/way {tmp_path}/aside; ln -s {tmp_path}/secret {tmp_path}/way")
    pod = scene.run(users)
    one = pod.container(mounts=[pod.mount(tmp_path / "way/volume", "/mnt"), pod.mount(tmp_path / "way/volume", "/ro", readonly=True),
                                pod.mount(tmp_path / "way/one", "/dev/one")])
    assert (tmp_path / "way").is_symlink(), "the exchange must have happened"
    assert one.output("cat /mnt/file /ro/file /dev/one") == "realrealreal"


def test_a_link_to_a_descriptor_or_a_root_of_a_process_is_refused(pods: Pods, tmp_path: Path) -> None:
    """A link that a container has planted in a shared volume would be followed by the runtime to the runtime's own descriptors."""
    pod = pods.run()
    for number, target in enumerate(("/proc/self/root/etc", "/proc/1/root", "/proc/self/cwd",
                                     *(f"/proc/self/fd/{n}" for n in range(3, 12)))):
        (tmp_path / f"link{number}").symlink_to(target)
        error = refused(lambda number=number: pod.container(mounts=[pod.mount(tmp_path / f"link{number}", "/mnt", readonly=True)]))
        assert number > 2 or "link of /proc to a descriptor, root or working directory" in error.details(), error.details()


# ---- places ----

def test_a_place_that_is_a_link_in_a_shared_volume_stays_in_the_container(pods: Pods, tmp_path: Path) -> None:
    """Another container puts a link to the host where a volume is to be mounted in a shared one: nothing may be mounted or made outside."""
    host, shared, volume = tmp_path / "host", tmp_path / "shared", tmp_path / "volume"
    for path in (host / "dir", shared, volume):
        path.mkdir(parents=True)
    (volume / "file").write_text("x")
    (shared / "up").symlink_to("../" * 20 + str(host / "dir").lstrip("/"))
    (shared / "absolute").symlink_to(host / "dir")
    (shared / "missing").symlink_to(host / "made")
    (shared / "magic").symlink_to("/proc/self/root")
    pod, before = pods.run(), None
    for name in ("up", "absolute", "missing", "magic"):
        before = set(mount_points())
        mounts = [pod.mount(shared, "/shared"), pod.mount(volume, f"/shared/{name}/inner", readonly=True)]
        try:
            pod.container(name=name, mounts=mounts).remove()
        except grpc.RpcError as error:
            assert error.code() != grpc.StatusCode.UNAVAILABLE
        outside = [path for path in set(mount_points()) - before if path.startswith(str(tmp_path))]
        assert outside == [] and sorted(os.listdir(host)) == ["dir"] and os.listdir(host / "dir") == [], name


def test_a_missing_place_is_made_with_the_rights_of_the_pod_alone(pods: Pods, tmp_path: Path) -> None:
    """A volume that belongs to a user of the host's whom the pod does not have: nothing may be made in it on the pod's behalf."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "inner").mkdir()
    os.chown(tmp_path / "theirs", 100000, 100000)
    pod = pods.run()
    refused(lambda: pod.container(mounts=[pod.mount(tmp_path / "theirs", "/mnt"),
                                          pod.mount(tmp_path / "inner", "/mnt/a/b", readonly=True)]))
    assert os.listdir(tmp_path / "theirs") == []
    pod.container(name="two", mounts=[pod.mount(tmp_path / "mine", "/mnt"), pod.mount(tmp_path / "inner", "/mnt/a/b", readonly=True)])
    found = (tmp_path / "mine/a").stat()
    assert (found.st_uid, found.st_gid) == (0, 0), "root of the pod, on a volume that is mapped"


# ---- other cases ----

def below(runtime: runtimes.NodensCri) -> list[str]:
    """Mount points in directories of containers that any process of the machine sees."""
    found: set[str] = set()
    for table in Path("/proc").glob("[0-9]*/mountinfo"):
        with contextlib.suppress(OSError):
            found |= {line.split()[4] for line in table.read_text().splitlines()}
    return [path for path in found if path.startswith(str(runtime.directory)) and "/containers/" in path]


@pytest.mark.parametrize("users", [True, False], ids=["userns", "host-users"])
def test_a_daemon_that_is_killed_while_the_engine_works_leaves_no_mount(scene: Scene, tmp_path: Path, users: bool) -> None:
    """The daemon is killed while the engine hangs, after the volumes were attached.

    The next daemon must remove all that was attached, and no mount of the host.
    """
    reached = tmp_path / "reached"
    (tmp_path / "volume/sub").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(tmp_path / "volume/sub")], check=True)
    try:
        scene.at_creation(f"touch {reached}; sleep 600")
        pod = scene.run(users)
        mounts = [pod.mount(tmp_path / "volume", "/a", readonly=True), pod.mount(tmp_path / "volume", "/b"),
                  pod.mount(tmp_path / "volume", "/dev/c", propagation=scene.pods.pb.PROPAGATION_HOST_TO_CONTAINER)]
        creation = threading.Thread(target=lambda: pytest.raises(grpc.RpcError, lambda: pod.container(mounts=mounts)))
        creation.start()
        eventually(reached.exists, 30, "the engine's start")
        assert any(path.endswith("/mounts") for path in below(scene.runtime)), "the case must find something attached"
        assert not [path for path in mount_points() if "/containers/" in path], "the host must not see it"
        scene.runtime.stop(signal.SIGKILL)
        creation.join(60)
        scene.hook.unlink()
        scene.runtime.start().close()
        eventually(lambda: below(scene.runtime) == [], 60, "the end of all mounts")
        assert os.path.ismount(tmp_path / "volume/sub"), "a mount of the host's was taken away"
        eventually(lambda: not list((scene.runtime.directory / "state/pods").glob("*/containers/*")), 60, "the end of its directory")
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "volume/sub")], check=True)


def test_a_creation_that_fails_leaves_no_mount(pods: Pods, subject: Subject, tmp_path: Path) -> None:
    """A volume whose place is below a file cannot be attached: what was attached before it must go."""
    runtime = subject.runtime
    if not isinstance(runtime, runtimes.NodensCri):
        pytest.skip("it looks at what nodens-cri mounts where")
    pod = pods.run()
    before = set(below(runtime))
    refused(lambda: pod.container(mounts=[pod.mount(tmp_path, "/a", readonly=True), pod.mount(tmp_path, "/etc/passwd/b", readonly=True)]))
    refused(lambda: pod.container(mounts=[pod.mount(tmp_path, "/a")], name="two", security={"seccomp": subject.client.pb.SecurityProfile(
        profile_type=subject.client.pb.SecurityProfile.Localhost, localhost_ref="/no/such/profile")}))
    eventually(lambda: set(below(runtime)) == before, 30, "the end of all mounts")


# ---- the engine's mount namespace ----

def seen_by_engine(scene: Scene, pod: Pod, seen: Path, **settings: Any) -> list[str]:
    """Mount points that the engine finds when it creates a container, which is removed again."""
    scene.at_creation(f"cut -d' ' -f5 /proc/self/mountinfo > {seen}")
    pod.container(**settings).remove()
    return seen.read_text().splitlines()


@pytest.mark.parametrize("users", [True, False], ids=["userns", "host-users"])
def test_the_engine_sees_no_mount_of_another_pod(scene: Scene, tmp_path: Path, users: bool) -> None:
    """What the engine copies for a container does not depend on how many pods there are, and a flaw of it reaches no other pod."""
    (tmp_path / "volume").mkdir()
    pod = scene.run(users)
    mounts = [pod.mount(tmp_path / "volume", "/mnt")]
    alone = seen_by_engine(scene, pod, tmp_path / "seen", mounts=mounts)
    others = [scene.run(users, f"other-{number}") for number in range(3)]
    for other in others:
        other.container(mounts=[other.mount(tmp_path / "volume", "/mnt")])
    again = seen_by_engine(scene, pod, tmp_path / "seen", mounts=mounts)
    assert [path for path in again if any(other.id in path for other in others)] == []
    assert [path for path in again if pod.id in path and "/netns/" in path], "the pod's own network namespace is missing"
    assert len(again) == len(alone)


def test_the_engine_sees_what_the_host_mounts_and_unmounts_later(scene: Scene, tmp_path: Path) -> None:
    """Hooks and devices need it: a driver's directory, for example, may be mounted after the runtime has started."""
    driver = tmp_path / "driver"
    driver.mkdir()
    subprocess.run(["mount", "--bind", str(driver), str(driver)], check=True)
    try:
        subprocess.run(["mount", "--make-shared", str(driver)], check=True)
        scene.runtime.stop(signal.SIGTERM)
        scene.runtime.start().close()
        (driver / "root").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(driver / "root")], check=True)
        pod = scene.run(True)
        assert str(driver / "root") in seen_by_engine(scene, pod, tmp_path / "seen")
        subprocess.run(["umount", str(driver / "root")], check=True)
        assert str(driver / "root") not in seen_by_engine(scene, pod, tmp_path / "seen", name="two")
    finally:
        subprocess.run(["umount", "-R", str(driver)], check=True)


def test_the_engines_mounts_end_with_the_engine(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    pod = scene.run(True)
    one = pod.container(mounts=[pod.mount(tmp_path / "volume", "/mnt")])
    assert below(scene.runtime) == []
    assert one.output("cd /mnt && pwd") == "/mnt"
    scene.runtime.stop(signal.SIGKILL)
    scene.runtime.start().close()
    assert one.output("cd /mnt && pwd") == "/mnt" and below(scene.runtime) == []
