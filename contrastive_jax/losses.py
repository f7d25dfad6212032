"""Contrastive losses of two matched sets of embeddings."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Real

from contrastive_jax._validation import FloatArray, as_temperature, check_pair, compute_dtype
from contrastive_jax.similarity import cosine_similarity

PAIRED_NORM_FLOOR = 1e-6


def paired_contrastive(
    left: Float[FloatArray, "batch dim"],
    right: Float[FloatArray, "batch dim"],
    temperature: int | float | Real[ArrayLike, ""] = 0.2,
) -> Float[Array, ""]:
    """Cross-entropy of finding each row's partner on the other side, averaged over both directions.

    Row i of `left` and row i of `right` are one pair. The scores are cosine similarities divided by the
    temperature. Read along a row they are the logits with which a left row chooses among all right rows; read
    down a column, those with which a right row chooses among all left rows. Guessing costs log(batch); a
    batch of one pair costs 0. Two pairs that are copies of one another still count as each other's negatives.

    Rows shorter than 1e-6 are divided by 1e-6, see `l2_normalize`. A NaN in either input makes the loss NaN.

    Args:
        left: One embedding per pair, any length, shape [batch, dim].
        right: The partners in the same order; shape and dtype of `left`.
        temperature: Divides the similarities. Positive number or 0-d array; it may be traced, has a gradient,
            and a new value does not compile anew. A 0-d JAX array outside `jax.jit` is read back to check its
            sign, which waits for the device; a Python number costs nothing.

    Returns:
        The loss in nats, shape []; float64 for float64 input, float32 for every other dtype.

    Raises:
        TypeError: An input is not a floating array, the dtypes differ, or the temperature is not one real
            number.
        ValueError: An input is empty or not a matrix, the shapes differ, or the temperature is not positive
            and finite.

    Source:
        The symmetric objective of "Learning Transferable Visual Models From Natural Language Supervision"
        (Radford et al. 2021, figure 3), with a temperature that divides; each direction is InfoNCE, equation
        4 of van den Oord et al. 2018.

    Example:
        >>> import jax.numpy as jnp
        >>> print(f"{paired_contrastive(jnp.eye(2), jnp.eye(2), temperature=1.0):.4f}")  # log(1 + 1/e)
        0.3133
    """
    check_pair("left", left, "right", right)
    # Converted out here, or a NumPy and a JAX argument of one shape would each have a compilation of its own.
    return _paired_contrastive(jnp.asarray(left), jnp.asarray(right), as_temperature(temperature, compute_dtype(left)))


@jax.jit
def _paired_contrastive(
    left: Float[Array, "batch dim"], right: Float[Array, "batch dim"], temperature: Float[Array, ""]
) -> Float[Array, ""]:
    scores = cosine_similarity(left, right, norm_floor=PAIRED_NORM_FLOOR) / temperature
    return 0.5 * (_diagonal_cross_entropy(scores, axis=1) + _diagonal_cross_entropy(scores, axis=0))


def _diagonal_cross_entropy(scores: Float[Array, "batch batch"], axis: int) -> Float[Array, ""]:
    """Mean cost of the diagonal entries, each among the scores that share its line along `axis`.

    log_softmax subtracts the largest score before the exponential and the positive before the logarithm, so
    that neither overflows and a loss near zero keeps its digits.
    """
    return -jnp.mean(jnp.diagonal(jax.nn.log_softmax(scores, axis=axis)))
