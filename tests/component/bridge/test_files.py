# SPDX-License-Identifier: Apache-2.0
"""What a pod with a user namespace sees and does on a bridged volume. The IDs on the disk are those that the pod uses."""
import errno
import fcntl
import mmap
import os
import re
import signal
import stat
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from nodenstest.bridged import IDS, Volume

USER, GROUP = 1000, 1001


def owner(path: os.PathLike[str] | str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_uid, found.st_gid


def write(name: str, text: str = "") -> None:
    with open(name, "w") as file:
        file.write(text)


def read(name: str) -> str:
    with open(name) as file:
        return file.read()


def fails(number: int, function: Callable[[], object]) -> None:
    with pytest.raises(OSError) as caught:
        function()
    assert caught.value.errno == number, caught.value


def shared(volume: Volume) -> Volume:
    """Everybody may create files."""
    volume.source.chmod(0o1777)
    return volume


def test_files_of_roots_and_users_belong_to_them_on_the_disk(volume: Volume) -> None:
    shared(volume).run(lambda: write("root"))
    volume.run(lambda: write("user"), USER, GROUP)
    assert owner(volume.source / "root") == (0, 0) and owner(volume.source / "user") == (USER, GROUP)
    assert volume.run(lambda: [owner("root"), owner("user")]) == [(0, 0), (USER, GROUP)]


def test_a_file_of_the_disk_has_its_owner_in_the_pod(volume: Volume) -> None:
    (volume.source / "given").write_text("x")
    os.chown(volume.source / "given", USER, GROUP)
    assert volume.run(lambda: owner("given")) == (USER, GROUP)


def test_an_owner_that_the_pod_does_not_have_is_nobody_and_its_file_cannot_be_taken(volume: Volume) -> None:
    path = volume.source / "foreign"
    path.write_text("secret")
    path.chmod(0o600)
    os.chown(path, IDS + 5, IDS + 5)
    assert volume.run(lambda: owner("foreign")) == (65534, 65534)
    fails(errno.EACCES, lambda: volume.run(lambda: read("foreign")))
    fails(errno.EPERM, lambda: volume.run(lambda: os.chown("foreign", 0, 0)))
    fails(errno.EOVERFLOW, lambda: volume.run(lambda: os.chmod("foreign", 0o666)))
    assert owner(path) == (IDS + 5, IDS + 5)


def test_root_of_the_pod_changes_owners_and_users_do_not(volume: Volume) -> None:
    shared(volume).each(lambda: write("a"), lambda: os.chown("a", USER, GROUP))
    assert owner(volume.source / "a") == (USER, GROUP)
    fails(errno.EPERM, lambda: volume.run(lambda: os.chown("a", 0, 0), USER, GROUP))


def test_a_user_gives_a_file_to_a_group_of_its_own_only(volume: Volume) -> None:
    shared(volume).run(lambda: write("a"), USER, GROUP)
    volume.run(lambda: os.chown("a", -1, 5), USER, GROUP, (5,))
    assert owner(volume.source / "a") == (USER, 5)
    fails(errno.EPERM, lambda: volume.run(lambda: os.chown("a", -1, 6), USER, GROUP, (5,)))


def test_modes_and_the_umask_apply(volume: Volume) -> None:
    def make() -> None:
        os.umask(0o027)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o666))
        os.mkdir("directory", 0o777)
        os.mkfifo("fifo", 0o666)
    volume.run(make)
    modes = {name: stat.S_IMODE(os.stat(volume.source / name).st_mode) for name in ("file", "directory", "fifo")}
    assert modes == {"file": 0o640, "directory": 0o750, "fifo": 0o640}


def test_permissions_are_those_of_the_caller(volume: Volume) -> None:
    shared(volume).each(lambda: write("private", "x"), lambda: os.chmod("private", 0o600), lambda: os.mkdir("closed", 0o700))
    fails(errno.EACCES, lambda: volume.run(lambda: read("private"), USER, GROUP))
    fails(errno.EACCES, lambda: volume.run(lambda: os.listdir("closed"), USER, GROUP))
    fails(errno.EACCES, lambda: volume.run(lambda: write("closed/x"), USER, GROUP))


