# SPDX-License-Identifier: Apache-2.0
"""Typical workloads: deployments, jobs, volumes, probes, hooks, restarts, logs, limits; with and without a user namespace."""
import json
from typing import Any

import pytest
from nodenstest.people import BUSYBOX, FOREVER, Person, container, pod_spec

SHOW_USERS = "cat /proc/self/uid_map"


def mapped(text: str) -> bool:
    """Whether a uid_map is a pod's own."""
    words = text.split()
    return words[0] == "0" and words[1] != "0" and words[2] == "65536"


def test_a_deployment_comes_up_is_scaled_and_rolls_over(person: Person, host_users: bool) -> None:
    labels = {"app": "web"}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels}, "spec": pod_spec(container(FOREVER), hostUsers=host_users)}}
    person.apply("Deployment", "web", "apps/v1", spec=spec)
    person.kubectl("rollout", "status", "deployment/web", "--timeout=300s", timeout=330)
    person.kubectl("scale", "deployment/web", "--replicas=4")
    person.kubectl("rollout", "status", "deployment/web", "--timeout=300s", timeout=330)
    person.kubectl("set", "env", "deployment/web", "CHANGED=1")
    person.kubectl("rollout", "status", "deployment/web", "--timeout=300s", timeout=330)
    assert person.get("deployment", "web")["status"]["readyReplicas"] == 4


def test_a_job_runs_to_its_end_and_keeps_its_log(person: Person, host_users: bool) -> None:
    spec = {"completions": 3, "parallelism": 2,
            "template": {"spec": pod_spec(container(f"{SHOW_USERS}; echo done"), restartPolicy="Never", hostUsers=host_users)}}
    person.apply("Job", "work", "batch/v1", spec=spec)
    person.kubectl("wait", "--for=condition=complete", "job/work", "--timeout=300s", timeout=330)
    log = person.kubectl("logs", "job/work")
    assert log.endswith("done\n") and mapped(log) != host_users


@pytest.mark.gate
def test_init_containers_run_before_sidecars_beside(person: Person, host_users: bool) -> None:
    volume: dict[str, Any] = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    init = [container("echo first >/v/order", "first", **volume),
            container("trap 'exit 0' TERM; echo sidecar >>/v/order; while :; do sleep 0.2; done", "beside",
                                                                           restartPolicy="Always", **volume)]
    person.pod("ordered", container("sleep 1; cat /v/order", **volume), initContainers=init, volumes=[{"name": "v", "emptyDir": {}}],
               restartPolicy="Never", hostUsers=host_users)
    person.phase("ordered", "Succeeded")
    assert person.log("ordered", "-c", "main").split() == ["first", "sidecar"]


