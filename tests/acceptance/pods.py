# SPDX-License-Identifier: Apache-2.0
"""Pods of a stock kubelet on nodens-cri, through kills, faults and a thousand pods at once."""
import json
import re
import statistics
from typing import Any

from nodensdev.bench import figures, report
from nodensdev.checks import tests
from nodensdev.checks.prove import Miss, Proof, check, count_line
from nodensdev.project import BUILD

QUICK_LIVES, QUICK_KILLS, QUICK_PODS = 200, 40, 250     # 250 pods have the 500 containers after which a restart is timed
FULL_LIVES, FULL_KILLS, FULL_PODS, GUEST_LIVES, GUEST_KILLS = 1000, 200, 1000, 200, 40
START_RATIO, START_WORST, ENGINE_RATIO, USERNS_RATIO, POD_PSS_MB, MOUNT_LINES, RESTART_MS = 0.25, 0.45, 1.2, 1.05, 0.5, 4, 1000
SLOWER, SLOWER_WORST, POD_LINES, CONTAINER_LINES, RSS_IDLE_MB, RSS_CONTAINER_KB = 1.5, 2.0, 3, 1, 8, 30


def figures_of(proof: Proof, name: str, *arguments: str, timeout: float) -> dict[str, Any]:
    """Runs a test of tests/component/cri-resilience natively; what it measured."""
    place = BUILD / "prove" / f"{name}.json"
    place.unlink(missing_ok=True)
    proof.pytest("-s", f"tests/component/cri-resilience/test_{name}.py", "--figures", f"build/prove/{place.name}", *arguments,
                 runtimes=True, alone=True, timeout=timeout)
    return json.loads(place.read_text())


def side_by_side(proof: Proof, output: str) -> None:
    """What nodens-cri and containerd make of the same cases; every failure of containerd's is in the log."""
    proof.expect(not re.search(r"nodens-cri failed", output), "nodens-cri passes every case")
    for name in ("nodens-cri", "containerd"):
        proof.figure(name, f"{len(re.findall(rf'{name} passed ', output))} cases passed, {len(re.findall(rf'{name} failed  ', output))} "
                           f"failed")
    proof.expect(len(re.findall(r"nodens-cri passed ", output)) >= 100, "at least 100 cases were tried")


@check("point 1: a stock kubelet runs deployments, jobs, volumes, probes, hooks, logs, limits, eviction, resize, static pods (cgroupfs)")
def stories(proof: Proof) -> None:
    proof.suites("stories", timeout=2400)


@check("point 1: the same with systemd as the cgroup driver", full_only=True)
def stories_with_systemd(proof: Proof) -> None:
    proof.suites("stories-systemd", timeout=2400)


@check("recovery: after a reboot and after a power cut a pod that runs once does not run twice, and a finished one keeps its log")
def reboot(proof: Proof) -> None:
    proof.suites("reboot", timeout=1200)


@check("point 2: the CRI's cases, natively; with --full containerd beside")
def cases(proof: Proof) -> None:
    side_by_side(proof, proof.dev("test", "cri" if proof.full else "cri-own", timeout=2400).stdout)


@check("point 2: the same in a guest with cgroup controllers", full_only=True)
def cases_in_a_guest(proof: Proof) -> None:
    side_by_side(proof, proof.dev("test", "cri-guest", timeout=3600).stdout)


@check("point 2: the same with systemd as the cgroup driver", full_only=True)
def cases_with_systemd(proof: Proof) -> None:
    side_by_side(proof, proof.dev("test", "cri-guest-systemd", timeout=3600).stdout)


@check("point 2: host ports and AppArmor under Debian's own kernel", full_only=True)
def cases_on_debian(proof: Proof) -> None:
    done = proof.dev("test", "cri-debian", timeout=3600)
    proof.expect("nodens-cri failed" not in done.stdout and "nodens-cri passed" in done.stdout, "nodens-cri passes them")
    proof.figure("cases", count_line(done.stdout))


@check("point 3: upstream's user namespace tests pass")
def userns_set(proof: Proof) -> None:
    proof.figure("e2e", count_line(proof.dev("e2e", "userns", "--runtime", "nodens", timeout=1800).stdout))


@check("point 3: upstream's node tests: what passes on containerd passes, but for what the next issue brings", full_only=True)
def node_set(proof: Proof) -> None:
    proof.figure("e2e", count_line(proof.dev("e2e", "node", "--runtime", "nodens", timeout=7200).stdout))


@check("point 4: pods live and die while the daemon is killed and its engines fail or hang; nothing is lost, misreported or left behind")
def chaos(proof: Proof) -> None:
    lives, kills = (FULL_LIVES, FULL_KILLS) if proof.full else (QUICK_LIVES, QUICK_KILLS)
    found = figures_of(proof, "chaos", "--lives", str(lives), "--kills", str(kills), timeout=5400)
    proof.figure("natively", f"{found['lives']} lives, {found['kills']} kills (seed {found['seed']})")
    proof.note(json.dumps(found, indent=1))


