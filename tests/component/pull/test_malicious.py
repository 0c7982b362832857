# SPDX-License-Identifier: Apache-2.0
"""Hostile images, manifests and registries.

Each case is rejected with an error event, or is harmless in a way that is checked. In every case
the helper exits by itself and leaves no process, and nothing outside its staging directory has
changed.
"""
import gzip
import hashlib
import json
import os
import socket
import stat
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from nodenstest import fake_registry, puller
from nodenstest import images as make
from nodenstest.images import Artifact, Blob, Image, block, directory, entry, hardlink, symlink, tar

GOOD = tar(directory("etc"), entry("etc/passwd", b"root:x:0:0\n"))
OUTSIDE = "/var/tmp/nodens-pull-outside"


@dataclass
class Case:
    """An attack: what is served, and the expected result."""

    name: str
    arrange: Callable[[fake_registry.Registry], str]             # returns the reference
    # expected in the error; None = the pull succeeds, and `check` verifies it
    words: str | None = ""
    check: Callable[["Outcome"], object] | None = None
    more: dict[str, Any] | None = None                  # for the request
    seconds: float = puller.DEADLINE


@dataclass
class Outcome:
    """The state that a check may inspect."""

    result: puller.Result
    store: puller.Store
    staging: Path
    registry: fake_registry.Registry

    def top(self) -> Path:
        return self.store.stack(self.result.image, self.staging)[-1]


CASES: list[Case] = []


def case(name: str, words: str | None = "", check: Callable[[Outcome], object] | None = None, seconds: float = puller.DEADLINE,
         **more: Any) -> Any:
    def add(arrange: Callable[[fake_registry.Registry], str]) -> Any:
        CASES.append(Case(name, arrange, words, check, more, seconds))
        return arrange
    return add


def layer(name: str, data: bytes, words: str | None = "", check: Callable[[Outcome], object] | None = None, compression: str = "gzip",
          **more: Any) -> None:
    """A case whose only fault is in its second layer."""
    def arrange(registry: fake_registry.Registry) -> str:
        return registry.serve(Image().layer(GOOD).layer(data, compression))
    CASES.append(Case(name, arrange, words, check, more))


def inside(*names: str) -> Callable[[Outcome], None]:
    """Checks that the layer's tree has these names."""
    def check(outcome: Outcome) -> None:
        for name in names:
            assert (outcome.top() / name).is_symlink() or (outcome.top() / name).exists(), sorted(outcome.top().rglob("*"))
    return check


def absent(*names: str) -> Callable[[Outcome], None]:
    def check(outcome: Outcome) -> None:
        for name in names:
            assert not os.path.lexists(outcome.top() / name)
    return check


# ---- names and links that point out of the layer

layer("a name that climbs", tar(entry("../../../../../../tmp/climbed", b"x")), None, inside("tmp/climbed"))
layer("an absolute name", tar(entry(OUTSIDE + "/absolute", b"x")), None, inside(OUTSIDE[1:] + "/absolute"))
layer("a name that climbs in the middle", tar(entry("a/../../../b/../../c", b"x")), None, inside("c"))
layer("a directory through an absolute symbolic link", tar(symlink("out", OUTSIDE), entry("out/file", b"x")), None,
      inside(OUTSIDE[1:] + "/file"))
layer("a directory through a climbing symbolic link", tar(symlink("out", "../../../../../.." + OUTSIDE), entry("out/file", b"x")), None,
      inside(OUTSIDE[1:] + "/file"))
layer("a chain of symbolic links to the root", tar(symlink("a", "b"), symlink("b", "/"), entry("a/etc/shadow", b"x")), None,
      inside("etc/shadow"))
layer("a file over a symbolic link to the outside", tar(symlink("link", OUTSIDE + "/victim"), entry("link", b"x")), None,
      lambda o: inside("link")(o) or (not (o.top() / "link").is_symlink()) or pytest.fail("still a link"))
layer("a directory over a symbolic link to the outside", tar(symlink("link", OUTSIDE), directory("link"), entry("link/f", b"x")), None,
      inside("link/f"))
layer("a loop of symbolic links", tar(symlink("a", "b"), symlink("b", "a"), entry("a/file", b"x")), "loop")
layer("a symbolic link to itself", tar(symlink("a", "a"), entry("a/b/c", b"x")), "loop")
layer("symbolic links that double at every step",
      tar(*[symlink(f"l{n}", f"l{n + 1}/../l{n + 1}/../l{n + 1}") for n in range(30)], directory("l30"), entry("l0/f", b"x")), "")
layer("a symbolic link through /proc", tar(symlink("root", "/proc/self/root"), entry("root" + OUTSIDE + "/f", b"x")), None,
      inside("proc/self/root" + OUTSIDE + "/f"))
