# SPDX-License-Identifier: Apache-2.0
"""A registry's directory: certificates, configuration and storage, made before the processes start.

Theory of operation
  prepare() fills a directory; commands() returns the processes that serve it. Their supervisor runs
  them with that directory as working directory: all paths in the configuration are relative to it,
  because it has another path inside a root. The storage begins as a copy of one in the cache, to
  which the images were pushed once (storage.py); push() sends images over the network, like any
  client of a registry, and finds most of them there.
"""
import ctypes
import json
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from .. import images
from ..command import Failure
from ..env import goprograms, linux, machine
from . import certificates, token_server
from .push import Client

HOST = "registry.nodens.test"
PORT = 5000
AUTHS = ("none", "basic", "token")
USER, PASSWORD = "nodens", "a-test-password"
CONFIG = "config.json"      # YAML's subset that needs no library
STARTUP = 120.0
T = TypeVar("T")


@dataclass(frozen=True)
class Site:
    """Where a registry is, on disk and on the network."""

    directory: Path
    address: str = "127.0.0.1"
    port: int = PORT
    auth: str = "none"

    @property
    def authority(self) -> Path:
        return self.directory / "ca.pem"

    def prepare(self, storage: Path | None = None) -> None:
        """Makes everything anew; `storage` is copied, if there is one."""
        if self.auth not in AUTHS:
            raise Failure(f"no registry auth '{self.auth}' (there are: {', '.join(AUTHS)})")
        machine.need_program("openssl", "openssl")
        self.directory.mkdir(parents=True, exist_ok=True)
        certificates.make_authority(self.directory)
        certificates.issue(self.directory, "server", [HOST, "localhost"], sorted({self.address, "127.0.0.1"}))
        if storage:
            shutil.copytree(storage, self.directory / "storage")
        else:
            (self.directory / "storage").mkdir()
        self.configure()

    def configure(self) -> None:
        """Writes the configuration alone: certificates and storage may come from a site at another port."""
        (self.directory / CONFIG).write_text(json.dumps(self.configuration(), indent=1))
        (self.directory / "site.json").write_text(json.dumps(asdict(self) | {"directory": ""}))

    def configuration(self) -> dict[str, object]:
        made: dict[str, object] = {
            "version": 0.1, "log": {"level": "info", "accesslog": {"disabled": False}},
            "storage": {"filesystem": {"rootdirectory": "storage"}, "delete": {"enabled": True}},
            "http": {"addr": f"{self.address}:{self.port}", "tls": {"certificate": "server.pem", "key": "server.key"}},
        }
        if self.auth == "basic":
            (self.directory / "htpasswd").write_text(f"{USER}:{bcrypt(PASSWORD)}\n")
            made["auth"] = {"htpasswd": {"realm": "nodens", "path": "htpasswd"}}
        elif self.auth == "token":
            self.write_token_server()
            made["auth"] = {"token": {"realm": f"https://{HOST}:{self.port + 1}/token", "service": HOST, "issuer": "nodens",
                                      "rootcertbundle": "ca.pem", "signingalgorithms": ["RS256"]}}
        return made

    def write_token_server(self) -> None:
        config = token_server.Config(self.address, self.port + 1, "nodens", "server.key", "server.pem", {USER: PASSWORD})
        (self.directory / "token.json").write_text(json.dumps(asdict(config)))

    def commands(self, inside: Callable[[Path], Path] = lambda path: path, python: str = "python3") -> list[list[str]]:
        """The processes to run in the site's directory; `inside` says where a file of the machine is for them."""
        found = [[str(inside(goprograms.ensure("registry") / "registry")), "serve", CONFIG]]
        if self.auth == "token":
            found.append([python, str(inside(Path(token_server.__file__))), "token.json"])
        return found

    def client(self) -> Client:
        return Client(self.address, self.port, self.authority, USER, PASSWORD)

    def wait(self, netns: Path | None = None) -> None:
        """Returns when the registry answers, and its token server too."""
        deadline = time.monotonic() + STARTUP
        while True:
            try:
                in_netns(netns, self.greet)
                return
            except OSError as error:
                if time.monotonic() > deadline:
                    raise Failure(f"the registry at {self.address}:{self.port} does not answer: {error}") from error
            time.sleep(0.1)

    def greet(self) -> None:
        """Raises OSError while a server is not there."""
        self.client().send("GET", "/v2/", None, {})
        if self.auth == "token":
            socket.create_connection((self.address, self.port + 1), 5).close()

    def push(self, sets: tuple[str, ...], netns: Path | None = None) -> list[str]:
        """Pushes whole sets of images; returns what was pushed."""
        return in_netns(netns, lambda: self.push_here(sets))

    def push_here(self, sets: tuple[str, ...]) -> list[str]:
        client = self.client()
        return [client.push(layout, name) for layout in map(images.layout, sets) for name in sorted(layout.images)]


def load(directory: Path) -> Site:
    """The site that was prepared in a directory."""
    try:
        data = json.loads((directory / "site.json").read_text())
    except FileNotFoundError as error:
        raise Failure(f"no registry has been set up in {directory}; `tools/dev registry up` does it") from error
    return Site(**data | {"directory": directory})


def bcrypt(password: str) -> str:
    """As htpasswd files want it. Python's own library has none, the C library's companion has."""
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    alphabet = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    salt = "$2b$05$" + "".join(secrets.choice(alphabet) for _ in range(21)) + "."
    hashed = library.crypt(password.encode(), salt.encode())
    if not hashed or not hashed.startswith(b"$2b$"):
        raise Failure("this machine's libcrypt knows no bcrypt, which basic auth needs")
    return hashed.decode()


def in_netns(netns: Path | None, function: Callable[[], T]) -> T:
    """Calls a function in a network namespace: a thread of its own joins it, so the caller stays where it is."""
    outcome: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            if netns:
                linux.setns(str(netns))
            outcome.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]


def hosts_toml(authority: str = "/etc/containerd/certs.d/ca.pem", address: str = f"https://{HOST}:{PORT}") -> str:
    """containerd's hosts.toml by which any registry's images come from ours (for registry.k8s.io and for our own name)."""
    return f'server = "{address}"\n\n[host."{address}"]\n  capabilities = ["pull", "resolve"]\n  ca = "{authority}"\n'
