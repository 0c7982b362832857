# SPDX-License-Identifier: Apache-2.0
"""Operators: the findings of a trial as a new user are closed, and each has a test that fails without its fix."""
import re
from collections.abc import Iterator
from pathlib import Path

from nodensdev.checks import page_commands
from nodensdev.checks.prove import Proof, check
from nodensdev.project import TOP

MINUTE = 60
COMPONENT = "tests/component"

# The findings of the trial that cost an outage, a wrong belief or hours, and the tests that hold them closed. A file without a
# name of a test stands for all tests in it.
FINDINGS = {
    "1 journal lines have their reason": (
        "src/base/test-log.c::in_a_unit_the_journal_gets_the_finished_line_and_the_fields", "src/sys/test-notify.c",
        f"{COMPONENT}/journal/test_failures.py::test_a_ready_runtime_summarizes_the_node"),
    "2 up honours its options": (
        f"{COMPONENT}/rootless/test_node.py::test_options_of_up_reach_the_unit_s_environment_file",
        f"{COMPONENT}/rootless/test_node.py::test_up_checks_its_options_before_it_starts_a_unit", "src/rootless/node/test-settings.c"),
    "3 credentials of the guard": (f"{COMPONENT}/guard/test_credentials.py",
                                   f"{COMPONENT}/package/test_guard_unit.py::test_a_renewed_token_is_read_by_the_running_unit"),
    "4 the guard's unit never gives up": (
        f"{COMPONENT}/package/test_guard_unit.py::test_the_unit_never_gives_up_and_starts_once_its_files_are_there",),
    "5 lint refuses pods without containers": (
        f"{COMPONENT}/policy/test_lint.py::test_a_pod_without_containers_is_not_valid",
        f"{COMPONENT}/policy/test_lint.py::test_an_unknown_field_is_a_warning_and_with_a_level_an_error", "src/kube/test-schema.c"),
    "6 a busy metrics port": ("src/cri/stats/test-metrics-endpoint.c",
                              f"{COMPONENT}/journal/test_failures.py::test_a_busy_metrics_port_does_not_stop_the_runtime"),
    "7 README shows a pod, the build has nodens-cri": ("README.md", "src/api/meson.build"),
    "8 installation of the guard": (f"{COMPONENT}/guard/test_manifest.py", "src/guard/server/test-issue.c",
                                    "src/guard/install/test-yaml-out.c"),
    "9 refusals begin with what to do": (
        "src/policy/test-scc-advice.c", f"{COMPONENT}/guard/test_advice.py::test_the_command_in_a_refusal_lets_the_pod_pass"),
    "10 warnings about templates, unknown labels": (
        f"{COMPONENT}/guard/test_advice.py::test_a_workload_is_warned_about_pods_that_would_be_refused",
        f"{COMPONENT}/guard/test_advice.py::test_unknown_values_of_labels_are_refused_with_the_known_ones"),
    "11 check judges the runtime": (f"{COMPONENT}/cri-resilience/test_check.py", f"{COMPONENT}/rootless/test_check.py"),
    "12 why the runtime does not start": (
        f"{COMPONENT}/journal/test_failures.py::test_an_unknown_key_of_the_configuration",
        "src/cri/core/test-config.c::the_shipped_file_names_every_setting"),
    "13 networks and their speed": ("docs/rootless.md",),
    "14 tables fit the terminal": (f"{COMPONENT}/terminal/test_screens.py", "src/cli/output/test-table.c"),
    "15 lint reads ordinary files": (
        f"{COMPONENT}/policy/test_lint.py::test_links_pipes_and_standard_input_are_read",
        f"{COMPONENT}/policy/test_lint.py::test_one_bad_file_does_not_hide_the_others"),
    "16 commands that an operator types first": (f"{COMPONENT}/cri-resilience/test_operator_commands.py",),
    "17 sudo tools/dev leaves files with their owner": ("tools/tests/test_ownership.py",),
}
SPEED = re.compile(r"^\| `pasta` .*Gbit/s", re.MULTILINE)


def missing() -> Iterator[str]:
    """Tests of the table that do not exist."""
    for finding, tests in FINDINGS.items():
        for test in tests:
            path, _, name = test.partition("::")
            text = (TOP / path).read_text() if (TOP / path).is_file() else ""
            if not text or (name and not re.search(rf"\b{name}\(", text)):
                yield f"finding {finding}: {test}"


@check("point 1: every finding that costs an outage or hours has tests, and they exist")
def table(proof: Proof) -> None:
    lost = list(missing())
    proof.expect(not lost, "; ".join(lost))
    proof.expect(SPEED.search((TOP / "docs/rootless.md").read_text()) is not None, "the table of networks has measured speeds")
    proof.figure("findings", str(len(FINDINGS)))
    proof.figure("tests", str(sum(map(len, FINDINGS.values()))))


@check("point 1: a build without api.proto fails and names both ways out")
def build_without_proto(proof: Proof) -> None:
    done = proof.run(["sh", "-c", "d=$(mktemp -d) && meson setup $d; code=$?; rm -rf $d; exit $code"], timeout=5 * MINUTE, expect=None)
    said = done.stdout + done.stderr
    proof.expect(done.returncode != 0 and "-Dcri_proto=PATH" in said and "-Dcri=false" in said, "the error names the ways out")


@check("point 1: the tests of the findings pass")
def findings(proof: Proof) -> None:
    proof.suites("unit", "tools", "policy", "rootless", "pods-operator")


@check("point 1: those beside a real API server pass, too", full_only=True)
def findings_guard(proof: Proof) -> None:
    proof.suites("guard", "package", timeout=30 * MINUTE)


@check("point 2: tables, progress and errors in terminals of 60, 80 and 200 columns, in pipes and on full devices")
def terminals(proof: Proof) -> None:
    proof.suites("terminal")


@check("point 3: the plain lines of the journal name object, cause and remedy")
def journal(proof: Proof) -> None:
    proof.suites("journal", timeout=20 * MINUTE)


def follow(proof: Proof, page: str, place: str) -> None:
    sessions = page_commands.sessions(place)
    path: Path = TOP / "docs" / page
    proof.expect(path in sessions, f"docs/{page} has commands for a {place}")
    found = (page_commands.in_cluster if place == "cluster" else page_commands.in_guest)(sessions[path])
    proof.expect(not found, "; ".join(found))
    proof.figure(page, f"{len(sessions[path])} commands")


@check("point 4: docs/kubelet.md, from-containerd.md, guard.md and rootless.md work in clean guests", full_only=True)
def pages(proof: Proof) -> None:
    for page in ("kubelet.md", "from-containerd.md", "guard.md"):
        follow(proof, page, "cluster")
    follow(proof, "rootless.md", "guest")
