# SPDX-License-Identifier: Apache-2.0
"""The two sides of a comparison: a program that answers JSON lines, and its kubelet directory."""
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

FILE = "userns"


class Side:
    """One program (tests/component/userns/driver.c or tests/peers/oracle) and its tree of pods."""

    def __init__(self, name: str, command: list[str], top: Path) -> None:
        self.name = name
        self.root = top / name
        self.pods = self.root / "pods"
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **question: object) -> dict:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"{self.name} died of {question} with {self.process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}")

    def clear(self) -> None:
        """An empty root directory."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)

    def path(self, pod: str) -> Path:
        return self.pods / pod / FILE

    def shape(self, pod: str) -> tuple[str, bytes | str | None]:
        """The type of a pod's file: ('file', its bytes), ('link', its target), and others.

        The others are ('directory' or 'nothing', None), and ('pod is ...').
        """
        directory = self.pods / pod
        try:
            mode = os.lstat(directory).st_mode
        except OSError:
            return ("nothing", None)
        if stat.S_ISLNK(mode):
            return ("pod is link", None)
        if not stat.S_ISDIR(mode):
            return ("pod is file", None)
        path = self.path(pod)
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            return ("nothing", None)
        if stat.S_ISLNK(mode):
            return ("link", os.readlink(path))
        if stat.S_ISDIR(mode):
            return ("directory", None)
        return ("file", path.read_bytes())

    def remove(self, pod: str) -> None:
        """Removes any entry in place of the pod's file."""
        kind = self.shape(pod)[0]
        if kind in ("pod is link", "pod is file"):
            (self.pods / pod).unlink()
        elif kind == "directory":
            shutil.rmtree(self.path(pod))
        elif kind != "nothing":
            self.path(pod).unlink()

    def write(self, pod: str, contents: bytes) -> None:
        self.remove(pod)
        self.path(pod).parent.mkdir(parents=True, exist_ok=True)
        self.path(pod).write_bytes(contents)

    def copy_from(self, other: "Side") -> None:
        shutil.rmtree(self.root)
        shutil.copytree(other.root, self.root, symlinks=True)
