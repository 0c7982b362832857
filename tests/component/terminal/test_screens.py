# SPDX-License-Identifier: Apache-2.0
"""What an operator sees: each command in terminals of several sizes and encodings, in a pipe that is closed early, on a full device."""
import json
import subprocess
from pathlib import Path

import pytest
from conftest import HOSTILE, LONG, WIDE, Node
from nodensdev.project import TOP
from nodenstest import runtimes, tmux, validation
from nodenstest.pods import eventually
from nodenstest.tmux import UTF8, columns_of, screen

SIZES = (60, 80, 200)
LOCALES = (UTF8, "C")
TABLES = ("pods", "ps", "stats", "images")    # commands that print one table and no more
IMAGE = validation.NEW_PRIVILEGES
MANIFESTS = str(TOP / "tests/fixtures/manifests/workloads.yaml")
EXIT_OUTPUT = 74
PLAIN = {"NO_COLOR": "1"}


def shown(node: Node, directory: Path, arguments: tuple[str, ...], columns: int, locale: str = UTF8,
          environment: dict[str, str] | None = None) -> list[str]:
    """The lines of a command that must succeed, none of which the terminal had to wrap."""
    with screen(directory, node.command(*arguments), columns, locale=locale, environment=environment) as here:
        status, lines = here.ended(), here.lines()
    text = "\n".join(lines)
    assert status == 0, text
    assert all(columns_of(line) <= columns for line in lines), f"wider than {columns} columns:\n{text}"
    return lines


def cell(lines: list[str], heading: str, row: int) -> str:
    """What is below a heading that is aligned left."""
    start = lines[0].index(heading)
    after = lines[0][start + len(heading):].lstrip()
    end = lines[0].index(after, start + len(heading)) if after else None
    return lines[row][start:end].strip()


def at(line: str, column: int) -> str:
    """The character in a column of the terminal; a blank behind the end."""
    for length in range(1, len(line) + 1):
        if columns_of(line[:length]) > column:
            return line[length - 1]
    return " "


# ---- tables ----

@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("columns", SIZES)
@pytest.mark.parametrize("verb", TABLES)
def test_a_table_fits_the_terminal(node: Node, directory: Path, verb: str, columns: int, locale: str) -> None:
    lines = shown(node, directory, (verb,), columns, locale, environment=PLAIN)
    plain = node.run(verb).stdout.splitlines()
    assert len(lines) == len(plain) >= 2, lines
    assert set(lines[0].split()) <= set(plain[0].split())
    if columns == 200 and locale == UTF8:
        assert [line.split() for line in lines[:1]] == [line.split() for line in plain[:1]], "all columns fit, and some are missing"


@pytest.mark.parametrize("columns", SIZES)
def test_a_long_pod_name_keeps_both_ends_and_ids_are_whole(node: Node, directory: Path, columns: int) -> None:
    row = next(line for line in shown(node, directory, ("pods",), columns) if "x2k9p" in line)
    if columns == 200:
        assert LONG in row and node.named[LONG].id[:12] in row
    else:
        assert LONG not in row and "…" in row and "report" in row
    assert "ready" in row and "1/1" in row
    ids = f"{node.named[LONG].block}-{(node.named[LONG].block or 0) + 65535}"
    assert ids in row or columns == 60, "the pod's IDs are cut"
    narrow = next(line for line in shown(node, directory, ("pods",), columns, "C") if "x2k9p" in line)
    assert LONG in narrow or "..." in narrow


def test_wide_and_combining_characters_do_not_shift_the_columns(node: Node, directory: Path) -> None:
    lines = shown(node, directory, ("pods",), 200)
    at = {columns_of(line[:line.index(word)]) for line, word in
          [(lines[0], "STATE"), *((line, "ready") for line in lines[1:])]}
    assert len(at) == 1, lines
    assert any(WIDE in line for line in lines)
    assert any("??-cafe?" in line for line in shown(node, directory, ("pods",), 200, "C"))


def test_names_of_pods_cannot_change_the_screen(node: Node, directory: Path) -> None:
    for verb in ("pods", "ps", "stats", "inspect"):
        pod = [node.named[HOSTILE].id] if verb == "inspect" else []
        with screen(directory, node.command(verb, *pod), 200) as here:
            assert here.ended() == 0
            assert "evil?[2J???xyz" in "\n".join(here.lines()), here.lines()
            assert here.tmux("display-message", "-p", "#{pane_title}").strip() != "owned"
        raw = node.run(verb, *pod).stdout
        assert "\033" not in raw and "\007" not in raw and "\u202e" not in raw


