# SPDX-License-Identifier: Apache-2.0
"""The token server of a registry with token auth: `python3 token_server.py CONFIG.json`, one process beside the registry.

Speaks the distribution project's token protocol: GET /token?service=...&scope=repository:NAME:pull,push with basic credentials
gives a short-lived JWT that the registry trusts by its certificate. Without credentials it gives a token for nothing,
with wrong ones 401: so that a client's mistakes look as they do in the field.
"""
import base64
import binascii
import http.server
import json
import ssl
import subprocess
import sys
import time
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIFETIME = 300


@dataclass(frozen=True)
class Config:
    address: str
    port: int
    issuer: str
    key: str
    certificate: str
    users: dict[str, str]


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def certificate_body(path: str) -> str:
    lines = Path(path).read_text().splitlines()
    return "".join(lines[lines.index("-----BEGIN CERTIFICATE-----") + 1:lines.index("-----END CERTIFICATE-----")])


def sign(config: Config, claims: dict[str, Any]) -> str:
    """A JWT with the signer's certificate in its head."""
    head = {"typ": "JWT", "alg": "RS256", "x5c": [certificate_body(config.certificate)]}
    text = ".".join(encode(json.dumps(part).encode()) for part in (head, claims))
    command = ["openssl", "dgst", "-sha256", "-sign", config.key]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return f"{text}.{encode(done.stdout)}"


def parse_scope(scope: str) -> dict[str, Any]:
    """`repository:name:pull,push`; the name may hold a colon (a port)."""
    kind, _, rest = scope.partition(":")
    name, _, actions = rest.rpartition(":")
    return {"type": kind, "name": name, "actions": actions.split(",")}


def credentials(header: str | None) -> tuple[str, str] | None:
    kind, _, value = (header or "").partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ("", "")
    return (user, password)


def claims(config: Config, query: dict[str, list[str]], user: str | None) -> dict[str, Any]:
    now = int(time.time())
    access = [parse_scope(scope) for line in query.get("scope", []) for scope in line.split()] if user else []
    return {"iss": config.issuer, "sub": user or "", "aud": query.get("service", [""])[0], "jti": f"{time.time_ns()}",
            "iat": now, "nbf": now - 10, "exp": now + LIFETIME, "access": access}


class Handler(http.server.BaseHTTPRequestHandler):
    config: Config

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        given = credentials(self.headers.get("Authorization"))
        if url.path != "/token":
            self.answer(404, {"errors": [{"code": "NOT_FOUND"}]})
        elif given and self.config.users.get(given[0]) != given[1]:
            self.answer(401, {"errors": [{"code": "UNAUTHORIZED", "message": "wrong user or password"}]})
        else:
            token = sign(self.config, claims(self.config, urllib.parse.parse_qs(url.query), given[0] if given else None))
            self.answer(200, {"token": token, "access_token": token, "expires_in": LIFETIME})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main(arguments: list[str]) -> None:
    config = Config(**json.loads(Path(arguments[0]).read_text()))
    Handler.config = config
    server = http.server.ThreadingHTTPServer((config.address, config.port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(config.certificate, config.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
