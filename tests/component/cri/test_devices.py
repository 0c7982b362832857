# SPDX-License-Identifier: Apache-2.0
"""Owners of devices that the kubelet or CDI gives to a container.

With the host's users they are those of the host's node, or what device_ownership_from_security_context of containerd means. In a
user namespace the host's owner does not exist; devices belong to the container's user there.
"""
import contextlib
import os
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Subject
from nodensdev.cri_client import CriClient
from nodenstest import runtimes
from nodenstest.cdi import Define
from nodenstest.pods import Container, Pods, refused

pytestmark = pytest.mark.skipif(runtimes.rootless(), reason="root of a rootless node cannot create device nodes")

GROUP = 44          # on the host, as udev gives devices to groups
USER = {"user": 1000, "group": 2000}


@dataclass(frozen=True)
class Device:
    host: Path
    inside: str

    def request(self, pods: Pods, permissions: str = "rw") -> dict[str, Any]:
        return {"devices": [pods.pb.Device(host_path=str(self.host), container_path=self.inside, permissions=permissions)]}


KINDS = {"fuse": ("/dev/fuse", stat.S_IFCHR, 10, 229), "kvm": ("/dev/kvm", stat.S_IFCHR, 10, 232),
         "tun": ("/dev/net/tun", stat.S_IFCHR, 10, 200), "loop": ("/dev/loop-of-the-plugin", stat.S_IFBLK, 7, 0)}


@pytest.fixture(params=list(KINDS))
def device(request: pytest.FixtureRequest, plain_pods: Pods) -> Iterator[Device]:
    """A node with the kernel's numbers that only root and a group of the host can use. A loop device has a file behind it."""
    inside, kind, major, minor = KINDS[request.param]
    host = plain_pods.directory / request.param
    with contextlib.ExitStack() as stack:
        if request.param == "loop":
            minor = stack.enter_context(loop(plain_pods.directory / "disk"))
        os.mknod(host, kind | 0o600, os.makedev(major, minor))
        host.chmod(0o660)
        os.chown(host, 0, GROUP)
        yield Device(host, inside)


