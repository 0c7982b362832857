# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/: drawn from the tables of their pages, inside of their frames, and readable without eyes or in the dark."""
import re
import xml.etree.ElementTree as ElementTree

import pytest
from nodensdev.bench import chart, growth, lines, pictures
from nodensdev.command import Failure

SVG = "{http://www.w3.org/2000/svg}"
PAGE = """# A page
2026-11-15 13:32 UTC, commit c0ffee, 3 x 20 pods in 10 min

## Section
|  | a | b |
|---|---:|---:|
| first (ms) | 1,200 | 5 |

|  | a | b |
|---|---:|---:|
| second | 3 | - |
"""


def drawn(name: str) -> ElementTree.Element:
    return ElementTree.fromstring((pictures.DOCS / name).read_text())


def words(element: ElementTree.Element | None) -> str:
    assert element is not None and element.text
    return element.text


@pytest.mark.parametrize("name", pictures.shown())
def test_a_picture_is_what_the_tables_of_its_page_give(name: str) -> None:
    assert (pictures.DOCS / name).read_text() == pictures.render(name), "`tools/dev bench pictures` draws them"


def test_pages_show_all_pictures_of_what_was_measured() -> None:
    measured = [name for name in pictures.PICTURES if name != "benchmarks-growth.svg"
                or f"## {growth.HEADING}\n" in (pictures.DOCS / "benchmarks.md").read_text()]
    assert pictures.shown() == measured == [name for name in pictures.PICTURES if (pictures.DOCS / name).exists()]


@pytest.mark.parametrize("name", pictures.shown())
def test_a_page_shows_its_picture_with_a_description(name: str) -> None:
    page, _ = pictures.PICTURES[name]
    assert re.search(rf"^!\[[^\]]{{20,}}\]\({re.escape(name)}\)$", (pictures.DOCS / page).read_text(), re.M)


@pytest.mark.parametrize("name", pictures.shown())
def test_a_picture_has_a_title_and_its_figures_for_screen_readers(name: str) -> None:
    root = drawn(name)
    labels = (root.get("aria-labelledby") or "").split()
    assert root.get("role") == "img" and [root.findall(f"*[@id='{label}']")[0].tag for label in labels] == [f"{SVG}title", f"{SVG}desc"]
    spoken = words(root.find(f"{SVG}desc"))
    values = [words(text).removesuffix(" *") for text in root.iter(f"{SVG}text") if text.get("class") == "value"]
    assert values and all(f" {value}" in spoken for value in values)


@pytest.mark.parametrize("name", pictures.shown())
def test_each_column_has_a_unit_an_axis_and_says_what_is_better(name: str) -> None:
    columns = pictures.PICTURES[name][1](pictures.Page((pictures.DOCS / pictures.PICTURES[name][0]).read_text())).columns
    texts = [words(text) for text in drawn(name).iter(f"{SVG}text")]
    hints = [text for text in texts if re.fullmatch(r".+; (shorter|longer|lower|higher) is better", text)]
    assert len(hints) == len(columns)
    assert texts.count("0") >= len(columns)


@pytest.mark.parametrize("name", pictures.shown())
def test_no_text_leaves_the_frame_or_has_a_commit(name: str) -> None:
    root = drawn(name)
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    for text in root.iter(f"{SVG}text"):
        content, size, x, y = words(text), float(text.get("font-size") or 0), float(text.get("x") or 0), float(text.get("y") or 0)
        long = chart.text_width(content, size)
        left = {"start": x, "middle": x - long / 2, "end": x - long}[text.get("text-anchor") or "start"]
        assert left >= 0 and left + long <= width and size <= y <= height - 4, content
        assert "commit" not in content


@pytest.mark.parametrize("name", pictures.shown())
def test_a_picture_has_colours_for_the_light_and_the_dark(name: str) -> None:
    style = words(drawn(name).find(f"{SVG}style"))
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    classes = re.findall(r"^(\S+) {", light, re.M)
    assert "text" in classes and ".ground" in classes and classes == re.findall(r"^(\S+) {(?!$)", dark, re.M)
    used = {f".{name}" for element in drawn(name.rsplit("/")[-1]).iter() for name in (element.get("class") or "").split()}
    assert used <= set(classes)


def test_a_table_is_found_by_its_heading_and_number() -> None:
    page = pictures.Page(PAGE)
    assert page.cell("Section", "first (ms)", "a") == "1,200" and page.cell("Section 2", "second", "a") == "3"
    assert chart.Value("1,200").number == 1200 and page.date == "2026-11-15" and pictures.pods_of(page) == "60 pods"


def test_a_bar_of_memory_per_pod_has_the_colour_of_the_processes_per_pod() -> None:
    row, drawn = chart.Row("a", "a", "ours"), chart.Column("t", "MB", "shorter", {})

    def daemons(part: float | None) -> int:
        return "".join(chart.bar(0, 0, 10, row, drawn, chart.Value("5", part))).count('class="ours"')

    assert (daemons(0), daemons(2), daemons(None)) == (0, 1, 1)


def test_a_line_has_a_point_for_each_number_of_pods() -> None:
    values = {number: chart.Value(text) for number, text in ((0.0, "1.5"), (10.0, "20"), (250.0, "1,000"))}
    plot = lines.Plot("title", "about", "pods", [lines.Column("t", "MB", "lower", [lines.Line("one", "ours", values),
                                                                                  lines.Line("two", "other", values)])])
    root = ElementTree.fromstring(lines.draw(plot))
    places = [(float(point.get("cx") or 0), float(point.get("cy") or 0)) for point in root.iter(f"{SVG}circle")][:3]
    (left, low), (near, _), (right, top) = places
    assert (near - left) / (right - left) == pytest.approx(10 / 250, abs=0.01), "distances follow the numbers"
    assert top == chart.HEAD + chart.COLUMN_HEAD and low > top + lines.HEIGHT * 0.99
    labels = [float(text.get("y") or 0) for text in root.iter(f"{SVG}text") if text.get("class") == "value"]
    assert len(labels) == 2 and labels[1] - labels[0] >= lines.CLOSEST, "labels of lines that end together cover each other"


def test_a_figure_that_a_page_lacks_is_named() -> None:
    with pytest.raises(Failure, match="no row 'pod start in all \\(ms\\)'"):
        pictures.pod_times(pictures.Page(PAGE))


@pytest.mark.parametrize(("most", "wanted"), [(848, [0, 200, 400, 600, 800]), (5.6, [0, 2, 4]), (1872, [0, 500, 1000, 1500]),
                                             (29977, [0, 10000, 20000]), (0.03, [0, 0.01, 0.02, 0.03])])
def test_ticks_are_round_and_few(most: float, wanted: list[float]) -> None:
    assert chart.ticks(most) == pytest.approx(wanted)


def test_texts_are_escaped() -> None:
    evil = chart.Chart("<b>&", "about", [chart.Row("a", "<i>", "ours")], [chart.Column("t", "u", "shorter", {"a": chart.Value("1")})])
    root = ElementTree.fromstring(chart.draw(evil))
    assert words(root.find(f"{SVG}title")) == "<b>&"
