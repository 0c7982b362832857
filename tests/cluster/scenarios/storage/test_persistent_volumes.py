# SPDX-License-Identifier: Apache-2.0
"""PersistentVolumes on storage that cannot be idmapped, in pods with users of their own, under a stock kubelet.

The node has a kernel NFS server. `tools/dev test storage-node` runs it, `storage-node-containerd` the pods
that work on nodens-cri on containerd.
"""
import json
import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from nodensdev import cluster
from nodensdev.project import BUILD
from nodenstest.people import FOREVER, Person, container
from nodenstest.scenario import namespace_of, running_cluster

pytestmark = pytest.mark.storage
SERVED = "/srv/nfs"
USER, GROUP = 1000, 2000
SETTING = "volumes: {bridge: auto}\n"
NFS_SERVER = f"""set -e
mkdir -p {SERVED}
systemctl start rpcbind.socket rpc-statd nfs-server
exportfs -o rw,sync,no_subtree_check,no_root_squash 127.0.0.1:{SERVED}
"""


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest) -> Iterator[cluster.Cluster]:
    runtime = request.config.getoption("--runtime")
    options = cluster.Options(name=f"storage-{os.getpid()}", runtime=runtime, kernel="uml-nft", memory="5G", timeout=900)
    with running_cluster(request.config.getoption("--cluster"), options, BUILD / f"storage-{runtime}") as made:
        prepare(Person(made, "default"))
        yield made


def prepare(admin: Person) -> None:
    """What the administrator of the node does."""
    admin.on_node(NFS_SERVER)
    if admin.cluster.record["runtime"] == "nodens":
        admin.on_node("cat >>/etc/nodens/cri.yaml && systemctl restart nodens-cri", stdin=SETTING)


@pytest.fixture
def person(node: cluster.Cluster) -> Iterator[Person]:
    one = Person(node, f"storage-{uuid.uuid4().hex[:8]}")
    one.on_node(f"mkdir -p {SERVED}/{one.namespace} && chmod 1777 {SERVED}/{one.namespace}")
    with namespace_of(one, "pods,persistentvolumeclaims"):
        yield one
    one.kubectl("delete", "persistentvolume", "--selector", f"of={one.namespace}")


def runs_nodens(person: Person) -> bool:
    return person.cluster.record["runtime"] == "nodens"


