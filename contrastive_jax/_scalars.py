"""Checks of the real numbers a caller passes in, and their way into a compiled function.

A Python number is checked for its value, always; an array for its kind and shape, and for its value where that
is said and JAX knows it.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from contrastive_jax._validation import error_text


def check_norm_floor(norm_floor: object, dtype: np.dtype) -> float:
    """Returns `norm_floor` as a float, or raises unless it is a number whose square `dtype` can hold."""
    norm_floor = check_python_number("norm_floor", norm_floor, "pass a constant such as 1e-12; it is not traced.")
    smallest = math.sqrt(jnp.finfo(dtype).tiny)
    if not smallest <= norm_floor <= float(jnp.finfo(dtype).max):
        raise ValueError(
            error_text(
                "norm_floor",
                expected=f"a finite number of at least {smallest:.2g} for {dtype}",
                found=norm_floor,
                next_step="1e-12 is a safe choice for every dtype.",
            )
        )
    return float(norm_floor)


def as_temperature(temperature: object, dtype: np.dtype) -> Any:
    """Returns `temperature` as a 0-d array of `dtype`, or raises unless it is a positive finite number.

    Converted here, so that neither a `np.float64` nor a float32 array can change the dtype of the loss, and
    so that every kind of number leads to the same compiled function. A traced temperature is checked for its
    kind and shape only.
    """
    check_real_scalar("temperature", temperature)
    value = known_value(temperature)
    limits = jnp.finfo(dtype)
    # tiny is the smallest normal number: below it the division overflows, or the device reads a zero.
    if value is not None and not float(limits.tiny) <= value <= float(limits.max):
        raise ValueError(
            error_text(
                "temperature",
                expected=f"a positive finite number that {dtype} can hold",
                found=value,
                next_step="usual values lie between 0.01 and 10; learn one as the exp of a parameter.",
            )
        )
    if isinstance(temperature, jax.Array):
        return temperature.astype(dtype)
    return np.asarray(value, dtype)


def as_logit_scale(logit_scale: object, dtype: np.dtype) -> Any:
    """Returns `logit_scale` as a 0-d array, or raises unless it is a real number, of any size, and not NaN.

    A JAX array keeps its floating dtype, because where the cap is depends on how a parameter of that dtype rounds
    it, and is not read back. Every other number becomes one of `dtype`, the nearest where it is out of range.
    """
    check_real_scalar("logit_scale", logit_scale)
    if isinstance(logit_scale, jax.Array):
        return logit_scale if jnp.issubdtype(logit_scale.dtype, jnp.floating) else logit_scale.astype(dtype)
    value = _to_float(logit_scale)
    if math.isnan(value):
        raise ValueError(
            error_text(
                "logit_scale",
                expected="the logarithm of an inverse temperature",
                found=value,
                next_step="log(1 / 0.07), about 2.66, is where training usually starts.",
            )
        )
    largest = float(jnp.finfo(dtype).max)
    return np.asarray(min(max(value, -largest), largest), dtype)


def check_python_number(name: str, x: object, next_step: str) -> int | float:
    """Returns `x`, or raises TypeError unless it is an int or a float, as np.float64 is; bool is not meant."""
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise TypeError(
            error_text(name, expected="a Python number (int or float)", found=type(x).__name__, next_step=next_step)
        )
    return x


def check_real_scalar(name: str, x: Any) -> None:
    """Raises TypeError unless `x` is a real number or a 0-d array of one; bool and str are neither."""
    if isinstance(x, jax.Array | np.ndarray | np.generic):
        is_real = jnp.issubdtype(x.dtype, jnp.floating) or jnp.issubdtype(x.dtype, jnp.integer)
        if is_real and x.ndim == 0:
            return
        found = f"an array of dtype {x.dtype} and shape {x.shape}"
    elif isinstance(x, int | float) and not isinstance(x, bool):
        return
    else:
        found = f"{x!r} of type {type(x).__name__}"
    raise TypeError(
        error_text(
            name,
            expected="one real number (int, float or a 0-d array)",
            found=found,
            next_step=f"pass a number such as {name}=0.2; for several values use jax.vmap.",
        )
    )


def known_value(x: Any) -> float | None:
    """Value of a number or 0-d array; None while JAX traces it."""
    try:
        return _to_float(x)
    except jax.errors.ConcretizationTypeError:
        return None


def _to_float(x: Any) -> float:
    try:
        return float(x)
    except OverflowError:  # a Python int beyond the range of float
        return math.inf if x > 0 else -math.inf
