# SPDX-License-Identifier: Apache-2.0
"""Attacks on the user by root of a node.

It may also control the node's init, which can be traced from inside.
"""
import os
import re
import subprocess
from collections.abc import Iterator

import pytest
from nodenstest import machine
from nodenstest.machine import HOME, PROGRAM, SECRET, UID, Node
from nodenstest.syscalls import SYSCALLS
from test_terminal import Screen

PRELUDE = SYSCALLS + """
import array, ctypes, fcntl, os, socket, struct, sys
def attempt(name, function):
    try:
        print(name, "GOT", function())
    except OSError as error:
        print(name, "refused", error.errno)
def descriptors_of(pid):
    pidfd = call(PIDFD_OPEN, pid, 0)
    for number in range(64):
        try:
            yield call(PIDFD_GETFD, pidfd, number, 0)
        except OSError as error:
            if error.errno != 9: raise
"""


@pytest.fixture(scope="module")
def prey() -> Iterator[Node]:
    with machine.node("prey") as made:
        yield made


def inside(node: Node, code: str, **options: object) -> str:
    return node.python(PRELUDE + code, **options)


def test_a_process_cannot_be_hijacked_while_it_enters_a_node(prey: Node) -> None:
    """A process in the node takes descriptors of a shell's processes, and traces them.

    It waits for them, to act before they execute anything.
    """
    watcher = PRELUDE + """
import time
seen, end = set(), time.monotonic() + 60
print("watching", flush=True)
while time.monotonic() < end and not os.path.exists("/run/enough"):
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in seen or int(name) <= 2 or int(name) == os.getpid(): continue
        for fd in range(12):
            try:
                if os.readlink(f"/proc/{name}/exe").endswith("nodens-rootless"):
                    print("exe", name, flush=True)
                st = os.stat(f"/proc/{name}/fd/{fd}")
                if st.st_mode & 0o170000 == 0o020000 and st.st_dev != os.stat("/dev/pts").st_dev and st.st_rdev >> 8 in range(136, 144):
                    print("TERMINAL", name, fd, flush=True)
            except OSError: pass
"""
    with subprocess.Popen(machine.as_user(PROGRAM, "shell", "--name", prey.name, "--", *machine.python(watcher)), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=machine.environment(), cwd="/") as process:
        assert process.stdout and process.stdout.readline() == "watching\n"
        screen = Screen()
        for _ in range(30):
            screen.command(f"{PROGRAM} shell --name {prey.name} -- true")
        screen.close()
        prey.shell("touch", "/run/enough")
        said = process.stdout.read()
    assert "TERMINAL" not in said and "exe" not in said, said


def test_peers_of_the_control_socket_are_out_of_reach() -> None:
    """The node finds the peers of its init's sockets, and attacks those outside."""
    said = machine.node_run(*machine.python(PRELUDE + """
peers = 0
for fd in descriptors_of(1):
    try:
        peer = struct.unpack("i", socket.socket(fileno=fd).getsockopt(socket.SOL_SOCKET, 77, 4))[0]  # SO_PEERPIDFD
    except OSError:
        continue
    peers += 1
    for number in range(3):
        attempt(f"descriptor {number}", lambda: call(PIDFD_GETFD, peer, number, 0))
    attempt("signal", lambda: call(PIDFD_SEND_SIGNAL, peer, 15, None, 0))
    attempt("namespaces", lambda: call(SETNS, peer, 0x10000000 | 0x20000))
    attempt("mount namespace", lambda: fcntl.ioctl(peer, 0xff03, 0))     # PIDFD_GET_MNT_NAMESPACE
    attempt("user namespace", lambda: fcntl.ioctl(peer, 0xff09, 0))      # PIDFD_GET_USER_NAMESPACE
print("peers", peers)
""")).stdout
    assert int(re.findall(r"peers (\d+)", said)[0]) > 0, "the attack found peers"
    assert "GOT" not in said, said


def test_the_builders_user_namespace_is_out_of_reach(prey: Node) -> None:
    """The node tries all ways to get a descriptor of the user namespace above its own.

    The read-only binds belong to that namespace.
    """
    said = inside(prey, """
for kind in ("user", "mnt", "net", "pid", "cgroup"):
    fd = os.open(f"/proc/1/ns/{kind}", os.O_RDONLY)
    for name, request in (("owner", 0xb701), ("parent", 0xb702), ("next", 0x800cb70b), ("previous", 0x800cb70c)):
        if (kind, name) in (("mnt", "owner"), ("net", "owner"), ("pid", "owner"), ("cgroup", "owner")):
            continue    # the node's own
        attempt(f"{kind} {name}", lambda: fcntl.ioctl(fd, request, array.array("B", bytes(64))))
""")
    assert "user parent refused" in said and "user owner" in said
    assert "GOT" not in said, said


