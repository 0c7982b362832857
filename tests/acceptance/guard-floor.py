# SPDX-License-Identifier: Apache-2.0
"""nodens-guard, second half: version floor, version skew, audit, installation."""
import json
import re

from nodensdev import skew
from nodensdev.bench import floor as bench
from nodensdev.checks import page_commands
from nodensdev.checks.prove import Proof, check
from nodensdev.cluster import switch
from nodensdev.cluster.options import OLD_KUBELETS, UNSUPPORTED_KUBELETS
from nodensdev.project import TOP

MINUTE = 60
WORKLOADS_LEAST, FINDINGS = 40, 7
EXPORTED = 80       # pods whose verdicts are compared, at least
TASKS = ("require-user-namespaces", "rootful-images", "podman-in-a-pod", "from-openshift", "from-psp", "guard-operate", "version-floor",
         "pod-security-labels", "guard-remove")


@check("point 4: the guard's image from its package: under 15 MB, one program, not root, the same each time, and it serves")
def image(proof: Proof) -> None:
    output = proof.dev("test", "guard-image", timeout=30 * MINUTE).stdout
    proof.passed(output, 6)
    proof.figure("size", (re.findall(r"guard image: (.*)", output) or ["?"])[0])


@check("point 4: the chart with default values is the Kustomize base; both are current; alerts fire when they should")
def deploy(proof: Proof) -> None:
    proof.dev("lint", "deploy", timeout=20 * MINUTE)
    proof.passed(proof.dev("test", "guard", "-k", "test_deploy or test_alerts", timeout=20 * MINUTE).stdout, 17)


@check("points 2 and 4: the chart installed, upgraded, rolled back and removed on a cluster; a refused Deployment says why in its events; "
       "authorities rotated under load", full_only=True)
def chart(proof: Proof) -> None:
    output = proof.dev("test", "guard-chart", timeout=45 * MINUTE).stdout
    proof.passed(output, 6)
    for line in re.findall(r"^\.*((?:upgrade and rollback|rotation|a deleted replica|kubectl get events): .*)$", output, re.MULTILINE):
        proof.figure("seen", line)


@check("point 4: guards are replaced under load and no review fails; labels of pod security follow grants, and never exceed them")
def replaced(proof: Proof) -> None:
    output = proof.dev("test", "guard", "-k", "test_drain or test_label_sync", timeout=25 * MINUTE).stdout
    proof.passed(output, 14)
    for line in re.findall(r"^\.*(three replicas ended: .*)$", output, re.MULTILINE):
        proof.figure("seen", line)


@check("point 4: exported policies beside the webhook, on a real API server: the same verdicts; OpenShift's constraints imported")
def exported(proof: Proof) -> None:
    proof.passed(proof.dev("test", "guard", "-k", "test_export or test_import", timeout=25 * MINUTE).stdout, EXPORTED)


@check("point 4: a page for each task, followed in a guest with a control plane and a kubelet", full_only=True)
def tasks(proof: Proof) -> None:
    sessions = page_commands.sessions("cluster")
    problems = []
    for name in TASKS:
        shown = sessions.get(TOP / f"docs/{name}.md", [])
        proof.expect(bool(shown), f"docs/{name}.md has commands")
        problems += page_commands.in_cluster(shown)
        proof.figure(name, f"{len(shown)} commands")
    proof.expect(not problems, "; ".join(problems))


@check(f"point 3: nodens audit finds each of the {FINDINGS} on a prepared cluster and nothing on a clean one; reports, rights, "
       "hostile servers")
def audit(proof: Proof) -> None:
    proof.passed(proof.dev("test", "guard", "-k", "test_audit", timeout=20 * MINUTE).stdout, FINDINGS)


@check(f"point 3: the verdict 'could run in a user namespace': at least {WORKLOADS_LEAST} workloads run both ways on a node, no false yes")
def readiness(proof: Proof) -> None:
    output = proof.dev("test", "audit-node", timeout=25 * MINUTE).stdout
    proof.passed(output, 2)
    found = re.search(r"^(\d+) workloads run both ways, (\d+) of them ready, false yes: (\d+), false no: (\d+)", output, re.MULTILINE)
    proof.expect(found is not None and int(found[1]) >= WORKLOADS_LEAST and int(found[3]) == 0, "no false yes")
    proof.figure("workloads", found[0] if found else "none")


@check("point 3: the table of workloads is one file, which the verdict test and the run both use")
def table(proof: Proof) -> None:
    for path in ("tests/component/guard/test_audit.py", "tests/cluster/scenarios/test_audit.py"):
        proof.expect("from nodenstest.audit_workloads import" in (TOP / path).read_text(), f"{path} uses the table")