layer("a symbolic link through descriptors", tar(symlink("fd", "/proc/self/fd/3"), entry("fd/f", b"x")), None, inside("proc/self/fd/3/f"))
layer("a hard link to a file of the host", tar(hardlink("passwd", "/etc/shadow")), "hard link")
layer("a hard link that climbs", tar(hardlink("passwd", "../../../../etc/passwd")), "hard link")
layer("a hard link through a symbolic link to the outside", tar(symlink("out", "/etc"), hardlink("stolen", "out/hostname")), "hard link")
layer("a hard link to a symbolic link stays a link", tar(symlink("out", "/etc/shadow"), hardlink("stolen", "out"), entry("stolen", b"x")),
      None,
      lambda o: (o.top() / "stolen").read_bytes() == b"x" or pytest.fail("followed"))
layer("a hard link to a directory", tar(directory("d"), hardlink("l", "d")), "hard link")
layer("a hard link to nothing", tar(hardlink("l", "nothing")), "hard link")
layer("a hard link to a file of the layer below", tar(hardlink("l", "etc/passwd")), "hard link")
layer("a hard link to the root", tar(hardlink("l", "/")), "hard link")
layer("a hard link to itself", tar(entry("a", b"x"), hardlink("a", "a")), None, inside("a"))
layer("a file used as a directory", tar(entry("a", b"x"), entry("a/b", b"y")), "directory")
layer("the root replaced by a symbolic link", tar(symlink(".", OUTSIDE), symlink("/", OUTSIDE), entry("f", b"x")), None, inside("f"))
layer("the root's metadata", tar(directory("./", mode=0o777, uid=4242)), None,
      lambda o: (o.top().stat().st_uid, stat.S_IMODE(o.top().stat().st_mode)) == (0, 0o755) or pytest.fail("applied"))
layer("a directory replaced by a file, then used", tar(directory("a/b/c"), entry("a", b"x"), entry("a/b/c/d", b"y")), "directory")
layer("a tree replaced by a symbolic link to the outside",
      tar(directory("a/b"), entry("a/b/f", b"x"), symlink("a", OUTSIDE), entry("a/b/f", b"y")), None,
      inside(OUTSIDE[1:] + "/b/f"))

# ---- devices, whiteouts, attributes

layer("a device node", tar(entry("dev/sda", kind=tarfile.BLKTYPE, device=(8, 0)), entry("dev/kmsg", kind=tarfile.CHRTYPE, device=(1, 11))),
      None,
      absent("dev/sda", "dev/kmsg"))
layer("an undeclared whiteout", tar(entry("etc/passwd", kind=tarfile.CHRTYPE, device=(0, 0))), "would be a whiteout")
layer("a hard link to a whiteout", tar(entry("etc/.wh.passwd"), hardlink("etc/group", "etc/passwd")), "whiteout")
layer("a whiteout without a name", tar(entry("etc/.wh.")), "whiteout")
layer("a whiteout of the directory itself", tar(entry("etc/.wh..")), "whiteout")
layer("a whiteout of the parent", tar(entry("etc/.wh...")), "whiteout")
layer("a directory with a whiteout's name", tar(entry("etc/.wh.passwd/file", b"x")), "whiteout")
layer("a whiteout through a symbolic link to the outside", tar(symlink("out", OUTSIDE), entry("out/.wh.victim")), None, None)
layer("an opaque mark through a symbolic link to the outside", tar(symlink("out", OUTSIDE), entry("out/.wh..wh..opq")), None,
      inside(OUTSIDE[1:]))
layer("marks for overlayfs as attributes",
      tar(directory("etc", pax={"SCHILY.xattr.user.overlay.opaque": "y", "SCHILY.xattr.trusted.overlay.opaque": "y",
                                "SCHILY.xattr.user.overlay.redirect": "/../../etc"}),
          entry("etc/f", b"x", pax={"SCHILY.xattr.user.overlay.whiteout": "y", "SCHILY.xattr.security.selinux": "u:r:t:s0",
                                    "SCHILY.xattr.trusted.evil": "1", "SCHILY.xattr.security.ima": "x"})), None,
      lambda o: (os.listxattr(o.top() / "etc") == [] and os.listxattr(o.top() / "etc/f") == [])
      or pytest.fail(str(os.listxattr(o.top() / "etc"))))
layer("capabilities of another namespace's root",
      tar(entry("f", b"x", pax={"SCHILY.xattr.security.capability": (b"\x01\x00\x00\x03" + b"\xff" * 16
                                                                     + b"\xe8\x03\x00\x00").decode("utf-8", "surrogateescape")})),
      None, lambda o: os.listxattr(o.top() / "f") == [] or pytest.fail("kept"))
layer("an attribute larger than the kernel takes", tar(entry("f", b"x", pax={"SCHILY.xattr.user.big": "x" * 70000})), "attribute")
layer("many attributes", tar(entry("f", b"x", pax={f"SCHILY.xattr.user.a{n}": "x" for n in range(200)})), "attributes")
layer("an owner that is not a valid ID", tar(entry("f", b"x", uid=2**32 - 1)), "owner")
layer("a negative owner", block(b"f", uid=b"\xff" * 8) + b"\0" * 1024, "owner")

