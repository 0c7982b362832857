# SPDX-License-Identifier: Apache-2.0
"""The objects that a cluster needs for the guard, as `nodens-guard manifest` prints them."""
import json
from typing import Any

from .. import version
from ..command import Failure
from ..env import chroot

Object = dict[str, Any]
GUARD = "build/gcc/src/guard/nodens-guard"
NAMESPACE = "nodens-system"
REPOSITORY = "registry.example/nodens-guard"
NOWHERE = "192.0.2.1/32"    # stands for the addresses of API servers
MODES = ("warn", "enforce", "off")
CONFIG = {"certificate": "cluster", "clientCA": "cluster", "clientNames": ["kube-apiserver-kubelet-client"], "drainSeconds": 10}


def yaml_of(config: Object) -> str:
    """The configuration as Helm's toYaml writes it: keys in order, lists not indented."""
    lines = []
    for key, value in sorted(config.items()):
        lines += [f"{key}:", *(f"- {item}" for item in value)] if isinstance(value, list) else [f"{key}: {value}"]
    return "\n".join(lines) + "\n"


class Objects:
    """The guard's manifests for the default configuration of a cluster."""

    def __init__(self, inside: chroot.Prepared) -> None:
        self.inside = inside
        self.version = str(version.read())

    def part(self, *parts: str, **config: Any) -> list[Object]:
        text = yaml_of(CONFIG | config)
        words = [*parts, "--json", "--namespace", NAMESPACE, "--image", f"{REPOSITORY}:{self.version}", "--api-servers", NOWHERE,
                 "--ca-file", "none"]
        done = self.inside.capture(["sh", "-ec", 'printf %s "$0" >/tmp/guard.yaml && exec "$@" --config /tmp/guard.yaml', text,
                                    GUARD, "manifest", *words])
        if done.returncode != 0:
            raise Failure(f"nodens-guard manifest {' '.join(parts)}: {done.stderr.strip()}")
        return [json.loads(one) for one in done.stdout.split("\n---\n")]

    def definitions(self) -> list[Object]:
        return self.part("crd")

    def constraints(self) -> list[Object]:
        return self.part("constraints")

    def permissions(self, **config: Any) -> list[Object]:
        """Without the namespace."""
        return [one for one in self.part("rbac", **config) if one["kind"] != "Namespace"]

    def namespace(self) -> Object:
        return next(one for one in self.part("rbac") if one["kind"] == "Namespace")

    def workload(self) -> list[Object]:
        """The Deployment and what it needs. The NetworkPolicy opens the guard's port to all addresses: those of API servers differ."""
        found = self.part("deployment")
        for one in found:
            if one["kind"] == "NetworkPolicy":
                del one["spec"]["ingress"][0]["from"]
        return found

    def webhooks(self, mode: str = MODES[0]) -> list[Object]:
        return self.part("webhooks", defaultMode=mode)
