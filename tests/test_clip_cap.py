"""The cap of the log scale from both sides, and why a training loop projects its parameter onto it."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from contrastive_jax import clip_loss, contrastive_logits

CAP = math.log(100)
AT_CAP = float(np.float32(CAP))

# One right pair and one wrong one, so that the loss is neither 0 nor without a slope at any scale.
IMAGES = np.eye(2)
TEXTS = np.array([[1.0, 0.0], [1.0, 0.0]])


by_scale = jax.jit(jax.grad(clip_loss, argnums=2))


def slope(logit_scale, dtype):
    """Of the loss by the log scale."""
    return float(by_scale(IMAGES.astype(dtype), TEXTS.astype(dtype), logit_scale))


def uncapped_slope(logit_scale):
    """By hand: images have none, texts cost (log(1 + exp(-scale)) + log(1 + exp(scale))) / 4."""
    scale = math.exp(logit_scale)
    share = 1 / (1 + math.exp(scale))
    return scale * ((1 - share) - share) / 4


def test_gradient_below_at_and_above_the_cap(precision):
    for logit_scale in (1.0, 4.5, CAP - 1e-3, CAP):
        assert slope(logit_scale, precision) == pytest.approx(uncapped_slope(logit_scale), rel=1e-5)
    for logit_scale in (CAP + 1e-6, CAP + 1e-3, 5.0, 1e30, math.inf):
        assert slope(logit_scale, precision) == 0.0


def test_gradient_at_the_cap_is_whole_not_half(precision):
    # jnp.minimum and jnp.clip share it between both branches, jax.lax.clamp drops it.
    at_cap = jnp.asarray(CAP, precision)
    rules = {
        "ours": lambda s: contrastive_logits(jnp.eye(1, dtype=precision), jnp.eye(1, dtype=precision), s)[0, 0],
        "minimum": lambda s: jnp.exp(jnp.minimum(s, CAP)),
        "clamp": lambda s: jnp.exp(jax.lax.clamp(jnp.zeros((), precision), s, at_cap)),
    }
    share = {name: float(jax.grad(rule)(at_cap)) / 100 for name, rule in rules.items()}
    assert share == pytest.approx({"ours": 1.0, "minimum": 0.5, "clamp": 0.0}, abs=1e-6)


@pytest.mark.parametrize("parameter_dtype", ["float16", "bfloat16", "float32", "float64"])
def test_log_100_as_any_dtype_rounds_it_is_at_the_cap(parameter_dtype, x64):
    parameter = jnp.asarray(CAP, parameter_dtype)
    above = jnp.asarray(float(parameter) * (1 + 2 * float(jnp.finfo(parameter_dtype).eps)), parameter_dtype)
    assert above > parameter
    for dtype in ("float32", "float64"):
        features = jnp.eye(1, dtype=dtype)
        score = jax.value_and_grad(lambda s, x=features: contrastive_logits(x, x, s)[0, 0])
        value, kept = score(parameter)
        assert float(kept) == pytest.approx(float(value), rel=0.01)
        assert value <= 100
        if float(above) > AT_CAP:
            value, lost = score(above)
            assert value == 100 and lost == 0


def test_log_100_rounded_by_float32_is_at_the_cap_in_float64(x64):
    # A parameter trained in float32, read as a number and used with float64 features.
    assert AT_CAP > CAP
    assert slope(AT_CAP, "float64") == pytest.approx(25.0, rel=1e-6)
    assert contrastive_logits(jnp.eye(1), jnp.eye(1), AT_CAP)[0, 0] == 100.0


@pytest.mark.parametrize("logit_scale", [CAP, 4.6052, 4.7, 1e9])
def test_the_scale_does_not_exceed_100(logit_scale, precision):
    # Public code with the cap written as 4.6052 reaches 100.003 (open_clip#104); exp itself may round 100 up.
    eye = np.eye(2, dtype=precision)
    assert np.max(contrastive_logits(eye, eye, logit_scale)) == 100.0


def test_without_a_cap_a_wrong_pair_costs_without_bound(precision):
    # CLIP#46: the released model has none. Partners exchanged: the loss is the scale.
    eye = np.eye(2, dtype=precision)
    for logit_scale in (CAP, math.log(1000), 60.0):
        np.testing.assert_allclose(clip_loss(eye, eye[::-1], logit_scale), 100.0, rtol=1e-6)


def test_the_log_scale_is_not_the_scale(precision):
    # M3D#52: at the usual start, log(1 / 0.07), the log itself multiplied the cosines: 2.66, not 14.29.
    eye = np.eye(2, dtype=precision)
    np.testing.assert_allclose(contrastive_logits(eye, eye, math.log(1 / 0.07))[0, 0], 1 / 0.07, rtol=1e-5)


# Training


def near_duplicates():
    """Two pairs that agree, and nearly do with one another: the loss asks for a larger scale."""
    rows = np.array([[1.0, 0.0], [math.cos(0.1), math.sin(0.1)]], "float32")
    return rows, rows


STEPS = 20


def train(loss, logit_scale: float, pairs, project: bool) -> list[float]:
    """Log scale after each step; features stay, so that nothing else moves."""
    images, texts = pairs
    optimizer = optax.sgd(0.5)
    parameter = jnp.asarray(logit_scale, "float32")
    state = optimizer.init(parameter)
    gradient = jax.jit(jax.grad(lambda s: loss(images, texts, s)))
    history = []
    for _ in range(STEPS):
        updates, state = optimizer.update(gradient(parameter), state)
        parameter = jnp.asarray(optax.apply_updates(parameter, updates))
        if project:
            parameter = optax.projections.projection_box(parameter, 0.0, CAP)
        history.append(float(parameter))
    return history


def clamped(images, texts, logit_scale):
    """CLIP's loss with a cap whose gradient is zero at the cap too."""
    cap = jnp.asarray(CAP, "float32")
    held = jax.lax.clamp(jnp.zeros((), "float32"), logit_scale, cap)
    return clip_loss(images, texts, held)


