"""Training the shapes encoder with several objectives side by side, and what became of it."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, UInt32

from contrastive_jax.encoders import EncoderParams, encode, init_encoder
from contrastive_jax.representation import feature_spread, mean_cosine
from contrastive_jax.synthetic import draw_pictures, draw_view_pairs

# A loss of projections, stacked as [view1; view2].
Objective = Callable[[Float[Array, "two_batch dim"]], Float[Array, ""]]
PICTURES_PER_STEP = 64
PICTURES_TO_JUDGE = 300


class Trained(NamedTuple):
    """Parameters and losses of every objective; each array has the objectives on its first axis."""

    params: EncoderParams
    losses: Float[Array, "objectives steps"]


class Diagnosis(NamedTuple):
    """How different an encoder's answers to different pictures are."""

    spread: Float[Array, "*batch"]
    cosine: Float[Array, "*batch"]


class Study(NamedTuple):
    """One training: the losses before each update, and the encoder before and after."""

    losses: Float[Array, "*seeds objectives steps"]
    before: Diagnosis
    after: Diagnosis


def train(
    params: EncoderParams,
    draw: Callable[[Int[Array, ""]], Float[Array, "two_batch height width"]],
    objectives: tuple[Objective, ...],
    *,
    steps: int = 300,
    learning_rate: float = 3e-3,
) -> Trained:
    """Trains one encoder per objective with Adam; all start at `params` and see the same views.

    So whatever differs at the end comes from the objective. To be called inside `jax.jit`.

    Args:
        params: Where every objective starts; their dtype is the one trained in.
        draw: From the number of a step, 0 first, to its views, stacked as [view1; view2]. It is traced.
        objectives: Losses of the projections, each from [2 * batch, dim] to a scalar.
        steps: Number of updates.
        learning_rate: Of Adam; its other settings are optax's and PyTorch's defaults: 0.9, 0.999 and 1e-8.

    Returns:
        The trained parameters and the losses before each update, [objectives, steps].

    Source:
        Kingma and Ba 2015, "Adam: A Method for Stochastic Optimization", algorithm 1.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from contrastive_jax import positive_only
        >>> views = jax.random.uniform(jax.random.key(0), (6, 16, 16))
        >>> trained = train(init_encoder(jax.random.key(1)), lambda step: views, (positive_only,), steps=2)
        >>> print(trained.losses.shape, trained.params.output.weight.shape)
        (1, 2) (1, 16, 32)
    """
    # Not at the top: it takes longer to import than the rest of this package, and only training needs it.
    import optax

    adam = optax.adam(learning_rate)
    start = jax.tree.map(lambda x: jnp.stack([x] * len(objectives)), params)

    def total(every: EncoderParams, views: Array) -> tuple[Array, Array]:
        projections = jax.vmap(lambda each: encode(each, views).projection)(every)
        losses = jnp.stack([objective(z) for objective, z in zip(objectives, projections, strict=True)])
        # Each loss depends on its own parameters alone, so the gradient of the sum is the gradient of each.
        return jnp.sum(losses), losses

    def update(state: tuple, step: Array) -> tuple[tuple, Array]:
        every, memory = state
        gradient, losses = jax.grad(total, has_aux=True)(every, draw(step))
        # optax raises a float to an integer power, which JAX's strict promotion would refuse.
        with jax.numpy_dtype_promotion("standard"):
            change, memory = adam.update(gradient, memory)
        return (optax.apply_updates(every, change), memory), losses

    (trained, _), losses = jax.lax.scan(update, (start, adam.init(start)), jnp.arange(steps))
    return Trained(trained, losses.T)


def diagnose(params: EncoderParams, images: Float[Array, "count height width"]) -> Diagnosis:
    """Mean spread of the features, and mean cosine between the projections of different pictures.

    Args:
        params: The encoder.
        images: At least two different pictures, shape [count, height, width].

    Returns:
        `feature_spread` of the features and `mean_cosine` of the projections, each of shape [].

    Raises:
        ValueError: There are fewer than two pictures.

    Example:
        >>> import jax
        >>> images = draw_pictures(jax.random.key(0), 300).images
        >>> spread, cosine = diagnose(init_encoder(jax.random.key(1)), images)
        >>> print(bool(spread < 0.01), bool(cosine > 0.99))  # before any training
        True True
    """
    features, projection = encode(params, images)
    return Diagnosis(spread=feature_spread(features), cosine=mean_cosine(projection))


@functools.partial(jax.jit, static_argnames=("objectives", "steps", "dtype"))
def shapes_study(
    keys: Key[Array, " seeds"] | UInt32[Array, "seeds 2"],
    objectives: tuple[Objective, ...],
    *,
    steps: int = 300,
    dtype: DTypeLike = jnp.float32,
) -> Study:
    """Trains the shapes encoder once for every key and objective, all in one compiled computation.

    Every step draws 64 new pictures and two views of each; the encoder is judged on 300 other pictures without
    augmentation, the same before and after. All objectives of one key share weights at the start, pictures and views.

    Args:
        keys: One key per training, shape [seeds].
        objectives: Losses such as `nt_xent` and `positive_only`. Static: pass the functions themselves, since a
            lambda made anew compiles anew.
        steps: Number of updates. Static.
        dtype: float32 or float64. Static. What is drawn at random is the same in both.

    Returns:
        Losses [seeds, objectives, steps]; diagnoses before [seeds] and after [seeds, objectives].

    Example:
        >>> import jax
        >>> from contrastive_jax import nt_xent, positive_only
        >>> study = shapes_study(jax.random.split(jax.random.key(0), 2), (nt_xent, positive_only), steps=3)
        >>> print(study.losses.shape, study.before.cosine.shape, study.after.cosine.shape)
        (2, 2, 3) (2,) (2, 2)
    """

    def one(key: PRNGKeyArray) -> Study:
        init_key, judge_key, train_key = jax.random.split(key, 3)
        params = init_encoder(init_key, dtype)
        images = draw_pictures(judge_key, PICTURES_TO_JUDGE).images
        trained = train(
            params,
            lambda step: draw_view_pairs(jax.random.fold_in(train_key, step), PICTURES_PER_STEP),
            objectives,
            steps=steps,
        )
        # Judged together, which compiles in half the time.
        every = jax.tree.map(lambda start, ends: jnp.concatenate([start[None], ends]), params, trained.params)
        judged = jax.vmap(lambda each: diagnose(each, images))(every)
        return Study(
            losses=trained.losses,
            before=jax.tree.map(lambda x: x[0], judged),
            after=jax.tree.map(lambda x: x[1:], judged),
        )

    # One after the other: what one training keeps in memory then fits into a CPU's cache.
    return jax.lax.map(one, keys)
