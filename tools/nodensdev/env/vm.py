# SPDX-License-Identifier: Apache-2.0
"""`tools/dev vm`: guests for people and scripts."""
import argparse
import contextlib
import shutil
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

from ..command import Command, Failure
from ..project import BUILD, TOP
from . import disk, guest, kernel, machine

NO_RESULT = 125  # exit code when the guest did not live to give one


def options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="run|shell")
    run_parser = actions.add_parser(
        "run", help="boot a guest, run scripts in it as root, hand back output, files and exit code")
    run_parser.add_argument("script", nargs="+", type=Path,
                            help="scripts with a #! line; the guest is rebooted, its disk kept, between them")
    run_parser.add_argument("--deadline", type=float, default=600, help="seconds for each boot with its script (default: 600)")
    run_parser.add_argument("--cut", action="store_true", help="end every boot but the last by a power cut, without a sync")
    run_parser.add_argument("--files", type=Path, default=BUILD / "vm/files",
                            help="where to put what scripts leave in $FILES (default: build/vm/files)")
    shell_parser = actions.add_parser("shell", help="boot a guest and give a prompt in it")
    for one in (run_parser, shell_parser):
        one.add_argument("--kernel", choices=list(kernel.KERNELS), default="uml",
                         help="uml: User-mode Linux, quick (default); uml-nft: the same with nftables, AppArmor and PSI, built here; "
                              "debian: Debian's own under QEMU, with nftables, AppArmor and PSI")
        one.add_argument("--disk", default=disk.DEFAULT_SIZE, metavar="SIZE",
                         help=f"size of the disk (default: {disk.DEFAULT_SIZE}; it is sparse)")
        one.add_argument("--memory", default="2G", metavar="SIZE", help="default: 2G")
        one.add_argument("--cpus", type=int, default=2, help="default: 2 (User-mode Linux has one)")
        one.add_argument("--share", type=Path, metavar="DIR", help="a directory that the guest sees as /share and may change")


def guest_options(args: argparse.Namespace) -> guest.Options:
    disk.size_in_mebibytes(args.disk)
    if args.share and not args.share.is_dir():
        raise Failure(f"--share {args.share}: no such directory")
    share = args.share.resolve() if args.share else None
    return guest.Options(args.kernel, disk.size_in_mebibytes(args.memory), args.cpus, args.disk, share)


def run(args: argparse.Namespace) -> int:
    machine.need_root("booting a guest")
    chosen = guest_options(args)
    return run_scripts(args, chosen) if args.action == "run" else run_shell(chosen)


def run_scripts(args: argparse.Namespace, chosen: guest.Options) -> int:
    texts = [read_script(path) for path in args.script]
    with guest.fresh(chosen) as one:
        for number, text in enumerate(texts, 1):
            mode = "cut" if args.cut and number < len(texts) else "run"
            result = one.boot(text, args.deadline, mode, output=sys.stdout.fileno())
            hand_back_files(result.files, args.files)
            if result.end is not guest.End.JOB_DONE:
                return report_loss(result, args.deadline)
            if result.exit_code != 0:
                break
    return result.exit_code or 0


def read_script(path: Path) -> str:
    try:
        text = path.read_text()
    except OSError as error:
        raise Failure(f"cannot read the script {path}: {error.strerror}") from error
    if not text.startswith("#!"):
        raise Failure(f"{path} must begin with a #! line, such as #!/bin/sh")
    return text


def hand_back_files(files: Path, target: Path) -> None:
    if not any(files.iterdir()):
        return
    shutil.copytree(files, target, symlinks=True, dirs_exist_ok=True)
    machine.say(f"files from the guest are in {target}")


def report_loss(result: guest.Result, deadline: float) -> int:
    kept = BUILD / "vm/console.log"
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(result.console, kept)
    why = f"did not finish within {deadline:.0f} s" if result.end is guest.End.DEADLINE else "died before its script ended"
    machine.say(f"the guest {why}; the end of its console (all of it: {kept.relative_to(TOP)}):")
    print("\n".join("| " + line for line in result.console_tail().splitlines()), file=sys.stderr)
    return 124 if result.end is guest.End.DEADLINE else NO_RESULT


def run_shell(chosen: guest.Options) -> int:
    machine.say("booting; `exit` powers the guest off")
    with guest.fresh(chosen) as one, terminal_kept():
        result = one.boot("", 7 * 24 * 3600, "shell", output=sys.stdout.fileno(), stdin=sys.stdin.fileno())
    return result.exit_code if result.exit_code is not None else NO_RESULT


@contextlib.contextmanager
def terminal_kept() -> Iterator[None]:
    """The kernel under the guest puts our terminal into raw mode; put it back."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


COMMANDS = [Command("vm", "boot a disposable Debian 13 guest: run scripts in it, or get a prompt", run, options)]
