"""The judge's checks, on a small contract: every wrong function is told what is wrong with it, the right ones pass."""

import codecs
import dataclasses
import functools
import itertools
import math
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from example_contract import CONTRACT, LEFT, RIGHT

from contrastive_jax.exercises import diagnosis, guarded, judging, references
from contrastive_jax.exercises.contracts import Case, Contract, Variant
from contrastive_jax.exercises.judging import judge_function

CONCRETE = type(jnp.zeros(()))  # inside a trace it would be a tracer's


def right(left, right, weight=2.0):
    if isinstance(weight, float) and weight < 0:
        raise ValueError("the weight is negative")
    return weight * jnp.mean(jnp.sum((left - right) ** 2, axis=1))


def by_loops_in_jax(left, right, weight=2.0):
    if not isinstance(weight, jax.Array) and weight < 0:
        raise ValueError(weight)
    total = 0.0
    for i in range(left.shape[0]):
        for j in range(left.shape[1]):
            total = total + (left[i, j] - right[i, j]) ** 2
    return weight * total / left.shape[0]


def by_vmap(left, right, weight=2.0):
    # Looks at the weight: numbers cannot be traced here, which is no mistake.
    if not weight >= 0:
        raise ValueError(weight)
    return weight * jnp.mean(jax.vmap(lambda a, b: jnp.vdot(a - b, a - b))(left, right))


@functools.partial(jax.jit, static_argnames=("weight",))
def compiled_itself(left, right, weight=2.0):
    return right_side(left, right, weight)


def right_side(left, right, weight):
    if weight < 0:
        raise ValueError(weight)
    return weight * jnp.mean(jnp.sum(jnp.square(left - right), axis=1))


def with_keywords_and_print(left, right, weight=2.0, *, mean=jnp.mean):
    print("shape", left.shape)
    return right_side(left, right, weight) if mean is jnp.mean else mean(left)


STYLES = [right, by_loops_in_jax, by_vmap, compiled_itself, with_keywords_and_print]


@pytest.mark.parametrize("function", STYLES, ids=lambda f: f.__name__)
def test_every_right_style_passes(function, precision):
    judgement = judge_function(CONTRACT, function)
    assert judgement.passed, judgement
    assert len(judgement.findings) == (16 if precision == "float64" else 15)


def test_a_partial_function_passes():
    judgement = judge_function(CONTRACT, functools.partial(with_keywords_and_print, mean=jnp.mean))
    assert judgement.passed, judgement


# Each wrong function, the check that fails first, and words of what is said.
counter = itertools.count()
kept = []


def not_written(left, right, weight=2.0):
    raise NotImplementedError


def dots(left, right, weight=2.0):
    return ...


def nothing(left, right, weight=2.0):
    right_side(left, right, weight)


def a_tuple(left, right, weight=2.0):
    return right_side(left, right, weight), left


def a_text(left, right, weight=2.0):
    return "4.0"


def a_function(left, right, weight=2.0):
    return lambda: right_side(left, right, weight)


def a_generator_inside(left, right, weight=2.0):
    return (row for row in left)


def one_in_brackets(left, right, weight=2.0):
    return right_side(left, right, weight)[None]


def python_float(left, right, weight=2.0):
    return float(right_side(left, right, weight))


def numpy_number(left, right, weight=2.0):
    return np.mean(np.sum((np.asarray(left) - np.asarray(right)) ** 2, axis=1)) * weight


def python_if(left, right, weight=2.0):
    value = right_side(left, right, weight)
    return value if value > 0 else -value


def twice(left, right, weight=2.0):
    return 2 * right_side(left, right, weight)


def not_a_number(left, right, weight=2.0):
    return right_side(left, right, weight) + jnp.log(jnp.sum(left) * 0 - 1)


def infinite_for_three(left, right, weight=2.0):
    return right_side(left, right, weight) * (jnp.inf if len(left) == 3 else 1.0)


def raises_for_three(left, right, weight=2.0):
    if len(left) == 3:
        left = left @ right
    return right_side(left, right, weight)


