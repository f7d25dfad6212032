"""Values and gradients of the losses against PyTorch's, case by case."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import contrastive_jax
from contrastive_jax.exercises import oracles

GOLDEN = Path(__file__).parent / "golden"

# (rows, partner rows, temperature or log scale) -> scalar
LOSSES: dict[str, Callable] = {
    "paired": contrastive_jax.paired_contrastive,
    "nt_xent": lambda view1, view2, t: contrastive_jax.nt_xent(jnp.concatenate([view1, view2]), t),
    "clip": contrastive_jax.clip_loss,
}
ORACLES = {
    "paired": (oracles.paired_contrastive, oracles.paired_gradients),
    "nt_xent": (oracles.nt_xent, oracles.nt_xent_gradients),
    "clip": (oracles.clip_loss, oracles.clip_gradients),
}


class Case(NamedTuple):
    key: str
    loss: str
    parameter: float
    inputs: tuple[np.ndarray, np.ndarray]
    value: float
    gradients: tuple[np.ndarray, np.ndarray, np.ndarray]


class Tolerance(NamedTuple):
    """Relative: of the value, and of the largest entry of each gradient; and what may be off by underflow."""

    value: float
    inputs: float
    parameter: float
    underflow: float


# In float32 already the rounding of the inputs moves the parameter's gradient, a sum of terms that cancel. And numbers
# below 1.2e-38 count as zero there, before they are divided by lengths: case c021 has gradients that small.
TOLERANCES = {
    "float32": Tolerance(value=1e-4, inputs=1e-4, parameter=1e-3, underflow=1e-35),
    "float64": Tolerance(value=1e-10, inputs=1e-10, parameter=1e-10, underflow=0.0),
}


def load_cases() -> list[Case]:
    arrays = np.load(GOLDEN / "losses.npz")
    return [
        Case(
            key=entry["key"],
            loss=entry["loss"],
            parameter=entry["parameter"],
            inputs=(arrays[f"{entry['key']}_a"], arrays[f"{entry['key']}_b"]),
            value=entry["value"],
            gradients=(
                arrays[f"{entry['key']}_grad_a"],
                arrays[f"{entry['key']}_grad_b"],
                np.array(entry["grad_parameter"]),
            ),
        )
        for entry in json.loads((GOLDEN / "losses.json").read_text())["cases"]
    ]


CASES = load_cases()


def assert_near(actual, expected: np.ndarray, tolerance: float, what: str, underflow: float = 0.0) -> None:
    """Fails unless the largest difference is at most `tolerance` times the largest expected entry, or `underflow`."""
    actual = np.asarray(actual, np.float64)
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, expected {expected.shape}"
    off, largest = np.max(np.abs(actual - expected)), np.max(np.abs(expected))
    # A NaN is not "at most" anything, so it fails.
    assert off <= tolerance * largest + underflow, f"{what}: off by {off:.3g}, largest expected entry {largest:.3g}"


def assert_golden(value, gradients, case: Case, tolerance: Tolerance) -> None:
    """Fails unless value and gradients are the case's."""
    assert_near(value, np.array(case.value), tolerance.value, f"{case.key} value")
    of = (tolerance.inputs, tolerance.inputs, tolerance.parameter)
    for name, actual, expected, relative in zip(
        ("first", "second", "parameter"), gradients, case.gradients, of, strict=True
    ):
        assert_near(actual, expected, relative, f"{case.key} gradient by {name}", tolerance.underflow)


COMPILED = {name: jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2))) for name, loss in LOSSES.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.loss}-{case.key}")
def test_value_and_gradients(case, precision):
    arguments = [np.asarray(x, precision) for x in (*case.inputs, case.parameter)]
    value, gradients = COMPILED[case.loss](*arguments)
    assert [str(x.dtype) for x in (value, *gradients)] == [precision] * 4
    assert_golden(value, gradients, case, TOLERANCES[precision])


def test_the_allowance_for_underflow_matters_in_one_case_only():
    largest = {case.key: [np.max(np.abs(gradient)) for gradient in case.gradients] for case in CASES}
    assert [key for key, sizes in largest.items() if any(0 < size < 1e-25 for size in sizes)] == ["c021"]


def test_every_case_is_read():
    counts = {loss: sum(case.loss == loss for case in CASES) for loss in ("paired", "nt_xent", "clip")}
    assert counts == {"paired": 18, "nt_xent": 24, "clip": 24}
    assert LOSSES.keys() == ORACLES.keys() == counts.keys()


# Wrong losses, in NumPy, their gradients by differences. Each is one mistake away from the right one.


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def direction(scores, axis, epsilon=0.0):
    shifted = scores - scores.max(axis=axis, keepdims=True)
    log_probability = np.diagonal(shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True)))
    return -np.mean(np.logaddexp(log_probability, np.log(epsilon)) if epsilon else log_probability)