# ---- invalid and unbounded tars

layer("a tar of random bytes", bytes(hashlib.shake_256(b"seed").digest(20480)), "checksum")
layer("a tar that ends in a header", GOOD[:700], "ends inside")
layer("a tar that ends in a file", tar(entry("f", b"x" * 5000))[:3000], "ends inside")
layer("a header with a wrong checksum", block(b"f", checksum=False) + b"\0" * 1024, "checksum")
layer("a size beyond all disks", block(b"f", size=b"\x80" + b"\0" * 3 + b"\x7f" + b"\xff" * 7) + b"\0" * 1024, "")
layer("a negative size", block(b"f", size=b"\xff" * 12) + b"\0" * 1024, "size")
layer("a size that is not octal", block(b"f", size=b"99999999999\0") + b"\0" * 1024, "size")
layer("a PAX header without an end", block(b"x", kind=b"x", size=b"77777777777\0") + b"\0" * 512, "header of more than")
layer("a PAX record of a wrong length", block(b"x", kind=b"x", size=b"00000000024\0") + b"999999 path=abcdefg\n".ljust(512, b"\0"), "PAX")
layer("a PAX size that lies", tar(entry("f", b"abc", pax={"size": "99999999999999999999"})), "PAX")
layer("a PAX path with a null byte",
      block(b"x", kind=b"x", size=b"00000000020\0") + b"16 path=a\0b/c/d\n".ljust(512, b"\0") + block(b"f") + b"\0" * 1024, "null byte")
layer("a PAX name of 100,000 bytes", tar(entry("a/" * 50000 + "f", b"x")), "path")
layer("a path of 1,000 directories", tar(entry("d/" * 1000 + "f", b"x")), "components")
layer("a name of 300 bytes", tar(entry("n" * 300, b"x")), "name")
layer("a sparse file", block(b"f", kind=b"S") + b"\0" * 1024, "sparse")
layer("an entry of an unknown type", block(b"f", kind=b"Z") + b"\0" * 1024, "unknown type")
layer("an entry without a name", block(b"") + b"\0" * 1024, "name")
layer("a symbolic link without a target", block(b"f", kind=b"2") + b"\0" * 1024, "target")
layer("names with line breaks and escapes", tar(entry("a\nb\x1b[31m", b"x")), None, inside("a\nb\x1b[31m"))
layer("an error with control characters in its path", tar(hardlink("l\x1b]0;x\x07\n{\"event\":\"done\"}", "nothing\n\x1b[2J")), "hard link")
layer("a zero-byte file a hundred thousand times over itself", tar(*[entry("f", b"") for _ in range(20000)]), None, inside("f"))


# ---- compression

def bomb(compression: str) -> Callable[[fake_registry.Registry], str]:
    def arrange(registry: fake_registry.Registry) -> str:
        zeros = block(b"zeros", size=b"\x80" + (1 << 40).to_bytes(11, "big")) + b"\0" * (256 << 20)
        image = Image().layer(zeros, compression)
        return registry.serve(image)
    return arrange


CASES.append(Case("a gzip bomb", bomb("gzip"), "more than", more={"limits": {"totalBytes": 64 << 20}}))
CASES.append(Case("a zstd bomb", bomb("zstd"), "more than", more={"limits": {"totalBytes": 64 << 20}}))


def packed(name: str, data: bytes, words: str, media_type: str = make.LAYER + "+gzip") -> None:
    def arrange(registry: fake_registry.Registry) -> str:
        image = Image(layers=[Blob(data, media_type)], diff_ids=[make.digest(GOOD)])
        return registry.serve(image)
    CASES.append(Case(name, arrange, words))


