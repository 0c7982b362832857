# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint words`: what is counted, and that the limits can be exceeded."""
from pathlib import Path

import pytest
from nodensdev.checks import c_text, idioms


def tree(top: Path, comment: str = "", string: str = "", document: str = "", name: str = "src/cri/a.c") -> Path:
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'/* SPDX-License-Identifier: Apache-2.0 */\n#include "nobody.h"\n/* {comment} */\nchar *text = "{string}";\n')
    (top / "README.md").write_text(document)
    return top


@pytest.mark.parametrize(("sentence", "idiom"), [
    ("Whoever asks", 0), ("whatever it is", 0), ("wherever", 0), ("nobody's", 1), ("Somebody", 1), ("for everybody", 1), ("anybody", 1),
    ("those who wait", 2), ("the one that\n * asked", 2), ("all who", 2), ("is told", 3), ("Tell", 3), ("tells", 3), ("telling", 3),
])
def test_each_idiom_is_found_in_comments_and_documents(tmp_path: Path, sentence: str, idiom: int) -> None:
    for text in (idioms.comments(tree(tmp_path, comment=sentence)), idioms.documents(tree(tmp_path, document=sentence.replace("*", "")))):
        found = idioms.count(text, tmp_path)
        assert [len(found.places[one.name]) for one in idioms.IDIOMS] == [int(number == idiom) for number in range(4)]


def test_the_user_nobody_licences_blocks_tests_and_other_words_are_not_counted(tmp_path: Path) -> None:
    tree(tmp_path, comment="The user nobody, 'nobody' and nobody (65534) own it; a teller, those, bodies.", string="nobody",
         document="```sh\nchown nobody x  # whoever\n```\n`nobody`")
    tree(tmp_path, comment="whoever", string="whoever", name="src/cri/test-a.c")
    (tmp_path / "README.md").write_text("`nobody`\n```sh\nwhoever\n```\n")
    lines, found = idioms.of_tree(tmp_path)
    assert found == [] and lines[-1] == "idioms in string literals: 0"


def test_more_than_twice_the_highest_anchor_fails(tmp_path: Path) -> None:
    idiom = idioms.IDIOMS[3]
    assert idiom.limit == pytest.approx(2.14)
    for tells, fails in ((2, False), (3, True)):
        found = idioms.count([idioms.Text(tmp_path / "a.c", 1, "tell " * tells + "word " * (1000 - tells))], tmp_path)
        assert found.words == 1000 and bool(idioms.problems({"comments": found})) == fails


def test_one_idiom_in_a_string_literal_fails_also_across_two_lines(tmp_path: Path) -> None:
    _, found = idioms.of_tree(tree(tmp_path, string='it is for those "\n        "who wait'))
    assert found == ["src/cri/a.c:4: 'those who' in a string literal"]


def test_a_text_that_is_fixed_by_others_is_exempt(tmp_path: Path) -> None:
    listed = tmp_path / "exceptions"
    listed.write_text("# why\n`for those who wait` Kubernetes' own text\n")
    tree(tmp_path, string="for those who wait")
    assert idioms.seen_by_users(tmp_path, idioms.exceptions(listed)) == [] and idioms.seen_by_users(tmp_path, set()) != []


def test_the_limits_are_those_of_the_review() -> None:
    assert [round(idiom.limit, 2) for idiom in idioms.IDIOMS] == [0.48, 0.64, 0.24, 2.14]


def test_comments_strings_and_digits_are_distinguished() -> None:
    text = 'int a = 1\'000; /* "one" */ char *b = "/* two */ \\" x"; // three\nchar c = \'"\'; char *d = "four";\n'
    assert [piece.text for piece in c_text.comments(text)] == ['/* "one" */', "// three"]
    assert [piece.text for piece in c_text.strings(text)] == ['/* two */ \\" x', "four"]
    assert "one" not in c_text.code(text) and "four" not in c_text.code(text) and "1'000" in c_text.code(text)
