# SPDX-License-Identifier: Apache-2.0
"""Runs a command in a user namespace like that of a rootless node.

    python3 rootless.py FIRST COUNT COMMAND...

IDs from 0 on are FIRST and following outside; the command is root inside, with its own mount
namespace, and unprivileged outside.
"""
import os
import sys


def main(first: int, count: int, command: list[str]) -> None:
    ready, mapped = os.pipe(), os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:      # it writes the maps of its parent, which becomes the command
        os.read(ready[0], 1)
        for kind in ("uid", "gid"):
            with open(f"/proc/{parent}/{kind}_map", "w") as file:
                file.write(f"0 {first} {count}\n")
        os.write(mapped[1], b"m")
        os._exit(0)
    os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)
    os.write(ready[1], b"r")
    os.read(mapped[0], 1)
    os.waitpid(child, 0)
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
