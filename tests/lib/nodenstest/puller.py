# SPDX-License-Identifier: Apache-2.0
"""Drives nodens-fetch and nodens-unpack as nodens-cri does.

There is a socket pair between them. The fetcher gets a request on standard input and directories
as descriptors; both send JSON lines back.
"""
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BUILD = Path("build") / os.environ.get("NODENS_VARIANT", "gcc")
PROGRAM = str(BUILD / "src/pull/nodens-fetch")
UNPACKER = str(BUILD / "src/pull/nodens-unpack")
SCRATCH = "/var/tmp"
# The socket, which the shell inherits under some number, becomes descriptor 3.
OPEN_FETCHER = 'exec "$0" 3<&$1 4<"$2" 5<"$3" 6<"$4"'
OPEN_UNPACKER = 'exec "$0" 3<&$1 4<"$2" 5<"$3"'
DEADLINE = 300     # of a pull, on a machine with other load
SETTLING = 60      # for killed processes to be gone


@dataclass
class Result:
    """How a run ended.

    The events are the fetcher's, or the unpacker's error if it has one; `unpacked` and `synced` are
    the unpacker's.
    """

    code: int
    events: list[dict[str, Any]]
    errors: str
    seconds: float
    unpacked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def done(self) -> dict[str, Any]:
        assert self.code == 0 and self.events[-1]["event"] == "done", self.explain()
        return self.events[-1]

    @property
    def image(self) -> dict[str, Any]:
        assert len(self.done["images"]) == 1
        return self.done["images"][0]

    @property
    def error(self) -> dict[str, Any]:
        assert self.code == 1, self.explain()
        errors = [event for event in self.events if event["event"] == "error"]
        assert len(errors) == 1 and self.events[-1] == errors[0], self.explain()
        return errors[0]

    def states(self, digest: str) -> list[str]:
        return [event["state"] for event in self.events if event["event"] == "layer" and event["digest"] == digest]

    def explain(self) -> str:
        return f"exit code {self.code}, events {self.events[-3:]}, standard error: {self.errors[-2000:]}"


@dataclass
class Store:
    """The directories of a store, as far as the helper sees them. What is not under `staging` must never change."""

    root: Path
    runs: int = 0
    hosts: Path = field(init=False)

    def __post_init__(self) -> None:
        self.layers = self.root / "layers"
        self.partial = self.root / "staging" / "partial"
        self.hosts = self.root / "certs.d"
        for path in (self.layers, self.partial, self.hosts):
            path.mkdir(parents=True, mode=0o700)
        (self.root / "canary").write_text("untouched")

    def staging(self) -> Path:
        self.runs += 1
        path = self.root / "staging" / f"pull-{self.runs}"
        for part in (path, path / "blobs", path / "unpack"):
            part.mkdir(mode=0o700)
        return path

    def commit(self, staging: Path) -> None:
        """Does with a result what the daemon does, without its checks."""
        for layer in trees(staging).iterdir():
            if not (self.layers / layer.name).exists():
                layer.rename(self.layers / layer.name)

    def stack(self, image: dict[str, Any], staging: Path | None = None) -> list[Path]:
        """The trees of an image's layers, the lowest first."""
        found = []
        for layer in image["layers"]:
            name = layer["chain"].removeprefix("sha256:")
            places = [self.layers / name / "fs"] + ([trees(staging) / name / "fs"] if staging else [])
            found.append(next(place for place in places if place.is_dir()))
        return found


def trees(staging: Path) -> Path:
    """The layers that a pull has unpacked."""
    return staging / "unpack/layers"


def request(reference: str, store: Store, **more: Any) -> dict[str, Any]:
    return {"operation": "pull", "reference": reference, "platform": {"os": "linux", "architecture": "amd64", "variant": ""},
            "auth": None, "hostsDir": str(store.hosts), "parallel": 3, "noProgressSeconds": 60,
            "limits": {"totalBytes": 8 << 30, "layers": 500}} | more


