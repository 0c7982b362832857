# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from nodensdev.checks import excerpt


@pytest.mark.parametrize("cause", (
    "FAILED tests/component/cri/test_exec.py::test_it_ends - AssertionError: 1 != 2",
    "E       AssertionError: what the daemon said is not so",
    "../src/cri/pod.c:12:3: error: unused variable",
    "  3/180 unit - nodens:userns    FAIL    0.31s   exit status 1",
    "SUMMARY: AddressSanitizer: heap-use-after-free src/cri/pod.c:12 in pod_free",
))
def test_what_went_wrong_is_shown_however_much_follows_it(tmp_path: Path, cause: str) -> None:
    log = tmp_path / "log"
    log.write_text("\n".join(["nothing to see"] * 500 + [cause] + [f"line {number}" for number in range(500)]))
    shown = excerpt.excerpt(log)
    assert shown[0] == cause and shown[-1] == "line 499"
    assert len(shown) <= excerpt.CAUSES + 1 + excerpt.END


def test_a_short_log_is_shown_whole_and_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\nFAILED two\n")
    assert excerpt.excerpt(log) == ["one", "FAILED two"]
