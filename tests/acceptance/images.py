# SPDX-License-Identifier: Apache-2.0
"""nodens-cri's first half: a gRPC server that real clients trust, and images that are pulled, verified, unpacked and kept."""
import json
import re
from pathlib import Path

from nodensdev import build
from nodensdev.bench import pulls
from nodensdev.checks.prove import Proof, check
from nodensdev.env import chroot, goprograms
from nodensdev.project import BUILD, TESTS

FUZZERS = ("reference", "manifest", "config", "layer", "challenge", "token", "hosts", "pull-event", "grpc", "grpc-session", "protobuf")
FUZZ_SECONDS = 20 * 60              # each
MALICIOUS_LEAST, KILLS_LEAST = 60, 200
PEER = """
"$1" "$2" >"$2.ready" & server=$!
for _ in $(seq 100); do [ -s "$2.ready" ] && break; sleep 0.05; done
"$3" peer "$2"; code=$?
kill $server; wait $server 2>/dev/null
exit $code
"""


@check("grpcio drives the gRPC server: deadlines, cancellation, many calls, large answers, clients that stall or vanish")
def grpcio(proof: Proof) -> None:
    proof.pytest("tests/component/grpc")


@check("so does grpc-go: 1,000 calls at once, 10 MiB, deadlines, 100 abrupt disconnects")
def grpc_go(proof: Proof) -> None:
    build.ensure(proof.inside, "gcc")
    client = chroot.seen_inside(goprograms.ensure("criclient") / "criclient")
    done = proof.run(["sh", "-c", PEER, "sh", "build/gcc/tests/component/grpc/grpc-peer", "/run/peer.sock", str(client)], timeout=300)
    proof.figure("checks", str(done.stdout.count("ok - ")))
    proof.expect("not ok" not in done.stdout and done.stdout.count("ok - ") >= 9, "every check of the client passes")


@check("the kubelet's own client pulls, lists and removes images of nodens-cri")
def kubelets_client(proof: Proof) -> None:
    proof.pytest("tests/component/cri/test_kubelet_client.py", runtimes=True)


@check("the CRI's image cases pass on nodens-cri, with containerd beside")
def cri_cases(proof: Proof) -> None:
    output = proof.pytest("tests/component/cri/test_images.py", runtimes=True)
    for name in ("nodens-cri", "containerd"):
        proof.figure(name, f"{len(re.findall(rf'{name} passed', output))} cases passed, "
                           f"{len(re.findall(rf'^(?:nodens-cri passed +)?{name} failed ', output, re.MULTILINE))} failed")


@check("what is unpacked equals what containerd unpacks: whiteouts, opaque directories, links, xattrs, capabilities, owners")
def trees(proof: Proof) -> None:
    proof.pytest("tests/component/cri/test_trees.py", runtimes=True)


@check("registries with TLS and tokens, mirrors that fail over, gzip and zstd, 100 layers, resumed downloads")
def registries(proof: Proof) -> None:
    proof.pytest("tests/component/pull/test_registry.py", runtimes=True)


@check("hostile images, manifests and registries are refused or harmless")
def malicious(proof: Proof) -> None:
    output = proof.pytest("tests/component/pull/test_malicious.py", runtimes=True)
    count = int(re.search(r"^(\d+) passed", output, re.MULTILINE)[1])  # type: ignore[index]
    proof.expect(count >= MALICIOUS_LEAST, f"at least {MALICIOUS_LEAST} of them are tried")


@check("every system call of the store's changes fails once (fault injection), and the store is consistent")
def faults(proof: Proof) -> None:
    build.ensure(proof.inside, "gcc")
    done = proof.run(["meson", "test", "--no-rebuild", "-C", "build/gcc", "--print-errorlogs", "oci-store-torture", "oci-store"],
                     timeout=900)
    proof.expect(re.search(r"^Ok: +2 *$", done.stdout, re.MULTILINE) is not None, "both tests ran and passed")


@check("every system call of a pull fails once, in each of the helper's processes: it says why, leaves nothing behind, and the next pull "
       "is whole")
def pull_faults(proof: Proof) -> None:
    output = proof.pytest("-s", "tests/component/pull/test_faults.py", runtimes=True)
    struck = [int(count) for count in re.findall(r"(\d+) calls failed", output)]
    proof.figure("faults", f"{sum(struck)} calls of {len(struck)} kinds")
    proof.expect(len(struck) >= 20, "at least 20 kinds of calls are tried")


@check("the helper works in a rootless node: root of a user namespace, with the node's IDs and no others")
def rootless(proof: Proof) -> None:
    proof.pytest("tests/component/pull/test_rootless.py", runtimes=True)


@check("200 random kills of nodens-cri and its helper, full disks, and pulls that resume: the store is consistent, without repair")
def kills(proof: Proof) -> None:
    output = proof.pytest("-s", "tests/component/image-store", runtimes=True)
    counted = re.search(r"(\d+) kills of nodens-cri, (\d+) of its helpers", output)
    proof.figure("kills", counted[0] if counted else "not counted")
    proof.expect(counted is not None and int(counted[1]) + int(counted[2]) >= KILLS_LEAST, f"there were {KILLS_LEAST} kills")


@check("a gigabyte in ten layers: time beside containerd's, memory of the daemon and of the helper")
def numbers(proof: Proof) -> None:
    proof.dev("bench", "images", timeout=1500)
    data = pulls.newest()
    assert data
    memory = data["results"]["memory"]
    daemon, helper = pulls.median(data, "nodens-cri", "idle_rss_kb") * 1024 / 1e6, memory["pss_sum_kb"] * 1024 / 1e6
    proof.note(json.dumps(data, indent=1))
    proof.aim("time, x containerd", pulls.ratio(data), most=pulls.RATIO_AIM)
    proof.aim("daemon idle, RSS", daemon, most=pulls.DAEMON_AIM_MB, unit=" MB")
    proof.aim(f"helper in {memory['processes']} processes", helper, most=pulls.HELPER_AIM_MB, unit=" MB")


@check("every parser of strangers' bytes is fuzzed for 20 minutes", full_only=True)
def fuzzers(proof: Proof) -> None:
    absent = [name for name in FUZZERS if not (TESTS / "fuzz" / name).is_dir()]
    proof.expect(not absent, f"there is a corpus for {', '.join(absent)}")
    done = proof.dev("fuzz", "--seconds", str(FUZZ_SECONDS * len(FUZZERS)), *FUZZERS, timeout=FUZZ_SECONDS * len(FUZZERS) + 3600)
    proof.figure("fuzzers", f"{len(re.findall(r'^ok ', done.stdout, re.MULTILINE))} of {len(FUZZERS)}")
    crashes = sorted(Path(BUILD / "fuzz-crashes").glob("*-crash-*"))
    proof.expect(not crashes, f"no crash is left: {[path.name for path in crashes]}")
