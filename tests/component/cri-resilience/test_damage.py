# SPDX-License-Identifier: Apache-2.0
"""Records on the disk that make no sense: the daemon says so aloud, removes what belonged to them, and everything else goes on."""
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import leaks
import pytest
from nodenstest import runtimes
from nodenstest.pods import Pod, Pods, eventually


@pytest.fixture
def runtime(directory: Path, messages: runtimes.Messages, site: runtimes.registry_server.Site) -> Iterator[runtimes.NodensCri]:
    runtimes.make_state_writable()
    with leaks.daemon_cgroup() as wrapper:
        made = runtimes.NodensCri(directory / "r", messages, wrapper=wrapper)
        runtimes.trust(site, made.certificates)
        yield made
        if made.process and made.process.poll() is None:
            made.stop()


def errors(runtime: runtimes.NodensCri) -> list[str]:
    return [line for line in runtime.log.read_text().splitlines() if "cannot be used" in line]


@pytest.mark.parametrize("name", ["sandbox.json", "sandbox.pb"])
def test_a_pod_whose_record_is_damaged_is_removed_with_all_it_had(runtime: runtimes.NodensCri, directory: Path, shell: str,
                                                                  name: str) -> None:
    world = Pods(runtime.start(), shell, directory, "cgroupfs", users=True)
    world.pull(shell)
    kept = world.run(name="kept")
    running = kept.container()
    before = leaks.take(directory / "r")
    damaged = world.run(name="damaged")
    damaged.container()
    damaged.container(name="created", start=False)
    runtime.stop(signal.SIGKILL)
    (directory / "r/state/pods" / damaged.id / name).write_bytes(b"\xff{\"version\":1,")
    runtime.start().close()

    assert any(damaged.id in line and "it is removed" in line for line in errors(runtime)), runtime.tail()
    assert [pod.id for pod in world.sandboxes()] == [kept.id] and running.state == world.pb.CONTAINER_RUNNING
    gone(directory, before, damaged)
    world.made.remove(damaged)
    world.clean()


def gone(directory: Path, before: leaks.Traces, pod: Pod) -> None:
    def left() -> dict[str, list[str]]:
        found = leaks.take(directory / "r").beyond(before)
        return {kind: entries for kind, entries in found.items() if kind != "processes"
                and any(pod.config.linux.cgroup_parent not in entry for entry in entries)}

    eventually(lambda: not left() or None, 20, f"the end of {json.dumps(left(), indent=1)}")
    assert not [entry for entry in leaks.processes() - before.processes if "nodens-mon" in entry or "sleep 4321" in entry]


def test_a_container_whose_record_is_damaged_is_removed_and_its_pod_stays(runtime: runtimes.NodensCri, directory: Path, shell: str) -> None:
    world = Pods(runtime.start(), shell, directory, "cgroupfs", users=True)
    world.pull(shell)
    pod = world.run(name="pod")
    before = leaks.take(directory / "r")
    damaged = pod.container(name="damaged")
    kept = pod.container(name="kept")
    runtime.stop(signal.SIGKILL)
    (directory / "r/state/pods" / pod.id / "containers" / damaged.id / "container.json").write_text("")
    runtime.start().close()

    assert any(damaged.id in line for line in errors(runtime)), runtime.tail()
    assert [item.id for item in world.containers()] == [kept.id] and pod.status().state == world.pb.SANDBOX_READY
    eventually(lambda: not [entry for entry in leaks.take(directory / "r").directories - before.directories if damaged.id in entry], 20,
               "the end of its files")
    assert not [entry for entry in leaks.processes() if damaged.id in entry]
    pod.container(name="damaged")
    world.clean()
