# SPDX-License-Identifier: Apache-2.0
"""The kubelet's part in a rootless node: nodens-cri, a registry, and pods. Runs as root of the node.

Each line of standard input is the name of a function below; its result is printed as one line of JSON.
"""
import json
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
from nodenstest import runtimes, validation
from nodenstest.pods import Pods, refused

HOST_PORT, POD_PORT = 18080, 8080
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
    def __init__(self, pods: Pods, daemon: Daemon) -> None:
        self.pods, self.daemon = pods, daemon

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

    def own_users(self) -> str:
        pb, block = self.pods.pb, self.pods.pb.IDMapping(host_id=65536, container_id=0, length=65536)
        users = {"userns_options": pb.UserNamespace(mode=pb.POD, uids=[block], gids=[block])}
        return refused(lambda: self.pods.run(name="own", namespaces=users)).details()

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
        serve(Story(Pods(client, f"{site.name}/{validation.SHELL}", directory, "cgroupfs"), daemon))
        daemon.stop()


main()
