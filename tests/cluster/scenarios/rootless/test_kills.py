# SPDX-License-Identifier: Apache-2.0
"""Each part of a node is killed and the pods go on; `down` leaves nothing, and the next `up` brings the pods back."""
import contextlib
import shlex
import time
from collections.abc import Iterator

import pytest
from alice import HELPERS, HOST, IDS, PARTS, UID, Alice, web
from attack import server
from nodenstest.people import FOREVER, container, pod_spec
from outage import Traffic, away

pytestmark = pytest.mark.rootless
# What alice has without a node: her systemd and its companion, her bus, her ssh sessions.
SESSION = ("systemd", "(sd-pam)", "dbus-daemon", "dbus-broker", "sshd", "sshd-session", "ssh-agent", "sh", "bash", "ps")
LABELS = {"app": "web"}
OUTSIDE, HOST_PORT = 18091, 18081      # the pod's host port, published by hand under another number
AWAY = 2.0                             # seconds that a published port may not answer, beyond what the host itself does not
CONTROL = 19700                        # a server on the host, outside the node, for comparison
HELPER = "helper"                      # pasta alone, without the unit that supervises it


# One kill, of a process that is not the one killed before. It waits before the kill and not after it: each look is a
# request to the user manager, which at that time starts the next process, on the guest's only CPU.
KILL_UNIT = """
until test "$(systemctl --user show --value -p ActiveState {unit})" = active &&
        pid=$(systemctl --user show --value -p MainPID {unit}) && test $pid -ne 0 -a $pid -ne {last}; do sleep 0.2; done
systemctl --user kill --signal=KILL {unit}
echo $pid
"""
HELPER_PID = "nodens-rootless status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0][\"helper\"])'"
KILL_HELPER = f"""
until pid=$({HELPER_PID}) && test $pid -ne 0 -a $pid -ne {{last}}; do sleep 0.2; done
kill -KILL $pid
echo $pid
"""
# The launcher of a node without units. It adopts the node of its predecessor.
READY = """
until nodens-rootless status --json | grep -q '"ready": *true'; do
    kill -0 $(cat launcher.pid) || { tail -n 5 launch.log; exit 1; }
    sleep 0.2
done
"""
KILL_LAUNCHER = "pid=$(cat launcher.pid); test $pid -ne {last}; kill -KILL $pid; ./launch; {ready} echo $pid"


def prepare(alice: Alice) -> dict[str, int]:
    """A pod that answers at two ports of the host, by what published them."""
    if f"{OUTSIDE}:{HOST_PORT}" not in alice.on_host("nodens-rootless ports"):
        alice.on_host(f"nodens-rootless ports add {OUTSIDE}:{HOST_PORT}")
    # without a request, the pod has a hundredth of the share that each restarting program has of the guest's only CPU
    alice.apply("Pod", "web", spec=pod_spec({**web(hostPort=HOST_PORT), "resources": {"requests": {"cpu": "500m"}}}))
    alice.kubectl("label", "pod", "web", "app=web")
    alice.apply("Service", "web", spec={"type": "NodePort", "selector": LABELS, "ports": [{"port": 80, "targetPort": 8080}]})
    alice.ready("web")
    ports = {"by hand": OUTSIDE, "node port": alice.get("service", "web")["spec"]["ports"][0]["nodePort"]}
    for name, port in ports.items():
        alice.until(lambda port=port: alice.from_outside(f"http://{HOST}:{port}/hostname") == "web", f"an answer of the {name}")
    return ports


def kill(alice: Alice, part: str, kills: int, traffic: Traffic) -> None:
    """Each kill waits for answers of all ports to clients outside: what is measured is the absence after one kill."""
    script, last = {HELPER: KILL_HELPER, "launcher": KILL_LAUNCHER}.get(part, KILL_UNIT), 0
    for _ in range(kills):
        last = int(alice.on_host("set -e; " + script.format(unit=alice.unit(part), last=last, ready=READY)).split()[-1])
        traffic.settle()


def check_ports(traffic: Traffic, ports: dict[str, int], part: str, kills: int) -> None:
    """Prints and checks how long each port was away.

    A busy machine does not run the guest for seconds: then a server on its host does not answer either.
    """
    host = traffic.found(CONTROL)
    for name, port in ports.items():
        found = traffic.found(port)
        print(f"\n{kills} kills of {part}: {name} answered {found.good} times, failed {found.bad} times, longest gap {found.gap:.2f} s; "
              f"of the host {host.gap:.2f} s")
        assert found.good > 3, f"{name}: {found}"
        assert found.gap <= AWAY + host.gap, f"{name} was away for {found.gap:.2f} s: {found}; the host itself: {host}"


