# SPDX-License-Identifier: Apache-2.0
"""Each part of a node is killed and the pods go on; `down` leaves nothing, and the next `up` brings the pods back."""
import pytest
from alice import HELPERS, HOST, IDS, PARTS, UID, Alice, web
from nodenstest.people import FOREVER, container

pytestmark = pytest.mark.rootless
# What alice has without a node: her systemd and its companion, her bus, her ssh sessions.
SESSION = ("systemd", "(sd-pam)", "dbus-daemon", "dbus-broker", "sshd", "sshd-session", "ssh-agent", "sh", "bash", "ps")


OUTSIDE, HOST_PORT = 18091, 18081      # the pod's host port, published by hand under another number


@pytest.mark.parametrize("part", [*PARTS, *HELPERS])
def test_pods_live_on_when_a_part_is_killed(alice: Alice, part: str) -> None:
    if f"{OUTSIDE}:{HOST_PORT}" not in alice.on_host("nodens-rootless ports"):
        alice.on_host(f"nodens-rootless ports add {OUTSIDE}:{HOST_PORT}")
    alice.pod("web", web(hostPort=HOST_PORT))
    alice.ready("web")
    alice.until(lambda: alice.from_outside(f"http://{HOST}:{OUTSIDE}/hostname") == "web", "an answer of the pod")
    before, process = alice.life("web"), alice.main_process(part)
    assert process not in ("", "0"), f"{part} does not run"
    alice.on_host(f"systemctl --user kill --signal=KILL {alice.unit(part)}")
    alice.until(lambda: alice.main_process(part) not in ("0", process) and alice.unit_state(part) == "active", f"{part} being back")
    alice.until(lambda: alice.from_outside(f"http://{HOST}:{OUTSIDE}/hostname") == "web", "an answer of the pod")
    alice.until(alice.node_ready, "the node being Ready")
    alice.pod("later", container(FOREVER))
    alice.ready("later")
    assert alice.life("web") == before, "the pod's container was started again"
    assert alice.kubectl("exec", "web", "--", "/agnhost", "--help"), "exec into the pod from before"


def down_and_up(alice: Alice) -> None:
    alice.on_host("nodens-rootless down")
    alice.until(lambda: not alice.node_ready(), "the API server noticing")
    alice.on_host("./join", timeout=600)
    alice.until(alice.node_ready, "the node being Ready again")


def test_down_leaves_no_process_mount_or_cgroup(alice: Alice) -> None:
    alice.pod("web", web(), container(FOREVER, "beside"))
    alice.ready("web")
    mounts = alice.on_host("wc -l </proc/self/mountinfo", user="root")
    alice.on_host("nodens-rootless down")
    left = {pid: name for pid, (uid, name) in alice.processes().items()
            if uid in IDS or (uid == UID and name not in SESSION)}
    assert not left, f"processes that are left: {left}"
    assert alice.on_host("find /sys/fs/cgroup -path '*nodens-node@*' -o -path '*kubepods*' | head", user="root") == "", "cgroups are left"
    assert alice.on_host("wc -l </proc/self/mountinfo", user="root") == mounts, "mounts are left"
    state = alice.on_host("find /run/user/1000/nodens ! -type d -printf '%f\\n' 2>/dev/null || true").split()
    assert set(state) <= {"lock", "up.conf"}, f"sockets or credentials are left: {state}"
    alice.on_host("./join", timeout=600)
    alice.until(alice.node_ready, "the node being Ready again")


def test_pods_come_back_after_down_and_up(alice: Alice) -> None:
    alice.pod("web", web(), container(FOREVER, "beside"))
    alice.ready("web")
    before = alice.life("web")
    down_and_up(alice)
    alice.until(lambda: alice.life("web") != before, "a new container")
    alice.ready("web")
