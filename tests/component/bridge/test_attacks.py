# SPDX-License-Identifier: Apache-2.0
"""Root of a pod, and users of the host, against a bridged volume and the processes behind it."""
import contextlib
import ctypes
import errno
import os
import re
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import volume_of
from nodenstest import bridged
from nodenstest.bridged import Volume

SECRET = "the host's secret"
libc = ctypes.CDLL(None, use_errno=True)


def fails(function: Callable[[], object], *numbers: int) -> None:
    with pytest.raises(OSError) as caught:
        function()
    assert not numbers or caught.value.errno in numbers, caught.value


def read(name: str) -> str:
    with open(name) as file:
        return file.read()


@pytest.fixture
def secret(disk: Volume) -> Path:
    """A file of the host's root beside the volume."""
    path = disk.source.parent / "secret"
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


# ---- out of the volume ----

def test_a_symbolic_link_leads_where_the_pod_may_go_and_not_the_server(disk: Volume, secret: Path) -> None:
    disk.each(lambda: os.symlink(str(secret), "link"), lambda: os.symlink("../secret", "up"))
    fails(lambda: disk.run(lambda: read("link")), errno.EACCES)
    fails(lambda: disk.run(lambda: read("up")), errno.EACCES)
    assert disk.run(lambda: os.readlink("link")) == str(secret), "the link itself is the pod's"


def test_a_directory_that_becomes_a_link_during_lookups_leads_nowhere(disk: Volume, secret: Path) -> None:
    """From the host's side too: another client of the same storage is as hostile as the pod."""
    disk.each(lambda: os.mkdir("inside"), lambda: os.symlink(str(disk.source.parent), "out"), lambda: os.rename("inside", "place"))
    (disk.source / "place/secret").write_text("harmless")
    (disk.source / "place/secret").chmod(0o644)
    swapper = subprocess.Popen([sys.executable, "-c", f"""
import ctypes, os
os.chdir({str(disk.source)!r})
libc = ctypes.CDLL(None)
while not os.path.exists("stop"):
    libc.renameat2(-100, b"place", -100, b"out", 2)
"""])

    def look() -> set[str]:
        found = set()
        for _ in range(20_000):
            with contextlib.suppress(OSError):
                found.add(read("place/secret"))
        return found
    try:
        assert disk.run(look) <= {"harmless"}
    finally:
        (disk.source / "stop").touch()
        swapper.wait()


def test_names_with_a_slash_or_dots_do_not_exist(disk: Volume, secret: Path) -> None:
    fails(lambda: disk.run(lambda: os.unlink("../secret")), errno.EACCES, errno.EPERM)
    fails(lambda: disk.run(lambda: os.rename("../secret", "mine")))
    fails(lambda: disk.run(lambda: os.link(str(secret), "mine")))
    assert secret.read_text() == SECRET


def handle_of(path: Path) -> bytes:
    room, mount = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128)), ctypes.c_int()
    assert libc.name_to_handle_at(-100, os.fsencode(path), room, ctypes.byref(mount), 0) == 0
    return room.raw[:8 + struct.unpack_from("I", room.raw)[0]]


def test_a_file_handle_of_the_host_does_not_open_a_file(disk: Volume, secret: Path) -> None:
    handle = handle_of(secret)

    def use() -> None:
        fd = os.open(".", os.O_RDONLY)
        if libc.open_by_handle_at(fd, ctypes.create_string_buffer(handle), 0) < 0:
            raise OSError(ctypes.get_errno(), "open_by_handle_at")
    fails(lambda: disk.run(use), errno.EPERM, errno.ESTALE, errno.EOPNOTSUPP, errno.EINVAL)


def test_a_mount_below_the_volume_is_not_in_it(namespace: str) -> None:
    with ExitStack() as stack:
        base = stack.enter_context(bridged.directory())
        (base / "source/below").mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "other", base / "source/below"], check=True)
        stack.callback(lambda: subprocess.run(["umount", base / "source/below"], check=True))
        (base / "source/below/secret").write_text(SECRET)
        volume = stack.enter_context(bridged.bridge(base / "source", base / "target", namespace))
        assert volume.run(lambda: os.listdir("below")) == []


# ---- what the pod's root must not make ----

@pytest.mark.parametrize("device", [stat.S_IFCHR, stat.S_IFBLK])
def test_device_nodes_cannot_be_made(disk: Volume, device: int) -> None:
    fails(lambda: disk.run(lambda: os.mknod("device", device | 0o666, os.makedev(1, 3))), errno.EPERM)
    assert not (disk.source / "device").exists()


