# SPDX-License-Identifier: Apache-2.0
"""nodens-bridge: volumes that cannot be idmapped, in pods with their own users. What is not there yet is listed as not reached."""
import re

from nodensdev.checks.prove import Proof, check

MINUTE = 60
FILES_LEAST, KILLS_LEAST, ATTACKS_LEAST = 37, 6, 20
# Points of the issue that have no check here, because what they are about does not exist or was not measured.
PENDING = (
    "a stock kubelet: nodens-cri starts it for a CRI client only; `nodens check --dir`, `inspect`, events and metrics do not show it",
    "real storage: NFS, SMB, S3 drivers and others; the tests have ext4, and a FUSE filesystem without file handles",
    "--as caller, --as owner and --force-owner have no test",
    "upgrade of a running server by one of another version",
    "kills at each system call, in place of kills at moments that the load decides",
    "a POSIX test suite (pjdfstest) and fsx beside the bare filesystem",
    "figures beside the bare filesystem and bindfs",
)


@check("files, owners, permissions, locks and attributes on volumes that are passed through, copied, found by names, and idmapped")
def files(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge", "-k", "test_files", timeout=10 * MINUTE).stdout, FILES_LEAST)


@check("each process is killed under eleven loads: no wrong result, counters exact, locks survive")
def kills(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge", "-k", "test_kills", timeout=10 * MINUTE).stdout, KILLS_LEAST)


@check("nodens-cri: containers of a pod share a bridged volume; restarts of daemon and container, kills, the end of the pod")
def runtime(proof: Proof) -> None:
    proof.passed(proof.dev("test", "cri-own", "-k", "test_bridged_volumes", timeout=10 * MINUTE).stdout, 8)


@check("500 kills of the server on each kind of volume", full_only=True)
def many_kills(proof: Proof) -> None:
    output = proof.dev("test", "bridge-kills", timeout=60 * MINUTE).stdout
    proof.passed(output, 3)
    proof.figure("seconds", " ".join(re.findall(r"passed.* in ([\d.]+)s", output)))


@check("a pod's root and users of the host attack the volume and its processes; nothing succeeds")
def attacks(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge", "-k", "test_attacks", timeout=10 * MINUTE).stdout, ATTACKS_LEAST)


@check("the same under ASan and UBSan")
def sanitizers(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge-asan", timeout=20 * MINUTE).stdout, FILES_LEAST + KILLS_LEAST + ATTACKS_LEAST)
