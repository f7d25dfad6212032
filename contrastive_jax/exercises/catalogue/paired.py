"""`paired_contrastive`, the loss of two matched sides, and what goes wrong with it."""

import math

from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue import paired_variants as wrong
from contrastive_jax.exercises.catalogue.parts import ALIKE, DEAD, EYE, FIRST, LOG_2, NINE, NINE_OTHERS, SECOND, SWAPPED
from contrastive_jax.exercises.catalogue.relations import exchanged, rescaled, same_order, turned
from contrastive_jax.exercises.contracts import Case, Contract, Property, Variant

_ORTHOGONAL = math.log1p(1 / math.e)  # two orthogonal pairs at temperature 1
_COLD = math.log1p(math.exp(-2))  # and at temperature 1/2
# Both left rows see cosines (1, 0), and the second should choose the 0. Of the right rows, the first sees (1, 1), the
# second (0, 0).
_FROM_THE_LEFT, _FROM_THE_RIGHT = (_ORTHOGONAL + math.log1p(math.e)) / 2, LOG_2

ONE_PAIR = Case("one pair, temperature 1", (EYE[:1], EYE[:1], 1.0), 0.0)
TWO_PAIRS = Case("two orthogonal pairs, temperature 1", (EYE, EYE, 1.0), _ORTHOGONAL)
COLD_PAIRS = Case("two orthogonal pairs, temperature 0.5", (EYE, EYE, 0.5), _COLD)
LONG_ROWS = Case("two orthogonal pairs, the left rows of length 2, temperature 1", (2 * EYE, EYE, 1.0), _ORTHOGONAL)
EXCHANGED = Case(
    "two orthogonal pairs with the partners exchanged, temperature 1", (EYE, SWAPPED, 1.0), math.log1p(math.e)
)
LOPSIDED = Case(
    "left rows alike, right rows orthogonal, temperature 1",
    (ALIKE, EYE, 1.0),
    (_FROM_THE_LEFT + _FROM_THE_RIGHT) / 2,
)
TINY = Case("partners exchanged, temperature 0.001", (EYE, SWAPPED, 0.001), 1000.0, size=1000.0)
# The zero row sees (0, 0), the other (0, 1). The first right row sees (0, 0), the second (0, 1).
ZERO_ROW = Case("a row of zeros on the left, temperature 1", (DEAD, EYE, 1.0), (LOG_2 + _ORTHOGONAL) / 2)
ZERO_ROW_ON_THE_RIGHT = Case("a row of zeros on the right, temperature 1", (EYE, DEAD, 1.0), (LOG_2 + _ORTHOGONAL) / 2)
# Exponentials overflow here too, but no softmax comes near zero.
TINY_AND_SURE = Case("two orthogonal pairs, temperature 0.001", (EYE, EYE, 0.001), 0.0, size=1000.0)
NINE_PAIRS = Case("nine pairs of five entries, temperature 0.3", (NINE, NINE_OTHERS, 0.3))
GENERAL = Case("three pairs in general position, temperature 0.4", (FIRST, SECOND, 0.4))

_SHARE = 1 / (math.e + 1)  # of the wrong candidate in a choice between cosines 1 and 0

