# SPDX-License-Identifier: Apache-2.0
"""Devices by the Container Device Interface, which device plugins and DRA drivers use.

The files are in /var/run/cdi, where every runtime looks.
"""
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodenstest.cdi import DIRECTORY
from nodenstest.pods import Pods, refused

KIND = "nodens.test/thing"


@pytest.fixture
def library(plain_pods: Pods) -> Iterator[Path]:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    shared = plain_pods.directory / "library"
    shared.mkdir(mode=0o755)
    (shared / "of-the-device").write_text("contents\n")
    (shared / "hook").write_text("#!/bin/sh\ncat > $0.state\n")
    (shared / "hook").chmod(0o755)
    path = DIRECTORY / "nodens-test.json"
    path.write_text(json.dumps({"cdiVersion": "0.6.0", "kind": KIND, "containerEdits": {"env": ["SHARED=yes"]}, "devices": [
        {"name": "one", "containerEdits": {
            "env": ["THING=one"], "deviceNodes": [{"path": "/dev/fuse"}],
            "mounts": [{"hostPath": str(shared), "containerPath": "/thing", "options": ["ro", "nosuid", "nodev", "bind"]}],
            "hooks": [{"hookName": "createRuntime", "path": str(shared / "hook"), "args": ["hook"]}]}},
        {"name": "absent", "containerEdits": {"deviceNodes": [{"path": "/dev/which-is-not-there"}]}}]}))
    yield shared
    path.unlink()


def devices(pods: Pods, *names: str) -> dict[str, Any]:
    return {"CDI_devices": [pods.pb.CDIDevice(name=f"{KIND}={name}") for name in names]}


@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="there is no /dev/fuse here")
def test_a_device_brings_its_node_mount_variable_and_hook(pods: Pods, library: Path) -> None:
    one = pods.run().container(**devices(pods, "one"))
    assert one.output("echo $THING $SHARED; cat /thing/of-the-device") == "one yes\ncontents"
    assert one.output("stat -c %F /dev/fuse") == "character special file"
    assert one.execute("touch /thing/x").code != 0
    assert json.loads((library / "hook.state").read_text())["id"] == one.id


def test_a_container_without_it_has_nothing_of_it(pods: Pods, library: Path) -> None:
    one = pods.run().container()
    assert one.execute("test -e /thing -o -e /dev/fuse").code != 0
    assert one.output("echo $THING$SHARED") == ""


def test_an_unknown_device_is_an_error_that_names_it(pods: Pods, library: Path) -> None:
    pod = pods.run()
    error = refused(lambda: pod.container(**devices(pods, "two")))
    assert f"{KIND}=two" in error.details()


def test_a_device_whose_node_is_missing_is_an_error(pods: Pods, library: Path) -> None:
    pod = pods.run()
    refused(lambda: pod.container(**devices(pods, "absent")))


def test_an_annotation_does_not_give_a_device(pods: Pods, library: Path, subject: Any) -> None:
    """A user who may write annotations on a pod must not be able to choose the node's devices."""
    if subject.name != "nodens-cri":
        pytest.skip("containerd takes devices from annotations")
    one = pods.run(annotations={"cdi.k8s.io/x": f"{KIND}=one"}).container(annotations={"cdi.k8s.io/x": f"{KIND}=one"})
    assert one.output("echo $THING") == ""
