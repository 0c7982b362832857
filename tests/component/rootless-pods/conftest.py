# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator

import pytest
from nodenstest import machine


@pytest.fixture(scope="session", autouse=True)
def the_machine() -> Iterator[None]:
    machine.make_user()
    machine.make_networks()
    with machine.servers("router", f"{machine.ROUTER4}/{machine.ECHO}"):
        yield
