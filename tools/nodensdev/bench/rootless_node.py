# SPDX-License-Identifier: Apache-2.0
"""A rootless node in a cluster beside a rootful one: start of pods, and idle memory. Part of `tools/dev bench rootless`.

Both nodes are guests with the same kernel, kubelet and runtime (nodens-cri), run at once and take turns.
"""
import contextlib
import json
import os
import re
import statistics
import time
from collections.abc import Iterator
from typing import Any

from .. import cluster
from ..cluster import Cluster
from ..command import Failure

IMAGE = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
METRIC = "kubelet_pod_start_duration_seconds"
PODS, TURNS = 4, 5
OURS, HELPERS, APART = ("nodens",), ("pasta", "slirp4netns"), ("kubelet", "kube-proxy")
# Every process with its name and its proportional set size in KiB.
MEMORY = r"""
for p in $(ps -eo pid=); do
    size=$(awk '/^Pss:/{print $2}' /proc/$p/smaps_rollup 2>/dev/null) && [ -n "$size" ] &&
        echo "$size $(cat /proc/$p/comm) $(tr '\0\n' '  ' </proc/$p/cmdline)"
done; true
"""


def pod(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [
        {"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "command": ["sleep", "100000"]}]}}


def checked(where: Cluster, *arguments: str, stdin: str | None = None) -> str:
    done = where.kubectl(*arguments, stdin=stdin)
    if done.returncode != 0:
        raise Failure(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def starts(where: Cluster) -> tuple[float, int]:
    """Seconds and number of all starts of pods, as the kubelet counts them."""
    text = checked(where, "get", "--raw", "/api/v1/nodes/node1/proxy/metrics")
    found = {name: float(value) for name, value in re.findall(rf"^{METRIC}_(sum|count)\S* (\S+)$", text, re.MULTILINE)}
    return found.get("sum", 0.0), int(found.get("count", 0))


def turn(where: Cluster, number: int) -> float:
    """Mean seconds of the start of a few pods, one after the other."""
    seconds, count = starts(where)
    names = [f"start-{number}-{one}" for one in range(PODS)]
    for name in names:
        checked(where, "apply", "-f", "-", stdin=json.dumps(pod(name)))
        checked(where, "wait", "--for=condition=Ready", f"pod/{name}", "--timeout=240s")
    deadline = time.monotonic() + 60
    while starts(where)[1] < count + PODS:
        if time.monotonic() > deadline:
            raise Failure("the kubelet does not count the starts of pods")
        time.sleep(1)
    after, counted = starts(where)
    checked(where, "delete", "pod", *names, "--grace-period=0", "--force")
    return (after - seconds) / (counted - count)


def part_of(words: list[str]) -> str:
    """Which part of a node a process of ours is, by its command line."""
    program = words[0].split("/")[-1] if words else "?"
    if program != "nodens-rootless" or len(words) < 2:
        return program
    return {"hold": "init and monitors", "component": "outside of components"}.get(words[1], words[1])


def memory(where: Cluster) -> dict[str, float]:
    """PSS in MB of a node without pods: our own processes by their part, the helper, and what is not ours."""
    found: dict[str, float] = {}
    for line in where.node_exec(["sh", "-c", MEMORY]).stdout.splitlines():
        size, name, *command = line.split()
        if name.startswith(OURS):
            key = f"own: {part_of(command)}"
            for one in ("own", key):
                found[one] = found.get(one, 0) + int(size) / 1024
        elif name.startswith(HELPERS):
            found["helper"] = found.get("helper", 0) + int(size) / 1024
        elif name in APART:
            found[name] = found.get(name, 0) + int(size) / 1024
    return found


@contextlib.contextmanager
def started(rootless: bool) -> Iterator[Cluster]:
    name = f"bench-{'rootless' if rootless else 'rootful'}-{os.getpid()}"
    made = cluster.up(cluster.Options(name=name, runtime="nodens", kernel="uml-nft", rootless=rootless, timeout=900))
    try:
        yield made
    finally:
        made.end()


def run() -> dict[str, Any]:
    with started(False) as rootful, started(True) as rootless:
        time.sleep(20)      # until the node is idle
        idle = memory(rootless)
        rows = [{"rootful": turn(rootful, number), "rootless": turn(rootless, number)} for number in range(TURNS)]
    ratio = statistics.median(row["rootless"] / row["rootful"] for row in rows)
    return {"starts": rows, "start_ratio": ratio, "memory": idle, "pods": PODS}