def detached(left, right, weight=2.0):
    return right_side(left, jax.lax.stop_gradient(right), weight)


def half_the_slope(left, right, weight=2.0):
    value = right_side(left, right, weight)
    return 0.5 * value + 0.5 * jax.lax.stop_gradient(value)


def slope_not_finite(left, right, weight=2.0):
    return right_side(left, right, weight) + 0 * jnp.sum(jnp.sqrt(jnp.abs(left * 0)))


def calls_back(left, right, weight=2.0):
    shape = jax.ShapeDtypeStruct((), left.dtype)
    return jax.pure_callback(lambda a, b: np.asarray(weight * np.mean(np.sum((a - b) ** 2, axis=1)), a.dtype),
                             shape, left, right)  # fmt: skip


def prints_from_inside(left, right, weight=2.0):
    jax.debug.print("left {}", left)
    return right_side(left, right, weight)


def rounded(left, right, weight=2.0):
    return right_side(left, right, weight).astype(jnp.bfloat16)


def in_whole_numbers(left, right, weight=2.0):
    return jnp.round(right_side(left, right, weight)).astype(int)


def in_place(left, right, weight=2.0):
    left -= right
    return weight * jnp.mean(jnp.sum(left**2, axis=1))


def deletes(left, right, weight=2.0):
    value = right_side(left, right, weight)
    if type(left) is CONCRETE and left.shape == (3, 2):
        left.delete()
    return value


def drifts(left, right, weight=2.0):
    return right_side(left, right, weight) + next(counter)


def remembers(left, right, weight=2.0):
    kept.append(left)
    return right_side(kept[0], right, weight) if left.shape == kept[0].shape else right_side(left, right, weight)


def meddles(left, right, weight=2.0):
    jax.config.update("jax_default_matmul_precision", "highest")
    return right_side(left, right, weight)


def one_sided(left, right, weight=2.0):
    return right_side(left, right, weight) + jnp.where(weight == 2, jnp.sum(left), 0.0)


def overflows(left, right, weight=2.0):
    return right_side(left, right, weight) * jnp.where(jnp.max(left) > 1e6, jnp.inf, 1.0)


def accepts_everything(left, right, weight=2.0):
    return weight * jnp.mean(jnp.sum((left - right) ** 2, axis=1))


def refuses_wrongly(left, right, weight=2.0):
    if not isinstance(weight, jax.Array) and weight < 0:
        raise KeyError("weight")
    return accepts_everything(left, right, weight)


def two_arguments(left, right):
    return accepts_everything(left, right)


def other_names(a, b, weight=2.0):
    return accepts_everything(a, b, weight)


def no_default(left, right, weight):
    return accepts_everything(left, right, weight)


def other_default(left, right, weight=1.0):
    return accepts_everything(left, right, weight)


async def waits(left, right, weight=2.0):
    return accepts_everything(left, right, weight)


def yields(left, right, weight=2.0):
    yield accepts_everything(left, right, weight)


class AClass:
    def __init__(self, left, right, weight=2.0):
        pass


class Flatterer:
    """Equal to everything, and says that it is an array."""

    __array_priority__ = 1000
    __class__ = jax.Array  # pyright: ignore[reportAssignmentType]
    shape, dtype, ndim = (), np.dtype("float32"), 0

    def __eq__(self, other):
        return True

    def __array__(self, dtype=None, copy=None):
        return np.asarray(4.0)

    def __float__(self):
        return 4.0


def flatters(left, right, weight=2.0):
    return Flatterer()


class OwnArray(np.ndarray):
    def __sub__(self, other):
        return np.zeros(())


def own_array(left, right, weight=2.0):
    return np.zeros(()).view(OwnArray)


