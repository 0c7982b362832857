# SPDX-License-Identifier: Apache-2.0
"""The kubelet's part in a rootless node: nodens-cri, a registry, and pods. Runs as root of the node.

Each line of standard input is the name of a function below; its result is printed as one line of JSON.
"""
import json
import os
import signal
import socket
import sys
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
from nodenstest import images as make
from nodenstest import registry_server, runtimes, validation
from nodenstest.pods import Container, Pod, Pods, refused

HOST_PORT, POD_PORT = 18080, 8080
NGINX = "e2e-test-images/nginx:1.27.0-2"
NETWORK = {"cniVersion": "1.0.0", "name": "pods", "plugins": [
    {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": True, "ipMasqBackend": "nftables", "hairpinMode": True,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "portmap", "backend": "nftables", "capabilities": {"portMappings": True}}]}


class Daemon(runtimes.NodensCri):
    """nodens-cri with its defaults, except for where this tree has its programs."""

    def pod_settings(self) -> dict[str, object]:
        settings = super().pod_settings()
        return {name: settings[name] for name in ("monitor", "crun", "metrics")}


class Story:
    def __init__(self, pods: Pods, daemon: Daemon, site: registry_server.Site) -> None:
        self.pods, self.daemon, self.site = pods, daemon, site
        self.own: dict[int, Container] = {}     # by the number of the pod's block of IDs

    def status(self) -> dict[str, Any]:
        answer = self.pods.runtime.Status(self.pods.pb.StatusRequest(verbose=True), timeout=60)
        info = json.loads(answer.info["info"])
        return {"conditions": {one.type: one.status for one in answer.status.conditions},
                "messages": {one.type: one.message for one in answer.status.conditions},
                "users": {one.name: one.features.user_namespaces for one in answer.runtime_handlers},
                "info": {name: info[name] for name in ("userNamespace", "userIDs", "cgroupDriver")},
                "reason": info["selftest"]["userNamespaces"]}

    def web(self) -> str:
        """A server behind a host port."""
        ports = [self.pods.pb.PortMapping(protocol=self.pods.pb.TCP, container_port=POD_PORT, host_port=HOST_PORT)]
        self.served = self.pods.run(name="web", port_mappings=ports)
        self.server = self.served.container(f"mkdir /www; echo from-a-pod >/www/index.html; exec httpd -f -p {POD_PORT} -h /www")
        return self.served.address()

    def outward(self) -> str:
        """The address that a server outside sees."""
        return self.server.output("nc 10.77.0.1 7777 </dev/null")

    def users(self) -> str:
        """Processes of root and of user 1000, known by their arguments."""
        pod = self.pods.run(name="users")
        pod.container(["sleep", "987650"])
        other = pod.container(["sleep", "987651"], name="other", security={"run_as_user": {"value": 1000}})
        return other.output("id -u")

    def too_high(self) -> str:
        pod = self.pods.run(name="high")
        return refused(lambda: pod.container(security={"run_as_user": {"value": 9999999}})).details()

    def profile(self) -> str:
        profile = self.pods.pb.SecurityProfile
        pod = self.pods.run(name="profile")
        mine = profile(profile_type=profile.Localhost, localhost_ref="mine")
        return refused(lambda: pod.container(security={"apparmor": mine})).details()

    # ---- pods with user namespaces of their own, on the host's disk ----

    def in_block(self, number: int, name: str, **more: Any) -> Pod:
        """A pod with the IDs of a block, as a kubelet gives them."""
        pb, block = self.pods.pb, self.pods.pb.IDMapping(host_id=number * 65536, container_id=0, length=65536)
        users = {"userns_options": pb.UserNamespace(mode=pb.POD, uids=[block], gids=[block])}
        return self.pods.run(name=name, namespaces=users, **more)

    def two_pods(self) -> list[dict[str, str]]:
        """Each block of the node has a pod; what its root sees."""
        said = []
        for number in (1, 2):
            pod = self.in_block(number, f"own-{number}")
            self.own[number] = pod.container(["sleep", str(987660 + number)])
            pod.container(["sleep", str(987670 + number)], name="user", security={"run_as_user": {"value": 1000}})
            seen = self.own[number].output("id -u; awk '{print $1, $2, $3}' /proc/self/uid_map; stat -c %u:%g /bin/busybox /tmp; "
                                           f"echo secret-{number} >/root/secret; stat -c %u /root/secret")
            said.append(dict(zip(("user", "map", "busybox", "tmp", "file"), seen.splitlines(), strict=True)))
        return said

    def third_pod(self) -> list[str]:
        """Blocks that the node does not have, wholly or partly, and the one of a pod that exists."""
        return [refused(lambda number=number: self.in_block(number, "third")).details() for number in (3, 40000, 2)]

    def strange_maps(self) -> list[str]:
        """What a compromised kubelet may ask for."""
        pb = self.pods.pb
        lines = [{"host_id": 0, "container_id": 0, "length": 1 << 31}, {"host_id": 65536, "container_id": 0, "length": 1 << 20},
                 {"host_id": 4294901760, "container_id": 0, "length": 65536},
                 {"host_id": 131072 + 40000, "container_id": 0, "length": 65536}]
        said = []
        for line in lines:
            users = {"userns_options": pb.UserNamespace(mode=pb.POD, uids=[pb.IDMapping(**line)], gids=[pb.IDMapping(**line)])}
            said.append(refused(lambda users=users: self.pods.run(name="strange", namespaces=users),
                                grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT).details())
        return said

    def neighbour(self) -> dict[str, str]:
        """Pod 1 has the directory of pod 2's files, without a mapping, and tries to use it."""
        block = 2 * 65536
        files = next(path for path in Path("/var/lib/nodens/pods").rglob("upper/root/secret") if path.stat().st_uid == block)
        pod = self.own[1].pod
        mount = self.pods.pb.Mount(host_path=str(files.parents[1]), container_path="/other")
        spy = pod.container(name="spy", mounts=[mount], security={"capabilities": self.pods.pb.Capability(add_capabilities=["ALL"])})
        tries = {"owner": "stat -c %u /other/root", "list": "ls /other/root", "read": "cat /other/root/secret",
                 "write": "touch /other/root/mine", "chown": "chown 0:0 /other/root", "chmod": "chmod 777 /other/root",
                 "processes": "grep -l '98766[2]' /proc/[0-9]*/cmdline | wc -l",
                 "signal": f"kill -9 {self.own[2].pid()}"}
        done = {name: spy.execute(command) for name, command in tries.items()}
        return {name: "denied" if one.code else one.stdout.strip() for name, one in done.items()}

    def hostile_image(self) -> dict[str, Any]:
        """An image with set-user-ID files, capabilities, owners beyond the block, a device and hard links, in a block."""
        attribute = {"SCHILY.xattr.security.capability": make.file_capability()}
        image = validation.stored(self.site, validation.SHELL).layer(make.tar(
            make.directory("evil", mode=0o755), make.entry("evil/suid", b"#!/bin/sh\n", mode=0o6755),
            make.entry("evil/beyond", b"#!/bin/sh\n", mode=0o6755, uid=70000, gid=70000),
            make.entry("evil/of-next", b"x", uid=65536, gid=65536),
            make.entry("evil/caps", b"#!/bin/sh\n", mode=0o755, pax=attribute),
            make.hardlink("evil/link", "evil/caps", mode=0o755, pax=attribute),
            make.entry("evil/sda", kind=tarfile.BLKTYPE, device=(8, 0), mode=0o666),
            make.entry("evil/1000", b"x", uid=1000, gid=1000)))
        self.site.publish(image, "validation/hostile-owners:latest")
        one = self.own[1].pod.container(name="evil", image=f"{self.site.name}/validation/hostile-owners:latest")
        found = one.output("cd /evil; for f in suid beyond of-next caps link 1000; do stat -c '%n %u:%g %a %h' $f; done; "
                           "ls sda 2>&1 | wc -l")
        copies = sorted(Path("/var/lib/nodens/images/layers").glob("*/shifted-65536-65536/evil/*"))
        return {"inside": found.splitlines(), "copy": {path.name: [path.lstat().st_uid, path.lstat().st_mode & 0o7777] for path in copies},
                "capability": os.getxattr(next(path for path in copies if path.name == "caps"), "security.capability").hex()}

    def vandal(self) -> list[bool]:
        """Root of a pod changes and removes all that it can; the copy, and the next pod with these IDs, have the image's files."""
        def state() -> list[tuple[str, int, int, int]]:
            return sorted((str(path), status.st_mode, status.st_uid, status.st_size)
                          for path in Path("/var/lib/nodens/images/layers").rglob("shifted-131072-131072/*") if (status := path.lstat()))

        before = state()
        self.own[2].execute("chmod -R 777 /etc /bin; chown -R 1000 /etc; for f in /etc/*; do echo x >$f; done; "
                            "rm -rf /etc /home /bin /lib*")
        same = [bool(before) and state() == before]
        self.own[2].pod.stop()
        self.own[2].pod.remove()
        self.pods.made.remove(self.own[2].pod)
        pod = self.in_block(2, "after")
        self.own[2] = pod.container(["sleep", "987662"])
        return [*same, self.own[2].output("stat -c %u:%g:%a /etc/passwd") == "0:0:644"]

    def volumes(self) -> dict[str, Any]:
        """Volumes as a kubelet makes them on the disk, for a pod of block 1."""
        pod = self.own[1].pod
        top = Path("/var/lib/kubelet/pods") / pod.config.metadata.uid
        made = {"empty": top / "volumes/kubernetes.io~empty-dir/cache", "config": top / "volumes/kubernetes.io~configmap/settings",
                "hosts": top / "etc-hosts"}
        (top / "userns").parent.mkdir(parents=True)
        (top / "userns").write_text("{}")
        for name in ("empty", "config"):
            made[name].mkdir(parents=True)
        os.chown(made["empty"], 0, 2000)
        made["empty"].chmod(0o2770)
        (made["config"] / "key").write_text("value\n")
        (made["config"] / "key").chmod(0o400)
        made["hosts"].write_text("127.0.0.1 localhost\n")
        mounts = [pod.mount(made["empty"], "/cache"), pod.mount(made["config"], "/settings"), pod.mount(made["hosts"], "/etc/hosts")]
        one = pod.container(name="volumes", mounts=mounts)
        inside = one.output("stat -c %u:%g:%a /cache /settings/key /etc/hosts; cat /settings/key; touch /cache/new; "
                            "stat -c %u:%g /cache/new")
        disk = Path("/var/lib/data-of-the-node")
        disk.mkdir()
        (disk / "file").write_text("")
        error = refused(lambda: pod.container(name="path", mounts=[pod.mount(disk, "/disk")])).details()
        return {"inside": inside.splitlines(), "outside": [(path.lstat().st_uid, path.lstat().st_gid) for path in (
            made["empty"], made["empty"] / "new", made["config"] / "key", made["hosts"])], "path": error,
            "untouched": [(disk / "file").stat().st_uid, disk.stat().st_uid]}

    def remove_image(self, image: str) -> None:
        pb = self.pods.pb
        self.pods.client.images.RemoveImage(pb.RemoveImageRequest(image=pb.ImageSpec(image=image)), timeout=60)

    def race(self) -> dict[str, Any]:
        """Images are removed while containers of them start; then nothing is left of the copies."""
        name, pod = f"{self.site.name}/{validation.SHELL}", self.own[1].pod
        image = validation.stored(self.site, validation.SHELL).layer(make.tar(make.entry("round", b"x" * 4096)))
        ended = []
        for number in range(8):
            target = f"validation/race-{number}:latest"
            self.site.publish(image.layer(make.tar(make.entry(f"n{number}", b"x"))), target)
            pulled = self.pods.pull(f"{self.site.name}/{target}")
            thread = threading.Thread(target=self.remove_image, args=(pulled,))
            thread.start()
            try:
                one = pod.container(name=f"race-{number}", image=f"{self.site.name}/{target}")
                ended.append(one.output(f"stat -c %u /n{number}"))
                one.stop()
                one.remove()
            except (grpc.RpcError, AssertionError) as error:
                ended.append("refused" if "not found" in str(error).lower() or "NOT_FOUND" in str(error) else str(error))
            thread.join()
        assert self.pods.pull(name)
        return {"ended": ended, "half": [str(path) for path in Path("/var/lib/nodens/images/layers").glob("*/shifting-*")]}

    def usage(self) -> list[int]:
        """The bytes of the image store by the CRI, and by walking it."""
        answer = self.pods.client.images.ImageFsInfo(self.pods.pb.ImageFsInfoRequest(), timeout=60)
        found = (path.lstat() for path in Path("/var/lib/nodens/images").rglob("*"))
        walked = {status.st_ino: status.st_blocks * 512 for status in found}
        return [answer.image_filesystems[0].used_bytes.value, sum(walked.values())]

    def copies(self) -> list[int]:
        """The first IDs of the blocks that have copies of layers."""
        return sorted({int(path.name.split("-")[1]) for path in Path("/var/lib/nodens/images/layers").glob("*/shifted-*")})

    # ---- few IDs ----

    def few(self) -> dict[str, Any]:
        """Containers of the test images, with users that the node has and those that it does not have."""
        pod = self.pods.run(name="few")
        one = pod.container()
        shell = one.output("id -u; stat -c %u:%g /home; touch /tmp/x && stat -c %u /tmp/x; cat /proc/self/setgroups")
        said: dict[str, Any] = {"shell": shell.splitlines()}
        said["refused"] = {user: refused(lambda user=user: pod.container(
            name=f"u{user}", security={"run_as_user": {"value": user}})).details() for user in (3000, 60000)}
        said["nobody"] = self.attempt(lambda: pod.container(name="nobody", security={"run_as_user": {"value": 65534}}).output("id -u"))
        said["user"] = self.attempt(lambda: pod.container(name="user", security={"run_as_user": {"value": 1000}}).output("id -u"))
        said["drop"] = one.output("su -s /bin/sh nobody -c 'id -u' 2>&1; chown 77 /tmp/x 2>&1; stat -c %u /tmp/x").splitlines()
        said["own"] = refused(lambda: self.in_block(1, "own")).details()
        return said

    def attempt(self, call: Callable[[], str]) -> str:
        try:
            return call()
        except grpc.RpcError as error:
            return str(error.details())

    def nginx(self) -> list[str]:
        """The web server's image, with its own command: it starts as root and serves as another user."""
        pod = self.pods.run(name="nginx")
        server = pod.container(None, name="nginx", image=f"{self.site.name}/{NGINX}")
        client = pod.container(name="client")
        server.output("mkdir -p /var/www/html; echo served >/var/www/html/index.html")
        page = client.output("for i in $(seq 100); do wget -qO- http://127.0.0.1/index.html 2>/dev/null && break; sleep 0.2; done")
        return [page, str(server.state), " ".join(text for _, text in server.log())]

    def owners(self) -> list[str]:
        """Files of an image whose owners the node does not have."""
        owners = (0, 1000, 2000, 5000, 65534, 200000)
        image = validation.stored(self.site, validation.SHELL).layer(make.tar(
            make.directory("owners"), *(make.entry(f"owners/{n}", b"", uid=n, gid=n, mode=0o6755) for n in owners)))
        self.site.publish(image, "validation/few-owners:latest")
        one = self.pods.run(name="owners").container(image=f"{self.site.name}/validation/few-owners:latest")
        return one.output("cd /owners; stat -c '%n %u:%g %a' 0 1000 2000 5000 65534 200000").splitlines()

    def denied_sysctl(self) -> str:
        return refused(lambda: self.pods.run(name="sysctl", linux={"sysctls": {"net.netfilter.nf_conntrack_max": "1000"}})).details()

    def oom_score(self) -> dict[str, Any]:
        """A guaranteed pod's container, as the kubelet asks for it."""
        one = self.pods.run(name="guaranteed").container(resources={"oom_score_adj": -997})
        return {"score": one.output("cat /proc/self/oom_score_adj"), "own": Path("/proc/self/oom_score_adj").read_text().strip(),
                "counted": self.metric("nodens_cri_oom_scores_clamped_total")}

    def metric(self, name: str) -> int:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(self.daemon.directory / "metrics.sock"))
            one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            text = b"".join(iter(lambda: one.recv(65536), b"")).decode()
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name} ")))

    def kill(self) -> int:
        """Kills the daemon and starts it again; the state of the server's container then."""
        self.daemon.stop(signal.SIGKILL)
        self.daemon.start().close()
        return self.server.state

    def clean(self) -> list[str]:
        """What is left of all pods: mounts, network namespaces and processes."""
        self.pods.clean()
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        left = [path for path in mounts if path.startswith(("/run/nodens/pods/", "/var/lib/nodens/pods/", "/run/netns/"))]
        return left + [name.read_text() for name in Path("/proc").glob("[0-9]*/comm") if name.read_text() in ("nodens-mon\n", "httpd\n")]


def serve(functions: Story) -> None:
    for line in sys.stdin:
        function: Callable[[], Any] = getattr(functions, line.strip())
        try:
            print(json.dumps({"result": function()}), flush=True)
        except (AssertionError, grpc.RpcError) as error:
            print(json.dumps({"error": str(error)}), flush=True)


def main() -> None:
    Path("/etc/cni/net.d").mkdir(parents=True, exist_ok=True)
    Path("/etc/cni/net.d/10-pods.conflist").write_text(json.dumps(NETWORK))
    with runtimes.registry() as site, runtimes.scratch() as directory:
        daemon = Daemon(directory / "r", runtimes.messages(), store=Path("/var/lib/nodens/images"))
        daemon.socket = Path("/run/nodens/cri.sock")
        runtimes.trust(site, daemon.certificates)
        client = daemon.start()
        serve(Story(Pods(client, f"{site.name}/{validation.SHELL}", directory, "cgroupfs"), daemon, site))
        daemon.stop()


main()
