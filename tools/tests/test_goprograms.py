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


def test_a_set_may_report_another_version_and_the_keys_of_the_others_do_not_change() -> None:
    relinked, plain = goprograms.recipe_of("kubelet-relinked"), goprograms.recipe_of("kubelet-33")
    flags = goprograms.link_flags(relinked, goprograms.MODULES)
    assert all(f"-X {variable}=v1.28.15" in flags for variable in relinked.stamps) and len(relinked.stamps) == 2
    assert "v1.28.15" in relinked.text() and plain.text() == repr(plain) and "version=" not in plain.text()
