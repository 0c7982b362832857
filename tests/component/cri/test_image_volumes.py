# SPDX-License-Identifier: Apache-2.0
"""The cases of the CRI's validation suite for containers and images: volumes made of an image (KEP-4639), identifiers, images in use."""
import grpc
import pytest
from conftest import Subject
from nodenstest.pods import Container, Pods, refused


def image_mount(pods: Pods, image: str, inside: str = "/mnt", **more: object):
    return pods.pb.Mount(container_path=inside, image=pods.pb.ImageSpec(image=pods.pull(image), user_specified_image=image), readonly=True,
                         **more)


def test_an_image_is_mounted_read_only_and_its_programs_run(pods: Pods) -> None:
    pod = pods.run()
    one = pod.container(mounts=[image_mount(pods, pods.image, **pod.mappings())])
    assert "root" in one.output("cat /mnt/etc/passwd")
    assert "Read-only" in one.execute("touch /mnt/file").stderr
    assert one.output("/mnt/bin/busybox echo it runs") == "it runs"
    assert one.output("stat -c %u:%g /mnt/etc/passwd") == "0:0"


def test_the_status_has_the_mounted_image(pods: Pods) -> None:
    pod = pods.run()
    found = [mount for mount in pod.container(mounts=[image_mount(pods, pods.image, **pod.mappings())]).status().mounts
             if mount.container_path == "/mnt"]
    assert len(found) == 1 and found[0].image.image == pods.pull(pods.image)


def test_a_part_of_an_image_is_mounted(pods: Pods) -> None:
    pod = pods.run()
    one = pod.container(mounts=[image_mount(pods, pods.image, image_sub_path="etc", **pod.mappings())])
    assert "root" in one.output("cat /mnt/passwd") and one.execute("ls /mnt/bin").code != 0


@pytest.mark.parametrize("path", ["no/such", "../etc", "/etc", "etc/../../etc"])
def test_a_part_that_is_not_in_the_image_is_refused(pods: Pods, path: str) -> None:
    pod = pods.run()
    refused(lambda: pod.container(mounts=[image_mount(pods, pods.image, image_sub_path=path, **pod.mappings())]))


def test_an_image_that_is_to_be_written_is_refused_or_stays_read_only(pods: Pods) -> None:
    pod = pods.run()
    mount = image_mount(pods, pods.image, **pod.mappings())
    mount.readonly = False
    try:
        one = pod.container(mounts=[mount])
    except grpc.RpcError:
        return
    assert one.execute("touch /mnt/file").code != 0

ADMIN = {"capabilities": {"add_capabilities": ["SYS_ADMIN"]}}
WRITES = ("touch {}/made", "echo x >>{}/passwd", "rm {}/passwd", "mv {}/passwd {}/other", "chmod 777 {}/passwd", "ln {}/passwd {}/hard")


def layers_of(container: Container) -> int:
    """The number of layers of its root, from the kernel."""
    return container.output("grep ' / / ' /proc/self/mountinfo").count("lowerdir")


def try_to_write(container: Container, place: str) -> None:
    """Everything that root with SYS_ADMIN can do to the flags of a mount; and then the writes, which must fail all the same."""
    copy = f"/tmp/copy-{place.strip('/').replace('/', '-')}"
    container.output(f"mkdir -p {copy} && mount --bind {place} {copy}")
    for mounted in (place, copy):
        container.execute(f"mount -o remount,bind,rw {mounted}; mount -o remount,rw {mounted}")
        for command in WRITES:
            done = container.execute(command.format(mounted, mounted))
            assert done.code != 0 and "Read-only" in done.stderr, f"{command.format(mounted, mounted)}: {done}"


@pytest.mark.parametrize("users", [True, False], ids=["userns", "host-users"])
@pytest.mark.parametrize("part", ["", "etc"], ids=["whole", "part"])
@pytest.mark.parametrize("several", [False, True], ids=["one-layer", "layers"])
def test_sys_admin_cannot_make_a_mounted_image_writable(plain_pods: Pods, subject: Subject, several: bool, part: str, users: bool) -> None:
    """An image's only copy on the node is behind the volume: with any mount flags, it must stay read-only."""
    pods, image = plain_pods, subject.images.tag("owners") if several else plain_pods.image
    pod = pods.run(userns=users)
    one = pod.container(image=image, mounts=[image_mount(pods, image, image_sub_path=part, **pod.mappings())], security=ADMIN)
    assert (layers_of(one) > 1) == several, "the case is about another number of layers"
    before = one.output("cat /etc/passwd")
    try_to_write(one, "/mnt" if part else "/mnt/etc")
    assert pods.run(name="victim",
                    userns=False).container(image=image).output("cat /etc/passwd; ls /etc/made 2>/dev/null || true") == before


def test_a_mounted_image_stays_unwritable_after_a_restart_of_the_runtime(plain_pods: Pods, subject: Subject) -> None:
    pod = plain_pods.run(userns=True)
    old = pod.container(mounts=[image_mount(plain_pods, plain_pods.image, **pod.mappings())], security=ADMIN)
    subject.restart()
    new = pod.container(name="new", mounts=[image_mount(plain_pods, plain_pods.image, **pod.mappings())], security=ADMIN)
    for container in (old, new):
        try_to_write(container, "/mnt/etc")


def test_an_image_that_was_never_pulled_is_an_error_that_names_it(pods: Pods, subject: Subject) -> None:
    pod = pods.run()
    name = subject.images.tag("nothing")
    error = refused(lambda: pod.container(mounts=[pods.pb.Mount(container_path="/mnt", image=pods.pb.ImageSpec(image=name),
                                                                readonly=True)]))
    assert "nothing" in error.details()


def test_a_container_and_its_image_have_one_identifier(pods: Pods) -> None:
    one = pods.run().container()
    image_id = pods.pull(pods.image)
    assert one.status().image_id == image_id == one.listed().image_id


def test_the_status_names_the_image_for_people_and_by_digest(pods: Pods) -> None:
    found = pods.run().container().status()
    assert found.image.image and found.image_ref


def test_a_container_of_an_unknown_image_is_refused(pods: Pods, subject: Subject) -> None:
    pod = pods.run()
    pods.pulled[subject.images.tag("nothing")] = subject.images.tag("nothing")
    assert "nothing" in refused(lambda: pod.container(image=subject.images.tag("nothing"))).details()


def test_a_running_container_survives_the_removal_of_its_image(pods: Pods, subject: Subject) -> None:
    name = subject.images.tag("owners")
    one = pods.run().container(image=name)
    pods.client.remove_image(name)
    assert one.output("ls /owners/1000; cat /bin/busybox | wc -c").split()[0] == "/owners/1000"
    assert one.state == pods.pb.CONTAINER_RUNNING
