# SPDX-License-Identifier: Apache-2.0
"""Somebody at work on a cluster: manifests in few words, and waiting for what comes of them."""
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nodensdev.cluster import Cluster

BUSYBOX = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"
AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
FOREVER = "sleep 100000"


def container(command: str | list[str], name: str = "main", image: str = BUSYBOX, **more: Any) -> dict[str, Any]:
    words = ["sh", "-c", command] if isinstance(command, str) else command
    return {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", "command": words, **more}


def pod_spec(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"containers": list(containers), "terminationGracePeriodSeconds": 1, **more}


@dataclass(frozen=True)
class Person:
    cluster: Cluster
    namespace: str

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 60) -> str:
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
        self.until(lambda: any(one["type"] == "Ready" and one["status"] == "True" for one in self.status(name).get("conditions", [])), name, seconds)

    def phase(self, name: str, wanted: str, seconds: int = 90) -> dict[str, Any]:
        self.until(lambda: self.status(name).get("phase") == wanted, f"{name} being {wanted}", seconds)
        return self.status(name)

    def until(self, condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
        """What the condition gives once it is true; else what the cluster has to say about it."""
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > deadline:
                events = self.cluster.kubectl(f"--namespace={self.namespace}", "get", "events", "--sort-by=.lastTimestamp").stdout
                raise AssertionError(f"{what}: not within {seconds:.0f} s\n{events[-3000:]}")
            time.sleep(0.5)
        return found

    def on_node(self, command: str, timeout: float = 60, stdin: str | None = None) -> str:
        done = self.cluster.node_exec(["sh", "-c", command], timeout=timeout, stdin=stdin)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout
