# SPDX-License-Identifier: Apache-2.0
"""The programs of Kubernetes in a node: how they start, end and report, and what a hostile one can do to the process outside.

Kubelet, kube-proxy and containerd are scripts here: a real one cannot be made to attack, and does not start without cgroups.
kubelet.py has real ones.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodenstest import machine
from nodenstest.machine import HOME, RUNTIME, node, rootless

PROGRAMS = HOME / "programs"
KUBECONFIG = HOME / "kubeconfig"
ADMIN, CONTROLLER, KUBELET = "token-of-the-admin-5f1d", "token-of-the-controller-77aa", "token-of-the-kubelet-90be"
READY = """python3 -c 'import os, socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1\\nSTATUS=serving", os.environ["NOTIFY_SOCKET"])'
"""
STAY = "while :; do sleep 0.05; done\n"
OPTIONS = ("--join", str(KUBECONFIG), "--runtime", "containerd", "--programs", str(PROGRAMS), "--node-name", "worker", "--no-cgroups")


def install(name: str, script: str) -> None:
    path = PROGRAMS / name
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)


@pytest.fixture(autouse=True)
def programs() -> Iterator[None]:
    """Programs that become ready and stay, and a kubeconfig with a credential for each purpose."""
    PROGRAMS.mkdir(exist_ok=True)
    install("containerd", READY + STAY)
    install("containerd-shim-runc-v2", "")
    install("kubelet", READY + STAY)
    install("kube-proxy", STAY)
    users = {"admin": ADMIN, "controller": CONTROLLER, "kubelet": KUBELET}
    KUBECONFIG.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "admin",
        "clusters": [{"name": "c", "cluster": {"server": "https://10.77.0.1:6443", "insecure-skip-tls-verify": True}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": name}} for name in users],
        "users": [{"name": name, "user": {"token": token}} for name, token in users.items()]}))
    for path in (PROGRAMS, KUBECONFIG):
        os.chown(path, machine.UID, machine.UID)
    yield
    shutil.rmtree(PROGRAMS)


def component(made: machine.Node, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [one for one in (made.state() or {"components": []})["components"] if one["name"] == name]
    return found[0] if found else {"state": "absent", "ready": False, "pid": 0}


def ready(made: machine.Node, *names: str) -> None:
    machine.wait_for(lambda: all(component(made, name)["ready"] for name in names), machine.LIMIT, f"{names} are ready")


@contextlib.contextmanager
def kubernetes(name: str, *options: str) -> Iterator[machine.Node]:
    with node(name, *OPTIONS, *options) as made:
        yield made


def inside(made: machine.Node, pattern: str) -> list[int]:
    """Processes of the node. The pattern must not match itself, which is in a command line, too."""
    return [int(word) for word in made.shell("pgrep", "-f", pattern, check=False).stdout.split()]


def test_components_start_and_status_shows_them() -> None:
    with kubernetes("joined") as made:
        ready(made, "runtime", "kubelet", "proxy")
        states = (made.state() or {})["components"]
        assert [one["name"] for one in states] == ["kubelet", "proxy", "runtime"]
        assert component(made, "kubelet")["status"] == "serving" and machine.alive(component(made, "kubelet")["pid"])
        said = rootless("status").stdout
        assert f"kubelet    ready, run by process {component(made, 'kubelet')['pid']}: serving\n" in said
        assert "10250:10250/tcp" in rootless("ports", "--name", "joined").stdout
        words = made.shell("sh", "-c", "tr '\\0' ' ' </proc/$(pgrep -of [p]rograms/kubelet)/cmdline").stdout
        assert "--hostname-override=worker" in words and "--kubeconfig=/etc/kubernetes/kubelet.kubeconfig" in words


def test_status_shows_the_controller_and_why_it_does_nothing() -> None:
    with kubernetes("ruled") as made:
        def state() -> dict[str, Any]:
            return (made.state() or {}).get("controller", {"state": "absent", "status": ""})

        machine.wait_for(lambda: state()["state"] == "ready" and "10.77.0.1" in state()["status"], machine.LIMIT,
                         "the controller reports that the API server is away")
        assert f"  controller ready, process {state()['pid']}: published ports stay as they are: " in rootless("status").stdout


def test_the_controller_uses_the_users_own_file_and_no_copy_of_it() -> None:
    with kubernetes("linked") as made:
        link = RUNTIME / "nodens/linked/controller.kubeconfig"
        machine.wait_for(link.is_symlink, what="the link")
        assert link.readlink() == KUBECONFIG
        holders = [path for path in (RUNTIME / "nodens/linked").rglob("*") if path.is_file() and not path.is_symlink()
                   and CONTROLLER.encode() in path.read_bytes()]
        assert not holders, f"the controller's token is in {holders}"
        machine.wait_for(lambda: (made.state() or {}).get("controller", {}).get("pid"), machine.LIMIT, "the controller runs")
        pid = (made.state() or {})["controller"]["pid"]
        assert f"--kubeconfig\0{KUBECONFIG}\0".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_root_of_the_node_sees_neither_the_controllers_file_nor_its_state() -> None:
    with kubernetes("apart") as made:
        machine.wait_for((RUNTIME / "nodens/apart/components/controller.state").exists, machine.LIMIT, "the controller's state")
        for path in (KUBECONFIG, RUNTIME / "nodens/apart/controller.kubeconfig", RUNTIME / "nodens/apart/components/controller.state"):
            assert made.shell("test", "-e", str(path), check=False).returncode == 1, path


def test_a_node_without_kubernetes_has_no_components() -> None:
    with node("plain") as made:
        assert (made.state() or {})["components"] == []
        assert not (RUNTIME / "nodens/plain/components").exists()
        assert made.shell("test", "-e", "/etc/kubernetes", check=False).returncode == 1


def test_dry_run_lists_the_files_without_their_contents() -> None:
    said = rootless("up", "--dry-run", "--name", "dry", *OPTIONS).stdout
    for path in ("/etc/kubernetes/kubelet.yaml", "/etc/kubernetes/kubelet.kubeconfig", "/etc/kubernetes/kube-proxy.yaml",
                 "/etc/containerd/config.toml", "/etc/cni/net.d/10-nodens.conflist"):
        assert f"written      {path}\n" in said
    assert f"tree      ro {PROGRAMS}\n" in said
    assert KUBELET not in said and ADMIN not in said


def test_without_a_delegated_cgroup_it_is_refused_with_the_remedy() -> None:
    options = [word for word in OPTIONS if word != "--no-cgroups"]
    done = rootless("up", "--foreground", "--name", "unlimited", *options, check=False)
    assert done.returncode == 1 and "no cgroup is delegated" in done.stderr and "--no-cgroups" in done.stderr


@pytest.mark.parametrize(("options", "message"), [
    (("--join", "/absent"), "kubeconfig '/absent': No such file or directory"),
    (("--join", str(KUBECONFIG), "--programs", "/absent"), "--programs '/absent'"),
    (("--join", str(KUBECONFIG), "--runtime", "docker"), "nodens-cri or containerd"),
    (("--join", str(KUBECONFIG), "--runtime", "containerd"), "is not installed"),
])
def test_invalid_settings_are_refused_before_anything_starts(options: tuple[str, ...], message: str) -> None:
    done = rootless("up", "--name", "wrong", "--no-cgroups", *options, check=False)
    assert done.returncode != 0 and message in done.stderr


def test_a_killed_process_outside_takes_its_program_along_and_both_come_back() -> None:
    install("containerd", READY + "(setsid sleep 1234 &)\n" + STAY)
    with kubernetes("killed") as made:
        ready(made, "runtime", "kubelet", "proxy")
        machine.wait_for(lambda: inside(made, "[s]leep 1234"), what="the pod runs")
        pods, before = inside(made, "[s]leep 1234"), inside(made, "[p]rograms/containerd")
        for _ in range(10):
            machine.kill(component(made, "runtime")["pid"])
            machine.wait_for(lambda old=before: len(now := inside(made, "[p]rograms/containerd")) == 1 and now != old, what="restarted")
            ready(made, "runtime")
            before = inside(made, "[p]rograms/containerd")
        assert inside(made, "[s]leep 1234")[:1] == pods[:1], "pods survive"


def test_a_program_that_ends_is_restarted() -> None:
    install("kubelet", "test -e /run/second || { touch /run/second; exit 3; }\n" + READY + STAY)
    with kubernetes("ending") as made:
        ready(made, "kubelet")
        assert made.shell("test", "-e", "/run/second").returncode == 0


def test_sigterm_is_forwarded() -> None:
    install("kubelet", "trap 'echo bye >/var/lib/farewell; exit 0' TERM\n" + READY + STAY)
    with kubernetes("polite") as made:
        ready(made, "kubelet")
        os.kill(component(made, "kubelet")["pid"], signal.SIGTERM)
        machine.wait_for((HOME / ".local/share/nodens/polite/lib/farewell").exists, what="the program got SIGTERM")


def test_down_ends_the_kubelet_before_the_pods() -> None:
    order = HOME / ".local/share/nodens/ordered/lib/order"
    install("kubelet", "trap 'sleep 0.5; echo kubelet >>/var/lib/order; exit 0' TERM\n" + READY + STAY)
    install("containerd", "(trap 'echo pod >>/var/lib/order; exit 0' TERM; " + STAY.strip() + ") &\n" + READY + STAY)
    for how in ("down", "terminate"):
        order.unlink(missing_ok=True)
        with kubernetes("ordered") as made:
            ready(made, "kubelet", "runtime")
            if how == "down":
                rootless("down", "--name", "ordered")
            else:
                assert made.process
                made.process.terminate()
            assert made.process and made.process.wait(machine.LIMIT) == 0
        assert order.read_text().split() == ["kubelet", "pod"], how


def test_a_kubelet_that_ignores_sigterm_does_not_keep_the_node_alive() -> None:
    install("kubelet", "trap '' TERM\n" + READY + STAY)
    with kubernetes("stubborn") as made:
        ready(made, "kubelet")
        outside = component(made, "kubelet")["pid"]
        start = time.monotonic()
        rootless("down", "--name", "stubborn")
        assert time.monotonic() - start < 25
        machine.wait_for(lambda: not machine.alive(outside), what="the process outside has ended, too")


# ---- attacks by root of the node

def memory_of(pid: int) -> int:
    """In KiB; with sanitizers it is not meaningful."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 0 if machine.SANITIZED else int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def descriptors_of(pid: int) -> list[str]:
    """Without those of the event loop, which makes a timer when it limits a rate."""
    return sorted(name for path in Path(f"/proc/{pid}/fd").iterdir() if not (name := os.readlink(path)).startswith("anon_inode"))


