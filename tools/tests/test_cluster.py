# SPDX-License-Identifier: Apache-2.0
import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from nodensdev.cluster import Options, controlplane, handle, node, pki, rootless, supervisor, switch
from nodensdev.cluster.handle import Process, shell_words
from nodensdev.command import Failure


@pytest.mark.parametrize("wrong", [{"name": "Not/a name"}, {"nodes": 4}, {"nodes": -1}, {"memory": "lots"}, {"join": False},
                                   {"rootless": True, "kernel": "uml"}])
def test_what_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(Failure):
        Options(**wrong).check()  # type: ignore[arg-type]


def test_every_node_has_its_route_tap_and_certificate() -> None:
    options = Options(nodes=3)
    commands = [" ".join(command) for command in controlplane.network(options)]
    for number in (1, 2, 3):
        assert f"ip route add 10.89.{number}.0/24 via 10.88.0.{number + 1}" in commands
        assert f"ip tuntap add tap{number} mode tap" in commands
    assert {"node1", "node2", "node3"} <= {one.name for one in pki.certificates(options)}
    assert "ip route add 10.89.2.0/24 via 10.88.0.3" in node.script(options, 1)
    assert "ip route add 10.89.1.0/24" not in node.script(options, 1)


def test_gates_reach_every_component() -> None:
    options = Options(feature_gates=("A=true", "B=false"))
    assert node.kubelet_configuration(options)["featureGates"] == {"A": True, "B": False}
    by_name = {service.name: service.argv for service in controlplane.services(options, node.Path("/k"))}
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        assert "--feature-gates=A=true,B=false" in by_name[name]


def test_an_older_kubelet_gets_no_gates_but_its_own() -> None:
    options = Options(feature_gates=("A=true",), kubelet="1.33")
    assert node.kubelet_configuration(options)["featureGates"] == {}
    assert node.kubelet_configuration(replace(options, kubelet_gates=("B=true",)))["featureGates"] == {"B": True}


def test_the_kubelets_configuration_can_be_overridden() -> None:
    assert node.kubelet_configuration(Options(kubelet_config={"maxPods": 7}))["maxPods"] == 7


def test_an_authorization_file_replaces_the_mode() -> None:
    flags = controlplane.api_server(Options(authorization_config=node.Path("/x")), node.Path("/k")).argv
    assert not any(flag.startswith("--authorization-mode") for flag in flags)
    assert any(flag.startswith("--authorization-config") for flag in flags)


ALICE = Options(rootless=True, kernel="uml-nft", runtime="nodens", subordinate_ids=2048, rootless_args=("--net", "slirp4netns"))


def test_the_host_of_a_rootless_node_gives_alice_what_she_needs_and_she_joins() -> None:
    ALICE.check()
    script = rootless.script(ALICE, 2)
    assert "'alice:100000:2048'" in script and "enable-linger alice" in script and "as-alice /home/alice/join" in script
    assert "chown -R alice: /home/alice\n" not in script, "her data directory has files of her subordinate IDs"
    assert "/home/alice/join" not in rootless.script(replace(ALICE, join=False), 2).split("enable-linger")[1]
    words = rootless.join_command(ALICE, 2)
    assert words[:2] == ["nodens-rootless", "up"] and words[-2:] == ["--net", "slirp4netns"]
    assert {"nodens-cri", "node2", "10.88.0.3", "10.244.2.0/24"} <= set(words)


def test_a_rootless_cluster_has_a_credential_for_the_controller_and_no_proxy_of_its_own() -> None:
    assert "rootless-controller" in {one.name for one in pki.certificates(ALICE)}
    assert "rootless-controller" not in {one.name for one in pki.certificates(Options())}
    services = {service.name: service.argv for service in controlplane.services(ALICE, node.Path("/k"))}
    assert "kube-proxy" not in services
    assert not any(flag.startswith("--kubelet-certificate-authority") for flag in services["kube-apiserver"])
    flags = controlplane.api_server(Options(), node.Path("/k")).argv
    assert any(flag.startswith("--kubelet-certificate-authority") for flag in flags)


def test_the_kubeconfig_to_join_with_has_a_context_for_each_part(tmp_path: node.Path) -> None:
    for name in ("ca.crt", *(f"{user}.{kind}" for user in ("node1", "proxy", "rootless-controller") for kind in ("crt", "key"))):
        (tmp_path / name).write_text(name)
    config = json.loads(rootless.kubeconfig(tmp_path, "node1"))
    assert [one["name"] for one in config["contexts"]] == ["kubelet", "kube-proxy", "controller"]
    keys = [base64.b64decode(one["user"]["client-key-data"]).decode() for one in config["users"]]
    assert keys == ["node1.key", "proxy.key", "rootless-controller.key"]


def test_words_for_ssh_stay_as_they_are() -> None:
    words = ["printf", "%s|", "a b", "it's", "$HOME", "*"]
    assert subprocess.run(["sh", "-c", shell_words(words)], capture_output=True, text=True).stdout == "a b|it's|$HOME|*|"


def test_a_process_that_has_ended_is_not_taken_for_another() -> None:
    assert Process.of(os.getpid()).is_alive()
    assert not Process(os.getpid(), "1").is_alive()
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    one = Process.of(child.pid)
    child.wait()
    assert not one.is_alive()


def test_flags_of_a_service_are_replaced_and_come_after_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handle, "CLUSTERS", tmp_path)
    one = handle.Cluster("c")
    one.state.mkdir()
    controlplane.write_plan(one.state / "plan.json", [], [controlplane.Service("kube-apiserver", ["apiserver", "--a=1"])])
    monkeypatch.setattr(handle.Cluster, "start_again", lambda self, service: None)
    monkeypatch.setattr(switch, "answers", lambda one, service: True)
    for more in (["--b=2"], ["--c=3"]):
        switch.flags(one, "kube-apiserver", *more)
        (service,) = json.loads((one.state / "plan.json").read_text())["services"]
        assert service["argv"] == ["apiserver", "--a=1"] and service["more"] == more
    with pytest.raises(Failure, match="no service 'etcd'"):
        switch.flags(one, "etcd")


def test_the_supervisor_starts_a_service_again_with_the_flags_of_the_plan(tmp_path: Path) -> None:
    """Whether it still runs or has ended; then it is not listed as ended any more."""
    def plan(**more: object) -> None:
        service = {"name": "s", "argv": ["sh", "-c", 'echo "$@" >>words; exec sleep 1000', "sh", "own"], "ready": "", "env": {},
                   "cwd": str(tmp_path), "console": False} | more
        controlplane.replace_plan(tmp_path / "plan.json", {"setup": [], "services": [service]})

    def words() -> list[str]:
        return (tmp_path / "words").read_text().splitlines() if (tmp_path / "words").exists() else []

    def until(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline, words()
            time.sleep(0.05)

    plan()
    process = subprocess.Popen([sys.executable, supervisor.__file__], cwd=tmp_path, stdin=subprocess.PIPE)
    assert process.stdin
    try:
        until(lambda: words() == ["own"])
        process.stdin.write(b"keep\n")
        process.stdin.close()
        plan(more=["other"])
        (tmp_path / "again-s").touch()
        until(lambda: words() == ["own", "own other"] and not (tmp_path / "again-s").exists())
        assert json.loads((tmp_path / "status.json").read_text()) == {"state": "up", "ended": {}}
    finally:
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(child), 9)
        process.kill()
        process.wait()
