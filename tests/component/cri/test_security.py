# SPDX-License-Identifier: Apache-2.0
"""Cases of the CRI's validation suite for SecurityContext.

They cover namespaces, users and groups, capabilities, seccomp, new privileges, user namespaces and
AppArmor. Left out: SELinux (no Debian policy labels containers, so each case would fail in the same
way on every runtime) and NRI (plugins of a runtime's own kind, which nodens does not have).
"""
import ctypes
import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Subject
from nodenstest import runtimes, validation
from nodenstest.pods import Container, Pods, eventually, refused

ALL_GROUPS = "1000 1234 50000"


def field(one: Container, name: str, process: str = "self") -> str:
    """A line of /proc/PID/status."""
    return one.output(f"grep '^{name}:' /proc/{process}/status").split(":")[1].strip()


def line_of(status: str, name: str) -> str:
    """A line of a status file that was read."""
    return dict(line.split(":", 1) for line in status.splitlines())[name].strip()


def value(number: int) -> dict[str, int]:
    return {"value": number}


# NamespaceOption

def test_with_the_hosts_pids_a_container_sees_the_hosts_processes(plain_pods: Pods) -> None:
    one = plain_pods.run(namespaces={"pid": plain_pods.pb.NODE}).container()
    assert one.output(f"readlink /proc/{os.getpid()}/exe || cat /proc/{os.getpid()}/comm")


def test_with_the_pods_pids_containers_see_each_other_and_none_is_the_first(pods: Pods) -> None:
    pod = pods.run(namespaces={"pid": pods.pb.POD})
    pod.container(["sleep", "5432"], name="sleeper")
    one = pod.container()
    assert "5432" in one.output("ps") and "sleep" not in one.output("cat /proc/1/cmdline | tr '\\0' ' '")


def test_with_its_own_pids_a_container_is_the_first_process(pods: Pods) -> None:
    assert pods.run().container().output("cat /proc/1/cmdline | tr '\\0' ' '") == "sleep 4321 "


def test_the_pods_first_process_reaps_orphans(pods: Pods) -> None:
    one = pods.run(namespaces={"pid": pods.pb.POD}).container("(sleep 0.1 &) ; exec sleep 4321")
    eventually(lambda: not [line for line in one.output("ps -o stat,args").splitlines() if line.startswith("Z")], 10,
               "the end of all zombies")


def test_a_container_may_join_another_ones_pids(pods: Pods) -> None:
    pod = pods.run()
    target = pod.container(["sleep", "6543"], name="target")
    options = pods.pb.NamespaceOption()
    options.CopyFrom(pod.namespaces)
    options.pid, options.target_id = pods.pb.TARGET, target.id
    one = pod.container(security={"namespace_options": options})
    assert "6543" in one.output("cat /proc/1/cmdline | tr '\\0' ' '")


@pytest.fixture
def segment() -> Iterator[str]:
    """A System V shared memory segment of the host's; its key."""
    libc = ctypes.CDLL(None, use_errno=True)
    key = 0x6E6F6465
    number = libc.shmget(key, 4096, 0o1666)
    assert number >= 0, os.strerror(ctypes.get_errno())
    yield str(key)
    libc.shmctl(number, 0, None)


def test_with_the_hosts_ipc_a_container_sees_the_hosts_segments(plain_pods: Pods, segment: str) -> None:
    one = plain_pods.run(namespaces={"ipc": plain_pods.pb.NODE}).container()
    assert segment in one.output("cat /proc/sysvipc/shm")


def test_with_the_pods_ipc_it_does_not(pods: Pods, segment: str) -> None:
    assert segment not in pods.run().container().output("cat /proc/sysvipc/shm")


