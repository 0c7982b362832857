# SPDX-License-Identifier: Apache-2.0
"""Attacks that a runtime must refuse and that no other case covers: docs/security-model.md names the CVE behind each of them."""
import contextlib
import json
import os
import re
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from conftest import Subject
from nodenstest import images as make
from nodenstest import runtimes, spdy, validation
from nodenstest.pods import TIMEOUT, Container, Pod, Pods, eventually, mounted, refused

NOBODY = 65534
MARK = "nodens-hostile-value"


def of_nodens(subject: Subject) -> runtimes.NodensCri:
    """For what can only be seen in files and sockets of our own."""
    if not isinstance(subject.runtime, runtimes.NodensCri):
        pytest.skip("it reads files of nodens-cri")
    return subject.runtime


def specification(runtime: runtimes.NodensCri, one: Container) -> str:
    """The runtime spec that the engine got for a container."""
    found = [path for path in (runtime.directory / "state").rglob("config.json") if one.id in str(path)]
    assert len(found) == 1, found
    return found[0].read_text()


def programs_of(runtime: runtimes.NodensCri) -> dict[int, str]:
    """The daemon and its monitors, by process."""
    names = {str(runtimes.program(path)): Path(path).name for path in ("src/nodens-cri", "src/mon/nodens-mon")}
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            program = os.readlink(entry / "exe")
            if program in names and str(runtime.directory) in (entry / "cmdline").read_text() + (
                entry / "environ"
            ).read_text() + os.readlink(entry / "cwd"):
                found[int(entry.name)] = names[program]
    assert runtime.process
    return found | {runtime.process.pid: "nodens-cri"}


def sockets_of(process: int) -> set[str]:
    """Inodes of a process's sockets."""
    found = set()
    for entry in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            link = os.readlink(entry)
            if link.startswith("socket:["):
                found.add(link[8:-1])
    return found


def as_nobody(*command: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command], capture_output=True, text=True,
                          timeout=60, **more)  # type: ignore[call-overload]


# ---- R3, R4, R15: untrusted metadata ----

def test_annotations_change_nothing(subject: Subject, plain_pods: Pods, cgroup_driver: str) -> None:
    """CVE-2024-3154, CVE-2023-6476: engines and runtimes act on annotations.

    The pod's author writes them, so they must have no effect here.
    """
    hostile = {"org.systemd.property.TasksMax": "uint64 1", "run.oci.handler": MARK, "run.oci.hooks.stderr": f"/tmp/{MARK}",
               "run.oci.keep_original_groups": "1",
               "run.oci.systemd.subgroup": MARK, "run.oci.mount_context_type": MARK, "io.kubernetes.cri-o.Devices": "/dev/kmsg",
               "io.kubernetes.cri-o.umask": "077",
               "io.kubernetes.cri-o.UnifiedCgroup.one": "pids.max=1", "io.containerd.rdt.class": MARK,
               "cdi.k8s.io/x": f"vendor.test/x={MARK}"}
    one = plain_pods.run(annotations=hostile).container(annotations=hostile)
    assert one.output("test -e /dev/kmsg && echo device; umask") == "0022"
    if subject.name == "nodens-cri":
        given = specification(of_nodens(subject), one)
        ours = {"run.oci.systemd.subgroup": ""} if cgroup_driver == "systemd" else {}
        assert MARK not in given and json.loads(given).get("annotations", {}) == ours and "org.systemd" not in given


def test_labels_of_an_image_have_no_effect(subject: Subject, plain_pods: Pods,
                                           published: tuple[runtimes.registry_server.Site | None, validation.Names]) -> None:
    """CVE-2026-53488: an image's label became an order to the runtime, and a program of the image's author ran as root on the host."""
    site, names = published
    if site is None:
        pytest.skip("the registry is not ours to publish in")
    image = validation.stored(site, validation.SHELL)
    image.config["config"]["Labels"] = {"io.cri-containerd.logger": f"binary:///bin/sh?{MARK}", "io.kubernetes.container.name": MARK,
                                        "io.kubernetes.pod.uid": MARK,
                                        "containerd.io/snapshot/uidmapping": "0:0:65536", "containerd.io/gc.root": MARK,
                                        "org.systemd.property.TasksMax": MARK}
    runtimes.registry_server.Site.publish(site, image, "validation/labels:latest")
    one = plain_pods.run().container(image=names.tag("labels"), labels={"asked": "for"})
    status = one.status()
    assert dict(status.labels) == {"asked": "for"} and MARK not in str(status)
    if subject.name == "nodens-cri":
        assert MARK not in specification(of_nodens(subject), one)


