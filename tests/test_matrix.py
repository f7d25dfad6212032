"""`matrix`: each release in an environment of its own, what fails alone, what is reused, and what is published.

Stand-ins for uv and for interpreters spare the network and the real releases; the runs themselves are real.
"""

import json
import signal
from collections.abc import Iterator

import pytest
from builders import ENTRIES, header
from small_checkout import (
    AGREES,
    CANNOT_COMPARE,
    DIFFERS,
    HOLD,
    RUN_FAILED,
    small_checkout,
    wait_until,
)
from small_matrix import ALONE, FLOOR, SmallMatrix

from reproduce import grid, records, releases, verdicts
from reproduce.causes import Cause, Explanation, Kind
from reproduce.columns import Column
from reproduce.compare import Comparison, Difference, EntryResult, Verdict, compare
from reproduce.errors import HarnessError
from reproduce.execute import Outcome
from reproduce.isolated import Isolated
from reproduce.results import RunCheck

FAILS_ONCE = 'if release == (0, 7, 2) and PRECISION == "float64":\n    raise ArithmeticError("no such thing")'


@pytest.fixture
def matrix(tmp_path) -> Iterator[SmallMatrix]:
    with small_checkout(tmp_path / "checkout") as small:
        yield SmallMatrix(small, tmp_path / "my tools")


def rows(out: str) -> dict[str, str]:
    """The table's lines by release and precision."""
    found, release = {}, ""
    for line in out.split("JAX      precision")[-1].splitlines()[1:]:
        words = line.split()
        if "float32" in words[:2]:
            release = words[0]
        if words and {"float32", "float64"} & set(words[:2]):
            precision = next(word for word in words if word.startswith("float"))
            found[f"{release} {precision}"] = line.split(precision)[1].strip()
    return found


def test_one_failing_cell_fails_alone_and_nothing_is_done_twice(matrix) -> None:
    matrix.notebook("01_good")
    matrix.notebook("02_fails", FAILS_ONCE)
    before = matrix.recorded("0")
    asked = ("matrix", "--jax", "0.12.0.1 0.7.2,0.6.2")
    first = matrix.command(*asked, publishes=True)
    assert first.status == RUN_FAILED
    table = rows(first.out)
    assert table["0.6.2 float32"].split() == ["identical", "identical"]
    assert table["0.7.2 float64"].split("  ")[0].startswith("drift at")
    assert "failed: a" in first.out and "no interpreter (needs Python 3.12 or 3.13)" in first.out
    assert "ArithmeticError: no such thing" in first.out
    assert first.out.strip().endswith("1 of 3 releases agree with the reference jax-0_cpu. Finished runs are kept.")
    # What could be run is recorded, floors stay with the reference, and the reference stays as it was.
    both = {f"{stem}.{kind}" for stem in ("01_good", "02_fails") for kind in ("float32.jsonl", "float64.jsonl", "log")}
    assert set(matrix.recorded("0.6.2")) == both | {"ENVIRONMENT.json"}
    assert not [name for name in matrix.recorded("0.7.2") if name.startswith("02")]
    assert set(matrix.recorded("0.7.2")) > {"01_good.float32.jsonl", "01_good.float64.jsonl"}
    assert matrix.recorded("0") == before and matrix.recorded("0.12.0.1") == {}
    environments = json.loads(matrix.recorded("0.7.2")["ENVIRONMENT.json"])
    assert environments["float64"]["versions"]["jax"] == "0.7.2"
    moved = records.read(matrix.small.paths.recorded_runs / "jax-0.7.2_cpu" / "01_good.float64.jsonl")
    assert moved.entries[-1] == records.Metric("moving", 1.0 + 16 * FLOOR)
    assert len(matrix.uv_calls()) == 6

    again = matrix.command(*asked)
    assert again.status == RUN_FAILED and matrix.uv_calls() == []
    assert again.out.count("; not run again") == 7
    assert "> 02_fails float64: running (the last run did not end well)" in again.out
    assert again.out.count("recorded_runs for JAX 0.6.2: unchanged.") == 1


