"""Wrong ways to write `contrastive_logits` and `clip_loss`, each one mistake away. `logit_scale` is the log scale."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contrastive_jax.exercises.catalogue.parts import (
    LOG_100,
    Loss,
    Number,
    Rows,
    Scores,
    both_directions,
    capped_scale,
    cosines,
    costs,
    divided_by_length,
    plain_exponentials,
    softmax_then_log,
)


def table_of_dot_products(image_features: Rows, text_features: Rows, logit_scale: Number) -> Scores:
    """Features keep their lengths: the table holds dot products, not cosines."""
    return capped_scale(logit_scale) * (jnp.asarray(image_features) @ jnp.asarray(text_features).T)


def table_without_exp(image_features: Rows, text_features: Rows, logit_scale: Number) -> Scores:
    """The log scale itself multiplies the cosines: 0 wipes the table out, and a negative one turns it round."""
    return cosines(image_features, text_features) * logit_scale


def table_divided(image_features: Rows, text_features: Rows, logit_scale: Number) -> Scores:
    """The cosines are divided by the scale: a temperature divides, a scale multiplies."""
    return cosines(image_features, text_features) / capped_scale(logit_scale)


def table_without_cap(image_features: Rows, text_features: Rows, logit_scale: Number) -> Scores:
    """Nothing holds the scale at 100: a large log scale overflows the table."""
    return jnp.exp(logit_scale) * cosines(image_features, text_features)


def table_held_at_scale_one(image_features: Rows, text_features: Rows, logit_scale: Number) -> Scores:
    """The log scale is also held at 0 or above: temperatures over 1 are lost."""
    return jnp.exp(jnp.clip(logit_scale, 0.0, LOG_100)) * cosines(image_features, text_features)


def table_of_texts(image_features: Rows, text_features: Rows, logit_scale: Number) -> Scores:
    """Rows are texts and columns images: the transpose of what was asked for."""
    return capped_scale(logit_scale) * cosines(text_features, image_features)


def table_capped_after_exp(image_features: Rows, text_features: Rows, logit_scale: Number) -> Scores:
    """The scale is capped after the exponential: the value holds, but where exp overflows the gradient is 0 * inf."""
    return jnp.minimum(jnp.exp(jnp.asarray(logit_scale)), 100.0) * cosines(image_features, text_features)


def table_with_half_a_slope_at_the_cap(image_features: Rows, text_features: Rows, logit_scale: Number) -> Scores:
    """`minimum` and `clip` share the slope between two equal numbers: at the cap the log scale feels half of it."""
    return jnp.exp(jnp.minimum(jnp.asarray(logit_scale), LOG_100)) * cosines(image_features, text_features)


def table_with_no_slope_at_the_cap(image_features: Rows, text_features: Rows, logit_scale: Number) -> Scores:
    """`<` keeps no slope at the cap itself: a log scale that was put onto the cap never comes down again."""
    return jnp.exp(jnp.where(logit_scale < LOG_100, logit_scale, LOG_100)) * cosines(image_features, text_features)


def features_not_normalised(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """Features keep their lengths: these act as further scales, one for each row, that no cap holds."""
    return both_directions(table_of_dot_products(image_features, text_features, logit_scale))


def images_choose_only(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """Images find their texts, but texts are never asked to find their images: one direction of the two."""
    scores = _scores(image_features, text_features, logit_scale)
    return jnp.mean(costs(scores, jnp.arange(len(scores))))


def texts_choose_only(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """Texts find their images, but images are never asked to find their texts: one direction of the two."""
    return images_choose_only(text_features, image_features, logit_scale)


def directions_not_averaged(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The costs of the two directions are added and not halved: twice the loss."""
    return 2 * both_directions(_scores(image_features, text_features, logit_scale))