WRONG = [
    (two_arguments, "the signature", "It takes `(left, right)`; it is called as `gap(left, right, weight=2.0)`"),
    (other_names, "the signature", "callers use the names in"),
    (no_default, "the signature", "`weight` has no default value; it should be 2.0"),
    (other_default, "the signature", "default value of `weight` should be 2.0"),
    (waits, "the signature", "defined with `async def`"),
    (yields, "the signature", "it says `yield`"),
    (AClass, "the signature", "This is a class"),
    (4.0, "the signature", "This is of type float, not a function"),
    (not_written, "value on one pair", "It is not written yet."),
    (dots, "value on one pair", "It is not written yet."),
    (nothing, "value on one pair", "It gave back nothing"),
    (a_tuple, "value on one pair", "It gave back a tuple; one array is expected"),
    (a_text, "value on one pair", "It gave back a str"),
    (a_function, "value on one pair", "round brackets"),
    (a_generator_inside, "value on one pair", "it says `yield`"),
    (flatters, "value on one pair", "It gave back a Flatterer"),
    (own_array, "value on one pair", "It gave back an OwnArray"),
    (one_in_brackets, "value on one pair", "shape (1,); expected one number, shape (). The numbers in it are right."),
    (twice, "value on one pair", "The value is wrong."),
    (not_a_number, "value on one pair", "The value is NaN."),
    (drifts, "value on three pairs", "The value is wrong."),
    (infinite_for_three, "value on three pairs", "The value is infinite."),
    (in_whole_numbers, "value on three pairs", "The value is wrong."),
    (rounded, "value on three pairs", "The value is wrong."),
    (python_float, "stays in JAX", "of type float, which `jit` and `grad` cannot follow"),
    (numpy_number, "stays in JAX", "of type float32, which `jit`"),
    (python_if, "stays in JAX", "use `jnp.where` or `jnp.maximum`"),
    (calls_back, "stays in JAX", "calls back into Python from inside the computation (`pure_callback`)"),
    (prints_from_inside, "stays in JAX", "prints from inside the computation with `jax.debug`"),
    (detached, "gradient on one pair", "The value is right, but the gradient by `right` is zero."),
    (half_the_slope, "gradient on one pair", "The value is right, but the gradient by `left` is wrong."),
    (slope_not_finite, "gradient on one pair", "The value is right, but the gradient by `left` is NaN."),
    (in_place, "inputs stay", "It changes the arrays it is given"),
    (deletes, "inputs stay", "It deletes the arrays it is given"),
    (meddles, "settings stay", "changes a setting of JAX for all that follows: jax_default_matmul_precision"),
    (one_sided, "exchanging the sides", "This should hold, and does not: exchanging the sides changes nothing."),
    (overflows, "value on rows of length 1e12", "The value is infinite."),
    (accepts_everything, "refuses a negative weight", "It accepts a negative weight; it should raise ValueError."),
    (refuses_wrongly, "refuses a negative weight", "should raise ValueError. It raised KeyError: 'weight'."),
]


@pytest.mark.parametrize(("function", "check", "words"), WRONG, ids=lambda each: getattr(each, "__name__", None))
def test_every_wrong_function_is_told_what_is_wrong(function, check, words):
    kept.clear()
    failing = judge_function(CONTRACT, function).failing
    assert failing is not None
    assert failing.check.startswith(check) and words in failing.problem, failing
    assert jax.config.jax_default_matmul_precision is None


def test_a_shape_that_only_one_size_has():
    failing = judge_function(CONTRACT, raises_for_three).failing
    assert failing is not None and failing.check == "value on three pairs, weight 3"
    line = raises_for_three.__code__.co_firstlineno + 2
    assert failing.problem.startswith("It raised TypeError: ")
    assert failing.problem.endswith(f" Line {line}: `left = left @ right`.")


def test_state_between_calls_is_noticed():
    # Right on every new shape, and wrong when the same comes again.
    seen = set()

    def state(left, right, weight=2.0):
        known = left.shape in seen and type(left) is CONCRETE
        seen.add(left.shape)
        return right_side(left, right, weight) + (1.0 if known else 0.0)

    failing = judge_function(CONTRACT, state).failing
    assert failing is not None and "keeps a state, or draws by chance" in failing.problem


