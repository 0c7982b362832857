# SPDX-License-Identifier: Apache-2.0
"""nodens-rootless, first half: a node's namespaces, view, network and published ports for an ordinary user."""
import re
from pathlib import Path

from nodensdev import build
from nodensdev.bench import rootless
from nodensdev.checks.prove import Miss, Proof, check
from nodensdev.env import goprograms, root
from nodensdev.project import BUILD, TESTS

FUZZERS = ("api", "control", "node-record", "ports", "resolv", "settings")
FUZZ_SECONDS = 10 * 60              # each
SECURITY_LEAST = 90                 # attempts from inside
# Four runs with priority or the machine to themselves: 1.07, 1.05, 1.06 and 1.01.
KNOWN = {"throughput, x RootlessKit builtin": Miss(
    0.9, "all programs that splice, bare splice included, reach the same 22 to 23 Gbit/s here, and the forwarder uses 0.4 of a CPU: "
         "client and server are the limit. Runs of one forwarder differ by 5 %; keeping clients' addresses costs 4 %")}


@check("one command in a node of its own: IDs, streams, signals, exit code, egress by pasta, slirp4netns, none and host, IPv4 and IPv6")
def run(proof: Proof) -> None:
    proof.pytest("tests/component/rootless/test_run.py")


@check("nodes that last: up, status, shell, down; they outlive their launcher and their helper, and follow the machine's network")
def nodes(proof: Proof) -> None:
    proof.pytest("tests/component/rootless/test_node.py", "tests/component/rootless/test_network.py")


@check("what root of a node tries and does not get: loopback, sockets, home, bus, agents, processes, cgroups, switches")
def security(proof: Proof) -> None:
    output = proof.pytest("tests/component/rootless/test_security.py")
    count = int(re.search(r"^(\d+) passed", output, re.MULTILINE)[1])  # type: ignore[index]
    proof.expect(count >= SECURITY_LEAST, f"at least {SECURITY_LEAST} of them are tried")


@check("published ports: servers in the node and pods behind DNAT see their clients' addresses, TCP and UDP, IPv4 and IPv6; RootlessKit's "
       "API; nothing is lost when descriptors run out")
def ports(proof: Proof) -> None:
    proof.pytest("tests/component/rootless/test_ports.py")


@check("a node on a bridge by lxc-user-nic: egress under its own address, IPv4 and IPv6; the link outlives its creator, and ports lead "
       "to it")
def bridge(proof: Proof) -> None:
    root.ensure("lxc")
    proof.pytest("tests/component/rootless/test_bridge.py")


@check("`nodens check --rootless`: first of all room for pods, and for everything that is missing the command; Ubuntu's switch from a "
       "made-up file")
def doctor(proof: Proof) -> None:
    proof.pytest("tests/component/rootless/test_check.py")


@check("kube-proxy 1.37.1 in nftables mode runs inside, with a pod behind its node port; pods of two machines by VXLAN over both helpers")
def kubernetes(proof: Proof) -> None:
    goprograms.ensure("kubernetes")
    output = proof.pytest("-s", "tests/component/rootless/kubernetes.py")
    for line in re.findall(r"^(?:Kubernetes v|pods of two).*$", output, re.MULTILINE):
        proof.figure("seen", line)


@check("helper, launcher, forwarder and controller are killed 50 times each under traffic: the node lives on, other connections go on, "
       "network and ports come back")
def kills(proof: Proof) -> None:
    output = proof.pytest("-s", "tests/component/rootless/kills.py")
    for line in re.findall(r"^.*\bkills of the .*$", output, re.MULTILINE):
        proof.figure("seen", line.strip("."))
    proof.expect(len(re.findall(r"50 kills of the ", output)) == 5, "50 kills of each")


@check("the same by the user's systemd, with delegated controllers, on the quick kernel")
def systemd(proof: Proof) -> None:
    build.ensure(proof.inside, "gcc")
    done = proof.dev("vm", "run", "--share", str(BUILD / "gcc"), str(TESTS / "component/rootless/guest"), timeout=300)
    proof.expect("all of it works" in done.stdout, "the guest's script came to its end")


@check("the kernel does what this leans on: persistent taps, roots of cgroup namespaces, answers to foreign addresses")
def kernel(proof: Proof) -> None:
    build.ensure(proof.inside, "gcc")
    done = proof.run(["meson", "test", "--no-rebuild", "-C", "build/gcc", "--print-errorlogs",
                      "a persistent tap keeps its routes when its reader dies",
                      "the root of a cgroup namespace is where its first process began",
                      "an answer to a foreign address comes back to the socket that has it"], timeout=120)
    proof.expect(re.search(r"^Ok: +3 *$", done.stdout, re.MULTILINE) is not None, "all three ran and passed")


@check("ports, memory and starts beside RootlessKit 3.1, bare splice and nothing, in one run", full_only=True)
def numbers(proof: Proof) -> None:
    data = rootless.run(rounds=4, pods=False)
    proof.note(rootless.as_text(data))
    for aim in rootless.aims(data):
        proof.aim(aim.name, aim.value, most=aim.most, least=aim.least, unit=aim.unit, known=KNOWN.get(aim.name))


@check("everything by systemd under Debian's own kernel, with clients' addresses kept and the AppArmor profile in force", full_only=True)
def debian(proof: Proof) -> None:
    build.ensure(proof.inside, "gcc")
    done = proof.dev("vm", "run", "--kernel", "debian", "--deadline", "1500", "--share", str(BUILD / "gcc"),
                     str(TESTS / "component/rootless/guest"), timeout=2000)
    proof.expect("all of it works" in done.stdout, "the guest's script came to its end")
    proof.expect("the profile is loaded" in done.stdout, "AppArmor was there")
    proof.expect("clients' addresses are kept" in done.stdout, "a server in the node saw its client's address")


@check("every parser is fuzzed for ten minutes", full_only=True)
def fuzzers(proof: Proof) -> None:
    done = proof.dev("fuzz", "--seconds", str(FUZZ_SECONDS * len(FUZZERS)), *FUZZERS, timeout=FUZZ_SECONDS * len(FUZZERS) + 1800)
    proof.figure("fuzzers", f"{len(re.findall(r'^ok ', done.stdout, re.MULTILINE))} of {len(FUZZERS)}")
    crashes = sorted(path for name in FUZZERS for path in Path(BUILD / "fuzz-crashes").glob(f"{name}-crash-*"))
    proof.expect(not crashes, f"no crash is left: {[path.name for path in crashes]}")