packed("gzip with a wrong checksum", gzip.compress(GOOD, mtime=0)[:-8] + b"\0" * 8, "invalid gzip")
packed("gzip cut short", gzip.compress(GOOD, mtime=0)[:-20], "truncated")
packed("gzip with garbage behind it", gzip.compress(GOOD, mtime=0) + b"garbage", "invalid gzip")
packed("zstd that calls itself gzip", make.pack(GOOD, "zstd"), "media type is gzip")
packed("plain tar that calls itself gzip", GOOD, "media type is gzip")
packed("gzip that calls itself plain", gzip.compress(GOOD, mtime=0), "media type is plain", make.LAYER)
packed("zstd with a window of 2 GiB", b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\0\0" * 20, "zstd", make.LAYER + "+zstd")
packed("an empty layer blob", b"", "media type is gzip")
packed("a layer of an unknown kind", GOOD, "media type", "application/vnd.example.layer")
packed("another layer than in the config", gzip.compress(tar(entry("other", b"x")), mtime=0), "config has")


# ---- manifests and configs

def document(name: str, words: str, **lies: Any) -> None:
    CASES.append(Case(name, lambda registry: registry.serve(Image().layer(GOOD), **lies), words))


def raw_manifest(name: str, data: bytes, words: str, media_type: str = make.MANIFEST) -> None:
    def arrange(registry: fake_registry.Registry) -> str:
        registry.put_manifest(Blob(data, media_type), "1")
        return f"{registry.name}/test/image:1"
    CASES.append(Case(name, arrange, words))


raw_manifest("a manifest that is not JSON", b"<html>", "")
raw_manifest("a manifest that is a JSON list", b"[]", "object")
raw_manifest("a manifest of 100,000 brackets", b"[" * 100000, "")
raw_manifest("an empty manifest", b"", "")
raw_manifest("a manifest of 5 MiB", b'{"a":"' + b"x" * (5 << 20) + b'"}', "exceeds")
raw_manifest("a manifest of schema 1", json.dumps({"schemaVersion": 1, "name": "x", "fsLayers": []}).encode(), "",
             "application/vnd.docker.distribution.manifest.v1+prettyjws")
raw_manifest("a manifest served as HTML", b"<html></html>", "", "text/html")
raw_manifest("a manifest with a config and manifests",
             json.dumps({"schemaVersion": 2, "config": {}, "manifests": [], "layers": []}).encode(), "")
document("a layer of negative size", "", layers=[Blob(b"x", make.LAYER).describe(size=-1)])
document("a layer of 2^63 bytes", "", layers=[Blob(b"x", make.LAYER).describe(size=2**63)])
document("a digest that climbs", "", layers=[Blob(b"x", make.LAYER).describe(digest="sha256:../../../../etc/passwd")])
document("a digest of another algorithm", "", layers=[Blob(b"x", make.LAYER).describe(digest="md5:d41d8cd98f00b204e9800998ecf8427e")])
document("a thousand layers", "", layers=[Blob(GOOD, make.LAYER).describe()] * 1001)
document("more layers than the config lists", "lists", layers=[Blob(GOOD, make.LAYER).describe()] * 3)
document("no layers where the config lists one", "lists", layers=[])
document("a config without a type", "container image", config={"digest": make.digest(b"{}"), "size": 2})
document("a config of 100 MiB", "", config={"mediaType": make.CONFIG, "digest": make.digest(b"x"), "size": 100 << 20})
document("a layer larger than all limits", "limit", layers=[Blob(b"x", make.LAYER).describe(size=1 << 49)])


def config_case(name: str, data: bytes, words: str) -> None:
    def arrange(registry: fake_registry.Registry) -> str:
        image = Image().layer(GOOD)
        blob = Blob(data, make.CONFIG)
        registry.put(blob)
        return registry.serve(image, config=blob.describe())
    CASES.append(Case(name, arrange, words))


config_case("a binary config", bytes(range(256)) * 4, "")
config_case("a config of null bytes", b"\0" * 1000, "")
config_case("a config that is deep", b'{"config":' + b'{"a":' * 5000 + b"1" + b"}" * 5001, "")
config_case("a config without layers", b'{"architecture":"amd64","os":"linux"}', "")
config_case("a config for another platform",
            json.dumps({"architecture": "s390x", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [make.digest(GOOD)]}}).encode(),
            "this node")
config_case("a config with diff ids of another kind",
            json.dumps({"architecture": "amd64", "os": "linux",
                        "rootfs": {"type": "layers", "diff_ids": ["sha512:" + "0" * 128]}}).encode(), "")


@case("a size in the manifest that is too small", "bytes")
def small_size(registry: fake_registry.Registry) -> str:
    image = Image().layer(GOOD)
    return registry.serve(image, layers=[image.layers[0].describe(size=10)])


@case("a size in the manifest that is too large", "bytes")
def large_size(registry: fake_registry.Registry) -> str:
    image = Image().layer(GOOD)
    return registry.serve(image, layers=[image.layers[0].describe(size=len(image.layers[0].data) + 10)])


@case("a config size that lies", "bytes")
def config_size(registry: fake_registry.Registry) -> str:
    image = Image().layer(GOOD)
    return registry.serve(image, config=image.config_blob().describe(size=3))


@case("a layer with another digest", "digest")
def wrong_digest(registry: fake_registry.Registry) -> str:
    image = Image().layer(GOOD)
    reference = registry.serve(image)
    other = bytearray(image.layers[0].data)
    other[9] ^= 1       # the operating system in gzip's header: it still unpacks
    registry.blobs[make.digest(image.layers[0].data)] = bytes(other)
    return reference


@case("a config with another digest", "")
def wrong_config(registry: fake_registry.Registry) -> str:
    image = Image().layer(GOOD)
    reference = registry.serve(image)
    registry.blobs[make.digest(image.config_blob().data)] = image.config_blob().data + b" "
    return reference


