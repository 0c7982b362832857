# SPDX-License-Identifier: Apache-2.0
"""Images: layers come out alike, marks are where the format wants them, and a layout can be read back."""
import hashlib
import json
import tarfile
from pathlib import Path

import pytest
from nodensdev.command import Failure
from nodensdev.images import upstream
from nodensdev.images.layer import LayerTar, file_capability
from nodensdev.images.layout import INDEX, Layout


def fill(tar: LayerTar) -> None:
    tar.directory("a")
    tar.file("a/one", b"text", 0o4755, 70000, 5, capability="cap_net_raw")
    tar.hard_link("a/two", "a/one")
    tar.symlink("a/three", "one")
    tar.whiteout("a/gone")
    tar.whiteout("top")
    tar.opaque("b")


def make(path: Path) -> LayerTar:
    with LayerTar(path) as tar:
        fill(tar)
    return tar


def test_a_layer_is_the_same_every_time(tmp_path: Path) -> None:
    make(tmp_path / "1.tar")
    make(tmp_path / "2.tar")
    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "2.tar").read_bytes()


def test_a_layer_says_what_was_put_in(tmp_path: Path) -> None:
    with tarfile.open(make(tmp_path / "1.tar").path) as tar:
        found = {member.name: member for member in tar.getmembers()}
    assert found["a/one"].mode == 0o4755
    assert (found["a/one"].uid, found["a/one"].gid) == (70000, 5)
    capability = found["a/one"].pax_headers["SCHILY.xattr.security.capability"]
    assert capability.encode("utf-8", "surrogateescape") == file_capability("cap_net_raw")
    assert found["a/two"].islnk() and found["a/two"].linkname == "a/one"
    assert found["a/three"].issym()
    assert {"a/.wh.gone", ".wh.top", "b/.wh..wh..opq"} <= found.keys()


def test_a_name_cannot_be_in_a_layer_twice(tmp_path: Path) -> None:
    with LayerTar(tmp_path / "1.tar") as tar:
        tar.file("a", b"")
        with pytest.raises(Failure, match="'a' twice"):
            tar.file("a", b"")


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_layout_can_be_read_back(tmp_path: Path, compression: str) -> None:
    layout = Layout.create(tmp_path / "layout")
    layer = layout.add_layer(make(tmp_path / "1.tar"), compression)
    image = layout.add_index([layout.add_manifest([layer], {"Cmd": ["/check"]})])
    layout.name("example.test/name:tag", image)
    layout.close()
    found = Layout.open(tmp_path / "layout")
    assert found.images["example.test/name:tag"].digest == image.digest
    kinds = [item.media_type for item in found.children(found.images["example.test/name:tag"])]
    assert kinds[-1] == INDEX and len(kinds) == 4  # config, layer, manifest, index
    for item in found.children(image):
        data = found.blob(item.digest).read_bytes()
        assert "sha256:" + hashlib.sha256(data).hexdigest() == item.digest and len(data) == item.size


def test_the_archive_names_its_images_for_containerd(tmp_path: Path) -> None:
    layout = Layout.create(tmp_path / "layout")
    layout.name("example.test/name:tag", layout.add_manifest([layout.add_layer(make(tmp_path / "1.tar"))], {}))
    layout.close()
    layout.write_archive(tmp_path / "archive.tar")
    with tarfile.open(tmp_path / "archive.tar") as tar:
        index = tar.extractfile("index.json")
        assert index is not None
        assert json.load(index)["manifests"][0]["annotations"]["io.containerd.image.name"] == "example.test/name:tag"


def test_image_names_come_from_the_suites_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "test/utils/image/manifest.go"
    manifest.parent.mkdir(parents=True)
    manifest.write_text('\t\tGcRegistry:  "registry.example",\n\tconfigs[Pause] = Config{list.GcRegistry, "pause", "9.9"}\n')
    assert upstream.image_names(tmp_path) == {"Pause": "registry.example/pause:9.9"}


def test_a_manifest_of_another_form_is_noticed(tmp_path: Path) -> None:
    manifest = tmp_path / "test/utils/image/manifest.go"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("package image\n")
    with pytest.raises(Failure, match="its form has changed"):
        upstream.image_names(tmp_path)
