# SPDX-License-Identifier: Apache-2.0
"""The check that keeps docs/security-model.md true: it finds what a page could get wrong."""
import re

from nodensdev.checks import doc_names

PAGE = doc_names.SECURITY_MODEL.read_text()


def without(pattern: str, text: str = PAGE) -> str:
    changed = re.sub(pattern, "", text, count=1, flags=re.MULTILINE)
    assert changed != text
    return changed


def test_the_page_as_it_is_names_a_test_for_every_requirement_and_finding() -> None:
    assert doc_names.row_problems(PAGE) == []


def test_a_requirement_that_is_missing_or_there_twice_is_found() -> None:
    assert any("R7 has no row" in line for line in doc_names.row_problems(without(r"^\| R7 \|.*$")))
    assert any("R7 has two rows" in line
               for line in doc_names.row_problems(PAGE + "\n| R7 | x | y | `src/cri/bundle/test-user.c` `numbers_out_of_range_are_refused` "
                                                         "|\n"))
    assert any("R28" in line for line in doc_names.row_problems(PAGE + "\n| R28 | x | y | z |\n"))


def test_a_requirement_without_a_test_and_a_test_that_is_not_there_are_found() -> None:
    bare = re.sub(r"^(\| R9 \|[^|]*\|[^|]*\|).*$", r"\1 |", PAGE, flags=re.MULTILINE)
    assert any("R9 names no test" in line for line in doc_names.row_problems(bare))
    renamed = PAGE.replace("`a_token_lives_for_a_minute`", "`a_token_lives_for_ever`")
    assert any("no test 'a_token_lives_for_ever'" in line for line in doc_names.row_problems(renamed))


def test_a_c_test_that_is_not_in_its_table_is_none() -> None:
    path = doc_names.TOP / "src/cri/bundle/test-user.c"
    assert doc_names.has_test(path, "numbers_out_of_range_are_refused") and not doc_names.has_test(path, "main")