def test_a_record_that_would_change_is_left_alone_unless_it_may_be_replaced(matrix) -> None:
    matrix.notebook("01_good")
    asked = ("matrix", "--jax", "0.7.2")
    said = json.loads(matrix.command(*asked, "--json", publishes=True).out)
    assert said["status"] == DIFFERS and said["reference"] == "jax-0_cpu"
    (column,) = said["releases"]
    assert column["published"] == "written" and column["departures"] == {
        "jax": "0.7.2",
        "jaxlib": "0.7.2",
        "optax": "0.1.7",
    }
    run = column["notebooks"]["01_good"]["float64"]
    (difference,) = run["differences"]
    assert (difference["where"], difference["floors"]) == ("moving", 16.0)
    written = matrix.recorded("0.7.2")

    path = matrix.small.paths.recorded_runs / "jax-0.7.2_cpu" / "01_good.float64.jsonl"
    kept = records.read(path)
    other = records.encode(kept.header, [*kept.entries[:-1], records.Metric("moving", 3.0)])
    path.write_bytes(other)
    left = matrix.command(*asked)
    assert left.status == DIFFERS and "left as it is, because 01_good.float64.jsonl would change; REPLACE=1" in left.out
    assert path.read_bytes() == other

    replaced = matrix.command(*asked, "--replace", publishes=True)
    assert "recorded_runs for JAX 0.7.2: written." in replaced.out
    assert matrix.recorded("0.7.2") == written


def test_the_reference_is_compared_and_never_written(matrix) -> None:
    matrix.notebook("01_good")
    reference = matrix.small.paths.recorded_runs
    (reference / "jax-0_cpu").rename(reference / "jax-0.6.2_cpu")
    (reference / "REFERENCE").write_text("jax-0.6.2_cpu\n")
    for path in (reference / "jax-0.6.2_cpu").glob("01_good*.jsonl"):
        path.write_bytes(path.read_bytes())
    done = matrix.command("matrix", "--jax", "0.6.2", "--replace")
    assert done.status == AGREES, done.out + done.err
    assert "it is the reference" in done.out
    assert "Agrees: all 10 numbers under JAX 0.6.2 agree with the reference jax-0.6.2_cpu." in done.out


def test_an_interruption_publishes_nothing_and_the_next_matrix_goes_on(matrix) -> None:
    matrix.notebook("01_good")
    matrix.notebook("02_waits", f"if release == (0, 6, 2):\n    {HOLD.strip().replace(chr(10), chr(10) + '    ')}")
    before = matrix.small.committed()
    asked = ("matrix", "--jax", "0.5.3 0.6.2")
    process = matrix.small.start(*asked, environment=matrix.variables(), before=ALONE)
    held = matrix.root / "build" / "matrix" / "0.6.2" / "runs"
    wait_until(lambda: len(list(held.glob("02_*/holding"))) == 2, "both runs of the second notebook wait")
    process.send_signal(signal.SIGINT)
    stopped = matrix.small.finish(process)
    assert stopped.status == RUN_FAILED and "interrupted" in stopped.err
    assert matrix.small.committed() == before
    matrix.uv_calls()

    for folder in held.glob("02_*"):
        (folder / "go").touch()
    done = matrix.command(*asked, publishes=True)
    assert (done.status, matrix.uv_calls()) == (AGREES, [])
    assert done.out.count("; not run again") == 6 and done.out.count("(the last run did not end well)") == 2
    assert {len(matrix.recorded(release)) for release in ("0.5.3", "0.6.2")} == {7}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_environment_cut_short_is_made_again(matrix, how: signal.Signals) -> None:
    matrix.notebook("01_good")
    asked = ("matrix", "--jax", "0.6.2")
    holding = matrix.tools / "holding"
    process = matrix.small.start(*asked, environment=matrix.variables(HOLDS=str(holding)), before=ALONE)
    wait_until(holding.exists, "uv holds in the middle of its work")
    process.send_signal(how)
    stopped = matrix.small.finish(process)
    assert stopped.status == RUN_FAILED and "interrupted" in stopped.err
    assert (matrix.root / ".matrix" / "0.6.2").exists() and Isolated(matrix.root, "0.6.2").stamp() is None
    matrix.uv_calls()
    matrix.command(*asked, "--nb", "01", "--no-publish")
    assert len(matrix.uv_calls()) == 3 and Isolated(matrix.root, "0.6.2").stamp() is not None


