# SPDX-License-Identifier: Apache-2.0
"""The image of nodens-guard (`tools/dev images guard`): its size, contents and user, and that the program in it serves.

`tools/dev test guard-node` runs it in a cluster, from the chart of deploy/.
"""
import hashlib
import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nodensdev import images
from nodensdev.env import cache, chroot
from nodensdev.images import guard

MEGABYTE = 1_000_000
LIMIT = 15 * MEGABYTE
USER = "65532:65532"
ROOT = Path("/run/guard-image")
PORT = 9443
ASK = """\
import ssl, sys, urllib.error, urllib.request as r
try:
    done = r.urlopen(r.Request(sys.argv[1], *[word.encode() for word in sys.argv[2:]]), context=ssl._create_unverified_context(), timeout=10)
except urllib.error.HTTPError as error:
    done = error
print(done.status, done.read().decode().strip())
"""

pytestmark = pytest.mark.image


@dataclass
class Image:
    """The image and its one layer, unpacked below `root`."""

    manifest: dict[str, Any]
    config: dict[str, Any]
    members: list[tarfile.TarInfo]
    root: Path


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    layout = images.layout("guard")
    manifest = json.loads(layout.blob(layout.images[guard.tag()].digest).read_bytes())
    config = json.loads(layout.blob(manifest["config"]["digest"]).read_bytes())
    with cache.scratch("guard-image") as work, tarfile.open(layout.blob(manifest["layers"][0]["digest"])) as tar:
        tar.extractall(work / "root", filter="tar")
        (work / "root").chmod(0o755)
        yield Image(manifest, config, tar.getmembers(), work / "root")


def test_the_image_is_small(image: Image) -> None:
    size = sum(item["size"] for item in (*image.manifest["layers"], image.manifest["config"]))
    print(f"guard image: {size / MEGABYTE:.1f} MB compressed, {sum(one.size for one in image.members) / MEGABYTE:.1f} MB of files")
    assert len(image.manifest["layers"]) == 1 and size < LIMIT


def test_it_runs_the_guard_as_an_ordinary_user(image: Image) -> None:
    config = image.config["config"]
    assert (config["User"], config["Entrypoint"], config["Cmd"]) == (USER, ["/usr/sbin/nodens-guard"], ["serve"])
    assert image.config["architecture"] == "amd64"


def test_it_has_one_program_and_nothing_that_its_user_may_write(image: Image) -> None:
    files = [one for one in image.members if one.isfile()]
    programs = [one.name for one in files if one.mode & 0o111 and ".so" not in one.name]
    assert programs == ["usr/sbin/nodens-guard"]
    assert not [one.name for one in image.members if re.search(r"(^|/)(sh|bash|dash|busybox|apt.*|dpkg|perl.*|python.*)$", one.name)
                and not one.name.startswith("var/lib/dpkg") and not one.isdir()]
    assert not [one.name for one in image.members if not one.issym() and (one.mode & 0o6022 or one.uid or one.gid)]


def test_scanners_find_the_packages_of_its_files(image: Image) -> None:
    known = {path.name for path in (image.root / "var/lib/dpkg/status.d").iterdir()}
    assert {"nodens-guard", "libc6", "libmicrohttpd12t64", "libyyjson0"} <= known
    for name in known:
        assert re.search(r"^Version: \S+$", (image.root / f"var/lib/dpkg/status.d/{name}").read_text(), re.MULTILINE), name
        assert (image.root / f"usr/share/doc/{name}/copyright").is_file(), name


def test_the_same_package_gives_the_same_image(image: Image) -> None:
    with cache.scratch("guard-image") as work:
        again = images.Layout.create(work / "layout")
        guard.fill(again, work)
        assert again.images[guard.tag()].digest == images.layout("guard").images[guard.tag()].digest
        digest = image.manifest["layers"][0]["digest"]
        assert hashlib.sha256(again.blob(digest).read_bytes()).hexdigest() == digest.removeprefix("sha256:")


def test_the_program_serves_on_a_read_only_root_without_privileges(image: Image, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir(mode=0o755)
    place = chroot.Chroot(root="build", binds=(chroot.Bind(image.root, ROOT), chroot.Bind(files, Path("/run/files"))))
    (files / "guard.yaml").write_text("address: 127.0.0.1\nclientCA: /etc/nodens/guard/ca.crt\n")
    (files / "ask").write_text(ASK)
    # an API server that does not answer: the guard is not ready, and serves
    (files / "kubeconfig").write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority": "/etc/nodens/guard/ca.crt"}}],
        "users": [{"name": "u", "user": {"token": "x"}}]}))
    script = f"""
        mount --bind {ROOT} {ROOT}
        mount --bind /run/files {ROOT}/etc/nodens/guard
        chroot {ROOT} /usr/sbin/nodens-guard certificate --address 127.0.0.1
        chmod 644 /run/files/*
        mount -o remount,bind,ro {ROOT}
        mount -o remount,bind,ro {ROOT}/etc/nodens/guard
        chroot --userspec={USER} --groups= {ROOT} /usr/sbin/nodens-guard --version
        chroot --userspec={USER} --groups= {ROOT} /usr/sbin/nodens-guard serve --config /etc/nodens/guard/guard.yaml 2>/run/said &
        ask() {{ path=$1; shift; python3 /run/files/ask "https://127.0.0.1:{PORT}$path" "$@" 2>/dev/null; }}
        for try in $(seq 200); do
                ask /livez && break
                sleep 0.1
        done
        ask /readyz
        ask /validate '{{}}'
        grep -E '^(Uid|Gid|CapEff|NoNewPrivs):' /proc/$!/status | tr -s '\\t' ' '
        kill $!
        wait $! || cat /run/said
        """
    with chroot.prepared(place) as inside:
        done: subprocess.CompletedProcess[str] = inside.capture(["unshare", "-mn", "sh", "-ec", f"ip link set lo up\n{script}"])
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("/etc/nodens/guard/tls.crt is valid until ")
    assert lines[1].startswith("nodens-guard ") and lines[2] == "200 ok", done.stdout + done.stderr
    assert lines[3].endswith(" not ready") and lines[4].startswith("401"), done.stdout + done.stderr
    assert {"Uid: 65532 65532 65532 65532", "Gid: 65532 65532 65532 65532", "CapEff: 0000000000000000"} <= set(lines), done.stdout
