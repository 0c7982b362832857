# SPDX-License-Identifier: Apache-2.0
"""Fixtures. The tests want root, in the Debian 13 root: `tools/dev shell -- python3 -m pytest tests/pull`."""
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import fake    # noqa: E402
import helper  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="nodens-pull is started by root"))


@pytest.fixture
def store() -> Iterator[helper.Store]:
    with helper.scratch() as path:
        yield helper.Store(path / "store")


@pytest.fixture
def registry() -> Iterator[fake.Registry]:
    with fake.Registry() as made:
        yield made
