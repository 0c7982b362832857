# SPDX-License-Identifier: Apache-2.0
"""The kernels that guests run on: User-mode Linux (quick) and Debian's own under QEMU (complete).

Both are started from the testbed root, with the guest's work directory somewhere in it. A guest has a console (what
kernel and systemd say, to the program's standard error) and a channel (the job's terminal, standard input and output).
"""
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..command import Failure
from . import cache, chroot, machine, root

WORK = Path("/run/guest")  # the guest's work directory, inside the chroot
EXCHANGE = "exchange"         # in it: the directory that guest and machine share
EXCHANGE_IMAGE = "exchange.img"   # the same as a disk, where the guest cannot see the machine's files

# User-mode Linux of trixie (6.12) panics on recent machines, so it is taken from the next release.
UML_SUITES = ("forky", "sid")
UML_VERSION = "7.2um1"


@dataclass(frozen=True)
class Nic:
    """A network card: a tap device in the chroot's network namespace.

    User-mode Linux left alone gives every guest the same hardware address.
    """

    tap: str
    mac: str


@dataclass(frozen=True)
class Boot:
    """One start of a guest: where its disk is (inside the chroot), what it gets."""

    base: Path
    overlay: Path | None       # what is written; None: the base itself
    memory: int                # MiB
    cpus: int
    nics: tuple[Nic, ...] = ()
    work: Path = WORK
    number: int = 0            # of guests that are started together


@dataclass(frozen=True)
class Kernel:
    """A way to start a guest."""

    name: str
    command: Callable[[Boot], list[str]]
    make_overlay: Callable[[Path, Path], list[str]]   # base, overlay -> command that makes it
    exchange_disk: bool       # the exchange is a disk image, not a directory
    first_nic: str


def uml_cpu(boot: Boot) -> int:
    """The CPU that a guest stays on.

    User-mode Linux is one thread of work, which hops between the process of its kernel and those of its programs. Left to the
    scheduler every hop wakes another CPU, and on a virtual machine that is dear: on one CPU a guest is twice as fast.
    """
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[(os.getpid() + boot.number) % len(cpus)]


def uml_command(boot: Boot) -> list[str]:
    disk = f"{boot.overlay},{boot.base}" if boot.overlay else str(boot.base)
    nics = [f"vec{number}:transport=tap,ifname={nic.tap},mac={nic.mac},depth=128,gro=1"
            for number, nic in enumerate(boot.nics)]
    program = chroot.seen_inside(uml_package()) / "usr/bin/linux.uml"
    arguments = [str(program), f"mem={boot.memory}M", f"ubd0={disk}", "root=/dev/ubda", "rw", "con=null", "con0=null,fd:2",
                 "con1=fd:0,fd:3", "seccomp=auto", "panic=-1", "systemd.show_status=false",
                 f"nodens.exchange=hostfs:{boot.work}/{EXCHANGE}", "nodens.tty=tty1", *nics]
    # The kernel greets on standard output before it has a console: that is not the job's output.
    return ["sh", "-c", f"exec taskset --cpu-list {uml_cpu(boot)} {shlex.join(arguments)} 3>&1 1>&2"]


def uml_overlay(base: Path, overlay: Path) -> list[str]:
    """User-mode Linux makes its copy-on-write file itself, at the first start."""
    return ["true"]


def qemu_command(boot: Boot) -> list[str]:
    guest = chroot.seen_inside(root.ensure("guest"))
    # User-mode Linux guests lock the whole base disk, and QEMU would not read it then. No guest
    # writes to it.
    unlocked = "file.locking=off,backing.file.locking=off"
    disk = f"file={boot.overlay},format=qcow2,{unlocked}" if boot.overlay else f"file={boot.base},format=raw"
    nics = [argument for number, nic in enumerate(boot.nics) for argument in (
        "-netdev", f"tap,id=n{number},ifname={nic.tap},script=no,downscript=no",
        "-device", f"virtio-net-pci,netdev=n{number},mac={nic.mac}")]
    append = ("root=/dev/vda rw console=ttyS0 panic=-1 systemd.show_status=false net.ifnames=0 "
              "nodens.exchange=/dev/vdb nodens.tty=ttyS1")
    return ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "Nehalem",
            "-smp", str(boot.cpus), "-m", str(boot.memory), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", str(newest(guest, "vmlinuz-*")), "-initrd", str(newest(guest, "initrd.img-*")), "-append", append,
            "-drive", f"if=virtio,cache=unsafe,{disk}",
            "-drive", f"if=virtio,cache=unsafe,format=raw,file={boot.work}/{EXCHANGE_IMAGE}",
            "-chardev", "file,id=console,path=/dev/stderr", "-serial", "chardev:console",
            "-chardev", "stdio,id=job,signal=off", "-serial", "chardev:job", *nics]


