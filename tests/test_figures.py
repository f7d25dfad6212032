"""Figures: the same bytes each time, well-formed, dateless, and drawn whatever the numbers are."""

import hashlib
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib
import msgspec
import pytest
from builders import BAR, FIGURE, HEATMAP, LINE, REPOSITORY, changed

from reproduce import figures
from reproduce.figure_data import Bar, BarGroup, Curve, FigureData, Heatmap, Level, Line, Number

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*panels, alt: str = "In words.") -> str:
    """The SVG text of these panels."""
    return figures.to_svg(FigureData(list(panels), alt)).decode()


def texts(svg: str) -> list[str]:
    """What stands in the picture as text."""
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_twice_drawn_is_byte_equal():
    assert figures.to_svg(FIGURE) == figures.to_svg(FIGURE)


def test_another_process_with_other_hashes_draws_the_same(tmp_path):
    data = tmp_path / "figure.json"
    data.write_bytes(msgspec.json.encode(FIGURE))
    program = (
        "import hashlib, msgspec, pathlib\n"
        "from reproduce import figures, figure_data\n"
        f"data = msgspec.json.decode(pathlib.Path({str(data)!r}).read_bytes(), type=figure_data.FigureData)\n"
        "print(hashlib.sha256(figures.to_svg(data)).hexdigest())"
    )
    variables = {**os.environ, "PYTHONHASHSEED": "12345", "SOURCE_DATE_EPOCH": "86400", "TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, env=variables, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == hashlib.sha256(figures.to_svg(FIGURE)).hexdigest()


def test_the_user_settings_of_matplotlib_do_not_show():
    before = figures.to_svg(FIGURE)
    with matplotlib.rc_context(
        {"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path", "axes.facecolor": "red"}
    ):
        assert figures.to_svg(FIGURE) == before
        # And drawing leaves them as they were.
        assert matplotlib.rcParams["font.size"] == 30


def test_another_number_is_another_picture():
    other = changed(LINE, series=[Curve("training loss", [0, 1, 2], [1.5, 0.5, 0.375]), LINE.series[1]])
    assert drawn(LINE) != drawn(other)


def test_nothing_tells_when_or_with_what_it_was_made():
    svg = drawn(LINE, HEATMAP, BAR)
    assert not re.search(r"<(?:\w+:)?(?:date|creator)\b", svg)
    assert matplotlib.__version__ not in svg
    assert not re.search(r"20\d\d-\d\d-\d\d", svg)


def test_the_committed_size():
    root = ElementTree.fromstring(drawn(LINE, HEATMAP))
    assert (root.get("width"), root.get("height")) == (f"{2 * 4.8 * 72:g}pt", f"{3.9 * 72:g}pt")


def test_text_stays_text():
    found = texts(drawn(LINE, HEATMAP, BAR))
    for label in ("Loss", "updates", "loss (nats)", "training loss", "held-out loss", "chance"):
        assert label in found
    for label in ("left 0", "right 1", "cosine", "a", "b", "before", "after", "encoder", "accuracy"):
        assert label in found


def test_cells_carry_their_numbers():
    found = texts(drawn(HEATMAP))
    assert [text for text in ("1.00", "\u22120.50", "0.25") if text not in found] == []


@pytest.mark.parametrize("label", ["a < b & c > d", 'say "x"', "costs $5", "$5 and \\frac$", "$x_1$", "τ → ∞", "-1"])
def test_labels_are_shown_as_they_are(label):
    line = changed(LINE, title=label, xlabel=label, levels=[Level(label, 1.0)], series=[Curve(label, [0], [1.0])])
    table = Heatmap([[1.0]], [label], [label], label, label, label, label)
    bar = Bar([label], [BarGroup(label, [1.0])], label, label)
    assert texts(drawn(line, table, bar)).count(label) == 4 + 6 + 4


def test_curves_can_be_found_by_id():
    svg = drawn(LINE)
    assert 'id="curve-0"' in svg and 'id="curve-1"' in svg and 'id="curve-2"' not in svg


NOT_NUMBERS: list[Number] = ["NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize(
    "panel",
    [
        Line([], "x", "y"),
        Line([Curve("", [0, 1], [0.5, 1.0])], "x", "y"),
        Line([Curve("_hidden", [0, 1], [0.5, 1.0])], "x", "y"),
        Line([Curve("a", [], [])], "x", "y"),
        Line([Curve("a", [0], [0.5])], "x", "y"),
        Line([Curve("a", [0, 1, 2], NOT_NUMBERS)], "x", "y"),
        Line([Curve("a", [0, 1, "NaN"], [1.0, "NaN", 2.0])], "x", "y"),
        Line([Curve("a", [0, 1], [0.5, "NaN"])], "x", "y", logarithmic=True),
        Line([Curve("a", [0, 1], [0.0, 1e6])], "x", "y", logarithmic=True),
        Line([Curve(f"curve {n}", [0, 1], [n, n + 1]) for n in range(15)], "x", "y"),
        Line([], "x", "y", levels=[Level(f"level {n}", n) for n in range(15)]),
        Line([], "x", "y", levels=[Level("a", "NaN")]),
        Line([Curve("a", [0, 1], [1e300, -1e300])], "x", "y"),
        Heatmap([[1.0, "NaN"], ["Infinity", "-Infinity"]], ["a", "b"], ["c", "d"], "u", "x", "y"),
        Heatmap([[1.0, "NaN"], ["Infinity", 0.5]], ["a", "b"], ["c", "d"], "u", "x", "y", diverging=True),
        Heatmap([["NaN"]], ["a"], ["c"], "u", "x", "y"),
        Heatmap([["NaN"]], ["a"], ["c"], "u", "x", "y", diverging=True),
        Heatmap([[2.0, 2.0]], ["a"], ["c", "d"], "u", "x", "y"),
        Heatmap([[0.0]], ["a"], ["c"], "u", "x", "y", diverging=True),
        Heatmap(
            [[n * 12 + m for m in range(12)] for n in range(12)], list("abcdefghijkl"), list("abcdefghijkl"), "", "", ""
        ),
        Bar(["a"], [BarGroup("", [1.0])], "x", "y"),
        Bar(["a", "b", "c"], [BarGroup("a", NOT_NUMBERS)], "x", "y"),
        Bar(["a"], [BarGroup(f"group {n}", [-n]) for n in range(9)], "x", "y", levels=[Level("chance", 0.5)]),
    ],
)
def test_every_panel_draws(panel):
    # Warnings are errors here, so matplotlib has nothing to say either.
    ElementTree.fromstring(drawn(panel))


def test_a_number_in_a_cell_can_be_read():
    svg = drawn(Heatmap([["NaN", 0.0, 1.0]], ["a"], ["b", "c", "d"], "u", "x", "y"))
    styles = {
        "".join(node.itertext()): node.get("style", "") for node in ElementTree.fromstring(svg).iter(f"{SVG}text")
    }
    # Dark blue below 0, yellow below 1, and no colour at all, so the white page, below NaN.
    assert "fill: #ffffff" in styles["0.00"]
    assert "fill: #ffffff" not in styles["1.00"] and "fill: #ffffff" not in styles["nan"]


def test_many_cells_carry_no_numbers():
    values: list[list[Number]] = [[0.123] * 11 for _ in range(10)]
    table = Heatmap(values, [str(n) for n in range(10)], [str(n) for n in range(11)], "u", "x", "y")
    assert "0.12" not in texts(drawn(table))
    assert "0.12" in texts(drawn(Heatmap([[0.123]], ["a"], ["b"], "u", "x", "y")))


def fills(svg: str) -> list[str]:
    """The colours of a heat map's cells, row by row."""
    groups = [node for node in ElementTree.fromstring(svg).iter(f"{SVG}g") if node.get("id") == "QuadMesh_1"]
    return re.findall(r"fill: (#\w+)", ElementTree.tostring(groups[0], encoding="unicode"))


def test_a_diverging_scale_is_centred_on_zero():
    tables = [changed(HEATMAP, values=values) for values in ([[0.25, -1.0], [0.0, 0.5]], [[3.0, -0.5], [0.0, 0.5]])]
    assert len(fills(drawn(tables[0]))) == 4
    assert len({fills(drawn(changed(table, diverging=True)))[2] for table in tables}) == 1
    assert len({fills(drawn(table))[2] for table in tables}) == 2


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Curve("a", [0, 1], [0.5]), "'a' has 2 x values and 1 y values"),
        (lambda: Heatmap([[1.0]], ["a", "b"], ["c"], "", "", ""), "not 2 rows of 1 columns"),
        (lambda: Heatmap([[1.0], [1.0, 2.0]], ["a", "b"], ["c"], "", "", ""), "not 2 rows of 1 columns"),
        (lambda: Heatmap([], [], [], "", "", ""), "at least one row"),
        (lambda: Heatmap([[]], ["a"], [], "", "", ""), "at least one row"),
        (lambda: Bar(["a"], [BarGroup("b", [0.5, 1.0])], "", ""), "'b' has 2 values for 1 categories"),
        (lambda: Bar(["a"], [], "", ""), "at least one category"),
        (lambda: Bar([], [BarGroup("b", [])], "", ""), "at least one category"),
        (lambda: FigureData([], "alt"), "at least one panel"),
        (lambda: FigureData([LINE], "  "), "text alternative"),
    ],
)
def test_what_cannot_be_drawn_cannot_be_made(made, said):
    with pytest.raises(ValueError, match=said):
        made()


def test_the_page_has_the_text_alternative_and_the_drawing():
    alt = """A "falling" loss <script>alert('x')</script> & more"""
    html = figures.as_html(FigureData([LINE], alt))
    assert "<script" not in html and "<?xml" not in html and "<!DOCTYPE" not in html
    # Every attribute is quoted and every tag closed, so a strict parser reads it, and reads the words back.
    page = ElementTree.fromstring(html)
    assert page.get("aria-label") == alt and page.get("role") == "img"
    assert [child.tag for child in page] == [f"{SVG}svg"]
