"""The runtimes as a node would run them: configuration, systemd unit, socket."""
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CONTAINERD_CONFIG = """version = 3
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '{pause}'
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = '/etc/containerd/certs.d'
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = 'crun'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun.options]
      BinaryName = '/usr/bin/crun'
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/usr/lib/cni']
  conf_dir = '/etc/cni/net.d'
"""
# The bridge has no masquerading: User-mode Linux has no NAT.
NETWORK = {"cniVersion": "1.0.0", "name": "bench", "plugins": [
    {"type": "bridge", "bridge": "bench0", "isGateway": True, "ipMasq": False,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.90.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}


@dataclass(frozen=True)
class Daemon:
    """A runtime's daemon: which programs are it, and which it leaves behind per pod."""

    name: str
    socket: str
    command: tuple[str, ...]
    daemons: frozenset[str]
    per_pod: frozenset[str]

    def unit(self) -> str:
        return f"bench-{self.name}.service"

    def start(self) -> None:
        properties = ["Type=notify", "Delegate=yes", "KillMode=process", "OOMScoreAdjust=-999", "LimitNOFILE=1048576", "TasksMax=infinity"]
        text = "[Service]\n" + "".join(f"{line}\n" for line in properties) + f"ExecStart={' '.join(self.command)}\n"
        Path(f"/run/systemd/system/{self.unit()}").write_text(text)
        subprocess.run(["systemctl", "daemon-reload"], check=True)
        subprocess.run(["systemctl", "start", self.unit()], check=True)

    def restart(self) -> None:
        subprocess.run(["systemctl", "restart", self.unit()], check=True)


DAEMONS = {
    "containerd": Daemon("containerd", "/run/containerd/containerd.sock", ("/usr/local/bin/containerd",),
                         frozenset({"containerd"}), frozenset({"containerd-shim-runc-v2", "pause"})),
    "nodens": Daemon("nodens", "/run/nodens/nodens.sock", ("/usr/local/bin/nodens-cri",),
                     frozenset({"nodens-cri"}), frozenset({"nodens-mon", "catatonit"})),
}


def install_programs(source: Path) -> None:
    for program in source.iterdir():
        shutil.copy(program, Path("/usr/local/bin") / program.name)
        (Path("/usr/local/bin") / program.name).chmod(0o755)


def configure(pause: str, registry_toml: str, authority: Path, names: list[str]) -> None:
    """Files that the runtimes read: containerd's own, the network, the registries."""
    certificates = Path("/etc/containerd/certs.d")
    certificates.mkdir(parents=True, exist_ok=True)
    shutil.copy(authority, certificates / "ca.pem")
    for name in names:
        (certificates / name).mkdir(exist_ok=True)
        (certificates / name / "hosts.toml").write_text(registry_toml)
    Path("/etc/containerd/config.toml").write_text(CONTAINERD_CONFIG.format(pause=pause))
    Path("/etc/cni/net.d").mkdir(parents=True, exist_ok=True)
    Path("/etc/cni/net.d/10-bench.conflist").write_text(json.dumps(NETWORK))
