# SPDX-License-Identifier: Apache-2.0
"""PersistentVolumes on storage that cannot be idmapped, in pods with users of their own, under a stock kubelet.

The node has a kernel NFS server, and an S3 server whose bucket s3fs mounts. `tools/dev test storage-node` runs it,
`storage-node-containerd` the pods that work on nodens-cri on containerd.
"""
import json
import os
import shlex
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodensdev import cluster
from nodensdev.env import goprograms
from nodensdev.project import BUILD
from nodenstest import storage
from nodenstest.people import FOREVER, Person, container, is_ready
from nodenstest.scenario import namespace_of, running_cluster

pytestmark = pytest.mark.storage
SERVED, S3 = "/srv/nfs", "/srv/s3"
USER, GROUP = 1000, 2000
SETTING = "volumes: {bridge: auto}\n"
# all threads stop before the kill: see nodenstest.bridged.kill()
KILL = """set -e
kill -STOP {pid}
while grep -qv '(nodens-bridge) T' /proc/{pid}/task/*/stat; do sleep 0.01; done
kill -KILL {pid}
"""
# of crun, on containerd
REFUSAL = "mount_setattr `/volume` (maybe the file system used doesn't support idmap mounts on this kernel?): Invalid argument"
NFS_SERVER = f"""set -e
mkdir -p {SERVED}
systemctl start rpcbind.socket rpc-statd nfs-server
exportfs -o rw,sync,no_subtree_check,no_root_squash 127.0.0.1:{SERVED}
"""
VERSITYGW, S3_KEYS, S3_CLIENT = Path("/usr/local/bin/versitygw"), Path(f"{S3}/keys"), Path(f"{S3}/client")
S3_URL = f"http://127.0.0.1:{storage.S3_PORT}/volume/data"
S3_REQUEST = f"curl -sS --fail --aws-sigv4 aws:amz:us-east-1:s3 --user {storage.S3_KEY}:{storage.S3_SECRET}"
S3_SERVER = f"""set -e
mkdir -p {S3}/served/volume/data {S3_CLIENT}
umask 077
echo {storage.S3_KEY}:{storage.S3_SECRET} >{S3_KEYS}
systemd-run --quiet --unit s3-server {shlex.join(storage.s3_server(VERSITYGW, Path(S3) / "served"))}
until {S3_REQUEST} http://127.0.0.1:{storage.S3_PORT}/volume >/dev/null; do sleep 0.2; done
systemd-run --quiet --unit s3-driver {shlex.join(storage.s3_driver(S3_KEYS, S3_CLIENT))}
until mountpoint -q {S3_CLIENT}; do sleep 0.2; done
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
    admin.cluster.send(goprograms.ensure("versitygw") / VERSITYGW.name, ["sh", "-c", f"cat >{VERSITYGW} && chmod 755 {VERSITYGW}"])
    admin.on_node(S3_SERVER)
    if admin.cluster.record["runtime"] == "nodens":
        admin.on_node("cat >>/etc/nodens/cri.yaml && systemctl restart nodens-cri", stdin=SETTING)


@pytest.fixture
def person(node: cluster.Cluster) -> Iterator[Person]:
    one = Person(node, f"storage-{uuid.uuid4().hex[:8]}")
    for place in (SERVED, S3_CLIENT):
        one.on_node(f"mkdir -p {place}/{one.namespace} && chmod 1777 {place}/{one.namespace}")
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


def s3(person: Person) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node1"]}]}
    return {"local": {"path": f"{S3_CLIENT}/{person.namespace}"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}


SOURCES = {"nfs": nfs, "s3": s3}


def create(person: Person, name: str, claimed: str, command: str = FOREVER, mounts: dict[str, Any] | None = None, **spec: Any) -> None:
    """A pod with users of its own and the claim at /volume."""
    main = container(command, volumeMounts=[{"name": "volume", "mountPath": "/volume", **(mounts or {})}])
    volume = {"name": "volume", "persistentVolumeClaim": {"claimName": claimed}}
    person.pod(name, main, hostUsers=False, volumes=[volume], **spec)


def start(person: Person, name: str, claimed: str, **more: Any) -> None:
    create(person, name, claimed, **more)
    person.ready(name)


def delete(person: Person, *names: str) -> None:
    person.kubectl("delete", "pod", *names, "--timeout=120s", timeout=150)


def run(person: Person, name: str, script: str) -> str:
    return person.kubectl("exec", name, "--", "sh", "-c", script).strip()


def bridges(person: Person) -> list[int]:
    return [int(pid) for pid in person.on_node("pgrep -x nodens-bridge || true").split()]


def owners(person: Person, kind: str, *names: str) -> list[str]:
    """Owners and groups of files, as the storage's server has them."""
    if kind == "nfs":
        return person.on_node(f"cd {SERVED}/{person.namespace} && stat -c '%u %g' {' '.join(names)}").splitlines()
    # a name of a directory ends in a slash
    heads = [person.on_node(f"{S3_REQUEST} --head {S3_URL}/{person.namespace}/{name}").lower().splitlines() for name in names]
    fields = [dict(line.split(": ") for line in head if ": " in line) for head in heads]
    return [f"{one['x-amz-meta-uid']} {one['x-amz-meta-gid']}" for one in fields]