def test_settings_are_compared_but_never_recorded(matrix) -> None:
    matrix.notebook("01_good")
    setting = {"JAX_THREEFRY_PARTITIONABLE": "0"}
    asked = ("matrix", "--jax", "0.6.2")
    refused = matrix.command(*asked, **setting)
    assert refused.status == CANNOT_COMPARE and matrix.uv_calls() == []
    assert "JAX_THREEFRY_PARTITIONABLE=0 is set" in refused.err
    assert "To compare only, and write no record: make matrix ARGS=--no-publish" in refused.err

    compared = matrix.command(*asked, "--no-publish", **setting)
    assert compared.status == AGREES and matrix.recorded("0.6.2") == {}
    (apart,) = (matrix.root / "build" / "matrix").glob("0.6.2*")
    assert apart.name.startswith("0.6.2+settings-")
    assert f"build/matrix/{apart.name}/runs" in compared.out
    # The runs without the setting are others, and neither stands for the other.
    plain = matrix.command(*asked, publishes=True)
    assert plain.out.count("(never run)") == 2 and "recorded_runs for JAX 0.6.2: written." in plain.out


def test_a_release_that_cannot_be_installed_is_a_column_with_a_reason(matrix) -> None:
    matrix.notebook("01_good")
    done = matrix.command("matrix", "--jax", "0.6.1 0.6.2", REFUSED="0.6.1", publishes=True)
    assert done.status == CANNOT_COMPARE
    assert (
        "JAX 0.6.1: no environment: uv finds no versions that fit together: Because there is no jax==0.6.1." in done.out
    )
    assert rows(done.out)["0.6.2 float64"] == "identical"
    assert "Cannot compare JAX 0.6.1 with the reference jax-0_cpu; 1 of 2 releases agree." in done.out


def test_without_uv_the_next_step_is_said_before_anything_runs(matrix) -> None:
    matrix.notebook("01_good")
    done = matrix.command("matrix", "--jax", "0.6.2", "--uv", "no-such-uv")
    assert done.status == CANNOT_COMPARE and "no-such-uv is not there" in done.err and "UV=/path/to/uv" in done.err
    assert "running" not in done.out


def test_a_harness_that_cannot_start_in_an_environment_is_a_reason_not_an_old_verdict(matrix) -> None:
    matrix.notebook("01_good")
    assert matrix.command("matrix", "--jax", "0.6.2", publishes=True).status == AGREES
    (site,) = (matrix.root / ".matrix" / "0.6.2").glob("lib/python*/site-packages")
    (site / "typer.py").write_text("raise ImportError('no typer for this release')")
    done = matrix.command("matrix", "--jax", "0.6.2")
    assert done.status == CANNOT_COMPARE
    assert "nothing could be run: ImportError: no typer for this release" in done.out


@pytest.mark.parametrize(
    ("jax", "says"),
    [("0.8", "'0.8' is no JAX release"), ("newest", "'newest' is no JAX"), ("0.4.29", "JAX 0.4.29 is too old")],
)
def test_a_wrong_release_is_named(jax: str, says: str) -> None:
    with pytest.raises(HarnessError, match=says):
        releases.chosen(f"0.9.2 {jax}")


def test_releases_are_chosen_once_and_in_order_of_age() -> None:
    assert releases.chosen("0.10.2, 0.9.0.1 0.9.2 0.9.2") == ["0.9.0.1", "0.9.2", "0.10.2"]
    assert releases.chosen("") == list(releases.MATRIX)
    assert sorted(releases.MATRIX, key=releases.order) == list(releases.MATRIX)


def test_every_release_has_a_python() -> None:
    wanted = {release: releases.pythons(release) for release in (*releases.MATRIX, "0.11.0", "0.10.0")}
    assert wanted.pop("0.12.0.1") == wanted.pop("0.11.0") == ("3.12", "3.13")
    assert set(wanted.values()) == {("3.11",)}


def record(*entries: records.Entry) -> records.Record:
    return records.Record(header(), entries, "")


