"""Which known misconceptions behave exactly as a function does.

Numbers are compared, not code: a function in any style, compiled or not, is told apart from all others by what it gives
on a few inputs. First come the contract's probes, where nearly every variant differs from the right function. Only if a
function is right on all of them are the extremes asked, where the other variants differ: by a NaN at a row of zeros,
for example.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from contrastive_jax.exercises.contracts import Arguments, Case, Contract, Outcome, Variant
from contrastive_jax.exercises.evaluation import ambient_dtype, as_passed, outcome_of
from contrastive_jax.exercises.references import right_gradients, right_value

# Relative to the largest entry and a tenth. Other code and other orders of summation move a result by far less; the
# variants of a contract differ by far more.
ROOM = {"float32": 1e-4, "float64": 1e-7}
SMALL = 0.1
# Where minus infinity is right, every number below this is one mistake, whichever number was picked.
VERY_LOW = -50.0


def candidates(contract: Contract, outcome_on: Callable[[Arguments], Outcome]) -> tuple[Variant, ...]:
    """The variants of `contract` that behave as a wrong function does.

    Args:
        contract: Has the variants, and the inputs that tell them apart.
        outcome_on: What the function does with given arguments, in JAX's present precision.

    Returns:
        Those that agree on every input that was asked, in value and gradients. A function that agrees with none on all
        extremes may have two faults there: then those that agree on the first extreme where it fails. Nothing if none
        agrees, if the function raises, or if it is not finite anywhere: there are many ways to that.
    """
    cases = inputs(contract)
    probes, extremes = range(len(contract.probes)), range(len(contract.probes), len(cases))
    found = {number: outcome_on(cases[number].arguments) for number in probes}
    if not any(outcome.value is not None and np.isfinite(outcome.value).any() for outcome in found.values()):
        return ()
    if not all(_is_right(contract, number, found[number]) for number in probes):
        return _matching(contract, found, at_extremes=False)
    found = {number: outcome_on(cases[number].arguments) for number in extremes}
    failing = [number for number in extremes if not _is_right(contract, number, found[number])]
    if not failing:
        return ()
    first = {failing[0]: found[failing[0]]}
    return _matching(contract, found, at_extremes=True) or _matching(contract, first, at_extremes=True)


def inputs(contract: Contract) -> tuple[Case, ...]:
    """The inputs that tell variants apart: the probes, then the extremes."""
    return (*(Case("a probe", arguments) for arguments in contract.probes), *contract.extremes)


def shows_at_extremes(contract: Contract, variant: Variant) -> bool:
    """Whether the variant is right on the probes: the case that shows it is then one of the extremes."""
    return variant.case.what in [case.what for case in contract.extremes]


def distance(found: Outcome, known: Outcome) -> float:
    """How far two outcomes are apart, in units of the room that rounding is given; infinite if they differ in kind.

    NaN and infinities must agree entry by entry in a value. In a gradient they are alike, and it only matters whether
    there are any. Beside a value that is not finite, gradients mean nothing and are not compared.
    """
    if found.value is None or known.value is None or found.value.dtype.kind == "c":
        return math.inf
    value, expected = np.asarray(found.value, float), np.asarray(known.value, float)
    finite = np.isfinite(expected)
    if value.shape != expected.shape or not np.array_equal(np.isfinite(value), finite):
        return math.inf
    if not np.array_equal(value[~finite], expected[~finite], equal_nan=True):
        return math.inf
    room = max(ROOM.get(str(each.dtype), ROOM["float64"]) for each in (found.value, known.value))
    if not finite.all():
        return _apart(value, expected) / room
    if len(found.gradients) != len(known.gradients):
        return math.inf
    pairs = [(value, expected), *zip(found.gradients, known.gradients, strict=True)]
    return max(_apart(*pair) for pair in pairs) / room


def _apart(found: np.ndarray | np.generic, expected: np.ndarray | np.generic) -> float:
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    if np.isfinite(found).all() != np.isfinite(expected).all():
        return math.inf
    both = np.isfinite(found) & np.isfinite(expected)
    gap, size = np.abs(found[both] - expected[both]), np.abs(expected[both])
    return float(np.max(gap, initial=0.0) / (np.max(size, initial=0.0) + SMALL))


def _matching(contract: Contract, found: dict[int, Outcome], *, at_extremes: bool) -> tuple[Variant, ...]:
    """Values are compared first: gradients take longer, and few variants are left for them."""
    dtype = ambient_dtype()
    left = _group(contract, at_extremes)
    for number, outcome in found.items():
        values = _values(contract, number, dtype, at_extremes)
        seen = _blurred(contract, number, outcome.value, at_extremes)
        if seen is None:
            return ()
        left = [each for each in left if distance(Outcome(seen), Outcome(values[each])) <= 1]
    if contract.gradients:
        for number, outcome in found.items():
            if outcome.value is not None and np.isfinite(outcome.value).all():
                left = [each for each in left if distance(outcome, _of_variant(contract, each, number, dtype)) <= 1]
    return tuple(contract.variants[each] for each in left)


def _blurred(contract: Contract, number: int, value: np.ndarray | None, at_extremes: bool) -> np.ndarray | None:
    """A value without what does not tell mistakes apart: how low a number is in place of minus infinity and, at an
    extreme, whether an overflow ends as infinity or as NaN, which depends on the order of the operations."""
    if value is None or value.dtype.kind != "f":
        return value
    if at_extremes:
        return np.where(np.isfinite(value), value, np.asarray(np.nan, value.dtype))
    right = _right(contract, number).value
    if right is None or right.shape != value.shape:
        return value
    low = np.isneginf(right) & np.isfinite(value) & (value < VERY_LOW)
    return np.where(low, np.asarray(VERY_LOW, value.dtype), value)


def _group(contract: Contract, at_extremes: bool) -> list[int]:
    return [
        place for place, variant in enumerate(contract.variants) if shows_at_extremes(contract, variant) == at_extremes
    ]


@functools.cache
def _values(contract: Contract, number: int, dtype: str, at_extremes: bool) -> dict[int, np.ndarray | None]:
    """Of a group of variants on one input, by their places."""
    arguments = inputs(contract)[number].arguments
    is_followed = [isinstance(each, np.ndarray | float) for each in arguments]
    constants = tuple(each for each, followed in zip(arguments, is_followed, strict=True) if not followed)
    follows = [as_passed(each, dtype) for each, followed in zip(arguments, is_followed, strict=True) if followed]
    function = _all_values(contract, tuple(is_followed), constants, at_extremes)
    values = {place: np.asarray(value) for place, value in function(follows).items()}
    return {place: _blurred(contract, number, value, at_extremes) for place, value in values.items()}


@functools.cache
def _all_values(contract: Contract, is_followed: tuple[bool, ...], constants: Arguments, at_extremes: bool) -> Callable:
    """Variants compiled together, which takes a fraction of the time of each by itself."""

    def every_value(follows: list[Any]) -> dict[int, Any]:
        followed, rest = iter(follows), iter(constants)
        arguments = [next(followed if each else rest) for each in is_followed]
        return {place: contract.variants[place].function(*arguments) for place in _group(contract, at_extremes)}

    return jax.jit(every_value) if contract.traceable else every_value


@functools.cache
def _of_variant(contract: Contract, variant: int, number: int, dtype: str) -> Outcome:
    return _compiled(contract, variant, dtype)(inputs(contract)[number].arguments)


@functools.cache
def _compiled(contract: Contract, variant: int, dtype: str) -> Callable[[Arguments], Outcome]:
    return outcome_of(contract, contract.variants[variant].function, dtype)


def _is_right(contract: Contract, number: int, found: Outcome) -> bool:
    right = _right(contract, number)
    compared = right.gradients or found.value is None
    return distance(found if compared else found._replace(gradients=()), right) <= 1


@functools.cache
def _right(contract: Contract, number: int) -> Outcome:
    case = inputs(contract)[number]
    gradients = right_gradients(contract, case.arguments) if case.differentiated else ()
    return Outcome(right_value(contract, case), gradients)