def test_a_pipe_gets_the_whole_table(node: Node) -> None:
    lines = node.run("pods").stdout.splitlines()
    assert lines[0].split() == ["NAMESPACE", "POD", "STATE", "IDS", "ADDRESS", "RUNNING", "AGE", "SANDBOX"]
    assert any(LONG in line for line in lines)


def test_a_restarted_container_counts_once(node: Node) -> None:
    lines = node.run("pods").stdout.splitlines()
    web = next(number for number, line in enumerate(lines) if line.startswith("cri-test  web "))
    assert cell(lines, "RUNNING", web) == "1/1"


def test_numbers_are_aligned_right(node: Node) -> None:
    for verb, heading in (("stats", "MEMORY"), ("stats", "PIDS"), ("images", "SIZE")):
        lines = node.run(verb).stdout.splitlines()
        end = lines[0].index(heading) + len(heading)
        assert all(at(line, end - 1) != " " == at(line, end) for line in lines), lines


def test_an_empty_node_says_so_on_standard_error(empty: subprocess.CompletedProcess[str]) -> None:
    assert (empty.returncode, empty.stdout) == (0, ""), empty
    assert empty.stderr.splitlines() == ["no pods", "no images", "no running containers", "no pods"]


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("columns", SIZES)
def test_info_fits_the_terminal_and_cuts_no_sentence(node: Node, directory: Path, columns: int, locale: str) -> None:
    lines = shown(node, directory, ("info",), columns, locale, environment=PLAIN)
    plain = node.run("info").stdout
    assert lines[1].startswith("4 pods, 5 containers, ")
    assert sorted("".join(lines[4:]).replace(" ", "")) == sorted("".join(plain.splitlines()[4:]).replace(" ", "")), "a text is cut"


# ---- inspect ----

@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("columns", SIZES)
def test_inspect_fits_and_ends_with_a_summary(node: Node, directory: Path, columns: int, locale: str) -> None:
    with screen(directory, node.command("inspect", LONG), columns, 200, locale, environment=PLAIN) as here:
        assert here.ended() == 0
        lines = here.lines()
    words = lines[-1].split()
    assert words[1:] == ["checks", "passed"] and int(words[0]) >= 4, lines[-1]
    for line in lines:    # IDs and paths are not broken: they can be copied
        assert columns_of(line) <= columns or len(line[15:].split()) == 1, line
    assert node.named[LONG].id in "\n".join(lines)
    table = lines[next(number for number, line in enumerate(lines) if line.startswith("  MOUNT")):]
    assert table[1].startswith("  /var/r") and "read-only" in table[1], table
    assert ("kubernetes.io~projected/" + LONG in table[1]) == (columns == 200), table


def test_inspect_prints_json(node: Node) -> None:
    found = json.loads(node.run("inspect", "--json", "cri-test/web").stdout)
    assert set(found) == {"checks", "pods"} and found["checks"]["failed"] == 0 and found["checks"]["passed"] > 0
    pod = found["pods"][0]
    assert set(pod) == {"id", "namespace", "name", "uid", "attempt", "state", "createdAt", "userNamespace", "uids", "gids", "hostNetwork",
                        "addresses", "thisBoot", "cgroupParent", "directory", "network", "namespaces", "containers"}
    assert {one["kind"] for one in pod["namespaces"]} >= {"user", "net"}
    newest = max(pod["containers"], key=lambda one: one["attempt"])
    assert set(newest) == {"id", "name", "attempt", "state", "image", "pid", "exitCode", "reason", "message", "createdAt", "startedAt",
                           "finishedAt", "checksPassed", "checksFailed", "imageId", "uid", "gid", "groups", "privileged", "cgroup",
                           "bundle", "log", "mounts", "checks"}
    assert newest["state"] == "running" and all(one["result"] == "passed" for one in newest["checks"])
    man = (TOP / "man/nodens-inspect.1.scd.in").read_text()
    missing = [key for key in (*found, *pod, *newest) if f"_{key}_" not in man]
    assert not missing, f"not in the man page: {missing}"


# ---- pull, lint ----