@pytest.mark.parametrize("limit", [0.3])
def test_an_endless_loop_is_a_sentence(limit):
    def endless(left, right, weight=2.0):
        while True:
            left = left + 1

    for verbose in (False, True):
        judgement = judge_function(CONTRACT, endless, limit=limit, verbose=verbose)
        assert judgement.failing is not None and judgement.findings[-1] is judgement.failing
        assert "did not finish within 0.3 seconds and was stopped" in judgement.failing.problem


def test_a_helper_that_is_not_written_is_named():
    def distance(left, right):
        raise NotImplementedError

    def uses_it(left, right, weight=2.0):
        return weight * distance(left, right)

    judgement = judge_function(CONTRACT, uses_it, verbose=True)
    assert judgement.findings[-1].problem == "It calls `distance`, which is not written yet."
    assert len(judgement.findings) == 2


def test_what_a_library_has_not_implemented_is_no_stub():
    def not_ours(left, right, weight=2.0):
        return codecs.Codec().encode("")

    failing = judge_function(CONTRACT, not_ours).failing
    assert failing is not None and failing.problem.startswith("It raised NotImplementedError.")


def test_what_cannot_be_stopped_asks_for_a_new_kernel(monkeypatch):
    monkeypatch.setattr(guarded, "call", lambda *a, **k: guarded.Call(too_long=True, stuck=True))
    judgement = judge_function(CONTRACT, right, verbose=True)
    assert judgement.failing is not None and "restart the kernel before you go on" in judgement.failing.problem
    assert len(judgement.findings) == 2  # the signature, and the first call


KNOWN = Variant(twice, CONTRACT.cases[0], right=4.0, wrong=8.0)


def test_trouble_with_the_known_mistakes_does_not_stop_the_judge(monkeypatch):
    def broken(contract, behaviour):
        raise TypeError("not the learner's fault")

    monkeypatch.setattr(diagnosis, "candidates", broken)
    judgement = judge_function(dataclasses.replace(CONTRACT, variants=(KNOWN,)), twice)
    assert not judgement.passed and judgement.diagnoses == ()
    assert repr(judgement).endswith("Known mistakes could not be compared, because of TypeError.")
    assert "none of the" not in repr(judgement)


def test_a_slow_function_does_not_hold_up_the_judge(monkeypatch):
    monkeypatch.setattr(judging, "BUDGET", 0.1)

    def slow(left, right, weight=2.0):
        time.sleep(0.4)
        return right_side(left, right, weight)

    start = time.monotonic()
    judgement = judge_function(CONTRACT, slow, limit=10)
    assert time.monotonic() - start < 5
    assert judgement.failing is not None and "take longer than 1 seconds" in judgement.failing.problem


def test_the_expected_value_is_the_oracles_where_there_is_no_closed_form():
    case = CONTRACT.cases[1]
    assert references.right_value(CONTRACT, case) == CONTRACT.oracle(*case.arguments) == 22.5625
    assert references.right_value(CONTRACT, case._replace(expected=5.0)) == 5.0


def test_gradients_of_the_oracle_by_differences():
    by_differences = dataclasses.replace(CONTRACT, gradient_oracle=None, gradients=(0, 1, 2))
    found = references.right_gradients(by_differences, (LEFT, RIGHT, 3.0))
    for actual, expected in zip(found, [2 * (LEFT - RIGHT), 2 * (RIGHT - LEFT), 22.5625 / 3], strict=True):
        assert np.max(np.abs(actual - expected)) < 1e-8
    # Where the number is zero, a step relative to it would be none.
    slope = references.right_gradients(by_differences, (LEFT, RIGHT, 0.0))[2]
    assert abs(slope - 22.5625 / 3) < 1e-8


def test_of_an_array_the_weighted_sum_is_differentiated():
    squares = Contract("squares", ("x",), "", lambda x: x**2, (Case("", (np.array([1.0, 3.0]),)),), gradients=(0,))
    (gradient,) = references.right_gradients(squares, (np.array([1.0, 3.0]),))
    assert np.max(np.abs(gradient - [2.0, 12.0])) < 1e-8  # weights 1 and 2
    assert judge_function(squares, lambda x: x * x).passed
    failing = judge_function(squares, lambda x: jax.lax.stop_gradient(x) * x).failing
    assert failing is not None and "gradient by `x` is wrong" in failing.problem


