"""`nt_xent_loss`, the loss of one pile of two views, and what goes wrong with it."""

import math

import numpy as np

from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue import nt_xent_variants as wrong
from contrastive_jax.exercises.catalogue.parts import ALIKE, DEAD, EYE, FIRST, LOG_2, NINE, NINE_OTHERS, SECOND, SWAPPED
from contrastive_jax.exercises.catalogue.relations import exchanged, rescaled, same_order, turned
from contrastive_jax.exercises.contracts import Case, Contract, Property, Rejection, Variant

_ORTHOGONAL = math.log1p(2 / math.e)  # NT-Xent of two orthogonal pairs at temperature 1
_COLD = math.log1p(2 * math.exp(-2))  # and at temperature 1/2
_PAIRED = math.log1p(1 / math.e)  # and their paired loss
_EXCHANGED = 1 + _ORTHOGONAL  # partners are at a right angle, and one negative of each row is its copy
_TWO_ALIKE = math.log(2 + 1 / math.e)  # one positive and one negative of cosine 1, one negative of cosine 0

TWO_PAIRS = Case("two orthogonal pairs, temperature 1", (EYE, EYE, 1.0), _ORTHOGONAL)
COLD_PAIRS = Case("two orthogonal pairs, temperature 0.5", (EYE, EYE, 0.5), _COLD)
LONG_ROWS = Case("two orthogonal pairs of length 2, temperature 1", (2 * EYE, 2 * EYE, 1.0), _ORTHOGONAL)
ONE_PAIR = Case("one pair, temperature 1", (EYE[:1], EYE[:1], 1.0), 0.0)
EXCHANGED = Case("two orthogonal pairs with the partners exchanged, temperature 1", (EYE, SWAPPED, 1.0), _EXCHANGED)
LOPSIDED = Case(
    "both rows of view 1 alike, those of view 2 orthogonal, temperature 1",
    (ALIKE, EYE, 1.0),
    (3 * _TWO_ALIKE + 1 + math.log(3)) / 4,
)
# Each row has its copy among the negatives, at a score of 1000.
TINY = Case("partners exchanged, temperature 0.001", (EYE, SWAPPED, 0.001), 1000.0, size=1000.0)
# The only candidate has a score of -100000, below every number that is taken for minus infinity by mistake.
OPPOSITE = Case(
    "one pair of opposite rows, temperature 0.00001",
    (EYE[:1], np.array([[-1.0, 0.0]]), 0.00001),
    0.0,
    size=1e5,
)
ZERO_ROW = Case("a row of zeros in view 1, temperature 1", (DEAD, EYE, 1.0), (math.log(3) + _ORTHOGONAL) / 2)
ALIKE_ALL = Case("four equal rows, temperature 0.5", (ALIKE, ALIKE, 0.5), math.log(3))
NINE_PAIRS = Case("nine pairs of five entries, temperature 0.3", (NINE, NINE_OTHERS, 0.3))
GENERAL = Case("three pairs in general position, temperature 0.4", (FIRST, SECOND, 0.4))

_HALF_A_STEP = 1 / (math.e + 2)  # share of each of the two negatives of an anchor in its choice

