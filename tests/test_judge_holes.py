"""Wrong functions that are right on small or tidy inputs do not pass, and right ones in unusual clothes do."""

import functools
import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from example_contract import CONTRACT
from exercise_solutions import SOLUTIONS

from contrastive_jax.exercises import guarded, journal, judge
from contrastive_jax.exercises.judging import judge_function


@pytest.fixture(autouse=True)
def kernel(monkeypatch):
    monkeypatch.setattr(journal, "KERNEL", journal.Journal())


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs():
    yield
    jax.clear_caches()


def right(name, *arguments):
    return SOLUTIONS[name][0](*arguments)


def own_cell_at(low):
    def nt_xent_loss(view1, view2, temperature=0.5):
        right("nt_xent_loss", view1, view2, temperature)
        z = jnp.concatenate([view1, view2])
        z = z / jnp.sqrt(jnp.maximum(jnp.sum(z * z, axis=1, keepdims=True), 1e-24))
        scores = jnp.where(jnp.eye(len(z), dtype=bool), low, z @ z.T / temperature)
        partners = jnp.roll(jnp.arange(len(z)), len(view1))
        return -jnp.mean(jax.nn.log_softmax(scores, axis=1)[jnp.arange(len(z)), partners])

    return nt_xent_loss


def four_columns_at_most(left, right, temperature=0.2):
    return SOLUTIONS["paired_contrastive"][0](left[:, :4], right[:, :4], temperature)


def rows_cut(left, right, temperature=0.2):
    return SOLUTIONS["paired_contrastive"][0](left[:4], right[:4], temperature)


def nan_for_zero_rows_on_the_right(left, right, temperature=0.2):
    value = SOLUTIONS["paired_contrastive"][0](left, right, temperature)
    return jnp.where(jnp.any(jnp.all(right == 0, axis=1)), jnp.nan, value)


def anchors_rolled(anchor, batch):
    return jnp.roll(anchor, batch)


def anchors_unused(anchor, batch):
    return jnp.roll(jnp.arange(2 * batch), batch)


