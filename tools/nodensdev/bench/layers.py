# SPDX-License-Identifier: Apache-2.0
"""`tools/dev bench layers` and `tools/dev bench large`: images of many layers, nodens-cri beside containerd.

The first starts many pods of an image with small layers, the second pulls an image of many gigabytes and starts it.
"""
import inspect
import json
import os
import shutil
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import build, registry
from ..command import Failure
from ..env import cache, chroot, deps, goprograms
from ..images import layer
from ..images.layer import LayerTar
from ..images.layout import Layer, Layout
from ..project import BUILD, commit
from . import pulls, table

RESULTS = BUILD / "bench"
KINDS = ("containerd", "nodens-cri")
SCRIPT = "tests/component/cri-resilience/layers_bench.py"
NAME = "x/bench/many-gigabytes:1"
BASE = "e2e-test-images/busybox:1.37.0-2"
COPIES = 5          # of the image on the disk: layout, its tars, the registry, and one store with its downloads


HEADING = "Images of many layers"
METHOD = """*From the newest run of `tools/dev bench {kind}`: {date} UTC, commit {commit}, containerd {containerd}; {turns} in turns, natively on
the host ({cpus} CPUs, Linux {kernel}), load average {load:.1f} at the end.*
"""
FACTS = {
    "layers": """{pods} pods with a user namespace and one container each, of an image with {layers} small layers, 8 pods at a time.
A reader of the host's mount table (systemd is one) wakes up with each change; several at once count once.
""",
    "large": """An image of {gigabytes:.0f} GB in {layers} layers, pulled from a registry on loopback into an empty store.
""",
}


def make_large(path: Path, layers: int, layer_bytes: int) -> None:
    """Layers as those of `bench images`; the caller puts the shell's image below them."""
    layout, made = Layout.create(path / "layout"), list[Layer]()
    for number in range(layers):
        with LayerTar(path / f"{number}.tar") as tar:
            pulls.fill_layer(tar, number, layer_bytes)
        made.append(layout.add_layer(tar, "gzip"))
    shell = stored_layers(layout)
    layout.name(NAME, layout.add_manifest([*shell, *made], {"Cmd": ["/bin/sh"]}))
    layout.close()


def stored_layers(layout: Layout) -> list[Layer]:
    """The layers of the shell's image, from the registry's storage."""
    top = registry.storage.filled() / "docker/registry/v2"
    repository, tag = BASE.split(":")

    def blob(digest: str) -> bytes:
        plain = digest.removeprefix("sha256:")
        return (top / "blobs/sha256" / plain[:2] / plain / "data").read_bytes()

    found = json.loads(blob((top / "repositories" / repository / "_manifests/tags" / tag / "current/link").read_text().strip()))
    while "manifests" in found:
        found = json.loads(blob(found["manifests"][0]["digest"]))
    diff_ids = json.loads(blob(found["config"]["digest"]))["rootfs"]["diff_ids"]
    return [Layer(layout.put(blob(item["digest"]), item["mediaType"]), diff_id)
            for item, diff_id in zip(found["layers"], diff_ids, strict=True)]


