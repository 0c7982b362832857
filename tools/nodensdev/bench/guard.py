# SPDX-License-Identifier: Apache-2.0
"""`tools/dev bench guard`: reviews a second, their times and the guard's memory, with a large cluster behind it."""
import json
import time
from pathlib import Path
from typing import Any

from .. import build
from ..command import Failure
from ..env import chroot, goprograms
from ..project import BUILD, TOP, commit
from . import kyverno, pictures, priority, table

RESULTS = BUILD / "bench"
DOCUMENT = TOP / "docs/guard-benchmarks.md"
TEAMS = 2000     # namespaces that the load's pods are in
MEMORY_RATIO_AIM, RATE_RATIO_AIM = 0.2, 5.0    # to Kyverno
RATE_AIM, P99_AIM_US, RSS_AIM_MB, ANONYMOUS_AIM_MB = 10_000, 1000, 24.0, 12.0

METHOD = """# Benchmarks of nodens-guard

*Written by `tools/dev bench guard`; {date} UTC, commit {commit}.*

- nodens-guard has one core, the load generator and the cluster have the others of {cpus}.
  The load is AdmissionReviews of new pods, {bytes} bytes on average, from 2,000 namespaces and users, over 25 persistent
  connections with TLS 1.3 on loopback.
- The cluster has 10,000 namespaces, 30,000 RoleBindings, 500 constraints, 5,000 nodes and 2,000 roles.
  A program generates them on request (`tests/component/guard/fake_api.py`), because an API server with these objects does not
  fit beside the measurement.
  The guard reads no pods, so the 150,000 pods of such a cluster would change nothing.
- *index*: the configuration has `rbacOnly`, so the index of RBAC also decides denials.
  *asking*: without it, a denial costs a SubjectAccessReview for each constraint that fits, once in 30 seconds for each user and
  namespace: about twenty for the first pod of each of them here.
  A Python program on the load generator's core answers them, over HTTP/1.1.
- Round trips are measured by the load generator, including TLS and the kernel.
  The goal is for the server's own time, from the complete request to its response, which is in its histogram at /metrics, rounded
  up to 50, 100, 200, 500, 1,000, 2,000, 5,000 ... us.
- Server, load generator and cluster run at a high priority, beside other work of the host.
- Memory is reported by the kernel: the highest resident set, and the anonymous part, sampled every 5 ms while all lists are read
  again.

"""


