# SPDX-License-Identifier: Apache-2.0
"""A registry that lies on demand: a few lines of HTTP, with a hook before every answer."""
import http.server
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .images import Blob, Image, digest


@dataclass
class Answer:
    """A response; a body function may write anything to the connection."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    write: Callable[[http.server.BaseHTTPRequestHandler], object] | None = None
    length: int | None = None       # a Content-Length that is not the truth


Hook = Callable[["Registry", http.server.BaseHTTPRequestHandler], Answer | None]


class Registry:
    """Serves what was put into it, on loopback, without TLS."""

    def __init__(self, hook: Hook | None = None) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, tuple[str, bytes]] = {}
        self.hook = hook
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.closed = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.handle(self)

            def do_POST(self) -> None:
                self.posted = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.handle(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.name = f"127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> "Registry":
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        self.server.shutdown()
        self.server.server_close()

    def put(self, blob: Blob) -> None:
        self.blobs[digest(blob.data)] = blob.data

    def put_manifest(self, blob: Blob, *names: str) -> None:
        for name in (digest(blob.data), *names):
            self.manifests[name] = (blob.media_type, blob.data)

    def serve(self, image: Image, tag: str = "1", **lies: Any) -> str:
        """Makes an image available; returns its reference."""
        for layer in image.layers:
            self.put(layer)
        self.put(image.config_blob())
        self.put_manifest(image.manifest(**lies), tag)
        return f"{self.name}/test/image:{tag}"

    def handle(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        self.seen.append((handler.path, dict(handler.headers.items())))
        answer = (self.hook(self, handler) if self.hook else None) or self.answer(handler)
        try:
            self.send(handler, answer)
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> Answer:
        name = handler.path.split("?")[0].rsplit("/", 1)[1]
        if "/manifests/" in handler.path and name in self.manifests:
            media_type, data = self.manifests[name]
            return Answer(200, data, {"Content-Type": media_type})
        if "/blobs/" in handler.path and name in self.blobs:
            data = self.blobs[name]
            wanted = handler.headers.get("Range")
            if wanted:
                start = int(wanted.removeprefix("bytes=").rstrip("-"))
                if start >= len(data):
                    return Answer(416)
                return Answer(206, data[start:], {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"})
            return Answer(200, data, {"Content-Type": "application/octet-stream"})
        return Answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')

    def send(self, handler: http.server.BaseHTTPRequestHandler, answer: Answer) -> None:
        handler.send_response(answer.status)
        for key, value in answer.headers.items():
            handler.send_header(key, value)
        if answer.write:
            handler.close_connection = True
            handler.end_headers()
            answer.write(handler)
            return
        handler.send_header("Content-Length", str(len(answer.body) if answer.length is None else answer.length))
        handler.end_headers()
        handler.wfile.write(answer.body)
        if answer.length is not None:
            handler.close_connection = True
