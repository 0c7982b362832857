# SPDX-License-Identifier: Apache-2.0
"""Privileges that end at the pod, static pods, and restarts of the runtime that disturb no pod."""
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodenstest.people import AGNHOST, FOREVER, Person, container, pod_spec

CAPABILITIES = {"capabilities": {"add": ["SYS_ADMIN", "NET_ADMIN", "SYS_MODULE", "SYS_TIME", "MKNOD", "DAC_OVERRIDE"]}}
INSIDE = {"mounted": "mount -t tmpfs t /tmp", "tunnel": "ip link add t0 type vxlan id 42 dstport 4789 dev eth0 && ip link set t0 up"}
OUTSIDE = {"core-pattern": "echo x >/proc/sys/kernel/core_pattern", "clock": "date -s @86400", "device": "mknod /tmp/disk b 98 0",
           "trigger": "echo h >/proc/sysrq-trigger", "module": "! busybox insmod /proc/self/exe 2>&1 | grep -q 'not permitted'"}
FUSE, DISK = "story.nodens/fuse", "story.nodens/disk"


@pytest.mark.gate
def test_privileges_inside_a_pod_are_worth_nothing_outside(person: Person) -> None:
    """SYS_ADMIN mounts, NET_ADMIN makes a tunnel, both inside only."""
    tries = "; ".join(f"({command}) >/dev/null 2>&1 && echo {name}=yes || echo {name}=no" for name, command in (INSIDE | OUTSIDE).items())
    links, pattern = person.on_node("ip -o link | grep -c t0: || true"), person.on_node("cat /proc/sys/kernel/core_pattern")
    person.pod("admin", container(f"{tries}; echo end; {FOREVER}", image=AGNHOST, securityContext=CAPABILITIES), hostUsers=False)
    person.ready("admin")
    person.until(lambda: "end" in person.log("admin"), "the end of the tries")
    found = dict(line.split("=") for line in person.log("admin").splitlines() if "=" in line)
    assert found == {name: "yes" for name in INSIDE} | {name: "no" for name in OUTSIDE}
    assert person.on_node("ip -o link | grep -c t0: || true") == links and person.on_node("cat /proc/sys/kernel/core_pattern") == pattern
    assert int(person.on_node("date +%Y")) > 2000


@contextlib.contextmanager
def device_plugin(person: Person, resource: str, device: str) -> Iterator[None]:
    """The device comes from a device plugin, as on a real node: no pod needs to be privileged for it."""
    program = (Path(__file__).parent / "device_plugin.py").read_text()
    person.on_node("cat >/run/device-plugin.py; systemd-run --unit=device-plugin --collect "
                   f"python3 -B /run/device-plugin.py {resource} rw {device}", stdin=program)
    try:
        person.until(lambda: person.get("node", "node1")["status"]["allocatable"].get(resource) == "4", "the device plugin")
        yield
    finally:
        person.on_node("systemctl stop device-plugin")


@pytest.fixture
def fuse_plugin(person: Person) -> Iterator[None]:
    person.on_node("chmod 666 /dev/fuse")
    with device_plugin(person, FUSE, "/dev/fuse"):
        yield


@pytest.fixture
def disk_plugin(person: Person) -> Iterator[str]:
    """A loop device, for root and the group disk of the node."""
    device = person.on_node("truncate -s 1M /var/lib/story-disk && losetup --find --show /var/lib/story-disk").strip()
    try:
        assert person.on_node(f"udevadm settle && stat -c '%a %u' {device}").strip() == "660 0"
        with device_plugin(person, DISK, device):
            yield device
    finally:
        person.on_node(f"losetup --detach {device}; rm /var/lib/story-disk")


@pytest.mark.parametrize("users", [True, False], ids=["host-users", "own-users"])
def test_a_disk_of_a_device_plugin_belongs_to_the_user_of_the_container(person: Person, disk_plugin: str, users: bool) -> None:
    """With users of its own; a pod with the host's users gets the node as it is, as by other runtimes."""
    script = (f"stat -c '%u:%g' {disk_plugin}; dd if=/proc/self/stat of={disk_plugin} conv=notrunc 2>&1 | grep -c denied; "
              f"dd if={disk_plugin} bs=1 count=1 2>&1 | grep -c denied; echo end; {FOREVER}")
    person.pod("disk", container(script, resources={"limits": {DISK: "1"}}, securityContext={"runAsUser": 1000, "runAsGroup": 1001}),
               hostUsers=users)
    person.ready("disk")
    person.until(lambda: "end" in person.log("disk"), "the end of the tries")
    of_node = person.on_node(f"stat -c '%u:%g' {disk_plugin}").strip()
    written = person.on_node(f"head -c 1 {disk_plugin} | tr -d '\\0'") != ""
    assert person.log("disk").split() == ([of_node, "1", "1", "end"] if users else ["1000:1001", "0", "0", "end"])
    assert written is not users and of_node.startswith("0:")


