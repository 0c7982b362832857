# SPDX-License-Identifier: Apache-2.0
"""Attacks by an image on the host that runs it: links at and on the way to places that the engine opens or mounts."""
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from nodenstest import images as make
from nodenstest import runtimes, validation
from nodenstest.pods import Pods, refused

Built = Callable[..., str]
HOSTS = {"ptmx": "the host's", "null": "the host's", "notes": "the host's"}


@pytest.fixture
def built(published: tuple[runtimes.registry_server.Site | None, validation.Names], request: pytest.FixtureRequest) -> Iterator[Built]:
    """Publishes the shell's image with entries on top; the image's name."""
    site, names = published
    if site is None:
        pytest.skip("the registry is not ours to publish in")
    name = "attack-" + hashlib.sha256(request.node.name.encode()).hexdigest()[:16]    # each parameter has its own

    def build(*layers: list[Any], volumes: tuple[str, ...] = (), directory: str = "") -> str:
        image = validation.stored(site, validation.SHELL)
        for entries in layers:
            image.layer(make.tar(*entries))
        if volumes:
            image.config["config"]["Volumes"] = dict.fromkeys(volumes, {})
        if directory:
            image.config["config"]["WorkingDir"] = directory
        runtimes.registry_server.Site.publish(site, image, f"validation/{name}:latest")
        return names.tag(name)

    yield build


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A directory of the host's."""
    place = tmp_path / "victim"
    place.mkdir(mode=0o777)
    for name, text in HOSTS.items():
        (place / name).write_text(text)
    return place


def untouched(place: Path) -> None:
    found = {path.name: path.read_text() if path.is_file() and not path.is_symlink() else "?" for path in place.iterdir()}
    assert found == HOSTS


@pytest.mark.parametrize("tty", [False, True])
def test_a_read_only_volume_mounted_on_a_link_to_dev_gets_no_devices(pods: Pods, built: Built, victim: Path, tty: bool) -> None:
    """An image's link makes the engine create devices and links in a read-only host directory.

    The pod mounts the directory at /data, and the image has /data -> /dev.
    """
    pod = pods.run()
    image = built([make.symlink("data", "dev")])
    error = refused(lambda: pod.container(image=image, tty=tty, mounts=[pod.mount(victim, "/data", readonly=True)]),
                    grpc.StatusCode.INVALID_ARGUMENT)
    assert "the mount at '/data': a link of the image leads to '/dev'" in error.details()
    untouched(victim)


def test_dev_becomes_a_link_in_the_last_of_many_layers(pods: Pods, built: Built, victim: Path) -> None:
    """Lower layers have a real /dev; the topmost replaces it by a link that climbs out of the root by a relative path."""
    image = built([make.directory("dev"), make.directory("dev/pts")], [make.entry(".wh.dev")],
                  [make.symlink("dev", "../" * 20 + str(victim).lstrip("/"))])
    error = refused(lambda: pods.run().container(image=image), grpc.StatusCode.INVALID_ARGUMENT)
    assert "'/dev' of the image is a symbolic link" in error.details()
    untouched(victim)


@pytest.mark.parametrize(("name", "target"), [("etc/hostname", "/proc/sys/kernel/hostname"), ("etc/resolv.conf", "/proc/self/attr/current"),
                                              ("etc/hosts", "/dev/null")])
def test_the_runtimes_own_files_are_mounted_over_nothing_of_the_kernels(pods: Pods, built: Built, name: str, target: str) -> None:
    """The image makes /etc/hostname, resolv.conf or hosts a link into /proc or /dev, where the runtime then mounts its file."""
    error = refused(lambda: pods.run().container(image=built([make.entry(f"etc/.wh.{Path(name).name}")], [make.symlink(name, target)])),
                    grpc.StatusCode.INVALID_ARGUMENT)
    assert f"the mount at '/{name}': a link of the image leads to" in error.details()


