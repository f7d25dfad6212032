"""What is right on an input, and how far a float may lie from it."""

from typing import Any

import numpy as np

from contrastive_jax.exercises.contracts import Arguments, Case, Contract, weighted_sum
from contrastive_jax.exercises.oracles import centred_difference

STEP = 1e-5
# Relative to the entry, or to the largest of its row, and to the largest terms that are added up on the way. Centred
# differences, and the many paths of a gradient, are the reason why gradients have more room.
VALUE_ROOM = {"float32": (1e-5, 1e-6), "float64": (1e-10, 1e-12)}
GRADIENT_ROOM = {"float32": (1e-4, 1e-6), "float64": (1e-7, 1e-9)}


def right_value(contract: Contract, case: Case) -> np.ndarray:
    """The result on `case`: the closed form if it has one, else the oracle's."""
    return np.asarray(contract.oracle(*case.arguments) if case.expected is None else case.expected)


def right_gradients(contract: Contract, arguments: Arguments) -> tuple[np.ndarray, ...]:
    """Gradients by the arguments that `contract` names, in float64: the oracle's own, or centred differences."""
    if contract.gradient_oracle is not None:
        return tuple(np.asarray(each, float) for each in contract.gradient_oracle(*arguments))

    return tuple(right_slope(contract, arguments, number) for number in contract.gradients)


def right_slope(contract: Contract, arguments: Arguments, number: int) -> np.ndarray:
    """Gradient by one argument, from centred differences of the oracle."""
    before, argument, after = arguments[:number], np.asarray(arguments[number], float), arguments[number + 1 :]
    if argument.ndim:
        return centred_difference(lambda x: float(weighted_sum(contract.oracle(*before, x, *after))), argument, STEP)
    # Around 1, because the step is relative and the number may be 0.
    start = argument.item() - 1
    return centred_difference(
        lambda x: float(weighted_sum(contract.oracle(*before, start + x.item(), *after))), np.ones(1), STEP
    ).reshape(())


def agree(found: Any, expected: Any, size: float, dtype: str) -> bool:
    """Whether values agree entry by entry: exactly if whole numbers or truth values, else within rounding."""
    found, expected = np.asarray(found), np.asarray(expected)
    if expected.dtype.kind in "biu":
        return found.shape == expected.shape and bool(np.all(found == expected))
    expected = expected.astype(float)
    relative, absolute = VALUE_ROOM[coarser(found, dtype)]
    return _within(found, expected, relative * np.abs(expected) + absolute * size)


def gradients_agree(found: Any, expected: Any, size: float, dtype: str) -> bool:
    """Whether gradients agree row by row, because rows near length zero have gradients a million times the others'."""
    found, expected = np.asarray(found), np.asarray(expected, float)
    relative, absolute = GRADIENT_ROOM[coarser(found, dtype)]
    largest = np.max(np.abs(expected), axis=-1, keepdims=True) if expected.ndim else np.abs(expected)
    return _within(found, expected, relative * largest + absolute * size)


def coarser(found: np.ndarray, dtype: str) -> str:
    """The precision to judge in: that of the input, or of the result if it has fewer digits."""
    return "float64" if dtype == "float64" and found.dtype == np.float64 else "float32"


def _within(found: np.ndarray, expected: np.ndarray, room: Any) -> bool:
    if found.shape != expected.shape:
        return False
    found = found.astype(complex)
    finite = np.isfinite(expected)
    with np.errstate(invalid="ignore"):
        close = np.abs(found - expected) <= room
    return bool(np.all(np.where(finite, close, (found == expected) | (np.isnan(found) & np.isnan(expected)))))
