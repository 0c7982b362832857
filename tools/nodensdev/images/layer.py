# SPDX-License-Identifier: Apache-2.0
"""One layer of an image, as a tar that comes out the same every time: one order, one time stamp, no names of users."""
import gzip
import io
import os
import shutil
import stat
import struct
import subprocess
import tarfile
from pathlib import Path
from typing import BinaryIO

from ..command import Failure
from ..env import machine

EPOCH = 1_767_225_600  # 2026-01-01; every file of every image has this time
WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
MEDIA_TYPES = {
    "none": "application/vnd.oci.image.layer.v1.tar",
    "gzip": "application/vnd.oci.image.layer.v1.tar+gzip",
    "zstd": "application/vnd.oci.image.layer.v1.tar+zstd",
}
CAPABILITIES = {"cap_setgid": 6, "cap_setuid": 7, "cap_net_bind_service": 10, "cap_net_raw": 13}
VFS_CAP_REVISION_2 = 0x02000000
VFS_CAP_EFFECTIVE = 0x000001


def file_capability(name: str) -> bytes:
    """The value of security.capability (version 2, see capabilities(7)) that gives one capability, effective and permitted."""
    low = 1 << CAPABILITIES[name]
    return struct.pack("<5I", VFS_CAP_REVISION_2 | VFS_CAP_EFFECTIVE, low, 0, 0, 0)


class LayerTar:
    """A layer being written. Names are relative to the root, as tars in images have them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: set[str] = set()
        self.tar = tarfile.open(path, "w", format=tarfile.PAX_FORMAT)

    def __enter__(self) -> "LayerTar":
        return self

    def __exit__(self, *_: object) -> None:
        self.tar.close()

    def directory(self, name: str, mode: int = 0o755, uid: int = 0, gid: int = 0) -> None:
        self.add(self.info(name, tarfile.DIRTYPE, mode, uid, gid))

    def file(self, name: str, data: bytes, mode: int = 0o644, uid: int = 0, gid: int = 0,
             capability: str | None = None) -> None:
        info = self.info(name, tarfile.REGTYPE, mode, uid, gid)
        info.size = len(data)
        if capability:
            value = file_capability(capability).decode("utf-8", "surrogateescape")
            info.pax_headers = {"SCHILY.xattr.security.capability": value}
        self.add(info, io.BytesIO(data))

    def copy(self, name: str, source: Path, mode: int = 0o755) -> None:
        info = self.info(name, tarfile.REGTYPE, mode)
        info.size = source.stat().st_size
        with open(source, "rb") as file:
            self.add(info, file)

    def symlink(self, name: str, target: str) -> None:
        info = self.info(name, tarfile.SYMTYPE, 0o777)
        info.linkname = target
        self.add(info)

    def hard_link(self, name: str, target: str) -> None:
        info = self.info(name, tarfile.LNKTYPE, 0o755)
        info.linkname = target.lstrip("/")
        self.add(info)

    def whiteout(self, name: str) -> None:
        """Removes a file or a whole directory of the layers below."""
        base, _, last = name.rpartition("/")
        self.file(f"{base}/{WHITEOUT}{last}".lstrip("/"), b"")

    def opaque(self, name: str) -> None:
        """Keeps the directory, but hides all that the layers below have in it."""
        self.directory(name)
        self.file(f"{name}/{OPAQUE}", b"")

    def tree(self, root: Path, skip: frozenset[str] = frozenset()) -> None:
        """Adds a directory tree but for the names in `skip`, owners and modes as they are on disk."""
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            if name not in skip:
                self.from_disk(name, path)

    def from_disk(self, name: str, path: Path) -> None:
        info = path.lstat()
        mode = stat.S_IMODE(info.st_mode)
        if stat.S_ISLNK(info.st_mode):
            self.symlink(name, os.readlink(path))
        elif stat.S_ISDIR(info.st_mode):
            self.directory(name, mode, info.st_uid, info.st_gid)
        elif stat.S_ISREG(info.st_mode):
            self.file(name, path.read_bytes(), mode, info.st_uid, info.st_gid)

    @staticmethod
    def info(name: str, kind: bytes, mode: int, uid: int = 0, gid: int = 0) -> tarfile.TarInfo:
        made = tarfile.TarInfo(name.strip("/"))
        made.type, made.mode, made.uid, made.gid, made.mtime = kind, mode, uid, gid, EPOCH
        return made

    def add(self, info: tarfile.TarInfo, data: BinaryIO | None = None) -> None:
        if info.name in self.seen:
            raise Failure(f"layer {self.path.name} would hold '{info.name}' twice")
        self.seen.add(info.name)
        self.tar.addfile(info, data)


def compress(source: Path, target: Path, compression: str) -> None:
    """Writes the layer as it will travel."""
    if compression == "none":
        shutil.copyfile(source, target)
    elif compression == "gzip":
        with open(source, "rb") as plain, open(target, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)
    elif compression == "zstd":
        machine.need_program("zstd", "zstd")
        subprocess.run(["zstd", "-q", "-6", "-f", "-o", str(target), str(source)], check=True)
    else:
        raise Failure(f"no layer compression '{compression}' (there are: {', '.join(MEDIA_TYPES)})")
