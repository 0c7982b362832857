# SPDX-License-Identifier: Apache-2.0
"""The program that nodens-cri asks before an image is recorded."""
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from conftest import Subject
from nodensdev.cri_client import CriClient
from nodenstest import runtimes


@dataclass
class Scene:
    client: CriClient
    program: Path
    image: str

    def says(self, text: str) -> None:
        self.program.write_text(f"#!/bin/sh\n{text}\n")
        self.program.chmod(0o755)

    def there(self) -> bool:
        pb = self.client.pb
        return self.client.images.ImageStatus(pb.ImageStatusRequest(image=pb.ImageSpec(image=self.image)), timeout=30).HasField("image")

    def refusal(self) -> str:
        with pytest.raises(grpc.RpcError) as refused:
            self.client.pull(self.image)
        assert refused.value.code() == grpc.StatusCode.UNKNOWN    # so that the kubelet shows the text unchanged
        assert not self.there()
        return refused.value.details()


@pytest.fixture(scope="module")
def scene(subject: Subject, messages: runtimes.Messages) -> Iterator[Scene]:
    if subject.name != "nodens-cri" or subject.runtime is None:
        pytest.skip("this is nodens-cri's configuration")
    with runtimes.scratch() as directory:
        runtime = runtimes.NodensCri(directory / "r", messages, settings={"imageVerifier": directory / "verifier"})
        runtime.certificates = subject.runtime.certificates
        client = runtime.start()
        yield Scene(client, directory / "verifier", subject.images.shell)
        client.close()
        runtime.stop()


def test_an_image_that_the_verifier_refuses_is_not_there(scene: Scene) -> None:
    scene.says("echo no signature of ours; exit 1")
    words = scene.refusal()
    assert (
        words.startswith("SignatureValidationFailed: ")
        and "no signature of ours" in words
        and scene.image.split("/")[-1].split(":")[0] in words
    )


def test_a_verifier_that_is_missing_lets_nothing_in(scene: Scene) -> None:
    scene.program.unlink(missing_ok=True)
    with pytest.raises(grpc.RpcError):
        scene.client.pull(scene.image)
    assert not scene.there()


def test_a_verifier_that_never_stops_talking_is_bounded(scene: Scene) -> None:
    scene.says("yes no | head -c 10000000; exit 1")
    assert len(scene.refusal()) < 8192


def test_an_image_that_the_verifier_takes_is_there(scene: Scene) -> None:
    seen = scene.program.with_name("seen")
    scene.says(f'echo "$@" >{seen}; cat >>{seen}')
    scene.client.pull(scene.image)
    assert scene.there()
    line, descriptor = seen.read_text().splitlines()
    assert line.startswith("-name ") and " -digest sha256:" in line
    assert line.split()[3] in descriptor
