# SPDX-License-Identifier: Apache-2.0
import multiprocessing
import os
import time
from pathlib import Path

import pytest
from nodensdev.env import cache


def fill(path: Path) -> None:
    (path / "file").write_text("made")


def make_slowly(counter: str, path: Path) -> None:
    with open(counter, "a") as stream:
        stream.write("x")
    time.sleep(0.3)
    fill(path)


def test_an_entry_is_made_once(private_cache: Path) -> None:
    calls = []

    def make(path: Path) -> None:
        calls.append(path)
        fill(path)

    first = cache.ensure("kind", "name", "key", make)
    second = cache.ensure("kind", "name", "key", make)
    assert first == second == private_cache / "kind" / "name" / "key"
    assert len(calls) == 1
    assert (first / "file").read_text() == "made"


def test_a_failed_making_leaves_nothing(private_cache: Path) -> None:
    def fail(path: Path) -> None:
        fill(path)
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError):
        cache.ensure("kind", "name", "key", fail)
    assert not (private_cache / "kind" / "name" / "key").exists()
    assert list((private_cache / "tmp").iterdir()) == []


def test_two_at_once_make_it_once(private_cache: Path, tmp_path: Path) -> None:
    counter = str(tmp_path / "counter")
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=lambda: cache.ensure("kind", "name", "key", lambda path: make_slowly(counter, path)))
            for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert Path(counter).read_text() == "x"


def test_another_input_is_another_key() -> None:
    assert cache.key_of("ab", "c") != cache.key_of("a", "bc")


def test_the_older_key_of_a_name_is_stale_and_pruned(private_cache: Path) -> None:
    context = multiprocessing.get_context("fork")
    for age, key in ((100, "old"), (0, "new")):  # made by other processes, which are no users any more
        process = context.Process(target=lambda key=key: cache.ensure("kind", "name", key, fill))
        process.start()
        process.join()
        lock = private_cache / "kind" / "name" / f"{key}.lock"
        os.utime(lock, (time.time() - age, time.time() - age))
    assert {entry.path.name: entry.stale for entry in cache.entries()} == {"old": True, "new": False}
    cache.prune(everything=False)
    assert [path.name for path in (private_cache / "kind" / "name").iterdir() if path.is_dir()] == ["new"]


def test_what_is_in_use_is_not_pruned(private_cache: Path) -> None:
    entry = cache.ensure("kind", "name", "key", fill)
    process = multiprocessing.get_context("fork").Process(target=lambda: cache.prune(everything=True))
    process.start()
    process.join()
    assert entry.is_dir()


def test_scratch_space_goes_with_its_command(private_cache: Path) -> None:
    with cache.scratch("test") as path:
        fill(path)
    assert not path.exists()


def test_scratch_space_of_a_killed_command_goes_with_the_next(private_cache: Path) -> None:
    abandoned = private_cache / "scratch" / "chroot-x"
    abandoned.mkdir(parents=True)
    fill(abandoned)
    os.utime(abandoned, (1, 1))
    with cache.scratch("test"):
        assert not abandoned.exists()


def test_a_tree_that_is_deeper_than_pythons_stack_is_removed(private_cache: Path) -> None:
    """Tests of images make such trees, and may be killed before they remove them."""
    with cache.scratch("test") as path:
        descriptor = os.open(path, os.O_RDONLY)
        for _ in range(3000):
            os.mkdir("d", dir_fd=descriptor)
            below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        os.close(descriptor)
    assert not path.exists()


def test_scratch_space_that_another_command_removes_meanwhile_is_no_error(private_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = private_cache / "scratch" / "chroot-y"
    gone.parent.mkdir(parents=True, exist_ok=True)
    listing = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda self: [*listing(self), gone] if self == gone.parent else listing(self))
    with cache.scratch("test") as path:
        assert path.is_dir()
