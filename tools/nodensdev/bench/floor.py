# SPDX-License-Identifier: Apache-2.0
"""`tools/dev bench floor`: reviews of the authorizer, and admission that must ask a real API server."""
import json
import time
from pathlib import Path
from typing import Any

from .. import build, cluster
from ..cluster import addresses
from ..cluster.controlplane import STATE
from ..command import Failure
from ..env import chroot
from ..project import BUILD, TOP, commit
from . import priority, table
from .kyverno import checked

RESULTS = BUILD / "bench"
DOCUMENT = TOP / "docs/floor-benchmarks.md"
SCRIPT = "tests/component/guard/bench_floor.py"
GUARD = "/nodens/build/release/src/guard/nodens-guard"
NAMESPACES = 20         # of the load
API_SERVER_CPU = 0
P99_AIM_US, RATE_AIM, RATIO_AIM = 1000, 2000, 0.8

PAGE = """# Benchmarks of the authorizer and of access reviews

*Written by `tools/dev bench floor`; {date} UTC, commit {commit}, {cpus} cores.*

## Authorizer

`nodens-guard authorize` has one core, the load generator and the cluster have the others.
The cluster has {nodes:,} nodes (`tests/component/guard/fake_api.py`).
The load is SubjectAccessReviews of nodes, {bytes} bytes on average, one in ten of a node without a Node object, over 25 persistent
connections with TLS 1.3 on loopback.
Processed: from the complete request to its response, by the authorizer's histogram, rounded up to 50, 100, 200, 500, 1,000 us.
Round trips are measured by the load generator, including TLS, the kernel and the scheduler of a host with other work.

{authorizer}

## Admission that must ask

Each review is of another user and requires a constraint which the index of RBAC does not allow, so that it costs one
SubjectAccessReview of a stock API server, over HTTP/2.
The bare load sends the same SubjectAccessReviews with the same credentials, over one HTTP/2 connection, 25 and 100 in flight; the
better result counts.
The API server has one core, guard and load generators have the others.
Bare and admission loads take turns, {rounds} times; the ratio is the median.

{asking}
{tail}"""


def in_root(inside: chroot.Prepared, seconds: int, *more: str) -> dict[str, Any]:
    target = RESULTS / "floor-raw.json"
    target.unlink(missing_ok=True)
    with priority.raised("the machine's own"):
        code = inside.run(["python3", "-B", SCRIPT, "--seconds", str(seconds), *more, f"build/bench/{target.name}"])
    if code != 0 or not target.exists():
        raise Failure(f"the bench of the authorizer ended with {code}")
    found = json.loads(target.read_text())
    target.unlink()
    return found


def prepare(one: cluster.Cluster, inside: chroot.Prepared) -> dict[str, str]:
    """The guard's objects, its credentials, and the namespaces of the load."""
    def manifest(*parts: str) -> str:
        done = inside.capture([GUARD, "manifest", *parts])
        checked(done, "the guard's manifests")
        return done.stdout

    def apply(text: str) -> None:
        checked(one.kubectl("apply", "-f", "-", stdin=text), "kubectl apply")

    apply(manifest("crd"))
    checked(one.kubectl("wait", "--for=condition=Established", "crd/securitycontextconstraints.security.nodens.io",
                        "crd/nodeversionfloors.security.nodens.io"), "the guard's definitions")
    apply(manifest("constraints", "rbac"))
    apply("\n---\n".join(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": f"asking-{number}", "labels": {"security.nodens.io/constraints": "enforce"},
        "annotations": {"openshift.io/sa.scc.uid-range": f"{1_000_000_000 + number * 10_000}/10000",
                        "openshift.io/sa.scc.mcs": "s0:c26,c5"}}}) for number in range(NAMESPACES)))
    token = one.kubectl("create", "token", "nodens-guard", "-n", "nodens-system", "--duration=24h")
    checked(token, "the guard's token")
    (one.state / "guard.token").write_text(token.stdout.strip())
    admin = json.loads((one.state / "admin.kubeconfig").read_text())
    admin["users"] = [{"name": "admin", "user": {"tokenFile": "guard.token"}}]
    (one.state / "guard.kubeconfig").write_text(json.dumps(admin))
    return {"server": addresses.API_SERVER, "ca": f"{STATE}/pki/ca.crt", "token": f"{STATE}/guard.token",
            "kubeconfig": f"{STATE}/guard.kubeconfig"}


def pin_api_server(one: cluster.Cluster) -> None:
    """One core, so that the API server is the limit with and without the guard, and the priority of the load."""
    found = one.run(["pgrep", "-x", "kube-apiserver"])
    checked(found, "the API server's process")
    for pid in found.stdout.split():
        checked(one.run(["taskset", "-acp", str(API_SERVER_CPU), pid]), "taskset")
        one.run(["sh", "-c", f"renice -n {priority.NICE} -p $(ls /proc/{pid}/task); echo {priority.NICE} >/proc/{pid}/autogroup"])


