# SPDX-License-Identifier: Apache-2.0
"""The images of the CRI validation tests, small and each with one thing to look at, in a registry that a runtime can reach."""
from dataclasses import dataclass, field

import images as make
import parts
import real

USERS = {"user-uid": "1002", "user-uid-group": "1003:users", "user-name": "www-data", "user-name-group": "www-data:100"}


def image(content: str, user: str = "") -> make.Image:
    """An image of two layers, the lower of which all of them share."""
    base = make.tar(make.directory("etc"), make.entry("etc/passwd", b"root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\n"))
    made = make.Image(config={"architecture": "amd64", "os": "linux", "config": {"User": user} if user else {}})
    return made.layer(base).layer(make.tar(make.entry("content", content.encode())))


@dataclass
class Names:
    """References to the images, by what they are for."""

    registry: str
    second: str = parts.SECOND
    digests: dict[str, str] = field(default_factory=dict)

    def tag(self, name: str, tag: str = "latest") -> str:
        return f"{self.registry}/validation/{name}:{tag}"

    def elsewhere(self, name: str, tag: str = "latest") -> str:
        return f"{self.second}/validation/{name}:{tag}"

    def digest(self, name: str) -> str:
        return f"{self.registry}/validation/{name}@{self.digests[name]}"


def publish(site: real.Site, registry: str | None = None) -> Names:
    names = Names(registry or site.name)
    tags = {"tag": ["test"], "latest": ["latest"], "digest": ["latest"], "1": ["latest"], "2": ["latest"], "3": ["latest"], "tags": ["1", "2", "3"],
            "two-registries": ["latest"]}
    for name, each in tags.items():
        for tag in each:
            one = image(name)
            real.Site.publish(site, one, f"validation/{name}:{tag}")
            names.digests[name] = make.digest(one.manifest().data)
    for name, user in USERS.items():
        real.Site.publish(site, image(name, user), f"validation/{name}:latest")
    ours, theirs = image("multi"), make.Image(config={"architecture": "arm64", "os": "linux"}).layer(make.tar(make.entry("arm", b"x")))
    index = make.index((theirs.manifest(), {"os": "linux", "architecture": "arm64"}), (ours.manifest(), {"os": "linux", "architecture": "amd64"}))
    real.Site.publish(site, index, "validation/multi:latest", (ours, theirs))
    names.digests["multi"] = make.digest(index.data)
    return names