@case("a manifest by digest that is another", "")
def wrong_manifest(registry: fake_registry.Registry) -> str:
    wanted = make.digest(b"something else")
    image = Image().layer(GOOD)
    registry.serve(image)
    registry.manifests[wanted] = (make.MANIFEST, image.manifest().data)
    return f"{registry.name}/test/image@{wanted}"


def nested(depth: int) -> Callable[[fake_registry.Registry], str]:
    def arrange(registry: fake_registry.Registry) -> str:
        image = Image().layer(GOOD)
        registry.serve(image, "inner")
        document = image.manifest()
        for _ in range(depth):
            document = make.index((document, {"os": "linux", "architecture": "amd64"}))
            registry.put_manifest(document)
        registry.put_manifest(document, "1")
        return f"{registry.name}/test/image:1"
    return arrange


CASES.append(Case("indexes within indexes, ten deep", nested(10), "deep"))


@case("an index without a platform of ours", "")
def foreign_index(registry: fake_registry.Registry) -> str:
    registry.put_manifest(make.index((Blob(b"{}", make.MANIFEST), {"os": "windows", "architecture": "amd64"})), "1")
    return f"{registry.name}/test/image:1"


@case("an index of 2,000 entries", "")
def large_index(registry: fake_registry.Registry) -> str:
    registry.put_manifest(make.index(*[(Blob(b"{}", make.MANIFEST), {"os": "linux", "architecture": "amd64"})] * 2000), "1")
    return f"{registry.name}/test/image:1"


@case("an index whose manifest for our platform is for another", "this node")
def lying_index(registry: fake_registry.Registry) -> str:
    image = Image(config={"architecture": "arm64", "os": "linux"}).layer(GOOD)
    registry.serve(image)
    registry.put_manifest(make.index((image.manifest(), {"os": "linux", "architecture": "amd64"})), "1")
    return f"{registry.name}/test/image:1"


@case("URLs in a descriptor are not followed", None, lambda o: all("evil" not in path for path, _ in o.registry.seen)
      or pytest.fail("followed"))
def foreign_urls(registry: fake_registry.Registry) -> str:
    image = Image().layer(GOOD)
    image.layers[0].extra = {"urls": [f"http://{registry.name}/evil", "file:///etc/passwd"]}
    return registry.serve(image)


# ---- misbehaving registries

CREDENTIALS = {"username": "user", "password": "a-secret-word"}


def no_secret(outcome: Outcome) -> None:
    text = json.dumps(outcome.result.events) + outcome.result.errors
    assert "a-secret-word" not in text and "dXNlcjphLXNlY3JldC13b3Jk" not in text, text


def hooked(name: str, hook: fake_registry.Hook, words: str | None, check: Callable[[Outcome], object] | None = None,
           seconds: float = puller.DEADLINE,
           image: Image | None = None, **more: Any) -> None:
    def arrange(registry: fake_registry.Registry) -> str:
        registry.hook = hook
        return registry.serve(image or Image().layer(GOOD))
    CASES.append(Case(name, arrange, words, check, more, seconds))


def stolen(outcome: Outcome) -> None:
    no_secret(outcome)
    for path, headers in outcome.registry.seen:
        if "localhost" in headers.get("Host", ""):
            assert "Authorization" not in headers, path


def redirect_to_other_host(registry: fake_registry.Registry, handler: Any) -> fake_registry.Answer | None:
    if "localhost" in handler.headers.get("Host", ""):
        return None
    if "Authorization" not in handler.headers:
        return fake_registry.Answer(401, headers={"WWW-Authenticate": 'Basic realm="x"'})
    return fake_registry.Answer(307, headers={"Location": f"http://localhost:{registry.port}{handler.path}"})


def redirect_then_challenge(registry: fake_registry.Registry, handler: Any) -> fake_registry.Answer | None:
    if "localhost" in handler.headers.get("Host", ""):
        return fake_registry.Answer(
            401, headers={"WWW-Authenticate": f'Basic realm="x", Bearer realm="http://localhost:{registry.port}/token"'}
        )
    return fake_registry.Answer(302, headers={"Location": f"http://localhost:{registry.port}{handler.path}"})


hooked("a redirect to another host", redirect_to_other_host, None, stolen, auth=CREDENTIALS)
hooked("a redirect to a host that asks for credentials", redirect_then_challenge, "requires credentials", stolen, auth=CREDENTIALS)
hooked("an endless redirect", lambda r, h: fake_registry.Answer(307, headers={"Location": f"http://{r.name}/again"}), "too many redirects")
hooked("a redirect to a file", lambda r, h: fake_registry.Answer(307, headers={"Location": "file:///etc/passwd"}), "invalid redirect")
hooked("a redirect with a user in it", lambda r, h: fake_registry.Answer(307, headers={"Location": f"http://u:p@{r.name}/x"}), "user")
hooked("a redirect without a target", lambda r, h: fake_registry.Answer(307), "invalid redirect")
hooked("a redirect to gopher", lambda r, h: fake_registry.Answer(301, headers={"Location": "gopher://127.0.0.1:1/"}), "invalid redirect")
hooked("401 to every request", lambda r, h: fake_registry.Answer(401, headers={"WWW-Authenticate": 'Basic realm="x"'}),
       "rejected the credentials", no_secret, auth=CREDENTIALS)
