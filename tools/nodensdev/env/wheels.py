# SPDX-License-Identifier: Apache-2.0
"""Python packages of tests and lints in the cache, each pinned by version and hash.

The lists say what each is for.
"""
import platform
import subprocess
import sys
from pathlib import Path

from ..command import Failure
from . import cache

# Wheels without machine code, which any Python takes, and wheels for the Python of the Debian 13
# root.
ANY = ("--implementation=py", "--abi=none", "--platform=any")
DEBIAN_13 = ("--python-version=3.13", "--implementation=cp", "--abi=cp313",
             *(f"--platform={tag}_{platform.machine()}" for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")), "--platform=any")


def key(requirements: Path, kind: tuple[str, ...] = ANY) -> str:
    return cache.key_of(requirements.read_text(), *(() if kind is ANY else kind))


def ensure(requirements: Path, kind: tuple[str, ...] = ANY) -> Path:
    """The directory that has them, for PYTHONPATH."""
    return cache.ensure("deps", "wheels", key(requirements, kind), lambda path: install(requirements, path, kind))


def install(requirements: Path, directory: Path, kind: tuple[str, ...] = ANY) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--require-hashes", "--only-binary=:all:",
               *kind,
               "--target", str(directory), "--requirement", str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"cannot install what {requirements.name} lists (pip is needed, and a package index that it can "
                      f"reach):\n{done.stdout}{done.stderr}")
