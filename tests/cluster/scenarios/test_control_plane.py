# SPDX-License-Identifier: Apache-2.0
"""KEP-5607's story: a control plane runs as static pods on the host's network, and its root is unprivileged on the host."""
from collections.abc import Iterator
from typing import Any

import pytest
from nodensdev.cluster import addresses
from nodensdev.cluster.handle import shell_words
from nodenstest.people import AGNHOST, Person, container, is_ready, pod_spec

DIRECTORY = "/var/lib/story-control-plane"
ETCD, PORT = "http://127.0.0.1:12379", 16443
KEYS = ("ca.crt", "apiserver.crt", "apiserver.key", "sa.pub", "sa.key")
ETCD_COMMAND = ["/control-plane/bin/etcd", "--name=story", "--data-dir=/control-plane/data/etcd", "--unsafe-no-fsync", "--log-level=warn",
                f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}", "--listen-peer-urls=http://127.0.0.1:12380",
                "--initial-advertise-peer-urls=http://127.0.0.1:12380", "--initial-cluster=story=http://127.0.0.1:12380"]
API_SERVER_COMMAND = [
    "/control-plane/bin/kube-apiserver", f"--etcd-servers={ETCD}", "--bind-address=0.0.0.0", f"--secure-port={PORT}",
    f"--advertise-address={addresses.node(1)}",
    f"--service-cluster-ip-range={addresses.SERVICES}", "--endpoint-reconciler-type=none", "--authorization-mode=Node,RBAC",
    "--tls-cert-file=/control-plane/pki/apiserver.crt", "--tls-private-key-file=/control-plane/pki/apiserver.key",
    "--client-ca-file=/control-plane/pki/ca.crt",
    "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=/control-plane/pki/sa.pub",
    "--service-account-signing-key-file=/control-plane/pki/sa.key"]


def member(command: list[str], read_only: tuple[str, ...], **more: Any) -> dict[str, Any]:
    """A pod of the control plane: programs and keys are root's on the host and read-only inside."""
    mounts = [{"name": "control-plane", "mountPath": f"/control-plane/{name}", "subPath": name, "readOnly": name in read_only}
              for name in (*read_only, "data")]
    return pod_spec(container(command, image=AGNHOST, volumeMounts=mounts, **more), hostNetwork=True, hostUsers=False,
                    priorityClassName="system-node-critical",
                    volumes=[{"name": "control-plane", "hostPath": {"path": DIRECTORY, "type": "Directory"}}])


@pytest.fixture
def files(person: Person) -> Iterator[None]:
    """Programs and keys on the node, from where the cluster's own control plane has them; keys are for root alone."""
    to_node = shell_words(person.cluster.ssh_command(1))
    binaries = person.cluster.record["binaries"]
    done = person.cluster.run(["sh", "-c",
                               f"(tar -cC /usr/bin etcd | {to_node} -- 'mkdir -p {DIRECTORY}/bin {DIRECTORY}/pki {DIRECTORY}/data && tar "
                               f"-xC {DIRECTORY}/bin') && "
                                           f"(tar -cC {binaries} kube-apiserver | {to_node} -- tar -xC {DIRECTORY}/bin) && "
                                           f"(tar -cC /run/cluster/pki {' '.join(KEYS)} | {to_node} -- 'tar -xC {DIRECTORY}/pki && chown "
                                           f"-R 0:0 {DIRECTORY} && "
                                           f"chmod 755 {DIRECTORY} {DIRECTORY}/bin && chmod 700 {DIRECTORY}/pki {DIRECTORY}/data && chmod "
                                           f"600 {DIRECTORY}/pki/*')"], timeout=300)
    assert done.returncode == 0, done.stderr
    yield
    person.on_node(f"rm -rf {DIRECTORY}")


def asked(person: Person, *arguments: str) -> str | None:
    """kubectl, asking the API server in the pod; None when it does not answer well."""
    done = person.cluster.kubectl(f"--server=https://{addresses.node(1)}:{PORT}", "--tls-server-name=kubernetes", *arguments)
    return done.stdout if done.returncode == 0 else None


def test_an_api_server_on_the_hosts_network_has_users_of_its_own(person: Person, files: None) -> None:
    probe = {"httpGet": {"path": "/readyz", "port": PORT, "scheme": "HTTPS"}, "periodSeconds": 3, "timeoutSeconds": 10,
             "failureThreshold": 100}
    person.static_pod("story-etcd", member(ETCD_COMMAND, ("bin",)))
    person.static_pod("story-apiserver", member(API_SERVER_COMMAND, ("bin", "pki"), readinessProbe=probe))
    try:
        person.until(lambda: is_ready(person.mirror("story-apiserver")), "an API server that is ready", 300)
        assert asked(person, "get", "--raw", "/readyz") == "ok"
        assert asked(person, "create", "configmap", "kept",
                     "--from-literal=by=story") and asked(person, "get", "configmap", "kept", "-o", "jsonpath={.data.by}") == "story"
        for program in ("etcd", "kube-apiserver"):
            process = person.on_node(f"pgrep -nx {program}").strip()
            inside, outside, count = person.on_node(f"cat /proc/{process}/uid_map").split()
            owner = int(person.on_node(f"stat -c %u /proc/{process}"))
            assert inside == "0" and int(count) == 65536 and owner == int(outside) >= 65536, program
            assert (
                person.on_node(f"readlink /proc/{process}/ns/net /proc/1/ns/net").split()[0]
                == person.on_node("readlink /proc/1/ns/net").strip()
            )
        assert person.on_node(f"stat -c %u {DIRECTORY}/data/etcd/member").strip() == "0", "what etcd wrote is root's on the volume"
    finally:
        person.end_static_pods("story-apiserver", "story-etcd")
