# SPDX-License-Identifier: Apache-2.0
"""nodens-rootless, second half: a Kubernetes node of an ordinary user. What is not there yet is listed as not reached."""
import re

from nodensdev.checks.prove import Proof, check
from nodensdev.env import uml
from nodensdev.project import TESTS

SCENARIOS = "tests/cluster/scenarios/rootless"
# Points of the issue that have no check here, because what they are about does not exist or was not measured.
PENDING = (
    "a complete cluster from nothing as one user, first pod Ready within 60 s of the command (up --control-plane)",
    "a node inside rootless podman, and inside a pod (up --inside)",
    "the batch-job form with three nodes under Slurm",
    "hostUsers: false pods inside the node, each with its own sub-range of IDs",
    "nodes with 2,048 subordinate IDs and with none",
    "upstream's sets userns, node and conformance-node on the rootless node",
    "each part killed 50 times under traffic, ports away for at most 2 s (here: each part once)",
    "the API server away for two minutes",
    "figures: pod start, throughput and memory beside the rootful node and RootlessKit",
    "25 attacks by root of the node and by pods on the user's account beyond those of `tools/dev prove rootless-launcher`",
)


@check("the kernel of the node's host: NAT, kube-proxy's and CNI's rules, AppArmor, PSI, cgroup controllers, in a guest without modules")
def kernel(proof: Proof) -> None:
    proof.figure("source", (uml.built() / "version").read_text().split("/")[-1].strip())
    done = proof.dev("vm", "run", "--kernel", "uml-nft", str(TESTS / "cluster/testbed/packet-filter"), timeout=900)
    proof.expect("all of it works" in done.stdout, "the guest's script came to its end")


def scenarios(proof: Proof, suite: str) -> None:
    output = proof.dev("test", suite, timeout=45 * 60).stdout
    counts = re.findall(r"^(?:=+ )?(\d+ passed.*?)(?: in .*)?$", output, re.MULTILINE)
    proof.expect(bool(counts) and "skipped" not in counts[0], f"tests ran, and none was skipped: {counts}")
    proof.figure("tests", counts[0])


@check("alice's node with nodens-cri joins a stock control plane: workloads, services, streams, volumes, kills of each part, down and up")
def own(proof: Proof) -> None:
    scenarios(proof, "rootless-node")


@check("the same with containerd")
def containerd(proof: Proof) -> None:
    scenarios(proof, "rootless-node-containerd")


@check("two nodes of alice on two hosts: pods by their addresses and by a Service, UDP through a node port with the client's address")
def pair(proof: Proof) -> None:
    scenarios(proof, "rootless-nodes")


@check("the network of pods of several nodes: MTU, changes of the list, kills, forged frames; flannel in its place")
def network(proof: Proof) -> None:
    done = proof.dev("test", "rootless", "-k", "test_overlay", timeout=20 * 60).stdout
    proof.figure("tests", next(iter(re.findall(r"^(?:=+ )?(\d+ passed.*?)(?: in .*)?$", done, re.MULTILINE)), "none"))
    proof.dev("test", "rootless-flannel", timeout=20 * 60)
