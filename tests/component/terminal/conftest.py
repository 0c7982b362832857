# SPDX-License-Identifier: Apache-2.0
"""A node with a few pods, as an operator looks at it."""
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from nodenstest import runtimes, validation
from nodenstest.pods import Pod, Pods

LONG = "reporting-service-with-a-long-name-7d9f8bcd54-99f7-x2k9p"
WIDE = "\u8282\u70b9-cafe\u0301"    # two wide characters and a combining accent
HOSTILE = "evil\033[2J\007\n\u202exyz"
assert len(LONG) == 56


@dataclass
class Node:
    """A daemon, its pods, and the command line that talks to it."""

    runtime: runtimes.NodensCri
    pods: Pods
    named: dict[str, Pod]

    def command(self, *arguments: str) -> list[str]:
        return [str(runtimes.program("src/nodens")), arguments[0], "--socket", str(self.runtime.socket), *arguments[1:]]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=180)


@pytest.fixture(scope="session")
def messages() -> runtimes.Messages:
    return runtimes.messages()


@pytest.fixture(scope="session")
def site() -> Iterator[runtimes.registry_server.Site]:
    with runtimes.registry() as made:
        yield made


@pytest.fixture(scope="session")
def directory() -> Iterator[Path]:
    with runtimes.scratch() as made:
        yield made


@pytest.fixture(scope="session")
def daemon(messages: runtimes.Messages, site: runtimes.registry_server.Site, directory: Path) -> Iterator[runtimes.NodensCri]:
    runtimes.make_state_writable()
    made = runtimes.NodensCri(directory / "r", messages)
    runtimes.trust(site, made.certificates)
    made.start().close()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def empty(daemon: runtimes.NodensCri) -> subprocess.CompletedProcess[str]:
    """What a new node says of its pods and images."""
    program = str(runtimes.program("src/nodens"))
    words = " && ".join(f"{program} {verb} --socket {daemon.socket}" for verb in ("pods", "images", "stats", "'stats' --pods"))
    return subprocess.run(["sh", "-c", words], capture_output=True, text=True, timeout=180)


@pytest.fixture(scope="session")
def node(empty: object, daemon: runtimes.NodensCri, directory: Path, site: runtimes.registry_server.Site,
         messages: runtimes.Messages) -> Iterator[Node]:
    client = runtimes.CriClient(str(daemon.socket), messages)
    world = Pods(client, f"{site.name}/{validation.SHELL}", directory, "cgroupfs", users=True)
    pb = world.pb
    named = {name: world.run(name=name, hostname="pod") for name in (LONG, "web", WIDE, HOSTILE)}
    volume = directory / "volumes/kubernetes.io~projected" / LONG
    volume.mkdir(parents=True)
    mounts = [named[LONG].mount(volume, "/var/run/secrets/kubernetes.io/serviceaccount", readonly=True)]
    named[LONG].container("while true; do :; done", name="loop", mounts=mounts)
    named["web"].container("exit 1", name="server").ended()
    again = pb.ContainerMetadata(name="server", attempt=1)
    named["web"].container("i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); echo line $i of many; done; exec sleep 4321", metadata=again)
    named[WIDE].container(name="sleep")
    named[HOSTILE].container(name="x\033]0;owned\007")
    yield Node(daemon, world, named)
    world.clean()
    client.close()
