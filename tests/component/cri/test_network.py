# SPDX-License-Identifier: Apache-2.0
"""A pod's network beyond an address, with the reference plugins: bandwidth limits and CNI CHECK."""
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from conftest import Subject
from nodenstest import runtimes
from nodenstest.pods import TIMEOUT, Pod, Pods, eventually, refused

INGRESS, EGRESS = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
LIMITED = {INGRESS: "10M", EGRESS: "10M"}    # the bandwidth plugin of Debian 13 (1.1.1) panics in a CHECK of a pod without a limit
SHAPER = {"type": "bandwidth", "capabilities": {"bandwidth": True}}


@dataclass
class Scene:
    """A runtime of the same kind as the one under test, with a network that can be slowed down."""

    runtime: runtimes.Runtime
    pods: Pods

    def write_network(self, **more: Any) -> None:
        network = json.loads((self.runtime.network / "10-test.conflist").read_text()) | more
        (self.runtime.network / "10-test.conflist").write_text(json.dumps(network))

    def netns(self, pod: Pod) -> Path:
        return self.runtime.directory / f"netns/nodens-{pod.id}"

    def restart(self) -> None:
        self.runtime.stop()
        self.runtime.start().close()
        eventually(self.answers, 30, "an answer after the restart")

    def answers(self) -> bool:
        try:
            return bool(self.pods.client.version().version)
        except grpc.RpcError:
            return False

    def verdict(self, pod: Pod) -> str | None:
        """The result of CHECK."""
        return json.loads(pod.status(verbose=True).info["info"]).get("networkCheck")


@pytest.fixture
def scene(subject: Subject, messages: runtimes.Messages) -> Iterator[Scene]:
    if subject.runtime is None:
        pytest.skip("the network's configuration is the runtime's own: only one that this suite has started can be given another")
    with runtimes.scratch() as directory:
        runtime = runtimes.KINDS[subject.name](directory / "r", messages, pause=subject.images.hosted("pause:3.10.2"))
        runtime.certificates = subject.runtime.certificates
        client = runtime.start()
        made = Scene(runtime, Pods(client, subject.images.shell, directory, "cgroupfs", users=True))
        plugins = json.loads((runtime.network / "10-test.conflist").read_text())["plugins"]
        made.write_network(plugins=[*plugins, SHAPER])
        try:
            yield made
        finally:
            made.pods.clean()
            client.close()
            runtime.stop()


def shaping() -> bool:
    """Whether this kernel can slow down both ways; User-mode Linux has no ifb."""
    script = "ip link add x type ifb && ip link set x up && tc qdisc add dev x root tbf rate 1mbit burst 32kbit latency 400ms"
    return shutil.which("tc") is not None and subprocess.run(["unshare", "-n", "sh", "-c", script], capture_output=True).returncode == 0


def rates() -> list[int]:
    """In bits per second, of all links that are slowed down here."""
    done = subprocess.run(["tc", "-j", "qdisc", "show"], check=True, capture_output=True, text=True)
    return sorted(item["options"]["rate"] * 8 for item in json.loads(done.stdout) if item["kind"] == "tbf")


@pytest.mark.skipif(not shaping(), reason="this kernel has no tbf or no ifb")
def test_a_pod_is_as_fast_as_its_annotations_say_and_nothing_is_left(scene: Scene) -> None:
    before, links = rates(), set(os.listdir("/proc/self/net/dev_snmp6"))
    both = scene.pods.run(annotations={INGRESS: "10M", EGRESS: "20M"})
    assert [rate for rate in rates() if rate not in before] == [10_000_000, 20_000_000]
    one = scene.pods.run(annotations={INGRESS: "1536Ki"})
    assert [rate for rate in rates() if rate not in before] == [1536 * 1024, 10_000_000, 20_000_000]
    scene.pods.run(annotations={"example.com/other": "10M"})
    assert len(rates()) == len(before) + 3
    for pod in (both, one):
        pod.stop()
    assert rates() == before
    left = set(os.listdir("/proc/self/net/dev_snmp6")) - links
    assert not [name for name in left if name.startswith("bwp")], left


