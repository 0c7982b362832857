# SPDX-License-Identifier: Apache-2.0
"""Steps with time limits, and the lists of the gate and the nightly run."""
import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nodensdev import main
from nodensdev.checks import ci, nightly, steps


def test_a_steps_exit_code_and_output_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert steps.run_limited([sys.executable, "-c", "print('seen'); raise SystemExit(3)"], log, 60) == 3
    assert log.read_text() == "seen\n"


@pytest.mark.parametrize("manners", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN); "])
def test_a_step_over_its_limit_is_ended_with_what_it_started(tmp_path: Path, manners: str) -> None:
    log = tmp_path / "log"
    script = f"import os, signal, subprocess, time; {manners}print(subprocess.Popen(['sleep', '1000']).pid, flush=True); time.sleep(1000)"
    assert steps.run_limited([sys.executable, "-c", script], log, 2, grace=1) is None
    child = Path(f"/proc/{log.read_text().strip()}/stat")
    deadline = time.monotonic() + 30
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):    # it ends between any two looks
        while child.read_text().rsplit(") ", 1)[1][0] not in "ZX":
            assert time.monotonic() < deadline, "the step's child is alive"
            time.sleep(0.01)


def test_a_failed_step_does_not_stop_the_others_and_fails_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                    capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(steps, "TOOLS", tmp_path)
    monkeypatch.setattr(steps.excerpt, "TOP", tmp_path)
    (tmp_path / "dev").write_text('#!/bin/sh\nexit "$1"\n')
    os.chmod(tmp_path / "dev", 0o755)
    assert steps.run_all([steps.Step("bad", ("4",)), steps.Step("good", ("0",))], tmp_path / "logs") == 1
    report = capsys.readouterr().out
    assert "FAIL" in report and "ended with 4" in report and report.index("bad") < report.index("good")
    assert report.splitlines()[-1] == "1 passed, 1 failed" and "total" in report.splitlines()[-2]


def test_tracks_run_beside_each_other_and_after_what_precedes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:
    """Each track waits for a file that the other one writes: one after the other, they would never end."""
    monkeypatch.setattr(steps, "TOOLS", tmp_path)
    (tmp_path / "dev").write_text('#!/bin/sh\ncd "$1" && test -e "$2" || exit 1\n: >"$3"; until [ -e "$4" ]; do sleep 0.05; done\n')
    os.chmod(tmp_path / "dev", 0o755)

    def step(title: str, needs: str, writes: str, awaits: str, track: str = "") -> steps.Step:
        return steps.Step(title, (str(tmp_path), needs, writes, awaits), 1, track)

    chosen = [step("first", "dev", "begun", "begun"), step("left", "begun", "l", "r", "a"), step("right", "begun", "r", "l", "b"),
              step("left again", "l", "l2", "l2", "a"), step("last", "l2", "end", "end")]
    assert steps.run_all(chosen, tmp_path / "logs") == 0
    report = capsys.readouterr().out
    assert report.splitlines()[-1] == "5 passed, 0 failed"
    assert report.index("first") < report.index("left") < report.index("left again") < report.index("last")


def test_an_interrupt_ends_the_steps_that_run_and_starts_no_others(tmp_path: Path) -> None:
    """The interrupt comes when the first step runs; the second one would write a file."""
    (tmp_path / "dev").write_text(f'#!/bin/sh\ncd {tmp_path}; [ "$1" = wait ] || {{ : >second; exit; }}\n: >begun; exec sleep 1000\n')
    os.chmod(tmp_path / "dev", 0o755)
    script = (
        f"import pathlib, sys; from nodensdev.checks import steps; steps.TOOLS = pathlib.Path({str(tmp_path)!r})\n"
        f"steps.run_all([steps.Step('first', ('wait',)), steps.Step('second', ('write',))], pathlib.Path({str(tmp_path / 'logs')!r}))"
    )
    process = subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                               stderr=subprocess.DEVNULL)
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert not (tmp_path / "second").exists()


def test_every_step_that_starts_a_cluster_is_in_one_track() -> None:
    """Clusters have one directory: two steps must not use it at the same time."""
    assert {step.track for step in ci.SYSTEM if step.command[-1] in ("guard-asan", "testbed-short", "stories-short", "versions-short",
                                                                     "guard-node-short", "package")} == {"cluster"}


@pytest.mark.parametrize("step", [*ci.STEPS, *nightly.nightly_steps(1)], ids=lambda step: step.title)
def test_every_step_is_a_command_that_exists(step: steps.Step) -> None:
    command = main.commands()[step.command[0]]
    parser = argparse.ArgumentParser()
    command.options(parser)
    parser.parse_args(step.command[1:])
    assert 0 < step.minutes