@pytest.fixture
def listener() -> Iterator[int]:
    """A server on the host's loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve() -> None:
            while True:
                try:
                    one, _ = server.accept()
                except OSError:
                    return
                with one:
                    one.sendall(b"the host\n")

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_with_the_hosts_network_a_container_reaches_the_hosts_loopback(plain_pods: Pods, listener: int) -> None:
    one = plain_pods.run(namespaces={"network": plain_pods.pb.NODE}).container()
    assert one.output(f"nc -w 3 127.0.0.1 {listener} </dev/null") == "the host"


def test_with_the_pods_network_it_does_not(pods: Pods, listener: int) -> None:
    assert pods.run().container().execute(f"nc -w 3 127.0.0.1 {listener} </dev/null").stdout == ""


# Users and groups

def test_supplemental_groups_are_the_processs(pods: Pods) -> None:
    one = pods.run().container(security={"supplemental_groups": [1234, 5678]})
    assert {"1234", "5678"} <= set(one.output("id -G").split())


def test_a_user_by_number(pods: Pods) -> None:
    one = pods.run().container(security={"run_as_user": value(1001)})
    assert one.output("id -u") == "1001" and field(one, "Uid", "1").split() == ["1001"] * 4


def test_a_user_by_name(pods: Pods) -> None:
    assert pods.run().container(security={"run_as_username": "nobody"}).output("id -u") == "65534"


def test_a_name_that_the_image_does_not_know_is_an_error_that_names_it(pods: Pods) -> None:
    pod = pods.run()
    assert "nemo" in refused(lambda: pod.container(security={"run_as_username": "nemo"})).details()


def test_a_user_and_a_group_by_number(pods: Pods) -> None:
    one = pods.run().container(security={"run_as_user": value(1001), "run_as_group": value(1002)})
    assert one.output("id -u; id -g").split() == ["1001", "1002"]
    assert "1002" in field(one, "Groups", "1").split()


def test_a_group_without_a_user_is_an_error(pods: Pods) -> None:
    pod = pods.run()
    refused(lambda: pod.container(security={"run_as_group": value(1002)}))


@pytest.mark.parametrize("number", [-1, 1 << 31, (1 << 32) + 5, (1 << 32) - 1])
def test_an_invalid_user_number_is_refused(pods: Pods, number: int) -> None:
    pod = pods.run()
    refused(lambda: pod.container(security={"run_as_user": value(number)}))


def test_the_images_links_to_the_hosts_users_lead_nowhere(pods: Pods, subject: Subject) -> None:
    pod = pods.run()
    refused(lambda: pod.container(image=subject.images.tag("hostile-users"), security={"run_as_username": "daemon"}))
    one = pod.container(image=subject.images.tag("hostile-users"), security={"run_as_user": value(1)})
    assert one.output("id -u") == "1"


def test_a_variable_writes_no_line_into_passwd(pods: Pods) -> None:
    one = pods.run().container(security={"run_as_user": value(4242)},
                               envs=[pods.pb.KeyValue(key="HOME", value=b"/\nevil:x:0:0::/:/bin/sh")])
    assert "evil" not in one.output("cat /etc/passwd")


@pytest.mark.parametrize(("policy", "groups"), [("Merge", ALL_GROUPS), ("Strict", "1000 1234")])
def test_the_groups_of_the_image_are_merged_or_not(pods: Pods, subject: Subject, policy: str, groups: str) -> None:
    number = pods.pb.SupplementalGroupsPolicy.Value(policy)
    context = {"run_as_user": value(1000), "run_as_group": value(1000), "supplemental_groups": [1234], "supplemental_groups_policy": number}
    one = pods.run().container(["sleep", "4321"], image=subject.images.hosted(validation.TOOLS), security=context)
    assert sorted(field(one, "Groups", "1").split(), key=int) == groups.split()
    assert sorted(one.output(["id", "-G"]).split(), key=int) == groups.split()
    told = one.status().user.linux
    assert (told.uid, told.gid, sorted(told.supplemental_groups)) == (1000, 1000, [int(group) for group in groups.split()])


# The root

def test_the_root_is_writable_unless_asked(pods: Pods) -> None:
    assert pods.run().container().execute("touch /file && mkdir /etc/made").code == 0


def test_a_read_only_root_is_read_only(pods: Pods) -> None:
    one = pods.run().container(security={"readonly_rootfs": True})
    assert "Read-only" in one.execute("touch /file").stderr
    one.output("touch /dev/shm/file")


# Privileges

def test_a_privileged_container_may_make_a_link(plain_pods: Pods) -> None:
    pod = plain_pods.run(security={"privileged": True})
    assert pod.container(security={"privileged": True}).output("ip link add foobar type bridge && ip link show foobar")


def test_a_plain_container_may_not(pods: Pods) -> None:
    assert "not permitted" in pods.run().container().execute("ip link add foobar type bridge").stderr


def test_a_container_with_net_admin_may(pods: Pods) -> None:
    one = pods.run().container(security={"capabilities": {"add_capabilities": ["NET_ADMIN"]}})
    assert one.output("ip link add foobar type bridge && ip link show foobar")


def test_a_privileged_container_has_what_the_first_process_has(plain_pods: Pods) -> None:
    pod = plain_pods.run(security={"privileged": True})
    one = pod.container(security={"privileged": True})
    mine = Path("/proc/self/status").read_text()
    for name in ("CapBnd", "Seccomp", "NoNewPrivs"):
        assert field(one, name, "1") == line_of(mine, name), name
    assert one.execute("ls /dev/kmsg /dev/mem /dev/loop-control 2>/dev/null").stdout


def test_without_net_raw_there_is_no_raw_socket(pods: Pods) -> None:
    pod = pods.run()
    one = pod.container(security={"capabilities": {"drop_capabilities": ["NET_RAW"]}})
    assert int(field(one, "CapBnd", "1"), 16) >> 13 & 1 == 0 and int(field(pod.container(name="b"), "CapBnd", "1"), 16) >> 13 & 1 == 1


def test_all_capabilities_may_be_added_and_dropped(pods: Pods) -> None:
    pod = pods.run()
    everything = int(field(pod.container(security={"capabilities": {"add_capabilities": ["ALL"]}}), "CapBnd", "1"), 16)
    nothing = int(field(pod.container(name="b", security={"capabilities": {"drop_capabilities": ["ALL"]}}), "CapBnd", "1"), 16)
    mine = int(line_of(Path("/proc/self/status").read_text(), "CapBnd"), 16)
    assert everything & mine == mine and nothing == 0 and (pods.users or everything == mine)


def test_a_capability_may_be_added_to_none(pods: Pods) -> None:
    one = pods.run().container(security={"capabilities": {"drop_capabilities": ["ALL"], "add_capabilities": ["CHOWN"]}})
    assert int(field(one, "CapBnd", "1"), 16) == 1


def test_no_capability_is_inheritable_or_ambient(pods: Pods) -> None:
    one = pods.run().container(security={"capabilities": {"add_capabilities": ["NET_ADMIN"]}, "run_as_user": value(1000)})
    assert int(field(one, "CapInh", "1"), 16) == 0 == int(field(one, "CapAmb", "1"), 16) == int(field(one, "CapEff", "1"), 16)


def test_an_ambient_capability_reaches_a_user_who_is_not_root(pods: Pods) -> None:
    one = pods.run().container(security={"capabilities": {"add_ambient_capabilities": ["NET_BIND_SERVICE"],
                                                          "add_capabilities": ["NET_BIND_SERVICE"]},
                                         "run_as_user": value(1000)})
    assert int(field(one, "CapEff", "1"), 16) == 1 << 10


def test_a_masked_path_cannot_be_seen(pods: Pods) -> None:
    one = pods.run().container(security={"masked_paths": ["/bin/ls", "/etc"]})
    assert "denied" in one.execute("/bin/ls").stderr.lower() and one.output("busybox ls -A /etc") == ""


def test_a_read_only_path_cannot_be_written(pods: Pods) -> None:
    one = pods.run().container(security={"readonly_paths": ["/tmp"]})
    assert "Read-only" in one.execute("touch /tmp/file").stderr


def test_an_unmasked_proc_has_nothing_over_it(plain_pods: Pods) -> None:
    """procMount: Unmasked, which containers in containers need.

    The kernel mounts a new proc in a user namespace only beside a fully visible one.
    """
    pod = plain_pods.run(userns=True)
    whole, masked = pod.container(name="whole", security={"masked_paths": [], "readonly_paths": []}), pod.container(name="masked")
    nested = "unshare -U -r -m -p -f sh -c 'mkdir -p /tmp/p && mount -t proc proc /tmp/p && ls /tmp/p/1/status'"

    def over_proc(one: Container) -> list[str]:
        return [line.split()[4] for line in one.output("cat /proc/self/mountinfo").splitlines() if line.split()[4].startswith("/proc/")]

    assert over_proc(whole) == [] and over_proc(masked) != []
    assert whole.output(nested) == "/tmp/p/1/status"
    assert masked.execute(nested).code != 0
    assert whole.execute("echo x >/proc/sys/kernel/core_pattern").code != 0 and whole.execute("echo h >/proc/sysrq-trigger").code != 0


def test_paths_that_the_kubelet_masks_are_masked(pods: Pods) -> None:
    one = pods.run().container()
    assert one.execute("cat /proc/kcore | head -c 1 | wc -c").stdout.strip() == "0" and one.execute("echo 1 >/proc/sysrq-trigger").code != 0


def test_a_device_is_there_with_its_permissions(pods: Pods) -> None:
    devices = [pods.pb.Device(container_path="/dev/mine", host_path="/dev/null", permissions="rw")]
    one = pods.run().container(devices=devices)
    assert one.output("echo x >/dev/mine; ls -l /dev/mine").startswith("c")


def test_the_usual_devices_are_there(pods: Pods) -> None:
    one = pods.run().container()
    assert one.output("for d in null zero full random urandom tty ptmx; do [ -c /dev/$d ] || [ -L /dev/$d ] || echo $d; done") == ""
    assert one.output("echo x >/dev/null; head -c 4 /dev/zero | wc -c") == "4" and one.execute("ls /dev/mem").code != 0


# Seccomp

@pytest.fixture
def profile(tmp_path: Path):
    """Writes a profile that forbids some calls; gives the CRI's message."""
    def write(pods: Pods, *calls: str):
        path = tmp_path / f"{'-'.join(calls)}.json"
        path.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": list(calls), "action": "SCMP_ACT_ERRNO"}]}))
        return pods.pb.SecurityProfile(profile_type=pods.pb.SecurityProfile.Localhost, localhost_ref=str(path))
    return write


