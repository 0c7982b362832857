# SPDX-License-Identifier: Apache-2.0
"""Compares how nodens and kubectl read YAML with anchors, aliases and merge keys, on generated files.

    python3 tests/component/policy/compare_yaml.py --driver build/gcc/tests/component/policy/driver --peer .../manifests
            [--files N] [--seed N]

Both must give the same objects, or refuse the file. Exits with 1 at the first difference.
"""
import argparse
import collections
import json
import random
import subprocess
import sys

KEYS = ["a", "b", "c", "d", "e"]
SCALARS = ["1", "-2.5", "true", "null", "text", "'quoted'", '"<<"', '""', "0"]


class Drawer:
    """Draws one file. Anchors that are finished can be used by aliases; now and then one is wrong."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.values: list[str] = []    # finished anchors
        self.mappings: list[str] = []  # of them, those of mappings
        self.count = 0

    def value(self, depth: int) -> str:
        kind = self.rng.random()
        if self.values and kind < 0.3:
            return "*" + self.rng.choice(self.values)
        if kind < 0.02:
            return "*nothing"
        if depth == 0 or kind < 0.5:
            return self.anchored(self.rng.choice(SCALARS), self.values)
        if kind < 0.65:
            return self.anchored(f"[{', '.join(self.value(depth - 1) for _ in range(self.rng.randrange(4)))}]", self.values)
        return self.mapping(depth - 1)

    def anchored(self, text: str, *lists: list[str]) -> str:
        if self.rng.random() < 0.5:
            return text
        self.count += self.rng.random() < 0.9  # else a name is used again
        name = f"x{self.count}"
        for others in (self.values, self.mappings):
            if name in others:
                others.remove(name)
        for names in lists:
            names.append(name)
        return f"&{name} {text}"

    def source(self, depth: int) -> str:
        if self.rng.random() < 0.05:
            return self.rng.choice(["1", "null", "[1]", "[[]]"])
        one = ["*" + self.rng.choice(self.mappings) if self.mappings and self.rng.random() < 0.8 else self.mapping(depth - 1)
               for _ in range(self.rng.randrange(1, 4))]
        return one[0] if len(one) == 1 else f"[{', '.join(one)}]"

    def mapping(self, depth: int) -> str:
        members = []
        for key in self.rng.sample(KEYS, self.rng.randrange(len(KEYS))):
            if depth > 0 and self.rng.random() < 0.3:
                members.append(f"<<: {self.source(depth)}")
            members.append(f"{key}: {self.value(max(depth, 0))}")
        return self.anchored(f"{{{', '.join(members)}}}", self.values, self.mappings)

    def file(self) -> str:
        documents = []
        for _ in range(self.rng.choice([1, 1, 1, 2])):
            self.values, self.mappings = [], []
            documents.append("".join(f"{key}: {self.value(3)}\n" for key in KEYS[:self.rng.randrange(1, 6)]))
        return "---\n".join(documents)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    files = [Drawer(rng).file() for _ in range(args.files)]

    def ask(program: str, lines: list[str]) -> list[str]:
        done = subprocess.run([program], input="\n".join(lines) + "\n", text=True, capture_output=True, check=True)
        return done.stdout.splitlines()

    ours = ask(args.driver, [json.dumps({"op": "manifests", "text": text}) for text in files])
    theirs = ask(args.peer, [json.dumps(text) for text in files])
    assert len(ours) == len(theirs) == len(files)
    met: collections.Counter[str] = collections.Counter()
    for text, mine, other in zip(files, ours, theirs, strict=True):
        if json.loads(mine) != json.loads(other):
            print(f"different:\n{text}\nnodens:  {mine}\nkubectl: {other}")
            return 1
        met["refused" if other == '"refused"' else "merged" if "<<:" in text else "with aliases" if "*" in text else "plain"] += 1
    print(f"seed {args.seed}, {len(files)} files read as kubectl does: {dict(met)}")
    return 0 if min(met[kind] for kind in ("refused", "merged", "with aliases", "plain")) > args.files // 100 else 1


if __name__ == "__main__":
    sys.exit(main())
