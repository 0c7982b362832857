# SPDX-License-Identifier: Apache-2.0
"""Hardening: no attack of the audit of 2026-11 succeeds, nor do others of the same classes.

docs/security-model.md has the table of findings.
"""
import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from nodensdev import build
from nodensdev.bench import figures, report
from nodensdev.checks import doc_names
from nodensdev.checks.prove import Proof, check, count_line
from nodensdev.project import TESTS, TOP

AUDIT = TESTS / "audit"
ATTACKS_LEAST = 20
START_RATIO = 1.1
MINUTE = 60


@dataclass(frozen=True)
class Attack:
    """A proof of concept of the audit: what its output shows when it ran to its end, and what only a success prints."""

    program: str
    finding: str
    ran: str                        # a pattern that must be there: the program came as far as its verdict
    success: tuple[str, ...]        # patterns that must not be there
    arguments: tuple[str, ...] = ()


ATTACKS = (
    Attack("p1_imagevol.py", "1", r"victim \(host users\):",
           (r"images/layers/\S*/POISON", r"(?s)victim \(host users\):.*(pwned|root::0:0:evil)")),
    Attack("p2_rovol.py", "8a", r"(?s)host file now: original\n\n.*host file now: original\n\n",
           (r"host file now: original\n[^\n]", r"-rw\S+ .* /y$")),
    Attack("p3_execcwd.py", "13", r"(?m)^23 tty ", (r"HOST SECRET", r"not accessible from the current namespace")),
    Attack("p4_declared.py", "5", r"== fd .* refused", (r"STARTED:",)),
    Attack("p5_devlink.py", "4", r"HOST DIRECTORY userns=True tty=True",
           (r"(?m) (full|random|urandom|zero|stdout|stderr)( ->.*)?$", r"ptmx ->")),
    Attack("p6_lsm.py", "-", r"core_pattern of the node before: (.*) after: \1\n", ()),
    Attack("p7_helper.py", "3", r"honest.example/app:1 has /etc/passwd: .*the real one", (r"PLANTED", r"TOP SECRET")),
    Attack("p8_guard.py", "6", r"clientCA is not set", (r"payroll-db-\d \(and", r"\"allowed\"", r"POST /apis/authorization")),
    Attack("p9_cgroups.py", "-", r"left: \[\]", (r"FAILED after",), ("wide",)),
    Attack("p9_cgroups.py", "-", r"left: \[\]", (r"FAILED after",), ("deep",)),
    Attack("p10_guard_scc.py", "11, 12, 17", r"the same with runAsUser: 0 written out",
           (r"(Unconfined|any name|hostPath /) -> True", r"restricted-v2 only -> 200 True")),
    Attack("p11_rootless.py", "7, 8b", r"OUTSIDE of the node: nothing", (r"outside is now: .*evil", r"(?m)^2\. api 0 1$")),
    Attack("p12_devvolume.py", "-", r"HOST: total \d+\n\S+ .* \.\n\S+ .* \.\.\n\n", ()),
    Attack("p13_fuse.py", "2", r"(?m)^11 answers", (r"does not answer",)),
    Attack("p14_stats.py", "9", r"deep writable layer as told to the kubelet: (3[0-9]{2}|[4-9][0-9]{2})\.", ()),
    Attack("p15_montty.py", "10", r"(?m)^tty \d+ s: DEADLINE_EXCEEDED", (r"(?m)^\d+ /usr/bin/python3 .*hang_crun.py", r"(?m)^mon \d")),
    Attack("p16_hostnet.py", "14", r"\$ find /sys/fs/cgroup", (r"nodens-cri-test", r"(?m)^\$ umount .* cgroup2? .*/\.\./\.\.")),
)


@check("point 1: every proof of concept of the audit ends in refusal or without effect")
def audit(proof: Proof) -> None:
    build.ensure(proof.inside, "gcc")
    wrong = []
    for attack in ATTACKS:
        done = proof.run(["python3", "-B", f"tests/audit/{attack.program}", *attack.arguments], timeout=5 * MINUTE, expect=None)
        output = done.stdout + done.stderr
        if not re.search(attack.ran, output):
            wrong.append(f"{attack.program} did not come to its verdict")
        wrong += [f"{attack.program}: {pattern}" for pattern in attack.success if re.search(pattern, output)]
    proof.figure("attacks", f"{len(ATTACKS)} runs")
    proof.expect(not wrong, "; ".join(wrong) or "no attack succeeds")


