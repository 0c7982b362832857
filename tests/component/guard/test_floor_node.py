# SPDX-License-Identifier: Apache-2.0
"""Real kubelets below and above the version floor, on a node with nodens-cri: `tools/dev test floor-node`.

The API server asks the authorizer first, with failurePolicy Deny. node1 gets kubelets of several versions, as an upgrade or a
downgrade of its package would; node2 keeps the control plane's own.
"""
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Plane, guarded, scc, wait_until
from nodensdev import cluster
from nodensdev.cluster import switch
from nodensdev.cluster.controlplane import STATE
from nodensdev.cluster.options import Webhook
from nodensdev.project import TOP
from nodenstest.people import Person
from nodenstest.skew import NAMESPACE, REFUSED, outcome
from test_authorizer import authorizing, certificate, with_authorizer
from test_node import BUSYBOX

pytestmark = pytest.mark.node
OWN, NODE = switch.OWN, "node1"
BELOW = ("relinked", "1.29")
RECOVERY = 5        # seconds from the first report of an upgraded kubelet to its access
# The controller manager waits 50 s for a report; with leases alone, a node would be Ready again in this time.
QUIET = 130
PLAIN = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: Node, name: node}
- {type: RBAC, name: rbac}
"""
RELAXED = {
    "restricted-v3": {"runAsUser": 2000},
    "userns-root": {"runAsUser": 0},
    "nested-container": {"runAsUser": 1000, "procMount": "Unmasked", "capabilities": {"add": ["SETUID", "SETGID"]}},
}
HOST_IDS = "4294967295"     # of a process in the host's user namespace, in its uid_map


class Authorizer:
    """It can be stopped and started again."""

    def __init__(self, plane: Plane) -> None:
        self.plane, self.stack = plane, contextlib.ExitStack()

    def start(self) -> None:
        self.stack.enter_context(authorizing(self.plane))

    def stop(self) -> None:
        self.stack.close()


@pytest.fixture(scope="session")
def authorizer(unasked: Plane) -> Iterator[Authorizer]:
    made = Authorizer(unasked)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def unasked() -> Iterator[Plane]:
    """A cluster with a guard, and an authorizer that its API server does not know yet."""
    plain = TOP / "build/authorization-plain.yaml"
    plain.write_text(PLAIN)
    options = cluster.Options(name="floor-node", runtime="nodens", nodes=2, memory="2G", feature_gates=(), authorization_config=plain,
                              webhooks=(Webhook("guard", "exec sleep infinity"), Webhook("authorizer", "exec sleep infinity")))
    with guarded(options, allocateRanges=False) as plane:
        certificate(plane, "authorizer", "/CN=nodens-authorizer")
        plane.kubectl("apply", "-f", "-", stdin=plane.guard_output("manifest", "nodes"))
        asking = with_authorizer(options).authorization_config
        assert asking
        (plane.one.state / "authorization.new").write_text(asking.read_text())
        yield plane


@pytest.fixture(scope="session")
def staffed(unasked: Plane, authorizer: Authorizer) -> Plane:
    """A cluster whose API server asks the authorizer from now on."""
    plane, state = unasked, unasked.one.state
    (state / "authorization.new").replace(state / "authorization.yaml")
    restart_api_server(plane)
    wait_until(lambda: len(plane.one.ready_nodes()) == 2, "two nodes")
    wait_until(lambda: not may_list(plane, "nowhere"), "a lock by the authorizer")
    plane.namespace("relaxed")
    for name in RELAXED:
        plane.grant("relaxed", f"nodens:scc:{name}", "alice")
        plane.eventually(lambda pod, name=name: scc(pod) == name, f"the grant of {name}", "relaxed", pod_spec(name),
                         annotations={"security.nodens.io/required-scc": name})
    return plane


def restart_api_server(plane: Plane) -> None:
    plane.one.start_again("kube-apiserver")
    wait_until(lambda: switch.answers(plane.one, "kube-apiserver"), "the API server")


@pytest.fixture
def floor(staffed: Plane) -> Iterator[Plane]:
    """A floor of 1.30.0 and the control plane's own kubelet, before and after."""
    staffed.settled("1.30.0")
    yield staffed
    staffed.kubectl("delete", "pods", "--all", "-n", "relaxed", "--timeout=200s")
    switch.kubelet(staffed.one, OWN, {})
    staffed.set_floor("1.30.0", poolLabel="")
    staffed.settled("1.30.0")