def filters(one: Container) -> int:
    """How many system call filters a container has, without those of the node: every process of a rootless node has one."""
    return int(field(one, "Seccomp_filters", "1")) - int(line_of(Path("/proc/self/status").read_text(), "Seccomp_filters"))


@pytest.mark.parametrize(("kind", "count"), [("Unconfined", 0), ("RuntimeDefault", 1), (None, 0)])
def test_seccomp_is_as_asked(pods: Pods, kind: str | None, count: int) -> None:
    security = {"seccomp": pods.pb.SecurityProfile(profile_type=pods.pb.SecurityProfile.ProfileType.Value(kind))} if kind else {}
    assert filters(pods.run().container(security=security)) == count


def test_the_default_profile_forbids_what_it_should(pods: Pods) -> None:
    one = pods.run().container(security={"seccomp": pods.pb.SecurityProfile(profile_type=pods.pb.SecurityProfile.RuntimeDefault)})
    assert one.execute("unshare -m true").code != 0 and one.output("id -u") == "0"


def test_a_profile_of_the_node_is_applied(pods: Pods, profile) -> None:
    one = pods.run().container(security={"seccomp": profile(pods, "chmod", "fchmod", "fchmodat", "fchmodat2")})
    assert "not permitted" in one.execute("chmod 400 /tmp").stderr and filters(one) == 1