def send(made: machine.Node, code: str) -> None:
    made.python(f"""
import os, socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect("/run/nodens-components/kubelet")
{code}
""")


def test_garbage_on_the_notify_socket_is_ignored() -> None:
    with kubernetes("garbage") as made:
        ready(made, "kubelet")
        outside = component(made, "kubelet")["pid"]
        send(made, r"""
for message in (b"", b"\0" * 100, b"READY=1" * 10000, b"STATUS=" + b"x" * 100000, os.urandom(3000), b"MAINPID=1\nERRNO=1\nWATCHDOG=trigger"):
    s.send(message)
s.send(b"STATUS=\x1b]0;title\x07 \x1b[2J\xff\xfe end")
""")
        machine.wait_for(lambda: component(made, "kubelet")["status"].endswith(" end"), what="the last message was read")
        status = component(made, "kubelet")["status"]
        assert status.isprintable() or set(status) & set("\ufffd"), status
        assert "\x1b" not in rootless("status").stdout and component(made, "kubelet")["pid"] == outside


def test_a_flood_of_notifications_and_their_descriptors_costs_little() -> None:
    with kubernetes("flood") as made:
        ready(made, "kubelet")
        outside = component(made, "kubelet")["pid"]
        before = descriptors_of(outside)

        def cpu() -> int:
            words = Path(f"/proc/{outside}/stat").read_text().rsplit(")", 1)[1].split()
            return int(words[11]) + int(words[12])

        start, at = cpu(), time.monotonic()
        send(made, r"""
s.setblocking(False)
end, n = time.monotonic() + 5, 0
while time.monotonic() < end:
    try:
        socket.send_fds(s, [b"STATUS=%d" % n], [0, 1, 2])
        n += 1
    except OSError:
        time.sleep(0.001)
""")
        seconds = time.monotonic() - at
        assert machine.alive(outside) and descriptors_of(outside) == before, "no descriptor of the node stays"
        assert (cpu() - start) / os.sysconf("SC_CLK_TCK") < 0.25 * seconds, "the rate is limited"
        assert memory_of(outside) < 32 * 1024


