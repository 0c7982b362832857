# SPDX-License-Identifier: Apache-2.0
"""Steps with time limits, and the lists of the gate and the nightly run."""
import argparse
import os
import sys
import time
from pathlib import Path

import pytest

from nodensdev import ci, main, nightly, steps


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
    while child.exists() and child.read_text().rsplit(") ", 1)[1][0] not in "ZX":
        assert time.monotonic() < deadline, "the step's child is alive"
        time.sleep(0.01)


def test_a_failed_step_does_not_stop_the_others_and_fails_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(steps, "TOOLS", tmp_path)
    monkeypatch.setattr(steps.excerpt, "TOP", tmp_path)
    (tmp_path / "dev").write_text('#!/bin/sh\nexit "$1"\n')
    os.chmod(tmp_path / "dev", 0o755)
    assert steps.run_all([steps.Step("bad", ("4",)), steps.Step("good", ("0",))], tmp_path / "logs") == 1
    report = capsys.readouterr().out
    assert "FAIL" in report and "ended with 4" in report and report.index("bad") < report.index("good")
    assert report.splitlines()[-1] == "1 passed, 1 failed" and "total" in report.splitlines()[-2]


@pytest.mark.parametrize("step", [*ci.STEPS, *nightly.nightly_steps(1)], ids=lambda step: step.title)
def test_every_step_is_a_command_that_exists(step: steps.Step) -> None:
    command = main.commands()[step.command[0]]
    parser = argparse.ArgumentParser()
    command.options(parser)
    parser.parse_args(step.command[1:])
    assert 0 < step.minutes
