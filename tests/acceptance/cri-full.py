# SPDX-License-Identifier: Apache-2.0
"""nodens-cri, complete: what kubectl does to a pod, streamed through a stock kubelet and, case by case, over SPDY and WebSocket."""
import json
import re
from typing import Any

from nodensdev import build
from nodensdev.bench import probes
from nodensdev.checks.prove import Miss, Proof, check, count_line
from nodensdev.project import BUILD

GROWTH_KB, PROBES_A_SECOND = 256, 100
SOAK = {"rounds": "1000", "soak-lives": "500", "minutes": "1"}
FULL_SOAK = {"rounds": "10000", "soak-lives": "10000", "minutes": "10"}
EXEC_RATIO, EXEC_WORST, STATS_RATIO, THROUGHPUT_RATIO = 0.5, 0.58, 0.5, 1.0


@check("point 1: kubectl exec, cp of 64 MiB each way, attach, run, port-forward with 100 connections, debug, logs -f, top with a stock "
       "kubelet")
def streams(proof: Proof) -> None:
    done = proof.dev("test", "streams", timeout=1500)
    proof.figure("stories", count_line(done.stdout))
    for way, rate in re.findall(r"kubectl cp (in|out): ([\d.]+) MiB/s", done.stdout):
        proof.figure(f"kubectl cp {way}", f"{rate} MiB/s")


@check("point 1: kubectl cp of 1 GiB each way", full_only=True)
def copies(proof: Proof) -> None:
    done = proof.dev("test", "streams-copy", timeout=3600)
    for way, rate in re.findall(r"kubectl cp (in|out): ([\d.]+) MiB/s", done.stdout):
        proof.figure(f"kubectl cp {way}", f"{rate} MiB/s")


def newest_e2e(name: str, runtime: str) -> dict[str, Any] | None:
    found = sorted((BUILD / "e2e").glob(f"{runtime}-{name}-2*/result.json"))
    return json.loads(found[-1].read_text()) if found else None


@check("point 2: upstream's node and conformance-node sets: what passes on containerd passes on nodens-cri, and no more is excluded",
       full_only=True)
def upstream(proof: Proof) -> None:
    for name in ("node", "conformance-node"):
        if not newest_e2e(name, "containerd"):
            proof.dev("e2e", name, "--runtime", "containerd", timeout=7200)
        proof.dev("e2e", name, "--runtime", "nodens", timeout=7200)
        theirs, ours = (newest_e2e(name, runtime) or {} for runtime in ("containerd", "nodens"))
        missing = {one["name"] for one in theirs["passed"]} - {one["name"] for one in ours["passed"] + ours["flaky"]}
        proof.expect(not missing and len(ours["excluded"]) <= len(theirs["excluded"]), f"{name}: {sorted(missing)}")
        proof.figure(name, f"{len(ours['passed'])} passed, {len(theirs['passed'])} on containerd")


@check("point 3: exec, attach and port-forward over SPDY and WebSocket, natively; `tools/dev test cri` has containerd beside, which takes "
       "half an hour")
def streaming_cases(proof: Proof) -> None:
    output = proof.dev("test", "cri-streaming", timeout=1500).stdout
    passed = len(re.findall(r"nodens-cri passed ", output))
    proof.expect("nodens-cri failed" not in output and passed >= 50, "nodens-cri passes every case, and at least 50 were tried")
    proof.figure("nodens-cri", f"{passed} cases passed")


@check("point 4: soak: rounds of exec, attach, port-forward and log rotation, pod lives, probes at 100 a second; nothing grows")
def soak(proof: Proof) -> None:
    path = BUILD / "prove/soak.jsonl"
    path.unlink(missing_ok=True)
    options = [f"--{name}={value}" for name, value in (FULL_SOAK if proof.full else SOAK).items()]
    proof.pytest("-s", "tests/component/cri-resilience/test_soak.py", "--figures=build/prove/soak.jsonl", *options, runtimes=True,
                 alone=True, timeout=14400)
    for found in map(json.loads, path.read_text().splitlines()):
        proof.expect(not found["grown"], f"{found['what']}: {found['grown']}")
        proof.figure(found["what"], f"{found['count']} in {found['seconds']:.0f} s")
        proof.aim(f"growth over {found['count']} {found['what']}", found["growth_kb"], most=GROWTH_KB, unit=" kB")
        if found["what"] == "probes":
            limit = "the probes' clients, in Python, and crun share the host's CPUs with all other processes"
            proof.aim("probes a second", found["per_second"], least=0.95 * PROBES_A_SECOND, known=Miss(60, limit))


