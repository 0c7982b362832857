# SPDX-License-Identifier: Apache-2.0
"""OCI artifacts as image volumes: files named by their titles, as models and data are published."""
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Subject
from nodenstest import images as make
from nodenstest import registry_server
from nodenstest.pods import Pods, eventually, refused

FILES = {"README.md": b"a model\n", "weights.bin": bytes(range(256)) * 1000, "config/model.json": b"{}\n"}
TYPE = "application/vnd.example.model.v1"
Published = tuple[registry_server.Site | None, Any]


def model(**more: Any) -> make.Artifact:
    made = make.Artifact(**more)
    for title, data in FILES.items():
        made.file(title, data)
    return made


@pytest.fixture
def publish(published: Published, subject: Subject) -> Iterator[Any]:
    """Pushes an artifact to the real registry; removes it from the runtime at the end."""
    site, names = published
    if site is None:
        pytest.skip("the registry is another process's")
    pushed: list[str] = []

    def push(artifact: make.Image | make.Blob, name: str, extra: tuple[make.Image, ...] = ()) -> str:
        registry_server.Site.publish(site, artifact, f"validation/{name}:latest", extra)
        pushed.append(names.tag(name))
        return pushed[-1]
    yield push
    for name in pushed:
        subject.client.remove_image(name)


def volume(pods: Pods, image: str, **more: object) -> Any:
    return pods.pb.Mount(container_path="/mnt", image=pods.pb.ImageSpec(image=pods.pull(image), user_specified_image=image), readonly=True,
                         **more)


def status(subject: Subject, image: str) -> Any:
    answer = subject.client.images.ImageStatus(subject.client.pb.ImageStatusRequest(image=subject.client.pb.ImageSpec(image=image),
                                                                                    verbose=True), timeout=60)
    return answer if answer.HasField("image") else None


def used(subject: Subject) -> int:
    answer = subject.client.images.ImageFsInfo(subject.client.pb.ImageFsInfoRequest(), timeout=60)
    return answer.image_filesystems[0].used_bytes.value


def test_the_files_of_an_artifact_are_mounted_under_their_titles(pods: Pods, publish: Any) -> None:
    pod = pods.run()
    one = pod.container(mounts=[volume(pods, publish(model(), "model"), **pod.mappings())])
    assert one.output("cd /mnt && find . -type f | sort").split() == ["./README.md", "./config/model.json", "./weights.bin"]
    assert one.output("cat /mnt/README.md /mnt/config/model.json") == "a model\n{}"
    assert one.output("sha256sum </mnt/weights.bin").split()[0] == make.digest(FILES["weights.bin"])[7:]
    assert one.output("cd /mnt && stat -c %u:%g:%a README.md weights.bin config config/model.json").split() == [
        "0:0:444", "0:0:444", "0:0:755", "0:0:444"]


def test_a_mounted_artifact_is_read_only(pods: Pods, publish: Any) -> None:
    pod = pods.run()
    one = pod.container(mounts=[volume(pods, publish(model(), "model"), **pod.mappings())],
                        security={"capabilities": {"add_capabilities": ["SYS_ADMIN"]}})
    one.execute("mount -o remount,bind,rw /mnt; mount -o remount,rw /mnt")
    for command in ("touch /mnt/made", "echo x >>/mnt/README.md", "rm /mnt/README.md", "mv /mnt/config /mnt/other",
                    "chmod 777 /mnt/README.md", "mkdir /mnt/config/d"):
        done = one.execute(command)
        assert done.code != 0 and "Read-only" in done.stderr, f"{command}: {done}"


@pytest.mark.parametrize(("part", "shown"), [("config", "model.json"), ("README.md", "/mnt")])
def test_a_part_of_an_artifact_is_mounted(pods: Pods, publish: Any, part: str, shown: str) -> None:
    pod = pods.run()
    one = pod.container(mounts=[volume(pods, publish(model(), "model"), image_sub_path=part, **pod.mappings())])
    assert one.output("ls /mnt") == shown


def test_an_artifact_is_listed_and_has_a_status(subject: Subject, publish: Any) -> None:
    name, artifact = publish(model(), "model"), model()
    identity = subject.client.pull(name)
    found = status(subject, name)
    assert found.image.id == identity and list(found.image.repo_tags) == [name] and found.image.size > len(FILES["weights.bin"])
    assert list(found.image.repo_digests) == [f"{name.rsplit(':', 1)[0]}@{make.digest(artifact.manifest().data)}"]
    listed = subject.client.images.ListImages(subject.client.pb.ListImagesRequest(), timeout=60).images
    assert [image.id for image in listed].count(identity) == 1
    if subject.name == "nodens-cri":
        assert json.loads(found.info["info"])["artifactType"] == TYPE and identity == make.digest(artifact.manifest().data)


def test_artifacts_with_the_same_config_are_different_images(subject: Subject, publish: Any) -> None:
    """All of them have the empty config, which must not be their identity."""
    names = [publish(make.Artifact().file("a", b"%d" % number), f"same-{number}") for number in range(3)]
    assert len({subject.client.pull(name) for name in names}) == 3
    assert len({status(subject, name).image.id for name in names}) == 3


