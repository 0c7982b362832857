# SPDX-License-Identifier: Apache-2.0
"""critest, the suite by which the field validates a CRI runtime, on nodens-cri and on its peers."""
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nodensdev import compatibility, critools
from nodenstest import cri_tools, runtimes

RESULTS: critools.Results = {}
FACTS: dict[str, str] = {}


@pytest.mark.parametrize("name", list(runtimes.KINDS))
def test_critest_passes_but_for_known_cases(name: str, run: Callable[[str], Any], request: pytest.FixtureRequest) -> None:
    only = request.config.getoption("--runtime")
    if only and only != name:
        pytest.skip(f"--runtime {only}")
    focus = request.config.getoption("--focus")
    FACTS.update(compatibility.facts_of(subprocess.run(compatibility.FACTS, capture_output=True, text=True, check=True).stdout))
    with run(name) as subject:
        FACTS[name] = version_of(subject.socket)
        RESULTS[name] = cri_tools.critest(subject.socket, subject.directory, focus)
        keep_log(request, subject.directory / "critest.log", name)
        log = subject.runtime.tail()
    if not focus:
        keep(request)
    print(name, {state: sum(one.plain_state() == state for one in RESULTS[name]) for state in critools.STATES})
    wrong = critools.unexplained({name: RESULTS[name]}, [] if focus else critools.reasons())
    assert not wrong, "\n".join([f"{len(wrong)} of critest's tests on {name}:", *wrong, log])


def test_nodens_cri_passes_what_containerd_passes() -> None:
    if critools.OURS not in RESULTS or critools.BASELINE not in RESULTS:
        pytest.skip("not both ran")
    assert not critools.lost(RESULTS)


def version_of(socket: Path) -> str:
    answer = cri_tools.crictl(socket, "version").stdout
    return next(line.split(":", 1)[1].strip() for line in answer.splitlines() if line.startswith("RuntimeVersion:"))


def keep(request: pytest.FixtureRequest) -> None:
    """The results, for `tools/dev cri-table`."""
    path = request.config.getoption("--results")
    if path:
        critools.write(Path(os.path.expandvars(path)), RESULTS, FACTS)


def keep_log(request: pytest.FixtureRequest, log: Path, name: str) -> None:
    path = request.config.getoption("--results")
    if path:
        target = Path(os.path.expandvars(path)).with_name(f"critest-{name}.log")
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", str(log), str(target)], check=True)