VARIANTS = (
    Variant(wrong.dot_products, LONG_ROWS, _ORTHOGONAL, _COLD, "moein-shariatnia/OpenAI-CLIP#16"),
    Variant(
        wrong.only_the_left_chooses,
        LOPSIDED,
        (_FROM_THE_LEFT + _FROM_THE_RIGHT) / 2,
        _FROM_THE_LEFT,
        "catalyst-team/catalyst#1278",
    ),
    Variant(wrong.only_the_right_chooses, LOPSIDED, (_FROM_THE_LEFT + _FROM_THE_RIGHT) / 2, _FROM_THE_RIGHT),
    Variant(wrong.directions_summed, TWO_PAIRS, _ORTHOGONAL, 2 * _ORTHOGONAL),
    Variant(wrong.pairs_summed, TWO_PAIRS, _ORTHOGONAL, 2 * _ORTHOGONAL),
    Variant(wrong.minus_missing, TWO_PAIRS, _ORTHOGONAL, -_ORTHOGONAL),
    Variant(wrong.times_temperature, COLD_PAIRS, _COLD, math.log1p(math.exp(-0.5))),
    Variant(wrong.no_temperature, COLD_PAIRS, _COLD, _ORTHOGONAL, "huiserwang/ContrastMask#4"),
    Variant(wrong.temperature_fixed, COLD_PAIRS, _COLD, math.log1p(math.exp(-5))),
    Variant(wrong.temperature_twice, COLD_PAIRS, _COLD, math.log1p(math.exp(-4))),
    Variant(wrong.temperature_spares_the_pair, COLD_PAIRS, _COLD, _ORTHOGONAL, "RElbers/info-nce-pytorch#17"),
    Variant(
        wrong.softmax_twice,
        TWO_PAIRS,
        _ORTHOGONAL,
        math.log1p(math.exp((1 - math.e) / (1 + math.e))),
        "gitabcworld/MatchingNetworks#5",
    ),
    Variant(wrong.pair_not_a_candidate, TWO_PAIRS, _ORTHOGONAL, -1.0, "Shen-Lab/GraphCL#27"),
    Variant(wrong.diagonal_forgotten, TWO_PAIRS, _ORTHOGONAL, 0.5 + _ORTHOGONAL),
    Variant(wrong.left_against_itself, EXCHANGED, math.log1p(math.e), _ORTHOGONAL, "catalyst-team/catalyst#1278"),
    # The wrong candidate counts by its share in two choices: as a candidate, and as one who chooses.
    Variant(wrong.right_detached, TWO_PAIRS, right=_SHARE / 2, wrong=0.0, gradient_entry=(1, (0, 1))),
    Variant(wrong.left_detached, TWO_PAIRS, right=_SHARE / 2, wrong=0.0, gradient_entry=(0, (0, 1))),
    Variant(wrong.lengths_frozen, TWO_PAIRS, right=0.0, wrong=-_SHARE / 2, gradient_entry=(1, (0, 0))),
    Variant(wrong.exponentials_as_they_are, TINY, 1000.0, math.inf, "Lightning-Universe/lightning-bolts#811"),
    Variant(wrong.logarithm_of_a_softmax, TINY, 1000.0, math.inf),
    Variant(
        wrong.zero_over_zero, ZERO_ROW, (LOG_2 + _ORTHOGONAL) / 2, math.nan, "huggingface/sentence-transformers#625"
    ),
    # Half of the pull of its partner, divided by the floor.
    Variant(
        wrong.slope_of_a_zero_length,
        ZERO_ROW,
        right=-0.25e6,
        wrong=math.nan,
        report="google-deepmind/optax#946",
        gradient_entry=(0, (0, 0)),
    ),
)


CONTRACT = Contract(
    name="paired_contrastive",
    parameters=("left", "right", "temperature"),
    task="Mean cost, in nats, at which each row finds its partner on the other side, averaged over both directions.",
    oracle=oracles.paired_contrastive,
    cases=(ONE_PAIR, TWO_PAIRS, COLD_PAIRS, LONG_ROWS, EXCHANGED, LOPSIDED, NINE_PAIRS, GENERAL),
    defaults={"temperature": 0.2},
    gradients=(0, 1),
    gradient_oracle=lambda left, right, temperature: oracles.paired_gradients(left, right, temperature)[:2],
    slopes=(2,),
    properties=(
        Property("pairs in another order cost the same", GENERAL.arguments, same_order),
        Property("exchanging the sides changes nothing", GENERAL.arguments, exchanged),
        Property("the lengths of the rows do not matter", GENERAL.arguments, rescaled),
        Property("turning both sides together changes nothing", GENERAL.arguments, turned),
    ),
    extremes=(ZERO_ROW, ZERO_ROW_ON_THE_RIGHT, TINY, TINY_AND_SURE),
    probes=(GENERAL.arguments,),
    variants=VARIANTS,
    common="Asking in one direction only. On pairs that look the same from both sides it cannot be seen.",
)