def test_a_profile_that_is_missing_is_an_error_that_names_it(pods: Pods) -> None:
    pod = pods.run()
    missing = pods.pb.SecurityProfile(profile_type=pods.pb.SecurityProfile.Localhost, localhost_ref="/no/such/profile.json")
    assert "/no/such/profile.json" in refused(lambda: pod.container(security={"seccomp": missing})).details()


def test_sys_admin_may_set_the_hostname_unless_seccomp_forbids(plain_pods: Pods, profile) -> None:
    pod = plain_pods.run()
    admin = {"capabilities": {"add_capabilities": ["SYS_ADMIN"]}}
    free = pod.container(security=admin | {"seccomp": plain_pods.pb.SecurityProfile(profile_type=plain_pods.pb.SecurityProfile.Unconfined)})
    assert free.output("hostname other && hostname") == "other"
    bound = pod.container(name="b", security=admin | {"seccomp": profile(plain_pods, "sethostname")})
    assert bound.execute("hostname another").code != 0


def test_a_privileged_container_has_no_profile(plain_pods: Pods, profile) -> None:
    pod = plain_pods.run(security={"privileged": True})
    one = pod.container(security={"privileged": True, "seccomp": profile(plain_pods, "sethostname")})
    assert filters(one) == 0


# NoNewPrivs

