"""Pairs of records and the verdicts on them, one difference at a time."""

import copy
import itertools
import math
import time

import msgspec
import pytest
from builders import BAR, ENTRIES, FIGURE, HEATMAP, LINE, REPOSITORY, changed, floats_changed, record
from hypothesis import given
from hypothesis import strategies as st

from reproduce import pairing, records
from reproduce.compare import Comparison, Verdict, compare
from reproduce.errors import AGREES, CANNOT_COMPARE, DIFFERS
from reproduce.figure_data import Curve, FigureData, Number
from reproduce.noise import FLOORS, ULPS
from reproduce.order import out_of_place
from reproduce.records import Claim, Figure, Metric, Series, Text
from reproduce.results import RunCheck

# Spacing of the numbers above one, from the definitions of the two formats.
SPACING = {"float32": 2.0**-23, "float64": 2.0**-52}
VALUES = {entry.name: entry for entry in ENTRIES}


def verdict(expected, found, floors=None, precision="float64") -> Verdict:
    """The verdict on one entry against another."""
    return compared([expected], [found], floors, precision).verdict


def compared(expected, found, floors=None, precision="float64") -> Comparison:
    """The comparison of two lists of entries."""
    return compare(record(*expected, precision=precision), record(*found, precision=precision), floors)


def verdicts(result: Comparison) -> dict[str, str]:
    """The entries that are not identical."""
    return {entry.key: str(entry.verdict) for entry in result.entries if entry.verdict is not Verdict.IDENTICAL}


def test_identical():
    result = compared(ENTRIES, ENTRIES)
    assert result.agrees and result.verdict is Verdict.IDENTICAL and not result.disagreements
    assert {entry.key for entry in result.entries} == {records.key(entry) for entry in ENTRIES}
    assert all(entry.differences == () for entry in result.entries)
    # By hand: three metrics, eight values of a series, 12 + 1 of the lines, 4 of the heat map, 4 of the bars.
    assert (result.numbers, result.claims, result.holding, result.largest) == (3 + 8 + 13 + 4 + 4, 2, 2, 0.0)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("value", [1.0, -0.75, 1e-20, 3e8])
def test_one_unit_in_the_last_place_is_noise(precision, value):
    ulp = math.ldexp(SPACING[precision], math.frexp(value)[1] - 1)
    assert verdict(Metric("a", value), Metric("a", value + ulp), None, precision) is Verdict.WITHIN_NOISE
    assert verdict(Metric("a", value), Metric("a", value - ulp), None, precision) is Verdict.WITHIN_NOISE


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("floor", [0.0, 2.0**-12])
def test_the_allowance_to_the_last_digit(precision, sign, floor):
    ulp = SPACING[precision]
    allowed = 10 * floor + 4 * ulp
    floors = {"a": {"value": [floor]}}
    at, beyond = 1.5 + sign * allowed, 1.5 + sign * (allowed + ulp)
    assert verdict(Metric("a", 1.5), Metric("a", at), floors, precision) is Verdict.WITHIN_NOISE
    assert verdict(Metric("a", 1.5), Metric("a", beyond), floors, precision) is Verdict.DRIFT


def test_a_single_precision_spacing_is_no_noise_in_double_precision():
    assert verdict(Metric("a", 1.0), Metric("a", 1.0 + 2.0**-23)) is Verdict.DRIFT


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("value", [1e-7, 1e-30, -1e-7])
def test_zero_has_no_noise_of_its_own(precision, value):
    assert verdict(Metric("a", 0.0), Metric("a", value), None, precision) is Verdict.DRIFT


def figure(*panels) -> Figure:
    """A figure of these panels."""
    return Figure("demo-01", FigureData(list(panels), FIGURE.alt))


