# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own hooks of CDI devices, with the libraries of a driver that does not exist (stand-in-driver.c)."""
import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from conftest import Subject
from nodenstest import registry_server, runtimes, validation
from nodenstest.cdi import Define, hook
from nodenstest.pods import Pods

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
DRIVER, NEWER = "570.1", "575.2"
COMPAT = "/usr/local/cuda/compat"


class Driver:
    """Files of a driver on the host, and the edits that `nvidia-ctk cdi generate` would write for them."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.libraries = top / f"driver{LIBRARIES}"
        self.limits = top / "limits"
        self.libraries.mkdir(parents=True)
        for name in ("libcuda", "libnvidia-ml"):
            shutil.copy(runtimes.BUILD / f"tests/component/cri/stand-in-{name}.so", self.libraries / f"{name}.so.{DRIVER}")
        (self.libraries / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{DRIVER}")
        (top / "compat").mkdir()
        shutil.copy(self.libraries / f"libcuda.so.{DRIVER}", top / f"compat/libcuda.so.{NEWER}")
        self.program = Path(shutil.copy(registry_server.program("nvidia-container-toolkit", "nvidia-cdi-hook"), top / "nvidia-cdi-hook"))

    def mounts(self) -> list[dict[str, Any]]:
        options = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
        files = [(path, f"{LIBRARIES}/{path.name}") for path in self.libraries.glob(f"*.{DRIVER}")]
        return [{"hostPath": str(host), "containerPath": inside, "options": options}
                for host, inside in (*files, (Path("/sbin/ldconfig"), "/opt/ldconfig"), (self.top / "compat", COMPAT))]

    def hook(self, *arguments: str, **more: Any) -> dict[str, Any]:
        return hook(self.program, *arguments, **more)

    def hooks(self) -> list[dict[str, Any]]:
        """All that the program has."""
        return [self.hook("create-symlinks", "--link", f"libcuda.so.1::{LIBRARIES}/libcuda.so", "--link", "/opt/ldconfig::/made/by/hook"),
                self.hook("enable-cuda-compat", f"--host-driver-version={DRIVER}"),
                self.hook("update-ldcache", "--ldconfig-path", "/sbin/ldconfig", "--folder", LIBRARIES),
                self.hook("chmod", "--mode", "711", "--path", "/opt", "--path", "/mnt"),
                self.hook("disable-device-node-modification"),
                self.hook("update-application-profile"),
                self.hook("create-soname-symlinks"),    # of older releases; a hook that the program does not have is not an error
                self.hook("apply-cuda-memory-limits", "--driver-root", str(self.top / "driver"), "--gpu-id", "GPU-0",
                          stage="createRuntime", env={"STAND_IN_LIMITS": str(self.limits)})]


@pytest.fixture
def driver(plain_pods: Pods) -> Driver:
    top = plain_pods.directory / "nvidia"
    top.mkdir(mode=0o755)
    return Driver(top)


def test_nvidias_hooks_install_a_driver(pods: Pods, subject: Subject, driver: Driver, define: Define) -> None:
    device = define(mounts=driver.mounts(), hooks=driver.hooks())
    one = pods.run().container(image=subject.images.hosted(validation.TOOLS), **device,
                               envs=[pods.pb.KeyValue(key="NVIDIA_GPU_MEMORY_LIMIT", value=b"100")])
    cache = one.output("/opt/ldconfig -p")
    assert re.search(rf"libcuda.so.1 \(libc6,x86-64\) => {COMPAT}/libcuda.so.1\n.*libcuda.so.1 .* => (/usr)?/lib/", cache), cache
    assert re.search(r"libnvidia-ml.so.1 \(libc6,x86-64\) => (/usr)?/lib/x86_64-linux-gnu/libnvidia-ml.so.1\n", cache), cache
    assert one.output(f"readlink {LIBRARIES}/libcuda.so /made/by/hook") == "libcuda.so.1\n/opt/ldconfig"
    assert one.output(f"readlink -f {LIBRARIES}/libnvidia-ml.so.1") == f"{LIBRARIES}/libnvidia-ml.so.{DRIVER}"
    assert one.output("stat -c '%a %u' /opt /etc/ld.so.cache") == "711 0\n644 0"
    cgroup, soft, hard = driver.limits.read_text().split()
    assert (int(soft), int(hard)) == (100 << 20, 100 << 20) and one.id in cgroup


@pytest.mark.parametrize("name", ["create-symlinks", "enable-cuda-compat", "update-ldcache", "chmod"])
def test_each_hook_works_alone(pods: Pods, subject: Subject, driver: Driver, define: Define, name: str) -> None:
    """So that the outcomes side by side show which of them another runtime fails."""
    one = pods.run().container(image=subject.images.hosted(validation.TOOLS), **define(
        mounts=driver.mounts(), hooks=[edit for edit in driver.hooks() if edit["args"][1] == name]))
    check = {"create-symlinks": f"test -L {LIBRARIES}/libcuda.so", "enable-cuda-compat": f"grep -qx {COMPAT} /etc/ld.so.conf.d/00-compat-*",
             "update-ldcache": "/opt/ldconfig -p | grep -q libnvidia-ml.so.1", "chmod": "test $(stat -c %a /opt) = 711"}
    assert one.execute(check[name]).code == 0


@pytest.fixture
def outside() -> Iterator[Path]:
    """Files of the host to which links of the hostile images lead."""
    top = validation.OUTSIDE
    shutil.rmtree(top, ignore_errors=True)
    (top / "conf.d").mkdir(parents=True)
    (top / "conf.d").chmod(0o777)       # also a directory that all users may write
    for name in ("cache", "private"):
        (top / name).write_text("the host's\n")
        (top / name).chmod(0o644)
    yield top
    shutil.rmtree(top)


def contents(top: Path) -> list[tuple[str, int, str]]:
    return sorted((str(path), path.stat().st_mode, path.read_text() if path.is_file() else "") for path in (top, *top.rglob("*")))


@pytest.mark.parametrize("image", ["hostile-hooks", "hostile-hooks-directory"])
def test_hooks_in_a_hostile_image_change_nothing_outside(plain_pods: Pods, subject: Subject, driver: Driver, define: Define,
                                                         outside: Path, image: str) -> None:
    """The image has links in place of what the hooks write. Whether the container starts is not the point."""
    before = contents(outside)
    with contextlib.suppress(grpc.RpcError):
        plain_pods.run(userns=True).container(image=subject.images.tag(image), **define(mounts=driver.mounts(), hooks=driver.hooks()[:4]))
    assert contents(outside) == before


def test_a_link_in_place_of_the_cache_is_replaced(plain_pods: Pods, subject: Subject, driver: Driver, define: Define,
                                                  outside: Path) -> None:
    hooks = [edit for edit in driver.hooks() if edit["args"][1] == "update-ldcache"]
    one = plain_pods.run(userns=True).container(image=subject.images.tag("hostile-hooks"), **define(mounts=driver.mounts(), hooks=hooks))
    assert "libnvidia-ml.so.1" in one.output("test ! -L /etc/ld.so.cache && /opt/ldconfig -p")
    assert (outside / "cache").read_text() == "the host's\n"


def test_chmod_follows_links_of_the_image_with_the_hosts_users(plain_pods: Pods, subject: Subject, driver: Driver, define: Define,
                                                               outside: Path) -> None:
    """What docs/devices.md warns of: the hook runs as root of the host there. It is not a fault of the runtime."""
    hooks = [edit for edit in driver.hooks() if edit["args"][1] == "chmod"]
    plain_pods.run(userns=False).container(image=subject.images.tag("hostile-hooks"), **define(mounts=driver.mounts(), hooks=hooks))
    assert (outside / "private").stat().st_mode & 0o7777 == 0o711


def test_the_application_profile_has_the_gpus(pods: Pods, subject: Subject, driver: Driver, define: Define) -> None:
    node = {"path": "/dev/nvidia3", "type": "c", "major": 195, "minor": 3, "fileMode": 0o666}
    one = pods.run().container(image=subject.images.hosted(validation.TOOLS), **define(
        deviceNodes=[node], hooks=[driver.hook("update-application-profile")]))
    assert one.output("stat -c '%t %T' /dev/nvidia3") == "c3 3"
    assert '"EGLVisibleDGPUDevices",0x8]' in one.output("cat /etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf")
