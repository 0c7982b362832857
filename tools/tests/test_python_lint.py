# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint python`: ruff and mypy run with the settings of pyproject.toml, and find what is wrong."""
import os
import subprocess
import sys
from pathlib import Path

import pytest
from nodensdev.checks import python
from nodensdev.env import chroot, wheels
from nodensdev.project import TOP

PACKAGES = chroot.CACHE_INSIDE / "deps/wheels" / wheels.key(python.REQUIREMENTS, wheels.DEBIAN_13)    # `tools/dev test tools` makes it
GOOD = "def twice(x: int) -> int:\n    return 2 * x\n"


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), cwd=TOP, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(PACKAGES)})


@pytest.mark.parametrize(("text", "rule"), [
    (GOOD, ""), ("import os\n", "F401"), ("x = unknown\n", "F821"), ("import sys\nimport os\nprint(os, sys)\n", "I001"),
    ("x = 1; y = 2\n", "E702"),
    ("def f(x=[]):\n    return x\n", "B006"),
])
def test_ruff_finds_what_each_rule_is_about(tmp_path: Path, text: str, rule: str) -> None:
    (tmp_path / "a.py").write_text(text)
    done = run(PACKAGES / "bin/ruff", "check", "--no-cache", "--config", TOP / "pyproject.toml", "--output-format", "concise", tmp_path)
    assert done.returncode == (1 if rule else 0) and rule in done.stdout


@pytest.mark.parametrize(("text", "rule"),
                         [(GOOD, ""), (GOOD + "twice('a')\n", "arg-type"), ("def f(x):\n    return x\n", "no-untyped-def")])
def test_mypy_finds_wrong_and_missing_types(tmp_path: Path, text: str, rule: str) -> None:
    (tmp_path / "a.py").write_text(text)
    done = run(sys.executable, "-B", "-m", "mypy", "--config-file", TOP / "pyproject.toml", "--cache-dir", tmp_path / "cache",
               tmp_path / "a.py")
    assert done.returncode == (1 if rule else 0) and rule in done.stdout


def test_every_directory_with_python_is_read() -> None:
    found = python.directories()
    assert {"tools/tests", "tests", "tests/component/cri", "tests/cluster/scenarios", "tests/acceptance"} <= set(found)
    assert not any(name.startswith("tests/lib") for name in found)