class Program:
    """One of the two, with what it says."""

    def __init__(self, command: list[str], channel: int, env: dict[str, str] | None, given: bytes | None) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, pass_fds=(channel,),
            # The leak checker wants ptrace(), which no jail allows; unit tests look for leaks.
            env=os.environ | {"NO_PROXY": "*", "ASAN_OPTIONS": "detect_leaks=0"} | (env or {}))
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.events: list[dict[str, Any]] = []
        self.errors = b""
        self.readers = [threading.Thread(target=self.read_events), threading.Thread(target=self.read_errors)]
        for reader in self.readers:
            reader.start()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(given or b"")
            self.process.stdin.close()

    def read_events(self) -> None:
        for line in self.process.stdout:  # type: ignore[union-attr]
            self.events.append(json.loads(line))

    def read_errors(self) -> None:
        self.errors = self.process.stderr.read()  # type: ignore[union-attr]

    def finish(self, deadline: float) -> int:
        try:
            code = self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for reader in self.readers:
            reader.join(SETTLING)
        return code


class Running:
    """A fetcher and an unpacker that run. `process` is the fetcher's."""

    def __init__(self, store: Store, staging: Path, wanted: dict[str, Any], archive: Path | None = None, env: dict[str, str] | None = None,
                 raw: bytes | None = None, program: str = PROGRAM, unpacker: str = UNPACKER, before: tuple[str, ...] = ()) -> None:
        self.began = time.monotonic()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            self.unpacker = Program([*before, "bash", "-c", OPEN_UNPACKER, os.path.abspath(unpacker), str(theirs.fileno()),
                                     str(staging / "unpack"),
                                     str(store.layers)], theirs.fileno(), env, None)
            self.fetcher = Program([*before, "bash", "-c", OPEN_FETCHER, os.path.abspath(program), str(ours.fileno()),
                                    str(staging / "blobs"),
                                    str(archive or "/dev/null"), str(store.partial)], ours.fileno(), env,
                                   raw if raw is not None else json.dumps(wanted).encode())
        self.process = self.fetcher.process

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.fetcher.events

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.finish()

    def finish(self, deadline: float = DEADLINE) -> Result:
        try:
            code = self.fetcher.finish(deadline)
        finally:        # its end of the channel is gone
            unpacker_code = self.unpacker.finish(deadline)
        events, said = list(self.fetcher.events), self.unpacker.events
        failures = [event for event in said if event["event"] == "error"]
        if failures:    # as the daemon judges
            events = [event for event in events if event["event"] not in ("error", "done")] + failures
        errors = (self.fetcher.errors + self.unpacker.errors).decode("utf-8", "replace")
        unpacked = [event for event in said if event["event"] == "unpacked"]
        if code == 0 and not failures and said[-1:] != [{"event": "synced"}]:     # the daemon refuses it
            code, events = 1, [event for event in events if event["event"] != "done"]
        return Result(code or unpacker_code, events, errors, time.monotonic() - self.began, unpacked)

    def sessions(self) -> tuple[int, int]:
        return self.fetcher.process.pid, self.unpacker.process.pid


def processes(*sessions: int) -> list[str]:
    """The processes left of programs' sessions."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            if int(rest.split()[3]) in sessions and rest.split()[0] != "Z":
                found.append(name)
    return found


def left_running(*sessions: int) -> list[str]:
    """The processes that stay of programs' sessions; a killed process may need a moment to exit."""
    deadline = time.monotonic() + SETTLING
    while (found := processes(*sessions)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def run(store: Store, wanted: dict[str, Any], **more: Any) -> tuple[Result, Path]:
    staging = store.staging()
    return Running(store, staging, wanted, **more).finish(), staging


def pull(store: Store, reference: str, **more: Any) -> tuple[Result, Path]:
    return run(store, request(reference, store, **more))


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="nodens-pull-", dir=SCRATCH))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def peak_memory() -> int:
    """Bytes of the largest child so far."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
