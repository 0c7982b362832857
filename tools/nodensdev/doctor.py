# SPDX-License-Identifier: Apache-2.0
"""What a machine needs for each group of commands, and what to do about what is missing."""
import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .command import Command, Failure
from .env import cache, machine


@dataclass(frozen=True)
class Finding:
    """A verdict, what was found, and the remedy when it is not good."""

    good: bool
    found: str
    remedy: str = ""


def is_root() -> Finding:
    return Finding(os.geteuid() == 0, f"uid {os.geteuid()}", "run tools/dev as root: it mounts and makes namespaces")


def has_mmdebstrap() -> Finding:
    path = shutil.which("mmdebstrap", path=machine.program_path())
    if path:
        return Finding(True, path)
    installable = os.geteuid() == 0 and shutil.which("apt-get") is not None
    found = "missing, will be installed when needed" if installable else "missing"
    return Finding(installable, found, "install the package mmdebstrap")


def has_mirror() -> Finding:
    try:
        return Finding(True, f"{machine.mirror()} has trixie") if machine.is_archive(machine.mirror(), "trixie") else \
            Finding(False, f"no trixie on {machine.mirror()}", "check the network, or set NODENS_MIRROR")
    except Failure as failure:
        return Finding(False, str(failure), "set NODENS_MIRROR")


def has_keyring() -> Finding:
    return Finding(machine.KEYRING.is_file(), str(machine.KEYRING), "install the package debian-archive-keyring")


def has_go(minimum: tuple[int, int] = (1, 26)) -> Finding:
    remedy = f"install Go {minimum[0]}.{minimum[1]} or newer in /usr/local/go or on the PATH"
    path = shutil.which("go", path=machine.program_path())
    if not path:
        return Finding(False, "missing", remedy)
    asked = subprocess.run([path, "env", "GOVERSION"], capture_output=True, text=True, env=machine.go_environment())
    text = asked.stdout.strip()
    version = re.match(r"go(\d+)\.(\d+)", text)
    new_enough = version is not None and (int(version[1]), int(version[2])) >= minimum
    return Finding(new_enough, f"{text} at {path}", remedy)


def has_space(gibibytes: int) -> Callable[[], Finding]:
    def look() -> Finding:
        free = shutil.disk_usage(cache.top()).free / 2**30
        return Finding(free >= gibibytes, f"{free:.0f} GiB free in {cache.top()}",
                       f"{gibibytes} GiB are needed; free some, or set NODENS_CACHE")
    return look


def has_memory(gibibytes: int) -> Callable[[], Finding]:
    def look() -> Finding:
        text = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
        free = int(text[1]) / 2**20 if text else 0.0
        return Finding(free >= gibibytes, f"{free:.0f} GiB available", f"{gibibytes} GiB are needed")
    return look


def has_user_namespaces() -> Finding:
    done = subprocess.run(["unshare", "--user", "--map-root-user", "true"], capture_output=True, text=True)
    return Finding(done.returncode == 0, "can be made" if done.returncode == 0 else done.stderr.strip(),
                   "look at the sysctls user.max_user_namespaces, kernel.unprivileged_userns_clone and "
                   "kernel.apparmor_restrict_unprivileged_userns")


def has_idmapped_mounts() -> Finding:
    kinds = ("ext4", "xfs", "btrfs", "tmpfs")
    asked = subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", str(cache.top())], capture_output=True, text=True)
    kind = asked.stdout.strip()
    return Finding(kind in kinds, f"{cache.top()} is on {kind}",
                   "put the cache (NODENS_CACHE) on ext4, xfs or btrfs: kernel tests need idmapped mounts there")


def has_tun() -> Finding:
    path = Path("/dev/net/tun")
    return Finding(path.is_char_device(), f"{path} is {'there' if path.exists() else 'not there'}", "modprobe tun")


def has_network_namespaces() -> Finding:
    done = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    return Finding(done.returncode == 0, "can be made" if done.returncode == 0 else done.stderr.strip(),
                   "run as root on a kernel with CONFIG_NET_NS")


GROUPS: dict[str, dict[str, Callable[[], Finding]]] = {
    "build, test, fuzz, lint, shell": {
        "root": is_root, "mmdebstrap": has_mmdebstrap, "mirror": has_mirror, "keyring": has_keyring, "disk": has_space(8),
    },
    "test kernel": {"user namespaces": has_user_namespaces, "idmapped mounts": has_idmapped_mounts},
    "deps, prove foundation": {"go": has_go},
    "vm": {"root": is_root, "disk": has_space(12), "memory": has_memory(5)},
    "cluster, e2e, bench": {
        "go": has_go, "tun": has_tun, "network namespaces": has_network_namespaces,
        "disk": has_space(30), "memory": has_memory(8),
    },
}


def run(args: argparse.Namespace) -> int:
    missing = 0
    for group, checks in GROUPS.items():
        print(f"{group}:")
        for name, look in checks.items():
            finding = look()
            missing += not finding.good
            print(f"  {'ok  ' if finding.good else 'MISS'}  {name:<18} {finding.found}")
            if not finding.good:
                print(f"        {'':<18} -> {finding.remedy}")
    print("this machine can do all of it" if not missing else f"{missing} missing")
    return 1 if missing else 0


COMMANDS = [Command("doctor", "say what this machine lacks for which commands", run)]
