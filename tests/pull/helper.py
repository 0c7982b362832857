# SPDX-License-Identifier: Apache-2.0
"""Drives nodens-pull as nodens-cri does: a request on its standard input, directories on descriptors 3, 4 and 6, JSON lines back."""
import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BUILD = Path("build") / os.environ.get("NODENS_VARIANT", "gcc")
PROGRAM = str(BUILD / "src/pull/nodens-pull")
SCRATCH = "/var/tmp"
OPEN = 'exec "$0" 3<"$1" 4<"$2" 5<"$3" 6<"$4"'
DEADLINE = 300     # of a pull, on a machine with other load
SETTLING = 60      # for killed processes to be gone


@dataclass
class Result:
    """How a run ended."""

    code: int
    events: list[dict[str, Any]]
    errors: str
    seconds: float

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
        path.mkdir(mode=0o700)
        return path

    def commit(self, staging: Path) -> None:
        """What the daemon does with a result, without its checks."""
        for layer in (staging / "layers").iterdir():
            if not (self.layers / layer.name).exists():
                layer.rename(self.layers / layer.name)

    def stack(self, image: dict[str, Any], staging: Path | None = None) -> list[Path]:
        """The trees of an image's layers, the lowest first."""
        found = []
        for layer in image["layers"]:
            name = layer["chain"].removeprefix("sha256:")
            places = [self.layers / name / "fs"] + ([staging / "layers" / name / "fs"] if staging else [])
            found.append(next(place for place in places if place.is_dir()))
        return found


def request(reference: str, store: Store, **more: Any) -> dict[str, Any]:
    return {"operation": "pull", "reference": reference, "platform": {"os": "linux", "architecture": "amd64", "variant": ""},
            "auth": None, "hostsDir": str(store.hosts), "parallel": 3, "noProgressSeconds": 60,
            "limits": {"totalBytes": 8 << 30, "layers": 500}} | more


class Running:
    """A helper that runs."""

    def __init__(self, store: Store, staging: Path, wanted: dict[str, Any], archive: Path | None = None, env: dict[str, str] | None = None,
                 raw: bytes | None = None, program: str = PROGRAM, before: tuple[str, ...] = ()) -> None:
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [*before, "bash", "-c", OPEN, os.path.abspath(program), str(staging), str(store.layers), str(archive or "/dev/null"), str(store.partial)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            # The leak checker wants ptrace(), which neither jail allows; unit tests look for leaks.
            env=os.environ | {"NO_PROXY": "*", "ASAN_OPTIONS": "detect_leaks=0"} | (env or {}))
        assert self.process.stdin and self.process.stdout and self.process.stderr
        self.events: list[dict[str, Any]] = []
        self.errors = b""
        self.readers = [threading.Thread(target=self.read_events), threading.Thread(target=self.read_errors)]
        for reader in self.readers:
            reader.start()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(raw if raw is not None else json.dumps(wanted).encode())
            self.process.stdin.close()

    def read_events(self) -> None:
        for line in self.process.stdout:  # type: ignore[union-attr]
            self.events.append(json.loads(line))

    def read_errors(self) -> None:
        self.errors = self.process.stderr.read()  # type: ignore[union-attr]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.finish()

    def finish(self, deadline: float = DEADLINE) -> Result:
        try:
            code = self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for reader in self.readers:
            reader.join(SETTLING)
        return Result(code, self.events, self.errors.decode("utf-8", "replace"), time.monotonic() - self.began)


def processes(session: int) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            if int(rest.split()[3]) == session and rest.split()[0] != "Z":
                found.append(name)
    return found


def left_running(session: int) -> list[str]:
    """What stays of a helper's session; a process that was killed may need a moment to be gone."""
    deadline = time.monotonic() + SETTLING
    while (found := processes(session)) and time.monotonic() < deadline:
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
