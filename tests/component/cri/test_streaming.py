# SPDX-License-Identifier: Apache-2.0
"""Exec, attach and port-forward over the streaming server, as the kubelet asks for them: SPDY/3.1."""
import concurrent.futures
import contextlib
import hashlib
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from conftest import Subject
from nodenstest import validation
from nodenstest.pods import TIMEOUT, Container, Pod, Pods, eventually, peer_pid, refused
from nodenstest.spdy import PING, Refused, Streams, Tunnels, knock, upgrade
from nodenstest.websocket import ERROR, RESIZE, STDERR, STDIN, STDOUT, Channels
from nodenstest.websocket import PING as WEBSOCKET_PING

MIB = 1 << 20
RESIZED = "while stty size >/dev/null 2>&1 && [ \"$(stty size)\" != '37 101' ]; do sleep 0.1; done"     # waits, where there is an stty
NOBODY = 65534


def url_of(one: Container, command: list[str] | str, **more: Any) -> str:
    words = ["sh", "-c", command] if isinstance(command, str) else command
    request = one.pods.pb.ExecRequest(container_id=one.id, cmd=words, **more)
    return one.pods.runtime.Exec(request, timeout=TIMEOUT).url


def streams_of(one: Container, command: list[str] | str, protocols: tuple[str, ...] = ("v5.channel.k8s.io", "v4.channel.k8s.io"),
               **more: Any) -> Streams:
    more = more or {"stdout": True, "stderr": True}
    names = ["error"] + [name for name in ("stdin", "stdout", "stderr") if more.get(name)] + (["resize"] if more.get("tty") else [])
    return Streams(url_of(one, command, **more), names, protocols)


def processes(one: Container, mark: str) -> bool:
    return mark in one.output("for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; echo; done | grep -v cmdline; true")


def test_output_and_errors_come_apart(pods: Pods) -> None:
    streams = streams_of(pods.run().container(), "echo out; echo err >&2; echo more >/dev/stdout")
    assert streams.read("stdout") == b"out\nmore\n" and streams.read("stderr") == b"err\n"
    assert streams.verdict() == {"metadata": {}, "status": "Success"} or streams.verdict() == {"status": "Success"}
    assert "v4.channel.k8s.io" in streams.head


@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137)])
@pytest.mark.parametrize("tty", [False, True])
def test_the_exit_code_is_reported(plain_pods: Pods, command: str, code: int, tty: bool) -> None:
    assert streams_of(plain_pods.run().container(), command, stdout=True, tty=tty).exit_code() == code


def test_a_missing_command_is_reported_over_the_error_stream(plain_pods: Pods) -> None:
    told = streams_of(plain_pods.run().container(), ["/no/such/program"]).verdict()
    assert told["status"] == "Failure" and told["reason"] == "InternalError" and told["code"] == 500
    assert told["message"].startswith("Internal error occurred: error executing command in container: ")


def test_input_is_echoed_and_its_end_is_the_commands(pods: Pods) -> None:
    streams = streams_of(pods.run().container(), ["cat"], stdin=True, stdout=True)
    streams.write("stdin", b"one\n")
    streams.read("stdout", until=b"one\n")
    streams.write("stdin", b"two\n")
    streams.finish("stdin")
    assert streams.read("stdout") == b"one\ntwo\n" and streams.exit_code() == 0


def test_ten_megabytes_of_output_arrive_whole(pods: Pods) -> None:
    streams = streams_of(pods.run().container(), "head -c 10485760 /dev/zero", stdout=True)
    assert streams.read("stdout") == bytes(10 * MIB) and streams.exit_code() == 0


