# SPDX-License-Identifier: Apache-2.0
"""Images for the tests, good and bad, made in memory: tars entry by entry, manifests field by field."""
import ctypes
import gzip
import hashlib
import io
import json
import struct
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
EMPTY = "application/vnd.oci.empty.v1+json"
TITLE = "org.opencontainers.image.title"
EPOCH = 1_700_000_000


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def entry(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644, uid: int = 0, gid: int = 0,
          mtime: float = EPOCH, pax: dict[str, str] | None = None, device: tuple[int, int] = (0, 0)) -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode, made.uid, made.gid, made.mtime = kind, link, mode, uid, gid, mtime
    made.size = len(data) if kind == tarfile.REGTYPE else 0
    made.pax_headers = pax or {}
    made.devmajor, made.devminor = device
    return made, data


def directory(name: str, mode: int = 0o755, **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, kind=tarfile.DIRTYPE, mode=mode, **more)


def symlink(name: str, target: str, **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, kind=tarfile.SYMTYPE, link=target, mode=0o777, **more)


def hardlink(name: str, target: str, **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, kind=tarfile.LNKTYPE, link=target, **more)


def tar(*entries: tuple[tarfile.TarInfo, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def block(name: bytes, kind: bytes = b"0", size: bytes = b"00000000000\0", link: bytes = b"", mode: bytes = b"0000644\0",
          magic: bytes = b"ustar\x0000", prefix: bytes = b"", uid: bytes = b"0000000\0", checksum: bool = True) -> bytes:
    """One raw header, for what tarfile would not write."""
    head = (name.ljust(100, b"\0")[:100] + mode + uid + b"0000000\0" + size + b"14500000000\0" + b" " * 8 + kind + link.ljust(100, b"\0")
            + magic + b"\0" * 64 + b"0000000\0" * 2 + prefix.ljust(155, b"\0")).ljust(512, b"\0")
    total = sum(head) if checksum else 1
    return head[:148] + b"%06o\0 " % total + head[156:]


def file_capability(bits: int = 1 << 13) -> str:
    return struct.pack("<5I", 0x02000001, bits, 0, 0, 0).decode("utf-8", "surrogateescape")


def zstd(data: bytes, level: int = 3) -> bytes:
    """By the library that nodens-unpack links: Python has none of its own before 3.14."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    room = library.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(room)
    size = library.ZSTD_compress(out, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), level)
    assert not library.ZSTD_isError(ctypes.c_size_t(size))
    return out.raw[:size]


def pack(data: bytes, compression: str) -> bytes:
    if compression == "gzip":
        return gzip.compress(data, 6, mtime=0)
    if compression == "zstd":
        return zstd(data)
    return data


@dataclass
class Blob:
    """Bytes, and what a manifest says about them."""

    data: bytes
    media_type: str
    extra: dict[str, Any] = field(default_factory=dict)

    def describe(self, **lies: Any) -> dict[str, Any]:
        return {"mediaType": self.media_type, "digest": digest(self.data), "size": len(self.data)} | self.extra | lies


@dataclass
class Image:
    """An image under construction. Fields may be overwritten before it is finished, to make invalid images."""

    layers: list[Blob] = field(default_factory=list)
    diff_ids: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=lambda: {"architecture": "amd64", "os": "linux", "config": {}})
    manifest_type: str = MANIFEST
    config_type: str = CONFIG

    def layer(self, data: bytes, compression: str = "gzip", media_type: str | None = None) -> "Image":
        suffix = {"gzip": "+gzip", "zstd": "+zstd", "none": ""}[compression]
        self.layers.append(Blob(pack(data, compression), media_type or LAYER + suffix))
        self.diff_ids.append(digest(data))
        return self

    def config_blob(self) -> Blob:
        return Blob(json.dumps(self.config | {"rootfs": {"type": "layers", "diff_ids": self.diff_ids}}).encode(), self.config_type)

    def manifest(self, **lies: Any) -> Blob:
        document = {"schemaVersion": 2, "mediaType": self.manifest_type, "config": self.config_blob().describe(),
                    "layers": [layer.describe() for layer in self.layers]} | lies
        return Blob(json.dumps(document).encode(), self.manifest_type)


@dataclass
class Artifact(Image):
    """An OCI artifact: files with titles, and a config that is not an image's."""

    artifact_type: str = "application/vnd.example.model.v1"
    config_type: str = EMPTY

    def file(self, title: str | None, data: bytes, media_type: str = LAYER, **annotations: str) -> "Artifact":
        """A file; the default type is the one that ORAS gives to any file."""
        self.layers.append(Blob(data, media_type, {"annotations": annotations | ({} if title is None else {TITLE: title})}))
        return self

    def packed(self, title: str, data: bytes, **more: str) -> "Artifact":
        """A directory as ORAS packs it."""
        return self.file(title, gzip.compress(data, mtime=0), LAYER + "+gzip", **{
            "io.deis.oras.content.unpack": "true", "io.deis.oras.content.digest": digest(data)} | more)

    def config_blob(self) -> Blob:
        return Blob(b"{}", self.config_type)

    def manifest(self, **lies: Any) -> Blob:
        return super().manifest(**({"artifactType": self.artifact_type} if self.artifact_type else {}) | lies)


def index(*entries: tuple[Blob, dict[str, str] | None]) -> Blob:
    described = [blob.describe(**({"platform": platform} if platform else {})) for blob, platform in entries]
    return Blob(json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": described}).encode(), INDEX)


def archive(path: Path, images: dict[str, Image], spoil: bool = False) -> Path:
    """Writes an OCI archive with images by name; spoiled, no blob has its digest."""
    blobs = [blob for image in images.values() for blob in (*image.layers, image.config_blob(), image.manifest())]
    entries = [image.manifest().describe(annotations={"io.containerd.image.name": name}) for name, image in images.items()]
    files = [entry("oci-layout", b'{"imageLayoutVersion":"1.0.0"}'),
             entry("index.json", json.dumps({"schemaVersion": 2, "manifests": entries}).encode())]
    files += [entry(f"blobs/sha256/{digest(blob.data).split(':')[1]}", blob.data + (b"x" if spoil else b"")) for blob in blobs]
    path.write_bytes(tar(*files))
    return path