@contextlib.contextmanager
def loop(path: Path) -> Iterator[int]:
    path.write_bytes(b"block" * 4096)
    done = subprocess.run(["losetup", "--find", "--show", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no loop device: {done.stderr.strip()}")
    try:
        yield os.minor(os.stat(done.stdout.strip()).st_rdev)
    finally:
        subprocess.run(["losetup", "--detach", done.stdout.strip()], check=True)


def security(pods: Pods, user: int, group: int, **more: Any) -> dict[str, Any]:
    return {"run_as_user": pods.pb.Int64Value(value=user), "run_as_group": pods.pb.Int64Value(value=group), **more}


def owner(one: Container, path: str) -> str:
    return one.output(f"stat -c '%u %g %a' {path}")


def usable(one: Container, device: Device) -> bool:
    """Whether permissions let the container's user open it. A kernel without the driver refuses later."""
    done = one.execute(f"exec 3<>{device.inside}")
    if device.inside.startswith("/dev/loop") and done.code == 0:
        assert one.output(f"head -c 5 {device.inside}") == "block"
    assert done.code == 0 or "denied" in done.stderr or "No such device" in done.stderr, done
    return "denied" not in done.stderr


# ---- devices of the kubelet ----

def test_in_a_user_namespace_a_device_belongs_to_the_containers_user(plain_pods: Pods, device: Device) -> None:
    pod = plain_pods.run(userns=True)
    one = pod.container(security=security(plain_pods, **USER), **device.request(plain_pods))
    assert owner(one, device.inside) == "1000 2000 660" and usable(one, device)
    root = pod.container(name="root", **device.request(plain_pods))
    assert owner(root, device.inside) == "0 0 660" and usable(root, device)


def test_with_host_users_a_device_has_the_hosts_owner(plain_pods: Pods, device: Device) -> None:
    pod = plain_pods.run()
    member = pod.container(security=security(plain_pods, **USER, supplemental_groups=[GROUP]), **device.request(plain_pods))
    assert owner(member, device.inside) == f"0 {GROUP} 660" and usable(member, device)
    other = pod.container(name="other", security=security(plain_pods, **USER), **device.request(plain_pods))
    assert not usable(other, device)


@pytest.fixture(scope="module")
def owning(subject: Subject, messages: runtimes.Messages) -> Iterator[runtimes.NodensCri]:
    """A daemon with the setting."""
    if not isinstance(subject.runtime, runtimes.NodensCri):
        pytest.skip("about a setting of nodens-cri")
    with runtimes.scratch() as directory:
        runtime = runtimes.NodensCri(directory / "r", messages, settings={"deviceOwnershipFromSecurityContext": "true"})
        runtime.certificates = subject.runtime.certificates
        runtime.start().close()
        yield runtime
        runtime.stop()


def test_with_the_setting_it_belongs_to_the_security_contexts_user(owning: runtimes.NodensCri, plain_pods: Pods, device: Device,
                                                                   messages: runtimes.Messages) -> None:
    client = CriClient(str(owning.socket), messages)
    pods = Pods(client, plain_pods.image, plain_pods.directory, plain_pods.cgroup_driver)
    try:
        pod = pods.run()
        one = pod.container(security=security(pods, **USER), **device.request(pods))
        assert owner(one, device.inside) == "1000 2000 660" and usable(one, device)
        root = pod.container(name="root", security=security(pods, 0, 0), **device.request(pods))
        assert owner(root, device.inside) == f"0 {GROUP} 660"
        mapped = pods.run(userns=True).container(security=security(pods, **USER), **device.request(pods))
        assert owner(mapped, device.inside) == "1000 2000 660"
    finally:
        pods.clean()
        client.close()


def test_a_pods_root_changes_its_own_node_only(plain_pods: Pods, device: Device) -> None:
    before = os.stat(device.host)
    one, two = (plain_pods.run(userns=True).container(**device.request(plain_pods)) for _ in range(2))
    assert one.output(f"chown 7:8 {device.inside}; chmod 666 {device.inside}; stat -c '%u %g %a' {device.inside}") == "7 8 666"
    assert owner(two, device.inside) == "0 0 660"
    after = os.stat(device.host)
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_a_pod_cannot_make_nodes_itself(plain_pods: Pods, device: Device) -> None:
    """Not even beside the one that it was given, which is on a filesystem that allows devices."""
    one = plain_pods.run(userns=True).container(**device.request(plain_pods))
    assert one.execute("mknod /dev/sda b 8 0").code != 0
    assert one.execute(f"mknod {os.path.dirname(device.inside)}/disk b 8 0").code != 0


def test_nothing_of_the_nodes_stays_on_the_host(plain_pods: Pods, subject: Subject, device: Device) -> None:
    if not isinstance(subject.runtime, runtimes.NodensCri):
        pytest.skip("about the directories of nodens-cri")
    one = plain_pods.run(userns=True).container(**device.request(plain_pods))
    bundle = subject.runtime.directory / "state/pods" / one.pod.id / "containers" / one.id
    assert "nodens-devices" not in Path("/proc/self/mountinfo").read_text()
    assert not (bundle / "mounts").exists() and bundle.exists()


@pytest.mark.skipif(not runtimes.has_controllers(), reason="device rules are not enforced without the host's cgroups")
def test_the_device_rules_apply_to_its_node(pods: Pods, device: Device) -> None:
    if device.inside == "/dev/net/tun":
        pytest.skip("crun's own rules allow it to all containers")
    one = pods.run().container(**device.request(pods, permissions="r"))
    done = one.execute(f"exec 3>{device.inside}")
    assert done.code != 0 and "not permitted" in done.stderr, done
    assert "not permitted" not in one.execute(f"exec 3<{device.inside}").stderr


def test_a_read_only_root_has_the_device_too(pods: Pods, device: Device) -> None:
    one = pods.run().container(security={"readonly_rootfs": True}, **device.request(pods))
    assert usable(one, device)


def test_a_device_outside_of_dev(pods: Pods, device: Device) -> None:
    elsewhere = Device(device.host, "/srv/of/plugin/node" if "loop" not in device.inside else "/srv/loop")
    one = pods.run().container(**elsewhere.request(pods))
    assert one.execute(f"exec 3<>{elsewhere.inside}").code == 0 or "denied" not in one.execute(f"exec 3<>{elsewhere.inside}").stderr


def test_the_hosts_null_does_not_become_a_pods(plain_pods: Pods) -> None:
    """An OCI runtime gives a process's standard streams to its user, and stdin is /dev/null."""
    pod = plain_pods.run(userns=True)
    one, terminal = pod.container(), pod.container(name="terminal", tty=True)
    assert one.output("cat; echo read") == "read" and terminal.output("echo exec") == "exec"
    assert not 0 <= os.stat("/dev/null").st_uid - one.pod.host_root < 65536
    before = stat.S_IMODE(os.stat("/dev/null").st_mode)
    one.execute("chmod 676 /dev/null; chmod 676 /proc/self/fd/0")
    found = stat.S_IMODE(os.stat("/dev/null").st_mode)
    os.chmod("/dev/null", 0o666)
    assert found == before


# ---- CDI ----

def test_a_cdi_device_belongs_to_the_containers_user(pods: Pods, device: Device, define: Define) -> None:
    edits = define(deviceNodes=[{"path": device.inside, "hostPath": str(device.host)}])
    one = pods.run().container(security=security(pods, **USER), **edits)
    assert owner(one, device.inside) == "1000 2000 660" and usable(one, device)


def test_a_cdi_file_may_name_the_owner_and_the_mode(pods: Pods, device: Device, define: Define) -> None:
    edits = define(deviceNodes=[{"path": device.inside, "hostPath": str(device.host), "uid": 0, "gid": 7, "fileMode": 0o640}])
    one = pods.run().container(security=security(pods, **USER), **edits)
    assert owner(one, device.inside) == "0 7 640" and not usable(one, device)


def test_an_owner_that_the_pod_does_not_have_is_refused(plain_pods: Pods, device: Device, define: Define) -> None:
    edits = define(deviceNodes=[{"path": device.inside, "hostPath": str(device.host), "uid": 70000}])
    pod = plain_pods.run(userns=True)
    error = refused(lambda: pod.container(**edits))
    assert f"device '{device.inside}' belongs to user 70000" in error.details()
