"""What a batch of scores says about retrieval and its hardest candidates, with ties and NaN defined."""

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from contrastive_jax._validation import FloatArray, check_matrix, check_top_k, compute_dtype, error_text

TIES = ("strict", "expected")


class RetrievalAccuracy(NamedTuple):
    """Share of queries that find their positive, in [0, 1], one for each direction."""

    left_to_right: Float[Array, ""]
    right_to_left: Float[Array, ""]


def retrieval_accuracy(
    scores: Float[FloatArray, "batch batch"], *, k: int = 1, ties: Literal["strict", "expected"] = "strict"
) -> RetrievalAccuracy:
    """How often the positive is among the k best candidates, from left to right and from right to left.

    Rows are left queries and columns right candidates; from right to left the columns are the queries. The
    positives stand on the diagonal. With g candidates strictly above the positive and t others equal to it,

    - `ties="strict"` counts a hit only if the positive is among the best k however ties fall: g + t < k;
    - `ties="expected"` gives the chance of a hit if ties fall at random: clip(k - g, 0, t + 1) / (t + 1).

    A query with a NaN among its scores is a miss, whatever k is. The result falls as the batch grows: state
    the number of candidates with it.

    Args:
        scores: Similarities or logits, shape [batch, batch]; only their order matters.
        k: Number of candidates looked at, 1 to batch. Static: a new value compiles anew.
        ties: One of "strict", "expected". Static.

    Returns:
        Both directions, each of shape []; float64 for float64 scores, else float32.

    Raises:
        TypeError: `scores` is not a floating array, or `k` not a Python int.
        ValueError: `scores` is empty or not square, `k` out of range, or `ties` unknown.

    Example:
        >>> import jax.numpy as jnp
        >>> result = retrieval_accuracy(jnp.array([[0.9, 0.1], [0.8, 0.8]]))
        >>> print(f"{result.left_to_right:.2f} {result.right_to_left:.2f}")  # row 1 is a tie, no column is
        0.50 1.00
    """
    check_matrix("scores", scores, "[batch, batch]")
    if scores.shape[0] != scores.shape[1]:
        raise ValueError(
            error_text(
                "scores",
                expected="as many rows as columns, the positives on the diagonal",
                found=f"shape {scores.shape}",
                next_step="score every left row against the partners of all left rows.",
            )
        )
    if ties not in TIES:
        raise ValueError(
            error_text("ties", expected=f"one of {TIES}", found=repr(ties), next_step='"strict" is the usual choice.')
        )
    return _retrieval_accuracy(jnp.asarray(scores), k=check_top_k(k, scores.shape[0]), ties=ties)


def hardest_negatives(
    scores: Float[FloatArray, "n m"], negatives: Bool[Array | np.ndarray, "n m"]
) -> Float[Array, " n"]:
    """Each row's highest score among its negatives: the wrong candidate that comes closest.

    Args:
        scores: Similarities or logits, rows anchors and columns candidates, shape [n, m].
        negatives: True where the candidate is wrong for the anchor. For a left-by-right matrix with its positives
            on the diagonal that is `~jnp.eye(n, dtype=bool)`; for two stacked views of B sources, where a row is
            no candidate for itself either, `~jnp.tile(jnp.eye(B, dtype=bool), (2, 2))`.

    Returns:
        Shape [n]; -inf for a row without negatives, NaN where a negative's score is NaN; float64 for float64
        scores, else float32.

    Raises:
        TypeError: `scores` is not a floating array, or `negatives` not a boolean one.
        ValueError: `scores` is empty or not a matrix, or the shapes differ.

    Example:
        >>> import jax.numpy as jnp
        >>> print(hardest_negatives(jnp.array([[0.9, 0.1], [0.8, 0.7]]), ~jnp.eye(2, dtype=bool)))
        [0.1 0.8]
    """
    check_matrix("scores", scores, "[n, m]")
    if str(getattr(negatives, "dtype", None)) != "bool":
        raise TypeError(
            error_text(
                "negatives",
                expected="a boolean array",
                found=getattr(negatives, "dtype", type(negatives).__name__),
                next_step="compare, for example labels[:, None] != labels[None].",
            )
        )
    if negatives.shape != scores.shape:
        raise ValueError(
            error_text(
                "negatives",
                expected=f"the shape of scores, {scores.shape}",
                found=negatives.shape,
                next_step="say of every candidate of every anchor whether it is wrong.",
            )
        )
    return _hardest_negatives(jnp.asarray(scores), jnp.asarray(negatives))


@jax.jit
def _hardest_negatives(scores: Float[Array, "n m"], negatives: Bool[Array, "n m"]) -> Float[Array, " n"]:
    return jnp.max(jnp.where(negatives, scores.astype(compute_dtype(scores)), -jnp.inf), axis=1)


@functools.partial(jax.jit, static_argnames=("k", "ties"))
def _retrieval_accuracy(scores: Float[Array, "batch batch"], *, k: int, ties: str) -> RetrievalAccuracy:
    return RetrievalAccuracy(
        left_to_right=jnp.mean(_credit(scores, k, ties)), right_to_left=jnp.mean(_credit(scores.T, k, ties))
    )


def _credit(scores: Float[Array, "batch batch"], k: int, ties: str) -> Float[Array, " batch"]:
    """Credit of each row's query, between 0 and 1."""
    positive = jnp.diagonal(scores)[:, None]
    above = jnp.sum(scores > positive, axis=1)
    level = jnp.sum(scores == positive, axis=1)  # the positive and all that are tied with it
    if ties == "strict":
        credit = (above + level <= k).astype(compute_dtype(scores))
    else:
        chances = jnp.minimum(jnp.maximum(k - above, 0), level).astype(compute_dtype(scores))
        credit = chances / level.astype(compute_dtype(scores))
    # Every comparison with NaN is false: a NaN positive would otherwise have nothing above it and be a hit.
    return jnp.where(jnp.any(jnp.isnan(scores), axis=1), 0.0, credit)