@pytest.mark.parametrize(
    ("off", "dtype", "same"),
    [(5e-6, "float32", True), (3e-5, "float32", False), (5e-11, "float64", True), (3e-10, "float64", False)],
)
def test_rounding_is_allowed_and_no_more(off, dtype, same):
    found = np.asarray(1 + off, dtype)
    assert references.agree(found, 1.0, 1.0, dtype) is same


def test_large_terms_leave_larger_errors():
    assert not references.agree(np.float32(5e-5), 0.0, 1.0, "float32")
    assert references.agree(np.float32(5e-5), 0.0, 100.0, "float32")


@pytest.mark.parametrize("expected", [math.nan, math.inf, -math.inf, 0.0])
def test_what_is_not_finite_agrees_with_itself_only(expected):
    for found in (math.nan, math.inf, -math.inf, 0.0):
        same = str(found) == str(expected)
        assert references.agree(np.array([found]), np.array([expected]), 1.0, "float64") is same
        assert references.gradients_agree(np.array([found]), np.array([expected]), 1.0, "float64") is same


def test_whole_numbers_agree_exactly():
    assert references.agree(np.array([2, 3]), np.array([2, 3]), 1.0, "float32")
    assert not references.agree(np.array([2, 3.000001]), np.array([2, 3]), 1.0, "float32")
    assert not references.agree(np.array([2]), np.array([2, 2]), 1.0, "float32")


def test_a_huge_row_does_not_hide_a_wrong_small_one():
    expected = np.array([[1e12, 0.0], [1.0, 0.0]])
    assert references.gradients_agree(expected * (1 + 1e-6), expected, 1.0, "float32")
    assert not references.gradients_agree(expected + np.array([[0.0], [0.1]]), expected, 1.0, "float32")


@pytest.mark.parametrize(
    ("oracle", "good", "bad"),
    [
        (lambda x: np.asarray(x) > 0, lambda x: x > 0, lambda x: (x > 0).astype(int)),
        (lambda x: np.argsort(x), lambda x: jnp.argsort(x), lambda x: jnp.argsort(x).astype(float)),
    ],
    ids=["truth values", "whole numbers"],
)
def test_the_kind_of_the_result(oracle, good, bad):
    contract = Contract("f", ("x",), "", oracle, (Case("two numbers", (np.array([2.0, -1.0]),)),))
    assert judge_function(contract, good).passed
    failing = judge_function(contract, bad).failing
    assert failing is not None and failing.check == "dtype for float32"


def test_a_contract_for_plain_numbers():
    plain = Contract("log", ("x",), "", math.log, (Case("e", (math.e,), 1.0),), traceable=False)
    for right_one in (lambda x: math.log(x), lambda x: np.log(x), lambda x: jnp.log(jnp.asarray(x, "float32"))):
        assert judge_function(plain, right_one).passed, right_one
    failing = judge_function(plain, lambda x: math.exp(x)).failing
    assert failing is not None and failing.problem == "The value is wrong."


def test_in_double_precision_single_is_judged_too(x64):
    def only_double(left, right, weight=2.0):
        if not isinstance(weight, jax.Array) and weight < 0:
            raise ValueError(weight)
        return accepts_everything(left.astype("float64"), right.astype("float64"), weight)

    failing = judge_function(CONTRACT, only_double).failing
    assert failing is not None and failing.check == "dtype for float32"
    assert "For float32 input the result is of dtype float64; expected float32." in failing.problem


def test_verbose_makes_all_checks():
    judgement = judge_function(CONTRACT, half_the_slope, verbose=True)
    failed = [finding.check for finding in judgement.findings if not finding.passed]
    assert failed == [
        "gradient on one pair at distance 2, weight 1",
        "gradient on three pairs, weight 3",
        "gradient on rows of length 1e12",
    ]
    assert len(judgement.findings) == 15
