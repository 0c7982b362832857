# SPDX-License-Identifier: Apache-2.0
"""Commands in a real terminal emulator of a given size, and what a person then sees on it: tmux."""
import contextlib
import itertools
import os
import shlex
import subprocess
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .pods import eventually

numbers = itertools.count()
UTF8 = "C.UTF-8"


def columns_of(text: str) -> int:
    """How many columns a terminal shows the text in."""
    return sum(0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


@dataclass
class Screen:
    """One terminal with one command in it."""

    socket: Path
    status: Path

    def tmux(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-u", "-S", str(self.socket), *words], capture_output=True, text=True, timeout=120,
                              env=os.environ | {"LC_ALL": UTF8, "TERM": "xterm-256color"})
        assert done.returncode == 0, f"tmux {words}: {done.stderr}"
        return done.stdout

    def ended(self) -> int:
        """Waits for the end of the command; its exit status."""
        self.tmux("wait-for", "ended")
        return int(self.status.read_text())

    def rows(self) -> list[str]:
        """What is visible, without blanks at the ends of rows and empty rows at the end of the screen."""
        return self.tmux("capture-pane", "-p").rstrip("\n").split("\n")

    def lines(self) -> list[str]:
        """All output, with lines that the terminal had to wrap joined again."""
        return [line.rstrip() for line in self.tmux("capture-pane", "-p", "-J", "-S", "-").rstrip("\n").split("\n")]

    def coloured(self) -> str:
        """All output with the sequences that colour it."""
        return self.tmux("capture-pane", "-p", "-e", "-S", "-").rstrip("\n")

    def shows(self, condition: Callable[[list[str]], object], what: str) -> list[str]:
        """Waits until the rows are as wanted, and returns them."""
        seen: list[str] = []

        def look() -> bool:
            seen[:] = self.rows()
            return bool(condition(seen))

        try:
            eventually(look, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen has:\n" + "\n".join(seen)) from None
        return seen

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)


@contextlib.contextmanager
def screen(directory: Path, command: list[str], columns: int = 80, rows: int = 24, locale: str = UTF8,
           environment: dict[str, str] | None = None) -> Iterator[Screen]:
    """Starts a command in a terminal of this size."""
    number = next(numbers)
    made = Screen(directory / f"tmux{number}", directory / f"status{number}")
    settings = {"LC_ALL": locale} | (environment or {})
    words = ["env", "-u", "NO_COLOR", *(f"{name}={value}" for name, value in settings.items()), *command]
    # The command's shell stays, so that tmux shows what it printed and nothing else.
    script = f"{shlex.join(words)}; echo $? > {made.status}; tmux -S {made.socket} wait-for -S ended; exec sleep infinity"
    made.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), script)
    try:
        made.tmux("set-option", "status", "off")
        made.tmux("set-option", "window-size", "manual")
        made.resize(columns, rows)
        yield made
    finally:
        made.tmux("kill-server")
