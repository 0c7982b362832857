# SPDX-License-Identifier: Apache-2.0
"""A machine of our own for nodes of an ordinary user: a user with subordinate IDs, and network namespaces that play machines.

    alpha   10.77.0.2  fd77::2      where the user's nodes run; its default gateway is
    router  10.77.0.1  fd77::1      where servers answer

Nothing here leaves the chroot: accounts are files that are mounted over the root's, the namespaces go with the chroot.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

UID = 1234
SUBID, SUBIDS = 200000, 3 * 65536
HOME = Path("/var/lib/nodens-test/home")
RUNTIME = Path(f"/run/user/{UID}")
BUILD = Path("/nodens/build") / os.environ.get("NODENS_VARIANT", "gcc")
SANITIZED = BUILD.name == "asan"
PROGRAM = str(BUILD / "src/rootless/nodens-rootless")
ROUTER4, ROUTER6 = "10.77.0.1", "fd77::1"
ALPHA4, ALPHA6 = "10.77.0.2", "fd77::2"
LIMIT = 60                      # seconds: what takes longer does not happen, on a loaded machine either
ECHO, SECRET = 7777, 7778       # ports: a public server that replies with its name; and a service on alpha's loopback


def run(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(argv, text=True, capture_output=True, **options)
    assert done.returncode == 0, f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done


def mount_over(path: str, text: str) -> None:
    replacement = Path("/tmp") / ("over" + path.replace("/", "-"))
    replacement.write_text(text)
    replacement.chmod(0o644)
    run("mount", "--bind", str(replacement), path)


def make_accounts() -> None:
    mount_over("/etc/passwd", Path("/etc/passwd").read_text() + f"worker:x:{UID}:{UID}::{HOME}:/bin/sh\n")
    mount_over("/etc/group", Path("/etc/group").read_text() + f"worker:x:{UID}:\n")
    for name in ("/etc/subuid", "/etc/subgid"):
        mount_over(name, f"worker:{SUBID}:{SUBIDS}\n")


def make_user() -> None:
    make_accounts()
    for directory in (HOME, RUNTIME):
        directory.mkdir(parents=True, exist_ok=True)
        os.chown(directory, UID, UID)
        directory.chmod(0o700)
    os.chmod("/dev/net/tun", 0o666)  # as udev does


def make_networks() -> None:
    for name in ("alpha", "router"):
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
    run("ip", "link", "add", "eth0", "netns", "alpha", "type", "veth", "peer", "name", "eth0", "netns", "router")
    for name, v4, v6 in (("alpha", ALPHA4, ALPHA6), ("router", ROUTER4, ROUTER6)):
        run("ip", "-n", name, "addr", "add", f"{v4}/24", "dev", "eth0")
        run("ip", "-n", name, "addr", "add", f"{v6}/64", "dev", "eth0", "nodad")
        run("ip", "-n", name, "link", "set", "eth0", "up")
    run("ip", "-n", "alpha", "route", "add", "default", "via", ROUTER4)
    run("ip", "-n", "alpha", "-6", "route", "add", "default", "via", ROUTER6)


BRIDGE4, BRIDGE6 = "10.0.3.1", "fd03::1"


@contextlib.contextmanager
def bridge(allowed: str = "worker veth lxcbr0 20\n") -> Iterator[None]:
    """lxc-user-nic, and a bridge on alpha on which the user may have links.

    LXC's root is mounted over ours, and a directory with its list over /etc.
    """
    roots = sorted(Path("/cache/roots/lxc").glob("*/usr/libexec/lxc/lxc-user-nic"), key=lambda path: path.stat().st_mtime)
    assert roots, "`tools/dev root lxc` has not been run"
    list_of = Path("/tmp/over-etc/lxc/lxc-usernet")
    list_of.parent.mkdir(parents=True, exist_ok=True)
    list_of.write_text(allowed)
    back, here = os.open("/proc/self/ns/mnt", os.O_RDONLY), Path.cwd()
    os.unshare(os.CLONE_NEWNS)      # setns() back undoes the mounts from here on
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={roots[-1].parents[2]}:/usr", "/usr")
    run("mount", "-t", "overlay", "overlay", "-o", "lowerdir=/tmp/over-etc:/etc", "/etc")
    make_accounts()
    run("ip", "-n", "alpha", "link", "add", "lxcbr0", "type", "bridge")
    for address in (f"{BRIDGE4}/24", f"{BRIDGE6}/64"):
        run("ip", "-n", "alpha", "addr", "add", address, "dev", "lxcbr0", *(["nodad"] if ":" in address else []))
    run("ip", "-n", "alpha", "link", "set", "lxcbr0", "up")
    run(*within("alpha", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"))
    # lxc-user-nic asks sysfs which links are bridges, and ours is that of the chroot's network.
    Path("/tmp/sys-alpha").mkdir(exist_ok=True)
    run(*within("alpha", "mount", "-t", "sysfs", "sysfs", "/tmp/sys-alpha"))
    run("mount", "--rbind", "/sys/fs/cgroup", "/tmp/sys-alpha/fs/cgroup")
    run("mount", "--rbind", "/tmp/sys-alpha", "/sys")
    run("ip", "-n", "router", "route", "replace", f"{BRIDGE4}/24".replace(".1/", ".0/"), "via", ALPHA4)
    run("ip", "-n", "router", "-6", "route", "replace", "fd03::/64", "via", ALPHA6)
    try:
        yield
    finally:
        run("ip", "-n", "alpha", "link", "del", "lxcbr0")
        os.setns(back, os.CLONE_NEWNS)
        os.chdir(here)
        os.close(back)


def within(network: str, *argv: str) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{network}", *argv]


def as_user(*argv: str, host: str = "alpha") -> list[str]:
    """The command line that runs something as the user, without any capability, on alpha or another host."""
    return within(host, "setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--inh-caps=-all", "--bounding-set=+all", *argv)


def environment(**more: str) -> dict[str, str]:
    if SANITIZED:   # leaks are the unit tests' to find: who is in a jail does not let itself be traced
        more["ASAN_OPTIONS"] = "detect_leaks=0"
    return {"PATH": os.environ["PATH"], "HOME": str(HOME), "USER": "worker", "XDG_RUNTIME_DIR": str(RUNTIME), "LANG": "C.UTF-8", **more}


# A child on a stack of its own (clone) that ends or executes: AddressSanitizer reports that it does
# not know that stack.
STACKS = re.compile(r"==\d+==WARNING: ASan is ignoring requested __asan_handle_no_return.*\nFalse positive.*\nFor details.*\n")


def without_report(said: str) -> str:
    """The output of a program; fails if a sanitizer reported."""
    assert "SUMMARY: " not in said and "runtime error: " not in said, said
    return STACKS.sub("", said)


def user(*argv: str, timeout: float = 3 * LIMIT, check: bool = True, env: dict[str, str] | None = None,
         **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(as_user(*argv), text=True, capture_output=True, timeout=timeout, env=env or environment(), cwd="/", **options)
    if SANITIZED:
        done.stderr = without_report(done.stderr)
    if check and done.returncode != 0:
        raise AssertionError(f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done


def rootless(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return user(PROGRAM, *argv, **options)


def node_run(*command: str, options: tuple[str, ...] = (), **more: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command in a node of its own."""
    return rootless("run", *options, "--", *command, **more)


