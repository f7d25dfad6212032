"""Checks of what a caller passes in.

Only what is known while JAX traces is looked at: kinds, shapes, dtypes, and temperatures that are plain
numbers. So every check works inside `jax.jit` too, and no check of an embedding waits for the device. Each
error says which argument it is about, what was expected, what was found and what to do next.

Arguments are annotated `object` on purpose: these functions exist to say, better than a type checker can,
what is wrong.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

FloatArray = Array | np.ndarray
FLOATING = ("float16", "bfloat16", "float32", "float64")


def error_text(name: str, *, expected: str, found: object, next_step: str) -> str:
    """Text that every check of this package raises its error with."""
    return f"{name}: expected {expected}, found {found}. Next step: {next_step}"


def compute_dtype(x: Any) -> np.dtype:
    """Dtype that input `x` is computed in: float64 for float64, float32 for all others."""
    return np.dtype("float64" if x.dtype == np.float64 else "float32")


def check_floating(name: str, x: object) -> None:
    """Raises TypeError unless `x` is an array of a floating dtype that JAX would keep as it is."""
    if not isinstance(x, jax.Array | np.ndarray):
        raise TypeError(
            error_text(
                name,
                expected="a JAX or NumPy array",
                found=type(x).__name__,
                next_step=f"pass jnp.asarray({name}).",
            )
        )
    if str(x.dtype) not in FLOATING:
        raise TypeError(
            error_text(
                name,
                expected=f"a dtype among {', '.join(FLOATING)}",
                found=x.dtype,
                next_step=f"convert it, for example {name}.astype(jnp.float32).",
            )
        )
    if jax.dtypes.canonicalize_dtype(x.dtype) != x.dtype:
        # JAX would silently round such an array to float32: the result would not have its dtype.
        raise TypeError(
            error_text(
                name,
                expected="float32 or narrower while JAX's 64-bit mode is off",
                found="float64",
                next_step=f'pass jnp.asarray({name}), or jax.config.update("jax_enable_x64", True) first.',
            )
        )


def check_rows(name: str, x: Any) -> None:
    """Raises unless `x` is a floating array whose last axis has at least one entry."""
    check_floating(name, x)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(
            error_text(
                name,
                expected="rows of at least one entry, shape [..., dim]",
                found=f"shape {x.shape}",
                next_step="put the entries of a row on the last axis.",
            )
        )


def check_matrix(name: str, x: Any, axes: str = "[batch, dim]") -> None:
    """Raises unless `x` is a floating array of rank 2 without an empty axis."""
    check_floating(name, x)
    if x.ndim != 2:
        raise ValueError(
            error_text(
                name,
                expected=f"rank 2, shape {axes}",
                found=f"rank {x.ndim}, shape {x.shape}",
                next_step="reshape it, or use jax.vmap for a stack of batches.",
            )
        )
    if 0 in x.shape:
        raise ValueError(
            error_text(
                name,
                expected=f"a nonempty array {axes}",
                found=f"shape {x.shape}",
                next_step="skip empty batches before the call.",
            )
        )


def check_same_dtype(first_name: str, first: Any, second_name: str, second: Any) -> None:
    """Raises TypeError unless both arrays have one dtype."""
    if first.dtype != second.dtype:
        raise TypeError(
            error_text(
                second_name,
                expected=f"the dtype of {first_name}, {first.dtype}",
                found=second.dtype,
                next_step=f"convert one of them, for example {second_name}.astype({first_name}.dtype).",
            )
        )


def check_pair(first_name: str, first: Any, second_name: str, second: Any) -> None:
    """Raises unless both are nonempty [batch, dim] matrices of one shape and one floating dtype."""
    check_matrix(first_name, first)
    check_matrix(second_name, second)
    check_same_dtype(first_name, first, second_name, second)
    if first.shape != second.shape:
        raise ValueError(
            error_text(
                second_name,
                expected=f"the shape of {first_name}, {first.shape}",
                found=second.shape,
                next_step="row i of both must come from the same source; drop or pad rows before the call.",
            )
        )


def check_norm_floor(norm_floor: object, dtype: np.dtype) -> float:
    """Returns `norm_floor` as a float, or raises unless it is a number whose square `dtype` can hold."""
    if isinstance(norm_floor, bool) or not isinstance(norm_floor, int | float):
        raise TypeError(
            error_text(
                "norm_floor",
                expected="a Python number",
                found=type(norm_floor).__name__,
                next_step="pass a constant such as 1e-12; it is not traced.",
            )
        )
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
        return float(x)
    except OverflowError:  # a Python int beyond the range of float
        return math.inf
    except jax.errors.ConcretizationTypeError:
        return None


def check_top_k(k: object, num_candidates: int) -> int:
    """Returns `k`, or raises unless it is an int and 1 <= k <= num_candidates."""
    if isinstance(k, bool) or not isinstance(k, int):
        raise TypeError(
            error_text(
                "k",
                expected="a Python int",
                found=type(k).__name__,
                next_step="pass a constant such as k=1; under jax.jit name it in static_argnames.",
            )
        )
    if not 1 <= k <= num_candidates:
        raise ValueError(
            error_text(
                "k",
                expected=f"1 <= k <= {num_candidates}, the number of candidates",
                found=k,
                next_step="choose a smaller k, or score more candidates.",
            )
        )
    return k