def skew_tests(proof: Proof, *words: str) -> None:
    output = proof.dev("test", "skew", *words, timeout=90 * MINUTE).stdout
    counts = re.findall(r"^(?:=+ )?(\d+ passed.*?)(?: in .*)?$", output, re.MULTILINE)
    proof.expect(bool(counts) and "skipped" not in counts[0], f"tests ran, and none was skipped: {counts}")
    proof.figure("tests", counts[0])


@check("point 1: stock kubelets 1.29.6, 1.32.13, 1.33 and 1.34, and one that is linked with an older version string")
def kubelets(proof: Proof) -> None:
    for name in (*UNSUPPORTED_KUBELETS, *OLD_KUBELETS):
        said = proof.machine([str(switch.program(name)), "--version"]).stdout.strip()
        proof.expect(said == f"Kubernetes {switch.reported_version(name)}", f"kubelet '{name}' reports its version: {said}")
        proof.figure(name, said.removeprefix("Kubernetes "))


@check("point 1: kubelet 1.29.6 ignores hostUsers, 1.32.13 refuses it; the relinked one reports an older version to the API server")
def older(proof: Proof) -> None:
    skew_tests(proof, "-k", "relinked or definite_outcome and (1.29.6 or 1.32.13) and not UserNamespacesSupport")


@check("point 5: the tables of docs/version-skew.md are those of the last results, and complete")
def skew_tables(proof: Proof) -> None:
    proof.dev("lint", "tables")
    proof.expect(not skew.problems(), "page and results agree")
    proof.figure("cells", str(len(skew.read(skew.RESULTS)[0])))


@check("point 5: every cell of the skew table, measured again", full_only=True)
def skew_cells(proof: Proof) -> None:
    skew_tests(proof)
    found, committed = skew.read(skew.NEWEST)[0], skew.read(skew.RESULTS)[0]
    proof.expect({(cell.table, cell.row, cell.column, cell.outcome) for cell in found}
                 == {(cell.table, cell.row, cell.column, cell.outcome) for cell in committed}, "outcomes are those of the page")
    proof.figure("cells", str(len(found)))


@check("point 1: the version floor beside a stock API server: relaxations, two phases, replicas, pools, joining nodes, certificates")
def floor(proof: Proof) -> None:
    proof.passed(proof.dev("test", "guard", "-k", "test_floor and not test_floor_failures", timeout=30 * MINUTE).stdout, 10)


@check("point 1: the authorizer: locks at once, unlocks by the first report, odd versions, other names, no contact, a broken floor")
def authorizer(proof: Proof) -> None:
    proof.passed(proof.dev("test", "guard", "-k", "test_authorizer", timeout=30 * MINUTE).stdout, 10)


@check("point 1: real kubelets 1.28.15 (relinked), 1.29.6, 1.32.13, 1.33, 1.34 on a cluster: locked, cannot join, NotReady, recovery, "
       "two phases; no pod that relies on user namespaces runs on 1.29.6", full_only=True)
def floor_node(proof: Proof) -> None:
    output = proof.dev("test", "floor-node", timeout=60 * MINUTE).stdout
    proof.passed(output, 9)
    for line in re.findall(r"^\.*(kubelet v.*: locked .*)$", output, re.MULTILINE):
        proof.figure("seen", line)


@check("point 2: watch expired, API server gone, data a minute old, a killed replica, rotation of the authorizer's authority under load, "
       "cold start: no wrong allow, no crash, kube-system works")
def failures(proof: Proof) -> None:
    output = proof.dev("test", "guard", "-k", "test_floor_failures", timeout=30 * MINUTE).stdout
    proof.passed(output, 7)
    for line in re.findall(r"^\.*((?:rotation|cold start|a silent connection): .*)$", output, re.MULTILINE):
        proof.figure("seen", line)


@check("point 2: the authorizer's p99 at 2,000 reviews/s; admission that must ask a real API server beside bare SubjectAccessReviews")
def latency(proof: Proof) -> None:
    proof.dev("bench", "floor", "--no-page", *([] if proof.full else ["--seconds", "4"]), timeout=30 * MINUTE)
    data = json.loads(max(bench.RESULTS.glob("floor-2*.json")).read_text())
    one = data["authorizer"]["at_rate"]
    proof.aim("authorizer, reviews/s", one["per_second"], least=0.99 * bench.RATE_AIM)
    proof.aim("authorizer, 99 % processed within", one["server_p99_us"], most=bench.P99_AIM_US, unit=" us")
    proof.figure("authorizer, 99 % of round trips within", f"{one['p99_us']} us")
    proof.aim("admission that asks, x bare SubjectAccessReviews", data["asking"]["ratio"], least=bench.RATIO_AIM)
