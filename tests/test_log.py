"""`RunLog`: what a notebook may log, what stands in the file after each call, and what the reader sees."""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from builders import FIGURE, LINE

from reproduce import log, records
from reproduce.figure_data import Heatmap, Line
from reproduce.log import RunLog
from reproduce.records import Claim, Figure, Incomplete, Metric, Series, Text

ABOUT = {"notebook": "demo-01", "stem": "01_demo", "precision": "float32", "parameters": {"RATE": 0.5, "STEPS": 3}}
PANEL = {"kind": "line", "series": [{"label": "a", "x": [0, 1], "y": [0.5, 0.25]}], "xlabel": "x", "ylabel": "y"}


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    """Where a kernel that the harness started writes its record."""
    monkeypatch.setenv(log.SOURCE_VARIABLE, "5" * 64)
    return tmp_path / "new folder" / "record.jsonl"


@pytest.fixture
def by_hand(monkeypatch) -> None:
    """A notebook that a person runs."""
    monkeypatch.delenv(log.SOURCE_VARIABLE, raising=False)


def test_a_whole_record(path):
    run = RunLog(path, **ABOUT)
    run.metric("loss", 0.5, unit="nats")
    run.metric("loss", 0.25, step=7)
    run.series("curve", [1, 0.5])
    run.claim("falls", margin=0.25, compared="first - last")
    run.figure("demo-01", panels=[PANEL], alt="A falling line.")
    run.text("pairing", "by row")
    run.close()
    read = records.read(path)
    assert read.header == records.Header(1, "demo-01", "01_demo", "5" * 64, "float32", {"RATE": 0.5, "STEPS": 3})
    assert read.entries[:4] == (
        Metric("loss", 0.5, "nats"),
        Metric("loss", 0.25, "", 7),
        Series("curve", [1, 0.5]),
        Claim("falls", True, 0.25, "first - last"),
    )
    assert isinstance(read.entries[4], Figure) and read.entries[4].data.alt == "A falling line."
    assert read.entries[5] == Text("pairing", "by row")


def test_every_line_is_on_disk_as_soon_as_it_is_logged(path):
    run = RunLog(path, **ABOUT)
    for count in range(4):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [json.loads(line)["kind"] for line in lines] == ["header"] + ["metric"] * count
        run.metric(f"loss_{count}", 0.5)
    # As after a killed kernel: what was logged is there, and the record does not pass for a whole one.
    with pytest.raises(Incomplete):
        records.read(path)


def test_what_the_reader_sees(path, capsys):
    run = RunLog(path, **ABOUT)
    run.metric("loss", np.float32(0.1), unit="nats")
    run.claim("falls", margin=0.25, compared="first - last")
    run.close()
    assert capsys.readouterr().out == (
        "loss: 0.100000001 nats\nclaim falls: holds (margin 0.25; first - last)\nPASS: demo-01\n"
    )


def test_broken_claims_are_named_at_the_end(path, capsys):
    run = RunLog(path, **ABOUT)
    run.claim("falls", margin=-0.25, compared="first - last")
    run.claim("ranks", margin=0.25, compared="lead")
    run.close()
    assert capsys.readouterr().out.splitlines()[-1] == "FAIL: demo-01 (broken: falls)"


@pytest.mark.parametrize(
    ("margin", "holds"),
    [
        (1e-300, True),
        (1, True),
        (float("inf"), True),
        (0.0, False),
        (-0.0, False),
        (0, False),
        (-1e-300, False),
        (float("-inf"), False),
        (float("nan"), False),
        (jnp.float32(0.5), True),
        (np.float64("nan"), False),
    ],
)
def test_a_claim_holds_where_its_margin_is_above_zero(path, margin, holds):
    run = RunLog(path, **ABOUT)
    run.claim("a", margin=margin, compared="b")
    run.close()
    (claim,) = records.read(path).entries
    assert isinstance(claim, Claim) and claim.holds is holds


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (3, 3),
        (0.1, 0.1),
        (np.int32(3), 3),
        (np.float64(0.1), 0.1),
        (np.float32(0.1), 0.10000000149011612),
        (jnp.float32(0.1), 0.10000000149011612),
        (jnp.array([[0.5]]), 0.5),
        (jnp.arange(4).sum(), 6),
        (float("nan"), "NaN"),
        (np.float32("inf"), "Infinity"),
        (-jnp.inf, "-Infinity"),
    ],
)
def test_numbers_are_kept_as_they_are(path, given, kept):
    run = RunLog(path, **ABOUT)
    run.metric("a", given)
    run.series("b", [given, given])
    run.close()
    metric, series = records.read(path).entries
    assert isinstance(metric, Metric) and isinstance(series, Series)
    assert (metric.value, series.values) == (kept, [kept, kept]) and type(metric.value) is type(kept)


