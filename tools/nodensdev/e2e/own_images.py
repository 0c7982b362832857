# SPDX-License-Identifier: Apache-2.0
"""The project's own images as pods, each with the host's users and in a user namespace; they check themselves (images/own.py)."""
import json
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import images
from ..cluster import Cluster
from ..command import Failure
from ..env import machine
from .judge import Verdict
from .outcome import Outcome

PATIENCE = 300.0
NAMESPACE = "own-images"


def pod_name(image: str, host_users: bool) -> str:
    return re.sub(r"[^a-z0-9]+", "-", image.rsplit("/", 1)[1]) + ("-host" if host_users else "-userns")


def manifest(image: str, host_users: bool) -> dict[str, Any]:
    container = {"name": "check", "image": image, "imagePullPolicy": "Always"}
    spec = {"restartPolicy": "Never", "hostUsers": host_users, "automountServiceAccountToken": False, "containers": [container]}
    metadata = {"name": pod_name(image, host_users), "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def apply(cluster: Cluster, objects: Iterable[dict[str, Any]]) -> None:
    done = cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    if done.returncode != 0:
        raise Failure(f"cannot make the pods: {done.stderr.strip()}")


def service_account_is_there(cluster: Cluster) -> None:
    """Pods of a new namespace are refused until the controller has made its account."""
    deadline = time.monotonic() + 30
    while cluster.kubectl("get", "serviceaccount", "default", "--namespace", NAMESPACE).returncode != 0:
        if time.monotonic() > deadline:
            raise Failure(f"the namespace {NAMESPACE} gets no service account")
        time.sleep(0.5)


def phases(cluster: Cluster) -> dict[str, str]:
    done = cluster.kubectl("get", "pods", "--namespace", NAMESPACE, "-o", "json")
    return {item["metadata"]["name"]: item["status"].get("phase", "") for item in json.loads(done.stdout)["items"]}


def run(cluster: Cluster, directory: Path) -> Verdict:
    """Runs every image twice, at most four pods at a time, and judges by their exit codes."""
    names = sorted(images.layout("own").images)
    cases = [(image, host_users) for image in names for host_users in (True, False)]
    apply(cluster, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    service_account_is_there(cluster)
    verdict = Verdict()
    directory.mkdir(parents=True)
    for start in range(0, len(cases), 4):
        batch = cases[start:start + 4]
        machine.say("own images: " + ", ".join(pod_name(*case) for case in batch))
        apply(cluster, [manifest(*case) for case in batch])
        collect(cluster, batch, directory, verdict)
    return verdict


def collect(cluster: Cluster, batch: list[tuple[str, bool]], directory: Path, verdict: Verdict) -> None:
    started = time.monotonic()
    waiting = {pod_name(*case) for case in batch}
    while waiting and time.monotonic() - started < PATIENCE:
        found = phases(cluster)
        for name in sorted(waiting):
            if found.get(name) in ("Succeeded", "Failed"):
                waiting.remove(name)
                settle(cluster, name, found[name], time.monotonic() - started, directory, verdict)
        time.sleep(1)
    for name in waiting:
        settle(cluster, name, f"still {phases(cluster).get(name)} after {PATIENCE:.0f} s", PATIENCE, directory, verdict)


def settle(cluster: Cluster, name: str, phase: str, seconds: float, directory: Path, verdict: Verdict) -> None:
    log = cluster.kubectl("logs", name, "--namespace", NAMESPACE).stdout
    events = cluster.kubectl("describe", "pod", name, "--namespace", NAMESPACE).stdout
    (directory / f"{name}.log").write_text(f"{log}\n{events}")
    if phase == "Succeeded":
        verdict.passed.append(Outcome(name, "passed", seconds))
    else:
        verdict.failed.append(Outcome(name, "failed", seconds, f"{phase}: {log.strip() or 'no output'}"))
