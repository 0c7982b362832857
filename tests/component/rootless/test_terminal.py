# SPDX-License-Identifier: Apache-2.0
"""The terminal of `run` and `shell`: it works like a direct one; no process in the node has it."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodenstest import machine
from nodenstest.machine import HOME, PROGRAM, Node

PROMPT = "outside$ "


class Screen:
    """A terminal with an interactive shell of the user, or with a program that is started there."""

    def __init__(self, *argv: str) -> None:
        self.said = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            words = machine.as_user(*(argv or ("sh", "-i")))
            os.chdir("/")
            os.execvpe(words[0], words, machine.environment(PS1=PROMPT, TERM="dumb"))
        self.resize(24, 80)
        if not argv:
            self.until(PROMPT)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def until(self, pattern: str, seconds: float = 30) -> str:
        """Waits until the screen shows the pattern, and returns the output up to there."""
        end = time.monotonic() + seconds
        while True:
            found = re.search(pattern if pattern.startswith("(?") else re.escape(pattern), self.said)
            if found:
                shown, self.said = self.said[:found.end()], self.said[found.end():]
                return shown.replace("\r", "")
            assert time.monotonic() < end, f"{pattern!r} is not shown: {self.said!r}"
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.said += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    raise AssertionError(f"the terminal ended before {pattern!r}: {self.said!r}") from None

    def command(self, line: str) -> str:
        """Runs a line in the shell outside to its end."""
        self.type(f"{line}; echo end=$?.\n")
        return self.until(r"(?s)end=(\d+)\.\r?\n") + self.until(PROMPT)

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self.fd)

    def is_raw(self) -> bool:
        return not self.settings()[3] & termios.ICANON

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def child_of(pid: int) -> int:
    """The only child of a process, which is a shell."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())


@pytest.fixture
def screen() -> Iterator[Screen]:
    made = Screen()
    yield made
    made.close()


@pytest.fixture(scope="module")
def living() -> Iterator[Node]:
    with machine.node("terminal", "--net", "none") as made:
        yield made


@pytest.fixture(params=["run", "shell"])
def way(request: pytest.FixtureRequest, living: Node) -> str:
    """The start of a command line that runs a command in a node."""
    return f"{PROGRAM} run --net none --" if request.param == "run" else f"{PROGRAM} shell --name {living.name} --"


def script(name: str, code: str) -> str:
    """A program that also runs in the node: /usr is the host's, so it is passed as arguments."""
    path = Path("/tmp") / name
    path.write_text(code)
    path.chmod(0o644)
    return f'python3 -c "$(cat {path})"'


INJECT = f"""
import fcntl, os, termios
for name in ("/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/stderr"):
    try:
        fd = os.open(name, os.O_RDWR | os.O_NOCTTY)
        for c in "\\nid >{HOME}/escaped\\n": fcntl.ioctl(fd, termios.TIOCSTI, c.encode())
    except OSError as error:
        print(name, error)
for fd in range(3):
    try:
        for c in "\\nid >{HOME}/escaped\\n": fcntl.ioctl(fd, termios.TIOCSTI, c.encode())
    except OSError as error:
        print(fd, error)
"""


@pytest.mark.parametrize("streams",
                         ["", "</dev/null", "| cat", "2>/dev/null", "</dev/null 2>&1 | cat", "</dev/null >/dev/null", ">/dev/null 2>&1"])
def test_input_injected_from_inside_is_not_executed_outside(screen: Screen, way: str, streams: str) -> None:
    (HOME / "escaped").unlink(missing_ok=True)
    screen.command(f"{way} {script('inject.py', INJECT)} {streams}")
    screen.command("true")
    assert not (HOME / "escaped").exists(), (HOME / "escaped").read_text()


DESCRIPTORS = """
import os
for fd in (0, 1, 2):
    if os.isatty(fd):
        print(fd, os.fstat(fd).st_dev, os.fstat(fd).st_rdev, os.ttyname(fd), file=open("/var/tmp/seen", "a"))
try:
    os.close(os.open("/dev/tty", os.O_RDWR)); print("tty", file=open("/var/tmp/seen", "a"))
except OSError as error:
    print("no tty", file=open("/var/tmp/seen", "a"))
print(sorted(os.listdir("/proc/self/fd"))[:-1], file=open("/var/tmp/seen", "a"))
"""


@pytest.mark.parametrize("streams", ["", "</dev/null", ">/dev/null", "2>/dev/null", "</dev/null >/dev/null", "</dev/null 2>/dev/null",
                                     ">/dev/null 2>&1", "</dev/null >/dev/null 2>&1"])
