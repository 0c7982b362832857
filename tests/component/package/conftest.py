# SPDX-License-Identifier: Apache-2.0
"""The Debian packages in a guest: see test_upgrade.py."""
from collections.abc import Iterator

import pytest
from nodenstest import runtimes


@pytest.fixture(scope="session")
def site() -> Iterator[runtimes.registry_server.Site]:
    with runtimes.registry() as made:
        yield made
