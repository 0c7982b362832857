# SPDX-License-Identifier: Apache-2.0
"""`nodens check --rootless`: missing requirements, with the commands that fix them."""
import json
import subprocess
from typing import Any

from nodenstest import machine

NODENS = machine.PROGRAM.replace("/rootless/nodens-rootless", "/nodens")


def check(setup: str = "true") -> dict[str, dict[str, Any]]:
    """The findings on a host that was changed by shell commands, for this check only."""
    command = " ".join(f"'{word}'" for word in machine.as_user(NODENS, "check", "--rootless", "--json"))
    done = subprocess.run(["unshare", "--mount", "--propagation=private", "sh", "-ec", f"{setup}; exec {command}"],
                          env=machine.environment(), capture_output=True,
                          text=True, timeout=3 * machine.LIMIT, cwd="/", check=False)
    assert done.stdout, done.stderr
    return {finding["check"]: finding for finding in json.loads(done.stdout)["checks"]}


def subids(text: str) -> str:
    return f"printf '{text}' >/tmp/subids-of-a-test; for f in subuid subgid; do mount --bind /tmp/subids-of-a-test /etc/$f; done"


def test_the_first_finding_is_the_number_of_pods_with_room() -> None:
    findings = check()
    assert findings["subordinate IDs"]["found"] == "room for 2 pods with user namespaces of their own"
    of_users = [name for name in findings
                if name in ("subordinate IDs", "open files", "unprivileged user namespaces", "/dev/net/tun", "newuidmap", "pasta")]
    assert of_users[0] == "subordinate IDs" and len(of_users) == 6


def test_65536_ids_are_not_enough_for_pods() -> None:
    finding = check(subids("worker:100000:65536\\n"))["subordinate IDs"]
    assert finding["verdict"] == "warn"
    assert "no whole block of 65536" in finding["found"]
    assert finding["advice"] == "as root: usermod --add-subuids 524288-1572863 --add-subgids 524288-1572863 worker"


def test_ids_of_other_users_are_not_advised() -> None:
    finding = check(subids("other:1000000:65536\\nanother:524288:65536\\nnonsense\\n:::\\n"))["subordinate IDs"]
    assert finding["verdict"] == "fail"
    assert finding["advice"] == "as root: usermod --add-subuids 1114112-2162687 --add-subgids 1114112-2162687 worker"


def test_subordinate_ids_that_overlap_pods_are_a_warning_if_a_kubelet_has_run() -> None:
    mine, kubelet = subids("worker:100000:65536\\n"), "mount -t tmpfs none /var/lib; mkdir /var/lib/kubelet"
    assert check(mine)["pod IDs and users"]["verdict"] == "note"
    finding = check(f"{mine}; {kubelet}")["pod IDs and users"]
    assert finding["verdict"] == "warn"
    assert finding["found"].startswith("IDs of user worker (100000 to 165535 in /etc/subuid) overlap those of pods")
    apart = subids("worker:100000:65536\\nkubelet:655360000:7208960\\n")
    known = ("printf 'worker:x:1234:1234::/:/bin/sh\\nkubelet:x:999:999::/:/bin/false\\n' >/tmp/passwd-of-a-test; "
             "mount --bind /tmp/passwd-of-a-test /etc/passwd")
    assert "pod IDs and users" not in check(f"{apart}; {known}; {kubelet}")


def test_an_inaccessible_tun_device_is_reported_with_a_command() -> None:
    finding = check("touch /tmp/closed; chmod 0600 /tmp/closed; mount --bind /tmp/closed /dev/net/tun")["/dev/net/tun"]
    assert finding["verdict"] == "fail"
    assert "chmod 0666 /dev/net/tun" in finding["advice"]


def test_a_low_limit_of_open_files_is_reported_with_a_command() -> None:
    findings = check("ulimit -n 4096")
    assert findings["open files"]["verdict"] == "warn"
    assert findings["open files"]["advice"].startswith("as root: echo 'worker hard nofile 1048576' >/etc/security/limits.d/")


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
