# SPDX-License-Identifier: Apache-2.0
"""Storage that pods get volumes from, each kind with its real server and its real client.

    with storage.mounted("nfs4") as place:
        (place.client / "file").write_text("x")      # through the client
        (place.server / "file").read_text()          # what the server has

NFS, SMB and 9p need a guest whose kernel has them (`uml-nft`); xfs and btrfs need a kernel that has them, and `tools/dev root storage`.
"""
import contextlib
import ctypes
import errno
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from nodenstest.bridged import wait_until
from nodenstest.registry_server import program

DEADLINE = 60
S3_PORT, NINE_PORT = 7070, 5640
S3_KEY, S3_SECRET = "nodens", "storage-test"
IMAGE_BYTES = 1 << 30
SMB_USER, SMB_PASSWORD = "pods", "storage-test"


@dataclass(frozen=True)
class Place:
    """A directory through a client, and the same at its server; the two are one directory where there is no server."""

    client: Path
    server: Path


def run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}"
    return done.stdout


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@contextlib.contextmanager
def process(*command: str | Path, **options: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server or a client that runs in the foreground."""
    options.setdefault("stdin", subprocess.DEVNULL)
    one = subprocess.Popen([str(word) for word in command], **options)     # type: ignore[call-overload]
    try:
        yield one
    finally:
        one.terminate()
        try:
            one.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()


@contextlib.contextmanager
def mount_point(base: Path) -> Iterator[Path]:
    target = base / "client"
    target.mkdir()
    try:
        yield target
    finally:
        # not lazily: the server ends next, and a client that still wants to say goodbye would wait for it
        subprocess.run(["umount", str(target)], check=False, capture_output=True, timeout=DEADLINE)


def is_mounted(path: Path) -> bool:
    return subprocess.run(["mountpoint", "-q", str(path)], check=False).returncode == 0


@contextlib.contextmanager
def driver(target: Path, *command: str | Path, **options: int) -> Iterator[None]:
    """A FUSE filesystem's process in the foreground, from when it is mounted."""
    with process(*command, **options):
        wait_until(lambda: is_mounted(target), f"the mount of {command[0]}")
        yield


# ---- one function per kind: starts the server, mounts, and gives both directories ----

def local(base: Path, stack: ExitStack) -> Place:
    (base / "data").mkdir()
    return Place(base / "data", base / "data")


def tmpfs(base: Path, stack: ExitStack) -> Place:
    target = stack.enter_context(mount_point(base))
    run("mount", "-t", "tmpfs", "-o", "size=1g", "storage", target)
    return Place(target, target)


def overlay(base: Path, stack: ExitStack) -> Place:
    target = stack.enter_context(mount_point(base))
    for name in ("lower", "upper", "work"):
        (base / name).mkdir()
    run("mount", "-t", "overlay", "-o", f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work", "storage", target)
    return Place(target, target)


def maker(name: str) -> list[str]:
    """The command that makes a filesystem, from a root that `tools/dev` has in its cache."""
    roots = sorted(Path("/cache/roots/storage").glob(f"*/usr/sbin/{name}"), key=lambda path: path.stat().st_mtime)
    assert roots, "`tools/dev root storage` has not been run"
    return ["env", f"LD_LIBRARY_PATH={roots[-1].parents[1]}/lib/{os.uname().machine}-linux-gnu", str(roots[-1])]


def on_image(filesystem: str) -> Callable[[Path, ExitStack], Place]:
    def mount(base: Path, stack: ExitStack) -> Place:
        image = base / "image"
        image.touch()
        os.truncate(image, IMAGE_BYTES)
        run(*maker(f"mkfs.{filesystem}"), image)
        target = stack.enter_context(mount_point(base))
        run("mount", "-t", filesystem, "-o", "loop", image, target)
        return Place(target, target)
    return mount


def nfs(version: str, export: str) -> Callable[[Path, ExitStack], Place]:
    def mount(base: Path, stack: ExitStack) -> Place:
        served = base / "served"
        served.mkdir()
        # Debian's default is to take groups from the server's own users
        Path("/etc/nfs.conf.d").mkdir(exist_ok=True)
        Path("/etc/nfs.conf.d/groups.conf").write_text("[mountd]\nmanage-gids=n\n")
        run("systemctl", "start", "rpcbind.socket", "rpc-statd.service", "nfs-server.service")
        run("exportfs", "-o", f"rw,sync,no_subtree_check,{export}", f"127.0.0.1:{served}")
        stack.callback(run, "exportfs", "-u", f"127.0.0.1:{served}")
        # Before the export ends: after the unmount the client still has delegations of directories if it has another mount of this
        # server. It returns them when the server asks, but cannot do so for what is not exported, and a local unlink waits for it.
        stack.callback(shutil.rmtree, served)
        target = stack.enter_context(mount_point(base))
        run("mount", "-t", "nfs", "-o", f"vers={version}", f"127.0.0.1:{served}", target)
        return Place(target, served)
    return mount


def smb(base: Path, stack: ExitStack) -> Place:
    served, passwords, configuration = base / "served", base / "passwords", base / "ksmbd.conf"
    served.mkdir()
    configuration.write_text(f"[global]\nbind interfaces only = yes\ninterfaces = lo\n"
                             f"[volume]\npath = {served}\nread only = no\nforce user = root\nforce group = root\n")
    passwords.touch()
    run("ksmbd.adduser", "-C", configuration, "-P", passwords, "-a", "-p", SMB_PASSWORD, SMB_USER)
    run("ksmbd.mountd", "-C", configuration, "-P", passwords)
    stack.callback(run, "ksmbd.control", "--shutdown")
    wait_until(lambda: answers(445), "the SMB server")
    target = stack.enter_context(mount_point(base))
    options = f"username={SMB_USER},password={SMB_PASSWORD},vers=3.1.1,mfsymlinks,noperm"
    run("mount", "-t", "cifs", "-o", options, "//127.0.0.1/volume", target)
    return Place(target, served)


def nine(base: Path, stack: ExitStack) -> Place:
    served = base / "served"
    served.mkdir()
    stack.enter_context(process("diod", "--foreground", "--no-auth", "--no-userdb", "--export", served,
                                "--listen", f"127.0.0.1:{NINE_PORT}",
                                "--config-file", "/dev/null", stderr=subprocess.DEVNULL))
    wait_until(lambda: answers(NINE_PORT), "the 9p server")
    target = stack.enter_context(mount_point(base))
    options = f"trans=tcp,port={NINE_PORT},version=9p2000.L,uname=root,access=user,cache=mmap,aname={served}"
    run("mount", "-t", "9p", "-o", options, "127.0.0.1", target)
    return Place(target, served)


def sshfs(base: Path, stack: ExitStack) -> Place:
    served = base / "served"
    served.mkdir()
    target = stack.enter_context(mount_point(base))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stack.enter_context(process("/usr/lib/openssh/sftp-server", stdin=theirs.fileno(), stdout=theirs.fileno()))
        stack.enter_context(driver(target, "sshfs", "-f", "-o", "passive,allow_other,default_permissions", f":{served}", target,
                                   stdin=ours.fileno(), stdout=ours.fileno()))
    return Place(target, served)


def bindfs(base: Path, stack: ExitStack) -> Place:
    served = base / "served"
    served.mkdir()
    target = stack.enter_context(mount_point(base))
    stack.enter_context(driver(target, "bindfs", "-f", served, target))
    return Place(target, served)


def s3_server(server: Path, served: Path) -> list[str]:
    """Its buckets are the directories in `served`."""
    return [str(server), "--access", S3_KEY, "--secret", S3_SECRET, "--port", f"127.0.0.1:{S3_PORT}", "--quiet", "posix", str(served)]


def s3_driver(keys: Path, target: Path) -> list[str]:
    """Of a directory of the bucket: for the bucket itself s3fs 1.95 reports EIO with servers like this one (its issue 2246)."""
    return ["s3fs", "volume:/data", str(target), "-f", "-o", f"url=http://127.0.0.1:{S3_PORT},use_path_request_style,allow_other",
            "-o", f"passwd_file={keys}"]


def s3(base: Path, stack: ExitStack) -> Place:
    served, keys = base / "served", base / "keys"
    (served / "volume/data").mkdir(parents=True)
    keys.write_text(f"{S3_KEY}:{S3_SECRET}\n")
    keys.chmod(0o600)
    stack.enter_context(process(*s3_server(program("versitygw", "versitygw"), served), stdout=subprocess.DEVNULL))
    wait_until(lambda: answers(S3_PORT), "the S3 server")
    target = stack.enter_context(mount_point(base))
    stack.enter_context(driver(target, *s3_driver(keys, target), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    return Place(target, served / "volume/data")


KINDS: dict[str, Callable[[Path, ExitStack], Place]] = {
    "ext4": local, "xfs": on_image("xfs"), "btrfs": on_image("btrfs"), "tmpfs": tmpfs, "overlay": overlay,
    "nfs4": nfs("4.2", "no_root_squash"), "nfs3": nfs("3", "no_root_squash"), "nfs4-squash": nfs("4.2", "root_squash"),
    "nfs3-squash": nfs("3", "root_squash"),
    "smb": smb, "9p": nine, "sshfs": sshfs, "bindfs": bindfs, "s3fs": s3,
}


@contextlib.contextmanager
def mounted(kind: str) -> Iterator[Place]:
    base = Path(tempfile.mkdtemp(prefix="storage-", dir="/var/tmp"))
    base.chmod(0o755)
    try:
        with ExitStack() as stack:
            yield KINDS[kind](base, stack)
    finally:
        shutil.rmtree(base, ignore_errors=True)


# ---- what the kernel says to an idmapped mount ----

class Attributes(ctypes.Structure):
    """struct mount_attr of mount_setattr()"""

    _fields_ = (("set", ctypes.c_uint64), ("clear", ctypes.c_uint64), ("propagation", ctypes.c_uint64), ("userns", ctypes.c_uint64))


def idmap_error(path: Path, namespace: str) -> str | None:
    """The error of an idmapped mount of a directory; None if there is none."""
    open_tree, mount_setattr, clone, empty_path, idmap = 428, 442, 1, 0x1000, 0x100000
    libc = ctypes.CDLL(None, use_errno=True)
    tree = libc.syscall(open_tree, -100, os.fsencode(path), clone | os.O_CLOEXEC)
    assert tree >= 0, os.strerror(ctypes.get_errno())
    try:
        with open(namespace, "rb") as users:
            attributes = Attributes(set=idmap, userns=users.fileno())
            failed = libc.syscall(mount_setattr, tree, b"", empty_path, ctypes.byref(attributes), ctypes.sizeof(attributes)) < 0
            return errno.errorcode[ctypes.get_errno()] if failed else None
    finally:
        os.close(tree)
