# SPDX-License-Identifier: Apache-2.0
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import machine  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "nightly: bounds on speed, which a loaded machine breaks; left out unless -m names it")
    if "nightly" not in config.option.markexpr:
        config.option.markexpr = f"({config.option.markexpr}) and not nightly" if config.option.markexpr else "not nightly"


@pytest.fixture(scope="session", autouse=True)
def the_machine() -> Iterator[None]:
    machine.make_user()
    machine.make_networks()
    with machine.servers("router", f"{machine.ROUTER4}/{machine.ECHO}", f"{machine.ROUTER6}/{machine.ECHO}"), \
            machine.servers("alpha", f"127.0.0.1/{machine.SECRET}", f"::1/{machine.SECRET}"):
        yield
