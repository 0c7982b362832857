# SPDX-License-Identifier: Apache-2.0
"""HTTP upgrades, which SPDY and WebSocket share."""
import socket
from urllib.parse import urlsplit

PATIENCE = 60.0


class Refused(Exception):
    """The server did not upgrade."""

    def __init__(self, status: int, head: str, body: str) -> None:
        super().__init__(f"{status}: {body}")
        self.status, self.head, self.body = status, head, body


def knock(url: str, head: str) -> tuple[socket.socket, str, bytes]:
    """Sends a request; the connection, the head of the answer, and the bytes after it."""
    parts = urlsplit(url)
    assert parts.scheme == "http" and parts.hostname == "127.0.0.1", url
    connection = socket.create_connection((parts.hostname, parts.port or 80), timeout=PATIENCE)
    connection.sendall(head.encode())
    got = b""
    while b"\r\n\r\n" not in got and (piece := connection.recv(65536)):
        got += piece
    answer, _, rest = got.partition(b"\r\n\r\n")
    return connection, answer.decode(), rest


class Upgraded:
    """A connection after its upgrade, and the bytes that were received but not parsed yet."""

    def __init__(self, connection: socket.socket, head: str, unread: bytes) -> None:
        self.socket, self.head, self.unread = connection, head, unread
        self.over = False

    def close(self) -> None:
        self.socket.close()

    def take(self, count: int) -> bytes:
        """The next `count` bytes; raises EOFError at the end of the connection."""
        while len(self.unread) < count:
            piece = self.socket.recv(1 << 20)
            if not piece:
                self.over = True
                raise EOFError
            self.unread += piece
        taken, self.unread = self.unread[:count], self.unread[count:]
        return taken
