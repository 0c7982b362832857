# SPDX-License-Identifier: Apache-2.0
"""The testbed: a real cluster on one machine, with stock Kubernetes and containerd as the baseline."""
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from nodensdev import cluster
from nodensdev.checks.prove import Proof, check, count_line
from nodensdev.env import cache

WARM_LIMIT = 60.0                    # seconds to a Ready node
IMAGE = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
SHOW_MAP = ["sh", "-c", "cat /proc/self/uid_map; sleep 1000"]
HOST_MAP = ["0", "0", "4294967295"]


@contextmanager
def a_cluster(proof: Proof) -> Iterator[tuple[cluster.Cluster, float]]:
    """A cluster of the check's own, and the seconds that it took to come up."""
    name = f"prove-{os.getpid()}"
    started = time.monotonic()
    try:
        proof.dev("cluster", "up", "--runtime", "containerd", "--name", name, timeout=3600)
        yield cluster.find(name), time.monotonic() - started
    finally:
        proof.dev("cluster", "down", "--name", name)


def uid_map(proof: Proof, one: cluster.Cluster, name: str, **spec: bool) -> list[str]:
    """Runs a pod that prints its uid_map."""
    container = {"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "command": SHOW_MAP}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}
    wait = ("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=90s")
    for arguments, stdin in ((("apply", "-f", "-"), json.dumps(pod)), (wait, None)):
        done = one.kubectl(*arguments, stdin=stdin, timeout=120)
        proof.note(done.stdout + done.stderr)
        proof.expect(done.returncode == 0, f"the pod {name} becomes Ready")
    return one.kubectl("logs", name).stdout.split()


@check("the doctor finds everything that the testbed needs")
def doctor(proof: Proof) -> None:
    proof.dev("doctor")


@check("with warm caches a node is Ready in under 60 s; pods with hostUsers:false have a uid_map of their own, "
       "with the host's network too")
def warm_cluster(proof: Proof) -> None:
    with a_cluster(proof):
        pass  # fills the caches
    with a_cluster(proof) as (one, seconds):
        proof.figure("Ready after", f"{seconds:.1f} s")
        proof.expect(seconds < WARM_LIMIT, f"the cluster is up within {WARM_LIMIT:.0f} s")
        own = uid_map(proof, one, "own-ids", hostUsers=False)
        proof.figure("uid_map", " ".join(own))
        proof.expect(len(own) == 3 and own[1] != "0" and own[2] == "65536", "a pod with hostUsers:false is mapped to IDs of its own")
        proof.expect(uid_map(proof, one, "host-ids", hostUsers=True) == HOST_MAP, "a pod with hostUsers:true has the host's map")
        both = uid_map(proof, one, "host-network", hostUsers=False, hostNetwork=True)
        proof.expect(len(both) == 3 and both[1] not in ("0", own[1]), "so is one with hostNetwork")


@check("from nothing (an empty cache, nothing compiled by Go) to a Ready node", full_only=True)
def cold_cluster(proof: Proof) -> None:
    with cache.scratch("cold") as directory:
        name = f"cold-{os.getpid()}"
        (directory / "go").mkdir()
        environment = ["env", f"NODENS_CACHE={directory}/nodens", f"GOCACHE={directory}/go"]
        started = time.monotonic()
        try:
            proof.machine([*environment, "tools/dev", "cluster", "up", "--runtime", "containerd", "--name", name], timeout=5400)
            proof.figure("Ready after", f"{(time.monotonic() - started) / 60:.1f} min")
        finally:
            proof.machine([*environment, "tools/dev", "cluster", "down", "--name", name])


@check("upstream's user namespace tests pass on containerd")
def userns_set(proof: Proof) -> None:
    done = proof.dev("e2e", "userns", "--runtime", "containerd", timeout=1800)
    proof.figure("e2e", count_line(done.stdout))


@check("upstream's node conformance tests on containerd, with what is excluded and why", full_only=True)
def node_set(proof: Proof) -> None:
    done = proof.dev("e2e", "node", "--runtime", "containerd", timeout=7200, expect=None)
    proof.figure("e2e", count_line(done.stdout))
    proof.expect(re.search(r"\d+ passed", done.stdout) is not None, "the suite ran to its end and counted")


@check("our own images (whiteouts, opaque directories, capabilities, high IDs, zstd) come out as they say, with and without a user "
       "namespace")
def own_images(proof: Proof) -> None:
    done = proof.dev("e2e", "own-images", "--runtime", "containerd", timeout=1800)
    proof.figure("images", count_line(done.stdout))


@check("no excluded test would pass", full_only=True)
def exclusions(proof: Proof) -> None:
    done = proof.dev("e2e", "node", "--check-excluded", timeout=7200)
    proof.figure("excluded", done.stdout.splitlines()[-1])


@check("two benchmark runs agree in their ratios within 15 %")
def benchmark(proof: Proof) -> None:
    for _ in range(2):
        proof.dev("bench", "cri", "--runtime", "containerd", timeout=1800)
    proof.figure("compare", count_line(proof.dev("bench", "compare").stdout))


@check("guests and clusters survive hangs, panics, interrupts, two at once, and leave nothing behind")
def abuse(proof: Proof) -> None:
    proof.suites("testbed", timeout=1800)


@check("the same on Debian's own kernel", full_only=True)
def abuse_on_debian(proof: Proof) -> None:
    proof.suites("testbed-slow", timeout=1800)


@check("CI boots guests and clusters and runs the user namespace tests", full_only=True)
def ci_smoke(proof: Proof) -> None:
    done = proof.machine([".ci/run", "--only", "testbed"], timeout=3600)
    proof.expect("2 passed, 0 failed" in done.stdout.splitlines(), "both steps of .ci/run pass")
