"""Noise floors: the largest move over all perturbations, never rounded down, and none where a value must not move."""

import math

import msgspec
import numpy as np
import pytest
from builders import ENTRIES, FIGURE, HEATMAP, LINE, changed, floats_changed, record
from hypothesis import given
from hypothesis import strategies as st

from reproduce import nearby, noise
from reproduce.errors import HarnessError
from reproduce.figure_data import Curve
from reproduce.noise import NoiseFile, PrecisionNoise
from reproduce.records import Claim, Figure, Metric, Series, Text

numbers = st.floats(min_value=-1e300, max_value=1e300)


def test_the_largest_move_is_the_floor():
    reference = record(Metric("a", 1.0), Series("b", [1.0, 2.0]))
    perturbed = {
        "one": record(Metric("a", 1.25), Series("b", [1.0, 1.0])),
        "two": record(Metric("a", 0.5), Series("b", [1.125, 2.5])),
        "three": record(Metric("a", 1.0), Series("b", [0.75, 2.0])),
    }
    assert noise.measure(reference, perturbed) == {"a": {"value": [0.5]}, "b": {"values": [0.25, 1.0]}}


def test_the_other_precision_is_a_perturbation_too():
    single, double = (record(Metric("a", value), precision=p) for value, p in ((1.5, "float32"), (1.0, "float64")))
    assert noise.measure(single, {"other": double}) == {"a": {"value": [0.5]}}
    # What float32 is off by is not float64's own: that rounds 2^29 times finer, 2^-30 in all, in three digits.
    (floor,) = noise.measure(double, {"other": single})["a"]["value"]
    assert 2.0**-30 <= floor <= 1.01 * 2.0**-30


def test_every_number_of_a_figure_has_a_floor():
    moved = floats_changed(ENTRIES, lambda value: value * 1.5)
    floors = noise.measure(record(*ENTRIES), {"one": record(*moved)})
    assert floors["demo-01"] == {
        "data.panels[0].series[0].x": [0.0, 0.0, 0.0],
        "data.panels[0].series[0].y": [0.75, 0.25, 0.125],
        "data.panels[0].series[1].x": [0.0, 0.0, 0.0],
        "data.panels[0].series[1].y": [0.75, 0.375, 0.25],
        "data.panels[0].levels[0].y": [0.688],  # 0.6875 in three digits
        "data.panels[1].values[0]": [0.5, 0.25],
        "data.panels[1].values[1]": [0.125, 0.5],
        "data.panels[2].series[0].values": [0.125, 0.25],
        "data.panels[2].series[1].values": [0.375, 0.5],
    }
    # Claims and texts hold no number that is compared.
    assert set(floors) == {"train/loss", "pairs", "accuracy@10", "train/curve", "demo-01"}


@given(numbers, numbers)
def test_a_floor_is_never_below_the_move(value, moved):
    floors = noise.measure(record(Metric("a", value)), {"one": record(Metric("a", moved))})
    (floor,), move = floors["a"]["value"], abs(moved - value)
    # Three digits, rounded up: at most one percent above, as far as a percent can be represented.
    assert move <= floor <= 1.011 * move or move < 1e-300


@given(st.floats(min_value=0, max_value=1e-290))
def test_the_smallest_moves_are_not_rounded_down(move):
    floors = noise.measure(record(Metric("a", 0.0)), {"one": record(Metric("a", move))})
    assert floors["a"]["value"][0] >= move


@pytest.mark.parametrize(("move", "floor"), [(0.123456, 0.124), (0.99951, 1.0), (123456.0, 124000.0), (0.125, 0.125)])
def test_floors_are_short(move, floor):
    floors = noise.measure(record(Metric("a", 0.0)), {"one": record(Metric("a", move))})
    assert floors["a"]["value"][0] == pytest.approx(floor, rel=1e-12)


CLAIM = Claim("a", True, 0.5, "b")


@pytest.mark.parametrize(
    ("reference", "perturbed"),
    [
        ([Metric("a", 4)], [Metric("a", 5)]),
        ([Metric("a", 4)], [Metric("a", 4.0)]),
        ([Metric("a", 4.0)], [Metric("a", 4)]),
        ([Metric("a", 0.5)], [Metric("a", "NaN")]),
        ([Metric("a", "NaN")], [Metric("a", 0.5)]),
        ([Metric("a", "NaN")], [Metric("a", "NaN")]),
        ([Series("a", [0.5, "Infinity"])], [Series("a", [0.5, "Infinity"])]),
        ([Metric("a", 0.5, unit="nats")], [Metric("a", 0.5, unit="bits")]),
        ([Series("a", [0.5])], [Series("a", [0.5, 0.5])]),
        ([Series("a", [0.5, 0.5])], [Series("a", [0.5])]),
        ([Metric("a", 0.5)], [Series("a", [0.5])]),
        ([CLAIM], [changed(CLAIM, holds=False, margin=-0.5)]),
        ([CLAIM], [changed(CLAIM, compared="c")]),
        ([Text("a", "b")], [Text("a", "c")]),
        ([Metric("a", 0.5)], []),
        ([], [Metric("a", 0.5)]),
        ([Metric("a", 0.5)], [Metric("b", 0.5)]),
        ([Metric("a", 0.5), Metric("b", 0.5)], [Metric("b", 0.5), Metric("a", 0.5)]),
        ([Figure("a", FIGURE)], [Figure("a", changed(FIGURE, panels=[LINE]))]),
        (
            [Figure("a", changed(FIGURE, panels=[changed(HEATMAP, values=[["NaN", "NaN"], ["NaN", "NaN"]])]))],
            [Figure("a", changed(FIGURE, panels=[changed(HEATMAP, values=[["NaN", "NaN"], ["NaN", "NaN"]])]))],
        ),
        (
            [Figure("a", changed(FIGURE, panels=[changed(LINE, series=[Curve("b", [0], [0.5])])]))],
            [Figure("a", changed(FIGURE, panels=[changed(LINE, series=[Curve("b", [0, 1], [0.5, 0.5])])]))],
        ),
    ],
)
def test_what_must_not_depend_on_rounding(reference, perturbed):
    with pytest.raises(HarnessError, match="under the-perturbation"):
        noise.measure(record(*reference), {"the-perturbation": record(*perturbed)})


