# SPDX-License-Identifier: Apache-2.0
"""nodens-guard, first half: its policy, as pure functions and in `nodens lint`, and admission of pods beside a stock API server.

Not there yet: pod security under labels of ours, load, the differentials of RBAC and hostUsers against an API server."""
import re
from pathlib import Path

from nodensdev import cache, gobin, room
from nodensdev.prove import Proof, check

PODS, PODS_FULL = 60_000, 240_000
PROGRAMS = 23
ADMISSION_TESTS = 19
FUZZERS = ("pod", "labels", "scc", "review", "rbac", "api-objects", "kubeconfig")
MINUTE = 60


def inside(path: Path) -> str:
    """A file of the cache, as it is called in the Debian root."""
    return str(room.CACHE_INSIDE / path.relative_to(cache.top()))


@check("pod security, hostUsers, namespace labels and selectors: verdicts and texts of Kubernetes' own code")
def oracle(proof: Proof) -> None:
    proof.dev("build", timeout=10 * MINUTE)
    count = PODS_FULL if proof.full else PODS
    done = proof.run(["python3", "-B", "tests/policy/compare.py", "--driver", "build/gcc/tests/policy/driver",
                      "--oracle", inside(gobin.ensure("policy") / "policy"), "--pods", str(count)], timeout=30 * MINUTE)
    proof.expect(f"\n{count} pods in " in done.stdout and done.stdout.endswith("passed\n"), f"{count} pods were compared")
    tallies = re.findall(r"^(\w+) +(v1\.\d+) +(\d+) +(\d+)$", done.stdout, re.MULTILINE)
    proof.expect(len(tallies) >= 30, "every revision of every check is counted")
    rarest = min(tallies, key=lambda t: min(int(t[2]), int(t[3])))
    proof.figure("pods", f"{count} in all levels and versions")
    proof.figure("revisions of checks", f"{len(tallies)}, both sides of each; rarest {rarest[0]} {rarest[1]}: {rarest[2]} allowed, {rarest[3]} not")


@check("unit tests and corpora of src/kube, src/policy and src/guard")
def units(proof: Proof) -> None:
    done = proof.dev("test", "unit", timeout=20 * MINUTE)
    passed = re.findall(r"nodens:(?:unit|fuzz) / (kube-\S+|policy-\S+|guard-\S+|fuzz-(?:pod|labels|scc|review|rbac)) +OK", done.stdout)
    proof.expect(len(passed) >= PROGRAMS, f"at least {PROGRAMS} test programs of kube, policy and guard ran")
    proof.figure("test programs", ", ".join(passed))


@check("one review without its network, by 500 constraints")
def review(proof: Proof) -> None:
    done = proof.run(["build/gcc/tests/policy/bench"], timeout=5 * MINUTE)
    for what, cost, rate in re.findall(r"^(\S.*?) +([\d.]+) us, +(\d+)/s$", done.stdout, re.MULTILINE):
        proof.figure(what, f"{cost} us, {rate}/s")


@check("`nodens lint`: verdicts, advice that was tried, expectations, JSON and SARIF")
def lint(proof: Proof) -> None:
    done = proof.run(["python3", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/policy"], timeout=5 * MINUTE)
    proof.figure("tests", done.stdout.strip().splitlines()[-1])


@check("on a stock API server: what each pod lands on, who is refused, updates, ephemeral containers, exec, controllers, user namespaces")
def admission(proof: Proof) -> None:
    done = proof.dev("test", "guard", timeout=15 * MINUTE)
    passed = re.search(r"^(\d+) passed", done.stdout, re.MULTILINE)
    proof.expect(passed is not None and int(passed[1]) >= ADMISSION_TESTS, f"at least {ADMISSION_TESTS} tests ran")
    proof.figure("tests", passed[0] if passed else "none")


@check("fuzzers of pods, labels and annotations, strategies, reviews, RBAC, kubeconfigs and what an API server sends: 20 minutes each, clean", full_only=True)
def fuzzers(proof: Proof) -> None:
    for name in FUZZERS:
        proof.dev("fuzz", "--seconds", str(20 * MINUTE), name, timeout=25 * MINUTE)
    proof.figure("fuzzers", ", ".join(FUZZERS))
