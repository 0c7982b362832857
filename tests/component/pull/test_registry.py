# SPDX-License-Identifier: Apache-2.0
"""Pulls from the real registry, with TLS and tokens: requests, and the resulting files."""
import gzip
import json
import os
import random
import stat
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nodenstest import fake_registry, puller, registry_server
from nodenstest import images as make
from nodenstest.images import Image, directory, entry, hardlink, symlink, tar

AUTH = {"username": registry_server.testbed.USER, "password": registry_server.testbed.PASSWORD}
BASE = tar(directory("etc", mode=0o751, uid=7, gid=8), entry("etc/passwd", b"root:x:0:0\n"), directory("usr"), directory("usr/bin"),
           entry("usr/bin/tool", b"tool", mode=0o4755), directory("var/lib/app", mode=0o2770, uid=100000, gid=3000000000))


@pytest.fixture(scope="module")
def site() -> Iterator[registry_server.Site]:
    with registry_server.serving("token") as made:
        yield made


@pytest.fixture
def trusted(site: registry_server.Site, store: puller.Store) -> registry_server.Site:
    site.trust(store)
    return site


def test_an_image_of_two_layers_is_pulled_with_a_token(trusted: registry_server.Site, store: puller.Store) -> None:
    image = Image().layer(BASE).layer(tar(entry("etc/hostname", b"x\n")), "zstd").layer(tar(entry("plain", b"x")), "none")
    result, staging = puller.pull(store, trusted.publish(image, "own/three:1"), auth=AUTH)
    assert result.image["manifestDigest"] == make.digest(image.manifest().data)
    assert result.image["configDigest"] == make.digest(image.config_blob().data)
    assert [layer["diffId"] for layer in result.image["layers"]] == image.diff_ids
    assert result.image["names"] == [f"{trusted.name}/own/three:1"]
    assert (staging / "blobs" / result.image["configDigest"].split(":")[1]).read_bytes() == image.config_blob().data
    assert not list(store.partial.iterdir()), "downloads are left behind"
    for layer in result.image["layers"]:
        about = json.loads((puller.trees(staging) / layer["chain"].split(":")[1] / "layer.json").read_text())
        assert about["diffId"] == layer["diffId"] and about["size"] == layer["size"] and about["inodes"] == layer["inodes"]


@pytest.mark.nightly
def test_no_pull_waits_for_an_event_of_the_past(trusted: registry_server.Site, store: puller.Store) -> None:
    """A response that ended before the wait was noticed a second later."""
    image = Image()
    for number in range(4):
        image.layer(tar(entry(f"file{number}", noise(1 << 20))))
    reference = trusted.publish(image, "own/quick:1")
    times = []
    for _ in range(7):     # nothing enters the store, so each starts from scratch
        started = time.monotonic()
        assert puller.pull(store, reference, auth=AUTH)[0].done
        times.append(time.monotonic() - started)
    assert sorted(times)[3] < 1, f"{times}"


def test_an_image_is_pulled_by_digest_and_has_no_name(trusted: registry_server.Site, store: puller.Store) -> None:
    image = Image().layer(BASE)
    trusted.publish(image, "own/digest:1")
    result, _ = puller.pull(store, f"{trusted.name}/own/digest@{make.digest(image.manifest().data)}", auth=AUTH)
    assert result.image["names"] == []


def test_the_right_platform_is_chosen_from_an_index(trusted: registry_server.Site, store: puller.Store) -> None:
    ours, theirs = Image().layer(BASE), Image(config={"architecture": "arm64", "os": "linux"}).layer(tar(entry("arm", b"x")))
    index = make.index((theirs.manifest(), {"os": "linux", "architecture": "arm64"}),
                       (ours.manifest(), {"os": "linux", "architecture": "amd64"}))
    result, _ = puller.pull(store, trusted.publish(index, "own/multi:1", (ours, theirs)), auth=AUTH)
    assert result.image["indexDigest"] == make.digest(index.data)
    assert result.image["manifestDigest"] == make.digest(ours.manifest().data)


