# SPDX-License-Identifier: Apache-2.0
"""`tools/dev bench images`: pull and unpack of a large image, nodens-cri beside containerd.

It measures time and memory.
"""
import inspect
import json
import os
import random
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .. import build
from ..command import Failure
from ..env import cache, chroot, deps, goprograms
from ..images import layer
from ..images.layer import LayerTar
from ..images.layout import Layer, Layout
from ..project import BUILD, commit

NAME = "x/bench/large:1"
LAYERS, LAYER_BYTES = 10, 100 << 20
SIZES = (200, 900, 2500, 6000, 15000, 40000, 120000, 500000, 2 << 20)
TEXT_POOL = 4 << 20
RESULTS = BUILD / "bench"
KINDS = ("nodens-cri", "containerd")
RATIO_AIM, DAEMON_AIM_MB, HELPER_AIM_MB = 0.8, 5.0, 20.0

METHOD = """## Pulling a large image
*From the newest run of `tools/dev bench images`: {rounds} pulls each, in turns.*

- The image has {layers} gzip layers, {size_mb:.0f} MB in {files:,} files when unpacked, {packed_mb:.0f} MB compressed.
  A third of it is incompressible; it is generated from fixed seeds.
- Both runtimes run natively on the host ({cpus} CPUs), with a registry on loopback with TLS; each pull has an empty store on the
  same disk and a newly started daemon.
  The time is that of PullImage.
  nodens-cri returns when the image is on disk (one syncfs); containerd returns before its unpacked files are, so the table also has
  the time of the next sync.
- Memory of the helper: the largest sum of the proportional set sizes of its processes during a pull, and the resident set of
  the largest of them.
"""


