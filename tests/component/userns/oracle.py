# SPDX-License-Identifier: Apache-2.0
"""Compares nodens' user namespace manager with the kubelet's own code.

    python3 tests/component/userns/oracle.py --driver build/gcc/tests/component/userns/driver
            --oracle .../oracle [--histories N] [--seed N]

Four parts: generated histories of a node (judge.py), outputs of getsubids, the limits of idsPerPod,
and the range that each side finds on a host with or without a user `kubelet`. Prints the coverage
and how often each deliberate difference occurred, and exits with 1 at the first other difference.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import judge
from histories import SPACE, UNIT, draw
from sides import Side


def compare_histories(ours: Side, theirs: Side, seed: int, numbers: range) -> None:
    tally = judge.Tally()
    steps = 0
    started = time.monotonic()
    for number in numbers:
        history = draw(seed, number)
        try:
            steps += judge.Run(ours, theirs, tally).run(history)
        except (judge.Mismatch, AssertionError) as problem:
            print(f"history {number} of seed {seed} ({history.settings}): {problem}")
            print("\n".join(f"  {at}. {step}"[:400] for at, step in enumerate(history.steps, 2)))
            raise
    print(f"{len(numbers)} histories, {steps} steps in {time.monotonic() - started:.1f} s: same verdicts, texts and files except for")
    for point, meaning in judge.DIFFERENCES.items():
        print(f"  {tally.differences[point]:7}  ({point}) {meaning}")
    print("answers: " + ", ".join(f"{count} {what}" for what, count in sorted(tally.answers.items())))
    print("refusals met: " + ", ".join(f"{count} '{text}'" for text, count in tally.refusals.items()))
    if len(numbers) >= 5000 and (unseen := tally.unseen() + [point for point in judge.DIFFERENCES if not tally.differences[point]]):
        raise judge.Mismatch(f"never seen: {unseen}; the histories do not reach everything")


def draw_subids(rng: random.Random) -> bytes:
    words = ["0:", "kubelet", "65536", "2147483648", "4294967295", "4294967296", "0", "-1", "+1", "1_0", "0x10", "007", "9" * 30,
             "9" * 30 + "x", "4294967296x", "\u00e9", "\u200b", "\x7f", "\x01", '"', "\\", "1.5", "", "65536x"]
    if rng.random() < 0.2:
        return b"0: kubelet %d %d\n" % (rng.randrange(SPACE), rng.randrange(SPACE))
    count = rng.choice([4, 4, 4, 4, 4, 3, 5, 0, 8])
    start = ["0:", "kubelet"] if rng.random() < 0.7 else []
    chosen = (start + [rng.choice(words) for _ in range(count)])[:count]
    before = rng.choice(["", "\n", " ", "\n\n"])
    between = rng.choice([" ", "  ", "\t", "\v", "\f", "\r", " \t"])
    after = rng.choice(["\n", "", "\n\n", " \n", "\r\n", "\n0: kubelet 1 1\n"])
    data = (before + between.join(chosen) + after).encode()
    return data if rng.random() < 0.95 else data + rng.choice([b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf0\x9f\x98\x80"])


def compare_subids(ours: Side, theirs: Side, rng: random.Random, count: int) -> None:
    refused = 0
    for _ in range(count):
        text = draw_subids(rng)
        ours_says, theirs_says = ours.ask(op="subids", hex=text.hex()), theirs.ask(op="subids", hex=text.hex())
        refused += "error" in theirs_says
        if ours_says != theirs_says:
            raise judge.Mismatch(f"getsubids printed {text!r}: nodens {ours_says}, kubelet {theirs_says}")
    print(f"{count} outputs of getsubids: same answer ({count - refused} ranges, {refused} refusals)")


def compare_ids_per_pod(ours: Side, theirs: Side, rng: random.Random) -> None:
    values = [0, 1, UNIT - 1, UNIT, UNIT + 1, 2 * UNIT, SPACE - UNIT, SPACE - 1, SPACE, SPACE + UNIT, 2**63 - 1, 2**63 - UNIT, -1, -UNIT,
              -2**63]
    values += [rng.randrange(-SPACE, 2 * SPACE) for _ in range(500)]
    values += [rng.randrange(0, 2 * SPACE // UNIT) * UNIT for _ in range(500)]
    for value in values:
        ours_says, theirs_says = ours.ask(op="idsPerPod", value=value), theirs.ask(op="idsPerPod", value=value)
        if ours_says != theirs_says:
            raise judge.Mismatch(f"idsPerPod {value}: nodens {ours_says}, kubelet {theirs_says}")
    print(f"{len(values)} values of idsPerPod: same verdict and text")


# A host with a user `kubelet`: its passwd line, subuid and subgid files, PATH; and the allowed
# difference.
MACHINES: list[tuple[str, bool, str, str, str, str | None]] = [
    ("no user kubelet", False, "", "", "/usr/bin", None),
    ("no user kubelet, but ranges", False, "kubelet:65536:65536\n", "kubelet:65536:65536\n", "/usr/bin", None),
    ("one range for both", True, "kubelet:65536:7208960\n", "kubelet:65536:7208960\n", "/usr/bin", None),
    ("by number", True, "4242:65536:7208960\n", "4242:65536:7208960\n", "/usr/bin", "detail"),
    ("others' ranges beside", True, "joe:1:9\nkubelet:131072:65536\n", "kubelet:131072:65536\njoe:1:9\n", "/usr/bin", None),
    ("two ranges", True, "kubelet:65536:65536\nkubelet:262144:65536\n", "kubelet:65536:65536\nkubelet:262144:65536\n", "/usr/bin", None),
    ("different ranges", True, "kubelet:65536:65536\n", "kubelet:131072:65536\n", "/usr/bin", None),
    ("a range past 32 bits", True, "kubelet:4294967296:65536\n", "kubelet:4294967296:65536\n", "/usr/bin", None),
    ("no ranges", True, "", "", "/usr/bin", "detail"),
    ("no ranges for groups", True, "kubelet:65536:65536\n", "", "/usr/bin", "detail"),
    ("no getsubids", True, "", "", "/nowhere", "2"),
    ("ranges, but no getsubids", True, "kubelet:65536:7208960\n", "kubelet:65536:7208960\n", "/nowhere", "2"),
]


def on_machine(command: str, passwd: bool, subuid: str, subgid: str, path: str) -> str:
    """One query of the range, in a mount namespace with these files in /etc."""
    with tempfile.TemporaryDirectory() as scratch:
        lines = Path("/etc/passwd").read_text() + ("kubelet:x:4242:4242::/:/bin/false\n" if passwd else "")
        for name, text in (("passwd", lines), ("subuid", subuid), ("subgid", subgid)):
            (Path(scratch) / name).write_text(text)
        script = "".join(f"mount --bind {scratch}/{name} /etc/{name} && " for name in ("passwd", "subuid", "subgid"))
        done = subprocess.run(["unshare", "-m", "sh", "-ec", f'{script}PATH={path} exec "$0"', os.path.abspath(command)], text=True,
                              input='{"op":"range","idsPerPod":65536}\n', capture_output=True, check=True)
    return done.stdout


def compare_machines(driver: str, oracle: str) -> None:
    for name, passwd, subuid, subgid, path, allowed in MACHINES:
        ours = json.loads(on_machine(driver, passwd, subuid, subgid, path))
        theirs = json.loads(on_machine(oracle, passwd, subuid, subgid, path))
        source = ours.pop("source", None)
        if allowed == "2":
            expected = ({"first": UNIT, "count": 7208960}, "subids") if subuid else ({"first": UNIT, "count": SPACE - UNIT}, "no getsubids")
            same = (ours, source) == expected and "executable file not found" in theirs["error"]
        elif allowed == "detail":
            same = ours["error"].split(": ")[0] == theirs["error"].split(": ")[0]
        else:
            same = ours == theirs
        if not same:
            raise judge.Mismatch(f"host with {name}: nodens {ours}, kubelet {theirs}")
        print(f"  {name}: {theirs.get('error') or (theirs['first'], theirs['count'])}"
              + (f"; nodens: {ours.get('error') or (ours['first'], ours['count'])}" if ours != theirs else ""))
    print(f"{len(MACHINES)} hosts: same range or refusal, except for (2) a user kubelet without getsubids, and getsubids' own texts")


def compare_fifo(driver: str, oracle: str) -> None:
    """Point 7 again: a FIFO blocks the kubelet forever; it is a foreign file to nodens."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "pods" / "p").mkdir(parents=True)
        os.mkfifo(Path(scratch) / "pods" / "p" / "userns")
        question = f'{{"op":"open","root":"{scratch}","first":65536,"count":65536,"idsPerPod":65536,"maxPods":1}}\n{{"op":"state"}}\n'
        ours = subprocess.run([driver], input=question, text=True, capture_output=True, timeout=10, check=True).stdout
        try:
            subprocess.run([oracle], input=question, text=True, capture_output=True, timeout=2)
            raise judge.Mismatch("the kubelet reads from a FIFO")
        except subprocess.TimeoutExpired:
            pass
    if "not a regular file" not in ours:
        raise judge.Mismatch(f"a FIFO: nodens {ours}")
    print("(7) a FIFO as a pod's file: quarantined; the kubelet blocks forever")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--histories", type=int, default=10000)
    parser.add_argument("--only", type=int, help="run this one history")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    numbers = range(args.histories) if args.only is None else range(args.only, args.only + 1)
    with tempfile.TemporaryDirectory(prefix="oracle-") as top:
        ours, theirs = Side("nodens", [args.driver], Path(top)), Side("kubelet", [args.oracle], Path(top))
        try:
            compare_histories(ours, theirs, args.seed, numbers)
            rng = random.Random(args.seed)
            compare_subids(ours, theirs, rng, 20000)
            compare_ids_per_pod(ours, theirs, rng)
            compare_machines(args.driver, args.oracle)
            compare_fifo(args.driver, args.oracle)
            for side in (ours, theirs):
                side.close()
        except (judge.Mismatch, AssertionError) as problem:
            print(f"FAILED: {problem}")
            return 1
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