# ---- R10: paths of an image ----

@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize("place", ["dev", "proc", "sys"])
def test_an_image_whose_dev_is_a_link_changes_nothing_on_the_host(pods: Pods,
                                                                  published: tuple[runtimes.registry_server.Site | None, validation.Names],
                                                                  tmp_path: Path, place: str, tty: bool) -> None:
    """CVE-2026-47766, CVE-2026-41579: the engine followed /dev of the image to a directory of the host and made devices there."""
    site, names = published
    if site is None:
        pytest.skip("the registry is not ours to publish in")
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o777)
    for name in ("ptmx", "null", "fd", "console"):
        (victim / name).write_text("the host's")
    image = validation.stored(site, validation.SHELL)
    image.layer(make.tar(make.entry(f".wh.{place}")))
    inside = [str(path).strip("/") for path in (*reversed(victim.parents), victim) if path != Path("/")]
    image.layer(make.tar(*(make.directory(path) for path in inside), make.symlink(place, str(victim))))
    runtimes.registry_server.Site.publish(site, image, f"validation/link-at-{place}:latest")
    with pytest.raises(grpc.RpcError) as error:
        pods.run().container(image=f"{names.registry}/validation/link-at-{place}:latest", tty=tty)
    assert {path.name: path.read_text() for path in victim.iterdir()} == dict.fromkeys(("ptmx", "null", "fd", "console"), "the host's")
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT and f"'/{place}' of the image is a symbolic link" in error.value.details()


@pytest.mark.parametrize("volume", ["/a/sys", "/a/sys/kernel", "/a/1", "/a/self/attr", "/a/self/fd", "/a/self/task",
                                    "/a/thread-self/attr/apparmor", "/b/pts", "/b/shm", "/c/fs/cgroup", "/c/kernel"])
def test_no_volume_of_an_image_gets_into_proc_by_a_link(plain_pods: Pods,
                                                        published: tuple[runtimes.registry_server.Site | None, validation.Names],
                                                        volume: str) -> None:
    """CVE-2019-16884 by a link and a name that the image does not have."""
    site, names = published
    if site is None:
        pytest.skip("the registry is not ours to publish in")
    image = validation.stored(site, validation.SHELL)
    image.layer(make.tar(*(make.symlink(name, target) for name, target in (("a", "/proc"), ("b", "/dev"), ("c", "/sys")))))
    image.config["config"]["Volumes"] = {volume: {}}
    runtimes.registry_server.Site.publish(site, image, f"validation/linked-volume:{volume.replace('/', '-').strip('-')}")
    error = refused(lambda: plain_pods.run().container(image=names.tag("linked-volume", volume.replace("/", "-").strip("-"))),
                    grpc.StatusCode.INVALID_ARGUMENT)
    assert "belongs to the kernel" in error.details()


# ---- R11, R12: what is not ours stays as it is ----

def test_a_label_for_selinux_never_goes_through_a_link_of_the_volume(plain_pods: Pods, tmp_path: Path) -> None:
    """CVE-2021-43816: relabelling a volume followed a link in it, and a file of the host was the pod's to read."""
    outside = tmp_path / "outside"
    outside.write_text("the host's")
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "link").symlink_to(outside)
    pod = plain_pods.run()
    pod.container(mounts=[pod.mount(volume, "/volume", selinux_relabel=True)])
    assert "security.selinux" not in os.listxattr(outside)


def test_a_mount_at_the_place_of_the_logs_is_not_taken_away(plain_pods: Pods) -> None:
    """CVE-2025-0750: a pod's directory of logs led elsewhere, and removing the pod unmounted what was there."""
    pod = plain_pods.run()
    place = Path(pod.config.log_directory)
    with mounted(place / "volume", "-t", "tmpfs", "tmpfs"):
        one = pod.container(log_path="volume/one.log")
        eventually((place / "volume/one.log").exists, 10, "the log")
        one.stop()
        one.remove()
        pod.stop()
        pod.remove()
        plain_pods.made.remove(pod)
        assert os.path.ismount(place / "volume")


