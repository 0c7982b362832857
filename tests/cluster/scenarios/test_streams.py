# SPDX-License-Identifier: Apache-2.0
"""kubectl exec, cp, attach, port-forward, debug and logs -f, through the API server and the stock kubelet: `tools/dev test streams`."""
import contextlib
import hashlib
import json
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodensdev.cluster.controlplane import STATE
from nodensdev.env import chroot, wheels
from nodenstest.people import AGNHOST, BUSYBOX, FOREVER, Person, container

MIB = 1 << 20

# Opens so many connections to a local port at once, asks each for its own number, and reads all
# answers while all are open.
MANY_CONNECTIONS = """
import socket, sys
port, count = int(sys.argv[1]), int(sys.argv[2])
several = [socket.create_connection(("127.0.0.1", port), timeout=120) for _ in range(count)]
for number, one in enumerate(several):
    one.sendall(f"GET /echo?msg=number-{number}-end HTTP/1.1\\r\\nHost: pod\\r\\n\\r\\n".encode())
for number, one in enumerate(several):
    got = b""
    while f"number-{number}-end".encode() not in got:
        piece = one.recv(65536)
        assert piece, (number, got)
        got += piece
print(f"{count} answers")
"""


@contextlib.contextmanager
def kubectl(person: Person, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """kubectl in the background; ended afterwards."""
    command = person.cluster.kubectl_command(f"--namespace={person.namespace}", *arguments)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          bufsize=1) as running:
        try:
            yield running
        finally:
            running.kill()


def line_with(running: subprocess.Popen[str], words: str, seconds: float = 300) -> str:
    assert running.stdout
    seen = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not select.select([running.stdout], [], [], 1)[0]:
            continue
        line = running.stdout.readline()
        seen.append(line)
        if words in line:
            return line
        if not line:
            break
    raise AssertionError(f"no line with {words!r}: {seen}")


@pytest.mark.gate
def test_exec_returns_output_errors_and_the_exit_code(person: Person, host_users: bool) -> None:
    person.pod("shell", container(FOREVER), hostUsers=host_users)
    person.ready("shell")
    for code in (0, 3, 137):
        done = person.cluster.kubectl(f"--namespace={person.namespace}", "exec", "shell", "--", "sh", "-c",
                                      f"echo out; echo err >&2; exit {code}")
        assert (done.returncode, done.stdout) == (code, "out\n") and "err\n" in done.stderr, done
    assert person.kubectl("exec", "-i", "shell", "--", "sha256sum",
                          stdin="x" * 100_000).split()[0] == hashlib.sha256(b"x" * 100_000).hexdigest()


def test_exec_at_a_terminal(person: Person, host_users: bool) -> None:
    person.pod("shell", container(FOREVER), hostUsers=host_users)
    person.ready("shell")
    ours, theirs = pty.openpty()
    command = person.cluster.kubectl_command(f"--namespace={person.namespace}", "exec", "-it", "shell", "--", "sh", "-c",
                                             "test -t 0 && echo is a terminal; read x; echo got $x; exit 5")
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as running:
        os.close(theirs)
        got = b""
        for wanted, answer in ((b"is a terminal", b"words\r"), (b"got words", b"")):
            while wanted not in got:
                assert select.select([ours], [], [], 300)[0], got
                got += os.read(ours, 4096)
            os.write(ours, answer)
        assert running.wait(300) == 5
    os.close(ours)