def test_hostile_output_reaches_neither_the_terminal_nor_the_memory() -> None:
    install("kubelet", READY + r"""python3 -c '
import os
os.write(1, b"\x1b]0;owned\x07<0>to all users\r\x9b31m\n")
for _ in range(64): os.write(2, b"y" * 65536)
os.write(1, b"\nafter the flood\n")'
""" + STAY)
    with kubernetes("chatty") as made:
        ready(made, "kubelet")
        machine.wait_for(lambda: "kubelet: after the flood\n" in made.log.read_text(errors="replace"), what="the output was copied")
        said = made.log.read_bytes()
        assert b"\x1b" not in said and b"\x07" not in said and b"\r" not in said and b"\n<0>" not in said
        lines = [line for line in said.split(b"\n") if line.startswith(b"kubelet: ")]
        assert max(map(len, lines)) < 3000
        assert memory_of(component(made, "kubelet")["pid"]) < 32 * 1024


def test_a_flood_of_output_does_not_occupy_the_process_outside() -> None:
    install("kubelet", READY + "exec yes 'a line of output'\n")
    with kubernetes("yes") as made:
        ready(made, "kubelet")
        outside = component(made, "kubelet")["pid"]
        os.kill(outside, signal.SIGTERM)
        machine.wait_for(lambda: not machine.alive(outside), 15, "SIGTERM works meanwhile")


