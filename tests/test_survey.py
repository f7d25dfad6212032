"""What is gathered for a report: every folder, every reason, how far each series is, and where its marks stand."""

import math
import re

import pytest
from builders import FOLDER, STEM, an_environment, both_environments, changed, header, record
from recorded_releases import CURVE, FLOOR, moved, put_release, with_reference

from reproduce import causes, freshness, plots, records, releases, surroundings, survey
from reproduce.checkout import RunFolder
from reproduce.compare import Verdict, compare
from reproduce.deviations import Course, Deviation, courses, of_series
from reproduce.errors import HarnessError
from reproduce.execute import Outcome
from reproduce.records import Metric, Series

PLACE = (STEM, "float64")


@pytest.fixture
def demo(tmp_path):
    return with_reference(tmp_path / "checkout")


def of(demo, title: str) -> survey.Release:
    [found] = [each for each in survey.gather(demo.checkout).releases if each.title == title]
    return found


# Folders


def test_every_release_stands_in_the_order_of_age_whether_recorded_or_not(demo):
    for version in ("0.10.2", "0.9.2", "0.4.30"):
        put_release(demo, version)
    found = survey.gather(demo.checkout)
    assert found.reference == FOLDER and found.stems == [STEM]
    assert [each.title for each in found.releases] == [f"JAX {version}" for version in releases.MATRIX]
    assert [each.title for each in found.releases if each.recorded] == ["JAX 0.4.30", "JAX 0.9.2", "JAX 0.10.2"]
    absent = found.releases[-1]
    assert {cell.reason for cell in absent.cells.values()} == {"not recorded"}
    assert absent.problem == "make matrix JAX=0.12.0.1 records it; it needs Python 3.12 or 3.13"


def test_a_folder_of_another_name_keeps_it(demo):
    put_release(demo, "0.9.2", folder="from a friend")
    assert of(demo, "JAX 0.9.2 (from a friend)").recorded


def test_what_agrees_and_what_does_not(demo):
    put_release(demo, "0.7.2", moved(lambda step, value: value + 5 * FLOOR * (step == 3)))
    put_release(demo, "0.8.3", moved(lambda step, value: value + 25 * FLOOR * (step == 3)))
    near, far = (of(demo, f"JAX {version}").cells[PLACE] for version in ("0.7.2", "0.8.3"))
    assert near.agrees and near.run.comparison.verdict is Verdict.WITHIN_NOISE
    assert not far.agrees and far.run.comparison.verdict is Verdict.DRIFT


def test_a_notebook_that_is_not_there(demo):
    put_release(demo, "0.8.3")
    (demo.checkout.recorded_runs / "jax-0.8.3_cpu" / f"{STEM}.float64.jsonl").unlink()
    cells = of(demo, "JAX 0.8.3").cells
    assert cells[PLACE] == survey.Cell("not recorded") and cells[STEM, "float32"].agrees


@pytest.mark.parametrize("recorded", [True, False])
def test_a_run_that_failed_in_the_matrix_says_why(demo, recorded):
    if recorded:
        put_release(demo, "0.8.3")
        (demo.checkout.recorded_runs / "jax-0.8.3_cpu" / f"{STEM}.float64.jsonl").unlink()
    folder = RunFolder(demo.checkout.root / "build" / "matrix" / "0.8.3" / "runs" / f"{STEM}.float64")
    freshness.write_status(folder, freshness.Status(Outcome("a cell raised", "no such function"), {}))
    assert of(demo, "JAX 0.8.3").cells[PLACE] == survey.Cell("failed: a cell raised", "no such function")


def test_a_damaged_record_is_named_with_its_line_and_the_rest_goes_on(demo):
    put_release(demo, "0.8.3")
    path = demo.checkout.recorded_runs / "jax-0.8.3_cpu" / f"{STEM}.float64.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    cells = of(demo, "JAX 0.8.3").cells
    assert cells[PLACE].reason == "cannot be read" and cells[STEM, "float32"].agrees
    # No more of the path than lies in the checkout.
    assert cells[PLACE].detail.startswith(f"recorded_runs/jax-0.8.3_cpu/{STEM}.float64.jsonl:{len(lines) - 1}: ")


