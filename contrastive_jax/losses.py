"""Contrastive losses of two matched sets of embeddings."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Real

from contrastive_jax._method import use_tiles
from contrastive_jax._scalars import as_logit_scale, as_temperature
from contrastive_jax._validation import FloatArray, check_pair, compute_dtype
from contrastive_jax.similarity import cosine_similarity, l2_normalize
from contrastive_jax.tiled import tiled_paired

PAIRED_NORM_FLOOR = 1e-6
MAX_SCALE = 100.0
MAX_LOGIT_SCALE = math.log(MAX_SCALE)


def paired_contrastive(
    left: Float[FloatArray, "batch dim"],
    right: Float[FloatArray, "batch dim"],
    temperature: int | float | Real[ArrayLike, ""] = 0.2,
    *,
    method: str = "auto",
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
        method: "dense" holds all scores in memory, "tiled" a tile of them at a time, with the same values and
            gradients up to rounding; "auto" takes tiles for more than 1024 pairs. Static.

    Returns:
        The loss in nats, shape []; float64 for float64 input, float32 for every other dtype.

    Raises:
        TypeError: An input is not a floating array, the dtypes differ, or the temperature is not one real
            number.
        ValueError: An input is empty or not a matrix, the shapes differ, the temperature is not positive and
            finite, or there is no such method.

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
    loss = _paired_contrastive_tiled if use_tiles(method, len(left)) else _paired_contrastive
    return loss(jnp.asarray(left), jnp.asarray(right), as_temperature(temperature, compute_dtype(left)))


def contrastive_logits(
    image_features: Float[FloatArray, "batch dim"],
    text_features: Float[FloatArray, "batch dim"],
    logit_scale: int | float | Real[ArrayLike, ""],
) -> Float[Array, "batch batch"]:
    """Cosines times exp(`logit_scale`): `logit_scale` is the LOG of the inverse temperature, capped at log 100.

    Row i holds the scores of image i with every text, column j those of text j with every image. To score at
    temperature t, pass -log(t).

    The factor never exceeds 100, however large `logit_scale` is, so the result is finite. Its gradient by
    `logit_scale` is that of exp below the cap and at the cap, and zero above. At the cap it counts because a
    training loop that projects its parameter onto the cap after each update leaves it exactly there, and it
    must be able to come back down. A parameter that went above, and is not projected, stays where it is.
    log 100 as the parameter's own dtype rounds it, or as float32 does, is at the cap.

    Rows shorter than 1e-12 are divided by 1e-12, see `l2_normalize`: a zero row scores 0 with everything. A NaN
    makes what depends on it NaN.

    Args:
        image_features: One row per pair, any length, shape [batch, dim].
        text_features: The partners in the same order; shape and dtype of `image_features`.
        logit_scale: Number or 0-d array of any size; it may be traced, and a new value does not compile anew.

    Returns:
        Scores, shape [batch, batch], in the dtype of the features; half precision is computed in float32 and
        rounded once.

    Raises:
        TypeError: An input is not a floating array, the dtypes differ, or `logit_scale` is not one real number.
        ValueError: An input is empty or not a matrix, the shapes differ, or `logit_scale` is a number and NaN.

    Source:
        Radford et al. 2021, figure 3, and section 2.5 for the cap.

    Example:
        >>> import jax.numpy as jnp
        >>> print(contrastive_logits(jnp.eye(2), 3 * jnp.eye(2), logit_scale=9.0))  # above log 100, about 4.6
        [[100.   0.]
         [  0. 100.]]
    """
    check_pair("image_features", image_features, "text_features", text_features)
    scale = as_logit_scale(logit_scale, compute_dtype(image_features))
    return _contrastive_logits(jnp.asarray(image_features), jnp.asarray(text_features), scale)


def clip_loss(
    image_features: Float[FloatArray, "batch dim"],
    text_features: Float[FloatArray, "batch dim"],
    logit_scale: int | float | Real[ArrayLike, ""],
    *,
    method: str = "auto",
) -> Float[Array, ""]:
    """Symmetric cross-entropy of image-text pairs; `logit_scale` is the LOG of the inverse temperature.

    The mean of two costs, in nats: each image chooses its text among all texts, along the rows of
    `contrastive_logits`, and each text its image among all images, down the columns. Cap, gradients, norm floor
    and NaN as said there. Guessing costs log(batch); a batch of one pair costs 0.

    Args:
        image_features: One row per pair, any length, shape [batch, dim].
        text_features: The partners in the same order; shape and dtype of `image_features`.
        logit_scale: Number or 0-d array of any size; it may be traced, and a new value does not compile anew.
        method: "auto", "dense" or "tiled", see `paired_contrastive`.

    Returns:
        The loss, shape [], in the dtype of the features; half precision is computed in float32 and rounded once.

    Raises:
        TypeError: An input is not a floating array, the dtypes differ, or `logit_scale` is not one real number.
        ValueError: An input is empty or not a matrix, the shapes differ, `logit_scale` is a number and NaN, or
            there is no such method.

    Source:
        Radford et al. 2021, figure 3.

    Example:
        >>> import jax.numpy as jnp
        >>> print(f"{clip_loss(jnp.eye(2), jnp.eye(2), logit_scale=jnp.log(2.0)):.4f}")  # log(1 + exp(-2))
        0.1269
    """
    check_pair("image_features", image_features, "text_features", text_features)
    scale = as_logit_scale(logit_scale, compute_dtype(image_features))
    loss = _clip_loss_tiled if use_tiles(method, len(image_features)) else _clip_loss
    return loss(jnp.asarray(image_features), jnp.asarray(text_features), scale)


@jax.jit
def _paired_contrastive(
    left: Float[Array, "batch dim"], right: Float[Array, "batch dim"], temperature: Float[Array, ""]
) -> Float[Array, ""]:
    return _symmetric_cross_entropy(cosine_similarity(left, right, norm_floor=PAIRED_NORM_FLOOR) / temperature)


@jax.jit
def _paired_contrastive_tiled(
    left: Float[Array, "batch dim"], right: Float[Array, "batch dim"], temperature: Float[Array, ""]
) -> Float[Array, ""]:
    units = (l2_normalize(each, norm_floor=PAIRED_NORM_FLOOR) for each in (left, right))
    return tiled_paired(*units, 1 / temperature)


@jax.jit
def _contrastive_logits(
    images: Float[Array, "batch dim"], texts: Float[Array, "batch dim"], logit_scale: Float[Array, ""]
) -> Float[Array, "batch batch"]:
    return scaled_cosines(images, texts, capped_scale(logit_scale, compute_dtype(images))).astype(images.dtype)


@jax.jit
def _clip_loss(
    images: Float[Array, "batch dim"], texts: Float[Array, "batch dim"], logit_scale: Float[Array, ""]
) -> Float[Array, ""]:
    scores = scaled_cosines(images, texts, capped_scale(logit_scale, compute_dtype(images)))
    return _symmetric_cross_entropy(scores).astype(images.dtype)


@jax.jit
def _clip_loss_tiled(
    images: Float[Array, "batch dim"], texts: Float[Array, "batch dim"], logit_scale: Float[Array, ""]
) -> Float[Array, ""]:
    scale = capped_scale(logit_scale, compute_dtype(images))
    return tiled_paired(l2_normalize(images), l2_normalize(texts), scale).astype(images.dtype)


def scaled_cosines(
    left: Float[Array, "n dim"], right: Float[Array, "m dim"], scale: Float[Array, ""]
) -> Float[Array, "n m"]:
    """Cosine similarities times `scale`.

    One side is scaled before the product. Scaled after it, the scores may be recomputed inside the softmax with
    multiplication and subtraction merged into one rounding: a single pair then costs 1e-16 or -1e-16, not 0.
    """
    return jnp.matmul(l2_normalize(left) * scale, l2_normalize(right).T, precision=jax.lax.Precision.HIGHEST)


def capped_scale(logit_scale: Float[Array, ""], dtype: np.dtype) -> Float[Array, ""]:
    """exp(logit_scale), at most 100, with the gradient of exp up to and at the cap and none above.

    jnp.minimum would halve the gradient at the cap, jax.lax.clamp would drop it there.
    """
    at_cap = max(float(np.asarray(MAX_LOGIT_SCALE, each)) for each in (logit_scale.dtype, np.float32))
    logit_scale = logit_scale.astype(dtype)
    # Compared this way round, a NaN is not above the cap and stays.
    scale = jnp.exp(jnp.where(logit_scale > at_cap, MAX_LOGIT_SCALE, logit_scale))
    # A parameter at the cap may be a rounding above log 100, and so may exp: the excess goes, the gradient stays.
    return scale - jax.lax.stop_gradient(jnp.maximum(scale - MAX_SCALE, 0))


def _symmetric_cross_entropy(scores: Float[Array, "batch batch"]) -> Float[Array, ""]:
    return 0.5 * (diagonal_cross_entropy(scores, axis=1) + diagonal_cross_entropy(scores, axis=0))


def diagonal_cross_entropy(scores: Float[Array, "batch batch"], axis: int) -> Float[Array, ""]:
    """Mean cost of the diagonal entries, each among the scores that share its line along `axis`.

    log_softmax subtracts the largest score before the exponential, so that none overflows.
    """
    # Subtracted, not negated: a single pair costs 0.0, not -0.0.
    return 0.0 - jnp.mean(jnp.diagonal(jax.nn.log_softmax(scores, axis=axis)))
