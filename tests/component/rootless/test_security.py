# SPDX-License-Identifier: Apache-2.0
"""Attempts of root of a node that must fail.

Root in the node is the user outside, so everything that would obey the user must be out of reach.
"""
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodenstest import machine
from nodenstest.machine import HOME, RUNTIME, SECRET, UID, Node

BUS, AGENT = RUNTIME / "bus", Path("/tmp/ssh-agent-test/agent.1")


def unix_listener(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    os.chown(path, UID, UID)
    return listener


@pytest.fixture(scope="module", params=["pasta", "slirp4netns"])
def inside(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node on a host with a desktop's agents, buses and secrets, and another user's process."""
    sockets = [unix_listener(BUS), unix_listener(RUNTIME / "systemd/private"), unix_listener(AGENT)]
    abstract = machine.subprocess.Popen(machine.within("alpha", "python3", "-c",
                                        "import socket,time; s=socket.socket(socket.AF_UNIX); s.bind('\\0nodens-abstract'); s.listen(); "
                                        "print('ready', flush=True); time.sleep(1000)"),
                                        stdout=machine.subprocess.PIPE)
    assert abstract.stdout and abstract.stdout.readline() == b"ready\n"
    (HOME / "secret").write_text("secret")
    os.chown(HOME / "secret", UID, UID)
    for directory in ("/tmp", "/var/tmp"):
        Path(directory, "of-the-machine").write_text("x")
    with machine.node("jail-" + request.param[:4], "--net", request.param) as made:
        yield made
    abstract.kill()
    for listener in sockets:
        listener.close()
    for path in (BUS, RUNTIME / "systemd/private", AGENT):
        path.unlink()


def fails(inside: Node, *command: str) -> None:
    done = inside.shell(*command, check=False)
    assert done.returncode != 0, f"{command} worked: {done.stdout}"


def outcome(inside: Node, code: str) -> str:
    return inside.python(f"try:\n  {code}\n  print('done')\nexcept OSError as e:\n  print(type(e).__name__, e.errno)")


def test_the_hosts_loopback_is_not_reachable(inside: Node) -> None:
    gateways = {"127.0.0.1", "::1", machine.ROUTER4, machine.ROUTER6, machine.ALPHA4, machine.ALPHA6, "10.0.2.2", "fd00::2", "169.254.1.1",
                "169.254.2.2"}
    for address in gateways:
        answer = inside.python(machine.client(address, SECRET, seconds=0.7))
        assert answer in ("ConnectionRefusedError", "TimeoutError", "OSError"), f"{address} answered: {answer}"
    assert machine.run(*machine.within("alpha", "python3", "-c",
                                       machine.client("127.0.0.1", SECRET))).stdout.strip() == "127.0.0.1", "it is there"


def test_abstract_sockets_of_the_host_are_not_reachable(inside: Node) -> None:
    connect = "import socket; socket.socket(socket.AF_UNIX).connect('\\0nodens-abstract')"
    assert "ConnectionRefusedError" in outcome(inside, connect)
    machine.user(*machine.python(connect))  # outside it works


@pytest.mark.parametrize("path", [str(BUS), str(RUNTIME / "systemd/private"), str(AGENT), str(HOME / "secret"), str(HOME),
                                  str(RUNTIME / "systemd"),
                                  "/tmp/of-the-machine", "/var/tmp/of-the-machine", "/run/netns", "/etc/shadow", "/oldroot", "/nodens",
                                  "/boot", "/srv"])
def test_files_and_sockets_of_the_host_are_not_visible(inside: Node, path: str) -> None:
    assert Path(path).exists() or path in ("/oldroot", "/boot", "/srv", "/etc/shadow"), "the test is about something"
    fails(inside, "ls", path)


def test_the_runtime_directory_has_only_our_files(inside: Node) -> None:
    shown = inside.shell("find", "/run/user", "-mindepth", "1").stdout.split()
    own = f"{RUNTIME}/nodens/{inside.name}/api"
    assert set(shown) <= {"/run/user/0", str(RUNTIME), f"{RUNTIME}/nodens", f"{RUNTIME}/nodens/{inside.name}", own, f"{own}/child_pid",
                          f"{own}/api.sock"}
    fails(inside, "touch", f"{own}/x")


def test_other_processes_are_neither_visible_nor_signalled(inside: Node) -> None:
    seen = inside.shell("ps", "-e", "-o", "pid=").stdout.split()
    assert len(seen) < 8
    assert "ProcessLookupError" in outcome(inside, f"import os; os.kill({os.getpid()}, 0)") or os.getpid() < 10


def test_cgroups_above_the_nodes_are_not_writable(inside: Node) -> None:
    fails(inside, "mkdir", "/sys/fs/cgroup/escape")
    fails(inside, "sh", "-c", "echo 1 >/sys/fs/cgroup/cgroup.procs")
    fails(inside, "sh", "-c", "echo 1 >/sys/fs/cgroup/../cgroup/cgroup.procs")


@pytest.mark.parametrize("switch",
                         ["kernel/core_pattern", "kernel/panic", "vm/overcommit_memory", "kernel/sysrq", "fs/file-max", "kernel/modprobe",
                                    "net/core/rmem_max", "kernel/randomize_va_space", "vm/drop_caches"])
def test_sysctls_of_the_host_are_not_writable(inside: Node, switch: str) -> None:
    fails(inside, "sh", "-c", f"cat /proc/sys/{switch} >/tmp/v 2>/dev/null || echo 1 >/tmp/v; cat /tmp/v >/proc/sys/{switch}")


@pytest.mark.parametrize("command", [
    "echo b >/proc/sysrq-trigger", "mknod /tmp/sda b 8 0", "mount -o remount,rw /usr && touch /usr/x", "umount /usr", "dmesg -C",
    "insmod /dev/null", "date -s 2000-01-01", "echo -1000 >/proc/self/oom_score_adj", "chroot /proc/1/root/../.. ls /nodens",
    "nsenter -t 1 -m ls /nodens", "mount -t ext4 /dev/vda /mnt", "touch /usr/x", "ip netns exec alpha true",
    "setpriv --reuid=4000000 true", "echo x >/dev/kmsg && dmesg | grep -q ^x",
])
def test_known_escapes_fail(inside: Node, command: str) -> None:
    fails(inside, "sh", "-ec", command)


def test_the_control_socket_is_neither_visible_nor_open_to_others(inside: Node) -> None:
    path = RUNTIME / "nodens" / inside.name / "holder.sock"
    assert path.is_socket() and path.stat().st_mode & 0o077 == 0
    fails(inside, "ls", str(path))


def test_no_descriptor_leads_to_the_host(inside: Node) -> None:
    shown = inside.shell("ls", "-l", "/proc/self/fd", "/proc/1/fd").stdout
    assert "/nodens" not in shown and str(HOME) not in shown
    state = inside.state()
    assert state
    for entry in Path(f"/proc/{state['pid']}/fd").iterdir():
        assert os.readlink(entry).split(":")[0].split("[")[0] in ("socket", "anon_inode", "/dev/null", "/null"), "only what a holder needs"


def test_the_helper_is_confined(inside: Node) -> None:
    state = inside.state()
    assert state
    children = machine.run("ps", "-e", "-o", "pid=,sid=").stdout.split()
    pids = {int(pid) for pid, sid in zip(children[::2], children[1::2], strict=False) if int(sid) == state["helper"]}
    assert pids, "the helper's session"
    confined = [pid for pid in pids if "Seccomp:\t2" in Path(f"/proc/{pid}/status").read_text()]
    assert confined, "processes that read packets have a system call filter"
    for pid in confined:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
        assert status["NoNewPrivs"] == "1" or "slirp" in status["Name"]
        assert os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user"), "its capabilities are over the node, not the host"


def test_only_the_helper_resolves_names(inside: Node) -> None:
    lines = inside.shell("cat", "/etc/resolv.conf").stdout.split()
    assert lines[0] == "nameserver" and lines[1] in ("169.254.1.1", "10.0.2.3")


# ---- read-only binds and the api directory

REWRITE = """
import ctypes, os, subprocess, sys
path, file = sys.argv[1:3]
libc = ctypes.CDLL(None, use_errno=True)
def says(name, function):
    try:
        done = function()
    except OSError as error:
        done = error.strerror
    print(name, done)
def attribute(at):  # mount_setattr(clear read-only)
    if libc.syscall(442, -100, at.encode(), 0, (ctypes.c_uint64 * 4)(0, 1, 0, 0), 32) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def mount(*words):
    return subprocess.run(["mount", *words], capture_output=True).returncode
os.makedirs("/tmp/again", exist_ok=True)
says("remount", lambda: mount("-o", "remount,bind,rw", path))
says("attribute", lambda: attribute(path))
says("bind", lambda: mount("--rbind", path, "/tmp/again"))
says("remount of a bind", lambda: mount("-o", "remount,bind,rw", "/tmp/again"))
says("attribute of a bind", lambda: attribute("/tmp/again"))
says("in namespaces of its own", lambda: subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
     "mount -o remount,bind,rw $0 && echo evil >$0/$1", path, file], capture_output=True).returncode)
