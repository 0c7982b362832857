# SPDX-License-Identifier: Apache-2.0
import base64
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from nodensdev.cluster import Options, controlplane, node, pki, rootless
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
