# SPDX-License-Identifier: Apache-2.0
"""The registry's processes, for callers without a supervisor."""
import subprocess
from pathlib import Path

from .site import Site


def start(site: Site, netns: Path | None) -> list[subprocess.Popen[bytes]]:
    """Starts the registry's processes; their output goes to files in the site's directory."""
    enter = ["nsenter", f"--net={netns}", "--"] if netns else []
    started = []
    for command in site.commands():
        with open(site.directory / f"{Path(command[0]).name}.log", "ab") as log:
            started.append(subprocess.Popen([*enter, *command], cwd=site.directory, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True))
    return started


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
