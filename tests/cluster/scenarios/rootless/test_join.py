# SPDX-License-Identifier: Apache-2.0
"""A node of alice's in the cluster: what the API server and the host see of it."""
import pytest
from alice import HELPERS, HOST, IDS, PARTS, UID, Alice

pytestmark = pytest.mark.rootless
LABEL = "kubernetes.io/running-in-user-namespace"


def test_the_node_is_ready_under_the_hosts_address(alice: Alice) -> None:
    alice.until(alice.node_ready, "the node being Ready")
    addresses = {one["type"]: one["address"] for one in alice.node()["status"]["addresses"]}
    assert addresses["InternalIP"] == HOST, addresses


def test_the_node_has_the_label_of_nodes_in_a_user_namespace(alice: Alice) -> None:
    alice.until(lambda: alice.node()["metadata"]["labels"].get(LABEL) == "true", f"the label {LABEL}")


def test_every_process_of_the_node_belongs_to_alice_or_to_her_subordinate_ids(alice: Alice) -> None:
    inside = {int(line.split()[0]) for line in alice.in_node("ps -eo pid=,comm=").splitlines()}
    assert len(inside) >= len(PARTS), inside
    found = alice.processes()
    of_node = {name for uid, name in found.values() if uid == UID or uid in IDS}
    assert {"kubelet", "kube-proxy"} <= of_node, of_node
    programs = ("kubelet", "kube-proxy", "containerd", "nodens-cri", "nodens-mon", "crun")
    foreign = [name for uid, name in found.values() if uid != UID and uid not in IDS and name in programs]
    assert not foreign, f"these have another user: {foreign}"


def test_each_part_is_a_unit_of_alices_systemd_and_all_of_them_are_healthy(alice: Alice) -> None:
    for part in (*PARTS, *HELPERS):
        alice.until(lambda part=part: alice.unit_state(part) == "active", f"the unit of {part} being active")
    assert alice.on_host("systemctl --user is-system-running || true").strip() == "running"


def test_status_names_the_node(alice: Alice) -> None:
    assert "default" in alice.on_host("nodens-rootless status")
