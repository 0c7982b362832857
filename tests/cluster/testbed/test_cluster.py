# SPDX-License-Identifier: Apache-2.0
"""A cluster comes up as asked for, does what stock Kubernetes does, and goes without a trace."""
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import manifests
import pytest
from conftest import TOP, Dev

NAME = f"test-{os.getpid()}"


class Kubectl:
    """kubectl on one cluster; raises when it fails."""

    def __init__(self, dev: Dev, name: str) -> None:
        self.dev, self.name = dev, name

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        done = self.attempt(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def attempt(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return self.dev.run("cluster", "kubectl", "--name", self.name, "--", *arguments, stdin=stdin)

    def start(self, *manifests: str) -> None:
        """Applies manifests and waits until every pod among them is Ready."""
        for text in manifests:
            self("apply", "-f", "-", stdin=text)
        names = [f"pod/{item['metadata']['name']}" for item in map(json.loads, manifests) if item["kind"] == "Pod"]
        self("wait", "--for=condition=Ready", *names, "--timeout=600s")


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    """A cluster for the tests that only use one."""
    dev = Dev(f"module-{NAME}")
    up = dev.run("cluster", "up", "--name", NAME)
    assert up.returncode == 0, up.stderr
    yield Kubectl(dev, NAME)
    assert dev.run("cluster", "down", "--name", NAME).returncode == 0
    assert not dev.processes()


@pytest.fixture
def down(dev: Dev) -> Iterator[Callable[[str], str]]:
    """Names clusters that are taken down before the test looks for what is left."""
    names: list[str] = []

    def name(suffix: str) -> str:
        names.append(f"{NAME}-{suffix}")
        return names[-1]

    yield name
    dev.note_namespaces()
    for one in names:
        assert dev.run("cluster", "down", "--name", one).returncode == 0
        assert not (TOP / "build/cluster" / one).exists()


def test_a_pod_in_a_user_namespace_has_a_uid_map_of_its_own(kubectl: Kubectl) -> None:
    command = ["sh", "-c", "cat /proc/self/uid_map; sleep 1000"]
    kubectl.start(manifests.pod("in-userns", command, hostUsers=False), manifests.pod("on-host", command, hostUsers=True))
    inside, outside, size = kubectl("logs", "in-userns").split()
    assert inside == "0" and int(outside) >= 65536 and int(outside) % 65536 == 0 and size == "65536"
    assert kubectl("logs", "on-host").split() == ["0", "0", "4294967295"]


def test_a_pod_with_the_hosts_network_can_have_a_user_namespace(kubectl: Kubectl) -> None:
    kubectl.start(manifests.pod("host-network", ["sh", "-c", "cat /proc/self/uid_map; ip -o addr; sleep 1000"],
                           hostNetwork=True, hostUsers=False))
    log = kubectl("logs", "host-network")
    assert log.split()[1] != "0"
    assert "10.88.0.2/24" in log


def test_a_service_is_reached_from_node_and_pod(kubectl: Kubectl) -> None:
    kubectl.start(manifests.pod("web", ["/agnhost", "netexec"], manifests.AGNHOST), manifests.service("web", 80, 8080))
    address = kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    asked = ["curl", "-s", "-m", "30", "--retry", "10", "--retry-all-errors", f"http://{address}/hostname"]
    assert kubectl("exec", "web", "--", *asked) == "web"
    assert kubectl.dev.run("cluster", "ssh", "--name", kubectl.name, "--", *asked).stdout == "web"


def test_the_api_server_is_reached_by_a_pod_at_its_service_address(kubectl: Kubectl) -> None:
    kubectl.start(manifests.pod("asks-api", ["sleep", "1000"], manifests.AGNHOST))
    answer = kubectl("exec", "asks-api", "--", "curl", "-sk", "-m", "10", "https://10.96.0.1/version")
    assert json.loads(answer)["gitVersion"] == "v1.37.1"


def test_exec_and_logs_and_port_forward_pass_the_kubelet(kubectl: Kubectl) -> None:
    kubectl.start(manifests.pod("talks", ["sh", "-c", "echo hello; sleep 1000"]))
    assert kubectl("logs", "talks") == "hello\n"
    assert kubectl.attempt("exec", "talks", "--", "sh", "-c", "exit 7").returncode == 7


def test_the_node_keeps_debians_limits(kubectl: Kubectl) -> None:
    done = kubectl.dev.run("cluster", "ssh", "--name", kubectl.name, "--", "sysctl -n fs.inotify.max_user_instances; ulimit -Sn")
    assert done.stdout.split() == ["128", "1024"]


def test_a_command_on_a_node_gives_its_exit_code(kubectl: Kubectl) -> None:
    assert kubectl.dev.run("cluster", "ssh", "--name", kubectl.name, "--", "exit", "5").returncode == 5


def test_logs_can_be_had(kubectl: Kubectl, tmp_path: Path) -> None:
    assert "kube-apiserver" in kubectl.dev.run("cluster", "logs", "--name", kubectl.name).stdout.split()
    assert kubectl.dev.run("cluster", "logs", "--name", kubectl.name, "--to", str(tmp_path)).returncode == 0
    assert "kubelet" in (tmp_path / "node1-journal.log").read_text()


def test_a_name_cannot_be_used_twice(kubectl: Kubectl) -> None:
    done = kubectl.dev.run("cluster", "up", "--name", kubectl.name)
    assert done.returncode == 1
    assert "is running already" in done.stderr


def test_an_unknown_runtime_is_refused_with_the_known_ones(dev: Dev) -> None:
    done = dev.run("cluster", "up", "--runtime", "nobodys")
    assert done.returncode != 0
    assert "containerd" in done.stderr and "nodens" in done.stderr


def test_two_clusters_of_two_nodes_do_not_meet(dev: Dev, down: Callable[[str], str]) -> None:
    both = [down("east"), down("west")]
    starting = [dev.start("cluster", "up", "--name", name, "--nodes", "2", "--memory", "2G", "--timeout", "900") for name in both]
    for process in starting:
        assert process.wait(1200) == 0, process.stdout.read() if process.stdout else ""
    for name in both:
        kubectl = Kubectl(dev, name)
        assert len(kubectl("get", "nodes", "-o", "name").split()) == 2
        kubectl("create", "configmap", f"only-in-{name}")
    for name, other in zip(both, reversed(both), strict=False):
        maps = Kubectl(dev, name)("get", "configmaps", "-o", "name")
        assert f"only-in-{name}" in maps and f"only-in-{other}" not in maps


def test_pods_on_two_nodes_talk(dev: Dev, down: Callable[[str], str]) -> None:
    name = down("pair")
    assert dev.run("cluster", "up", "--name", name, "--nodes", "2", "--memory", "2G", "--cgroup-driver", "systemd").returncode == 0
    kubectl = Kubectl(dev, name)
    kubectl.start(manifests.pod("one", ["/agnhost", "netexec"], manifests.AGNHOST, nodeName="node1", hostUsers=False),
                  manifests.pod("two", ["/agnhost", "netexec"], manifests.AGNHOST, nodeName="node2", hostUsers=False),
                  manifests.service("one", 80, 8080))
    address = kubectl("get", "pod", "one", "-o", "jsonpath={.status.podIP}")
    service = kubectl("get", "service", "one", "-o", "jsonpath={.spec.clusterIP}")
    for target in (f"{address}:8080", service):
        asked = ["curl", "-s", "-m", "30", "--retry", "10", "--retry-all-errors", f"http://{target}/hostname"]
        assert kubectl("exec", "two", "--", *asked) == "one"


def test_webhooks_authorization_arguments_and_gates_are_taken(dev: Dev, down: Callable[[str], str], tmp_path: Path) -> None:
    name = down("hooks")
    (tmp_path / "hook.json").write_text(manifests.webhook_configuration())
    kubeconfig = TOP / "build/testbed-authorizer.kubeconfig"
    kubeconfig.parent.mkdir(exist_ok=True)
    kubeconfig.write_text(manifests.authorizer_kubeconfig())
    (tmp_path / "authorization.json").write_text(manifests.authorization_configuration(f"/nodens/{kubeconfig.relative_to(TOP)}"))
    (tmp_path / "kubelet.json").write_text('{"maxPods": 7}')
    up = dev.run("cluster", "up", "--name", name, "--webhook", "hook=python3 -B tests/cluster/testbed/webhook.py",
                 "--apply", str(tmp_path / "hook.json"),
                 "--authorization-config", str(tmp_path / "authorization.json"), "--kubelet-config", str(tmp_path / "kubelet.json"),
                 "--kubelet-arg=--node-labels=testbed=yes", "--apiserver-arg=--service-node-port-range=31000-31100",
                 "--feature-gates", "UserNamespacesHostNetworkSupport=false")
    assert up.returncode == 0, up.stderr
    kubectl = Kubectl(dev, name)
    refused = kubectl.attempt("apply", "-f", "-", stdin=manifests.pod("bad", ["true"], labels={"refuse": "yes"}))
    assert refused.returncode != 0 and "the testbed's webhook says no" in refused.stderr
    kubectl("apply", "-f", "-", stdin=manifests.pod("good", ["true"]))
    assert kubectl.attempt("auth", "can-i", "list", "configmaps", "--as=reader").stdout == "yes\n"
    assert kubectl.attempt("auth", "can-i", "list", "secrets", "--as=reader").stdout == "no\n"
    node = json.loads(kubectl("get", "node", "node1", "-o", "json"))
    assert node["status"]["capacity"]["pods"] == "7"
    assert node["metadata"]["labels"]["testbed"] == "yes"
    gated = kubectl.attempt("apply", "-f", "-", stdin=manifests.pod("gated", ["true"], hostNetwork=True, hostUsers=False))
    assert gated.returncode != 0 and "hostUsers" in gated.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_start_leaves_nothing(dev: Dev, down: Callable[[str], str], number: signal.Signals) -> None:
    process = dev.start("cluster", "up", "--name", down("interrupted"))
    dev.wait_for_process("kube-apiserver")
    process.send_signal(number)
    process.wait(120)


def test_a_node_that_dies_is_reported(dev: Dev, down: Callable[[str], str]) -> None:
    name = down("loses")
    assert dev.run("cluster", "up", "--name", name).returncode == 0
    # no timer: systemd would let it wait for up to a minute, to wake together with others
    told = dev.run("cluster", "ssh", "--name", name, "--", "systemd-run", "sh", "-c", "'sleep 1; echo c >/proc/sysrq-trigger'")
    assert told.returncode == 0, told.stderr
    deadline = time.monotonic() + 300
    while "ended: node1" not in dev.run("cluster", "status").stdout:
        assert time.monotonic() < deadline, "`cluster status` does not report the dead node"
        time.sleep(1)


@pytest.mark.slow
def test_a_cluster_on_debians_own_kernel_confines_pods_with_apparmor(dev: Dev, down: Callable[[str], str]) -> None:
    name = down("debian")
    up = dev.run("cluster", "up", "--name", name, "--kernel", "debian", "--timeout", "400", timeout=600)
    assert up.returncode == 0, up.stderr
    kubectl = Kubectl(dev, name)
    kubectl.start(manifests.pod("confined", ["sh", "-c", "cat /proc/self/attr/current; sleep 1000"], hostUsers=False))
    assert "cri-containerd.apparmor.d (enforce)" in kubectl("logs", "confined")
