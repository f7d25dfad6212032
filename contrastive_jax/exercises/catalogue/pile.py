"""The steps towards NT-Xent and the exercises around it."""

import math

import numpy as np

from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue import pile_variants as wrong
from contrastive_jax.exercises.catalogue.parts import ALIKE, DEAD, EYE, FIRST, LOG_2, SECOND, SWAPPED
from contrastive_jax.exercises.catalogue.relations import exchanged, rescaled, same_order
from contrastive_jax.exercises.contracts import Case, Contract, Property, Variant

FOUR, SIX = np.arange(4, dtype=np.int32), np.arange(6, dtype=np.int32)
FOUR_ROWS = Case("all rows of 2 pairs", (FOUR, 2), np.array([2, 3, 0, 1]))
SIX_ROWS = Case("all rows of 3 pairs", (SIX, 3), np.array([3, 4, 5, 0, 1, 2]))
SOME_ROWS = Case("rows 4 and 1 of 3 pairs", (np.array([4, 1], np.int32), 3), np.array([1, 4]))
SOME_OF_TEN = Case("some rows of 5 pairs", (np.array([0, 7, 4, 9, 2], np.int32), 5), np.array([5, 2, 9, 4, 7]))

PARTNER_OF = Contract(
    name="partner_of",
    parameters=("anchor", "batch"),
    task="Row numbers of the partners of the rows `anchor` in a stack [view1; view2] of `batch` pairs.",
    oracle=oracles.partner_of,
    cases=(FOUR_ROWS, SIX_ROWS, SOME_ROWS, SOME_OF_TEN),
    dtype_follows=False,
    probes=(FOUR_ROWS.arguments, SIX_ROWS.arguments),
    variants=(
        Variant(
            wrong.next_to_each_other,
            FOUR_ROWS,
            FOUR_ROWS.expected,
            np.array([1, 0, 3, 2]),
            "google-research/simclr#158",
        ),
        Variant(wrong.past_the_end, FOUR_ROWS, FOUR_ROWS.expected, np.array([2, 3, 4, 5]), "lightly-ai/lightly#1176"),
        Variant(wrong.before_the_start, FOUR_ROWS, FOUR_ROWS.expected, np.array([-2, -1, 0, 1])),
        Variant(wrong.back_to_the_same_view, FOUR_ROWS, FOUR_ROWS.expected, np.array([0, 1, 0, 1])),
        Variant(wrong.mirrored, FOUR_ROWS, FOUR_ROWS.expected, np.array([3, 2, 1, 0])),
    ),
    common="Adding the batch without coming back to the start: rows of view 2 have partners too.",
)

INF = np.inf
TABLE = np.array([[3.0, 1.0, 2.0, 0.5], [1.0, 3.0, 0.5, 2.0], [2.0, 0.5, 3.0, 1.0], [0.5, 2.0, 1.0, 3.0]])
TWO_BY_TWO = Case(
    "a 2 by 2 table", (np.array([[5.0, 1.0], [1.0, 5.0]]),), np.array([[-INF, 1.0], [1.0, -INF]]), differentiated=False
)
FOUR_BY_FOUR = Case("a 4 by 4 table", (TABLE,), np.where(np.eye(4, dtype=bool), -INF, TABLE), differentiated=False)
# The diagonal is neither the largest of its row nor always the same.
MIXED = np.array([[0.5, 2.0, -1.0, 0.5], [3.0, -2.0, 1.0, 0.0], [0.0, 4.0, 1.5, 1.5], [2.5, 0.5, -3.0, 1.0]])
UNEVEN = Case(
    "a 4 by 4 table of uneven scores", (MIXED,), np.where(np.eye(4, dtype=bool), -INF, MIXED), differentiated=False
)

MASK_SELF = Contract(
    name="mask_self",
    parameters=("scores",),
    task="The table of scores with every row's score with itself set to minus infinity.",
    oracle=oracles.mask_self,
    cases=(TWO_BY_TWO, FOUR_BY_FOUR, UNEVEN),
    probes=(TWO_BY_TWO.arguments, FOUR_BY_FOUR.arguments),
    variants=(
        Variant(
            wrong.own_score_zero,
            TWO_BY_TWO,
            TWO_BY_TWO.expected,
            np.array([[0.0, 1.0], [1.0, 0.0]]),
            "google-research/simclr#20",
        ),
        Variant(
            wrong.own_score_very_low,
            TWO_BY_TWO,
            TWO_BY_TWO.expected,
            np.array([[-1e9, 1.0], [1.0, -1e9]]),
            "NVIDIA/apex#1052",
        ),
        Variant(wrong.all_but_self_masked, TWO_BY_TWO, TWO_BY_TWO.expected, np.array([[5.0, -INF], [-INF, 5.0]])),
        Variant(wrong.partners_masked, TWO_BY_TWO, TWO_BY_TWO.expected, np.full((2, 2), -INF), "Shen-Lab/GraphCL#27"),
    ),
    common="Multiplying the own score by 0: a score of 0 is a candidate like any other.",
)

