# SPDX-License-Identifier: Apache-2.0
"""The kernels that guests run on: User-mode Linux (quick) and Debian's own under QEMU (complete).

`uml` is Debian's package of User-mode Linux; `uml-nft` is built here from Debian's source, with what that package leaves out
(uml.py).
Both are started from the testbed root, with the guest's work directory somewhere in it. A guest has a console (what
kernel and systemd say, to the program's standard error) and a channel (the job's terminal, standard input and output).
"""
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..command import Failure
from . import cache, chroot, root, uml

WORK = Path("/run/guest")  # the guest's work directory, inside the chroot
EXCHANGE = "exchange"         # in it: the directory that guest and machine share
EXCHANGE_IMAGE = "exchange.img"   # the same as a disk, where the guest cannot see the machine's files


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
    entry: Callable[[], Path]  # of the cache: what must not be pruned while a guest runs
    nat: bool                 # whether the kernel can translate addresses
    clock_rate: bool          # whether /proc/cpuinfo has one


def uml_cpu(boot: Boot) -> int:
    """The CPU that a guest stays on.

    User-mode Linux is one thread of work, which hops between the process of its kernel and those of its programs. Left to the
    scheduler every hop wakes another CPU, and on a virtual machine that is dear: on one CPU a guest is twice as fast.
    """
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[(os.getpid() + boot.number) % len(cpus)]


def uml_command(boot: Boot) -> list[str]:
    return user_mode_linux(uml.package() / "usr/bin/linux.uml", boot)


def uml_nft_command(boot: Boot) -> list[str]:
    # What is built in makes devices that a module makes only when it is asked to.
    return user_mode_linux(uml.built() / uml.PROGRAM, boot, "fb_tunnels=none", "dummy.numdummies=0", "ifb.numifbs=0")


def user_mode_linux(program: Path, boot: Boot, *parameters: str) -> list[str]:
    disk = f"{boot.overlay},{boot.base}" if boot.overlay else str(boot.base)
    nics = [f"vec{number}:transport=tap,ifname={nic.tap},mac={nic.mac},depth=128,gro=1"
            for number, nic in enumerate(boot.nics)]
    arguments = [str(chroot.seen_inside(program)), f"mem={boot.memory}M", f"ubd0={disk}", "root=/dev/ubda", "rw",
                 "con=null", "con0=null,fd:2", "con1=fd:0,fd:3", "seccomp=auto", "panic=-1", "systemd.show_status=false",
                 f"nodens.exchange=hostfs:{boot.work}/{EXCHANGE}", "nodens.tty=tty1", *nics, *parameters]
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
    "uml": Kernel("uml", uml_command, uml_overlay, exchange_disk=False, first_nic="vec0", entry=uml.package, nat=False, clock_rate=False),
    "uml-nft": Kernel("uml-nft", uml_nft_command, uml_overlay, exchange_disk=False, first_nic="vec0", entry=uml.built,
                      nat=True, clock_rate=True),
    "debian": Kernel("debian", qemu_command, qemu_overlay, exchange_disk=True, first_nic="eth0", entry=lambda: root.ensure("guest"),
                     nat=True, clock_rate=True),
}
