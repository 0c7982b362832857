# SPDX-License-Identifier: Apache-2.0
"""`tools/dev deploy`: the Helm chart and the Kustomize base of deploy/, from the objects that `nodens-guard manifest` prints.

The templates of src/guard/install are the one source. kustomize.py writes their objects with default values; chart.py writes the
same objects with the values of the chart in their place. `tools/dev lint deploy` fails when the files of deploy/ are not those that
this command would write.
"""
import argparse
from pathlib import Path

from .. import build
from ..command import Command
from ..env import chroot
from ..project import TOP
from . import chart, kustomize, objects

DIRECTORY = TOP / "deploy"
HAND_WRITTEN = ("README.md", "alerts.yaml", "chart/values.yaml", "chart/templates/NOTES.txt", "chart/.helmignore")


def files(inside: chroot.Prepared) -> dict[str, str]:
    """Every generated file below deploy/."""
    made = objects.Objects(inside)
    return {**{f"chart/{name}": text for name, text in chart.files(made).items()},
            **{f"kustomize/{name}": text for name, text in kustomize.files(made).items()}}


def problems(inside: chroot.Prepared) -> list[str]:
    wanted = files(inside)
    there = {str(path.relative_to(DIRECTORY)) for path in DIRECTORY.rglob("*") if path.is_file()}
    found = [f"deploy/{name}: `tools/dev deploy` would write another text" for name, text in wanted.items()
             if name not in there or (DIRECTORY / name).read_text() != text]
    return found + [f"deploy/{name}: not written by `tools/dev deploy`" for name in sorted(there - set(wanted) - set(HAND_WRITTEN))]


def write(inside: chroot.Prepared, directory: Path = DIRECTORY) -> None:
    wanted = files(inside)
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_file() and name not in wanted and name not in HAND_WRITTEN:
            path.unlink()
    for name, text in wanted.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def run(_args: argparse.Namespace) -> int:
    with chroot.prepared(chroot.Chroot()) as inside:
        build.ensure(inside, "gcc")
        write(inside)
    return 0


COMMANDS = [Command("deploy", "write the Helm chart and the Kustomize base of deploy/ from the guard's manifests", run)]