def claim(person: Person, name: str, source: dict[str, Any]) -> None:
    """A PersistentVolume and a claim for it."""
    volume = f"{person.namespace}-{name}"
    person.kubectl("apply", "-f", "-", stdin=json.dumps({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume, "labels": {"of": person.namespace}},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "", **source}}))
    person.apply("PersistentVolumeClaim", name, spec={
        "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}})


def nfs(person: Person) -> dict[str, Any]:
    return {"nfs": {"server": "127.0.0.1", "path": f"{SERVED}/{person.namespace}"}, "mountOptions": ["vers=4.2"]}


def mounting(name: str, claimed: str, command: str = FOREVER, mounts: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Fields of a pod with users of its own and the claim at /volume."""
    main = container(command, volumeMounts=[{"name": "volume", "mountPath": "/volume", **(mounts or {})}])
    volume = {"name": "volume", "persistentVolumeClaim": {"claimName": claimed}}
    return {"hostUsers": False, "volumes": [volume], "containers": [main], **spec}


def start(person: Person, name: str, claimed: str, **more: Any) -> None:
    fields = mounting(name, claimed, **more)
    person.pod(name, *fields.pop("containers"), **fields)
    person.ready(name)


def run(person: Person, name: str, script: str) -> str:
    return person.kubectl("exec", name, "--", "sh", "-c", script).strip()


def bridges(person: Person) -> list[int]:
    return [int(pid) for pid in person.on_node("pgrep -x nodens-bridge || true").split()]


def test_a_volume_on_nfs_has_the_owners_that_the_pod_gives(person: Person) -> None:
    claim(person, "data", nfs(person))
    if not runs_nodens(person):
        refused(person, "data")
        return
    start(person, "one", "data")
    start(person, "two", "data", securityContext={"runAsUser": USER, "runAsGroup": USER, "fsGroup": GROUP})
    assert run(person, "one", "echo by root >/volume/root; chown 1000:2000 /volume/root; mkdir /volume/d; id -u") == "0"
    assert run(person, "two", "echo by user >/volume/user; cat /volume/root; id -u").split("\n") == ["by root", str(USER)]
    assert person.on_node(f"cd {SERVED}/{person.namespace} && stat -c '%n %u %g' *").split("\n")[:3] == [
        "d 0 0", "root 1000 2000", f"user {USER} {USER}"]
    assert run(person, "one", "cat /proc/self/uid_map").split() != run(person, "two", "cat /proc/self/uid_map").split()
    assert len(bridges(person)) == 6, "three processes of each pod"
    person.kubectl("delete", "pod", "one", "two", "--timeout=120s", timeout=150)
    person.until(lambda: not bridges(person), "the end of the bridges")
    person.until(lambda: person.namespace not in person.on_node("cat /proc/self/mounts"), "the kubelet's unmount of the volume")


def refused(person: Person, claimed: str) -> None:
    """The pod does not start; the reason is recorded."""
    fields = mounting("refused", claimed)
    person.pod("refused", *fields.pop("containers"), **fields)
    text = person.until(lambda: person.kubectl("get", "events", "--field-selector", "reason=Failed", "-o",
                                               "jsonpath={.items[*].message}"), "an event")
    assert "idmap" in text.lower(), text
    print(f"containerd: {text}")


@pytest.fixture
def own(person: Person) -> Person:
    if not runs_nodens(person):
        pytest.skip("of nodens-bridge")
    return person


def test_subpath_and_read_only_volumes(own: Person) -> None:
    claim(own, "data", nfs(own))
    start(own, "whole", "data")
    run(own, "whole", "mkdir -p /volume/a/b && echo x >/volume/a/b/file")
    start(own, "part", "data", mounts={"subPath": "a/b"})
    assert run(own, "part", "echo y >>/volume/file; cat /volume/file").split() == ["x", "y"]
    start(own, "still", "data", mounts={"readOnly": True, "recursiveReadOnly": "Enabled"})
    assert "Read-only" in run(own, "still", "touch /volume/z 2>&1 || true")


def test_kills_and_restarts_are_not_seen_by_the_pod(own: Person) -> None:
    claim(own, "data", nfs(own))
    start(own, "counter", "data",
          command="i=0; while :; do i=$((i+1)); echo $i >>/volume/log; mkdir /volume/d && rmdir /volume/d || exit 1; done")
    for _ in range(5):
        server = own.on_node("ps -eo nlwp=,pid=,comm= --sort=-nlwp | grep nodens-bridge | head -1").split()[1]
        own.on_node(f"kill -KILL {server} && systemctl restart nodens-cri")
        own.until(lambda server=server: len(bridges(own)) == 3 and int(server) not in bridges(own), "another server")
    before = int(run(own, "counter", "tail -1 /volume/log"))
    own.until(lambda: int(run(own, "counter", "tail -1 /volume/log")) > before, "the counter to go on")
    assert run(own, "counter", "awk '$1 != NR { print; exit 1 }' /volume/log") == ""
    assert own.status("counter")["containerStatuses"][0]["restartCount"] == 0


def test_a_server_that_is_away_stops_its_pod_alone_and_the_pod_can_be_deleted(own: Person) -> None:
    claim(own, "data", nfs(own))
    start(own, "waiting", "data", command="while :; do date >>/volume/log; sync; sleep 0.1; done")
    own.pod("other", container("while :; do date; sleep 1; done"), hostUsers=False)
    own.ready("other")
    own.on_node("systemctl stop nfs-server")
    try:
        own.until(lambda: "D" in own.on_node("ps -eLo stat=,comm= | grep nodens-bridge"), "a bridge that waits for its server")
        own.kubectl("exec", "other", "--", "true")
        own.pod("later", container(FOREVER), hostUsers=False)
        own.ready("later")
        own.kubectl("delete", "pod", "waiting", "--wait=false")
        own.until(lambda: own.on_node("nodens ps").count("waiting") == 0, "the end of the container")
        # the kubelet waits for its own unmount, which it forces after a minute
        own.kubectl("wait", "--for=delete", "pod/waiting", "--timeout=400s", timeout=430)
        own.kubectl("exec", "other", "--", "true")
    finally:
        own.on_node("systemctl start nfs-server")
    own.until(lambda: not bridges(own), "the end of the bridge")
