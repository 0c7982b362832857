# SPDX-License-Identifier: Apache-2.0
"""Container runtimes that a node can have. Each is one entry of the table, with its files and its unit."""
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .. import gobin
from ..command import Failure
from .options import Options

CONTAINERD_CONFIG = """\
version = 3
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = '/etc/containerd/certs.d'
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = 'crun'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun.options]
  BinaryName = '/usr/bin/crun'
  SystemdCgroup = {systemd}
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/usr/lib/cni']
  conf_dir = '/etc/cni/net.d'
"""

CONTAINERD_UNIT = """\
[Unit]
Description=containerd
[Service]
Type=notify
ExecStart=/usr/local/bin/containerd
Delegate=yes
KillMode=process
Restart=always
RestartSec=2
# as upstream's own unit has them
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999
"""

# Imports images into a node's disk while it is made; see bake.py.
CONTAINERD_IMPORT = """\
#!/bin/sh
set -e
containerd >/root/containerd.log 2>&1 &
for _ in $(seq 100); do ctr version >/dev/null 2>&1 && break; sleep 0.2; done
for archive in /share/*; do ctr -n k8s.io images import --all-platforms=false "$archive"; done
ctr -n k8s.io images ls -q
kill $!
wait $! || true
rm /root/containerd.log
"""


@dataclass(frozen=True)
class Runtime:
    """How a runtime gets onto a node and is started there."""

    unit: str
    socket: str
    binaries: Callable[[], dict[str, Path]]            # path in the guest -> file in the cache
    files: Callable[[Options], dict[str, str]]         # path in the guest -> text
    import_script: str                                 # imports every archive in /share


def containerd_binaries() -> dict[str, Path]:
    directory = gobin.ensure("containerd")
    return {f"usr/local/bin/{name}": directory / name for name in ("containerd", "containerd-shim-runc-v2", "ctr")}


def containerd_files(options: Options) -> dict[str, str]:
    return {
        "etc/containerd/config.toml": CONTAINERD_CONFIG.format(systemd=str(options.cgroup_driver == "systemd").lower()),
        "etc/systemd/system/containerd.service": CONTAINERD_UNIT,
    }


RUNTIMES = {
    "containerd": Runtime("containerd.service", "unix:///run/containerd/containerd.sock",
                          containerd_binaries, containerd_files, CONTAINERD_IMPORT),
}


def find(name: str) -> Runtime:
    if name not in RUNTIMES:
        raise Failure(f"--runtime {name}: not there yet; use one of: {', '.join(RUNTIMES)}")
    return RUNTIMES[name]
