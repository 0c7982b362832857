# SPDX-License-Identifier: Apache-2.0
"""tools/check-layers finds includes that point the wrong way, between layers and between the folders of a program."""
import importlib.machinery
import importlib.util
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from nodensdev.project import TOOLS, TOP

ORDER = {"core": "", "network": "core", "runtime": "core", "pod": "network runtime"}
TREE = {"base/text.h": "", "cri/core/record.h": "base/text.h", "cri/network/cni.c": "cri/core/record.h",
        "cri/runtime/exec.h": "cri/core/record.h",
        "cri/pod/sandbox.c": "cri/network/cni.h cri/runtime/exec.h cri/core/record.h", "cri/main.c": "cri/pod/sandbox.h cri/core/record.h"}


def load() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("check_layers", str(TOOLS / "check-layers"))
    spec = importlib.util.spec_from_loader("check_layers", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def layers() -> ModuleType:
    module = load()
    module.FOLDERS = {"cri": ORDER}     # type: ignore[attr-defined]
    return module


def problems(layers: ModuleType, src: Path, changes: dict[str, str], order: dict[str, str] | None = None) -> list[str]:
    """What the check says of TREE with some files changed."""
    for name, targets in (TREE | changes).items():
        path = src / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f'#include "{target}"\n' for target in targets.split()))
    if order is not None:
        layers.FOLDERS = {"cri": order}     # type: ignore[attr-defined]
    return layers.problems(src, layers.includes_of(src))


def test_includes_that_follow_the_order_are_fine(layers: ModuleType, tmp_path: Path) -> None:
    assert problems(layers, tmp_path, {}) == []


@pytest.mark.parametrize(("name", "target", "said"), [
    ("cri/core/pods.c", "cri/pod/container.h", "src/cri/core/pods.c: folder 'core' may not include \"cri/pod/container.h\""),
    ("cri/network/cni.c", "cri/runtime/exec.h", "src/cri/network/cni.c: folder 'network' may not include \"cri/runtime/exec.h\""),
    ("cri/pod/sandbox.c", "cri/daemon.h",
     "src/cri/pod/sandbox.c: folder 'pod' may not include \"cri/daemon.h\", which is above all folders"),
    ("cri/core/test-pods.c", "cri/pod/container.h", "src/cri/core/test-pods.c: folder 'core' may not include \"cri/pod/container.h\""),
    ("base/text.h", "sys/file.h", "src/base/text.h: layer 'base' may not include \"sys/file.h\""),
    ("guard/main.c", "cri/core/record.h", "src/guard/main.c: layer 'guard' may not include \"cri/core/record.h\""),
    ("cri/core/record.c", "record.h", 'src/cri/core/record.c: include "record.h" by its path below src, "cri/core/record.h"'),
    ("kube/pod.c", "sys/file.h", "src/kube/pod.c: layer 'kube' may not include \"sys/file.h\""),
])
def test_an_include_that_points_up_or_sideways_is_found(layers: ModuleType, tmp_path: Path, name: str, target: str, said: str) -> None:
    assert problems(layers, tmp_path, {name: target}) == [said]


def test_folders_and_table_must_agree(layers: ModuleType, tmp_path: Path) -> None:
    assert problems(layers, tmp_path,
                    {"cri/stream/token.c": ""}) == ["src/cri/stream: no order for this folder; tools/check-layers has the table"]
    assert problems(layers, tmp_path, {"guard/watch/a.c": ""},
                    ORDER | {"stream": "core"}) == ["src/guard/watch: no order for this folder; tools/check-layers has the table"]
    (tmp_path / "guard/watch/a.c").unlink()
    (tmp_path / "guard/watch").rmdir()
    assert problems(layers, tmp_path, {}, ORDER | {"stream": "core", "rpc": "pod"}) == ["tools/check-layers: no folder 'src/cri/rpc'"]


def test_the_table_goes_from_the_lowest_folder_to_the_highest(layers: ModuleType, tmp_path: Path) -> None:
    assert problems(layers, tmp_path, {},
                    ORDER | {"core": "pod"}) == ["tools/check-layers: 'cri/core' stands on 'pod', which is not before it"]


def test_the_tree_follows_its_own_order() -> None:
    module = load()
    assert module.problems(TOP / "src", module.includes_of(TOP / "src")) == []


def test_modules_that_include_each_other_are_a_circle(layers: ModuleType, tmp_path: Path) -> None:
    pair = {"cri/core/record.h": "cri/core/pods.h", "cri/core/pods.c": "cri/core/record.h cri/core/pods.h"}
    assert problems(layers, tmp_path, pair) == []
    includes = layers.includes_of(tmp_path)
    assert layers.circles(includes) == [["cri/core/pods", "cri/core/record"]]


def test_a_circle_of_three_modules_fails(layers: ModuleType, tmp_path: Path) -> None:
    three = {"cri/core/record.h": "cri/core/pods.h", "cri/core/pods.c": "cri/core/events.h", "cri/core/events.h": "cri/core/record.h"}
    assert problems(layers, tmp_path, three) == ["3 modules include each other: cri/core/events cri/core/pods cri/core/record"]


def test_tests_and_fuzzers_close_no_circle(layers: ModuleType, tmp_path: Path) -> None:
    tests = {"cri/core/record.h": "cri/core/test-record.h", "cri/core/test-record.h": "cri/core/record.h"}
    assert problems(layers, tmp_path, tests) == []
    assert layers.circles(layers.includes_of(tmp_path)) == []


def test_the_program_prints_circles_and_fails_on_a_large_one(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    for name, target in (("a", "b"), ("b", "c"), ("c", "a")):
        (tmp_path / f"base/{name}.h").write_text(f'#include "base/{target}.h"\n')
    done = subprocess.run([TOOLS / "check-layers", "--circles", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == "3 base/a base/b base/c\n"
    (tmp_path / "base/c.h").write_text("")
    assert subprocess.run([TOOLS / "check-layers", "--circles", tmp_path], capture_output=True).returncode == 0


def test_the_page_names_the_folders_of_each_program() -> None:
    page = (TOP / "ARCHITECTURE.md").read_text()
    for program, folders in load().FOLDERS.items():
        line = next(line for line in page.splitlines() if line.startswith(f"src/{program}/  "))
        missing = [folder for folder in folders if not re.search(rf"\b{folder}\b", line)]
        assert not missing, f"ARCHITECTURE.md, Layers: src/{program}/ lacks {', '.join(missing)}"
