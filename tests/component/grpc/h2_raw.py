# SPDX-License-Identifier: Apache-2.0
"""Just enough HTTP/2 to be a rude client: ask, and then do not behave."""
import socket
import struct
from pathlib import Path

HEADERS, DATA, SETTINGS, WINDOW_UPDATE = 1, 0, 4, 8
END_STREAM, END_HEADERS = 1, 4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name: str, value: str) -> bytes:
    """A header field without indexing and without Huffman coding."""
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def connect(path: Path) -> socket.socket:
    raw = socket.socket(socket.AF_UNIX)
    raw.connect(str(path))
    raw.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 2**31 - 1)))
    raw.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**30)))
    return raw


def request(raw: socket.socket, path: str, message: bytes, stream: int = 1) -> None:
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost", "content-type": "application/grpc",
              "te": "trailers"}
    raw.sendall(frame(HEADERS, END_HEADERS, stream, b"".join(literal(name, value) for name, value in fields.items())))
    raw.sendall(frame(DATA, END_STREAM, stream, b"\0" + struct.pack(">I", len(message)) + message))
