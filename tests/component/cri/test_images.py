# SPDX-License-Identifier: Apache-2.0
"""The cases of the CRI's validation suite for an ImageService, and a few that it lacks. Every test begins and ends without its images."""
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from conftest import Subject

TIMEOUT = 300     # a pull ends with a syncfs(), which waits for all dirty data of the host


class Images:
    """Short helpers for the calls; removes the pulled images at the end."""

    def __init__(self, subject: Subject) -> None:
        self.pb, self.stub, self.names, self.pulled = subject.client.pb, subject.client.images, subject.images, set[str]()

    def spec(self, image: str) -> Any:
        return self.pb.ImageSpec(image=image)

    def pull(self, image: str, timeout: float = TIMEOUT) -> str:
        self.pulled.add(image)
        return self.stub.PullImage(self.pb.PullImageRequest(image=self.spec(image)), timeout=timeout).image_ref

    def status(self, image: str, verbose: bool = False) -> Any:
        answer = self.stub.ImageStatus(self.pb.ImageStatusRequest(image=self.spec(image), verbose=verbose), timeout=TIMEOUT)
        return answer.image if answer.HasField("image") else None

    def remove(self, image: str) -> None:
        self.stub.RemoveImage(self.pb.RemoveImageRequest(image=self.spec(image)), timeout=TIMEOUT)

    def list(self, image: str | None = None) -> list[Any]:
        request = self.pb.ListImagesRequest(filter=self.pb.ImageFilter(image=self.spec(image))) if image else self.pb.ListImagesRequest()
        return list(self.stub.ListImages(request, timeout=TIMEOUT).images)

    def filesystem(self) -> Any:
        return self.stub.ImageFsInfo(self.pb.ImageFsInfoRequest(), timeout=TIMEOUT).image_filesystems[0]

    def clean(self) -> None:
        for name in self.pulled:
            self.remove(name)


@pytest.fixture
def images(subject: Subject) -> Iterator[Images]:
    made = Images(subject)
    yield made
    made.clean()


def present(images: Images, image_id: str) -> list[Any]:
    return [image for image in images.list() if image.id == image_id]


# Image Manager

def test_an_image_with_a_tag_is_pulled_and_has_that_tag(images: Images) -> None:
    name = images.names.tag("tag", "test")
    images.pull(name)
    found = images.status(name)
    assert list(found.repo_tags) == [name] and found.id and found.size > 0
    images.remove(name)
    assert images.status(name) is None


def test_an_image_without_a_tag_is_the_latest(images: Images) -> None:
    images.pull(images.names.tag("latest").removesuffix(":latest"))
    assert list(images.status(images.names.tag("latest")).repo_tags) == [images.names.tag("latest")]


def test_an_image_pulled_by_digest_has_no_tag(images: Images) -> None:
    name = images.names.digest("digest")
    images.pull(name)
    found = images.status(name)
    assert list(found.repo_tags) == [] and list(found.repo_digests) == [name]


def test_an_image_pulled_by_tag_has_its_digest_too(images: Images) -> None:
    images.pull(images.names.tag("tag", "test"))
    assert list(images.status(images.names.tag("tag", "test")).repo_digests) == [images.names.digest("tag")]


def test_the_digest_of_an_image_for_many_platforms_is_its_indexs(images: Images) -> None:
    images.pull(images.names.tag("multi"))
    assert list(images.status(images.names.tag("multi")).repo_digests) == [images.names.digest("multi")]
    assert images.status(images.names.digest("multi")) is not None


def test_a_pull_with_a_deadline_of_a_millisecond_exceeds_it(images: Images) -> None:
    name = images.names.tag("1")
    with pytest.raises(grpc.RpcError) as caught:
        images.pull(name, timeout=0.001)
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_pulls_that_end_at_any_moment_leave_the_store_intact(images: Images) -> None:
    name = images.names.tag("1")
    for milliseconds in range(1, 80, 2):
        try:
            images.pull(name, timeout=milliseconds / 1000)
            images.remove(name)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
    assert images.pull(name) == images.status(name).id


def test_the_status_by_id_tag_and_digest_is_the_same(images: Images) -> None:
    images.pull(images.names.tag("tag", "test"))
    by_tag = images.status(images.names.tag("tag", "test"))
    assert images.status(by_tag.id) == by_tag
    assert images.status(images.names.digest("tag")) == by_tag


@pytest.mark.parametrize(("name", "uid", "username"),
                         [("user-uid", 1002, ""), ("user-uid-group", 1003, ""), ("user-name", None, "www-data"),
                                                       ("user-name-group", None, "www-data")])
def test_the_user_of_an_image_is_a_number_or_a_name(images: Images, name: str, uid: int | None, username: str) -> None:
    images.pull(images.names.tag(name))
    found = images.status(images.names.tag(name))
    assert found.username == username
    assert found.uid.value == (uid or 0) and (uid is None or found.HasField("uid"))


def test_three_images_are_listed_each_with_its_tag(images: Images) -> None:
    names = [images.names.tag(str(number)) for number in (1, 2, 3)]
    ids = [images.pull(name) for name in names]
    assert len(set(ids)) == 3
    for name, one in zip(names, ids, strict=True):
        assert [list(image.repo_tags) for image in present(images, one)] == [[name]]


def test_three_tags_of_one_image_are_one_image(images: Images) -> None:
    names = [images.names.tag("tags", tag) for tag in ("1", "2", "3")]
    ids = {images.pull(name) for name in names}
    assert len(ids) == 1
    assert [sorted(image.repo_tags) for image in present(images, ids.pop())] == [names]


