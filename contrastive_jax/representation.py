"""How a set of embeddings lies in space: whether it collapsed, and how evenly it covers the sphere."""

import functools
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contrastive_jax._scalars import check_python_number
from contrastive_jax._validation import FloatArray, check_matrix, check_pair, compute_dtype, error_text
from contrastive_jax.similarity import l2_normalize


def feature_spread(features: Float[FloatArray, "count dim"]) -> Float[Array, ""]:
    """Standard deviation of each feature over the rows, averaged over the features.

    The sample standard deviation: squares are divided by count - 1. It is 0 where all rows are alike, the sign of a
    collapse, and grows with the scale of the features: compare it before and after, not between encoders.

    Args:
        features: One row per input, at least two, shape [count, dim].

    Returns:
        Shape [], unit of the features; float64 for float64 input, else float32.

    Raises:
        TypeError: `features` is not a floating array.
        ValueError: It is not a matrix, or has fewer than two rows.

    Example:
        >>> import jax.numpy as jnp
        >>> print(feature_spread(jnp.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])))  # deviations 1 and 0
        0.5
    """
    _check_two_rows("features", features)
    return _feature_spread(jnp.asarray(features))


def mean_cosine(embeddings: Float[FloatArray, "count dim"]) -> Float[Array, ""]:
    """Mean cosine similarity between different rows; 1 where all point the same way, near 0 for scattered ones.

    It comes from the length of the mean direction, so no matrix of all pairs is made. A zero row has cosine 0 with
    every other. The least possible value is -1 / (count - 1).

    Args:
        embeddings: Rows of any length, at least two, shape [count, dim].

    Returns:
        Shape [], in [-1, 1] up to rounding; float64 for float64 input, else float32.

    Raises:
        TypeError: `embeddings` is not a floating array.
        ValueError: It is not a matrix, or has fewer than two rows.

    Example:
        >>> import jax.numpy as jnp
        >>> print(f"{mean_cosine(jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])):.4f}")  # cosines 0, 0 and 1
        0.3333
    """
    _check_two_rows("embeddings", embeddings)
    return _mean_cosine(jnp.asarray(embeddings))


def alignment(
    left: Float[FloatArray, "batch dim"], right: Float[FloatArray, "batch dim"], *, alpha: int | float = 2
) -> Float[Array, ""]:
    """Mean distance between the two members of a pair on the unit sphere, to the power alpha; lower is better.

    With alpha = 2 it is 2 - 2 * (mean cosine of the pairs): 0 for equal directions, 4 for opposite ones. A collapsed
    encoder has the best value, so read it beside `uniformity`.

    Args:
        left: One row per pair, any length, shape [batch, dim].
        right: The partners in the same order; shape and dtype of `left`.
        alpha: A positive number. Below 2 the gradient is not finite where two partners coincide. Static.

    Returns:
        Shape []; float64 for float64 input, else float32.

    Raises:
        TypeError: An input is not a floating array, the dtypes differ, or `alpha` is not a Python number.
        ValueError: An input is empty or not a matrix, the shapes differ, or `alpha` is not positive and finite.

    Source:
        Wang and Isola 2020, "Understanding Contrastive Representation Learning through Alignment and Uniformity on the
        Hypersphere", section 4.1.

    Example:
        >>> import jax.numpy as jnp
        >>> print(alignment(jnp.array([[1.0, 0.0], [3.0, 0.0]]), jnp.array([[2.0, 0.0], [0.0, 1.0]])))  # 0 and 2
        1.0
    """
    check_pair("left", left, "right", right)
    return _alignment(jnp.asarray(left), jnp.asarray(right), alpha=_check_positive("alpha", alpha))


def uniformity(embeddings: Float[FloatArray, "count dim"], *, t: int | float = 2) -> Float[Array, ""]:
    """Logarithm of the mean of exp(-t * squared distance) over all pairs of different rows; lower is more even.

    Rows are normalised first. The value is 0 where all rows point the same way and cannot fall below -4t. A matrix of
    all pairs is made.

    Args:
        embeddings: Rows of any length, at least two, shape [count, dim].
        t: A positive number: how quickly the repulsion of two rows fades with their distance. Static.

    Returns:
        Shape [], in nats; float64 for float64 input, else float32.

    Raises:
        TypeError: `embeddings` is not a floating array, or `t` not a Python number.
        ValueError: `embeddings` is not a matrix or has fewer than two rows, or `t` is not positive and finite.

    Source:
        Wang and Isola 2020, as in `alignment`, section 4.2.

    Example:
        >>> import jax.numpy as jnp
        >>> print(f"{uniformity(jnp.array([[5.0, 0.0], [-1.0, 0.0]])):.3f}")  # one pair, squared distance 4
        -8.000
    """
    _check_two_rows("embeddings", embeddings)
    return _uniformity(jnp.asarray(embeddings), t=_check_positive("t", t))


@jax.jit
def _feature_spread(features: Float[Array, "count dim"]) -> Float[Array, ""]:
    return jnp.mean(jnp.std(features.astype(compute_dtype(features)), axis=0, ddof=1))


@jax.jit
def _mean_cosine(embeddings: Float[Array, "count dim"]) -> Float[Array, ""]:
    units = l2_normalize(embeddings)
    count = units.shape[0]
    total = jnp.sum(units, axis=0)
    return (jnp.sum(total * total) - jnp.sum(units * units)) / (count * (count - 1))


@functools.partial(jax.jit, static_argnames=("alpha",))
def _alignment(left: Float[Array, "batch dim"], right: Float[Array, "batch dim"], *, alpha: float) -> Float[Array, ""]:
    squared = jnp.sum((l2_normalize(left) - l2_normalize(right)) ** 2, axis=1)
    return jnp.mean(squared ** (alpha / 2))


@functools.partial(jax.jit, static_argnames=("t",))
def _uniformity(embeddings: Float[Array, "count dim"], *, t: float) -> Float[Array, ""]:
    units = l2_normalize(embeddings)
    count = units.shape[0]
    squared_lengths = jnp.sum(units * units, axis=1)  # 0 for a zero row, 1 for every other
    products = jnp.matmul(units, units.T, precision=jax.lax.Precision.HIGHEST)
    squared = squared_lengths[:, None] + squared_lengths[None] - 2 * products
    exponents = jnp.where(jnp.eye(count, dtype=bool), -jnp.inf, -t * squared)
    return jax.nn.logsumexp(exponents) - math.log(count * (count - 1))


def _check_two_rows(name: str, x: Float[FloatArray, "count dim"]) -> None:
    check_matrix(name, x, "[count, dim]")
    if x.shape[0] < 2:
        raise ValueError(
            error_text(
                name,
                expected="at least two rows",
                found=f"shape {x.shape}",
                next_step="it compares different inputs: encode more than one.",
            )
        )


def _check_positive(name: str, x: object) -> float:
    value = check_python_number(name, x, f"pass a constant such as {name}=2; it is not traced.")
    if not 0 < value < math.inf:
        raise ValueError(
            error_text(name, expected="a positive finite number", found=value, next_step="2 is the usual choice.")
        )
    return float(value)
