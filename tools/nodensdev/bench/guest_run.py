# SPDX-License-Identifier: Apache-2.0
"""One run of the bench: what the guest gets to see, the boot, and what it measured."""
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import registry
from ..cluster import runtime
from ..cluster.options import Options
from ..command import Failure
from ..env import cache, deps, goprograms, guest, machine
from ..images.upstream import image_names
from ..project import TOP, commit
from . import crio, memory_disk, priority

DEADLINE = 3600.0
BUSY = 0.5          # load per CPU above which other work is in the figures
SHARE = Path("/share")
PULLED = "registry.nodens.test:5000/nodens/bulk:64m"
SCRIPT = """#!/bin/sh
set -e
cp -r /share/tools /run/bench-tools
cd /run/bench-tools
exec python3 -B -m nodensdev.bench.guest /share/config.json "$FILES/result.json"
"""


@dataclass(frozen=True)
class Plan:
    """What is asked for."""

    runtimes: tuple[str, ...]
    pods: int
    parallel: int
    rounds: int
    userns: tuple[str, ...]
    kernel: str = "uml"
    kind: str = "lives"         # of pods; or "probes", which leaves pods alive and asks about them
    containers: int = 1         # of each pod, for probes


def describe(name: str, programs: Path) -> dict[str, Any]:
    """A runtime as the cluster's nodes have it; its programs are copied to where the guest sees them."""
    found = crio.RUNTIME if name == "cri-o" else runtime.find(name)
    binaries = found.binaries()
    for source in binaries.values():
        shutil.copy(source, programs / source.name)
    return {"name": name, "unit": found.unit, "socket": found.socket, "files": found.files(Options(runtime=name)),
            "programs": {target: source.name for target, source in binaries.items()}}


def prepare(plan: Plan, share: Path) -> None:
    names = image_names(goprograms.source_directory("images", "k8s.io/kubernetes"))
    (share / "programs").mkdir()
    shutil.copy(goprograms.ensure("registry") / "registry", share / "programs" / "registry")
    shutil.copytree(TOP / "tools", share / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(deps.ensure(), share / "api.proto")
    registry.Site(share / "site").prepare(registry.storage.filled())
    config = {
        "runtimes": [describe(name, share / "programs") for name in plan.runtimes],
        "pods": plan.pods, "parallel": plan.parallel, "rounds": plan.rounds, "userns": plan.userns, "kind": plan.kind,
        "containers": plan.containers,
        "image": names["BusyBox"], "pause": names["Pause"], "pulled": PULLED, "proto": str(SHARE / "api.proto"),
        "programs": str(SHARE / "programs"), "site": str(SHARE / "site"), "hosts_toml": registry.hosts_toml(),
        "registries": ["registry.k8s.io", f"{registry.HOST}:{registry.PORT}"],
        "registry": {"address": f"{registry.HOST}:{registry.PORT}", "authority": str(SHARE / "site/ca.pem")},
    }
    (share / "config.json").write_text(json.dumps(config))


def run(plan: Plan) -> dict[str, Any]:
    """Boots a guest for the plan and returns the raw figures with where they come from."""
    machine.need_root("booting a guest")
    load = os.getloadavg()[0]
    if load > BUSY * (os.cpu_count() or 1):
        machine.say(f"the machine is busy (load {load:.1f}): two runs will hardly agree within 15 %")
    with cache.scratch("bench") as share, memory_disk.directory() as work:
        prepare(plan, share)
        started = time.monotonic()
        one = guest.Guest(guest.Options(kernel=plan.kernel, memory=4096, size="16G", share=share), work)
        with priority.raised(plan.kernel):
            result = one.boot(SCRIPT, DEADLINE, output=sys.stderr.fileno())
        if result.end is not guest.End.JOB_DONE or result.exit_code != 0:
            raise Failure(f"the bench in the guest failed ({result.end.value}, exit code {result.exit_code}); "
                          f"the end of its console:\n{result.console_tail()}")
        measured = json.loads((result.files / "result.json").read_text())
    facts = {"commit": commit(), "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
             "load": round(load, 1), "seconds": round(time.monotonic() - started), "pods": plan.pods,
             "parallel": plan.parallel, "rounds": plan.rounds, "kernel": plan.kernel, "containers": plan.containers, "versions": versions()}
    return facts | measured


def versions() -> dict[str, str]:
    """What the pins say was measured."""
    modules = {"containerd": ("containerd", "github.com/containerd/containerd/v2"), "CRI-O": ("cri-o", "github.com/cri-o/cri-o"),
               "Kubernetes": ("kubernetes", "k8s.io/kubernetes")}
    return {title: goprograms.pinned_version(name, module) for title, (name, module) in modules.items()}
