"""The report: page and Markdown say the same, strangers' texts do nothing, its size has a bound, it needs no JAX."""

import html.parser
import re

import msgspec
import pytest
from builders import ENTRIES, FIGURE, LINE, STEM, changed
from pages_seen import NASTY, Page
from recorded_releases import CURVE, FLOOR, moved, put_release, with_reference
from test_architecture import run_without
from test_figure_images import IMAGES

from reproduce import figure_pairs, figures, overview, pages, survey, webpage
from reproduce.figure_data import Bar, Curve, FigureData, Heatmap, Images, Line
from reproduce.records import Claim, Figure, Series, Text

DRIFT = moved(lambda step, value: value + 25 * FLOOR * (step >= 3))
NEAR = moved(lambda step, value: value + 5 * FLOOR * (step == 3))


class Rows(html.parser.HTMLParser):
    """The rows of every table of a page, as texts without runs of space."""

    def __init__(self, content: str):
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.open = False
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.open = True

    def handle_endtag(self, tag):
        self.open = self.open and tag not in ("td", "th")

    def handle_data(self, data):
        if self.open:
            cells = self.tables[-1][-1]
            cells[-1] = " ".join(f"{cells[-1]} {data}".split())


def markdown_tables(text: str) -> list[list[list[str]]]:
    """The same of a Markdown file, with its escapes undone."""
    tables, before = [], ""
    for line in text.splitlines():
        if line.startswith("|"):
            if not before.startswith("|"):
                tables.append([])
            cells = [plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not all(re.fullmatch("-+", cell) for cell in cells):
                tables[-1].append(cells)
        before = line
    return tables


def plain(cell: str) -> str:
    text = re.sub(r"\\([^\w\s]|_)", r"\1", cell.replace("<br>", " "))
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&#58;", ":"), ("&#46;", "."), ("&amp;", "&")):
        text = text.replace(entity, sign)
    return " ".join(text.split())


@pytest.fixture
def demo(tmp_path):
    return with_reference(tmp_path / "checkout")


@pytest.fixture
def written(demo):
    def write() -> tuple[Page, str]:
        page, text = webpage.write(demo.checkout.build, survey.gather(demo.checkout))
        return Page(page.read_bytes()), text.read_text(encoding="utf-8")

    return write


def test_the_table_of_releases_by_notebooks(demo, written):
    put_release(demo, "0.4.38", moved(lambda step, value: 2 * value), threefry_partitionable=False)
    put_release(demo, "0.7.2", NEAR)
    put_release(demo, "0.8.3", DRIFT)
    put_release(demo, "0.9.2")
    (demo.checkout.recorded_runs / "jax-0.9.2_cpu" / f"{STEM}.float32.jsonl").unlink()
    page, text = written()
    expected = {
        "JAX 0.0.0": ["float32 the reference float64 the reference", ""],
        "JAX 0.4.38": ["float32 random stream changed float64 random stream changed", "random stream changed"],
        "JAX 0.7.2": ["float32 within noise, 5.0 floors float64 within noise, 5.0 floors", "unknown"],
        "JAX 0.8.3": [f"float32 drift at {CURVE}[3] float64 drift at {CURVE}[3]", "unknown"],
        "JAX 0.9.2": ["float32 not recorded float64 identical", ""],
    }
    table = markdown_tables(text)[0]
    assert table[0] == ["release", STEM, "causes of the differences"]
    found = {row[0]: row[1:] for row in table[1:]}
    assert {title: found[title] for title in expected} == expected
    assert found["JAX 0.12.0.1 (make matrix JAX=0.12.0.1 records it; it needs Python 3.12 or 3.13)"] == [
        "float32 not recorded float64 not recorded",
        "",
    ]
    sentence = (
        "1 of 4 recorded releases agrees with the reference jax-0.0.0_cpu; JAX 0.4.38, JAX 0.8.3, JAX 0.9.2 do not."
    )
    assert sentence in page.flat() and f"**{plain(sentence)}" in plain(text)


def test_the_page_and_markdown_hold_the_same_tables(demo, written):
    put_release(demo, "0.7.2", NEAR)
    put_release(demo, "0.8.3", DRIFT, threads=8)
    written()
    ours = Rows((demo.checkout.build / "report.html").read_text(encoding="utf-8")).tables
    theirs = markdown_tables((demo.checkout.build / "report.md").read_text(encoding="utf-8"))
    # Notes stand in brackets in Markdown and below the name on the page; the table of series is a plot on the page.
    assert [
        [cell.replace("(make", "make").replace("3.11)", "3.11").replace("3.13)", "3.13") for cell in row]
        for row in theirs[0]
    ] == ours[0]
    assert theirs[2:] == ours[1:] and len(ours) > 5


def test_a_cell_tells_its_entries_causes_and_first_parting_step(demo, written):
    put_release(demo, "0.8.3", moved(lambda step, value: value + (25 + step) * FLOOR * (step >= 3)), threads=8)
    page, text = written()
    flat = page.flat()
    for expected in (
        f"{STEM} float64: drift at {CURVE}[3]",
        "unknown: 1 entry differs by more than rounding explains, the first is train/curve.",
        "2 of 2 claims hold. train/curve leaves its allowed noise at step 3.",
    ):
        assert expected in flat and expected in plain(text), expected
    [table] = [each for each in markdown_tables(text) if each[0][0] == "entry"][:1]
    # The farthest first, in floors: steps 7, 6, 5, 4, 3.
    assert [row[0] for row in table[1:]] == [f"{CURVE}[{step}]" for step in (7, 6, 5, 4, 3)]
    assert [row[4] for row in table[1:]] == ["32 floors", "31 floors", "30 floors", "29 floors", "28 floors"]
    assert ["threads", "2", "8"] in [row for each in markdown_tables(text) for row in each]
    assert f"{STEM} float64 {CURVE} JAX 0.8.3 parts from the reference at step 3 of 8".split() == [
        word
        for row in markdown_tables(text)[1]
        if "parts" in row[3] and "64" in row[0]
        for word in " ".join(row).split()
    ]
    labels = [attributes["aria-label"] for tag, attributes in page.elements if tag == "svg"]
    assert labels == ["JAX 0.8.3: parts from the reference at step 3 of 8"] * 2


def test_what_could_not_be_read_or_run_is_told(demo, written):
    put_release(demo, "0.8.3")
    path = demo.checkout.recorded_runs / "jax-0.8.3_cpu" / f"{STEM}.float64.jsonl"
    path.write_bytes(b"nothing\n")
    page, text = written()
    said = f"{STEM} float64 cannot be read: recorded_runs/jax-0.8.3_cpu/{STEM}.float64.jsonl:1: not JSON."
    assert said in page.flat() and said in plain(text)


def test_every_link_leads_somewhere_on_the_page(demo, written):
    put_release(demo, "0.8.3", DRIFT)
    page, _ = written()
    links = {attributes["href"].removeprefix("#") for tag, attributes in page.elements if tag == "a"}
    anchors = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert links <= set(anchors) and len(set(anchors)) == len(anchors) and len(links) == 6


def test_nothing_but_the_reference(written):
    page, text = written()
    said = "Nothing is recorded to hold against the reference jax-0.0.0_cpu. Without a record: JAX 0.4.30,"
    assert said in page.flat() and said in plain(text)
    for expected in ("No series differs.", "No figure differs.", "No other release is recorded."):
        assert expected in page.flat()


# Strangers


NASTY_FIGURE = FigureData([changed(LINE, title=NASTY, xlabel=NASTY, series=[Curve(NASTY, [0, 1], [0.5, 0.25])])], NASTY)
NASTY_ENTRIES = [
    changed(entry, unit=NASTY) if isinstance(entry, Series) else
    changed(entry, compared=NASTY, holds=False) if isinstance(entry, Claim) else
    changed(entry, value=f"{NASTY} | a | [b](http://c) `d` www.e.org") if isinstance(entry, Text) else
    changed(entry, data=NASTY_FIGURE) if isinstance(entry, Figure) else entry
    for entry in DRIFT
]  # fmt: skip


def test_texts_of_strangers_are_shown_and_do_nothing(demo, written):
    put_release(
        demo, NASTY, NASTY_ENTRIES, folder="<script>alert(3)", processor=NASTY, flags={NASTY: NASTY, "XLA_FLAGS": NASTY}
    )
    page, text = written()
    assert page.running() == [] and page.outside() == []
    policies = [a["content"] for _, a in page.elements if a.get("http-equiv")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert page.text.count(" ".join(NASTY.split())) > 5 and "<script>alert(3)" in page.text
    # In Markdown there is no tag but the line break, no link and no cell too many.
    assert set(re.findall(r"<(?!br>)\S*", text)) == set()
    assert "://" not in text and "www." not in text
    for table in markdown_tables(text):
        assert len({len(row) for row in table}) == 1
    assert any(NASTY in " ".join(row) for table in markdown_tables(text) for row in table)


def test_an_unescaped_text_would_be_noticed(demo, written, monkeypatch):
    put_release(demo, "0.8.3", folder="<script>alert(3)")
    monkeypatch.setattr(pages._ENVIRONMENT, "autoescape", False)
    pages._ENVIRONMENT.cache.clear()
    page, _ = written()
    pages._ENVIRONMENT.cache.clear()
    assert "script" in page.running()


@pytest.mark.parametrize(
    "text", ["a|b", "*a*", "_a_", "`a`", "[a](b)", "<b>", "a\nb", "~~a~~", "$a$", "# a", "![a](b)", "&lt;", "a\\|b"]
)
def test_markdown_shows_a_text_as_it_is(text):
    escaped = pages.escape_markdown(text)
    assert plain(escaped) == " ".join(text.split()) and "\n" not in escaped
    bare = re.sub(r"\\.|&\w+;", "", escaped)
    assert not re.search(r"[|*`\[\]~$#!<>&]|(?<!\w)_|_(?!\w)", bare)


def test_a_report_stays_small_whatever_is_recorded(demo, written):
    values = [1.0 + step / 7 for step in range(400)]
    entries = [Series(f"s{n}", values, "u" * 9000) for n in range(40)]
    entries += [Text(f"t{n}", "x" * 30_000) for n in range(40)]
    entries += [Figure("huge", FigureData([Line([Curve("c", values * 30, values * 30)], "x", "y")], "Many points."))]
    bigger = [
        changed(each, values=[value + 1e-3 for value in values]) if isinstance(each, Series) else
        changed(each, value="y" * 30_000) if isinstance(each, Text) else
        changed(each, data=changed(each.data, alt="z" * 30_000))
        for each in entries
    ]  # fmt: skip
    demo.put_reference(tuple(entries))
    many = {f"package{n}": "9" * 500 for n in range(500)}
    for n in range(4):
        put_release(demo, f"0.8.{n}", [*bigger[n:], *bigger[:n]], versions={"jax": f"0.8.{n}", **many})
    page, text = written()
    files = [path.stat().st_size for path in demo.checkout.build.glob("report.*")]
    assert max(files) < 3_000_000
    assert "No room for" in page.flat() and "It holds too many numbers to be drawn here." in page.flat()
    assert "smaller differences are left out" in text


# Figures


def test_a_figure_stands_beside_the_farthest_release_and_their_difference(demo, written):
    def with_line(by: float):
        curves = [changed(curve, y=[y + by for y in curve.y]) for curve in LINE.series]
        data = changed(FIGURE, panels=[changed(LINE, series=curves), *FIGURE.panels[1:]])
        return [changed(each, data=data) if isinstance(each, Figure) else each for each in ENTRIES]

    put_release(demo, "0.7.2", with_line(0.125))
    put_release(demo, "0.8.3", with_line(0.25))
    [pair] = figure_pairs.pairs(survey.gather(demo.checkout))
    assert (pair.name, pair.title, pair.agrees, pair.expected) == ("demo-01", "JAX 0.8.3", False, FIGURE)
    page, _ = written()
    pictures = [attributes for tag, attributes in page.elements if tag == "img"]
    assert [each["alt"].partition(".")[0] for each in pictures] == ["reference", "JAX 0", "difference"]
    assert all(each["src"].startswith("data:image/svg+xml;base64,") for each in pictures)


def test_a_difference_is_found_minus_expected_counted_in_a_power_of_ten():
    [line, heatmap, bar] = FIGURE.panels
    assert isinstance(line, Line) and isinstance(heatmap, Heatmap) and isinstance(bar, Bar)
    curves = [changed(line.series[0], y=[1.5, 0.5, 0.25 + 2.0**-30]), line.series[1]]
    rows = [[1.0, -0.5 - 2.0**-20], [0.25, 1.0]]
    groups = [changed(bar.series[0], values=[0.25 + 2.0**-10, 0.5]), bar.series[1]]
    found = FigureData(
        [changed(line, series=curves), changed(heatmap, values=rows), changed(bar, series=groups)], "Another."
    )
    difference = figure_pairs.difference(FIGURE, found)
    assert difference is not None
    [of_line, of_heatmap, of_bar] = difference.panels
    # 2^-30 is 9.3e-10, 2^-20 is 9.5e-7, 2^-10 is 9.8e-4.
    assert of_line.series[0].y == [0, 0, 2.0**-30 / 1e-10] and of_line.series[1].y == [0, 0, 0]
    assert of_line.ylabel == "difference / 1e-10: loss (nats)" and of_line.levels == []
    assert of_heatmap.values == [[0, -(2.0**-20) / 1e-7], [0, 0]] and of_heatmap.unit == "difference / 1e-07: cosine"
    assert of_bar.series[0].values == [2.0**-10 / 1e-4, 0] and of_bar.ylabel == "difference / 1e-04: accuracy"
    assert figures.to_svg(difference).startswith(b"<?xml")


def test_the_difference_of_pictures():
    brighter = msgspec.convert(msgspec.to_builtins(IMAGES), Images)
    brighter.values[0][0][1][2] = 9
    difference = figure_pairs.difference(FigureData([IMAGES], "a"), FigureData([brighter], "b"))
    assert difference is not None
    [panel] = difference.panels
    assert isinstance(panel, Images)
    assert panel.values == [[[[0, 0, 0], [0, 0, 4]], [[0, 0, 0], [0, 0, 0]]]]
    assert (panel.black, panel.white) == (-4, 4)


@pytest.mark.parametrize(
    "panels",
    [
        FIGURE.panels[:2],
        FIGURE.panels[::-1],
        [changed(LINE, series=LINE.series[:1]), *FIGURE.panels[1:]],
        [changed(LINE, series=[Curve(each.label, [0, 1, 3], each.y) for each in LINE.series]), *FIGURE.panels[1:]],
    ],
)
def test_figures_of_other_forms_have_no_difference(panels):
    assert figure_pairs.difference(FIGURE, changed(FIGURE, panels=panels)) is None


def test_a_figure_that_cannot_be_drawn_leaves_the_others(demo, written):
    def with_values(*values: float):
        data = FigureData([changed(LINE, series=[Curve("a", [0, 1], list(values))])], "Far apart.")
        return [*ENTRIES, Figure("far", data)]

    demo.put_reference(tuple(with_values(1.0, 2.0)))
    put_release(demo, "0.8.3", with_values(1.7e308, -1.7e308))
    page, _ = written()
    assert "far 01_demo" in page.flat() and "It cannot be drawn: overflow" in page.flat()


# The command


def test_the_command_writes_both_files_without_jax(demo, tmp_path, monkeypatch):
    put_release(demo, "0.8.3", NEAR)
    monkeypatch.setenv("REPRODUCE_ROOT", str(demo.checkout.root))
    before = {path: path.read_bytes() for path in demo.checkout.recorded_runs.rglob("*") if path.is_file()}
    program = "sys.argv[1:] = ['report'{}]\nrunpy.run_module('reproduce', run_name='__main__')"
    done = run_without(("jax", "jaxlib"), program.format(""))
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(
        r"^build/report\.html: \d+ kB\nbuild/report\.md: \d+ kB\n\n1 of 1 recorded releases agrees", done.stdout
    )
    elsewhere = tmp_path / "else where"
    done = run_without(("jax", "jaxlib"), program.format(f", '--out', {str(elsewhere)!r}"))
    assert done.returncode == 0
    for name in ("report.html", "report.md"):
        # The same bytes: nothing of the clock, of paths or of chance is in them.
        assert (elsewhere / name).read_bytes() == (demo.checkout.build / name).read_bytes()
    assert str(tmp_path).encode() not in (elsewhere / "report.html").read_bytes()
    assert {path: path.read_bytes() for path in before} == before


def test_short_texts_are_kept_and_long_ones_cut():
    assert overview.short("a\n b") == "a b"
    assert overview.short("a" * 500) == "a" * overview.LONGEST + "…"
