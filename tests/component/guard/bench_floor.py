# SPDX-License-Identifier: Apache-2.0
"""Load on the authorizer, and on admission that must ask a real API server.

    tools/dev bench floor          runs this in the Debian root, prints the figures and writes them
                                   into docs/floor-benchmarks.md

The authorizer has one core and the nodes of the large cluster of fake_api.py. For admission, the API server has one core; the
guard and the load have the others. Each review is of another user and requires a constraint that the user may not use, so
that it costs one SubjectAccessReview. The bare load sends the same SubjectAccessReviews with the same credentials.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bench

RATE = 2000
NODES = 5000
USERS = 60_000
ROUNDS = 3
CONSTRAINT = "userns-root"
NAMESPACES = 20
IN_FLIGHT = (25, 100)       # of the bare load; the better one counts
# What kubelets of unlocked nodes do most.
REQUESTS: tuple[dict[str, str], ...] = (
    {"verb": "update", "group": "coordination.k8s.io", "resource": "leases", "namespace": "kube-node-lease"},
    {"verb": "patch", "resource": "nodes", "subresource": "status"},
    {"verb": "get", "resource": "nodes"},
    {"verb": "list", "resource": "pods"},
    {"verb": "watch", "resource": "configmaps", "namespace": "team-1", "name": "settings"},
    {"verb": "patch", "resource": "pods", "subresource": "status", "namespace": "team-1", "name": "web-1"},
    {"verb": "create", "resource": "serviceaccounts", "subresource": "token", "namespace": "team-1", "name": "default"},
)


def access_review(user: str, groups: list[str], attributes: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": groups, "resourceAttributes": attributes}}


def write_lines(path: Path, made: list[dict[str, Any]]) -> int:
    lines = [json.dumps(one, separators=(",", ":")) for one in made]
    path.write_text("\n".join(lines) + "\n")
    return sum(map(len, lines)) // len(lines)


def node_reviews(path: Path) -> int:
    """One in ten is of a node without an object, which is locked."""
    rng, made = random.Random(7), []
    for number in range(20_000):
        name = f"node-{rng.randrange(NODES) + (NODES if number % 10 == 0 else 0)}"
        request = dict(rng.choice(REQUESTS), version="v1")
        if request["resource"] in ("nodes", "leases"):
            request["name"] = name
        made.append(access_review(f"system:node:{name}", ["system:nodes", "system:authenticated"], request))
    return write_lines(path, made)


def counted(verdict: str) -> int:
    return next((int(line.split()[-1]) for line in bench.fetch("/metrics").splitlines()
                 if line.startswith(f'nodens_guard_reviews_total{{flow="authorize",verdict="{verdict}"}}')), 0)


def measure_authorizer(builds: Path, where: Path, seconds: int) -> dict[str, Any]:
    found: dict[str, Any] = {"review_bytes": node_reviews(where / "nodes"), "nodes": NODES, "rate": RATE}
    bench.write_config(where, True)
    settings = json.loads((where / "guard.yaml").read_text())
    (where / "authorizer.yaml").write_text(json.dumps(
        {key: settings[key] for key in ("clientCA", "port", "certificate", "key", "kubeconfig")}))
    log = where / "log"
    with bench.large_cluster(where, bench.other_cpus(), log):
        with bench.running([str(builds / "src/guard/nodens-guard"), "authorize", "--config", str(where / "authorizer.yaml")],
                           str(bench.GUARD_CPU), log) as authorizer:
            found["ready_seconds"] = bench.wait_ready(authorizer, log)
            bench.load(builds, "/authorize", where / "nodes", 1)
            found["most"] = bench.load(builds, "/authorize", where / "nodes", seconds)
            before, denied, passed = bench.server_times(), counted("refused"), counted("allowed")
            found["at_rate"] = bench.load(builds, "/authorize", where / "nodes", seconds, RATE)
            found["at_rate"]["server_p99_us"] = bench.server_percentile(before, bench.server_times(), 0.99)
            found["denied"] = counted("refused") - denied
            found["memory"] = bench.memory(authorizer.pid)
            found["passed"] = counted("allowed") - passed
            if found["at_rate"]["allowed"] or not 0 < found["denied"] < found["passed"]:
                raise SystemExit(f"the authorizer granted something, or its verdicts are not those of the reviews: {found}")
    return found


# ---- admission that asks ----

def users(where: Path) -> None:
    """The admission reviews, and the access reviews that they cost."""
    rng, pods, bare = random.Random(7), [], []
    for number in range(USERS):
        made = bench.review(rng, number)
        request = made["request"]
        request["namespace"] = request["object"]["metadata"]["namespace"] = f"asking-{number % NAMESPACES}"
        request["object"]["spec"]["hostUsers"] = False
        request["object"]["metadata"]["annotations"] = {"security.nodens.io/required-scc": CONSTRAINT}
        request["userInfo"] = {"username": f"user-{number}", "groups": ["group", "system:authenticated"]}
        pods.append(made)
        bare.append(access_review(f"user-{number}", ["group", "system:authenticated"], {
            "namespace": request["namespace"], "verb": "use", "group": "security.nodens.io", "resource": "securitycontextconstraints",
            "name": CONSTRAINT}))
    write_lines(where / "pods", pods)
    write_lines(where / "bare", bare)


def sent() -> int:
    return next(int(line.split()[-1]) for line in bench.fetch("/metrics").splitlines()
                if line.startswith("nodens_guard_access_reviews_total "))


def bare_load(builds: Path, cluster: dict[str, str], where: Path, in_flight: int, seconds: int) -> dict[str, Any]:
    done = subprocess.run(["taskset", "-c", bench.other_cpus(), str(builds / "tests/component/guard/access-load"),
                           f"{cluster['server']}/apis/authorization.k8s.io/v1/subjectaccessreviews", cluster["ca"], cluster["token"],
                           str(where / "bare"), str(in_flight), str(seconds)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def admission_load(builds: Path, where: Path, seconds: int) -> dict[str, Any]:
    before = sent()
    one = bench.load(builds, "/mutate", where / "pods", seconds)
    one["asked"] = (sent() - before) / one["reviews"]
    if one["allowed"] or not 0.95 <= one["asked"] <= 1.1:
        raise SystemExit(f"a review of a user without rights must be denied and cost one access review: {one}")
    return one


def measure_asking(builds: Path, where: Path, cluster: dict[str, str], seconds: int) -> dict[str, Any]:
    """Bare and admission loads in turn; a denial is cached for 30 seconds."""
    users(where)
    (where / "guard.yaml").write_text(json.dumps({
        "clientCA": "none", "address": "127.0.0.1", "port": bench.GUARD_PORT, "certificate": str(where / "crt"), "key": str(where / "key"),
        "kubeconfig": cluster["kubeconfig"], "allocateRanges": False, "namespace": "nodens-system"}))
    log, rounds = where / "log", []
    with bench.running([str(builds / "src/guard/nodens-guard"), "serve", "--config", str(where / "guard.yaml")], bench.other_cpus(),
                       log) as guard:
        bench.wait_ready(guard, log)
        bare_load(builds, cluster, where, IN_FLIGHT[0], 2)
        for _ in range(ROUNDS):
            bare = [bare_load(builds, cluster, where, number, seconds) for number in IN_FLIGHT]
            rounds.append({"bare": max(bare, key=lambda one: one["per_second"]), "admission": admission_load(builds, where, seconds)})
            wait_until_forgotten(seconds)
    ratios = sorted(one["admission"]["per_second"] / one["bare"]["per_second"] for one in rounds)
    return {"rounds": rounds, "ratio": ratios[len(ratios) // 2], "ratios": ratios}


def wait_until_forgotten(seconds: int) -> None:
    """The next round's users are the same."""
    time.sleep(max(0.0, 31 - len(IN_FLIGHT) * seconds))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--builds", type=Path, default=Path("build/release"))
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--cluster", help="server, ca, token and kubeconfig of a real API server, as JSON: measures admission that asks")
    parser.add_argument("result", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch)
        bench.certificate(where)
        found = (measure_asking(args.builds, where, json.loads(args.cluster), args.seconds) if args.cluster
                 else measure_authorizer(args.builds, where, args.seconds))
        args.result.write_text(json.dumps({"cpus": len(os.sched_getaffinity(0)), **found}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
