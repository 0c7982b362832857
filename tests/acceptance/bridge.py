# SPDX-License-Identifier: Apache-2.0
"""nodens-bridge: volumes that cannot be idmapped, in pods with their own users. What is not there yet is listed as not reached."""
import re

from nodensdev.checks.prove import Proof, check

MINUTE = 60
FILES_LEAST, KILLS_LEAST, CALLS_LEAST, ATTACKS_LEAST, STORAGE_LEAST = 37, 9, 54, 20, 250
# Points of the issue that have no check here, because what they are about does not exist or was not measured.
PENDING = (
    "metadata over NFS at least 0.4 x: first stat 0.37, open and close 0.21, list 0.25, in a guest with one CPU where each request of FUSE "
    "costs two changes of the process (docs/bridge.md)",
    "sequential writes on ext4 at least 0.8 x: 0.62 in the recorded run, of which two of five rounds were slow, 0.87 in another",
    "kills at each system call over NFS: on the node's own kernel only, User-mode Linux fails requests of a killed server",
    "fsx for an hour: 200,000 operations with 500 kills take four minutes on each version of NFS (`--full`)",
    "replacement of a running server on NFS: on local storage and FUSE only, User-mode Linux has no kcmp()",
    "virtiofs and CephFS: no server in the testbed",
)


@check("files, owners, permissions, locks and attributes on volumes that are passed through, copied, found by names, and idmapped")
def files(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge", "-k", "test_files", timeout=10 * MINUTE).stdout, FILES_LEAST)


@check("each process is killed under eleven loads: no wrong result, counters exact, locks survive")
def kills(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge", "-k", "test_kills", timeout=10 * MINUTE).stdout, KILLS_LEAST)


@check("the server is killed before and after system calls, one of seven, of 18 kinds of operation: each ends as without kills")
def calls(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge", "-k", "test_each_call", timeout=10 * MINUTE).stdout, CALLS_LEAST)


@check("the same before and after each system call", full_only=True)
def each_call(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge-each-call", timeout=30 * MINUTE).stdout, CALLS_LEAST)


@check("another nodens-bridge replaces all processes: refusals, failures, what stays open")
def replacement(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge", "-k", "test_replace", timeout=10 * MINUTE).stdout, 9)


@check("kills on NFS 3 and 4.2 under eleven loads, and while a file is compared with its copy in memory")
def nfs_kills(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge-storage-kills", timeout=15 * MINUTE).stdout, 8)


@check("500 kills on NFS 3 and 4.2, and 200,000 operations on a file with 500 kills", full_only=True)
def nfs_many_kills(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge-storage-nightly", timeout=3 * 60 * MINUTE).stdout, 4)


@check("kills and replacements on NFS with Debian's kernel", full_only=True)
def debian_kills(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge-storage-debian", timeout=3 * 60 * MINUTE).stdout, 8)


@check("nodens-cri: containers of a pod share a bridged volume; restarts of daemon and container, kills, the end of the pod")
def runtime(proof: Proof) -> None:
    proof.passed(proof.dev("test", "cri-own", "-k", "test_bridged_volumes", timeout=10 * MINUTE).stdout, 16)


@check("POSIX cases, one of eleven, end as on an idmapped mount of the same filesystem")
def posix(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge", "-k", "test_posix", timeout=10 * MINUTE).stdout, 4)


@check("all POSIX cases", full_only=True)
def all_posix(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge-posix", timeout=60 * MINUTE).stdout, 4)


@check("a stock kubelet: PersistentVolumes on kernel NFS and S3; subPath, read-only, kills, restarts, a server that is away")
def kubelet(proof: Proof) -> None:
    proof.passed(proof.dev("test", "storage-node", timeout=30 * MINUTE).stdout, 7)


@check("the same pods on containerd do not start", full_only=True)
def containerd(proof: Proof) -> None:
    proof.passed(proof.dev("test", "storage-node-containerd", timeout=30 * MINUTE).stdout, 2)


@check("NFS 3 and 4.2, SMB, 9p, sshfs, S3, bindfs and local storage, each with its server; servers that squash root")
def real_storage(proof: Proof) -> None:
    proof.passed(proof.dev("test", "bridge-storage", timeout=60 * MINUTE).stdout, STORAGE_LEAST)


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