@pytest.mark.parametrize(
    ("expected", "found", "said"),
    [
        # Numbers.
        (Metric("a", 0.5), Metric("a", -0.5), Verdict.DRIFT),
        (Metric("a", 0.5), Metric("a", 0.5000001), Verdict.DRIFT),
        (Metric("a", 0.5), Metric("a", "NaN"), Verdict.NOT_A_NUMBER),
        (Metric("a", "NaN"), Metric("a", 0.5), Verdict.NOT_A_NUMBER),
        (Metric("a", "NaN"), Metric("a", "NaN"), Verdict.NOT_A_NUMBER),
        (Metric("a", 0.5), Metric("a", "Infinity"), Verdict.NOT_A_NUMBER),
        (Metric("a", "-Infinity"), Metric("a", 0.5), Verdict.NOT_A_NUMBER),
        (Metric("a", 4), Metric("a", "NaN"), Verdict.NOT_A_NUMBER),
        (Metric("a", 4), Metric("a", 5), Verdict.DRIFT),
        (Metric("a", 4), Metric("a", 4.0), Verdict.DRIFT),
        (Metric("a", 4.0), Metric("a", 4), Verdict.DRIFT),
        (Metric("a", 2**62), Metric("a", 2**62 + 1), Verdict.DRIFT),
        (Metric("a", 0.5, unit="nats"), Metric("a", 0.5, unit="bits"), Verdict.DRIFT),
        # Series.
        (Series("a", [0.5, 0.25]), Series("a", [0.5]), Verdict.DRIFT),
        (Series("a", [0.5]), Series("a", [0.5, 0.25]), Verdict.DRIFT),
        (Series("a", []), Series("a", [0.5]), Verdict.DRIFT),
        (Series("a", [0.5, 0.25]), Series("a", [0.25, 0.5]), Verdict.DRIFT),
        (Series("a", [0.5, 0.25]), Series("a", [0.5, "NaN"]), Verdict.NOT_A_NUMBER),
        (Series("a", [0.5], unit="nats"), Series("a", [0.5]), Verdict.DRIFT),
        (Series("a", [1, 2]), Series("a", [1, 3]), Verdict.DRIFT),
        # Strings and kinds.
        (Text("a", "by row"), Text("a", "by column"), Verdict.DRIFT),
        (Text("a", "0.5"), Metric("a", 0.5), Verdict.DRIFT),
        (Metric("a", 0.5), Series("a", [0.5]), Verdict.DRIFT),
        (Claim("a", True, 0.5, "b"), Text("a", "b"), Verdict.DRIFT),
        # Claims.
        (Claim("a", True, 0.5, "b"), Claim("a", False, -0.5, "b"), Verdict.CLAIM_BROKEN),
        (Claim("a", False, -0.5, "b"), Claim("a", True, 0.5, "b"), Verdict.DRIFT),
        (Claim("a", False, -0.5, "b"), Claim("a", False, -0.5, "b"), Verdict.CLAIM_BROKEN),
        (Claim("a", True, 0.5, "b"), Claim("a", True, 0.75, "b"), Verdict.IDENTICAL),
        (Claim("a", True, 0.5, "b"), Claim("a", True, 0.5, "c"), Verdict.DRIFT),
        # Figures.
        (figure(LINE), figure(changed(LINE, title="Other")), Verdict.DRIFT),
        (figure(LINE), figure(changed(LINE, logarithmic=True)), Verdict.DRIFT),
        (figure(LINE), figure(changed(LINE, levels=[])), Verdict.DRIFT),
        (figure(LINE), figure(changed(LINE, series=LINE.series[:1])), Verdict.DRIFT),
        (
            figure(changed(LINE, series=[Curve("a", [0, 1], [0.5, 0.25])])),
            figure(changed(LINE, series=[Curve("a", [0, 2], [0.5, 0.25])])),
            Verdict.DRIFT,
        ),
        (
            figure(changed(LINE, series=[Curve("a", [0], [0.5])])),
            figure(changed(LINE, series=[Curve("b", [0], [0.5])])),
            Verdict.DRIFT,
        ),
        (figure(LINE), figure(changed(LINE, series=LINE.series[::-1])), Verdict.DRIFT),
        (figure(LINE), figure(LINE, LINE), Verdict.DRIFT),
        (figure(LINE, BAR), figure(BAR, LINE), Verdict.DRIFT),
        (figure(HEATMAP), figure(changed(HEATMAP, rows=["left 1", "left 0"])), Verdict.DRIFT),
        (figure(HEATMAP), figure(changed(HEATMAP, values=[[1.0, -0.5], [0.25, 1.5]])), Verdict.DRIFT),
        (figure(HEATMAP), figure(changed(HEATMAP, values=[[1.0, -0.5], [0.25, 1]])), Verdict.DRIFT),
        (
            figure(HEATMAP),
            figure(changed(HEATMAP, values=[[1.0 + 2.0**-52, -0.5], [0.25, 1.0]])),
            Verdict.WITHIN_NOISE,
        ),
        (
            figure(HEATMAP),
            figure(changed(HEATMAP, values=[["NaN", "NaN"], [0.25, 1.0]])),
            Verdict.NOT_A_NUMBER,
        ),
        (
            figure(changed(HEATMAP, values=[["NaN", "NaN"], ["NaN", "NaN"]])),
            figure(changed(HEATMAP, values=[["NaN", "NaN"], ["NaN", "NaN"]])),
            Verdict.NOT_A_NUMBER,
        ),
        (figure(changed(HEATMAP, rows=["NaN", "b"])), figure(changed(HEATMAP, rows=["NaN", "b"])), Verdict.IDENTICAL),
        (Figure("a", FIGURE), Figure("a", changed(FIGURE, alt="Another description.")), Verdict.DRIFT),
    ],
)
def test_one_difference(expected, found, said):
    assert verdict(expected, found) is said