@pytest.mark.parametrize("way", ["in", "out"])
def test_copy(person: Person, way: str, request: pytest.FixtureRequest) -> None:
    size = request.config.getoption("--copy-mib") * MIB
    person.pod("shell", container(FOREVER, volumeMounts=[{"name": "data", "mountPath": "/data"}]),
               volumes=[{"name": "data", "emptyDir": {}}], hostUsers=False)
    person.ready("shell")
    file = person.cluster.state / "copied"
    piece = os.urandom(MIB)
    try:
        if way == "in":
            with file.open("wb") as stream:
                for _ in range(size // MIB):
                    stream.write(piece)
        else:
            person.kubectl("exec", "shell", "--", "sh", "-c",
                           f"head -c 1048576 /dev/urandom >/data/piece; for i in $(seq {size // MIB}); do cat /data/piece; done "
                           f">/data/copied", timeout=600)
        started = time.monotonic()
        inside = "shell:/data/copied"
        person.kubectl("cp", *((f"{STATE}/copied", inside) if way == "in" else (inside, f"{STATE}/copied")), timeout=1200)
        print(f"kubectl cp {way}: {size / MIB / (time.monotonic() - started):.1f} MiB/s", flush=True)
        assert file.stat().st_size == size
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        assert person.kubectl("exec", "shell", "--", "sha256sum", "/data/copied", timeout=600).split()[0] == digest
    finally:
        file.unlink(missing_ok=True)


@pytest.mark.gate
def test_attach_types_and_reads(person: Person, host_users: bool) -> None:
    person.pod("cat", container("while read x; do echo got $x; done; echo the end", stdin=True, stdinOnce=True), hostUsers=host_users,
               restartPolicy="Never")
    person.ready("cat")
    with kubectl(person, "attach", "-i", "cat") as running:
        assert running.stdin
        running.stdin.write("hello\n")
        running.stdin.flush()
        line_with(running, "got hello")
        running.stdin.close()
        line_with(running, "the end")
    person.phase("cat", "Succeeded")
    assert person.log("cat").splitlines() == ["got hello", "the end"]


def test_run_gives_the_output_of_a_command(person: Person) -> None:
    words = ["run", "once", f"--image={BUSYBOX}", "--image-pull-policy=IfNotPresent", "-i", "--rm", "--restart=Never", "--quiet", "--",
             "sh", "-c", "read x; echo got $x"]
    assert "got hello" in person.kubectl(*words, stdin="hello\n", timeout=120)


def test_a_hundred_connections_through_port_forward(person: Person, host_users: bool) -> None:
    listens = {"tcpSocket": {"port": 8080}, "periodSeconds": 1}
    person.pod("web", container(["/agnhost", "netexec", "--http-port=8080", "--udp-port=-1"], image=AGNHOST, readinessProbe=listens),
               hostUsers=host_users)
    person.ready("web")
    with kubectl(person, "port-forward", "web", ":8080") as running:
        found = re.search(r"127\.0\.0\.1:(\d+)", line_with(running, "Forwarding from 127.0.0.1"))
        assert found
        done = person.cluster.run(["python3", "-c", MANY_CONNECTIONS, found[1], "100"], timeout=240)
        assert done.returncode == 0 and "100 answers" in done.stdout, done.stderr


def test_debug_sees_the_target_containers_processes(person: Person, host_users: bool) -> None:
    person.pod("main", container("exec sleep 98765"), hostUsers=host_users)
    person.ready("main")
    person.kubectl("debug", "main", f"--image={BUSYBOX}", "--image-pull-policy=IfNotPresent", "--target=main", "--container=looker",
                   "--profile=general",
                   "--", "sh", "-c", "tr '\\0' ' ' </proc/1/cmdline")
    person.until(lambda: "sleep 98765" in person.cluster.kubectl(f"--namespace={person.namespace}", "logs", "main", "-c", "looker").stdout,
                 "the debugger's word", 90)


def test_the_python_client_execs_over_the_old_websocket(person: Person, host_users: bool) -> None:
    """The API server and the kubelet pass it through: the runtime itself speaks WebSocket to this client."""
    person.pod("shell", container(FOREVER), hostUsers=host_users)
    person.ready("shell")
    packages = wheels.ensure(Path(__file__).with_name("requirements.txt"))
    around = chroot.Chroot(netns=person.cluster.netns, binds=(chroot.Bind(person.cluster.state, STATE, read_only=True),), holds=(packages,),
                           env={"PYTHONPATH": str(chroot.seen_inside(packages)), "KUBECONFIG": f"{STATE}/admin.kubeconfig"})
    with chroot.prepared(around) as inside:
        done = inside.capture(["python3", "-B", "tests/cluster/scenarios/python_client.py", person.namespace, "shell"])
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert sorted(seen["both"].split()) == ["err", "out"] and seen["long"] and seen["terminal"] == "is one", seen
    assert seen["talk"] == {"stdout": "got hello\ngot end\n", "stderr": "also hello\nalso end\n", "code": 7}


@pytest.mark.gate
def test_logs_are_followed_across_rotations(person: Person) -> None:
    """The kubelet of these stories rotates at 64 KiB, and looks every three seconds."""
    count = 6000
    person.pod("talker",
               container(f"i=0; while [ $i -lt {count} ]; do i=$((i + 1)); echo line $i of a log that is to grow beyond what one file may "
                         f"hold; "
                                   "[ $((i % 100)) = 0 ] && sleep 0.4; done; sleep 2"), restartPolicy="Never", hostUsers=False)
    person.until(lambda: person.status("talker").get("phase") in ("Running", "Succeeded"), "its start")
    got = person.kubectl("logs", "-f", "talker", timeout=600)
    files = person.on_node(f"ls /var/log/pods/{person.namespace}_talker_*/main/").split()
    assert len(files) > 1, f"no rotation happened: {files}"
    assert [int(line.split()[1]) for line in got.splitlines()] == list(range(1, count + 1))


def test_logs_are_followed(person: Person) -> None:
    person.pod("talker", container("for i in $(seq 200); do echo line $i; sleep 0.05; done"), restartPolicy="Never", hostUsers=False)
    person.until(lambda: person.status("talker").get("phase") in ("Running", "Succeeded"), "its start")
    got = person.kubectl("logs", "-f", "talker", timeout=600)
    assert got.splitlines() == [f"line {number}" for number in range(1, 201)]
    assert json.loads(person.kubectl("get", "pod", "talker", "-o", "json"))["status"]["phase"] in ("Running", "Succeeded")
