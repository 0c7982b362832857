# SPDX-License-Identifier: Apache-2.0
"""Images with owners or groups that a pod's user namespace does not have: creation names the file, before the container starts."""
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Subject
from nodenstest import images as make
from nodenstest import pods as pods_module
from nodenstest import registry_server, validation
from nodenstest.pods import Pods, refused

Published = tuple[registry_server.Site | None, validation.Names]
Publish = Callable[..., str]
FOUR_BLOCKS = 4 * 65536


@pytest.fixture
def pods(plain_pods: Pods, subject: Subject) -> Pods:
    if subject.name != "nodens-cri" or subject.runtime is None:
        pytest.skip("the setting and the record are nodens-cri's")
    plain_pods.users = True
    return plain_pods


@pytest.fixture
def publish(published: Published, subject: Subject) -> Iterator[Publish]:
    """Pushes the shell's image with more layers, each given by its entries."""
    site, names = published
    assert site
    pushed: list[str] = []

    def push(name: str, *layers: list[tuple[Any, bytes]]) -> str:
        image = validation.stored(site, validation.SHELL)
        for entries in layers:
            image.layer(make.tar(*entries))
        registry_server.Site.publish(site, image, f"validation/{name}:latest")
        pushed.append(names.tag(name))
        return pushed[-1]
    yield push
    for name in pushed:
        subject.client.remove_image(name)


@pytest.fixture
def strict(pods: Pods, subject: Subject) -> Iterator[None]:
    """nodens-cri refuses such images."""
    subject.runtime.settings["refuseUnmappedOwners"] = "true"       # type: ignore[union-attr]
    subject.restart()
    yield
    del subject.runtime.settings["refuseUnmappedOwners"]            # type: ignore[union-attr]
    subject.restart()


def logged(subject: Subject) -> str:
    assert subject.runtime
    return subject.runtime.log.read_text(errors="replace")


def test_a_file_that_the_pod_cannot_own_is_logged_and_the_container_starts(pods: Pods, subject: Subject) -> None:
    before = len(logged(subject))
    one = pods.run().container(image=subject.images.tag("owners"))
    assert one.output("stat -c %u:%g /owners/200000") == "65534:65534" and one.execute("touch /owners/200000").code != 0
    new = logged(subject)[before:]
    assert "owners/200000" in new and "200000:200000" in new and "hostUsers: true" in new


def test_a_file_that_the_pod_cannot_own_is_refused_with_its_path_and_owner(pods: Pods, subject: Subject, strict: None) -> None:
    pod = pods.run()
    error = refused(lambda: pod.container(image=subject.images.tag("owners")))
    for words in ('"owners/200000"', "200000:200000", "0 to 65535", "below 65536", "hostUsers: true"):
        assert words in error.details(), error.details()
    assert pod.container(name="other").output("echo the pod is well") == "the pod is well"


def test_pods_that_have_the_owner_run_the_image(pods: Pods, subject: Subject, strict: None) -> None:
    image = subject.images.tag("owners")
    assert pods.run(userns=False).container(image=image).output("stat -c %u:%g /owners/200000") == "200000:200000"
    large = pods.user_namespace(True, host_id=45776 * 65536, length=FOUR_BLOCKS)
    one = pods.run(name="large", namespaces={"userns_options": large}).container(image=image)
    assert one.output("stat -c %u:%g /owners/200000") == "200000:200000"


@pytest.mark.parametrize(("name", "entry", "owner"), [
    ("group", make.entry("opt/group", b"x", uid=0, gid=70000), "0:70000"),
    ("directory", make.directory("opt/directory", uid=70001, gid=5), "70001:5"),
    ("link", make.symlink("opt/link", "/nowhere", uid=70002, gid=70002), "70002:70002"),
    ("last", make.entry("opt/last", b"x", uid=4294967294, gid=0), "4294967294:0")])
def test_groups_directories_and_links_count_as_well(pods: Pods, publish: Publish, strict: None, name: str, entry: Any, owner: str) -> None:
    image = publish(f"owner-{name}", [make.directory("opt"), entry])
    pod = pods.run()
    error = refused(lambda: pod.container(image=image))
    assert f'"opt/{name}" belongs to {owner}' in error.details(), error.details()


def test_a_file_that_a_layer_above_gives_to_another_owner_is_no_obstacle(pods: Pods, publish: Publish, strict: None) -> None:
    image = publish("given", [make.directory("opt"), make.entry("opt/a", b"x", uid=70000), make.entry("opt/b", b"x", uid=70001)],
                    [make.entry("opt/a", b"x", uid=7), make.entry("opt/.wh.b", b"")])
    assert pods.run().container(image=image).output("stat -c %u /opt/a; ls /opt").split() == ["7", "a"]


def test_a_path_of_the_image_does_not_lead_out_of_it(pods: Pods, publish: Publish, strict: None, tmp_path: Path) -> None:
    """The path of the record goes through a link, which a layer above has changed."""
    image = publish("astray", [make.directory("opt"), make.entry("opt/a", b"x", uid=70000)], [make.symlink("opt", "/proc/1/root/etc")])
    assert pods.run().container(image=image).output("readlink /opt") == "/proc/1/root/etc"


def test_layers_of_an_older_version_say_nothing(pods: Pods, subject: Subject, publish: Publish, strict: None) -> None:
    image = publish("older", [make.directory("opt"), make.entry("opt/a", b"x", uid=70000)])
    identity = subject.client.pull(image)
    runtime = subject.runtime
    assert runtime
    runtime.stop(signal.SIGKILL)
    store = runtime.directory / "images"
    changed = [store / "images" / f"{identity.removeprefix('sha256:')}.json"]
    record = json.loads(changed[0].read_text())
    changed += [store / "layers" / layer["chain"] / "layer.json" for layer in record["layers"]]
    kept = {path: path.read_text() for path in changed}
    for path, text in kept.items():
        without = json.loads(text)
        assert without.pop("owner", None) is not None, path
        path.write_text(json.dumps(without))
    runtime.start().close()
    pods_module.eventually(subject.answers, 30, "an answer after the restart")
    assert subject.client.pull(image) == identity
    assert pods.run().container(image=image).output("stat -c %u /opt/a") == "65534"
    for path in changed[1:]:
        path.write_text(kept[path])
    assert subject.client.pull(image) == identity
    pod = pods.run(name="again")
    assert "opt/a" in refused(lambda: pod.container(image=image)).details()