def test_a_device_node_of_the_storage_is_not_a_device_in_the_pod(disk: Volume) -> None:
    os.mknod(disk.source / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.chmod(disk.source / "null", 0o666)
    fails(lambda: disk.run(lambda: read("null")), errno.EACCES)


@pytest.mark.parametrize("name", ["security.selinux", "security.ima", "security.evil", "trusted.overlay.opaque", "system.nfs4_acl",
                                  "btrfs.compression"])
def test_attributes_that_the_host_trusts_cannot_be_set(disk: Volume, name: str) -> None:
    disk.run(lambda: os.close(os.open("a", os.O_CREAT)))
    fails(lambda: disk.run(lambda: os.setxattr("a", name, b"evil")), errno.EOPNOTSUPP, errno.EPERM)
    assert name not in os.listxattr(disk.source / "a")


def test_attributes_of_the_host_are_not_shown(disk: Volume) -> None:
    (disk.source / "a").touch()
    os.setxattr(disk.source / "a", "trusted.secret", b"x")
    os.setxattr(disk.source / "a", "user.plain", b"x")
    assert disk.run(lambda: os.listxattr("a")) == ["user.plain"]


def test_flags_of_the_filesystem_cannot_be_changed(disk: Volume) -> None:
    import fcntl
    disk.run(lambda: os.close(os.open("a", os.O_CREAT)))

    def immutable() -> None:
        fd = os.open("a", os.O_RDONLY)
        fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0x10))         # FS_IOC_SETFLAGS, FS_IMMUTABLE_FL
    fails(lambda: disk.run(immutable), errno.ENOTTY, errno.ENOSYS, errno.EPERM)


def test_a_program_with_set_user_id_gives_a_user_of_the_host_nothing(disk: Volume) -> None:
    """Only processes in the pod's user namespace can use the mount at all."""
    disk.each(lambda: os.close(os.open("tool", os.O_CREAT | os.O_WRONLY)), lambda: os.chmod("tool", 0o4755))
    for user in (12345, 0):
        pid = os.fork()
        if pid == 0:
            os.setresuid(user, user, user)
            try:
                os.stat(disk.target / "tool")
            except PermissionError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0, f"user {user} of the host is refused"


def test_another_pod_does_not_get_in(disk: Volume) -> None:
    (disk.source / "a").write_text("text")
    with bridged.user_namespace(first=bridged.FIRST * 2) as other:
        stranger = Volume(disk.source, disk.target.parent, other)
        fails(lambda: stranger.run(lambda: os.listdir(disk.target)), errno.EACCES)
        fails(lambda: stranger.run(lambda: read(str(disk.target / "a"))), errno.EACCES)


def test_a_user_below_the_pods_own_user_namespace_has_its_rights_only(disk: Volume) -> None:
    (disk.source / "a").write_text("text")
    os.chown(disk.source / "a", 5, 5)
    os.chmod(disk.source / "a", 0o600)

    def nested() -> str:
        os.unshare(os.CLONE_NEWUSER)
        return read("a")
    fails(lambda: disk.run(nested, 1000, 1000), errno.EACCES)


# ---- against the server ----

def test_a_fifo_or_a_socket_does_not_stop_the_server(disk: Volume) -> None:
    disk.each(*[lambda number=number: os.mkfifo(f"fifo{number}") for number in range(50)])
    writers = [disk.start(lambda number=number: os.open(f"fifo{number}", os.O_WRONLY)) for number in range(50)]
    disk.each(lambda: os.mkdir("d"), lambda: os.rmdir("d"))
    disk.each(*[lambda number=number: os.close(os.open(f"fifo{number}", os.O_RDONLY)) for number in range(50)])
    for one in writers:
        one.result()


