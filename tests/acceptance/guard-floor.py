# SPDX-License-Identifier: Apache-2.0
"""nodens-guard, second half: an installation for production. The version floor and skew have checks of their own."""
import re

from nodensdev.checks import page_commands
from nodensdev.checks.prove import Proof, check
from nodensdev.project import TOP

MINUTE = 60
EXPORTED = 80       # pods whose verdicts are compared, at least
TASKS = ("require-user-namespaces", "rootful-images", "podman-in-a-pod", "from-openshift", "from-psp", "guard-operate", "guard-remove")


def passed(proof: Proof, output: str, least: int) -> None:
    found = re.search(r"^(\d+) passed", output, re.MULTILINE)
    proof.expect(found is not None and int(found[1]) >= least, f"at least {least} tests passed")
    proof.figure("tests", found[0] if found else "none")


@check("point 4: the guard's image from its package: under 15 MB, one program, not root, the same each time, and it serves")
def image(proof: Proof) -> None:
    output = proof.dev("test", "guard-image", timeout=30 * MINUTE).stdout
    passed(proof, output, 6)
    proof.figure("size", (re.findall(r"guard image: (.*)", output) or ["?"])[0])


@check("point 4: the chart with default values is the Kustomize base; both are current; alerts fire when they should")
def deploy(proof: Proof) -> None:
    proof.dev("lint", "deploy", timeout=20 * MINUTE)
    passed(proof, proof.dev("test", "guard", "-k", "test_deploy or test_alerts", timeout=20 * MINUTE).stdout, 17)


@check("points 2 and 4: the chart installed, upgraded, rolled back and removed on a cluster; a refused Deployment says why in its events; "
       "authorities rotated under load", full_only=True)
def chart(proof: Proof) -> None:
    output = proof.dev("test", "guard-chart", timeout=45 * MINUTE).stdout
    passed(proof, output, 6)
    for line in re.findall(r"^\.*((?:upgrade and rollback|rotation|a deleted replica|kubectl get events): .*)$", output, re.MULTILINE):
        proof.figure("seen", line)


@check("point 4: exported policies beside the webhook, on a real API server: the same verdicts; OpenShift's constraints imported")
def exported(proof: Proof) -> None:
    passed(proof, proof.dev("test", "guard", "-k", "test_export or test_import", timeout=25 * MINUTE).stdout, EXPORTED)


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
