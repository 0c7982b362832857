# SPDX-License-Identifier: Apache-2.0
"""The manual pages: complete references, and examples that can be copied."""
import re
import shutil
import subprocess
import textwrap

import pytest
from nodensdev.project import TOP

PAGES = {path.name.split(".scd")[0]: path for path in sorted((TOP / "man").glob("*.scd*"))}


def section(page: str, name: str) -> str:
    found = re.search(rf"^# {name}\n(.*?)(?=^# |\Z)", PAGES[page].read_text(), re.M | re.S)
    assert found, f"{page} has no section {name}"
    return found[1]


def rendered(page: str) -> list[str]:
    """The lines that `man` shows."""
    for program in ("scdoc", "groff"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed; `tools/dev test tools` runs where it is")
    source = subprocess.run(["scdoc"], input=PAGES[page].read_text(), capture_output=True, text=True, check=True).stdout
    shown = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou"], input=source, capture_output=True, text=True, check=True)
    return shown.stdout.splitlines()


def test_nodens_refers_to_all_other_pages() -> None:
    others = {f"*{name}*({number})" for name, number in (page.rsplit(".", 1) for page in PAGES) if name != "nodens"}
    assert others - set(re.findall(r"\*[^*]+\*\(\d\)", section("nodens.1", "SEE ALSO"))) == set()


@pytest.mark.parametrize("page", PAGES)
def test_references_lead_to_pages_that_exist(page: str) -> None:
    ours = {f"{name}({number})" for name, number in (known.rsplit(".", 1) for known in PAGES)}
    named = {f"{name}({number})" for name, number in re.findall(r"\*(nodens[^*]*)\*\((\d)\)", PAGES[page].read_text())}
    assert named <= ours


def test_the_example_of_runtime_handlers_is_valid_yaml_as_it_is_shown() -> None:
    lines = rendered("nodens-cri.8")
    start = next(number for number, line in enumerate(lines) if line.strip() == "runtimeHandlers:")
    shown = lines[start:start + 7]
    assert textwrap.dedent("\n".join(shown)).splitlines() == [
        "runtimeHandlers:", "- name: runc", "  engine: runc", "  program: /usr/sbin/runc", "- name: nested", "  program: /usr/bin/crun",
        "  writableCgroups: true"]