def test_the_margin_of_a_claim_may_move():
    assert noise.measure(record(CLAIM), {"one": record(changed(CLAIM, margin=0.25))}) == {}


def test_without_perturbations_nothing_moves():
    assert noise.measure(record(Series("a", [0.5, 1.0])), {}) == {"a": {"values": [0.0, 0.0]}}


@given(st.floats(min_value=0, max_value=2.0**127, width=32))
def test_spacing_in_single_precision(value):
    assert noise.unit_in_last_place(abs(value), "float32") == float(np.spacing(np.float32(value)))


@given(st.floats(min_value=-1e300, max_value=1e300))
def test_spacing_in_double_precision(value):
    assert noise.unit_in_last_place(abs(value), "float64") == np.spacing(abs(value))


def test_spacing_is_that_of_the_largest_near_by():
    spacing = noise.Allowance([1.0, 0.0, 0.0, 0.0, "NaN"], None, "float64").ulps
    assert spacing == [2.0**-52] * 3 + [math.ulp(0.0)] * 2
    assert noise.Allowance([4, -16, 0.5], None, "float64").ulps == [2.0**-48] * 3


def test_floors_of_another_count_are_none():
    assert noise.Allowance([1.0, 2.0], [1.0], "float64").floors == [0.0, 0.0]
    assert noise.Allowance([1.0, 2.0], [], "float64").floors == [0.0, 0.0]


@pytest.mark.parametrize(
    ("count", "index", "places"),
    [(1, 0, [0]), (5, 0, [0, 1, 2]), (5, 4, [2, 3, 4]), (12, 6, [4, 5, 6, 7, 8]), (100, 50, list(range(45, 56)))],
)
def test_how_far_near_by_is(count, index, places):
    # A peak is seen from the places around it, and from no others.
    peak = [float(place == index) for place in range(count)]
    assert [place for place, value in enumerate(nearby.largest(peak)) if value] == places


@given(st.lists(st.sampled_from([0.0, 0.25, 1.0, 1.0, 3.0, 1e-300, 1e300]), max_size=130))
def test_the_largest_near_by_is_that_of_the_plain_loop(values):
    reach = max(2, int(len(values) / 20))
    plain = [max(v for at, v in enumerate(values) if abs(at - place) <= reach) for place in range(len(values))]
    assert nearby.largest(values) == plain


def test_the_narrow_instruction_set_exists_on_x86_alone(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert set(noise.perturbations()) == set(noise.PERTURBATIONS)
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert set(noise.PERTURBATIONS) - set(noise.perturbations()) == {"sse4"}


FLOORS = {"float32": PrecisionNoise("5" * 64, {"one": "--flag"}, {"a": {"value": [1.5e-8]}})}
FILE = NoiseFile(noise.SCHEMA, "01_demo", FLOORS, ["a", "b"])


def test_a_noise_file_comes_back(tmp_path):
    path = tmp_path / "01_demo.noise.json"
    path.write_bytes(noise.encode(FILE))
    assert msgspec.structs.replace(noise.read(path), sha256="") == FILE
    assert path.read_bytes().endswith(b"\n") and path.read_bytes().count(b"\n") > 10


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        noise.encode(FILE)[:-20],
        noise.encode(FILE).replace(b'"stem"', b'"host"'),
        noise.encode(FILE).replace(b"1.5e-8", b'"NaN"'),
        noise.encode(msgspec.structs.replace(FILE, schema=noise.SCHEMA - 1)),
    ],
)
def test_damaged_noise_files(tmp_path, content):
    path = tmp_path / "01_demo.noise.json"
    path.write_bytes(content)
    with pytest.raises(HarnessError, match=r"01_demo\.noise\.json(:\d+)?: .*Record the notebook again"):
        noise.read(path)


@pytest.mark.parametrize(
    ("old", "new"), [(b"1.5e-8", b"1.5e300"), (b"1.5e-8", b"1.6e-8"), (b"1.5e-8", b"0.0"), (b'"b"', b'"c"')]
)
def test_a_change_by_hand_is_noticed(tmp_path, old, new):
    path = tmp_path / "01_demo.noise.json"
    assert old in noise.encode(FILE)
    path.write_bytes(noise.encode(FILE).replace(old, new))
    with pytest.raises(HarnessError, match=r"01_demo\.noise\.json: edited after recording"):
        noise.read(path)


def test_a_missing_noise_file(tmp_path):
    with pytest.raises(HarnessError, match="not readable"):
        noise.read(tmp_path / "01_demo.noise.json")


def test_the_run_in_the_other_precision_is_one_more_perturbation():
    single = record(Metric("a", 0.5), precision="float32")
    double = record(Metric("a", 0.5 + 2.0**-20), precision="float64")
    assert noise.measure(single, {noise.OTHER_PRECISION: double})["a"]["value"] == [pytest.approx(2.0**-20, rel=1e-2)]
    # float64 rounds 2^29 times finer than the float32 run that the error is read from.
    assert noise.measure(double, {noise.OTHER_PRECISION: single})["a"]["value"] == [pytest.approx(2.0**-49, rel=1e-2)]
