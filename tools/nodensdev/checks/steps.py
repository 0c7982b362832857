# SPDX-License-Identifier: Apache-2.0
"""Runs a list of `tools/dev` commands, such as the gate, and reports each with its time.

Steps run one after the other. Steps of different tracks run at the same time, since most of them
wait for a guest or a server longer than they compute; they share nothing but build directories,
which are locked. A step that exceeds its time limit is ended together with everything it started,
and fails. Its log is kept, and the lines that name the cause are shown: a report may be cut.
"""
import itertools
import os
import select
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..command import Failure
from ..project import TOOLS
from . import excerpt

GRACE = 60.0  # seconds that a step has to clean up after SIGTERM


@dataclass(frozen=True)
class Step:
    """One line of the report."""

    title: str
    command: tuple[str, ...]  # arguments of tools/dev
    minutes: float = 5.0  # time limit
    track: str = ""  # steps of different tracks run at the same time


def run_limited(argv: list[str], log: Path, seconds: float, grace: float = GRACE, stop: int | None = None) -> int | None:
    """Runs a command in a session of its own, its output in `log`. Returns the exit code, or None if it was ended.

    The time limit ends it, or `stop`, a descriptor that becomes readable.
    The process is not reaped before its group is killed: until then the group's number cannot name another one.
    """
    with log.open("wb") as stream:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
                                   env=os.environ | {"CI": "true"}, start_new_session=True)
    handle = os.pidfd_open(process.pid)
    try:
        ended = handle in readable([handle, *([] if stop is None else [stop])], seconds)
        if not ended:
            process.terminate()
            readable([handle], grace)
    finally:
        os.close(handle)
        os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    return code if ended else None


def readable(descriptors: list[int], seconds: float) -> list[int]:
    """Waits until one of them is readable."""
    return select.select(descriptors, [], [], seconds)[0]


reporting = threading.Lock()  # the report of one step is printed as a whole


def run_step(step: Step, log: Path, stop: int) -> bool:
    """Runs one step and reports it."""
    started = time.monotonic()
    code = run_limited([str(TOOLS / "dev"), *step.command], log, step.minutes * 60, stop=stop)
    with reporting:
        print(f"{'ok  ' if code == 0 else 'FAIL'} {time.monotonic() - started:7.1f} s  {step.title}", flush=True)
        if code != 0:
            ending = f"exceeded its limit of {step.minutes:g} min" if code is None else f"ended with {code}"
            print(f"     tools/dev {' '.join(step.command)} {ending}")
            excerpt.show(log)
    return code == 0


def phases(chosen: list[Step]) -> list[list[list[Step]]]:
    """The order of steps: phases, which have tracks, which have steps.

    Neighbours that have a track are one phase.
    """
    found: list[list[list[Step]]] = []
    for _, group in itertools.groupby(chosen, key=lambda step: bool(step.track)):
        tracks: dict[str, list[Step]] = {}
        for step in group:
            tracks.setdefault(step.track, []).append(step)
        found.append(list(tracks.values()))
    return found


def run_track(track: list[Step], files: dict[Step, Path], stop: int) -> int:
    """Runs the steps of a track one after the other, until `stop` is readable; how many passed."""
    return sum(run_step(step, files[step], stop) for step in track if not readable([stop], 0))


def show(chosen: list[Step]) -> None:
    """Prints the steps with their commands and limits."""
    for step in chosen:
        print(f"{step.title:<55} {step.minutes:4g} min  tools/dev {' '.join(step.command)}")


def run_all(chosen: list[Step], logs: Path) -> int:
    """Runs all steps, also after one has failed; the exit code."""
    if not chosen:
        raise Failure("no step was chosen")
    logs.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    files = {step: logs / f"{number:02}.log" for number, step in enumerate(chosen, 1)}
    stop = os.eventfd(0)    # an interrupt reaches the main thread only; this reaches the tracks
    passed = 0
    try:
        for tracks in phases(chosen):
            with ThreadPoolExecutor(len(tracks)) as pool:
                try:
                    passed += sum(pool.map(lambda track: run_track(track, files, stop), tracks))
                except BaseException:
                    os.eventfd_write(stop, 1)
                    raise
    finally:
        os.close(stop)
    print(f"     {time.monotonic() - started:7.1f} s  total")
    print(f"{passed} passed, {len(chosen) - passed} failed")
    return 0 if passed == len(chosen) else 1
