# SPDX-License-Identifier: Apache-2.0
"""An OCI image layout on disk: blobs by digest, images by name, and the archive that container runtimes import."""
import hashlib
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import layer
from .layer import EPOCH, LayerTar

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
REF_NAME = "org.opencontainers.image.ref.name"
CONTAINERD_NAME = "io.containerd.image.name"
CREATED = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Descriptor:
    """What a manifest says about a blob."""

    media_type: str
    digest: str
    size: int
    extra: dict[str, Any] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size} | self.extra

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Descriptor":
        extra = {name: value for name, value in data.items() if name not in ("mediaType", "digest", "size")}
        return Descriptor(data["mediaType"], data["digest"], data["size"], extra)


@dataclass(frozen=True)
class Layer:
    """A layer in the layout: the blob, and the digest of the tar in it."""

    blob: Descriptor
    diff_id: str


@dataclass(frozen=True)
class Platform:
    architecture: str = "amd64"
    variant: str = ""
    os: str = "linux"

    def json(self) -> dict[str, str]:
        return {"architecture": self.architecture, "os": self.os} | ({"variant": self.variant} if self.variant else {})


class Layout:
    """A layout that is being filled (or, with open(), read)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blobs = path / "blobs" / "sha256"
        self.images: dict[str, Descriptor] = {}

    @staticmethod
    def create(path: Path) -> "Layout":
        made = Layout(path)
        made.blobs.mkdir(parents=True)
        (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        return made

    @staticmethod
    def open(path: Path) -> "Layout":
        found = Layout(path)
        for entry in json.loads((path / "index.json").read_text())["manifests"]:
            found.images[entry["annotations"][CONTAINERD_NAME]] = Descriptor.from_json(entry)
        return found

    def blob(self, digest: str) -> Path:
        return self.blobs / digest.removeprefix("sha256:")

    def put(self, data: bytes, media_type: str, extra: dict[str, Any] | None = None) -> Descriptor:
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        self.blob(digest).write_bytes(data)
        return Descriptor(media_type, digest, len(data), extra or {})

    def put_json(self, data: dict[str, Any], media_type: str, extra: dict[str, Any] | None = None) -> Descriptor:
        return self.put(json.dumps(data, sort_keys=True, separators=(",", ":")).encode(), media_type, extra)

    def add_layer(self, tar: LayerTar, compression: str = "gzip") -> Layer:
        """Takes a closed layer into the layout; the tar itself is removed."""
        packed = tar.path.with_suffix(".packed")
        layer.compress(tar.path, packed, compression)
        diff_id, digest = hash_file(tar.path), hash_file(packed)
        size = packed.stat().st_size
        packed.rename(self.blob(digest))
        tar.path.unlink()
        return Layer(Descriptor(layer.MEDIA_TYPES[compression], digest, size), diff_id)

    def add_manifest(self, layers: list[Layer], config: dict[str, Any], platform: Platform = Platform()) -> Descriptor:
        """One image for one platform; `config` is what containers take from it (Entrypoint, User and so on)."""
        history = [{"created": CREATED, "created_by": "tools/dev images"} for _ in layers]
        described = self.put_json(platform.json() | {
            "created": CREATED, "config": config, "history": history,
            "rootfs": {"type": "layers", "diff_ids": [item.diff_id for item in layers]},
        }, CONFIG)
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": described.json(),
                    "layers": [item.blob.json() for item in layers]}
        return self.put_json(manifest, MANIFEST, {"platform": platform.json()})

    def add_index(self, manifests: list[Descriptor]) -> Descriptor:
        return self.put_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [item.json() for item in manifests]}, INDEX)

    def name(self, name: str, image: Descriptor) -> None:
        annotations = {CONTAINERD_NAME: name, REF_NAME: name.rsplit(":", 1)[1]}
        self.images[name] = Descriptor(image.media_type, image.digest, image.size, {"annotations": annotations})

    def close(self) -> None:
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [item.json() for _, item in sorted(self.images.items())]}
        (self.path / "index.json").write_text(json.dumps(index, indent=1))

    def children(self, image: Descriptor) -> Iterator[Descriptor]:
        """Everything that an image points to, leaves first; the image itself comes last."""
        data = json.loads(self.blob(image.digest).read_bytes())
        if image.media_type == INDEX:
            for item in data["manifests"]:
                yield from self.children(Descriptor.from_json(item))
        else:
            yield from map(Descriptor.from_json, [data["config"], *data["layers"]])
        yield image

    def write_archive(self, path: Path) -> None:
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
            for item in sorted(self.path.rglob("*")):
                if item.is_file():
                    tar.add(item, item.relative_to(self.path).as_posix(), filter=anonymous)


def anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime, info.mode = EPOCH, 0o644
    return info


def hash_file(path: Path) -> str:
    with open(path, "rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
