"""A change of the random stream is named, what it leaves is compared, and a run under the other setting proves it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_checkout import AGREES, CANNOT_COMPARE, CLOSE, DIFFERS, OPEN, SmallCheckout, small_checkout

from reproduce import environment, noise, records

STEM = "01_draws"
DRAWS = """
import jax

if PRECISION == "float64":
    jax.config.update("jax_enable_x64", True)
draw = jax.random.uniform(jax.random.split(jax.random.key(7), 3)[1], (5,), dtype="float32")
log.series("drawn", draw)
log.claim("drawn_below_one", margin=1 - draw.max(), compared="1 - largest draw")
# Holds under the newer stream alone, as a claim may that is true of most seeds.
log.claim("first_draw", margin=draw[0] - 0.5, compared="first draw - 1/2")
"""
OLD = {"JAX_THREEFRY_PARTITIONABLE": "0"}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Iterator[tuple[SmallCheckout, Path]]:
    """A reference of a notebook that draws numbers, and folders of runs with the same and with JAX's older stream."""
    folder = tmp_path_factory.mktemp("streams")
    with small_checkout(folder / "checkout") as checkout:
        checkout.notebook(STEM, OPEN, DRAWS, CLOSE)
        assert checkout.command("notebooks", publishes=True).status == AGREES
        for name, setting in (("older", OLD), ("same", {})):
            assert checkout.command("run", environment=setting).status == AGREES
            shutil.copytree(checkout.paths.build / "runs", folder / name)
        put_reference(checkout, folder)
        yield checkout, folder


def put_reference(checkout: SmallCheckout, folder: Path) -> None:
    """What `record` would put there, without the floors, and so without the perturbed runs."""
    reference = checkout.paths.reference(STEM)
    precisions, environments = {}, {}
    for precision in records.PRECISIONS:
        run = folder / "same" / f"{STEM}.{precision}"
        shutil.copy(run / "record.jsonl", reference.record(precision))
        precisions[precision] = noise.PrecisionNoise(records.read(run / "record.jsonl").sha256, {}, {})
        environments[precision] = environment.read(run / "environment.json")
    other = records.read(folder / "older" / f"{STEM}.float32" / "record.jsonl")
    free = noise.stream_free(records.read(reference.record("float32")), other)
    reference.noise.write_bytes(noise.encode(noise.NoiseFile(noise.SCHEMA, STEM, precisions, free)))
    (reference.folder / "ENVIRONMENT.json").write_bytes(environment.encode_recorded(environments))


def recorded(checkout: SmallCheckout) -> str:
    return str(checkout.paths.recorded_runs / checkout.paths.reference_name())


def test_what_owes_nothing_to_the_stream_is_known(made):
    checkout, _ = made
    # The claim's margin moves with the draw.
    assert noise.read(checkout.paths.reference(STEM).noise).stream_free == ["product", "halves", "rate_is_positive"]


def test_the_cause_is_named_once_and_the_rest_is_compared(made):
    checkout, folder = made
    answer = checkout.here("compare", recorded(checkout), str(folder / "older"))
    assert answer.status == DIFFERS
    assert answer.out.count("random stream changed") == 1
    assert "jax_threefry_partitionable is True in the one and False in the other" in answer.out
    assert "Of 6 entries that owe nothing to the stream, 6 agree; 4 of 6 claims hold." in answer.out
    # No list of the numbers that were drawn.
    assert "drawn[" not in answer.out


def test_check_names_it_too(made):
    checkout, folder = made
    shutil.rmtree(checkout.paths.build / "runs")
    shutil.copytree(folder / "older", checkout.paths.build / "runs")
    answer = checkout.here("check")
    assert answer.status == DIFFERS and answer.out.count("cause: random stream changed") == 1


def test_a_run_under_the_other_setting_proves_it(made):
    checkout, folder = made
    answer = checkout.command("compare", recorded(checkout), str(folder / "older"), "--explain")
    assert answer.status == DIFFERS
    for precision in records.PRECISIONS:
        assert f"{STEM}.{precision}: run here with JAX_THREEFRY_PARTITIONABLE=0, all 9 numbers agree" in answer.out
    said = "Only the stream changed. Under this stream first_draw is broken in both runs."
    assert answer.out.count(said) == 2


def edited(runs: Path, into: Path, name: str, change: Callable[[Any], records.Entry]) -> Path:
    """A copy of the runs in which one entry of the float64 record is another."""
    found = into / "found"
    shutil.copytree(runs, found)
    path = found / f"{STEM}.float64" / "record.jsonl"
    record = records.read(path)
    entries = [change(entry) if records.key(entry) == name else entry for entry in record.entries]
    path.write_bytes(records.encode(record.header, entries))
    return found


def test_more_than_the_stream_is_not_proved_away(made, tmp_path):
    checkout, folder = made
    found = edited(
        folder / "older", tmp_path, "drawn", lambda e: records.Series(e.name, [v * (1 + 1e-6) for v in e.values])
    )
    answer = checkout.command("compare", recorded(checkout), str(found), "--explain")
    said = "run here with JAX_THREEFRY_PARTITIONABLE=0, it still differs from the found run (drawn[0])."
    assert f"{STEM}.float64: {said} More than the stream changed." in answer.out


def test_a_claim_that_the_found_run_alone_breaks_is_not_proved_away(made, tmp_path):
    checkout, folder = made
    name = "drawn_below_one"
    found = edited(folder / "older", tmp_path, name, lambda e: records.Claim(name, False, -0.5, e.compared))
    answer = checkout.command("compare", recorded(checkout), str(found), "--explain")
    assert "differs from the found run (drawn_below_one). More than the stream changed." in answer.out
    assert answer.out.count("Only the stream changed.") == 1


def test_nothing_to_prove(made):
    checkout, folder = made
    answer = checkout.here("compare", recorded(checkout), str(folder / "same"), "--explain")
    assert answer.status == CANNOT_COMPARE
    assert answer.err.startswith("error: --explain re-runs a notebook whose random stream changed, and here none did.")


def test_without_what_it_was_made_with(made, tmp_path):
    checkout, folder = made
    shutil.copy(folder / "older" / f"{STEM}.float64" / "record.jsonl", tmp_path / "a.jsonl")
    reference = f"{recorded(checkout)}/{STEM}.float64.jsonl"
    answer = checkout.here("compare", reference, str(tmp_path / "a.jsonl"))
    assert answer.status == DIFFERS and "what the found run was made with is not recorded beside it" in answer.out
