# SPDX-License-Identifier: Apache-2.0
"""An operator's commands on a node without a kubelet: nodens exec, logs, stats, top and rm, against a real nodens-cri with real pods."""
import hashlib
import json
import os
import signal
import subprocess
import termios
import threading
import time
from pathlib import Path
from typing import Any

from nodenstest import runtimes
from nodenstest.operator import Node, terminal
from nodenstest.pods import eventually

HOSTILE = r"\033]0;owned\007\033[2J\302\233 31m"    # in the syntax of a shell's printf


# ---- exec ----

def test_a_command_has_its_streams_and_its_exit_code(node: Node) -> None:
    one = node.pods.run(name="web").container(name="nginx")
    done = node.run("exec", "cri-test/web/nginx", "--", "sh", "-c", "echo out; echo err >&2; exit 37")
    assert (done.returncode, done.stdout, done.stderr) == (37, b"out\n", b"err\n")
    assert node.said("exec", "web", "echo", "by name") == "by name\n"
    assert node.said("exec", "web/nginx", "id", "-u") == "0\n"
    assert node.said("exec", one.id[:12], "echo", "by id") == "by id\n"
    assert node.run("exec", "web", "--", "sh", "-c", "kill -9 $$").returncode == 137
    assert node.run("exec", "web", "true").returncode == 0


def test_input_of_any_length_reaches_the_command_and_ends(node: Node, directory: Path) -> None:
    node.pods.run(name="web").container()
    data = os.urandom(8 << 20)
    done = node.run("exec", "-i", "web", "--", "cat", input=data)
    assert done.returncode == 0 and hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest(), (
        done.returncode,
        len(done.stdout),
        done.stderr,
    )
    (directory / "data").write_bytes(data)
    with open(directory / "data", "rb") as given:    # a file cannot be waited for
        done = subprocess.run(node.command("exec", "-i", "web", "--", "sha256sum"), stdin=given, capture_output=True, timeout=180)
    assert done.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest(), done
    assert node.run("exec", "-i", "web", "cat", input=b"").stdout == b""


def test_a_terminal_is_the_commands_and_is_put_back(node: Node) -> None:
    one = node.pods.run(name="web").container()
    with terminal(node.command("exec", "-it", "web", "sh"), rows=33, columns=77) as here:
        here.type(b"stty size\n")
        here.expect(b"33 77")
        here.resize(44, 99)
        os.killpg(here.process.pid, signal.SIGWINCH)
        here.type(b"while [ \"$(stty size)\" = '33 77' ]; do sleep 0.1; done; stty size\n")
        here.expect(b"44 99")
        here.type(b"sleep 4323\n")
        eventually(lambda: "sleep 4323" in one.output("ps -o args"), what="the start of the command")
        here.type(b"\x03")                            # the command's, not ours
        here.type(b"echo code is $?\n")
        here.expect(b"code is 130")
        here.type(b"exit 5\n")
        assert here.ended() == 5
        assert termios.tcgetattr(here.slave) == here.before, "the terminal is not as it was"


def test_a_commands_output_is_copied_unchanged_and_messages_of_exec_are_escaped(node: Node) -> None:
    node.pods.run(name="web").container()
    said = b"\033]0;owned\007\033[2J\302\233 31m\n"
    with terminal(node.command("exec", "web", "printf", f"{HOSTILE}\\n")) as here:
        assert here.ended() == 0
        assert here.output == said.replace(b"\n", b"\r\n")
    for arguments in (("web/\033]0;owned\007", "true"), ("\033]0;owned\007", "true")):
        done = node.run("exec", *arguments)
        assert done.returncode == 125 and done.stderr.startswith(b"nodens exec: "), (arguments, done)
        assert b"\033" not in done.stderr and b"\007" not in done.stderr, (arguments, done)


