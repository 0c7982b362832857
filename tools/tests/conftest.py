# SPDX-License-Identifier: Apache-2.0
"""The tools' own tests: pure logic only, run by `tools/dev test tools` inside the root."""
from pathlib import Path

import pytest


@pytest.fixture
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("NODENS_CACHE", str(tmp_path))
    return tmp_path
