"""Wrong losses, each one mistake away from `nt_xent_loss` or `clip_loss`, and the smallest case that shows it.

The docstring of a variant says what it means to be wrong in that way. All take two sides and the temperature, or
the log scale, as the right losses do, but check nothing.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Real

from contrastive_jax._validation import FloatArray
from contrastive_jax.similarity import l2_normalize

Rows = Float[FloatArray, "batch dim"]
Number = int | float | Real[FloatArray, ""]
Scores = Float[Array, "n n"]
Loss = Float[Array, ""]


class Case(NamedTuple):
    """An input, and what is measured on it: the loss, or else one entry of its gradient by the second side."""

    first: np.ndarray
    second: np.ndarray
    parameter: float
    right: float
    wrong: float
    gradient_entry: tuple[int, int] | None = None

    def measure(self, loss: Callable) -> float:
        """What `loss` gives on this input, in JAX's default precision."""
        first, second = jnp.asarray(self.first, float), jnp.asarray(self.second, float)
        if self.gradient_entry is None:
            return float(loss(first, second, self.parameter))
        return float(jax.grad(loss, argnums=1)(first, second, self.parameter)[self.gradient_entry])


class Variant(NamedTuple):
    loss: Callable
    case: Case

    @property
    def name(self) -> str:
        return self.loss.__name__

    @property
    def explanation(self) -> str:
        return self.loss.__doc__ or ""


