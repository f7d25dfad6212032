"""Every known misconception is shown by its smallest case, differs from all others, and is called by its own name."""

import dataclasses
import functools
import itertools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from wrong_styles import STYLES

import contrastive_jax
from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue import EXERCISES, parts
from contrastive_jax.exercises.contracts import Choice, Contract, Outcome
from contrastive_jax.exercises.diagnosis import candidates, distance, inputs, shows_at_extremes
from contrastive_jax.exercises.evaluation import ambient_dtype, evaluate, outcome_of
from contrastive_jax.exercises.references import agree, gradients_agree, right_gradients, right_value

CONTRACTS = [exercise for exercise in EXERCISES.values() if isinstance(exercise, Contract)]
CHOICES = [exercise for exercise in EXERCISES.values() if isinstance(exercise, Choice)]
EVERY_VARIANT = [
    pytest.param(contract, variant, id=f"{contract.name}-{variant.name}")
    for contract in CONTRACTS
    for variant in contract.variants
]
by_contract = pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
# In units of what rounding may move a result by.
SAFE = 30


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs():
    """Hundreds of small programs, three gigabytes, that no other test needs."""
    yield
    jax.clear_caches()


@functools.cache
def outcome(contract: Contract, variant: int, number: int, dtype: str) -> Outcome:
    """Of a variant on one of the inputs that tell variants apart; None is the right function."""
    arguments = inputs(contract)[number].arguments
    return evaluate(contract, contract.variants[variant].function, arguments, dtype).outcome


@functools.cache
def right(contract: Contract, number: int) -> Outcome:
    case = inputs(contract)[number]
    return Outcome(
        right_value(contract, case), right_gradients(contract, case.arguments) if case.differentiated else ()
    )


def apart(contract: Contract, one: int, other: int | None, numbers) -> float:
    """The largest distance of two variants, or of one from the right function, over some inputs."""
    largest = 0.0
    for number in numbers:
        found = outcome(contract, one, number, ambient_dtype())
        known = right(contract, number) if other is None else outcome(contract, other, number, ambient_dtype())
        if other is None and not known.gradients:
            found = found._replace(gradients=())
        largest = max(largest, distance(found, known))
    return largest


def group(contract: Contract, at_extremes: bool) -> list[int]:
    return [
        i
        for i, each in enumerate(contract.variants)
        if shows_at_extremes(contract, each) == at_extremes and ambient_dtype() in each.shows_in
    ]


def probes(contract: Contract) -> range:
    return range(len(contract.probes))


def extremes(contract: Contract) -> range:
    return range(len(contract.probes), len(inputs(contract)))


def test_the_catalogue_is_complete():
    assert all(name == exercise.name for name, exercise in EXERCISES.items())
    assert (len(CONTRACTS), len(CHOICES)) == (20, 4)
    names = [parameter.id.partition("-")[2] for parameter in EVERY_VARIANT]
    assert len(names) == len(set(names)) >= 150
    assert all(len(contract.variants) >= 3 for contract in CONTRACTS)


@by_contract
def test_a_contract_is_whole(contract):
    assert contract.task and contract.common and contract.probes
    for case in (*contract.cases, *contract.extremes, *contract.properties, *contract.rejections):
        assert len(case.arguments) == len(contract.parameters) and case.what
    smallest, largest = ([np.size(a) for a in contract.cases[i].arguments] for i in (0, -1))
    assert sum(smallest) <= sum(largest)


@pytest.mark.parametrize(("contract", "variant"), EVERY_VARIANT)
def test_a_variant_is_explained_in_one_line_and_reported(contract, variant):
    assert 40 < len(variant.explanation) < 125 and "\n" not in variant.explanation
    assert variant.explanation.endswith(".") and variant.explanation[0] in "`1ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert variant.report == "" or re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", variant.report)


def test_many_variants_stand_for_a_public_report():
    reports = [parameter.values[1].report for parameter in EVERY_VARIANT]
    assert sum(map(bool, reports)) >= 50 and len(set(reports)) >= 20


@by_contract
def test_the_oracle_agrees_with_the_closed_forms(contract):
    closed = [case for case in (*contract.cases, *contract.extremes) if case.expected is not None]
    assert closed
    for case in closed:
        np.testing.assert_allclose(
            np.asarray(contract.oracle(*case.arguments), float),
            case.expected,
            rtol=1e-12,
            atol=1e-13,
            err_msg=case.what,
        )


