# SPDX-License-Identifier: Apache-2.0
"""The runtimes as a node runs them: the cluster's own files and units, brought in by the host's part of the bench."""
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The bridge has no masquerading: User-mode Linux has no NAT.
NETWORK = {"cniVersion": "1.0.0", "name": "bench", "plugins": [
    {"type": "bridge", "bridge": "bench0", "isGateway": True, "ipMasq": False,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.90.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
# The programs that are a runtime's daemon, and those that it leaves running per pod.
PROGRAMS = {
    "containerd": (frozenset({"containerd"}), frozenset({"containerd-shim-runc-v2", "pause"})),
    "nodens": (frozenset({"nodens-cri"}), frozenset({"nodens-mon", "catatonit"})),
    "cri-o": (frozenset({"crio"}), frozenset({"conmon", "pause"})),
}


@dataclass(frozen=True)
class Daemon:
    """A runtime's daemon in this guest."""

    name: str
    unit: str
    socket: str

    @property
    def programs(self) -> frozenset[str]:
        return PROGRAMS[self.name][0]

    @property
    def per_pod(self) -> frozenset[str]:
        return PROGRAMS[self.name][1]

    def start(self) -> None:
        subprocess.run(["systemctl", "start", self.unit], check=True)

    def restart(self) -> None:
        subprocess.run(["systemctl", "restart", self.unit], check=True)


def claimed() -> set[str]:
    return {name for pair in PROGRAMS.values() for names in pair for name in names}


def install(described: dict[str, Any], programs: Path) -> Daemon:
    """Puts a runtime's files into place; see cluster/runtime.py, whose entry it is."""
    for target, name in described["programs"].items():
        place(Path("/") / target).write_bytes((programs / name).read_bytes())
        (Path("/") / target).chmod(0o755)
    for target, text in described["files"].items():
        place(Path("/") / target).write_text(text)
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    return Daemon(described["name"], described["unit"], described["socket"].removeprefix("unix://"))


def place(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def configure(registry_toml: str, authority: Path, names: list[str]) -> None:
    """What all runtimes read: the network and the registries."""
    certificates = Path("/etc/containerd/certs.d")
    certificates.mkdir(parents=True, exist_ok=True)
    shutil.copy(authority, certificates / "ca.pem")
    for name in names:
        place(certificates / name / "hosts.toml").write_text(registry_toml)
    place(Path("/etc/cni/net.d/10-bench.conflist")).write_text(json.dumps(NETWORK))