def test_a_difference_names_its_place_and_both_sides():
    figures = (figure(LINE), figure(changed(LINE, series=[changed(LINE.series[0], y=[1.5, 0.5, 0.5]), LINE.series[1]])))
    (difference,) = compared([figures[0]], [figures[1]]).disagreements
    assert (difference.where, difference.expected, difference.found) == (
        "demo-01:panels[0].series[0].y[2]",
        0.25,
        0.5,
    )
    (first, *_) = compared([figure(LINE)], [figure(LINE, BAR)]).disagreements
    assert (first.where, first.expected, first.found) == ("demo-01:panels.length", 1, 2)
    (difference,) = compared([Series("a", [0.5, 0.25])], [Series("a", [0.5, 0.125])]).disagreements
    assert (difference.where, difference.expected, difference.found) == ("a[1]", 0.25, 0.125)
    (difference,) = compared([Metric("a", 4, step=7)], [Metric("a", 5, step=7)]).disagreements
    assert (difference.where, difference.expected, difference.found) == ("a@7", 4, 5)


def test_a_difference_is_measured_in_floors_and_in_units_in_the_last_place():
    floors = {"a": {"value": [2.0**-40]}}
    result = compared([Metric("a", 1.0)], [Metric("a", 1.0 + 2.0**-38)], floors)
    (difference,) = result.entries[0].differences
    assert (difference.floors, difference.ulps, result.largest) == (4.0, 2.0**14, 4.0)
    (difference,) = compared([Metric("a", 1.0)], [Metric("a", 1.0 + 2.0**-38)]).entries[0].differences
    assert (difference.floors, difference.ulps) == (None, 2.0**14)


def test_missing_and_added():
    without = [entry for entry in ENTRIES if entry.name != "train/curve"]
    result = compared(ENTRIES, without)
    assert verdicts(result) == {"train/curve": "missing"} and not result.agrees
    (difference,) = result.disagreements
    assert (difference.expected, difference.found) == ("series", "nothing")
    result = compared(without, ENTRIES)
    assert verdicts(result) == {"train/curve": "extra"} and not result.agrees
    assert result.entries[-1].key == "train/curve"


def test_a_missing_claim_does_not_hold():
    result = compared(ENTRIES, [entry for entry in ENTRIES if entry.name != "learns"])
    assert (result.claims, result.holding) == (2, 1)