VARIANTS = (
    Variant(wrong.lengths_kept, LONG_ROWS, _ORTHOGONAL, math.log1p(2 * math.exp(-4)), "HobbitLong/SupContrast#22"),
    Variant(
        wrong.one_length_for_all,
        TWO_PAIRS,
        _ORTHOGONAL,
        math.log1p(2 * math.exp(-0.5)),
        "tensorflow/similarity#237",
    ),
    Variant(wrong.self_among_candidates, ONE_PAIR, 0.0, LOG_2),
    Variant(wrong.self_scored_zero, TWO_PAIRS, _ORTHOGONAL, math.log1p(3 / math.e), "google-research/simclr#20"),
    Variant(
        wrong.e_subtracted_for_self,
        COLD_PAIRS,
        _COLD,
        math.log(2 + 2 * math.exp(-2) - math.exp(-1)),
        "Lightning-Universe/lightning-bolts#609",
    ),
    Variant(wrong.other_view_only, TWO_PAIRS, _ORTHOGONAL, _PAIRED, "catalyst-team/catalyst#1278"),
    Variant(wrong.partner_not_a_candidate, TWO_PAIRS, _ORTHOGONAL, LOG_2 - 1, "Shen-Lab/GraphCL#27"),
    Variant(wrong.neighbour_as_partner, TWO_PAIRS, _ORTHOGONAL, 1 + _ORTHOGONAL, "google-research/simclr#158"),
    # Of three columns the labels of view 1 are 2 and, past the end, 2 again; those of view 2 are right.
    Variant(wrong.label_of_the_full_row, TWO_PAIRS, _ORTHOGONAL, _ORTHOGONAL + 0.25, "lightly-ai/lightly#1176"),
    Variant(wrong.same_view_twice, EXCHANGED, _EXCHANGED, _ORTHOGONAL, "catalyst-team/catalyst#1278"),
    Variant(wrong.first_view_chooses, LOPSIDED, (3 * _TWO_ALIKE + 1 + math.log(3)) / 4, _TWO_ALIKE + 0.5),
    Variant(
        wrong.second_view_chooses,
        LOPSIDED,
        (3 * _TWO_ALIKE + 1 + math.log(3)) / 4,
        (_TWO_ALIKE + math.log(3)) / 2,
    ),
    Variant(wrong.directions_added, TWO_PAIRS, _ORTHOGONAL, 2 * _ORTHOGONAL),
    Variant(wrong.costs_summed, TWO_PAIRS, _ORTHOGONAL, 4 * _ORTHOGONAL),
    Variant(wrong.minus_left_out, TWO_PAIRS, _ORTHOGONAL, -_ORTHOGONAL),
    Variant(wrong.divided_by_negatives, TWO_PAIRS, _ORTHOGONAL, 2 * _ORTHOGONAL, "lucidrains/contrastive-learner#2"),
    Variant(wrong.temperature_multiplies, COLD_PAIRS, _COLD, math.log1p(2 * math.exp(-0.5))),
    Variant(wrong.temperature_ignored, COLD_PAIRS, _COLD, _ORTHOGONAL, "huiserwang/ContrastMask#4"),
    Variant(wrong.temperature_on_negatives_only, COLD_PAIRS, _COLD, _ORTHOGONAL, "RElbers/info-nce-pytorch#17"),
    Variant(wrong.scaled_by_temperature, TWO_PAIRS, _ORTHOGONAL, _ORTHOGONAL / 0.07, "HobbitLong/SupContrast#106"),
    # Each negative counts by its share, as a candidate and as an anchor.
    Variant(
        wrong.candidates_detached,
        TWO_PAIRS,
        right=_HALF_A_STEP,
        wrong=_HALF_A_STEP / 2,
        report="facebookresearch/SLIP#31",
        gradient_entry=(1, (0, 1)),
    ),
    Variant(wrong.second_view_detached, TWO_PAIRS, right=_HALF_A_STEP, wrong=0.0, gradient_entry=(1, (0, 1))),
    Variant(wrong.first_view_detached, TWO_PAIRS, right=_HALF_A_STEP, wrong=0.0, gradient_entry=(0, (0, 1))),
    # Without its part along the row: the pull of the partner, as anchor and as candidate.
    Variant(wrong.length_detached, TWO_PAIRS, right=0.0, wrong=-_HALF_A_STEP, gradient_entry=(1, (0, 0))),
    Variant(wrong.exponentials_overflow, TINY, 1000.0, math.inf, "Lightning-Universe/lightning-bolts#811"),
    Variant(
        wrong.zero_row_is_not_a_number,
        ZERO_ROW,
        (math.log(3) + _ORTHOGONAL) / 2,
        math.nan,
        "huggingface/sentence-transformers#625",
    ),
    # A third of the pull of one partner at full strength, divided by the floor.
    Variant(
        wrong.zero_row_breaks_the_gradient,
        ZERO_ROW,
        right=-1e12 / 3,
        wrong=math.nan,
        report="google-deepmind/optax#946",
        gradient_entry=(0, (0, 0)),
    ),
)

CONTRACT = Contract(
    name="nt_xent_loss",
    parameters=("view1", "view2", "temperature"),
    task="Mean cost, in nats, at which each of the 2B rows of [view1; view2] finds its partner among all other rows.",
    oracle=oracles.nt_xent,
    cases=(ONE_PAIR, TWO_PAIRS, COLD_PAIRS, LONG_ROWS, EXCHANGED, LOPSIDED, ALIKE_ALL, NINE_PAIRS, GENERAL),
    defaults={"temperature": 0.5},
    gradients=(0, 1),
    gradient_oracle=lambda view1, view2, temperature: oracles.nt_xent_gradients(view1, view2, temperature)[:2],
    slopes=(2,),
    properties=(
        Property("pairs in another order cost the same", GENERAL.arguments, same_order),
        Property("exchanging the views changes nothing", GENERAL.arguments, exchanged),
        Property("the lengths of the rows do not matter", GENERAL.arguments, rescaled),
        Property("turning all rows together changes nothing", GENERAL.arguments, turned),
    ),
    extremes=(ZERO_ROW, TINY, OPPOSITE),
    rejections=(
        Rejection("views with different numbers of rows", (FIRST, SECOND[:2], 0.5)),
        Rejection("temperature 0", (EYE, EYE, 0.0)),
        Rejection("a negative temperature", (EYE, EYE, -0.5)),
    ),
    probes=(GENERAL.arguments,),
    variants=VARIANTS,
    common="Stacking the views in one order and marking partners in another. One pair, or a batch of equal rows, "
    "cannot show it.",
)