def both(scores, epsilon=0.0):
    return (direction(scores, 0, epsilon) + direction(scores, 1, epsilon)) / 2


def right_answer(a, b, t):
    return both(unit(a) @ unit(b).T / t)


def positive_left_out(a, b, t):
    exponentials = np.exp(unit(a) @ unit(b).T / t)
    others = exponentials - np.diag(np.diagonal(exponentials))
    sums = others.sum(axis=0), others.sum(axis=1)
    return sum(np.mean(np.log(s / np.diagonal(exponentials))) for s in sums) / 2


def positive_without_temperature(a, b, t):
    cosine = unit(a) @ unit(b).T
    return both(np.where(np.eye(len(a), dtype=bool), cosine, cosine / t))


WRONG_VALUES = {
    "rows only": lambda a, b, t: direction(unit(a) @ unit(b).T / t, 1),
    "columns only": lambda a, b, t: direction(unit(a) @ unit(b).T / t, 0),
    "directions added": lambda a, b, t: 2 * right_answer(a, b, t),
    "summed over pairs": lambda a, b, t: len(a) * right_answer(a, b, t),
    "divided by batch - 1": lambda a, b, t: right_answer(a, b, t) * len(a) / (len(a) - 1),
    "no normalisation": lambda a, b, t: both(a @ b.T / t),
    "one side not normalised": lambda a, b, t: both(unit(a) @ b.T / t),
    "normalised over the batch": lambda a, b, t: both(unit(a.T).T @ unit(b.T) / t),
    "divided by the squared length": lambda a, b, t: both(unit(a) @ (unit(b).T / np.sum(b * b, axis=1)) / t),
    "temperature multiplied": lambda a, b, t: right_answer(a, b, 1 / t),
    "temperature ignored": lambda a, b, t: right_answer(a, b, 1.0),
    "scaled by temperature / base temperature": lambda a, b, t: right_answer(a, b, t) * t / 0.07,
    "positive without temperature": positive_without_temperature,
    "positive left out of the denominator": positive_left_out,
    "partner off by one": lambda a, b, t: right_answer(a, np.roll(b, 1, axis=0), t),
    "epsilon inside the logarithm": lambda a, b, t: both(unit(a) @ unit(b).T / t, epsilon=1e-8),
    "NaN": lambda a, b, t: np.nan,
}

# The right value with a gradient that is cut off, or that leaves the lengths of the rows out.
WRONG_GRADIENTS = {
    "first input detached": lambda case, g: (0 * g[0], g[1], g[2]),
    "second input detached": lambda case, g: (g[0], 0 * g[1], g[2]),
    "temperature detached": lambda case, g: (g[0], g[1], 0 * g[2]),
    "inputs exchanged": lambda case, g: (g[1], g[0], g[2]),
    "gradient by the log temperature": lambda case, g: (g[0], g[1], case.parameter * g[2]),
    "lengths forgotten": lambda case, g: (g[0] * np.linalg.norm(case.inputs[0], axis=1, keepdims=True), *g[1:]),
    "one NaN": lambda case, g: (g[0], np.where(g[1] == g[1].max(), np.nan, g[1]), g[2]),
}

# Three pairs at temperature 0.2; and the largest loss, 40 nats for each of two pairs at temperature 0.01.
TELLING = [next(case for case in CASES if case.key == key) for key in ("c027", "c015")]


def accepts(value, gradients, case: Case) -> bool:
    # By the tolerances of float32, the wider ones: what they reject is rejected in float64 too.
    try:
        assert_golden(value, gradients, case, TOLERANCES["float32"])
    except AssertionError:
        return False
    return True


def accepts_loss(loss: Callable, case: Case) -> bool:
    arguments = (*case.inputs, case.parameter)
    return accepts(loss(*arguments), oracles.slopes(loss, *arguments), case)


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_wrong_value_is_rejected(name):
    assert not all(accepts_loss(WRONG_VALUES[name], case) for case in TELLING)


@pytest.mark.parametrize("name", WRONG_GRADIENTS)
def test_a_wrong_gradient_is_rejected(name):
    assert not any(accepts(case.value, WRONG_GRADIENTS[name](case, case.gradients), case) for case in TELLING)


def test_the_right_answer_written_another_way_is_accepted():
    assert all(accepts_loss(right_answer, case) for case in TELLING)
    assert all(accepts_loss(oracles.paired_contrastive, case) for case in TELLING)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.loss}-{case.key}")
def test_the_oracle_has_the_golden_values(case):
    arguments = (*case.inputs, case.parameter)
    loss, gradients = ORACLES[case.loss]
    assert_golden(loss(*arguments), gradients(*arguments), case, TOLERANCES["float64"])