hooked("401 without a challenge", lambda r, h: fake_registry.Answer(401), "credentials", no_secret, auth=CREDENTIALS)
hooked("a challenge without an end", lambda r, h: fake_registry.Answer(401, headers={"WWW-Authenticate": 'Bearer realm="http://x'}),
       "credentials")
hooked("a challenge to a file", lambda r, h: fake_registry.Answer(401, headers={"WWW-Authenticate": 'Bearer realm="file:///etc/passwd"'}),
       "token", no_secret, auth=CREDENTIALS)
hooked("a challenge of 60,000 bytes", lambda r, h: fake_registry.Answer(401, headers={"WWW-Authenticate": "Bearer " + 'a="b",' * 10000}),
       "")


def token_hook(answer: fake_registry.Answer) -> fake_registry.Hook:
    def hook(registry: fake_registry.Registry, handler: Any) -> fake_registry.Answer | None:
        if handler.path.startswith("/token"):
            return answer
        if "Authorization" in handler.headers:
            return None
        return fake_registry.Answer(401, headers={"WWW-Authenticate": f'Bearer realm="http://{registry.name}/token",service="s"'})
    return hook


hooked("a token with a line break", token_hook(fake_registry.Answer(200, json.dumps({"token": "a\r\nX-Evil: 1"}).encode())), "token")
hooked("a token that is a number", token_hook(fake_registry.Answer(200, b'{"token": 12}')), "token")
hooked("a token response that is not JSON", token_hook(fake_registry.Answer(200, b"<html>")), "token")
hooked("a token response of 1 MiB", token_hook(fake_registry.Answer(200, b'{"token":"' + b"x" * (1 << 20) + b'"}')), "token")
hooked("a token server that refuses", token_hook(fake_registry.Answer(403, b"a-secret-word")), "403", no_secret, auth=CREDENTIALS)
hooked("a token server that redirects", token_hook(fake_registry.Answer(302, headers={"Location": "http://127.0.0.1:1/"})), "302",
       no_secret, auth=CREDENTIALS)


def only_blobs(answer: Callable[[fake_registry.Registry, Any], fake_registry.Answer]) -> fake_registry.Hook:
    """Misbehaves for layers; manifests and configs are served."""
    def hook(registry: fake_registry.Registry, handler: Any) -> fake_registry.Answer | None:
        name = handler.path.rsplit("/", 1)[1]
        plain = registry.blobs.get(name, b"")
        return answer(registry, handler) if "/blobs/" in handler.path and not plain.startswith(b"{") else None
    return hook


def drip(registry: fake_registry.Registry, handler: Any) -> None:
    while not registry.closed.wait(0.5):
        handler.wfile.write(b"x")
        handler.wfile.flush()


def hang(registry: fake_registry.Registry, handler: Any) -> None:
    registry.closed.wait()


def not_http(registry: fake_registry.Registry, handler: Any) -> fake_registry.Answer:
    handler.wfile.write(b"SSH-2.0-x\r\n")
    return fake_registry.Answer(200)


hooked("bytes that drip", only_blobs(lambda r, h: fake_registry.Answer(200, write=partial(drip, r))), "", noProgressSeconds=1)
hooked("a blob that never comes", only_blobs(lambda r, h: fake_registry.Answer(200, write=partial(hang, r))), "", noProgressSeconds=1)
hooked("a manifest that never comes", lambda r, h: fake_registry.Answer(200, write=partial(hang, r)), "", noProgressSeconds=1)
hooked("a blob cut off at every try", only_blobs(lambda r, h: fake_registry.Answer(200, b"\x1f\x8b", length=5000)), "")
hooked("a blob without an end",
       only_blobs(lambda r, h: fake_registry.Answer(200, write=lambda handler: handler.wfile.write(b"\x1f\x8b\x08" + b"\0" * (50 << 20)))),
       "bytes")
hooked("a Content-Length that lies", only_blobs(lambda r, h: fake_registry.Answer(200, b"x", length=1 << 40)), "bytes")
hooked("another range than requested", only_blobs(lambda r, h: fake_registry.Answer(206, b"xxxx", {"Content-Range": "bytes 7-10/20"})),
       "range")
hooked("500 to every request", lambda r, h: fake_registry.Answer(500, b"x" * 1000), "500")
hooked("429 to every request", only_blobs(lambda r, h: fake_registry.Answer(429)), "429")
hooked("404", lambda r, h: fake_registry.Answer(404), "404")
hooked("204 without a body", lambda r, h: fake_registry.Answer(204), "204")
hooked("an error page without an end", lambda r, h: fake_registry.Answer(404, write=lambda handler: handler.wfile.write(b"x" * (50 << 20))),
       "404")
