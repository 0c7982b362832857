# SPDX-License-Identifier: Apache-2.0
"""The stories of the founding documents: privileges that end at the pod's edge, static pods, an API server on the host's network with users of its own."""
import json
import time

from people import FOREVER, Person, container, pod_spec

ADMIN = {"securityContext": {"capabilities": {"add": ["SYS_ADMIN", "NET_ADMIN", "SYS_MODULE", "MKNOD", "DAC_OVERRIDE"]}}}
MANIFESTS = "/etc/kubernetes/manifests"


def test_privileges_inside_a_pod_are_worth_nothing_outside(person: Person) -> None:
    """SYS_ADMIN mounts, NET_ADMIN makes a tunnel, both inside only."""
    tries = ("mount -t tmpfs t /tmp && echo mounted; ip link add t0 type vxlan id 42 dstport 4789 dev eth0 && ip link set t0 up && echo tunnel; "
             "echo x >/proc/sys/kernel/core_pattern || echo no-core-pattern; mknod /tmp/disk b 98 0 2>/dev/null || echo no-device; "
             "cat /host/shadow >/dev/null 2>&1 || echo no-shadow; echo x >/host/planted 2>/dev/null || echo no-write")
    person.on_node("mkdir -p /var/lib/story-host && cp /etc/shadow /var/lib/story-host/shadow && chown 0:0 /var/lib/story-host/shadow && chmod 600 /var/lib/story-host/shadow "
                   "&& chown 12345:12345 /var/lib/story-host && chmod 700 /var/lib/story-host")
    person.pod("admin", container(tries + f"; {FOREVER}", **ADMIN), hostUsers=False)
    person.ready("admin")
    person.until(lambda: "no-device" in person.log("admin"), "the end of the tries")
    log = person.log("admin").split()
    assert {"mounted", "tunnel", "no-core-pattern", "no-device"} <= set(log), log
    assert "t0" not in person.on_node("ip -o link") and person.on_node("cat /proc/sys/kernel/core_pattern").strip() != "x"


def test_fuse_is_mounted_inside(person: Person) -> None:
    """The device comes with privileges, which a user namespace makes harmless; busybox's mount speaks enough FUSE to mount."""
    script = ("exec 3<>/dev/fuse && mkdir -p /tmp/f && mount -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 story /tmp/f && grep /tmp/f /proc/mounts; " + FOREVER)
    person.pod("fuse", container(script, securityContext={"privileged": True}), hostUsers=False)
    person.ready("fuse")
    person.until(lambda: "fuse" in person.log("fuse"), "a FUSE mount")
    assert "/tmp/f fuse" not in person.on_node("cat /proc/mounts")


def test_a_privileged_pod_with_the_hosts_users_is_as_the_first_process(person: Person) -> None:
    fields = "grep -E '^(Seccomp|NoNewPrivs|CapBnd):' /proc/1/status; cat /proc/1/limits"
    person.pod("privileged", container(f"{fields}; {FOREVER}", securityContext={"privileged": True}), hostUsers=True)
    person.ready("privileged")
    assert person.log("privileged").split() == person.on_node(fields).split()


def static_pod(person: Person, name: str, spec: dict) -> None:
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "kube-system"}, "spec": spec}
    person.on_node(f"cat >{MANIFESTS}/{name}.json", stdin=json.dumps(manifest))


def mirror(person: Person, name: str) -> dict:
    done = person.cluster.kubectl("--namespace=kube-system", "get", "pod", f"{name}-node1", "-o", "json")
    return json.loads(done.stdout)["status"] if done.returncode == 0 else {}


def test_a_static_pod_has_users_of_its_own(person: Person) -> None:
    static_pod(person, "static-story", pod_spec(container(f"cat /proc/self/uid_map; {FOREVER}"), hostUsers=False))
    try:
        person.until(lambda: mirror(person, "static-story").get("phase") == "Running", "the static pod")
        log = person.cluster.kubectl("--namespace=kube-system", "logs", "static-story-node1").stdout
        assert log.split()[1] != "0" and log.split()[2] == "65536"
    finally:
        person.on_node(f"rm -f {MANIFESTS}/static-story.json")


def test_pods_and_a_mount_survive_a_restart_of_the_runtime(person: Person) -> None:
    unit = {"nodens": "nodens-cri", "containerd": "containerd"}[person.cluster.record["runtime"]]
    person.on_node("mkdir -p /var/lib/story-shared && mountpoint -q /var/lib/story-shared || mount --bind /var/lib/story-shared /var/lib/story-shared; "
                   "mount --make-rshared /var/lib/story-shared")
    for number in range(10):
        person.pod(f"keeps-{number}", container(FOREVER), hostUsers=number % 2 == 0)
    person.pod("mounter", container(f"mkdir -p /v/m && mount -t tmpfs story /v/m && touch /v/m/here; {FOREVER}", securityContext={"privileged": True},
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
    person.kubectl("delete", "pod", *names, "--timeout=100s", timeout=110)
    person.on_node("while mountpoint -q /var/lib/story-shared/m; do umount /var/lib/story-shared/m; done; umount -l /var/lib/story-shared")