def test_a_damaged_environment_is_named(demo):
    put_release(demo, "0.8.3")
    put_release(demo, "0.9.2")
    (demo.checkout.recorded_runs / "jax-0.8.3_cpu" / "ENVIRONMENT.json").write_text('{"float32": 3}')
    found = of(demo, "jax-0.8.3_cpu")
    assert {cell.reason for cell in found.cells.values()} == {"cannot be read"}
    assert found.problem.startswith("recorded_runs/jax-0.8.3_cpu/ENVIRONMENT.json: not a readable environment")
    assert of(demo, "JAX 0.9.2").recorded


def test_a_damaged_reference_ends_it(demo):
    path = demo.recorded.record("float64")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(HarnessError, match=re.escape(f"{path}:")):
        survey.gather(demo.checkout)


def test_an_empty_reference_and_too_many_folders(demo, monkeypatch):
    put_release(demo, "0.9.2")
    put_release(demo, "0.8.3")
    monkeypatch.setattr(survey, "MOST_FOLDERS", 1)
    with pytest.raises(HarnessError, match="2 folders; at most 1"):
        survey.gather(demo.checkout)
    for path in demo.recorded.folder.glob("*.jsonl"):
        path.unlink()
    with pytest.raises(HarnessError, match=r"holds no record.*make record"):
        survey.gather(demo.checkout)


def test_records_that_the_reference_lacks_are_named(demo):
    put_release(demo, "0.8.3")
    head = header(stem="09_other", precision="float64")
    path = demo.checkout.recorded_runs / "jax-0.8.3_cpu" / "09_other.float64.jsonl"
    records.write_atomically(path, records.encode(head, [Metric("a", 1.0)]))
    assert of(demo, "JAX 0.8.3").problem == ("passed over, because the reference has no such record: 09_other.float64")


# Series against step. The reference's curve has a floor of FLOOR at every step: ten floors, and four units in the last
# place of its neighbourhood, are allowed.

LONG = Series("long", [1.0] * 100)


def deviation(change, expected: Series = LONG, precision: str = "float32") -> Deviation:
    found = Series(expected.name, [change(step, value) for step, value in enumerate(expected.values)])
    return of_series(expected, found, [FLOOR] * len(expected.values), precision)


def test_the_first_step_beyond_the_allowed_noise():
    # In float32 a unit in the last place of 1 is 2^-23, so 10 * 2^-20 + 4 * 2^-23 = 84 * 2^-23 is allowed.
    allowed = 84 * 2.0**-23
    found = deviation(lambda step, value: value + (allowed if step == 20 else allowed + 2.0**-23 if step > 29 else 0))
    assert found.allowed == (allowed,) * 100
    assert found.parts_at == 30 and found.words == "parts from the reference at step 30 of 100"
    assert found.moves[20] == allowed and found.share_at(20) == 1 and found.share == 85 / 84


def test_within_noise_and_identical():
    near = deviation(lambda step, value: value - 21 * 2.0**-23 * (step == 7))
    assert near.words == "never parts; at most 25 % of the allowed noise, at step 7" and not near.identical
    same = deviation(lambda step, value: value)
    assert same.identical and same.words == "identical at every step" and same.share == 0