hooked("200 with an empty body", lambda r, h: fake_registry.Answer(200, b""), "")
hooked("headers without an end", lambda r, h: fake_registry.Answer(200, headers={f"X-{n}": "y" * 1000 for n in range(1000)}), "")
hooked("a response that is not HTTP", not_http, "")
hooked("a message with a secret in it", lambda r,
       h: fake_registry.Answer(307, headers={"Location": "http://127.0.0.1:1/x?X-Amz-Signature=a-secret-word&a-secret-word"}), "",
       no_secret, auth=CREDENTIALS)
hooked("a body packed twice", only_blobs(lambda r, h: fake_registry.Answer(200, gzip.compress(r.blobs[h.path.rsplit("/", 1)[1]]),
                                                                           {"Content-Encoding": "gzip"})), "")


# ---- artifacts: titles are paths


def titles(name: str, words: str | None, *paths: str | None, check: Callable[[Outcome], object] | None = None) -> None:
    def arrange(registry: fake_registry.Registry) -> str:
        artifact = Artifact()
        for number, path in enumerate(paths):
            artifact.file(path, b"%d" % number)
        return registry.serve(artifact)
    CASES.append(Case(name, arrange, words, check))


def only(*names: str) -> Callable[[Outcome], None]:
    """Checks that the layers have these files and no others, each a plain file of root without rights to write."""
    def check(outcome: Outcome) -> None:
        found = {str(path.relative_to(tree)): path.lstat() for tree in outcome.store.stack(outcome.result.image, outcome.staging)
                 for path in tree.rglob("*") if not path.is_dir()}
        assert sorted(found) == sorted(names)
        assert {(info.st_mode, info.st_uid, info.st_gid, info.st_nlink) for info in found.values()} == {(stat.S_IFREG | 0o444, 0, 0, 1)}
    return check


for hostile, reason in {"../../../../tmp/climbed": "'.' or '..'", OUTSIDE + "/absolute": "not relative", "a/../../b": "'.' or '..'",
                        ".": "'.' or '..'", "": "empty component", "a//b": "empty component", "a/": "empty component",
                        "a\nb": "control", "a\x1b[2J": "control", "x" * 256: "255 bytes", "a/" * 32 + "b": "32 components",
                        "/".join(["x" * 200] * 6): "1023 bytes", ".wh.etc": "reserved", ".wh..wh..opq": "reserved",
                        "a/.wh.b": "reserved"}.items():
    titles(f"an artifact's title {hostile[:20]!r} of {len(hostile)}", reason, hostile)
titles("an artifact with a null byte in a title", "null byte", "a\0b")
titles("an artifact with a title twice", "same path", "a", "b", "a")
titles("an artifact with a file that is a directory", "directory of another", "a/b", "a")
titles("an artifact with a directory that is a file", "directory of another", "a", "a/b/c")
titles("an artifact with a title that looks like an option", None, "-rf", "$(reboot)", "a\\b", check=only("-rf", "$(reboot)", "a\\b"))
titles("an artifact without titles", None, None, None, check=only(make.digest(b"0")[7:], make.digest(b"1")[7:]))


@case("an artifact with one blob twice and no titles", "same path")
def blob_twice(registry: fake_registry.Registry) -> str:
    return registry.serve(Artifact().file(None, b"x").file(None, b"x"))


@case("an artifact with 501 files", "at most 500")
def many_files(registry: fake_registry.Registry) -> str:
    artifact = Artifact()
    for number in range(501):
        artifact.file(f"f{number}", b"x")
    return registry.serve(artifact)


@case("an artifact's file that is an archive with links", None, only("archive", "packed.tgz"))
def archive_as_file(registry: fake_registry.Registry) -> str:
    data = tar(symlink("etc", OUTSIDE), entry("etc/f", b"x"))
    return registry.serve(Artifact().file("archive", data).file("packed.tgz", gzip.compress(data), make.LAYER + "+gzip"))


@case("a packed directory with links below an artifact's file", None,
      lambda o: (o.top() / "out/file").read_bytes() == b"x" or pytest.fail("not there"))
def link_below(registry: fake_registry.Registry) -> str:
    return registry.serve(Artifact().packed("out", tar(symlink("out", OUTSIDE))).file("out/file", b"x"))


@case("a packed directory that names another digest", "diff ID mismatch")
def packed_lie(registry: fake_registry.Registry) -> str:
    return registry.serve(Artifact().packed("d", GOOD, **{"io.deis.oras.content.digest": make.digest(b"x")}))


@case("a packed directory that is a bomb", "limit", limits={"totalBytes": 1 << 20, "layers": 500})
def packed_bomb(registry: fake_registry.Registry) -> str:
    return registry.serve(Artifact().packed("d", tar(entry("d/zeros", bytes(8 << 20)))))