def test_no_stream_in_the_node_is_the_callers_terminal(screen: Screen, living: Node, streams: str) -> None:
    living.shell("rm", "-f", "/var/tmp/seen")
    screen.command(f"exec 9</; {PROGRAM} shell --name {living.name} -- {script('descriptors.py', DESCRIPTORS)} {streams}")
    lines = living.shell("cat", "/var/tmp/seen").stdout.splitlines()
    terminals, (tty, descriptors) = [line.split() for line in lines[:-2]], lines[-2:]
    redirected = {"": 0, "</dev/null >/dev/null 2>&1": 3}.get(streams, streams.count("/dev/null") + streams.count("&1"))
    assert len(terminals) == 3 - redirected, lines
    outside = os.stat(os.ptsname(screen.fd))
    for words in terminals:
        assert int(words[1]) != outside.st_dev, "it belongs to the node's devpts"
        assert words[3].startswith("/dev/pts/"), "and has a name there"
    assert (tty == "tty") == bool(terminals), "the controlling terminal is that one, or there is none"
    assert descriptors == "['0', '1', '2']", "no descriptor of the caller except the streams"


def test_descriptors_of_the_caller_are_not_inherited(way: str) -> None:
    done = machine.user("sh", "-c", f"exec 5</ 7</etc 9>>{HOME}/log; exec {way} ls -l /proc/self/fd")
    assert re.findall(r" (\d+) -> ", done.stdout) == ["0", "1", "2", "3"], done.stdout
    assert re.search(r" 3 -> /proc/\d+/fd", done.stdout), "ls's own"


def test_a_directory_as_a_stream_is_rejected(way: str) -> None:
    done = machine.user("sh", "-c", f"exec {way} ls -l /proc/self/fd </etc", check=False)
    assert done.returncode != 0 and "would give the node access to the host" in done.stderr


def test_the_terminal_is_raw_during_a_command_and_restored_afterwards(screen: Screen, way: str) -> None:
    before = screen.settings()
    screen.type(f"{way} sh -c 'echo rea''dy; read line; echo \"<$line>\"; exit 7'; echo end=$?.\n")
    screen.until("(?m)^ready")
    machine.wait_for(screen.is_raw, what="keys go to the command")
    screen.type("word\n")
    screen.until("<word>")
    screen.until("end=7.")
    screen.until(PROMPT)
    assert screen.settings() == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV, signal.SIGHUP])
def test_the_terminal_is_restored_when_a_signal_terminates_the_launcher(living: Node, number: signal.Signals) -> None:
    made = Screen("sh", "-c", f"echo $$; exec {PROGRAM} shell --name {living.name} -- sh -c 'echo ready; exec sleep 1000'")
    try:
        before = made.settings()
        pid = int(re.findall(r"\d+", made.until(r"(?m)^\d+\s"))[-1])
        made.until("ready")
        machine.wait_for(made.is_raw, what="keys go to the command")
        held = os.open(os.readlink(f"/proc/{pid}/fd/0"), os.O_RDWR | os.O_NOCTTY)
        os.kill(pid, number)
        machine.wait_for(lambda: not machine.alive(pid), what="the launcher has ended")
        assert termios.tcgetattr(held) == before
        os.close(held)
    finally:
        made.close()


def test_the_window_size_is_forwarded(screen: Screen, way: str) -> None:
    screen.resize(30, 90)
    screen.type(f"{way} sh -c 'stty size; trap \"stty size; exit\" WINCH; echo rea''dy; while :; do sleep 0.05; done'; echo end=$?.\n")
    screen.until("30 90")
    screen.until("(?m)^ready")
    screen.resize(41, 101)
    screen.until("41 101")
    screen.until("end=0.")


def test_interrupts_reach_the_command_and_not_the_shell_outside(screen: Screen, way: str) -> None:
    screen.type(f"{way} sh -c 'echo rea''dy; exec sleep 1000'; echo end=$?.\n")
    screen.until("(?m)^ready")
    machine.wait_for(screen.is_raw, what="keys go to the command")
    screen.type("\x03")
    screen.until("end=130.")
    screen.until(PROMPT)


def test_a_command_is_suspended_and_continued_as_a_job(screen: Screen, way: str) -> None:
    before = screen.settings()
    screen.type(f"{way} sh -c 'echo rea''dy; while read line; do echo \"<$line>\"; done; exit 5'\n")
    screen.until("(?m)^ready")
    machine.wait_for(screen.is_raw, what="keys go to the command")
    for word in ("one", "two"):
        screen.type("\x1a")
        screen.until("Stopped")
        screen.until(PROMPT)
        assert screen.settings() == before
        screen.type("fg\n")
        machine.wait_for(screen.is_raw, what="keys go to the command again")
        screen.type(f"{word}\n")
        screen.until(f"<{word}>")
    screen.type("\x04")
    screen.until(PROMPT)
    screen.type("echo end=$?.\n")
    screen.until("end=5.")


def test_a_pipeline_is_suspended_and_continued_once(screen: Screen, way: str) -> None:
    before = screen.settings()
    screen.type(f"{way} sh -c 'echo rea''dy; i=0; while [ $i -lt 40 ]; do sleep 0.05; i=$((i + 1)); done; echo done' </dev/null | cat\n")
    screen.until("(?m)^ready")
    screen.type("\x1a")
    screen.until("Stopped")
    screen.until(PROMPT)
    screen.type("fg; echo en''d=$?.\n")
    shown = screen.until("end=")
    assert "done" in shown and "Stopped" not in shown
    screen.until(PROMPT)
    assert screen.settings() == before


