"""What the losses of this step reject, with which error, and that `nt_xent_loss` keeps its whole contract."""

import fractions

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contrastive_jax import clip_loss, contrastive_logits, nt_xent, nt_xent_loss, positive_only

ONES = np.ones((4, 2), np.float32)


def broken(value) -> np.ndarray:
    """Ones with one other entry."""
    rows = ONES.copy()
    rows[2, 1] = value
    return rows


def views(temperature):
    return lambda: nt_xent_loss(ONES, ONES, temperature)


def stacked(temperature):
    return lambda: nt_xent(ONES, temperature)


def scaled(logit_scale):
    return lambda: clip_loss(ONES, ONES, logit_scale)


REJECTED = {
    # Views
    "list": (lambda: nt_xent_loss([[1.0]], ONES), TypeError, "view1: expected a JAX or NumPy array, found list"),
    "integers": (lambda: nt_xent_loss(ONES, ONES.astype("int32")), TypeError, "view2: .* found int32"),
    "booleans": (lambda: nt_xent_loss(ONES > 0, ONES), TypeError, "view1: .* found bool"),
    "complex": (lambda: nt_xent_loss(ONES * 1j, ONES), TypeError, "view1: .* found complex64"),
    "dtypes that differ": (
        lambda: nt_xent_loss(ONES, ONES.astype("float16")),
        TypeError,
        "view2: expected the dtype of view1, float32, found float16",
    ),
    "float64 that would be rounded": (
        lambda: nt_xent_loss(ONES.astype("float64"), ONES.astype("float64")),
        TypeError,
        "view1: expected float32 or narrower .* found float64.*jax_enable_x64",
    ),
    "no pairs": (lambda: nt_xent_loss(ONES[:0], ONES[:0]), ValueError, r"view1: expected a nonempty .*\(0, 2\)"),
    "no width": (lambda: nt_xent_loss(ONES[:, :0], ONES[:, :0]), ValueError, r"view1: expected a nonempty .*\(4, 0\)"),
    "rank 1": (lambda: nt_xent_loss(ONES[0], ONES[0]), ValueError, r"view1: expected rank 2.* rank 1, shape \(2,\)"),
    "rank 3": (lambda: nt_xent_loss(ONES, ONES[None]), ValueError, "view2: expected rank 2.*jax.vmap"),
    "a row missing": (
        lambda: nt_xent_loss(ONES, ONES[:3]),
        ValueError,
        r"view2: expected the shape of view1, \(4, 2\), found \(3, 2\)",
    ),
    "a row for all": (lambda: nt_xent_loss(ONES, ONES[:1]), ValueError, r"view2: .* found \(1, 2\)"),
    "widths that differ": (lambda: nt_xent_loss(ONES, ONES[:, :1]), ValueError, r"view2: .* found \(4, 1\)"),
    "NaN": (lambda: nt_xent_loss(broken(np.nan), ONES), ValueError, "view1: .* found nan in row 2, column 1"),
    "infinity": (lambda: nt_xent_loss(ONES, broken(np.inf)), ValueError, "view2: .* found inf in row 2, column 1"),
    "infinity in JAX": (lambda: nt_xent_loss(ONES, jnp.asarray(broken(-np.inf))), ValueError, "view2: .* found -inf"),
    "NaN in half": (
        lambda: nt_xent_loss(jnp.asarray(broken(np.nan), "bfloat16"), jnp.asarray(ONES, "bfloat16")),
        ValueError,
        "view1: expected finite entries, found nan",
    ),
    # Temperature of nt_xent_loss
    "temperature zero": (views(0), ValueError, "temperature: expected a positive finite number.* found 0"),
    "temperature minus zero": (views(-0.0), ValueError, "temperature: .* found -0.0"),
    "temperature negative": (views(-0.5), ValueError, "temperature: .* found -0.5"),
    "temperature NaN": (views(float("nan")), ValueError, "temperature: .* found nan"),
    "temperature infinite": (views(float("inf")), ValueError, "temperature: .* found inf"),
    "temperature of many digits": (views(10**400), ValueError, "temperature: .* found inf"),
    "temperature zero in float32": (views(1e-40), ValueError, "temperature: .* that float32 can hold"),
    "temperature bool": (views(True), TypeError, r"temperature: expected a Python number .* found bool"),
    "temperature NumPy bool": (views(np.True_), TypeError, "temperature: expected a Python number .* found bool"),
    "temperature text": (views("0.5"), TypeError, "temperature: .* found str"),
    "temperature None": (views(None), TypeError, "temperature: .* found NoneType"),
    "temperature complex": (views(0.5 + 0j), TypeError, "temperature: .* found complex"),
    "temperature fraction": (views(fractions.Fraction(1, 2)), TypeError, "temperature: .* found Fraction"),
    "temperature float32": (views(np.float32(0.5)), TypeError, "temperature: .* found float32.*nt_xent takes arrays"),
    "temperature NumPy array": (views(np.array(0.5)), TypeError, "temperature: .* found ndarray"),
    "temperature JAX array": (views(jnp.ones(())), TypeError, "temperature: .* found Array"),
    "temperature list": (views([0.5]), TypeError, "temperature: .* found list"),
    # The stacked losses
    "odd rows": (
        lambda: nt_xent(ONES[:3]),
        ValueError,
        r"z: expected an even number of rows.* found 3, shape \(3, 2\).*concatenate",
    ),
    "odd rows without negatives": (lambda: positive_only(ONES[:1]), ValueError, "z: expected an even .* found 1"),
    "no rows": (lambda: nt_xent(ONES[:0]), ValueError, r"z: expected a nonempty array \[2 \* batch, dim\]"),
    "stacked rank": (lambda: positive_only(ONES[None]), ValueError, "z: expected rank 2"),
    "stacked integers": (lambda: nt_xent(ONES.astype(int)), TypeError, "z: .* found int64"),
    "stacked temperature zero": (stacked(0.0), ValueError, "temperature: .* found 0.0"),
    "stacked temperature array": (stacked(-jnp.ones(())), ValueError, "temperature: .* found -1.0"),
    "stacked temperature bool": (stacked(False), TypeError, "temperature: expected one real number.* found False"),
    "stacked temperature vector": (stacked(jnp.ones(2)), TypeError, r"temperature: .* shape \(2,\)"),
    # CLIP
    "images of integers": (lambda: clip_loss(ONES.astype(int), ONES, 1.0), TypeError, "image_features: .* found int64"),
    "texts of another dtype": (
        lambda: contrastive_logits(ONES, ONES.astype("float16"), 1.0),
        TypeError,
        "text_features: expected the dtype of image_features, float32, found float16",
    ),
    "a text missing": (
        lambda: contrastive_logits(ONES, ONES[:3], 1.0),
        ValueError,
        r"text_features: expected the shape of image_features, \(4, 2\), found \(3, 2\)",
    ),
    "no features": (lambda: clip_loss(ONES[:0], ONES[:0], 1.0), ValueError, "image_features: expected a nonempty"),
    "scale NaN": (scaled(float("nan")), ValueError, "logit_scale: expected the logarithm of an inverse .* found nan"),
    "scale NumPy NaN": (scaled(np.float32("nan")), ValueError, "logit_scale: .* found nan"),
    "scale bool": (scaled(True), TypeError, "logit_scale: expected one real number.* found True of type bool"),
    "scale text": (scaled("1"), TypeError, "logit_scale: .* found '1' of type str"),
    "scale None": (scaled(None), TypeError, "logit_scale: .* found None"),
    "scale complex": (scaled(jnp.ones((), "complex64")), TypeError, "logit_scale: .* dtype complex64"),
    "scale vector": (scaled(jnp.ones(1)), TypeError, r"logit_scale: .* shape \(1,\).*jax.vmap"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name, as_installed):
    call, error, message = REJECTED[name]
    with pytest.raises(error, match=f"^{message}") as caught:
        call()
    assert "Next step: " in str(caught.value)


# Inside jit


KNOWN_WHILE_TRACING = {
    "shape": (lambda a, b: nt_xent_loss(a, b[:3]), ValueError, "view2: expected the shape"),
    "rank": (lambda a, b: nt_xent_loss(a[0], b[0]), ValueError, "view1: expected rank 2"),
    "dtype": (lambda a, b: nt_xent_loss(a, b.astype("float16")), TypeError, "view2: expected the dtype"),
    "integers": (lambda a, b: nt_xent_loss(a.astype(int), b), TypeError, "view1: .* found int"),
    "empty": (lambda a, b: nt_xent_loss(a[:0], b[:0]), ValueError, "view1: expected a nonempty"),
    "a Python number": (lambda a, b: nt_xent_loss(a, b, -1.0), ValueError, r"temperature: .* found -1\.0"),
    "a bool": (lambda a, b: nt_xent_loss(a, b, True), TypeError, "temperature: .* found bool"),
    "a traced temperature": (lambda a, b: nt_xent_loss(a, b, a[0, 0]), TypeError, "temperature: .* nt_xent takes"),
    "a constant": (lambda a, b: nt_xent_loss(a, broken(np.nan)), ValueError, "view2: .* found nan in row 2"),
    "a JAX constant": (lambda a, b: nt_xent_loss(CONSTANT, b), ValueError, "view1: .* found nan in row 2"),
    "odd rows": (lambda a, b: nt_xent(a[:3]), ValueError, "z: expected an even number"),
    "one view": (lambda a, b: positive_only(a[:3]), ValueError, "z: expected an even number"),
    "stacked number": (lambda a, b: nt_xent(a, 0), ValueError, "temperature: .* found 0"),
    "features": (lambda a, b: clip_loss(a, b[:, :1], 1.0), ValueError, "text_features: expected the shape"),
    "scale": (lambda a, b: contrastive_logits(a, b, a[0]), TypeError, r"logit_scale: .* shape \(2,\)"),
}  # fmt: skip
CONSTANT = jnp.asarray(broken(np.nan))


@pytest.mark.parametrize("name", KNOWN_WHILE_TRACING)
def test_rejected_inside_jit(name, as_installed):
    function, error, message = KNOWN_WHILE_TRACING[name]
    with pytest.raises(error, match=f"^{message}") as caught:
        jax.jit(function)(ONES, ONES)
    assert "Next step: " in str(caught.value)


def test_values_that_are_traced_are_not_asked_for():
    bad = broken(np.nan)
    assert np.isnan(jax.jit(nt_xent_loss)(bad, ONES))
    assert np.isnan(jax.vmap(nt_xent_loss)(np.stack([ONES, bad]), np.stack([ONES, ONES]))).tolist() == [False, True]
    assert np.isnan(jax.grad(nt_xent_loss)(bad, ONES)).all()
    assert np.isfinite(jax.jit(nt_xent)(ONES, 0.5)) and np.isfinite(jax.jit(clip_loss)(ONES, ONES, 0.5))


@pytest.mark.parametrize("temperature", [0.5, 1, 7, np.float64(0.5), 1e-3, 1e3])
def test_accepted_temperatures(temperature):
    assert np.isfinite(nt_xent_loss(ONES, ONES, temperature))


def test_the_largest_finite_entries_are_accepted():
    assert np.isfinite(nt_xent_loss(broken(3.4e38), ONES))
    assert np.isfinite(nt_xent_loss(jnp.asarray(broken(6e4), "float16"), jnp.asarray(ONES, "float16")))


@pytest.mark.parametrize("layout", [nt_xent, nt_xent_loss, positive_only])
def test_the_layout_is_said_in_the_first_lines(layout):
    beginning = "\n".join(layout.__doc__.splitlines()[:4])
    assert "[view1; view2]" in beginning and "(i + B) mod 2B" in beginning


@pytest.mark.parametrize("function", [contrastive_logits, clip_loss])
def test_the_meaning_of_the_scale_is_said_in_the_first_line(function):
    assert "LOG of the inverse temperature" in function.__doc__.splitlines()[0]
