# SPDX-License-Identifier: Apache-2.0
"""The metrics of nodens-cri, as Prometheus would read them."""
import re
import socket
from pathlib import Path

SAMPLE = re.compile(r'^([a-z_]+)(\{[a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*\})? ([0-9.]+)$')


def ask(path: Path, request: str) -> str:
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(60)
        one.connect(str(path))
        one.sendall(request.encode())
        return b"".join(iter(lambda: one.recv(65536), b"")).decode()


def scrape(path: Path) -> dict[str, float]:
    """Every sample, and a look at the form: each metric is introduced, and is there once."""
    head, _, body = ask(path, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\n"), head
    assert f"Content-Length: {len(body)}" in head
    found: dict[str, float] = {}
    kinds = {}
    for line in filter(None, body.splitlines()):
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert name not in kinds
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            matched = SAMPLE.match(line)
            assert matched, line
            assert kinds.get(matched[1]) or kinds.get(re.sub("_(bucket|sum|count)$", "", matched[1])) == "histogram", line
            assert matched[1] + (matched[2] or "") not in found, line
            found[matched[1] + (matched[2] or "")] = float(matched[3])
    return found
