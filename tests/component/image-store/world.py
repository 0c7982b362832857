# SPDX-License-Identifier: Apache-2.0
"""The images that the store's tests pull, how their layers must look, and what must be true of a store at any time."""
import json
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodenstest import images as make
from nodenstest import runtimes, tree

COUNT, SHARED = 6, 3


@dataclass
class Known:
    """The images by name, and the fingerprints of all layers by their chain."""

    names: list[str] = field(default_factory=list)
    chains: dict[str, list[str]] = field(default_factory=dict)      # of an image
    layers: dict[str, str] = field(default_factory=dict)            # of a layer: what it must be


def layer(seed: str, files: int = 12) -> bytes:
    source = random.Random(seed)
    entries = [make.directory(f"d-{seed}", mode=0o750, uid=source.randrange(1000))]
    for number in range(files):
        size = source.choice([0, 300, 5000, 40000])
        entries.append(make.entry(f"d-{seed}/f{number}", source.randbytes(size), uid=number, mode=0o4755 if number == 3 else 0o640))
    return make.tar(*entries, make.hardlink(f"d-{seed}/link", f"d-{seed}/f0"), make.symlink(f"d-{seed}/soft", "f1"),
                    make.entry(f"d-{seed}/.wh.f99"))


def image(number: int) -> make.Image:
    """Half of the layers belong to all images, the rest to this one."""
    made = make.Image(config={"architecture": "amd64", "os": "linux", "config": {"Env": [f"NUMBER={number}"]}})
    for position in range(SHARED):
        made.layer(layer(f"shared-{position}"))
    for position in range(number + 1):
        made.layer(layer(f"{number}-{position}"), "zstd" if position % 2 else "gzip")
    return made


def chains_of(client: Any, name: str) -> list[str]:
    request = client.pb.ImageStatusRequest(image=client.pb.ImageSpec(image=name), verbose=True)
    answer = client.images.ImageStatus(request, timeout=30)
    return [chain.removeprefix("sha256:") for chain in json.loads(answer.info["info"])["layers"]]


def learn(site: runtimes.registry_server.Site, directory: Path, messages: runtimes.Messages) -> Known:
    runtime = runtimes.NodensCri(directory / "calm", messages)
    runtimes.trust(site, runtime.certificates)
    client = runtime.start()
    known = Known()
    for number in range(COUNT):
        name = site.publish(image(number), f"store/image{number}:1")
        client.pull(name)
        known.names.append(name)
        known.chains[name] = chains_of(client, name)
    assert runtime.store
    known.layers = {path.name: fingerprint(path) for path in (runtime.store / "layers").iterdir()}
    assert set(known.layers) == {chain for chains in known.chains.values() for chain in chains}
    client.close()
    assert runtime.stop() == 0, runtime.tail()
    return known


def fingerprint(layer: Path) -> str:
    """Of the tree, but for the times of directories that no archive names, and of the layer's description."""
    entries = tree.walk(layer / "fs")
    del entries["."]
    return repr(sorted(entries.items())) + (layer / "layer.json").read_text()


def listed(client: Any) -> dict[str, list[str]]:
    """Names by image."""
    return {image.id: [*image.repo_tags, *image.repo_digests]
            for image in client.images.ListImages(client.pb.ListImagesRequest(), timeout=30).images}


def check(store: Path, client: Any, known: Known) -> set[str]:
    """Fails unless the store is consistent; the tags that are listed."""
    found = listed(client)
    names = [name for each in found.values() for name in each]
    assert len(names) == len(set(names)), f"a name on two images: {found}"
    assert all(found.values()), f"an image without a name: {found}"
    for path in (store / "layers").iterdir():
        assert path.name in known.layers, f"a layer that no image has: {path.name}"
        assert fingerprint(path) == known.layers[path.name], f"layer {path.name} is not as it was unpacked"
    tags = {name for name in names if "@" not in name}
    for tag in tags:
        assert chains_of(client, tag) == known.chains[tag]
        missing = [chain for chain in known.chains[tag] if not (store / "layers" / chain / "fs").is_dir()]
        assert not missing, f"{tag} is listed without its layers {missing}"
    return tags


def wait_until_swept(store: Path, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while (left := sorted(path.name for path in (store / "staging").iterdir())) != ["partial"]:
        assert time.monotonic() < deadline, f"staging still has {left}"
        time.sleep(0.05)