NAMED = np.arange(1.0, 7.0)[:, None]
FOUR_NAMED = Case("rows 1 to 4 of one entry", (NAMED[:4],), np.array([[1.0], [3.0], [2.0], [4.0]]))
SIX_NAMED = Case("rows 1 to 6 of one entry", (NAMED,), np.array([[1.0], [3.0], [5.0], [2.0], [4.0], [6.0]]))
WIDE_NAMED = Case("six rows of three entries", (np.concatenate([FIRST, SECOND]),))

STACK_VIEWS = Contract(
    name="stack_views",
    parameters=("interleaved",),
    task="Rows first0, second0, first1, second1, ... in the order first0, first1, ..., second0, second1, ...",
    oracle=oracles.stack_views,
    cases=(FOUR_NAMED, SIX_NAMED, WIDE_NAMED),
    probes=(SIX_NAMED.arguments,),
    variants=(
        Variant(wrong.nothing_moved, FOUR_NAMED, FOUR_NAMED.expected, NAMED[:4], "Spijkervet/SimCLR#30"),
        Variant(wrong.back_to_interleaved, SIX_NAMED, SIX_NAMED.expected, NAMED[[0, 3, 1, 4, 2, 5]]),
        Variant(wrong.second_views_on_top, FOUR_NAMED, FOUR_NAMED.expected, NAMED[[1, 3, 0, 2]]),
        Variant(
            wrong.first_views_twice, FOUR_NAMED, FOUR_NAMED.expected, NAMED[[0, 2, 0, 2]], "catalyst-team/catalyst#1278"
        ),
    ),
    common="`reshape(2, B, D)` has the right shape, but it never changes the order of the rows.",
)

_PAIRED = math.log1p(1 / math.e)
TWO_PAIRS = Case("two orthogonal pairs, temperature 1", (EYE, EYE, 1.0), _PAIRED)
# Both rows of view 1 see cosines (1, 0) and want the first and the second; those of view 2 see (1, 1) and (0, 0).
_FROM_VIEW_1 = (_PAIRED + math.log1p(math.e)) / 2
LOPSIDED = Case(
    "rows of view 1 alike, rows of view 2 orthogonal, temperature 1", (ALIKE, EYE, 1.0), (_FROM_VIEW_1 + LOG_2) / 2
)
GENERAL = Case("three pairs in general position, temperature 0.4", (FIRST, SECOND, 0.4))
ZERO_ROW = Case("a row of zeros in view 1, temperature 1", (DEAD, EYE, 1.0), (LOG_2 + _PAIRED) / 2)
COLD = Case("partners exchanged, temperature 0.01", (EYE, SWAPPED, 0.01), 100.0, size=100.0)

CROSS_VIEW_LOSS = Contract(
    name="cross_view_loss",
    parameters=("view1", "view2", "temperature"),
    task="CLIP's symmetric objective in nats, cut out of the stacked table by forbidding the cells of the own view.",
    oracle=oracles.cross_view_loss,
    cases=(TWO_PAIRS, LOPSIDED, GENERAL),
    gradients=(0, 1),
    gradient_oracle=lambda view1, view2, temperature: oracles.paired_gradients(view1, view2, temperature, 1e-12)[:2],
    properties=(
        Property("pairs in another order cost the same", GENERAL.arguments, same_order),
        Property("exchanging the views changes nothing", GENERAL.arguments, exchanged),
        Property("the lengths of the rows do not matter", GENERAL.arguments, rescaled),
    ),
    extremes=(ZERO_ROW, COLD),
    probes=(GENERAL.arguments,),
    variants=(
        Variant(wrong.only_self_forbidden, TWO_PAIRS, _PAIRED, math.log1p(2 / math.e)),
        Variant(wrong.nothing_forbidden, TWO_PAIRS, _PAIRED, math.log(2 + 2 / math.e)),
        Variant(wrong.odd_and_even_forbidden, TWO_PAIRS, _PAIRED, math.inf, "Spijkervet/SimCLR#30"),
        Variant(wrong.forbidden_cells_zero, TWO_PAIRS, _PAIRED, math.log1p(3 / math.e), "google-research/simclr#20"),
        Variant(wrong.first_views_ask, LOPSIDED, (_FROM_VIEW_1 + LOG_2) / 2, _FROM_VIEW_1),
        Variant(wrong.second_views_ask, LOPSIDED, (_FROM_VIEW_1 + LOG_2) / 2, LOG_2),
        Variant(wrong.halves_added, TWO_PAIRS, _PAIRED, 2 * _PAIRED),
        Variant(wrong.costs_added_up, TWO_PAIRS, _PAIRED, 4 * _PAIRED),
    ),
    common="Telling the views apart by odd and even row numbers: that is the interleaved layout.",
)
