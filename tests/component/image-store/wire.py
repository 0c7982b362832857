# SPDX-License-Identifier: Apache-2.0
"""A wire to the registry that counts, and that can be slow: bytes go through as they are, TLS included."""
import selectors
import socket
import threading
import time

CHUNK = 64 << 10


class Wire:
    """Listens on a port of its own and forwards to another. `received` counts what the registry has sent."""

    def __init__(self, port: int, rate: float = 0) -> None:
        self.target, self.rate, self.received, self.running = port, rate, 0, True
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.running = False
        self.listener.close()

    def accept(self) -> None:
        while self.running:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.forward, args=(near,), daemon=True).start()

    def forward(self, near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", self.target)) as far, selectors.DefaultSelector() as ready:
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            try:
                while self.running:
                    for key, _ in ready.select(1):
                        data = key.fileobj.recv(CHUNK)  # type: ignore[union-attr]
                        if not data:
                            return
                        key.data.sendall(data)
                        if key.fileobj is far:
                            self.received += len(data)
                            time.sleep(len(data) / self.rate if self.rate else 0)
            except OSError:
                return
