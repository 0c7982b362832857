# SPDX-License-Identifier: Apache-2.0
"""Devices of the Container Device Interface, defined for one test in the directory where every runtime looks."""
import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .pods import Pods

DIRECTORY = Path("/var/run/cdi")
KIND = "nodens.test/gpu"

Define = Callable[..., dict[str, Any]]


@contextlib.contextmanager
def definitions(pods: Pods) -> Iterator[Define]:
    """A function that defines a device with these edits, and returns the fields of a container that gets it."""
    path = DIRECTORY / "nodens-test-device.json"
    DIRECTORY.mkdir(parents=True, exist_ok=True)

    def define(**edits: Any) -> dict[str, Any]:
        path.write_text(json.dumps({"cdiVersion": "0.6.0", "kind": KIND, "devices": [{"name": "0", "containerEdits": edits}]}))
        return {"CDI_devices": [pods.pb.CDIDevice(name=f"{KIND}=0")]}
    yield define
    path.unlink(missing_ok=True)


def hook(program: Path, *arguments: str, stage: str = "createContainer", env: dict[str, str] | None = None) -> dict[str, Any]:
    return {"hookName": stage, "path": str(program), "args": [program.name, *arguments],
            "env": [f"{key}={value}" for key, value in (env or {}).items()]}
