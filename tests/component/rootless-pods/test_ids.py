# SPDX-License-Identifier: Apache-2.0
"""Pods with user namespaces of their own in a node of an ordinary user, whose images are on the host's disk; and nodes with few IDs.

The node has two whole blocks of IDs, the node of `few` has 2,048 subordinate IDs and that of `one` none.
"""
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodenstest import in_node, machine
from nodenstest.machine import SUBID
from test_pods import Kubelet, inside_cgroup, owner_of

RUNNING = "1"       # CONTAINER_RUNNING


@contextlib.contextmanager
def kubelet_in_node(name: str, subids: str | None = None) -> Iterator[Kubelet]:
    before = {path: path.read_text() for path in (Path("/etc/subuid"), Path("/etc/subgid"))}
    try:
        for path in before if subids is not None else ():
            path.write_text(subids or "")
        with in_node.delegated_cgroup() as cgroup, inside_cgroup(cgroup), machine.node(name, "--bind", "/nodens:ro,/cache:ro") as node:
            made = Kubelet(node.name)
            try:
                yield made
            finally:
                made.end()
    finally:
        for path, text in before.items():
            path.write_text(text)


@pytest.fixture(scope="module")
def kubelet() -> Iterator[Kubelet]:
    with kubelet_in_node("ids") as made:
        yield made


@pytest.fixture(scope="module")
def two(kubelet: Kubelet) -> list[dict[str, str]]:
    return kubelet.ask("two_pods")


def maps_of(*command: str) -> list[list[str]]:
    """Both maps of a process, as the host sees them."""
    wanted = b"\0".join(word.encode() for word in command) + b"\0"
    found = next(path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if path.read_bytes() == wanted)
    return [line.split() for kind in ("uid_map", "gid_map") for line in (found / kind).read_text().splitlines()]


def test_the_status_says_that_pods_may_have_users_of_their_own(kubelet: Kubelet) -> None:
    status = kubelet.ask("status")
    assert all(status["users"].values()) and status["reason"] == "works"


def test_each_block_of_ids_has_a_pod_and_the_host_sees_its_own_range(kubelet: Kubelet, two: list[dict[str, str]]) -> None:
    for number, seen in enumerate(two, 1):
        first = SUBID + number * 65536 - 1      # ID 0 of the node is the user, 1 the first subordinate ID
        assert maps_of("sleep", str(987660 + number)) == [["0", str(first), "65536"]] * 2
        assert owner_of("sleep", str(987660 + number)) == first
        assert owner_of("sleep", str(987670 + number)) == first + 1000
        assert seen == {"user": "0", "map": f"0 {number * 65536} 65536", "busybox": "0:0", "tmp": "0:0", "file": "0"}


def test_ids_beyond_the_nodes_are_refused_and_so_are_those_of_another_pod(kubelet: Kubelet, two: list[dict[str, str]]) -> None:
    partly, far, used = kubelet.ask("third_pod")
    assert f"are not part of this rootless node, which has 0 to {machine.SUBIDS}" in partly and "give the node's user more" in partly
    assert "are not part of this rootless node" in far
    assert "in use by pod cri-test/own-2" in used


def test_maps_that_a_compromised_kubelet_asks_for_are_refused(kubelet: Kubelet, two: list[dict[str, str]]) -> None:
    assert len(kubelet.ask("strange_maps")) == 4


def test_a_pod_cannot_use_files_or_processes_of_another(kubelet: Kubelet, two: list[dict[str, str]]) -> None:
    tried = kubelet.ask("neighbour")
    assert tried.pop("owner") == "65534" and tried.pop("processes") == "0"
    assert set(tried.values()) == {"denied"}, tried


def test_a_hostile_image_gains_nothing_by_owners_and_bits(kubelet: Kubelet, two: list[dict[str, str]]) -> None:
    found = kubelet.ask("hostile_image")
    assert found["inside"] == ["suid 0:0 6755 1", "beyond 65534:65534 755 1", "of-next 65534:65534 644 1", "caps 0:0 755 2",
                               "link 0:0 755 2", "1000 1000:1000 644 1", "1"]
    assert found["copy"]["suid"] == [65536, 0o6755] and found["copy"]["1000"] == [65536 + 1000, 0o644]
    # neither an ID of the next pod nor root of the node with a set-user-ID bit
    assert found["copy"]["beyond"] == [0, 0o755] and found["copy"]["of-next"] == [0, 0o644] and "sda" not in found["copy"]
    # capabilities of the pod's root only: revision 3, root 65536
    assert found["capability"].startswith("01000003") and found["capability"].endswith("00000100")


