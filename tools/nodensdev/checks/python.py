# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint python`: ruff and mypy over tools and tests, with the settings of pyproject.toml.

Modules of a directory of tests are imported by their bare names, and names such as conftest occur
in several directories: mypy reads one directory after the other (see mypy_runs.py), and remembers
the modules that they share. What it remembers is in the tree's own build directory: it goes by names
of modules, so that two trees that share it break each other's runs.
"""
from pathlib import Path

from ..env import chroot, wheels
from ..project import INSIDE, TOOLS, TOP

REQUIREMENTS = TOOLS / "python-lint.requirements.txt"
SCRIPTS = ("tools/dev", "tools/tidy", "tools/check-layers")     # Python without .py in their names
PACKAGES = ("tools", "tests/lib")
MEMORY = INSIDE / "build/mypy"
NOT_READ = ("tests/lib", "tests/audit")     # packages; attacks as they were tried (see pyproject.toml)


def directories(top: Path = TOP) -> list[str]:
    """Directories of tests with modules of their own; those of PACKAGES are read as packages."""
    found = {path.parent for base in ("tools/tests", "tests") for path in (top / base).rglob("*.py")}
    own = sorted(str(path.relative_to(top)) for path in found)
    return [path for path in own if not path.startswith(NOT_READ)]


def ruff(inside: chroot.Prepared, packages: Path, *paths: str) -> bool:
    return inside.run([str(packages / "bin/ruff"), "check", "--quiet", "--no-cache", *(paths or ("tools", "tests", *SCRIPTS))]) == 0


def mypy(inside: chroot.Prepared, packages: Path, *paths: str) -> bool:
    settings = [f"PYTHONPATH={packages}:{INSIDE}/tools", f"MYPYPATH={':'.join(PACKAGES)}"]
    command = ["python3", "-B", "-m", "nodensdev.checks.mypy_runs", str(MEMORY), *(paths or directories())]
    return inside.run(["env", *settings, *command]) == 0


def ensure() -> Path:
    """The directory of ruff and mypy, as it is called in a chroot."""
    return chroot.seen_inside(wheels.ensure(REQUIREMENTS, wheels.DEBIAN_13))


def check(inside: chroot.Prepared) -> bool:
    packages = ensure()
    return all([ruff(inside, packages), mypy(inside, packages)])