@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("columns", (40, *SIZES))
def test_the_progress_of_a_pull_fits(node: Node, directory: Path, columns: int, locale: str, site: runtimes.registry_server.Site) -> None:
    with screen(directory, node.command("pull", f"{site.name}/{IMAGE}"), columns, locale=locale, environment=PLAIN) as here:
        assert here.ended() == 0, here.lines()
        *layers, identity = here.lines()
    assert len(identity.split()[0].removeprefix("sha256:")) == 64
    assert layers and all(columns_of(line) <= columns and ("done" in line or "exists" in line) for line in layers), layers
    assert all("[" in line for line in layers) == (columns >= 60), layers


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("columns", SIZES)
def test_lint_prints_the_same_at_any_width(node: Node, directory: Path, columns: int, locale: str) -> None:
    command = [node.command("lint")[0], "lint", MANIFESTS]
    plain = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    with screen(directory, command, columns, 400, locale, environment=PLAIN) as here:
        here.ended()
        lines, coloured = here.lines(), here.coloured()
    assert [line.split() for line in lines] == [line.split() for line in plain] and "\033" not in coloured


# ---- top ----

def test_top_keeps_its_headings_and_its_first_row_at_any_size(node: Node, directory: Path) -> None:
    with screen(directory, node.command("top", "--interval", "1"), 95, 12) as here:
        rows = here.shows(lambda rows: any("x2k9p" in row for row in rows), "the busiest pod")
        assert "containers," in rows[0] and rows[1].split()[0] == "NAMESPACE" and "x2k9p" in rows[2], rows
        for columns, height in ((60, 8), (200, 24), (80, 3), (40, 2), (60, 2), (95, 12)):
            here.resize(columns, height)
            first = 2 if height >= 3 else 1

            def fits(rows: list[str], first: int = first) -> bool:
                return len(rows) > first and "CPU" in rows[first - 1] and rows[first - 1].split()[0] in ("NAMESPACE", "POD") and (
                    "x2k9p" in rows[first])

            rows = here.shows(fits, f"headings and the busiest pod at {columns}x{height}")
            assert len(rows) <= height and all(columns_of(row) <= columns for row in rows)
        here.resize(60, 1)
        here.shows(lambda rows: len(rows) == 1 and "x2k9p" in rows[0], "the busiest pod in one row")
        here.resize(9, 2)
        here.shows(lambda rows: rows[0] == "POD" and rows[1].startswith("repor"), "a terminal of nine columns")
        here.type("q")
        assert here.ended() == 0


def test_top_draws_again_when_the_terminal_is_resized(node: Node, directory: Path) -> None:
    with screen(directory, node.command("top", "--interval", "4000000000"), 200, 24) as here:
        here.shows(lambda rows: any(LONG in row for row in rows), "the busiest pod")
        here.resize(60, 6)
        here.shows(lambda rows: rows[1].startswith("NAMESPACE") and "…" in rows[2] and "x2k9p" in rows[2], "a table of 60 columns")
        here.type("C-c")
        assert here.ended() == 0
        assert not any("x2k9p" in line for line in here.lines()), "the screen from before is not back"


def test_top_in_a_terminal_without_a_cursor_prints_once(node: Node, directory: Path) -> None:
    with screen(directory, node.command("top"), 80, environment={"TERM": "dumb"}) as here:
        assert here.ended() == 0
        lines = here.lines()
    assert "containers," in lines[0] and "q leaves" not in lines[0] and lines[1].startswith("NAMESPACE")


@pytest.mark.parametrize("option", ("--interval", "--count"))
def test_top_refuses_zero(node: Node, option: str) -> None:
    done = node.run("top", option, "0")
    assert done.returncode == 64 and f"{option} needs a number from 1" in done.stderr


# ---- colour ----

def test_no_color_is_respected(directory: Path) -> None:
    command = [str(runtimes.program("src/nodens")), "check", "--dir", "/"]
    cases: list[tuple[dict[str, str], bool]] = [({}, True), (PLAIN, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)]
    for environment, wanted in cases:
        with screen(directory, command, 80, environment=environment) as here:
            here.ended()
            assert ("\033[3" in here.coloured()) == wanted, environment


def test_findings_of_a_check_are_wrapped(directory: Path) -> None:
    command = [str(runtimes.program("src/nodens")), "check"]
    plain = subprocess.run(command, capture_output=True, text=True).stdout
    for columns in SIZES:
        with screen(directory, command, columns, 200) as here:
            here.ended()
            lines = here.lines()
        table = lines[:lines.index("")]
        assert all(columns_of(line) <= columns for line in table), table
        assert "FOUND" in table[0] and plain.split()[-5:] == " ".join(lines).split()[-5:]


# ---- ids ----

