# SPDX-License-Identifier: Apache-2.0
"""Throughput of kubectl exec with nodens-cri and with containerd: `tools/dev test throughput`.

Two clusters with the same kubelet take turns.
"""
import json
import os
import statistics
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodensdev import cluster
from nodenstest.people import FOREVER, Person, container

pytestmark = pytest.mark.throughput
MIB, TURNS = 64, 7


@pytest.fixture(scope="module")
def people() -> Iterator[dict[str, Person]]:
    made: dict[str, cluster.Cluster] = {}
    try:
        for runtime in ("nodens", "containerd"):
            made[runtime] = cluster.up(cluster.Options(name=f"throughput-{runtime}-{os.getpid()}", runtime=runtime))
        found = {}
        for runtime, one in made.items():
            found[runtime] = Person(one, f"story-{uuid.uuid4().hex[:8]}")
            found[runtime].kubectl("create", "namespace", found[runtime].namespace)
            found[runtime].pod("source", container(FOREVER), hostUsers=False)
            found[runtime].ready("source", 120)
        yield found
    finally:
        for one in made.values():
            one.end()


def seconds(person: Person, command: str) -> float:
    words = person.cluster.kubectl_command(f"--namespace={person.namespace}", "exec", "source", "--", "sh", "-c", command)
    started = time.perf_counter()
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=120)
    took = time.perf_counter() - started
    assert done.returncode == 0 and len(done.stdout) == (MIB << 20 if "head" in command else 0)
    return took


def test_as_much_goes_through_exec_as_with_containerd(people: dict[str, Person], request: pytest.FixtureRequest) -> None:
    bulk: dict[str, list[float]] = {name: [] for name in people}
    empty: dict[str, list[float]] = {name: [] for name in people}
    for turn in range(-1, TURNS):
        for name, person in (list(people.items()) if turn % 2 else list(people.items())[::-1]):
            nothing, all_of_it = seconds(person, "true"), seconds(person, f"head -c {MIB << 20} /dev/zero")
            if turn >= 0:
                empty[name].append(nothing)
                bulk[name].append(all_of_it)
    rates = {name: MIB / statistics.median(found) for name, found in bulk.items()}
    found = {"date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "mib_per_s": rates, "ratio": rates["nodens"] / rates["containerd"],
             "exec_s": {name: statistics.median(times) for name, times in empty.items()}}
    print(json.dumps(found, indent=1))
    if path := request.config.getoption("--figures"):
        Path(path).write_text(json.dumps(found))
