# SPDX-License-Identifier: Apache-2.0
"""Stock kubelets of older minors with nodens-cri: common uses of a pod in a user namespace.

The control plane is the current one; docs/kubelet.md lists the differences. Each kubelet has its
own cluster: `tools/dev test versions`.
"""
import json
import os
import re
import uuid
from collections.abc import Iterator

import pytest
from nodensdev import cluster
from nodensdev.cluster.options import OLD_KUBELETS
from nodensdev.project import TOP
from nodenstest.people import FOREVER, Person, container
from nodenstest.scenario import namespace_of, running_cluster

pytestmark = pytest.mark.versions


@pytest.fixture(scope="module", params=list(OLD_KUBELETS))
def older(request: pytest.FixtureRequest) -> Iterator[tuple[str, cluster.Cluster]]:
    wanted = request.config.getoption("--kubelets")
    if wanted and request.param not in wanted.split(","):
        pytest.skip(f"not among --kubelets {wanted}")
    name = f"kubelet-{request.param.replace('.', '-')}-{os.getpid()}"
    options = cluster.Options(name=name, runtime="nodens", kubelet=request.param, kubelet_gates=("PodAndContainerStatsFromCRI=true",))
    with running_cluster(None, options, TOP / "build/stories" / f"kubelet-{request.param}") as made:
        yield request.param, made


@pytest.fixture
def user(older: tuple[str, cluster.Cluster]) -> Iterator[Person]:
    one = Person(older[1], f"story-{uuid.uuid4().hex[:8]}")
    with namespace_of(one, "pods"):
        yield one


@pytest.mark.gate
def test_it_is_the_older_kubelet(older: tuple[str, cluster.Cluster], user: Person) -> None:
    info = user.get("node", "node1")["status"]
    assert info["nodeInfo"]["kubeletVersion"].startswith(f"v{older[0]}.") and info["nodeInfo"]["containerRuntimeVersion"].startswith(
        "nodens://"
    )
    handlers = {one.get("name", ""): one.get("features", {}) for one in info.get("runtimeHandlers", [])}
    print(f"kubelet {older[0]}: {json.dumps(handlers)}, features {json.dumps(info.get('features', {}))}")
    assert handlers[""].get("userNamespaces") is True and handlers[""].get("recursiveReadOnlyMounts") is True


@pytest.mark.gate
def test_pods_have_users_of_their_own_and_their_files(user: Person) -> None:
    script = f"cat /proc/self/uid_map; touch /v/mine; stat -c 'v %u' /v/mine; cat /c/key; {FOREVER}"
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "c", "mountPath": "/c"}]
    user.apply("ConfigMap", "words", data={"key": "configured\n"})
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "words"}}]
    maps = set()
    for name in ("one", "two"):
        user.pod(name, container(script, volumeMounts=mounts), volumes=volumes, hostUsers=False)
    for name in ("one", "two"):
        user.ready(name)
        words = user.log(name).split()
        assert words[0] == "0" and int(words[1]) >= 65536 and words[2] == "65536" and words[3:] == ["v", "0", "configured"], words
        maps.add(words[1])
    assert len(maps) == 2
    user.pod("host", container(f"cat /proc/self/uid_map; {FOREVER}"))
    user.ready("host")
    assert user.log("host").split()[1] == "0"


@pytest.mark.gate
def test_commands_logs_and_ports_reach_it(user: Person) -> None:
    user.pod("served", container("echo started; nc -lk -p 7000 -e cat"), hostUsers=False)
    user.ready("served")
    assert user.kubectl("exec", "served", "--", "sh", "-c", "echo $((6*7))").strip() == "42"
    assert user.log("served") == "started\n"
    done = user.cluster.kubectl(f"--namespace={user.namespace}", "exec", "served", "--", "sh", "-c", "exit 5")
    assert "exit code 5" in done.stderr


def test_probes_and_restarts_work(user: Person) -> None:
    alive = {"exec": {"command": ["test", "-e", "/alive"]}, "periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 2}
    user.pod("probed", container("touch /alive; sleep 8; rm /alive; " + FOREVER, livenessProbe=alive, readinessProbe=alive,
                                     startupProbe=alive | {"failureThreshold": 300}), hostUsers=False)
    user.ready("probed")
    user.until(lambda: user.status("probed")["containerStatuses"][0]["restartCount"] >= 1, "a restart by the probe", 90)


def test_its_metrics_are_reported(user: Person) -> None:
    user.pod("counted", container("while :; do :; done & " + FOREVER), hostUsers=False)
    user.ready("counted")

    def summary() -> dict[str, object] | None:
        pods = json.loads(user.node_says("stats/summary"))["pods"]
        return next((one for one in pods if one["podRef"]["name"] == "counted" and one.get("containers")
                     and one.get("memory", {}).get("workingSetBytes")), None)

    found = user.until(summary, "figures of the pod", 90)
    print(f"figures: {sorted(found)}")
    assert found["containers"][0]["name"] == "main"
    told = user.node_says("metrics/cadvisor")
    print("cAdvisor names the container:", bool(re.search(r'container="main"[^}]*pod="counted"', told)))


@pytest.mark.gate
def test_host_network_with_a_user_namespace_is_refused_or_unknown(older: tuple[str, cluster.Cluster], user: Person) -> None:
    """hostNetwork in a user namespace, behind a gate since 1.35.

    An older kubelet reports that it cannot, and does not run the pod with the host's users.
    """
    user.apply("Pod", "both", spec={"containers": [container(FOREVER)], "hostNetwork": True, "hostUsers": False, "nodeName": "node1"})

    def said() -> list[str]:
        events = user.kubectl("get", "events", "--field-selector=involvedObject.name=both", "-o", "json")
        return [one["message"] for one in json.loads(events)["items"] if one["reason"].startswith("Failed")]

    user.until(lambda: said() or user.status("both").get("phase") in ("Failed", "Running"), "the kubelet's word", 90)
    status = user.status("both")
    print(f"kubelet {older[0]}: host network with own users: {status.get('phase')} {status.get('reason', '')} {status.get('message', '')}",
          said()[-1:])
    if status.get("phase") == "Running":
        assert user.kubectl("exec", "both", "--", "cat", "/proc/self/uid_map").split()[1] != "0"
