# SPDX-License-Identifier: Apache-2.0
"""nodens-cri with its own store and a slow registry, for kills and full disks."""
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import world
from nodenstest import runtimes


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kills", type=int, default=200, help="how many processes are killed (default: 200)")
    parser.addoption("--seed", type=int, help="for a history that was seen before")


def pytest_configure(config: pytest.Config) -> None:
    os.unshare(os.CLONE_NEWNET)     # the registry's ports are ours alone
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


@pytest.fixture(scope="session")
def messages() -> runtimes.Messages:
    return runtimes.messages()


@pytest.fixture(scope="session")
def site() -> Iterator[runtimes.registry_server.Site]:
    with runtimes.registry(images=False) as made:
        yield made


@pytest.fixture(scope="session")
def known(site: runtimes.registry_server.Site, messages: runtimes.Messages) -> Iterator[world.Known]:
    """The images, and how they look when nothing disturbs their pull."""
    with runtimes.scratch() as directory:
        yield world.learn(site, directory, messages)


@pytest.fixture
def directory() -> Iterator[Path]:
    with runtimes.scratch() as made:
        yield made