def test_a_volume_of_the_image_hides_no_volume_of_the_pod(pods: Pods, built: Built, tmp_path: Path) -> None:
    """The image declares the directory behind the link at which the pod mounts its volume, to put its own files in front of the pod's."""
    (tmp_path / "ours").write_text("the pod's")
    pod = pods.run()
    image = built([make.directory("deep"), make.directory("deep/down"), make.symlink("secrets", "deep/down"),
                   make.entry("deep/down/ours", b"the image's")], volumes=("/deep/down",))
    one = pod.container(image=image, mounts=[pod.mount(tmp_path, "/secrets")])
    assert one.output("cat /secrets/ours /deep/down/ours") == "the pod'sthe pod's"


def test_a_link_in_a_volume_of_the_pod_moves_no_volume_of_the_image(pods: Pods, built: Built, tmp_path: Path) -> None:
    """A container of the pod left a link to /proc in a shared volume, and the image declares a volume behind it."""
    (tmp_path / "link").symlink_to("/proc")
    pod = pods.run()
    one = pod.container(image=built([make.directory("shared")], volumes=("/shared/link/sys",)), mounts=[pod.mount(tmp_path, "/shared")])
    assert "/volumes/" not in one.output("grep ' /proc' /proc/self/mountinfo; true")
    assert one.execute("test -e /proc/sys/kernel/hostname").code == 0


def test_a_maze_of_links_ends(plain_pods: Pods, built: Built) -> None:
    """A volume's path has a loop, and links that double with every step, to keep a worker busy.

    The pod is refused at once.
    """
    doubling = [make.symlink(f"m{n}", "/".join([f"m{n + 1}/.."] * 30 + [f"m{n + 1}"])) for n in range(30)]
    error = refused(lambda: plain_pods.run().container(image=built([*doubling, make.directory("m30")], volumes=("/m0/x",))),
                    grpc.StatusCode.INVALID_ARGUMENT)
    assert "Too many levels of symbolic links" in error.details()


def test_a_working_directory_is_not_made_in_a_read_only_volume(pods: Pods, built: Built, victim: Path) -> None:
    """The image's working directory lies behind a link in a read-only volume of the host, where the engine would make it."""
    pod = pods.run()
    image = built([make.symlink("job", "/mnt")], directory="/job/made/by/engine")
    error = refused(lambda: pod.container(image=image, mounts=[pod.mount(victim, "/mnt", readonly=True)]), grpc.StatusCode.INVALID_ARGUMENT)
    assert "made/by/engine' does not exist, and cannot be made in" in error.details() and "read-only volume" in error.details()
    untouched(victim)


def test_no_file_is_made_in_a_read_only_volume_to_mount_another_on(pods: Pods, victim: Path, tmp_path: Path) -> None:
    """A mount at a new name in a read-only host directory makes the engine create it on the host.

    The name could be /etc/nologin.
    """
    (tmp_path / "own").write_text("the pod's")
    pod = pods.run()
    mounts = [pod.mount(victim, "/host", readonly=True), pod.mount(tmp_path / "own", "/host/nologin")]
    error = refused(lambda: pod.container(mounts=mounts), grpc.StatusCode.INVALID_ARGUMENT)
    assert "'/host/nologin'" in error.details() and "read-only volume" in error.details()
    untouched(victim)
    one = pod.container(mounts=[mounts[0], pod.mount(tmp_path / "own", "/host/notes")])    # on a name that is there it may
    assert one.output("cat /host/notes") == "the pod's"
    untouched(victim)


def test_each_container_begins_with_the_images_own_dev(plain_pods: Pods, victim: Path) -> None:
    """A container replaces directories of its root by links and ends; the next one of the same pod must not begin with them."""
    pod = plain_pods.run()
    pod.container("mkdir -p /proc.old; rm -rf /media /srv; ln -s /proc /srv; rm -rf /tmp; ln -s /dev /tmp; true", name="first").ended()
    second = pod.container(name="second")
    assert json.loads(second.output("test -L /tmp && echo 1 || echo 0")) == 0
