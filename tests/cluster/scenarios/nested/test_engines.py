# SPDX-License-Identifier: Apache-2.0
"""Engines in pods with writable cgroups: the recipes of docs/nested-engines.md, on a node with a stock kubelet and nodens-cri.

Each runs a container or a service, which the node sees as an unprivileged user, and sets a limit inside that the kernel enforces. The pods
are those of docs/examples/nested. `tools/dev test nested` runs it.
"""
import json
import os
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from nodensdev import cluster
from nodensdev.images import own
from nodensdev.project import BUILD, TOP
from nodenstest.people import Person
from nodenstest.scenario import namespace_of, running_cluster

pytestmark = pytest.mark.nested
EXAMPLES = TOP / "docs/examples/nested"
HANDLER = "runtimeHandlers:\n- name: nested\n  writableCgroups: true\n"
INNER = f"{own.NAME}/inner:1"       # the image in /archive.tar
EATER = "dd if=/dev/zero of=/dev/null bs=64M count=1"       # allocates a buffer of 64 MiB
IDS = 65536
KILLED = 137


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest) -> Iterator[cluster.Cluster]:
    options = cluster.Options(name=f"nested-{os.getpid()}", runtime="nodens", kernel="uml-nft", memory="5G", cgroup_driver="systemd",
                              images=("e2e", "engines", "buildkit"), timeout=900)
    with running_cluster(request.config.getoption("--cluster"), options, BUILD / "nested") as made:
        yield made


@pytest.fixture
def person(node: cluster.Cluster) -> Iterator[Person]:
    """A user of a cluster whose administrator has prepared the runtime handler."""
    one = Person(node, f"nested-{uuid.uuid4().hex[:8]}")
    if "writableCgroups" not in one.on_node("cat /etc/nodens/cri.yaml"):
        one.on_node("cat >>/etc/nodens/cri.yaml && systemctl restart nodens-cri", stdin=HANDLER)
    one.kubectl("apply", "-f", "-", stdin=(EXAMPLES / "runtimeclass.yaml").read_text())
    with namespace_of(one, "pods"):
        yield one


class Engine:
    """A pod of the examples, with the test's image."""

    def __init__(self, person: Person, name: str, image: str = "engines") -> None:
        self.person, self.name = person, name
        text = person.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", stdin=(EXAMPLES / f"{name}.yaml").read_text())
        pod: dict[str, Any] = json.loads(text)
        pod["spec"]["containers"][0] |= {"image": f"{own.NAME}/{image}:1", "imagePullPolicy": "Never"}
        pod["spec"] |= {"terminationGracePeriodSeconds": 30}
        person.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
        person.ready(name)
        inner, self.first, count = map(int, self.run("cat /proc/self/uid_map").split())
        assert inner == 0 and count == IDS and self.first >= IDS

    def run(self, script: str) -> str:
        return self.person.kubectl("exec", self.name, "--", "sh", "-c", script)

    def result(self, script: str) -> tuple[int, str]:
        """Exit status and output of a script that may fail."""
        text = self.run(f"({script}) 2>&1; echo status=$?")
        output, _, status = text.rpartition("status=")
        return int(status), output

    def status(self, script: str) -> int:
        return int(self.run(f"{script} >/dev/null 2>&1; echo $?"))

    def on_node(self, command_line: str) -> int:
        """The user, on the node, of the one process with this command line; it is one of the pod's and has no ID of the node."""
        look = f"for p in $(pgrep -fx '{command_line}'); do grep ^Uid: /proc/$p/status; done"
        found = self.person.until(lambda: self.person.on_node(look).split(), f"a process '{command_line}'")
        assert len(found) == 5 and len(set(found[1:])) == 1, found
        user = int(found[1])
        assert self.first <= user < self.first + IDS, (user, self.first)
        print(f"{self.name}: '{command_line}' is user {user} on the node")
        return user

    def end(self) -> None:
        """The engine survived its containers; with the pod, all of its processes and cgroups go."""
        status = self.person.status(self.name)["containerStatuses"][0]
        assert status["ready"] and status["restartCount"] == 0, status
        scope = status["containerID"].partition("://")[2]
        self.person.kubectl("delete", "pod", self.name, "--timeout=120s", timeout=150)
        self.person.until(lambda: not self.person.on_node(f"find /sys/fs/cgroup -name '*{scope}*'").strip(), "the end of its cgroups")
        users = {int(user) for user in self.person.on_node("ps -eo uid=").split()}
        assert not any(self.first <= user < self.first + IDS for user in users), users


def admission(person: Person, name: str) -> tuple[str, str]:
    """The pod security level and the constraint for a recipe with its user namespace, as `nodens lint` says."""
    text = person.on_node("cat >/run/recipe.yaml; nodens lint /run/recipe.yaml || true", stdin=(EXAMPLES / f"{name}.yaml").read_text())
    found = re.search(r"user namespace +(\S+) +(\S+), if granted +\(as it is\)", text)
    assert found, text
    return found[1], found[2]


RULES = {"podman": ("baseline", "nested-container"), "buildah": ("baseline", "nested-container"),
         "systemd": ("baseline", "userns-root"), "docker": ("privileged", "privileged"),
         "buildkit": ("baseline", "nested-container")}


@pytest.mark.parametrize("name", RULES)
def test_a_recipe_needs_no_more_than_its_page_says(person: Person, name: str) -> None:
    assert admission(person, name) == RULES[name]


