"""Retrieval accuracy: both directions, ties, NaN, and the usual wrong ways to count, each of which must be noticed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contrastive_jax import RetrievalAccuracy, retrieval_accuracy
from contrastive_jax.exercises import oracles

NAN, INF = float("nan"), float("inf")
# Few different values, so that ties are the rule; now and then one that is not a number, or infinite.
tied_scores = arrays(np.float64, (4, 4), elements=st.sampled_from([0.0, 0.0, 1.0, 1.0, 2.0, -INF, INF, NAN]))


def agrees(count, scores: np.ndarray, k: int, ties: str, dtype: str = "float32") -> bool:
    actual = count(scores.astype(dtype), k=k, ties=ties)
    return np.allclose(np.array(actual), oracles.retrieval_accuracy(scores, k, ties), rtol=0, atol=1e-6)


@given(scores=tied_scores, k=st.integers(1, 4), ties=st.sampled_from(["strict", "expected"]))
def test_against_scalar_loops(scores, k, ties, precision):
    assert agrees(retrieval_accuracy, scores, k, ties, precision)


@given(seed=st.integers(0, 1000), k=st.sampled_from([1, 2, 4]))
def test_without_ties_both_rules_agree(seed, k):
    scores = np.random.default_rng(seed).normal(size=(4, 4)).astype("float32")
    strict = retrieval_accuracy(scores, k=k)
    np.testing.assert_allclose(strict, retrieval_accuracy(scores, k=k, ties="expected"), rtol=1e-6)
    if k == 4:
        assert strict == RetrievalAccuracy(1.0, 1.0)


def test_the_two_directions_are_told_apart(precision):
    # Every row prefers its own column but the last; the columns 0 and 1 prefer row 2.
    scores = np.array([[0.5, 0.1, 0.0], [0.1, 0.5, 0.0], [0.9, 0.8, 0.7]], precision)
    result = retrieval_accuracy(scores)
    assert result.left_to_right == pytest.approx(2 / 3)
    assert result.right_to_left == pytest.approx(1 / 3)
    assert [x.dtype for x in result] == [precision] * 2
    assert [x.shape for x in result] == [(), ()]


@pytest.mark.parametrize("size", [1, 4])
def test_perfect_and_reversed(size):
    eye = np.eye(size, dtype="float32")
    assert retrieval_accuracy(eye) == RetrievalAccuracy(1.0, 1.0)
    assert retrieval_accuracy(-eye) == RetrievalAccuracy(*[float(size == 1)] * 2)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_collapsed_encoder_is_not_rewarded(k):
    # All scores equal. A count that looks for "none better" says 1.0, one that takes the first maximum 1 / 4.
    scores = np.ones((4, 4), "float32")
    assert retrieval_accuracy(scores, k=k) == RetrievalAccuracy(*[float(k == 4)] * 2)
    np.testing.assert_allclose(retrieval_accuracy(scores, k=k, ties="expected"), [k / 4] * 2, rtol=1e-6)


def test_expected_credit_by_hand():
    # Row 0: one above, two tied with the positive; it takes place 2, 3 or 4 of four.
    scores = jnp.array([[1.0, 1.0, 2.0, 1.0], [0.0, 9.0, 0.0, 0.0], [0.0, 0.0, 9.0, 0.0], [0.0, 0.0, 0.0, 9.0]])
    expected = [retrieval_accuracy(scores, k=k, ties="expected").left_to_right for k in (1, 2, 3, 4)]
    np.testing.assert_allclose(expected, [3 / 4, (3 + 1 / 3) / 4, (3 + 2 / 3) / 4, 1.0], rtol=1e-6)
    strict = [retrieval_accuracy(scores, k=k).left_to_right for k in (1, 2, 3, 4)]
    np.testing.assert_allclose(strict, [3 / 4, 3 / 4, 3 / 4, 1.0], rtol=1e-6)


@pytest.mark.parametrize("ties", ["strict", "expected"])
@pytest.mark.parametrize("k", [1, 4])
def test_nan_is_a_miss(ties, k):
    assert retrieval_accuracy(np.full((4, 4), NAN, "float32"), k=k, ties=ties) == RetrievalAccuracy(0.0, 0.0)
    # One NaN off the diagonal spoils the row and the column it stands in, and no other.
    one = np.eye(4, dtype="float32")
    one[1, 3] = NAN
    assert retrieval_accuracy(one, k=k, ties=ties) == RetrievalAccuracy(0.75, 0.75)


def test_a_nan_positive_has_nothing_above_it_and_is_a_miss():
    assert retrieval_accuracy(np.array([[NAN]], "float32")) == RetrievalAccuracy(0.0, 0.0)


def test_infinite_scores_are_ordinary():
    # Row 0 is a hit; column 0 too. Row 3 is a tie of two; column 3 is not.
    scores = np.eye(4, dtype="float32")
    scores[0, 0] = scores[3, 2] = scores[3, 3] = INF
    scores[1, 0] = -INF
    assert retrieval_accuracy(scores) == RetrievalAccuracy(0.75, 0.75)
    assert retrieval_accuracy(scores, ties="expected") == RetrievalAccuracy(0.875, 0.75)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision(half):
    result = retrieval_accuracy(jnp.eye(3, dtype=half))
    assert [x.dtype for x in result] == [jnp.float32] * 2
    assert result == RetrievalAccuracy(1.0, 1.0)


def test_large_batches_count_every_query():
    # 300 queries, one of them a miss: a mean in half precision would not see it.
    scores = jnp.eye(300, dtype=jnp.bfloat16).at[7, 9].set(2)
    np.testing.assert_allclose(retrieval_accuracy(scores), [299 / 300] * 2, rtol=1e-6)


@pytest.mark.parametrize("ties", ["strict", "expected"])
def test_inside_transformations(ties):
    stack = jnp.asarray(np.random.default_rng(0).integers(0, 3, size=(3, 4, 4)), jnp.float32)
    loop = np.array([retrieval_accuracy(scores, k=2, ties=ties) for scores in stack]).T

    def count(scores):
        return retrieval_accuracy(scores, k=2, ties=ties)

    np.testing.assert_allclose(jax.jit(jax.vmap(count))(stack), loop, rtol=1e-6)
    static = jax.jit(retrieval_accuracy, static_argnames=("k", "ties"))
    np.testing.assert_allclose(static(stack[0], k=2, ties=ties), loop[:, 0], rtol=1e-6)


def test_numpy_scores_are_accepted():
    assert retrieval_accuracy(np.eye(4, dtype=np.float32)) == RetrievalAccuracy(1.0, 1.0)


# Wrong counts, in NumPy


def both_ways(one_way):
    return lambda scores, k, ties: (np.mean(one_way(scores, k)), np.mean(one_way(scores.T, k)))


def positives(scores):
    return np.diagonal(scores)[:, None]


def first_maximum(scores, k):
    return np.argmax(scores, axis=1) == np.arange(len(scores))


def sorted_order(scores, k):
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.any(best == np.arange(len(scores))[:, None], axis=1)


def half_credit_for_any_tie(scores, k):
    tied = np.sum(scores == positives(scores), axis=1) > 1
    return np.where(tied, 0.5, first_maximum(scores, k))


def right(scores, k, ties):
    return oracles.retrieval_accuracy(scores, k, ties)


WRONG = {
    "first maximum": both_ways(first_maximum),
    "sorted order": both_ways(sorted_order),
    "none better": both_ways(lambda s, k: np.sum(s > positives(s), axis=1) < k),
    "positive counted as its own rival": both_ways(lambda s, k: np.sum(s >= positives(s), axis=1) < k),
    "half credit for any tie": both_ways(half_credit_for_any_tie),
    "one direction twice": lambda scores, k, ties: [right(scores, k, ties)[0]] * 2,
    "directions exchanged": lambda scores, k, ties: right(scores, k, ties)[::-1],
    "always strict": lambda scores, k, ties: right(scores, k, "strict"),
    "always expected": lambda scores, k, ties: right(scores, k, "expected"),
    "k ignored": lambda scores, k, ties: right(scores, 1, ties),
    "NaN taken for a low score": lambda s, k, ties: right(np.where(np.isnan(s), -INF, s), k, ties),
    "NaN": lambda scores, k, ties: (NAN, NAN),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_count_is_noticed(name):
    scores = np.array([[1.0, 1.0, 1.0, 0.0], [2.0, 1.0, 0.0, 0.0], [0.0, 1.0, 2.0, 1.0], [1.0, 0.0, NAN, 3.0]])
    cases = [(k, ties) for k in (1, 2) for ties in ("strict", "expected")]
    assert all(agrees(retrieval_accuracy, scores, k, ties) for k, ties in cases)
    assert not all(agrees(WRONG[name], scores, k, ties) for k, ties in cases)
