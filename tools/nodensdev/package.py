# SPDX-License-Identifier: Apache-2.0
"""`tools/dev package`: builds the Debian packages in a root with only their build dependencies; or an archive for a home directory."""
import argparse
import shutil
import subprocess
import tarfile
from pathlib import Path

from . import build as build_module
from . import version as version_module
from .command import Command, Failure
from .env import cache, chroot, deps, machine
from .project import BUILD, TOP

TARGET = BUILD / "package"
SOURCES = Path("/run/package")
BUILT = (".deb", ".dsc", ".tar.xz", ".buildinfo", ".changes")


def sources(directory: Path) -> Path:
    """The tree as it stands, what git ignores left out, with the CRI's file where debian/rules looks for it."""
    tree = directory / "nodens"
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=TOP, capture_output=True,
                            check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (TOP / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, tree / name)
    (tree / "debian/cri-api").mkdir()
    shutil.copy2(deps.ensure(), tree / "debian/cri-api/api.proto")
    return tree


def version() -> str:
    """That of the packages, which is also in debian/changelog (`tools/dev lint version`)."""
    return version_module.read().debian()


PROGRAM_SOURCES = ("src", "debian", "units", "man", "apparmor", "VERSION", "meson.build", "meson.options")
FINGERPRINT = TARGET / "fingerprint"


def fingerprint() -> str:
    """A hash of what the programs of the packages are made from."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *PROGRAM_SOURCES], cwd=TOP,
                            capture_output=True, check=True).stdout
    names = sorted(name for name in filter(None, listed.decode().split("\0")) if (TOP / name).is_file())
    return cache.key_of(*(item for name in names for item in (name, (TOP / name).read_bytes())))


def ensure() -> dict[str, Path]:
    """The packages by name, built unless those in build/package are of the same sources."""
    found = {path.name: path for path in TARGET.glob(f"*_{version()}_*.deb")}
    if not found or not FINGERPRINT.is_file() or FINGERPRINT.read_text() != fingerprint():
        found = {path.name: path for path in build() if path.suffix == ".deb"}
    return found


def build() -> list[Path]:
    """Builds the packages and returns them."""
    machine.need_root("building a package")
    made_from = fingerprint()
    with cache.scratch("package") as scratch:
        sources(scratch)
        place = chroot.Chroot(root="package", binds=(chroot.Bind(scratch, SOURCES),), cwd=SOURCES / "nodens")
        with chroot.prepared(place) as inside:
            if inside.run(["dpkg-buildpackage", "-us", "-uc", "--no-sign"]) != 0:
                raise Failure("dpkg-buildpackage failed; its output is above")
        TARGET.mkdir(parents=True, exist_ok=True)
        found = [path for path in scratch.iterdir() if path.name.endswith(BUILT)]
        made = sorted(Path(shutil.copy2(path, TARGET)) for path in found)
        FINGERPRINT.write_text(made_from)
        return made


ARCHIVED = ("src/nodens", "src/nodens-cri", "src/mon/nodens-mon", "src/pull/nodens-fetch", "src/pull/nodens-unpack",
            "src/rootless/nodens-rootless", "src/rootless/nodens-rootless-controller", "src/rootless/nodens-rootless-plane")


def tarball(inside: chroot.Prepared, variant: str = "gcc") -> Path:
    """Makes an archive that works from any directory of a home: the programs of a rootless node in one directory, and their man pages."""
    made = build_module.ensure(inside, variant)
    name = f"nodens-{version_module.read()}"
    TARGET.mkdir(parents=True, exist_ok=True)
    with tarfile.open(TARGET / f"{name}.tar.gz", "w:gz", compresslevel=1) as archive:
        for program in ARCHIVED:
            archive.add(made / program, f"{name}/{Path(program).name}", filter=owned_by_root)
        for path in [*sorted((made / "man").glob("nodens*.[0-9]")), TOP / "LICENSE"]:
            archive.add(path, f"{name}/doc/{path.name}", filter=owned_by_root)
    return TARGET / f"{name}.tar.gz"


def owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def renamed(packages: list[Path], number: str) -> list[Path]:
    """The same packages under another version, to try an upgrade with."""
    made = []
    with cache.scratch("package") as scratch:
        place = chroot.Chroot(root="package", binds=(chroot.Bind(scratch, SOURCES),), cwd=SOURCES)
        with chroot.prepared(place) as inside:
            for path in packages:
                shutil.copy2(path, scratch / "old.deb")
                name = path.name.replace(f"_{version()}_", f"_{number}_")
                steps = (f"rm -rf tree && dpkg-deb -R old.deb tree && sed -i -e 's/^Version: .*/Version: {number}/' -e 's/(= "
                         f"{version()})/(= {number})/g' "
                         f"tree/DEBIAN/control && dpkg-deb --root-owner-group -b tree '{name}'")
                if inside.run(["sh", "-ec", steps]) != 0:
                    raise Failure(f"cannot make another version of {path.name}")
                made.append(Path(shutil.copy2(scratch / name, TARGET)))
    return made


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tarball", action="store_true", help="make an archive for a home directory instead")
    parser.add_argument("--lint", action="store_true", help="let lintian look at the result")


def run(args: argparse.Namespace) -> int:
    if args.tarball:
        with chroot.prepared(chroot.Chroot()) as inside:
            print(tarball(inside))
        return 0
    made = build()
    print("\n".join(str(path) for path in made))
    if not args.lint:
        return 0
    changes = [f"build/package/{path.name}" for path in made if path.suffix == ".changes"]
    return chroot.run(["lintian", "--tag-display-limit", "0", "--allow-root", "--suppress-tags", "bad-distribution-in-changes-file",
                       *changes], chroot.Chroot(root="package"))


COMMANDS = [Command("package", "build the Debian packages", run, options)]
