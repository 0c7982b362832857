# SPDX-License-Identifier: Apache-2.0
"""Packages of Debian's newer suites: fetched and verified by apt from the machine's own mirror, in a root of Debian 13."""
from pathlib import Path

from ..command import Failure
from . import chroot, machine

NEWER = ("forky", "sid")
ENTRY = Path("/tmp/entry")      # where a script leaves its result, inside

# The start of a script: afterwards `apt-get download` fetches from the suites of run() into the current directory.
APT = r"""
set -eu
mkdir -p /tmp/apt/lists/partial /tmp/apt/cache/archives/partial /tmp/fetched
for suite in $SUITES; do echo "deb [signed-by=$KEYRING] $MIRROR $suite main"; done >/tmp/apt/sources.list
printf '%s;\n' 'Dir::Etc::sourcelist "/tmp/apt/sources.list"' 'Dir::Etc::sourceparts "/dev/null"' 'Dir::State::lists "/tmp/apt/lists"' \
        'Dir::Cache "/tmp/apt/cache"' 'APT::Sandbox::User "root"' 'Acquire::Languages "none"' >/tmp/apt/apt.conf
[ -z "$OPTIONS" ] || printf '%s;\n' "$OPTIONS" >>/tmp/apt/apt.conf
export APT_CONFIG=/tmp/apt/apt.conf
apt-get update -q
cd /tmp/fetched
"""


def run(root: str, script: str, entry: Path, variables: dict[str, str], purpose: str, binds: tuple[chroot.Bind, ...] = (),
        suites: tuple[str, ...] = NEWER) -> None:
    """Runs a script that begins with APT; what it writes to /tmp/entry is in `entry`. Its lines `NOTE: ...` are shown."""
    environment = variables | {"SUITES": " ".join(suites), "MIRROR": machine.mirror(), "KEYRING": str(machine.KEYRING),
                               "OPTIONS": ";\n".join(machine.apt_options())}
    place = chroot.Chroot(root=root, binds=(chroot.Bind(entry, ENTRY), *binds), env=environment, cwd=Path("/"))
    with chroot.prepared(place) as inside:
        done = inside.capture(["sh", "-c", script])
    if done.returncode != 0:
        raise Failure(f"cannot {purpose}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    for line in done.stdout.splitlines():
        if line.startswith("NOTE: "):
            machine.say(line.removeprefix("NOTE: "))
