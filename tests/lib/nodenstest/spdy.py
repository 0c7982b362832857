# SPDX-License-Identifier: Apache-2.0
"""A client of the streaming server: HTTP upgrade, SPDY/3.1 as Kubernetes uses it, and the streams of exec over it.

    streams = Streams(url, ["error", "stdout"])
    assert streams.read("stdout") == b"hello\\n" and streams.exit_code() == 0
"""
import json
import socket
import struct
import time
import zlib
from typing import Any
from urllib.parse import urlsplit

from .upgrade import PATIENCE, Refused, Upgraded, knock

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY = 1, 2, 3, 4, 6, 7
FIN = 1

# SPDY/3's dictionary (protocol draft 3, section 2.6.10.1): names with their lengths before them,
# then a text.
WORDS = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization
cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range
content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified
location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade
user-agent vary via warning www-authenticate method get status""".split()
PAIRS = ["200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin"]
TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found"
    "500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,public"
    "privatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = b"".join(struct.pack(">I", len(word)) + word.encode() for word in [*WORDS, *PAIRS]) + TEXT.encode()


def upgrade(url: str, protocols: list[str], method: str = "POST", more: str = "") -> tuple[socket.socket, str, bytes]:
    parts = urlsplit(url)
    lines = [f"{method} {parts.path}?command=ignored HTTP/1.1", f"Host: {parts.netloc}", "Connection: Upgrade", "Upgrade: SPDY/3.1",
             "Content-Length: 0"]
    lines += [f"X-Stream-Protocol-Version: {name}" for name in protocols]
    connection, head, rest = knock(url, "\r\n".join(lines) + "\r\n" + more + "\r\n")
    status = int(head.split()[1]) if head else 0
    if status == 101:
        return connection, head, rest
    while piece := connection.recv(65536):
        rest += piece
    connection.close()
    raise Refused(status, head, rest.decode(errors="replace"))


class Streams(Upgraded):
    def __init__(self, url: str, names: list[str], protocols: tuple[str, ...] = ("v5.channel.k8s.io", "v4.channel.k8s.io")) -> None:
        super().__init__(*upgrade(url, list(protocols)))
        self.packer, self.unpacker = zlib.compressobj(zdict=DICTIONARY), zlib.decompressobj(zdict=DICTIONARY)
        self.numbers = {name: 2 * place + 1 for place, name in enumerate(names)}
        self.data = {number: bytearray() for number in self.numbers.values()}
        self.replied: set[int] = set()
        self.ended: set[int] = set()
        self.pongs: list[int] = []
        self.away = False
        for name, number in self.numbers.items():
            self.open(number, {"streamtype": name})
        self.await_replies()

    def await_replies(self) -> None:
        while self.replied | self.ended < set(self.data):
            self.step()

    def control(self, kind: int, body: bytes, flags: int = 0) -> None:
        self.socket.sendall(struct.pack(">HHI", 0x8003, kind, flags << 24 | len(body)) + body)

    def open(self, number: int, headers: dict[str, str]) -> None:
        block = struct.pack(">I", len(headers))
        for text in (text for pair in headers.items() for text in pair):
            block += struct.pack(">I", len(text)) + text.encode()
        packed = self.packer.compress(block) + self.packer.flush(zlib.Z_SYNC_FLUSH)
        self.control(SYN_STREAM, struct.pack(">IIH", number, 0, 0) + packed)

    def write(self, name: str, data: bytes) -> None:
        for start in range(0, len(data), 32768):
            piece = data[start:start + 32768]
            self.socket.sendall(struct.pack(">II", self.numbers[name], len(piece)) + piece)

    def finish(self, name: str) -> None:
        self.socket.sendall(struct.pack(">II", self.numbers[name], FIN << 24))

    def step(self) -> None:
        """Takes one frame."""
        first, second = struct.unpack(">II", self.take(8))
        body = self.take(second & 0xFFFFFF)
        if not first >> 31:
            assert first not in self.ended, f"data on stream {first} after its end"
            self.data[first] += body
            if second >> 24 & FIN:
                self.ended.add(first)
            return
        assert first >> 16 == 0x8003, hex(first)
        kind = first & 0xFFFF
        if kind == SYN_REPLY:
            self.unpacker.decompress(body[4:])
            self.replied.add(struct.unpack(">I", body[:4])[0])
        elif kind == RST_STREAM:
            self.ended.add(struct.unpack(">I", body[:4])[0])
        elif kind == PING:
            self.pongs.append(struct.unpack(">I", body)[0])
        elif kind == GOAWAY:
            self.away = True

    def read(self, name: str, until: bytes | None = None) -> bytes:
        """All of a stream, to its end; or as far as these bytes have come."""
        number = self.numbers[name]
        deadline = time.monotonic() + PATIENCE
        while until not in self.data[number] if until is not None else number not in self.ended:
            assert time.monotonic() < deadline, bytes(self.data[number][-200:])
            self.step()
        return bytes(self.data[number])

    def verdict(self) -> dict[str, Any]:
        return json.loads(self.read("error"))

    def exit_code(self) -> int:
        told = self.verdict()
        if told["status"] == "Success":
            return 0
        assert told["reason"] == "NonZeroExitCode", told
        assert told["details"]["causes"][0]["reason"] == "ExitCode", told
        return int(told["details"]["causes"][0]["message"])


class Tunnels(Streams):
    """The streams of port-forward: two for each connection."""

    def __init__(self, url: str) -> None:
        super().__init__(url, [], ("portforward.k8s.io",))

    def connect(self, port: int | str, identity: str, kinds: tuple[str, ...] = ("error", "data")) -> str:
        """Opens a connection; the name of its data."""
        for kind in kinds:
            number = 2 * len(self.numbers) + 1
            self.numbers[f"{kind} {identity}"], self.data[number] = number, bytearray()
            self.open(number, {"streamtype": kind, "port": str(port), "requestid": identity})
        self.finish(f"error {identity}")
        self.await_replies()
        return f"data {identity}"

    def is_ended(self, name: str) -> bool:
        return self.numbers[name] in self.ended
