# SPDX-License-Identifier: Apache-2.0
"""Exec over the streaming server, as the kubelet asks for it: SPDY/3.1, protocol v4."""
import hashlib
import socket
import time
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from pods import TIMEOUT, Container, Pods, eventually, refused
from spdy import PING, Refused, Streams, knock, upgrade

MIB = 1 << 20


def url_of(one: Container, command: list[str] | str, **more: Any) -> str:
    words = ["sh", "-c", command] if isinstance(command, str) else command
    request = one.pods.pb.ExecRequest(container_id=one.id, cmd=words, **more)
    return one.pods.runtime.Exec(request, timeout=TIMEOUT).url


def streams_of(one: Container, command: list[str] | str, protocols: tuple[str, ...] = ("v5.channel.k8s.io", "v4.channel.k8s.io"), **more: Any) -> Streams:
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
def test_the_exit_code_is_told(plain_pods: Pods, command: str, code: int, tty: bool) -> None:
    assert streams_of(plain_pods.run().container(), command, stdout=True, tty=tty).exit_code() == code


def test_a_command_that_does_not_exist_is_told_over_the_error_stream(plain_pods: Pods) -> None:
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


def test_input_that_the_command_does_not_want_is_no_trouble(plain_pods: Pods) -> None:
    streams = streams_of(plain_pods.run().container(), "exec <&-; sleep 0.5; echo done; exit 4", stdin=True, stdout=True)
    streams.write("stdin", bytes(200_000))
    assert streams.read("stdout") == b"done\n" and streams.exit_code() == 4


def test_what_is_left_in_the_pipe_at_the_end_is_sent(plain_pods: Pods) -> None:
    streams = streams_of(plain_pods.run().container(), "head -c 60000 /dev/zero; exit 9", stdout=True)
    time.sleep(1)
    assert len(streams.read("stdout")) == 60000 and streams.exit_code() == 9


def test_a_process_that_is_left_behind_keeps_nobody_waiting(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    started = time.monotonic()
    streams = streams_of(one, "sleep 765 & echo done", stdout=True)
    assert streams.read("stdout") == b"done\n" and streams.exit_code() == 0 and time.monotonic() - started < 30
    assert processes(one, "sleep 765")


# Terminals

def test_a_terminal_is_one_and_has_the_clients_size(pods: Pods) -> None:
    streams = streams_of(pods.run().container(), "test -t 0 && test -t 1 && test -t 2 && echo terminal $TERM; read x; stty size 2>/dev/null || echo $x",
                         stdin=True, stdout=True, tty=True)
    streams.read("stdout", until=b"terminal xterm\r\n")
    streams.write("resize", b'{"Width":101,"Hei')
    streams.write("resize", b'ght":37}\n')
    time.sleep(0.3)
    streams.write("stdin", b"37 101\n")
    assert streams.read("stdout").endswith(b"37 101\r\n") and streams.exit_code() == 0


def test_control_c_interrupts_at_a_terminal(plain_pods: Pods) -> None:
    streams = streams_of(plain_pods.run().container(), "trap 'echo got it; exit 6' INT; echo ready; while :; do sleep 0.1; done", stdin=True, stdout=True, tty=True)
    streams.read("stdout", until=b"ready\r\n")
    streams.write("stdin", b"\x03")
    assert b"got it" in streams.read("stdout") and streams.exit_code() == 6


# Clients

def test_a_client_that_is_gone_takes_the_command_with_it(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    streams = streams_of(one, "sleep 654 & echo ready; sleep 653", stdout=True)
    streams.read("stdout", until=b"ready\n")
    assert processes(one, "sleep 654") and processes(one, "sleep 653")
    streams.close()
    eventually(lambda: not processes(one, "sleep 654") and not processes(one, "sleep 653"), 15, "the command's end")


def test_a_client_that_does_not_read_holds_up_its_own_command_only(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    stuck = streams_of(one, "yes", stdout=True)
    time.sleep(0.5)
    started = time.monotonic()
    assert streams_of(one, "echo quick", stdout=True).read("stdout") == b"quick\n" and one.output("echo sync") == "sync"
    assert time.monotonic() - started < 20
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


def test_an_older_protocol_is_told_in_words(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    assert streams_of(one, "exit 0", ("v3.channel.k8s.io",), stdout=True).read("error") == b""
    assert b"exit code 5" in streams_of(one, "exit 5", ("v3.channel.k8s.io",), stdout=True).read("error")


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


def test_a_protocol_that_nobody_knows_is_refused_with_those_that_are(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    with pytest.raises(Refused) as told:
        upgrade(url_of(one, "true", stdout=True), ["v9.channel.k8s.io"])
    assert told.value.status == 403 and "v4.channel.k8s.io" in told.value.head


def test_strangers_on_the_port_keep_nobody_out(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    where = urlsplit(url_of(one, "true", stdout=True))
    strangers = [socket.create_connection((where.hostname, where.port), timeout=TIMEOUT) for _ in range(200)]
    assert streams_of(one, "echo in", stdout=True).read("stdout") == b"in\n"
    for stranger in strangers:
        stranger.close()


def test_what_is_no_http_is_refused(plain_pods: Pods) -> None:
    one = plain_pods.run().container()
    where = url_of(one, "true", stdout=True)
    connection, head, _ = knock(where, "hello\r\n\r\n")
    assert head.split()[1] == "400"
    connection.close()
