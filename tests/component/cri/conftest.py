# SPDX-License-Identifier: Apache-2.0
"""The runtimes of the CRI tests: without options, nodens-cri and containerd, side by side.

A case that nodens-cri fails fails the run; one that a peer fails is shown as an expected
failure. `--runtime cri-o` runs the cases on CRI-O. To test a runtime that is running already:

    pytest tests/component/cri --runtime-endpoint unix:///run/containerd/containerd.sock
        --registry NAME:PORT --registry-site DIRECTORY

DIRECTORY is the site of a registry of ours (`tools/dev registry up` has one) that the runtime
trusts under NAME:PORT.
"""
import contextlib
import os
import shutil
import signal
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from nodensdev.cri_client import CriClient
from nodenstest import pods as pods_module
from nodenstest import runtimes, validation
from nodenstest.cdi import Define, definitions

PEERS = ("containerd", "cri-o")
ROOTLESS = Path(__file__).with_name("rootless.toml")    # cases that do not apply to a rootless node


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--runtime-endpoint",
                     help="a runtime's socket, as unix:///path; default: nodens-cri and containerd, started for the tests")
    parser.addoption("--runtime", choices=list(runtimes.KINDS), help="only this one; default: nodens-cri and containerd")
    parser.addoption("--cgroup-driver", default="cgroupfs",
                     help="of the runtimes that are started for the tests: cgroupfs (default), or systemd where that runs")
    parser.addoption("--registry", help="with --runtime-endpoint: the registry's name and port in image names")
    parser.addoption("--registry-site", help="with --runtime-endpoint: the directory of that registry")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a rootless node the cases of the list must fail, for the reason given there: one that passes is an error."""
    if not runtimes.rootless():
        return
    listed = {entry["test"]: entry for entry in tomllib.loads(ROOTLESS.read_text())["excluded"]
              if entry.get("place") in (None, os.environ["NODENS_NODE"])}
    known = {name for item in items for name in (item.name, item.originalname)}  # type: ignore[attr-defined]
    collected = {item.path.name for item in items}
    for item in items:
        entry = listed.get(item.name) or listed.get(item.originalname)  # type: ignore[attr-defined]
        if entry:
            item.add_marker(pytest.mark.xfail(reason=entry["reason"], strict=True))
    missing = [name for name, entry in listed.items() if entry["file"] in collected and name not in known]
    assert not missing, f"{ROOTLESS.name} names tests that do not exist: {missing}"


@dataclass
class Subject:
    """The runtime under test, and the images that it can pull."""

    name: str
    client: CriClient
    images: validation.Names
    socket: str
    runtime: runtimes.Runtime | None = None

    @property
    def pb(self) -> object:
        return self.client.pb

    def restart(self, away: float = 0.0) -> None:
        """Kills the runtime, waits, starts it again, and returns when our connection to it works again."""
        if self.runtime is None:
            pytest.skip("only a runtime that this suite has started can be killed")
        self.runtime.stop(signal.SIGKILL)
        time.sleep(away)
        self.runtime.start().close()
        pods_module.eventually(self.answers, 30, "an answer after the restart")

    def revive(self) -> str:
        """Starts the runtime again if a test was its end, so that the next one has a chance; what it said last."""
        if self.runtime is None or self.runtime.process is None or self.runtime.process.poll() is None:
            return ""
        last = f"the runtime has ended with {self.runtime.process.returncode}:\n{self.runtime.tail()}"
        self.runtime.start().close()
        pods_module.eventually(self.answers, 30, "an answer after the restart")
        return last

    def answers(self) -> bool:
        try:
            return bool(self.client.version().version)
        except grpc.RpcError:
            return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "subject" in metafunc.fixturenames:
        given = metafunc.config.getoption("--runtime-endpoint") or metafunc.config.getoption("--runtime")
        metafunc.parametrize("subject", [given] if given else list(runtimes.SIDE_BY_SIDE), indirect=True, scope="session")


@pytest.fixture(scope="session", autouse=True)
def no_report_of_a_sanitizer() -> Iterator[None]:
    """Fails the tests if a sanitizer ended any program."""
    if not runtimes.SANITIZED:
        yield
        return
    shutil.rmtree(runtimes.REPORTS, ignore_errors=True)
    runtimes.REPORTS.mkdir()
    yield
    found = [text for text in (path.read_text(errors="replace") for path in runtimes.REPORTS.iterdir()) if "SUMMARY: " in text]
    assert not found, f"{len(found)} reports, the first:\n{found[0][:6000]}"


@pytest.fixture(scope="session")
def messages() -> runtimes.Messages:
    return runtimes.messages()


@pytest.fixture(scope="session")
def published(request: pytest.FixtureRequest) -> Iterator[tuple[runtimes.registry_server.Site | None, validation.Names]]:
    directory = request.config.getoption("--registry-site")
    if directory:
        loaded = runtimes.registry_server.testbed.load(Path(directory))
        site = runtimes.registry_server.Site(loaded.directory, loaded.address, loaded.port, loaded.auth)
        yield None, validation.publish(site, request.config.getoption("--registry"))
        return
    with runtimes.registry() as site:
        yield site, validation.publish(site)


@pytest.fixture(scope="session")
def subject(request: pytest.FixtureRequest, published: tuple[runtimes.registry_server.Site | None, validation.Names],
            messages: runtimes.Messages) -> Iterator[Subject]:
    site, names = published
    if request.param not in runtimes.KINDS:
        path = request.param.removeprefix("unix://")
        client = CriClient(path, messages)
        yield Subject(request.param, client, names, path)
        client.close()
        return
    assert site, "the registry is given, the runtime is not"
    runtimes.make_state_writable()
    with runtimes.scratch() as directory:
        runtime = runtimes.KINDS[request.param](directory / "r", messages, pause=names.hosted("pause:3.10.2"),
                                              cgroup_driver=request.config.getoption("--cgroup-driver"))
        runtimes.trust(site, runtime.certificates)
        client = runtime.start()
        yield Subject(request.param, client, names, str(runtime.socket), runtime)
        client.close()
        with contextlib.suppress(ProcessLookupError):
            assert runtime.stop() == 0 or request.param in PEERS, runtime.tail()


@pytest.fixture(scope="session")
def cgroup_driver(subject: Subject) -> str:
    """How the runtime wants cgroups to be named; one that does not report it gets cgroupfs, as from a kubelet."""
    try:
        answer = subject.client.runtime.RuntimeConfig(subject.client.pb.RuntimeConfigRequest(), timeout=10)
    except grpc.RpcError:
        return "cgroupfs"
    return "systemd" if answer.linux.cgroup_driver == subject.client.pb.SYSTEMD else "cgroupfs"


@pytest.fixture
def plain_pods(subject: Subject, cgroup_driver: str) -> Iterator[pods_module.Pods]:
    """Pods with the host's users, unless a test says otherwise."""
    with runtimes.scratch() as directory:
        made = pods_module.Pods(subject.client, subject.images.shell, directory, cgroup_driver)
        try:
            yield made
        finally:
            ended = subject.revive()
            made.clean()
            assert not ended, ended