@pytest.mark.parametrize(("contract", "variant"), EVERY_VARIANT)
def test_the_smallest_case_of_a_variant(contract, variant, x64):
    case = variant.case
    found = evaluate(contract, variant.function, case.arguments, variant.shows_in[-1]).outcome
    assert found.failure is None
    expected, wrong = right_value(contract, case), found.value
    if variant.gradient_entry is not None:
        agree_in_value = np.allclose(wrong, expected, rtol=1e-9)
        number, index = variant.gradient_entry
        place = contract.gradients.index(number)
        wrong, expected = found.gradients[place][index], right_gradients(contract, case.arguments)[place][index]
        assert agree_in_value
    np.testing.assert_allclose(np.asarray(wrong, float), variant.wrong, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.asarray(expected, float), variant.right, rtol=1e-7, atol=1e-9)
    assert not np.allclose(variant.right, variant.wrong, rtol=0.01, atol=0.01)


@by_contract
def test_variants_are_far_apart(contract, precision):
    for at_extremes, numbers in ((False, probes(contract)), (True, extremes(contract))):
        members = group(contract, at_extremes)
        gaps = {
            (contract.variants[one].name, other and contract.variants[other].name): apart(contract, one, other, numbers)
            for one, other in [*itertools.combinations(members, 2), *((one, None) for one in members)]
        }
        assert {pair: gap for pair, gap in gaps.items() if gap < SAFE} == {}
    for place in group(contract, True):
        assert apart(contract, place, None, probes(contract)) <= 1


STYLE_CASES = [
    pytest.param(exercise, name, function, id=f"{name}-{function.__name__}")
    for (exercise, name), functions in STYLES.items()
    for function in functions
]


@pytest.mark.parametrize(("exercise", "name", "function"), STYLE_CASES)
def test_other_code_with_the_same_misconception_is_named_alike(exercise, name, function, precision):
    contract = EXERCISES[exercise]
    # Half of them as a learner's own compiled function.
    found = candidates(
        contract, outcome_of(contract, jax.jit(function) if "_by_optax" in function.__name__ else function)
    )
    assert [each.name for each in found] == [name]


def test_there_are_enough_styles():
    assert len(STYLES) >= 10 and all(len(functions) >= 2 for functions in STYLES.values())


def strict(table):
    return contrastive_jax.retrieval_accuracy(table).left_to_right