def test_docker_media_types_are_understood(trusted: registry_server.Site, store: puller.Store) -> None:
    image = Image(manifest_type=make.DOCKER_MANIFEST, config_type=make.DOCKER_CONFIG).layer(BASE, media_type=make.DOCKER_LAYER)
    assert puller.pull(store, trusted.publish(image, "own/docker:2"), auth=AUTH)[0].image["layers"]


def test_wrong_and_missing_credentials_differ_from_a_missing_image(trusted: registry_server.Site, store: puller.Store) -> None:
    reference = trusted.publish(Image().layer(BASE), "own/private:1")
    wrong = puller.pull(store, reference, auth={"username": "other", "password": "not-the-password"})[0]
    assert wrong.error["code"] == 7 and "not-the-password" not in json.dumps(wrong.events)
    assert puller.pull(store, f"{trusted.name}/own/private:nothing", auth=AUTH)[0].error["code"] == 5


def test_dockers_auth_field_works(trusted: registry_server.Site, store: puller.Store) -> None:
    import base64
    word = base64.b64encode(f"{AUTH['username']}:{AUTH['password']}".encode()).decode()
    assert puller.pull(store, trusted.publish(Image().layer(BASE), "own/auth:1"), auth={"auth": word})[0].done


def test_credentials_for_another_server_are_not_sent(trusted: registry_server.Site, store: puller.Store) -> None:
    reference = trusted.publish(Image().layer(BASE), "own/other:1")
    result = puller.pull(store, reference, auth=AUTH | {"serverAddress": "https://elsewhere.example/v1/"})[0]
    assert result.error["code"] == 7


def test_an_untrusted_certificate_is_rejected(site: registry_server.Site, store: puller.Store) -> None:
    result = puller.pull(store, f"{site.name}/own/three:1", auth=AUTH)[0]
    assert "certificate" in result.error["message"]


def test_a_layer_that_the_store_has_is_not_fetched(trusted: registry_server.Site, store: puller.Store) -> None:
    first, second = Image().layer(BASE).layer(tar(entry("a", b"1"))), Image().layer(BASE).layer(tar(entry("b", b"2")))
    result, staging = puller.pull(store, trusted.publish(first, "own/shared:1"), auth=AUTH)
    store.commit(staging)
    result, staging = puller.pull(store, trusted.publish(second, "own/shared:2"), auth=AUTH)
    assert [layer["new"] for layer in result.image["layers"]] == [False, True]
    assert result.states(first.layers[0].describe()["digest"]) == ["exists"]
    assert len(list(puller.trees(staging).iterdir())) == 1


def test_a_hundred_layers(trusted: registry_server.Site, store: puller.Store) -> None:
    image = Image().layer(BASE)
    for number in range(99):
        changes = [entry(f"deep/{number}", str(number).encode())] + ([entry(f"deep/.wh.{number - 2}")] if number > 1 else [])
        image.layer(tar(*changes))
    result, staging = puller.pull(store, trusted.publish(image, "own/hundred:1"), auth=AUTH, parallel=8)
    assert len(result.image["layers"]) == 100
    top = store.stack(result.image, staging)[-1]
    assert (top / "deep/98").read_text() == "98" and stat.S_ISCHR((top / "deep/96").stat().st_mode)