def test_a_command_that_ignores_sigtstp_does_not_block_suspension(screen: Screen, way: str) -> None:
    screen.type(f"{way} sh -c 'trap \"\" TSTP; echo rea''dy; exec sleep 1000' </dev/null | cat\n")
    screen.until("(?m)^ready")
    screen.type("\x1a")
    screen.until("Stopped")
    screen.until(PROMPT)
    screen.type("kill -KILL %1\n")
    screen.until(PROMPT)


def test_the_terminal_is_raw_again_after_a_stop_from_outside(screen: Screen, living: Node) -> None:
    before = screen.settings()
    screen.type(f"{PROGRAM} shell --name {living.name} -- sh -c 'echo rea''dy; read line; echo \"<$line>\"'\n")
    screen.until("(?m)^ready")
    machine.wait_for(screen.is_raw, what="keys go to the command")
    os.kill(child_of(screen.pid), signal.SIGSTOP)
    screen.until(PROMPT)
    termios.tcsetattr(screen.fd, termios.TCSANOW, before)   # like bash, unlike dash
    screen.type("fg\n")
    machine.wait_for(screen.is_raw, what="keys go to the command again")
    screen.type("word\n")
    screen.until("<word>")
    screen.until(PROMPT)


def test_a_shell_in_the_node_has_job_control(screen: Screen, living: Node) -> None:
    screen.type(f"PS1= {PROGRAM} shell --name {living.name} -- env PS1='inside# ' sh -i\n")
    screen.until("inside# ")
    screen.type("sleep 1000\n")
    machine.wait_for(lambda: "sleep 1000" in living.shell("ps", "-e", "-o", "args=").stdout, what="it runs")
    screen.type("\x1a")
    screen.until("Stopped")
    screen.until("inside# ")
    screen.type("kill -KILL %1; tty\n")
    screen.until("/dev/pts/")
    shown = screen.until("inside# ")
    while "Killed" not in shown:    # printed before one of the next prompts
        screen.type("true\n")
        shown = screen.until("inside# ")
    screen.type("exit 3\n")
    screen.until(PROMPT)
    screen.type("echo end=$?.\n")
    screen.until("end=3.")


def test_a_background_command_does_not_touch_the_terminal(screen: Screen, way: str) -> None:
    before = screen.settings()
    screen.type(f"{way} sh -c 'echo hel''lo; read line; echo \"<$line>\"' &\n")
    screen.until("hello")
    screen.type("echo out''side\n")
    screen.until("(?m)^outside")
    assert screen.settings() == before
    screen.type("fg\n")
    machine.wait_for(screen.is_raw, what="the command has the keys")
    screen.type("word\n")
    screen.until("<word>")
    screen.until(PROMPT)


@pytest.mark.parametrize(("line", "shown"), [
    ("WAY sh -c 'seq 3; exit 4' | tr '\\n' ,", "1,2,3,"), ("echo word | WAY tr a-z A-Z", "WORD"),
    ("WAY sh -c 'echo one; echo two >&2' 2>&1 | sort -r | tr '\\n' ,", "two,one,"),
    ("seq 200000 | WAY cat | tail -n 1", "200000"), ("WAY seq 3000 | head -n 1", "1"),
    ("WAY sh -c 'echo to the screen >/dev/tty' </dev/null | cat", "to the screen"),
])
def test_pipelines(screen: Screen, way: str, line: str, shown: str) -> None:
    before = screen.settings()
    assert f"\n{shown}" in screen.command(line.replace("WAY", way))
    assert screen.settings() == before


def test_a_command_in_a_pipeline_gets_keys_when_it_reads_the_terminal(screen: Screen, way: str) -> None:
    screen.type(f"{way} sh -c 'read line </dev/tty; echo \"<$line>\"' </dev/null | cat; echo end=$?.\n")
    machine.wait_for(screen.is_raw, what="the command has the keys")
    screen.type("word\n")
    screen.until("<word>")
    screen.until("end=0.")


def test_background_processes_of_a_command_survive_it(screen: Screen, living: Node) -> None:
    screen.command(f"{PROGRAM} shell --name {living.name} -- sh -c 'sleep 2000 & exit 0'")
    assert "sleep 2000" in living.shell("ps", "-e", "-o", "args=").stdout
    living.shell("pkill", "-x", "sleep")


def test_without_a_terminal_signals_are_forwarded(living: Node) -> None:
    with subprocess.Popen(machine.as_user(PROGRAM, "shell", "--name", living.name, "--", "sh", "-c",
                                          "trap 'echo got it; exit 3' INT; echo ready; while :; do sleep 0.05; done"),
                          stdout=subprocess.PIPE, text=True, env=machine.environment(), cwd="/") as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "got it\n" and process.wait(10) == 3


def test_large_output_on_a_terminal_is_complete(screen: Screen, way: str) -> None:
    shown = screen.command(f"{way} seq 20000")
    assert [int(line) for line in re.findall(r"(?m)^(\d+)$", shown)] == list(range(1, 20001))


def test_a_missing_program_gives_127(screen: Screen, way: str) -> None:
    assert "end=127." in screen.command(f"{way} no-such-program")
