# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/storage.md and the results they come from."""
import json
from pathlib import Path
from typing import Any

import pytest
from nodensdev import page_tables, storage
from nodensdev.command import Failure
from nodensdev.storage import Reason

KNOWN = [Reason("test_acl", ("nfs4",), "it has none")]


def whole() -> storage.Results:
    return {"ext4": {"kernel": "7", "idmap_error": None, "passed": ["test_acl", "test_data"], "failed": []},
            "nfs4": {"kernel": "7", "idmap_error": "EINVAL", "passed": ["test_data"], "failed": ["test_acl"]},
            "smb": {"kernel": "7", "idmap_error": "EINVAL", "passed": ["test_owner"], "failed": []}}


def test_the_page_is_what_the_last_results_give() -> None:
    assert storage.problems() == []


def test_results_with_a_reason_for_each_failure_are_fine() -> None:
    assert storage.problems_of(whole(), KNOWN) == []


def test_what_differs_from_the_reasons_is_named() -> None:
    assert storage.problems_of(whole(), []) == ["nfs4: test_acl fails without a reason"]
    assert storage.problems_of(whole(), [*KNOWN, Reason("test_data", ("ext4",), "x")]) == [
        "ext4: test_data has a reason to fail, and does not"]


def test_a_run_that_was_cut_short_is_named() -> None:
    short = whole()
    short["nfs4"]["passed"] = []
    assert storage.problems_of(short, KNOWN) == ["nfs4: test_data was not run"]


def test_the_table_says_how_a_pod_gets_the_storage() -> None:
    neither: dict[str, Any] = {"kernel": "7", "idmap_error": "EPERM", "passed": [], "failed": ["test_data"]}
    lines = storage.render(whole() | {"9p": neither}).splitlines()[2:]
    assert lines == ["| ext4 | yes | idmapped mount | 2 of 2 | 7 |",
                     "| NFS 4.2 | no: `EINVAL` | nodens-bridge, `bridge: auto` | 1 of 2 | 7 |",
                     "| SMB 3.1.1 | no: `EINVAL` | nodens-bridge, `forceOwner` | 1 of 1 | 7 |",
                     "| 9p (2000.L) | no: `EPERM` | neither | 0 of 1 | 7 |"]
    assert "| acl | NFS 4.2 | it has none |" in storage.render_reasons(KNOWN)


def test_new_results_replace_those_of_their_storage_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(storage, "NEWEST", storage.BUILD / "no-such-folder")
    with pytest.raises(Failure, match="no results in build/no-such-folder"):
        storage.newest()
    monkeypatch.setattr(storage, "NEWEST", tmp_path / "new")
    storage.RESULTS.write_text(json.dumps({"facts": {}, "results": whole()}))
    storage.NEWEST.mkdir()
    (storage.NEWEST / "local.json").write_text(json.dumps({"results": {"ext4": whole()["ext4"] | {"kernel": "8"}}}))
    found = storage.newest()["results"]
    assert found["ext4"]["kernel"] == "8" and found["nfs4"] == whole()["nfs4"]


def test_the_page_gets_both_tables() -> None:
    blocks = [page_tables.BEGIN.format(name=name) + "old\n" + page_tables.END for name in ("storage", "reasons")]
    data = {"facts": {"date": "2026-11-17", "commit": "c0ffee"}, "results": whole()}
    page = storage.page_from("\n".join(blocks) + "Results of 2000-01-01.\n", data, KNOWN)
    assert "old" not in page and "Results of 2026-11-17 (last run: commit c0ffee), 3 kinds of storage." in page


def test_each_kind_of_the_tests_has_a_title() -> None:
    from nodenstest import storage as kinds
    assert set(kinds.KINDS) == set(storage.KINDS)
