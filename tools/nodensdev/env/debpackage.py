# SPDX-License-Identifier: Apache-2.0
"""A single package of a newer Debian suite, unpacked into the cache: fetched and verified by apt from the machine's own mirror."""
from pathlib import Path

from ..command import Failure
from . import cache, chroot, machine

# pasta of trixie stalls streams out of a node (src/net/pasta.h); the bench measures a newer one beside it.
PASST = ("passt", "0.0~git20260728.f8df3f1-1~bpo13+1", "trixie-backports")

FETCH = r"""
set -eu
mkdir -p /tmp/apt/lists/partial /tmp/apt/cache/archives/partial /tmp/fetched
echo "deb [signed-by=$KEYRING] $MIRROR $SUITE main" >/tmp/apt/sources.list
printf '%s;\n' 'Dir::Etc::sourcelist "/tmp/apt/sources.list"' 'Dir::Etc::sourceparts "/dev/null"' 'Dir::State::lists "/tmp/apt/lists"' \
        'Dir::Cache "/tmp/apt/cache"' 'APT::Sandbox::User "root"' 'Acquire::Languages "none"' >/tmp/apt/apt.conf
[ -z "$OPTIONS" ] || printf '%s;\n' "$OPTIONS" >>/tmp/apt/apt.conf
export APT_CONFIG=/tmp/apt/apt.conf
apt-get update -q
cd /tmp/fetched
apt-get download -q "$PACKAGE=$VERSION" || {
        echo "NOTE: the archive has no version $VERSION of $PACKAGE any more; taking the one it has"
        apt-get download -q "$PACKAGE"
}
dpkg-deb -x ./*.deb /tmp/entry
"""


def unpacked(package: str, version: str, suite: str) -> Path:
    """The directory with the package's files."""
    return cache.ensure("programs", package, cache.key_of(package, version, suite, FETCH),
                        lambda entry: fetch(entry, package, version, suite))


def fetch(entry: Path, package: str, version: str, suite: str) -> None:
    machine.say(f"fetching {package} {version} of {suite}")
    environment = {"SUITE": suite, "PACKAGE": package, "VERSION": version, "MIRROR": machine.mirror(),
                   "KEYRING": str(machine.KEYRING), "OPTIONS": ";\n".join(machine.apt_options())}
    place = chroot.Chroot(root="testbed", binds=(chroot.Bind(entry, Path("/tmp/entry")),), env=environment, cwd=Path("/"))
    with chroot.prepared(place) as inside:
        done = inside.capture(["sh", "-c", FETCH])
    if done.returncode != 0:
        raise Failure(f"cannot fetch {package} of {suite}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    for line in done.stdout.splitlines():
        if line.startswith("NOTE: "):
            machine.say(line.removeprefix("NOTE: "))