@pytest.mark.parametrize(
    "value", [True, np.bool_(True), "0.5", None, 1j, [0.5], jnp.array([0.5, 0.25]), np.array([]), 2**63]
)
def test_what_is_no_number_is_refused(path, value):
    run = RunLog(path, **ABOUT)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="'a'"):
        run.metric("a", value)
    with pytest.raises(ValueError, match="'a'"):
        run.series("a", [0.5, value])
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        {"notebook": "../a"},
        {"stem": "folder/01_demo"},
        {"precision": "float16"},
        {"parameters": {"RATE": [0.5]}},
    ],
)
def test_a_run_that_cannot_be_recorded_is_refused(path, change):
    with pytest.raises(ValueError, match="cannot log"):
        RunLog(path, **(ABOUT | change))
    assert not path.exists()


@pytest.mark.parametrize("name", ["../a", "A", "a b", "", "a\n"])
def test_bad_names_are_refused(path, name):
    run = RunLog(path, **ABOUT)
    with pytest.raises(ValueError, match="cannot log"):
        run.metric(name, 0.5)


def test_a_name_is_used_once_in_a_recorded_run(path):
    run = RunLog(path, **ABOUT)
    run.metric("a", 0.5)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="logged twice"):
        run.text("a", "b")
    assert path.read_bytes() == before
    run.metric("a", 0.5, step=1)


@pytest.mark.usefixtures("by_hand")
def test_a_person_may_run_a_cell_twice(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    run = RunLog(path, **ABOUT)
    for value in (0.5, 0.25):
        run.metric("loss", value)
        run.close()
    assert records.read(path).entries == (Metric("loss", 0.25),)
    assert records.read(path).header.source_sha256 == ""
    assert capsys.readouterr().out.count("PASS") == 2


def test_without_a_path_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = RunLog("", **ABOUT)
    run.metric("loss", 0.5)
    run.close()
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out == "loss: 0.5\nPASS: demo-01\n"


@pytest.mark.parametrize(
    ("panels", "alt", "said"),
    [
        ([{**PANEL, "series": [{"label": "a", "x": [0], "y": [0.5, 0.25]}]}], "b", "1 x values and 2 y values"),
        ([{**PANEL, "kind": "pie"}], "b", "pie"),
        ([{**PANEL, "colour": "red"}], "b", "colour"),
        ([{**PANEL, "xlabel": None}], "b", "None"),
        ([], "b", "at least one panel"),
        ([PANEL], " ", "text alternative"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused(path, panels, alt, said):
    run = RunLog(path, **ABOUT)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=said):
        run.figure("demo-01", panels=panels, alt=alt)
    assert path.read_bytes() == before


def test_a_figure_takes_arrays_and_ranges(path):
    run = RunLog(path, **ABOUT)
    curve = {"label": "a", "x": range(2), "y": [jnp.float32(0.5), np.float32("nan")]}
    table = {"kind": "heatmap", "values": jnp.eye(2), "rows": ["a", "b"], "columns": ("c", "d"), "unit": "u"}
    run.figure("a", panels=[{**PANEL, "series": [curve]}, {**table, "xlabel": "x", "ylabel": "y"}], alt="b")
    run.close()
    (figure,) = records.read(path).entries
    assert isinstance(figure, Figure)
    line, heatmap = figure.data.panels
    assert isinstance(line, Line) and isinstance(heatmap, Heatmap)
    assert (line.series[0].x, line.series[0].y) == ([0, 1], [0.5, "NaN"])
    assert heatmap.values == [[1.0, 0.0], [0.0, 1.0]]


def test_the_picture_is_what_the_harness_draws():
    from reproduce import figures

    picture = log.Picture(FIGURE)
    assert figures.to_svg(FIGURE).decode().partition("<svg")[2] in picture._repr_html_()
    assert LINE.title in picture._repr_html_()


def test_a_full_disk_is_not_passed_over():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with pytest.raises(OSError):
        RunLog("/dev/full", **ABOUT)


def test_a_disk_that_fills_up_later(path, monkeypatch):
    resource = pytest.importorskip("resource")
    run = RunLog(path, **ABOUT)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, before[1]))
    try:
        with pytest.raises(OSError):
            run.metric("loss", 0.5)
        with pytest.raises(OSError):
            run.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with pytest.raises(records.RecordError):
        records.read(path)