@check("point 4: the same in a guest with controllers", full_only=True)
def chaos_in_a_guest(proof: Proof) -> None:
    tests.prepare_runtimes(proof.inside)
    program = ["python3", "-B", "-c",
               "import sys; from nodensdev import guest_tests; sys.exit(not guest_tests.run(sys.argv[1], arguments=tuple(sys.argv[2:])))"]
    words = ["tests/component/cri-resilience/test_chaos.py", "-s", f"--lives={GUEST_LIVES}", f"--kills={GUEST_KILLS}"]
    done = proof.machine(["env", "PYTHONPATH=tools", *program, *words], timeout=5400)
    proof.figure("chaos", count_line(done.stdout))


@check("point 4: what belongs to a damaged record is removed, and nothing else")
def damage(proof: Proof) -> None:
    proof.suites("pods-damage", timeout=900)


@check("point 5: a node full of pods: start rate, lists, memory, mount lines, restart; one more pod takes at most 1.5 x the first one")
def size(proof: Proof) -> None:
    found = figures_of(proof, "size", "--pods", str(FULL_PODS if proof.full else QUICK_PODS), timeout=3600)
    proof.note(json.dumps(found, indent=1))
    proof.figure("pods", f"{found['pods']} with {found['containers']} containers, {found['pods_per_s']:.1f} a second")
    proof.figure("lists", f"{found['list_ms_median']:.0f} ms, at most {found['list_ms_max']:.0f}")
    proof.aim("daemon idle, RSS", found["rss_idle_kb"] / 1000, most=RSS_IDLE_MB, unit=" MB")
    proof.aim("more per container", found["rss_per_container_kb"], most=RSS_CONTAINER_KB, unit=" kB")
    proof.aim("monitors per pod of two, PSS", found["monitors_pss_kb_per_pod"] / 1000, most=2 * POD_PSS_MB, unit=" MB")
    proof.aim("mount lines per pod of two", found["mount_lines_per_pod_with_two"], most=POD_LINES + 2 * CONTAINER_LINES)
    if proof.full:
        proof.figure("restart", f"{found['restart_s']:.2f} s with {found['containers']} containers")
    else:
        proof.aim(f"restart with {found['containers']} containers", found["restart_s"] * 1000, most=RESTART_MS, unit=" ms")
    known = Miss(SLOWER_WORST,
                 "with 1,000 pods crun copies a table of 4,000 mounts for a container and throws it away, and host-local reads 1,000 "
                 "addresses")
    proof.aim("one more pod, x the first", found["one_more_pod_ms"] / found["first_pod_ms"], most=SLOWER, known=known if proof.full
              else None)


def middle(data: dict[str, Any], mode: str, title: str, subject: str) -> float:
    row = next(row for row in figures.rows_of(data, mode) if row.title.startswith(title))
    return row.values[subject]


def ratio(data: dict[str, Any], mode: str, title: str, one: str, other: str) -> float:
    row = next(row for row in figures.rows_of(data, mode) if row.title == title)
    return statistics.median(a / b for a, b in zip(row.samples[one], row.samples[other], strict=True))


@check("point 6: what a pod costs, beside containerd and the bare engine, in one run")
def numbers(proof: Proof) -> None:
    proof.dev("bench", "cri", "--runtime", "containerd,nodens", *(["--rounds", "3"] if proof.full else ["--rounds", "1", "--pods", "10"]),
              timeout=3600)
    data = report.newest()
    start = "pod start in all"
    engines = ratio(data, "on", start, "engine", "containerd")
    known = Miss(START_WORST,
                 f"the engines alone (CNI plugins, crun, overlay, without a daemon) take {engines:.2f} x containerd's time on this guest")
    proof.aim("start, x containerd", ratio(data, "on", start, "nodens", "containerd"), most=START_RATIO, known=known)
    proof.aim("start, x engine", ratio(data, "on", start, "nodens", "engine"), most=ENGINE_RATIO)
    proof.aim("user namespace, x host users", figures.userns_cost(data)["nodens"], most=USERNS_RATIO)
    proof.aim("processes per pod", middle(data, "on", "memory of per-pod", "nodens"), most=POD_PSS_MB, unit=" MB")
    proof.aim("mount lines per pod", middle(data, "on", "lines in the host", "nodens"), most=MOUNT_LINES)
    proof.figure("restart with 20 pods", f"{middle(data, 'on', 'daemon restart', 'nodens'):.0f} ms")


@check("the Debian package is built, installed, and upgraded with pods alive", full_only=True)
def package(proof: Proof) -> None:
    proof.suites("package", timeout=3600)
