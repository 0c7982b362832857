# SPDX-License-Identifier: Apache-2.0
"""Histories of a node's user namespaces, drawn at random: settings, operations, changes of files.

A history has pods of a small pool on a small range, so that blocks run out, collide and are reused;
now and then the whole default range. It is determined by its number and the seed, before anything
runs.
"""
import json
import random
from dataclasses import dataclass

UNIT = 65536
SPACE = 1 << 32
PODS = ["0a", "4f3c1c1e-8f5e-4b57-9f0a-1d7f6c2f8a11", "b", "b.c", "pod-\u00e4\u2028\"q\"", "z" * 40]
# no pod of Kubernetes has such a name; the kubelet would accept them
ODD_PODS = [".hidden", "w" * 254]


@dataclass(frozen=True)
class Settings:
    """Settings of a manager."""

    ids_per_pod: int
    first: int
    count: int
    max_pods: int

    def blocks(self) -> int:
        return self.count // self.ids_per_pod


@dataclass(frozen=True)
class Step:
    """`do` names a method of judge.Run; the rest are its arguments."""

    do: str
    arguments: tuple

    def __str__(self) -> str:
        return f"{self.do} {', '.join(repr(item) for item in self.arguments)}"


@dataclass(frozen=True)
class History:
    number: int
    settings: Settings
    steps: list[Step]


def draw(seed: int, number: int) -> History:
    rng = random.Random(f"{seed}/{number}")
    settings = draw_settings(rng)
    artist = Artist(rng, settings)
    return History(number, settings, [artist.step() for _ in range(rng.randint(3, 22))])