def test_unmounting_does_not_reveal_the_host(prey: Node) -> None:
    """The node unmounts all it can, from the last mount to the first.

    Then it looks for files of the host and for the builder's directories.
    """
    said = inside(prey, f"""
import subprocess
script = '''import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
paths = [line.split()[4] for line in open("/proc/self/mountinfo")]
gone = sum(libc.umount2(path.encode(), 2) == 0 for path in reversed(paths) if path != "/" and not path.startswith("/proc"))
print("unmounted", gone)
for place in ("/oldroot", "/locked", "/newroot", "/nodens", "/etc/shadow", "{HOME}/secret", "{HOME}/.local"):
    if os.path.lexists(place): print("SEEN", place)
print("root", sorted(os.listdir("/")))'''
print(subprocess.run(["unshare", "--mount", "/usr/bin/python3", "-c", script], capture_output=True, text=True, check=True).stdout)
""")
    assert int(re.findall(r"unmounted (\d+)", said)[0]) > 3, said
    assert "SEEN" not in said and "root [" in said and "'locked'" not in said, said


ADD_KEY = """
key = call(248, b"user", b"nodens-secret", b"of the user", 11, -4)   # add_key to the user keyring
print(key, call(KEYCTL, 0, -4, 0), flush=True)
"""
KEEP = "import time\nsys.stdout.flush()\ntime.sleep(1000)"


def test_keys_of_the_user_cannot_be_read(prey: Node) -> None:
    """The node links the user's kernel keyrings to its own, and reads the keys.

    Keyrings have numbers that any process may guess.
    """
    with subprocess.Popen(machine.as_user(*machine.python(PRELUDE + ADD_KEY + KEEP)), stdout=subprocess.PIPE, text=True,
                          env=machine.environment(), cwd="/") as owner:
        assert owner.stdout
        key, ring = owner.stdout.readline().split()
        try:
            said = inside(prey, f"""
room = ctypes.create_string_buffer(100)
attempt("link", lambda: call(KEYCTL, 8, {ring}, -3))
attempt("read", lambda: (call(KEYCTL, 11, {key}, room, 100), room.value))
attempt("search", lambda: call(KEYCTL, 10, {ring}, b"user", b"nodens-secret", 0))
attempt("change", lambda: call(KEYCTL, 2, {key}, b"evil", 4))
attempt("revoke", lambda: call(KEYCTL, 3, {key}))
attempt("request", lambda: call(249, b"user", b"nodens-secret", None, 0))
""")
        finally:
            owner.kill()
    assert "GOT" not in said, said


def test_the_callers_session_keyring_is_not_inherited() -> None:
    """A command in a node lists the keys that it possesses, for a user with a session keyring."""
    attack = """
room = ctypes.create_string_buffer(100)
attempt("own session", lambda: (call(KEYCTL, 10, -3, b"user", b"nodens-session", 0)))
"""
    done = machine.user(*machine.python(PRELUDE + f"""
call(KEYCTL, 1, None)                                                # a session keyring of its own
call(248, b"user", b"nodens-session", b"of the session", 14, -3)
import subprocess
print(subprocess.run([{PROGRAM!r}, "run", "--net", "none", "--", "python3", "-c", {PRELUDE + attack!r}], capture_output=True, text=True))
"""))
    assert "own session refused" in done.stdout, done.stdout


def test_the_callers_environment_is_not_readable_in_the_node() -> None:
    """A process of the node reads the memory that init has inherited from its launcher."""
    with machine.node("forgetful", "--net", "none",
                      env=machine.environment(SECRET_TOKEN="hunter2", SSH_AUTH_SOCK="/tmp/agent-hunter2")) as made:
        said = made.python(PRELUDE + """
print(open("/proc/1/environ").read())
""" + ("" if machine.SANITIZED else """
memory = os.open("/proc/1/mem", os.O_RDONLY)
for line in open("/proc/1/maps"):
    words = line.split()
    start, end = (int(word, 16) for word in words[0].split("-"))
    if "w" in words[1]:
        try:
            found = os.pread(memory, end - start, start).find(b"hunter2")
        except OSError:
            continue
        if found >= 0: print("FOUND in", words[-1])
"""), env=machine.environment())      # a sanitizer keeps freed memory, and its shadow has terabytes
    assert "hunter2" not in said and "FOUND" not in said, said


def test_a_stopped_init_does_not_prevent_down() -> None:
    """The node stops its init by tracing it, so that it does not reply; the user stops the node."""
    with machine.node("held", "--net", "none") as made:
        state = made.state()
        assert state
        with subprocess.Popen(machine.as_user(PROGRAM, "shell", "--name", "held", "--", *machine.python(PRELUDE + """
import time
call(PTRACE, 16, 1, None, None)     # PTRACE_ATTACH
os.waitpid(1, 0x40000000)
print("held", flush=True)
time.sleep(1000)
""")), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=machine.environment(), cwd="/") as tracer:
            assert tracer.stdout and tracer.stdout.readline() == "held\n"
            machine.rootless("down", "--name", "held", timeout=60)
            assert not machine.alive(state["pid"])