def test_ids_have_the_names_of_their_pods(node: Node, directory: Path) -> None:
    web = node.named["web"]
    for uid in (web.config.metadata.uid, "0b5d6c1e-0000-4000-8000-00000000abcd"):
        pod = directory / "kubelet/pods" / uid
        pod.mkdir(parents=True, exist_ok=True)
        first = web.block if uid == web.config.metadata.uid else 131072 * 50
        mapping = [{"hostId": first, "containerId": 0, "length": 65536}]
        (pod / "userns").write_text(json.dumps({"uidMappings": mapping, "gidMappings": mapping}))
    done = node.run("ids", "--root-dir", str(directory / "kubelet"))
    lines = done.stdout.splitlines()
    assert any(line.startswith("cri-test/web ") and f" {web.block} " in line for line in lines), done
    assert any(line.startswith("0b5d6c1e-0000-4000-8000-00000000abcd ") for line in lines), done
    found = {pod["uid"]: pod for pod in json.loads(node.run("ids", "--json", "--root-dir", str(directory / "kubelet")).stdout)["pods"]}
    assert (found[web.config.metadata.uid]["namespace"], found[web.config.metadata.uid]["name"]) == ("cri-test", "web")
    assert found["0b5d6c1e-0000-4000-8000-00000000abcd"]["name"] is None
    for columns in SIZES:
        text = "\n".join(shown(node, directory, ("ids", "--root-dir", str(directory / "kubelet")), columns)[3:])
        assert str(web.block) in text


def test_a_directory_of_a_kubelet_that_does_not_exist_is_an_error(node: Node) -> None:
    done = subprocess.run([node.command("ids")[0], "ids", "--root-dir", "/nosuch"], capture_output=True, text=True)
    assert done.returncode == 2 and "'/nosuch'" in done.stderr and done.stdout == "", done


# ---- usage ----

@pytest.mark.parametrize("arguments", (("pull",), ("pull", "a", "b"), ("import",), ("inspect",), ("logs",)))
def test_missing_operands_are_wrong_usage(node: Node, arguments: tuple[str, ...]) -> None:
    done = node.run(*arguments)
    assert done.returncode == 64 and done.stderr.startswith(f"nodens {arguments[0]}: ") and done.stdout == "", done


# ---- output that cannot be written ----

def outputs(node: Node, site: runtimes.registry_server.Site) -> list[list[str]]:
    program = node.command("pods")[0]
    return [*(node.command(*words) for words in (("pods",), ("pods", "--json"), ("ps",), ("info",), ("images",), ("stats",),
                                                 ("inspect", LONG), ("inspect", "--json", LONG), ("logs", "web"), ("logs", "-f", "web"),
                                                 ("top", "-n", "1"), ("pull", f"{site.name}/{IMAGE}"))),
            [program, "check", "--dir", "/"], [program, "ids"], [program, "lint", MANIFESTS], [program, "--help"], [program, "--version"]]


def test_a_full_device_is_reported(node: Node, site: runtimes.registry_server.Site) -> None:
    for command in outputs(node, site):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=180)
        assert done.returncode == EXIT_OUTPUT, (command, done)
        assert "standard output: " in done.stderr and "the output is incomplete" in done.stderr, (command, done)


def test_a_closed_output_is_reported(node: Node) -> None:
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *node.command("pods")], stderr=subprocess.PIPE, text=True, timeout=180)
    assert done.returncode == EXIT_OUTPUT and "Bad file descriptor" in done.stderr, done


def test_a_pipe_that_is_closed_ends_a_command_quietly(node: Node, site: runtimes.registry_server.Site) -> None:
    eventually(lambda: "line 20000 of many" in node.run("logs", "--tail", "1", "web").stdout, what="a log that no pipe can hold")
    for command in outputs(node, site):
        done = subprocess.run(["bash", "-c", '"$@" | head -n 1; exit ${PIPESTATUS[0]}', "bash", *command], capture_output=True, text=True,
                              timeout=180)
        assert len(done.stdout.splitlines()) == 1 and done.stderr == "", (command, done)
        assert done.returncode in (0, 1, 141), (command, done)
        if "logs" in command:
            assert done.returncode == 141


def test_a_broken_pipe_is_quiet_also_where_its_signal_is_ignored(node: Node) -> None:
    done = subprocess.run(["bash", "-c", 'trap "" PIPE; "$@" | head -n 1; exit ${PIPESTATUS[0]}', "bash", *node.command("logs", "web")],
                          capture_output=True, text=True, timeout=180)
    assert done.returncode == EXIT_OUTPUT and done.stderr == "", done


def test_terminals_of_this_suite_count_columns_as_tmux_does(directory: Path) -> None:
    with screen(directory, ["printf", "%s|\\n", WIDE]) as here:
        here.ended()
        assert tmux.columns_of(here.lines()[0]) == 10