@pytest.mark.parametrize("value", ["fast", "", "999", "-10M", "1001T", "1e400", "10M; rm -rf /", "1" * 5000, "10M\n", '{"a":1}'])
def test_a_bandwidth_that_makes_no_sense_is_refused(scene: Scene, value: str) -> None:
    error = refused(lambda: scene.pods.run(annotations={EGRESS: value}))
    assert len(error.details()) < 1000
    assert scene.pods.sandboxes() == []


def test_a_restarted_daemon_reports_the_cni_check_of_networks(scene: Scene) -> None:
    if scene.runtime.name != "nodens-cri":
        pytest.skip("containerd never calls CHECK")
    whole, broken = scene.pods.run(annotations=LIMITED), scene.pods.run(annotations=LIMITED)
    plain = scene.pods.run(namespaces={"network": scene.pods.pb.NODE})
    assert scene.verdict(whole) is None
    one = broken.container()
    subprocess.run(["nsenter", f"--net={scene.netns(broken)}", "ip", "link", "del", "eth0"], check=True)
    scene.restart()
    assert eventually(lambda: scene.verdict(whole), 30, "the check of a pod") == "passed"
    found = eventually(lambda: scene.verdict(broken), 30, "the check of a pod") or ""
    assert "CNI plugin 'bridge' (CHECK)" in found and "eth0" in found, found
    assert scene.verdict(plain) is None
    assert broken.status().state == scene.pods.pb.SANDBOX_READY and one.output("echo alive") == "alive"
    program = runtimes.program("src/nodens")
    told = {pod.id: subprocess.run([program, "inspect", "--socket", str(scene.runtime.socket), pod.id], capture_output=True, text=True)
            for pod in (whole, broken, plain)}
    assert "network        CNI CHECK passed" in told[whole.id].stdout and told[whole.id].returncode == 0
    assert "CNI CHECK failed" in told[broken.id].stdout and told[broken.id].returncode == 2
    assert "CNI CHECK" not in told[plain.id].stdout


def test_plugins_whose_author_does_not_want_it_are_not_asked(scene: Scene) -> None:
    if scene.runtime.name != "nodens-cri":
        pytest.skip("containerd never calls CHECK")
    scene.write_network(disableCheck=True)
    silent = scene.pods.run(annotations=LIMITED)
    scene.write_network(disableCheck=False)
    asked = scene.pods.run(annotations=LIMITED)
    scene.restart()
    eventually(lambda: scene.verdict(asked) == "passed", 30, "the check of a pod")
    time.sleep(1)    # it may be the next one's turn
    assert scene.verdict(silent) is None


def test_a_pod_that_is_being_checked_stops_at_once(scene: Scene) -> None:
    if scene.runtime.name != "nodens-cri":
        pytest.skip("containerd never calls CHECK")
    slow = scene.runtime.directory / "slow"
    slow.mkdir()
    script = slow / "slow"
    script.write_text('#!/bin/sh\nif [ "$CNI_COMMAND" = CHECK ]; then touch "$0.asked"; exec sleep 600; fi\nexec cat "$0.answer"\n')
    script.chmod(0o755)
    (slow / "slow.answer").write_text('{"cniVersion":"1.0.0","ips":[{"address":"10.9.9.9/24"}]}')
    scene.runtime.stop()
    scene.runtime.settings["cniPlugins"] = f"[{slow}, /usr/lib/cni]"    # type: ignore[attr-defined]
    scene.write_network(plugins=[{"type": "slow"}])
    scene.runtime.start().close()
    eventually(scene.answers, 30, "an answer after the restart")
    pod = scene.pods.run()
    scene.restart()
    eventually((slow / "slow.asked").exists, 30, "the check")
    request = scene.pods.pb.StopPodSandboxRequest(pod_sandbox_id=pod.id)
    scene.pods.runtime.StopPodSandbox(request, timeout=TIMEOUT)
    assert pod.status().state == scene.pods.pb.SANDBOX_NOTREADY
