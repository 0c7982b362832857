# SPDX-License-Identifier: Apache-2.0
"""Runtimes for crictl and critest, each with a registry that has critest's images."""
import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from nodenstest import cri_tools, runtimes, validation


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--runtime", choices=list(runtimes.KINDS), help="only this one")
    parser.addoption("--focus", default="", help="of critest's tests those that match this expression; the results are not kept")
    parser.addoption("--results", help="file for the results of critest")


@dataclass
class Subject:
    """A running runtime."""

    name: str
    socket: Path
    directory: Path
    runtime: runtimes.Runtime


@pytest.fixture(scope="session")
def site() -> Iterator[runtimes.registry_server.Site]:
    with runtimes.registry() as found:
        cri_tools.publish(found)
        yield found


@contextlib.contextmanager
def running(name: str, site: runtimes.registry_server.Site) -> Iterator[Subject]:
    """A runtime with the cgroup driver that a kubelet would use here."""
    runtimes.make_state_writable()
    driver = "systemd" if runtimes.systemd() else "cgroupfs"
    with runtimes.scratch() as directory:
        runtime = runtimes.KINDS[name](directory / "r", runtimes.messages(), cgroup_driver=driver,
                                       pause=validation.Names(site.name).hosted("pause:3.10.2"))
        cri_tools.trust(site, runtime.certificates)
        runtime.start().close()
        yield Subject(name, runtime.socket, directory, runtime)
        with contextlib.suppress(ProcessLookupError):
            runtime.stop()


@pytest.fixture(scope="session")
def run(site: runtimes.registry_server.Site) -> Callable[[str], contextlib.AbstractContextManager[Subject]]:
    """Runs a runtime for as long as a test wants."""
    return functools.partial(running, site=site)


@pytest.fixture(scope="session")
def subject(site: runtimes.registry_server.Site, request: pytest.FixtureRequest) -> Iterator[Subject]:
    """nodens-cri, or the runtime of --runtime."""
    with running(request.config.getoption("--runtime") or "nodens-cri", site) as found:
        yield found
