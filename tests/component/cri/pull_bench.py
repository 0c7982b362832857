# SPDX-License-Identifier: Apache-2.0
"""Measures pulls of one image, nodens-cri beside containerd, in turns.

    python3 tests/component/cri/pull_bench.py LAYOUT NAME ROUNDS RESULT.json

It runs in the Debian root; `tools/dev bench images` prepares it and reports the result. Each pull
has a registry on loopback (TLS, its files in the page cache), an empty store on the same disk, and
a daemon that was just started. Memory is sampled in a separate pull, which is not timed.
"""
import contextlib
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

from nodensdev.images.layout import Layout
from nodenstest import runtimes

INTERVAL = 0.1
NICE = -15


def memory(pid: int) -> dict[str, int]:
    """A process's resident and proportional set, in KiB; nothing when it is gone."""
    try:
        lines = [line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]]
    except OSError:
        return {}
    return {words[0].rstrip(":").lower(): int(words[1]) for words in lines if words[0] in ("Rss:", "Pss:", "Pss_Anon:")}


def below(pid: int) -> list[int]:
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                found += [child, *below(child)]
    except OSError:
        pass
    return found


def go_first(pid: int) -> None:
    """Keeps other load on the host out of the figures. If the kernel schedules by session, a session has its own priority."""
    with contextlib.suppress(OSError):     # it has ended, or we may not
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
        Path(f"/proc/{pid}/autogroup").write_text(str(NICE))


class Raiser(threading.Thread):
    """Lets what a daemon starts go first too, since a helper may have a session of its own."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.running = pid, True
        self.start()

    def run(self) -> None:
        seen: set[int] = set()
        while self.running:
            for child in set(below(self.pid)) - seen:
                go_first(child)
                seen.add(child)
            time.sleep(0.02 if len(seen) < 4 else 0.2)


class Sampler(threading.Thread):
    """The helper's processes, while they run: the largest sum of their proportional sets, the largest resident set of one."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.running = pid, True
        self.peaks = {"pss_sum_kb": 0, "pss_anon_sum_kb": 0, "rss_largest_kb": 0, "processes": 0, "daemon_rss_kb": 0}
        self.start()

    def run(self) -> None:
        while self.running:
            sizes = [size for size in map(memory, below(self.pid)) if size]
            now = {"pss_sum_kb": sum(size["pss"] for size in sizes), "pss_anon_sum_kb": sum(size["pss_anon"] for size in sizes),
                   "rss_largest_kb": max((size["rss"] for size in sizes), default=0), "processes": len(sizes),
                   "daemon_rss_kb": memory(self.pid).get("rss", 0)}
            self.peaks = {name: max(value, now[name]) for name, value in self.peaks.items()}
            time.sleep(INTERVAL)


def one_pull(kind: str, site: runtimes.registry_server.Site, name: str, messages: runtimes.Messages,
             sampled: bool = False) -> dict[str, Any]:
    with runtimes.scratch() as directory:
        runtime = runtimes.KINDS[kind](directory / "r", messages)
        runtimes.trust(site, runtime.certificates)
        client = runtime.start()
        assert runtime.process
        go_first(runtime.process.pid)
        time.sleep(1)
        idle = memory(runtime.process.pid)
        sampler = Sampler(runtime.process.pid) if sampled else None
        raiser = Raiser(runtime.process.pid)
        os.sync()
        began = time.monotonic()
        client.pull(name)
        seconds = time.monotonic() - began
        raiser.running = False
        if sampler:
            sampler.running = False
            sampler.join()
        time.sleep(0.5)
        found = {"seconds": seconds, "idle_rss_kb": idle["rss"], "idle_pss_kb": idle["pss"],
                 "after_rss_kb": memory(runtime.process.pid)["rss"],
                 "size": client.images.ImageStatus(client.pb.ImageStatusRequest(image=client.pb.ImageSpec(image=name)),
                                                   timeout=30).image.size}
        client.close()
        runtime.stop()
        began = time.monotonic()
        os.sync()
        found["sync_after"] = time.monotonic() - began     # data acknowledged and not yet on disk
        runtimes.unmount_below(directory / "r")
        shutil.rmtree(directory / "r")
        return found | (sampler.peaks if sampler else {})


def main() -> int:
    layout, image, rounds, result = Layout.open(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    messages = runtimes.messages()
    go_first(os.getpid())
    found: dict[str, Any] = {kind: [] for kind in runtimes.SIDE_BY_SIDE}
    with runtimes.registry(images=False) as site:
        site.client().push(layout, image)
        name = f"{site.name}/{image.partition('/')[2]}"
        for number in range(rounds):
            for kind in runtimes.SIDE_BY_SIDE[::-1 if number % 2 else 1]:
                found[kind].append(one_pull(kind, site, name, messages))
                print(f"{kind}: {found[kind][-1]['seconds']:.2f} s", flush=True)
        found["memory"] = one_pull("nodens-cri", site, name, messages, sampled=True)
    result.write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
