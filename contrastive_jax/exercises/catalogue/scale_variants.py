"""Wrong ways to write `to_log_scale` and `scale_gradient`."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from contrastive_jax.exercises.catalogue.parts import LOG_100, Loss, Number, Rows, Scores, capped_scale, cosines


def log_of_the_temperature(temperature: float) -> float:
    """The sign is turned round: this is the logarithm of the temperature, not of its inverse."""
    return math.log(temperature)


def temperature_passed_on(temperature: float) -> float:
    """The temperature itself: a log scale of 0.07 is a temperature of nearly 1, and everything is too soft."""
    return temperature


def scale_not_its_logarithm(temperature: float) -> float:
    """The scale itself: its exponential is far above the cap for any usual temperature."""
    return 1 / temperature


def exponential_for_logarithm(temperature: float) -> float:
    """The exponential of the scale in place of its logarithm: one undoes the other."""
    return math.exp(1 / temperature)


def exponential_of_the_temperature(temperature: float) -> float:
    """The exponential of the temperature: neither inverted nor a logarithm."""
    return math.exp(temperature)


def logarithm_to_base_ten(temperature: float) -> float:
    """A logarithm to base 10; exp undoes only the natural one."""
    return -math.log10(temperature)


def logarithm_to_base_two(temperature: float) -> float:
    """A logarithm to base 2; exp undoes only the natural one."""
    return -math.log2(temperature)


def log_scale_capped(temperature: float) -> float:
    """The log scale is capped here too: the loss has its own cap, and temperatures below 0.01 are lost."""
    return min(-math.log(temperature), LOG_100)


def slope_by_the_scale(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    """This is the slope by the scale: it was multiplied by the cosines, where the log scale needs the scores."""
    return _slope(images, texts, log_scale) / capped_scale(log_scale)


def images_ask_only(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    """The direction of the images alone: the texts' softmax and their half of the mean are missing."""
    scores = _scores(images, texts, log_scale)
    own = jnp.eye(len(scores), dtype=scores.dtype)
    return _below_the_cap(log_scale, jnp.sum((jax.nn.softmax(scores, axis=1) - own) * scores) / len(scores))


def texts_ask_only(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    """The direction of the texts alone: the images' softmax and their half of the mean are missing."""
    return images_ask_only(texts, images, log_scale)


def sum_not_divided(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    """The division by 2B is missing: that is the slope of a sum of costs, not of their mean."""
    return 2 * len(images) * _slope(images, texts, log_scale)


def divided_by_b(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    """The division is by B: there are 2B questions, those of the images and those of the texts."""
    return 2 * _slope(images, texts, log_scale)


def mean_over_the_table(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    """A mean over all scores: one log scale moves them all, so their shares must be added."""
    return _slope(images, texts, log_scale) / len(images) ** 2


def sign_turned(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    """The sign is turned round: own score minus expected score."""
    return -_slope(images, texts, log_scale)


def diagonal_subtracted_once(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    """The own cell is subtracted once; the images' and the texts' questions each subtract it."""
    scores = _scores(images, texts, log_scale)
    return _slope(images, texts, log_scale) + _below_the_cap(log_scale, jnp.mean(jnp.diagonal(scores)) / 2)


def slope_above_the_cap(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    """The scores are capped, but the slope above the cap is not zero: there the scores no longer move."""
    return _slope(images, texts, jnp.where(log_scale > LOG_100, LOG_100, log_scale))


def nothing_capped(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    """Nothing is capped: neither the scores nor the slope know of the limit."""
    scores = jnp.exp(jnp.asarray(log_scale)) * cosines(images, texts)
    return _surplus(scores)


def slope_lost_at_the_cap(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    """The slope is zero exactly at the cap as well: a log scale that stands there could never come down."""
    return jnp.where(log_scale >= LOG_100, 0.0, _slope(images, texts, log_scale))


def _scores(images: Rows, texts: Rows, log_scale: Number) -> Scores:
    return capped_scale(log_scale) * cosines(images, texts)


def _surplus(scores: Scores) -> Float[Array, ""]:
    """Expected score minus own score, averaged over all questions."""
    own = jnp.eye(len(scores), dtype=scores.dtype)
    by_score = jax.nn.softmax(scores, axis=1) + jax.nn.softmax(scores, axis=0) - 2 * own
    return jnp.sum(by_score * scores) / (2 * len(scores))


def _slope(images: Rows, texts: Rows, log_scale: Number) -> Loss:
    return _below_the_cap(log_scale, _surplus(_scores(images, texts, log_scale)))


def _below_the_cap(log_scale: Number, slope: Loss) -> Loss:
    return jnp.where(log_scale > LOG_100, 0.0, slope)