def lengths_kept(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Rows are not divided by their lengths: a long row scores high with everything, and growing lowers the loss."""
    z = jnp.concatenate([view1, view2])
    return jnp.mean(_costs(_without_self(z @ z.T / temperature), _partners(z)))


def self_among_candidates(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Each row is its own candidate, with cosine 1: no partner can beat it, and the loss never nears zero."""
    z = _unit_stack(view1, view2)
    return jnp.mean(_costs(z @ z.T / temperature, _partners(z)))


def other_view_only(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Rows of the anchor's own view are left out as negatives: that is the paired loss, as in CLIP, not NT-Xent."""
    scores = l2_normalize(view1) @ l2_normalize(view2).T / temperature
    return _both_directions(scores)


def neighbour_as_partner(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Rows 0 and 1, 2 and 3, ... count as partners: right for interleaved views, wrong for [view1; view2]."""
    z = _unit_stack(view1, view2)
    return jnp.mean(_costs(_without_self(z @ z.T / temperature), jnp.arange(len(z)) ^ 1))


def first_view_chooses(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Only rows of view 1 are anchors; those of view 2 are never asked to find their partners."""
    z = _unit_stack(view1, view2)
    return jnp.mean(_costs(_without_self(z @ z.T / temperature), _partners(z))[: len(view1)])


def directions_added(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The means of the two views are added, not averaged: twice the loss, and twice the step at one learning rate."""
    z = _unit_stack(view1, view2)
    costs = _costs(_without_self(z @ z.T / temperature), _partners(z))
    return jnp.mean(costs[: len(view1)]) + jnp.mean(costs[len(view1) :])


def temperature_multiplies(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """Similarities are multiplied by the temperature, so that a smaller one softens the choice, not sharpens it."""
    z = _unit_stack(view1, view2)
    return jnp.mean(_costs(_without_self(z @ z.T * temperature), _partners(z)))


def candidates_detached(view1: Rows, view2: Rows, temperature: Number = 0.5) -> Loss:
    """The right value, but candidates pass no gradient: rows are pulled as anchors only, at half the strength or so."""
    z = _unit_stack(view1, view2)
    scores = z @ jax.lax.stop_gradient(z).T / temperature
    return jnp.mean(_costs(_without_self(scores), _partners(z)))


def features_not_normalised(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """Features keep their lengths: these act as further scales, one for each row, that no cap holds."""
    scores = jnp.asarray(image_features) @ jnp.asarray(text_features).T
    return _both_directions(_capped_scale(logit_scale) * scores)


def images_choose_only(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """Images find their texts, but texts are never asked to find their images: one direction of the two."""
    scores = _capped_scale(logit_scale) * _cosines(image_features, text_features)
    return jnp.mean(_costs(scores, jnp.arange(len(scores))))


def scale_without_exp(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The log scale itself multiplies the cosines: 2.66 in place of 14.3 at the usual start, and it may go negative."""
    return _both_directions(_cosines(image_features, text_features) * logit_scale)


def scale_as_temperature(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The log scale divides the cosines like a temperature: raising it softens the choice, and zero breaks it."""
    return _both_directions(_cosines(image_features, text_features) / logit_scale)


def scale_without_cap(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The scale may exceed 100: one wrong pair then costs without bound, and exp overflows in the end."""
    return _both_directions(jnp.exp(logit_scale) * _cosines(image_features, text_features))


def _unit_stack(view1: Rows, view2: Rows) -> Float[Array, "two_batch dim"]:
    return l2_normalize(jnp.concatenate([view1, view2]))


def _without_self(scores: Scores) -> Scores:
    return jnp.where(jnp.eye(len(scores), dtype=bool), -jnp.inf, scores)


def _partners(z: Float[Array, "two_batch dim"]) -> Int[Array, " two_batch"]:
    return (jnp.arange(len(z)) + len(z) // 2) % len(z)


def _costs(scores: Scores, targets: Int[Array, " n"]) -> Float[Array, " n"]:
    """Cross-entropy of each row's target."""
    return -jax.nn.log_softmax(scores, axis=1)[jnp.arange(len(scores)), targets]


def _cosines(left: Rows, right: Rows) -> Scores:
    return l2_normalize(left) @ l2_normalize(right).T


def _capped_scale(logit_scale: Number) -> Float[Array, ""]:
    return jnp.exp(jnp.minimum(logit_scale, math.log(100)))


def _both_directions(scores: Scores) -> Loss:
    own = jnp.arange(len(scores))
    return (jnp.mean(_costs(scores, own)) + jnp.mean(_costs(scores.T, own))) / 2


# Two orthogonal pairs, and two pairs of which both first sides, or both second sides, are alike.
EYE = np.eye(2)
ALIKE = np.array([[1.0, 0.0], [1.0, 0.0]])
LOG_2 = math.log(2)
_ORTHOGONAL = math.log1p(2 / math.e)  # their NT-Xent at temperature 1
_PAIRED = math.log1p(1 / math.e)  # and their paired loss
_TWO_ALIKE = math.log(2 + 1 / math.e)  # one positive and one negative of cosine 1, one negative of cosine 0

NT_XENT_VARIANTS = (
    Variant(lengths_kept, Case(2 * EYE, 2 * EYE, 1.0, right=_ORTHOGONAL, wrong=math.log1p(2 * math.exp(-4)))),
    Variant(self_among_candidates, Case(EYE[:1], EYE[:1], 1.0, right=0.0, wrong=LOG_2)),
    Variant(other_view_only, Case(EYE, EYE, 1.0, right=_ORTHOGONAL, wrong=_PAIRED)),
    Variant(neighbour_as_partner, Case(EYE, EYE, 1.0, right=_ORTHOGONAL, wrong=1 + _ORTHOGONAL)),
    Variant(
        first_view_chooses,
        Case(ALIKE, EYE, 1.0, right=(3 * _TWO_ALIKE + 1 + math.log(3)) / 4, wrong=_TWO_ALIKE + 0.5),
    ),
    Variant(directions_added, Case(EYE, EYE, 1.0, right=_ORTHOGONAL, wrong=2 * _ORTHOGONAL)),
    Variant(
        temperature_multiplies,
        Case(EYE, EYE, 0.5, right=math.log1p(2 * math.exp(-2)), wrong=math.log1p(2 * math.exp(-0.5))),
    ),
    # Each of two negatives has a share of 1 / (e + 2) of the choice, as a candidate and as an anchor.
    Variant(
        candidates_detached,
        Case(EYE, EYE, 1.0, right=1 / (math.e + 2), wrong=0.5 / (math.e + 2), gradient_entry=(0, 1)),
    ),
)

CLIP_VARIANTS = (
    Variant(features_not_normalised, Case(2 * EYE, EYE, 0.0, right=_PAIRED, wrong=math.log1p(math.exp(-2)))),
    Variant(
        images_choose_only, Case(EYE, ALIKE, 0.0, right=(2 * LOG_2 + _PAIRED + math.log1p(math.e)) / 4, wrong=LOG_2)
    ),
    Variant(scale_without_exp, Case(EYE, EYE, LOG_2, right=math.log1p(math.exp(-2)), wrong=math.log1p(0.5))),
    Variant(
        scale_as_temperature,
        Case(EYE, EYE, LOG_2, right=math.log1p(math.exp(-2)), wrong=math.log1p(math.exp(-1 / LOG_2))),
    ),
    # Partners exchanged: the whole scale is lost.
    Variant(scale_without_cap, Case(EYE, EYE[::-1], math.log(1000), right=100.0, wrong=1000.0)),
)
