# SPDX-License-Identifier: Apache-2.0
"""Which of upstream's tests: the named sets, and the list of those that cannot run here (tests/cluster/excluded.toml)."""
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ..command import Failure
from ..project import TESTS

EXCLUDED = TESTS / "cluster/excluded.toml"
ROOTFUL, ROOTLESS = "rootful", "rootless"


@dataclass(frozen=True)
class Set:
    """Tests by a regular expression (Go's syntax) over their full names: of the end-to-end suite, and of the node suite."""

    focus: str
    purpose: str
    node_focus: str | None = None


SETS = {
    "userns": Set(r"\[Feature:UserNamespacesSupport\]", "pods in user namespaces, procMount, and what pod security says of them",
                  r"ProcMount \[LinuxOnly\]"),
    "node": Set(r"\[NodeConformance\]", "everything labelled NodeConformance in the end-to-end suite"),
    "conformance-node": Set(r"\[sig-node\].*\[Conformance\]", "the Conformance tests of sig-node"),
}


@dataclass(frozen=True)
class Exclusion:
    """Tests whose names contain `test` are not run, because of `reason`.

    With a kernel named, only there; with a kind of node named (`rootless`), only on such nodes.
    """

    test: str
    reason: str
    kernels: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    def covers(self, name: str, kernel: str, node: str = ROOTFUL) -> bool:
        return self.test in name and (not self.kernels or kernel in self.kernels) and (not self.nodes or node in self.nodes)


def exclusions(path: Path = EXCLUDED) -> list[Exclusion]:
    with open(path, "rb") as file:
        entries = tomllib.load(file).get("excluded", [])
    found = [Exclusion(entry.get("test", ""), entry.get("reason", ""), tuple(entry.get("kernels", ())), tuple(entry.get("nodes", ())))
             for entry in entries]
    for entry in found:
        if not entry.test or not entry.reason:
            raise Failure(f"{path}: every entry needs `test` and `reason`: {entry}")
        if not set(entry.nodes) <= {ROOTFUL, ROOTLESS}:
            raise Failure(f"{path}: `nodes` has {ROOTFUL}, {ROOTLESS} or both: {entry}")
    return found


def exclusion_of(name: str, kernel: str, known: list[Exclusion], node: str = ROOTFUL) -> Exclusion | None:
    return next((entry for entry in known if entry.covers(name, kernel, node)), None)