def measure_asking(seconds: int) -> dict[str, Any]:
    one = cluster.up(cluster.Options(name="bench-floor", nodes=0, images=()))
    try:
        place = chroot.Chroot(root="build", netns=one.netns, binds=(chroot.Bind(one.state, STATE),))
        with chroot.prepared(place) as inside:
            access = prepare(one, inside)
            pin_api_server(one)
            return in_root(inside, seconds, "--cluster", json.dumps(access))
    finally:
        one.end()


def run(seconds: int) -> dict[str, Any]:
    RESULTS.mkdir(parents=True, exist_ok=True)
    with chroot.prepared(chroot.Chroot()) as inside:
        build.ensure(inside, "release")
        authorizer = in_root(inside, seconds)
    return {"commit": commit(), "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "authorizer": authorizer,
            "asking": measure_asking(seconds)}


def save(data: dict[str, Any]) -> Path:
    path = RESULTS / f"floor-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(data, indent=1))
    return path


def authorizer_rows(data: dict[str, Any]) -> list[list[str]]:
    one = data["authorizer"]
    return [["", "measured", "aim"],
            ["reviews/s on one core", f"{one['most']['per_second']:,}", ""],
            [f"at {RATE_AIM:,}/s: reached", f"{one['at_rate']['per_second']:,}", f"{RATE_AIM:,}"],
            ["99 % processed within (us)", f"{one['at_rate']['server_p99_us']:,}", f"less than {P99_AIM_US:,}"],
            ["round trips: median (us)", f"{one['at_rate']['p50_us']:,}", ""],
            ["99 % within (us)", f"{one['at_rate']['p99_us']:,}", f"less than {P99_AIM_US:,}"],
            ["99.9 % within (us)", f"{one['at_rate']['p999_us']:,}", ""],
            ["resident, maximum (MB)", f"{one['memory']['peak_rss']:.1f}", ""]]


def asking_rows(data: dict[str, Any]) -> list[list[str]]:
    found = [["round", "bare, access reviews/s", "admission, reviews/s", "access reviews of each", "ratio"]]
    for number, one in enumerate(data["asking"]["rounds"], 1):
        bare, ours = one["bare"], one["admission"]
        found.append([str(number), f"{bare['per_second']:,}", f"{ours['per_second']:,}", f"{ours['asked']:.2f}",
                      f"{ours['per_second'] / bare['per_second']:.2f}"])
    return found


def misses(data: dict[str, Any]) -> list[str]:
    """What was not reached, with its figure."""
    one, ratio = data["authorizer"]["at_rate"], data["asking"]["ratio"]
    found = []
    if one["per_second"] < 0.99 * RATE_AIM:
        found.append(f"authorizer: {one['per_second']:,} reviews/s, aim {RATE_AIM:,}")
    if one["server_p99_us"] >= P99_AIM_US:
        found.append(f"authorizer: 99 % processed within {one['server_p99_us']:,} us, aim {P99_AIM_US:,}")
    if one["p99_us"] >= P99_AIM_US:
        found.append(f"authorizer: 99 % of round trips within {one['p99_us']:,} us, aim {P99_AIM_US:,}; the 25 threads of the load "
                     f"generator wait for {data['authorizer']['cpus'] - 1} core, which has other work as well")
    if ratio < RATIO_AIM:
        found.append(f"admission that must ask: {ratio:.2f} x of the bare load, aim {RATIO_AIM}")
    return found


def as_text(data: dict[str, Any]) -> str:
    parts = []
    for lines in (authorizer_rows(data), asking_rows(data)):
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        parts.append("\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines))
    return "\n\n".join([*parts, f"median ratio: {data['asking']['ratio']:.2f}"])


def write_document(data: dict[str, Any]) -> None:
    missed = misses(data)
    tail = "Goals not met:\n\n" + "".join(f"- {one}\n" for one in missed) if missed else "All goals are met.\n"
    DOCUMENT.write_text(PAGE.format(
        date=data["date"], commit=data["commit"], cpus=data["authorizer"]["cpus"], nodes=data["authorizer"]["nodes"],
        bytes=data["authorizer"]["review_bytes"], authorizer=table.as_markdown(authorizer_rows(data)),
        rounds=len(data["asking"]["rounds"]), asking=table.as_markdown(asking_rows(data)),
        tail=f"\nMedian: {data['asking']['ratio']:.2f}, aim at least {RATIO_AIM}.\n\n{tail}"))