def run(seconds: int, with_kyverno: bool = False) -> dict[str, Any]:
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / "guard-raw.json"
    target.unlink(missing_ok=True)
    peer = goprograms.ensure("pod-security")
    with chroot.prepared(chroot.Chroot(holds=(peer,))) as inside:
        build.ensure(inside, "release")
        program = chroot.seen_inside(peer / "webhook")
        with priority.raised("the machine's own"):
            code = inside.run(["python3", "-B", "tests/component/guard/bench.py", "--builds", "build/release", "--seconds", str(seconds),
                               "--peer", str(program),
                               f"build/bench/{target.name}"])
    if code != 0 or not target.exists():
        raise Failure(f"the bench of the guard ended with {code}")
    measured = json.loads(target.read_text())
    if with_kyverno:
        measured["kyverno"] = kyverno.measure(seconds, TEAMS, target)
    target.unlink()
    return {"commit": commit(), "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), **measured}


def save(data: dict[str, Any]) -> Path:
    path = RESULTS / f"guard-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(data, indent=1))
    return path


def rows(data: dict[str, Any]) -> list[list[str]]:
    both = [data["index"], data["asking"]]

    def line(title: str, aim: str, value: Any) -> list[str]:
        return [title, *(value(one) for one in both), aim]

    return [
        ["", "index", "asking", "aim"],
        line("reviews/s on one core: /mutate", f"{RATE_AIM:,}", lambda one: f"{one['mutate']['per_second']:,}"),
        line("/validate", f"{RATE_AIM:,}", lambda one: f"{one['validate']['per_second']:,}"),
        line("/pod-security", f"{RATE_AIM:,}", lambda one: f"{one['pod_security']['per_second']:,}"),
        line("/mutate at 5,000/s: reached", "5,000", lambda one: f"{one['at_rate']['per_second']:,}"),
        line("99 % of them processed by the guard within (us)", f"{P99_AIM_US}", lambda one: f"{one['at_rate']['server_p99_us']}"),
        line("round trips: median (us)", "", lambda one: f"{one['at_rate']['p50_us']}"),
        line("99 % within (us)", "", lambda one: f"{one['at_rate']['p99_us']}"),
        line("99.9 % within (us)", "", lambda one: f"{one['at_rate']['p999_us']}"),
        line("resident, maximum (MB)", f"{RSS_AIM_MB:.0f}", lambda one: f"{one['relisted']['peak_rss']:.1f}"),
        line("anonymous after the lists (MB)", f"{ANONYMOUS_AIM_MB:.0f}", lambda one: f"{one['listed']['anonymous']:.1f}"),
        line("anonymous, maximum during a relist (MB)", f"{ANONYMOUS_AIM_MB:.0f}", lambda one: f"{one['relist_anonymous']:.1f}"),
        line("seconds until ready", "", lambda one: f"{one['ready_seconds']:.1f}"),
    ]


def misses(data: dict[str, Any]) -> list[str]:
    """What was not reached, with its figure."""
    found = []
    for name in ("index", "asking"):
        one = data[name]
        for flow in ("mutate", "validate", "pod_security"):
            if one[flow]["per_second"] < RATE_AIM:
                found.append(f"{name}, {flow}: {one[flow]['per_second']:,} reviews/s, aim {RATE_AIM:,}")
        if one["at_rate"]["server_p99_us"] > P99_AIM_US:
            found.append(f"{name}: 99 % processed within {one['at_rate']['server_p99_us']} us at 5,000/s, aim {P99_AIM_US}")
        if one["relisted"]["peak_rss"] > RSS_AIM_MB:
            found.append(f"{name}: {one['relisted']['peak_rss']:.1f} MB resident, aim {RSS_AIM_MB:.0f}")
        if one["relist_anonymous"] > ANONYMOUS_AIM_MB:
            found.append(f"{name}: {one['relist_anonymous']:.1f} MB anonymous during a relist, aim {ANONYMOUS_AIM_MB:.0f}")
    return found


def as_text(data: dict[str, Any]) -> str:
    lines = rows(data)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


PEERS = """
## Comparison with other webhooks

![Reviews a second and memory of nodens-guard and other webhooks](guard-benchmarks.svg)

Kubernetes' own webhook for pod security (`k8s.io/pod-security-admission/cmd/webhook` of Kubernetes {version}), also with one core,
in the same run, with the same reviews:

"""
KYVERNO = """
Kyverno {version} (`github.com/kyverno/kyverno/cmd/kyverno`), also with one core, in the same run, with the same reviews on its port:
a policy with one rule, pod security at the level restricted, which all pods pass.
It has its own API server, with only the {teams:,} namespaces of the reviews, and writes no reports and no events; the guard has the
large cluster described above.
The load has no fixed rate: each of the 25 connections sends the next review when it has received a response.

"""
NO_KYVERNO = """
Kyverno {version} was not measured in this run: `tools/dev bench guard --kyverno` does, after a long build the first time.
"""


def kyverno_ratios(data: dict[str, Any]) -> tuple[float, float]:
    """How many times Kyverno's reviews a second, and how many times its memory."""
    ours, theirs = data["index"], data["kyverno"]
    return (ours["pod_security"]["per_second"] / theirs["pod_security"]["per_second"],
            ours["relisted"]["peak_rss"] / theirs["loaded"]["peak_rss"])


def kyverno_rows(data: dict[str, Any]) -> list[list[str]]:
    ours, theirs = data["index"], data["kyverno"]
    rate, rss = kyverno_ratios(data)
    return [["", "nodens-guard", "Kyverno", "ratio", "aim"],
            ["pod security, reviews/s", f"{ours['pod_security']['per_second']:,}", f"{theirs['pod_security']['per_second']:,}",
             f"{rate:.1f}", f"at least {RATE_RATIO_AIM:.0f}"],
            ["median at that load (us)", f"{ours['pod_security']['p50_us']:,}", f"{theirs['pod_security']['p50_us']:,}",
             f"{ours['pod_security']['p50_us'] / theirs['pod_security']['p50_us']:.3f}", ""],
            ["resident, maximum (MB)", f"{ours['relisted']['peak_rss']:.1f}", f"{theirs['loaded']['peak_rss']:.1f}", f"{rss:.2f}",
             f"at most {MEMORY_RATIO_AIM}"],
            ["anonymous (MB)", f"{ours['loaded']['anonymous']:.1f}", f"{theirs['loaded']['anonymous']:.1f}",
             f"{ours['loaded']['anonymous'] / theirs['loaded']['anonymous']:.2f}", ""]]


def kyverno_section(data: dict[str, Any]) -> str:
    version = goprograms.pinned_version("kyverno", kyverno.MODULE).removeprefix("v")
    if "kyverno" not in data:
        return NO_KYVERNO.format(version=version)
    return KYVERNO.format(version=version, teams=TEAMS) + table.as_markdown(kyverno_rows(data)) + "\n"


def peer_rows(data: dict[str, Any]) -> list[list[str]]:
    ours, theirs = data["index"], data["peer"]

    def line(title: str, mine: float, other: float, digits: int = 0) -> list[str]:
        return [title, f"{mine:,.{digits}f}", f"{other:,.{digits}f}", f"{mine / other:.2f}" if other else ""]

    return [["", "nodens-guard", "webhook", "ratio"],
            line("pod security, reviews/s", ours["pod_security"]["per_second"], theirs["pod_security"]["per_second"]),
            line("99 % at 5,000/s within (us; the guard on /mutate)", ours["at_rate"]["p99_us"], theirs["at_rate"]["p99_us"]),
            line("reached at 5,000/s", ours["at_rate"]["per_second"], theirs["at_rate"]["per_second"]),
            line("resident, maximum (MB)", ours["relisted"]["peak_rss"], theirs["loaded"]["peak_rss"], 1),
            line("anonymous (MB)", ours["loaded"]["anonymous"], theirs["loaded"]["anonymous"], 1)]


def write_document(data: dict[str, Any]) -> None:
    missed = misses(data)
    tail = "\nGoals not met:\n\n" + "".join(f"- {one}\n" for one in missed) if missed else "\nAll goals are met.\n"
    DOCUMENT.write_text(METHOD.format(date=data["date"], commit=data["commit"], cpus=data["cpus"], bytes=f"{data['review_bytes']:,}") +
                        table.as_markdown(rows(data)) + "\n" + tail
                        + PEERS.format(version=goprograms.pinned_version("pod-security", "k8s.io/kubernetes")) +
                        table.as_markdown(peer_rows(data)) + "\n" + kyverno_section(data))
    pictures.write(DOCUMENT.name)