def halved(images, texts, logit_scale):
    """And one whose gradient is halved there."""
    return clip_loss(images, texts, jnp.minimum(logit_scale, CAP))


def wrong_pairs():
    """The same with partners exchanged: the loss asks for a smaller scale."""
    images, texts = near_duplicates()
    return images, texts[::-1]


def test_a_projected_parameter_can_come_back():
    grown = train(clip_loss, 4.0, near_duplicates(), project=True)
    assert grown[0] < 4.1 and grown[-1] == AT_CAP
    back = train(clip_loss, grown[-1], wrong_pairs(), project=True)
    assert back[0] < AT_CAP - 0.1 and back[-1] < 4.0


def test_without_the_projection_it_never_does():
    # The last step goes over the cap, and there the parameter stays, whatever the data say from then on.
    over = train(clip_loss, 4.0, near_duplicates(), project=False)[-1]
    assert over > AT_CAP
    assert train(clip_loss, over, wrong_pairs(), project=False) == [over] * STEPS
    released = train(clip_loss, over, wrong_pairs(), project=True)
    assert released[0] == AT_CAP and released[-1] < 4.0


def test_a_cap_without_a_gradient_at_the_cap_undoes_the_projection():
    assert train(clamped, AT_CAP, wrong_pairs(), project=True) == [AT_CAP] * STEPS


def test_a_cap_with_half_a_gradient_holds_the_parameter_back():
    # The first step is half as long.
    whole = train(clip_loss, AT_CAP, wrong_pairs(), project=True)[0]
    half = train(halved, AT_CAP, wrong_pairs(), project=True)[0]
    assert AT_CAP - half == pytest.approx((AT_CAP - whole) / 2, rel=1e-4)