AGREEING = RunCheck(compare(record(*ENTRIES), record(*ENTRIES)))
DRIFTING = RunCheck(compare(record(*ENTRIES), record(records.Metric("train/loss", 1.0, unit="nats"), *ENTRIES[1:])))
FAILED = RunCheck(incomplete=Outcome("the kernel died", "out of memory"))
NOT_COMPARED = RunCheck(cannot="no reference")


def column(release: str, *runs: RunCheck) -> Column:
    return Column(release, cells={"01_demo": dict(zip(records.PRECISIONS, runs, strict=True))})


@pytest.mark.parametrize(
    ("columns", "status", "sentence"),
    [
        (
            [column("0.6.2", AGREEING, AGREEING)],
            AGREES,
            "Agrees: all 64 numbers under JAX 0.6.2 agree with the reference r.",
        ),
        (
            [column("0.6.2", AGREEING, AGREEING), column("0.7.2", AGREEING, DRIFTING)],
            DIFFERS,
            "Differs from the reference r under JAX 0.7.2; 1 of 2 releases agree.",
        ),
        (
            [column("0.6.2", DRIFTING, AGREEING), column("0.7.2", AGREEING, NOT_COMPARED)],
            CANNOT_COMPARE,
            "Cannot compare JAX 0.7.2 with the reference r; 0 of 2 releases agree.",
        ),
        (
            [
                column("0.6.2", AGREEING, AGREEING),
                Column("0.12.0", "no interpreter"),
                column("0.7.2", FAILED, DRIFTING),
            ],
            RUN_FAILED,
            "A run failed under JAX 0.7.2; 1 of 3 releases agree with the reference r. Finished runs are kept.",
        ),
    ],
)
def test_the_worst_cell_decides(columns: list[Column], status: int, sentence: str) -> None:
    assert grid.total(columns) == status
    assert grid.closing_sentence(columns, "r") == sentence


def test_a_column_without_cells_never_agrees() -> None:
    assert Column("0.6.2").status == CANNOT_COMPARE


def differing(verdict: Verdict, *sizes: tuple[float | None, float], name: str = "train/curve", **more) -> Comparison:
    """A comparison with one entry, whose numbers are off by so many floors and units in the last place."""
    numbers = enumerate(sizes or [(99.0, 1e6)])
    off = tuple(Difference(f"{name}[{i}]", verdict, 1.0, 2.0, floors, ulps) for i, (floors, ulps) in numbers)
    return Comparison(entries=(EntryResult(name, verdict, off),), numbers=9, **more)


OTHER_STREAM = Explanation((Cause(Kind.STREAM, "another"),), frozenset(["free"]))


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (RunCheck(differing(Verdict.WITHIN_NOISE, (2.84, 900.0), (0.5, 3.9))), "within noise, 2.8 floors"),
        # Not the larger count of floors, but what comes nearest to the limit of ten floors and four units.
        (RunCheck(differing(Verdict.WITHIN_NOISE, (30.0, 1.0), (7.0, 100.0))), "within noise, 7.0 floors"),
        # Where the floor is next to nothing, the units are what allows it.
        (RunCheck(differing(Verdict.WITHIN_NOISE, (58.0, 4.75), (0.5, 2.0))), "within noise, 4.8 ulp"),
        (RunCheck(differing(Verdict.WITHIN_NOISE, (None, 3.0))), "within noise, 3.0 ulp"),
        (RunCheck(differing(Verdict.DRIFT)), "drift at train/curve[0]"),
        (RunCheck(differing(Verdict.DRIFT, stale=("edited",))), "stale, drift at train/curve[0]"),
        (RunCheck(differing(Verdict.DRIFT), OTHER_STREAM), "random stream changed"),
        (RunCheck(differing(Verdict.DRIFT, name="free"), OTHER_STREAM), "drift at free[0]"),
        (RunCheck(differing(Verdict.CLAIM_BROKEN), OTHER_STREAM), "claim broken at train/curve[0]"),
        (RunCheck(Comparison(not_comparable=("precision",))), "cannot compare"),
        (AGREEING, "identical"),
        (FAILED, "failed: the kernel died"),
        (NOT_COMPARED, "cannot compare"),
    ],
)
def test_a_cell_says_the_worst_of_it(run: RunCheck, words: str) -> None:
    assert verdicts.words(run) == words