@pytest.mark.parametrize("path", ["../../escaped.log", "/escaped.log", "a/../../../escaped.log"])
def test_a_log_cannot_leave_its_directory(plain_pods: Pods, path: str) -> None:
    pod = plain_pods.run()
    with contextlib.suppress(grpc.RpcError):
        pod.container(["echo", "x"], log_path=path).ended()
    outside = [found for found in plain_pods.directory.rglob("escaped.log") if not found.is_relative_to(pod.config.log_directory)]
    assert not outside and not Path("/escaped.log").exists()


# ---- R20, R21, R22: who can reach the runtime ----

def test_streams_are_offered_on_the_loopback_only(subject: Subject, plain_pods: Pods) -> None:
    runtime = of_nodens(subject)
    one = plain_pods.run().container()
    request = plain_pods.pb.ExecRequest(container_id=one.id, cmd=["true"], stdout=True)
    assert plain_pods.runtime.Exec(request, timeout=10).url.startswith("http://127.0.0.1:")
    assert runtime.process
    mine = sockets_of(runtime.process.pid)
    listening = [line.split() for kind in ("tcp", "tcp6", "udp", "udp6")
                 for line in Path(f"/proc/{runtime.process.pid}/net/{kind}").read_text().splitlines()[1:]]
    ours = [fields[1] for fields in listening if fields[9] in mine and fields[3] in ("0A", "07")]
    assert ours and all(address.startswith("0100007F:") for address in ours), ours


def test_no_socket_is_abstract(subject: Subject, plain_pods: Pods) -> None:
    """CVE-2020-15257: abstract sockets belong to the network namespace, and a pod on the host's network reached the shim's."""
    runtime = of_nodens(subject)
    plain_pods.run().container(stdin=True)
    judged = set()
    for process, name in programs_of(runtime).items():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):    # a worker of the daemon that ended meanwhile
            mine = sockets_of(process)
            table = Path(f"/proc/{process}/net/unix").read_text().splitlines()[1:]
            abstract = [line for line in table if line.split()[6] in mine and line.split()[-1].startswith("@")]
            assert not abstract, f"{name}: {abstract}"
            judged.add(name)
    assert judged == {"nodens-cri", "nodens-mon"}


KNOCK = """
import socket, sys
one = socket.socket(socket.AF_UNIX)
one.settimeout(10)
one.connect(sys.argv[1])
one.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes(3) + b"\\x04" + bytes(5))
print(len(one.recv(100)))
"""


@contextlib.contextmanager
def opened(*paths: Path) -> Iterator[None]:
    """Modes as a careless administrator would leave them."""
    before = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0o777)
    try:
        yield
    finally:
        for path, mode in before.items():
            path.chmod(stat.S_IMODE(mode))


def test_only_root_is_answered_with_any_socket_mode(subject: Subject) -> None:
    runtime = of_nodens(subject)
    path = Path(subject.socket)
    assert "PermissionError" in as_nobody("python3", "-c", KNOCK, str(path)).stderr
    with opened(path, path.parent, runtime.directory.parent):
        done = as_nobody("python3", "-c", KNOCK, str(path))
    assert done.stdout.strip() in ("", "0"), done
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(str(path))
        one.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
        assert one.recv(100), "and root is"


READABLE = """
import os, sys
for line in sys.stdin.buffer.read().split(b"\\0"):
    if line and (os.access(line, os.R_OK, effective_ids=True) or os.access(line, os.X_OK, effective_ids=True)) and not os.path.isdir(line):
        print(os.fsdecode(line))
"""


def test_users_of_the_node_reach_nothing_of_pods_and_images(subject: Subject, pods: Pods) -> None:
    """CVE-2021-41103, CVE-2024-25621: a user of the node who knew a path executed setuid programs of images, and read their files."""
    runtime = of_nodens(subject)
    one = pods.run().container("cp /bin/busybox /setuid; chmod 4755 /setuid; echo secret >/secret; exec sleep 4321")
    eventually(lambda: one.execute("test -s /secret").code == 0, 15, "what is to be found")
    places = [runtime.directory / "state", runtime.directory / "run", runtime.store or runtime.directory / "images"]
    files = [os.path.join(base, name) for place in places for base, _, names in os.walk(place) for name in names]
    assert any(name.endswith("/bin/busybox") for name in files) and any(name.endswith("/secret")
                                                                        for name in files), f"the walk saw {len(files)} files"
    with opened(runtime.directory, runtime.directory.parent):    # directories above are not the runtime's
        reached = as_nobody("python3", "-c", READABLE, input="\0".join(files))
    assert reached.returncode == 0 and not reached.stdout, (
        f"{len(reached.stdout.splitlines())} files, as {reached.stdout[:500]}{reached.stderr}"
    )


