# SPDX-License-Identifier: Apache-2.0
"""A proxy to the API server that can go silent, like a firewall that drops a connection's state.

    cut_proxy.py PORT SERVER-PORT FLAG

While the file FLAG exists, nothing passes on open connections, in either direction, and none of
them is closed; later connections pass.
"""
import contextlib
import os
import socket
import sys
import threading


def received(source: socket.socket) -> bytes:
    """Empty at the end of the stream, even if the other direction ended first."""
    with contextlib.suppress(OSError):
        return source.recv(65536)
    return b""


def pump(source: socket.socket, target: socket.socket, flag: str, born: float) -> None:
    while data := received(source):
        if os.path.exists(flag) and os.stat(flag).st_mtime > born:
            # forever: this connection is dead, and neither side is notified
            threading.Event().wait()
        target.sendall(data)
    target.close()


def main() -> None:
    port, server, flag = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        client, _ = listener.accept()
        upstream = socket.create_connection(("127.0.0.1", server))
        upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        probe = f"{flag}.{id(client)}"
        with open(probe, "w", encoding="utf-8"):
            born = os.stat(probe).st_mtime
        os.unlink(probe)
        for source, target in ((client, upstream), (upstream, client)):
            threading.Thread(target=pump, args=(source, target, flag, born), daemon=True).start()


if __name__ == "__main__":
    main()