@check("point 3: pods in user namespaces under stock kubelets of older minors")
def versions(proof: Proof) -> None:
    done = proof.dev("test", "versions", timeout=3000)
    proof.figure("stories", count_line(done.stdout))
    proof.note("\n".join(line for line in done.stdout.splitlines() if line.startswith(("kubelet 1.", "figures:"))))


@check("point 3 of the order: CNI's bandwidth and CHECK, an unmasked /proc, writable cgroups, AppArmor refused where there is none, "
       "natively")
def the_rest(proof: Proof) -> None:
    chosen = ["tests/component/cri/test_network.py", "tests/component/cri/test_security.py", "tests/component/cri/test_handlers.py", "-k",
              "network or handler or unmasked or apparmor"]
    proof.pytest(*chosen, "--runtime", "nodens-cri", runtimes=True, alone=True, may_skip=True)


@check("point 3 of the order: SELinux's labels, behind their build option: it builds, and what it labels is right")
def selinux(proof: Proof) -> None:
    build.ensure(proof.inside, "clang")
    done = proof.run(["meson", "test", "--no-rebuild", "-C", "build/clang", "--print-errorlogs", "cri-selinux", "cri-request"], timeout=120)
    proof.expect(re.search(r"^Ok: +2 *$", done.stdout, re.MULTILINE) is not None, "both ran and passed")


@check("point 3 of the order: AppArmor's profiles under Debian's own kernel", full_only=True)
def apparmor(proof: Proof) -> None:
    proof.suites("cri-debian", timeout=3600)


@check("point 6: ExecSync and the statistics of 200 containers in 20 pods, beside containerd and crun alone, in one run")
def probe_numbers(proof: Proof) -> None:
    data = probes.run(("containerd", "nodens"), 40, "uml")
    probes.save(data)
    proof.note(probes.as_text(data))
    alone = probes.ratio(data, "ExecSync", "engine", "containerd")
    limit = f"crun exec alone, without a daemon, takes {alone:.2f} x containerd's time on this guest"
    proof.aim("ExecSync, x containerd", probes.ratio(data, "ExecSync", "nodens", "containerd"), most=EXEC_RATIO,
              known=Miss(EXEC_WORST, limit))
    for step in ("ListContainerStats", "ListPodSandboxStats"):
        proof.aim(f"{step}, x containerd", probes.ratio(data, step, "nodens", "containerd"), most=STATS_RATIO)


@check("point 6: how much goes through kubectl exec, beside containerd, in turns")
def throughput(proof: Proof) -> None:
    proof.dev("test", "throughput", timeout=1800)
    found = json.loads((BUILD / "throughput.json").read_text())
    proof.figure("nodens-cri", f"{found['mib_per_s']['nodens']:.1f} MiB/s")
    proof.aim("throughput, x containerd", found["ratio"], least=THROUGHPUT_RATIO)


@check("the fourth part: nodens exec, logs, stats, top and rm on a node without a kubelet")
def people(proof: Proof) -> None:
    proof.suites("pods-operator", timeout=900)


@check("point 5: every requirement R1 to R27 names its tests, all of them exist, and those that no other suite has hold")
def requirements(proof: Proof) -> None:
    proof.dev("lint", "names", timeout=300)
    output = proof.dev("test", "cri-boundaries", timeout=900).stdout
    proof.expect("nodens-cri failed" not in output, "nodens-cri passes every case")
    proof.figure("cases", count_line(output))


@check("point 5: the parsers of what a client sends hold under fuzzing")
def fuzzers(proof: Proof) -> None:
    proof.dev("fuzz", "--seconds", "120", "spdy", "websocket", "http-head", "monitor-wire", "cdi", "seccomp", "quantity", timeout=1500)
