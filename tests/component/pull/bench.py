# SPDX-License-Identifier: Apache-2.0
"""Pulls and unpacks one image with our helpers and with containerd, in turns.

    tools/dev shell -- python3 tests/component/pull/bench.py [--layers 10] [--mebibytes 100]
                                                             [--rounds 3] [--small]

Both use the same registry and the same disk. Prints wall-clock and CPU seconds (on a busy host only
the latter compare), the ratios, and the memory of the processes (proportional set size, summed,
sampled while it runs).
"""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import threading
import time
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from nodenstest import images as make
from nodenstest import puller, registry_server

TREE = Path("/usr")     # source of the images' files: programs, libraries, documentation


def real_files(limit: int) -> list[Path]:
    """Files of this root, in an order that mixes kinds and sizes and is the same every time."""
    found = sorted(path for path in TREE.rglob("*") if path.is_file() and not path.is_symlink() and path.stat().st_size <= limit)
    random.Random(1).shuffle(found)
    return found


def build_layer(number: int, mebibytes: int, small: bool) -> tuple[bytes, str]:
    left, files = mebibytes << 20, real_files(60000 if small else 64 << 20)
    entries: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    source = random.Random(number)
    source.shuffle(files)
    for path in files:
        if left <= 0:
            break
        name = f"layer{number}{path}"
        for parent in reversed(Path(name).parents[:-1]):
            entries.setdefault(str(parent), make.directory(str(parent)))
        # One line per layer makes its files differ from those of other layers.
        entries[name] = make.entry(name, path.read_bytes() + b"layer %d\n" % number, mode=path.stat().st_mode & 0o7777)
        left -= path.stat().st_size
    data = make.tar(*entries.values())
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush(), make.digest(data)


def build_image(layers: int, mebibytes: int, small: bool) -> make.Image:
    image = make.Image()
    with ProcessPoolExecutor(2) as pool:
        for data, diff_id in pool.map(build_layer, range(layers), [mebibytes] * layers, [small] * layers):
            image.layers.append(make.Blob(data, make.LAYER + "+gzip"))
            image.diff_ids.append(diff_id)
    return image


class Memory(threading.Thread):
    """Samples the memory of processes and their descendants."""

    def __init__(self, *pids: int) -> None:
        super().__init__(daemon=True)
        self.pids, self.peak, self.largest, self.running = pids, 0, 0, True
        self.start()

    def run(self) -> None:
        while self.running:
            sizes = [size for size in map(proportional, family(self.pids)) if size]
            self.peak, self.largest = max(self.peak, sum(sizes)), max([self.largest, *sizes])
            time.sleep(0.05)


def family(pids: tuple[int, ...]) -> list[int]:
    found, parents = list(pids), {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rsplit(") ", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
    for one in found:
        found += [child for child, parent in parents.items() if parent == one and child not in found]
    return found


def proportional(pid: int) -> int:
    try:
        return next(int(line.split()[1]) for line in open(f"/proc/{pid}/smaps_rollup") if line.startswith("Pss:")) * 1024
    except (OSError, StopIteration):
        return 0


def processor_seconds(pid: int) -> float:
    """CPU seconds of a process and its exited children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def pull_ours(site: registry_server.Site, reference: str, directory: Path) -> tuple[float, float, int, int]:
    store = puller.Store(directory / "ours")
    site.trust(store)
    running = puller.Running(store, store.staging(), puller.request(reference, store))
    memory = Memory(*running.sessions())
    before = processor_seconds(os.getpid()) - own_seconds()
    result = running.finish(600)
    used = processor_seconds(os.getpid()) - own_seconds() - before
    memory.running = False
    assert result.done
    shutil.rmtree(directory / "ours")
    return result.seconds, used, memory.peak, memory.largest


def own_seconds() -> float:
    """CPU seconds of this process itself."""
    times = os.times()
    return times.user + times.system


class Containerd:
    """A separate containerd, for pulls only."""

    def __init__(self, site: registry_server.Site, directory: Path) -> None:
        self.site, self.directory = site, directory
        self.hosts = directory / "certs.d" / f"{registry_server.testbed.HOST}_{site.port}_"
        self.hosts.mkdir(parents=True)
        (self.hosts / "hosts.toml").write_text(f'server = "https://{site.name}"\n[host."https://{site.name}"]\n  ca = "{site.authority}"\n')
        self.socket = directory / "containerd.sock"
        (directory / "config.toml").write_text(f'version = 3\nroot = "{directory}/root"\nstate = "{directory}/state"\n'
                                               f'disabled_plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", '
                                               f'"io.containerd.grpc.v1.cri"]\n'
                                               f'[grpc]\n  address = "{self.socket}"\n[ttrpc]\n  address = "{self.socket}.ttrpc"\n')
        self.process = subprocess.Popen([str(registry_server.program("containerd", "containerd")), "--config",
                                         str(directory / "config.toml")],
                                        stdout=open(directory / "log", "wb"), stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 20
        while not self.socket.exists() and time.monotonic() < deadline:
            time.sleep(0.1)

    def ctr(self, *arguments: str) -> None:
        done = subprocess.run([str(registry_server.program("containerd", "ctr")), "-a", str(self.socket), *arguments], capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr + (self.directory / "log").read_text()[-2000:]

    def pull(self, reference: str) -> tuple[float, float]:
        began, before = time.monotonic(), processor_seconds(self.process.pid) + processor_seconds(os.getpid()) - own_seconds()
        self.ctr("images", "pull", "--hosts-dir", str(self.hosts.parent), reference)
        seconds = time.monotonic() - began
        used = processor_seconds(self.process.pid) + processor_seconds(os.getpid()) - own_seconds() - before
        self.ctr("images", "rm", "--sync", reference)
        return seconds, used

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--mebibytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="many small files")
    args = parser.parse_args()
    image = build_image(args.layers, args.mebibytes, args.small)
    with registry_server.serving("none") as site, puller.scratch() as directory:
        reference = site.publish(image, "bench/image:1")
        (directory / "containerd").mkdir()
        theirs = Containerd(site, directory / "containerd")
        ours: list[tuple[float, float]] = []
        other: list[tuple[float, float]] = []
        for _ in range(args.rounds):
            os.sync()
            seconds, used, peak, largest = pull_ours(site, reference, directory)
            ours.append((seconds, used))
            os.sync()
            other.append(theirs.pull(reference))
            print(f"nodens {seconds:.2f} s, processors {used:.2f} s, memory {peak / 1e6:.1f} MB in all, largest process "
                  f"{largest / 1e6:.1f} MB; "
                  f"containerd {other[-1][0]:.2f} s, processors {other[-1][1]:.2f} s", flush=True)
        theirs.end()
    for number, what in enumerate(("clock", "processors")):
        mine, its = (statistics.median(one[number] for one in runs) for runs in (ours, other))
        print(f"{args.layers} layers of {args.mebibytes} MiB, {what}: nodens {mine:.2f} s, containerd {its:.2f} s, ratio {mine / its:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