def test_the_tree_matches_the_archive(trusted: registry_server.Site, store: puller.Store) -> None:
    data = tar(entry("setuid", b"x", mode=0o6755, uid=1, gid=2),
               entry("caps", b"x", mode=0o755, pax={"SCHILY.xattr.security.capability": make.file_capability()}),
               entry("owned", b"x", uid=4000000000, gid=70000), entry("time", b"x", mtime=1_234_567_890.25), entry("first", b"same"),
               hardlink("second", "first"),
               symlink("dangling", "/no/where", uid=5), entry("fifo", kind=tarfile.FIFOTYPE, mode=0o620), directory("sticky", mode=0o1777),
               entry("user", b"x", pax={"SCHILY.xattr.user.note": "hello"}), directory("closed", mode=0o000), entry("closed/inside", b"x"),
               entry("n" * 200 + "/" + "m" * 200, b"long"))
    result, staging = puller.pull(store, trusted.publish(Image().layer(data), "own/metadata:1"), auth=AUTH)
    top = store.stack(result.image, staging)[-1]
    look = {path.name: path.lstat() for path in top.iterdir()}
    assert (stat.S_IMODE(look["setuid"].st_mode), look["setuid"].st_uid, look["setuid"].st_gid) == (0o6755, 1, 2)
    assert os.getxattr(top / "caps", "security.capability")[:20] == make.file_capability().encode("utf-8", "surrogateescape")
    assert (look["owned"].st_uid, look["owned"].st_gid) == (4000000000, 70000)
    assert look["time"].st_mtime == 1_234_567_890.25
    assert look["first"].st_ino == look["second"].st_ino
    assert os.readlink(top / "dangling") == "/no/where" and look["dangling"].st_uid == 5
    assert stat.S_ISFIFO(look["fifo"].st_mode) and stat.S_IMODE(look["fifo"].st_mode) == 0o620
    assert stat.S_IMODE(look["sticky"].st_mode) == 0o1777 and look["sticky"].st_mtime == make.EPOCH
    assert os.getxattr(top / "user", "user.note") == b"hello"
    assert stat.S_IMODE(look["closed"].st_mode) == 0 and (top / "closed/inside").read_text() == "x"
    assert (top / ("n" * 200) / ("m" * 200)).read_text() == "long"
    inodes = {path.lstat().st_ino for path in (top, *top.rglob("*"))}
    assert result.image["layers"][0]["inodes"] == len(inodes)


def test_implied_directories_get_metadata_of_lower_layers(trusted: registry_server.Site, store: puller.Store) -> None:
    image = Image().layer(BASE).layer(tar(entry("var/lib/app/data", b"x"))).layer(tar(entry("etc/.wh.passwd"),
                                                                                      entry("var/lib/app/more", b"y"),
                                                                                      entry("new/dir/f", b"z")))
    result, staging = puller.pull(store, trusted.publish(image, "own/implied:1"), auth=AUTH)
    for tree in store.stack(result.image, staging)[1:]:
        info = (tree / "var/lib/app").stat()
        assert (info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode), info.st_mtime) == (100000, 3000000000, 0o2770, make.EPOCH)
    etc = (tree / "etc").stat()
    assert (etc.st_uid, stat.S_IMODE(etc.st_mode)) == (7, 0o751)
    assert stat.S_IMODE((tree / "new/dir").stat().st_mode) == 0o755 and (tree / "new/dir").stat().st_uid == 0
    assert stat.S_ISCHR((tree / "etc/passwd").stat().st_mode)


def test_whiteouts_and_opaque_directories(trusted: registry_server.Site, store: puller.Store) -> None:
    image = Image().layer(BASE).layer(tar(
        directory("etc", mode=0o751, uid=7, gid=8), entry("etc/.wh..wh..opq"), entry("etc/own", b"x"), entry("usr/bin/.wh.tool"),
        entry("usr/.wh.nothing"),
        entry(".wh.var"), directory("var"), entry("var/new", b"x"), entry(".wh..wh.plnk", b"x")))
    result, staging = puller.pull(store, trusted.publish(image, "own/whiteouts:1"), auth=AUTH)
    top = store.stack(result.image, staging)[-1]
    assert os.getxattr(top / "etc", "user.overlay.opaque") == b"y" and (top / "etc/own").exists()
    assert stat.S_ISCHR((top / "usr/bin/tool").stat().st_mode) and (top / "usr/bin/tool").stat().st_rdev == 0
    assert not os.path.lexists(top / "usr/nothing"), "a whiteout that hides nothing is left"
    assert os.getxattr(top / "var", "user.overlay.opaque") == b"y" and (top / "var/new").exists()
    assert not [path for path in top.rglob("*") if path.name.startswith(".wh.")]


