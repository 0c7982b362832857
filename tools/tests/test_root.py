# SPDX-License-Identifier: Apache-2.0
import re
from pathlib import Path

import pytest
from nodensdev.command import Failure
from nodensdev.env import root


def test_a_list_can_include_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "LISTS", tmp_path)
    (tmp_path / "small.list").write_text("# heading\n\nbash  # a shell\n")
    (tmp_path / "large.list").write_text("@include small\nzsh  # another\n")
    assert root.packages("large") == ["bash", "zsh"]
    assert root.key("small") != root.key("large")


def test_an_unknown_root_is_refused() -> None:
    with pytest.raises(Failure):
        root.packages("no-such-root")


@pytest.mark.parametrize("name", root.names())
def test_every_package_has_its_reason(name: str) -> None:
    for line in (root.LISTS / f"{name}.list").read_text().splitlines():
        assert not line or line.startswith(("#", "@include ")) or re.match(r"\S+ +# \S", line), line
