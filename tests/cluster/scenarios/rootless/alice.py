# SPDX-License-Identifier: Apache-2.0
"""The owner of a rootless node, who is a user of the cluster too."""
import json
from dataclasses import dataclass
from typing import Any

from nodenstest.people import AGNHOST, PATIENCE, Person, container

NODE = "node1"
HOST = "10.88.0.2"                  # as other machines call the node's host
UID, IDS = 1000, range(100000, 100000 + 65536)
PARTS = ("runtime", "kubelet", "proxy")             # programs of Kubernetes in the node
HELPERS = ("net", "forward", "api", "controller")   # programs of ours beside it
READY = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1, "timeoutSeconds": 10}

# Asks a server on the host, as another machine does: the answer on standard output.
ASK = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode(), end="")
"""


def web(name: str = "web", **more: Any) -> dict[str, Any]:
    """A container that answers HTTP on port 8080."""
    return container(["/agnhost", "netexec", "--http-port=8080", "--udp-port=-1"], name, AGNHOST, readinessProbe=READY,
                     ports=[{"containerPort": 8080, **more}])


@dataclass(frozen=True)
class Alice(Person):
    """Commands of hers on the host, and of root in her node."""

    def on_host(self, command: str, timeout: float = PATIENCE, user: str = "alice") -> str:
        done = self.cluster.node_exec(["sh", "-c", command], timeout=timeout, user=user)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def in_node(self, command: str, timeout: float = PATIENCE) -> str:
        done = self.cluster.rootless_exec(["sh", "-c", command], timeout=timeout)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def from_outside(self, url: str) -> str:
        """What a server on the host answers to another machine; empty if it does not."""
        done = self.cluster.run(["python3", "-c", ASK, url], timeout=60)
        return done.stdout if done.returncode == 0 else ""

    def node(self) -> dict[str, Any]:
        return json.loads(self.kubectl("get", "node", NODE, "-o", "json"))

    def node_ready(self) -> bool:
        return NODE in self.cluster.ready_nodes()

    def unit(self, part: str) -> str:
        return f"nodens-node-{part}@default.service"

    def unit_state(self, part: str) -> str:
        return self.on_host(f"systemctl --user show --value -p ActiveState {self.unit(part)}").strip()

    def main_process(self, part: str) -> str:
        return self.on_host(f"systemctl --user show --value -p MainPID {self.unit(part)}").strip()

    def processes(self) -> dict[int, tuple[int, str]]:
        """Processes on the host by their pid: user and name."""
        found = {}
        for line in self.on_host("ps -eo pid=,uid=,comm=", user="root").splitlines():
            pid, uid, name = line.split(None, 2)
            found[int(pid)] = (int(uid), name.strip())
        return found

    def life(self, name: str) -> tuple[str, int]:
        """What changes when a pod's container is started again."""
        one = self.status(name)["containerStatuses"][0]
        return one["containerID"], one["restartCount"]

    def runtime(self) -> str:
        return str(self.cluster.record["runtime"])

    def waits(self, name: str, word: str) -> str:
        """What the status of a pod and its Events say with this word in it; empty if nothing does."""
        status = self.status(name)
        states = [one["state"].get("waiting", {}) for one in status.get("containerStatuses", [])]
        events = json.loads(self.kubectl("get", "events", f"--field-selector=involvedObject.name={name}", "-o", "json"))["items"]
        texts = [f"{one.get('reason', '')}: {one.get('message', '')}" for one in (status, *status.get("conditions", []), *states, *events)]
        return "\n".join(text for text in texts if word in text)
