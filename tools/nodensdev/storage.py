# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/storage.md, from the results of `tools/dev test bridge-storage` and `bridge-local`.

The tests write what became of each of them, by storage, to build/storage. `tools/dev storage-table` puts these results into
tests/component/bridge/results.json (those of storage that was not tested stay) and the tables into the page, with the reasons of
tests/component/bridge/reasons.toml; `tools/dev lint tables` compares page, results and reasons.
"""
import argparse
import json
import time
import tomllib
from dataclasses import dataclass
from typing import Any

from . import page_tables
from .command import Command, Failure
from .project import BUILD, TESTS, TOP, commit

NEWEST = BUILD / "storage"              # a file per suite
IN_GUEST = "$FILES/guest.json"          # where the suite in a guest writes its file
LOCAL = "build/storage/local.json"      # and the one without a guest
RESULTS = TESTS / "component/bridge/results.json"
REASONS = TESTS / "component/bridge/reasons.toml"
PAGE = TOP / "docs/storage.md"
BRIDGE, SQUASHED, UNOWNED = "`bridge: auto`", "`as: caller` or `owner`", "`forceOwner`"
# How the page calls each kind, and the setting with which it is tested behind nodens-bridge.
KINDS = {
    "ext4": ("ext4", BRIDGE), "xfs": ("xfs", BRIDGE), "btrfs": ("btrfs", BRIDGE), "tmpfs": ("tmpfs", BRIDGE),
    "overlay": ("overlayfs", BRIDGE), "nfs4": ("NFS 4.2", BRIDGE), "nfs4-squash": ("NFS 4.2, `root_squash`", SQUASHED),
    "nfs3": ("NFS 3", BRIDGE), "nfs3-squash": ("NFS 3, `root_squash`", SQUASHED), "smb": ("SMB 3.1.1", UNOWNED),
    "9p": ("9p (2000.L)", BRIDGE), "sshfs": ("sshfs", UNOWNED), "s3fs": ("S3 (s3fs)", UNOWNED), "bindfs": ("bindfs", BRIDGE),
}
Results = dict[str, dict[str, Any]]     # by kind: kernel, idmap_error, passed, failed


@dataclass(frozen=True)
class Reason:
    """Why a test does not pass on some storage."""

    test: str
    storage: tuple[str, ...]
    reason: str
    at_times: bool = False


def reasons() -> list[Reason]:
    return [Reason(entry["test"], tuple(entry["storage"]), entry["reason"], entry.get("at_times", False))
            for entry in tomllib.loads(REASONS.read_text())["case"]]


# ---- the tables ----

def way(kind: str, one: dict[str, Any]) -> str:
    """How a pod with a user namespace gets the storage."""
    if not one["idmap_error"]:
        return "idmapped mount"
    return f"nodens-bridge, {KINDS[kind][1]}" if one["passed"] else "neither"


def render(results: Results) -> str:
    lines = ["| storage | idmapped mount | a pod gets it by | tests behind nodens-bridge | kernel |", "|---|---|---|---:|---|"]
    for kind, (title, _) in KINDS.items():
        if one := results.get(kind):
            native = f"no: `{one['idmap_error']}`" if one["idmap_error"] else "yes"
            tests = f"{len(one['passed'])} of {len(one['passed']) + len(one['failed'])}"
            lines.append(f"| {title} | {native} | {way(kind, one)} | {tests} | {one['kernel']} |")
    return "\n".join(lines) + "\n"


def render_reasons(known: list[Reason]) -> str:
    lines = ["| test that fails | storage | reason |", "|---|---|---|"]
    for reason in known:
        name = reason.test.removeprefix("test_").replace("_", " ")
        lines.append(f"| {name} | {', '.join(KINDS[kind][0] for kind in reason.storage)} | {reason.reason} |")
    return "\n".join(lines) + "\n"


def page_from(page: str, data: dict[str, Any], known: list[Reason]) -> str:
    tables = {"storage": render(data["results"]), "reasons": render_reasons(known)}
    return page_tables.replaced(page, PAGE.name, tables, data["facts"], f"{len(data['results'])} kinds of storage")


# ---- what must be true of them ----

def tests_of(one: dict[str, Any]) -> set[str]:
    return {*one["passed"], *one["failed"]}


def incomplete(results: Results) -> list[str]:
    """Kinds that share a test have the same ones: a run that was cut short is not a result."""
    found = []
    for kind, one in results.items():
        others = set().union(*(tests_of(other) for other in results.values() if tests_of(other) & tests_of(one)))
        found += [f"{kind}: {test} was not run" for test in sorted(others - tests_of(one))]
    return found


def problems_of(results: Results, known: list[Reason]) -> list[str]:
    listed = {(kind, reason.test) for reason in known for kind in reason.storage}
    failed = {(kind, test) for kind, one in results.items() for test in one["failed"]}
    wrong = [f"{kind}: {test} fails without a reason" for kind, test in sorted(failed - listed)]
    wrong += [f"{kind}: {test} has a reason to fail, and does not" for kind, test in sorted(listed - failed)]
    return wrong + incomplete(results)


def problems() -> list[str]:
    """What is wrong with the page and the results that are committed."""
    data = json.loads(RESULTS.read_text())
    wanted = page_from(PAGE.read_text(), data, reasons())
    return problems_of(data["results"], reasons()) + page_tables.stale(PAGE, wanted, RESULTS, "storage-table")


# ---- the command ----

def newest() -> dict[str, Any]:
    """The results of the tree with those of the last runs in their place."""
    files = sorted(NEWEST.glob("*.json"), key=lambda path: path.stat().st_mtime)
    if not files:
        raise Failure(f"no results in {NEWEST.relative_to(TOP)}; `tools/dev test bridge-storage bridge-local` writes them")
    data = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"results": {}}
    for path in files:
        data["results"] |= json.loads(path.read_text())["results"]
    date = time.strftime("%Y-%m-%d", time.gmtime(files[-1].stat().st_mtime))
    return {"facts": {"date": date, "commit": commit()}, "results": data["results"]}


def options(parser: argparse.ArgumentParser) -> None:
    page_tables.add_committed(parser, RESULTS)


def run(args: argparse.Namespace) -> int:
    data = json.loads(RESULTS.read_text()) if args.committed else newest()
    found = problems_of(data["results"], reasons())
    if found:
        print("\n".join(found))
        return 1
    RESULTS.write_text(json.dumps(data, indent=1) + "\n")
    PAGE.write_text(page_from(PAGE.read_text(), data, reasons()))
    print(f"{PAGE.relative_to(TOP)}: " + ", ".join(f"{len(one['passed'])} tests on {kind}" for kind, one in data["results"].items()))
    return 0


COMMANDS = [Command("storage-table", "write the newest results of bridge-storage to docs/storage.md", run, options)]
