"""The exercises of the first notebook besides its loss: a wrong answer key, duplicates, and a check of the gradient."""

import math
from typing import Any

import numpy as np

from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue import pairing_variants as wrong
from contrastive_jax.exercises.catalogue.parts import ALIKE, EYE, FIRST, LOG_2, SECOND
from contrastive_jax.exercises.contracts import Case, Contract, Variant

SWAP = np.array([1, 0], np.int32)
ROUND = np.array([1, 2, 0], np.int32)  # not its own inverse

_COLD, _LOST = math.log1p(math.exp(-5)), math.log1p(math.exp(5))  # a pair at cosine 1 against 0, and the other way
_SLANT = math.sqrt(0.5)  # cosine of (1, 0) and (1, 1)
_ONE_OF_THREE, _TWO_OF_THREE = math.log(math.exp(5) + 2), math.log(2 * math.exp(5) + 1)  # candidates of cosine 1

SWAPPED_PAIRS = Case("two orthogonal pairs, order 1, 0", (EYE, EYE, SWAP), _LOST)
SLANTED_PAIRS = Case(
    "left rows alike, right rows (1, 0) and (1, 1), order 1, 0",
    (ALIKE, np.array([[1.0, 0.0], [1.0, 1.0]]), SWAP),
    (math.log1p(math.exp(5 * (1 - _SLANT))) - 2.5 * (1 - _SLANT) + LOG_2) / 2,
)
THREE_PAIRS = Case(
    "left rows e1, e2, e2, right rows e1, e1, e2, order 1, 2, 0",
    (EYE[[0, 1, 1]], EYE[[0, 0, 1]], ROUND),
    (2 * _TWO_OF_THREE + 4 * _ONE_OF_THREE - 20) / 6,
)
MISMATCHED = Case("three pairs in general position, order 1, 2, 0", (FIRST, SECOND, ROUND))

MISMATCHED_LOSS = Contract(
    name="mismatched_loss",
    parameters=("left", "right", "order"),
    task="The paired loss at temperature 0.2, in nats, after only the right rows were put into `order`.",
    oracle=oracles.mismatched_loss,
    cases=(SWAPPED_PAIRS, SLANTED_PAIRS, THREE_PAIRS, MISMATCHED),
    gradients=(0, 1),
    probes=(MISMATCHED.arguments,),
    variants=(
        Variant(wrong.both_sides_or_none, SWAPPED_PAIRS, _LOST, _COLD),
        Variant(
            wrong.left_side_reordered,
            THREE_PAIRS,
            (2 * _TWO_OF_THREE + 4 * _ONE_OF_THREE - 20) / 6,
            (2 * _TWO_OF_THREE + 4 * _ONE_OF_THREE) / 6,
        ),
        Variant(
            wrong.columns_reordered,
            SLANTED_PAIRS,
            (math.log1p(math.exp(5 * (1 - _SLANT))) - 2.5 * (1 - _SLANT) + LOG_2) / 2,
            (math.log1p(math.exp(5 * _SLANT)) - 2.5 * _SLANT + LOG_2) / 2,
        ),
    ),
    common="Reordering both sides: every pair still matches, and the loss stays as it was.",
)

TWO_PAIRS = Case("two orthogonal pairs", (EYE, EYE), LOG_2)
GUESSING = Case("all four rows alike", (ALIKE, ALIKE), LOG_2)
GENERAL_PAIRS = Case("three pairs in general position", (FIRST, SECOND), LOG_2)

DUPLICATE_PENALTY = Contract(
    name="duplicate_penalty",
    parameters=("left", "right"),
    task="By how much the paired loss at temperature 0.2 grows, in nats, when every pair stands in the batch twice.",
    oracle=oracles.duplicate_penalty,
    cases=(TWO_PAIRS, GUESSING, GENERAL_PAIRS),
    probes=(GENERAL_PAIRS.arguments,),
    variants=(
        Variant(wrong.one_side_doubled, TWO_PAIRS, LOG_2, LOG_2 / 2),
        Variant(wrong.copies_in_another_order, TWO_PAIRS, LOG_2, LOG_2 + 2.5, "Spijkervet/SimCLR#30"),
        Variant(wrong.columns_repeated, TWO_PAIRS, LOG_2, 0.0),
        Variant(wrong.ratio_of_losses, TWO_PAIRS, LOG_2, (_COLD + LOG_2) / _COLD),
        Variant(wrong.doubled_loss_itself, GUESSING, LOG_2, 2 * LOG_2),
        Variant(wrong.original_minus_doubled, TWO_PAIRS, LOG_2, -LOG_2),
    ),
    common="Doubling one side only: the table is no longer square, and its diagonal is taken without a word.",
)


def cubes(w: Any) -> Any:
    """lambda w: jnp.sum(w**3)"""
    return (w**3).sum()


ONE_WEIGHT = Case("the cube of one weight, 1, step 0.25", (cubes, np.array([1.0]), (0,), 0.25), 3.0625)
TWO_WEIGHTS = Case("cubes of the weights 1 and 2, step 0.25", (cubes, np.array([1.0, 2.0]), (0,), 0.25), 3.0625)
FOUR_WEIGHTS = Case(
    "cubes of four weights, index (1, 0), step 0.25",
    (cubes, np.array([[1.0, 2.0], [3.0, 4.0]]), (1, 0), 0.25),
    27.0625,
    size=100.0,
)

CENTRED_DIFFERENCE = Contract(
    name="centred_difference",
    parameters=("function", "weights", "index", "step"),
    task="Slope of `function` with respect to the one weight at `index`, from a step to each side.",
    oracle=oracles.slope_by_two_steps,
    cases=(ONE_WEIGHT, TWO_WEIGHTS, FOUR_WEIGHTS),
    # A large step, far from autodiff.
    probes=((*FOUR_WEIGHTS.arguments[:3], 0.75),),
    variants=(
        Variant(wrong.step_up_only, ONE_WEIGHT, 3.0625, 3.8125),
        Variant(wrong.step_down_only, ONE_WEIGHT, 3.0625, 2.3125),
        Variant(wrong.divided_by_one_step, ONE_WEIGHT, 3.0625, 6.125),
        Variant(wrong.not_divided, ONE_WEIGHT, 3.0625, 1.53125),
        Variant(wrong.half_times_step, ONE_WEIGHT, 3.0625, 0.19140625),
        Variant(wrong.below_minus_above, ONE_WEIGHT, 3.0625, -3.0625),
        Variant(wrong.all_weights_moved, TWO_WEIGHTS, 3.0625, 15.125),
        Variant(wrong.first_weight_moved, FOUR_WEIGHTS, 27.0625, 3.0625),
        Variant(wrong.autodiff_itself, ONE_WEIGHT, 3.0625, 3.0),
        Variant(wrong.weight_replaced, ONE_WEIGHT, 3.0625, 0.0625),
    ),
    common="A step to one side only: its error shrinks with the step, not with the square of the step.",
)