@pytest.mark.gate
def test_volumes_of_every_kind_have_their_content_and_owner(person: Person, host_users: bool) -> None:
    person.kubectl("create", "configmap", "settings", "--from-literal=key=from-config")
    person.kubectl("create", "secret", "generic", "hidden", "--from-literal=key=from-secret")
    person.on_node("mkdir -p /var/lib/story && echo from-host >/var/lib/story/key && chmod 755 /var/lib/story")
    volumes = [{"name": "config", "configMap": {"name": "settings"}}, {"name": "secret", "secret": {"secretName": "hidden"}},
               {"name": "empty", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}},
               {"name": "host", "hostPath": {"path": "/var/lib/story"}},
               {"name": "projected", "projected": {"sources": [{"configMap": {"name": "settings"}}, {"downwardAPI": {"items": [
                   {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}}]
    mounts = [{"name": one["name"], "mountPath": f"/v/{one['name']}"} for one in volumes]
    script = ("cat /v/config/key /v/secret/key /v/host/key /v/projected/key /v/projected/name; echo; stat -L -c '%n %u' /v/config/key "
              "/v/secret/key /v/host/key; "
              "for v in empty memory host; do echo x >/v/$v/made && stat -c '%n %u' /v/$v/made; done")
    person.pod("volumes", container(script, volumeMounts=mounts), volumes=volumes, restartPolicy="Never", hostUsers=host_users)
    person.phase("volumes", "Succeeded")
    first, *owners = person.log("volumes").splitlines()
    assert first.startswith("from-configfrom-secretfrom-host") or "from-configfrom-secret" in person.log("volumes")
    assert [line.split()[1] for line in owners if line.startswith("/v/")] == ["0"] * 6
    assert person.on_node("stat -c %u /var/lib/story/made").strip() == "0"


def test_a_group_of_volumes_is_the_volumes_group(person: Person, host_users: bool) -> None:
    person.pod("group", container("id -G; stat -c %g /v; touch /v/made; stat -c %g /v/made",
                                  volumeMounts=[{"name": "v", "mountPath": "/v"}]),
               volumes=[{"name": "v", "emptyDir": {}}], securityContext={"fsGroup": 2345, "runAsUser": 1000}, restartPolicy="Never",
               hostUsers=host_users)
    person.phase("group", "Succeeded")
    groups, *owners = person.log("group").splitlines()
    assert "2345" in groups.split() and owners == ["2345", "2345"]


@pytest.mark.gate
def test_a_pod_on_the_hosts_network_has_users_of_its_own(person: Person) -> None:
    person.pod("host-network", container(f"{SHOW_USERS}; hostname; ip -o addr; {FOREVER}"), hostNetwork=True, hostUsers=False)
    person.ready("host-network")
    log = person.log("host-network")
    assert mapped(log) and "10.88.0." in log


def test_probes_that_fail_restart_a_container_and_take_it_out(person: Person, host_users: bool) -> None:
    probe = {"exec": {"command": ["test", "-e", "/alive"]}, "periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 1}
    ready = {"exec": {"command": ["test", "-e", "/ready"]}, "periodSeconds": 1, "timeoutSeconds": 30, "failureThreshold": 1}
    person.pod("probed", container("touch /alive /ready; sleep 6; rm /ready; sleep 4; rm /alive; sleep 100", livenessProbe=probe,
                                   readinessProbe=ready,
                                   startupProbe=probe | {"failureThreshold": 300}), hostUsers=host_users)
    person.ready("probed")
    person.until(lambda: not person.status("probed")["containerStatuses"][0]["ready"], "not being ready")
    person.until(lambda: person.status("probed")["containerStatuses"][0]["restartCount"] >= 1, "a restart", 90)


def test_hooks_run_after_the_start_and_before_the_end(person: Person, host_users: bool) -> None:
    person.on_node("rm -rf /var/lib/story-hooks && mkdir -p /var/lib/story-hooks && chmod 777 /var/lib/story-hooks")
    lifecycle = {"postStart": {"exec": {"command": ["touch", "/v/started"]}},
                 "preStop": {"exec": {"command": ["sh", "-c", "echo bye >/v/stopped"]}}}
    person.pod("hooked", container(FOREVER, lifecycle=lifecycle, volumeMounts=[{"name": "v", "mountPath": "/v"}]),
               volumes=[{"name": "v", "hostPath": {"path": "/var/lib/story-hooks"}}], terminationGracePeriodSeconds=5, hostUsers=host_users)
    person.ready("hooked")
    person.kubectl("delete", "pod", "hooked", "--timeout=300s", timeout=330)
    assert person.on_node("ls /var/lib/story-hooks; cat /var/lib/story-hooks/stopped").split() == ["started", "stopped", "bye"]


@pytest.mark.gate
def test_a_failed_container_is_restarted_and_its_exit_is_reported(person: Person, host_users: bool) -> None:
    person.pod("failing", container("echo attempt; echo last words >/dev/termination-log; exit 3"), hostUsers=host_users)
    found = person.until(lambda: [one for one in person.status("failing").get("containerStatuses", []) if one["restartCount"] >= 2],
                         "two restarts", 90)
    ended = found[0]["lastState"]["terminated"]
    assert ended["exitCode"] == 3 and ended["reason"] == "Error" and ended["message"].strip() == "last words"
    # The kubelet keeps one dead container: until the next status is out, the container that the API
    # server calls the previous may just have been removed.
    person.until(lambda: person.log("failing", "--previous").strip() == "attempt", "the log of the attempt before", 30)


def test_a_log_that_grows_is_rotated_and_loses_no_line(person: Person, host_users: bool) -> None:
    """The kubelet rotates at 64 KiB, looking every three seconds."""
    person.pod("talking",
               container("i=0; while [ $i -lt 6000 ]; do echo line $i of a log that is long enough to be rotated; i=$((i+1)); [ $((i % "
                         "100)) = 0 ] && sleep 0.2; done; "
                                    + FOREVER), hostUsers=host_users)
    person.ready("talking")
    uid = person.get("pod", "talking")["metadata"]["uid"]
    directory = f"/var/log/pods/{person.namespace}_talking_{uid}/main"
    person.until(lambda: int(person.on_node(f"ls {directory} | wc -l")) >= 3, "a third file", 90)
    person.until(lambda: "line 5999 " in person.on_node(f"cat {directory}/0.log {directory}/0.log.2*[0-9] 2>/dev/null || true"),
                 "the last line", 60)

    def lines() -> list[int]:
        text = person.on_node(f"cd {directory}; for f in *; do case $f in *.gz) zcat $f;; *) cat $f;; esac; done")
        return sorted(int(line.split("line ")[1].split()[0]) for line in text.splitlines() if "line " in line)

    # The kubelet may be at work on the files: what is there in the end counts.
    person.until(lambda: (found := lines()) == list(range(found[0], 6000)), "a log without lost or doubled lines", 20)
    assert len(lines()) > 1000, "more of the log is gone than the kubelet's settings say"


@pytest.mark.gate
def test_containers_that_want_too_much_memory_are_oom_killed_and_said_so(person: Person, request: pytest.FixtureRequest) -> None:
    wanted = request.config.getoption("--ooms")
    limits: dict[str, Any] = {"resources": {"limits": {"memory": "20Mi"}, "requests": {"memory": "1Mi"}}}
    names = [f"oom-{number}" for number in range((wanted + 9) // 10)]
    for index, name in enumerate(names):
        person.pod(name, *(container("dd if=/dev/zero of=/dev/null bs=60M count=1", f"c{number}", **limits) for number in range(10)),
                   restartPolicy="Never", hostUsers=index % 2 == 0)
    verdicts = []
    for name in names:
        person.phase(name, "Failed", 180)
        verdicts += [one["state"]["terminated"]["reason"] for one in person.status(name)["containerStatuses"]]
    assert verdicts.count("OOMKilled") == len(verdicts) >= wanted, {reason: verdicts.count(reason) for reason in set(verdicts)}


def test_a_pod_that_fills_the_disk_is_evicted(person: Person, host_users: bool) -> None:
    person.pod("hungry", container(f"dd if=/dev/zero of=/file bs=1M count=30; {FOREVER}",
                                   resources={"limits": {"ephemeral-storage": "5Mi"}}), hostUsers=host_users)
    found = person.phase("hungry", "Failed", 150)
    assert found["reason"] == "Evicted", found


def test_a_running_pod_is_resized(person: Person, host_users: bool) -> None:
    resources = {"requests": {"cpu": "100m", "memory": "32Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}}
    person.pod("resized", container(FOREVER, resources=resources), hostUsers=host_users)
    person.ready("resized")
    patch = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "150m", "memory": "48Mi"},
                                                                    "limits": {"cpu": "300m", "memory": "96Mi"}}}]}}
    person.kubectl("patch", "pod", "resized", "--subresource=resize", "-p", json.dumps(patch))
    person.until(
        lambda: person.status("resized")["containerStatuses"][0].get("resources", {}).get("limits") == {"cpu": "300m", "memory": "96Mi"},
        "the new limits",
    )
    uid = person.get("pod", "resized")["metadata"]["uid"]
    limits = person.on_node(f"find /sys/fs/cgroup -path '*{uid.replace('-', '[-_]')}*' -name memory.max -exec cat {{}} +").split()
    assert str(96 << 20) in limits and person.status("resized")["containerStatuses"][0]["restartCount"] == 0


@pytest.mark.gate
def test_an_image_volume_is_mounted(person: Person, host_users: bool) -> None:
    person.pod("image-volume", container("ls /v/bin/busybox && stat -c %u /v/bin", volumeMounts=[{"name": "v", "mountPath": "/v"}]),
               volumes=[{"name": "v", "image": {"reference": BUSYBOX, "pullPolicy": "IfNotPresent"}}], restartPolicy="Never",
               hostUsers=host_users)
    person.phase("image-volume", "Succeeded")
    assert person.log("image-volume").split() == ["/v/bin/busybox", "0"]