def test_a_pod_cannot_change_the_copies_of_layers(kubelet: Kubelet, two: list[dict[str, str]]) -> None:
    assert kubelet.ask("vandal") == [True, True]


def test_volumes_of_the_pod_get_its_ids_and_others_are_refused(kubelet: Kubelet, two: list[dict[str, str]]) -> None:
    found = kubelet.ask("volumes")
    assert found["inside"] == ["0:2000:2770", "0:0:400", "0:0:644", "value", "0:2000"]
    assert found["outside"] == [[65536, 65536 + 2000], [65536, 65536 + 2000], [65536, 65536], [65536, 65536]]
    assert "volume '/var/lib/data-of-the-node' at '/disk'" in found["path"]
    assert "a rootless node can idmap only filesystems" in found["path"]
    assert found["untouched"] == [0, 0]


def test_images_may_be_removed_while_containers_of_them_start(kubelet: Kubelet, two: list[dict[str, str]]) -> None:
    found = kubelet.ask("race")
    assert set(found["ended"]) <= {"0", "refused"} and found["half"] == []


def test_copies_count_as_used_space_and_belong_to_blocks_with_pods(kubelet: Kubelet, two: list[dict[str, str]]) -> None:
    assert kubelet.ask("copies") == [65536, 131072]
    reported, walked = kubelet.ask("usage")
    assert abs(reported - walked) < walked / 10 + 1000000


def test_nothing_is_left_of_removed_pods(kubelet: Kubelet, two: list[dict[str, str]]) -> None:
    assert kubelet.ask("clean") == []


# ---- few IDs ----

FEW = {"few": f"worker:{SUBID}:2048\n", "one": "another:1:1\n"}


@pytest.fixture(scope="module", params=FEW)
def small(request: pytest.FixtureRequest) -> Iterator[tuple[str, Kubelet]]:
    with kubelet_in_node(request.param, FEW[request.param]) as made:
        yield request.param, made


@pytest.fixture(scope="module")
def said(small: tuple[str, Kubelet]) -> dict[str, Any]:
    return small[1].ask("few")


def test_a_node_with_few_ids_runs_busybox(small: tuple[str, Kubelet], said: dict[str, Any]) -> None:
    assert said["shell"] == ["0", "0:0", "0", "deny" if small[0] == "one" else "allow"]


def test_a_node_with_few_ids_runs_nginx(small: tuple[str, Kubelet]) -> None:
    page, state, log = small[1].ask("nginx")
    assert page == "served" and state == RUNNING, log


def test_users_beyond_the_range_are_refused_with_the_ids_that_exist(small: tuple[str, Kubelet], said: dict[str, Any]) -> None:
    ids = {"few": "0 to 2045, 65532 to 65534", "one": "0"}[small[0]]
    for user in ("3000", "60000"):
        assert f"user {user} does not exist on this rootless node, which has IDs {ids}: use one of these" in said["refused"][user]
    if small[0] == "few":
        assert said["nobody"] == "65534" and said["user"] == "1000"
    else:
        assert "user 65534 does not exist" in said["nobody"] and "user 1000 does not exist" in said["user"]


def test_with_one_id_changes_of_users_and_owners_have_no_effect(small: tuple[str, Kubelet], said: dict[str, Any]) -> None:
    assert said["drop"] == {"few": ["65534", "77"], "one": ["0", "0"]}[small[0]]


def test_a_pod_with_users_of_its_own_is_refused_on_a_node_with_few_ids(small: tuple[str, Kubelet], said: dict[str, Any]) -> None:
    assert "IDs 65536 to 131071 of the pod's user namespace are not part of this rootless node" in said["own"] \
        or "cannot run pods with a user namespace" in said["own"]


def test_files_of_images_with_other_owners_belong_to_root_without_special_bits(small: tuple[str, Kubelet]) -> None:
    squashed = {"few": ("5000", "200000"), "one": ("1000", "2000", "5000", "65534", "200000")}[small[0]]
    assert small[1].ask("owners") == [f"{name} 0:0 755" if name in squashed else f"{name} {name}:{name} 6755"
                                      for name in ("0", "1000", "2000", "5000", "65534", "200000")]
