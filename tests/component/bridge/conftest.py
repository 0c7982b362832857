# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from nodenstest import bridged
from nodenstest.bridged import Volume

# How a volume is bridged. fuse: a filesystem without file handles, whose files are found by their names.
KINDS = ("disk", "copied", "fuse", "idmap")


@pytest.fixture(scope="session")
def namespace() -> Iterator[str]:
    with bridged.user_namespace() as path:
        yield path


def volume_of(kind: str, namespace: str, stack: ExitStack, *options: str, memory: bool = False) -> Volume:
    base = stack.enter_context(bridged.directory(memory))
    source, target = base / "source", base / "target"
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


@pytest.fixture(params=KINDS)
def volume(request: pytest.FixtureRequest, namespace: str) -> Iterator[Volume]:
    with ExitStack() as stack:
        yield volume_of(request.param, namespace, stack)


@pytest.fixture
def disk(namespace: str) -> Iterator[Volume]:
    with ExitStack() as stack:
        yield volume_of("disk", namespace, stack)