@pytest.mark.parametrize("kind", SOURCES)
def test_files_have_the_owners_that_the_pod_gives(person: Person, kind: str) -> None:
    claim(person, "data", SOURCES[kind](person))
    if not runs_nodens(person):
        refused(person, "data", kind)
        return
    start(person, "one", "data")
    start(person, "two", "data", securityContext={"runAsUser": USER, "runAsGroup": USER, "supplementalGroups": [GROUP]})
    assert run(person, "one", "cd /volume; echo by root >root; chown 1001:2000 root; chmod 640 root; mkdir d; id -u") == "0"
    assert run(person, "two", "echo by user >/volume/user; cat /volume/root; id -u").split("\n") == ["by root", str(USER)]
    assert owners(person, kind, "d/", "root", "user") == ["0 0", "1001 2000", f"{USER} {USER}"]
    assert run(person, "one", "cat /proc/self/uid_map").split() != run(person, "two", "cat /proc/self/uid_map").split()
    assert len(bridges(person)) == 6, "three processes of each pod"
    delete(person, "one", "two")
    person.until(lambda: not bridges(person), "the end of the bridges")
    person.until(lambda: person.namespace not in person.on_node("cat /proc/self/mounts"), "the kubelet's unmount of the volume")


def refused(person: Person, claimed: str, kind: str) -> None:
    """Such a pod starts without the volume, and does not start with it; the reason is recorded."""
    person.pod("without", container(FOREVER), hostUsers=False)
    person.ready("without")
    create(person, "refused", claimed)
    text = person.until(lambda: person.kubectl("get", "events", "--field-selector", "reason=Failed,involvedObject.name=refused", "-o",
                                               "jsonpath={.items[*].message}"), "an event")
    print(f"containerd, {kind}: {text}")
    assert REFUSAL in text
    assert not is_ready(person.status("refused"))


@pytest.fixture
def own(person: Person) -> Person:
    if not runs_nodens(person):
        pytest.skip("of nodens-bridge")
    return person


def test_a_pod_that_is_created_again_has_its_files_on_s3(own: Person) -> None:
    claim(own, "data", s3(own))
    user = {"runAsUser": USER, "runAsGroup": USER, "fsGroup": GROUP}
    start(own, "one", "data", securityContext=user)
    run(own, "one", "cd /volume && mkdir d && echo first >d/file && head -c 9000000 /dev/urandom >large")
    total = run(own, "one", "sha256sum </volume/large")
    assert own.on_node(f"{S3_REQUEST} {S3_URL}/{own.namespace}/d/file") == "first\n"
    assert own.on_node(f"{S3_REQUEST} {S3_URL}/{own.namespace}/large | sha256sum").strip() == total
    delete(own, "one")
    own.until(lambda: not bridges(own), "the end of the bridge")
    start(own, "one", "data", securityContext=user)
    assert run(own, "one", "sha256sum </volume/large") == total
    owner = run(own, "one", "cd /volume/d; echo second >>file; mv file moved; stat -c %u:%g moved")
    assert owner == f"{USER}:{GROUP}", "the kubelet gave the files to the group"
    assert own.on_node(f"{S3_REQUEST} {S3_URL}/{own.namespace}/d/moved").split() == ["first", "second"]


@pytest.mark.parametrize("kind", SOURCES)
def test_subpath_and_read_only_volumes(own: Person, kind: str) -> None:
    claim(own, "data", SOURCES[kind](own))
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
        own.on_node(KILL.format(pid=server) + "systemctl restart nodens-cri")
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
        own.kubectl("wait", "--for=delete", "pod/waiting", "--timeout=900s", timeout=930)
        own.kubectl("exec", "other", "--", "true")
    finally:
        own.on_node("systemctl start nfs-server")
    own.until(lambda: not bridges(own), "the end of the bridge")
