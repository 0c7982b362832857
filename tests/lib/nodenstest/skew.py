# SPDX-License-Identifier: Apache-2.0
"""Pods under kubelets of several versions: what became of a pod, and what it left on the node."""
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodensdev import skew
from nodensdev.cluster import Cluster, switch

from .people import FOREVER, MANIFESTS, Person, container, is_ready, pod_spec

USERNS, HOST_NETWORK = "UserNamespacesSupport", "UserNamespacesHostNetworkSupport"
# Outcomes of a pod, as the tables of docs/version-skew.md show them.
NAMESPACE, HOST = "user namespace", "host's users"
REFUSED, UNSCHEDULED, INVALID = "refused by the kubelet", "not scheduled", "refused by the API server"
CONTINUES, RESTARTED = "continues", "restarted"
STOPPED = "stopped: the runtime refuses to start it again"      # with the users that the kubelet asks for
ENDED = "ended by the kubelet"
NOTHING_LEFT = "nothing left"
ATTEMPTS = 2        # so often the kubelet must have refused a pod before it counts

FIRST_IDS, ALL_IDS = 65536, 4294967295
# Paths on the node, of which a pod adds some. Files of images are left out, and crun's cache of seccomp filters, which pods share.
TRACES = r"""
find /var/lib/kubelet/pods /var/log/pods /var/log/containers /var/lib/cni -mindepth 1 2>/dev/null
find /run/nodens -mindepth 1 -path /run/nodens/crun/.cache -prune -o -print 2>/dev/null
find /var/lib/nodens -mindepth 1 -path /var/lib/nodens/images -prune -o -print 2>/dev/null
find /sys/fs/cgroup/kubepods* -mindepth 1 -type d
awk '{ print "mount " $5 }' /proc/self/mountinfo
for one in /proc/[0-9]*; do
        awk -v least=65536 '/^Uid:/ && $2 >= least { print "process of user " $2 }' "$one/status" 2>/dev/null
done
ip -o link | awk '/ master cni0 /{ print "link " $2 }'
"""


@dataclass(frozen=True)
class Kubelet:
    """A version and the feature gates that differ from its defaults."""

    version: str
    gates: Mapping[str, bool] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return " ".join([self.release(), *(f"{name}={str(value).lower()}" for name, value in self.gates.items())])

    def release(self) -> str:
        return switch.reported_version(self.version).removeprefix("v")

    def start(self, one: Cluster) -> None:
        switch.kubelet(one, self.version, self.gates)


@dataclass(frozen=True)
class Outcome:
    """What became of a pod; `text` is the reason that a user reads."""

    word: str
    text: str = ""


@dataclass
class Journal:
    """The cells that tests have measured, in their order, and the node on which they did."""

    cells: list[skew.Cell] = field(default_factory=list)
    node: dict[str, str] = field(default_factory=dict)

    def write(self, table: str, row: str, column: str, found: Outcome | str, expected: str) -> None:
        """Records one cell, which must be as expected."""
        one = found if isinstance(found, Outcome) else Outcome(found)
        assert one.word == expected, f"{table}, {row}, {column}: {one.word}, not {expected}: {one.text}"
        self.cells.append(skew.Cell(table, row, column, one.word, one.text))


def new_person(one: Cluster, **labels: str) -> Person:
    person = Person(one, f"skew-{uuid.uuid4().hex[:8]}")
    metadata = {"name": person.namespace, "labels": labels}
    done = one.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
    assert done.returncode == 0, done.stderr
    person.until(lambda: one.kubectl(f"--namespace={person.namespace}", "get", "serviceaccount", "default").returncode == 0,
                 "the service account of the namespace")
    person.apply("ConfigMap", "words", data={"key": "configured\n"})
    return person


def spec_of(**more: Any) -> dict[str, Any]:
    """A pod with volumes, which leave something behind more easily than one without."""
    mounts = [{"name": "empty", "mountPath": "/empty"}, {"name": "words", "mountPath": "/words"}]
    script = f"touch /empty/mine && cat /proc/self/uid_map /words/key && {FOREVER}"
    volumes = [{"name": "empty", "emptyDir": {}}, {"name": "words", "configMap": {"name": "words"}}]
    return pod_spec(container(script, volumeMounts=mounts, **more.pop("container", {})), volumes=volumes, **more)


def restricted_root() -> dict[str, Any]:
    """A pod that runs as root and meets the restricted standard only because of its user namespace."""
    limits = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
              "runAsUser": 0}
    return spec_of(hostUsers=False, container={"securityContext": limits})


