# SPDX-License-Identifier: Apache-2.0
"""Pushes images to a registry: the distribution API's few calls, with none, basic or token auth."""
import base64
import http.client
import json
import re
import ssl
import urllib.parse
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from ..command import Failure
from ..images.layout import INDEX, MANIFEST, Descriptor, Layout

TIMEOUT = 60


@dataclass(frozen=True)
class Response:
    """A response that was read to its end."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


@dataclass
class Client:
    """A connection to one registry. Tokens are kept per scope."""

    address: str
    port: int
    authority: Path
    user: str = ""
    password: str = ""
    tokens: dict[str, str] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)  # digest -> a repository that has it

    def __post_init__(self) -> None:
        self.context = ssl.create_default_context(cafile=str(self.authority))
        self.connection = self.connect(self.address, self.port)

    def connect(self, address: str, port: int) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(address, port, timeout=TIMEOUT, context=self.context)

    def basic(self) -> str:
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def call(self, method: str, path: str, repository: str, body: Path | bytes | None = None,
             headers: dict[str, str] | None = None) -> Response:
        """One request; on 401 once more with what the registry asks for."""
        response = self.send(method, path, body, (headers or {}) | self.authorization(repository))
        if response.status == HTTPStatus.UNAUTHORIZED:
            challenge = response.headers.get("WWW-Authenticate", "")
            self.tokens[repository] = self.answer_challenge(challenge, repository)
            response = self.send(method, path, body, (headers or {}) | self.authorization(repository))
        return response

    def authorization(self, repository: str) -> dict[str, str]:
        return {"Authorization": self.tokens[repository]} if repository in self.tokens else {}

    def send(self, method: str, path: str, body: Path | bytes | None, headers: dict[str, str]) -> Response:
        if isinstance(body, Path):
            with open(body, "rb") as file:
                self.connection.request(method, path, file, headers | {"Content-Length": str(body.stat().st_size)})
                response = self.connection.getresponse()
        else:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
        return Response(response.status, response.headers, response.read())

    def answer_challenge(self, challenge: str, repository: str) -> str:
        kind, _, rest = challenge.partition(" ")
        if kind.lower() == "basic":
            return self.basic()
        fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        realm = urllib.parse.urlsplit(fields.get("realm", ""))
        if not realm.hostname:
            raise Failure(f"the registry asks for credentials in a way that is not known here: '{challenge}'")
        # what the registry names: mounting a blob asks for the other repository, too
        scope = fields.get("scope") or f"repository:{repository}:pull,push"
        query = urllib.parse.urlencode({"service": fields.get("service", ""), "scope": scope})
        server = self.connect(self.address, realm.port or 443)  # the token server is on the registry's address
        server.request("GET", f"{realm.path}?{query}", headers={"Authorization": self.basic()})
        response = server.getresponse()
        data = response.read()
        if response.status != HTTPStatus.OK:
            raise Failure(f"the token server answers {response.status}: {data[:200]!r}")
        return f"Bearer {json.loads(data)['token']}"

    def expect(self, response: Response, wanted: set[int], what: str) -> Response:
        if response.status not in wanted:
            raise Failure(f"the registry answers {response.status} to {what}: {response.body[:300]!r}")
        return response

    def push_blob(self, layout: Layout, repository: str, blob: Descriptor) -> None:
        if self.call("HEAD", f"/v2/{repository}/blobs/{blob.digest}", repository).status == HTTPStatus.OK:
            return
        query = ""
        if blob.digest in self.where:
            query = "?" + urllib.parse.urlencode({"mount": blob.digest, "from": self.where[blob.digest]})
        response = self.call("POST", f"/v2/{repository}/blobs/uploads/{query}", repository)
        self.expect(response, {201, 202}, f"an upload to {repository}")
        if response.status == HTTPStatus.ACCEPTED:
            location = urllib.parse.urlsplit(response.headers["Location"])
            target = f"{location.path}?{location.query}&digest={urllib.parse.quote(blob.digest)}".replace("?&", "?")
            done = self.call("PUT", target, repository, layout.blob(blob.digest), {"Content-Type": "application/octet-stream"})
            self.expect(done, {201}, f"blob {blob.digest}")
        self.where[blob.digest] = repository

    def push_manifest(self, layout: Layout, repository: str, manifest: Descriptor, reference: str) -> None:
        data = layout.blob(manifest.digest).read_bytes()
        headers = {"Content-Type": manifest.media_type}
        done = self.call("PUT", f"/v2/{repository}/manifests/{reference}", repository, data, headers)
        self.expect(done, {201}, f"manifest {repository}:{reference}")

    def push(self, layout: Layout, name: str) -> str:
        """Pushes a named image; the registry's own name in front is dropped. Returns the repository and tag."""
        image = layout.images[name]
        repository, _, tag = name.partition("/")[2].rpartition(":")
        for item in layout.children(image):
            if item.media_type not in (INDEX, MANIFEST):
                self.push_blob(layout, repository, item)
            elif item is not image:
                self.push_manifest(layout, repository, item, item.digest)
        self.push_manifest(layout, repository, image, tag)
        return f"{repository}:{tag}"
