# SPDX-License-Identifier: Apache-2.0
"""A disk that fills up at any point of a pull: a clean error, nothing half done, and all is well once there is space again."""
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
import world
from nodenstest import runtimes

STEPS_KIB = [100, 300, 500, 700, 900, 1100, 1300, 1500, 2000, 4000]
STEPS_INODES = [5, 10, 15, 20, 40, 60, 90, 120, 150, 300]


@contextmanager
def disk(place: Path, options: str) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def try_pull(client: object, name: str) -> grpc.RpcError | None:
    try:
        client.pull(name)  # type: ignore[attr-defined]
    except grpc.RpcError as error:
        return error
    return None


@pytest.mark.parametrize("kind", ["bytes", "inodes"])
def test_a_full_disk_is_a_clean_error_and_no_more(site: runtimes.registry_server.Site, known: world.Known, directory: Path,
                                                  messages: runtimes.Messages, kind: str) -> None:
    name, codes, pulled = known.names[3], [], 0
    for step in STEPS_KIB if kind == "bytes" else STEPS_INODES:
        small = f"size={step}k" if kind == "bytes" else f"nr_inodes={step},size=100m"
        with disk(directory / f"disk{step}", small) as place:
            runtime = runtimes.NodensCri(directory / f"r{step}", messages, store=place / "images")
            runtimes.trust(site, runtime.certificates)
            try:
                client = runtime.start()
            except AssertionError:
                assert "No space left" in runtime.tail(), runtime.tail()
                continue    # not even the store's own directories; and it says so
            error = try_pull(client, name)
            world.check(place / "images", client, known)
            if error is None:
                pulled += 1
            else:
                codes.append(error.code())
                assert "No space left on device" in error.details(), error.details()
                world.wait_until_swept(place / "images")
                subprocess.run(["mount", "-o", f"remount,size=200m{',nr_inodes=100000' if kind == 'inodes' else ''}", str(place)],
                               check=True)
                client.pull(name)
                assert world.check(place / "images", client, known) == {name}
            client.remove_image(name)
            world.wait_until_swept(place / "images")
            assert runtime.stop() == 0, runtime.tail()
    print(f"{kind}: {len(codes)} times full, {pulled} times not")
    assert codes and pulled, "the steps do not reach from too little to enough"
    assert set(codes) == {grpc.StatusCode.RESOURCE_EXHAUSTED}, codes


def test_an_image_can_be_removed_from_a_full_disk(site: runtimes.registry_server.Site, known: world.Known, directory: Path,
                                                  messages: runtimes.Messages) -> None:
    with disk(directory / "disk", "size=20m") as place:
        runtime = runtimes.NodensCri(directory / "r", messages, store=place / "images")
        runtimes.trust(site, runtime.certificates)
        client = runtime.start()
        client.pull(known.names[0])
        (place / "ballast").touch()
        with pytest.raises(OSError, match="No space left"), open(place / "ballast", "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        error = try_pull(client, known.names[5])
        assert error and "No space left" in error.details()
        client.remove_image(known.names[0])
        assert world.check(place / "images", client, known) == set()
        world.wait_until_swept(place / "images")
        (place / "ballast").unlink()
        client.pull(known.names[5])
        assert world.check(place / "images", client, known) == {known.names[5]}
        assert runtime.stop() == 0, runtime.tail()
