# SPDX-License-Identifier: Apache-2.0
"""The root in which packages are built has the build dependencies of debian/control."""
import re

from nodensdev.project import TOP

GIVEN = {"debhelper-compat": "debhelper"}


def asked() -> set[str]:
    field = re.search(r"^Build-Depends:\n((?: .*\n)+)", (TOP / "debian/control").read_text(), re.MULTILINE)
    assert field
    names = {entry.split()[0] for entry in field[1].replace("\n", " ").split(",") if entry.strip()}
    return {GIVEN.get(name, name) for name in names}


def listed() -> set[str]:
    lines = (TOP / "tools/roots/package.list").read_text().splitlines()
    return {line.split("#")[0].strip() for line in lines} - {""}


def test_the_packages_root_has_every_build_dependency() -> None:
    assert len(asked()) > 15
    assert asked() - listed() == set()