def draw_settings(rng: random.Random) -> Settings:
    """Mostly valid ones, of every shape; otherwise with one error."""
    size = rng.choice([UNIT] * 6 + [2 * UNIT, 3 * UNIT, 16 * UNIT, 32768 * UNIT, 65535 * UNIT])
    most = SPACE // size
    blocks = min(rng.choice([1, 1, 2, 3, 4, 5, 7]), max(most - 1, 1))
    first = rng.randint(1, max(most - blocks, 1)) * size
    shape = rng.random()
    if shape < 0.20:                          # up to the end of the ID space
        first = (most - blocks) * size
    elif shape < 0.24:                        # everything above the first block
        first, blocks = size, most - 1
    elif shape < 0.27:                        # from the lowest ID that is allowed
        first = size
    elif shape < 0.30:                        # past the end of the ID space
        first = (most - 1) * size
        blocks = rng.randint(2, 5)
    count = blocks * size
    max_pods = rng.choice([0, 0, 1, blocks - 1, blocks])
    flaw = rng.random()
    if flaw < 0.02:
        first = rng.choice([0, 1, first + 1, first - size if first >= size else 0, size // 2])
    elif flaw < 0.04:
        count = rng.choice([0, count - 1, count + 1, count + size // 2])
    elif flaw < 0.06:
        max_pods = rng.choice([blocks + 1, 110, 65535, 65536])
    elif flaw < 0.07:
        size = rng.choice([1, 1000, UNIT + 1, UNIT - 1, 3 * UNIT // 2])
    return Settings(size, first % SPACE, count % SPACE, max(max_pods, 0))


class Artist:
    """Draws the steps of one history."""

    def __init__(self, rng: random.Random, settings: Settings) -> None:
        self.rng = rng
        self.settings = settings
        self.pool = rng.sample(PODS, rng.randint(2, len(PODS)))
        if rng.random() < 0.05:
            self.pool.append(rng.choice(ODD_PODS))

    def step(self) -> Step:
        kinds = {
            "get": 40, "release": 12, "sweep": 5, "restart": 9, "plant": 22, "unlink": 4, "remove_pod": 3,
            "make_directory": 2, "make_link": 2, "pod_is_file": 1, "pod_is_link": 1, "lose_pods": 1, "move_pods": 1,
        }
        kind = self.rng.choices(list(kinds), list(kinds.values()))[0]
        return Step(kind, self.arguments(kind))

    def arguments(self, kind: str) -> tuple:
        pod = self.rng.choice(self.pool)
        if kind == "sweep":
            return (sorted(self.rng.sample(self.pool, self.rng.randint(0, len(self.pool)))),)
        if kind == "restart":
            if self.rng.random() < 0.15:
                self.settings = draw_settings(self.rng)
            return (self.settings,)
        if kind in ("lose_pods", "move_pods"):
            return ()
        if kind == "plant":
            return (pod, self.contents())
        if kind == "make_directory":
            return (pod, self.rng.random() < 0.5)
        if kind == "make_link":
            return (pod, self.contents() if self.rng.random() < 0.7 else None)
        return (pod,)

    def host(self) -> int:
        """A first ID: mostly that of a block of the range."""
        s, rng = self.settings, self.rng
        blocks = max(min(s.blocks(), 8), 1)
        roll = rng.random()
        if roll < 0.75:
            return (s.first + rng.randrange(blocks) * s.ids_per_pod) % SPACE
        if roll < 0.82:
            return (s.first + (s.blocks() - 1) * s.ids_per_pod) % SPACE
        return rng.choice([0, 1, UNIT, s.first + 1, max(s.first - s.ids_per_pod, 0), (s.first + s.count) % SPACE,
                           SPACE - UNIT, SPACE - 1, SPACE // 2, rng.randrange(SPACE)]) % SPACE

    def mapping(self) -> dict:
        """One line of a map, correct or slightly wrong."""
        line = {"hostId": self.host(), "containerId": 0, "length": self.settings.ids_per_pod}
        roll = self.rng.random()
        if roll < 0.06:
            line["length"] = self.rng.choice([0, 1, UNIT, 2 * UNIT, SPACE - 1, self.settings.ids_per_pod * 2 % SPACE])
        elif roll < 0.10:
            line["containerId"] = self.rng.choice([1, UNIT, SPACE - 1])
        return line

    def contents(self) -> bytes:
        rng = self.rng
        line = self.mapping()
        document = {"uidMappings": [line], "gidMappings": [dict(line)]}
        roll = rng.random()
        if roll < 0.45:
            return compact(document)
        if roll < 0.55:
            document["gidMappings"] = [self.mapping()]
            return compact(document)
        if roll < 0.65:
            other = rng.choice(["uidMappings", "gidMappings"])
            document[other] = [self.mapping() for _ in range(rng.choice([0, 2, 3]))]
            return compact(document)
        if roll < 0.97:
            return self.oddity(document)
        return self.mutated(compact(document))

    def oddity(self, document: dict) -> bytes:
        """Input that JSON decoders disagree about."""
        rng = self.rng
        good = compact(document)
        line = compact(document["uidMappings"])
        host = str(document["uidMappings"][0]["hostId"]).encode()
        return rng.choice([
            lambda: b"", lambda: b" ", lambda: b"null", lambda: b"[]", lambda: b"{}", lambda: b"0", lambda: b'"x"', lambda: b"tru",
            lambda: good + b"\n", lambda: b" \t\r\n" + good + b" ", lambda: good + good, lambda: good + b"x", lambda: good[:-1],
            lambda: good[:rng.randrange(len(good))], lambda: b"\xef\xbb\xbf" + good, lambda: good + b"\0", lambda: b"\0" * 141,
            lambda: good.upper().replace(b"NULL", b"null"), lambda: good.replace(b"hostId", b"HOSTID"),
            lambda: good.replace(b"uidMappings", "uidMapping\u017f".encode()), lambda: good.replace(b"hostId", "ho\u017ftId".encode()),
            lambda: good.replace(b"hostId", b"hostId\\u0000x"), lambda: good.replace(b"hostId", b"host\\u0049d"),
            lambda: good.replace(b"hostId", b"host_id"), lambda: good.replace(b'"containerId":0,', b""),
            lambda: good.replace(b'"containerId":0', b'"containerId":null'), lambda: good.replace(host, b"null", 1),
            lambda: good.replace(b'"containerId":0',
                                 b'"containerId":' + rng.choice([b"0.0", b"-0", b"0e0", b'"0"', b"false", b"[]", b"{}", b"00"])),
            lambda: good.replace(host, rng.choice([host + b".0", host + b"e0", b"-" + host, b"4294967296", b"18446744073709551616",
                                                   b"1e400", b"0" + host, b"+" + host, b"9" * 400])),
            lambda: b'{"uidMappings":[null],"gidMappings":[null]}', lambda: b'{"uidMappings":null,"gidMappings":' + line + b"}",
            lambda: b'{"uidMappings":{},"gidMappings":' + line + b"}", lambda: b'{"uidMappings":[[]],"gidMappings":' + line + b"}",
            lambda: b'{"uidMappings":[{"length":7}],' + good[1:],
            lambda: b'{"uidMappings":[{"containerId":1}],"UIDMAPPINGS":[{}],' + good[1:],
            lambda: good[:-1] + b',"uidMappings":[{}]}', lambda: good[:-1] + b',"gidMappings":[]}',
            lambda: good[:-1] + b',"uidMappings":null}',
            lambda: good[:-1] + b',"uidMappings":[{},{}]}',
            lambda: good[:-1] + b',"uidMappings":[{"hostId":' + host + b',"hostId":null}]}',
            lambda: good[:-1] + b',"uidMappings":' + line + b',"uidMappings":[{"containerId":0}]}',
            lambda: good[:-1] + b',"more":{"a":[1,2.5,-1e3,true,null,"\\n"]}}', lambda: good[:-1] + b',"more":"\xff\xfe"}',
            lambda: good[:-1] + b',"more":"\\ud800"}', lambda: good[:-1] + b',"more":1e999}', lambda: good[:-1] + b',"more":"\x01"}',
            lambda: good[:-1] + b',"more":' + b"[" * 60 + b"]" * 60 + b"}",
            lambda: good[:-1] + b',"more":' + b"[" * 100 + b"]" * 100 + b"}",
            lambda: b"[" * 20000, lambda: good[:-1] + b',"more":' + b"[" * 9990 + b"]" * 9990 + b"}",
            lambda: good + b" " * 70000, lambda: b"{" + b" " * 60000 + good[1:], lambda: good.replace(b",", b",,", 1),
            lambda: good.replace(b"]}", b"],}"), lambda: good.replace(b'"', b"'"), lambda: b"/* c */" + good,
            lambda: good.replace(b":", b"=", 1),
            lambda: good[:-1] + b',"a\\/b":"\\u00e9\\uD83D\\uDE00"}', lambda: good[:-1] + b',"":0}', lambda: good[:-1] + b',"x":"\\x41"}',
        ])()

    def mutated(self, text: bytes) -> bytes:
        changed = bytearray(text)
        for _ in range(self.rng.randint(1, 4)):
            at = self.rng.randrange(len(changed))
            choice = self.rng.random()
            if choice < 0.5:
                changed[at] = self.rng.randrange(256)
            elif choice < 0.75:
                del changed[at]
            else:
                changed.insert(at, self.rng.choice(b'0123456789{}[]",: \\'))
        return bytes(changed)


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