def python(code: str) -> tuple[str, ...]:
    return ("python3", "-c", code)


SERVER = """
import socket, sys, threading
def streams(s):
    while True:
        c, peer = s.accept(); c.sendall(peer[0].encode() + b"\\n"); c.close()
def datagrams(s):
    while True:
        data, peer = s.recvfrom(65536); s.sendto(peer[0].encode() + b"\\n", peer)
for word in sys.argv[1:]:
    address, port = word.rsplit("/", 1)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for kind, serve in ((socket.SOCK_STREAM, streams), (socket.SOCK_DGRAM, datagrams)):
        s = socket.socket(family, kind)
        if kind == socket.SOCK_STREAM: s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((address, int(port)))
        if kind == socket.SOCK_STREAM: s.listen(512)
        threading.Thread(target=serve, args=(s,), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""


@contextlib.contextmanager
def servers(network: str, *addresses: str) -> Iterator[None]:
    """Servers that reply with their name: text like 10.77.0.1/7777."""
    with subprocess.Popen(within(network, sys.executable, "-c", SERVER, *addresses), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            process.kill()


def client(address: str, port: int = ECHO, kind: str = "tcp", seconds: float = LIMIT) -> str:
    """Python code that prints what a server says, or the error's name. Datagrams may be lost: they are sent once a second."""
    return f"""
import socket
family = socket.AF_INET6 if ":" in {address!r} else socket.AF_INET
s = socket.socket(family, socket.SOCK_STREAM if {kind!r} == "tcp" else socket.SOCK_DGRAM); s.settimeout({seconds})
try:
    s.connect(({address!r}, {port}))
    tries = 1
    if {kind!r} == "udp": tries = max(1, int({seconds})); s.settimeout(min(1, {seconds}))
    while True:
        if {kind!r} == "udp": s.send(b"hello")
        tries -= 1
        try: print(s.recv(100).decode().strip()); break
        except TimeoutError:
            if tries == 0: raise
except OSError as error:
    print(type(error).__name__)
"""


