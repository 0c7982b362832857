# SPDX-License-Identifier: Apache-2.0
"""Words, documents and habits: texts read like those of other projects of this field, pages are true, and the gate keeps it so."""
import re
from collections.abc import Callable

from nodensdev.checks import idioms, lint, page_commands, pages, python
from nodensdev.checks.page_commands import Shown
from nodensdev.checks.prove import Proof, check
from nodensdev.project import TOP

MINUTE = 60
README_LINES = 150
LINTS = ("commits", "words", "width", "names", "links", "symbols", "layout", "python")
TESTS_OF_LINTS = {
    "commits": "test_commits.py", "words": "test_idioms.py", "width": "test_width.py", "names": "test_comment_names.py",
    "links": "test_pages.py",
    "symbols": "test_symbols.py", "layout": "test_sizes.py", "python": "test_python_lint.py",
}
# What fits beside the other points into 30 minutes; the rest is in the full form.
SUITES = ("unit", "tools", "kernel", "userns", "grpc", "policy", "rootless", "cri-own", "pods-operator")


@check("point 1: no idiom is more than twice as frequent as in the project that uses it most, and messages have none")
def words(proof: Proof) -> None:
    table, found = idioms.of_tree(TOP)
    proof.note("\n".join([*table, *found]))
    print("\n".join(table), flush=True)
    counts = {"comments": idioms.count(idioms.comments(TOP), TOP), "documents": idioms.count(idioms.documents(TOP), TOP)}
    for name, one in counts.items():
        for idiom in idioms.IDIOMS:
            proof.aim(f"{idiom.name} ({name})", one.rate(idiom), most=idiom.limit)
    proof.expect(not idioms.seen_by_users(TOP, idioms.exceptions()), "string literals of programs have no idiom")


@check("point 1: the counter finds each idiom when it is put into a comment, a page or a message")
def counter(proof: Proof) -> None:
    proof.pytest("tools/tests/test_idioms.py", timeout=5 * MINUTE)


@check("point 3: no link is broken, and every page can be reached from the index")
def links(proof: Proof) -> None:
    found = pages.problems(TOP)
    proof.expect(not found, "; ".join(found))
    proof.figure("pages", str(len(pages.pages(TOP))))
    proof.figure("links", str(sum(1 for page in pages.pages(TOP) for _ in pages.links(page.read_text()))))
    lines = len((TOP / "README.md").read_text().splitlines())
    proof.expect(lines <= README_LINES, f"README.md has at most {README_LINES} lines, not {lines}")


@check("point 3: every block of commands says where it is run, or why it is not")
def marked(proof: Proof) -> None:
    blocks = [block for page in pages.pages(TOP) for block in pages.blocks(page)]
    for block in blocks:
        proof.note(f"{block.path.relative_to(TOP)}:{block.line}: {block.place or 'not marked'} {block.reason}")
    for place in pages.PLACES:
        proof.figure(place, str(sum(block.place == place and block.language in pages.SHELL for block in blocks)))
    found = [line for page in pages.pages(TOP) for line in pages.marker_problems(page, TOP)]
    proof.expect(not found, "; ".join(found))


@check("point 3: commands of README.md and docs/ work in a clean Debian root, and print what the pages show")
def in_chroot(proof: Proof) -> None:
    sessions = page_commands.sessions("chroot")
    proof.expect(TOP / "README.md" in sessions, "README.md has commands for the chroot")
    for page, shown in sessions.items():
        found = page_commands.in_chroot(proof.inside, shown)
        proof.expect(not found, "; ".join(found))
        proof.figure(str(page.relative_to(TOP)), f"{len(shown)} commands")


def follow(proof: Proof, place: str, run: Callable[[list[Shown]], list[str]]) -> None:
    """Runs the sessions of all pages in one place, and reports the problems of all of them."""
    problems = []
    for page, shown in page_commands.sessions(place).items():
        found = run(shown)
        proof.figure(str(page.relative_to(TOP)), f"{len(shown)} commands")
        problems += found
    proof.expect(not problems, "; ".join(problems))


@check("point 3: commands that need systemd or a whole host work in a clean Debian guest")
def in_guest(proof: Proof) -> None:
    follow(proof, "guest", page_commands.in_guest)


@check("point 3: commands that need a cluster work in a guest with a control plane and a kubelet")
def in_cluster(proof: Proof) -> None:
    sessions = page_commands.sessions("cluster")
    for name in ("kubelet", "from-containerd", "guard"):
        proof.expect(TOP / f"docs/{name}.md" in sessions, f"docs/{name}.md is followed")
    follow(proof, "cluster", page_commands.in_cluster)


@check("point 3: commands of tools/dev that the pages show work on this machine")
def on_machine(proof: Proof) -> None:
    follow(proof, "machine", page_commands.on_machine)


@check("point 4: every lint is a step of CI, and passes")
def lints(proof: Proof) -> None:
    listed = proof.dev("ci", "--list", timeout=MINUTE).stdout
    for name in lint.CHECKS:
        proof.expect(f"tools/dev lint {name}" in listed, f"CI runs `tools/dev lint {name}`")
    for name in LINTS:
        proof.dev("lint", name, timeout=10 * MINUTE)  # CI's limit for mypy without its cache
    proof.figure("lints", str(len(LINTS)))


@check("point 4: each lint has tests that show that it can fail")
def lints_fail(proof: Proof) -> None:
    proof.expect(set(TESTS_OF_LINTS) == set(LINTS), "each lint has its tests")
    python.ensure()
    proof.pytest(*(f"tools/tests/{name}" for name in TESTS_OF_LINTS.values()), timeout=10 * MINUTE)


@check("point 4: `tools/dev --help` fits a screen, and `tools/dev test --help` groups the suites")
def help_fits(proof: Proof) -> None:
    lines = proof.dev("--help", timeout=MINUTE).stdout.splitlines()
    proof.expect(len(lines) <= 40 and max(map(len, lines)) <= 100, "the list of commands has at most 40 lines of 100 columns")
    proof.figure("lines", str(len(lines)))
    text = proof.dev("test", "--help", timeout=MINUTE).stdout
    proof.expect(re.findall(r"^(\w+): ", text, re.MULTILINE) == ["usage", "unit", "component", "cluster", "long", "nightly"],
                 "suites have five groups")


@check("point 5: the suites that fit pass")
def suites(proof: Proof) -> None:
    proof.suites(*SUITES)


@check("point 5: every step of the gate passes", full_only=True)
def gate(proof: Proof) -> None:
    proof.gate()


@check("point 5: all other proofs pass", full_only=True)
def others(proof: Proof) -> None:
    proof.others()
