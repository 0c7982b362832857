# SPDX-License-Identifier: Apache-2.0
"""nodens-cri at its limits: kills, engines that fail or hang, a full node, and long runs."""
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodenstest import runtimes, validation
from nodenstest.operator import Node
from nodenstest.pods import Pods


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lives", type=int, default=1000, help="pod lives in the chaos (default: 1000)")
    parser.addoption("--kills", type=int, default=200, help="kills of the daemon that there must be (default: 200)")
    parser.addoption("--faults", type=int, default=1, help="how many times as often engines fail and hang (default: 1)")
    parser.addoption("--pods", type=int, default=1000, help="pods at once, with two containers each (default: 1000)")
    parser.addoption("--rounds", type=int, default=1000,
                     help="rounds of exec, attach, port-forward and log rotation in the soak (default: 1000)")
    parser.addoption("--soak-lives", type=int, default=500, help="pod lives in the soak (default: 500)")
    parser.addoption("--minutes", type=float, default=1.0, help="minutes of probes in the soak (default: 1)")
    parser.addoption("--figures", type=Path, help="where to write the figures, as JSON")
    parser.addoption("--seed", type=int, help="for a history that was seen before")


@pytest.fixture(scope="session")
def messages() -> runtimes.Messages:
    return runtimes.messages()


@pytest.fixture(scope="session")
def site() -> Iterator[runtimes.registry_server.Site]:
    with runtimes.registry() as made:
        yield made


@pytest.fixture(scope="session")
def shell(site: runtimes.registry_server.Site) -> str:
    return f"{site.name}/{validation.SHELL}"


@pytest.fixture
def directory() -> Iterator[Path]:
    with runtimes.scratch() as made:
        yield made


@pytest.fixture(scope="module")
def daemon(messages: runtimes.Messages, site: runtimes.registry_server.Site) -> Iterator[runtimes.NodensCri]:
    runtimes.make_state_writable()
    with runtimes.scratch() as directory:
        made = runtimes.NodensCri(directory / "r", messages)
        runtimes.trust(site, made.certificates)
        made.start().close()
        yield made
        made.stop()


@pytest.fixture
def node(daemon: runtimes.NodensCri, directory: Path, shell: str, messages: runtimes.Messages) -> Iterator[Node]:
    client = runtimes.CriClient(str(daemon.socket), messages)
    world = Pods(client, shell, directory, "cgroupfs", users=True)
    world.pull(shell)
    yield Node(daemon, world)
    world.clean()
    client.close()
