"""What the wrong variants are put together from, and the small inputs on which they show."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Real

from contrastive_jax._validation import FloatArray
from contrastive_jax.similarity import l2_normalize

Rows = Float[FloatArray, "batch dim"]
Number = int | float | Real[FloatArray, ""]
Scores = Float[FloatArray, "n n"]
Loss = Float[Array, ""]
IntegerArray = Int[Array | np.ndarray, " n"]

LOG_2 = math.log(2)
LOG_100 = math.log(100)

# Two orthogonal rows, the same in the other order, and two rows that are alike.
EYE = np.eye(2)
SWAPPED = EYE[::-1].copy()
ALIKE = np.array([[1.0, 0.0], [1.0, 0.0]])

# Three pairs in general position: no closed form, but no two mistakes look alike.
FIRST = np.array([[1.2, -0.4, 0.3], [0.2, 0.9, -0.7], [-0.5, 0.6, 1.1]])
SECOND = np.array([[0.9, 0.2, -0.6], [-0.3, 1.5, 0.1], [0.4, -0.2, 0.7]])

# Two pairs of which one row is zero.
DEAD = np.array([[0.0, 0.0], [0.0, 1.0]])

# Nine pairs of five entries, so that a table of small sizes cannot pass for a loss.
_PLACES = np.arange(1.0, 46.0).reshape(9, 5)
NINE, NINE_OTHERS = np.sin(1.7 * _PLACES), np.sin(1.7 * _PLACES) + 0.6 * np.cos(2.3 * _PLACES)

# A judged function can reach these, and must not be able to change what it is held to.
for _each in (EYE, SWAPPED, ALIKE, FIRST, SECOND, DEAD, NINE, NINE_OTHERS):
    _each.flags.writeable = False


def unit_stack(view1: Rows, view2: Rows) -> Float[Array, "two_batch dim"]:
    return l2_normalize(jnp.concatenate([view1, view2]))


def without_self(scores: Scores) -> Scores:
    return jnp.where(jnp.eye(len(scores), dtype=bool), -jnp.inf, scores)


def partners(stacked: Float[FloatArray, "two_batch _"]) -> Int[Array, " two_batch"]:
    return (jnp.arange(len(stacked)) + len(stacked) // 2) % len(stacked)


def costs(scores: Float[FloatArray, "n m"], targets: Int[Array, " n"]) -> Float[Array, " n"]:
    """Cross-entropy of each row's target."""
    return -jax.nn.log_softmax(scores, axis=1)[jnp.arange(len(scores)), targets]


def cosines(left: Rows, right: Rows) -> Scores:
    return l2_normalize(left) @ l2_normalize(right).T


def both_directions(scores: Scores) -> Loss:
    own = jnp.arange(len(scores))
    return (jnp.mean(costs(scores, own)) + jnp.mean(costs(scores.T, own))) / 2


def softmax_then_log(scores: Scores) -> Loss:
    """Both directions, with the logarithm of a share that may have become 0."""
    shares = [jnp.diagonal(jax.nn.softmax(scores, axis=axis)) for axis in (0, 1)]
    return -jnp.mean(jnp.log(shares[0]) + jnp.log(shares[1])) / 2


def plain_exponentials(scores: Scores) -> Loss:
    """Both directions, with exponentials that may overflow."""
    terms = jnp.exp(scores)
    own = jnp.diagonal(terms)
    return -jnp.mean(jnp.log(own / jnp.sum(terms, axis=1)) + jnp.log(own / jnp.sum(terms, axis=0))) / 2


def capped_scale(logit_scale: Number) -> Float[Array, ""]:
    return jnp.exp(jnp.where(logit_scale > LOG_100, LOG_100, logit_scale))


def divided_by_length(rows: Rows) -> Rows:
    """0 / 0 for a zero row."""
    return rows / jnp.sqrt(jnp.sum(rows * rows, axis=1, keepdims=True))


def divided_by_floored_length(rows: Rows) -> Rows:
    """Finite for a zero row, but the slope of sqrt at 0 is infinite, and the maximum does not stop it: 0 * inf."""
    return rows / jnp.maximum(jnp.sqrt(jnp.sum(rows * rows, axis=1, keepdims=True)), 1e-12)
