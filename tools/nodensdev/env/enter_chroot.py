# SPDX-License-Identifier: Apache-2.0
"""enter_chroot.py - the program between the machine and a chroot: enters a Debian root and runs a command there

Theory of operation
  Called as `python3 enter_chroot.py PLAN -- COMMAND...` (chroot.py writes the plan). Three processes, each with one job:
    gate     makes the namespaces and waits; it is the one that the caller started, and dies with the caller. SIGTERM
             makes it kill init, wait for it and end, so that not even a zombie is left
    init     pid 1 of the new pid namespace: builds the mount tree, pivots, starts the command, reaps; dies with gate
    command  what was asked for
  When any of the first two ends, the kernel kills everything in the pid namespace, and the mounts go
  with their namespace: nothing that was started inside outlives an interrupted command.
  User namespaces cannot be made after chroot(2), hence pivot_root(2). The machine may mount cgroup v1; inside there is
  only cgroup2, without the controllers that v1 has taken. The machine's own hierarchies are left alone.
"""
import fcntl
import json
import os
import signal
import sys
from typing import Any

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "../..")))

from nodensdev.env import linux  # noqa: E402


def main(arguments: list[str]) -> int:
    plan: dict[str, Any] = json.loads(arguments[0])
    command = arguments[2:]
    if plan["die_with_parent"]:
        linux.die_with_parent(signal.SIGTERM)
        if os.getppid() != plan["parent"]:
            return 1
    for path in plan["locks"]:  # the cache keeps what a living process uses
        fcntl.flock(os.open(path, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_SH)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller decides what an interrupt means, and kills us
    if plan["netns"]:
        linux.setns(plan["netns"])
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWPID | (linux.CLONE_NEWNET if plan["new_netns"] else 0))
    init = os.fork()
    if init == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os._exit(run_init(plan, command))
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(init, signal.SIGKILL))
    return exit_code(os.waitpid(init, 0)[1])


def run_init(plan: dict[str, Any], command: list[str]) -> int:
    linux.die_with_parent(signal.SIGKILL)
    try:
        build_tree(plan)
    except OSError as error:
        print(f"tools/dev: cannot enter the root {plan['root']}: {error.strerror or error}", file=sys.stderr)
        return 125
    child = os.fork()
    if child == 0:
        run_command(plan, command)
    while True:
        pid, status = os.wait()
        if pid == child:
            return exit_code(status)


def run_command(plan: dict[str, Any], command: list[str]) -> None:
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(plan["cwd"])
        os.execvpe(command[0], command, plan["env"])
    except OSError as error:
        print(f"tools/dev: cannot run '{command[0]}' in {plan['cwd']}: {error.strerror}", file=sys.stderr)
        os._exit(127)


def exit_code(status: int) -> int:
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def build_tree(plan: dict[str, Any]) -> None:
    root = plan["root"]
    linux.mount("none", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    bind(root, root, read_only=plan["read_only"])
    mount_kernel_filesystems(root)
    for target, mode in (("/tmp", "1777"), ("/run", "0755"), ("/root", "0700")):
        linux.mount("tmpfs", root + target, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, f"mode={mode}")
    for source, target, read_only in plan["binds"]:
        make_mount_point(source, root + target)
        bind(source, root + target, read_only)
    os.chdir(root)
    linux.pivot_root(".", ".")  # the old root is now mounted over the new one; see pivot_root(2)
    linux.unmount(".")
    os.chdir("/")


def mount_kernel_filesystems(root: str) -> None:
    quiet = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    linux.mount("proc", root + "/proc", "proc", quiet)
    linux.mount("sysfs", root + "/sys", "sysfs", quiet)
    linux.mount("cgroup2", root + "/sys/fs/cgroup", "cgroup2", quiet)
    linux.mount("/dev", root + "/dev", flags=linux.MS_BIND | linux.MS_REC)


def bind(source: str, target: str, read_only: bool) -> None:
    linux.mount(source, target, flags=linux.MS_BIND)
    if read_only:
        linux.mount("none", target, flags=linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY)


def make_mount_point(source: str, target: str) -> None:
    """Under the tmpfs directories a mount point can be made; elsewhere the root must have it."""
    if os.path.lexists(target):
        return
    if os.path.isdir(source):
        os.makedirs(target)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_CLOEXEC, 0o644))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
