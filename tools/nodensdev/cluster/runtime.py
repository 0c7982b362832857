# SPDX-License-Identifier: Apache-2.0
"""Container runtimes that a node can have. Each is one entry of the table, with its files and its unit."""
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .. import build
from ..command import Failure
from ..env import cache, chroot, goprograms
from ..project import TOP
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

# Imports images into a node's disk while it is made; see provision.py.
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
    import_programs: Callable[[], list[Path]] = list   # what it finds there besides, as files of the cache
    late: bool = False                                 # the binaries come at boot: ours change too often to be on the disk


def containerd_binaries() -> dict[str, Path]:
    directory = goprograms.ensure("containerd")
    return {f"usr/local/bin/{name}": directory / name for name in ("containerd", "containerd-shim-runc-v2", "ctr")}


def containerd_files(options: Options) -> dict[str, str]:
    return {
        "etc/containerd/config.toml": CONTAINERD_CONFIG.format(systemd=str(options.cgroup_driver == "systemd").lower()),
        "etc/systemd/system/containerd.service": CONTAINERD_UNIT,
    }


NODENS_CONFIG = """\
fetchHelper: /usr/libexec/nodens/nodens-fetch
unpackHelper: /usr/libexec/nodens/nodens-unpack
monitor: /usr/libexec/nodens/nodens-mon
bridgeHelper: /usr/libexec/nodens/nodens-bridge
certificates: /etc/containerd/certs.d
cgroupDriver: {driver}
"""
# The programs of the tree, by where a Debian package puts them.
NODENS_PROGRAMS = {"usr/sbin/nodens-cri": "src/nodens-cri", "usr/bin/nodens": "src/nodens",
                   "usr/libexec/nodens/nodens-fetch": "src/pull/nodens-fetch",
                   "usr/libexec/nodens/nodens-unpack": "src/pull/nodens-unpack",
                   "usr/libexec/nodens/nodens-mon": "src/mon/nodens-mon",
                   "usr/libexec/nodens/nodens-bridge": "src/bridge/nodens-bridge"}
NODENS_IMPORT = """\
#!/bin/sh
set -e
mkdir -p /usr/libexec/nodens /run/nodens /var/lib/nodens /etc/cni/net.d
cp /share/nodens-import-nodens-fetch /usr/libexec/nodens/nodens-fetch
cp /share/nodens-import-nodens-unpack /usr/libexec/nodens/nodens-unpack
cp /share/nodens-import-nodens-mon /usr/libexec/nodens/nodens-mon
printf 'fetchHelper: /usr/libexec/nodens/nodens-fetch\\nunpackHelper: /usr/libexec/nodens/nodens-unpack\\nmonitor: /usr/libexec/nodens/nodens-mon\\n' >/root/cri.yaml
/share/nodens-import-nodens-cri --config /root/cri.yaml >/root/nodens-cri.log 2>&1 &
for _ in $(seq 100); do /share/nodens-import-nodens images >/dev/null 2>&1 && break; sleep 0.2; done
for archive in /share/*-archive.tar; do /share/nodens-import-nodens import "$archive" || { cat /root/nodens-cri.log; exit 1; }; done
/share/nodens-import-nodens images
kill $!
wait $! || true
rm -r /root/nodens-cri.log /root/cri.yaml /usr/libexec/nodens
"""


def nodens_binaries() -> dict[str, Path]:
    with chroot.prepared(chroot.Chroot()) as inside:
        directory = build.ensure(inside, "release")
    return {target: directory / source for target, source in NODENS_PROGRAMS.items()}


def import_key() -> str:
    return cache.key_of(*(path.read_text() for name in ("oci", "pull") for path in sorted((TOP / "src" / name).glob("*.[ch]"))))


def nodens_import_programs() -> list[Path]:
    """The programs that import images, kept in the cache by the sources that decide what an image store looks like."""
    def keep(directory: Path) -> None:
        for source in nodens_binaries().values():
            shutil.copy(source, directory / source.name)

    directory = cache.ensure("programs", "nodens-import", import_key(), keep)
    return sorted(path for path in directory.iterdir())


def nodens_files(options: Options) -> dict[str, str]:
    unit = (TOP / "units/nodens-cri.service.in").read_text().replace("@sbindir@", "/usr/sbin")
    return {"etc/nodens/cri.yaml": NODENS_CONFIG.format(driver=options.cgroup_driver), "etc/systemd/system/nodens-cri.service": unit,
            "etc/apparmor.d/nodens-container": (TOP / "apparmor/nodens-container").read_text()}


RUNTIMES = {
    "nodens": Runtime("nodens-cri.service", "unix:///run/nodens/cri.sock", nodens_binaries, nodens_files, NODENS_IMPORT,
                      nodens_import_programs, late=True),
    "containerd": Runtime("containerd.service", "unix:///run/containerd/containerd.sock",
                          containerd_binaries, containerd_files, CONTAINERD_IMPORT),
}


def find(name: str) -> Runtime:
    if name not in RUNTIMES:
        raise Failure(f"--runtime {name}: not there yet; use one of: {', '.join(RUNTIMES)}")
    return RUNTIMES[name]
