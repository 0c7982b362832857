# SPDX-License-Identifier: Apache-2.0
"""Pods with hostUsers: false on a rootless node with a stock kubelet, which has IDs for ten of them: `tools/dev test rootless-node-ids`."""
import json
import os
import uuid
from collections.abc import Iterator

import pytest
from nodensdev import cluster
from nodensdev.project import TOP
from nodenstest.people import FOREVER, Person, container, is_ready, pod_spec
from nodenstest.scenario import namespace_of, running_cluster

pytestmark = pytest.mark.rootless
FIRST, PODS = 100000, 10
SUBORDINATE = (PODS + 1) * 65536 - 1
LABELS = {"app": "many"}


@pytest.fixture(scope="session")
def running(request: pytest.FixtureRequest) -> Iterator[cluster.Cluster]:
    options = cluster.Options(name=f"ids-{os.getpid()}", runtime="nodens", kernel="uml-nft", rootless=True,
                              subordinate_ids=SUBORDINATE, timeout=900)
    with running_cluster(request.config.getoption("--cluster"), options, TOP / "build/rootless-node/ids") as made:
        yield made


@pytest.fixture
def alice(running: cluster.Cluster) -> Iterator[Person]:
    one = Person(running, f"story-{uuid.uuid4().hex[:8]}")
    with namespace_of(one, "deployments,pods"):
        yield one


def on_host(alice: Person, command: str, user: str = "root") -> str:
    done = alice.cluster.node_exec(["sh", "-c", command], timeout=120, user=user)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def maps(alice: Person, command: str) -> set[str]:
    """The maps of all processes with this command line, as the host sees them."""
    script = f"for p in $(pgrep -fx '{command}'); do echo $(cat /proc/$p/uid_map /proc/$p/gid_map); done"
    return {" ".join(line.split()) for line in on_host(alice, script).splitlines()}


def ready_pods(alice: Person) -> int:
    return sum(is_ready(one["status"]) for one in json.loads(alice.kubectl("get", "pods", "-o", "json"))["items"])


def test_the_node_has_a_maximum_of_pods_for_which_it_has_ids(alice: Person) -> None:
    assert alice.get("node", "node1")["status"]["capacity"]["pods"] == str(PODS)
    assert f"enough for {PODS} pods with hostUsers: false" in on_host(alice, "as-alice nodens-rootless status")
    assert f"{PODS} pods with hostUsers: false" in on_host(alice, "as-alice nodens check --rootless || true")


def test_a_pod_has_its_own_range_of_ids(alice: Person) -> None:
    for name in ("first", "second"):
        alice.pod(name, container("exec sleep 987123"), hostUsers=False)
    for name in ("first", "second"):
        alice.ready(name)
        inside = alice.kubectl("exec", name, "--", "sh", "-c", "id -u; cat /proc/self/uid_map; stat -c %u /bin/busybox").split()
        assert inside[0] == "0" and inside[1] == "0" and int(inside[2]) % 65536 == 0 and inside[3] == "65536" and inside[4] == "0"
    seen = maps(alice, "sleep 987123")
    assert len(seen) == 2
    for line in seen:
        words = line.split()
        assert words[:3] == words[3:] and words[0] == "0" and words[2] == "65536"
        assert FIRST + 65535 <= int(words[1]) < FIRST + SUBORDINATE and (int(words[1]) - FIRST + 1) % 65536 == 0


def test_volumes_of_a_pod_with_its_own_ids(alice: Person) -> None:
    alice.apply("ConfigMap", "settings", data={"key": "from-config"})
    alice.apply("Secret", "secret", stringData={"key": "from-secret"})
    volumes = [{"name": "cache", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}},
               {"name": "settings", "configMap": {"name": "settings", "defaultMode": 0o400}},
               {"name": "secret", "secret": {"secretName": "secret", "defaultMode": 0o400}},
               {"name": "labels", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]
    script = ("set -e; cat /v/settings/key /v/secret/key /v/labels/name; echo; for v in cache memory; do echo x >/v/$v/file; "
              "stat -c %u:%g /v/$v/file; done; cat /var/run/secrets/kubernetes.io/serviceaccount/token | wc -c; stat -c %u /etc/hosts; "
              "echo done >/dev/termination-log")
    alice.pod("volumes", container(script, volumeMounts=[{"name": one["name"], "mountPath": f"/v/{one['name']}"} for one in volumes]),
              hostUsers=False, restartPolicy="Never", securityContext={"fsGroup": 2000}, volumes=volumes)
    alice.phase("volumes", "Succeeded")
    said = alice.log("volumes").split()
    assert said[:3] == ["from-configfrom-secretvolumes", "0:2000", "0:2000"] and int(said[3]) > 100 and said[4] == "0"
    assert alice.status("volumes")["containerStatuses"][0]["state"]["terminated"]["message"] == "done\n"


def test_a_path_of_the_host_is_refused_with_the_reason(alice: Person) -> None:
    alice.pod("path", container(FOREVER, volumeMounts=[{"name": "v", "mountPath": "/v"}]), hostUsers=False,
              volumes=[{"name": "v", "hostPath": {"path": "/var/lib/story", "type": "DirectoryOrCreate"}}])
    alice.until(lambda: "a rootless node can idmap only filesystems that were mounted in it" in alice.kubectl("describe", "pod", "path"),
                "an event with the reason")


def test_as_many_pods_as_there_are_ids_run_and_the_next_wait(alice: Person) -> None:
    spec = {"replicas": PODS + 2, "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": pod_spec(container("exec sleep 987124"), hostUsers=False)}}
    alice.apply("Deployment", "many", "apps/v1", spec=spec)
    others = int(alice.cluster.kubectl("get", "pods", "--all-namespaces", "--no-headers", "--field-selector=spec.nodeName=node1,"
                                       f"metadata.namespace!={alice.namespace}", "-o", "name").stdout.count("pod/"))
    alice.until(lambda: ready_pods(alice) == PODS - others, "as many pods as there are IDs", 600)
    assert len(maps(alice, "sleep 987124")) == PODS - others
    alice.until(lambda: "Too many pods" in alice.kubectl("get", "events"), "an event about the others")
