# SPDX-License-Identifier: Apache-2.0
"""Ranges of user IDs for namespaces: one guard of several gives them, whoever dies."""
import base64
import contextlib
import json
import re
import time

from conftest import Plane, guard_config, guard_running, scc, wait_until

UIDS = "openshift.io/sa.scc.uid-range"
MCS = "openshift.io/sa.scc.mcs"
FIRST_PORT = 9451
GUARDS = 3
NAMESPACES = 300
KILLS = 6


def ranges(plane: Plane) -> dict[str, str | None]:
    items = json.loads(plane.kubectl("get", "namespaces", "-o", "json"))["items"]
    return {item["metadata"]["name"]: item["metadata"].get("annotations", {}).get(UIDS) for item in items}


def start(plane: Plane, stack: contextlib.ExitStack, number: int) -> object:
    name, port = f"ranges-{number}", FIRST_PORT + number % GUARDS
    guard_config(plane.one.state, name, port=port)
    return stack.enter_context(guard_running(plane, plane.one.state, name, port))


def test_a_namespace_gets_a_block_and_its_level_and_pods_use_them(plane: Plane) -> None:
    with contextlib.ExitStack() as stack:
        start(plane, stack, 0)
        plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ranged", "labels": {"security.nodens.io/constraints": "enforce"}}})
        plane.grant("ranged", "edit", "alice")
        wait_until(lambda: ranges(plane)["ranged"] is not None, "a range", 40)
        found = json.loads(plane.kubectl("get", "namespace", "ranged", "-o", "json"))["metadata"]["annotations"]
        first = int(re.fullmatch(r"(1\d{5}0000)/10000", found[UIDS])[1])  # type: ignore[index]
        assert re.fullmatch(r"s0:c\d+,c\d+", found[MCS])
        time.sleep(1)
        pod = plane.create("ranged", {})
        assert scc(pod) == "restricted-v2" and pod["spec"]["containers"][0]["securityContext"]["runAsUser"] == first


def test_no_block_is_given_twice_and_none_is_missing_though_leaders_are_killed(plane: Plane) -> None:
    made = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"many-{number}"}} for number in range(NAMESPACES)]
    with contextlib.ExitStack() as stack:
        guards = [start(plane, stack, number) for number in range(GUARDS)]
        for kill in range(KILLS):
            part = made[kill * NAMESPACES // KILLS:(kill + 1) * NAMESPACES // KILLS]
            plane.apply(*part)
            victim = guards[kill % GUARDS]
            victim.kill()   # type: ignore[attr-defined]
            victim.wait()   # type: ignore[attr-defined]
            guards[kill % GUARDS] = start(plane, stack, GUARDS + kill)
        wait_until(lambda: None not in ranges(plane).values(), "a range for every namespace", 120)
    given = list(ranges(plane).values())
    ours = [text for text in given if text != "1000650000/10000"]   # what the other tests wrote themselves
    assert len(set(ours)) == len(ours) >= NAMESPACES
    record = json.loads(plane.kubectl("get", "configmap", "-n", "nodens-system", "nodens-guard-ranges", "-o", "json"))["data"]["blocks"]
    bits = int.from_bytes(base64.b64decode(record), "little")
    blocks = {(int(text.split("/")[0]) - 1_000_000_000) // 10_000 for text in ours if text}
    assert all(bits >> block & 1 for block in blocks), "every block that was given is in the record"