def test_a_reader_that_stops_reading_does_not_stop_the_component() -> None:
    """`up --foreground | less`: lines are dropped, and the program goes on."""
    install("kubelet", READY + "i=0; while :; do i=$((i+1)); echo $i >/run/count; head -c 4096 /dev/zero | tr '\\0' x; echo; done\n")
    made = machine.Node("unread", *OPTIONS)
    with subprocess.Popen(machine.as_user(machine.PROGRAM, "up", "--foreground", "--name", "unread", *OPTIONS), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=machine.environment(), cwd="/", start_new_session=True) as process:
        try:
            ready(made, "kubelet")

            def count() -> int:
                return int(made.shell("cat", "/run/count").stdout or 0)

            for _ in range(3):
                before = count()
                machine.wait_for(lambda old=before: count() > old + 20, what="the program goes on")
        finally:
            with made.log.open("wb") as log, subprocess.Popen(["cat"], stdin=process.stdout, stdout=log):
                made.down()
                process.wait(machine.LIMIT)
    shutil.rmtree(RUNTIME / "nodens/unread", ignore_errors=True)


@pytest.mark.parametrize("trap", ["rm -rf /run/nodens-components; echo file >/run/nodens-components",
                                  "rm -rf /run/nodens-components; ln -s /dev/shm /run/nodens-components",
                                  "rm /run/nodens-components/kubelet; mkdir -p /run/nodens-components/kubelet/x"])
def test_a_replaced_notify_socket_harms_only_the_node(trap: str) -> None:
    with kubernetes("replaced") as made:
        ready(made, "kubelet")
        outside = component(made, "kubelet")["pid"]
        made.shell("sh", "-c", trap)
        machine.kill(outside)
        machine.wait_for(lambda: component(made, "kubelet")["pid"] != outside, what="it was tried again")
        made.shell("sh", "-c", "rm -rf /run/nodens-components")
        ready(made, "kubelet")


def test_a_stopped_monitor_does_not_keep_the_process_outside() -> None:
    with kubernetes("frozen") as made:
        ready(made, "kubelet")
        outside = component(made, "kubelet")["pid"]
        made.shell("sh", "-c", "kill -STOP $(cut -d' ' -f4 /proc/$(pgrep -of [p]rograms/kubelet)/stat)")
        os.kill(outside, signal.SIGTERM)
        machine.wait_for(lambda: not machine.alive(outside), 30, "it ends by itself")