def may_list(plane: Plane, name: str) -> bool:
    """Whether a client with the certificate of a node may list its pods, as its kubelet does."""
    if not (plane.one.state / f"{name}.kubeconfig").exists():
        certificate(plane, name, f"/O=system:nodes/CN=system:node:{name}")
    return plane.one.kubectl("--kubeconfig", f"{STATE}/{name}.kubeconfig", "get", "pods", "-A",
                             "--field-selector", f"spec.nodeName={name}").returncode == 0


def node(plane: Plane) -> dict[str, Any]:
    return json.loads(plane.kubectl("get", "node", NODE, "-o", "json"))["status"]


def version(plane: Plane) -> str:
    return node(plane)["nodeInfo"]["kubeletVersion"]


def condition(plane: Plane, kind: str) -> dict[str, str]:
    return next((one for one in node(plane)["conditions"] if one["type"] == kind), {"status": ""})


def is_ready(plane: Plane) -> bool:
    return condition(plane, "Ready")["status"] == "True"


def seconds_until(reached: Callable[[], bool], what: str, most: float | None = None) -> float:
    began = time.monotonic()
    wait_until(reached, what)
    took = time.monotonic() - began
    assert most is None or took <= most, f"{what}: {took:.1f} s, at most {most}"
    return took


def start(plane: Plane, kubelet: str) -> float:
    """Replaces the kubelet of node1; the seconds until its first report with the new version."""
    switch.put_program(plane.one, kubelet, 1)
    switch.kubelet(plane.one, kubelet, {}, ready=False)
    return seconds_until(lambda: version(plane) == switch.reported_version(kubelet), f"a report of kubelet {kubelet}")


