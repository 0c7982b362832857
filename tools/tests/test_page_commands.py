# SPDX-License-Identifier: Apache-2.0
"""Commands of pages: how they are read, run and compared."""
import json
import subprocess
from pathlib import Path

import pytest
from nodensdev.checks import page_commands, pages
from nodensdev.project import TOP

PAGE = """# Title

<!-- run: chroot -->
```sh
cd /
x=3
```

<!-- run: chroot -->
```console
$ pwd
/
$ echo a; echo b; \\
echo $x
a
...
4
$ false
```

<!-- run: none needs a cluster -->
```sh
kubectl get nodes
```
"""


def session(top: Path, text: str = PAGE) -> list[page_commands.Shown]:
    (top / "README.md").write_text(text)
    return [shown for page in page_commands.sessions("chroot", top).values() for shown in page]


def tried(shown: list[page_commands.Shown]) -> list[str]:
    done = subprocess.run(["bash", "-c", page_commands.script(shown)], capture_output=True, text=True)
    return page_commands.problems(shown, done.stdout)


def test_commands_of_one_place_are_one_session(tmp_path: Path) -> None:
    shown = session(tmp_path)
    assert [one.text for one in shown] == ["cd /\nx=3\n", "pwd", "echo a; echo b; \\\necho $x", "false"]
    assert [one.output for one in shown] == [None, "/", "a\n...\n4", ""] and [one.where
                                                                              for one in shown] == ["README.md:4"] + 3 * ["README.md:10"]
    assert tried(shown) == []


@pytest.mark.parametrize(("old", "new", "problem"),
                         [("cd /\n", "cd /gone\n", "README.md:4: failed"), ("\n/\n$", "\n/tmp\n$", "`pwd` prints something else"),
                                                     ("\n4\n", "\nfour\n", "prints something else"),
                          ("$ false\n", "$ false\ntext\n", "`false` prints something else")])
def test_a_command_that_fails_and_an_output_that_is_not_real_are_found(tmp_path: Path, old: str, new: str, problem: str) -> None:
    changed = PAGE.replace(old, new)
    assert changed != PAGE
    found = tried(session(tmp_path, changed))
    assert len(found) == 1 and problem in found[0]


@pytest.mark.parametrize(("shown", "real", "equal"), [
    ("a  1 MiB", "a 23 MiB", True), ("v1.2.3", "v0.10.0", True), ("a\n...", "a\nb\nc", True), ("...\nc", "a\nb\nc", True),
    ("a", "a\nb", False), ("a b", "a c", False), ("14s 3c761dc5255a", "1m5s 0badcafe1234", True), ("faced", "decaf", False),
    ("pod1e1e40dc-a1eb-41e7-816c-68e5a5faf921", "pod22222222-a1eb-41e7-816c-68e5a5fafffe", True), ("3 dogs", "14s dogs", False),
    ("1.7 MB -", "282.6 kB -", True), ("1.7 MB", "1.7 m", False),
])
def test_numbers_and_left_out_lines_may_differ(shown: str, real: str, equal: bool) -> None:
    assert page_commands.same(shown, real) == equal


STEPS = """# Title

<!-- run: guest as alice -->

<!-- do: systemctl start thing;
     true -->
```sh
thing
```

<!-- run: merge /etc/thing.yaml -->
```yaml
a: 1
```

Words.<!-- do machine: undo -->
"""


def test_steps_that_readers_do_not_see_are_part_of_the_session(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(STEPS)
    page = tmp_path / "README.md"
    shown = page_commands.sessions("guest", tmp_path)[page]
    assert [(one.text, one.user) for one in shown] == [
        ("systemctl start thing;\n     true\n", ""), ("thing\n", "alice"),
        ("merge /etc/thing.yaml <<'@@yaml'\na: 1\n@@yaml\n", "")]
    assert [one.text for one in page_commands.sessions("machine", tmp_path)[page]] == ["undo\n"]


def test_a_users_block_is_a_shell_of_its_own(tmp_path: Path) -> None:
    shown = session(tmp_path, PAGE.replace("run: chroot", "run: chroot as alice").replace("cd /\n", "cd /tmp\n", 1))
    prelude = page_commands.PRELUDE + 'as() { [ "$1" = alice ] && (cd / && bash "-${3-c}" "$2"); }\n'
    done = subprocess.run(["bash", "-c", page_commands.script(shown, prelude)], capture_output=True, text=True)
    found = page_commands.problems(shown, done.stdout)
    assert len(found) == 1 and "prints something else:\na\nb" in found[0], "x is not set in the second shell"


@pytest.mark.parametrize(("marker", "problem"), [
    ("guest as", "is not 'as USER'"), ("moon", "is not one of"), ("none", "wants a reason"),
    ("none it is far", "this step is never run")])
def test_a_marker_that_a_script_cannot_follow_is_reported(tmp_path: Path, marker: str, problem: str) -> None:
    page = tmp_path / "README.md"
    page.write_text(STEPS.replace("guest as alice", marker))
    assert any(problem in line for line in pages.marker_problems(page, tmp_path))


def test_every_marker_of_the_pages_is_one_that_a_script_knows() -> None:
    found = [line for page in pages.pages(TOP) for line in pages.marker_problems(page, TOP)]
    assert [line for line in found if "no '<!-- run:" not in line] == []


CONFIGURATIONS = {
    "yaml": ("kind: KubeletConfiguration\ncontainerRuntimeEndpoint: {}\ncgroupDriver: systemd\n", "unix:///run/containerd/containerd.sock"),
    "quoted": ('containerRuntimeEndpoint: "{}"\n', ""),
    "json": ('{{\n  "containerRuntimeEndpoint": "{}",\n  "cgroupDriver": "systemd"\n}}\n', "unix:///run/containerd/containerd.sock"),
    "one line": ('{{"cgroupDriver":"systemd","containerRuntimeEndpoint":"{}"}}\n', "/run/containerd/containerd.sock"),
}


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_the_move_from_containerd_changes_any_kubelet_configuration_and_can_be_repeated(kind: str, tmp_path: Path) -> None:
    form, old = CONFIGURATIONS[kind]
    kubelet, cri = tmp_path / "config.yaml", tmp_path / "cri.yaml"
    kubelet.write_text(form.format(old))
    cri.write_text("cgroupDriver: systemd\n")
    lines = [line for line in (TOP / "docs/from-containerd.md").read_text().splitlines() if line.startswith(("sed ", "echo "))]
    commands = "\n".join(lines).replace("/var/lib/kubelet/config.yaml", str(kubelet)).replace("/etc/nodens/cri.yaml", str(cri))
    assert len(lines) >= 2
    for _ in range(2):
        subprocess.run(["bash", "-ec", commands], check=True)
    assert cri.read_text() == "cgroupDriver: systemd\ncertificates: /etc/containerd/certs.d\n"
    assert kubelet.read_text().replace('"', "") == form.format("unix:///run/nodens/cri.sock").replace('"', "")
    if kind in ("json", "one line"):
        json.loads(kubelet.read_text())
