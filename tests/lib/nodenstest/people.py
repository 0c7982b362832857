# SPDX-License-Identifier: Apache-2.0
"""A user of a cluster: short helpers for manifests and for waiting."""
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nodensdev.cluster import Cluster

BUSYBOX = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.66.1"
FOREVER = "sleep 100000"
MANIFESTS = "/etc/kubernetes/manifests"
PATIENCE = 300.0        # seconds that a loaded machine has for anything


def is_ready(status: dict[str, Any]) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", []))


def container(command: str | list[str], name: str = "main", image: str = BUSYBOX, **more: Any) -> dict[str, Any]:
    words = ["sh", "-c", command] if isinstance(command, str) else command
    return {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", "command": words, **more}


def pod_spec(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"containers": list(containers), "terminationGracePeriodSeconds": 1, **more}


@dataclass(frozen=True)
class Person:
    cluster: Cluster
    namespace: str

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = PATIENCE) -> str:
        done = self.cluster.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin, timeout=timeout)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def apply(self, kind: str, name: str, api: str = "v1", **fields: Any) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}))

    def pod(self, name: str, *containers: dict[str, Any], **spec: Any) -> None:
        self.apply("Pod", name, spec=pod_spec(*containers, **spec))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        return json.loads(self.kubectl("get", kind, name, "-o", "json"))

    def status(self, name: str) -> dict[str, Any]:
        return self.get("pod", name)["status"]

    def log(self, name: str, *more: str) -> str:
        return self.kubectl("logs", name, *more)

    def ready(self, name: str, seconds: int = 60) -> None:
        self.until(lambda: is_ready(self.status(name)), f"{name} being ready", seconds)

    def phase(self, name: str, wanted: str, seconds: int = 90) -> dict[str, Any]:
        self.until(lambda: self.status(name).get("phase") == wanted, f"{name} being {wanted}", seconds)
        return self.status(name)

    def until(self, condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
        """Waits for a condition and returns its value; on a timeout fails with the cluster's state.

        Waits at least PATIENCE, for loaded hosts.
        """
        seconds = max(seconds, PATIENCE)
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > deadline:
                events = self.cluster.kubectl(f"--namespace={self.namespace}", "get", "events", "--sort-by=.lastTimestamp").stdout
                raise AssertionError(f"{what}: not within {seconds:.0f} s\n{events[-3000:]}")
            time.sleep(0.5)
        return found

    def node_says(self, path: str) -> str:
        """A page of the kubelet, through the API server."""
        return self.kubectl("get", "--raw", f"/api/v1/nodes/node1/proxy/{path}")

    def images(self) -> str:
        """The names of the images on the node."""
        return self.on_node({"nodens": "nodens images",
                             "containerd": "ctr --namespace k8s.io images ls -q"}[self.cluster.record["runtime"]])

    def static_pod(self, name: str, spec: dict[str, Any]) -> None:
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "kube-system"}, "spec": spec}
        self.on_node(f"cat >{MANIFESTS}/.{name} && mv {MANIFESTS}/.{name} {MANIFESTS}/{name}.json", stdin=json.dumps(manifest))

    def mirror(self, name: str) -> dict[str, Any]:
        """The status of a static pod, as the API server knows it; empty when it does not."""
        done = self.cluster.kubectl("--namespace=kube-system", "get", "pod", f"{name}-node1", "-o", "json")
        return json.loads(done.stdout)["status"] if done.returncode == 0 else {}

    def end_static_pods(self, *names: str) -> None:
        self.on_node("rm -f " + " ".join(f"{MANIFESTS}/{name}.json" for name in names))
        self.until(lambda: not any(self.mirror(name) for name in names), "the end of the static pods", 90)

    def on_node(self, command: str, timeout: float = PATIENCE, stdin: str | None = None) -> str:
        done = self.cluster.node_exec(["sh", "-c", command], timeout=timeout, stdin=stdin)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout
