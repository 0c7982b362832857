# SPDX-License-Identifier: Apache-2.0
"""A rootless node in a pod with hostUsers: false (`up --inside`): it joins the cluster whose pod it is, and runs a pod.

The pod is that of docs/examples/node-in-pod.yaml, and its node has a stock kubelet and nodens-cri. `tools/dev test rootless-pod` runs it.
"""
import contextlib
import json
import os
import shlex
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nodensdev import cluster
from nodensdev.cluster import addresses, pki, rootless
from nodensdev.cluster.controlplane import STATE
from nodensdev.images import own
from nodensdev.project import BUILD, INSIDE, TOP
from nodenstest.people import FOREVER, Person, container
from nodenstest.scenario import namespace_of, running_cluster

pytestmark = pytest.mark.rootless
MANIFEST = TOP / "docs/examples/node-in-pod.yaml"
PLUGIN = Path(__file__).parent.parent / "device_plugin.py"
TUN = "example.org/tun"
INNER, OUTER = "inner", "node1"       # nodes; the first is a pod of the second
IMAGE, BUSYBOX = f"{own.NAME}/node:1", f"{own.NAME}/inner:1"
ARCHIVE = "/usr/share/node/archive.tar"
HANDLER = "runtimeHandlers:\n- name: nested\n  writableCgroups: true\n"
LABEL = "kubernetes.io/running-in-user-namespace"
IDS = 65536
API = addresses.CONTROL_PLANE
NAMES = ("nodens-holder", "nodens-rootless")    # processes of the inner node
Change = Callable[[dict[str, Any]], Any]    # of a pod's spec


@pytest.fixture(scope="module")
def outer(request: pytest.FixtureRequest) -> Iterator[cluster.Cluster]:
    options = cluster.Options(name=f"rootless-pod-{os.getpid()}", runtime="nodens", kernel="uml-nft", memory="6G", images=("e2e", "node"),
                              timeout=900)
    with running_cluster(request.config.getoption("--cluster"), options, BUILD / "rootless-node/pod") as made:
        yield made


@pytest.fixture(scope="module")
def owner(outer: cluster.Cluster) -> Iterator[Person]:
    """What an administrator prepares: programs and a runtime handler on the outer node, the device, credentials of the inner node."""
    one = Person(outer, f"story-{uuid.uuid4().hex[:8]}")
    put_archive(one)
    if "nested" not in one.on_node("cat /etc/nodens/cri.yaml"):
        one.on_node("cat >>/etc/nodens/cri.yaml && systemctl restart nodens-cri", stdin=HANDLER)
    with namespace_of(one, "pods"), device_plugin(one):
        one.kubectl("create", "secret", "generic", f"join-{INNER}", "--from-file=kubeconfig=/dev/stdin", stdin=credentials(one))
        one.kubectl("apply", "-f", "-", stdin=rootless.CONTROLLER_ROLE)
        yield one
        one.kubectl("delete", "node", INNER, "--ignore-not-found")