def test_podman_runs_containers_with_limits(person: Person) -> None:
    engine = Engine(person, "podman")
    engine.run("podman pull -q oci-archive:/archive.tar")
    assert engine.run(f"podman run --rm {INNER} id -u").strip() == "0"
    engine.run(f"podman run -d --name kept --memory 32m --pids-limit 20 {INNER} sleep 310201 && podman run -d --user 33 {INNER} "
               "sleep 310202")
    assert engine.on_node("sleep 310201") == engine.first
    assert engine.on_node("sleep 310202") == engine.first + 33
    assert engine.run("podman exec kept cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max").split() == [str(32 << 20), "20"]
    assert engine.status(f"podman run --name eater --memory 16m {INNER} {EATER}") == KILLED
    assert engine.run("podman inspect eater --format {{.State.OOMKilled}}").strip() == "true"
    engine.end()


def test_buildah_limits_the_steps_of_a_build(person: Person) -> None:
    engine = Engine(person, "buildah")
    engine.run("buildah from --name one oci-archive:/archive.tar && buildah run one -- sh -c 'id -u >/made' && "
               "buildah commit -q one made:1")
    engine.run(f"mkdir /tmp/a && printf 'FROM made:1\\nRUN grep -x 0 /made && {EATER}\\n' >/tmp/a/Containerfile")
    code, said = engine.result("buildah build --memory 16m -t made:2 /tmp/a")
    assert code != 0 and "killed" in said, (code, said)
    assert engine.status("buildah build --memory 256m -t made:2 /tmp/a") == 0
    engine.run("buildah run one -- sleep 310203 >/dev/null 2>&1 &")
    assert engine.on_node("/bin/sleep 310203") == engine.first
    engine.end()


def test_docker_runs_containers_with_limits_and_a_bridge(person: Person) -> None:
    engine = Engine(person, "docker")
    person.until(lambda: engine.status("docker info") == 0, "dockerd")
    engine.run("docker import /rootfs.tar inner:1 && docker run -d --name kept --memory 32m --pids-limit 20 inner:1 sleep 310204")
    assert engine.run("docker run --rm inner:1 id -u").strip() == "0"
    assert engine.on_node("sleep 310204") == engine.first
    assert engine.run("docker exec kept cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max").split() == [str(32 << 20), "20"]
    assert engine.status(f"docker run --name eater --memory 16m inner:1 {EATER}") == KILLED
    assert engine.run("docker inspect eater --format '{{.State.OOMKilled}}'").strip() == "true"
    # The API server is another machine; it answers plain HTTP with an error.
    said = engine.run("docker run --rm inner:1 sh -c 'wget -T 20 -O - http://10.88.0.1:6443/ 2>&1 || true'")
    assert "400 Bad Request" in said, said
    engine.end()


UNITS = {"eater": f"[Service]\nMemoryMax=16M\nExecStart=/usr/bin/{EATER}\n",
         "kept": "[Service]\nMemoryMax=32M\nTasksMax=20\nExecStart=/usr/bin/sleep 310205\n",
         "other": "[Service]\nUser=nobody\nExecStart=/usr/bin/sleep 310206\n"}


def test_systemd_as_pid_1_limits_its_services(person: Person) -> None:
    engine = Engine(person, "systemd", "systemd")
    person.until(lambda: engine.run("systemctl is-system-running || true").strip() in ("running", "degraded"), "the end of the boot")
    assert engine.run("systemctl is-system-running || systemctl --failed --no-legend").strip() == "running"
    for name, text in UNITS.items():
        person.kubectl("exec", "-i", engine.name, "--", "sh", "-c",
                       f"mkdir -p /run/systemd/system; cat >/run/systemd/system/{name}.service", stdin=text)
    engine.run("systemctl daemon-reload && systemctl start kept other eater")
    assert engine.on_node("/usr/bin/sleep 310205") == engine.first
    assert engine.on_node("/usr/bin/sleep 310206") == engine.first + 65534
    person.until(lambda: "oom-kill" in engine.run("systemctl show -p Result eater"), "the end of the service")
    found = engine.run("cat /sys/fs/cgroup/init:*/system.slice/kept.service/memory.max "
                       "/sys/fs/cgroup/init:*/system.slice/kept.service/pids.max").split()
    assert found == [str(32 << 20), "20"]
    engine.end()


BUILD_STEP = ("mkdir -p /tmp/{0} && cp /context/busybox /tmp/{0} && "
              "printf 'FROM scratch\\nCOPY busybox /bin/busybox\\nRUN [\"/bin/busybox\", \"sh\", \"-c\", \"/bin/busybox {1}\"]\\n' "
              ">/tmp/{0}/Dockerfile")
BUILD_COMMAND = "buildctl build --progress=plain --frontend dockerfile.v0 --local context=/tmp/{0} --local dockerfile=/tmp/{0}"


def test_buildkit_builds_images_within_a_limit(person: Person) -> None:
    engine = Engine(person, "buildkit", "buildkit")
    person.until(lambda: engine.status("buildctl debug workers") == 0, "buildkitd")
    for name, command in (("small", EATER), ("large", EATER.replace("64M", "768M")), ("slow", "sleep 310207")):
        engine.run(BUILD_STEP.format(name, command))
    code, said = engine.result(f"{BUILD_COMMAND.format('small')} --output type=oci,dest=/tmp/image.tar")
    assert code == 0 and engine.status("test -s /tmp/image.tar") == 0, said
    code, said = engine.result(BUILD_COMMAND.format("large"))
    assert code != 0 and "137" in said, said
    assert "oom_kill 1" in engine.run("cat /sys/fs/cgroup/build/memory.events")
    engine.run(f"{BUILD_COMMAND.format('slow')} >/dev/null 2>&1 &")
    assert engine.on_node("/bin/busybox sleep 310207") == engine.first
    engine.end()