RIGHT = {
    "paired_contrastive": contrastive_jax.paired_contrastive,
    "mismatched_loss": lambda left, right, order: contrastive_jax.paired_contrastive(left, right[order], 0.2),
    "partner_of": lambda anchor, batch: jnp.where(anchor < batch, anchor + batch, anchor - batch),
    "nt_xent_loss": contrastive_jax.nt_xent_loss,
    "cross_view_loss": lambda view1, view2, t: contrastive_jax.clip_loss(view1, view2, -jnp.log(t)),
    "contrastive_logits": contrastive_jax.contrastive_logits,
    "clip_loss": contrastive_jax.clip_loss,
    "strict_hits": strict,
    "expected_hits": lambda table: contrastive_jax.retrieval_accuracy(table, ties="expected").left_to_right,
    "scale_gradient": lambda images, texts, s: jax.grad(contrastive_jax.clip_loss, 2)(
        images, texts, jnp.asarray(s, images.dtype)
    ),
    "positive_only": contrastive_jax.positive_only,
    "mean_cosine": contrastive_jax.mean_cosine,
    "feature_spread": contrastive_jax.feature_spread,
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_are_right_on_all_cases(name, precision):
    contract = EXERCISES[name]
    for case in (*contract.cases, *contract.extremes):
        found = evaluate(contract, RIGHT[name], case.arguments, precision).outcome
        assert agree(found.value, right_value(contract, case), case.size, precision), case.what
        if contract.gradients and case.differentiated:
            for gradient, slope in zip(found.gradients, right_gradients(contract, case.arguments), strict=True):
                assert gradients_agree(gradient, slope, case.size**2, precision), case.what
    assert candidates(contract, outcome_of(contract, RIGHT[name])) == ()


@pytest.mark.parametrize(
    "function",
    [
        lambda view1, view2, temperature=0.5: contrastive_jax.nt_xent_loss(view1, view2, temperature) + 0.1,
        lambda view1, view2, temperature=0.5: contrastive_jax.nt_xent_loss(view1, view2, temperature)[None],
        lambda view1, view2, temperature=0.5: contrastive_jax.nt_xent_loss(view1, view2, temperature) * (1 + 1j),
        lambda view1, view2, temperature=0.5: jnp.nan * jnp.sum(view1),
        lambda view1, view2, temperature=0.5: -jnp.log(0 * jnp.sum(view1**2)),
        lambda view1, view2, temperature=0.5: view1,
        lambda view1, view2, temperature=0.5: view1[100:].shape[2],
    ],
    ids=["shifted", "of shape (1,)", "complex", "never a number", "always infinite", "a matrix", "raises"],
)
def test_what_nobody_has_seen_before_is_not_named(function, x64):
    contract = EXERCISES["nt_xent_loss"]
    assert candidates(contract, outcome_of(contract, function)) == ()


def overflowing_at_any_row_but_zero(view1, view2, temperature=0.5):
    """Two faults of the extremes at once: NaN at a zero row, and exponentials that overflow."""
    z = jnp.concatenate([view1, view2])
    z = z / jnp.linalg.norm(z, axis=1, keepdims=True)
    terms = jnp.where(jnp.eye(len(z), dtype=bool), 0.0, jnp.exp(z @ z.T / temperature))
    return -jnp.mean(jnp.log(jnp.diagonal(jnp.roll(terms, len(view1), axis=1)) / terms.sum(axis=1)))


def test_of_two_faults_at_the_extremes_the_first_is_named(precision):
    contract = EXERCISES["nt_xent_loss"]
    found = candidates(contract, outcome_of(contract, overflowing_at_any_row_but_zero))
    assert [each.name for each in found] == ["zero_row_is_not_a_number"]


def test_two_that_cannot_be_told_apart_are_both_named(x64):
    contract = EXERCISES["to_log_scale"]
    twin = contract.variants[0]._replace(report="twin")
    doubled = dataclasses.replace(contract, variants=(*contract.variants, twin))
    found = candidates(doubled, outcome_of(doubled, lambda temperature: jnp.log(temperature)))
    assert [each.name for each in found] == ["log_of_the_temperature"] * 2
    assert [each.report for each in found] == ["", "twin"]


@pytest.mark.parametrize("low", [-1e9, -1e30, float(np.finfo(np.float32).min), -100.0])
def test_every_low_number_in_place_of_minus_infinity_is_one_mistake(low, precision):
    contract = EXERCISES["mask_self"]
    found = candidates(contract, outcome_of(contract, lambda s: jnp.where(jnp.eye(len(s), dtype=bool), low, s)))
    assert [each.name for each in found] == ["own_score_very_low"]


def test_exponentials_that_overflow_to_nan_are_named():
    def multiplied_mask(view1, view2, temperature=0.5):
        z = contrastive_jax.l2_normalize(jnp.concatenate([view1, view2]))
        terms = jnp.exp(z @ z.T / temperature) * (1 - jnp.eye(len(z)))
        return -jnp.mean(jnp.log(jnp.diagonal(jnp.roll(terms, len(view1), axis=1)) / terms.sum(axis=1)))

    contract = EXERCISES["nt_xent_loss"]
    found = candidates(contract, outcome_of(contract, multiplied_mask))
    assert [each.name for each in found] == ["exponentials_overflow"]


def test_a_sum_of_exponentials_and_a_softmax_are_told_apart():
    def sums(left, right, temperature=0.2):
        units = [contrastive_jax.l2_normalize(side, norm_floor=1e-6) for side in (left, right)]
        scores = units[0] @ units[1].T / temperature
        terms = jnp.exp(scores)
        both = jnp.log(terms.sum(axis=1)) + jnp.log(terms.sum(axis=0))
        return jnp.mean(both / 2 - jnp.diagonal(scores))

    contract = EXERCISES["paired_contrastive"]
    found = candidates(contract, outcome_of(contract, sums))
    assert [each.name for each in found] == ["exponentials_as_they_are"]


@pytest.mark.parametrize("exponentials", [False, True])
def test_a_softmax_that_rounds_to_zero_is_named_in_clip_too(exponentials):
    def loss(image_features, text_features, logit_scale):
        scores = contrastive_jax.contrastive_logits(image_features, text_features, logit_scale)
        terms = jnp.exp(scores if exponentials else scores - jnp.max(scores))
        own = jnp.diagonal(terms)
        return -jnp.mean(jnp.log(own / terms.sum(axis=1)) + jnp.log(own / terms.sum(axis=0))) / 2

    contract = EXERCISES["clip_loss"]
    found = candidates(contract, outcome_of(contract, loss))
    name = "exponentials_of_the_scores" if exponentials else "softmax_before_the_logarithm"
    assert [each.name for each in found] == [name]


def test_in_float64_no_share_of_clip_rounds_to_zero(x64):
    contract = EXERCISES["clip_loss"]
    variants = [each for each in contract.variants if each.shows_in == ("float32",)]
    assert len(variants) == 2
    for variant in variants:
        assert candidates(contract, outcome_of(contract, variant.function)) == ()


@pytest.mark.parametrize("log_scale", [-0.7, 0.9, math.log(99.9), math.log(100.1), 20.0])
def test_gradients_of_the_table_are_its_slopes(log_scale):
    contract = EXERCISES["contrastive_logits"]
    arguments = (parts.FIRST, parts.SECOND, log_scale)
    by_differences = right_gradients(dataclasses.replace(contract, gradient_oracle=None), arguments)
    for gradient, slope in zip(right_gradients(contract, arguments), by_differences, strict=True):
        np.testing.assert_allclose(gradient, slope, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("name", ["EYE", "SWAPPED", "ALIKE", "FIRST", "SECOND", "DEAD", "NINE", "NINE_OTHERS"])
def test_a_judged_function_cannot_change_what_it_is_held_to(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(parts, name)[...] = 0


def test_rounding_has_room_and_nothing_else_has():
    one = Outcome(np.float32(1.0).reshape(()), (np.ones(3, np.float32),))
    assert distance(one, one._replace(value=np.asarray(1 + 1e-5, np.float32))) < 1
    assert distance(one, one._replace(value=np.asarray(1 + 1e-3, np.float32))) > 1
    assert distance(one, one._replace(gradients=(np.array([1, 1, 1.01], np.float32),))) > 1
    assert distance(one, one._replace(gradients=())) == math.inf
    assert distance(one, one._replace(value=np.ones(1, np.float32))) == math.inf
    assert distance(one, one._replace(value=np.asarray(np.nan, np.float32))) == math.inf
    assert distance(one, Outcome(None, failure="raises")) == math.inf


def ring(degrees):
    return np.array([[math.cos(math.radians(each)), math.sin(math.radians(each))] for each in degrees])


def test_numbers_of_the_first_broken_run():
    around = ring([0, 90, 180, 270])
    numbers = list(EXERCISES["broken_run_01"].numbers.values())
    shuffled = around[[2, 0, 3, 1]]
    cosines = around @ shuffled.T
    nearest = np.sum(np.argmax(cosines, axis=1) == np.arange(4))
    found = [oracles.paired_contrastive(around, shuffled, 0.2), math.log(4), nearest]
    assert numbers == pytest.approx([*found, cosines.max(axis=1).min(), cosines.min(axis=1).max()])


def test_numbers_of_the_second_broken_run(x64):
    variant = next(each for each in EXERCISES["nt_xent_loss"].variants if each.name == "self_among_candidates")
    inputs_of_it = (np.ones((1, 2)), np.eye(2), np.ones((2, 2)))
    found = [float(variant.function(jnp.asarray(x), jnp.asarray(x), 1.0)) for x in inputs_of_it]
    assert list(EXERCISES["broken_run_02"].numbers.values()) == pytest.approx(found)


def test_numbers_of_the_third_broken_run(x64):
    numbers = list(EXERCISES["broken_run_03"].numbers.values())
    loss, slope = jax.value_and_grad(contrastive_jax.clip_loss, 2)(jnp.eye(2), jnp.eye(2)[::-1], numbers[1])
    assert numbers[0] < numbers[2] < numbers[1]
    assert [numbers[2], slope, loss] == pytest.approx(numbers[2:])


def test_numbers_of_the_fourth_broken_run():
    rng = np.random.default_rng(0)

    def cost(directions):
        """NT-Xent at temperature 0.5, over many batches of 64 pictures of four kinds."""
        costs = []
        for _ in range(2000):
            kinds = np.tile(rng.integers(4, size=64), 2)
            cosines = (directions @ directions.T)[kinds][:, kinds]
            sums = np.exp(cosines / 0.5).sum(axis=1) - np.exp(1 / 0.5)
            costs.append(np.mean(np.log(sums) - 1 / 0.5))
        return np.mean(costs)

    loss, _, best, cosine = EXERCISES["broken_run_04"].numbers.values()
    two_and_two = ring([0, 0, 180, 180])
    tetrahedron = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / math.sqrt(3)
    assert loss == pytest.approx(cost(two_and_two), abs=3e-3)
    assert best == pytest.approx(cost(tetrahedron), abs=3e-3)
    for directions, mean in ((two_and_two, cosine), (tetrahedron, cosine), (ring([0, 120, 240, 240]), 1 / 16)):
        assert np.mean(directions @ directions.T) == pytest.approx(mean)


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.name)
def test_a_choice_has_one_right_answer_and_a_reason_for_each(choice):
    assert choice.right in choice.options and len(choice.options) == 4
    assert all(option.text.endswith(".") and option.reason.endswith(".") for option in choice.options.values())
