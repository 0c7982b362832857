# SPDX-License-Identifier: Apache-2.0
"""Pods in a node of an ordinary user, seen from inside and from outside.

The node has the default network, image store and state on the disk, and a published port. inside.py, in the node, does the
kubelet's part.
"""
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodenstest import in_node, machine
from nodenstest.machine import ALPHA4, SUBID, UID

PUBLISHED, HOST_PORT = 28080, 18080
INSIDE = ["env", f"PYTHONPATH={os.environ['PYTHONPATH']}", "NODENS_SCRATCH=/var/lib/scratch",
          f"NODENS_VARIANT={os.environ.get('NODENS_VARIANT', 'gcc')}",
          "sh", "-ec", "mkdir -p /var/lib/scratch /var/lib/nodens; exec python3 -B /nodens/tests/component/rootless-pods/inside.py"]


class Kubelet:
    """inside.py, from outside."""

    def __init__(self, name: str) -> None:
        self.log = Path("/tmp/inside.log").open("w")
        self.process = subprocess.Popen(machine.as_user(machine.PROGRAM, "shell", "--name", name, "--", *INSIDE), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True, env=machine.environment(), cwd="/")

    def ask(self, name: str) -> Any:
        assert self.process.stdin and self.process.stdout
        print(name, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, f"inside.py ended: {Path(self.log.name).read_text()[-3000:]}"
        answer = json.loads(line)
        assert "result" in answer, answer["error"]
        return answer["result"]

    def end(self) -> None:
        self.process.communicate()
        self.log.close()


@contextlib.contextmanager
def inside_cgroup(path: Path) -> Iterator[None]:
    """This process, and those that it starts, are in a cgroup for a while."""
    (path / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (path.parent / "cgroup.procs").write_text(str(os.getpid()))


@pytest.fixture(scope="module")
def kubelet() -> Iterator[Kubelet]:
    with in_node.delegated_cgroup() as cgroup, inside_cgroup(cgroup), machine.node("pods", "--bind", "/nodens:ro,/cache:ro") as node:
        machine.rootless("ports", "add", "--name", node.name, f"{PUBLISHED}:{HOST_PORT}")
        made = Kubelet(node.name)
        try:
            yield made
        finally:
            made.end()


@pytest.fixture(scope="module")
def web(kubelet: Kubelet) -> str:
    return kubelet.ask("web")


def fetch() -> str:
    """The server's page, from another machine."""
    code = f"import urllib.request as r; print(r.urlopen('http://{ALPHA4}:{PUBLISHED}', timeout=30).read().decode())"
    return machine.run(*machine.within("router", sys.executable, "-c", code)).stdout.strip()


def owner_of(*command: str) -> int:
    """The user of a process on the machine, outside of the node."""
    wanted = b"\0".join(word.encode() for word in command) + b"\0"
    found = [path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if path.read_bytes() == wanted]
    assert len(found) == 1, found
    return found[0].stat().st_uid


def test_the_status_says_what_the_node_can_do(kubelet: Kubelet) -> None:
    status = kubelet.ask("status")
    assert status["conditions"] == {"RuntimeReady": True, "NetworkReady": True}
    assert status["info"] == {"userNamespace": "rootless node", "userIDs": f"0 to {machine.SUBIDS}", "cgroupDriver": "cgroupfs"}
    assert all(status["users"].values()) and status["reason"] == "works"


def test_a_pod_serves_clients_of_other_machines(kubelet: Kubelet, web: str) -> None:
    assert web.startswith("10.244.0.") and fetch() == "from-a-pod"


def test_a_pod_reaches_other_machines_with_the_address_of_the_node(kubelet: Kubelet, web: str) -> None:
    assert kubelet.ask("outward") == ALPHA4


def test_root_of_a_pod_is_the_user_and_others_are_subordinate_ids(kubelet: Kubelet) -> None:
    assert kubelet.ask("users") == "1000"
    assert owner_of("sleep", "987650") == UID
    assert owner_of("sleep", "987651") == SUBID + 1000 - 1


def test_a_user_that_the_node_does_not_have_is_refused(kubelet: Kubelet) -> None:
    assert f"user 9999999 does not exist on this rootless node, which has IDs 0 to {machine.SUBIDS}" in kubelet.ask("too_high")


def test_a_pod_that_asks_for_an_apparmor_profile_fails_with_the_reason(kubelet: Kubelet) -> None:
    assert "AppArmor profile 'mine': this is a rootless node" in kubelet.ask("profile")


def test_a_sysctl_that_the_kernel_denies_fails_the_pod(kubelet: Kubelet) -> None:
    assert "set sysctl 'net/netfilter/nf_conntrack_max' to '1000': Permission denied" in kubelet.ask("denied_sysctl")


def test_a_negative_oom_score_is_raised_and_counted(kubelet: Kubelet) -> None:
    answer = kubelet.ask("oom_score")
    assert answer["score"] == answer["own"] and answer["counted"] == 1


def test_pods_survive_the_daemon(kubelet: Kubelet, web: str) -> None:
    assert kubelet.ask("kill") == 1     # CONTAINER_RUNNING
    assert fetch() == "from-a-pod"


def test_nothing_is_left_of_removed_pods(kubelet: Kubelet) -> None:
    assert kubelet.ask("clean") == []