@check("point 1: every finding has a row with its fix, and tests that exist and run")
def findings(proof: Proof) -> None:
    problems = doc_names.row_problems(doc_names.SECURITY_MODEL.read_text())
    proof.expect(not problems, "; ".join(problems))


# The commits that fix findings 1 to 10, by their subjects.
FIXES = {
    1: "cri: mount images as overlays that have no upper directory",
    2: "cri: look at started containers in a worker, not on the loop",
    3: "oci: open a layer of a staging directory once, without links",
    4: "cri: refuse images whose links lead the engine astray",
    5: "cri: judge an image's volumes by where their links lead",
    6: "guard: authenticate clients by certificate, and limit what one may take",
    7: "rootless: put a pseudoterminal between the caller and the node",
    8: "cri: attach volumes on the host's side, by descriptor and locked",
    9: "cri: count writable layers of any depth, and never for free",
    10: "mon: never wait for the engine's terminal, nor for a hung monitor",
}


@check("point 2: for findings 1 to 10 the commit that fixes them quotes the test's failure without the fix")
def load_bearing(proof: Proof) -> None:
    log = subprocess.run(["git", "log", "--format=%s%x01%b%x00"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    bodies = dict(entry.strip("\n").split("\x01", 1) for entry in log.split("\0") if "\x01" in entry)
    missing = [str(number) for number, subject in FIXES.items() if not re.search(r"(?i)without the fix", bodies.get(subject, ""))]
    proof.expect(not missing, f"a failure without the fix is quoted for findings {', '.join(missing)}")


def new_attacks() -> Iterator[tuple[str, str, str]]:
    """File, name and first sentence of every attack of the second round."""
    for path in sorted(TESTS.glob("component/*/test_attack_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield str(path.relative_to(TOP)), node.name, (ast.get_docstring(node) or "").split("\n")[0]


@check("point 3: at least 20 new attacks run in CI, each with a sentence about what it tries")
def second_round(proof: Proof) -> None:
    found = list(new_attacks())
    for path, name, sentence in found:
        proof.note(f"{path} {name}: {sentence}")
    bare = [name for _, name, sentence in found if not sentence]
    proof.expect(not bare, f"every attack says what it tries: {', '.join(bare)}")
    proof.expect(len(found) >= ATTACKS_LEAST, f"there are {ATTACKS_LEAST} attacks, not {len(found)}")
    proof.figure("attacks", str(len(found)))
    for path in sorted({path for path, _, _ in found}):
        runtimes = not path.startswith(("tests/component/rootless", "tests/component/guard"))
        if path.startswith("tests/component/guard"):
            proof.machine(["python3", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", path], timeout=10 * MINUTE)
        else:
            extra = ("--runtime", "nodens-cri") if path.startswith("tests/component/cri") else ()
            proof.pytest(*extra, path, runtimes=runtimes, alone=runtimes, timeout=10 * MINUTE)


@check("point 4: a hostile container beside twenty pods: no call takes longer than 2 s, nothing is left")
def hostile(proof: Proof) -> None:
    suite = "pods-hostile-full" if proof.full else "pods-hostile"
    proof.suites(suite, timeout=20 * MINUTE)


@check("point 5: the gate's test steps give the same result twice idle and twice under load", full_only=True)
def deterministic(proof: Proof) -> None:
    spin = "while :; do :; done"
    for loaded in (False, False, True, True):
        busy = [subprocess.Popen(["sh", "-c", spin]) for _ in range(2)] if loaded else []
        try:
            done = proof.dev("ci", timeout=80 * MINUTE)
        finally:
            for one in busy:
                one.kill()
                one.wait()
        proof.figure("loaded" if loaded else "idle", count_line(done.stdout))


@check("point 6: all other proofs pass", full_only=True)
def others(proof: Proof) -> None:
    proof.others()


@check("point 6: a pod with a user namespace starts within 1.1 x of the bare engine", full_only=True)
def pod_start(proof: Proof) -> None:
    proof.dev("bench", "cri", "--runtime", "nodens", "--rounds", "1", "--pods", "10", timeout=40 * MINUTE)
    row = next(row for row in figures.rows_of(report.newest(), "on") if row.title == "pod start in all")
    proof.aim("start, x the bare engine", row.ratio("nodens") or float("inf"), most=START_RATIO)