for at in (path, "/tmp/again"):
    says("write " + at, lambda: open(f"{at}/{file}", "w").write("evil"))
    says("replace " + at, lambda: os.rename(f"{at}/{file}", f"{at}/gone"))
"""


def test_a_read_only_bind_cannot_be_made_writable_by_root_of_the_node() -> None:
    project = HOME / "project"
    project.mkdir(exist_ok=True)
    (project / "Makefile").write_text("all:\n")
    for path in (project, project / "Makefile"):
        os.chown(path, UID, UID)
    said = machine.node_run(*machine.python(REWRITE), str(project), "Makefile", options=("--net", "none", "--bind", f"{project}:ro")).stdout
    assert {entry.name: entry.read_text() for entry in project.iterdir()} == {"Makefile": "all:\n"}, said
    assert "bind 0" in said.splitlines() and said.count("Read-only file system") == 4, said
    assert said.count("Operation not permitted") == 2, said


def test_a_writable_bind_in_a_read_only_one_is_writable() -> None:
    project = HOME / "mixed"
    (project / "out").mkdir(parents=True, exist_ok=True)
    for path in (project, project / "out"):
        os.chown(path, UID, UID)
    machine.node_run("sh", "-c", f"echo made >{project}/out/file; ! touch {project}/file",
                     options=("--net", "none", "--bind", f"{project}:ro,{project}/out"))
    assert (project / "out/file").read_text() == "made\n"


def test_a_file_can_be_bind_mounted_read_only() -> None:
    file = HOME / "single"
    file.write_text("kept\n")
    os.chown(file, UID, UID)
    done = machine.node_run("sh", "-c", f"cat {file}; mount -o remount,bind,rw {file}; echo evil >{file}",
                            options=("--net", "none", "--bind", f"{file}:ro"), check=False)
    assert done.stdout == "kept\n" and file.read_text() == "kept\n" and done.returncode != 0


def test_files_that_outside_tools_read_cannot_be_changed_by_root_of_the_node(inside: Node) -> None:
    api = RUNTIME / "nodens" / inside.name / "api"
    before = (api / "child_pid").read_text(), (api / "api.sock").stat().st_ino
    for file in ("child_pid", "api.sock"):
        said = inside.python(REWRITE.replace("sys.argv[1:3]", repr((str(api), file))))
        assert said.count("Read-only file system") >= 2, said
    assert ((api / "child_pid").read_text(), (api / "api.sock").stat().st_ino) == before
    assert sorted(entry.name for entry in api.iterdir()) == ["api.sock", "child_pid"]
    state = inside.state()
    assert state and before[0] == str(state["pid"])


# ---- descriptors

STAND_IN = """#!/bin/sh
ls -l /proc/$$/fd >>"$HOME/inherited"
echo "ran $(basename "$0")" >>"$HOME/inherited"
PATH=/usr/local/bin:/usr/bin:/bin exec "$(basename "$0")" "$@"
"""


@pytest.mark.parametrize("driver", ["pasta", "slirp4netns"])
def test_no_helper_inherits_a_descriptor_of_the_caller(driver: str) -> None:
    directory, seen = HOME / "stand-ins", HOME / "inherited"
    directory.mkdir(exist_ok=True)
    for name in ("newuidmap", "newgidmap", driver):
        (directory / name).write_text(STAND_IN)
        (directory / name).chmod(0o755)
    seen.unlink(missing_ok=True)
    made = Node("inherits", "--net", driver, env=machine.environment(PATH=f"{directory}:{os.environ['PATH']}"),
                prefix=("sh", "-c", 'exec 7</etc 9</var; exec "$@"', "sh"))
    try:
        made.start()
        text = seen.read_text()
        ran = [line for line in text.splitlines() if line.startswith("ran ")]
        assert list(dict.fromkeys(ran)) == ["ran newuidmap", "ran newgidmap", f"ran {driver}"], "pasta is asked for its version, too"
        assert " -> /etc" not in text and " -> /var\n" not in text, text
        parts = machine.json.loads((RUNTIME / "nodens/inherits/parts").read_text())
        state = made.state()
        assert state
        for pid in [state["pid"], state["helper"], *(part["pid"] for part in parts.values())]:
            links = {entry.name: os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
            assert not {"/etc", "/var"} & set(links.values()), f"process {pid}: {links}"
    finally:
        made.down()
