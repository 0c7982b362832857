# SPDX-License-Identifier: Apache-2.0
"""CRI-O as a subject of `tools/dev bench cri`: its programs, settings and unit. Clusters of the testbed do not have it."""
from pathlib import Path

from ..cluster.options import Options
from ..cluster.runtime import Runtime
from ..env import goprograms
from ..project import TOP
from ..registry import HOST, PORT

SOCKET = "/run/crio/crio.sock"
CONFIG = """\
[crio.api]
listen = '{socket}'
[crio.runtime]
cgroup_manager = '{driver}'
conmon_cgroup = '{monitor}'
irqbalance_config_restore_file = 'disable'
pinns_path = '/usr/local/bin/pinns'
default_runtime = 'crun'
[crio.runtime.runtimes.crun]
runtime_path = '/usr/bin/crun'
monitor_path = '/usr/bin/conmon'
monitor_cgroup = '{monitor}'
[crio.image]
pause_image = 'registry.k8s.io/pause:3.10.2'
signature_policy = '/etc/crio/policy.json'
[crio.network]
network_dir = '/etc/cni/net.d'
plugin_dirs = ['/usr/lib/cni']
[crio.nri]
enable_nri = false
"""
UNIT = """\
[Unit]
Description=CRI-O
[Service]
Type=notify
Environment=SSL_CERT_FILE=/etc/containerd/certs.d/ca.pem
ExecStart=/usr/local/bin/crio --registries-conf /etc/crio/registries.conf
Delegate=yes
KillMode=process
# as upstream's own unit has them
TasksMax=infinity
LimitNOFILE=1048576
LimitCORE=infinity
OOMScoreAdjust=-999
"""


def binaries() -> dict[str, Path]:
    directory = goprograms.ensure("cri-o")
    return {f"usr/local/bin/{name}": directory / name for name in ("crio", "pinns")}


def files(options: Options) -> dict[str, str]:
    monitor = "system.slice" if options.cgroup_driver == "systemd" else "pod"
    location = f"{HOST}:{PORT}"
    registries = [f"[[registry]]\nprefix = '{name}'\nlocation = '{location}'\n" for name in ("registry.k8s.io", location)]
    return {"etc/crio/crio.conf": CONFIG.format(socket=SOCKET, driver=options.cgroup_driver, monitor=monitor),
            "etc/crio/policy.json": '{"default": [{"type": "insecureAcceptAnything"}]}',
            "etc/crio/registries.conf": "unqualified-search-registries = []\n" + "".join(registries),
            "etc/systemd/system/crio.service": UNIT} | links()


def links() -> dict[str, str]:
    """CRI-O runs CNI CHECK right after ADD, which fails if udev has changed the address of the pod's interface in between."""
    return {f"etc/systemd/network/{path.name}": path.read_text() for path in (TOP / "units").glob("*.link")}


RUNTIME = Runtime("crio.service", f"unix://{SOCKET}", binaries, files, "")
