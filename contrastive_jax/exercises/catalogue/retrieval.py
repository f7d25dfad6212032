"""`strict_hits` and `expected_hits`: which queries find their own answer, with ties defined."""

import math

import numpy as np

from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue import retrieval_variants as wrong
from contrastive_jax.exercises.catalogue.parts import EYE
from contrastive_jax.exercises.contracts import Case, Contract, Variant

# Two rows win, one loses, three are tied: with an earlier cell, with a later one, and with both.
TIES = np.array(
    [
        [0.8, 0.3, 0.0, -0.2, -0.2, 0.2],
        [0.9, 0.9, 0.1, 0.7, -0.2, 0.3],
        [0.3, -0.2, 0.8, 0.8, 0.0, 0.3],
        [-0.2, -0.1, 0.0, 0.3, 0.0, -0.1],
        [-0.1, 0.9, -0.1, 0.9, 0.9, -0.1],
        [0.1, 0.9, 0.3, 0.5, 0.9, 0.1],
    ]
)
_EYE = (EYE,)
_TIED = (np.array([[0.8, 0.8], [0.1, 0.9]]),)
_UNEQUAL = (np.array([[0.9, 0.3], [0.2, 0.25]]),)  # both rows win, the second column loses
_NEGATIVE = (np.array([[-0.5, -1.0], [-1.0, -0.5]]),)
_BEATEN = (np.array([[0.5, 0.9], [0.1, 0.9]]),)
_COLLAPSED = (np.ones((3, 3)),)


def _strict(table: np.ndarray) -> float:
    return oracles.retrieval_accuracy(table, 1, "strict")[0]


def _expected(table: np.ndarray) -> float:
    return oracles.retrieval_accuracy(table, 1, "expected")[0]


MATCHED = Case("a table of two sure rows", _EYE, 1.0)
TIED = Case("a tie with a later cell in the first row", _TIED, 0.5)
UNEQUAL = Case("rows that win, and a column that loses", _UNEQUAL, 1.0)
NEGATIVE = Case("all scores negative", _NEGATIVE, 1.0)
FAR_BELOW = Case("all scores far below zero", (np.array([[-500.0, -900.0], [-900.0, -500.0]]),), 1.0)
NEARLY_EQUAL = Case("scores that are nearly equal", (np.array([[0.5, 0.499], [0.1, 0.7]]),), 1.0)
COLLAPSED = Case("a collapsed model: all cells equal", _COLLAPSED, 0.0)
MANY_TIES = Case("six rows: two win, one loses, three are tied", (TIES,), 2 / 6)

STRICT_HITS = Contract(
    name="strict_hits",
    parameters=("table",),
    task="Share of the rows whose diagonal cell is larger than every other cell of the row; a tie is a miss.",
    oracle=_strict,
    cases=(MATCHED, TIED, UNEQUAL, NEGATIVE, FAR_BELOW, NEARLY_EQUAL, COLLAPSED, MANY_TIES),
    dtype_follows=False,
    probes=((TIES,), _NEGATIVE, _UNEQUAL),
    variants=(
        Variant(wrong.ties_are_hits, COLLAPSED, 0.0, 1.0),
        Variant(wrong.first_of_equals, TIED, 0.5, 1.0),
        Variant(wrong.columns_asked, UNEQUAL, 1.0, 0.5),
        Variant(wrong.first_of_equals_in_columns, UNEQUAL, 1.0, 0.5),
        Variant(wrong.own_among_the_rivals, MATCHED, 1.0, 0.0),
        Variant(wrong.number_of_hits, MATCHED, 1.0, 2.0),
        Variant(wrong.share_of_misses, MATCHED, 1.0, 0.0),
        Variant(wrong.own_hidden_by_zero, NEGATIVE, 1.0, 0.0),
    ),
    common="`argmax(table, axis=1) == arange(B)`: among equals it takes the first, so the order of the batch decides.",
)

_TIED_BY_CHANCE = Case("a tie of two cells in the first row", _TIED, 0.75)
_COLLAPSED_BY_CHANCE = Case("a collapsed model: all cells equal", _COLLAPSED, 1 / 3)
_BEATEN_BY_CHANCE = Case("the first row is beaten", _BEATEN, 0.5)
_MANY_BY_CHANCE = Case("six rows: two win, one loses, three are tied", (TIES,), (2 + 1 / 2 + 1 / 2 + 1 / 3) / 6)

EXPECTED_HITS = Contract(
    name="expected_hits",
    parameters=("table",),
    task="Share of the rows that find their diagonal cell if ties are broken by chance: a tie of n cells counts 1/n.",
    oracle=_expected,
    cases=(MATCHED, _TIED_BY_CHANCE, _BEATEN_BY_CHANCE, NEGATIVE, NEARLY_EQUAL, _COLLAPSED_BY_CHANCE, _MANY_BY_CHANCE),
    dtype_follows=False,
    probes=((TIES,), _COLLAPSED),
    variants=(
        Variant(wrong.ties_are_misses, _TIED_BY_CHANCE, 0.75, 0.5),
        Variant(wrong.ties_are_full_hits, _TIED_BY_CHANCE, 0.75, 1.0),
        Variant(wrong.half_a_hit_for_any_tie, _COLLAPSED_BY_CHANCE, 1 / 3, 1 / 2),
        Variant(wrong.beaten_rows_get_credit, _BEATEN_BY_CHANCE, 0.5, 1.0),
        Variant(wrong.rivals_counted_without_the_own, _TIED_BY_CHANCE, 0.75, 1.0),
        Variant(wrong.own_cell_not_counted, MATCHED, 1.0, math.inf),
        Variant(wrong.own_cells_along_the_row, _BEATEN_BY_CHANCE, 0.5, 0.75),
    ),
    common="Counting every tie as one half. In a collapsed batch of B all B cells share the place, and each has 1/B.",
)