def test_renamed():
    renamed = [changed(entry, name="train/curve_2") if entry.name == "train/curve" else entry for entry in ENTRIES]
    assert verdicts(compared(ENTRIES, renamed)) == {"train/curve": "missing", "train/curve_2": "extra"}


def test_logged_at_another_step():
    assert verdicts(compared([Metric("a", 0.5, step=1)], [Metric("a", 0.5, step=2)])) == {
        "a@1": "missing",
        "a@2": "extra",
    }


MOVES = [(i, j) for i in range(len(ENTRIES)) for j in range(len(ENTRIES)) if i != j]


@pytest.mark.parametrize(("start", "end"), MOVES)
def test_one_entry_that_moved_flags_no_other(start, end):
    found = list(ENTRIES)
    moved = found.pop(start)
    found.insert(end, moved)
    flagged = verdicts(compared(ENTRIES, found))
    assert set(flagged.values()) == {"reordered"} and len(flagged) == 1
    if abs(start - end) > 1:
        assert set(flagged) == {records.key(moved)}


@given(st.permutations(range(8)))
def test_whatever_is_not_flagged_is_in_order(order):
    result = compared([Metric(f"a{n}", n) for n in range(8)], [Metric(f"a{n}", n) for n in order])
    flagged = verdicts(result)
    staying = [n for n in order if f"a{n}" not in flagged]
    assert staying == sorted(staying)
    assert (not flagged) == (order == sorted(order)) == result.agrees


@given(st.permutations(range(9)))
def test_no_more_is_flagged_than_must_move(order):
    flagged = out_of_place([f"a{n}" for n in range(9)], [f"a{n}" for n in order])
    rises = (kept for kept in itertools.product([False, True], repeat=9) if _rises(itertools.compress(order, kept)))
    assert len(flagged) == 9 - max(map(sum, rises))
    assert all(places == (int(name[1:]), order.index(int(name[1:]))) for name, places in flagged.items())


def _rises(numbers) -> bool:
    return all(a < b for a, b in itertools.pairwise(numbers))


def test_a_missing_entry_moves_nothing():
    assert verdicts(compared(ENTRIES, ENTRIES[2:])) == {"train/loss": "missing", "pairs": "missing"}


def test_swapped_claims():
    claims = [Claim("a", True, 0.5, "rows"), Claim("b", True, 0.5, "columns")]
    swapped = [Claim("a", True, 0.5, "columns"), Claim("b", True, 0.5, "rows")]
    result = compared(claims, swapped)
    assert verdicts(result) == {"a": "drift", "b": "drift"}
    assert [each.where for each in result.disagreements] == ["a:compared", "b:compared"]


def test_the_worst_verdict_stands_for_all():
    found = [changed(entry, holds=False) if entry.name == "learns" else entry for entry in ENTRIES[1:]]
    found[0] = changed(VALUES["pairs"], value=5)
    result = compared(ENTRIES, found)
    assert verdicts(result) == {"train/loss": "missing", "pairs": "drift", "learns": "claim broken"}
    assert result.verdict is Verdict.CLAIM_BROKEN and result.holding == 1


def test_a_series_borrows_the_floors_of_its_neighbours():
    values: list[Number] = [1.0] * 12
    floor = 2.0**-30
    floors = {"a": {"values": [0.0, 0.0, 0.0, 0.0, floor] + [0.0] * 7}}
    for index in range(12):
        found: list[Number] = [*values]
        found[index] = 1.0 + FLOORS * floor
        expected = Verdict.WITHIN_NOISE if abs(index - 4) <= 2 else Verdict.DRIFT
        assert verdict(Series("a", values), Series("a", found), floors) is expected, index


