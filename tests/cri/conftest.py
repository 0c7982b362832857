# SPDX-License-Identifier: Apache-2.0
"""The CRI tests' runtimes. Without options each test runs on nodens-cri and on containerd, side by side: what nodens-cri fails fails the
run; what containerd fails is shown beside, as an expected failure. A runtime that runs already is tested with

    pytest tests/cri --runtime-endpoint unix:///run/containerd/containerd.sock --registry NAME:PORT --registry-site DIRECTORY

where DIRECTORY is the site of a registry of ours (`tools/dev registry up` has one) that the runtime trusts under NAME:PORT.
"""
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import parts           # noqa: E402
import validation      # noqa: E402
from nodensdev.cri_client import CriClient  # noqa: E402

BASELINE = "containerd"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--runtime-endpoint", help="a runtime's socket, as unix:///path; default: nodens-cri and containerd, started for the tests")
    parser.addoption("--registry", help="with --runtime-endpoint: the registry's name and port in image names")
    parser.addoption("--registry-site", help="with --runtime-endpoint: the directory of that registry")


@dataclass
class Subject:
    """The runtime under test, and the images that it can pull."""

    name: str
    client: CriClient
    images: validation.Names
    runtime: parts.Runtime | None = None

    @property
    def pb(self) -> object:
        return self.client.pb


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "subject" in metafunc.fixturenames:
        given = metafunc.config.getoption("--runtime-endpoint")
        metafunc.parametrize("subject", [given] if given else list(parts.KINDS), indirect=True, scope="session")


@pytest.fixture(scope="session")
def messages() -> parts.Messages:
    return parts.messages()


@pytest.fixture(scope="session")
def published(request: pytest.FixtureRequest) -> Iterator[tuple[parts.real.Site | None, validation.Names]]:
    directory = request.config.getoption("--registry-site")
    if directory:
        loaded = parts.real.testbed.load(Path(directory))
        site = parts.real.Site(loaded.directory, loaded.address, loaded.port, loaded.auth)
        yield None, validation.publish(site, request.config.getoption("--registry"))
        return
    with parts.registry() as site:
        yield site, validation.publish(site)


@pytest.fixture(scope="session")
def subject(request: pytest.FixtureRequest, published: tuple[parts.real.Site | None, validation.Names], messages: parts.Messages) -> Iterator[Subject]:
    site, names = published
    if request.param not in parts.KINDS:
        client = CriClient(request.param.removeprefix("unix://"), messages)
        yield Subject(request.param, client, names)
        client.close()
        return
    assert site, "the registry is given, the runtime is not"
    with parts.scratch() as directory:
        runtime = parts.KINDS[request.param](directory / "r", messages)
        parts.trust(site, runtime.certificates)
        client = runtime.start()
        yield Subject(request.param, client, names, runtime)
        client.close()
        with contextlib.suppress(ProcessLookupError):
            assert runtime.stop() == 0 or request.param == BASELINE, runtime.tail()


OUTCOMES: dict[str, dict[str, str]] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    name = getattr(item, "callspec", None) and item.callspec.params.get("subject")  # type: ignore[attr-defined]
    if not name or (report.when != "call" and report.passed):
        return
    reason = str(call.excinfo.value).splitlines()[0] if call.excinfo and str(call.excinfo.value) else ""
    found = OUTCOMES.setdefault(item.originalname, {})  # type: ignore[attr-defined]
    if report.failed or name not in found:  # one of several parameters is enough to fail
        found[name] = report.outcome if report.passed else f"{report.outcome}: {reason}"
    if name == BASELINE and report.failed:
        report.outcome, report.wasxfail = "skipped", f"{BASELINE}: {reason}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not OUTCOMES:
        return
    terminalreporter.section("side by side")
    for title, found in OUTCOMES.items():
        words = "  ".join(f"{name} {result.split(':')[0]:<7}" for name, result in found.items())
        terminalreporter.write_line(f"{words}  {title.removeprefix('test_').replace('_', ' ')}")
        for name, result in found.items():
            if ":" in result:
                terminalreporter.write_line(f"        {name} {result}"[:220])
