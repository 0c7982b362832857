# SPDX-License-Identifier: Apache-2.0
"""`tools/dev lint symbols`: each rule about shared names can fail."""
import shutil
import subprocess
from pathlib import Path

import pytest
from nodensdev.checks import symbols
from nodensdev.command import Failure
from nodensdev.project import TOP

TREE = {
    "src/base/text.h": """
        struct nd_text { char *bytes; };
        enum nd_text_mode { PLAIN };
        typedef int (*nd_text_sink)(const char *bytes);
        typedef struct nd_text *(*nd_text_source)(int number);
        extern const char *const nd_text_names[];
        static constexpr unsigned nd_text_limit = 7;
        void nd_text_add(struct nd_text *text);
        """,
    "src/base/text.c": """
        const char *const nd_text_names[] = {"a"};
        static const struct { int a; } table[] = {{1}};
        [[nodiscard]] static bool is_full(void) { return true; }
        void nd_text_add(struct nd_text *text) { is_full(); }
        """,
    "src/net/api-client.h": "struct nd_api_call;\nvoid nd_api_client_free(void);\nvoid nd_net_begin(void);\n",
    "src/net/api-client.c": "struct nd_api_call { int a; };\nvoid nd_api_client_free(void) {}\nvoid nd_net_begin(void) {}\n",
    "src/cri/core/record.h": "struct cri_record { int a; };\nvoid cri_record_write(struct cri_store *store);\nstatic inline void "
                             "cri_record_done(void) {}\n",
    "src/cri/core/record.c": "struct cri_store { int a; };\nstruct place { int a; };\nvoid cri_record_write(struct cri_store *store) {}\n",
    "src/cri/main.c": "static void run(void) {}\nint main(void) { run(); }\n",
    "src/mon/main.c": "static void run(void) {}\nint main(void) { run(); }\n",
    "src/cri/core/test-record.c": "void helper(void) {}\n",
}


def ctags(top: Path) -> list[symbols.Symbol]:
    return symbols.read(lambda argv: subprocess.run(argv, cwd=top, capture_output=True, text=True, check=True).stdout)


def problems(top: Path, changes: dict[str, str], excepted: str = "") -> list[str]:
    """What the lint says of TREE with text added to some files."""
    for name in {**TREE, **changes}:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(TREE.get(name, "").replace("\n        ", "\n") + changes.get(name, ""))
    return symbols.problems(ctags(top), symbols.headers_of(top), symbols.exceptions(excepted))


def test_a_tree_that_follows_the_rules_is_clean(tmp_path: Path) -> None:
    assert problems(tmp_path, {}) == []


@pytest.mark.parametrize(("name", "code", "said"), [
    ("src/cri/core/record.h", "void record_read(void);", "src/cri/core/record.h:4: 'record_read' lacks the prefix 'cri_'"),
    ("src/cri/core/record.h", "struct record;\nstruct pair { int a; };", "src/cri/core/record.h:5: 'pair' lacks the prefix 'cri_'"),
    ("src/cri/core/record.h", "enum record_mode { A };", "src/cri/core/record.h:4: 'record_mode' lacks the prefix 'cri_'"),
    ("src/cri/core/record.h", "typedef unsigned record_number;", "src/cri/core/record.h:4: 'record_number' lacks the prefix 'cri_'"),
    ("src/cri/core/record.h", "extern const int records[];", "src/cri/core/record.h:4: 'records' lacks the prefix 'cri_'"),
    ("src/cri/core/record.h", "extern const int cri_numbers[2], letters[];\n",
     "src/cri/core/record.h:4: 'letters' lacks the prefix 'cri_'"),
    ("src/cri/core/record.h", "static inline void record_done(void) {}", "src/cri/core/record.h:4: 'record_done' lacks the prefix 'cri_'"),
    ("src/cri/core/record.h", "void nd_record_read(void);", "src/cri/core/record.h:4: 'nd_record_read' lacks the prefix 'cri_'"),
    ("src/base/text.h", "void nd_write(void);", "src/base/text.h:9: 'nd_write' lacks the prefix 'nd_text_'"),
    ("src/net/api-client.h", "void nd_client_end(void);", "src/net/api-client.h:4: 'nd_client_end' lacks the prefix 'nd_api_client_'"),
    ("src/agent/pod.h", "void pod_sync(void);", "src/agent/pod.h:1: 'pod_sync' lacks the prefix 'agent_'"),
])
def test_a_shared_name_without_its_prefix_is_found(tmp_path: Path, name: str, code: str, said: str) -> None:
    assert problems(tmp_path, {name: code}) == [said]


def test_a_tag_that_a_header_names_and_a_c_file_defines_is_shared(tmp_path: Path) -> None:
    found = problems(tmp_path, {"src/cri/core/record.h": "struct book;\n", "src/cri/core/record.c": "struct book { int a; };\n"})
    assert found == ["src/cri/core/record.c:4: 'book' lacks the prefix 'cri_'"]