def test_an_artifact_without_its_own_type_has_that_of_its_config(subject: Subject, publish: Any) -> None:
    name = publish(model(artifact_type="", config_type="application/vnd.example.config.v1+json"), "typed")
    subject.client.pull(name)
    if subject.name == "nodens-cri":
        assert json.loads(status(subject, name).info["info"])["artifactType"] == "application/vnd.example.config.v1+json"


def test_an_artifact_in_an_index_without_platforms_is_found(pods: Pods, publish: Any) -> None:
    artifact = model()
    pod = pods.run()
    name = publish(make.index((artifact.manifest(), None)), "indexed", (artifact,))
    one = pod.container(mounts=[volume(pods, name, **pod.mappings())])
    assert one.output("cat /mnt/README.md") == "a model"


def test_a_packed_directory_is_a_directory_of_the_volume(pods: Pods, publish: Any) -> None:
    packed = make.tar(make.directory("data"), make.entry("data/one", b"1"), make.entry("data/deep/two", b"2"))
    pod = pods.run()
    one = pod.container(mounts=[volume(pods, publish(make.Artifact().packed("data", packed).file("data/three", b"3"), "packed"),
                                       **pod.mappings())])
    assert one.output("cd /mnt && find . -type f | sort").split() == ["./data/deep/two", "./data/one", "./data/three"]


def test_a_container_cannot_run_from_an_artifact_and_the_error_has_its_type(pods: Pods, publish: Any) -> None:
    name = publish(model(), "model")
    error = refused(lambda: pods.run().container(image=name))
    assert TYPE in error.details() and "not a container image" in error.details()


@pytest.mark.parametrize("title", ["../climbed", "/etc/absolute", "a/../../b", ".wh.README.md", "a//b", "x" * 256])
def test_an_artifact_with_a_hostile_title_is_refused(subject: Subject, publish: Any, title: str) -> None:
    name = publish(make.Artifact().file("README.md", b"x").file(title, b"planted"), "hostile")
    error = refused(lambda: subject.client.pull(name))
    assert "path" in error.details() and title[:20] in error.details()
    assert status(subject, name) is None


def test_an_artifact_survives_a_restart_of_the_runtime(pods: Pods, subject: Subject, publish: Any) -> None:
    name = publish(model(), "model")
    pod = pods.run()
    old = pod.container(mounts=[volume(pods, name, **pod.mappings())])
    before = status(subject, name)
    subject.restart()
    assert status(subject, name) == before
    new = pod.container(name="new", mounts=[volume(pods, name, **pod.mappings())])
    for one in (old, new):
        assert one.output("cat /mnt/README.md") == "a model"


def test_the_second_pull_of_an_artifact_fetches_no_file(subject: Subject, publish: Any, published: Published) -> None:
    """The store knows the files from the manifest alone, so they need not be in the registry any more."""
    name, unique = publish(make.Artifact().file("once", b"fetched once"), "once"), make.digest(b"fetched once")[7:]
    identity = subject.client.pull(name)
    assert published[0]
    blob = published[0].directory / "storage/docker/registry/v2/blobs/sha256" / unique[:2] / unique / "data"
    kept = blob.read_bytes()
    blob.unlink()
    try:
        assert subject.client.pull(name) == identity
    finally:
        blob.write_bytes(kept)


def test_the_removal_of_an_artifact_frees_its_space_when_no_container_has_it(plain_pods: Pods, subject: Subject, publish: Any) -> None:
    before = used(subject)
    name = publish(make.Artifact().file("large", bytes(8 << 20)), "large")
    pod = plain_pods.run()
    one = pod.container(mounts=[volume(plain_pods, name)])
    assert used(subject) - before > 7 << 20
    subject.client.remove_image(name)
    assert status(subject, name) is None and one.output("wc -c </mnt/large") == str(8 << 20)
    one.remove()
    pod.remove()
    subject.client.remove_image(name)
    eventually(lambda: used(subject) - before < 1 << 20, 90, "the space of the artifact")


def layers_of(subject: Subject) -> Path:
    if subject.name != "nodens-cri" or subject.runtime is None:
        pytest.skip("the layout of its store is not ours")
    return subject.runtime.directory / "images"


def test_a_pull_that_fails_leaves_no_file(subject: Subject, publish: Any, published: Published) -> None:
    """The second file is missing in the registry, as if it had been removed while the pull ran."""
    store = layers_of(subject)
    name = publish(make.Artifact().file("first", b"the first of two").file("second", b"the second of two"), "broken")
    lost = make.digest(b"the second of two")[7:]
    assert published[0]
    (published[0].directory / "storage/docker/registry/v2/blobs/sha256" / lost[:2] / lost / "data").unlink()
    before = sorted(path.name for path in (store / "layers").iterdir())
    refused(lambda: subject.client.pull(name))
    assert sorted(path.name for path in (store / "layers").iterdir()) == before and status(subject, name) is None
    eventually(lambda: not [path for path in (store / "staging").iterdir() if path.name != "partial"], 30, "an empty staging directory")
