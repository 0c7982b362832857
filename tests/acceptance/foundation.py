# SPDX-License-Identifier: Apache-2.0
"""The foundation: build and tests, the user namespace manager, the kernel it stands on, and `nodens check` and `ids`."""
import json
import re
import tempfile
from pathlib import Path

from nodensdev.checks.prove import Proof, check
from nodensdev.env import chroot, goprograms
from nodensdev.project import TOP

HISTORIES, HISTORIES_FULL = 10_000, 50_000
KERNEL_TESTS = 10
MINUTE = 60


def inside(path: Path) -> str:
    """A file of the cache, as it is called in the Debian root."""
    return str(chroot.seen_inside(path))


def first_line(text: str, start: str) -> str:
    return next((line for line in text.splitlines() if line.startswith(start)), "")


# 1. the repository

@check("all tests are green in a clean clone")
def clean_clone(proof: Proof) -> None:
    with tempfile.TemporaryDirectory(prefix="nodens-clone-") as directory:
        clone = f"{directory}/nodens"
        proof.machine(["git", "clone", "--quiet", "--no-hardlinks", str(TOP), clone])
        done = proof.machine([f"{clone}/tools/dev", "test"], timeout=20 * MINUTE)
    count_tests(proof, done.stdout)


@check("the same on a new machine, with nothing in the cache", full_only=True)
def new_machine(proof: Proof) -> None:
    with tempfile.TemporaryDirectory(prefix="nodens-clone-") as directory:
        clone = f"{directory}/nodens"
        proof.machine(["git", "clone", "--quiet", "--no-hardlinks", str(TOP), clone])
        done = proof.machine(["env", f"NODENS_CACHE={directory}/cache", f"{clone}/tools/dev", "test"], timeout=60 * MINUTE)
    count_tests(proof, done.stdout)


def count_tests(proof: Proof, output: str) -> None:
    """meson's and pytest's own totals."""
    passed = sum(int(number) for number in re.findall(r"^Ok:\s+(\d+)", output, re.MULTILINE))
    passed += sum(int(number) for number in re.findall(r"(\d+) passed", output))
    skipped = sum(int(number) for number in re.findall(r"^Skipped:\s+(\d+)", output, re.MULTILINE))
    proof.expect(passed > 0, "tests were run")
    proof.figure("tests", f"{passed} passed, {skipped} skipped")


@check(".ci/run is green", full_only=True)
def continuous_integration(proof: Proof) -> None:
    done = proof.machine([str(TOP / ".ci" / "run")], timeout=60 * MINUTE)
    proof.figure("steps", done.stdout.strip().splitlines()[-1])


# 2. the kubelet as oracle

@check("generated histories give the same verdicts, texts and files as the kubelet's own code")
def oracle(proof: Proof) -> None:
    proof.dev("build", timeout=10 * MINUTE)
    program = inside(goprograms.ensure("oracle") / "oracle")
    count = HISTORIES_FULL if proof.full else HISTORIES
    done = proof.run(["python3", "-B", "tests/component/userns/oracle.py", "--driver", "build/gcc/tests/component/userns/driver",
                      "--oracle", program, "--histories", str(count)], timeout=20 * MINUTE)
    proof.expect(f"\n{count} histories, " in done.stdout and done.stdout.endswith("passed\n"), f"{count} histories were compared")
    proof.figure("histories", f"{count} ({first_line(done.stdout, 'seed')})")
    differences = re.findall(r"^ +(\d+)  \((\w+)\)", done.stdout, re.MULTILINE)
    proof.figure("deliberate differences met", ", ".join(f"({name}) {number}" for number, name in differences))


# 3. crashes

@check("killed 1,000 times at random and at every system call: no torn file, no block held twice, none lost")
def crashes(proof: Proof) -> None:
    for directory in ("/tmp", "/var/lib/nodens-test"):
        done = proof.run(["build/gcc/tests/component/userns/crash", "--kills", "1000", directory], timeout=10 * MINUTE)
        proof.expect("passed: no torn file, no block held twice, no block lost" in done.stdout, "the manager survives")
        proof.figure(directory, first_line(done.stdout, "killed 1000 times"))


# 4. scale

@check("all 65,534 blocks are allocated, recorded, recovered and released in random order")
def scale(proof: Proof) -> None:
    done = proof.run(["build/gcc/tests/component/userns/scale", "/tmp", "/var/lib/nodens-test"], timeout=10 * MINUTE)
    memory = re.search(r"allocation in memory, 65534 times: p50 ([\d.]+) us, p99 ([\d.]+) us", done.stdout)
    assert memory, done.stdout
    proof.expect(float(memory[2]) < 50, "an allocation in memory takes less than 50 us")
    proof.figure("in memory", f"p50 {memory[1]} us, p99 {memory[2]} us")
    for start in ("allocation with its file", "recovery of 65534", "recovery of 1000"):
        found = [line.split(": ", 1)[1] for line in done.stdout.splitlines() if line.startswith(start)]
        proof.figure(start, " / ".join(found))