def text_pool(source: random.Random) -> bytes:
    words = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(2, 11))) for _ in range(3000)]
    return " ".join(source.choices(words, k=TEXT_POOL // 7)).encode()


def fill_layer(tar: LayerTar, number: int, size: int = LAYER_BYTES) -> int:
    """Files of all sizes until the layer is full; a third of the bytes do not compress. Returns how many."""
    source, left, count = random.Random(number), size, 0
    pool = text_pool(source)
    tar.directory(f"layer{number}")
    while left > 0:
        piece = min(left, source.choice(SIZES))
        if count % 40 == 0:
            tar.directory(f"layer{number}/d{count // 40}")
        start = source.randrange(len(pool) - min(piece, len(pool) // 2))
        data = source.randbytes(piece) if count % 3 == 0 else (pool[start:start + piece] * 2)[:piece].ljust(piece, b"\n")
        tar.file(f"layer{number}/d{count // 40}/f{count}", data, 0o755 if count % 5 == 0 else 0o644)
        left, count = left - piece, count + 1
    return count


def make_image(path: Path) -> None:
    layout = Layout.create(path / "layout")

    def make_layer(number: int) -> tuple[Layer, int]:
        with LayerTar(path / f"{number}.tar") as tar:
            count = fill_layer(tar, number)
        return layout.add_layer(tar, "gzip"), count

    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(make_layer, range(LAYERS)))
    layout.name(NAME, layout.add_manifest([one for one, _ in made], {"Cmd": ["/bin/true"]}))
    layout.close()
    facts = {"layers": LAYERS, "files": sum(count for _, count in made), "size": LAYERS * LAYER_BYTES,
             "packed": sum(one.blob.size for one, _ in made)}
    (path / "facts.json").write_text(json.dumps(facts))


def image() -> Path:
    code = [inspect.getsource(function) for function in (text_pool, fill_layer, make_image)]
    key = cache.key_of(*code, repr((NAME, LAYERS, LAYER_BYTES, SIZES, TEXT_POOL)), Path(str(layer.__file__)).read_text())
    return cache.ensure("bench-images", "large", key, make_image)


def run(rounds: int) -> dict[str, Any]:
    """The raw figures, with where they come from."""
    made = image()
    for name in ("containerd", "registry"):
        goprograms.ensure(name)
    deps.ensure()
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / "images-raw.json"
    target.unlink(missing_ok=True)
    place = chroot.Chroot(env={"NODENS_VARIANT": "release"}, holds=(made,))
    with chroot.prepared(place) as inside:
        build.ensure(inside, "release")
        code = inside.run(["python3", "-B", "tests/component/cri/pull_bench.py", str(chroot.seen_inside(made / "layout")), NAME,
                           str(rounds),
                           f"build/bench/{target.name}"])
    if code != 0 or not target.exists():
        raise Failure(f"the bench of pulls ended with {code}")
    measured = json.loads(target.read_text())
    target.unlink()
    facts = json.loads((made / "facts.json").read_text())
    return {"commit": commit(), "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()), "rounds": rounds, "cpus": os.cpu_count(),
            "load": os.getloadavg()[0], "image": facts, "results": measured,
            "containerd": goprograms.pinned_version("containerd", "github.com/containerd/containerd/v2")}


def save(data: dict[str, Any]) -> Path:
    path = RESULTS / f"images-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(data, indent=1))
    return path


def newest() -> dict[str, Any] | None:
    found = sorted(RESULTS.glob("images-2*.json"))
    return json.loads(found[-1].read_text()) if found else None


def median(data: dict[str, Any], kind: str, name: str) -> float:
    return statistics.median(one[name] for one in data["results"][kind])


def ratio(data: dict[str, Any]) -> float:
    return median(data, "nodens-cri", "seconds") / median(data, "containerd", "seconds")


def megabytes(kilobytes: float) -> str:
    return f"{kilobytes * 1024 / 1e6:.1f}"


def time_row(data: dict[str, Any], title: str, names: tuple[str, ...], aim: str) -> list[str]:
    """The medians of the sums of these times, and their ratio."""
    ours, theirs = (statistics.median(sum(one[name] for name in names) for one in data["results"][kind]) for kind in KINDS)
    return [title, f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.2f}", aim]


def memory_row(data: dict[str, Any], title: str, name: str, aim: str) -> list[str]:
    return [title, *(megabytes(median(data, kind, name)) for kind in KINDS), "", aim]


def rows(data: dict[str, Any]) -> list[list[str]]:
    helper = data["results"]["memory"]
    largest = f"helper, largest of {helper['processes']} processes, RSS (MB)"
    return [
        ["", *KINDS, "ratio", "aim"],
        time_row(data, "PullImage, median (s)", ("seconds",), f"{RATIO_AIM}"),
        time_row(data, "PullImage and the next sync, median (s)", ("seconds", "sync_after"), ""),
        memory_row(data, "daemon idle, RSS (MB)", "idle_rss_kb", f"{DAEMON_AIM_MB:.0f}"),
        memory_row(data, "daemon idle, PSS (MB)", "idle_pss_kb", ""),
        memory_row(data, "daemon after the pull, RSS (MB)", "after_rss_kb", ""),
        ["helper, sum of PSS (MB)", megabytes(helper["pss_sum_kb"]), "in the daemon", "", f"{HELPER_AIM_MB:.0f}"],
        [largest, megabytes(helper["rss_largest_kb"]), "in the daemon", "", f"{HELPER_AIM_MB:.0f}"],
    ]


def section(data: dict[str, Any]) -> str:
    """For docs/benchmarks.md."""
    from . import table
    facts = data["image"]
    head = METHOD.format(rounds=data["rounds"], layers=facts["layers"], size_mb=facts["size"] / 1e6, files=facts["files"],
                         packed_mb=facts["packed"] / 1e6, cpus=data["cpus"])
    return (f"{head}\n{data['date']} UTC, commit {data['commit']}, containerd {data['containerd']}, "
            f"load average {data['load']:.1f} at the end.\n\n"
            f"{table.as_markdown(rows(data))}\n")


def as_text(data: dict[str, Any]) -> str:
    lines = rows(data)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