def put_archive(one: Person) -> None:
    """Unpacks `tools/dev package --tarball` on the outer node."""
    archives = sorted((BUILD / "package").glob("nodens-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    assert archives, "`tools/dev package --tarball` has not been run"
    unpack = [*one.cluster.ssh_command(1), "--", "mkdir -p /opt/nodens && tar xz --strip-components=1 -C /opt/nodens"]
    done = one.cluster.run(["sh", "-c", f"{shlex.join(unpack)} <{INSIDE / archives[-1].relative_to(TOP)}"], timeout=300)
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def device_plugin(one: Person) -> Iterator[None]:
    one.on_node("cat >/run/tun-plugin.py; mkdir -p /dev/net; test -c /dev/net/tun || mknod /dev/net/tun c 10 200; chmod 666 /dev/net/tun; "
                f"systemd-run --unit=tun-plugin --collect python3 -B /run/tun-plugin.py {TUN} rw /dev/net/tun", stdin=PLUGIN.read_text())
    try:
        one.until(lambda: one.get("node", OUTER)["status"]["allocatable"].get(TUN) == "4", "the device plugin")
        yield
    finally:
        one.on_node("systemctl stop tun-plugin")


def credentials(one: Person) -> str:
    """A kubeconfig for `up --join`, with certificates of the cluster's authority."""
    made = (pki.Certificate(INNER, f"/O=system:nodes/CN=system:node:{INNER}"),
            pki.Certificate("rootless-controller", "/CN=nodens-rootless-controller"))
    for certificate in made:
        done = one.cluster.run(["sh", "-ec", f"cd {STATE}/pki; umask 077; {certificate.command()}"])
        assert done.returncode == 0, done.stderr
    return rootless.kubeconfig(one.cluster.state / "pki", INNER)


def manifest(one: Person) -> list[dict[str, Any]]:
    """The objects of the example, with the test's image; the programs are those of the outer node."""
    text = one.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", stdin=MANIFEST.read_text())
    objects: list[dict[str, Any]] = []
    decoder, text = json.JSONDecoder(), text.strip()
    while text:
        found, end = decoder.raw_decode(text)
        objects += found["items"] if found["kind"] == "List" else [found]
        text = text[end:].strip()
    for pod in (found for found in objects if found["kind"] == "Pod"):
        node = pod["spec"]["containers"][0]
        node |= {"image": IMAGE, "imagePullPolicy": "Never"}
        for name, path in (("nodens", "/opt/nodens"), ("kubernetes", "/usr/local/bin")):
            pod["spec"]["volumes"].append({"name": name, "hostPath": {"path": path}})
            node["volumeMounts"].append({"name": name, "mountPath": f"/opt/{name}", "readOnly": True})
    return objects


def without(one: Person, name: str, change: Change) -> list[dict[str, Any]]:
    """The pod under another name, in which something is missing."""
    objects = manifest(one)
    for pod in (found for found in objects if found["kind"] == "Pod"):
        pod["metadata"]["name"] = name
        pod["spec"]["restartPolicy"] = "Never"
        change(pod["spec"])
    return objects


def create(one: Person, objects: list[dict[str, Any]]) -> None:
    for found in objects:
        one.kubectl("apply", "-f", "-", stdin=json.dumps(found))


def in_pod(one: Person, *command: str) -> str:
    return one.kubectl("exec", INNER, "--", *command)


def in_node(one: Person, *command: str) -> str:
    return in_pod(one, "/opt/nodens/nodens-rootless", "shell", "--", *command)


def approve(one: Person) -> bool:
    """Approves the requests of the inner kubelet for a serving certificate, as an administrator does; false as long as there are none."""
    found = [request["metadata"]["name"] for request in json.loads(one.kubectl("get", "csr", "-o", "json"))["items"]
             if request["spec"]["username"] == f"system:node:{INNER}" and not request["status"].get("conditions")]
    if found:
        one.kubectl("certificate", "approve", *found)
    return bool(found)


@pytest.fixture(scope="module")
def inner(owner: Person) -> Person:
    """The node in the pod, which is Ready and has an image."""
    create(owner, manifest(owner))
    try:
        owner.until(lambda: INNER in owner.cluster.ready_nodes(), "the node in the pod being Ready")
        owner.until(lambda: approve(owner), "a request for a serving certificate")
        in_node(owner, "/opt/nodens/nodens", "import", ARCHIVE)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{owner.cluster.kubectl(f'--namespace={owner.namespace}', 'logs', INNER).stdout[-6000:]}") from None
    return owner


def test_the_node_in_the_pod_is_one_of_the_cluster(inner: Person) -> None:
    node = inner.get("node", INNER)
    found = {one["type"]: one["address"] for one in node["status"]["addresses"]}
    assert found["InternalIP"] == inner.status(INNER)["podIP"]
    inner.until(lambda: inner.get("node", INNER)["metadata"]["labels"].get(LABEL) == "true", "the label")


def test_it_runs_a_pod_with_limits_logs_and_exec(inner: Person) -> None:
    script = f"echo said; {FOREVER}"
    inner.pod("guest", container(script, image=BUSYBOX, resources={"limits": {"memory": "64Mi", "cpu": "200m"}}), nodeName=INNER)
    inner.ready("guest")
    inner.until(lambda: inner.cluster.kubectl(f"--namespace={inner.namespace}", "logs", "guest").stdout.startswith("said\n"), "the log")
    assert inner.kubectl("exec", "guest", "--", "echo", "in").strip() == "in"
    assert inner.kubectl("exec", "guest", "--", "cat", "/sys/fs/cgroup/memory.max").strip() == str(64 << 20)


def test_the_kernel_enforces_the_limit_of_its_pod(inner: Person) -> None:
    eater = container("dd if=/dev/zero of=/dev/null bs=128M count=1", image=BUSYBOX, resources={"limits": {"memory": "32Mi"}})
    inner.pod("eater", eater, nodeName=INNER, restartPolicy="Never")
    ended = inner.phase("eater", "Failed")["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled"), ended
    inner.kubectl("delete", "pod", "eater", "--timeout=120s", timeout=150)


def test_every_process_of_it_has_an_id_of_the_pod_on_the_outer_node(inner: Person) -> None:
    first = int(in_pod(inner, "cat", "/proc/self/uid_map").split()[1])
    assert first >= IDS
    shown = inner.on_node("ps -eo uid=,comm=")
    users = {name: int(uid) % 2**32 for uid, name in (line.split(None, 1) for line in shown.splitlines()) if name in NAMES}
    assert set(users) == set(NAMES) and all(first <= uid < first + IDS for uid in users.values()), users


def test_the_pods_default_apparmor_profile_confines_the_node(inner: Person) -> None:
    assert in_node(inner, "cat", "/proc/self/attr/current").strip() == "nodens-container-mapped (enforce)"
    assert "capabilities" not in json.dumps(inner.get("pod", "guest")["spec"]), "an ordinary pod"
    assert inner.kubectl("exec", "guest", "--", "cat", "/proc/self/attr/current").strip() == "nodens-container-mapped (enforce)"


def test_a_pod_of_it_reaches_other_machines(inner: Person) -> None:
    """The API server is one; it answers plain HTTP with an error."""
    said = inner.kubectl("exec", "guest", "--", "sh", "-c", f"wget -T 20 -O - http://{API}:6443/ 2>&1 || true")
    assert "400 Bad Request" in said, said


def test_it_ends_with_the_pod(inner: Person) -> None:
    inner.kubectl("delete", "pod", "guest", "--ignore-not-found", "--timeout=120s", timeout=150)
    inner.kubectl("delete", "pod", INNER, "--timeout=120s", timeout=150)
    inner.until(lambda: "nodens-holder" not in inner.on_node("ps -eo comm="), "the end of the node's processes")


def security(**context: Any) -> Change:
    return lambda spec: spec["containers"][0]["securityContext"].update(context)


# What is missing, and the words with which the node refuses to start.
MISSING: dict[str, tuple[Change, str]] = {
    "proc": (security(procMount="Default"), "securityContext.procMount: Unmasked"),
    "seccomp": (security(seccompProfile={"type": "RuntimeDefault"}), "in a pod seccompProfile.type: Unconfined"),
    "capability": (security(capabilities={"drop": ["ALL"], "add": ["SETUID", "SETGID"]}),
                   "securityContext.capabilities.add: [SETFCAP]"),
    "root": (security(runAsUser=1000), "in a pod runAsUser: 0"),
    "device": (lambda spec: spec["containers"][0]["resources"]["limits"].pop(TUN), "the container has no usable /dev/net/tun"),
    "cgroup": (lambda spec: spec.pop("runtimeClassName"), "in a pod a runtime handler of nodens-cri with writableCgroups"),
    "volume": (lambda spec: spec["containers"][0]["volumeMounts"].pop(0), "in a pod an emptyDir"),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_the_pod_lacks_is_refused_with_its_field(owner: Person, name: str) -> None:
    change, words = MISSING[name]
    create(owner, without(owner, name, change))
    owner.phase(name, "Failed")
    assert words in owner.log(name), owner.log(name)
    owner.kubectl("delete", "pod", name, "--timeout=120s", timeout=150)