def sized(name: str, size: int, words: str) -> None:
    def arrange(registry: fake_registry.Registry) -> str:
        artifact = Artifact().file("model", b"0123456789")
        return registry.serve(artifact, layers=[artifact.layers[0].describe(size=size)])
    CASES.append(Case(name, arrange, words, None, {"limits": {"totalBytes": 1 << 20, "layers": 500}}))


sized("an artifact's file that is longer than its size", 5, "bytes")
sized("an artifact's file that is shorter than its size", 15, "bytes")
sized("an artifact's file beyond the limit", 2 << 20, "limit")


@case("an empty file in an artifact", None, only("empty"))
def empty_file(registry: fake_registry.Registry) -> str:
    return registry.serve(Artifact().file("empty", b""))


@case("an artifact that is an image, too", None, only("x"))
def image_config(registry: fake_registry.Registry) -> str:
    return registry.serve(Artifact(config_type=make.CONFIG).file("x", b"x", "text/plain"))


@case("an index of artifacts that leads to itself", "levels deep")
def own_index(registry: fake_registry.Registry) -> str:
    """A digest cannot be its own, so the registry serves an index below an index below an index."""
    artifact = Artifact().file("x", b"x")
    registry.serve(artifact, tag="inner")
    blob = make.index((artifact.manifest(), None))
    for _ in range(4):
        registry.put_manifest(blob)
        blob = make.index((blob, None))
    registry.put_manifest(blob, "1")
    return f"{registry.name}/test/image:1"


@case("an index whose entry has the index's own digest", "digest")
def swapped_index(registry: fake_registry.Registry) -> str:
    """The registry answers with the index for the digest of its entry."""
    artifact = Artifact().file("x", b"x")
    top = make.index((artifact.manifest(), None))
    registry.put_manifest(top, "1")
    registry.manifests[make.digest(artifact.manifest().data)] = (make.INDEX, top.data)
    return f"{registry.name}/test/image:1"


@pytest.fixture(scope="module", autouse=True)
def outside() -> Any:
    os.makedirs(OUTSIDE, exist_ok=True)
    Path(OUTSIDE, "victim").write_text("untouched")
    yield
    os.unlink(Path(OUTSIDE, "victim"))
    os.rmdir(OUTSIDE)


def picture(root: Path, without: Path) -> dict[str, tuple[int, int, int, float]]:
    """Everything below a directory except one subtree and the partial downloads."""
    seen = {}
    for path in [root, *root.rglob("*")]:
        if without in (path, *path.parents) or path in (root / "staging", root / "staging/partial") or "partial" in path.parts:
            continue
        info = path.lstat()
        seen[str(path)] = (info.st_mode, info.st_uid, info.st_size, info.st_mtime)
    return seen


@pytest.mark.parametrize("attack", CASES, ids=lambda attack: attack.name)
def test_is_rejected_or_harmless(attack: Case, store: puller.Store, registry: fake_registry.Registry) -> None:
    reference = attack.arrange(registry)
    staging = store.staging()
    before = picture(store.root, staging)
    running = puller.Running(store, staging, puller.request(reference, store, **(attack.more or {})))
    result = running.finish(attack.seconds)

    assert picture(store.root, staging) == before
    assert sorted(os.listdir(OUTSIDE)) == ["victim"] and Path(OUTSIDE, "victim").read_text() == "untouched"
    assert not puller.left_running(*running.sessions()), "processes are left"
    if attack.words is None:
        assert result.code == 0, result.explain()
    else:
        assert attack.words in result.error["message"], result.error
        assert result.error["code"] not in (0, None)
        assert not list(puller.trees(staging).glob("*/fs/etc/shadow")) if puller.trees(staging).exists() else True
    if attack.check:
        attack.check(Outcome(result, store, staging, registry))
    assert "ERROR: AddressSanitizer" not in result.errors and "runtime error" not in result.errors, result.errors


def test_the_corpus_is_large_enough() -> None:
    assert len(CASES) >= 60 and len({attack.name for attack in CASES}) == len(CASES)


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b"{" * 1000, b"\0", b'{"operation":"pull"}',
                                 b'{"operation":"pull","reference":"../../etc"}',
                                 b'{"operation":"rm","reference":"a"}', b'{"operation":"pull","reference":"a","platform":"x"}',
                                 b'{"operation":"pull","reference":"a","parallel":-1}', b"x" * (2 << 20)],
                         ids=lambda raw: repr(raw[:60]))
def test_an_invalid_request_is_an_error_event(store: puller.Store, raw: bytes) -> None:
    result = puller.Running(store, store.staging(), {}, raw=raw).finish()
    assert result.error["code"] != 0


def test_a_socket_that_is_not_http_is_an_error(store: puller.Store) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        result, _ = puller.pull(store, f"127.0.0.1:{server.getsockname()[1]}/a/b:1", noProgressSeconds=1)
    assert result.error["code"] in (4, 14)
