"""The plain log: exact lines, and enough digits that no two numbers look the same."""

import math

import numpy as np
import pytest
from builders import ENTRIES, record
from hypothesis import given
from hypothesis import strategies as st

from reproduce import plain_log
from reproduce.records import Claim, Figure, Metric, Series, Text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float64_can_be_read_back(value):
    assert float(plain_log.number(value, "float64")) == value


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float32_can_be_read_back(value):
    assert np.float32(plain_log.number(value, "float32")) == np.float32(value)


@pytest.mark.parametrize("value", [1.0, 0.1, 1e-30, 123456.789, -7.5, 1020.0, 1020.00007])
def test_neighbours_look_different(value):
    single = np.float32(value)
    neighbour = np.nextafter(single, np.float32(np.inf))
    assert plain_log.number(float(single), "float32") != plain_log.number(float(neighbour), "float32")
    assert plain_log.number(value, "float64") != plain_log.number(math.nextafter(value, math.inf), "float64")


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (Metric("loss", 0.25, unit="nats"), "loss: 0.25 nats"),
        (Metric("loss", 0.25, step=7), "loss@7: 0.25"),
        (Metric("pairs", 4), "pairs: 4"),
        (Metric("loss", "NaN"), "loss: NaN"),
        (Metric("third", 1 / 3), "third: 0.33333333333333331"),
        (Series("a", [1.0, 0.5, -0.25, 2], unit="nats"), "a: 1, 0.5, -0.25, 2 nats"),
        (Series("a", [1.0, 2.0, 3.0, 4.0, "Infinity"]), "a: 5 values from 1 to Infinity"),
        (Series("a", []), "a: "),
        (Claim("falls", True, 0.12345, "first - last"), "claim falls: holds (margin 0.123; first - last)"),
        (Claim("falls", False, "-Infinity", "b"), "claim falls: BROKEN (margin -Infinity; b)"),
        (Text("pairing", "by row"), "pairing: by row"),
    ],
)
def test_lines(entry, line):
    assert plain_log.describe(entry, "float64") == line


def test_a_figure_is_called_by_its_panels():
    (figure,) = (entry for entry in ENTRIES if isinstance(entry, Figure))
    assert plain_log.describe(figure, "float32") == "figure demo-01: Loss, left, accuracy"


def test_a_whole_log():
    made = record(Metric("loss", 0.5), Claim("falls", True, 1, "a"), precision="float32")
    assert plain_log.render(made, "recorded 2030-01-02").splitlines() == [
        "01_demo in float32",
        "recorded 2030-01-02",
        "parameters: RATE = 0.5, STEPS = 3",
        "loss: 0.5",
        "claim falls: holds (margin 1; a)",
        "PASS: demo-01",
    ]
    assert plain_log.render(made).endswith("\n")


def test_a_log_passes_only_where_every_claim_holds():
    made = record(Claim("a", True, 1.0, ""), Claim("b", False, -1.0, ""), Claim("c", False, -1.0, ""), parameters={})
    assert plain_log.render(made).splitlines()[-1] == "FAIL: demo-01 (broken: b, c)"
    assert "parameters" not in plain_log.render(made)