def newest(guest: Path, pattern: str) -> Path:
    """A file of the guest root's /boot, as seen inside the chroot."""
    outside = cache.top() / guest.relative_to(chroot.CACHE_INSIDE) / "boot"
    found = sorted(outside.glob(pattern))
    if not found:
        raise Failure(f"no {pattern} in {outside}; remove the root with `tools/dev cache --prune-all` and try again")
    return guest / "boot" / found[-1].name


def qemu_overlay(base: Path, overlay: Path) -> list[str]:
    return ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(base), "-F", "raw", str(overlay)]


KERNELS = {
    "uml": Kernel("uml", uml_command, uml_overlay, exchange_disk=False, first_nic="vec0"),
    "debian": Kernel("debian", qemu_command, qemu_overlay, exchange_disk=True, first_nic="eth0"),
}

FETCH_UML = r"""
set -eu
mkdir -p /tmp/apt/lists/partial /tmp/apt/cache/archives/partial /tmp/fetched
for suite in $SUITES; do echo "deb [signed-by=$KEYRING] $MIRROR $suite main"; done >/tmp/apt/sources.list
printf '%s;\n' 'Dir::Etc::sourcelist "/tmp/apt/sources.list"' 'Dir::Etc::sourceparts "/dev/null"' 'Dir::State::lists "/tmp/apt/lists"' \
        'Dir::Cache "/tmp/apt/cache"' 'APT::Sandbox::User "root"' 'Acquire::Languages "none"' >/tmp/apt/apt.conf
[ -z "$OPTIONS" ] || printf '%s;\n' "$OPTIONS" >>/tmp/apt/apt.conf
export APT_CONFIG=/tmp/apt/apt.conf
apt-get update -q
cd /tmp/fetched
apt-get download -q "user-mode-linux=$VERSION" || {
        echo "NOTE: the archive has no version $VERSION any more; taking the one it has"
        apt-get download -q user-mode-linux
}
dpkg-deb -x user-mode-linux_*.deb /tmp/entry
ls user-mode-linux_*.deb >/tmp/entry/version
"""


def uml_package() -> Path:
    """The unpacked User-mode Linux package, fetched and verified by apt from the machine's own mirror."""
    return cache.ensure("kernels", "uml", cache.key_of(UML_VERSION, FETCH_UML, *UML_SUITES), fetch_uml)


def fetch_uml(entry: Path) -> None:
    machine.say(f"fetching the User-mode Linux kernel {UML_VERSION}")
    environment = {"SUITES": " ".join(UML_SUITES), "VERSION": UML_VERSION, "MIRROR": machine.mirror(),
                   "KEYRING": str(machine.KEYRING), "OPTIONS": ";\n".join(machine.apt_options())}
    place = chroot.Chroot(root="testbed", binds=(chroot.Bind(entry, Path("/tmp/entry")),), env=environment, cwd=Path("/"))
    with chroot.prepared(place) as inside:
        done = inside.capture(["sh", "-c", FETCH_UML])
    if done.returncode != 0:
        raise Failure(f"cannot fetch User-mode Linux:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    for line in done.stdout.splitlines():
        if line.startswith("NOTE: "):
            machine.say(line.removeprefix("NOTE: "))


def uml_modules() -> Path:
    """The directory with the kernel's modules, named by its release."""
    found = list(uml_package().glob("usr/lib/uml/modules/*"))
    if len(found) != 1:
        raise Failure(f"expected the modules of one kernel under {uml_package()}/usr/lib/uml/modules, found {len(found)}")
    return found[0]