def drain(plane: Plane) -> None:
    plane.kubectl("drain", NODE, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s")


def pod_spec(constraint: str, **more: Any) -> dict[str, Any]:
    """A pod whose log has its user namespace."""
    return {"hostUsers": False, "terminationGracePeriodSeconds": 1, "nodeSelector": {"kubernetes.io/hostname": NODE},
            "tolerations": [{"operator": "Exists"}], "containers": [
                {"name": "c", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", "cat /proc/self/uid_map; sleep 100000"],
                 "securityContext": RELAXED[constraint]}], **more}


def create(plane: Plane, name: str, constraint: str, **more: Any) -> None:
    made = plane.create("relaxed", pod_spec(constraint, **more), name=name, dry_run=False,
                        annotations={"security.nodens.io/required-scc": constraint})
    assert scc(made) == constraint and made["spec"]["hostUsers"] is False


def states(plane: Plane) -> dict[str, str]:
    items = json.loads(plane.kubectl("get", "pods", "-n", "relaxed", "-o", "json"))["items"]
    return {one["metadata"]["name"]: one["status"].get("phase", "") for one in items}


def on_node(plane: Plane, script: str) -> str:
    return switch.on_node(plane.one, 1, ["sh", "-c", script])


def started(plane: Plane) -> list[str]:
    """Logs of containers of the namespace on the node: the directory of each pod that was ever started, until it is deleted."""
    return on_node(plane, "ls -d /var/log/pods/relaxed_*/*/*.log 2>/dev/null || :").split()


def assert_no_host_users(plane: Plane) -> None:
    found = on_node(plane, f"grep -l {HOST_IDS} /var/log/pods/relaxed_*/*/*.log 2>/dev/null || :")
    assert not found, f"containers that ran with the host's users: {found}"


def stays_not_ready(plane: Plane) -> None:
    """For two periods of the controller manager, in which leases alone would make it Ready again."""
    wait_until(lambda: not is_ready(plane), "the end of Ready")
    end = time.monotonic() + QUIET
    while time.monotonic() < end:
        assert not is_ready(plane), f"the node flaps: {condition(plane, 'Ready')}"
        time.sleep(1)


@pytest.mark.parametrize("kubelet", BELOW)
def test_a_kubelet_below_the_floor_is_locked_at_once_and_recovers_by_itself(floor: Plane, kubelet: str) -> None:
    """Pods that are admitted meanwhile, and even bound to the node, do not start before it is upgraded."""
    drain(floor)
    start(floor, kubelet)
    lock = seconds_until(lambda: not may_list(floor, NODE), "the lock", RECOVERY)
    assert may_list(floor, "node2"), "other nodes are not concerned"
    floor.kubectl("uncordon", NODE)
    for name in RELAXED:
        create(floor, f"waits-{name}", name)
        create(floor, f"bound-{name}", name, nodeName=NODE)
    wait_until(lambda: condition(floor, "security.nodens.io/BelowVersionFloor")["status"] == "True", "the condition")
    assert "KubeletBelowVersionFloor" in floor.kubectl("get", "events", "-n", "default", "--field-selector", f"involvedObject.name={NODE}")
    assert floor.metrics()["nodens_guard_nodes_below_floor"] == 1
    stays_not_ready(floor)
    assert set(states(floor).values()) == {"Pending"} and not started(floor), states(floor)
    first = start(floor, OWN)
    access = seconds_until(lambda: may_list(floor, NODE), "access of the upgraded kubelet", RECOVERY)
    ready = seconds_until(lambda: is_ready(floor), "an upgraded node that is Ready", RECOVERY)
    wait_until(lambda: set(states(floor).values()) == {"Running"}, "the pods that waited")
    assert_no_host_users(floor)
    print(f"\nkubelet {switch.reported_version(kubelet)}: locked {lock:.1f} s after its report; upgraded: first report after "
          f"{first:.1f} s, access {access:.1f} s and Ready {ready:.1f} s later")


def test_a_kubelet_below_the_floor_cannot_join(floor: Plane) -> None:
    drain(floor)
    switch.put_program(floor.one, "1.29", 1)
    on_node(floor, "systemctl stop kubelet.service")
    floor.kubectl("delete", "node", NODE)
    moment = on_node(floor, "date +%s").strip()
    switch.kubelet(floor.one, "1.29", {}, ready=False)
    refused = f"journalctl -u kubelet.service --since=@{moment} --no-pager | grep -c 'is below the minimum 1.30.0' || :"
    wait_until(lambda: int(on_node(floor, refused)) >= 3, "three refusals in the kubelet's log", 200)
    assert NODE not in floor.kubectl("get", "nodes", "-o", "name")
    switch.kubelet(floor.one, OWN, {})
    assert may_list(floor, NODE)


@pytest.mark.parametrize(("kubelet", "expected"), [("1.32", REFUSED), ("1.33", NAMESPACE), ("1.34", NAMESPACE)])
def test_a_kubelet_above_the_floor_runs_the_pod_in_a_user_namespace_or_refuses_it(floor: Plane, kubelet: str, expected: str) -> None:
    """1.32 has the gate UserNamespacesSupport off."""
    drain(floor)
    switch.kubelet(floor.one, kubelet, {})
    floor.kubectl("uncordon", NODE)
    assert may_list(floor, NODE)
    for name in RELAXED:
        create(floor, f"on-{name}", name)
    if expected == NAMESPACE:
        wait_until(lambda: set(states(floor).values()) == {"Running"}, "the pods")
        assert len(started(floor)) == len(RELAXED)
    else:
        for name in ("restricted-v3", "userns-root"):
            assert outcome(Person(floor.one, "relaxed"), f"on-{name}").word == REFUSED
        assert not started(floor)
    assert_no_host_users(floor)


def refuses(plane: Plane, name: str) -> bool:
    """Whether admission refuses a pod of a relaxed constraint."""
    done = plane.one.kubectl("--as", "alice", "create", "--dry-run=server", "-f", "-", stdin=json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"dry-{name}", "namespace": "relaxed", "annotations": {
            "security.nodens.io/required-scc": name}}, "spec": pod_spec(name)}))
    return done.returncode != 0 and "version floor" in done.stderr