@pytest.mark.parametrize(
    ("expected", "found", "parts_at"),
    [
        ([3, 4, 5], [3, 4, 6], 2),
        ([3, 4, 5], [3, 4, 5], None),
        ([3, 4, 5], [3, 4.0, 5], 1),
        ([1.0, "NaN"], [1.0, "NaN"], 1),
        ([1.0, 2.0], [1.0, "Infinity"], 1),
        ([1.0, 2.0, 3.0], [1.0, 2.0], 2),
        ([1.0, 2.0], [1.0, 2.0, 3.0], 2),
        ([1e308], [-1e308], 0),
        ([0.0] * 3, [0.0, 0.0, 5e-324], None),
    ],
)
def test_what_is_no_small_move(expected, found, parts_at):
    result = of_series(Series("a", expected), Series("a", found), None, "float64")
    assert result.parts_at == parts_at
    course = Course(PLACE, "a", "", ((("x",), result),))
    assert course.parts == (parts_at is not None)
    # Whatever differs can be drawn.
    assert course.identical or plots.plot(course).panels


@pytest.mark.parametrize("precision", records.PRECISIONS)
def test_a_series_parts_exactly_where_the_comparison_says_drift(precision):
    curve = Series("a", [math.exp(-step / 9) for step in range(60)])
    floors = [FLOOR * (1 + step % 7) for step in range(60)]
    parted = set()
    for n in range(40):
        found = Series(
            "a",
            [value + FLOOR * (2.0 + 4 * n) * math.sin(step * (n + 1)) for step, value in enumerate(curve.values)],  # pyright: ignore[reportOperatorIssue]
        )
        result = compare(
            record(curve, precision=precision), record(found, precision=precision), {"a": {"values": floors}}
        )
        drifts = [each.where for each in result.entries[0].differences if each.verdict is Verdict.DRIFT]
        at = of_series(curve, found, floors, precision).parts_at
        assert (drifts[0] if drifts else None) == (None if at is None else f"a[{at}]")
        parted.add(at)
    assert None in parted and len(parted) > 3


def test_releases_that_deviate_alike_stand_together_the_farthest_first(demo):
    put_release(demo, "0.7.2", moved(lambda step, value: value + 2 * FLOOR * (step == 3)))
    put_release(demo, "0.8.3", moved(lambda step, value: value + 2 * FLOOR * (step == 3)))
    put_release(demo, "0.9.2")
    put_release(demo, "0.10.2", moved(lambda step, value: value + FLOOR * 99 * (step > 5)))
    [course] = [each for each in courses(survey.gather(demo.checkout)) if each.place == PLACE]
    assert course.name == CURVE and course.unit == "nats" and course.parts
    assert [titles for titles, _ in course.groups] == [("JAX 0.10.2",), ("JAX 0.7.2", "JAX 0.8.3"), ("JAX 0.9.2",)]
    assert course.words == "parts from the reference at step 6 of 8"


def test_what_another_random_stream_moved_is_not_told_as_a_deviation(demo):
    put_release(demo, "0.4.38", moved(lambda step, value: 2 * value), threefry_partitionable=False)
    found = survey.gather(demo.checkout)
    [release] = [each for each in found.releases if each.title == "JAX 0.4.38"]
    assert release.cells[PLACE].run.explanation.causes[0].kind is causes.Kind.STREAM
    assert not [course for course in courses(found) if course.groups]


# Marks of the plots


def panel(change) -> tuple[plots.Panel, plots.Plot]:
    plot = plots.plot(Course(PLACE, "long", "", ((("JAX 1",), deviation(change)),)))
    return plot.panels[0], plot


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path)]


def test_a_zero_is_a_tick_on_the_strip_and_breaks_the_line():
    drawn, plot = panel(lambda step, value: value + 2.0**-21 * (step not in (0, 50, 52)))
    assert plot.last_step == 99
    step = (plots.RIGHT - plots.LEFT) / 99
    assert [x for x, _ in points(drawn.zeros)] == [pytest.approx(plots.LEFT + n * step, abs=0.06) for n in (0, 50, 52)]
    assert {y for _, y in points(drawn.zeros)} == {plots.STRIP - 3}
    # Two lines, and the step between two zeros as a dot.
    assert drawn.curve.count("M") == 2 and len(points(drawn.curve)) == 96
    [(x, _)] = points(drawn.dots)
    assert x == pytest.approx(plots.LEFT + 51 * step, abs=0.06)
    assert drawn.beyond == "" and drawn.parts_x is None