def minus_forgotten(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The minus is missing: log-probabilities are below zero, costs above."""
    return -both_directions(_scores(image_features, text_features, logit_scale))


def all_cells_averaged(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The mean runs over all cells of log_softmax, not over its diagonal: wrong candidates count as answers too."""
    scores = _scores(image_features, text_features, logit_scale)
    return -jnp.mean(jax.nn.log_softmax(scores, axis=1) + jax.nn.log_softmax(scores, axis=0)) / 2


def one_choice_for_all(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """One softmax over the whole table: every pair competes with all cells, not with its own row and column."""
    scores = _scores(image_features, text_features, logit_scale)
    return jax.nn.logsumexp(scores) - jnp.mean(jnp.diagonal(scores))


def own_pair_no_candidate(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The own pair is missing from the sum below the fraction: the loss falls below 0 and never stops falling."""
    scores = _scores(image_features, text_features, logit_scale)
    others = jnp.where(jnp.eye(len(scores), dtype=bool), -jnp.inf, scores)
    totals = jax.nn.logsumexp(others, axis=1) + jax.nn.logsumexp(others, axis=0)
    return jnp.mean(totals / 2 - jnp.diagonal(scores))


def scale_without_exp(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The log scale itself multiplies the cosines: 2.66 in place of 14.3 at the usual start, and it may go negative."""
    return both_directions(table_without_exp(image_features, text_features, logit_scale))


def scale_as_temperature(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The log scale divides the cosines like a temperature: raising it softens the choice, and zero breaks it."""
    return both_directions(cosines(image_features, text_features) / logit_scale)


def scale_inverted(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The scale divides the cosines, where it should multiply them: what should sharpen the choice makes it softer."""
    return both_directions(table_divided(image_features, text_features, logit_scale))


def scale_detached(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The right value, but the log scale passes no gradient: it stays where it started."""
    return both_directions(_scores(image_features, text_features, jax.lax.stop_gradient(jnp.asarray(logit_scale))))


def texts_detached(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The right value, but no gradient reaches the texts: only the image encoder would learn."""
    return both_directions(_scores(image_features, jax.lax.stop_gradient(jnp.asarray(text_features)), logit_scale))


def images_detached(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The right value, but no gradient reaches the images: only the text encoder would learn."""
    return both_directions(_scores(jax.lax.stop_gradient(jnp.asarray(image_features)), text_features, logit_scale))


def scale_without_cap(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The scale may exceed 100: one wrong pair then costs without bound, and exp overflows in the end."""
    return both_directions(table_without_cap(image_features, text_features, logit_scale))


def scale_capped_after_exp(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The scale is capped after the exponential: the loss is right, but where exp overflows its gradient is NaN."""
    return both_directions(table_capped_after_exp(image_features, text_features, logit_scale))


def softmax_before_the_logarithm(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The logarithm comes after the softmax: in float32 a share of exp(-100) is 0, and log 0 is infinite."""
    return softmax_then_log(_scores(image_features, text_features, logit_scale))


def exponentials_of_the_scores(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """No largest score is subtracted before the exponential: in float32 exp(100) is infinite."""
    return plain_exponentials(_scores(image_features, text_features, logit_scale))


def half_a_slope_at_the_cap(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """`minimum` shares the slope between two equal numbers: at the cap itself the log scale feels only half of it."""
    return both_directions(table_with_half_a_slope_at_the_cap(image_features, text_features, logit_scale))


def no_slope_at_the_cap(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """The slope is gone at the cap itself: a log scale that was put onto the cap never comes down again."""
    return both_directions(table_with_no_slope_at_the_cap(image_features, text_features, logit_scale))


def dead_feature_is_not_a_number(image_features: Rows, text_features: Rows, logit_scale: Number) -> Loss:
    """Features are divided by their plain lengths: a feature of zeros turns the loss of the batch into NaN."""
    table = divided_by_length(image_features) @ divided_by_length(text_features).T
    return both_directions(capped_scale(logit_scale) * table)


def _scores(left: Rows, right: Rows, logit_scale: Number) -> Float[Array, "n n"]:
    return capped_scale(logit_scale) * cosines(left, right)
