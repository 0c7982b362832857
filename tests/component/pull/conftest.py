# SPDX-License-Identifier: Apache-2.0
"""Fixtures. The tests want root, in the Debian 13 root: `tools/dev shell -- python3 -m pytest tests/component/pull`."""
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import fake    # noqa: E402
import helper  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "nightly: bounds on speed, which a loaded machine breaks; left out unless -m names it")
    if "nightly" not in config.option.markexpr:
        config.option.markexpr = f"({config.option.markexpr}) and not nightly" if config.option.markexpr else "not nightly"
    if os.geteuid() == 0:
        os.unshare(os.CLONE_NEWNET)     # the registries' ports are ours alone
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="these programs are started by root"))


@pytest.fixture
def store() -> Iterator[helper.Store]:
    with helper.scratch() as path:
        yield helper.Store(path / "store")


@pytest.fixture
def registry() -> Iterator[fake.Registry]:
    with fake.Registry() as made:
        yield made
