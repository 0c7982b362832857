# SPDX-License-Identifier: Apache-2.0
"""A peer of ours (build/<variant>/tests/grpc/grpc-peer) on a socket of its own, and a grpcio channel to it."""
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

BUILD = Path(__file__).parents[2] / "build" / os.environ.get("NODENS_VARIANT", "gcc")
LIMIT = 64 << 20


class Peer:
    """The server under test and how to ask it."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "peer.sock"
        self.process = subprocess.Popen([BUILD / "tests/grpc/grpc-peer", self.socket], stdout=subprocess.PIPE)
        assert self.process.stdout and self.process.stdout.readline() == b"ready\n"

    def channel(self) -> grpc.Channel:
        options = [("grpc.max_receive_message_length", LIMIT), ("grpc.max_send_message_length", LIMIT), ("grpc.use_local_subchannel_pool", 1)]
        return grpc.insecure_channel(f"unix:{self.socket}", options=options)

    def counts(self) -> dict[str, int]:
        with self.channel() as channel:
            words = unary(channel, "Counts")(b"", timeout=10).split()
        return dict(zip(["connections", "calls", "cancelled", "descriptors", "resident"], map(int, words), strict=True))

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=10)


def unary(channel: grpc.Channel, method: str) -> grpc.UnaryUnaryMultiCallable:
    return channel.unary_unary(f"/test.Peer/{method}", request_serializer=None, response_deserializer=None)


def stream(channel: grpc.Channel, method: str) -> grpc.UnaryStreamMultiCallable:
    return channel.unary_stream(f"/test.Peer/{method}", request_serializer=None, response_deserializer=None)


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    server = Peer(tmp_path)
    yield server
    assert server.process.poll() is None, "the server ended during the test"
    server.stop()
