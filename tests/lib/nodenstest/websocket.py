# SPDX-License-Identifier: Apache-2.0
"""A client of the streaming server over WebSocket, with Kubernetes' channels: what the Python client of Kubernetes speaks.

    channels = Channels(url, "v4.channel.k8s.io")
    assert channels.read(1) == b"hello\\n" and channels.verdict()["status"] == "Success"
"""
import base64
import hashlib
import json
import os
import struct
import time
from typing import Any
from urllib.parse import urlsplit

from .upgrade import PATIENCE, Refused, Upgraded, knock

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)


class Channels(Upgraded):
    def __init__(self, url: str, protocol: str = "v4.channel.k8s.io", method: str = "GET", version: str = "13") -> None:
        self.key = base64.b64encode(os.urandom(16)).decode()
        parts = urlsplit(url)
        lines = [f"{method} {parts.path}?command=ignored HTTP/1.1", f"Host: {parts.netloc}", "Connection: keep-alive, Upgrade",
                 "Upgrade: websocket",
                 f"Sec-WebSocket-Version: {version}",
                 f"Sec-WebSocket-Key: {self.key}"] + ([f"Sec-WebSocket-Protocol: {protocol}"] if protocol else [])
        super().__init__(*knock(url, "\r\n".join(lines) + "\r\n\r\n"))
        status = int(self.head.split()[1]) if self.head else 0
        if status != 101:
            raise Refused(status, self.head, self.unread.decode(errors="replace"))
        wanted = base64.b64encode(hashlib.sha1((self.key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        assert wanted in self.head and (not protocol or protocol.split(",")[0] in self.head), self.head
        self.base64 = "base64" in protocol
        self.data: dict[int, bytearray] = {}
        self.first: int | None = None
        self.pongs: list[bytes] = []

    def frame(self, opcode: int, data: bytes, fin: bool = True) -> None:
        mask = os.urandom(4)
        length = (
            bytes([0x80 | len(data)])
            if len(data) < 126
            else struct.pack(">BH", 0x80 | 126, len(data))
            if len(data) < 65536
            else struct.pack(">BQ", 0x80 | 127, len(data))
        )
        whole = int.from_bytes(data, "big") ^ int.from_bytes((mask * (len(data) // 4 + 1))[:len(data)], "big")
        self.socket.sendall(bytes([(0x80 if fin else 0) | opcode]) + length + mask + whole.to_bytes(len(data), "big"))

    def write(self, channel: int, data: bytes) -> None:
        for start in range(0, len(data), 30000):
            piece = data[start:start + 30000]
            if self.base64:
                self.frame(TEXT, str(channel).encode() + base64.b64encode(piece))
            else:
                self.frame(BINARY, bytes([channel]) + piece)

    def step(self) -> None:
        """Takes one frame."""
        first, second = self.take(2)
        length = second & 127
        if length >= 126:
            length = int.from_bytes(self.take(2 if length == 126 else 8), "big")
        body = self.take(length)
        opcode = first & 15
        assert first & 0x80 and not second & 0x80, "the server sends whole frames without masks"
        if opcode == CLOSE:
            self.over = True
        elif opcode == PONG:
            self.pongs.append(body)
        else:
            assert opcode == (TEXT if self.base64 else BINARY)
            channel = int(body[:1]) if self.base64 else body[0]
            self.first = channel if self.first is None else self.first
            self.data.setdefault(channel, bytearray()).extend(base64.b64decode(body[1:]) if self.base64 else body[1:])

    def read(self, channel: int, until: bytes | None = None) -> bytes:
        """Everything received on a channel until the end, or until these bytes have arrived."""
        deadline = time.monotonic() + PATIENCE
        while until not in self.data.get(channel, b"") if until is not None else not self.over:
            assert time.monotonic() < deadline, self.data
            try:
                self.step()
            except (EOFError, ConnectionResetError):
                assert until is None, self.data
                self.over = True
        return bytes(self.data.get(channel, b""))

    def verdict(self) -> dict[str, Any]:
        return json.loads(self.read(ERROR))

    def exit_code(self) -> int:
        told = self.verdict()
        return 0 if told["status"] == "Success" else int(told["details"]["causes"][0]["message"])