# ---- R26: what a container inherits ----

def test_no_descriptor_of_the_node_reaches_a_container(pods: Pods) -> None:
    """CVE-2024-21626: a directory of the host was open in the container's first process.

    Standard input of nodens-cri is the null device on a mount of its own, whose path is "/" (nd_file_open_null()).
    """
    look = "for fd in /proc/self/fd/*; do [ -e $fd ] && echo $(readlink $fd) $(stat -L -c %F:%t:%T $fd); done; true"
    fine = re.compile(r"pipe:\[\d+\] |(/dev/null|/) character special file:1:3$|/proc/")
    one = pods.run().container(f"{look}; exec sleep 4321")
    eventually(lambda: len(one.log()) >= 3, 10, "its descriptors")
    for found in ([text for _, text in one.log()], one.output(look).splitlines(), one.output(["sh", "-c", look]).splitlines()):
        strange = [text for text in found if not fine.match(text)]
        assert not strange and len(found) <= 5, found
    assert one.output("cat /proc/1/cwd/etc/hostname >/dev/null; readlink /proc/self/cwd") == "/"


def test_a_working_directory_leads_through_no_descriptor_of_the_engine(pods: Pods, tmp_path: Path) -> None:
    """The same flaw from the other side: a working directory that goes through /proc/self/fd to the engine's open files."""
    (tmp_path / "planted").write_text("the host's")
    pod, above = pods.run(), "../" * 12
    for number in range(3, 11):
        with contextlib.suppress(grpc.RpcError):    # to refuse it is fine
            one = pod.container(f"test -e {above}{tmp_path}/planted && echo out; echo looked", name=f"n{number}",
                                working_dir=f"/proc/self/fd/{number}")
            one.ended()
            assert ("stdout", "out") not in one.log()


def at_a_terminal(pods: Pods, one: Container, command: list[str]) -> str:
    """The output of a command at a terminal, or the error."""
    url = pods.runtime.Exec(pods.pb.ExecRequest(container_id=one.id, cmd=command, tty=True, stdin=True, stdout=True), timeout=TIMEOUT).url
    streams = spdy.Streams(url, ["error", "stdin", "stdout", "resize"])
    said = streams.read("stdout").decode(errors="replace") + str(streams.verdict())
    streams.close()
    return said


@pytest.mark.parametrize("tty", [False, True])
def test_a_commands_working_directory_leads_through_no_descriptor_of_the_engine(subject: Subject, pods: Pods, tmp_path: Path,
                                                                                tty: bool) -> None:
    """CVE-2024-21626 by exec: the working directory is a link to an open file of the engine.

    None of the engine's open files may be a directory.
    """
    (tmp_path / "planted").write_text("the host's")
    one = pods.run().container(working_dir="/work")
    command = ["sh", "-c", f"test -e {'../' * 14}{tmp_path}/planted && echo out; echo in $(readlink /proc/self/cwd)"]
    place = Path(f"/proc/{one.pid()}/root/work")
    for number in range(24):
        place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
        place.symlink_to(f"/proc/self/fd/{number}")
        try:
            said = at_a_terminal(pods, one, command) if tty else str(one.execute(command))
        except grpc.RpcError as error:
            said = error.details()
        assert "out" not in said.split(), (number, said)
        if subject.name == "nodens-cri":
            assert "not accessible from the current namespace" not in said and ("Not a directory" in said
                                                                                or "No such file" in said), (number, said)


# ---- namespaces ----

ASTRAY = """#!/usr/bin/env python3
import json, os, sys
if "create" in sys.argv:
    path = sys.argv[sys.argv.index("--bundle") + 1] + "/config.json"
    spec = json.load(open(path))
    for namespace in spec["linux"]["namespaces"]:
        if namespace["type"] == "{kind}":
            namespace["path"] = "/proc/1/ns/{name}"
    json.dump(spec, open(path, "w"))
os.execv("{crun}", ["{crun}", *sys.argv[1:]])
"""