def test_credentials_of_others_are_not_in_the_node() -> None:
    """The kubelet's is in its file. The controller's and the user's own are neither in a file nor in the memory of init."""
    search = """
import re
found = set()
for line in open("/proc/1/maps"):
    start, end, mode = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\\S+)", line).groups()
    if not mode.startswith("r") or int(end, 16) - int(start, 16) > 1 << 30: continue    # the sanitizers' shadow memory is larger
    with open("/proc/1/mem", "rb") as memory:
        memory.seek(int(start, 16))
        try: bytes_ = memory.read(int(end, 16) - int(start, 16))
        except (OSError, ValueError, OverflowError): continue
    for token in TOKENS:
        if token in bytes_: found.add(token.decode())
print(sorted(found))
"""
    with kubernetes("secrets") as made:
        ready(made, "kubelet")
        # backwards, so that this program itself does not have them in its arguments
        tokens = [one[::-1] for one in (CONTROLLER, KUBELET)]
        said = made.python(f"TOKENS = [one[::-1].encode() for one in {tokens!r}]{search}")
        assert CONTROLLER not in said, "the memory of init has the controller's credential"
        script = f"grep -rl {CONTROLLER} /etc /run /root /var /tmp 2>/dev/null; stat -c %a%u /etc/kubernetes/*.kubeconfig"
        files = made.shell("sh", "-c", script, check=False).stdout.split()
        assert files == ["6000", "6000"]
        outside = RUNTIME / "nodens/secrets/controller.kubeconfig"
        assert outside.is_symlink() and CONTROLLER in outside.read_text(), "a link to the user's own file, not a copy of it"
        assert made.shell("ls", str(outside.parent)).stdout.split() == ["api"]


# Root of the node stops its init, and answers in its place.
IMPOSTOR = """
import array, ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
pidfd, listener = libc.syscall(434, 1, 0), None
for number in range(64):
    fd = libc.syscall(438, pidfd, number, 0)
    try:
        s = socket.socket(fileno=os.dup(fd))
        if s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN): listener = s
    except OSError: pass
libc.ptrace(16, 1, None, None); os.waitpid(1, 0x40000000)
print("listening", flush=True)
listener.setblocking(True)
for answer in (os.open("/", os.O_RDONLY), socket.socket().fileno(), socket.socket(socket.AF_UNIX).fileno()):
    while True:
        c, _ = listener.accept()
        data, ancillary, _, _ = c.recvmsg(200000, 4096)
        if b"component=kubelet" in data: break
        c.close()
    for _, _, raw in ancillary:
        for fd in array.array("i", raw):
            print("descriptor", os.readlink(f"/proc/self/fd/{fd}").split(":")[0], flush=True)
            try: socket.socket(fileno=os.dup(fd)).sendto(b"from the node", "\\0of-the-host"); print("SENT", flush=True)
            except OSError: pass
    socket.send_fds(c, [b"nodens/1 done\\0pid=7\\0"], [answer])
"""


def test_no_socket_of_the_hosts_network_gets_into_the_node_and_no_false_one_out() -> None:
    """With a socket made outside, root of the node would reach the host's abstract names with the user's credentials."""
    victim = machine.abstract_datagrams("of-the-host")
    with kubernetes("impostor") as made:
        ready(made, "kubelet")
        with subprocess.Popen(machine.as_user(machine.PROGRAM, "shell", "--name", made.name, "--", *machine.python(IMPOSTOR)),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=machine.environment(), cwd="/") as attack:
            assert attack.stdout and attack.stdout.readline() == "listening\n"
            machine.kill(component(made, "kubelet")["pid"])
            said = attack.stdout.read()
        assert "descriptor pipe" in said and "descriptor socket" not in said and "SENT" not in said, said
        with pytest.raises(BlockingIOError):
            victim.recv(100)
        ready(made, "kubelet")
        assert made.log.read_text().count("the reply has no datagram socket") == 3
    victim.close()
