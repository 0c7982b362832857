# SPDX-License-Identifier: Apache-2.0
"""The part Runtime of `nodens check`, with a real nodens-cri: a node on which no pod can run is not usable."""
import contextlib
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nodensdev.project import TOP
from nodenstest import runtimes
from nodenstest.pods import mounted, overlaid

LIMIT = 120             # seconds: for a command on a loaded machine
CODES = {"usable": 0, "degraded": 1, "unusable": 2}
LEVELS = ["ok", "note", "warn", "fail"]


@dataclass
class Check:
    """One run of `nodens check`."""

    verdict: str
    code: int
    findings: dict[str, dict[str, Any]]     # of the part Runtime
    worst_of_host: str

    def level(self, name: str) -> str:
        return self.findings[name]["verdict"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(runtimes.program("src/nodens")), "check", *arguments], capture_output=True, text=True, timeout=LIMIT,
                          check=False)


def check(*arguments: str) -> Check:
    done = run("--json", *arguments)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert CODES[report["verdict"]] == done.returncode
    assert all(item["verdict"] == "ok" or item["advice"] for item in report["checks"])
    host = [item["verdict"] for item in report["checks"] if item["group"] != "Runtime"]
    return Check(report["verdict"], done.returncode, {item["check"]: item for item in report["checks"] if item["group"] == "Runtime"},
                 max(host, key=LEVELS.index))


@contextlib.contextmanager
def nodens_cri(messages: runtimes.Messages, **settings: object) -> Iterator[runtimes.NodensCri]:
    runtimes.make_state_writable()
    with runtimes.scratch() as directory:
        made = runtimes.NodensCri(directory / "r", messages, settings=settings)
        made.start().close()
        try:
            yield made
        finally:
            made.stop()


@pytest.fixture(scope="module")
def daemon(messages: runtimes.Messages) -> Iterator[runtimes.NodensCri]:
    with nodens_cri(messages) as made:
        yield made


@pytest.fixture
def kubelet(daemon: runtimes.NodensCri, tmp_path: Path) -> Path:
    """The configuration of a kubelet that uses the daemon."""
    path = tmp_path / "config.yaml"
    path.write_text(f"kind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix://{daemon.socket}\ncgroupDriver: {daemon.cgroup_driver}\n")
    return path


@contextlib.contextmanager
def moved(path: Path) -> Iterator[None]:
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    try:
        yield
    finally:
        aside.rename(path)