def test_a_long_series_borrows_from_further_away():
    values: list[Number] = [1.0] * 100
    floor = 2.0**-30
    floors = {"a": {"values": [0.0] * 50 + [floor] + [0.0] * 49}}
    for index, said in ((45, Verdict.WITHIN_NOISE), (44, Verdict.DRIFT)):
        found: list[Number] = [*values]
        found[index] = 1.0 + FLOORS * floor
        assert verdict(Series("a", values), Series("a", found), floors) is said


def test_a_number_near_zero_has_the_scale_of_its_neighbours():
    assert verdict(Series("a", [1.0, 0.0]), Series("a", [1.0, ULPS * 2.0**-52])) is Verdict.WITHIN_NOISE
    assert verdict(Series("a", [1.0, 0.0]), Series("a", [1.0, (ULPS + 1) * 2.0**-52])) is Verdict.DRIFT


def test_floors_are_not_borrowed_from_another_list():
    first, second = LINE.series
    floors = {"demo-01": {"data.panels[0].series[0].y": [1.0, 1.0, 1.0]}}
    for series, said in (
        ([changed(first, y=[1.5, 0.5, 0.75]), second], Verdict.WITHIN_NOISE),
        ([first, changed(second, y=[1.5, 0.75, 0.75])], Verdict.DRIFT),
    ):
        assert verdict(figure(LINE), figure(changed(LINE, series=series)), floors) is said


def test_floors_and_scale_are_not_borrowed_from_another_entry_or_row():
    floors = {"a": {"value": [1.0]}}
    result = compared([Metric("a", 1.0), Metric("b", 1.0)], [Metric("a", 1.5), Metric("b", 1.5)], floors)
    assert verdicts(result) == {"a": "within noise", "b": "drift"}
    rows = [[1e9, 1e9], [1e-9, 1e-9]], [[1e9, 1e9], [1e-9, 2e-9]]
    assert verdict(*(figure(changed(HEATMAP, values=values)) for values in rows), precision="float32") is Verdict.DRIFT


def test_floors_of_another_count_are_not_used():
    floors = {"a": {"values": [1.0]}}
    assert verdict(Series("a", [1.0, 1.0]), Series("a", [1.0, 1.5]), floors) is Verdict.DRIFT


def test_time_grows_with_the_length_of_a_series_and_no_faster():
    count = 100_000
    long = Series("a", [1.0 + step / count for step in range(count)])
    moved = Series("a", [value + 2.0**-40 for value in long.values])  # pyright: ignore[reportOperatorIssue]
    expected, found, floors = record(long), record(moved), {"a": {"values": [2.0**-41] * count}}
    began = time.process_time()
    (entry,) = compare(expected, found, floors).entries
    # A window of a twentieth of the series for each step would take minutes.
    assert time.process_time() - began < 2
    assert entry.verdict is Verdict.WITHIN_NOISE and len(entry.differences) == count


def test_time_grows_with_the_count_of_entries_and_no_faster():
    entries = [Metric(f"a{n}", n) for n in range(records.MAX_ENTRIES)]
    expected, found = record(*entries), record(*entries[::-1])
    began = time.process_time()
    result = compare(expected, found)
    assert time.process_time() - began < 2
    assert sum(entry.verdict is Verdict.REORDERED for entry in result.entries) == len(entries) - 1


def status(*results: Comparison) -> int:
    return pairing.status({f"{number}": RunCheck(result) for number, result in enumerate(results)})


@pytest.mark.parametrize(
    "change",
    [
        {"source_sha256": "6" * 64},
        {"parameters": {"RATE": 0.25, "STEPS": 3}},
        {"parameters": {"RATE": 0.5}},
        {"parameters": {"RATE": 0.5, "STEPS": 3, "SEED": 0}},
        {"parameters": {"RATE": 0.5, "STEPS": 3.0}},
        {"parameters": {"RATE": 0.5, "STEPS": "3"}},
    ],
)
def test_stale_records_are_still_compared(change):
    found = [changed(VALUES["pairs"], value=5)]
    result = compare(record(VALUES["pairs"]), record(*found, **change))
    assert result.stale and not result.agrees
    assert verdicts(result) == {"pairs": "drift"}
    alone = compare(record(*ENTRIES), record(*ENTRIES, **change))
    assert alone.verdict is Verdict.IDENTICAL and not alone.agrees
    assert status(alone) == DIFFERS


