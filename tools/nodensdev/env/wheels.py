# SPDX-License-Identifier: Apache-2.0
"""Python packages of tests, brought into the cache: each of a pinned version and hash, from a list that says what it is for."""
import subprocess
import sys
from pathlib import Path

from ..command import Failure
from . import cache


def ensure(requirements: Path) -> Path:
    """The directory that has them, for PYTHONPATH. Only wheels without machine code: any Python takes them."""
    key = cache.key_of(requirements.read_text())
    return cache.ensure("deps", "wheels", key, lambda path: install(requirements, path))


def install(requirements: Path, directory: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--require-hashes", "--only-binary=:all:", "--platform=any",
               "--implementation=py", "--abi=none", "--target", str(directory), "--requirement", str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"cannot install what {requirements.name} lists (pip is needed, and a package index that it can reach):\n{done.stdout}{done.stderr}")