def test_a_supplementary_group_gives_access(volume: Volume) -> None:
    volume.each(lambda: os.mkdir("shared"), lambda: os.chown("shared", 0, 7), lambda: os.chmod("shared", 0o2770))
    volume.run(lambda: write("shared/a"), USER, GROUP, (7,))
    assert owner(volume.source / "shared/a") == (USER, 7), "the directory's group is inherited"


def test_a_sticky_directory_protects_the_files_of_others(volume: Volume) -> None:
    shared(volume).run(lambda: write("a"), USER, GROUP)
    fails(errno.EPERM, lambda: volume.run(lambda: os.unlink("a"), USER + 1, GROUP))
    fails(errno.EPERM, lambda: volume.run(lambda: os.rename("a", "b"), USER + 1, GROUP))
    volume.run(lambda: os.unlink("a"), USER, GROUP)


def test_a_directory_with_setgid_gives_its_group_and_the_bit(volume: Volume) -> None:
    volume.each(lambda: os.mkdir("d"), lambda: os.chown("d", 0, 9), lambda: os.chmod("d", 0o2777))
    volume.each(lambda: write("d/file"), lambda: os.mkdir("d/sub"), uid=USER, gid=GROUP)
    assert owner(volume.source / "d/file") == (USER, 9)
    assert os.stat(volume.source / "d/sub").st_mode & stat.S_ISGID


def test_a_write_by_another_user_removes_set_user_id(volume: Volume) -> None:
    shared(volume).each(lambda: write("tool", "x"), lambda: os.chmod("tool", 0o4777))

    def change() -> None:
        with open("tool", "a") as file:
            file.write("y")
    volume.run(change, USER, GROUP)
    assert not os.stat(volume.source / "tool").st_mode & stat.S_ISUID


def test_setgid_of_a_group_that_is_not_the_users_is_not_set(volume: Volume) -> None:
    shared(volume).run(lambda: write("a"), USER, GROUP)
    volume.run(lambda: os.chown("a", USER, 5))
    volume.run(lambda: os.chmod("a", 0o2755), USER, GROUP)
    assert not os.stat(volume.source / "a").st_mode & stat.S_ISGID
    volume.run(lambda: os.chmod("a", 0o2755))
    assert os.stat(volume.source / "a").st_mode & stat.S_ISGID, "root of the pod may"


def test_data_is_the_same_on_both_sides(volume: Volume) -> None:
    text = os.urandom(300_000)

    def put() -> None:
        with open("data", "wb") as file:
            file.write(text)
    volume.run(put)
    assert (volume.source / "data").read_bytes() == text
    (volume.source / "data").write_bytes(text[::-1])

    def get() -> bytes:
        with open("data", "rb") as file:
            return file.read()
    assert volume.run(get) == text[::-1], "an open sees what others have closed"


def test_append_truncate_sparse_and_seek(volume: Volume) -> None:
    def work() -> tuple[bytes, int, int]:
        fd = os.open("a", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.write(fd, b"one")
        os.write(fd, b"two")
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, b"three")
        text = os.pread(fd, 100, 0)
        os.ftruncate(fd, 3)
        os.truncate("a", 1 << 20)
        hole = os.lseek(fd, 0, os.SEEK_HOLE)
        os.close(fd)
        with open("a", "w"):
            pass
        return text, hole, os.stat("a").st_size
    text, hole, size = volume.run(work)
    assert text == b"onetwothree" and 0 < hole <= 1 << 20 and size == 0


def test_memory_maps_share_data(volume: Volume) -> None:
    def work() -> bytes:
        fd = os.open("m", os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, 8192)
        with mmap.mmap(fd, 8192) as memory:
            memory[4096:4101] = b"hello"
            memory.flush()
            return os.pread(fd, 5, 4096)
    assert volume.run(work) == b"hello" and (volume.source / "m").read_bytes()[4096:4101] == b"hello"


