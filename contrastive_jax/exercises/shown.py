"""Arguments and numbers as text: arguments in a form that can be typed, numbers in few digits."""

from collections.abc import Callable
from typing import Any

import numpy as np

from contrastive_jax.exercises.contracts import Arguments, Contract

LINE = 100
MOST_ENTRIES = 40


def typed(argument: Any) -> str:
    """An argument as a learner would type it; a large array by its shape only."""
    if isinstance(argument, np.ndarray):
        return _typed_array(argument)
    if isinstance(argument, Callable):
        return (argument.__doc__ or getattr(argument, "__name__", "a function")).split("\n")[0]
    return repr(argument)


def _typed_array(array: np.ndarray) -> str:
    if array.size > MOST_ENTRIES:
        return f"... (an array of shape {array.shape})"
    if array.dtype != np.float64:
        short = "" if array.dtype.kind in "iub" else f", dtype=jnp.{array.dtype}"
        return f"jnp.array({array.tolist()}{short})"
    if array.ndim == 2 and array.shape[0] == array.shape[1] > 1:
        factor = array[0, 0].item()
        if factor and np.array_equal(array, factor * np.eye(len(array))):
            return f"jnp.eye({len(array)})" if factor == 1 else f"{factor:g} * jnp.eye({len(array)})"
    if array.size != 1 and not array.any():
        return f"jnp.zeros({array.shape})"
    return f"jnp.array({array.tolist()})"


def call_lines(contract: Contract, arguments: Arguments) -> list[str]:
    """The call as it can be typed: on one line if that is short, else with a line for each argument first."""
    texts = [typed(argument) for argument in arguments]
    names = contract.parameters[: len(texts)]
    on_one_line = f"{contract.name}({', '.join(texts)})"
    if len(on_one_line) <= LINE and "..." not in on_one_line:
        return [on_one_line]
    lines = [f"{name} = {text}" for name, text in zip(names, texts, strict=True)]
    return [*lines, f"{contract.name}({', '.join(names)})"]


def number(value: np.ndarray) -> str:
    """A value in few digits, on one line where it fits."""
    if value.ndim == 0:
        return f"{value.item():.7g}" if value.dtype.kind == "f" else str(value.item())
    wide = value.astype(float) if value.dtype.kind not in "biuc" else value
    return np.array2string(wide, precision=5, threshold=MOST_ENTRIES, edgeitems=3, separator=", ", max_line_width=LINE)


def difference(found: np.ndarray, expected: np.ndarray) -> str:
    """By how much they differ, and where it is most; empty where that makes no sense."""
    if found.shape != expected.shape or not found.size:
        return ""
    if expected.dtype.kind in "biu":
        wrong = np.argwhere(found != expected)
        return "" if not expected.ndim or not len(wrong) else f"{len(wrong)} entries, the first at {wrong[0].tolist()}"
    with np.errstate(invalid="ignore", over="ignore"):
        off = found.astype(complex if found.dtype.kind == "c" else float) - expected
    if found.ndim == 0:
        return f"{off.item():.4g}"
    sizes = np.where(np.isnan(off), np.inf, np.abs(off))
    place = np.unravel_index(np.argmax(sizes), off.shape)
    largest = f"the largest is {off[place].item():.4g}" if np.isfinite(off[place]) else "not finite"
    return f"{largest}, at {[int(each) for each in place]}"