@contextlib.contextmanager
def running_kubelet(directory: Path, *arguments: str) -> Iterator[None]:
    """A process that looks like a kubelet: it has the name, the arguments and root as its user."""
    script = directory / "kubelet"
    script.write_text("#!/bin/sh\necho ready\nread line\n")
    script.chmod(0o755)
    with subprocess.Popen([script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout and process.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            process.stdin.close()


def test_a_node_whose_runtime_works_has_only_good_findings(daemon: runtimes.NodensCri, kubelet: Path, tmp_path: Path) -> None:
    with running_kubelet(tmp_path):
        found = check("--socket", str(daemon.socket), "--kubelet-config", str(kubelet))
    assert {name: item["found"] for name, item in found.findings.items() if item["verdict"] != "ok"} == {}
    assert str(daemon.network / "10-test.conflist") in found.findings["CNI configuration"]["found"]
    assert "userNamespaces" in found.findings["self-test"]["found"]
    assert found.findings["cgroup driver"]["found"] == "cgroupfs in both configurations"


def test_the_page_shows_the_findings_of_a_node_with_a_runtime(daemon: runtimes.NodensCri, kubelet: Path) -> None:
    page = (TOP / "docs/check-node.md").read_text()
    shown = re.search(r"^```console\n\$ [^\n]*nodens check \| sed [^\n]*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert shown
    names = re.findall(r"^(?:ok|note|warn|FAIL) +(\S.*?)  ", shown[1], re.MULTILINE)
    assert names == list(check("--socket", str(daemon.socket), "--kubelet-config", str(kubelet)).findings)


def test_a_node_without_its_daemon_is_unusable(messages: runtimes.Messages) -> None:
    with nodens_cri(messages) as made:
        made.stop(signal.SIGKILL)       # the socket's file stays
        refused = check("--socket", str(made.socket))
        made.socket.unlink()
        missing = check("--socket", f"unix://{made.socket}")
        table = run("--socket", str(made.socket))
        made.start().close()
    for found, words in ((refused, "no program listens on"), (missing, "no socket")):
        assert found.verdict == "unusable" and found.code == 2
        assert found.level("nodens-cri") == "fail" and words in found.findings["nodens-cri"]["found"]
        assert found.findings["nodens-cri"]["advice"].startswith("systemctl start nodens-cri")
        assert "CNI configuration" in found.findings, "what needs no daemon is checked without it"
    assert "This node is unusable for pods with user namespaces." in table.stdout
    if missing.worst_of_host != "fail":
        assert "The host itself is " in table.stdout


def test_a_daemon_that_does_not_answer_costs_seconds(daemon: runtimes.NodensCri) -> None:
    assert daemon.process
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        found = check("--socket", str(daemon.socket))
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    assert found.level("nodens-cri") == "fail" and "no answer within 5 seconds" in found.findings["nodens-cri"]["found"]


def test_a_daemon_that_accepts_no_connection_costs_no_time(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, contextlib.ExitStack() as clients:
        server.bind(str(tmp_path / "s"))
        server.listen(0)
        with contextlib.suppress(BlockingIOError):      # until its queue is full
            while True:
                client = clients.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(str(tmp_path / "s"))
        found = check("--socket", str(tmp_path / "s"))
    assert found.level("nodens-cri") == "fail" and "accepts no connection" in found.findings["nodens-cri"]["found"]


def test_a_node_without_a_network_is_unusable(daemon: runtimes.NodensCri, kubelet: Path) -> None:
    with moved(daemon.network):
        found = check("--socket", str(daemon.socket), "--kubelet-config", str(kubelet))
    assert found.verdict == "unusable" and found.level("CNI configuration") == "fail"
    assert f"no valid CNI configuration in '{daemon.network}'" in found.findings["CNI configuration"]["found"]
    assert found.level("nodens-cri") == "ok"


def test_a_missing_cni_plugin_is_named(daemon: runtimes.NodensCri) -> None:
    first = daemon.network / "00-hostile.conflist"
    first.write_text(json.dumps({"cniVersion": "1.0.0", "name": "x", "plugins": [{"type": "nosuch"}]}))
    try:
        found = check("--socket", str(daemon.socket))
    finally:
        first.unlink()
    assert found.level("CNI configuration") == "fail" and "'nosuch'" in found.findings["CNI configuration"]["found"]


def test_escape_sequences_do_not_reach_the_terminal(daemon: runtimes.NodensCri) -> None:
    first = daemon.network / "00-\x1b]0;owned\x07.conf"
    first.write_text(json.dumps({"name": "x", "type": "nosuch"}))
    try:
        said = run("--socket", str(daemon.socket)).stdout
    finally:
        first.unlink()
    assert "owned" in said and "\x1b" not in said and "\x07" not in said


@pytest.mark.parametrize("text", [
    "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n",
    '{"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock"}',
    "kind: KubeletConfiguration\n"], ids=["yaml", "json", "not-set"])
def test_a_kubelet_with_another_runtime_makes_the_node_unusable(daemon: runtimes.NodensCri, tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    found = check("--socket", str(daemon.socket), "--kubelet-config", str(tmp_path / "config"))
    assert found.verdict == "unusable" and found.level("kubelet endpoint") == "fail"
    assert "unix:///run/containerd/containerd.sock" in found.findings["kubelet endpoint"]["found"]
    assert f"containerRuntimeEndpoint: unix://{daemon.socket}" in found.findings["kubelet endpoint"]["advice"]


@pytest.mark.parametrize(("more", "level"), [
    ("cgroupDriver: systemd\n", "warn"), ("cgroupDriver: systemd\nfeatureGates: {KubeletCgroupDriverFromCRI: false}\n", "fail"),
    ("cgroupDriver: cgroupfs\n", "ok"), ("", "ok")], ids=["other", "other-and-does-not-ask", "same", "not-set"])
def test_cgroup_drivers_that_differ_are_reported(daemon: runtimes.NodensCri, tmp_path: Path, more: str, level: str) -> None:
    (tmp_path / "config").write_text(f"containerRuntimeEndpoint: unix://{daemon.socket}\n{more}")
    found = check("--socket", str(daemon.socket), "--kubelet-config", str(tmp_path / "config"))
    assert found.level("cgroup driver") == level


def test_the_arguments_of_the_running_kubelet_lead_to_its_configuration(daemon: runtimes.NodensCri, kubelet: Path, tmp_path: Path) -> None:
    with running_kubelet(tmp_path, f"--config={kubelet}"):
        found = check("--socket", str(daemon.socket))
    assert found.level("kubelet") == "ok" and str(kubelet) in found.findings["kubelet"]["found"]
    assert found.level("kubelet endpoint") == "ok"
    with running_kubelet(tmp_path, "--config", str(kubelet), "--container-runtime-endpoint=unix:///elsewhere"):
        found = check("--socket", str(daemon.socket))
    assert found.level("kubelet endpoint") == "fail" and "unix:///elsewhere" in found.findings["kubelet endpoint"]["found"]
    drop_ins = tmp_path / "kubelet.conf.d"
    drop_ins.mkdir()
    (drop_ins / "90-runtime.conf").write_text("containerRuntimeEndpoint: unix:///dropped-in\n")
    with running_kubelet(tmp_path, "--config", str(kubelet), "--config-dir", str(drop_ins)):
        found = check("--socket", str(daemon.socket))
    assert "unix:///dropped-in" in found.findings["kubelet endpoint"]["found"]


def test_a_configuration_that_no_kubelet_can_read_is_a_finding(daemon: runtimes.NodensCri, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("maxPods: [\n")
    with running_kubelet(tmp_path, "--config", str(tmp_path / "config.yaml")):
        found = check("--socket", str(daemon.socket))
    assert found.level("kubelet") == "fail" and str(tmp_path / "config.yaml") in found.findings["kubelet"]["found"]


def test_a_configured_kubelet_that_does_not_run_is_a_warning(daemon: runtimes.NodensCri, kubelet: Path) -> None:
    found = check("--socket", str(daemon.socket), "--kubelet-config", str(kubelet))
    assert found.level("kubelet") == "warn" and "not running" in found.findings["kubelet"]["found"]


def test_a_missing_seccomp_profile_and_unreadable_certificates_are_warnings(messages: runtimes.Messages) -> None:
    with nodens_cri(messages, seccompProfile="/nonexistent/seccomp.json") as made:
        registry = made.certificates / "registry.example"
        registry.mkdir()
        (registry / "hosts.toml").write_text('ca = "missing.crt"\n')
        found = check("--socket", str(made.socket))
    assert found.level("seccomp profile") == "warn" and "/nonexistent/seccomp.json" in found.findings["seccomp profile"]["found"]
    assert found.level("registry certificates") == "warn"
    assert str(registry / "missing.crt") in found.findings["registry certificates"]["found"]


def test_a_host_without_nodens_cri_is_checked_before_the_installation(tmp_path: Path) -> None:
    assert not Path("/run/nodens/cri.sock").exists() and not Path("/usr/sbin/nodens-cri").exists()
    found = check()
    assert list(found.findings) == ["nodens-cri"] and found.level("nodens-cri") == "note"
    assert found.verdict == {"ok": "usable", "note": "usable", "warn": "degraded", "fail": "unusable"}[found.worst_of_host]
    assert re.search(r"^This host is \w+ for pods with user namespaces\.$", run().stdout, re.MULTILINE)
    (tmp_path / "config.yaml").write_text("containerRuntimeEndpoint: unix:///run/nodens/cri.sock\n")
    found = check("--kubelet-config", str(tmp_path / "config.yaml"))
    assert found.level("nodens-cri") == "fail" and "the kubelet uses /run/nodens/cri.sock" in found.findings["nodens-cri"]["found"]


def test_an_ordinary_user_is_asked_to_be_root(daemon: runtimes.NodensCri) -> None:
    program = runtimes.program("src/nodens")
    program.parent.chmod(0o755)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(program), "check", "--json", "--socket",
                           str(daemon.socket)], capture_output=True, text=True, timeout=LIMIT, check=False)
    found = {item["check"]: item for item in json.loads(done.stdout)["checks"]}
    assert found["nodens-cri"]["verdict"] == "note" and "only root may connect" in found["nodens-cri"]["found"]
    assert "at ''" not in done.stdout, "every finding names its path"


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Path]:
    """A directory that cannot be idmapped."""
    with overlaid(tmp_path) as place:
        yield place


def directory(path: Path, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit status and the findings of `nodens check --dir`."""
    done = run("--json", "--dir", str(path), *arguments)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert CODES[report["verdict"]] == done.returncode and all(item["verdict"] == "ok" or item["advice"] for item in report["checks"])
    return done.returncode, {item["check"]: item for item in report["checks"]}


def test_a_directory_on_tmpfs_can_be_idmapped(tmp_path: Path) -> None:
    with mounted(tmp_path / "memory", "-t", "tmpfs", "tmpfs") as place:
        code, findings = directory(place)
    assert code == 0 and findings[f"volumes in {place}"]["found"] == "idmapped mounts work on tmpfs"


def test_a_directory_that_cannot_be_idmapped_has_advice_for_the_bridge(daemon: runtimes.NodensCri, overlay: Path) -> None:
    code, findings = directory(overlay, "--socket", str(daemon.socket))
    volumes = findings[f"volumes in {overlay}"]
    assert code == 2 and volumes["verdict"] == "fail"
    assert volumes["found"] == "overlay cannot be idmapped; nodens-bridge is off"
    assert "volumes: {bridge: auto} in /etc/nodens/cri.yaml" in volumes["advice"]
    assert findings[f"images in {overlay}"]["verdict"] == "fail"


@pytest.mark.parametrize("rule", ["", "rules: [{filesystem: overlay, as: caller}]"], ids=["no-rule", "rule"])
def test_a_directory_that_the_bridge_serves_is_usable(messages: runtimes.Messages, overlay: Path, rule: str) -> None:
    volumes = "{bridge: auto" + (f", {rule}" if rule else "") + "}"
    with nodens_cri(messages, volumes=volumes, bridgeHelper=runtimes.program("src/bridge/nodens-bridge")) as made:
        code, findings = directory(overlay, "--socket", str(made.socket))
    found = findings[f"volumes in {overlay}"]
    assert code == 0 and found["verdict"] == "note"
    words = ", as caller (a rule for overlay)" if rule else ""
    assert found["found"] == f"overlay cannot be idmapped; nodens-bridge serves it{words}"
    assert findings[f"images in {overlay}"]["verdict"] == "note", "images are not bridged"


def test_a_bridge_whose_program_is_missing_is_named(messages: runtimes.Messages, overlay: Path) -> None:
    with nodens_cri(messages, volumes="{bridge: auto}", bridgeHelper="/nonexistent/nodens-bridge") as made:
        code, findings = directory(overlay, "--socket", str(made.socket))
    assert code == 2 and "/nonexistent/nodens-bridge: No such file" in findings[f"volumes in {overlay}"]["found"]


@contextlib.contextmanager
def dead_server(place: Path) -> Iterator[int]:
    """A FUSE filesystem whose server answers nothing but its first request; the server's descriptor."""
    device = os.open("/dev/fuse", os.O_RDWR)
    try:
        place.mkdir()
        subprocess.run(["mount", "-i", "-t", "fuse", "-o", f"fd={device},rootmode=40000,user_id=0,group_id=0", "dead", str(place)],
                       check=True, pass_fds=[device])
        unique = struct.unpack_from("Q", os.read(device, 1 << 20), 8)[0]
        os.write(device, struct.pack("IiQ", 16 + 64, 0, unique) + struct.pack("IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 0, 0, 0, 0))
        yield device
    finally:
        os.close(device)        # ends all waits for it
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_server_that_does_not_respond_costs_seconds(tmp_path: Path) -> None:
    place = tmp_path / "dead"
    with dead_server(place) as device:
        began = time.monotonic()
        with subprocess.Popen([str(runtimes.program("src/nodens")), "check", "--json", "--dir", str(place)], stdout=subprocess.PIPE,
                              text=True) as process:
            assert select.select([device], [], [], LIMIT)[0]
            os.read(device, 1 << 20)    # now not even SIGKILL ends the wait for the answer
            report = json.loads(process.communicate(timeout=LIMIT)[0])
        assert time.monotonic() - began < 60
    found = report["checks"][0]
    assert process.returncode == 2 and found["verdict"] == "fail"
    assert found["found"] == "fuse does not respond within 5 seconds" and "server" in found["advice"]
