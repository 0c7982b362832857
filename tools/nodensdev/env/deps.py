# SPDX-License-Identifier: Apache-2.0
"""Inputs of the build that Debian does not package, pinned, brought into the cache. The build itself never fetches."""
import argparse
import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..command import Command, Failure
from . import cache, machine


@dataclass(frozen=True)
class GoFile:
    """One file of a Go module: Go's checksum database vouches for the module, our own hash for the file."""

    module: str
    version: str
    path: str
    sha256: str


# The Container Runtime Interface, which nodens-cri serves.
CRI_PROTO = GoFile("k8s.io/cri-api", "v0.37.1", "pkg/apis/runtime/v1/api.proto",
                   "381aab5cf67425b3c90ab016489de661ccb83ed9f21204066dc5df83b9b83360")


def ensure() -> Path:
    """The CRI's api.proto in the cache."""
    dependency = CRI_PROTO
    key = cache.key_of(dependency.module, dependency.version, dependency.path, dependency.sha256)
    return cache.ensure("deps", "cri-proto", key, lambda path: bring(dependency, path)) / Path(dependency.path).name


def bring(dependency: GoFile, directory: Path) -> None:
    source = module_directory(dependency.module, dependency.version) / dependency.path
    found = hashlib.sha256(source.read_bytes()).hexdigest()
    if found != dependency.sha256:
        raise Failure(f"{dependency.module}@{dependency.version} {dependency.path} has sha256 {found}, "
                      f"not the pinned {dependency.sha256}; do not use it before you know why")
    shutil.copyfile(source, directory / source.name)


def module_directory(module: str, version: str) -> Path:
    """Downloads a Go module and returns where it was unpacked."""
    if not shutil.which("go", path=machine.program_path()):
        raise Failure("Go is missing; install Go 1.26 or newer (see `tools/dev doctor`)")
    done = subprocess.run(["go", "mod", "download", "-json", f"{module}@{version}"], capture_output=True, text=True,
                          cwd=cache.directory("tmp"), env=machine.go_environment() | {"GO111MODULE": "on"})
    if done.returncode != 0:
        raise Failure(f"cannot download the Go module {module}@{version}:\n{done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


def run(args: argparse.Namespace) -> int:
    path = ensure()
    print(f"{CRI_PROTO.module} {CRI_PROTO.version}: {path}")
    return 0


COMMANDS = [Command("deps", "bring pinned inputs that are not in Debian (the CRI's api.proto) into the cache", run)]
