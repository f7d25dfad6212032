"""Losses of two views of the same sources, stacked in one array: all of view 1, then all of view 2."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Real

from contrastive_jax._method import use_tiles
from contrastive_jax._scalars import as_temperature, check_python_number
from contrastive_jax._validation import FloatArray, check_finite, check_pair, check_stacked, compute_dtype
from contrastive_jax.losses import diagonal_cross_entropy, scaled_cosines
from contrastive_jax.similarity import l2_normalize
from contrastive_jax.tiled_stacked import tiled_nt_xent


def nt_xent(
    z: Float[FloatArray, "two_batch dim"],
    temperature: int | float | Real[ArrayLike, ""] = 0.5,
    *,
    method: str = "auto",
) -> Float[Array, ""]:
    """Cross-entropy of finding each row's partner among all other rows of `z` = [view1; view2].

    Stacked layout: B rows of view 1, then the B rows of view 2 in the same order; the partner of row i is row
    (i + B) mod 2B.

    The scores are cosine similarities divided by the temperature. Every row chooses among all rows but itself:
    its partner, which stays in the denominator, and 2B - 2 negatives, half of them of its own view. The loss is
    the mean over the 2B rows. Guessing costs log(2B - 1); a single pair costs 0.

    Rows shorter than 1e-12 are divided by 1e-12, see `l2_normalize`. A NaN anywhere makes the loss NaN.

    Args:
        z: Embeddings of any length, shape [2 * batch, dim]. Interleaved views (1, 1, 2, 2, ...) have the same
            shape and a wrong loss: reorder them first.
        temperature: Divides the similarities. Positive number or 0-d array; it may be traced, has a gradient,
            and a new value does not compile anew. A 0-d JAX array outside `jax.jit` is read back to check its
            sign, which waits for the device.
        method: "dense" holds the scores of all rows in memory, "tiled" a tile of them at a time, with the same
            values and gradients up to rounding; "auto" takes tiles for more than 1024 rows. Static.

    Returns:
        The loss in nats, shape []; float64 for float64 input, float32 for every other dtype.

    Raises:
        TypeError: `z` is not a floating array, or the temperature is not one real number.
        ValueError: `z` is empty, not a matrix or has an odd number of rows, the temperature is not positive and
            finite, or there is no such method.

    Source:
        Chen et al. 2020, "A Simple Framework for Contrastive Learning of Visual Representations", equation 1 and
        algorithm 1, which interleaves the views. The authors' TensorFlow code adds the means of the two views
        and so gives twice this value.

    Example:
        >>> import jax.numpy as jnp
        >>> z = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # two pairs
        >>> print(f"{nt_xent(z, temperature=1.0):.4f}")  # log(1 + 2/e)
        0.5514
    """
    check_stacked("z", z)
    loss = _nt_xent_tiled if use_tiles(method, len(z)) else _nt_xent
    return loss(jnp.asarray(z), as_temperature(temperature, compute_dtype(z)))


def nt_xent_loss(
    view1: Float[FloatArray, "batch dim"],
    view2: Float[FloatArray, "batch dim"],
    temperature: int | float = 0.5,
    *,
    method: str = "auto",
) -> Float[Array, ""]:
    """`nt_xent` of two views given apart, with all of its input checked.

    The views are stacked as [view1; view2]: of B pairs, the partner of stacked row i is row (i + B) mod 2B.
    Differentiable by both views. For a temperature that is learned or traced use `nt_xent`.

    Args:
        view1: One row per source, any length, shape [batch, dim]. Outside `jax.jit` its values are read back
            to find a NaN or an infinity.
        view2: The other view of the same sources in the same order; shape and dtype of `view1`.
        temperature: A finite positive Python int or float; np.float64 is a float.
        method: "auto", "dense" or "tiled", see `nt_xent`.

    Returns:
        The loss in nats, shape []; float64 for float64 input, float32 for every other dtype.

    Raises:
        TypeError: A view is not a floating array, the dtypes differ, or the temperature is a bool, a str, an
            array or anything else than an int or float.
        ValueError: A view is empty or not a matrix, the shapes differ, a view holds a NaN or an infinity and is
            not traced, the temperature is not positive and finite, or there is no such method.

    Example:
        >>> import jax.numpy as jnp
        >>> print(f"{nt_xent_loss(jnp.eye(2), jnp.eye(2), temperature=1.0):.4f}")  # log(1 + 2/e)
        0.5514
    """
    check_pair("view1", view1, "view2", view2)
    check_finite("view1", view1)
    check_finite("view2", view2)
    check_python_number(
        "temperature", temperature, "pass a constant such as 0.5; nt_xent takes arrays, traced ones too."
    )
    stacked = jnp.concatenate([jnp.asarray(view1), jnp.asarray(view2)])
    return nt_xent(stacked, temperature, method=method)


def positive_only(z: Float[FloatArray, "two_batch dim"]) -> Float[Array, ""]:
    """Minus the mean cosine between the two views of each source, `z` = [view1; view2]; no negatives.

    Stacked layout: the partner of row i is row (i + B) mod 2B. The least value, -1, is reached by rows that are
    all alike too, so an encoder trained with this loss may collapse: it is here to show that.

    Args:
        z: Embeddings of any length, shape [2 * batch, dim]; rows shorter than 1e-12 are divided by 1e-12.

    Returns:
        A number in [-1, 1] up to rounding, shape []; float64 for float64 input, float32 for every other dtype.

    Raises:
        TypeError: `z` is not a floating array.
        ValueError: `z` is empty, not a matrix or has an odd number of rows.

    Example:
        >>> import jax.numpy as jnp
        >>> print(positive_only(jnp.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0], [1.0, 0.0]])))  # cosines 1 and 0
        -0.5
    """
    check_stacked("z", z)
    return _positive_only(jnp.asarray(z))


@jax.jit
def _nt_xent(z: Float[Array, "two_batch dim"], temperature: Float[Array, ""]) -> Float[Array, ""]:
    scores = scaled_cosines(z, z, 1 / temperature)
    # Masked after the scaling, and by -inf: a small temperature takes scores past any finite number.
    scores = jnp.where(jnp.eye(z.shape[0], dtype=bool), -jnp.inf, scores)
    # Turned by half of the rows, each partner stands on the diagonal.
    return diagonal_cross_entropy(jnp.roll(scores, z.shape[0] // 2, axis=1), axis=1)


@jax.jit
def _nt_xent_tiled(z: Float[Array, "two_batch dim"], temperature: Float[Array, ""]) -> Float[Array, ""]:
    return tiled_nt_xent(l2_normalize(z), 1 / temperature)


@jax.jit
def _positive_only(z: Float[Array, "two_batch dim"]) -> Float[Array, ""]:
    view1, view2 = jnp.split(l2_normalize(z), 2)
    return -jnp.mean(jnp.sum(view1 * view2, axis=1))
