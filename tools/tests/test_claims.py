# SPDX-License-Identifier: Apache-2.0
"""Figures and lists of documents that come from the tree or from other pages are those of the tree and the pages."""
import re

from nodensdev.bench import pictures
from nodensdev.project import TOP

README = (TOP / "README.md").read_text()
MODEL = (TOP / "docs/security-model.md").read_text()


def claim(pattern: str) -> int:
    found = re.search(pattern, README)
    assert found, f"README.md has nothing like '{pattern}'"
    return int(found[1].replace(",", ""))


def test_the_number_of_fuzzers() -> None:
    assert claim(r"(\d+) fuzzers stand beside") == len(list(TOP.glob("src/**/fuzz-*.c")))


def test_the_lines_of_c_that_ship_within_a_tenth() -> None:
    files = [path for path in TOP.glob("src/**/*.[ch]") if not path.name.startswith(("test-", "fuzz-"))]
    lines = sum(bool(line.strip()) for path in files for line in path.read_text().splitlines())
    assert abs(claim(r"about ([\d,]+) lines of C") - lines) <= lines / 10, f"{lines:,} lines"


def test_the_numbers_of_requirements_and_flaws() -> None:
    assert claim(r"(\d+) requirements come from") == len(set(re.findall(r"^\| (R\d+) \|", MODEL, re.M)))
    assert claim(r"found (\d+) flaws") == len(set(re.findall(r"^\| (F\d+) \|", MODEL, re.M)))


def test_the_table_of_performance_has_the_figures_of_the_benchmarks() -> None:
    """Rounded as the table rounds them, with seconds for milliseconds."""
    page = pictures.Page((TOP / "docs/benchmarks.md").read_text())
    own = pictures.Page(README).tables["Performance"]
    for row, measured in {"start of a pod": "pod start in all (ms)", "end of a pod": "pod end in all (ms)",
                          "memory without the workload, 20 pods": "memory of all but the workload, 20 pods (MB)",
                          "daemon restart with 20 pods": "daemon restart with 20 pods (ms)"}.items():
        for name, column in (("containerd", next(name for name in own[row] if name.startswith("containerd"))), ("nodens", "nodens-cri")):
            number, unit = own[row][column].split()
            figure = float(page.cell(pictures.MODES["on"], measured, name)) / (1000 if unit == "s" else 1)
            assert f"{figure:.{len(number.partition('.')[2])}f}" == number, (row, column)
    commits = re.findall(r"commit (\w{7})", page.content.partition("## Results")[2])
    assert f"at commit {commits[0]}:" in README


def test_the_packages_that_meson_names_are_those_of_the_page_and_of_the_debian_packages() -> None:
    build = (TOP / "meson.build").read_text()
    named = set(re.findall(r"'[\w.-]+': \['>=[\d.]+', '([\w-]+)'\]", build)) | set(re.findall(r"'protoc[\w-]*': '([\w-]+)'", build))
    assert len(named) == 15
    for page in ("docs/install.md", "debian/control"):
        words = set(re.findall(r"[\w.+-]+", (TOP / page).read_text()))
        assert named <= words, f"{page} lacks {', '.join(sorted(named - words))}"
