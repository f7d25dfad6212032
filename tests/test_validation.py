"""What is rejected, with which error, and that the error names argument, expectation, finding and next step."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import contrastive_jax
from contrastive_jax import cosine_similarity, l2_normalize, paired_contrastive, retrieval_accuracy

ONES = np.ones((3, 2), np.float32)
EYE = np.eye(2, dtype=np.float32)


def paired(temperature):
    return lambda: paired_contrastive(ONES, ONES, temperature)


REJECTED = {
    # Arrays
    "list": (lambda: l2_normalize([[1.0]]), TypeError, "x: expected a JAX or NumPy array, found list"),
    "none": (lambda: paired_contrastive(ONES, None), TypeError, "right: expected a JAX or NumPy array, found NoneType"),
    "integers": (lambda: paired_contrastive(ONES.astype(int), ONES), TypeError, "left: .* found int64"),
    "booleans": (lambda: paired_contrastive(ONES, ONES > 0), TypeError, "right: .* found bool"),
    "complex": (lambda: l2_normalize(ONES * 1j), TypeError, "x: expected a dtype among float16.* found complex64"),
    "float8": (lambda: l2_normalize(jnp.asarray(ONES, jnp.float8_e4m3fn)), TypeError, "x: .* found float8"),
    "keys": (lambda: l2_normalize(jax.random.key(0)), TypeError, "x: .* found key<"),
    "float64 that would be rounded": (
        lambda: paired_contrastive(ONES.astype("float64"), ONES.astype("float64")),
        TypeError,
        "left: expected float32 or narrower .* found float64.*jax_enable_x64",
    ),
    "dtypes that differ": (
        lambda: paired_contrastive(ONES, ONES.astype("float16")),
        TypeError,
        "right: expected the dtype of left, float32, found float16",
    ),
    "rank 1": (lambda: paired_contrastive(ONES[0], ONES), ValueError, r"left: expected rank 2.* rank 1, shape \(2,\)"),
    "rank 3": (lambda: paired_contrastive(ONES, ONES[None]), ValueError, "right: expected rank 2.*jax.vmap"),
    "no pairs": (lambda: paired_contrastive(ONES[:0], ONES[:0]), ValueError, r"left: expected a nonempty .*\(0, 2\)"),
    "no width": (lambda: paired_contrastive(ONES[:, :0], ONES[:, :0]), ValueError, "left: expected a nonempty"),
    "a row missing": (
        lambda: paired_contrastive(ONES, ONES[:2]),
        ValueError,
        r"right: expected the shape of left, \(3, 2\), found \(2, 2\)",
    ),
    "widths that differ": (lambda: cosine_similarity(ONES, ONES[:, :1]), ValueError, "right: expected rows as wide"),
    "similarity of dtypes": (lambda: cosine_similarity(ONES, ONES.astype("float16")), TypeError, "right: .*float16"),
    "similarity of nothing": (lambda: cosine_similarity(ONES, ONES[:0]), ValueError, r"right: .*\[m, dim\]"),
    "scalar": (lambda: l2_normalize(np.ones((), np.float32)), ValueError, r"x: expected rows .* found shape \(\)"),
    "empty rows": (lambda: l2_normalize(np.ones((2, 0), np.float32)), ValueError, r"x: .* found shape \(2, 0\)"),
    # Norm floor
    "floor zero": (lambda: l2_normalize(ONES, norm_floor=0), ValueError, "norm_floor: expected a finite number"),
    "floor negative": (lambda: l2_normalize(ONES, norm_floor=-1e-6), ValueError, "norm_floor: .* found -1e-06"),
    "floor NaN": (lambda: l2_normalize(ONES, norm_floor=float("nan")), ValueError, "norm_floor: .* found nan"),
    "floor infinite": (lambda: l2_normalize(ONES, norm_floor=float("inf")), ValueError, "norm_floor: .* found inf"),
    "floor too small": (lambda: l2_normalize(ONES, norm_floor=1e-30), ValueError, "norm_floor: .* at least 1.1e-19"),
    "floor bool": (lambda: l2_normalize(ONES, norm_floor=True), TypeError, "norm_floor: .* found bool"),
    "floor text": (lambda: cosine_similarity(ONES, ONES, norm_floor="1e-6"), TypeError, "norm_floor: .* found str"),
    "floor array": (lambda: l2_normalize(ONES, norm_floor=jnp.ones(())), TypeError, "norm_floor: .* a Python number"),
    # Temperature
    "temperature zero": (paired(0), ValueError, "temperature: expected a positive finite number.* found 0.0"),
    "temperature negative": (paired(-0.2), ValueError, "temperature: .* found -0.2"),
    "temperature NaN": (paired(float("nan")), ValueError, "temperature: .* found nan"),
    "temperature infinite": (paired(float("inf")), ValueError, "temperature: .* found inf"),
    "temperature of many digits": (paired(10**400), ValueError, "temperature: .* found inf"),
    "temperature zero in float32": (paired(1e-40), ValueError, "temperature: .* that float32 can hold"),
    "temperature infinite in float32": (paired(1e39), ValueError, r"temperature: .* found 1e\+39"),
    "temperature array zero": (paired(jnp.zeros(())), ValueError, "temperature: .* found 0.0"),
    "temperature NumPy negative": (paired(np.float32(-1)), ValueError, "temperature: .* found -1.0"),
    "temperature bool": (paired(True), TypeError, "temperature: expected one real number.* found True of type bool"),
    "temperature bool array": (paired(jnp.array(True)), TypeError, "temperature: .* dtype bool"),
    "temperature text": (paired("0.2"), TypeError, "temperature: .* found '0.2' of type str"),
    "temperature None": (paired(None), TypeError, "temperature: .* found None"),
    "temperature complex": (paired(0.2 + 0j), TypeError, "temperature: .* of type complex"),
    "temperature vector": (paired(jnp.ones(1)), TypeError, r"temperature: .* shape \(1,\).*jax.vmap"),
    # Retrieval
    "scores not square": (lambda: retrieval_accuracy(ONES), ValueError, r"scores: expected as many rows .* \(3, 2\)"),
    "scores of rank 3": (lambda: retrieval_accuracy(ONES[None]), ValueError, "scores: expected rank 2"),
    "scores of integers": (lambda: retrieval_accuracy(np.eye(2, dtype=int)), TypeError, "scores: .*int64"),
    "no scores": (lambda: retrieval_accuracy(ONES[:0, :0]), ValueError, "scores: expected a nonempty"),
    "ties unknown": (lambda: retrieval_accuracy(EYE, ties="first"), ValueError, "ties: .* found 'first'"),
    "k zero": (lambda: retrieval_accuracy(EYE, k=0), ValueError, "k: expected 1 <= k <= 2.* found 0"),
    "k too large": (lambda: retrieval_accuracy(EYE, k=3), ValueError, "k: .* found 3"),
    "k bool": (lambda: retrieval_accuracy(EYE, k=True), TypeError, "k: .* found bool"),
    "k float": (lambda: retrieval_accuracy(EYE, k=1.0), TypeError, "k: .* found float"),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name, as_installed):
    call, error, message = REJECTED[name]
    with pytest.raises(error, match=f"^{message}") as caught:
        call()
    assert "Next step: " in str(caught.value)


@pytest.mark.parametrize("wrong", ["shape", "dtype", "temperature vector", "temperature value"])
def test_rejected_while_tracing(wrong, as_installed):
    left = jnp.ones((3, 2))
    right = {"shape": left[:2], "dtype": left.astype("float16")}.get(wrong, left)
    temperature = {"temperature vector": jnp.ones(1), "temperature value": -1.0}.get(wrong, 0.2)
    if wrong == "temperature value":  # known while tracing, because it is a constant of the traced function
        traced = jax.jit(lambda left, right: paired_contrastive(left, right, temperature))
        with pytest.raises(ValueError, match=r"^temperature: .* found -1\.0"):
            traced(left, right)
    else:
        with pytest.raises((TypeError, ValueError), match=r"^(right|temperature): expected"):
            jax.jit(paired_contrastive)(left, right, temperature)


def test_a_traced_k_is_rejected(as_installed):
    with pytest.raises(TypeError, match=r"^k: .*static_argnames"):
        jax.jit(lambda k: retrieval_accuracy(jnp.eye(2), k=k))(1)


def test_a_traced_temperature_is_not_asked_for_its_value():
    assert np.isfinite(jax.jit(paired_contrastive)(ONES, ONES, 0.5))
    assert np.isfinite(jax.vmap(paired_contrastive, in_axes=(None, None, 0))(ONES, ONES, jnp.ones(2))).all()
    assert np.isfinite(jax.grad(paired_contrastive, argnums=2)(ONES, ONES, 0.5))


def test_inputs_are_left_alone():
    left, right = np.random.default_rng(0).normal(size=(2, 3, 2)).astype("float32")
    before = left.copy(), right.copy()
    jax.grad(paired_contrastive)(left, right)
    np.testing.assert_array_equal((left, right), before)


def test_annotations_are_checked_in_this_test_run():
    # With the import hook off these would be the plain errors that the tests above ask for.
    with pytest.raises(jaxtyping.TypeCheckError):
        l2_normalize(jnp.ones(3, int))
    with pytest.raises(jaxtyping.TypeCheckError):
        paired_contrastive(jnp.ones((3, 2)), jnp.ones((2, 2)))


def test_every_public_name_is_documented_with_an_example():
    for name in contrastive_jax.__all__:
        public = getattr(contrastive_jax, name)
        assert public.__doc__, name
        # A NamedTuple only carries what a function returns; the function has the example.
        is_result = isinstance(public, type) and issubclass(public, tuple)
        assert is_result or ">>> " in public.__doc__, name