# 5. the kernel

@check("the kernel behaves as the design requires")
def kernel(proof: Proof) -> None:
    done = proof.dev("test", "kernel", timeout=10 * MINUTE)
    passed, skipped = (re.search(rf"^{word}:\s+(\d+)", done.stdout, re.MULTILINE) for word in ("Ok", "Skipped"))
    proof.expect(passed is not None and int(passed[1]) >= KERNEL_TESTS, f"at least {KERNEL_TESTS} behaviours are shown")
    proof.expect(skipped is None or int(skipped[1]) == 0, "none of them is skipped")
    assert passed
    proof.figure("behaviours", passed[1])


# 6. nodens check and nodens ids, as a new user meets them

NODENS = "build/gcc/src/nodens"
VERDICTS = {"usable": 0, "degraded": 1, "unusable": 2}


def natively(proof: Proof, *arguments: str) -> list[str]:
    """The command line for the machine itself, whose own libraries may be too old: those of the Debian root serve."""
    loader = next((proof.inside.root / "usr/lib").glob("*-linux-gnu/ld-linux-*.so.*"))
    return [str(loader), "--library-path", str(loader.parent), NODENS, *arguments]


def judge_report(proof: Proof, text: str, report: str, code: int, report_code: int) -> str:
    """The table and the JSON say the same, the exit code fits, and every other verdict than ok has advice."""
    parsed = json.loads(report)
    proof.expect(parsed["verdict"] in VERDICTS and VERDICTS[parsed["verdict"]] == code == report_code, "the exit code is the verdict")
    proof.expect(len(parsed["checks"]) >= 10, "at least 10 checks are reported")
    for item in parsed["checks"]:
        proof.expect(item["check"] in text, f"'{item['check']}' is in the table")
        proof.expect(item["verdict"] == "ok" or bool(item["advice"]), f"'{item['check']}' comes with advice")
    proof.expect("\x1b" not in text, "output to a pipe has no colours")
    found = {item["check"]: item["verdict"] for item in parsed["checks"]}
    proof.expect(found.get("user namespaces") == "ok", "a real user namespace was made")
    return f"{parsed['verdict']} ({sum(verdict == 'ok' for verdict in found.values())} of {len(found)} ok)"


@check("`nodens check` in the Debian 13 root and on the machine itself")
def nodens_check(proof: Proof) -> None:
    proof.dev("build", timeout=10 * MINUTE)
    for place, ask in (("Debian 13 root", lambda *a: proof.run([NODENS, *a], expect=None)),
                       ("machine", lambda *a: proof.machine(natively(proof, *a), expect=None))):
        text, report = ask("check"), ask("check", "--json")
        proof.figure(place, judge_report(proof, text.stdout, report.stdout, text.returncode, report.returncode))
        ask("check", "--rootless")
        one = ask("check", "--dir", "/var/tmp")
        proof.expect(one.returncode == 0 and "idmapped" in one.stdout, "one directory can be probed")


@check("the output of `nodens check` and `nodens ids` in docs/check-node.md is real")
def readme(proof: Proof) -> None:
    text = (TOP / "docs/check-node.md").read_text()
    shown = re.search(r"^```console\n\$ [^\n]*nodens check\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    proof.expect(shown is not None, "the page shows `nodens check`")
    assert shown
    real = proof.run([NODENS, "check"], expect=None).stdout
    proof.expect(check_names(shown[1]) == check_names(real), f"the checks on the page are the real ones, {check_names(real)}")

    shown = re.search(r"^```console\n\$ [^\n]*nodens ids\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    proof.expect(shown is not None, "the page shows `nodens ids`")
    assert shown
    real = proof.run(["python3", "-B", "tests/component/userns/readme_node.py", NODENS, "build/gcc/tests/component/userns/driver"]).stdout
    proof.expect(tidy(shown[1]) == tidy(real), f"the IDs on the page are the real ones:\n{tidy(real)}")


def check_names(table: str) -> list[str]:
    """The second column: verdicts have four letters, names end where the next column starts. Without the part Runtime, which has one line
    where nodens-cri is not installed; tests/component/cri-resilience/test_check.py compares it with the page."""
    column = table.splitlines()[0].index("FOUND")
    host = table.partition("\n     Runtime")[0].splitlines()[1:]
    return [line[5:column].strip() for line in host if line[5:column].strip()]


def tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