def test_an_impostor_at_the_control_socket_gets_nothing() -> None:
    """The node takes the listening socket of its init and answers the programs outside.

    It sends its own descriptors and messages.
    """
    impostor = PRELUDE + """
listener = None
for fd in descriptors_of(1):
    try:
        s = socket.socket(fileno=os.dup(fd))
        if s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN): listener = s
    except OSError: pass
call(PTRACE, 16, 1, None, None); os.waitpid(1, 0x40000000)
print("listening", flush=True)
listener.setblocking(True)
got = set()
while True:
    c, _ = listener.accept()
    data, ancillary, _, _ = c.recvmsg(200000, 4096)
    for _, _, raw in ancillary:
        for fd in array.array("i", raw): got.add(os.readlink(f"/proc/self/fd/{fd}"))
    print("asked", data.split(b"\\0")[0].decode(), sorted(got), flush=True)
    socket.send_fds(c, [b"nodens/1 done\\0up=1\\0kept=1\\0socket=tcp4\\0pid=1\\0"], [os.open("/", os.O_RDONLY)] * 60)
"""
    with machine.node("impostor", "--net", "none") as made:
        with subprocess.Popen(machine.as_user(PROGRAM, "shell", "--name", made.name, "--", *machine.python(impostor)),
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=machine.environment(), cwd="/") as process:
            assert process.stdout and process.stdout.readline() == "listening\n"
            machine.rootless("down", "--name", made.name, timeout=60)
            said = process.stdout.read()
    assert "asked nodens/1 stop []" in said, said


def test_purge_does_not_follow_links_in_the_data_directory() -> None:
    """The node fills its data directory with links to the user's files, and the user purges it."""
    victim = HOME / "victim"
    victim.mkdir(exist_ok=True)
    (victim / "file").write_text("kept")
    for path in (victim, victim / "file"):
        os.chown(path, UID, UID)
    with machine.node("linked", "--net", "none") as made:
        made.shell("sh", "-ec",
                   f"ln -s {victim} /var/lib/a; ln -s {victim}/file /var/log/b; ln -s ../../../../../../{victim} /var/cache/c; mkdir "
                   f"/var/lib/d; ln -s {HOME} /var/lib/d/e; "
                                "! mv /var/lib /var/elsewhere; ! rmdir /var/cache; ! ln -s /etc /var/lib/../ports.json.d/x")
    machine.rootless("purge", "--name", "linked")
    assert (victim / "file").read_text() == "kept" and not (HOME / ".local/share/nodens/linked").exists()


def answers_to_frames(made: Node) -> str:
    """The node writes Ethernet frames to addresses that its own kernel would not send to.

    Then it waits for replies.
    """
    said = inside(made, f"""
import select, subprocess, time
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)); raw.bind(("tap0", 0))
socket.create_connection(({machine.ROUTER4!r}, {machine.ECHO}), 5).close()
neighbour = subprocess.run(["ip", "neigh", "show", {machine.ROUTER4!r}], capture_output=True, text=True).stdout.split()
gateway = bytes.fromhex(neighbour[neighbour.index("lladdr") + 1].replace(":", "")) if "lladdr" in neighbour else b"\\xff" * 6
own = bytes.fromhex(open("/sys/class/net/tap0/address").read().strip().replace(":", ""))
def total(data):
    value = sum(struct.unpack(f"!{{len(data) // 2}}H", data))
    while value >> 16: value = (value & 0xffff) + (value >> 16)
    return ~value & 0xffff
def frame(destination, port, source):
    udp = struct.pack("!HHHH", 40000, port, 13, 0) + b"hello"
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(destination))
    return gateway + own + b"\\x08\\x00" + head[:10] + struct.pack("!H", total(head)) + head[12:] + udp
def answers(destination, port, source, seconds=0.3):
    raw.send(frame(destination, port, source))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([raw], [], [], 0.1)[0]:
            packet = raw.recv(2000)
            if packet[12:14] == b"\\x08\\x00" and packet[23] == 17 and packet[34:36] == struct.pack("!H", port): return packet[42:]
print("router", answers({machine.ROUTER4!r}, {machine.ECHO}, {machine.ALPHA4!r}, 10))
for source in ({machine.ALPHA4!r}, "127.0.0.1"):
    for destination in ("127.0.0.1", "127.0.0.53", {machine.ALPHA4!r}, "0.0.0.0"):
        print("loopback", answers(destination, {SECRET}, source))
""", timeout=60)
    assert f"router b'{machine.ALPHA4}" in said, f"frames are delivered at all: {said}"
    return said


def test_frames_for_the_hosts_loopback_are_not_delivered(prey: Node) -> None:
    said = answers_to_frames(prey)
    assert said.count("loopback None") == 8, said


def test_slirp4netns_delivers_frames_for_the_hosts_loopback() -> None:
    """Why it is not the default. If this fails, correct docs/rootless.md and docs/security-model.md."""
    with machine.node("frames", "--net", "slirp4netns") as made:
        said = answers_to_frames(made)
        assert "loopback b'127.0.0.1" in said, said
