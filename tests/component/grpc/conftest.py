# SPDX-License-Identifier: Apache-2.0
"""A peer of ours (build/<variant>/tests/component/grpc/grpc-peer) on a socket of its own, and a grpcio channel to it."""
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from nodensdev.project import TOP

BUILD = TOP / "build" / os.environ.get("NODENS_VARIANT", "gcc")
LIMIT = 64 << 20
PATIENCE = 60      # seconds: what takes longer does not work, on a loaded machine either


class Peer:
    """The server under test and how to ask it."""

    def __init__(self, directory: Path, stalled_ms: int) -> None:
        self.socket = directory / "peer.sock"
        self.process = subprocess.Popen([BUILD / "tests/component/grpc/grpc-peer", self.socket, str(stalled_ms)], stdout=subprocess.PIPE)
        assert self.process.stdout and self.process.stdout.readline() == b"ready\n"

    def channel(self) -> grpc.Channel:
        options = [("grpc.max_receive_message_length", LIMIT), ("grpc.max_send_message_length", LIMIT),
                   ("grpc.use_local_subchannel_pool", 1)]
        return grpc.insecure_channel(f"unix:{self.socket}", options=options)

    def counts(self) -> dict[str, int]:
        with self.channel() as channel:
            words = unary(channel, "Counts")(b"", timeout=PATIENCE).split()
        return dict(zip(["connections", "calls", "cancelled", "descriptors", "resident"], map(int, words), strict=True))

    def eventually(self, condition: Callable[[dict[str, int]], bool]) -> dict[str, int]:
        """The counts, as soon as they are as they should be; those of the last look where they never are."""
        deadline = time.monotonic() + PATIENCE
        while not condition(found := self.counts()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=PATIENCE)


def unary(channel: grpc.Channel, method: str) -> grpc.UnaryUnaryMultiCallable:
    return channel.unary_unary(f"/test.Peer/{method}", request_serializer=None, response_deserializer=None)


def stream(channel: grpc.Channel, method: str) -> grpc.UnaryStreamMultiCallable:
    return channel.unary_stream(f"/test.Peer/{method}", request_serializer=None, response_deserializer=None)


@pytest.fixture
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Peer]:
    """The parameter: after how many seconds it drops a client that does not read."""
    server = Peer(tmp_path, 1000 * getattr(request, "param", 600))
    yield server
    assert server.process.poll() is None, "the server ended during the test"
    server.stop()
