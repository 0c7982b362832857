# SPDX-License-Identifier: Apache-2.0
"""The tools' own tests: pure logic only, run by `tools/dev test tools` inside the root."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


@pytest.fixture
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("NODENS_CACHE", str(tmp_path))
    return tmp_path
