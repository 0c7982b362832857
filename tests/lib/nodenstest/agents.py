# SPDX-License-Identifier: Apache-2.0
"""How monitoring agents find a container's ID in the path of a process's cgroup: their rules, as of 2026, restated."""
import re
from collections.abc import Callable

ID = re.compile(r"[0-9a-f]{64}")
RUNTIMES = ("cri-containerd-", "crio-", "docker-")
# What may stand before and after the ID, for Falco.
FALCO = (("/", ""), ("/crio-", ""), ("/cri-containerd-", ".scope"), ("/crio-", ".scope"), (":cri-containerd:", ""), ("/docker-", ".scope"))
KEPLER = re.compile(r"(?:[:/]cri-containerd[-:]|/crio-|/docker[-/]|/kubepods/[^/]+/pod[0-9a-f-]+/)([0-9a-f]{64})")
# Tracee reads a component of the path if it is at least this long.
TRACEE_LEAST = 28


def falco(path: str) -> str:
    """The last occurrence of both ends counts, and 64 characters must be between them."""
    for before, after in FALCO:
        start, end = path.rfind(before), path.rfind(after) if after else len(path)
        if start >= 0 and end - start - len(before) == 64 and ID.fullmatch(path[start + len(before):end]):
            return path[start + len(before):end]
    return ""


def tracee(path: str) -> str:
    """The last component with a known prefix, or that is an ID."""
    for part in reversed(path.split("/")):
        name = part.removesuffix(".scope")
        known = next((name.removeprefix(prefix) for prefix in RUNTIMES if name.startswith(prefix)), "")
        if ":cri-containerd:" in part:
            known = part.rpartition(":cri-containerd:")[2]
        if len(part) >= TRACEE_LEAST and (known or ID.fullmatch(name)):
            return known or name
    return ""


def kepler(path: str) -> str:
    found = KEPLER.search(path)
    return found[1] if found else ""


def cilium(path: str) -> str:
    """Cilium computes the container's path and looks whether it exists; processes below it count for it."""
    for part in path.split("/"):
        name = next((part.removeprefix(prefix).removesuffix(".scope") for prefix in RUNTIMES
                     if part.startswith(prefix) and part.endswith(".scope")), part)
        if ID.fullmatch(name):
            return name
    return ""


AGENTS: dict[str, Callable[[str], str]] = {"Falco": falco, "Tracee": tracee, "Kepler": kepler, "Cilium": cilium}