@pytest.mark.parametrize("kind", ["pid", "ipc"])
def test_a_container_in_the_wrong_namespace_is_not_made(subject: Subject, plain_pods: Pods, messages: runtimes.Messages, kind: str) -> None:
    """The pid of an ended process is reused, and the engine joins another process's namespace.

    Here the engine is misled on purpose.
    """
    runtime = of_nodens(subject)
    with runtimes.scratch() as directory:
        crun = "/usr/bin/crun" if runtimes.has_controllers() else str(runtimes.WITHOUT_CONTROLLERS)
        (directory / "astray").write_text(ASTRAY.format(kind=kind, name=kind, crun=crun))
        (directory / "astray").chmod(0o755)
        own = runtimes.NodensCri(directory / "r", messages,
                                 settings={"runtimeHandlers": json.dumps([{"name": "astray", "program": str(directory / "astray")}])})
        own.certificates = runtime.certificates
        client = own.start()
        made = Pods(client, subject.images.shell, directory, "cgroupfs")
        try:
            config = made.sandbox_config("pod", False, {}, {}, {}, {})
            pod = Pod(made, client.runtime.RunPodSandbox(made.pb.RunPodSandboxRequest(config=config, runtime_handler="astray"),
                                                         timeout=TIMEOUT).pod_sandbox_id, config)
            made.made.append(pod)
            error = refused(lambda: pod.container(namespaces={"pid": made.pb.CONTAINER}), grpc.StatusCode.INTERNAL)
            assert f"in the wrong namespace: {kind}:[" in error.details()
            assert not made.containers(pod_sandbox_id=pod.id)
        finally:
            made.clean()
            client.close()
            own.stop()


def test_a_shared_pid_namespace_is_joined_by_a_descriptor(subject: Subject, plain_pods: Pods) -> None:
    """A path by a process's number is another's when that process has ended before the engine opens it."""
    runtime = of_nodens(subject)
    pod = plain_pods.run(namespaces={"pid": plain_pods.pb.POD})
    first = pod.container(name="first")
    second = pod.container(name="second", namespaces={"pid": plain_pods.pb.TARGET, "target_id": first.id})
    assert runtime.process
    for one in (first, second):
        path = next(namespace["path"] for namespace in json.loads(specification(runtime, one))["linux"]["namespaces"]
                    if namespace["type"] == "pid")
        assert path.startswith(f"/proc/{runtime.process.pid}/fd/"), path
    assert os.stat(f"/proc/{first.pid()}/ns/pid").st_ino == os.stat(f"/proc/{second.pid()}/ns/pid").st_ino


# ---- known flaws of engines ----

# Runs crun; answers the self-test by creating a device at /dev of the bundle, through a link if it
# is one, or by refusing a link.
ANSWERING = """#!/bin/sh
case "$*" in *nodens-probe*) ;; *) exec {crun} "$@";; esac
for word; do test "$last" = --bundle && cd "$word/rootfs"; last=$word; done
{answer}
exit 1
"""


def test_an_engine_that_follows_a_link_at_dev_is_named_in_the_log(subject: Subject, messages: runtimes.Messages) -> None:
    """CVE-2026-47766 is detected by a self-test, not by a version.

    It is logged once at each start, also if the result is that of an earlier start.
    """
    of_nodens(subject)
    with runtimes.scratch() as directory:
        crun = "/usr/bin/crun" if runtimes.has_controllers() else str(runtimes.WITHOUT_CONTROLLERS)
        for name, answer in {"follows": "touch dev/null", "stays": "test -L dev || touch dev/null"}.items():
            (directory / name).write_text(ANSWERING.format(crun=crun, answer=answer))
            (directory / name).chmod(0o755)
        runtime = runtimes.NodensCri(directory / "r", messages,
                                     settings={"runtimeHandlers": json.dumps([{"name": name, "program": str(directory / name)}
                                                                              for name in ("follows", "stays")])})
        note = directory / "r/run/selftest"

        def told(handler: str) -> int:
            return sum("OCI runtime has a known flaw" in line and f"handler={handler} " in line
                       for line in runtime.log.read_text().splitlines())
        for starts in (1, 2):
            client = runtime.start()
            try:
                eventually(lambda: told("follows") == starts and note.exists(), 60, "the log line about the engine")  # noqa: B023
                info = json.loads(client.runtime.Status(client.pb.StatusRequest(verbose=True), timeout=TIMEOUT).info["info"])
                assert "follows a link at /dev" in info["engineFlaws"]["follows"] and "stays" not in info["engineFlaws"]
                assert told("stays") == 0
            finally:
                client.close()
                runtime.stop()
        assert "\nflaw follows: follows a link at /dev" in note.read_text()
