"""Training: PyTorch's trajectory first, then what side by side, deterministic and in both precisions means."""

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from contrastive_jax import (
    EncoderParams,
    Encoding,
    Layer,
    diagnose,
    draw_pictures,
    encode,
    feature_spread,
    init_encoder,
    mean_cosine,
    nt_xent,
    positive_only,
    shapes_study,
    train,
    training,
)

GOLDEN = dict(np.load(Path(__file__).parent / "golden" / "shapes_training.npz"))
OBJECTIVES = {"nt_xent": nt_xent, "positive_only": positive_only}
ADAM = optax.adam
LAYERS = ("body.0", "body.2", "head.0", "head.2")


def golden_params() -> EncoderParams:
    return EncoderParams(
        *[Layer(*[jnp.asarray(GOLDEN[f"init.{layer}.{kind}"], float) for kind in Layer._fields]) for layer in LAYERS]
    )


def trajectory(names: tuple[str, ...], encoder=encode, dtype="float64") -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Losses, and features of the first batch at the end, of a training on the golden views."""
    views = jnp.asarray(GOLDEN["views"])
    run = jax.jit(
        lambda params: train(params, lambda step: views[step], tuple(OBJECTIVES[name] for name in names), steps=12)
    )
    trained = run(jax.tree.map(lambda x: x.astype(dtype), golden_params()))
    features = [encoder(jax.tree.map(lambda x: x[i], trained.params), views[0]).features for i in range(len(names))]  # noqa: B023
    return {name: (np.asarray(trained.losses[i]), np.asarray(features[i])) for i, name in enumerate(names)}


def is_golden(name: str, losses: np.ndarray, features: np.ndarray) -> bool:
    expected = GOLDEN[f"{name}.loss_per_step"], GOLDEN[f"{name}.final_features_of_first_batch"]
    return (losses.shape, features.shape) == (expected[0].shape, expected[1].shape) and bool(
        np.max(np.abs(losses - expected[0])) <= 1e-9 and np.max(np.abs(features - expected[1])) <= 1e-8
    )


def test_twelve_steps_are_those_of_pytorch(x64):
    for name, (losses, features) in trajectory(("nt_xent", "positive_only")).items():
        assert losses.dtype == np.float64
        assert is_golden(name, losses, features), name


def test_float32_follows_as_far_as_its_rounding_allows(x64):
    for name, (losses, _) in trajectory(("nt_xent", "positive_only"), dtype="float32").items():
        assert losses.dtype == np.float32
        np.testing.assert_allclose(losses, GOLDEN[f"{name}.loss_per_step"], rtol=2e-5)


def by_hand(params: EncoderParams, images, convolve, activation=jax.nn.relu, head=jax.nn.relu):
    """The encoder written another way, with a place for every mistake."""
    x = jnp.asarray(images, params.conv1.weight.dtype)[:, None]
    for layer in (params.conv1, params.conv2):
        x = activation(convolve(x, layer.weight) + layer.bias.reshape(1, -1, 1, 1))
    features = jnp.mean(x, axis=(2, 3))
    hidden = head(features @ params.hidden.weight.T + params.hidden.bias[None])
    return Encoding(features, hidden @ params.output.weight.T + params.output.bias[None])


def convolve(x, weight, padding=((1, 1), (1, 1))):
    return jax.lax.conv_general_dilated(x, weight, (2, 2), padding)


RIGHT = functools.partial(by_hand, convolve=convolve)
WRONG_ENCODERS = {
    "transposed kernels": functools.partial(by_hand, convolve=lambda x, w: convolve(x, w.swapaxes(2, 3))),
    "padding behind only": functools.partial(by_hand, convolve=functools.partial(convolve, padding="SAME")),
    "no ReLU after the convolutions": functools.partial(by_hand, convolve=convolve, activation=lambda x: x),
    "no ReLU in the head": functools.partial(by_hand, convolve=convolve, head=lambda x: x),
}
WRONG_OPTIMISERS = {
    "epsilon of 1e-7": lambda rate: ADAM(rate, eps=1e-7),
    "epsilon inside the root": lambda rate: ADAM(rate, eps=0.0, eps_root=1e-16),
    "no bias correction": lambda rate: optax.chain(
        optax.trace(0.9), optax.scale_by_rms(decay=0.999, eps=1e-8, bias_correction=False), optax.scale(-0.1 * rate)
    ),
}


def test_an_encoder_written_another_way_is_accepted(x64, monkeypatch):
    assert first_loss_is_golden(RIGHT)
    monkeypatch.setattr(training, "encode", RIGHT)
    assert is_golden("nt_xent", *trajectory(("nt_xent",), RIGHT)["nt_xent"])


def first_loss_is_golden(encoder) -> bool:
    first = jax.jit(lambda params, views: nt_xent(encoder(params, views).projection))
    off = first(golden_params(), GOLDEN["views"][0]) - GOLDEN["nt_xent.loss_per_step"][0]
    return bool(np.abs(off) <= 1e-9)


@pytest.mark.parametrize("name", WRONG_ENCODERS)
def test_a_wrong_encoder_is_not_golden_from_the_first_loss_on(name, x64):
    assert not first_loss_is_golden(WRONG_ENCODERS[name])


@pytest.mark.parametrize("name", WRONG_OPTIMISERS)
def test_a_wrong_optimiser_is_not_golden(name, x64, monkeypatch):
    monkeypatch.setattr(optax, "adam", WRONG_OPTIMISERS[name])
    assert not is_golden("nt_xent", *trajectory(("nt_xent",))["nt_xent"])


def test_nan_is_not_golden():
    right = [GOLDEN[f"nt_xent.{each}"] for each in ("loss_per_step", "final_features_of_first_batch")]
    assert is_golden("nt_xent", *right)
    assert not is_golden("nt_xent", right[0] * np.nan, right[1])
    assert not is_golden("nt_xent", right[0][:-1], right[1])


def test_diagnosis_is_spread_of_features_and_cosine_of_projections():
    params, images = init_encoder(jax.random.key(0)), draw_pictures(jax.random.key(1), 20).images
    features, projection = encode(params, images)
    spread, cosine = diagnose(params, images)
    np.testing.assert_allclose([spread, cosine], [feature_spread(features), mean_cosine(projection)], rtol=1e-6)
    assert abs(spread - feature_spread(projection)) > 0.1 * spread


def only_watched(z):
    """A loss without a gradient: the weights stay, so that only other views can move it."""
    return jax.lax.stop_gradient(jnp.mean(z)) + 0 * jnp.sum(z)


STEPS = 40
KEYS = jax.random.split(jax.random.key(0), 2)


def study_of(keys):
    study = shapes_study(keys, (positive_only, nt_xent, only_watched), steps=STEPS, dtype="float64")
    return jax.tree.map(np.asarray, study)


@pytest.fixture(scope="module")
def study():
    jax.config.update("jax_enable_x64", True)
    yield study_of(KEYS)
    jax.config.update("jax_enable_x64", False)


def test_shapes_and_dtypes_of_a_study(study):
    assert study.losses.shape == (2, 3, STEPS)
    assert [x.shape for x in (*study.before, *study.after)] == [(2,), (2,), (2, 3), (2, 3)]
    assert {str(x.dtype) for x in jax.tree.leaves(study)} == {"float64"}
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(study))


def test_what_is_known_of_the_start(study):
    # All rows alike: the positive-only loss is -1, NT-Xent's that of a guess among 127.
    np.testing.assert_allclose(study.losses[:, 0, 0], -1, atol=2e-3)
    np.testing.assert_allclose(study.losses[:, 1, 0], np.log(127), atol=2e-3)
    assert np.all(study.before.cosine > 0.999)


def test_positive_only_begins_to_collapse(study):
    assert np.all(study.after.cosine[:, 0] > study.before.cosine)
    assert np.all(study.after.spread[:, 0] < study.before.spread)
    assert np.all(study.losses[:, 0, -1] < study.losses[:, 0, 0])


def test_without_a_gradient_nothing_is_learned_and_every_step_sees_other_views(study):
    np.testing.assert_allclose(study.after.spread[:, 2], study.before.spread, rtol=1e-12)
    np.testing.assert_allclose(study.after.cosine[:, 2], study.before.cosine, rtol=1e-12)
    assert len(np.unique(study.losses[:, 2])) == 2 * STEPS


def test_the_keys_decide_everything_and_seeds_do_not_see_each_other(study):
    for a, b in zip(jax.tree.leaves(study), jax.tree.leaves(study_of(KEYS[::-1])), strict=True):
        np.testing.assert_array_equal(a, b[::-1])
    assert study.before.spread[0] != study.before.spread[1]