def test_a_floor_is_raised_and_lowered_in_two_phases_with_old_kubelets(floor: Plane) -> None:
    drain(floor)
    switch.kubelet(floor.one, "1.33", {})
    assert f"{NODE} (v1.33" in floor.set_floor("1.34.0", ok=False), "a floor above a kubelet is refused"
    switch.kubelet(floor.one, "1.34", {})
    floor.set_floor("1.34.0")
    floor.settled("1.34.0")
    start(floor, "1.33")
    seconds_until(lambda: not may_list(floor, NODE), "the lock", RECOVERY)
    floor.set_floor("1.33.0")
    floor.settled("1.33.0")
    seconds_until(lambda: may_list(floor, NODE), "access with the lowered floor", RECOVERY)
    wait_until(lambda: is_ready(floor), "Ready with the lowered floor")
    assert not any(refuses(floor, name) for name in RELAXED), "relaxations need 1.30.0"


def test_no_pod_that_relies_on_a_user_namespace_runs_on_a_kubelet_that_ignores_it(floor: Plane) -> None:
    """Kubelet 1.29.6 gives a pod with hostUsers: false the host's users: see docs/version-skew.md."""
    for name in RELAXED:
        create(floor, f"before-{name}", name)
    wait_until(lambda: set(states(floor).values()) == {"Running"}, "pods on the control plane's own kubelet")
    assert len(started(floor)) == len(RELAXED), "a container leaves a log"
    drain(floor)
    start(floor, "1.29")
    seconds_until(lambda: not may_list(floor, NODE), "the lock", RECOVERY)
    for name in RELAXED:
        create(floor, f"locked-{name}", name, nodeName=NODE)
    wait_until(lambda: not is_ready(floor), "the end of Ready")
    assert not started(floor)
    # Pods that were admitted with the former floor are deleted first, as docs/version-floor.md says.
    floor.kubectl("delete", "pods", "--all", "-n", "relaxed", "--force", "--grace-period=0")
    floor.set_floor("1.29.0")
    wait_until(lambda: all(refuses(floor, name) for name in RELAXED), "refusals at once, before the floor is settled")
    floor.settled("1.29.0")
    wait_until(lambda: may_list(floor, NODE) and is_ready(floor), "the node with the lowered floor")
    floor.kubectl("uncordon", NODE)
    assert all(refuses(floor, name) for name in RELAXED)
    ordinary = {"nodeSelector": {"kubernetes.io/hostname": NODE}, "terminationGracePeriodSeconds": 1, "containers": [
        {"name": "c", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sleep", "100000"]}]}
    made = floor.create("relaxed", ordinary, name="ordinary", dry_run=False)
    assert scc(made) == "restricted-v2" and made["spec"].get("hostUsers") is not False
    wait_until(lambda: states(floor).get("ordinary") == "Running", "an ordinary pod on 1.29.6")
    assert f"{NODE} (v1.29.6)" in floor.set_floor("1.30.0", ok=False)
    assert_no_host_users(floor)
    switch.kubelet(floor.one, OWN, {})
    floor.set_floor("1.30.0")
    floor.settled("1.30.0")
    wait_until(lambda: not any(refuses(floor, name) for name in RELAXED), "relaxations with the raised floor")


def test_a_cold_start_with_failure_policy_deny_ends(floor: Plane, authorizer: Authorizer) -> None:
    """API server, authorizer and kubelets stop; nodes are denied until the authorizer is back, and no person is needed."""
    for number in (1, 2):
        switch.on_node(floor.one, number, ["systemctl", "stop", "kubelet.service"])
    authorizer.stop()
    floor.one.start_again("kube-apiserver")
    moment = switch.now(floor.one, 1)
    for number in (1, 2):
        switch.on_node(floor.one, number, ["systemctl", "start", "kubelet.service"])
    wait_until(lambda: switch.answers(floor.one, "kube-apiserver"), "the API server, without the authorizer")
    assert not may_list(floor, NODE)
    floor.kubectl("create", "configmap", "cold", "-n", "kube-system", "--dry-run=server")
    authorizer.start()
    wait_until(lambda: all(switch.is_ready_since(floor.one, number, OWN, moment) for number in (1, 2)), "two nodes that are Ready")
