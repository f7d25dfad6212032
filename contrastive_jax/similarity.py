"""Unit rows and cosine similarity, finite in value and gradient for every finite input."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contrastive_jax._scalars import check_norm_floor
from contrastive_jax._validation import (
    FloatArray,
    check_matrix,
    check_rows,
    check_same_dtype,
    compute_dtype,
    error_text,
)


def l2_normalize(x: Float[FloatArray, "*batch dim"], *, norm_floor: int | float = 1e-12) -> Float[Array, "*batch dim"]:
    """Rows of unit length: x / max(|x|, norm_floor) along the last axis.

    The gradient is the derivative of that formula everywhere. A row shorter than the floor is divided by the
    floor, so a zero row stays zero and its gradient is the incoming one times 1 / norm_floor: finite, but
    large. Entries near the end of the dtype's range do not overflow. A NaN or an infinity makes its row NaN.

    Args:
        x: Rows of any length, shape [..., dim], dtype float16, bfloat16, float32 or float64.
        norm_floor: Smallest length to divide by, a constant of at least 1.1e-19 (float64: 1.5e-154).

    Returns:
        Array of the same shape; float64 for float64 input, float32 for every other dtype.

    Raises:
        TypeError: `x` is not a floating array, or `norm_floor` not a Python number.
        ValueError: `x` has no entries along the last axis, or `norm_floor` is out of range.

    Example:
        >>> import jax.numpy as jnp
        >>> print(l2_normalize(jnp.array([[3.0, 4.0], [0.0, 0.0]])))
        [[0.6 0.8]
         [0.  0. ]]
    """
    check_rows("x", x)
    return _l2_normalize(jnp.asarray(x), norm_floor=check_norm_floor(norm_floor, compute_dtype(x)))


def cosine_similarity(
    left: Float[FloatArray, "n dim"], right: Float[FloatArray, "m dim"], *, norm_floor: int | float = 1e-12
) -> Float[Array, "n m"]:
    """Cosine of the angle between every row of `left` and every row of `right`.

    Rows are normalised by `l2_normalize`; a zero row has cosine 0 with everything. The product is taken at
    the full precision of the dtype on every device (some would otherwise round its inputs to 10 bits).

    Args:
        left: n rows, shape [n, dim].
        right: m rows, shape [m, dim], same dtype as `left`.
        norm_floor: Smallest length that a row is divided by.

    Returns:
        Similarities in [-1, 1] up to rounding, shape [n, m]; float64 for float64 input, else float32.

    Raises:
        TypeError: An input is not a floating array, or the dtypes differ.
        ValueError: An input is empty or not a matrix, or the widths differ.

    Example:
        >>> import jax.numpy as jnp
        >>> right = jnp.array([[5.0, 0.0], [0.0, 1.0], [-3.0, 0.0]])
        >>> print(cosine_similarity(jnp.array([[2.0, 0.0]]), right))
        [[ 1.  0. -1.]]
    """
    check_matrix("left", left, "[n, dim]")
    check_matrix("right", right, "[m, dim]")
    check_same_dtype("left", left, "right", right)
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            error_text(
                "right",
                expected=f"rows as wide as those of left, {left.shape[1]}",
                found=f"{right.shape[1]}, shape {right.shape}",
                next_step="project both sides to one width first.",
            )
        )
    floor = check_norm_floor(norm_floor, compute_dtype(left))
    return _cosine_similarity(jnp.asarray(left), jnp.asarray(right), norm_floor=floor)


@functools.partial(jax.jit, static_argnames=("norm_floor",))
def _cosine_similarity(
    left: Float[Array, "n dim"], right: Float[Array, "m dim"], *, norm_floor: float
) -> Float[Array, "n m"]:
    left = _l2_normalize(left, norm_floor=norm_floor)
    right = _l2_normalize(right, norm_floor=norm_floor)
    return jnp.matmul(left, right.T, precision=jax.lax.Precision.HIGHEST)


@functools.partial(jax.jit, static_argnames=("norm_floor",))
def _l2_normalize(x: Float[Array, "*batch dim"], *, norm_floor: float) -> Float[Array, "*batch dim"]:
    x = x.astype(compute_dtype(x))
    shrink = _shrink_factor(x)
    x = x * shrink
    floor = norm_floor * shrink
    squared = jnp.sum(x * x, axis=-1, keepdims=True)
    above = squared > floor * floor
    # The inner `where` keeps sqrt away from zero: its infinite slope there would turn into NaN even in the
    # branch that the outer `where` drops.
    norm = jnp.sqrt(jnp.where(above, squared, 1.0))
    return x / jnp.where(above, norm, floor)


def _shrink_factor(x: Float[Array, "*batch dim"]) -> Float[Array, "*batch 1"]:
    """1 for ordinary rows, a small power of two for rows whose squares would overflow.

    Multiplying by either is exact: no digit changes. The factor cancels in x / |x|, so it has no gradient.
    """
    max_exponent = jnp.finfo(x.dtype).maxexp
    largest = jnp.max(jnp.abs(jax.lax.stop_gradient(x)), axis=-1, keepdims=True)
    overflows = largest > 2.0 ** (max_exponent * 3 // 8)
    return jnp.where(overflows, 2.0 ** (-max_exponent * 5 // 8), 1.0).astype(x.dtype)