def test_removing_one_tag_removes_the_image_and_all_its_tags(images: Images) -> None:
    names = [images.names.tag("tags", tag) for tag in ("1", "2", "3")]
    image_id = [images.pull(name) for name in names][0]
    images.remove(names[1])
    assert present(images, image_id) == [] and all(images.status(name) is None for name in names)


def test_an_image_from_two_registries_is_one_image_with_two_tags(images: Images) -> None:
    first, second = images.names.tag("two-registries"), images.names.elsewhere("two-registries")
    assert images.pull(first) == images.pull(second)
    assert sorted(images.status(first).repo_tags) == sorted([first, second])
    images.remove(second)
    assert images.status(first) is None and images.status(second) is None


def test_a_verbose_status_has_more_information(images: Images) -> None:
    images.pull(images.names.tag("1"))
    request = images.pb.ImageStatusRequest(image=images.spec(images.names.tag("1")), verbose=True)
    answer = images.stub.ImageStatus(request, timeout=TIMEOUT)
    assert answer.image == images.status(images.names.tag("1")) and json.loads(answer.info["info"])


# Listing

def test_a_filter_names_one_image(images: Images) -> None:
    ids = [images.pull(images.names.tag(str(number))) for number in (1, 2)]
    assert [image.id for image in images.list(images.names.tag("2"))] == [ids[1]]
    assert [image.id for image in images.list(ids[0])] == [ids[0]]
    assert images.list(images.names.tag("nothing")) == []


def test_a_filter_without_an_image_lists_all(images: Images) -> None:
    image_id = images.pull(images.names.tag("1"))
    request = images.pb.ListImagesRequest(filter=images.pb.ImageFilter(image=images.spec("")))
    assert image_id in [image.id for image in images.stub.ListImages(request, timeout=TIMEOUT).images]


def test_images_come_as_a_stream_too(images: Images) -> None:
    image_id = images.pull(images.names.tag("1"))
    answers = list(images.stub.StreamImages(images.pb.StreamImagesRequest(), timeout=TIMEOUT))
    assert image_id in [image.id for answer in answers for image in answer.images]


# Idempotence

def test_the_status_of_an_absent_image_is_empty_and_no_error(images: Images) -> None:
    assert images.status(images.names.tag("nothing")) is None


def test_removing_an_unknown_image_succeeds(images: Images) -> None:
    images.remove(images.names.tag("nothing"))


def test_removing_an_image_twice_succeeds(images: Images) -> None:
    images.pull(images.names.tag("1"))
    images.remove(images.names.tag("1"))
    images.remove(images.names.tag("1"))


def test_pulling_an_image_twice_succeeds(images: Images) -> None:
    assert images.pull(images.names.tag("1")) == images.pull(images.names.tag("1"))


# Image Consistency

def test_an_image_is_there_as_soon_as_it_was_pulled(images: Images) -> None:
    image_id = images.pull(images.names.tag("1"))
    assert present(images, image_id) and images.status(image_id) is not None


def test_an_image_is_gone_as_soon_as_it_was_removed(images: Images) -> None:
    image_id = images.pull(images.names.tag("1"))
    images.remove(images.names.tag("1"))
    assert images.status(image_id) is None and present(images, image_id) == []


def test_five_removals_at_once_all_succeed(images: Images) -> None:
    image_id = images.pull(images.names.tag("1"))
    start = threading.Barrier(5)

    def remove(_: int) -> Any:
        start.wait()
        images.remove(image_id)
        return images.status(image_id)

    with ThreadPoolExecutor(5) as pool:
        assert list(pool.map(remove, range(5))) == [None] * 5


def test_the_filesystem_in_use_grows_with_a_pull_and_shrinks_with_a_removal(images: Images) -> None:
    def used_reaches(condition: Any) -> bool:
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            if condition(images.filesystem().used_bytes.value):
                return True
            time.sleep(0.5)
        return False

    before = images.filesystem().used_bytes.value
    images.pull(images.names.tag("3"))
    assert used_reaches(lambda value: value > before), "a pull changes nothing"
    images.remove(images.names.tag("3"))
    assert used_reaches(lambda value: value <= before), "a removal changes nothing"


def test_the_filesystem_has_a_mount_point_and_a_time(images: Images) -> None:
    found = images.filesystem()
    assert found.fs_id.mountpoint.startswith("/") and found.HasField("used_bytes") and found.HasField("inodes_used")
    assert abs(found.timestamp / 1e9 - time.time()) < 120


# Image Identifier Consistency

def test_the_answer_of_a_pull_is_the_images_id(images: Images) -> None:
    image_id = images.pull(images.names.tag("1"))
    assert images.status(images.names.tag("1")).id == image_id


def test_the_id_is_the_same_from_two_registries_and_by_digest(images: Images) -> None:
    first, second = images.pull(images.names.tag("two-registries")), images.pull(images.names.elsewhere("two-registries"))
    assert first == second == images.pull(images.names.digest("two-registries"))


# Failures

def test_an_image_that_the_registry_does_not_have_is_not_found(images: Images) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        images.pull(images.names.tag("nothing"))
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("name", ["UPPER/case", "a b", "name:", "name@sha256:12", "/", "x" * 5000])
def test_a_name_that_is_none_is_an_error_and_not_the_end(images: Images, name: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        images.stub.PullImage(images.pb.PullImageRequest(image=images.spec(name)), timeout=TIMEOUT)
    assert caught.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNKNOWN)
    images.list()


def test_eight_pulls_at_once_end_well(images: Images) -> None:
    names = [images.names.tag(name) for name in ("1", "2", "3", "latest", "multi", "user-uid", "user-name", "two-registries")]
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(images.pull, names))
    assert len(set(ids)) == 8 and set(ids) <= {image.id for image in images.list()}
