# SPDX-License-Identifier: Apache-2.0
"""A running cluster, as seen from the machine: found by name, asked through its namespaces, ended as a whole."""
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..command import Failure
from ..project import BUILD
from . import addresses
from .controlplane import STATE

CLUSTERS = BUILD / "cluster"
END_TIMEOUT = 120


@dataclass(frozen=True)
class Process:
    """A process that cannot be mistaken for a later one with its number."""

    pid: int
    born: str       # start time, in the kernel's ticks

    @staticmethod
    def of(pid: int) -> "Process":
        return Process(pid, birth(pid) or "")

    def is_alive(self) -> bool:
        return birth(self.pid) == self.born


def birth(pid: int) -> str | None:
    """When a process started; None when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


@dataclass(frozen=True)
class Cluster:
    """One cluster by name. Its state is in build/cluster/NAME, its processes are under one gate (see enter_chroot.py)."""

    name: str

    @property
    def state(self) -> Path:
        return CLUSTERS / self.name

    @property
    def kubeconfig(self) -> Path:
        """For use in the cluster's network namespace."""
        return self.state / "admin.kubeconfig"

    @property
    def netns(self) -> Path:
        return Path(f"/proc/{self.init()}/ns/net")

    @property
    def record(self) -> dict[str, Any]:
        return json.loads((self.state / "cluster.json").read_text())

    def gate(self) -> Process | None:
        path = self.state / "gate"
        if not path.is_file():
            return None
        pid, born = path.read_text().split()
        return Process(int(pid), born)

    def is_running(self) -> bool:
        gate = self.gate()
        return gate is not None and gate.is_alive()

    def init(self) -> int:
        """The machine's number for pid 1 of the cluster's pid namespace."""
        gate = self.gate()
        if gate is None or not gate.is_alive():
            raise Failure(f"no cluster '{self.name}' is running; `tools/dev cluster up` starts one")
        children = Path(f"/proc/{gate.pid}/task/{gate.pid}/children").read_text().split()
        if not children:
            raise Failure(f"the cluster '{self.name}' is just ending")
        return int(children[0])

    def status(self) -> dict[str, Any]:
        path = self.state / "status.json"
        return json.loads(path.read_text()) if path.is_file() else {"state": "starting", "ended": {}}

    def command(self, argv: list[str]) -> list[str]:
        """The machine's command line that runs `argv` in the cluster's namespaces."""
        environment = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
                       "LANG=C.UTF-8", f"TERM={os.environ.get('TERM', 'dumb')}", f"KUBECONFIG={STATE}/admin.kubeconfig"]
        return ["nsenter", f"--target={self.init()}", "--mount", "--pid", "--net", "--wdns=/nodens", "--", *environment, *argv]

    def run(self, argv: list[str], timeout: float | None = None, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(argv), input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=timeout)

    def kubectl_command(self, *arguments: str) -> list[str]:
        return self.command([f"{self.record['binaries']}/kubectl", *arguments])

    def kubectl(self, *arguments: str, timeout: float | None = 300,
                stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs kubectl as the cluster's administrator."""
        return self.run([f"{self.record['binaries']}/kubectl", *arguments], timeout, stdin)

    def ssh_command(self, node: int, user: str = "root") -> list[str]:
        """The start of a command line that runs what follows it on a node."""
        options = [f"UserKnownHostsFile={STATE}/known_hosts", "BatchMode=yes", "LogLevel=ERROR", "ConnectTimeout=10",
                   "ServerAliveInterval=10", "ServerAliveCountMax=6",
                   "ControlMaster=auto", "ControlPersist=60", "ControlPath=/run/ssh-%r-%h"]
        return ["ssh", "-i", f"{STATE}/pki/ssh", *[word for option in options for word in ("-o", option)], f"{user}@{addresses.node(node)}"]

    def node_exec(self, argv: list[str], node: int = 1, timeout: float | None = 300, stdin: str | None = None,
                  user: str = "root") -> subprocess.CompletedProcess[str]:
        """Runs a command on a node's host, as root or another user."""
        return self.run([*self.ssh_command(node, user), "--", shell_words(argv)], timeout, stdin)

    def send(self, path: Path, argv: list[str], node: int = 1, timeout: float = 300) -> None:
        """Runs a command on a node's host with a file as its standard input."""
        with path.open("rb") as stream:
            done = subprocess.run(self.command([*self.ssh_command(node), "--", shell_words(argv)]), stdin=stream, capture_output=True,
                                  text=True, errors="replace", timeout=timeout)
        if done.returncode != 0:
            raise Failure(f"{path.name} could not be sent to {addresses.node_name(node)}: {done.stderr.strip()}")

    def rootless_exec(self, argv: list[str], node: int = 1, timeout: float | None = 300,
                      stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a command in a rootless node, as its root."""
        return self.node_exec(["nodens-rootless", "shell", "--", *argv], node, timeout, stdin, user="alice")

    def power_cycle(self, node: int = 1, cut: bool = False, timeout: float = 240) -> None:
        """Powers a node off, in order or at once (`cut`), and on again, with its disk unchanged.

        It is not up yet when this returns.
        """
        name = addresses.node_name(node)
        self.node_exec(["sh", "-c", f"(sleep 1; systemctl poweroff {'--force --force' if cut else ''}) >/dev/null 2>&1 </dev/null &"], node)
        ssh = self.ssh_command(node)
        self.run([*ssh[:-1], "-O", "exit", ssh[-1]])    # the shared connection would not notice for a minute
        deadline = time.monotonic() + timeout
        while name not in self.status()["ended"]:
            if time.monotonic() > deadline:
                raise Failure(f"{name} did not power off within {timeout:.0f} s")
            time.sleep(0.2)
        self.start_again(name)

    def start_again(self, service: str, timeout: float = 120) -> None:
        """Starts a service as the plan says now; ends it first if it runs. It is not ready yet when this returns."""
        again = self.state / f"again-{service}"
        again.touch()
        deadline = time.monotonic() + timeout
        while again.exists():
            if time.monotonic() > deadline:
                raise Failure(f"{service} was not started again within {timeout:.0f} s")
            time.sleep(0.1)

    def ready_nodes(self) -> list[str]:
        done = self.kubectl("get", "nodes", "-o", "json", timeout=20)
        if done.returncode != 0:
            return []
        return [item["metadata"]["name"] for item in json.loads(done.stdout)["items"]
                if any(one["type"] == "Ready" and one["status"] == "True" for one in item["status"].get("conditions", []))]

    def takes_pods(self) -> bool:
        """Whether a pod can be created in a namespace.

        The API server refuses pods until the controller manager has created the service account.
        """
        return self.kubectl("get", "serviceaccount", "default", timeout=20).returncode == 0

    def copy_logs(self, to: Path) -> None:
        """Control plane logs, consoles, and each node's journal as far as it can still be asked."""
        to.mkdir(parents=True, exist_ok=True)
        if (self.state / "logs").is_dir():
            shutil.copytree(self.state / "logs", to, dirs_exist_ok=True)
        if not self.is_running():
            return
        for number in range(1, self.record["nodes"] + 1):
            with contextlib.suppress(subprocess.TimeoutExpired):
                journal = self.node_exec(["journalctl", "--no-pager", "-o", "short-precise"], number, timeout=60)
                (to / f"{addresses.node_name(number)}-journal.log").write_text(journal.stdout + journal.stderr)

    def end(self) -> None:
        """Ends every process of the cluster and removes its state. Nothing of it is left."""
        gate = self.gate()
        if gate is not None and gate.is_alive():
            init = self.children_of(gate)
            os.kill(gate.pid, signal.SIGTERM)
            self.wait_for_end([gate, *init])
        if self.state.is_dir():
            shutil.rmtree(self.state)

    def children_of(self, gate: Process) -> list[Process]:
        text = Path(f"/proc/{gate.pid}/task/{gate.pid}/children").read_text()
        return [Process.of(int(pid)) for pid in text.split()]

    def wait_for_end(self, processes: list[Process]) -> None:
        """pid 1 of a pid namespace is gone only when all others in it are."""
        deadline = time.monotonic() + END_TIMEOUT
        while any(process.is_alive() for process in processes):
            if time.monotonic() > deadline:
                raise Failure(f"the processes of cluster '{self.name}' did not end within {END_TIMEOUT} s")
            time.sleep(0.05)


def shell_words(argv: list[str]) -> str:
    """ssh hands one string to a shell: quote so that the words stay as they are."""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in argv)


def find(name: str) -> Cluster:
    """A running cluster."""
    one = Cluster(name)
    if not one.is_running():
        raise Failure(f"no cluster '{name}' is running; `tools/dev cluster up --name {name}` starts one")
    return one


def every() -> list[Cluster]:
    return [Cluster(path.name) for path in sorted(CLUSTERS.glob("*")) if (path / "gate").is_file()]


@contextlib.contextmanager
def reserved(name: str) -> Iterator[None]:
    """Keeps two commands from starting or ending the same cluster at once."""
    CLUSTERS.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(CLUSTERS / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Failure(f"another command is starting or ending the cluster '{name}'") from None
    finally:
        os.close(descriptor)