def test_sys_admin_mounts_fuse_inside(person: Person, fuse_plugin: None) -> None:
    """busybox's mount speaks enough FUSE to mount; the process that holds the descriptor is the filesystem's server."""
    script = ("exec 3<>/dev/fuse && mkdir -p /tmp/f && mount -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 story /tmp/f && grep "
              "/tmp/f /proc/mounts; "
              f"echo end; {FOREVER}")
    for name, capabilities in (("fuse", ["SYS_ADMIN"]), ("without", [])):
        person.pod(name, container(script, securityContext={"capabilities": {"add": capabilities}}, resources={"limits": {FUSE: "1"}}),
                   hostUsers=False)
    for name in ("fuse", "without"):
        person.ready(name)
        person.until(lambda name=name: "end" in person.log(name), "the end of the try")
    assert "story /tmp/f fuse" in person.log("fuse") and "fuse" not in person.log("without")
    assert "/tmp/f fuse" not in person.on_node("cat /proc/mounts")


def test_a_privileged_pod_with_the_hosts_users_is_as_the_first_process(person: Person) -> None:
    fields = "grep -E '^(Seccomp|NoNewPrivs|CapBnd):' /proc/1/status; cat /proc/1/limits"
    person.pod("privileged", container(f"{fields}; {FOREVER}", securityContext={"privileged": True}), hostUsers=True)
    person.ready("privileged")
    assert person.log("privileged").split() == person.on_node(fields).split()


@pytest.mark.gate
def test_a_static_pod_has_users_of_its_own(person: Person) -> None:
    person.static_pod("static-story", pod_spec(container(f"cat /proc/self/uid_map; {FOREVER}"), hostUsers=False))
    try:
        person.until(lambda: person.mirror("static-story").get("phase") == "Running", "the static pod")
        log = person.cluster.kubectl("--namespace=kube-system", "logs", "static-story-node1").stdout
        assert log.split()[1] != "0" and log.split()[2] == "65536"
    finally:
        person.end_static_pods("static-story")


@pytest.mark.gate
def test_pods_and_a_mount_survive_a_restart_of_the_runtime(person: Person) -> None:
    unit = {"nodens": "nodens-cri", "containerd": "containerd"}[person.cluster.record["runtime"]]
    person.on_node("mkdir -p /var/lib/story-shared && mountpoint -q /var/lib/story-shared || mount --bind /var/lib/story-shared "
                   "/var/lib/story-shared; "
                   "mount --make-rshared /var/lib/story-shared")
    for number in range(10):
        person.pod(f"keeps-{number}", container(FOREVER), hostUsers=number % 2 == 0)
    person.pod("mounter",
               container(f"mkdir -p /v/m && mount -t tmpfs story /v/m && touch /v/m/here; {FOREVER}", securityContext={"privileged": True},
                                    volumeMounts=[{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}]),
               volumes=[{"name": "v", "hostPath": {"path": "/var/lib/story-shared"}}], hostUsers=True)
    names = [*(f"keeps-{number}" for number in range(10)), "mounter"]
    for name in names:
        person.ready(name, 120)
    person.until(lambda: person.on_node("ls /var/lib/story-shared/m 2>/dev/null || true").strip() == "here", "the mount on the host")
    before = {name: person.status(name)["containerStatuses"][0]["containerID"] for name in names}
    person.on_node(f"systemctl restart {unit}")
    time.sleep(15)
    for name in names:
        person.ready(name)
        found = person.status(name)["containerStatuses"][0]
        assert found["containerID"] == before[name] and found["restartCount"] == 0, name
    assert person.on_node("ls /var/lib/story-shared/m").strip() == "here"
    person.kubectl("delete", "pod", *names, "--timeout=300s", timeout=330)
    person.on_node("while mountpoint -q /var/lib/story-shared/m; do umount /var/lib/story-shared/m; done; umount -l /var/lib/story-shared")
