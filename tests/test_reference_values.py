"""The reference against numbers published elsewhere: the lesson's own recorded execution, and closed forms.

The published float32 numbers come from another machine (JAX 0.9.2), so they must lie within the noise that was
measured on ours. The float64 ones come from the same program in float64, to nine digits.
"""

import math
from pathlib import Path

import pytest

from reproduce import compare, noise, quoted, records
from reproduce.checkout import Checkout

CHECKOUT = Checkout(Path(__file__).parent.parent)

# entry: (float32 as published, float64)
PUBLISHED = {
    "train/loss[0]": (0.564157247543335, 0.5641571541294021),
    "train/loss[-1]": (0.013556718826293945, 0.013556668039747987),
    "baseline/collapsed_loss": (1.3862943649291992, math.log(4)),
    "temperature/loss_0.2": (0.006715348921716213, math.log1p(math.exp(-1 / 0.2))),
    "temperature/loss_1.0": (0.31326162815093994, math.log1p(math.exp(-1))),
    "temperature/loss_2.0": (0.4740769863128662, math.log1p(math.exp(-1 / 2))),
    "exercise/mismatched_loss": (7.493563652038574, 7.493564137091212),
    "exercise/duplicate_penalty": (0.6931472215801477, math.log(2)),
    "gradient/finite_difference_1e-3": (-1.3803242444992065, -1.3803134627984326),
    "gradient/finite_difference_5e-4": (-1.3802646398544312, -1.3803203119684415),
    "gradient/autodiff": (-1.3803226947784424, -1.380322594777429),
}


def within_noise(entry: str, published: float) -> bool:
    """Whether a published float32 number could be a run of our notebook on another machine."""
    return allowance(entry) >= abs(published - reference("float32")[entry])


def reference(precision: str) -> dict:
    return quoted.values(records.read(CHECKOUT.reference("01_paired_views").record(precision)))


def allowance(entry: str) -> float:
    """What the comparison itself allows the entry: the largest move it still calls noise, by bisection."""
    recorded = CHECKOUT.reference("01_paired_views")
    record = records.read(recorded.record("float32"))
    floors = noise.read(recorded.noise).precisions["float32"].floors
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        moved = with_moved(record, entry, middle)
        agrees = compare.compare(record, moved, floors).agrees
        low, high = (middle, high) if agrees else (low, middle)
    return low


def with_moved(record: records.Record, entry: str, move: float) -> records.Record:
    name, _, index = entry.partition("[")
    changed = []
    for each in record.entries:
        if each.name == name and isinstance(each, records.Metric):
            each = records.Metric(each.name, each.value + move, each.unit, each.step)
        elif each.name == name and isinstance(each, records.Series):
            values = list(each.values)
            values[int(index.rstrip("]"))] += move
            each = records.Series(each.name, values, each.unit)
        changed.append(each)
    return records.Record(record.header, tuple(changed), record.sha256)


@pytest.mark.parametrize("entry", PUBLISHED)
def test_published_float32_number_lies_within_our_noise(entry):
    assert within_noise(entry, PUBLISHED[entry][0])


@pytest.mark.parametrize("entry", PUBLISHED)
def test_float64_number_is_right_to_nine_digits(entry):
    assert reference("float64")[entry] == pytest.approx(PUBLISHED[entry][1], rel=1e-9, abs=1e-12)


def test_a_wrong_published_number_would_be_noticed():
    # One part in a thousand is far more than rounding does to the loss.
    quotients = {entry for entry in PUBLISHED if entry.startswith("gradient/finite")}
    assert not any(within_noise(entry, PUBLISHED[entry][0] * 1.001) for entry in PUBLISHED if entry not in quotients)