class Node:
    """A node by `up --foreground`."""

    def __init__(self, name: str, *options: str, env: dict[str, str] | None = None, prefix: tuple[str, ...] = (),
                 host: str = "alpha") -> None:
        self.name, self.options, self.env, self.prefix, self.host = name, options, env or environment(), prefix, host
        self.process: subprocess.Popen[bytes] | None = None
        self.log = Path(f"/tmp/node-{name}.log")

    def start(self) -> "Node":
        before = self.log.read_text().count("node started") if self.log.exists() else 0
        with self.log.open("a") as log:
            self.process = subprocess.Popen(as_user(*self.prefix, PROGRAM, "up", "--foreground", "--name", self.name, *self.options,
                                                    host=self.host), stdout=log, stderr=log, env=self.env, cwd="/", start_new_session=True)
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"up ended with {self.process.returncode}: {self.log.read_text()}")
            state = self.state() if self.log.read_text().count("node started") > before else None
            if state and (state["helper"] or state["net"] in ("none", "host", "lxc-user-nic")) and alive(self.process.pid):
                return self
            time.sleep(0.02)
        raise AssertionError(f"the node does not come up: {self.log.read_text()}")

    def state(self) -> dict[str, Any] | None:
        done = rootless("status", "--json", "--name", self.name, check=False)
        return json.loads(done.stdout)[0] if done.returncode == 0 else None

    def shell(self, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return rootless("shell", "--name", self.name, "--", *command, **options)

    def python(self, code: str, **options: Any) -> str:
        return self.shell(*python(code), **options).stdout.strip()

    def down(self) -> None:
        if self.state():
            rootless("down", "--name", self.name)
        if self.process:
            self.process.wait(LIMIT)
        if SANITIZED:
            without_report(self.log.read_text())


@contextlib.contextmanager
def node(name: str, *options: str, env: dict[str, str] | None = None, host: str = "alpha") -> Iterator[Node]:
    made = Node(name, *options, env=env, host=host)
    try:
        yield made.start()
    finally:
        made.down()
        shutil.rmtree(RUNTIME / "nodens" / name, ignore_errors=True)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition: Any, seconds: float = LIMIT, what: str = "", pause: float = 0.02) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(pause)
    raise AssertionError(f"does not become true within {seconds} s: {what}")


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def abstract_listener(name: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0" + name)
    listener.listen()
    return listener


def abstract_datagrams(name: str) -> socket.socket:
    """A socket with an abstract name of alpha's network, which does not wait for datagrams."""
    back, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open("/run/netns/alpha", os.O_RDONLY)
    os.setns(there, os.CLONE_NEWNET)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    listener.bind("\0" + name)
    os.setns(back, os.CLONE_NEWNET)
    for descriptor in (back, there):
        os.close(descriptor)
    return listener
