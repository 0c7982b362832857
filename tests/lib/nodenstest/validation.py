# SPDX-License-Identifier: Apache-2.0
"""The images of the CRI validation tests, small and each with one thing to look at, in a registry that a runtime can reach."""
import json
from dataclasses import dataclass, field

from . import images as make
from . import registry_server, runtimes

USERS = {"user-uid": "1002", "user-uid-group": "1003:users", "user-name": "www-data", "user-name-group": "www-data:100"}

SHELL = "e2e-test-images/busybox:1.37.0-2"
TOOLS = "e2e-test-images/agnhost:2.66.1"            # a small Debian with more programs, and a user who is in a group
OUTSIDE = runtimes.SCRATCH / "nodens-outside"        # where links of hostile images lead
NEW_PRIVILEGES = "e2e-test-images/nonewprivs:1.4"


def stored(site: registry_server.Site, name: str) -> make.Image:
    """An image that the registry has, to put layers on."""
    repository, tag = name.split(":")
    top = site.directory / "storage/docker/registry/v2"

    def blob(digest: str) -> bytes:
        plain = digest.removeprefix("sha256:")
        return (top / "blobs/sha256" / plain[:2] / plain / "data").read_bytes()

    found = json.loads(blob((top / "repositories" / repository / "_manifests/tags" / tag / "current/link").read_text().strip()))
    while "manifests" in found:
        found = json.loads(blob(found["manifests"][0]["digest"]))
    config = json.loads(blob(found["config"]["digest"]))
    layers = [make.Blob(blob(layer["digest"]), layer["mediaType"]) for layer in found["layers"]]
    diff_ids = config.pop("rootfs")["diff_ids"]
    config.pop("history", None)
    return make.Image(layers, diff_ids, config)


def pod_images(site: registry_server.Site) -> dict[str, make.Image]:
    """Images that the tests of pods need beyond the testbed's."""
    found = {name: stored(site, SHELL) for name in ("volume", "hostile-volume", "owners", "environment", "signal", "hostile-users")}
    found["volume"].config["config"]["Volumes"] = {"/data": {}, "/var/empty/": {}, "/link": {}}
    found["volume"].layer(make.tar(make.directory("behind"), make.symlink("link", "../../behind"), make.entry("behind/linked", b"linked")))
    found["hostile-volume"].config["config"]["Volumes"] = {"/to-proc": {}}
    found["hostile-volume"].layer(make.tar(make.directory("proc"), make.symlink("to-proc", "/proc")))
    found["volume"].layer(make.tar(make.directory("data", uid=1000, gid=1000, mode=0o750),
                                   make.entry("data/from-image", b"image", uid=1000, gid=1000)))
    found["owners"].layer(make.tar(make.directory("owners"),
                                   *(make.entry(f"owners/{n}", b"", uid=n, gid=n) for n in (0, 1000, 65535, 65536, 200000))))
    found["environment"].config["config"] |= {"Env": ["PATH=/bin:/odd", "FROM_IMAGE=1", "BOTH=image"], "WorkingDir": "/made/by/runtime",
                                              "Entrypoint": ["echo", "entry"], "Cmd": ["default"], "Labels": {"io.nodens.test": "label"}}
    found["signal"].config["config"]["StopSignal"] = "SIGUSR1"
    found["hostile-users"].layer(make.tar(make.symlink("etc/passwd", "/proc/1/environ"),
                                          make.symlink("etc/group", "../../../../etc/nodens-planted")))
    found |= {name: stored(site, TOOLS) for name in ("hostile-hooks", "hostile-hooks-directory")}
    found["hostile-hooks"].layer(make.tar(make.symlink("etc/ld.so.cache", f"{OUTSIDE}/cache"), make.symlink("mnt", f"{OUTSIDE}/private"),
                                          make.symlink("made", str(OUTSIDE))))
    found["hostile-hooks-directory"].layer(make.tar(make.symlink("etc/ld.so.conf.d", f"{OUTSIDE}/conf.d"),
                                                    make.symlink("etc/ld.so.cache~", f"../../../..{OUTSIDE}/cache")))
    return found


def image(content: str, user: str = "") -> make.Image:
    """An image of two layers, the lower of which all of them share."""
    base = make.tar(make.directory("etc"), make.entry("etc/passwd", b"root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\n"))
    made = make.Image(config={"architecture": "amd64", "os": "linux", "config": {"User": user} if user else {}})
    return made.layer(base).layer(make.tar(make.entry("content", content.encode())))


@dataclass
class Names:
    """References to the images, by what they are for."""

    registry: str
    second: str = runtimes.SECOND
    digests: dict[str, str] = field(default_factory=dict)

    def tag(self, name: str, tag: str = "latest") -> str:
        return f"{self.registry}/validation/{name}:{tag}"

    def hosted(self, name: str) -> str:
        """One of the testbed's own images."""
        return f"{self.registry}/{name}"

    @property
    def shell(self) -> str:
        return self.hosted(SHELL)

    def elsewhere(self, name: str, tag: str = "latest") -> str:
        return f"{self.second}/validation/{name}:{tag}"

    def digest(self, name: str) -> str:
        return f"{self.registry}/validation/{name}@{self.digests[name]}"


def publish(site: registry_server.Site, registry: str | None = None) -> Names:
    names = Names(registry or site.name)
    tags = {"tag": ["test"], "latest": ["latest"], "digest": ["latest"], "1": ["latest"], "2": ["latest"], "3": ["latest"],
            "tags": ["1", "2", "3"],
            "two-registries": ["latest"]}
    for name, each in tags.items():
        for tag in each:
            one = image(name)
            registry_server.Site.publish(site, one, f"validation/{name}:{tag}")
            names.digests[name] = make.digest(one.manifest().data)
    for name, made in pod_images(site).items():
        registry_server.Site.publish(site, made, f"validation/{name}:latest")
    for name, user in USERS.items():
        registry_server.Site.publish(site, image(name, user), f"validation/{name}:latest")
    ours, theirs = image("multi"), make.Image(config={"architecture": "arm64", "os": "linux"}).layer(make.tar(make.entry("arm", b"x")))
    index = make.index((theirs.manifest(), {"os": "linux", "architecture": "arm64"}),
                       (ours.manifest(), {"os": "linux", "architecture": "amd64"}))
    registry_server.Site.publish(site, index, "validation/multi:latest", (ours, theirs))
    names.digests["multi"] = make.digest(index.data)
    return names
