# SPDX-License-Identifier: Apache-2.0
"""nodens-cri among its neighbours: agents, Kubernetes 1.37, the field's tools, devices, engines in pods, growth.

What is not there yet is listed as not reached.
"""
import re

from nodensdev import critools
from nodensdev.bench import growth
from nodensdev.checks.prove import Proof, check
from nodensdev.cluster.options import OLD_KUBELETS
from nodensdev.project import TOP

MINUTE = 60
SETS = ("userns", "node", "conformance-node")
HOOKS_LEAST, DEVICES_LEAST, ENGINES_LEAST, ARTIFACTS_LEAST = 10, 8, 10, 20
# Points of the issue that have no check here, because what they are about does not exist or was not measured.
PENDING = (
    "one metric of 56, container_hugetlb_max_usage_bytes: cgroup v2 has no such counter",
    "the image of 10 GB in 60 layers beside containerd: `tools/dev bench large` was run with 1 GB in 10 layers",
    "growth beside containerd: the last run to 1,000 pods is of nodens-cri alone",
)


@check("point 1: agents find containers, commands and delegated cgroups by their rules, with both cgroup drivers")
def agents(proof: Proof) -> None:
    for suite in ("cri-guest", "cri-guest-systemd"):
        proof.passed(proof.dev("test", suite, "-k", "test_agents", timeout=30 * MINUTE).stdout, 1)


@check("point 1: critest: the counts of the page are those of the last results, and nodens-cri passes what containerd passes")
def critest_page(proof: Proof) -> None:
    proof.dev("lint", "tables", timeout=5 * MINUTE)
    results = critools.read(critools.RESULTS)[0]
    proof.expect(critools.BASELINE in results and not critools.lost(results), "; ".join(critools.lost(results)) or "containerd was run")
    for name, outcomes in results.items():
        proof.figure(name, f"{sum(one.plain_state() == 'passed' for one in outcomes)} of {len(outcomes)}")


@check("point 1: critest in full on nodens-cri, containerd and CRI-O", full_only=True)
def critest(proof: Proof) -> None:
    proof.passed(proof.dev("test", "critest", timeout=90 * MINUTE).stdout, 3)


@check("point 1: each command of crictl on nodens-cri")
def crictl(proof: Proof) -> None:
    proof.passed(proof.dev("test", "crictl", timeout=30 * MINUTE).stdout, 10)


@check("point 2: upstream's userns set of 1.37.1 on nodens-cri")
def userns(proof: Proof) -> None:
    upstream(proof, "userns")


@check("point 2: upstream's node and conformance-node sets of 1.37.1 on nodens-cri", full_only=True)
def sets(proof: Proof) -> None:
    for name in SETS[1:]:
        upstream(proof, name)


def upstream(proof: Proof, name: str) -> None:
    output = proof.dev("e2e", name, "--runtime", "nodens", timeout=4 * 60 * MINUTE).stdout
    found = re.search(r"^.*on nodens: (\d+ passed.*? (\d+) failed.*)$", output, re.MULTILINE)
    proof.expect(found is not None and found[2] == "0", "no test of the set failed")
    proof.figure(name, found[1] if found else "?")


@check("point 2: MemoryQoS reaches the cgroups of containers; kubelet 1.34")
def kubelets_short(proof: Proof) -> None:
    proof.passed(proof.dev("test", "versions", "-k", "requests_and_limits", timeout=20 * MINUTE).stdout, 8)
    proof.passed(proof.dev("test", "versions-short", timeout=20 * MINUTE).stdout, 3)


@check(f"point 2: common uses of pods with user namespaces under kubelets {', '.join(OLD_KUBELETS)}", full_only=True)
def kubelets(proof: Proof) -> None:
    proof.passed(proof.dev("test", "versions", timeout=60 * MINUTE).stdout, 5 * len(OLD_KUBELETS))


