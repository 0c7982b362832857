# SPDX-License-Identifier: Apache-2.0
"""The image of nodens-guard: the program of our Debian package, the libraries that it loads, and nothing else.

    guard:VERSION  no shell, no package manager, no program but the guard; runs as user 65532 and writes nothing

The libraries are those of the root in which the package was built. As in other images without a package manager,
/var/lib/dpkg/status.d names the packages that files come from, for scanners; their copyright files are included.
"""
import hashlib
import re
from pathlib import Path

from .. import package, version
from ..command import Failure
from ..env import chroot, root
from .layer import LayerTar
from .layout import Layout

NAME = "registry.nodens.test:5000/nodens/guard"
USER = 65532
PROGRAM = "usr/sbin/nodens-guard"
ROOT = "package"
WORK = Path("/run/image")
RECIPE = "1"    # a change of how the image is made
MERGED = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin"}
FILES = {
    "etc/passwd": f"root:x:0:0:root:/:/nonexistent\nnodens-guard:x:{USER}:{USER}::/:/nonexistent\n",
    "etc/group": f"root:x:0:\nnodens-guard:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# One line for each library that the program loads: the path by which it is loaded, the file, the package.
LIBRARIES = f"""
for path in $(ldd tree/{PROGRAM} | grep -o '/[^ ]*'); do
        file=$(readlink -f "$path")
        owner=$(dpkg -S "$file" 2>/dev/null || dpkg -S "${{file#/usr}}")
        echo "$path $file ${{owner%%:*}}"
done
"""


def tag() -> str:
    return f"{NAME}:{version.read()}"


def package_file() -> Path:
    return package.ensure()[f"nodens-guard_{package.version()}_amd64.deb"]


def run(inside: chroot.Prepared, script: str) -> str:
    done = inside.capture(["sh", "-ec", script])
    if done.returncode != 0:
        raise Failure(f"cannot read the guard's package: {done.stderr.strip()[-2000:]}")
    return done.stdout


def merged(path: str) -> str:
    """A path below the directories that Debian has merged into /usr."""
    first, _, rest = path.lstrip("/").partition("/")
    return f"{MERGED[first]}/{rest}" if first in MERGED else f"{first}/{rest}"


def paragraphs(status: str) -> dict[str, str]:
    """The entries of dpkg's status file, by package."""
    return {found[1]: entry + "\n" for entry in status.split("\n\n") if (found := re.match(r"Package: (\S+)$", entry, re.MULTILINE))}


class Contents:
    """Files of the image, by their paths: contents and mode, or the target of a link."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, int]] = {name: (text.encode(), 0o644) for name, text in FILES.items()}
        self.links = dict(MERGED)

    def add(self, name: str, source: Path, mode: int = 0o644) -> None:
        self.files[name] = (source.read_bytes(), mode)

    def write(self, tar: LayerTar) -> None:
        parents = {str(parent) for name in (*self.files, *self.links) for parent in Path(name).parents if str(parent) != "."}
        for name in sorted({*parents, *MERGED.values(), "etc/nodens", "etc/nodens/guard"}):
            tar.directory(name)
        for name, (data, mode) in sorted(self.files.items()):
            tar.file(name, data, mode)
        for name, target in sorted(self.links.items()):
            tar.symlink(name, target)


def add_library(contents: Contents, base: Path, loaded: str, file: str) -> None:
    """A library under its own name, and a link of the name by which it is loaded."""
    contents.add(merged(file), base / file.lstrip("/"), 0o755)
    if merged(loaded) != merged(file):
        contents.links[merged(loaded)] = "/" + merged(file)


def collect(work: Path) -> Contents:
    contents = Contents()
    base = root.ensure(ROOT)
    (work / "guard.deb").write_bytes(package_file().read_bytes())
    with chroot.prepared(chroot.Chroot(root=ROOT, binds=(chroot.Bind(work, WORK),), cwd=WORK)) as inside:
        run(inside, "dpkg-deb -x guard.deb tree")
        own = run(inside, "dpkg-deb -f guard.deb")
        libraries = [line.split() for line in run(inside, LIBRARIES).splitlines()]
    contents.add(PROGRAM, work / "tree" / PROGRAM, 0o755)
    known = paragraphs((base / "var/lib/dpkg/status").read_text())
    entries = {"nodens-guard": own}
    contents.add("usr/share/doc/nodens-guard/copyright", work / "tree/usr/share/doc/nodens-guard/copyright")
    for loaded, file, owner in libraries:
        add_library(contents, base, loaded, file)
        entries[owner] = known[owner]
        contents.add(f"usr/share/doc/{owner}/copyright", (base / f"usr/share/doc/{owner}/copyright").resolve())
    for owner, entry in entries.items():
        contents.files[f"var/lib/dpkg/status.d/{owner}"] = (entry.encode(), 0o644)
    return contents


def fill(layout: Layout, work: Path) -> None:
    contents = collect(work)
    with LayerTar(work / "layer.tar") as tar:
        contents.write(tar)
    layer = layout.add_layer(tar)
    layout.name(tag(), layout.add_manifest([layer], {
        "User": f"{USER}:{USER}", "WorkingDir": "/", "Env": ["PATH=/usr/sbin"], "Entrypoint": [f"/{PROGRAM}"], "Cmd": ["serve"],
        "ExposedPorts": {"9443/tcp": {}},
        "Labels": {"org.opencontainers.image.title": "nodens-guard", "org.opencontainers.image.licenses": "Apache-2.0",
                   "org.opencontainers.image.version": str(version.read())}}))


def inputs() -> list[str]:
    return [RECIPE, tag(), hashlib.sha256(package_file().read_bytes()).hexdigest(), root.ensure(ROOT).name]

