"""Checks of the arrays a caller passes in, and of what counts their rows.

All but `check_finite` look at kinds, shapes and dtypes only, which are known while JAX traces: they work inside
`jax.jit` and never wait for the device. Each error says which argument it is about, what was expected, what
was found and what to do next.

Arguments are annotated `object` on purpose: these functions exist to say, better than a type checker can,
what is wrong.
"""

from typing import Any

import jax
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


def check_stacked(name: str, x: Any) -> None:
    """Raises unless `x` is a nonempty floating matrix with an even number of rows."""
    check_matrix(name, x, "[2 * batch, dim]")
    if x.shape[0] % 2:
        raise ValueError(
            error_text(
                name,
                expected="an even number of rows, all of view 1 and then all of view 2",
                found=f"{x.shape[0]}, shape {x.shape}",
                next_step="stack both views of the same sources: jnp.concatenate([view1, view2]).",
            )
        )


def check_finite(name: str, x: Any) -> None:
    """Raises ValueError if an entry of `x` is NaN or infinite; passes a traced array, whose entries are unknown."""
    try:
        finite = np.isfinite(np.asarray(x))
    except jax.errors.TracerArrayConversionError:
        return
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        raise ValueError(
            error_text(
                name,
                expected="finite entries",
                found=f"{np.asarray(x)[row, column]} in row {row}, column {column}",
                next_step="look at what computed that row.",
            )
        )


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