def test_sizes_stand_on_a_logarithmic_axis():
    # Of 1e-3 and 1e-7 the axis runs from -7 to -3; the allowed noise, about 1e-5, lies in between.
    drawn, plot = panel(lambda step, value: value + (1e-3 if step == 99 else 1.0001e-7))
    height = plots.BOTTOM - plots.TOP
    assert plot.ticks == ((plots.TOP, "1e-3"), (plots.TOP + height / 2, "1e-5"), (plots.BOTTOM, "1e-7"))
    assert points(drawn.curve)[-1] == (plots.RIGHT, pytest.approx(plots.TOP, abs=0.1))
    assert points(drawn.curve)[0] == (plots.LEFT, pytest.approx(plots.BOTTOM, abs=0.1))
    edge = plots.BOTTOM - height * (math.log10(84 * 2.0**-23) + 7) / 4
    assert [y for _, y in points(drawn.limit)] == [pytest.approx(edge, abs=0.06)] * 100
    assert drawn.beyond.count("M") == 1 and drawn.parts_x == plots.RIGHT


def test_a_long_series_keeps_its_farthest_steps():
    expected = Series("long", [1.0] * 5000)
    found = deviation(lambda step, value: value + (1e-3 if step in (777, 4321) else 1e-7), expected)
    [drawn] = plots.plot(Course(PLACE, "long", "", ((("JAX 1",), found),))).panels
    assert len(points(drawn.curve)) <= plots.MOST_STEPS + 1
    assert drawn.beyond.count("M") == 2
    assert drawn.parts_x == pytest.approx(plots.LEFT + (plots.RIGHT - plots.LEFT) * 777 / 4999, abs=0.06)


def test_not_a_number_is_a_cross_at_the_upper_edge():
    expected = Series("a", [1.0] * 6)
    found = of_series(expected, Series("a", [1.0, 1.0, "NaN", 1.0, 1.0, 1.0]), None, "float64")
    [drawn] = plots.plot(Course(PLACE, "a", "", ((("JAX 1",), found),))).panels
    assert points(drawn.beyond)[0] == (pytest.approx(drawn.parts_x - 3, abs=0.06), plots.TOP - 3)
    assert drawn.beyond.count("M") == 1


def test_more_panels_than_fit_are_counted():
    groups = tuple(((f"JAX {n}",), deviation(lambda step, value, n=n: value + n * 1e-7)) for n in range(1, 12))
    plot = plots.plot(Course(PLACE, "long", "", groups))
    assert len(plot.panels) == plots.MOST_PANELS and plot.left_out == 11 - plots.MOST_PANELS


# Surroundings


def test_only_what_is_not_the_same_is_told():
    ours = both_environments()
    assert surroundings.differences(ours, both_environments(date="2031-01-01")) == []
    theirs = both_environments(
        versions={**ours["float32"].versions, "jax": "0.9.9"},
        flags={"XLA_FLAGS": "--a"},
        cpu_features=["avx2", "sve"],
        threads=8,
    )
    theirs["float64"] = changed(theirs["float64"], probes={"random/bits": "0123456789ab", "exp": "000000000000"})
    assert surroundings.differences(ours, theirs) == [
        ("jax", "0.0.0", "0.9.9"),
        ("XLA_FLAGS", "none", "--a"),
        ("threads", "2", "8"),
        ("CPU features of one alone", "fma", "sve"),
        ("probes (float64)", "2 fingerprints", "1 the same; other: exp"),
    ]


def test_a_precision_that_differs_alone_is_named():
    ours = both_environments()
    theirs = {**both_environments(), "float32": an_environment(x64=False, threads=8)}
    assert surroundings.differences(ours, theirs) == [("threads (float32)", "2", "8")]
