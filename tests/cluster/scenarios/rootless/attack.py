# SPDX-License-Identifier: Apache-2.0
"""What the attacks on a user's account share: programs that root of the node runs, and prey on the host."""
import contextlib
import re
import shlex
from collections.abc import Iterator

from alice import Alice
from nodenstest.syscalls import SYSCALLS

# Each attempt prints GOT, if it succeeds, or why it does not.
PRELUDE = SYSCALLS + """
import array, ctypes, fcntl, os, select, signal, socket, stat, struct, sys, time
def attempt(name, function):
    try:
        print("GOT", name, function(), flush=True)
    except (OSError, EOFError) as error:
        print("refused", name, error, flush=True)
def connect(path, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind); s.settimeout(5); s.connect(path); return s
def dial(address, port):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET); s.settimeout(2); s.connect((address, port)); return s.recv(100)
def write(path, text):
    with open(path, "w") as file: file.write(text)
def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
"""
SERVER = """
import os, socket, sys
kind = socket.SOCK_DGRAM if sys.argv[1] == "datagram" else socket.SOCK_STREAM
if sys.argv[2].isdigit():
    s = socket.socket(socket.AF_INET, kind); s.setsockopt(1, 2, 1); s.bind((sys.argv[3], int(sys.argv[2])))
else:
    s = socket.socket(socket.AF_UNIX, kind); s.bind("\\0" + sys.argv[2])
print(os.getpid(), flush=True)
if kind == socket.SOCK_DGRAM:
    while True: print("heard", s.recv(100).decode(), flush=True)
s.listen()
while True:
    c, _ = s.accept()
    if sys.argv[1] == "web": c.recv(1000)
    c.sendall(b"web" if sys.argv[1] == "web" else b"of alice"); c.close()
"""


def inside(alice: Alice, code: str, timeout: float = 300) -> str:
    """What root of the node prints."""
    done = alice.cluster.rootless_exec(["python3", "-c", PRELUDE + code], timeout=timeout)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def refused(said: str, least: int = 1) -> None:
    """Every attempt was made, and none succeeded."""
    assert "GOT" not in said, said
    assert len(re.findall(r"^refused", said, re.MULTILINE)) >= least, said


@contextlib.contextmanager
def server(alice: Alice, *words: str) -> Iterator[str]:
    """A program of alice's on the host. Yields the file with its output."""
    log = "/tmp/prey-" + "-".join(words).replace("/", "-")
    alice.on_host(f"setsid python3 -c {shlex.quote(SERVER)} {shlex.join(words)} >{log} 2>&1 </dev/null & "
                  f"while ! test -s {log}; do sleep 0.1; done")
    try:
        yield log
    finally:
        alice.on_host(f"kill $(head -1 {log}); rm {log}")


def from_host(alice: Alice, code: str) -> str:
    """What the same program prints outside, where it must work: the attack is about something."""
    return alice.on_host(f"python3 -c {shlex.quote(PRELUDE + code)}")