def test_more_waits_for_locks_than_there_are_threads_leave_the_rest_working(disk: Volume) -> None:
    import fcntl
    (disk.source / "l").touch()
    with open(disk.source / "l", "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)

        def wait() -> str:
            with open("l", "r+") as own:
                fcntl.lockf(own, fcntl.LOCK_EX)
            return "locked"
        waiters = [disk.start(wait) for _ in range(100)]
        time.sleep(0.5)
        disk.each(lambda: os.mkdir("d"), lambda: os.rmdir("d"))
    results = []
    for one in waiters:
        try:
            results.append(one.result())
        except OSError as error:
            results.append(errno.errorcode[error.errno or 0])
    assert set(results) <= {"locked", "ENOLCK"} and results.count("locked") >= 64


def test_many_files_use_bounded_descriptors(disk: Volume) -> None:
    def walk() -> int:
        for number in range(6000):
            os.close(os.open(f"file{number}", os.O_CREAT))
        return sum(os.stat(f"file{number}").st_nlink for number in range(6000))
    assert disk.run(walk) == 6000
    assert len(os.listdir(f"/proc/{disk.server()}/fd")) < 2500


def test_many_open_files_end_in_an_error_and_not_in_the_servers_end(disk: Volume) -> None:
    def open_many() -> str:
        import resource
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        fds: list[int] = []
        try:
            while len(fds) < 70_000:
                fds.append(os.open("same", os.O_CREAT | os.O_RDONLY))
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        return f"{len(fds)} files"
    assert disk.run(open_many) in ("ENFILE", "EMFILE")
    disk.each(lambda: os.mkdir("d"), lambda: os.rmdir("d"))


def test_values_of_the_largest_size_pass_and_larger_ones_do_not(disk: Volume) -> None:
    disk.run(lambda: os.close(os.open("a", os.O_CREAT)))
    for size in (65536, 65537):
        fails(lambda size=size: disk.run(lambda: os.setxattr("a", "user.big", bytes(size))),
              errno.E2BIG, errno.ENOSPC)          # ENOSPC: ext4 takes at most a block
    disk.run(lambda: os.setxattr("a", "user." + "n" * 250, b"x"))
    disk.run(lambda: os.setxattr("a", "user.some", bytes(2000)))


def test_the_pods_root_cannot_signal_or_trace_the_processes(disk: Volume) -> None:
    for pid in disk.family():
        fails(lambda pid=pid: disk.run(lambda: os.kill(pid, 9)), errno.EPERM)
        fails(lambda pid=pid: disk.run(lambda: os.listdir(f"/proc/{pid}/fd")), errno.EACCES)
        fails(lambda pid=pid: disk.run(lambda: os.open(f"/proc/{pid}/mem", os.O_RDONLY)), errno.EACCES)


# ---- what a captured server could do ----

def status(pid: int, name: str) -> str:
    found = re.search(rf"^{name}:\s*(\S+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return found[1]


KEPT = {0: "chown", 1: "dac_override", 2: "dac_read_search", 3: "fowner", 4: "fsetid", 6: "setgid", 7: "setuid", 21: "sys_admin",
        31: "setfcap"}


def test_the_processes_have_few_capabilities_and_a_filter(disk: Volume) -> None:
    for pid in disk.family():
        permitted = int(status(pid, "CapPrm"), 16)
        assert permitted == sum(1 << bit for bit in KEPT), hex(permitted)
        assert (status(pid, "CapBnd"), status(pid, "Seccomp"), status(pid, "NoNewPrivs")) == ("0000000000000000", "2", "1")


def test_without_passthrough_the_processes_do_not_have_sys_admin(namespace: str) -> None:
    with ExitStack() as stack:
        volume = volume_of("copied", namespace, stack)
        assert not int(status(volume.server(), "CapPrm"), 16) & 1 << 21


def test_the_processes_see_an_empty_root(disk: Volume) -> None:
    for pid in disk.family():
        assert os.listdir(f"/proc/{pid}/root") == []
        assert len(Path(f"/proc/{pid}/mountinfo").read_text().splitlines()) == 1


def test_nothing_is_inherited_but_standard_error(namespace: str) -> None:
    with socket.socket(socket.AF_UNIX) as given, ExitStack() as stack:
        os.set_inheritable(given.fileno(), True)
        volume = volume_of("disk", namespace, stack)
        links = []
        for entry in Path(f"/proc/{volume.server()}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):        # a thread has closed it meanwhile
                links.append(os.readlink(entry))
        assert links and os.readlink(f"/proc/self/fd/{given.fileno()}") not in links


@pytest.fixture
def misused(namespace: str) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    with bridged.directory() as base:
        (base / "source").mkdir()
        (base / "target").mkdir()

        def run(*options: str) -> subprocess.CompletedProcess[str]:
            words = [word.format(source=base / "source", target=base / "target", namespace=namespace) for word in options]
            return subprocess.run([str(bridged.program("src/bridge/nodens-bridge")), *words], check=False, capture_output=True, text=True,
                                  timeout=bridged.DEADLINE)
        yield run


@pytest.mark.parametrize(("options", "said"), [
    (("{source}",), "SOURCE and TARGET are required"),
    (("{source}", "{target}"), "one of --userns and --idmap is required"),
    (("--userns", "{namespace}", "--idmap", "{source}", "{target}"), "one of --userns and --idmap is required"),
    (("--userns", "/proc/self/ns/net", "{source}", "{target}"), "join the pod's user namespace: Invalid argument"),
    (("--userns", "/absent", "{source}", "{target}"), "open '/absent': No such file or directory"),
    (("--userns", "{namespace}", "{source}/absent", "{target}"), "absent': No such file or directory"),
    (("--userns", "{namespace}", "{source}", "{target}/absent"), "absent': No such file or directory"),
    (("--userns", "{namespace}", "--as", "nobody", "{source}", "{target}"), "invalid value 'nobody' of --as; use root, caller or owner"),
    (("--userns", "{namespace}", "--force-owner", "5", "{source}", "{target}"), "invalid value '5' of --force-owner; use UID:GID"),
])
def test_a_wrong_command_line_is_refused_with_the_reason(misused: Callable[..., subprocess.CompletedProcess[str]],
                                                         options: tuple[str, ...], said: str) -> None:
    done = misused(*options)
    assert done.returncode != 0 and said in done.stderr, done.stderr