def test_a_signal_that_ends_exec_leaves_the_terminal_as_it_was_and_no_command_behind(node: Node) -> None:
    one = node.pods.run(name="web").container()
    with terminal(node.command("exec", "-it", "web", "--", "sh", "-c", "echo here; sleep 4322")) as here:
        here.expect(b"here")
        here.process.terminate()
        assert here.ended() == 125
        assert termios.tcgetattr(here.slave) == here.before
    eventually(lambda: "4322" not in one.output("ps -o args"), 15, "the end of the command")


def test_a_command_that_cannot_run_is_an_error_distinct_from_its_exit_code(node: Node) -> None:
    pod = node.pods.run(name="web")
    pod.container(name="a")
    pod.container("exit 3", name="b").ended()
    for arguments, words in ((("absent", "true"), "no pod or container named 'absent'"), (("web", "true"), "matches several containers:"),
                             (("web/b", "true"), "exited"), (("web/c", "true"), "it has")):
        done = node.run("exec", *arguments)
        assert done.returncode == 125 and words in done.stderr.decode(), (arguments, done)
    assert "nodens logs" in node.run("exec", "web/b", "true").stderr.decode()
    alone = subprocess.run([runtimes.program("src/nodens"), "exec", "--socket", "/nowhere.sock", "web", "true"], capture_output=True,
                           text=True)
    assert alone.returncode == 125 and "is it running?" in alone.stderr


# ---- logs ----

def test_logs_of_the_container_are_joined_and_cut_as_requested(node: Node) -> None:
    one = node.pods.run(name="web").container("echo one; echo two >&2; head -c 40000 /dev/zero | tr '\\0' x; echo; echo four; sleep 4321")
    eventually(lambda: len(one.log()) == 4, 15, "four lines")
    done = node.run("logs", "web")
    assert done.stdout == b"one\n" + b"x" * 40000 + b"\nfour\n" and done.stderr == b"two\n"
    assert node.said("logs", "--tail", "1", "web") == "four\n"
    assert node.said("logs", "--tail", "2", "web") == "x" * 40000 + "\nfour\n"
    assert node.said("logs", "--tail=0", "web") == ""
    assert node.said("logs", "--tail", "100", "web").startswith("one\n")
    stamped = node.said("logs", "-t", "--tail", "1", "web")
    when, text = stamped.split(" ", 1)
    assert text == "four\n" and when.endswith("Z")
    assert "four" in node.said("logs", "--since", "10m", "web") and node.said("logs", "--since", "2199-01-01T00:00:00Z", "web") == ""
    assert node.said("logs", "--since", when, "web").endswith("four\n")
    assert node.run("logs", "--since", "yesterday", "web").returncode == 64


def test_following_a_log_misses_and_repeats_nothing_across_rotations_and_ends_with_the_container(node: Node) -> None:
    one = node.pods.run(name="web").container("i=0; until [ -e /tmp/enough ]; do i=$((i + 1)); echo line $i; [ $((i % 10)) = 0 ] && sleep "
                                              "0.01; done")
    follower = subprocess.Popen(node.command("logs", "-f", "web"), stdout=subprocess.PIPE, text=True)
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(line.rstrip("\n") for line in follower.stdout or ()))
    reader.start()
    try:
        for number in range(4):    # as the kubelet does it
            eventually(lambda: len(one.log()) > 100 and one.log()[100][1] in lines,
                       what="a hundred lines, and a follower that is not a file behind")
            one.log_file.rename(one.log_file.with_suffix(f".{number}"))
            node.pods.runtime.ReopenContainerLog(node.pods.pb.ReopenContainerLogRequest(container_id=one.id), timeout=120)
        one.output("touch /tmp/enough")
        reader.join(120)
    finally:
        follower.kill()
    assert one.ended().exit_code == 0
    written = sum(len(path.read_text().splitlines()) for path in one.log_file.parent.glob(f"{one.log_file.stem}.*"))
    assert lines == [f"line {number}" for number in range(1, written + 1)] and written > 400