def test_ten_megabytes_of_input_arrive_whole(plain_pods: Pods) -> None:
    streams = streams_of(plain_pods.run().container(), "sleep 0.3; sha256sum", stdin=True, stdout=True)
    data = b"".join(number.to_bytes(4, "big") for number in range(10 * MIB // 4))
    streams.write("stdin", data)
    streams.finish("stdin")
    assert streams.read("stdout").split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_unread_input_does_no_harm(plain_pods: Pods) -> None:
    streams = streams_of(plain_pods.run().container(), "exec <&-; sleep 0.5; echo done; exit 4", stdin=True, stdout=True)
    streams.write("stdin", bytes(200_000))
    assert streams.read("stdout") == b"done\n" and streams.exit_code() == 4


def test_output_left_in_the_pipe_at_the_exit_is_sent(plain_pods: Pods) -> None:
    streams = streams_of(plain_pods.run().container(), "head -c 60000 /dev/zero; exit 9", stdout=True)
    time.sleep(1)
    assert len(streams.read("stdout")) == 60000 and streams.exit_code() == 9


def test_a_background_process_does_not_delay_the_end(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    streams = streams_of(one, "sleep 765 & echo done", stdout=True)
    assert streams.read("stdout") == b"done\n" and streams.exit_code() == 0
    assert processes(one, "sleep 765")


# Terminals

def test_a_terminal_is_one_and_has_the_clients_size(pods: Pods) -> None:
    streams = streams_of(pods.run().container(),
                         f"test -t 0 && test -t 1 && test -t 2 && echo terminal $TERM; read x; {RESIZED}; stty size 2>/dev/null || echo $x",
                         stdin=True, stdout=True, tty=True)
    streams.read("stdout", until=b"terminal xterm\r\n")
    streams.write("resize", b'{"Width":101,"Hei')
    streams.write("resize", b'ght":37}\n')
    streams.write("stdin", b"37 101\n")
    assert streams.read("stdout").endswith(b"37 101\r\n") and streams.exit_code() == 0


def test_control_c_interrupts_at_a_terminal(plain_pods: Pods) -> None:
    streams = streams_of(plain_pods.run().container(), "trap 'echo got it; exit 6' INT; echo ready; while :; do sleep 0.1; done",
                         stdin=True, stdout=True, tty=True)
    streams.read("stdout", until=b"ready\r\n")
    streams.write("stdin", b"\x03")
    assert b"got it" in streams.read("stdout") and streams.exit_code() == 6


# Clients

def test_a_disconnected_client_ends_the_command(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    streams = streams_of(one, "sleep 654 & echo ready; sleep 653", stdout=True)
    streams.read("stdout", until=b"ready\n")
    assert processes(one, "sleep 654") and processes(one, "sleep 653")
    streams.close()
    eventually(lambda: not processes(one, "sleep 654") and not processes(one, "sleep 653"), 15, "the command's end")


def test_a_client_that_does_not_read_holds_up_its_own_command_only(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    stuck = streams_of(one, "yes", stdout=True)
    eventually(lambda: processes(one, "yes"), what="the start of yes")
    assert streams_of(one, "echo quick", stdout=True).read("stdout") == b"quick\n" and one.output("echo sync") == "sync"
    assert processes(one, "yes")
    stuck.close()
    eventually(lambda: not processes(one, "yes"), 15, "the end of yes")


def test_pings_are_answered(plain_pods: Pods) -> None:
    streams = streams_of(plain_pods.run().container(), "cat", stdin=True, stdout=True)
    streams.control(PING, (7).to_bytes(4, "big"))
    while not streams.pongs:
        streams.step()
    assert streams.pongs == [7]
    streams.finish("stdin")
    assert streams.exit_code() == 0


def test_an_older_protocol_gets_the_error_as_text(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    assert streams_of(one, "exit 0", ("v3.channel.k8s.io",), stdout=True).read("error") == b""
    assert b"exit code 5" in streams_of(one, "exit 5", ("v3.channel.k8s.io",), stdout=True).read("error")


# Attach

def attached(one: Container, **more: Any) -> Streams:
    more = more or {"stdout": True, "stderr": True}
    url = one.pods.runtime.Attach(one.pods.pb.AttachRequest(container_id=one.id, **more), timeout=TIMEOUT).url
    names = ["error"] + [name for name in ("stdin", "stdout", "stderr") if more.get(name)] + (["resize"] if more.get("tty") else [])
    return Streams(url, names)


def test_attach_types_into_a_shell_and_sees_its_output(pods: Pods) -> None:
    one = pods.run().container(["sh"], stdin=True)
    streams = attached(one, stdin=True, stdout=True, stderr=True)
    streams.write("stdin", b"echo hello\n")
    streams.read("stdout", until=b"hello\n")
    streams.write("stdin", b"echo err >&2\n")
    streams.read("stderr", until=b"err\n")
    streams.write("stdin", b"exit 7\n")
    assert streams.read("stdout") == b"hello\n" and streams.read("stderr") == b"err\n" and streams.verdict()["status"] == "Success"
    assert one.ended().exit_code == 7 and one.log() == [("stdout", "hello"), ("stderr", "err")]


def test_attach_to_a_terminal_and_its_size(pods: Pods) -> None:
    one = pods.run().container(["sh"], stdin=True, tty=True)
    streams = attached(one, stdin=True, stdout=True, tty=True)
    streams.write("resize", b'{"Width":101,"Height":37}')
    streams.write("stdin", RESIZED.encode() + b"; test -t 0 && echo is a term''inal; stty size 2>/dev/null || echo 37 101; exit\n")
    assert b"is a terminal\r\n37 101\r\n" in streams.read("stdout") and streams.verdict()["status"] == "Success"


def test_input_that_is_wanted_once_ends_with_its_first_client(plain_pods: Pods) -> None:
    one = plain_pods.run().container("cat; exit 5", stdin=True, stdin_once=True)
    streams = attached(one, stdin=True, stdout=True)
    streams.write("stdin", b"x" * 100_000 + b"\n")
    streams.finish("stdin")
    assert len(streams.read("stdout")) == 100_001 and one.ended().exit_code == 5


def test_input_that_is_wanted_again_outlives_its_clients(plain_pods: Pods) -> None:
    one = plain_pods.run().container(["cat"], stdin=True)
    for words in (b"one\n", b"two\n"):
        streams = attached(one, stdin=True, stdout=True)
        streams.write("stdin", words)
        assert streams.read("stdout", until=words) == words
        streams.finish("stdin")
        time.sleep(0.2)
        streams.close()
    assert one.state == plain_pods.pb.CONTAINER_RUNNING


def test_several_clients_see_the_same(plain_pods: Pods) -> None:
    one = plain_pods.run().container(["cat"], stdin=True)
    clients = [attached(one, stdin=True, stdout=True) for _ in range(4)]
    for word, client in zip(b"abcd", clients, strict=True):     # once it has an answer a client is attached
        client.write("stdin", bytes([word]) + b"\n")
        client.read("stdout", until=bytes([word]) + b"\n")
    for number, client in enumerate(clients):
        client.write("stdin", f"{number}\n".encode())
        for other in clients:
            other.read("stdout", until=f"{number}\n".encode())
    assert {bytes(client.read("stdout", until=b"3\n")).partition(b"d\n")[2] for client in clients} == {b"0\n1\n2\n3\n"}


@pytest.mark.parametrize("pause", [0, pytest.param(0.5, marks=pytest.mark.nightly)])
def test_all_output_of_a_container_before_its_exit_arrives(pods: Pods, pause: float) -> None:
    one = pods.run().container("read x; head -c 20971520 /dev/zero; echo the end", stdin=True)
    streams = attached(one, stdin=True, stdout=True)
    streams.write("stdin", b"\n")
    time.sleep(pause)     # half as long as a slow client may stand still
    got = streams.read("stdout")
    assert len(got) == 20 * MIB + 8 and got.endswith(b"the end\n") and streams.verdict()["status"] == "Success"


def test_a_client_that_stands_still_holds_up_neither_the_container_nor_its_log_nor_another_client(plain_pods: Pods) -> None:
    one = plain_pods.run().container("read x; seq 1000000; echo the end", stdin=True)
    stuck = attached(one, stdout=True)
    other = attached(one, stdin=True, stdout=True)
    other.write("stdin", b"\n")
    got = other.read("stdout")
    one.ended()
    wanted = [*map(str, range(1, 1000001)), "the end"]
    assert got.decode().splitlines() == wanted and [text for _, text in one.log()] == wanted
    stuck.close()


def test_attach_works_after_the_runtime_was_restarted(subject: Subject, plain_pods: Pods) -> None:
    one = plain_pods.run().container(["cat"], stdin=True)
    before = attached(one, stdin=True, stdout=True)
    before.write("stdin", b"before\n")
    before.read("stdout", until=b"before\n")
    subject.restart()
    after = attached(one, stdin=True, stdout=True)
    after.write("stdin", b"after\n")
    assert after.read("stdout", until=b"after\n") == b"after\n"


def test_clients_that_come_and_go_a_hundred_times_use_nothing_up(plain_pods: Pods) -> None:
    one = plain_pods.run().container(["cat"], stdin=True)
    for number in range(100):
        client = attached(one, stdin=True, stdout=True, stderr=True)
        client.write("stdin", f"{number}\n".encode())
        client.read("stdout", until=f"{number}\n".encode())
        client.close()


def test_a_container_that_does_not_run_has_no_attach(plain_pods: Pods) -> None:
    one = plain_pods.run().container(start=False)
    refused(lambda: attached(one, stdout=True))


# Requests and tokens

@pytest.mark.parametrize(("fields", "words"), [
    ({"container_id": ""}, "missing required container_id"),
    ({"tty": True, "stdout": True, "stderr": True}, "tty and stderr cannot both be true"),
    ({"stdout": False}, "one of stdin, stdout, or stderr must be set"),
])
def test_a_request_that_makes_no_sense_is_refused(plain_pods: Pods, fields: dict[str, Any], words: str) -> None:
    one = plain_pods.run().container()
    request = plain_pods.pb.ExecRequest(**{"container_id": one.id, "cmd": ["true"], "stdout": True, **fields})
    error = refused(lambda: plain_pods.runtime.Exec(request, timeout=TIMEOUT), grpc.StatusCode.INVALID_ARGUMENT)
    assert words in error.details()


def test_a_container_that_does_not_run_has_no_exec(plain_pods: Pods) -> None:
    one = plain_pods.run().container(start=False)
    refused(lambda: url_of(one, "true", stdout=True))


def test_a_token_works_once(plain_pods: Pods) -> None:
    url = url_of(plain_pods.run().container(), "echo once", stdout=True)
    assert Streams(url, ["error", "stdout"]).read("stdout") == b"once\n"
    for tried in (url, url[:-1], url.rsplit("/", 1)[0] + "/AAAAAAAA"):
        with pytest.raises(Refused) as told:
            upgrade(tried, ["v4.channel.k8s.io"])
        assert told.value.status == 404


def test_an_unknown_protocol_is_refused_with_the_supported_ones(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    with pytest.raises(Refused) as told:
        upgrade(url_of(one, "true", stdout=True), ["v9.channel.k8s.io"])
    assert told.value.status == 403 and "v4.channel.k8s.io" in told.value.head


def test_idle_connections_do_not_block_clients(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    where = urlsplit(url_of(one, "true", stdout=True))
    assert where.port
    strangers = [socket.create_connection((where.hostname, where.port), timeout=TIMEOUT) for _ in range(200)]
    assert streams_of(one, "echo in", stdout=True).read("stdout") == b"in\n"
    for stranger in strangers:
        stranger.close()


CROWD = """
import socket, sys
crowd = []
for _ in range(500):
    one = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    crowd.append(one)
print("there", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("user", [NOBODY, None])
def test_a_crowd_of_another_user_drops_no_connection_of_roots(plain_pods: Pods, user: int | None) -> None:
    """A local process connects faster than the kubelet can write its request.

    At most 64 connections may wait, with a token or without.
    """
    one = plain_pods.run().container()
    url = url_of(one, "echo in", stdout=True)
    where = urlsplit(url)
    assert where.port
    early = socket.create_connection((where.hostname, where.port), timeout=TIMEOUT)
    words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
    crowd = subprocess.Popen([*words, sys.executable, "-c", CROWD, str(where.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert crowd.stdin and crowd.stdout
    try:
        assert crowd.stdout.readline() == b"there\n"
        early.sendall(f"POST {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                      "X-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n".encode())
        try:
            answer = early.recv(4096)
        except ConnectionResetError:
            answer = b""
        assert answer.startswith(b"HTTP/1.1 101 ") if user else not answer    # root among itself: the oldest goes
        assert streams_of(one, "echo in", stdout=True).read("stdout") == b"in\n"
    finally:
        crowd.stdin.close()
        crowd.wait(TIMEOUT)
        early.close()


def test_invalid_http_is_refused(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    where = url_of(one, "true", stdout=True)
    connection, head, _ = knock(where, "hello\r\n\r\n")
    assert head.split()[1] == "400"
    connection.close()


# Port-forward

ECHO = "nc -lk -p 7000 -e cat"


def forward_url(pod: Pod) -> str:
    return pod.pods.runtime.PortForward(pod.pods.pb.PortForwardRequest(pod_sandbox_id=pod.id), timeout=TIMEOUT).url


def listening(one: Container, port: int) -> None:
    eventually(lambda: f":{port:04X} " in one.output("cat /proc/net/tcp /proc/net/tcp6"), 15, f"a server at port {port}")


def exchange(tunnels: Tunnels, name: str, words: bytes) -> bytes:
    tunnels.write(name, words)
    tunnels.read(name, until=words)
    tunnels.finish(name)
    return tunnels.read(name)


def test_a_port_of_the_pod_is_reached(pods: Pods) -> None:
    pod = pods.run()
    listening(pod.container(ECHO), 7000)
    tunnels = Tunnels(forward_url(pod))
    name = tunnels.connect(7000, "0")
    assert exchange(tunnels, name, b"hello\n") == b"hello\n" and tunnels.read("error 0") == b""


def test_a_server_on_ipv6_only_is_reached(plain_pods: Pods) -> None:
    pod = plain_pods.run()
    listening(pod.container("nc -lk -s ::1 -p 7000 -e cat"), 7000)
    tunnels = Tunnels(forward_url(pod))
    assert exchange(tunnels, tunnels.connect(7000, "0"), b"hello\n") == b"hello\n"


def test_a_port_of_a_pod_on_the_hosts_network_is_reached(plain_pods: Pods) -> None:
    pod = plain_pods.run(namespaces={"network": plain_pods.pb.NODE})
    listening(pod.container("nc -lk -s 127.0.0.1 -p 12003 -e cat"), 12003)
    tunnels = Tunnels(forward_url(pod))
    assert exchange(tunnels, tunnels.connect(12003, "0"), b"hello\n") == b"hello\n"


def test_a_closed_port_is_reported_over_the_error_stream(plain_pods: Pods) -> None:
    pod = plain_pods.run()
    listening(pod.container(ECHO), 7000)
    tunnels = Tunnels(forward_url(pod))
    tunnels.connect(7001, "0")
    told = tunnels.read("error 0").decode()
    assert "7001" in told and "refused" in told, told
    assert tunnels.read("data 0") == b""
    assert exchange(tunnels, tunnels.connect(7000, "1"), b"still\n") == b"still\n"


def test_a_hundred_connections_at_once(subject: Subject, pods: Pods) -> None:
    pod = pods.run()
    listening(pod.container(["/agnhost", "netexec", "--http-port=8080", "--udp-port=-1"], image=subject.images.hosted(validation.TOOLS)),
              8080)
    tunnels = Tunnels(forward_url(pod))
    names = [tunnels.connect(8080, str(number)) for number in range(100)]
    for number, name in enumerate(names):
        tunnels.write(name, f"GET /echo?msg=number-{number}-end HTTP/1.1\r\nHost: pod\r\n\r\n".encode())
    for number, name in enumerate(names):
        tunnels.read(name, until=f"number-{number}-end".encode())
    assert not any(tunnels.is_ended(name) for name in names)
    for name in names:
        tunnels.finish(name)
    assert all(tunnels.read(name).startswith(b"HTTP/1.1 200 ") for name in names)


def test_a_thousand_connections_one_after_the_other_use_nothing_up(plain_pods: Pods) -> None:
    pod = plain_pods.run()
    listening(pod.container(ECHO), 7000)
    tunnels = Tunnels(forward_url(pod))
    for number in range(1000):
        assert exchange(tunnels, tunnels.connect(7000, str(number)), b"x") == b"x"


def test_megabytes_go_through_both_ways_and_each_way_ends_by_itself(plain_pods: Pods) -> None:
    pod = plain_pods.run()
    listening(pod.container("nc -lk -p 7000 -e sh -c 'sha256sum; head -c 4194304 /dev/zero'"), 7000)
    tunnels = Tunnels(forward_url(pod))
    name = tunnels.connect(7000, "0")
    data = b"".join(number.to_bytes(4, "big") for number in range(8 * MIB // 4))
    tunnels.write(name, data)
    tunnels.finish(name)
    got = tunnels.read(name)
    assert got[:64].decode() == hashlib.sha256(data).hexdigest() and got.endswith(bytes(4 * MIB))


def test_a_client_or_server_that_does_not_read_blocks_no_other(plain_pods: Pods) -> None:
    pod = plain_pods.run()
    one = pod.container("nc -lk -p 7002 -e yes & nc -lk -p 7003 -e sleep 1000 & " + ECHO)
    for port in (7000, 7002, 7003):
        listening(one, port)
    silent, deaf = Tunnels(forward_url(pod)), Tunnels(forward_url(pod))
    silent.connect(7002, "0")
    name = deaf.connect(7003, "0")
    deaf.socket.settimeout(2)
    with pytest.raises(TimeoutError):
        deaf.write(name, bytes(64 * MIB))
    tunnels = Tunnels(forward_url(pod))
    assert exchange(tunnels, tunnels.connect(7000, "0"), b"quick\n") == b"quick\n" and one.output("echo sync") == "sync"
    silent.close()
    deaf.close()


def test_streams_that_make_no_sense_are_refused_and_the_rest_goes_on(plain_pods: Pods) -> None:
    pod = plain_pods.run()
    listening(pod.container(ECHO), 7000)
    tunnels = Tunnels(forward_url(pod))
    for identity, port in (("a", "0"), ("b", "65536"), ("c", "seven"), ("d", "")):
        tunnels.connect(port, identity)
        assert tunnels.is_ended(f"data {identity}") and tunnels.is_ended(f"error {identity}")
    tunnels.connect(7000, "1")
    assert exchange(tunnels, tunnels.connect(7000, "2"), b"on\n") == b"on\n"


def test_a_pod_that_stops_ends_its_connections(plain_pods: Pods) -> None:
    pod = plain_pods.run()
    listening(pod.container(ECHO), 7000)
    tunnels = Tunnels(forward_url(pod))
    name = tunnels.connect(7000, "0")
    tunnels.write(name, b"hello\n")
    tunnels.read(name, until=b"hello\n")
    pod.stop()
    assert tunnels.read(name) == b"hello\n"
    refused(lambda: forward_url(pod))


@pytest.mark.parametrize("identity", ["", "no-such-pod"])
def test_a_pod_that_is_not_there_has_no_ports(plain_pods: Pods, identity: str) -> None:
    request = plain_pods.pb.PortForwardRequest(pod_sandbox_id=identity)
    refused(lambda: plain_pods.runtime.PortForward(request, timeout=TIMEOUT), grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)


# WebSocket

PROTOCOLS = ["v4.channel.k8s.io", "v4.base64.channel.k8s.io", "v5.channel.k8s.io"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_exec_over_websocket(plain_pods: Pods, protocol: str) -> None:
    one = plain_pods.run().container()
    channels = Channels(url_of(one, "echo out; echo err >&2; exit 3", stdout=True, stderr=True), protocol)
    assert channels.read(STDOUT) == b"out\n" and channels.read(STDERR) == b"err\n" and channels.exit_code() == 3
    assert channels.first == STDOUT


@pytest.mark.parametrize("protocol", ["", "channel.k8s.io", "base64.channel.k8s.io"])
def test_exec_over_the_oldest_websocket_protocols(plain_pods: Pods, protocol: str) -> None:
    one = plain_pods.run().container()
    channels = Channels(url_of(one, "echo out; exit 3", stdout=True), protocol)
    assert channels.read(STDOUT) == b"out\n" and b"exit code 3" in channels.read(ERROR)
    assert Channels(url_of(one, "exit 0", stdout=True), protocol).read(ERROR) == b""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_shell_at_a_terminal_over_websocket(pods: Pods, protocol: str) -> None:
    channels = Channels(url_of(pods.run().container(), ["sh"], stdin=True, stdout=True, tty=True), protocol)
    channels.write(RESIZE, b'{"Width":101,"Height":37}')
    channels.write(STDIN, RESIZED.encode() + b"; stty size 2>/dev/null || echo 37 101; exit 4\n")
    assert b"\n37 101\r\n" in channels.read(STDOUT) and channels.exit_code() == 4


def test_the_fifth_websocket_protocol_ends_the_input(plain_pods: Pods) -> None:
    data = b"".join(number.to_bytes(4, "big") for number in range(2 * MIB // 4))
    channels = Channels(url_of(plain_pods.run().container(), "sha256sum", stdin=True, stdout=True), "v5.channel.k8s.io")
    channels.write(STDIN, data)
    channels.frame(2, bytes([255, STDIN]))
    assert channels.read(STDOUT).split()[0].decode() == hashlib.sha256(data).hexdigest() and channels.exit_code() == 0


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"])
def test_megabytes_of_output_over_websocket(plain_pods: Pods, protocol: str) -> None:
    channels = Channels(url_of(plain_pods.run().container(), "head -c 5242880 /dev/zero", stdout=True), protocol)
    assert channels.read(STDOUT) == bytes(5 * MIB) and channels.exit_code() == 0


def test_attach_over_websocket(plain_pods: Pods) -> None:
    one = plain_pods.run().container(["sh"], stdin=True)
    request = plain_pods.pb.AttachRequest(container_id=one.id, stdin=True, stdout=True, stderr=True)
    channels = Channels(plain_pods.runtime.Attach(request, timeout=TIMEOUT).url)
    channels.write(STDIN, b"echo hello; exit 0\n")
    assert channels.read(STDOUT) == b"hello\n" and channels.verdict()["status"] == "Success"


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"])
def test_port_forward_over_websocket(plain_pods: Pods, protocol: str) -> None:
    pod = plain_pods.run()
    listening(pod.container(ECHO), 7000)
    url = plain_pods.runtime.PortForward(plain_pods.pb.PortForwardRequest(pod_sandbox_id=pod.id, port=[7000, 7001]), timeout=TIMEOUT).url
    channels = Channels(url, protocol)
    ports = [number.to_bytes(2, "little") for number in (7000, 7000, 7001, 7001)]
    for channel, port in enumerate(ports):
        channels.read(channel, until=port)
    channels.write(0, b"hello\n")
    assert channels.read(0, until=b"hello\n") == ports[0] + b"hello\n"
    assert b"refused" in channels.read(3, until=b"refused")


def test_websocket_pings_and_parts_of_messages(plain_pods: Pods) -> None:
    channels = Channels(url_of(plain_pods.run().container(), "head -n 1", stdin=True, stdout=True))
    channels.frame(WEBSOCKET_PING, b"are you there")
    channels.frame(2, bytes([STDIN]) + b"hel", fin=False)
    channels.frame(WEBSOCKET_PING, b"still")
    channels.frame(0, b"lo\n")
    assert channels.read(STDOUT) == b"hello\n" and channels.pongs == [b"are you there", b"still"]


def test_a_websocket_client_that_closes_ends_the_command(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    channels = Channels(url_of(one, "echo ready; sleep 652", stdout=True))
    channels.read(STDOUT, until=b"ready\n")
    channels.frame(8, (1000).to_bytes(2, "big"))
    channels.read(STDOUT)
    eventually(lambda: not processes(one, "sleep 652"), 15, "the command's end")


def test_an_invalid_websocket_handshake_is_refused(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    for wrong, status in (({"version": "8"}, 400), ({"method": "POST"}, 400), ({"protocol": "v9.channel.k8s.io"}, 403)):
        with pytest.raises(Refused) as told:
            Channels(url_of(one, "true", stdout=True), **wrong)
        assert told.value.status == status
    unmasked = Channels(url_of(one, "cat", stdin=True, stdout=True))
    unmasked.socket.sendall(b"\x82\x02\x00x")
    assert unmasked.read(STDOUT) == b""
    assert Streams(url_of(one, "echo fine", stdout=True), ["error", "stdout"]).read("stdout") == b"fine\n"


def test_an_idle_client_gets_keepalive_probes(plain_pods: Pods) -> None:
    """Nothing else detects a client that vanished while its command does not read. The kernel shows which timer a connection has."""
    streams = streams_of(plain_pods.run().container(), "sleep 1000", stdout=True)
    (_, ours), (_, theirs) = streams.socket.getsockname(), streams.socket.getpeername()

    def keepalive() -> int:
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        timer, ticks = next(line[5] for line in lines if line[1].endswith(f":{theirs:04X}") and line[2].endswith(f":{ours:04X}")).split(":")
        return int(ticks, 16) if timer == "02" else 0

    assert 0 < eventually(keepalive, 5, "a timer of that kind") <= 60 * os.sysconf("SC_CLK_TCK")
    streams.close()


def rude_client(one: Container, rng: random.Random) -> None:
    """Does something with exec, attach or port-forward, and hangs up in the middle of it."""
    exec_words = rng.choice(["cat", "yes", "head -c 300000 /dev/zero", "exit 3", "sleep 1000"])
    kinds = {
        "exec": lambda: streams_of(one, exec_words, stdin=True, stdout=True, stderr=True),
        "terminal": lambda: streams_of(one, exec_words, stdin=True, stdout=True, tty=True),
        "websocket": lambda: Channels(url_of(one, exec_words, stdin=True, stdout=True, stderr=True)),
        "attach": lambda: attached(one, stdin=True, stdout=True),
        "forward": lambda: Tunnels(forward_url(one.pod)),
    }
    kind = rng.choice(list(kinds))
    client: Any = kinds[kind]()
    client.socket.settimeout(rng.choice([0.001, 0.02, 0.2]))
    name = client.connect(rng.choice([7000, 7002, 7999]), "0") if kind == "forward" else STDIN if kind == "websocket" else "stdin"
    if rng.random() < 0.6:
        client.write(name, bytes(rng.choice([1, 5000] if "sleep" in exec_words else [1, 5000, 400000])))
    for _ in range(rng.randrange(4)):
        client.step()
    if rng.random() < 0.5:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()


def test_a_client_that_disconnects_at_any_moment_affects_no_other(subject: Subject, plain_pods: Pods) -> None:
    pod = plain_pods.run()
    one = pod.container("nc -lk -p 7002 -e yes & nc -lk -p 7000 -e cat & exec cat", stdin=True)
    for port in (7000, 7002):
        listening(one, port)
    steady = Tunnels(forward_url(pod))
    steady.connect(7000, "0")
    before = peer_pid(subject.socket)

    def rude(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(25):
            with contextlib.suppress(OSError, EOFError, Refused, grpc.RpcError):
                rude_client(one, rng)

    with concurrent.futures.ThreadPoolExecutor(8) as people:
        list(people.map(rude, range(8)))
    assert peer_pid(subject.socket) == before, "the runtime has not died"
    assert exchange(steady, "data 0", b"still\n") == b"still\n"
    eventually(lambda: not processes(one, "sleep 1000"), 20, "no command outlives its client")
    assert streams_of(one, "echo fine").read("stdout") == b"fine\n"
