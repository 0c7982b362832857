# SPDX-License-Identifier: Apache-2.0
"""What counts as a fuzzer's finding."""
from pathlib import Path

from nodensdev.checks import fuzz


def test_a_fuzzer_does_not_claim_what_another_left(tmp_path: Path) -> None:
    for name in ("grpc-session.log", "grpc-session-crash-1", "grpc.log", "grpc-crash-2", "grpc-leak-3"):
        (tmp_path / name).touch()
    assert {path.name for path in fuzz.found_by("grpc", tmp_path)} == {"grpc-crash-2", "grpc-leak-3"}
    assert {path.name for path in fuzz.found_by("grpc-session", tmp_path)} == {"grpc-session-crash-1"}


def test_the_time_is_what_the_shells_children_worked() -> None:
    assert fuzz.children_seconds("0m0.010s 0m0.020s\n1m2.500s 0m0.250s\n") == 62.75