def test_allocate_copy_and_sync(volume: Volume) -> None:
    def work() -> None:
        fd = os.open("a", os.O_RDWR | os.O_CREAT)
        os.posix_fallocate(fd, 0, 10000)
        os.pwrite(fd, b"text", 5000)
        os.fsync(fd)
        os.fdatasync(fd)
        other = os.open("b", os.O_RDWR | os.O_CREAT)
        assert os.copy_file_range(fd, other, 4, 5000, 0) == 4
        os.sync()
    volume.run(work)
    assert (volume.source / "b").read_bytes() == b"text" and (volume.source / "a").stat().st_size == 10000


def test_names_are_linked_renamed_exchanged_and_removed(volume: Volume) -> None:
    def work() -> None:
        write("a", "A")
        write("b", "B")
        os.link("a", "a2")
        assert os.stat("a").st_nlink == 2 and os.stat("a").st_ino == os.stat("a2").st_ino
        with open("b") as old:
            os.rename("a", "b")
            assert old.read() == "B" and read("b") == "A"
        os.symlink("b", "s")
        assert os.readlink("s") == "b" and read("s") == "A"
        os.mkdir("d")
        os.rename("b", "d/b")
        fails(errno.ENOTEMPTY, lambda: os.rmdir("d"))
        fails(errno.EEXIST, lambda: os.mkdir("d"))
        fails(errno.ENOENT, lambda: os.unlink("b"))
        os.unlink("d/b")
        os.rmdir("d")
        assert sorted(os.listdir()) == ["a2", "s"]
    volume.run(work)


def move(flag: str) -> tuple[str, str]:
    write("a", "A")
    write("b", "B")
    subprocess.run(["mv", flag, "--no-copy", "a", "b"], check=False)
    return read("a"), read("b")


def test_two_names_are_exchanged(volume: Volume) -> None:
    assert volume.run(lambda: move("--exchange")) == ("B", "A")


def test_a_rename_does_not_replace(volume: Volume) -> None:
    assert volume.run(lambda: move("--no-clobber")) == ("A", "B")


def test_a_file_without_a_name_works(volume: Volume) -> None:
    def work() -> None:
        fd = os.open("a", os.O_RDWR | os.O_CREAT)
        os.unlink("a")
        os.write(fd, b"still here")
        os.fchmod(fd, 0o600)
        assert os.pread(fd, 100, 0) == b"still here" and os.fstat(fd).st_nlink == 0 and os.fstat(fd).st_size == 10
        unnamed = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o644)
        os.write(unnamed, b"x")
        assert os.listdir() == []
    volume.run(work)


def test_large_directories_are_read_completely(volume: Volume) -> None:
    names = {f"file-{number:04}-{'x' * (number % 200)}" for number in range(3000)}
    for name in names:
        (volume.source / name).touch()
    assert set(volume.run(os.listdir)) == names

    def sizes() -> int:
        with os.scandir() as entries:
            return sum(entry.stat().st_nlink for entry in entries)
    assert volume.run(sizes) == 3000