def test_a_log_is_followed_while_the_daemon_is_away(node: Node) -> None:
    node.pods.run(name="web").container("i=0; while sleep 0.1; do i=$((i + 1)); echo line $i; done")
    follower = subprocess.Popen(node.command("logs", "-f", "web"), stdout=subprocess.PIPE, text=True)
    try:
        assert follower.stdout and follower.stdout.readline() == "line 1\n"
        node.runtime.stop(signal.SIGKILL)
        time.sleep(2)
        assert follower.poll() is None
        node.runtime.start().close()
        eventually(lambda: node.run("pods").returncode == 0, 30, "an answer after the restart")
        lines = [follower.stdout.readline() for _ in range(20)]
        assert lines == [f"line {number}\n" for number in range(2, 22)]
    finally:
        follower.kill()
        follower.wait()


def test_the_log_before_a_restart_is_there_as_long_as_its_container(node: Node) -> None:
    pod = node.pods.run(name="web")
    assert node.run("logs", "--previous", "web").returncode == 1
    first = pod.container("echo first; exit 1", name="one")
    first.ended()
    pb = node.pods.pb
    second = pod.container("echo second; sleep 4321", name="one", metadata=pb.ContainerMetadata(name="one", attempt=1))
    eventually(second.log, 15, "a line")
    assert node.said("logs", "web") == "second\n" and node.said("logs", "-p", "web") == "first\n"
    first.remove()
    done = node.run("logs", "-p", "web")
    assert done.returncode == 1 and "no previous container" in done.stderr.decode()


def test_container_output_is_escaped_on_a_terminal_and_unchanged_in_a_pipe(node: Node) -> None:
    one = node.pods.run(name="web").container(f"printf '{HOSTILE}\\n'; sleep 4321")
    eventually(one.log, 15, "a line")
    bytes_said = b"\033]0;owned\007\033[2J\302\233 31m\n"
    assert node.run("logs", "web").stdout == bytes_said
    with terminal(node.command("logs", "web")) as here:
        here.ended()
        assert here.output == b"?]0;owned??[2J? 31m\r\n"
    with terminal(node.command("logs", "--raw", "web")) as here:
        here.ended()
        assert here.output == bytes_said.replace(b"\n", b"\r\n")


# ---- stats, top ----

def test_stats_are_printed_as_a_table_and_as_json(node: Node) -> None:
    busy = node.pods.run(name="busy").container("while true; do :; done", name="loop")
    node.pods.run(name="idle").container(name="sleep")
    found: dict[str, Any] = {}

    def seen() -> bool:
        found.update({entry["pod"]: entry for entry in json.loads(node.said("stats", "--json"))})
        assert set(found) == {"busy", "idle"} and found["busy"]["id"] == busy.id
        # a machine with much else to do gives it little
        return found["busy"]["cpuNanoCores"] > 10_000_000 + 2 * found["idle"]["cpuNanoCores"]

    eventually(seen, what="that a loop uses more than nothing does")
    assert found["busy"]["container"] == "loop" and found["busy"]["cpuNanoSeconds"] > 0
    pods = json.loads(node.said("stats", "--json", "--pods", "busy"))
    assert [entry["pod"] for entry in pods] == ["busy"] and pods[0]["receivedBytes"] is not None
    lines = node.said("stats").splitlines()
    assert lines[0].split() == ["NAMESPACE", "POD", "CONTAINER", "CPU", "MEMORY", "LIMIT", "DISK", "PIDS"] and len(lines) == 3
    done = node.run("stats", "absent")
    assert done.returncode == 1 and "no pod named 'absent'" in done.stderr.decode()


