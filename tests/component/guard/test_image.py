# SPDX-License-Identifier: Apache-2.0
"""The image of nodens-guard, built from the Containerfile of docs/guard.md.

buildah builds it as podman does. The base image is a least Debian 13 of this machine, because debian:13-slim cannot be pulled without
a registry; packages come from the Debian mirror.
"""
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodensdev.env import chroot, root
from nodensdev.project import BUILD, TOP

IMAGE = "registry.example/nodens-guard:0.1.0"
BASE = "docker.io/library/debian:13-slim"
WORK = Path("/run/image")
PRELUDE = f"""
set -e
cd {WORK}
printf '[containers]\\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\\n' >containers.conf
export CONTAINERS_CONF={WORK}/containers.conf BUILDAH_ISOLATION=chroot TMPDIR=/var/tmp
buildah() {{ command buildah --root /var/tmp/storage --runroot /run/storage --storage-driver vfs "$@"; }}
"""

pytestmark = pytest.mark.image


def containerfile() -> str:
    """The commands of the page that write the Containerfile."""
    page = (TOP / "docs/guard.md").read_text()
    start = page.index("cat >Containerfile <<END\n")
    return page[start:page.index("\nEND\n", start) + len("\nEND\n")]


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chroot.Prepared]:
    """A root with buildah, in which the image is built."""
    work = tmp_path_factory.mktemp("image")
    packages = [path for path in (BUILD / "package").glob("nodens-guard_*.deb") if "+" not in path.name]
    assert packages, "`tools/dev package` has not been run"
    shutil.copy(packages[0], work)
    base = chroot.seen_inside(root.ensure("slim"))
    with chroot.prepared(chroot.Chroot(root="buildah", binds=(chroot.Bind(work, WORK),), cwd=WORK)) as prepared:
        run(prepared, f"""
            one=$(buildah from scratch)
            tar -C {base} -c . | tar -C "$(buildah mount "$one")" -x
            buildah umount "$one" >&2
            buildah commit -q "$one" {BASE} >&2
            {containerfile()}
            buildah build --pull=never -t {IMAGE} . >&2
            buildah from --pull=never --name guard {IMAGE} >&2""")
        yield prepared


def run(inside: chroot.Prepared, script: str) -> str:
    done = inside.capture(["bash", "-c", PRELUDE + script])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def test_the_image_runs_the_guard_as_the_user_of_the_deployment(inside: chroot.Prepared) -> None:
    config = run(inside, f"buildah inspect --type image --format '{{{{.OCIv1.Config.User}}}} {{{{.OCIv1.Config.Entrypoint}}}}' {IMAGE}")
    assert config.strip() == "65532:65532 [nodens-guard serve]"
    assert run(inside, "buildah run guard -- id -u").strip() == "65532"
    assert run(inside, "buildah run guard -- nodens-guard --version").startswith("nodens-guard ")


def test_the_program_of_the_image_has_its_libraries(inside: chroot.Prepared) -> None:
    made = run(inside, "buildah run guard -- nodens-guard certificate --address guard.example --directory /tmp")
    assert made.startswith("/tmp/tls.crt is valid until ")
    # with the files of a Deployment's volume it gets as far as the API server's address
    said = run(inside, """
        mkdir -m 755 files
        buildah run guard -- sh -c 'cat /tmp/tls.crt' >files/tls.crt
        buildah run guard -- sh -c 'cat /tmp/tls.key' >files/tls.key
        cp files/tls.crt files/client-ca.crt
        chmod 644 files/*
        buildah run -v "$PWD/files:/etc/nodens/guard:ro" guard -- nodens-guard serve 2>&1 || true""")
    assert "cannot start: no kubeconfig in '/etc/nodens/guard'" in said, said
