# SPDX-License-Identifier: Apache-2.0
"""Ranges of user IDs for namespaces: one of several guards allocates them, even if leaders die."""
import base64
import contextlib
import json
import os
import random
import re
import subprocess
import threading
import time

import batch
import pytest
from conftest import Plane, guard_config, guard_running, scc, wait_until

UIDS = "openshift.io/sa.scc.uid-range"
MCS = "openshift.io/sa.scc.mcs"
FIRST_PORT = 9451
GUARDS = 3
NAMESPACES = int(os.environ.get("NODENS_GUARD_NAMESPACES", "500"))
KILLS = int(os.environ.get("NODENS_GUARD_KILLS", "4"))
# an API server that creates 10,000 namespaces at once delays all requests
PATIENCE = 120 if NAMESPACES <= 5000 else 180
# maximum of seconds that a leader works before it is killed
LIFE = 1.5 if NAMESPACES > 5000 else 0.4


def ranges(plane: Plane) -> dict[str, str | None]:
    items = json.loads(plane.kubectl("get", "namespaces", "-o", "json"))["items"]
    return {item["metadata"]["name"]: item["metadata"].get("annotations", {}).get(UIDS) for item in items}


def start(plane: Plane, stack: contextlib.ExitStack, number: int) -> object:
    name, port = f"ranges-{number}", FIRST_PORT + number % GUARDS
    guard_config(plane.one.state, name, port=port)
    return stack.enter_context(guard_running(plane, plane.one.state, name, port, PATIENCE))


def test_pods_use_the_block_and_level_of_their_namespace(plane: Plane) -> None:
    with contextlib.ExitStack() as stack:
        start(plane, stack, 0)
        plane.apply({"apiVersion": "v1", "kind": "Namespace",
                     "metadata": {"name": "ranged", "labels": {"security.nodens.io/constraints": "enforce"}}})
        plane.grant("ranged", "edit", "alice")
        wait_until(lambda: ranges(plane)["ranged"] is not None, "a range")
        found = json.loads(plane.kubectl("get", "namespace", "ranged", "-o", "json"))["metadata"]["annotations"]
        first = int(re.fullmatch(r"(1\d{5}0000)/10000", found[UIDS])[1])  # type: ignore[index]
        assert re.fullmatch(r"s0:c\d+,c\d+", found[MCS])
        pod = plane.eventually(lambda pod: scc(pod) == "restricted-v2", "the range in the guard's cache", "ranged", {})
        assert pod["spec"]["containers"][0]["securityContext"]["runAsUser"] == first


class Leaders:
    """The leader, as reported by the guards.

    It is polled all the time, so that a new leader can be killed at work.
    """

    def __init__(self, plane: Plane) -> None:
        self.process = subprocess.Popen(plane.one.command(["python3", "-B", "-u", "/nodens/tests/component/guard/talk.py", "leaders",
                                                           str(FIRST_PORT)]),
                                        stdout=subprocess.PIPE, text=True)

    def next(self) -> int:
        """The number of the next guard that becomes the leader."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the watcher of the leaders has ended"
        return int(line)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)


def make_all(plane: Plane, names: list[str]) -> None:
    answers = batch.run(plane.one, [{"method": "POST", "path": "/api/v1/namespaces", "body": {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}} for name in names], timeout=900)
    assert all(status == 201 for status, _, _, _ in answers)


@pytest.mark.slow
def test_every_namespace_gets_its_own_block_while_leaders_are_killed(plane: Plane) -> None:
    rng = random.Random(6)
    with contextlib.ExitStack() as stack:
        guards = [start(plane, stack, number) for number in range(GUARDS)]
        leaders = Leaders(plane)
        stack.callback(leaders.end)
        maker = threading.Thread(target=make_all, args=(plane, [f"many-{number}" for number in range(NAMESPACES)]))
        maker.start()
        for kill in range(KILLS):
            number = leaders.next()
            time.sleep(rng.uniform(0, LIFE))    # in the middle of its work
            guards[number].kill()   # type: ignore[attr-defined]
            guards[number].wait()   # type: ignore[attr-defined]
            guards[number] = start(plane, stack, GUARDS * (kill + 1) + number)
        maker.join()
        wait_until(lambda: None not in ranges(plane).values(), "a range for every namespace", 60 + NAMESPACES / 20)
    given = ranges(plane)
    ours = [text for text in given.values() if text != "1000650000/10000"]  # set by the other tests
    assert len(set(ours)) == len(ours) and sum(name.startswith("many-") for name in given) == NAMESPACES
    record = json.loads(plane.kubectl("get", "configmap", "-n", "nodens-system", "nodens-guard-ranges", "-o", "json"))["data"]["blocks"]
    bits = int.from_bytes(base64.b64decode(record), "little")
    blocks = {(int(text.split("/")[0]) - 1_000_000_000) // 10_000 for text in ours if text}
    assert all(bits >> block & 1 for block in blocks), "every block that was given is in the record"
    print(f"{NAMESPACES} namespaces, {KILLS} leaders killed: {len(blocks)} blocks, none twice, none lost")
