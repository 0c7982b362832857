# SPDX-License-Identifier: Apache-2.0
import json
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from nodensdev import storage as storage_page
from nodenstest import bridged, storage
from nodenstest.bridged import Volume

# How a volume is bridged. fuse: a filesystem without file handles, whose files are found by their names.
KINDS = ("disk", "copied", "fuse", "idmap")
# Storage with tests of its own: test_squash.py, test_unowned.py.
SQUASHING = ("nfs4-squash", "nfs3-squash")
UNOWNED = ("smb", "sshfs", "s3fs")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--storage", default="", help=f"test volumes on these, by commas: {', '.join(storage.KINDS)}")
    parser.addoption("--results", help="where to write what became of each test, by storage, as JSON")


def kinds(config: pytest.Config) -> tuple[str, ...]:
    chosen = config.getoption("--storage")
    return tuple(kind for kind in chosen.split(",") if kind not in (*SQUASHING, *UNOWNED)) if chosen else KINDS


def chosen_of(config: pytest.Config, group: tuple[str, ...]) -> list[str]:
    return [kind for kind in config.getoption("--storage").split(",") if kind in group]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    left_out = {"test_squash.py": not chosen_of(config, SQUASHING), "test_unowned.py": not chosen_of(config, UNOWNED)}
    return True if left_out.get(collection_path.name) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`kind`: each kind of volume; `served`: those whose processes are found by the volume's directory."""
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", kinds(metafunc.config))
    if "unowned" in metafunc.fixturenames:
        metafunc.parametrize("unowned", chosen_of(metafunc.config, UNOWNED))
    if "squashing" in metafunc.fixturenames:
        metafunc.parametrize("squashing", chosen_of(metafunc.config, SQUASHING))
    if "served" in metafunc.fixturenames:
        metafunc.parametrize("served", [kind for kind in kinds(metafunc.config) if kind != "idmap"])


def kind_of(item: pytest.Item) -> str:
    """The storage that a test is on; "" if it is on the first kind alone."""
    values = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return str(next((values[name] for name in ("kind", "served", "unowned", "squashing") if name in values), ""))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What storage cannot do is expected to fail, for the reason on its page; what fails at times only is left out."""
    known = {(kind, reason.test): reason for reason in storage_page.reasons() for kind in reason.storage}
    for item in items:
        if case := known.get((kind_of(item), item.name.partition("[")[0])):
            item.add_marker(pytest.mark.skip(reason=case.reason) if case.at_times else pytest.mark.xfail(reason=case.reason, strict=True))


OUTCOMES: dict[str, dict[str, set[str]]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    kind, path = kind_of(item), item.config.getoption("--results")
    if path and kind in storage.KINDS and (report.when == "call" or not report.passed):
        one = OUTCOMES.setdefault(kind, {"passed": set(), "failed": set()})
        one["passed" if report.passed else "failed"].add(item.name.partition("[")[0])
        write_results(Path(os.path.expandvars(path)))
    return report


def write_results(path: Path) -> None:
    """After each test, so that the results are there whatever becomes of the guest. A test that failed once has failed."""
    found = {kind: {"kernel": os.uname().release.partition("-")[0], "idmap_error": STORAGES.idmap_errors.get(kind),
                    "passed": sorted(one["passed"] - one["failed"]), "failed": sorted(one["failed"])} for kind, one in OUTCOMES.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"results": found}, indent=1) + "\n")
    new.rename(path)


@pytest.fixture(scope="session")
def namespace() -> Iterator[str]:
    with bridged.user_namespace() as path:
        yield path


class Storages:
    """The storage that tests have asked for; its servers run until the last test has ended."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.places: dict[str, storage.Place] = {}
        self.idmap_errors: dict[str, str | None] = {}

    def directory(self, kind: str) -> Path:
        """An empty directory on the storage."""
        if kind not in self.places:
            self.places[kind] = self.stack.enter_context(storage.mounted(kind))
            with bridged.user_namespace() as namespace:
                self.idmap_errors[kind] = storage.idmap_error(self.places[kind].client, namespace)
        path = Path(tempfile.mkdtemp(dir=self.places[kind].server))
        path.chmod(0o755)
        return self.places[kind].client / path.name


STORAGES = Storages()


@pytest.fixture(scope="session", autouse=True)
def storages() -> Iterator[None]:
    with STORAGES.stack:
        yield


def volume_of(kind: str, namespace: str, stack: ExitStack, *options: str, memory: bool = False) -> Volume:
    base = stack.enter_context(bridged.directory(memory))
    source, target = base / "source", base / "target"
    if kind in storage.KINDS:
        source = STORAGES.directory(kind)
        return stack.enter_context(bridged.bridge(source, target, namespace, *options))
    source.mkdir()
    if kind == "fuse":
        stack.enter_context(bridged.bridge(source, base / "below", namespace, "--idmap"))
        return stack.enter_context(bridged.bridge(base / "below", target, namespace, *options))
    if kind == "copied":
        options = (*options, "--no-passthrough")
    if kind == "idmap":
        stack.enter_context(bridged.bridge(source, base / "plain", namespace, *options, "--idmap"))
        stack.enter_context(bridged.idmapped(base / "plain", target, namespace))
        return Volume(source, target, namespace)
    return stack.enter_context(bridged.bridge(source, target, namespace, *options))


@pytest.fixture
def volume(kind: str, namespace: str) -> Iterator[Volume]:
    with ExitStack() as stack:
        yield volume_of(kind, namespace, stack)


@pytest.fixture
def disk(request: pytest.FixtureRequest, namespace: str) -> Iterator[Volume]:
    """A volume of the first kind, for tests that one kind is enough for."""
    with ExitStack() as stack:
        yield volume_of(kinds(request.config)[0], namespace, stack)