def test_what_is_stale_is_said():
    assert compare(record(), record(source_sha256="6" * 64)).stale == ("the notebook's code was edited",)
    assert compare(record(), record(parameters={"RATE": 0.25, "STEPS": 3})).stale == (
        "parameter RATE: expected 0.5, found 0.25",
    )


@pytest.mark.parametrize("change", [{"precision": "float32"}, {"notebook": "demo-02"}])
def test_what_cannot_be_compared_is_not(change):
    result = compare(record(*ENTRIES), record(*ENTRIES, **change))
    (field,) = change
    assert len(result.not_comparable) == 1 and result.not_comparable[0].startswith(f"{field}: expected ")
    assert not result.agrees and result.entries == ()
    assert status(result) == CANNOT_COMPARE


def test_the_status_of_several():
    same, other = compared(ENTRIES, ENTRIES), compared(ENTRIES, ENTRIES[1:])
    not_comparable = compare(record(), record(notebook="demo-02"))
    assert status(same, same) == AGREES
    assert status(same, other) == DIFFERS
    assert status(other, not_comparable) == CANNOT_COMPARE


def test_records_are_not_touched():
    expected, found = record(*ENTRIES), record(*ENTRIES[::-1])
    before = copy.deepcopy((expected, found))
    compare(expected, found, {"train/loss": {"value": [1.0]}})
    assert (expected, found) == before


# What long training under NT-Xent ends at: rounding decides it for some seeds, even in float64, and its floors say so.
DECIDED_BY_ROUNDING = (
    "nt_xent/mean_last_loss",
    "nt_xent/mean_spread_after",
    "nt_xent/mean_growth",
    "contrastive-04-curves",
    "contrastive-04",
)


def all_drift(expected: records.Record, floors) -> tuple[int, int]:
    """How many floats drift when each is multiplied by a hair, and how many there are."""
    expected = records.Record(
        expected.header, tuple(e for e in expected.entries if records.key(e) not in DECIDED_BY_ROUNDING), ""
    )
    floats = []

    def scaled(value: float) -> float:
        floats.append(value)
        return value * (1 + 1e-6)

    entries = floats_changed(expected.entries, scaled)
    result = compare(expected, records.parse(records.encode(expected.header, entries), "scaled"), floors)
    assert not result.agrees
    return sum(each.verdict is Verdict.DRIFT for each in result.disagreements), len([x for x in floats if x])


def test_a_changed_formula_is_never_noise():
    # Floors as large as float64 ever showed: a relative 1e-9.
    floors = {"train/loss": {"value": [1e-9 * 0.566]}, "train/curve": {"values": [1e-9] * 8}}
    assert all_drift(record(*ENTRIES), floors)[0] >= 25
    drifting, floats = all_drift(record(*ENTRIES), None)
    assert drifting == floats == 25


RECORDED = REPOSITORY / "recorded_runs"


@pytest.mark.parametrize(
    "path",
    sorted((RECORDED / (RECORDED / "REFERENCE").read_text().strip()).glob("*.float64.jsonl")),
    ids=lambda path: path.name,
)
def test_a_changed_formula_is_never_noise_in_a_committed_record(path):
    from reproduce import noise

    expected = records.read(path)
    measured = noise.read(path.parent / f"{expected.header.stem}.noise.json").precisions["float64"]
    assert measured.record_sha256 == expected.sha256
    drifting, floats = all_drift(expected, measured.floors)
    # What is left are differences of nearly equal numbers, whose own rounding is larger than a millionth.
    assert drifting > 0.9 * floats and floats > 50


def test_verdicts_are_words():
    assert msgspec.json.encode([Verdict.WITHIN_NOISE, Verdict.NOT_A_NUMBER]) == b'["within noise","not a number"]'
