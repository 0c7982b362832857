# SPDX-License-Identifier: Apache-2.0
"""nodens-cri and nodens-rootless as units of systemd, in a guest: what an operator reads when something fails."""
from collections.abc import Iterator

import pytest
from unit_journal import Runtime, UserUnits


@pytest.fixture(scope="session")
def installed() -> Runtime:
    made = Runtime()
    made.install()
    return made


@pytest.fixture
def cri(installed: Runtime) -> Iterator[Runtime]:
    installed.reset()
    yield installed
    installed.reset()


@pytest.fixture(scope="session")
def user() -> Iterator[UserUnits]:
    made = UserUnits()
    made.install()
    yield made
    made.end()