@pytest.mark.parametrize(("forbidden", "effective"), [(True, 1000), (False, 0)])
def test_a_setuid_program_gives_privileges_or_not(pods: Pods, subject: Subject, forbidden: bool, effective: int) -> None:
    one = pods.run().container(None, image=subject.images.hosted(validation.NEW_PRIVILEGES),
                               security={"run_as_user": value(1000), "no_new_privs": forbidden})
    one.ended()
    eventually(one.log)
    assert one.log()[0][1] == f"Effective uid: {effective}"


# UserNamespaces

def test_a_pod_has_the_mapping_that_was_asked_for(plain_pods: Pods) -> None:
    options = plain_pods.user_namespace(True, 10_000_000, 100_000)
    one = plain_pods.run(namespaces={"userns_options": options}).container()
    assert one.output("cat /proc/self/uid_map").split() == ["0", "10000000", "100000"] == one.output("cat /proc/1/gid_map").split()


def test_a_pod_of_the_nodes_users_has_the_nodes_mapping(plain_pods: Pods) -> None:
    assert (
        plain_pods.run(userns=False).container().output("cat /proc/self/uid_map").split() == Path("/proc/self/uid_map").read_text().split()
    )


def test_without_a_user_namespace_option_users_are_the_nodes(plain_pods: Pods) -> None:
    pb = plain_pods.pb
    pod = plain_pods.run(namespaces={"userns_options": None})
    assert not pod.config.linux.security_context.namespace_options.HasField("userns_options")
    assert pod.container().output("cat /proc/self/uid_map").split() == Path("/proc/self/uid_map").read_text().split()
    assert pod.status().linux.namespaces.options.userns_options.mode in (pb.NODE, pb.POD)


@pytest.mark.parametrize("case", ["two lines", "no line", "no root", "mode of containers", "mode of a target", "length 0", "past the end"])
def test_a_mapping_that_is_none_is_refused(plain_pods: Pods, case: str) -> None:
    pb = plain_pods.pb

    def line(container: int = 0, host: int = 77 * 65536, length: int = 65536):
        return pb.IDMapping(container_id=container, host_id=host, length=length)

    two = [line(length=1000), line(1000, 78 * 65536, 1000)]
    bad = {"two lines": pb.UserNamespace(mode=pb.POD, uids=two, gids=two), "no line": pb.UserNamespace(mode=pb.POD),
           "no root": pb.UserNamespace(mode=pb.POD, uids=[line(1)], gids=[line(1)]),
           "mode of containers": pb.UserNamespace(mode=pb.CONTAINER, uids=[line()], gids=[line()]),
           "mode of a target": pb.UserNamespace(mode=pb.TARGET, uids=[line()], gids=[line()]),
           "length 0": pb.UserNamespace(mode=pb.POD, uids=[line(length=0)], gids=[line(length=0)]),
           "past the end": pb.UserNamespace(mode=pb.POD, uids=[line(host=(1 << 32) - 100)], gids=[line(host=(1 << 32) - 100)])}
    refused(lambda: plain_pods.run(namespaces={"userns_options": bad[case]}))


# AppArmor

DENY_WRITE = """
profile nodens-deny-write flags=(attach_disconnected) { file, network, capability, signal, ptrace, mount, umount, deny /** w, }
profile nodens-audit flags=(attach_disconnected) { file, network, capability, signal, ptrace, mount, umount, audit /** w, }
"""


@pytest.fixture
def apparmor(tmp_path: Path) -> Iterator[None]:
    if not Path("/sys/kernel/security/apparmor/profiles").exists():
        pytest.skip("this kernel has no AppArmor: tools/dev test cri-debian runs it")
    path = tmp_path / "profiles"
    path.write_text(DENY_WRITE)
    subprocess.run(["apparmor_parser", "-r", str(path)], check=True)
    yield
    subprocess.run(["apparmor_parser", "-R", str(path)], check=True)