def test_a_failing_mirror_is_skipped(trusted: registry_server.Site, store: puller.Store) -> None:
    reference = trusted.publish(Image().layer(BASE), "own/mirrored:1")
    with fake_registry.Registry(lambda registry, handler: fake_registry.Answer(503)) as mirror:
        trusted.trust(store, text=f'server = "https://{trusted.name}"\nca = "{trusted.authority}"\n[host."http://{mirror.name}"]\n'
                                  f'  capabilities = ["pull", "resolve"]\n[host."http://127.0.0.1:1"]\n')
        assert puller.pull(store, reference, auth=AUTH)[0].done
        assert mirror.seen and all("Authorization" not in headers for _, headers in mirror.seen)


def test_a_mirror_is_tried_first_and_gets_its_headers_but_no_credentials(trusted: registry_server.Site, store: puller.Store) -> None:
    image = Image().layer(BASE)
    reference = trusted.publish(image, "own/first:1")
    with fake_registry.Registry() as mirror:
        mirror.serve(image)
        trusted.trust(store, text=f'server = "https://{trusted.name}"\nca = '
                                  f'"{trusted.authority}"\n[host."http://{mirror.name}/v2/prefix"]\n'
                                  f'  override_path = true\n  [host."http://{mirror.name}/v2/prefix".header]\n    x-test = "yes"\n')
        assert puller.pull(store, reference, auth=AUTH)[0].done
        assert len(mirror.seen) == 3 and all(path.startswith("/v2/prefix/own/first/") for path, _ in mirror.seen)
        assert all(headers.get("x-test") == "yes" and "Authorization" not in headers for _, headers in mirror.seen)


def test_a_mirror_without_resolve_capability_gets_no_tag_requests(trusted: registry_server.Site, store: puller.Store) -> None:
    image = Image().layer(BASE)
    reference = trusted.publish(image, "own/pullonly:1")
    with fake_registry.Registry() as mirror:
        mirror.serve(image)
        trusted.trust(store, text=f'server = "https://{trusted.name}"\nca = '
                                  f'"{trusted.authority}"\n[host."http://{mirror.name}"]\ncapabilities = ["pull"]\n')
        assert puller.pull(store, reference, auth=AUTH)[0].done
        assert mirror.seen and not any("/manifests/1" in path for path, _ in mirror.seen)


def test_a_mirror_with_a_wrong_manifest_is_skipped(trusted: registry_server.Site, store: puller.Store) -> None:
    image = Image().layer(BASE)
    trusted.publish(image, "own/liar:1")
    wanted = make.digest(image.manifest().data)
    with fake_registry.Registry() as mirror:
        mirror.manifests[wanted] = (make.MANIFEST, Image().layer(tar(entry("evil", b"x"))).manifest().data)
        trusted.trust(store, text=f'server = "https://{trusted.name}"\nca = "{trusted.authority}"\n[host."http://{mirror.name}"]\n')
        result, _ = puller.pull(store, f"{trusted.name}/own/liar@{wanted}", auth=AUTH)
        assert result.image["manifestDigest"] == wanted and mirror.seen


NOT_FOUND, DENIED = 5, 7


@pytest.mark.parametrize("lines", ['server = "http://127.0.0.1:1"\n[host."http://{name}"]\n',
                                   'server = "http://{name}"\n[host."http://127.0.0.1:1"]\n'], ids=["mirror", "server"])
def test_a_tag_that_one_server_does_not_have_is_not_found_though_the_other_cannot_be_asked(store: puller.Store, lines: str) -> None:
    with fake_registry.Registry() as registry:
        place = store.hosts / "some.example"
        place.mkdir()
        (place / "hosts.toml").write_text(lines.format(name=registry.name))
        error = puller.pull(store, "some.example/test/image:missing")[0].error
    assert error["code"] == NOT_FOUND
    assert error["message"].startswith(f"{registry.name}: not found (404); 127.0.0.1:1: ")