@pytest.mark.parametrize("code", ["typedef struct cri_record cri_record_type;", "typedef struct {\n        int a;\n} cri_pair;",
                                  "typedef union {\n int a;\n} cri_pair;",
                                  "typedef struct cri_record *cri_record_pointer;", "typedef enum { A, B } cri_letter;",
                                  "typedef nd_vector(int) cri_numbers;"])
def test_a_struct_typedef_is_found(tmp_path: Path, code: str) -> None:
    found = problems(tmp_path, {"src/cri/core/record.h": code})
    assert len(found) == 1 and "is a typedef of a struct" in found[0]


def test_a_name_that_is_defined_twice_is_found(tmp_path: Path) -> None:
    found = problems(tmp_path,
                     {"src/cri/core/pods.c": "void cri_record_write(void) {}\n", "src/cri/core/pods.h": "struct cri_record { int b; };\n"})
    assert found == ["src/cri/core/record.c:3: 'cri_record_write' is also defined at src/cri/core/pods.c:1",
                     "src/cri/core/record.h:1: 'cri_record' is also defined at src/cri/core/pods.h:1"]


@pytest.mark.parametrize(("name", "code", "said"), [
    ("src/cri/core/record.c", "static void cri_flush(void) {}",
     "src/cri/core/record.c:4: file-local 'cri_flush' carries the shared prefix 'cri_'"),
    ("src/cri/core/record.c", "static void nd_flush(void) {}",
     "src/cri/core/record.c:4: file-local 'nd_flush' carries the shared prefix 'nd_'"),
    ("src/cri/core/record.c", "static int cri_count;", "src/cri/core/record.c:4: file-local 'cri_count' carries the shared prefix 'cri_'"),
    ("src/cri/core/record.c", "struct cri_place { int a; };",
     "src/cri/core/record.c:4: file-local 'cri_place' carries the shared prefix 'cri_'"),
    ("src/mon/log.c", "static void cri_record_write(void) {}",
     "src/mon/log.c:1: file-local 'cri_record_write' has the name of a shared function at src/cri/core/record.c:3"),
    ("src/mon/log.c", "static const int cri_record_write[] = {1};",
     "src/mon/log.c:1: file-local 'cri_record_write' has the name of a shared function at src/cri/core/record.c:3"),
    ("src/mon/log.c", "struct cri_pods { int a; };", ""),
])
def test_a_file_local_name_that_looks_shared_is_found(tmp_path: Path, name: str, code: str, said: str) -> None:
    assert problems(tmp_path, {name: code}) == ([said] if said else [])


def test_an_exception_has_a_reason_and_is_needed(tmp_path: Path) -> None:
    odd = {"src/base/text.h": "void nd_write(void);\n"}
    assert problems(tmp_path, odd, "# names\n\nnd_wr* every module uses it\n") == []
    assert problems(tmp_path, {}, "nd_write every module uses it\n") == ["tools/symbols.exceptions: 'nd_write' is not needed"]
    with pytest.raises(Failure, match="'nd_write' has no reason"):
        problems(tmp_path, odd, "nd_write\n")


def test_programs_have_no_exceptions(tmp_path: Path) -> None:
    found = problems(tmp_path, {"src/cri/core/record.h": "void record_read(void);"}, "record_read every module uses it\n")
    assert found == ["src/cri/core/record.h:4: 'record_read' lacks the prefix 'cri_'",
                     "tools/symbols.exceptions: 'record_read' is not needed"]


def test_a_directory_without_a_prefix_is_found(tmp_path: Path) -> None:
    assert problems(tmp_path,
                    {"src/new/a.h": "void a(void);\n"}) == ["src/new: no prefix is known for this directory; tools/nodensdev/symbols.py "
                                                            "has the table"]


def of_tree(top: Path) -> list[str]:
    return symbols.of_tree(top, lambda argv: subprocess.run(argv, cwd=top, capture_output=True, text=True, check=True).stdout)


@pytest.fixture(scope="module")
def real_problems() -> list[str]:
    return of_tree(TOP)


@pytest.mark.parametrize("layer", ["base", "cri", "mon", "pull", "guard", "rootless", "cli"])
def test_the_real_tree_without_one_prefix_fails(tmp_path: Path, real_problems: list[str], layer: str) -> None:
    shutil.copytree(TOP / "src", tmp_path / "src")
    chosen = next(one for one in ctags(TOP) if one.layer == layer and one.kind == "prototype" and one.in_header
                  and symbols.is_prefixed(one.name, one.path))
    bare = chosen.name.removeprefix(symbols.PROGRAMS.get(layer, "nd_"))
    header = tmp_path / chosen.path
    header.write_text(header.read_text().replace(f"{chosen.name}(", f"{bare}("))
    assert real_problems == [] and [line for line in of_tree(tmp_path) if f"'{bare}' lacks the prefix" in line]