def test_the_default_apparmor_profile_is_applied_and_keeps_the_node_out_of_reach(subject: Subject, pods: Pods, apparmor: None) -> None:
    if subject.name != "nodens-cri":
        pytest.skip("the profiles are nodens-cri's own")
    default = {"apparmor": pods.pb.SecurityProfile(profile_type=pods.pb.SecurityProfile.RuntimeDefault)}
    name = "nodens-container-mapped" if pods.users else "nodens-container"
    admin = {"capabilities": pods.pb.Capability(add_capabilities=["SYS_ADMIN"])}
    pod = pods.run()
    for way, security in {"by-default": {}, "asked-for": default}.items():
        one = pod.container("trap 'exit 9' TERM; while :; do sleep 0.1; done", name=way, security=security | admin)
        assert one.output("cat /proc/self/attr/current") == f"{name} (enforce)"
        assert one.output("echo hello >/tmp/x && cat /tmp/x && kill -0 1 && sleep 0 && ping -c1 127.0.0.1 >/dev/null; id -u").split() == [
            "hello",
            "0",
        ]
        assert (one.execute("mkdir /m && mount -t tmpfs none /m").code == 0) == pods.users
        assert (one.execute("unshare --user true").code == 0) == pods.users
        one.stop(10)
        assert one.status().exit_code == 9, "the stop signal did not arrive"
    free = {"apparmor": pods.pb.SecurityProfile(profile_type=pods.pb.SecurityProfile.Unconfined)}
    assert "nodens" not in pod.container(name="free", security=free).output("cat /proc/self/attr/current")
    assert "nodens" not in pods.run(security={"privileged": True}).container(security={"privileged": True}).output(
        "cat /proc/self/attr/current"
    )


def test_the_default_apparmor_profile_closes_sys_but_for_cgroups(subject: Subject, plain_pods: Pods, apparmor: None) -> None:
    """If /sys is writable, here by a volume, nothing of it can be written but cgroups.

    A helper for uevents would run as root of the node.
    """
    if subject.name != "nodens-cri":
        pytest.skip("the profiles are nodens-cri's own")
    pod = plain_pods.run()
    one = pod.container(mounts=[pod.mount("/sys", "/sys", propagation=plain_pods.pb.PROPAGATION_HOST_TO_CONTAINER)])
    closed = [path for path in ("/sys/kernel/uevent_helper", "/sys/kernel/mm/ksm/run", "/sys/fs/ext4/features/lazy_itable_init",
                                "/sys/devices/system/cpu/uevent",
                                "/sys/module/kernel/parameters/panic", "/sys/power/state") if Path(path).exists()]
    assert len(closed) >= 3
    for path in closed:
        assert "Permission denied" in one.execute(f": >>{path}").stderr, path
    assert one.execute("mkdir /sys/fs/cgroup/nodens-apparmor && rmdir /sys/fs/cgroup/nodens-apparmor").code == 0


@pytest.mark.skipif(Path("/sys/kernel/security/apparmor/profiles").exists(), reason="this kernel has AppArmor")
def test_a_default_apparmor_profile_is_refused_where_there_is_no_apparmor(subject: Subject, pods: Pods) -> None:
    if subject.name != "nodens-cri":
        pytest.skip("containerd lets it run without")
    default = {"apparmor": pods.pb.SecurityProfile(profile_type=pods.pb.SecurityProfile.RuntimeDefault)}
    pod = pods.run()
    reason = "this is a rootless node, where profiles are not available" if runtimes.rootless() else "AppArmor is not enabled on this node"
    assert reason in refused(lambda: pod.container(security=default)).details()
    assert pod.container().output("echo runs") == "runs"


@pytest.mark.parametrize("way", ["new field", "old field", "both"])
def test_an_apparmor_profile_is_applied(pods: Pods, apparmor: None, way: str) -> None:
    def named(name: str) -> dict:
        new = pods.pb.SecurityProfile(profile_type=pods.pb.SecurityProfile.Localhost, localhost_ref=name)
        old = f"localhost/{name}"
        return {"new field": {"apparmor": new}, "old field": {"apparmor_profile": old},
                "both": {"apparmor": new, "apparmor_profile": "localhost/no-such"}}[way]

    pod = pods.run()
    refused(lambda: pod.container(name="x", security=named("no-such-profile")))
    assert pod.container(name="deny", security=named("nodens-deny-write")).execute("touch /tmp/file").code != 0
    assert pod.container(name="audit", security=named("nodens-audit")).execute("touch /tmp/file").code == 0
