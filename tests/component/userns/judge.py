# SPDX-License-Identifier: Apache-2.0
"""Runs a history on nodens' manager and on the kubelet's, step by step, and reports differences.

How two allocators with different orders are compared
  The kubelet takes a free block at random, nodens the next one. After every allocation the
  kubelet's side is therefore changed to nodens' choice: its file is checked against its own answer,
  the pod is released again, nodens' file replaces it, byte for byte, and the kubelet is called once
  more, which must now read it and return that very block. From then on both sides hold the same
  blocks in the same files, and every later verdict, text and byte must be equal.

Where they may differ
  Only as listed in DIFFERENCES (the points of src/userns/manager.h, and the texts of decoders and
  of the operating system). A difference leaves the two in different states; they are made equal
  again by what an operator would do about it, or, where that is not enough, by copying nodens'
  files to the kubelet's side and restarting both. Each is counted; anything else is a Mismatch.
"""
import collections
import errno
import os
import re
from pathlib import Path

from histories import SPACE, History, Settings, compact
from sides import Side

DIFFERENCES = {
    "1": "the block that ends at 2^32, and anything past it, is neither allocated nor counted as room",
    "3": "an invalid file quarantines its pod and the blocks it names; the kubelet does not start",
    "5": "a release that cannot remove the file is reported and keeps the block; the kubelet frees it silently",
    "6": "a pod whose file vanished gets its own block again; the kubelet gives it a second one and loses the first",
    "7": "links, files above 64 KiB, and JSON that is not Unicode, too deep or with numbers past a double are foreign files",
    "8": "a UID that cannot name a pod's directory is refused",
    "9": "looking up a pod's file does not create its directory",
    "decoder": "the exact error in a file's JSON has the decoder's own text",
    "system": "the operating system's error is the same, the text around it is not",
}
# Every refusal of the kubelet. A run that has not seen all of them has not covered everything.
REFUSALS = [
    "invalid user namespace mappings file: ", "no more than one mapping allowed.", "GID and UID mappings should be identical.",
    "GID and UID mapping should be identical", "UID 0 must be mapped", "wrong user namespace length",
    "wrong user namespace offset specified",
    "different user namespace range already used by pod", "is out of range", "already taken", "could not find an empty slot",
    "kubelet user namespace length", "is not a multiple of 65536", "kubelet user assigned ID ", "must be greater or equal to",
    "kubelet user assigned IDs length", "are not enough to support", "read pods from disk: ",
]
DECODER = "invalid user namespace mappings file: "
SYSTEM = [os.strerror(number).lower() for number in
          (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTEMPTY)]
OLD_POD = re.compile(r'record pod mappings for existing pod ("(?:[^"\\]|\\.)*"): (.*)', re.DOTALL)
CEILING = 64 * 1024
DEPTH = 64


class Mismatch(Exception):
    """nodens and the kubelet differ in an unintended way."""


class Tally:
    """Coverage of all histories."""

    def __init__(self) -> None:
        self.differences: collections.Counter[str] = collections.Counter()
        self.answers: collections.Counter[str] = collections.Counter()
        self.refusals: collections.Counter[str] = collections.Counter()

    def answer(self, op: str, answer: dict) -> None:
        error: str = answer.get("error") or ""
        self.answers[f"{op} {'refused' if error else 'granted'}"] += 1
        for text in REFUSALS:
            self.refusals[text] += text in error

    def unseen(self) -> list[str]:
        return [text for text in REFUSALS if not self.refusals[text]]


def mapping_text(first: int, count: int) -> bytes:
    """The only form of the file that either of them writes."""
    line = {"hostId": first, "containerId": 0, "length": count}
    return compact({"uidMappings": [line], "gidMappings": [line]})


