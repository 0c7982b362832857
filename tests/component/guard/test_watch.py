# SPDX-License-Identifier: Apache-2.0
"""Watches that stay silent. A real API server skips bookmarks while nothing changes, which cannot be arranged on demand."""
import time
from pathlib import Path

import alone
import pytest
from conftest import wait_until

SILENT = f"{alone.RBAC}/roles"
BUSY = "/api/v1/namespaces"


@pytest.mark.slow
def test_a_watch_without_bookmarks_begins_again_and_disturbs_no_other(tmp_path: Path) -> None:
    with alone.running(tmp_path) as guard:
        guard.api.silent.add(SILENT)
        watches = guard.api.count[f"WATCH {SILENT}"]
        began = time.monotonic()
        while guard.api.count[f"WATCH {SILENT}"] == watches:
            assert time.monotonic() - began < 150, "the silent watch did not begin again"
            assert guard.metric("nodens_guard_rbac_fresh") == 1
            time.sleep(1)
        wait_until(lambda: guard.metric("nodens_guard_rbac_fresh") == 1, "the fresh index", 5)
        time.sleep(15)     # the age at which it would no longer be
        assert guard.metric("nodens_guard_rbac_fresh") == 1
        assert guard.api.count[f"WATCH {BUSY}"] == 1, "other watches continue"
        assert "cannot read" not in guard.log() and "not ready" not in guard.log(), guard.log()
