# SPDX-License-Identifier: Apache-2.0
"""Guests: a Debian 13 system with systemd on a kernel of its own, booted for one job.

Theory of operation
  A guest has a work directory (an overlay of a cached base disk, the exchange with its job, its
  console) and one process tree in a chroot of the testbed root. Booting runs the job in the
  exchange (see tools/guest/job) and waits until the guest powers off or dies, or for the deadline.
  Then the chroot is gone, with every process; the overlay stays, so that the guest can be booted
  again on its disk.
"""
import contextlib
import enum
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..command import Failure
from . import cache, chroot, disk, kernel

EXCHANGE_SPARE = 512 * 2**20   # room for what a job hands back, when the exchange is a disk


class End(enum.Enum):
    """Why a guest is not running any more."""

    JOB_DONE = "its job is done"
    DEADLINE = "the deadline passed"
    DIED = "it died"


@dataclass(frozen=True)
class Options:
    """What a guest is made of."""

    kernel: str = "uml"
    memory: int = 2048                  # MiB
    cpus: int = 2                       # User-mode Linux always has one
    size: str = disk.DEFAULT_SIZE
    share: Path | None = None           # seen as /share
    base: Path | None = None            # another base disk than the plain one
    in_place: bool = False              # write to disk.img in the work directory, which the caller has put there


@dataclass(frozen=True)
class Result:
    """What came out of one boot."""

    end: End
    exit_code: int | None               # the job's; None when it did not finish
    seconds: float
    files: Path                         # what the job left in $FILES
    console: Path

    def console_tail(self, lines: int = 40) -> str:
        return "\n".join(self.console.read_text(errors="replace").splitlines()[-lines:])


@dataclass(frozen=True)
class Guest:
    """A disk and a place to hand things over. Boot it as often as you like."""

    options: Options
    work: Path

    @property
    def exchange(self) -> Path:
        return self.work / "exchange"

    def boot(self, script: str, deadline: float, mode: str = "run", output: IO[bytes] | int | None = None,
             stdin: int = subprocess.DEVNULL) -> Result:
        """Boots, runs the script (with a `#!` line), and hands back what came out. Its output goes to `output` as it comes."""
        place = chroot.Chroot(root="testbed", binds=self.binds(), cwd=Path("/"))
        with chroot.prepared(place) as inside:
            put_job(self.exchange, script, mode)
            command = self.prepare(inside)
            started = time.monotonic()
            in_time = self.wait(inside.command(command), deadline, output, stdin)
            seconds = time.monotonic() - started
            self.take_result(inside)
        code = self.exit_code()
        end = End.DEADLINE if not in_time else End.DIED if code is None else End.JOB_DONE
        return Result(end, code if in_time else None, seconds, self.exchange / "out/files", self.work / "console.log")

    def binds(self) -> tuple[chroot.Bind, ...]:
        own = (chroot.Bind(self.work, kernel.WORK),)
        return (*own, chroot.Bind(self.options.share, kernel.WORK / kernel.EXCHANGE / "share")) if self.options.share else own

    def prepare(self, inside: chroot.Prepared) -> list[str]:
        """Makes the disks and returns the command that is the guest."""
        chosen = kernel.KERNELS[self.options.kernel]
        if self.options.in_place:
            base, overlay = kernel.WORK / disk.IMAGE, None
        else:
            base, overlay = chroot.seen_inside(self.options.base or disk.base(self.options.size)), kernel.WORK / "overlay"
        boot = kernel.Boot(base, overlay, self.options.memory, self.options.cpus)
        share_size = cache.size_of(self.options.share) if self.options.share else 0
        make_disks(inside, chosen, boot, self.work, share_size)
        return chosen.command(boot)

    def wait(self, command: list[str], deadline: float, output: IO[bytes] | int | None, stdin: int) -> bool:
        """Runs the guest to its end; False when the deadline came first."""
        with (self.work / "console.log").open("wb") as console, \
                subprocess.Popen(command, stdin=stdin, stdout=output, stderr=console) as process:
            try:
                process.wait(deadline)
                return True
            except subprocess.TimeoutExpired:
                process.terminate()
                return False
            except BaseException:
                process.terminate()
                raise

    def take_result(self, inside: chroot.Prepared) -> None:
        """Copies back what is only on the exchange disk."""
        if not kernel.KERNELS[self.options.kernel].exchange_disk:
            return
        back = self.work / "back"
        shutil.rmtree(back, ignore_errors=True)
        back.mkdir()
        checked(inside, ["debugfs", "-R", f"rdump /out /share {kernel.WORK}/back", str(kernel.WORK / kernel.EXCHANGE_IMAGE)])
        shutil.copytree(back / "out", self.exchange / "out", symlinks=True, dirs_exist_ok=True)
        if self.options.share:
            shutil.copytree(back / "share", self.options.share, symlinks=True, dirs_exist_ok=True)

    def exit_code(self) -> int | None:
        path = self.exchange / "out/exit"
        return int(path.read_text()) if path.exists() else None


def put_job(exchange: Path, script: str, mode: str) -> None:
    """Lays a job into an exchange."""
    for name in ("in", "out/files", "share"):
        (exchange / name).mkdir(parents=True, exist_ok=True)
    (exchange / "in/mode").write_text(mode + "\n")
    (exchange / "in/term").write_text(os.environ.get("TERM", "dumb") + "\n")
    (exchange / "in/script").write_text(script)
    (exchange / "out/exit").unlink(missing_ok=True)


def make_disks(inside: chroot.Prepared, chosen: kernel.Kernel, boot: kernel.Boot, work: Path, share_size: int = 0) -> None:
    """Makes the overlay, unless it is there from an earlier boot, and the exchange disk, where one is needed."""
    if boot.overlay and not (work / boot.overlay.name).exists():
        checked(inside, chosen.make_overlay(boot.base, boot.overlay))
    if chosen.exchange_disk:
        (work / kernel.EXCHANGE_IMAGE).unlink(missing_ok=True)
        size = 2 * (cache.size_of(work / kernel.EXCHANGE) + share_size) + EXCHANGE_SPARE
        checked(inside, ["mkfs.ext4", "-q", "-F", "-d", str(boot.work / kernel.EXCHANGE), "-E", "assume_storage_prezeroed=1",
                         str(boot.work / kernel.EXCHANGE_IMAGE), f"{size // 1024}k"])


def checked(inside: chroot.Prepared, argv: list[str]) -> None:
    done = inside.capture(argv)
    if done.returncode != 0:
        raise Failure(f"`{' '.join(argv)}` failed:\n{done.stdout}{done.stderr}")


@contextlib.contextmanager
def fresh(options: Options) -> Iterator[Guest]:
    """A new guest, gone at the end."""
    with cache.scratch("guest") as work:
        yield Guest(options, work)
