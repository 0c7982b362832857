# SPDX-License-Identifier: Apache-2.0
"""The checks of ARCHITECTURE.md's five ways and of docs/renames.md find what these pages could get wrong."""
from nodensdev.checks import doc_names

PAGE = "# Architecture\n\n## The way of five requests\n\n" + "".join(
    f"### {title}\n\n1. `src/base/error.c`: makes the error\n2. `src/base/text.c`: writes it\n\n"
    for title in doc_names.REQUESTS) + "## After it\n\n1. `src/none.c`: not ours\n"


def test_five_ways_with_files_that_exist_are_fine() -> None:
    assert doc_names.way_problems(PAGE) == []
    assert doc_names.ways(PAGE)["PullImage"] == ["1. `src/base/error.c`: makes the error", "2. `src/base/text.c`: writes it"]


def test_a_missing_section_or_way_is_found() -> None:
    assert doc_names.way_problems("# Architecture\n") == ["ARCHITECTURE.md: no section 'The way of five requests'"]
    assert doc_names.way_problems(PAGE.replace("### PullImage",
                                               "### Pull")) == ["ARCHITECTURE.md: no way of 'PullImage' in 'The way of five requests'"]


def test_a_file_that_is_not_there_is_found() -> None:
    gone = PAGE.replace("`src/base/error.c`", "`src/base/gone.c`", 1)
    assert doc_names.way_problems(gone) == ["ARCHITECTURE.md: no file 'src/base/gone.c' on the way of 'RunPodSandbox'"]


def test_a_way_of_nine_files_is_too_long() -> None:
    long = PAGE.replace("2. `src/base/text.c`: writes it\n",
                        "".join(f"{number}. `src/base/text.c`: writes it\n" for number in range(2, 10)), 1)
    assert doc_names.way_problems(long) == ["ARCHITECTURE.md: the way of 'RunPodSandbox' has 9 files, more than 8"]


def test_a_file_without_a_word_about_it_is_found() -> None:
    bare = PAGE.replace("1. `src/base/error.c`: makes the error", "1. `src/base/error.c`", 1)
    assert doc_names.way_problems(bare) == ["ARCHITECTURE.md: want '1. `src/FILE`: what it does', not '1. `src/base/error.c`'"]


def test_new_names_of_the_renames_must_exist() -> None:
    page = ("| old | new |\n|---|---|\n| `src/a.c` | `src/base/error.c` |\n| base/a.h | base/error.h |\n| `struct a` | `struct nd_text` |\n"
            "| a_free() | nd_text_done() |\n| `b` | (removed) |\n| c | `nd_text`, `nd_error` (two parts) |\n")
    words = {"nd_text", "nd_text_done", "nd_error"}
    assert doc_names.rename_problems(page, words) == []
    assert doc_names.rename_problems(page, words - {"nd_error"}) == ["docs/renames.md:8: no file or symbol 'nd_error'"]
    assert doc_names.rename_problems("| old | new |\n|---|---|\n| x | src/cri/none.c |\n",
                                     words) == ["docs/renames.md:3: no file or symbol 'src/cri/none.c'"]
