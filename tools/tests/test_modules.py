# SPDX-License-Identifier: Apache-2.0
"""Code that no quick check runs (proofs, benchmarks, stories) uses names that exist."""
import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodensdev.project import TESTS, TOOLS

FILES = sorted(path for place in (TESTS, TOOLS) for path in place.rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Of each import from nodensdev: the module, the name in it, and what it is called here."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "nodensdev":
            for name in node.names:
                yield node.module or "", name.name, name.asname or name.name


def thing(module: str, name: str) -> object:
    """A module, or what one holds; raises when it is neither."""
    try:
        return importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return getattr(importlib.import_module(module), name)


def missing(source: str) -> list[str]:
    tree = ast.parse(source)
    found = []
    modules = {}
    for module, name, alias in imported(tree):
        try:
            modules[alias] = thing(module, name)
        except AttributeError:
            found.append(f"{module}.{name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            owner = modules[node.value.id]
            if hasattr(owner, "__file__") and not hasattr(owner, node.attr):
                found.append(f"{node.value.id}.{node.attr}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TOOLS.parent)))
def test_names_of_our_modules_are_there(path: Path) -> None:
    assert missing(path.read_text()) == []


def test_a_name_that_is_gone_is_found() -> None:
    assert missing("from nodensdev.env import deps\ndeps.nothing()\n") == ["deps.nothing"]
    assert missing("from nodensdev.project import NOWHERE\n") == ["nodensdev.project.NOWHERE"]
    assert missing("from nodensdev import project\nproject.TOP\n") == []
