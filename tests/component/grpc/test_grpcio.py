# SPDX-License-Identifier: Apache-2.0
"""Python's grpcio, a client that is not ours, against src/net's gRPC server."""
import socket
import threading
import time

import grpc
import h2_raw
import pytest
from conftest import PATIENCE, Peer, stream, unary


def code_of(call) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code()


@pytest.mark.parametrize("size", [0, 1, 100, 16383, 16384, 65535, 65536, 1 << 20, 16 << 20])
def test_an_echo_of_any_size_comes_back_whole(peer: Peer, size: int) -> None:
    body = bytes(i * 7 & 0xFF for i in range(1000)) * (size // 1000 + 1)
    with peer.channel() as channel:
        assert unary(channel, "Echo")(body[:size], timeout=PATIENCE) == body[:size]


def test_a_10_mib_answer_arrives(peer: Peer) -> None:
    with peer.channel() as channel:
        assert len(unary(channel, "Big")(b"10485760", timeout=PATIENCE)) == 10485760


def test_more_than_16_mib_is_refused_both_ways(peer: Peer) -> None:
    with peer.channel() as channel:
        assert code_of(lambda: unary(channel, "Big")(b"16777217", timeout=PATIENCE)) == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert code_of(lambda: unary(channel, "Echo")(b"x" * ((16 << 20) + 1), timeout=PATIENCE)) == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert unary(channel, "Echo")(b"still here", timeout=PATIENCE) == b"still here"


def test_an_unknown_method_is_unimplemented(peer: Peer) -> None:
    with peer.channel() as channel:
        assert code_of(lambda: unary(channel, "Nothing")(b"", timeout=PATIENCE)) == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("code", range(1, 16))
def test_status_and_text_arrive_as_they_were_meant(peer: Peer, code: int) -> None:
    text = "no such pod: 'a/b' 100% \u00fc\u4e2d\nsecond line"
    with peer.channel() as channel, pytest.raises(grpc.RpcError) as caught:
        unary(channel, "Fail")(f"{code} {text}".encode(), timeout=PATIENCE)
    assert (caught.value.code().value[0], caught.value.details()) == (code, text)


def test_text_that_is_not_utf8_is_cleaned(peer: Peer) -> None:
    with peer.channel() as channel, pytest.raises(grpc.RpcError) as caught:
        unary(channel, "Fail")(b"5 bad \xff\xfe bytes", timeout=PATIENCE)
    assert caught.value.details() == "bad \ufffd\ufffd bytes"


def test_a_stream_delivers_every_message_in_order(peer: Peer) -> None:
    with peer.channel() as channel:
        sizes = [len(message) for message in stream(channel, "Stream")(b"2000 5000", timeout=PATIENCE)]
    assert sizes == [5000] * 2000


def test_a_deadline_ends_the_call_in_time_and_notifies_the_handler(peer: Peer) -> None:
    with peer.channel() as channel:
        unary(channel, "Echo")(b"warm", timeout=PATIENCE)
        # A slow machine may not have sent the request by then: again with more time.
        for attempt, deadline in enumerate((0.3, 3, 30), 1):  # noqa: B007
            start = time.monotonic()
            assert code_of(lambda deadline=deadline: unary(channel, "Slow")(b"600000",
                                                                            timeout=deadline)) == grpc.StatusCode.DEADLINE_EXCEEDED
            assert time.monotonic() - start < deadline + PATIENCE
            if peer.eventually(lambda found: found["calls"] == 1 or found["cancelled"] == 1)["cancelled"]:
                break
    assert 1 <= peer.counts()["cancelled"] <= attempt


def test_a_cancelled_call_notifies_the_handler(peer: Peer) -> None:
    with peer.channel() as channel:
        future = unary(channel, "Slow").future(b"5000")
        assert peer.eventually(lambda found: found["calls"] == 2)["calls"] == 2, "the call, and the one that counts"
        future.cancel()
        assert peer.eventually(lambda found: found["cancelled"] == 1)["cancelled"] == 1
        assert peer.eventually(lambda found: found["calls"] == 1)["calls"] == 1, "only the call that counts is left"


def test_a_thousand_calls_at_once_on_one_connection(peer: Peer) -> None:
    with peer.channel() as channel:
        start = time.monotonic()
        futures = [unary(channel, "Slow").future(b"500", timeout=240) for _ in range(1000)]
        assert all(future.result() == b"done" for future in futures)
    assert time.monotonic() - start < 250, "one after the other they take 500 s"


def stuck(peer: Peer) -> socket.socket:
    """A raw HTTP/2 client that asked for 12 MiB, and never reads."""
    raw = h2_raw.connect(peer.socket)
    h2_raw.request(raw, "/test.Peer/Big", b"12582912")
    assert peer.eventually(lambda found: found["connections"] == 2 and found["calls"] == 2)["calls"] == 2
    return raw


def test_a_client_that_stops_reading_stalls_no_other(peer: Peer) -> None:
    raw = stuck(peer)
    with peer.channel() as channel:
        for _ in range(200):
            assert unary(channel, "Echo")(b"quick", timeout=PATIENCE) == b"quick"
    assert peer.eventually(lambda found: found["connections"] == 2)["connections"] == 2, "the stuck client is still there"
    raw.close()


@pytest.mark.parametrize("peer", [2], indirect=True)
def test_a_client_that_stops_reading_is_cut_off(peer: Peer) -> None:
    raw = h2_raw.connect(peer.socket)
    h2_raw.request(raw, "/test.Peer/Big", b"12582912")
    assert peer.eventually(lambda found: found["connections"] == 1)["connections"] == 1, "only the one that counts is there"
    raw.close()


def test_abrupt_disconnects_leave_nothing_behind(peer: Peer) -> None:
    with peer.channel() as channel:
        unary(channel, "Echo")(b"warm", timeout=PATIENCE)
    before = peer.eventually(lambda found: found["connections"] == 1 and found["calls"] == 1)
    for i in range(500):
        raw = h2_raw.connect(peer.socket)
        h2_raw.request(raw, "/test.Peer/Slow" if i % 2 else "/test.Peer/Big", b"300" if i % 2 else b"1000000")
        raw.close()
    names = ("connections", "calls", "descriptors")
    after = peer.eventually(lambda found: all(found[name] == before[name] for name in names))
    assert [after[name] for name in names] == [before[name] for name in names]


def test_memory_does_not_grow_with_calls(peer: Peer) -> None:
    with peer.channel() as channel:
        echo = unary(channel, "Echo")
        for _ in range(2000):
            echo(b"x" * 1000, timeout=PATIENCE)
        grown = []
        for _ in range(3):      # a leak shows in each; what is kept for reuse does not
            before = peer.counts()["resident"]
            for _ in range(8000):
                echo(b"x" * 1000, timeout=PATIENCE)
            grown.append(peer.counts()["resident"] - before)
            if grown[-1] < 256:
                return
        assert min(grown) < 256, f"kB in 8,000 calls each: {grown}"


def test_garbage_closes_only_its_own_connection(peer: Peer) -> None:
    with peer.channel() as channel:
        unary(channel, "Echo")(b"warm", timeout=PATIENCE)
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64):
            raw = socket.socket(socket.AF_UNIX)
            raw.connect(str(peer.socket))
            raw.settimeout(PATIENCE)
            raw.sendall(garbage)
            while raw.recv(65536):
                pass
        assert unary(channel, "Echo")(b"fine", timeout=PATIENCE) == b"fine"


def test_many_connections_at_once(peer: Peer) -> None:
    failures: list[str] = []

    def work() -> None:
        with peer.channel() as channel:
            for _ in range(20):
                if unary(channel, "Echo")(b"hello", timeout=PATIENCE) != b"hello":
                    failures.append("wrong answer")

    threads = [threading.Thread(target=work) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