def large_image(layers: int, size: int) -> Path:
    need, free = size * COPIES, shutil.disk_usage(BUILD.parent).free
    if free < need:
        raise Failure(f"this needs {need / 1e9:.0f} GB of disk, there are {free / 1e9:.0f} GB")
    code = [inspect.getsource(function) for function in (pulls.text_pool, pulls.fill_layer, make_large)]
    key = cache.key_of(*code, repr((NAME, BASE, layers, size, pulls.SIZES, pulls.TEXT_POOL)), Path(str(layer.__file__)).read_text())
    return cache.ensure("bench-images", "many-gigabytes", key, lambda path: make_large(path, layers, size // layers))


def measure(words: list[str], holds: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Runs the script in the Debian root; its figures, with where they come from."""
    deps.ensure()
    registry.storage.filled()
    for name in ("containerd", "registry"):
        goprograms.ensure(name)
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / "layers-raw.json"
    target.unlink(missing_ok=True)
    with chroot.prepared(chroot.Chroot(env={"NODENS_VARIANT": "release"}, holds=holds)) as inside:
        build.ensure(inside, "release")
        alone = replace(inside, chroot=replace(inside.chroot, new_netns=True))
        code = alone.run(["sh", "-c", 'ip link set lo up; exec "$@"', "sh", "python3", "-B", SCRIPT, *words, f"build/bench/{target.name}"])
    if code != 0 or not target.exists():
        raise Failure(f"the bench of layers ended with {code}")
    measured = json.loads(target.read_text())
    target.unlink()
    return {"commit": commit(), "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "cpus": os.cpu_count(),
            "kernel": os.uname().release.split("-")[0], "load": os.getloadavg()[0], "results": measured,
            "containerd": goprograms.pinned_version("containerd", "github.com/containerd/containerd/v2")}


def run_small(rounds: int, layers: int, pods: int) -> dict[str, Any]:
    return measure(["storm", str(layers), str(pods), str(rounds)]) | {"kind": "layers", "rounds": rounds, "layers": layers, "pods": pods}


def run_large(rounds: int, layers: int, size: int) -> dict[str, Any]:
    made = large_image(layers, size)
    words = ["large", str(chroot.seen_inside(made / "layout")), NAME, str(rounds)]
    return measure(words, (made,)) | {"kind": "large", "rounds": rounds, "layers": layers, "size": size}


def save(data: dict[str, Any]) -> Path:
    path = RESULTS / f"{data['kind']}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(data, indent=1))
    return path


# By benchmark: the title of a row, the measure, its factor, and whether it is a list of samples.
ROWS: dict[str, list[tuple[str, str, float, bool]]] = {
    "layers": [("one pod after the other, median (ms)", "one_pod_ms", 1, True), ("all pods, 8 at a time (s)", "seconds", 1, False),
               ("a pod of them, median (ms)", "pod_ms", 1, True), ("removal of all (s)", "removal_s", 1, False),
               ("CPU of the daemon and its workers (s)", "daemon_cpu_s", 1, False),
               ("daemon, peak RSS (MB)", "daemon_peak_kb", 1024 / 1e6, False), ("mounts of the host with all pods", "mounts", 1, False),
               ("mounts of the host, peak", "mounts_most", 1, False), ("changes of the mount table seen", "mount_changes", 1, False)],
    "large": [("PullImage (s)", "pull_s", 1, False), ("first start of a pod (s)", "first_start_s", 1, False),
              ("second start (ms)", "second_start_ms", 1, False), ("removal of pod and image (s)", "removal_s", 1, False),
              ("daemon, peak RSS (MB)", "daemon_peak_kb", 1024 / 1e6, False),
              ("its helpers, peak PSS (MB)", "helpers_peak_kb", 1024 / 1e6, False)],
}


def value(rounds: list[dict[str, Any]], name: str, factor: float, samples: bool) -> float:
    """The median over the rounds."""
    found = [sample for one in rounds for sample in one[name]] if samples else [one[name] for one in rounds]
    return statistics.median(found) * factor


def rows(data: dict[str, Any]) -> list[list[str]]:
    lines = [["", *KINDS, "ratio"]]
    for title, name, factor, samples in ROWS[data["kind"]]:
        theirs, ours = (value(data["results"][kind], name, factor, samples) for kind in KINDS)
        lines.append([title, *(f"{cell:,.0f}" if cell >= 100 or cell == int(cell) else f"{cell:.1f}" for cell in (theirs, ours)),
                      f"{ours / theirs:.2f}" if theirs else ""])
    return lines


def newest(kind: str) -> dict[str, Any] | None:
    found = sorted(RESULTS.glob(f"{kind}-2*.json"))
    return json.loads(found[-1].read_text()) if found else None


def section() -> str | None:
    """For docs/benchmarks.md: of both, as far as they were measured here."""
    parts = []
    for kind, facts in FACTS.items():
        data = newest(kind)
        if data is None:
            continue
        turns = "1 round" if data["rounds"] == 1 else f"{data['rounds']} rounds"
        text = facts.format(**data, gigabytes=data.get("size", 0) / 1e9)
        parts.append(f"{METHOD.format(**data, turns=turns)}\n{text}\n{table.as_markdown(rows(data))}\n")
    return "\n".join([f"## {HEADING}", *parts]) if parts else None


def as_text(data: dict[str, Any]) -> str:
    lines = rows(data)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
