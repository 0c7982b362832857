# SPDX-License-Identifier: Apache-2.0
"""A pod's system calls on a bridged volume give and leave what they give and leave on an idmapped mount of the same filesystem.

Where the filesystem cannot be idmapped, they are compared with those of the host's users on the filesystem itself; they may also be what
they are on an idmapped mount of the host's disk, because a server can be stricter to users than POSIX.
"""
import contextlib
import os
from pathlib import Path

import pytest
from conftest import volume_of
from nodenstest import bridged, posix, storage
from nodenstest.bridged import Volume


def outcomes(volume: Volume, step: int) -> dict[posix.Case, posix.Outcome]:
    """What each case gave and what its caller sees, and what is there."""
    chosen = list(posix.cases(step))
    for case in chosen:
        posix.prepare(volume.source, case)
    found: dict[posix.Case, posix.Outcome] = {}
    for caller in posix.CALLERS:
        mine = [case for case in chosen if case.caller == caller]
        gave = volume.run(lambda mine=mine: [posix.perform(case) for case in mine], caller.uid, caller.gid, caller.groups)
        found.update(zip(mine, gave, strict=True))
    return {case: (*gave, posix.remains(volume.source / str(case.number))) for case, gave in found.items()}


def is_expected(case: posix.Case) -> bool:
    """The kernel's FUSE does not ask the filesystem for chown(-1, -1), which removes set-ID bits, and says that it is done."""
    return case.object == "set-ID file" and case.operation == "chown to nobody else"


def beside_idmapped(source: Path, namespace: str, stack: contextlib.ExitStack, step: int) -> dict[posix.Case, posix.Outcome]:
    """The outcomes on an idmapped mount of a new directory."""
    (source / "native").mkdir()
    (source / "native").chmod(0o755)
    target = stack.enter_context(bridged.directory()) / "idmapped"
    stack.enter_context(bridged.idmapped(source / "native", target, namespace))
    return outcomes(Volume(source / "native", target, namespace), step)


def beside_host(source: Path, step: int) -> dict[posix.Case, posix.Outcome]:
    """The outcomes for the host's users on the filesystem itself."""
    (source / "bare").mkdir()
    (source / "bare").chmod(0o755)
    return outcomes(Volume(source / "bare", source / "bare"), step)


def compare(kind: str, namespace: str, step: int) -> None:
    os.umask(0o022)
    with contextlib.ExitStack() as stack:
        volume = volume_of(kind, namespace, stack)
        (volume.source / "bridged").mkdir()
        (volume.source / "bridged").chmod(0o755)
        found = outcomes(Volume(volume.source / "bridged", volume.target / "bridged", namespace), step)
        if storage.idmap_error(volume.source, namespace):
            disk = stack.enter_context(bridged.directory())
            allowed = [beside_host(volume.source, step), beside_idmapped(disk, namespace, stack, step)]
        else:
            allowed = [beside_idmapped(volume.source, namespace, stack, step)]
    assert all(len(one) == len(found) > len(posix.OPERATIONS) for one in allowed)
    differences = [f"{case}: {outcome} and not {allowed[0][case]}" for case, outcome in found.items()
                   if all(outcome != one[case] for one in allowed) and not is_expected(case)]
    assert not differences, f"{len(differences)} differences:\n" + "\n".join(differences[:20])


def test_one_case_of_eleven_ends_as_without_the_bridge(namespace: str, kind: str) -> None:
    compare(kind, namespace, 11)


@pytest.mark.nightly
def test_each_case_ends_as_without_the_bridge(namespace: str, kind: str) -> None:
    compare(kind, namespace, 1)