def test_top_shows_the_most_cpu_first_again_and_again(node: Node) -> None:
    node.pods.run(name="a-idle").container(name="sleep")
    node.pods.run(name="z-busy").container("while true; do :; done", name="loop")
    lines = node.said("top", "--count", "2", "--interval", "1").splitlines()
    assert len(lines) == 8 and lines[0].startswith("2 containers")
    assert [line.split()[1] for line in (lines[2], lines[3])] == ["z-busy", "a-idle"]
    with terminal(node.command("top", "--interval", "1")) as here:
        here.expect(b"z-busy")
        shown = len(here.output)
        eventually(lambda: here.count(b"z-busy") >= 3, 20, "a third look")
        assert len(here.output) > shown
        here.type(b"q")
        assert here.ended() == 0
        assert here.output.endswith(b"\033[?25h\033[?1049l") and termios.tcgetattr(here.slave) == here.before


# ---- rm ----

def gone(node: Node, *names: str) -> bool:
    return not {item.metadata.name for item in node.pods.sandboxes()} & set(names)


def test_pods_are_stopped_with_their_grace_and_removed(node: Node, directory: Path) -> None:
    (directory / "volume").mkdir(mode=0o777)
    (directory / "volume").chmod(0o777)
    pod = node.pods.run(name="polite")
    pod.container("trap 'echo bye > /volume/bye; exit 0' TERM; echo up; while sleep 0.1; do :; done",
                  mounts=[pod.mount(directory / "volume", "/volume")])
    node.pods.run(name="other").container()
    eventually(lambda: node.said("logs", "polite") == "up\n", 15, "its start")
    done = node.run("rm", "polite", "cri-test/other", "--grace", "60")
    assert done.returncode == 0 and done.stdout.decode().count("removed cri-test/") == 2, done
    assert gone(node, "polite", "other") and (directory / "volume/bye").exists()
    assert not node.pods.containers()
    done = node.run("rm", "polite")
    assert done.returncode == 1 and "no pod named 'polite'" in done.stderr.decode()
    assert node.run("rm", "-f", "polite").returncode == 0


def test_force_kills_unresponsive_containers_at_once(node: Node) -> None:
    node.pods.run(name="stubborn").container("trap '' TERM; while true; do sleep 1; done")
    began = time.monotonic()
    assert node.run("rm", "-f", "stubborn").returncode == 0
    assert time.monotonic() - began < 30 and gone(node, "stubborn"), "without --force it has a grace of 30 s"


def test_pods_that_need_their_whole_grace_are_removed_at_the_same_time(node: Node) -> None:
    for number in range(20):
        node.pods.run(name=f"stubborn-{number}").container("trap '' TERM; while true; do sleep 1; done")
    done = subprocess.run(node.command("rm", "--all", "--grace", "5"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=180)
    words = [line.split()[0] for line in done.stdout.splitlines()]
    assert done.returncode == 0 and words.count("removed") == 20 and not node.pods.sandboxes(), done
    assert words[:17] == ["stopping"] * 16 + ["removed"], done


def test_removing_pods_beside_a_kubelet_gives_a_warning(node: Node) -> None:
    node.pods.run(name="one")
    node.pods.run(name="two")
    node.pods.runtime.Status(node.pods.pb.StatusRequest(), timeout=120)
    assert "kubelet" not in node.run("rm", "absent").stderr.decode()
    done = node.run("rm", "--all")
    assert done.returncode == 0 and gone(node, "one", "two"), done
    assert "a kubelet uses this runtime" in done.stderr.decode() and "kubectl delete pod" in done.stderr.decode()
    assert "kubelet" not in node.run("rm", "--all").stderr.decode()
    assert node.run("rm").returncode == 64


def test_a_removal_goes_on_after_the_client_has_disconnected(node: Node) -> None:
    one = node.pods.run(name="slow").container("trap 'echo asked' TERM; while true; do sleep 0.1; done")
    asking = subprocess.Popen(node.command("rm", "--grace", "10", "slow"), stdout=subprocess.DEVNULL)
    eventually(one.log, what="its being asked to end")
    asking.kill()
    asking.wait()
    assert not gone(node, "slow")
    eventually(lambda: gone(node, "slow"), 20, "the removal")
