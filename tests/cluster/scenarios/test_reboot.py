# SPDX-License-Identifier: Apache-2.0
"""Pods after a reboot and a power cut of the node, with a stock kubelet."""
import subprocess
from typing import Any

import pytest
from nodensdev.cluster import addresses
from nodenstest.people import FOREVER, Person, container

pytestmark = pytest.mark.reboot

PLACE = "/var/lib/reboot-story"
READY = 180
RUNS = f"echo run >>/place/runs; sync /place/runs; echo begun; {FOREVER}"


def boot_id(person: Person) -> str:
    """Empty while the node does not answer."""
    try:
        done = person.cluster.node_exec(["cat", "/proc/sys/kernel/random/boot_id"], timeout=15)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def restart_node(person: Person, cut: bool) -> None:
    """Until the kubelet is back."""
    before = boot_id(person)
    assert before
    person.cluster.power_cycle(cut=cut)
    person.until(lambda: boot_id(person) not in ("", before), "another boot of the node", READY)
    started = int(person.on_node("date +%s")) - int(float(person.on_node("cat /proc/uptime").split()[0]))

    def renewed() -> bool:
        """The lease is the kubelet's sign of life, and its conditions may be of the boot before."""
        stamp = person.cluster.kubectl("get", "lease", "-n", "kube-node-lease", addresses.node_name(1), "-o",
                                       "jsonpath={.spec.renewTime}").stdout
        text = person.on_node(f"date +%s -d {stamp}") if stamp else "0"
        return int(text) > started and addresses.node_name(1) in person.cluster.ready_nodes()

    person.until(renewed, "the kubelet back and the node Ready", READY)


def exit_of(person: Person, name: str) -> dict[str, object]:
    return person.status(name)["containerStatuses"][0]["state"]["terminated"]


@pytest.mark.parametrize("cut", [False, True], ids=["reboot", "power cut"])
def test_a_pod_that_is_to_run_once_does_not_run_twice_and_a_finished_one_keeps_its_log(person: Person, cut: bool) -> None:
    person.on_node(f"rm -rf {PLACE} && mkdir -p {PLACE}")
    place = {"volumes": [{"name": "place", "hostPath": {"path": PLACE}}], "hostUsers": False}
    mount: dict[str, Any] = {"volumeMounts": [{"name": "place", "mountPath": "/place"}]}
    person.pod("finished", container("echo this stays; exit 0"), restartPolicy="Never", hostUsers=False)
    person.pod("once", container(RUNS, **mount), restartPolicy="Never", **place)
    person.pod("always", container(f"echo again; {FOREVER}"), restartPolicy="Always", hostUsers=False)
    person.phase("finished", "Succeeded")
    person.ready("once")
    person.ready("always")
    person.until(lambda: "begun" in person.log("once"), "the first words of the pod")
    before = person.get("pod", "once")["metadata"]["uid"]

    restart_node(person, cut)

    ended = person.phase("once", "Failed", READY)
    assert ended["containerStatuses"][0]["restartCount"] == 0 and exit_of(person, "once")["exitCode"] != 0
    person.until(lambda: person.status("always")["containerStatuses"][0]["restartCount"] == 1, "the other pod's new start", READY)
    person.ready("always", READY)
    assert person.on_node(f"cat {PLACE}/runs").split() == ["run"], "it has run twice"
    assert person.log("finished").strip() == "this stays" and person.status("finished")["phase"] == "Succeeded"
    assert "begun" in person.log("once") and "again" in person.log("always")

    for name in ("finished", "once", "always"):
        person.kubectl("delete", "pod", name, "--wait=true", "--timeout=300s", timeout=330)
    gone = f"! ls -d /var/log/pods/{person.namespace}_* && ! grep -l {before} /var/lib/nodens/pods/*/sandbox.json"
    person.until(lambda: person.cluster.node_exec(["sh", "-c", gone]).returncode == 0, "the end of logs and records", 60)
