# SPDX-License-Identifier: Apache-2.0
"""Runtime handlers of nodens-cri, which a RuntimeClass names.

Each has its own engine, and features that a self-test found.
"""
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Subject
from nodensdev.cri_client import CriClient
from nodenstest import pods as pods_module
from nodenstest import runtimes
from nodenstest.pods import SLEEP, TIMEOUT, Pod, Pods, refused

RUNC = shutil.which("runc")


@dataclass
class Scene:
    pods: Pods
    runtime: runtimes.NodensCri
    calls: Path

    def run(self, handler: str, userns: bool = False) -> Pod:
        """As Pods.run(), with a handler."""
        made = self.pods.sandbox_config("pod", userns, {}, {}, {}, {})
        request = self.pods.pb.RunPodSandboxRequest(config=made, runtime_handler=handler)
        pod = Pod(self.pods, self.pods.runtime.RunPodSandbox(request, timeout=TIMEOUT).pod_sandbox_id, made)
        self.pods.made.append(pod)
        return pod

    def handlers(self) -> dict[str, Any]:
        answer = self.pods.runtime.Status(self.pods.pb.StatusRequest(), timeout=TIMEOUT)
        return {handler.name: handler.features for handler in answer.runtime_handlers}


@pytest.fixture(scope="module")
def daemon(subject: Subject, messages: runtimes.Messages) -> Iterator[tuple[runtimes.NodensCri, Path]]:
    if subject.name != "nodens-cri" or subject.runtime is None:
        pytest.skip("handlers are configured for nodens-cri")
    with runtimes.scratch() as directory:
        crun = "/usr/bin/crun" if runtimes.has_controllers() else str(runtimes.WITHOUT_CONTROLLERS)
        calls = directory / "calls"
        handlers = [{"name": "noted", "program": script(directory / "noted", f'echo "$@" >>{calls}; exec {crun} "$@"')},
                    {"name": "broken", "program": script(directory / "broken", "echo this engine is broken >&2; exit 1")}]
        if RUNC:
            handlers.append({"name": "runc", "engine": "runc", "program": RUNC})
        runtime = runtimes.NodensCri(directory / "r", messages, settings={"runtimeHandlers": json.dumps(handlers)})
        runtime.certificates = subject.runtime.certificates
        runtime.start().close()
        yield runtime, calls
        runtime.stop()


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def scene(daemon: tuple[runtimes.NodensCri, Path], subject: Subject, messages: runtimes.Messages) -> Iterator[Scene]:
    runtime, calls = daemon
    client = CriClient(str(runtime.socket), messages)
    with runtimes.scratch() as directory:
        made = Pods(client, subject.images.shell, directory, "cgroupfs")
        try:
            yield Scene(made, runtime, calls)
        finally:
            made.clean()
            client.close()


def test_each_handler_reports_its_features(scene: Scene) -> None:
    found = scene.handlers()
    assert {"", "crun", "noted", "broken"} <= found.keys()
    assert found["noted"].user_namespaces and found["noted"].recursive_read_only_mounts and found[""].user_namespaces
    assert not found["broken"].user_namespaces and not found["broken"].recursive_read_only_mounts
    told = json.loads(scene.pods.runtime.Status(scene.pods.pb.StatusRequest(verbose=True), timeout=TIMEOUT).info["info"])
    assert "this engine is broken" in told["runtimeHandlers"]["broken"]["userNamespaces"]


@pytest.mark.parametrize("userns", [False, True])
def test_a_pods_containers_run_by_its_handlers_engine(scene: Scene, userns: bool) -> None:
    pod = scene.run("noted", userns)
    scene.calls.write_text("")
    one = pod.container(SLEEP)
    assert one.output("echo hello") == "hello"
    other = scene.run("", userns).container(SLEEP)
    one.stop()
    one.remove()
    calls = scene.calls.read_text()
    assert all(f" {verb} " in calls for verb in ("create", "start", "exec", "delete")), calls
    assert one.id in calls and other.id not in calls
    assert pod.status().runtime_handler == "noted"


def test_an_unknown_handler_is_refused(scene: Scene) -> None:
    assert "kata" in refused(lambda: scene.run("kata")).details()


def test_a_pod_with_users_of_its_own_is_refused_where_the_handler_cannot(scene: Scene) -> None:
    assert "this engine is broken" in refused(lambda: scene.run("broken", userns=True)).details()


def test_a_restart_finds_the_engine_again(scene: Scene) -> None:
    one = scene.run("noted").container(SLEEP)
    scene.runtime.stop()
    scene.calls.write_text("")
    scene.runtime.start().close()
    pods_module.eventually(lambda: one.output("echo back") == "back", 30, "an answer after the restart")
    assert one.id in scene.calls.read_text()


@pytest.mark.skipif(not RUNC, reason="runc is not installed here")
def test_runc_runs_containers(scene: Scene) -> None:
    found = scene.handlers()["runc"]
    one = scene.run("runc").container(SLEEP)
    assert one.output("echo hello") == "hello"
    assert one.execute("exit 7").code == 7
    one.stop()
    assert one.status().exit_code == 137
    one.remove()
    if not found.user_namespaces:
        refused(lambda: scene.run("runc", userns=True))
    else:
        assert scene.run("runc", userns=True).container(SLEEP).output("cut -c1-20 /proc/self/uid_map").split()[0] == "0"
