# SPDX-License-Identifier: Apache-2.0
"""A single package of a Debian suite, unpacked into the cache."""
from pathlib import Path

from . import cache, machine, suites

# pasta of trixie stalls streams out of a node (src/net/pasta.h); the bench measures a newer one beside it.
PASST = ("passt", "0.0~git20260728.f8df3f1-1~bpo13+1", "trixie-backports")
# Checks the rules of deploy/alerts.yaml.
PROMTOOL = ("promtool", "2.53.3+ds1-2", "trixie")

FETCH = suites.APT + r"""apt-get download -q "$PACKAGE=$VERSION" || {
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
    suites.run("testbed", FETCH, entry, {"PACKAGE": package, "VERSION": version}, f"fetch {package} of {suite}", suites=(suite,))
