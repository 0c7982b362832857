# SPDX-License-Identifier: Apache-2.0
"""Upgrades of each part of a rootless node: what restarts, and what survives. docs/rootless-operate.md has the commands."""
import pytest
from alice import HOST, Alice, web
from nodenstest.people import FOREVER, container

pytestmark = pytest.mark.rootless
OUTSIDE, HOST_PORT = 18092, 18082      # the pod's host port, published by hand under another number
LAUNCHER = ("net", "forward", "api", "controller")


def replace(alice: Alice, program: str) -> str:
    """Installs a program anew, as a package does: another file under the same name. Returns its inode."""
    command = f"path=$(command -v {program}); cp -p $path $path.new; mv $path.new $path; stat -c %i $path"
    return alice.on_host(command, user="root").strip()


def served(alice: Alice) -> None:
    if f"{OUTSIDE}:{HOST_PORT}" not in alice.on_host("nodens-rootless ports"):
        alice.on_host(f"nodens-rootless ports add {OUTSIDE}:{HOST_PORT}")
    alice.pod("web", web(hostPort=HOST_PORT))
    alice.ready("web")
    alice.until(lambda: alice.from_outside(f"http://{HOST}:{OUTSIDE}/hostname") == "web", "an answer of the pod")


def still_served(alice: Alice, before: tuple[str, int]) -> None:
    alice.until(lambda: alice.from_outside(f"http://{HOST}:{OUTSIDE}/hostname") == "web", "an answer of the pod")
    alice.until(alice.node_ready, "the node being Ready")
    alice.pod("later", container(FOREVER))
    alice.ready("later")
    assert alice.life("web") == before, "the pod's container was started again"


@pytest.mark.parametrize(("part", "program"), [("kubelet", "kubelet"), ("proxy", "kube-proxy"), ("runtime", "runtime")])
def test_pods_survive_the_upgrade_of_a_component(alice: Alice, part: str, program: str) -> None:
    served(alice)
    before = alice.life("web")
    name = {"nodens": "nodens-cri", "containerd": "containerd"}[alice.runtime()] if program == "runtime" else program
    inode = replace(alice, name)
    alice.on_host(f"systemctl --user restart {alice.unit(part)}")
    alice.until(lambda: alice.unit_state(part) == "active", f"{part} being back")
    running = alice.in_node(f"stat -Lc %i /proc/$(pgrep -xo '{name[:15]}')/exe").strip()
    assert running == inode, "the new program runs"
    still_served(alice, before)


def test_pods_and_ports_survive_the_upgrade_of_the_launcher(alice: Alice) -> None:
    served(alice)
    before, init = alice.life("web"), alice.on_host("cat /run/user/1000/nodens/default/api/child_pid")
    inode = replace(alice, "nodens-rootless")
    alice.on_host("systemctl --user restart " + " ".join(alice.unit(part) for part in LAUNCHER))
    for part in LAUNCHER:
        alice.until(lambda part=part: alice.unit_state(part) == "active", f"{part} being back")
    assert alice.on_host(f"stat -Lc %i /proc/{alice.main_process('net')}/exe").strip() == inode, "the new program runs"
    assert alice.on_host("cat /run/user/1000/nodens/default/api/child_pid") == init, "the node itself goes on, with the init of before"
    still_served(alice, before)
