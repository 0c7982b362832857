# SPDX-License-Identifier: Apache-2.0
"""Go programs: recipes can be read, and every pin is a file of the tree."""
import pytest
from nodensdev.command import Failure
from nodensdev.env import goprograms


def test_every_set_has_its_pins() -> None:
    for recipe in goprograms.recipes().values():
        for name in ("go.mod", "go.sum"):
            assert (goprograms.MODULES / recipe.module / name).is_file()


def test_every_set_builds_something() -> None:
    assert all(goprograms.built_names(recipe) for recipe in goprograms.recipes().values())


def test_kubernetes_is_pinned() -> None:
    assert goprograms.pinned_version("kubernetes", "k8s.io/kubernetes").startswith("v1.")


def test_an_unknown_set_is_named_with_those_there_are() -> None:
    with pytest.raises(Failure, match="no set of Go programs 'x'.*kubernetes"):
        goprograms.recipe_of("x")