@check("point 2: the CRI's cases on nodens-cri and containerd; those on CRI-O are counted", full_only=True)
def cases(proof: Proof) -> None:
    proof.passed(proof.dev("test", "cri", timeout=60 * MINUTE).stdout, 100)
    output = proof.dev("test", "cri-crio", timeout=60 * MINUTE, expect=None).stdout
    proof.figure("CRI-O", (re.findall(r"^(?:=+ )?(\d+ (?:passed|failed).*?) in ", output, re.MULTILINE) or ["?"])[-1])


@check("point 3: CDI devices with NVIDIA's own hooks, with and without a user namespace; hostile roots; containerd beside it")
def hooks(proof: Proof) -> None:
    proof.passed(proof.dev("test", "cri", "-k", "test_cdi_hooks", timeout=20 * MINUTE).stdout, HOOKS_LEAST)


@check("point 3: owners of devices; config.json is readable for the pod's root only; the host's nodes stay the host's")
def devices(proof: Proof) -> None:
    proof.passed(proof.dev("test", "cri-own", "-k", "test_devices or test_bundle", timeout=20 * MINUTE).stdout, DEVICES_LEAST)


@check("point 3: a loop device that a device plugin gives to a stock kubelet, with and without a user namespace")
def device_plugin(proof: Proof) -> None:
    proof.passed(proof.dev("test", "stories", "-k", "disk_of_a_device_plugin", timeout=20 * MINUTE).stdout, 2)


@check("point 4: controllers enabled inside, limits, attacks on the node's cgroups, with both cgroup drivers")
def cgroups(proof: Proof) -> None:
    for suite in ("cri-guest", "cri-guest-systemd"):
        proof.passed(proof.dev("test", suite, "-k", "test_nested_cgroups", timeout=30 * MINUTE).stdout, 1)


@check("point 4: engines in pods under a stock kubelet, each with a limit that the kernel enforces and a root that is not the node's",
       full_only=True)
def engines(proof: Proof) -> None:
    proof.passed(proof.dev("test", "nested", timeout=60 * MINUTE).stdout, ENGINES_LEAST)
    proof.passed(proof.dev("test", "rootless-pod", timeout=45 * MINUTE).stdout, 13)


@check("point 4: each recipe of the page has a manifest that a test uses")
def recipes(proof: Proof) -> None:
    tests = (TOP / "tests/cluster/scenarios/nested/test_engines.py").read_text()
    found = sorted(path.stem for path in (TOP / "docs/examples/nested").glob("*.yaml"))
    for name in found:
        proof.expect(name in tests, f"docs/examples/nested/{name}.yaml is used by a test")
    proof.figure("manifests", ", ".join(found))


@check("step 5: OCI artifacts as image volumes, hostile titles; owners that a pod does not have are named before the start")
def artifacts(proof: Proof) -> None:
    proof.passed(proof.dev("test", "cri-own", "-k", "test_artifacts or test_image_owners", timeout=20 * MINUTE).stdout, ARTIFACTS_LEAST)


@check("step 5: 100 pods of an image with 50 layers beside containerd", full_only=True)
def many_layers(proof: Proof) -> None:
    proof.note(proof.dev("bench", "layers", timeout=60 * MINUTE).stdout)


@check("point 5: start of one more pod, memory and restart over the number of pods up to 2,000, beside containerd", full_only=True)
def growth_curve(proof: Proof) -> None:
    data = growth.run(rounds=1)
    for kind in growth.KINDS:
        starts = {stage["pods"]: sorted(stage["one_more_pod_ms"])[len(stage["one_more_pod_ms"]) // 4] for stage in data["results"][kind][0]}
        proof.figure(kind, ", ".join(f"{pods} pods: {value:.0f} ms" for pods, value in starts.items()))
        if kind == critools.OURS:
            proof.aim("one more pod at 1,000 pods, x one at 10", starts[1000] / starts[10], most=1.2)