def batch_unused(anchor, batch):
    return (anchor + len(anchor) // 2) % len(anchor)


def partners_looked_up(anchor, batch):
    return {2: jnp.array([2, 3, 0, 1]), 3: jnp.array([3, 4, 5, 0, 1, 2])}.get(batch, anchor)


def row_maximum_masked(scores):
    return jnp.where(scores == jnp.max(scores, axis=1, keepdims=True), -jnp.inf, scores)


def first_cell_masked(scores):
    return jnp.where(scores == scores[0, 0], -jnp.inf, scores)


def nan_for_zero_rows(view1, view2, temperature):
    one, other = (view / jnp.linalg.norm(view, axis=1, keepdims=True) for view in (view1, view2))
    scores = one @ other.T / temperature
    both = jax.nn.logsumexp(scores, axis=1) + jax.nn.logsumexp(scores, axis=0)
    return jnp.mean(both / 2 - jnp.diagonal(scores))


def gradient_that_overflows(units, temperature):
    n = len(units)
    terms = jnp.exp(units @ units.T / temperature) * (1 - jnp.eye(n))
    shares = terms / terms.sum(axis=1, keepdims=True)
    return (shares + shares.T - 2 * jnp.roll(jnp.eye(n), n // 2, axis=0)) @ units / (n * temperature)


def cosine_of_zero_rows(embeddings):
    units = embeddings / jnp.linalg.norm(embeddings, axis=1, keepdims=True)
    n = len(units)
    return (jnp.sum(units @ units.T) - n) / (n * (n - 1))


def nan_in_view_2(z):
    other = z[len(z) // 2 :]
    lengths = jnp.linalg.norm(other, axis=1)
    return jnp.where(jnp.all(lengths > 0), SOLUTIONS["positive_only"][0](z), jnp.nan)


def hidden_by_minus_two(table):
    rivals = jnp.max(jnp.where(jnp.eye(len(table), dtype=bool), -2.0, table), axis=1)
    return jnp.mean(jnp.diagonal(table) > rivals)


def ties_within_a_tolerance(table):
    tied = jnp.isclose(table, table.max(axis=1, keepdims=True), atol=0.05)
    return jnp.mean(jnp.diagonal(tied).astype(table.dtype) / tied.sum(axis=1).astype(table.dtype))


def never_below_zero(temperature):
    return max(-math.log(temperature), 0.0)


def whole_scales(temperature):
    return math.log(round(2 / temperature) / 2)


def capped_above_1000(image_features, text_features, logit_scale):
    scale = jnp.where(logit_scale > 6.9, math.log(100), logit_scale)
    return right("contrastive_logits", image_features, text_features, 0.0) * jnp.exp(scale)


def slope_lost_from_3_on(image_features, text_features, logit_scale):
    lost = (logit_scale > 3) & (logit_scale < 4.6)
    scale = jnp.where(lost, jax.lax.stop_gradient(logit_scale), logit_scale)
    return right("clip_loss", image_features, text_features, scale)


WRONG = [
    ("nt_xent_loss", own_cell_at(-100.0), "value on one pair of opposite rows"),
    ("nt_xent_loss", own_cell_at(-1e4), "value on one pair of opposite rows"),
    ("paired_contrastive", rows_cut, "value on nine pairs"),
    ("paired_contrastive", four_columns_at_most, "value on nine pairs"),
    ("paired_contrastive", nan_for_zero_rows_on_the_right, "value on a row of zeros on the right"),
    ("partner_of", anchors_rolled, "value on some rows of 5 pairs"),
    ("partner_of", anchors_unused, "value on rows 4 and 1"),
    ("partner_of", batch_unused, "value on rows 4 and 1"),
    ("partner_of", partners_looked_up, "value on rows 4 and 1"),
    ("mask_self", row_maximum_masked, "value on a 4 by 4 table of uneven scores"),
    ("mask_self", first_cell_masked, "value on a 4 by 4 table of uneven scores"),
    ("cross_view_loss", nan_for_zero_rows, "value on a row of zeros in view 1"),
    ("row_gradient", gradient_that_overflows, "value on unit rows e1, e2, e2, e1"),
    ("mean_cosine", cosine_of_zero_rows, "a row of zeros leaves the result a number"),
    ("positive_only", nan_in_view_2, "value on a row of zeros in view 2"),
    ("strict_hits", hidden_by_minus_two, "value on all scores far below zero"),
    ("expected_hits", ties_within_a_tolerance, "value on scores that are nearly equal"),
    ("to_log_scale", never_below_zero, "value on temperature 2"),
    ("to_log_scale", whole_scales, "value on temperature 0.07"),
    ("contrastive_logits", capped_above_1000, "value on two orthogonal pairs, log scale log 200"),
    ("clip_loss", slope_lost_from_3_on, "gradient on partners exchanged, log scale 4"),
]


@pytest.mark.parametrize(("name", "function", "check"), WRONG)
def test_what_is_right_on_tidy_inputs_only_does_not_pass(name, function, check):
    failing = judge(function, exercise=name).failing
    assert failing is not None and failing.check.startswith(check), failing


def plain(left, right, weight=2.0):
    if isinstance(weight, float) and weight < 0:
        raise ValueError(weight)
    return weight * jnp.mean(jnp.sum((left - right) ** 2, axis=1))


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_a_state_that_shows_late_is_noticed(calls):
    seen = [0]
    concrete = type(jnp.zeros(()))

    def late(left, right, weight=2.0):
        seen[0] += type(left) is concrete and len(left) == 3
        return plain(left, right, weight) + float(seen[0] >= calls)

    failing = judge_function(CONTRACT, late).failing
    assert failing is not None and failing.check == "the same input again"


def checks_the_temperature(left, right, temperature=0.2):
    if temperature <= 0:
        raise ValueError("temperature")
    return SOLUTIONS["paired_contrastive"][0](left, right, temperature)


@pytest.mark.parametrize(
    "function",
    [checks_the_temperature, functools.partial(jax.jit, static_argnums=(2,))(checks_the_temperature)],
    ids=["plain", "jit with a static temperature"],
)
def test_a_look_at_a_number_is_no_mistake(function):
    judgement = judge(function, exercise="paired_contrastive")
    assert judgement.passed, judgement


def temperature_detached(left, right, temperature=0.2):
    return SOLUTIONS["paired_contrastive"][0](left, right, jax.lax.stop_gradient(temperature))


def test_a_temperature_that_would_never_learn_is_noticed():
    failing = judge(temperature_detached, exercise="paired_contrastive").failing
    assert failing is not None and failing.check.startswith("gradient by `temperature` on three pairs"), failing
    assert failing.problem == "The value is right, but the gradient by `temperature` is zero."


def test_fewer_digits_are_no_wrong_value(x64):
    def cast(left, right, weight=2.0):
        return plain(left.astype(jnp.float32), right.astype(jnp.float32), jnp.float32(weight) / 3).astype(float) * 3

    def off(left, right, weight=2.0):
        return plain(left, right, weight) * 1.001

    judgement = judge_function(CONTRACT, lambda left, right, weight=2.0: plain(left, right, weight) * (1 + 1e-7))
    assert judgement.failing is not None and "Only the first digits are right" in judgement.failing.problem
    assert judgement_of_a_cast(cast) and "The value is wrong" in repr(judge_function(CONTRACT, off))


def judgement_of_a_cast(function):
    failing = judge_function(CONTRACT, function).failing
    return failing is not None and "The value is wrong" not in failing.problem


def test_a_partial_that_fixes_by_name_is_told_so():
    failing = judge_function(CONTRACT, functools.partial(plain, left=np.ones((1, 2)))).failing
    assert failing is not None and "A `functools.partial` that sets a parameter by its name" in failing.problem


class SilentError(Exception):
    def __str__(self):
        raise SystemExit


def test_an_error_without_words_is_an_error():
    def silent(left, right, weight=2.0):
        raise SilentError

    failing = judge_function(CONTRACT, silent).failing
    assert failing is not None and failing.problem.startswith("It raised SilentError.")


class Refusal(BaseException):
    pass


def nameless():
    """Made here, because pytest asks every class of a module for its name."""

    class Secretive(type):
        def __getattribute__(cls, name):
            if name in ("__name__", "__module__"):
                raise Refusal
            return super().__getattribute__(name)

    class Nameless(metaclass=Secretive):
        pass

    return Nameless()


class WithoutAName:
    @property
    def __name__(self):
        raise Refusal

    def __call__(self, left, right, weight=2.0):
        return plain(left, right, weight)


class WithoutASignature(WithoutAName):
    __name__ = "gap"

    @property
    def __signature__(self):
        raise Refusal


def test_objects_that_will_not_be_asked_are_judged():
    failing = judge_function(CONTRACT, lambda left, right, weight=2.0: nameless()).failing
    assert failing is not None and "It gave back a Nameless" in failing.problem
    assert judge_function(CONTRACT, WithoutAName()).passed
    assert judge_function(CONTRACT, WithoutASignature()).passed
    assert not judge(WithoutAName()).passed
    assert not judge(WithoutAName(), exercise="clip_loss").passed


def test_an_exercise_that_is_no_text_is_unknown(as_installed):
    with pytest.raises(ValueError, match=r"exercise: expected one of .*, found \[\]"):
        judge(plain, exercise=[])


def test_the_depth_of_calls_is_set_back():
    before = sys.getrecursionlimit()
    guarded.call(lambda: sys.setrecursionlimit(before + 500), ())
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("answer", ["(b)", "b)", "B.", " (B) "])
def test_brackets_around_a_letter(answer):
    assert judge(answer, exercise="broken_run_01").passed