def create(person: Person, name: str, spec: dict[str, Any]) -> Outcome | None:
    """Creates a pod; the outcome, if the API server refuses it."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    done = person.cluster.kubectl(f"--namespace={person.namespace}", "create", "-f", "-", stdin=json.dumps(pod))
    return None if done.returncode == 0 else Outcome(INVALID, shorten(done.stderr))


def users_of(uid_map: str) -> str:
    """Whose users a process has, by its /proc/self/uid_map."""
    inside, outside, count = (int(word) for word in uid_map.split()[:3])
    if (inside, outside, count) == (0, 0, ALL_IDS):
        return HOST
    assert inside == 0 and outside >= FIRST_IDS and count == FIRST_IDS, uid_map
    return NAMESPACE


def users(person: Person, name: str) -> str:
    """By a command in the pod; a kubelet that was just started may not know the pod yet."""
    def found() -> str:
        done = person.cluster.kubectl(f"--namespace={person.namespace}", "exec", name, "--", "cat", "/proc/self/uid_map")
        return done.stdout if done.returncode == 0 else ""

    return users_of(person.until(found, f"the answer of a command in the pod {name}", 60))


def outcome(person: Person, name: str) -> Outcome:
    """Waits until a pod runs, or is refused for good."""
    def found() -> Outcome | None:
        if is_ready(person.status(name)):
            return Outcome(users(person, name))
        return refusal(person, name)

    return person.until(found, f"the outcome of the pod {name}", 120)


def refusal(person: Person, name: str) -> Outcome | None:
    words = {"FailedCreatePodSandBox": REFUSED, "Failed": REFUSED, "FailedScheduling": UNSCHEDULED}
    events = json.loads(person.kubectl("get", "events", f"--field-selector=involvedObject.name={name}", "-o", "json"))["items"]
    bad = [item for item in events if item["reason"] in words]
    status = person.status(name)
    if status.get("phase") == "Failed":
        return Outcome(REFUSED, shorten(status.get("message", "")))
    if not bad or status["phase"] != "Pending":
        return None
    word = words[bad[-1]["reason"]]
    count = sum(item.get("count") or 1 for item in bad)
    return Outcome(word, shorten(bad[-1]["message"])) if word == UNSCHEDULED or count >= ATTEMPTS else None


def shorten(text: str) -> str:
    """An error without what differs from run to run."""
    text = re.sub(r"skew-[0-9a-f]{8}", "NAMESPACE", text.strip())
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}", "ID", text)
    return re.sub(r"^Error from server \(\w+\): error when creating \"STDIN\": ", "", text)


def identity(person: Person, name: str) -> tuple[str, int]:
    """What changes when a container is started again."""
    status = person.status(name)["containerStatuses"][0]
    return status["containerID"], status["restartCount"]


def since(person: Person, name: str, before: tuple[str, int], expected: str) -> Outcome:
    """What became of a pod that ran before: whether its container still runs, and with which users.

    The kubelet must have seen it meanwhile: `seen()`. If another outcome than an unchanged pod is expected, this waits for it.
    """
    changed = not expected.startswith(CONTINUES)

    def found() -> Outcome | None:
        status = person.status(name)
        if status["phase"] == "Failed":
            return Outcome(ENDED, shorten(status.get("message", "")))
        now = identity(person, name)
        if is_ready(status) and not (changed and now == before):
            return Outcome(f"{CONTINUES if now == before else RESTARTED}, {users(person, name)}")
        return stopped(person, name)

    return person.until(found, f"the pod {name} after the switch", 120)


def stopped(person: Person, name: str) -> Outcome | None:
    """A container that the runtime has refused to start again."""
    chosen = f"--field-selector=involvedObject.name={name},reason=Failed"
    events = json.loads(person.kubectl("get", "events", chosen, "-o", "json"))["items"]
    count = sum(item.get("count") or 1 for item in events)
    return Outcome(STOPPED, shorten(events[-1]["message"])) if count >= ATTEMPTS else None


def seen(person: Person, kubelet: Kubelet) -> None:
    """Returns when a kubelet that was just started has run a new pod, and so has looked at those that were there."""
    name = f"probe-{uuid.uuid4().hex[:8]}"
    create(person, name, spec_of())
    assert outcome(person, name).word == HOST, kubelet


def traces(person: Person) -> set[str]:
    return set(person.on_node(TRACES).splitlines())


def delete(person: Person, before: set[str], *names: str) -> Outcome:
    """Deletes pods and waits until the node is as before; the kubelet collects garbage once a minute."""
    person.kubectl("delete", "pods", *(names or ["--all"]), "--timeout=300s", timeout=330)
    left: set[str] = set()

    def is_clean() -> bool:
        nonlocal left
        left = traces(person) - before
        return not left

    try:
        person.until(is_clean, "the end of all traces", 120)
    except AssertionError:
        return Outcome("traces left", "; ".join(sorted(left)[:20]))
    return Outcome(NOTHING_LEFT)


def end(person: Person) -> None:
    """Removes what a test may have left, also when it failed."""
    person.kubectl("delete", "deployments,pods", "--all", "--cascade=foreground", "--timeout=300s", timeout=330)
    person.kubectl("delete", "namespace", person.namespace, "--wait=false")


def static_pod(person: Person, name: str, spec: dict[str, Any]) -> Outcome:
    """Runs a static pod, whose fields no API server drops; it is removed again."""
    person.static_pod(name, spec)
    system = Person(person.cluster, "kube-system")
    try:
        person.until(lambda: person.mirror(name), "the mirror of the static pod")
        return outcome(system, f"{name}-node1")
    finally:
        person.on_node(f"rm -f {MANIFESTS}/{name}.json")
        person.until(lambda: not person.mirror(name), "the end of the static pod", 90)
