# SPDX-License-Identifier: Apache-2.0
"""What an operator types first on a node without a kubelet: nodens ps, rmi, attach, port-forward, version and info, names by their
beginning, exit codes, and the completion of bash."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

from nodenstest import runtimes, validation
from nodenstest.operator import Node, Terminal, terminal
from nodenstest.pods import Pods, eventually

HOSTILE = "\x1b[31m\x07\u202e"


# ---- names ----

def test_pods_and_containers_are_found_by_the_beginning_of_their_names(node: Node) -> None:
    web = node.pods.run(name="web-6d4b75cb6d-hz7xk")
    web.container("echo from web; sleep 4321", name="nginx")
    node.pods.run(name="job").container(name="run")
    assert node.said("exec", "web", "hostname") == "web-6d4b75cb6d-hz7xk\n"
    assert node.said("exec", "cri-test/web/ng", "echo", "yes") == "yes\n"
    assert node.said("inspect", "web").startswith("pod cri-test/web-6d4b75cb6d-hz7xk\n")
    assert node.said("inspect", web.id[:6]).startswith("pod cri-test/web-")
    assert [entry["pod"] for entry in json.loads(node.said("stats", "--json", "web-6"))] == ["web-6d4b75cb6d-hz7xk"]
    eventually(lambda: node.said("logs", "web-") == "from web\n", what="the log")
    assert "removed cri-test/web-6d4b75cb6d-hz7xk" in node.said("rm", "--grace", "0", "web-6d")


def test_an_ambiguous_beginning_is_answered_with_the_candidates_and_nothing_is_done(node: Node) -> None:
    for name in ("web-1", "web-2", "job"):
        node.pods.run(name=name).container(name="one")
    for arguments in (("inspect", "we"), ("stats", "we"), ("rm", "we"), ("port-forward", "we", "80")):
        done = node.run(*arguments)
        assert done.returncode == 1 and "matches several pods: cri-test/web-" in done.stderr.decode(), (arguments, done)
        assert "cri-test/web-1" in done.stderr.decode() and "cri-test/web-2" in done.stderr.decode()
    for arguments in (("exec", "we", "true"), ("logs", "we"), ("attach", "we")):
        done = node.run(*arguments)
        assert done.returncode != 0 and "cri-test/web-1/one" in done.stderr.decode() and "cri-test/web-2/one" in done.stderr.decode()
    assert len(node.pods.sandboxes()) == 3


def test_a_name_that_does_not_exist_is_answered_with_similar_ones(node: Node) -> None:
    node.pods.run(name="frontend-5d78").container(name="one")
    for arguments in (("inspect", "forntend"), ("exec", "forntend", "true"), ("logs", "forntend"), ("attach", "forntend"),
                      ("rm", "forntend"), ("stats", "forntend"), ("port-forward", "forntend", "80")):
        done = node.run(*arguments)
        assert done.returncode != 0 and "similar: cri-test/frontend-5d78; see 'nodens pods'" in done.stderr.decode(), (arguments, done)


def test_a_forced_removal_needs_the_whole_name(node: Node) -> None:
    node.pods.run(name="web-2")
    done = node.run("rm", "--force", "web")
    assert done.returncode == 0 and not done.stdout and len(node.pods.sandboxes()) == 1, done


# ---- ps ----

def test_ps_lists_running_containers_and_with_a_all_others(node: Node) -> None:
    pod = node.pods.run(name="web")
    running = pod.container(name="server")
    pod.container("exit 3", name="task").ended()
    lines = node.said("ps").splitlines()
    assert lines[0].split() == ["NAMESPACE", "POD", "CONTAINER", "STATE", "RESTARTS", "IMAGE", "ID"] and len(lines) == 2, lines
    assert "server" in lines[1] and "running" in lines[1] and running.id[:12] in lines[1]
    everything = node.said("ps", "-a")
    assert len(everything.splitlines()) == 3 and "exited" in everything and "Error 3" in everything, everything
    listed = {entry["name"]: entry for entry in json.loads(node.said("ps", "-a", "--json"))}
    assert listed["server"]["id"] == running.id and listed["task"]["exitCode"] == 3 and listed["server"]["pid"] == running.pid()
    assert [entry["name"] for entry in json.loads(node.said("ps", "--json"))] == ["server"]


def test_ps_without_containers_says_so_and_hostile_names_are_escaped(node: Node) -> None:
    done = node.run("ps")
    assert (done.returncode, done.stdout) == (0, b"") and done.stderr == b"no running containers; -a lists all\n"
    node.pods.run(name="evil" + HOSTILE).container(name="two")
    said = node.said("ps")
    assert "\x1b" not in said and "evil?[31m?" in said, said


# ---- rmi ----

def test_an_image_is_removed_by_name_and_by_id_unless_a_container_uses_it(node: Node, shell: str) -> None:
    name = str(json.loads(node.said("images", "--json"))[0]["names"][0])
    node.pods.run(name="web").container(name="one")
    done = node.run("rmi", name)
    assert done.returncode == 1 and "is used by 1 container; remove it first, or use --force" in done.stderr.decode(), done
    assert "no unused images" in node.run("rmi", "--unused").stderr.decode()
    node.said("rm", "--force", "web")
    said = node.said("rmi", name)
    assert f"removed name {name}\n" in said and "removed image sha256:" in said
    assert json.loads(node.said("images", "--json")) == []
    done = node.run("rmi", name)
    assert done.returncode == 1 and f"no image named '{name}'; see 'nodens images'" in done.stderr.decode()
    assert node.run("rmi", "--force", name).returncode == 0
    node.said("pull", "-q", shell)
    identity = str(json.loads(node.said("images", "--json"))[0]["id"])
    assert "removed image" in node.said("rmi", identity.removeprefix("sha256:")[:8])
    node.said("pull", "-q", shell)
    assert "removed image" in node.said("rmi", "--unused") and json.loads(node.said("images", "--json")) == []
    for wrong in ((), ("--unused", name), ("--unused", "--force")):
        assert node.run("rmi", *wrong).returncode == 64
    node.pods.pulled.clear()


def test_a_name_of_an_image_with_others_is_removed_alone(node: Node, site: runtimes.registry_server.Site, shell: str) -> None:
    first, second = (runtimes.registry_server.Site.publish(site, validation.image("twin"), f"operator/twin:{tag}") for tag in "12")
    for name in (first, second):
        node.said("pull", "-q", name)
    said = node.said("rmi", first)
    assert f"removed only the name {first}\n" in said and "which has other names" in said, said
    assert {name for image in json.loads(node.said("images", "--json")) for name in image["names"]} == {second, shell}
    assert f"removed name {second}\n" in node.said("rmi", second)
    assert {name for image in json.loads(node.said("images", "--json")) for name in image["names"]} == {shell}


def test_a_forced_removal_of_a_used_image_leaves_the_container_running(node: Node, shell: str) -> None:
    node.pods.run(name="web").container(name="one")
    assert "removed image" in node.said("rmi", "--force", shell)
    assert node.said("exec", "web", "echo", "alive") == "alive\n"
    node.pods.pulled.clear()


# ---- attach ----

def test_attach_shows_the_output_and_passes_the_input(node: Node) -> None:
    node.pods.run(name="web").container("while read line; do echo got $line; done; echo over; sleep 4321", name="one", stdin=True)
    with subprocess.Popen(node.command("attach", "-i", "web"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as here:
        assert here.stdin and here.stdout
        here.stdin.write(b"hello\n")
        here.stdin.flush()
        assert here.stdout.readline() == b"got hello\n"
        here.kill()
    assert node.said("exec", "web", "echo", "alive") == "alive\n"


def test_attach_ends_with_the_container(node: Node) -> None:
    node.pods.run(name="web").container("read line; echo bye; exit 3", name="one", stdin=True)
    done = node.run("attach", "-i", "web", input=b"go\n")
    assert (done.returncode, done.stdout) == (0, b"bye\n"), done


def test_keys_detach_from_a_terminal_and_the_container_goes_on(node: Node) -> None:
    one = node.pods.run(name="web").container("while read line; do echo got $line; done", name="one", stdin=True, tty=True)
    with terminal(node.command("attach", "-i", "web")) as here:
        here.expect(b"Ctrl-P Ctrl-Q detaches")
        here.type(b"hello\n")
        here.expect(b"got hello")
        here.type(b"\x10\x11")
        assert here.ended() == 0
        assert termios.tcgetattr(here.slave) == here.before, "the terminal is not as it was"
    assert one.state == node.pods.pb.CONTAINER_RUNNING


def test_attach_explains_what_it_cannot_do(node: Node) -> None:
    pod = node.pods.run(name="web")
    pod.container(name="deaf")
    pod.container("exit 3", name="done").ended()
    done = node.run("attach", "-i", "web/deaf", input=b"")
    assert done.returncode == 1 and "has no standard input: its pod does not set 'stdin: true'" in done.stderr.decode(), done
    done = node.run("attach", "web/done")
    assert done.returncode == 1 and "exited" in done.stderr.decode() and "nodens logs" in done.stderr.decode()
    assert node.run("attach").returncode == 64


# ---- port-forward ----

class Forwarding:
    """A running `nodens port-forward`; its local ports are those that it prints."""

    def __init__(self, node: Node, *arguments: str, ports: int = 1) -> None:
        self.process = subprocess.Popen(node.command("port-forward", *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.lines = [self.process.stdout.readline() for _ in range(ports)]
        self.ports = [int(line.split()[1].rpartition(":")[2]) for line in self.lines]

    def dial(self, number: int = 0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.ports[number]), timeout=60)

    def ended(self, kill: int | None = signal.SIGINT) -> tuple[int, str]:
        if kill:
            self.process.send_signal(kill)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@contextlib.contextmanager
def forwarding(node: Node, *arguments: str, ports: int = 1) -> Iterator[Forwarding]:
    made = Forwarding(node, *arguments, ports=ports)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
            made.process.wait()


def everything(connection: socket.socket) -> bytes:
    with connection:
        return b"".join(iter(lambda: connection.recv(65536), b""))


def send_and_end(connection: socket.socket, data: bytes) -> None:
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


def echoing(pods: Pods, name: str = "web") -> None:
    """A pod with servers: 7001 sends back what it gets, 7002 greets and ends."""
    one = pods.run(name=name).container("nc -lk -p 7001 -e cat & nc -lk -p 7002 -e echo hello & wait", name="one")
    eventually(lambda: all(f":{port:04X} " in one.output("cat /proc/net/tcp /proc/net/tcp6") for port in (7001, 7002)), what="its servers")


def test_ports_are_forwarded_both_ways_with_their_ends(node: Node) -> None:
    echoing(node.pods)
    with forwarding(node, "web", ":7001", ":7002", ports=2) as here:
        assert here.lines[0].startswith("forwarding 127.0.0.1:") and here.lines[0].endswith(" to port 7001 of cri-test/web\n")
        assert everything(here.dial(1)) == b"hello\n"
        data = os.urandom(1 << 20)
        connection = here.dial(0)
        sender = threading.Thread(target=send_and_end, args=(connection, data))
        sender.start()
        received = everything(connection)
        sender.join()
        assert received == data
        assert here.ended() == (0, "")


def test_a_port_without_a_server_is_an_error_of_its_connection_alone(node: Node) -> None:
    echoing(node.pods)
    with forwarding(node, "web", ":9", ":7002", ports=2) as here:
        assert everything(here.dial(0)) == b""
        assert everything(here.dial(1)) == b"hello\n"
        code, errors = here.ended()
        assert code == 0 and "port 9: error forwarding port 9 to pod" in errors and "Connection refused" in errors, errors


def test_forwarding_goes_on_after_a_restart_of_the_daemon(node: Node) -> None:
    echoing(node.pods)
    with forwarding(node, "web", ":7002") as here:
        assert everything(here.dial()) == b"hello\n"
        node.runtime.stop(signal.SIGKILL)
        assert everything(here.dial()) == b""
        node.runtime.start().close()
        eventually(lambda: everything(here.dial()) == b"hello\n", what="a connection after the restart")
        code, errors = here.ended()
        assert code == 0 and "cannot connect to nodens-cri" in errors


def test_forwarding_ends_with_the_pod(node: Node) -> None:
    echoing(node.pods)
    with forwarding(node, "web", ":7002") as here:
        node.said("rm", "--force", "web")
        assert everything(here.dial()) == b""
        code, errors = here.ended(kill=None)
        assert code == 1 and errors, errors


def test_forwarding_listens_on_the_loopback_only_and_refuses_a_port_in_use(node: Node) -> None:
    echoing(node.pods)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = node.run("port-forward", "web", f"{port}:7001")
        assert done.returncode == 1 and "Address already in use" in done.stderr.decode() and "ss -lptn" in done.stderr.decode(), done
    with forwarding(node, "web", ":7001") as here, forwarding(node, "--address", "::1", "web", ":7001") as six:
        assert f"127.0.0.1:{here.ports[0]} " in here.lines[0] and "[::1]:" in six.lines[0]
        listening = subprocess.run(["ss", "-ltnH"], capture_output=True, text=True, check=True).stdout
        assert [line.split()[3] for line in listening.splitlines() if line.split()[3].endswith(f":{here.ports[0]}")] == \
            [f"127.0.0.1:{here.ports[0]}"]
    for wrong in (("web",), ("web", "http"), ("web", "0"), ("--address", "localhost", "web", "80")):
        assert node.run("port-forward", *wrong).returncode == 64, wrong


# ---- version, info, help ----

def test_version_and_info_describe_the_daemon(node: Node) -> None:
    version = subprocess.run([runtimes.program("src/nodens"), "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert node.said("version") == f"nodens     {version}\nnodens-cri {version} (runtime nodens, CRI v1)\n"
    assert json.loads(node.said("version", "--json")) == {
        "version": version, "daemon": {"runtimeName": "nodens", "runtimeVersion": version, "runtimeApiVersion": "v1"}}
    node.pods.run(name="web").container(name="one")
    info = json.loads(node.said("info", "--json"))
    assert (info["pods"], info["containers"], info["images"]) == (1, 1, 1)
    assert info["conditions"]["RuntimeReady"]["status"] and info["conditions"]["NetworkReady"]["status"]
    assert info["handlers"][0]["name"] == "" and set(info["handlers"][0]["selfTest"].values()) == {"works"}
    assert info["configuration"]["socket"] == str(node.runtime.socket) and info["configuration"]["cgroupDriver"] == "cgroupfs"
    text = node.said("info")
    assert "1 pod, 1 container, 1 image\n" in text and "NetworkReady" in text and "works" in text
    verbose = node.pods.runtime.Status(node.pods.pb.StatusRequest(verbose=True), timeout=120).info["info"]
    assert json.loads(verbose)["configuration"] == info["configuration"]


def test_info_shows_why_the_network_is_not_ready_and_does_not_count_as_a_kubelet(node: Node) -> None:
    away = node.runtime.network.with_suffix(".away")
    node.runtime.network.rename(away)
    try:
        done = node.run("info")
        assert done.returncode == 2 and "NetworkReady" in done.stdout.decode() and str(node.runtime.network) in done.stdout.decode(), done
    finally:
        away.rename(node.runtime.network)
    node.runtime.stop(signal.SIGTERM)
    node.runtime.start().close()    # since then the test itself has asked for the status: only the difference counts
    before = json.loads(node.said("info", "--json"))["statusAskedAt"]
    assert json.loads(node.said("info", "--json"))["statusAskedAt"] == before


def test_version_without_a_daemon_prints_its_own_and_fails() -> None:
    done = subprocess.run([runtimes.program("src/nodens"), "version", "--socket", "/nowhere.sock"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout.startswith("nodens     ") and "is it running?" in done.stderr


def test_wrong_usage_is_64_for_every_command() -> None:
    program = str(runtimes.program("src/nodens"))
    for arguments in ((), ("nosuch",), ("help", "nosuch"), ("exec",), ("exec", "web"), ("logs",), ("attach",), ("inspect",), ("rm",),
                      ("rmi",), ("port-forward", "web"), ("ps", "web"), ("info", "x"), ("version", "x"), ("pods", "--nosuch")):
        assert subprocess.run([program, *arguments], capture_output=True).returncode == 64, arguments
    guard = str(runtimes.program("src/guard/nodens-guard"))
    for words in (["manifest"], ["manifest", "nosuch"], ["manifest", "network"], ["manifest", "crd", "nosuch"], ["nosuch"]):
        done = subprocess.run([guard, *words], capture_output=True)
        assert done.returncode == 64 and not done.stdout, (words, done)


# ---- exec ----

def test_a_command_that_does_not_start_is_said_once_with_the_shells_exit_codes(node: Node) -> None:
    node.pods.run(name="web").container(name="one")
    for command, code in ((["nosuch"], 127), (["/no/such/program"], 127), (["/etc"], 126), (["/etc/passwd"], 126)):
        done = node.run("exec", "web", *command)
        said = done.stderr.decode()
        assert done.returncode == code and said.count("\n") == 1, (command, done)
        assert command[0] in said and "Internal error" not in said, said
        assert not done.stdout
    with terminal(node.command("exec", "-t", "web", "nosuch")) as here:
        assert here.ended() == 127 and here.output.count(b"nosuch") == 1, here.output
    assert node.run("exec", "web", "--", "sh", "-c", "exit 127").returncode == 127
    assert node.run("exec", "web", "--", "sh", "-c", "exit 126").stderr == b""


# ---- rm ----

def test_a_removal_says_what_it_waits_for(node: Node) -> None:
    one = node.pods.run(name="slow").container("trap 'echo asked' TERM; echo up; while true; do sleep 0.1; done")
    eventually(one.log, what="its start")
    with subprocess.Popen(node.command("rm", "--grace", "2", "slow"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as here:
        assert here.stderr and here.stderr.readline() == b"stopping cri-test/slow (up to 2 s)\n"
        out, _ = here.communicate(timeout=120)
        assert here.returncode == 0 and out.startswith(b"removed cri-test/slow ")
    node.pods.run(name="quick").container()
    assert node.run("rm", "--force", "quick").stderr == b"", "it does not wait"


# ---- completion ----

@contextlib.contextmanager
def shell_with_completion(directory: Path) -> Iterator[Terminal]:
    """An interactive bash with the completions of all programs, in a directory of its own."""
    (directory / "bin").mkdir()
    for name, place in (("nodens", "src/nodens"), ("nodens-guard", "src/guard/nodens-guard"),
                        ("nodens-rootless", "src/rootless/nodens-rootless")):
        (directory / "bin" / name).symlink_to(runtimes.program(place))
    (directory / "files").mkdir()
    lines = [f"source {runtimes.BUILD}/man/{name}" for name in ("nodens", "nodens-guard", "nodens-rootless")]
    lines += [f"PATH={directory}/bin:$PATH", f"cd {directory}/files", "bind 'set enable-bracketed-paste off'", "PS1='ready> '", ""]
    (directory / "rc").write_text("\n".join(lines))
    assert shutil.which("bash")
    with terminal(["bash", "--norc", "--rcfile", str(directory / "rc"), "-i"], columns=200) as here:
        here.type(f"source {directory}/rc\n".encode())
        here.expect(b"ready> ")
        yield here


def completed(here: Terminal, line: str) -> str:
    """What bash makes of a line at TAB; the line is then executed as an argument of echo."""
    here.output = b""
    here.type(line.encode() + b"\t\x01echo \x05 :end:\n")
    here.expect(b" :end:\r\nready> ")
    return here.output.decode().rsplit("\n", 2)[-2].strip().removesuffix(" :end:").strip()


def test_bash_completes_commands_files_levels_and_the_names_of_pods(node: Node, directory: Path) -> None:
    node.pods.run(name="web-1").container(name="one")
    node.pods.run(name="$(touch owned)").container(name="two")
    with shell_with_completion(directory) as here:
        (directory / "files" / "manifest of a pod.yaml").write_text("")
        (directory / "files" / "archive.tar").write_text("")
        socket_option = f"--socket {node.runtime.socket}"
        for line, wanted in (("nodens insp", "nodens inspect"), ("nodens help port", "nodens help port-forward"),
                             ("nodens lint mani", "nodens lint manifest of a pod.yaml"),
                             ("nodens import arch", "nodens import archive.tar"),
                             ("nodens lint --level rest", "nodens lint --level restricted"), ("nodens rm --gr", "nodens rm --grace"),
                             ("nodens lint --level=bas", "nodens lint --level=baseline"),
                             (f"nodens exec {socket_option} cri-test/w", f"nodens exec {socket_option} cri-test/web-1"),
                             (f"nodens rm {socket_option} cri", f"nodens rm {socket_option} cri-test/web-1"),
                             (f"nodens rmi {socket_option} {node.pods.image[:-1]}", f"nodens rmi {socket_option} {node.pods.image}"),
                             ("nodens-guard mani", "nodens-guard manifest"),
                             ("nodens-guard manifest webh", "nodens-guard manifest webhooks"),
                             ("nodens-rootless up --net sli", "nodens-rootless up --net slirp4netns"),
                             ("nodens-rootless sta", "nodens-rootless status")):
            assert completed(here, line) == wanted, here.output
    assert not list(directory.rglob("owned"))


def test_completion_does_not_wait_for_a_daemon_that_is_away_or_hangs(node: Node, directory: Path) -> None:
    with shell_with_completion(directory) as here:
        assert completed(here, "nodens exec --socket /nowhere.sock cri-test/w") == "nodens exec --socket /nowhere.sock cri-test/w"
        with socket.socket(socket.AF_UNIX) as silent:    # accepts nothing, as a daemon that is stopped
            silent.bind(str(directory / "silent"))
            silent.listen(0)
            for _ in range(3):    # also when its queue is full
                line = f"nodens exec --socket {directory}/silent cri-test/w"
                assert completed(here, line) == line
