# SPDX-License-Identifier: Apache-2.0
"""nodens pull and nodens import, and what the kubelet gets for the same images: errors that name the cause, and the image once."""
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from nodensdev.cri_client import CriClient
from nodenstest import fake_registry, images, runtimes

MISSING = "some.example/test/image:missing"


@dataclass
class Node:
    runtime: runtimes.NodensCri
    client: CriClient

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(runtimes.program("src/nodens")), arguments[0], "--socket", str(self.runtime.socket), *arguments[1:]],
                              capture_output=True, text=True, timeout=300)

    def servers(self, text: str) -> None:
        """The servers of some.example."""
        (self.runtime.certificates / "some.example").mkdir(exist_ok=True)
        (self.runtime.certificates / "some.example" / "hosts.toml").write_text(text)


@pytest.fixture(scope="module")
def node(messages: runtimes.Messages) -> Iterator[Node]:
    with runtimes.scratch() as directory:
        runtime = runtimes.NodensCri(directory / "n", messages)
        yield Node(runtime, runtime.start())
        runtime.stop()


@pytest.fixture
def mirror(node: Node) -> Iterator[fake_registry.Registry]:
    """A registry without images, as a mirror of one that cannot be reached."""
    with fake_registry.Registry() as registry:
        node.servers(f'server = "http://127.0.0.1:1"\n[host."http://{registry.name}"]\n')
        yield registry


def test_a_missing_tag_behind_a_mirror_is_not_found_and_named_once(node: Node, mirror: fake_registry.Registry) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        node.client.images.PullImage(node.client.pb.PullImageRequest(image=node.client.pb.ImageSpec(image=MISSING)), timeout=300)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    details = caught.value.details() or ""
    assert details.startswith(f"{MISSING}: {mirror.name}: not found (404); 127.0.0.1:1: ")
    assert details.count("image:missing") == 1


def test_nodens_pull_reports_what_the_kubelet_gets(node: Node, mirror: fake_registry.Registry) -> None:
    done = node.run("pull", MISSING)
    assert done.returncode == 1 and done.stderr.startswith(f"nodens pull: {MISSING}: {mirror.name}: not found (404); ")


def test_registries_that_cannot_be_reached_are_still_unavailable(node: Node) -> None:
    """The kubelet turns this beginning into the reason RegistryUnavailable."""
    node.servers('server = "http://127.0.0.1:1"\n')
    with pytest.raises(grpc.RpcError) as caught:
        node.client.images.PullImage(node.client.pb.PullImageRequest(image=node.client.pb.ImageSpec(image=MISSING)), timeout=300)
    assert caught.value.code() == grpc.StatusCode.UNKNOWN
    assert (caught.value.details() or "").startswith(f"RegistryUnavailable: {MISSING}: 127.0.0.1:1: ")


def test_an_import_of_something_else_says_that_it_is_not_a_tar_archive(node: Node) -> None:
    done = node.run("import", "/etc/passwd")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "nodens import: /etc/passwd: not a tar archive; an import needs an OCI image layout as a tar archive\n"


def test_an_import_prints_the_ids_and_names_of_its_images(node: Node, tmp_path: Path) -> None:
    first, second = (images.Image().layer(images.tar(images.entry(name, name.encode()))) for name in ("first", "second"))
    archive = images.archive(tmp_path / "a.tar",
                             {"some.example/first:1": first, "some.example/second:2": second, "some.example/also:3": first})
    done = node.run("import", str(archive))
    assert done.returncode == 0, done.stderr
    ids = [images.digest(image.config_blob().data) for image in (first, second)]
    printed = {line.split()[0]: sorted(line.split()[1:]) for line in done.stdout.splitlines() if line.startswith("sha256:")}
    assert printed == {ids[0]: ["some.example/also:3", "some.example/first:1"], ids[1]: ["some.example/second:2"]}
    assert node.run("import", "--quiet", str(archive)).stdout.split() == ids
