"""`positive_only` and two measures of collapse, and what goes wrong with them."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue import collapse_variants as wrong
from contrastive_jax.exercises.catalogue.parts import DEAD, EYE, FIRST, SECOND
from contrastive_jax.exercises.contracts import Case, Contract, Evaluate, Property, Variant

_STACK = np.concatenate([EYE, EYE])
TWO_PAIRS = Case("two orthogonal pairs, stacked", (_STACK,), -1.0)
LONG_PAIRS = Case("two orthogonal pairs of length 2, stacked", (2 * _STACK,), -1.0)
EXCHANGED = Case("two orthogonal pairs with the partners exchanged", (_STACK[[0, 1, 3, 2]],), 0.0)
RIGHT_ANGLE = Case("one pair at a right angle", (EYE,), 0.0)
GENERAL_STACK = Case("three pairs in general position, stacked", (np.concatenate([FIRST, SECOND]),))
ZERO_ROW = Case("a row of zeros in view 1", (np.concatenate([DEAD, EYE]),), -0.5, differentiated=False)
ZERO_ROW_IN_VIEW_2 = Case("a row of zeros in view 2", (np.concatenate([EYE, DEAD]),), -0.5, differentiated=False)

POSITIVE_ONLY = Contract(
    name="positive_only",
    parameters=("z",),
    task="Minus the mean cosine between the two views of each source, z = [view1; view2].",
    oracle=lambda z: oracles.positive_only(*np.split(z, 2)),
    cases=(TWO_PAIRS, LONG_PAIRS, EXCHANGED, RIGHT_ANGLE, GENERAL_STACK),
    gradients=(0,),
    extremes=(ZERO_ROW, ZERO_ROW_IN_VIEW_2),
    probes=(GENERAL_STACK.arguments,),
    variants=(
        Variant(wrong.attraction_summed, TWO_PAIRS, -1.0, -2.0),
        Variant(wrong.products_of_long_rows, LONG_PAIRS, -1.0, -4.0, "moein-shariatnia/OpenAI-CLIP#10"),
        Variant(wrong.neighbours_attracted, TWO_PAIRS, -1.0, 0.0, "google-research/simclr#158"),
        Variant(wrong.repulsion, TWO_PAIRS, -1.0, 1.0),
        Variant(wrong.distance_from_one, TWO_PAIRS, -1.0, 0.0),
        Variant(wrong.each_with_itself, EXCHANGED, 0.0, -1.0, "catalyst-team/catalyst#1278"),
        Variant(wrong.averaged_over_columns_too, TWO_PAIRS, -1.0, -0.5),
        Variant(wrong.everybody_attracted, TWO_PAIRS, -1.0, -0.5),
        # The pull of one row at a right angle is along its partner, at full strength.
        Variant(
            wrong.one_view_frozen,
            RIGHT_ANGLE,
            right=-1.0,
            wrong=0.0,
            report="PatrickHua/SimSiam#39",
            gradient_entry=(0, (1, 0)),
        ),
        Variant(wrong.other_view_frozen, RIGHT_ANGLE, right=-1.0, wrong=0.0, gradient_entry=(0, (0, 1))),
        Variant(wrong.dead_row_is_not_a_number, ZERO_ROW, -0.5, math.nan, "huggingface/sentence-transformers#625"),
    ),
    common="Taking a value near -1 for success. Rows that are all alike reach it too, whatever the pictures show.",
)

AT_RIGHT_ANGLES = Case("two rows at a right angle", (EYE,), 0.0)
LONG_AND_ALIKE = Case("two equal rows of length 2", (np.array([[2.0, 0.0], [2.0, 0.0]]),), 1.0)
OPPOSITE = Case("two opposite rows", (np.array([[1.0, 0.0], [-1.0, 0.0]]),), -1.0)
ALIKE_AND_APART = Case("two equal rows and one at a right angle", (EYE[[0, 0, 1]],), 1 / 3)
GENERAL_ROWS = Case("six rows in general position", (np.concatenate([FIRST, SECOND]),))


def _is_a_number(evaluate: Evaluate, *arguments: Any) -> Iterator[tuple[Any, Any]]:
    """What the cosine of a row of zeros with itself is, is a matter of taste; NaN is not."""
    value = evaluate(*arguments).value
    yield float(value is not None and bool(np.all(np.isfinite(value)))), 1.0


MEAN_COSINE = Contract(
    name="mean_cosine",
    parameters=("embeddings",),
    task="Mean cosine similarity between different rows.",
    oracle=oracles.mean_cosine,
    cases=(AT_RIGHT_ANGLES, LONG_AND_ALIKE, OPPOSITE, ALIKE_AND_APART, GENERAL_ROWS),
    properties=(Property("a row of zeros leaves the result a number", (DEAD,), _is_a_number),),
    probes=(GENERAL_ROWS.arguments,),
    variants=(
        Variant(wrong.own_cosines_counted, AT_RIGHT_ANGLES, 0.0, 0.5),
        Variant(wrong.products_for_cosines, LONG_AND_ALIKE, 1.0, 4.0, "moein-shariatnia/OpenAI-CLIP#10"),
        Variant(wrong.signs_dropped, OPPOSITE, -1.0, 1.0),
        Variant(wrong.successive_rows_only, ALIKE_AND_APART, 1 / 3, 0.5),
        Variant(wrong.pairs_counted_once, LONG_AND_ALIKE, 1.0, 0.5),
        Variant(wrong.divided_by_all_cells, ALIKE_AND_APART, 1 / 3, 2 / 9),
        Variant(wrong.cosine_with_the_mean, AT_RIGHT_ANGLES, 0.0, math.sqrt(0.5)),
    ),
    common="Leaving the diagonal in: its cosines of 1 hide a good result in a small batch.",
)

ONE_MOVES = Case("one feature moves, one stands still", (np.array([[0.0, 5.0], [2.0, 5.0]]),), math.sqrt(2) / 2)
ONE_DIRECTION = Case("rows of one direction", (np.array([[1.0, 0.0], [3.0, 0.0]]),), math.sqrt(2) / 2)
GENERAL_FEATURES = Case("six rows in general position", (np.concatenate([FIRST, SECOND]),))

FEATURE_SPREAD = Contract(
    name="feature_spread",
    parameters=("features",),
    task="Sample standard deviation of each feature over the rows, averaged over the features.",
    oracle=oracles.feature_spread,
    cases=(ONE_MOVES, ONE_DIRECTION, GENERAL_FEATURES),
    probes=(GENERAL_FEATURES.arguments,),
    variants=(
        # Within the rows: deviations of (0, 5) and (2, 5).
        Variant(wrong.spread_within_rows, ONE_MOVES, math.sqrt(2) / 2, (5 + 3) / math.sqrt(2) / 2),
        Variant(wrong.divided_by_the_count, ONE_MOVES, math.sqrt(2) / 2, 0.5),
        Variant(wrong.variance_for_deviation, ONE_MOVES, math.sqrt(2) / 2, 1.0),
        Variant(wrong.deviations_added, ONE_MOVES, math.sqrt(2) / 2, math.sqrt(2)),
        Variant(wrong.one_deviation_for_all, ONE_MOVES, math.sqrt(2) / 2, math.sqrt(6)),
        Variant(wrong.directions_for_features, ONE_DIRECTION, math.sqrt(2) / 2, 0.0),
    ),
    common="Taking the deviation along the rows: features of one input may differ a lot while all inputs are alike.",
)