def test_no_entry_of_a_directory_is_read_twice(disk: Volume, tmp_path: Path) -> None:
    """What a reply has no room for would be read again, by NFS from the server."""
    for number in range(1000):
        (disk.source / f"{number}{'x' * (number % 100)}").touch()
    trace = tmp_path / "trace"
    with subprocess.Popen(["strace", "-f", "-e", "trace=getdents64", "-o", trace, "-p", str(disk.server())],
                          stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None and "attached" in tracer.stderr.readline()
        assert disk.run(lambda: sum(1 for entry in os.scandir() if entry.stat())) == 1000
        tracer.terminate()
    assert sum(map(int, re.findall(r"/\* (\d+) entries \*/", trace.read_text()))) == 1002


def test_long_names_and_links_have_the_limits_of_the_filesystem(volume: Volume) -> None:
    def work() -> None:
        write("n" * 255)
        fails(errno.ENAMETOOLONG, lambda: write("n" * 256))
        os.symlink("t" * 4000, "long")
        assert len(os.readlink("long")) == 4000
        path = "d"
        os.mkdir(path)
        for _ in range(100):
            path += "/d"
            os.mkdir(path)
        write(path + "/f", "deep")
        assert read(path + "/f") == "deep"
    volume.run(work)


def test_sockets_and_fifos_connect_processes_of_the_pod(volume: Volume) -> None:
    import socket

    def work() -> bytes:
        server = socket.socket(socket.AF_UNIX)
        server.bind("s")
        server.listen()
        client = socket.socket(socket.AF_UNIX)
        client.connect("s")
        client.send(b"by socket")
        os.mkfifo("f")
        reader = os.open("f", os.O_RDONLY | os.O_NONBLOCK)
        writer = os.open("f", os.O_WRONLY)
        os.write(writer, b" and fifo")
        return server.accept()[0].recv(100) + os.read(reader, 100)
    assert volume.run(work) == b"by socket and fifo"


def test_times_are_set_and_kept(volume: Volume) -> None:
    def work() -> tuple[int, int]:
        write("a")
        os.utime("a", ns=(1_000_000_001, 2_000_000_002))
        found = os.stat("a")
        return found.st_atime_ns, found.st_mtime_ns
    assert volume.run(work) == (1_000_000_001, 2_000_000_002)


def test_the_size_of_the_filesystem_is_that_of_the_disk(volume: Volume) -> None:
    inside, outside = volume.run(lambda: os.statvfs(".")), os.statvfs(volume.source)
    assert (inside.f_blocks * inside.f_frsize, inside.f_files, inside.f_namemax) == (
        outside.f_blocks * outside.f_frsize, outside.f_files, outside.f_namemax)


def test_extended_attributes_of_users_are_kept(volume: Volume) -> None:
    def work() -> tuple[bytes, list[str]]:
        write("a")
        os.setxattr("a", "user.color", b"blue", os.XATTR_CREATE)
        fails(errno.EEXIST, lambda: os.setxattr("a", "user.color", b"red", os.XATTR_CREATE))
        os.setxattr("a", "user.gone", b"")
        os.removexattr("a", "user.gone")
        fails(errno.ENODATA, lambda: os.getxattr("a", "user.gone"))
        return os.getxattr("a", "user.color"), os.listxattr("a")
    assert volume.run(work) == (b"blue", ["user.color"])
    assert os.getxattr(volume.source / "a", "user.color") == b"blue"


def acl(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def test_access_control_lists_name_the_pods_users(volume: Volume) -> None:
    none = 0xffffffff
    entries = acl((1, 6, none), (2, 4, USER), (4, 0, none), (16, 4, none), (32, 0, none))
    shared(volume).each(lambda: write("a", "text"), lambda: os.setxattr("a", "system.posix_acl_access", entries))
    assert os.getxattr(volume.source / "a", "system.posix_acl_access") == entries
    assert volume.run(lambda: read("a"), USER, GROUP) == "text"
    fails(errno.EACCES, lambda: volume.run(lambda: read("a"), USER + 1, GROUP))


def test_a_default_list_is_inherited(volume: Volume) -> None:
    none = 0xffffffff
    entries = acl((1, 7, none), (2, 7, USER), (4, 5, none), (16, 7, none), (32, 0, none))
    volume.each(lambda: os.mkdir("d"), lambda: os.setxattr("d", "system.posix_acl_default", entries), lambda: write("d/a"))
    assert struct.pack("<HHI", 2, 7, USER) in os.getxattr(volume.source / "d/a", "system.posix_acl_access")


def test_file_capabilities_are_those_of_the_pods_root(volume: Volume) -> None:
    value = struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)
    volume.each(lambda: write("tool"), lambda: os.setxattr("tool", "security.capability", value))
    assert len(os.getxattr(volume.source / "tool", "security.capability")) in (20, 24)
    assert volume.run(lambda: os.getxattr("tool", "security.capability"))[4:20] == value[4:20]


def locked(path: os.PathLike[str]) -> bool:
    with open(path, "r+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        return False


def test_locks_are_seen_on_both_sides(volume: Volume) -> None:
    (volume.source / "l").write_text("text")
    reader, writer = os.pipe()

    def hold() -> None:
        with open("l", "r+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            os.read(reader, 1)
    holder = volume.start(hold)
    while not locked(volume.source / "l"):
        pass

    def get_nothing() -> None:
        with open("l", "r+") as file:
            fails(errno.EAGAIN, lambda: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB))
    volume.run(get_nothing)

    def wait() -> str:
        with open("l", "r+") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            return "got it"
    waiter = volume.start(wait)
    os.write(writer, b"x")
    holder.result()
    assert waiter.result() == "got it"
    assert not locked(volume.source / "l")


def test_a_wait_for_a_lock_can_be_interrupted(volume: Volume) -> None:
    (volume.source / "l").write_text("text")
    with open(volume.source / "l", "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)

        def wait() -> str:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            signal.signal(signal.SIGALRM, stop)
            with open("l", "r+") as own:
                try:
                    fcntl.lockf(own, fcntl.LOCK_EX)
                except TimeoutError:
                    return "interrupted"
            return "locked"

        def stop(*_: object) -> None:
            raise TimeoutError
        assert volume.run(wait) == "interrupted"


def test_a_wait_for_a_lock_can_be_interrupted_at_any_moment(volume: Volume) -> None:
    """Also before it has begun: a process in the kernel ends when its request ends, and a lost interrupt would keep it for ever."""
    (volume.source / "l").write_text("text")
    with open(volume.source / "l", "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)

        def stop(*_: object) -> None:
            raise TimeoutError

        def wait() -> int:
            signal.signal(signal.SIGALRM, stop)
            interrupted = 0
            with open("l", "r+") as own:
                for number in range(600):
                    try:
                        # the second signal is for the case that the first one comes before the system call
                        signal.setitimer(signal.ITIMER_REAL, 0.00002 + 0.000004 * (number % 60), 0.02)
                        fcntl.lockf(own, fcntl.LOCK_EX)
                    except TimeoutError:
                        interrupted += 1
            return interrupted
        assert volume.run(wait) == 600


def test_flock_locks_belong_to_the_open_file(volume: Volume) -> None:
    def work() -> None:
        write("l")
        with open("l", "r+") as first, open("l", "r+") as second:
            fcntl.flock(first, fcntl.LOCK_EX)
            fails(errno.EAGAIN, lambda: fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB))
            fcntl.flock(first, fcntl.LOCK_UN)
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    volume.run(work)


def test_a_full_filesystem_says_so(namespace: str) -> None:
    from contextlib import ExitStack

    from nodenstest import bridged
    with ExitStack() as stack:
        base = stack.enter_context(bridged.directory())
        (base / "small").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=1777", "small", base / "small"], check=True)
        stack.callback(lambda: subprocess.run(["umount", "--lazy", base / "small"], check=True))
        volume = stack.enter_context(bridged.bridge(base / "small", base / "target", namespace))
        fails(errno.ENOSPC, lambda: volume.run(lambda: write("a", "x" * 200_000)))


def test_a_single_file_is_a_volume_too(namespace: str) -> None:
    from contextlib import ExitStack

    from nodenstest import bridged
    with ExitStack() as stack:
        base = stack.enter_context(bridged.directory())
        (base / "file").write_text("text")
        (base / "target").touch()
        subprocess.run([bridged.program("src/bridge/nodens-bridge"), "--userns", namespace, base / "file", base / "target"], check=True)
        volume = Volume(base / "file", base / "target", namespace)
        stack.callback(lambda: subprocess.run(["umount", "--lazy", base / "target"], check=True))

        def work() -> str:
            with open(volume.target, "a") as file:
                file.write(" more")
            return read(str(volume.target))
        assert Volume(base / "file", base, namespace).run(work) == "text more"
        assert (base / "file").read_text() == "text more"
