# SPDX-License-Identifier: Apache-2.0
"""The Debian packages in a guest: see test_upgrade.py."""
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "cri")]

import parts         # noqa: E402


@pytest.fixture(scope="session")
def site() -> Iterator[parts.real.Site]:
    with parts.registry() as made:
        yield made