@pytest.fixture(params=["host users", "user namespace"])
def pods(request: pytest.FixtureRequest, plain_pods: pods_module.Pods) -> pods_module.Pods:
    """The same test with both kinds of pods."""
    plain_pods.users = request.param == "user namespace"
    return plain_pods


@pytest.fixture
def define(plain_pods: pods_module.Pods) -> Iterator[Define]:
    """Defines a CDI device for one test."""
    with definitions(plain_pods) as made:
        yield made


OUTCOMES: dict[str, dict[str, str]] = {}


def why(error: BaseException) -> str:
    if isinstance(error, grpc.RpcError):
        return f"{error.code().name}: {error.details()}"
    return next(iter(str(error).splitlines()), "")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    name = getattr(item, "callspec", None) and item.callspec.params.get("subject")  # type: ignore[attr-defined]
    if not name or (report.when != "call" and report.passed):
        return
    reason = why(call.excinfo.value) if call.excinfo else ""
    found = OUTCOMES.setdefault(item.originalname, {})  # type: ignore[attr-defined]
    if report.failed or name not in found:  # one of several parameters is enough to fail
        found[name] = report.outcome if report.passed else f"{report.outcome}: {reason}"
    if name in PEERS and report.failed:
        report.outcome, report.wasxfail = "skipped", f"{name}: {reason}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not OUTCOMES:
        return
    terminalreporter.section("side by side")
    for title, found in OUTCOMES.items():
        words = "  ".join(f"{name} {result.split(':')[0]:<7}" for name, result in found.items())
        terminalreporter.write_line(f"{words}  {title.removeprefix('test_').replace('_', ' ')}")
        for name, result in found.items():
            if ":" in result:
                terminalreporter.write_line(f"        {name} {result}"[:400])
