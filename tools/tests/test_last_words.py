# SPDX-License-Identifier: Apache-2.0
"""What commands print at their end: what there is now, and what to do next."""
import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from nodensdev import build, cluster, images
from nodensdev.checks import tests
from nodensdev.command import Failure

BUSYBOX = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"


@pytest.fixture
def suites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Suites that pass, fail and cannot be built, without a chroot."""
    @contextlib.contextmanager
    def prepared(_: object) -> Iterator[None]:
        yield None

    def unbuildable(_: object) -> bool:
        raise Failure("the gcc build failed")

    monkeypatch.setattr(tests.chroot, "prepared", prepared)
    monkeypatch.setattr(tests, "SUITES", {"good": tests.Suite("passes", lambda _: True), "bad": tests.Suite("fails", lambda _: False),
                                          "late": tests.Suite("is last", lambda _: True), "raises": tests.Suite("raises", unbuildable)})


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_a_test_run_ends_with_the_numbers_of_its_suites(suites: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert tests.run(argparse.Namespace(suite=["good", "late"], only="")) == 0
    assert last_line(capsys) == "== 2 suites in 0 s: 2 passed, 0 failed"


def test_a_test_run_ends_with_the_names_of_failed_suites(suites: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert tests.run(argparse.Namespace(suite=["good", "bad", "late"], only="")) == 1
    assert last_line(capsys) == "== 3 suites in 0 s: 2 passed, 1 failed (bad)"


def test_a_build_that_fails_does_not_hide_which_suites_did_not_run(suites: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Failure):
        tests.run(argparse.Namespace(suite=["good", "raises", "late"], only=""))
    assert last_line(capsys) == "== 3 suites in 0 s: 1 passed, 1 failed (raises), 1 not run (late)"


def test_a_build_says_where_its_programs_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "TOP", tmp_path)
    for name in ("src/nodens", "src/nodens-cri", "src/pull/nodens-fetch", "src/other"):
        path = tmp_path / "build/gcc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert build.where(tmp_path / "build/gcc").splitlines() == [
        "built: build/gcc/src/nodens, build/gcc/src/nodens-cri, build/gcc/src/pull/nodens-fetch",
        "try: tools/dev shell -- build/gcc/src/nodens check"]
    assert build.where(tmp_path / "build/fuzz") == "built: build/fuzz"


def test_a_new_cluster_names_its_images_and_the_next_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "layout", lambda _: SimpleNamespace(images={BUSYBOX: None, "registry.k8s.io/pause:3.10.2": None}))
    monkeypatch.setenv("SUDO_USER", "alice")
    words = cluster.next_steps(cluster.Options(runtime="nodens"))
    assert f"  {BUSYBOX}\n  registry.k8s.io/pause:3.10.2\n" in words
    assert f"  sudo tools/dev cluster kubectl -- run show --image={BUSYBOX} --restart=Never " in words
    assert words.endswith("  sudo tools/dev cluster ssh -- nodens pods\n  sudo tools/dev cluster down")


def test_the_next_commands_are_for_the_cluster_of_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_USER", raising=False)
    words = cluster.next_steps(cluster.Options(name="mine", images=()))
    assert "the nodes have no images" in words and "kubectl" not in words
    assert words.endswith("  tools/dev cluster ssh --name mine\n  tools/dev cluster down --name mine")
