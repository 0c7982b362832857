# SPDX-License-Identifier: Apache-2.0
"""Workloads on a rootless node: deployments, services, streams, volumes, and what is refused with its reason."""
import contextlib
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from alice import HOST, UID, Alice, web
from nodenstest.people import FOREVER, container, pod_spec

pytestmark = pytest.mark.rootless
LABELS = {"app": "web"}


def deployment(alice: Alice, replicas: int = 2) -> None:
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": pod_spec(web())}}
    alice.apply("Deployment", "web", "apps/v1", spec=spec)
    alice.kubectl("rollout", "status", "deployment/web", "--timeout=300s", timeout=330)


def service(alice: Alice, **more: Any) -> dict[str, Any]:
    alice.apply("Service", "web", spec={"selector": LABELS, "ports": [{"port": 80, "targetPort": 8080}], **more})
    return alice.get("service", "web")["spec"]


@contextlib.contextmanager
def in_background(alice: Alice, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = alice.cluster.kubectl_command(f"--namespace={alice.namespace}", *arguments)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_a_deployment_comes_up_is_scaled_and_rolls_over(alice: Alice) -> None:
    deployment(alice)
    alice.kubectl("scale", "deployment/web", "--replicas=3")
    alice.kubectl("rollout", "status", "deployment/web", "--timeout=300s", timeout=330)
    alice.kubectl("set", "env", "deployment/web", "CHANGED=1")
    alice.kubectl("rollout", "status", "deployment/web", "--timeout=300s", timeout=330)
    assert alice.get("deployment", "web")["status"]["readyReplicas"] == 3


def test_pods_reach_a_service_by_its_address_and_both_of_its_pods_answer(alice: Alice) -> None:
    deployment(alice)
    address = service(alice)["clusterIP"]
    alice.pod("client", container(FOREVER))
    alice.ready("client")

    def answers() -> set[str]:
        loop = f"for i in $(seq 10); do wget -q -T 10 -O - http://{address}/hostname && echo; done"
        return set(alice.cluster.kubectl(f"--namespace={alice.namespace}", "exec", "client", "--", "sh", "-c", loop).stdout.split())

    alice.until(lambda: len(answers()) == 2, "an answer of each pod")


def test_pods_reach_the_api_server_and_other_machines(alice: Alice) -> None:
    alice.pod("client", container("wget -T 20 --no-check-certificate -q -O - https://10.96.0.1/healthz; echo; "
                                  "wget -T 20 --no-check-certificate -q -O - https://10.88.0.1:6443/healthz; echo"), restartPolicy="Never")
    alice.phase("client", "Succeeded")
    assert alice.log("client").split() == ["ok", "ok"]


def test_another_machine_reaches_a_node_port(alice: Alice) -> None:
    deployment(alice, 1)
    port = service(alice, type="NodePort")["ports"][0]["nodePort"]
    name = alice.until(lambda: alice.from_outside(f"http://{HOST}:{port}/hostname"), "an answer of the node port")
    assert name.startswith("web-")
    alice.kubectl("delete", "service", "web")
    alice.until(lambda: not alice.from_outside(f"http://{HOST}:{port}/hostname"), "the end of the node port")


def test_a_pod_sees_its_client_with_a_local_traffic_policy(alice: Alice) -> None:
    deployment(alice, 1)
    port = service(alice, type="NodePort", externalTrafficPolicy="Local")["ports"][0]["nodePort"]
    seen = alice.until(lambda: alice.from_outside(f"http://{HOST}:{port}/clientip"), "an answer of the node port")
    assert seen.startswith("10.88.0.1:"), f"the client's address is 10.88.0.1, not {seen}"


def test_another_machine_reaches_a_host_port(alice: Alice) -> None:
    alice.pod("web", web(hostPort=18080))
    alice.ready("web")
    assert alice.until(lambda: alice.from_outside(f"http://{HOST}:18080/hostname"), "an answer of the host port") == "web"


def test_exec_logs_and_port_forward(alice: Alice) -> None:
    alice.pod("web", web(), container(f"echo first; echo second >&2; {FOREVER}", "talker"))
    alice.ready("web")
    assert alice.log("web", "-c", "talker").split() == ["first", "second"]
    assert alice.kubectl("exec", "web", "-c", "talker", "--", "sh", "-c", "echo out; cat", stdin=None).strip() == "out"
    failed = alice.cluster.kubectl(f"--namespace={alice.namespace}", "exec", "web", "-c", "talker", "--", "sh", "-c", "exit 7")
    assert failed.returncode == 7
    with in_background(alice, "port-forward", "web", ":8080") as process:
        assert process.stdout
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert found
        assert alice.from_outside(f"http://127.0.0.1:{found[1]}/hostname") == "web"


def test_a_log_is_followed(alice: Alice) -> None:
    alice.pod("talker", container("i=0; while :; do echo line $i; i=$((i+1)); sleep 0.2; done"))
    alice.ready("talker")
    with in_background(alice, "logs", "-f", "talker") as process:
        assert process.stdout
        lines: list[str] = []
        deadline = time.monotonic() + 120
        while len(lines) < 20 and time.monotonic() < deadline:
            lines.append(process.stdout.readline().strip())
    assert lines == [f"line {number}" for number in range(20)]


def test_volumes_of_every_kind_have_their_content(alice: Alice) -> None:
    alice.kubectl("create", "configmap", "settings", "--from-literal=key=from-config")
    alice.kubectl("create", "secret", "generic", "hidden", "--from-literal=key=from-secret")
    alice.in_node("mkdir -p /var/lib/story && printf from-host >/var/lib/story/key")
    volumes: list[dict[str, Any]] = [
        {"name": "config", "configMap": {"name": "settings"}}, {"name": "secret", "secret": {"secretName": "hidden"}},
        {"name": "empty", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "host", "hostPath": {"path": "/var/lib/story"}},
        {"name": "downward", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"name": "projected", "projected": {"sources": [
            {"configMap": {"name": "settings"}}, {"serviceAccountToken": {"path": "token"}},
            {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}}]
    mounts = [{"name": one["name"], "mountPath": f"/v/{one['name']}"} for one in volumes]
    script = ("for f in config/key secret/key host/key downward/name projected/key projected/name; do cat /v/$f; echo; done; "
              "test -s /v/projected/token && echo token; "
              "for v in empty memory host; do echo x >/v/$v/made && stat -c '%u' /v/$v/made; done; grep -c ' /v/memory tmpfs' /proc/mounts")
    alice.pod("volumes", container(script, volumeMounts=mounts), volumes=volumes, restartPolicy="Never")
    alice.phase("volumes", "Succeeded")
    assert alice.log("volumes").split() == ["from-config", "from-secret", "from-host", "volumes", "from-config", "volumes", "token",
                                            "0", "0", "0", "1"]
    assert alice.on_host("stat -c %u ~/.local/share/nodens/default/lib/story/made").strip() == str(UID), "root of the node is alice outside"


def test_memory_limits_are_enforced(alice: Alice) -> None:
    limits: dict[str, Any] = {"resources": {"limits": {"memory": "20Mi"}, "requests": {"memory": "1Mi"}}}
    alice.pod("hungry", container("dd if=/dev/zero of=/dev/null bs=60M count=1", **limits), restartPolicy="Never")
    alice.phase("hungry", "Failed")
    assert alice.status("hungry")["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"


def test_another_user_and_a_seccomp_profile_work(alice: Alice) -> None:
    alice.pod("user", container("id -u; grep '^Seccomp:' /proc/self/status"), restartPolicy="Never",
              securityContext={"runAsUser": 1234, "seccompProfile": {"type": "RuntimeDefault"}})
    alice.phase("user", "Succeeded")
    assert alice.log("user").split() == ["1234", "Seccomp:", "2"]


def test_a_pod_with_an_apparmor_profile_fails_with_the_reason(alice: Alice) -> None:
    profile = {"appArmorProfile": {"type": "Localhost", "localhostProfile": "some-profile"}}
    alice.pod("confined", container(FOREVER, securityContext=profile))

    def reason() -> str:
        status = alice.status("confined")
        states = [one["state"].get("waiting", {}) for one in status.get("containerStatuses", [])]
        return " ".join([status.get("message", ""), *(state.get("message", "") for state in states)])

    text = alice.until(lambda: found if "apparmor" in (found := reason()).lower() else "", "the reason")
    assert "AppArmor" in text, text


def test_a_privileged_pod_has_no_privilege_on_the_host(alice: Alice) -> None:
    before = alice.on_host("cat /proc/sys/kernel/panic")
    alice.pod("privileged", container("mkdir /m; mount -t tmpfs none /m && echo mounted; mknod /tmp/disk b 98 0 || echo no device; "
                                      "echo 77 >/proc/sys/kernel/panic || echo no sysctl; exec sleep 76543",
                                      securityContext={"privileged": True}))
    alice.ready("privileged")
    alice.until(lambda: {"mounted", "no device", "no sysctl"} <= set(alice.log("privileged").splitlines()), "what the pod may do")
    assert alice.on_host("ps -o uid= -p $(pgrep -f '^sleep 76543')").split() == [str(UID)], "root of the pod is alice outside"
    assert alice.on_host("cat /proc/sys/kernel/panic") == before


def test_an_image_that_is_not_there_is_reported(alice: Alice) -> None:
    alice.pod("missing", container(FOREVER, image="registry.invalid/none:1", imagePullPolicy="Never"))
    alice.until(lambda: any(one["state"].get("waiting", {}).get("reason") == "ErrImageNeverPull"
                            for one in alice.status("missing").get("containerStatuses", [])), "the reason")
