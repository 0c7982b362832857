# SPDX-License-Identifier: Apache-2.0
"""Compares src/kube and src/policy with Kubernetes' own code, on generated objects.

    python3 tests/component/policy/compare.py --driver build/gcc/tests/component/policy/driver
            --oracle .../policy [--pods N] [--seed N]

Every pod is evaluated in all levels and all policy versions; verdict and text must be equal. Prints
how often each revision of each check allowed and denied: with 2,000 pods and more, both must have
happened. Exits with 1 at the first difference.
"""
import argparse
import collections
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pod_generator

ENOUGH = 2000  # pods from which on every check must have been reached


def questions(seed: int, count: int) -> Iterator[dict[str, object]]:
    rng = random.Random(seed)
    for number in range(count):
        pod = pod_generator.draw_pod(rng)
        yield {"op": "podsecurity", "pod": pod}
        if number % 4 == 0:
            question: dict[str, object] = {"op": "hostusers", "pod": pod, "gate": rng.random() < 0.2}
            if rng.random() < 0.3:
                question["old"] = pod_generator.draw_pod(rng)
            yield question
        if number % 8 == 0:
            yield {"op": "labels", "labels": pod_generator.draw_labels(rng)}
            selector, labels = pod_generator.draw_selector(rng)
            yield {"op": "selector", "selector": selector, "labels": labels}


class Difference(Exception):
    """The two sides differ, or the queries did not reach everything."""


def kind_of(op: str, answer: object) -> str:
    """A class of answers, for the statistics."""
    if answer == "undecodable":
        return "undecodable"
    assert isinstance(answer, list)
    if op == "podsecurity":
        return "restricted" if answer[-1][3] == "" else "baseline" if answer_of(answer, "baseline") == "" else "privileged"
    if op == "hostusers":
        return "refused" if answer else "valid"
    if op == "labels":
        return "with errors" if len(answer) > 3 else "clean"
    return str(answer[0])


def answer_of(answer: list[list[object]], level: str) -> object:
    return [text for name, _, _, text in answer if name == level][-1]


def compare(asked: Path, ours: Path, theirs: Path) -> collections.Counter[tuple[str, str]]:
    met: collections.Counter[tuple[str, str]] = collections.Counter()
    with asked.open() as a, ours.open() as b, theirs.open() as c:
        for question, mine, other in zip(a, b, c, strict=False):
            op = json.loads(question)["op"]
            other_says = json.loads(other)
            if mine != other and json.loads(mine) != other_says:
                raise Difference(f"{question.strip()}\nnodens:     {mine.strip()}\nKubernetes: {other.strip()}")
            met[op, kind_of(op, other_says)] += 1
    return met


def check_reach(tallies: list[dict[str, object]], demanding: bool) -> None:
    print(f"{'check':28} {'from':6} {'allowed':>9} {'forbidden':>9}")
    for t in tallies:
        print(f"{t['check']:28} {t['from']:6} {t['allowed']:9} {t['forbidden']:9}")
    if unreached := [f"{t['check']} {t['from']}" for t in tallies if not t["allowed"] or not t["forbidden"]]:
        message = f"never seen both allowed and denied: {', '.join(unreached)}"
        if demanding:
            raise Difference(message)
        print(message)


def run(args: argparse.Namespace, scratch: Path) -> None:
    asked, ours, theirs = scratch / "asked", scratch / "ours", scratch / "theirs"
    with asked.open("w") as file:
        for question in questions(args.seed, args.pods):
            file.write(json.dumps(question) + "\n")
    started = time.monotonic()
    for program, answers in ((args.driver, ours), (args.oracle, theirs)):
        with asked.open() as stdin, answers.open("w") as stdout:
            subprocess.run([program], stdin=stdin, stdout=stdout, check=True)
        print(f"{Path(program).name}: {time.monotonic() - started:.1f} s")
        started = time.monotonic()
    with theirs.open() as file:
        *lines, last = file
    count = sum(1 for _ in asked.open())
    with ours.open() as file:
        if (own := sum(1 for _ in file)) != count or len(lines) != count:
            raise Difference(f"{count} queries, {own} answers of nodens, {len(lines)} of Kubernetes")
    met = compare(asked, ours, theirs)
    for (op, kind), number in sorted(met.items()):
        print(f"{op:12} {kind:12} {number:9}")
    check_reach(json.loads(last), args.pods >= ENOUGH)
    print(f"{args.pods} pods in 3 levels and 38 versions, {count - args.pods} other queries: same verdicts and texts")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=8)
    args = parser.parse_args()
    print(f"seed {args.seed}")
    with tempfile.TemporaryDirectory(prefix="nodens-policy-") as scratch:
        try:
            run(args, Path(scratch))
        except Difference as difference:
            print(f"different: {difference}")
            return 1
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
