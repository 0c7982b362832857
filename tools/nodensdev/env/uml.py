# SPDX-License-Identifier: Apache-2.0
"""User-mode Linux: Debian's package, and a kernel with a packet filter that is built from Debian's source.

Debian's package has nf_tables without the families ip, ip6 and inet, so neither NAT nor kube-proxy work in it. The kernel that is
built here has Debian's configuration without its modules, and tools/guest/uml-nft.config over it. It is one file without modules,
and its /proc/cpuinfo shows a clock rate, without which the stock kubelet does not start.
"""
import gzip
import os
from pathlib import Path

from ..command import Failure
from ..project import TOOLS
from . import cache, chroot, machine, root, suites

# User-mode Linux of trixie (6.12) panics on recent machines, so it is taken from the next release.
PACKAGE_VERSION = "7.2um1"
FETCH = suites.APT + r"""apt-get download -q "user-mode-linux=$VERSION" || {
        echo "NOTE: the archive has no version $VERSION any more; taking the one it has"
        apt-get download -q user-mode-linux
}
dpkg-deb -x user-mode-linux_*.deb /tmp/entry
ls user-mode-linux_*.deb >/tmp/entry/version
"""

PROGRAM = "linux"
ROOT = "kernel"
SOURCE, SOURCE_VERSION = "linux-source-7.2", "7.2.13-1"
FRAGMENT = TOOLS / "guest/uml-nft.config"

BUILD = suites.APT + r"""
apt-get download -q "$SOURCE=$VERSION" || {
        echo "NOTE: the archive has no version $VERSION of $SOURCE any more; taking the one it has"
        apt-get download -q "$SOURCE"
}
dpkg-deb -x "$SOURCE"_*.deb /tmp/fetched
mkdir /var/tmp/source /var/tmp/build
tar -C /var/tmp/source --strip-components=1 -xJf /tmp/fetched/usr/src/$SOURCE.tar.xz
cd /var/tmp/source
sed -i '/"model name/a seq_printf(m, "cpu MHz\\t\\t: 1000.000\\n");' arch/um/kernel/um_arch.c
grep -q 'cpu MHz' arch/um/kernel/um_arch.c
sed '/=m$/d' /tmp/configuration/debian >/var/tmp/base
scripts/kconfig/merge_config.sh -m -O /var/tmp/build /var/tmp/base /tmp/configuration/ours >/dev/null
make -s ARCH=um O=/var/tmp/build olddefconfig
sed -n 's/^\(CONFIG_[A-Z0-9_]*=.*\)/\1/p' /tmp/configuration/ours | while read -r wanted; do
        grep -qxF "$wanted" /var/tmp/build/.config || { echo "the kernel's configuration lost $wanted" >&2; exit 1; }
done
make -s ARCH=um O=/var/tmp/build -j"$JOBS" linux
strip -o /tmp/entry/linux /var/tmp/build/linux
cp /var/tmp/build/.config /tmp/entry/config
ls /tmp/fetched/"$SOURCE"_*.deb >/tmp/entry/version
"""


def package() -> Path:
    """The unpacked User-mode Linux package, fetched and verified by apt from the machine's own mirror."""
    return cache.ensure("kernels", "uml", cache.key_of(PACKAGE_VERSION, FETCH, *suites.NEWER), fetch)


def fetch(entry: Path) -> None:
    machine.say(f"fetching the User-mode Linux kernel {PACKAGE_VERSION}")
    suites.run("testbed", FETCH, entry, {"VERSION": PACKAGE_VERSION}, "fetch User-mode Linux")


def modules() -> Path:
    """The directory with the package's modules, named by the kernel's release."""
    found = list(package().glob("usr/lib/uml/modules/*"))
    if len(found) != 1:
        raise Failure(f"expected the modules of one kernel under {package()}/usr/lib/uml/modules, found {len(found)}")
    return found[0]


def built() -> Path:
    """The cache's directory with the kernel that is built here, its configuration and the name of its source package."""
    key = cache.key_of(SOURCE, SOURCE_VERSION, BUILD, FRAGMENT.read_text(), debian_configuration(), root.key(ROOT), *suites.NEWER)
    return cache.ensure("kernels", "uml-nft", key, build)


def debian_configuration() -> str:
    with gzip.open(package() / "usr/share/doc/user-mode-linux/config.gz", "rt") as stream:
        return stream.read()


def build(entry: Path) -> None:
    machine.say(f"building User-mode Linux with a packet filter from {SOURCE} (some minutes)")
    with cache.scratch("kernel") as scratch:
        (scratch / "debian").write_text(debian_configuration())
        (scratch / "ours").write_text(FRAGMENT.read_text())
        variables = {"SOURCE": SOURCE, "VERSION": SOURCE_VERSION, "JOBS": str(len(os.sched_getaffinity(0)))}
        suites.run(ROOT, BUILD, entry, variables, "build User-mode Linux", (chroot.Bind(scratch, Path("/tmp/configuration")),))