def foreign(side: Side, pod: str) -> bool:
    """Whether point 7 applies to a pod's file."""
    kind, contents = side.shape(pod)
    if kind in ("link", "pod is link"):
        return True
    return kind == "file" and isinstance(contents, bytes) and (len(contents) > CEILING or strict_json_refuses(contents))


def strict_json_refuses(contents: bytes) -> bool:
    if re.search(rb"\\u[dD][89a-fA-F]", contents) or re.search(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{309}", contents):
        return True
    try:
        contents.decode()
    except UnicodeDecodeError:
        return True
    depth = deepest = 0
    for byte in contents:
        depth += (byte in b"[{") - (byte in b"]}")
        deepest = max(deepest, depth)
    return deepest > DEPTH


class Run:
    """One history on both sides."""

    def __init__(self, ours: Side, theirs: Side, tally: Tally) -> None:
        self.ours = ours
        self.theirs = theirs
        self.tally = tally
        self.settings: Settings
        self.pods: set[str] = set()
        self.held: dict[str, int] = {}  # on both sides
        self.quarantine: dict[str, dict] = {}   # ours only

    def run(self, history: History) -> int:
        """Returns the number of steps; a refused range ends a history."""
        self.ours.clear()
        self.theirs.clear()
        if not self.open(history.settings):
            return 1
        for number, step in enumerate(history.steps, 2):
            try:
                if getattr(self, step.do)(*step.arguments) is False:
                    return number
                self.compare()
            except Mismatch as mismatch:
                raise Mismatch(f"step {number} ({step}): {mismatch}") from None
        return len(history.steps) + 1

    def differ(self, point: str, count: int = 1) -> None:
        assert point in DIFFERENCES
        self.tally.differences[point] += count

    def ask(self, op: str, **arguments: object) -> tuple[dict, dict]:
        ours, theirs = self.ours.ask(op=op, **arguments), self.theirs.ask(op=op, **arguments)
        self.tally.answer(op, theirs)
        return ours, theirs

    def same_refusal(self, ours: str, theirs: str) -> None:
        if ours == theirs:
            return
        if DECODER in ours and DECODER in theirs and ours.split(DECODER)[0] == theirs.split(DECODER)[0]:
            return self.differ("decoder")
        for words in SYSTEM:
            if ours.lower().endswith(": " + words) and theirs.lower().endswith(": " + words) and (
                    ours.startswith("user namespace: ") == theirs.startswith("user namespace: ")):
                return self.differ("system")
        raise Mismatch(f"nodens says {ours!r}, the kubelet {theirs!r}")

    # opening: the kubelet refuses to start with an invalid file

    def open(self, settings: Settings) -> bool:
        self.settings = settings
        arguments = {"first": settings.first, "count": settings.count, "idsPerPod": settings.ids_per_pod, "maxPods": settings.max_pods}
        ours = self.ours.ask(op="open", root=str(self.ours.root), **arguments)
        theirs = self.theirs.ask(op="open", root=str(self.theirs.root), **arguments)
        self.tally.answer("open", theirs)
        if "error" in ours:
            return self.refused(ours["error"], theirs.get("error"))
        stashed: dict[str, Path] = {}
        problems: dict[str, str] = {}
        while (error := theirs.get("error")) is not None:
            found = OLD_POD.fullmatch(error)
            pod = next((pod for pod in self.pods if found and quoted(pod) == found[1]), None)
            if not found or pod is None or pod in stashed:
                raise Mismatch(f"the kubelet does not start: {error!r}")
            problems[pod] = found[2]
            stashed[pod] = self.theirs.root / f"stashed-{len(stashed)}"
            self.theirs.path(pod).rename(stashed[pod])
            theirs = self.theirs.ask(op="open", root=str(self.theirs.root), **arguments)
        for pod, path in stashed.items():
            path.rename(self.theirs.path(pod))
        return self.opened(problems)

    def refused(self, ours: str, theirs: str | None) -> bool:
        reach = self.settings.first + self.settings.count
        if (theirs is None or OLD_POD.fullmatch(theirs)) and reach >= SPACE and (
                ours == f"kubelet user assigned IDs are not enough to support {self.settings.max_pods} pods"):
            self.differ("1")
        elif theirs is not None:
            self.same_refusal(ours, theirs)
        else:
            raise Mismatch(f"nodens refuses to open: {ours!r}")
        return False

    def opened(self, problems: dict[str, str]) -> bool:
        """Our quarantine has the pods that the kubelet failed on, and all pods with a foreign file.

        The reasons are the same.
        """
        quarantine = self.ours.ask(op="state")["quarantine"]
        odd = [pod for pod in quarantine if pod not in problems and foreign(self.ours, pod)]
        # the kubelet accepted these, and may have failed on others because of them: once more
        # without
        if odd:
            self.differ("7", len(odd))
            for pod in odd:
                self.ours.remove(pod)
                self.theirs.remove(pod)
            return self.open(self.settings)
        if set(quarantine) != set(problems):
            raise Mismatch(f"nodens has {quarantine} in quarantine, the kubelet failed on {problems}")
        for pod, problem in problems.items():
            self.differ("3")
            if not (foreign(self.ours, pod) and self.other_reason(quarantine[pod]["problem"], problem)):
                self.same_refusal(quarantine[pod]["problem"], problem)
        self.compare()
        return True

    def other_reason(self, ours: str, theirs: str) -> bool:
        """A foreign file is refused before its contents, which the kubelet may refuse, are read."""
        self.differ("7")
        return ours != theirs

    def restart(self, settings: Settings) -> bool:
        return self.open(settings)

    def resync(self) -> None:
        self.theirs.copy_from(self.ours)
        if not self.open(self.settings):
            raise Mismatch("a range that was accepted before is refused")

    # operations

    def get(self, pod: str) -> None:
        self.pods.add(pod)
        kind, contents = self.ours.shape(pod)
        ours, theirs = self.ask("get", pod=pod)
        if (self.theirs.pods / pod).is_dir() and not (self.ours.pods / pod).is_dir():
            self.differ("9")
            (self.ours.pods / pod).mkdir(parents=True)
        if "error" in ours and "error" in theirs:
            if not self.both_refuse_foreign(pod, ours["error"], theirs["error"]):
                self.same_refusal(ours["error"], theirs["error"])
        elif "error" in ours:
            self.only_ours_refuses(pod, ours["error"], theirs["first"])
        elif pod in self.held and not contents and ours["first"] == self.held[pod] and "empty slot" in theirs.get("error", ""):
            self.differ("6")
            self.resync()
        elif "error" in theirs:
            raise Mismatch(f"nodens gives {ours}, the kubelet returns {theirs['error']!r}")
        elif kind == "file" and contents:
            if ours != theirs:
                raise Mismatch(f"nodens reads {ours}, the kubelet {theirs}")
        else:
            self.allocated(pod, ours, theirs)

    def both_refuse_foreign(self, pod: str, ours: str, theirs: str) -> bool:
        if "cannot name a directory" in ours and unfit(pod):
            self.differ("8")
        elif foreign(self.ours, pod) and ours != theirs:
            self.differ("7")
        else:
            return False
        return True

    def allocated(self, pod: str, ours: dict, theirs: dict) -> None:
        size = self.settings.ids_per_pod
        for side, given in ((self.ours, ours), (self.theirs, theirs)):
            if side.shape(pod) != ("file", mapping_text(given["first"], size)) or given["count"] != size:
                raise Mismatch(f"{side.name} gave {given} and wrote {side.shape(pod)}")
            if (side.path(pod).stat().st_mode & 0o7777) != 0o600:
                raise Mismatch(f"{side.name} wrote a file with the wrong mode")
        if pod in self.held:
            if ours["first"] != self.held[pod]:
                raise Mismatch(f"nodens gave {ours['first']}, the pod had {self.held[pod]}")
            self.differ("6")
            return self.resync()
        self.check_choice(pod, ours["first"])
        if theirs["first"] + size >= SPACE or theirs["first"] < self.settings.first:
            self.differ("1")
            # past 2^32 the kubelet's numbers wrap, and it panics when such a block is released
            return self.resync()
        self.theirs.ask(op="release", pod=pod)
        if self.theirs.shape(pod)[0] != "nothing":
            raise Mismatch("the kubelet's file is still there")
        self.theirs.write(pod, mapping_text(ours["first"], size))
        adopted = self.theirs.ask(op="get", pod=pod)
        if adopted != ours:
            raise Mismatch(f"nodens gave {ours}; from its file the kubelet takes {adopted}")

    def check_choice(self, pod: str, first: int) -> None:
        """Our block is within the range, below 2^32, and not claimed by another pod."""
        s = self.settings
        taken = {block for other, block in self.held.items() if other != pod}
        if first in taken or first % s.ids_per_pod or not s.first <= first <= s.first + s.count - s.ids_per_pod or (
                first + s.ids_per_pod >= SPACE):
            raise Mismatch(f"nodens allocated {first}")
        for other, entry in self.quarantine.items():
            if other != pod and any(low < first + s.ids_per_pod and first < low + count for low, count in entry["claims"]):
                raise Mismatch(f"nodens allocated {first}, which {other!r} in quarantine claims")

    def only_ours_refuses(self, pod: str, error: str, first: int) -> None:
        size = self.settings.ids_per_pod
        claimed = any(low < first + size and first < low + count
                      for other, entry in self.quarantine.items() if other != pod for low, count in entry["claims"])
        if "cannot name a directory" in error and unfit(pod):
            self.differ("8")
        elif foreign(self.ours, pod):
            self.differ("7")
        elif "could not find an empty slot" in error and (first + size >= SPACE or first < self.settings.first):
            self.differ("1")
        elif claimed and ("already taken" in error or "could not find an empty slot" in error):
            self.differ("3")
        else:
            raise Mismatch(f"the kubelet gives {first}, nodens returns {error!r}")
        self.resync()

    def release(self, pod: str) -> None:
        ours, _ = self.ask("release", pod=pod)
        self.after_release([pod], ours.get("error"), lambda: self.ours.ask(op="release", pod=pod))

    def sweep(self, alive: list[str]) -> None:
        doomed = [pod for pod in self.pods if pod not in alive or not self.has_directory(pod)]
        ours, theirs = self.ask("sweep", alive=alive)
        if "error" in theirs:
            return self.same_refusal(ours.get("error", ""), theirs["error"])
        self.after_release(doomed, ours.get("error"), lambda: self.ours.ask(op="sweep", alive=alive))

    def has_directory(self, pod: str) -> bool:
        directory = self.ours.pods / pod
        return directory.is_dir() and not directory.is_symlink()

    def after_release(self, pods: list[str], error: str | None, again) -> None:
        """Removes the obstacle that the error names, and repeats the release (point 5).

        The file of a pod in quarantine is removed with the pod (point 3).
        """
        if error:
            stuck = [pod for pod in pods if self.ours.shape(pod)[0] in ("directory", "pod is file", "pod is link")]
            if not stuck:
                raise Mismatch(f"nodens does not release: {error!r}")
            self.differ("5")
            for pod in stuck:
                self.ours.remove(pod)
                self.theirs.remove(pod)
            if "error" in (answer := again()):
                raise Mismatch(f"nodens does not release: {answer}")
        for pod in pods:
            if pod in self.quarantine and self.ours.shape(pod)[0] == "nothing" and self.theirs.shape(pod)[0] != "nothing":
                self.differ("3")
                self.theirs.remove(pod)
            if self.ours.shape(pod)[0] == "directory" and pod in self.held:
                self.theirs.remove(pod)

    # changes of the files

    def both(self, pod: str):
        self.pods.add(pod)
        for side in (self.ours, self.theirs):
            side.remove(pod)
            (side.pods / pod).mkdir(parents=True, exist_ok=True)
            yield side

    def plant(self, pod: str, contents: bytes) -> None:
        for side in self.both(pod):
            side.write(pod, contents)

    def unlink(self, pod: str) -> None:
        for _ in self.both(pod):
            pass

    def make_directory(self, pod: str, filled: bool) -> None:
        for side in self.both(pod):
            side.path(pod).mkdir()
            if filled:
                (side.path(pod) / "x").write_bytes(b"")

    def make_link(self, pod: str, contents: bytes | None) -> None:
        for side in self.both(pod):
            if contents is not None:
                (side.pods / pod / "elsewhere").write_bytes(contents)
            elif (side.pods / pod / "elsewhere").exists():
                (side.pods / pod / "elsewhere").unlink()
            side.path(pod).symlink_to("elsewhere")

    def remove_pod(self, pod: str) -> None:
        for side in self.both(pod):
            for entry in (side.pods / pod).iterdir():
                entry.unlink()
            (side.pods / pod).rmdir()

    def pod_is_file(self, pod: str) -> None:
        self.remove_pod(pod)
        for side in (self.ours, self.theirs):
            (side.pods / pod).write_bytes(b"")

    def pod_is_link(self, pod: str) -> None:
        self.remove_pod(pod)
        for side in (self.ours, self.theirs):
            (side.root / "other").mkdir(exist_ok=True)
            (side.pods / pod).symlink_to("../other")

    def lose_pods(self) -> None:
        for side in (self.ours, self.theirs):
            if side.pods.exists():
                side.clear()

    def move_pods(self) -> None:
        """An administrator moves the pods to another disk and leaves a link."""
        for side in (self.ours, self.theirs):
            if side.pods.exists() and not side.pods.is_symlink():
                side.pods.rename(side.root / "disk")
                side.pods.symlink_to("disk")

    # after every step

    def compare(self) -> None:
        """Same pods, same blocks, same files; and on our side no block is lost or held twice."""
        ours = self.ours.ask(op="state")
        theirs = self.theirs.ask(op="state").get("pods", {})
        if ours["pods"] != theirs:
            raise Mismatch(f"nodens has {ours['pods']}, the kubelet {theirs}")
        for pod in self.pods:
            if self.ours.shape(pod) != self.theirs.shape(pod):
                raise Mismatch(f"the file of {pod!r} is {self.ours.shape(pod)} with nodens, {self.theirs.shape(pod)} with the kubelet")
            left = [name for name in names_in(self.ours.pods / pod) if name.startswith(".")]
            if left:
                raise Mismatch(f"nodens left {left} behind")
        self.held = ours["pods"]
        self.quarantine = ours["quarantine"]
        self.check_free(ours)

    def check_free(self, state: dict) -> None:
        size = self.settings.ids_per_pod
        low = self.settings.first // size
        high = min(low + self.settings.count // size, (SPACE - 1) // size if SPACE % size else SPACE // size - 1)
        taken = {first // size for first in self.held.values()}
        for entry in self.quarantine.values():
            for first, count in entry["claims"]:
                taken.update(range(max(first // size, low), min((min(first + count, SPACE) + size - 1) // size, high)))
        busy = sum(low <= block < high for block in taken)
        if state["usable"] != max(high - low, 0) or state["free"] != state["usable"] - busy:
            raise Mismatch(f"nodens has {state['free']} of {state['usable']} blocks free; {busy} of {high - low} are held")


def unfit(pod: str) -> bool:
    """Whether point 8 applies to a UID."""
    return pod.startswith(".") or len(pod) > 253


def names_in(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def quoted(text: str) -> str:
    """Go's %q for the pods of histories.PODS."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\u2028", "\\u2028") + '"'
