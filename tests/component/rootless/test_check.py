# SPDX-License-Identifier: Apache-2.0
"""`nodens check --rootless`: missing requirements, with the commands that fix them.

Also `nodens check` as an ordinary user, in a node and for one directory.
"""
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nodenstest import machine

NODENS = machine.PROGRAM.replace("/rootless/nodens-rootless", "/nodens")


def on_changed_host(setup: str, *argv: str) -> subprocess.CompletedProcess[str]:
    """Runs a command as the user on a host that was changed by shell commands, for this command only."""
    command = " ".join(f"'{word}'" for word in machine.as_user(*argv))
    return subprocess.run(["unshare", "--mount", "--propagation=private", "sh", "-ec", f"{setup}; exec {command}"],
                          env=machine.environment(), capture_output=True,
                          text=True, timeout=3 * machine.LIMIT, cwd="/", check=False)


def findings_of(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    assert done.stdout, done.stderr
    return {finding["check"]: finding for finding in json.loads(done.stdout)["checks"]}


def check(setup: str = "true") -> dict[str, dict[str, Any]]:
    """The findings about a rootless node of the user, by name."""
    return findings_of(on_changed_host(setup, NODENS, "check", "--rootless", "--json"))


def check_node(setup: str = "true") -> dict[str, dict[str, Any]]:
    """The findings about root's node that the user sees."""
    return findings_of(on_changed_host(setup, NODENS, "check", "--json"))


def subids(text: str) -> str:
    return f"printf '{text}' >/tmp/subids-of-a-test; for f in subuid subgid; do mount --bind /tmp/subids-of-a-test /etc/$f; done"


def test_the_first_finding_is_the_number_of_pods_with_room() -> None:
    findings = check()
    assert findings["subordinate IDs"]["found"] == "196609 IDs for a node, enough for 2 pods with hostUsers: false"
    of_users = [name for name in findings
                if name in ("subordinate IDs", "open files", "unprivileged user namespaces", "/dev/net/tun", "newuidmap", "pasta")]
    assert of_users[0] == "subordinate IDs" and len(of_users) == 6


def test_a_user_sees_nothing_about_roots_node() -> None:
    done = machine.user(NODENS, "check", "--rootless", "--json", check=False)
    report = json.loads(done.stdout)
    assert {finding["group"] for finding in report["checks"]} == {"Kernel", "Rootless"}
    assert "run nodens check as root" not in done.stdout and "pod IDs" not in done.stdout
    table = machine.user(NODENS, "check", "--rootless", check=False).stdout
    assert re.search(r"^This host is \w+ for rootless nodes\.$", table, re.MULTILINE)


def test_findings_of_a_user_without_root_name_their_paths() -> None:
    findings = check_node()
    assert findings["images in /var/lib/nodens"]["verdict"] == "note"
    assert "clone the mount at '/" in findings["images in /var/lib/nodens"]["found"]
    assert "conmon" not in findings


def directory(path: str) -> tuple[subprocess.CompletedProcess[str], dict[str, dict[str, Any]]]:
    """The table and the findings of `nodens check --dir`, as root."""
    table, report = (subprocess.run([NODENS, "check", "--dir", path, *more], capture_output=True, text=True, timeout=machine.LIMIT,
                                    check=False) for more in ((), ("--json",)))
    return table, findings_of(report) if report.stdout else {}


def test_the_verdict_on_a_directory_is_not_one_on_the_node() -> None:
    table, findings = directory("/proc")
    assert table.returncode == 2
    assert table.stdout.endswith("This directory is unusable for pods with user namespaces.\n")
    assert "modprobe" not in table.stdout, "the cause is idmapping, not a missing overlay"
    assert "bridge: auto" in findings["volumes in /proc"]["advice"]
    assert findings["images in /proc"]["advice"].startswith("use a filesystem with idmapped mounts")


@pytest.mark.parametrize(("path", "words"), [("/nosuch", "No such file or directory"), ("/etc/passwd", "Not a directory")])
def test_a_directory_that_is_not_there_is_an_error(path: str, words: str) -> None:
    table, findings = directory(path)
    assert table.returncode == 2 and not findings and table.stdout == ""
    assert table.stderr == f"nodens check: open directory '{path}': {words}\n"


def test_in_a_rootless_node_no_other_filesystem_of_the_host_is_advised() -> None:
    programs = ("--bind", f"{Path(NODENS).parent}:ro")
    done = machine.node_run(NODENS, "check", "--json", "--dir", "/usr", options=("--net", "none", *programs), check=False)
    finding = findings_of(done)["volumes in /usr"]
    assert finding["verdict"] == "fail" and "Operation not permitted" in finding["found"]
    assert "ext4" not in finding["advice"] and "rootless node" in finding["advice"]


ADVICE = "as root: usermod --add-subuids 524288-1572863 --add-subgids 524288-1572863 worker"


def test_a_user_without_subordinate_ids_gets_a_node_and_the_command_for_more() -> None:
    done = on_changed_host(subids(""), machine.PROGRAM, "run", "--net", "none", "--", "true")
    assert done.returncode == 0 and ADVICE in done.stderr, done.stderr
    finding = check(subids(""))["subordinate IDs"]
    assert finding["verdict"] == "warn" and finding["advice"] == ADVICE
    assert finding["found"].startswith("no subordinate IDs of user 'worker': a node has one ID")


@pytest.mark.parametrize("lines, ids, pods", [
    ("", 1, 0), ("worker:100000:2048\\n", 2049, 0), ("worker:100000:65536\\n", 65537, 0), ("worker:100000:131071\\n", 131072, 1),
    ("worker:100000:65536\\nworker:524288:983040\\n", 1048577, 15), ("worker:100000:7274495\\n", 7274496, 110)])
def test_the_number_of_pods_with_user_namespaces_is_computed_up_front(lines: str, ids: int, pods: int) -> None:
    done = on_changed_host(subids(lines), machine.PROGRAM, "up", "--dry-run", "--net", "none")
    told = next(line for line in done.stdout.splitlines() if line.startswith("ids "))
    what = f"enough for {pods} pod{'s' * (pods > 1)} with hostUsers: false" if pods else "not enough for pods with hostUsers: false"
    assert told.startswith(f"ids       {ids} ID{'s' * (ids > 1)}, {what}")
    assert ("limit " in done.stdout) == (ids < 65536) and ("usermod" in done.stdout) == (pods == 0)
    found = check(subids(lines))["subordinate IDs"]
    assert found["verdict"] == ("ok" if pods else "warn")
    assert (f"enough for {pods} pods" in found["found"]) == bool(pods)


def test_limits_of_few_ids_are_listed() -> None:
    few = on_changed_host(subids("worker:100000:2048\\n"), machine.PROGRAM, "up", "--dry-run", "--net", "none").stdout
    assert "only users 0 to 2045, 65532 to 65534 and groups 0 to 2045, 65532 to 65534 exist" in few
    assert "files of images with other owners belong to root" in few and "supplementary groups" not in few
    one = on_changed_host(subids(""), machine.PROGRAM, "up", "--dry-run", "--net", "none").stdout
    assert "only users 0 and groups 0 exist" in one and "processes keep the user's supplementary groups" in one


def test_65536_ids_are_not_enough_for_pods() -> None:
    finding = check(subids("worker:100000:65536\\n"))["subordinate IDs"]
    assert finding["verdict"] == "warn"
    assert "no whole block of 65536" in finding["found"]
    assert finding["advice"] == "as root: usermod --add-subuids 524288-1572863 --add-subgids 524288-1572863 worker"


def test_ids_of_other_users_are_not_advised() -> None:
    finding = check(subids("other:1000000:65536\\nanother:524288:65536\\nnonsense\\n:::\\n"))["subordinate IDs"]
    assert finding["verdict"] == "warn"
    assert finding["advice"] == "as root: usermod --add-subuids 1114112-2162687 --add-subgids 1114112-2162687 worker"


def test_subordinate_ids_that_overlap_pods_are_a_warning_if_a_kubelet_has_run() -> None:
    mine, kubelet = subids("worker:100000:65536\\n"), "mount -t tmpfs none /var/lib; mkdir /var/lib/kubelet"
    assert check_node(mine)["pod IDs and users"]["verdict"] == "note"
    finding = check_node(f"{mine}; {kubelet}")["pod IDs and users"]
    assert finding["verdict"] == "warn"
    assert finding["found"].startswith("IDs of user worker (100000 to 165535 in /etc/subuid) overlap those of pods")
    apart = subids("worker:100000:65536\\nkubelet:655360000:7208960\\n")
    known = ("printf 'worker:x:1234:1234::/:/bin/sh\\nkubelet:x:999:999::/:/bin/false\\n' >/tmp/passwd-of-a-test; "
             "mount --bind /tmp/passwd-of-a-test /etc/passwd")
    assert "pod IDs and users" not in check_node(f"{apart}; {known}; {kubelet}")


def test_an_inaccessible_tun_device_is_reported_with_a_command() -> None:
    finding = check("touch /tmp/closed; chmod 0600 /tmp/closed; mount --bind /tmp/closed /dev/net/tun")["/dev/net/tun"]
    assert finding["verdict"] == "fail"
    assert "chmod 0666 /dev/net/tun" in finding["advice"]


def test_a_low_limit_of_open_files_is_reported_with_a_command() -> None:
    findings = check("ulimit -n 4096")
    assert findings["open files"]["verdict"] == "warn"
    assert findings["open files"]["advice"].startswith("as root: echo 'worker hard nofile 1048576' >/etc/security/limits.d/")


def systemd(version: str) -> str:
    return f"mount -t tmpfs none /usr/local/bin; printf '#!/bin/sh\\necho \"{version}\"\\n' >/usr/local/bin/systemctl; " \
           "chmod 0755 /usr/local/bin/systemctl"


@pytest.mark.parametrize(("said", "verdict"), [("systemd 243 (243.4-1.fc31)", "warn"), ("systemd 241 (241)", "warn"),
                                               ("systemd 244 (244)", "ok"), ("systemd 258 (258-1-arch)", "ok"),
                                               ("nonsense", "note"), ("", "note")])
def test_a_systemd_older_than_the_recommended_one_is_reported(said: str, verdict: str) -> None:
    finding = check(systemd(said))["systemd"]
    assert finding["verdict"] == verdict and said in finding["found"], finding
    assert verdict == "ok" or "244 or later" in finding["advice"]


UBUNTU = "mount -t tmpfs none /proc/sys/kernel; echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
PROFILE = (
    "mkdir -p /tmp/etc-of-a-test/apparmor.d; echo >/tmp/etc-of-a-test/apparmor.d/nodens-rootless; "
    "mount -t overlay none -o lowerdir=/tmp/etc-of-a-test:/etc /etc; printf 'worker:x:1234:1234::/:/bin/sh\\n' >/tmp/passwd-of-a-test; "
    "mount --bind /tmp/passwd-of-a-test /etc/passwd"
)


def test_ubuntus_sysctl_requires_the_profile() -> None:
    """Simulated: no kernel here has the sysctl. Ubuntu's own behaviour is not tested."""
    finding = check(UBUNTU)["unprivileged user namespaces"]
    assert finding["verdict"] == "fail"
    assert "apparmor_parser --replace /etc/apparmor.d/nodens-rootless" in finding["advice"]


def test_with_the_profile_ubuntus_sysctl_is_a_note() -> None:
    finding = check(f"{UBUNTU}; {PROFILE}")["unprivileged user namespaces"]
    assert finding["verdict"] == "note"
    assert "not tested there" in finding["found"]
