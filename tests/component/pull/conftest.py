# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests that need root in the Debian 13 root.

    tools/dev shell -- python3 -m pytest tests/component/pull
"""
import os
import subprocess
from collections.abc import Iterator

import pytest
from nodenstest import fake_registry, puller


def pytest_configure(config: pytest.Config) -> None:
    if os.geteuid() == 0:
        os.unshare(os.CLONE_NEWNET)     # all ports are free for the registries
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="needs root, which starts these programs"))


@pytest.fixture
def store() -> Iterator[puller.Store]:
    with puller.scratch() as path:
        yield puller.Store(path / "store")


@pytest.fixture
def registry() -> Iterator[fake_registry.Registry]:
    with fake_registry.Registry() as made:
        yield made