def test_a_server_that_denies_access_is_not_hidden_by_one_without_the_image_or_one_that_cannot_be_asked(store: puller.Store) -> None:
    with fake_registry.Registry() as mirror, fake_registry.Registry(lambda registry, handler: fake_registry.Answer(403)) as server:
        place = store.hosts / "some.example"
        place.mkdir()
        (place / "hosts.toml").write_text(f'server = "http://127.0.0.1:1"\n[host."http://{mirror.name}"]\n[host."http://{server.name}"]\n')
        error = puller.pull(store, "some.example/test/image:private")[0].error
    assert error["code"] == DENIED and error["message"].startswith(f"{server.name}: access denied (403); 127.0.0.1:1: ")
    assert error["message"].endswith(f"; {mirror.name}: not found (404)")


def test_a_mirror_with_the_address_of_the_server_is_asked_once_and_with_credentials(trusted: registry_server.Site,
                                                                                   store: puller.Store) -> None:
    """The certificate authority is that of the mirror alone, so the server without it would fail."""
    address = f"https://{trusted.name}"
    reference = trusted.publish(Image().layer(BASE), "own/twice:1")
    trusted.trust(store, text=f'server = "{address}"\n[host."{address}"]\n  ca = "{trusted.authority}"\n')
    assert puller.pull(store, reference, auth=AUTH)[0].done
    error = puller.pull(store, reference.removesuffix(":1") + ":missing", auth=AUTH)[0].error
    assert (error["code"], error["message"]) == (NOT_FOUND, f"{trusted.name}: not found (404)")