@contextlib.contextmanager
def watched(alice: Alice, ports: dict[str, int]) -> Iterator[Traffic]:
    """Clients of the ports, and of a server on the host itself."""
    with server(alice, "web", str(CONTROL), "0.0.0.0"), Traffic(alice, [*ports.values(), CONTROL]) as traffic:
        yield traffic


def go_on(alice: Alice, part: str, kills: int) -> None:
    """Kills a part under traffic. The pod of before lives on, its ports answer, and new pods start."""
    ports, before = prepare(alice), alice.life("web")
    with watched(alice, ports) as traffic:
        kill(alice, part, kills, traffic)
        check_ports(traffic, ports, part, kills)
    alice.until(alice.node_ready, "the node being Ready")
    alice.pod("later", container(FOREVER))
    alice.ready("later")
    assert alice.life("web") == before, "the pod's container was started again"
    assert alice.kubectl("exec", "web", "--", "/agnhost", "--help"), "exec into the pod from before"


@pytest.mark.parametrize("part", [*PARTS, *HELPERS, HELPER])
def test_pods_and_ports_go_on_when_a_part_is_killed(alice: Alice, part: str, kills: int) -> None:
    go_on(alice, part, kills)


def test_pods_and_ports_go_on_when_the_launcher_is_killed(alice: Alice, kills: int) -> None:
    """Without units, one process starts the others: `up --foreground`, which needs a delegated cgroup."""
    alice.on_host("nodens-rootless down")
    command = alice.on_host("tail -1 join").removeprefix("exec ").replace(" up ", " up --foreground ", 1).strip()
    scope = "systemd-run --user --quiet --scope -p Delegate=yes"
    script = f"#!/bin/sh\n{scope} {command} >>launch.log 2>&1 </dev/null &\necho $! >launcher.pid\n"
    alice.on_host(f"printf %s {shlex.quote(script)} >launch; chmod +x launch; ./launch; {READY}", timeout=600)
    try:
        alice.until(alice.node_ready, "the node being Ready")
        go_on(alice, "launcher", kills)
    finally:
        alice.on_host("nodens-rootless down; ./join", timeout=600)
        alice.until(alice.node_ready, "the node being Ready again")


def test_pods_go_on_while_the_api_server_is_away_and_their_status_catches_up(alice: Alice, api_away: int) -> None:
    ports, before = prepare(alice), alice.life("web")
    alice.pod("ends", container(f"sleep {api_away // 2}; echo done"), restartPolicy="Never")
    alice.ready("ends")
    with watched(alice, ports) as traffic, away(alice):
        time.sleep(api_away)
        check_ports(traffic, ports, "nothing, without an API server", 0)
        assert "web" in alice.in_node("nodens ps") if alice.cluster.record["runtime"] == "nodens" else True
    alice.phase("ends", "Succeeded")
    alice.until(alice.node_ready, "the node being Ready")
    assert alice.life("web") == before, "the pod's container was started again"
    alice.pod("later", container(FOREVER))
    alice.ready("later")


# The controller manager's metrics, as the administrator: the number that KEP-2033's objective is about.
UNHEALTHY = """
import re, ssl, urllib.request
context = ssl._create_unverified_context()
context.load_cert_chain("/run/cluster/pki/admin.crt", "/run/cluster/pki/admin.key")
text = urllib.request.urlopen("https://127.0.0.1:10257/metrics", context=context, timeout=20).read().decode()
print(sum(float(value) for value in re.findall(r"^node_collector_unhealthy_nodes_in_zone\\S* (\\S+)", text, re.MULTILINE)))
"""


def unhealthy_nodes(alice: Alice) -> float:
    done = alice.cluster.run(["python3", "-c", UNHEALTHY], timeout=60)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def down_and_up(alice: Alice) -> None:
    alice.until(lambda: unhealthy_nodes(alice) == 0, "no unhealthy node")
    alice.on_host("nodens-rootless down")
    alice.until(lambda: not alice.node_ready(), "the API server noticing")
    alice.until(lambda: unhealthy_nodes(alice) == 1, "the metric counting the node")
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
