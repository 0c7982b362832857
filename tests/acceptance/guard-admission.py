# SPDX-License-Identifier: Apache-2.0
"""nodens-guard: its policy, and admission of pods beside a stock API server.

The policy is tested as pure functions and in `nodens lint`, admission under load and with leaders
that are killed.
"""
import json
import os
import re
from pathlib import Path

from nodensdev.bench import guard as bench
from nodensdev.checks.prove import Miss, Proof, check
from nodensdev.env import chroot, goprograms

PODS, PODS_FULL = 60_000, 240_000
PROGRAMS = 24
GUARD_TESTS, NODE_TESTS = 41, 7
NAMESPACES, KILLS = 10_000, 50
FUZZERS = ("pod", "labels", "scc", "review", "rbac", "api-objects", "kubeconfig")
MINUTE = 60


def inside(path: Path) -> str:
    """A file of the cache, as it is called in the Debian root."""
    return str(chroot.seen_inside(path))


@check("pod security, hostUsers, namespace labels and selectors: verdicts and texts of Kubernetes' own code")
def oracle(proof: Proof) -> None:
    proof.dev("build", timeout=10 * MINUTE)
    count = PODS_FULL if proof.full else PODS
    done = proof.run(["python3", "-B", "tests/component/policy/compare.py", "--driver", "build/gcc/tests/component/policy/driver",
                      "--oracle", inside(goprograms.ensure("policy") / "policy"), "--pods", str(count)], timeout=30 * MINUTE)
    proof.expect(f"\n{count} pods in " in done.stdout and done.stdout.endswith("passed\n"), f"{count} pods were compared")
    tallies = re.findall(r"^(\w+) +(v1\.\d+) +(\d+) +(\d+)$", done.stdout, re.MULTILINE)
    proof.expect(len(tallies) >= 30, "every revision of every check is counted")
    rarest = min(tallies, key=lambda t: min(int(t[2]), int(t[3])))
    proof.figure("pods", f"{count} in all levels and versions")
    proof.figure("revisions of checks",
                 f"{len(tallies)}, both sides of each; rarest {rarest[0]} {rarest[1]}: {rarest[2]} allowed, {rarest[3]} not")


@check("unit tests and corpora of src/kube, src/policy and src/guard")
def units(proof: Proof) -> None:
    done = proof.dev("test", "unit", timeout=20 * MINUTE)
    passed = re.findall(r"nodens:(?:unit|fuzz) / (kube-\S+|policy-\S+|guard-\S+|fuzz-(?:pod|labels|scc|review|rbac)) +OK", done.stdout)
    proof.expect(len(passed) >= PROGRAMS, f"at least {PROGRAMS} test programs of kube, policy and guard ran")
    proof.figure("test programs", ", ".join(passed))


@check("one review without its network, by 500 constraints")
def review(proof: Proof) -> None:
    done = proof.run(["build/gcc/tests/component/policy/bench"], timeout=5 * MINUTE)
    for what, cost, rate in re.findall(r"^(\S.*?) +([\d.]+) us, +(\d+)/s$", done.stdout, re.MULTILINE):
        proof.figure(what, f"{cost} us, {rate}/s")


@check("`nodens lint`: verdicts, advice that was tried, expectations, JSON and SARIF")
def lint(proof: Proof) -> None:
    done = proof.run(["python3", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/component/policy"], timeout=5 * MINUTE)
    proof.figure("tests", done.stdout.strip().splitlines()[-1])


@check("on a stock API server: what each pod lands on, who is refused, what happens around a pod; pod security beside the plugin, "
       "hostUsers and RBAC beside "
       "the API server's word; grants that end, watches that are cut; ranges and leaders that are killed; large bodies, slow clients, "
       "another certificate")
def admission(proof: Proof) -> None:
    done = proof.dev("test", "guard", timeout=25 * MINUTE)
    passed = re.search(r"^(\d+) passed", done.stdout, re.MULTILINE)
    proof.expect(passed is not None and int(passed[1]) >= GUARD_TESTS, f"at least {GUARD_TESTS} tests ran")
    proof.figure("tests", passed[0] if passed else "none")
    for line in re.findall(r"^\.*((?:\d+ (?:pods|questions|namespaces)|gone after)\b.*)$", done.stdout, re.MULTILINE):
        proof.figure("found", line)


@check("on a node with a stock kubelet and nodens-cri: a user of restricted-v3, a root of the pod's own where it is granted, podman's "
       "containers in a pod, "
       "a Deployment's pod, a static pod")
def node(proof: Proof) -> None:
    done = proof.dev("test", "guard-node", timeout=25 * MINUTE)
    proof.expect(f"\n{NODE_TESTS} passed" in done.stdout, f"{NODE_TESTS} tests ran")
    for line in re.findall(r"^\.*(\S+: .* inside, \d+ on the node)$", done.stdout, re.MULTILINE):
        proof.figure("found", line)


@check("10,000 reviews/s on one core, 99 % within 1 ms at 5,000/s, 24 MB resident and 12 MB anonymous, with 10,000 namespaces and 500 "
       "constraints")
def load(proof: Proof) -> None:
    proof.dev("bench", "guard", "--no-page", *(["--kyverno"] if proof.full else ["--seconds", "4"]), timeout=60 * MINUTE)
    data = json.loads(max(bench.RESULTS.glob("guard-2*.json")).read_text())
    one = data["index"]
    for flow in ("mutate", "validate", "pod_security"):
        proof.aim(f"reviews/s, {flow}", one[flow]["per_second"], least=bench.RATE_AIM)
    proof.aim("99 % at 5,000/s answered within", one["at_rate"]["server_p99_us"], most=bench.P99_AIM_US, unit=" us")
    proof.figure("99 % of their round trips within", f"{one['at_rate']['p99_us']} us")
    proof.aim("resident, most ever", one["relisted"]["peak_rss"], most=bench.RSS_AIM_MB, unit=" MB",
              known=Miss(30, "11 MB of it are pages of shared libraries, and how many of them are mapped around those that are used, the "
                             "page cache decides"))
    proof.aim("anonymous, relist included", one["relist_anonymous"], most=bench.ANONYMOUS_AIM_MB, unit=" MB")
    proof.figure("where every no is asked of the API server", f"{data['asking']['mutate']['per_second']} reviews/s")
    if proof.full:
        rate, memory = bench.kyverno_ratios(data)
        proof.aim("reviews/s, x Kyverno", rate, least=bench.RATE_RATIO_AIM)
        proof.aim("memory, x Kyverno", memory, most=bench.MEMORY_RATIO_AIM)


@check(f"{NAMESPACES} namespaces at once, three guards, the leader killed {KILLS} times: no block twice, none lost", full_only=True)
def ranges(proof: Proof) -> None:
    os.environ |= {"NODENS_GUARD_NAMESPACES": str(NAMESPACES), "NODENS_GUARD_KILLS": str(KILLS)}
    done = proof.dev("test", "guard-ranges", timeout=60 * MINUTE)
    proof.expect("none twice, none lost" in done.stdout, "the test ran")
    proof.figure("found", re.findall(r"\d+ namespaces, .*", done.stdout)[0])


@check("fuzzers of pods, labels and annotations, strategies, reviews, RBAC, kubeconfigs and what an API server sends: 20 minutes each, "
       "clean", full_only=True)
def fuzzers(proof: Proof) -> None:
    for name in FUZZERS:
        proof.dev("fuzz", "--seconds", str(20 * MINUTE), name, timeout=25 * MINUTE)
    proof.figure("fuzzers", ", ".join(FUZZERS))