def test_an_invalid_hosts_file_is_named_in_the_error(trusted: registry_server.Site, store: puller.Store) -> None:
    trusted.trust(store, text='server = "https://x"\n[host.broken\n')
    message = puller.pull(store, f"{trusted.name}/own/three:1")[0].error["message"]
    assert "hosts.toml" in message and "line 2" in message


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def test_a_killed_pull_is_resumed(store: puller.Store) -> None:
    image = Image().layer(tar(entry("big", noise(40 << 20))), "none")
    size = len(image.layers[0].data)

    def slowly(registry: fake_registry.Registry, handler: Any) -> fake_registry.Answer | None:
        if "/blobs/" not in handler.path or handler.headers.get("Range") or slowly.done:  # type: ignore[attr-defined]
            return None
        name = handler.path.rsplit("/", 1)[1]
        data = registry.blobs[name]
        if len(data) < 1 << 20:
            return None

        def write(to: Any) -> None:
            to.wfile.write(data[: 20 << 20])
            to.wfile.flush()
            registry.closed.wait()
        slowly.done = True                          # type: ignore[attr-defined]
        return fake_registry.Answer(200, write=write)

    slowly.done = False                             # type: ignore[attr-defined]
    with fake_registry.Registry(slowly) as registry:
        reference = registry.serve(image)
        running = puller.Running(store, store.staging(), puller.request(reference, store))
        deadline = time.monotonic() + puller.DEADLINE
        while not any(path.stat().st_size >= 20 << 20 for path in store.partial.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        running.kill()
        left = sum(path.stat().st_size for path in store.partial.iterdir())
        assert left >= 20 << 20
        registry.seen.clear()
        result, staging = puller.pull(store, reference)
        assert result.done
        ranges = [headers["Range"] for _, headers in registry.seen if "Range" in headers]
        assert ranges == [f"bytes={left}-"] and left < size
        assert not list(store.partial.iterdir())


def test_a_wrong_partial_download_is_discarded(store: puller.Store, registry: fake_registry.Registry) -> None:
    image = Image().layer(tar(entry("f", noise(3 << 20))))
    reference = registry.serve(image)
    name = make.digest(image.layers[0].data).removeprefix("sha256:")
    (store.partial / name).write_bytes(b"\0" * (1 << 20))
    result, staging = puller.pull(store, reference)
    assert result.done and (store.stack(result.image, staging)[0] / "f").stat().st_size == 3 << 20


def test_a_complete_download_is_not_fetched_again(store: puller.Store, registry: fake_registry.Registry) -> None:
    image = Image().layer(tar(entry("f", noise(1 << 20))))
    reference = registry.serve(image)
    name = make.digest(image.layers[0].data)
    (store.partial / name.removeprefix("sha256:")).write_bytes(image.layers[0].data)
    assert puller.pull(store, reference)[0].done
    assert not any(name in path for path, _ in registry.seen)


def test_a_broken_connection_is_resumed(store: puller.Store) -> None:
    image = Image().layer(tar(entry("f", noise(4 << 20))))
    broken: list[int] = []

    def cut(registry: fake_registry.Registry, handler: Any) -> fake_registry.Answer | None:
        name = handler.path.rsplit("/", 1)[1]
        data = registry.blobs.get(name, b"")
        if len(data) < 1 << 20 or len(broken) >= 3:
            return None
        start = int((handler.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        broken.append(start)
        headers = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"} if start else {}
        return fake_registry.Answer(206 if start else 200, data[start: start + (1 << 20)], headers, length=len(data) - start)

    with fake_registry.Registry(cut) as registry:
        assert puller.pull(store, registry.serve(image))[0].done
    assert broken == [0, 1 << 20, 2 << 20]


def test_a_registry_without_ranges_is_read_again_from_the_start(store: puller.Store) -> None:
    image = Image().layer(tar(entry("f", noise(2 << 20))))

    def whole(registry: fake_registry.Registry, handler: Any) -> fake_registry.Answer | None:
        if "/blobs/" in handler.path:
            return fake_registry.Answer(200, registry.blobs[handler.path.rsplit("/", 1)[1]])
        return None

    with fake_registry.Registry(whole) as registry:
        reference = registry.serve(image)
        name = make.digest(image.layers[0].data).removeprefix("sha256:")
        (store.partial / name).write_bytes(image.layers[0].data[: 1 << 20])
        assert puller.pull(store, reference)[0].done


def test_a_refresh_token_is_posted_and_the_token_used(store: puller.Store) -> None:
    posted = []

    def hook(registry: fake_registry.Registry, handler: Any) -> fake_registry.Answer | None:
        if handler.path == "/token":
            posted.append(handler.posted)
            return fake_registry.Answer(200, b'{"access_token":"granted"}')
        if handler.headers.get("Authorization") == "Bearer granted":
            return None
        return fake_registry.Answer(
            401,
            headers={
                "WWW-Authenticate": f'Bearer realm="http://{registry.name}/token",service="s",scope="repository:test/image:pull,push"'
            },
        )

    with fake_registry.Registry(hook) as registry:
        result, _ = puller.pull(store, registry.serve(Image().layer(BASE)), auth={"identityToken": "refresh-me"})
    assert result.done and posted == [
        b"grant_type=refresh_token&refresh_token=refresh-me&client_id=nodens&service=s&scope=repository%3Atest%2Fimage%3Apull"
    ]


def test_an_archive_is_imported(store: puller.Store, tmp_path: Path) -> None:
    image = Image().layer(BASE).layer(tar(entry("second", b"x")), "none")
    with puller.scratch() as path:
        archive = make.archive(path / "a.tar", {"registry.example/some/thing:2": image})
        result, staging = puller.run(store, {"operation": "import"}, archive=archive)
    assert result.image["names"] == ["registry.example/some/thing:2"]
    assert (store.stack(result.image, staging)[1] / "second").exists()


@pytest.mark.parametrize("content", [b"", b"root:x:0:0:root:/root:/bin/sh\n" * 60, gzip.compress(b"no archive" * 200)],
                         ids=["empty", "text", "gzip"])
def test_a_file_that_is_not_a_tar_archive_is_named_so(store: puller.Store, content: bytes) -> None:
    with puller.scratch() as path:
        (path / "a.tar").write_bytes(content)
        error = puller.run(store, {"operation": "import"}, archive=path / "a.tar")[0].error
    assert error["message"] == "not a tar archive; an import needs an OCI image layout as a tar archive"


def test_an_archive_with_a_wrong_digest_is_rejected(store: puller.Store) -> None:
    image = Image().layer(BASE)
    with puller.scratch() as path:
        archive = make.archive(path / "a.tar", {"x/y:1": image}, spoil=True)
        assert "digest" in puller.run(store, {"operation": "import"}, archive=archive)[0].error["message"]
