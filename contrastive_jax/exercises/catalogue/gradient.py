"""`row_gradient`, NT-Xent's gradient in one line, and what goes wrong with it."""

import math
from typing import Any

import numpy as np

from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue import gradient_variants as wrong
from contrastive_jax.exercises.catalogue.parts import EYE
from contrastive_jax.exercises.contracts import Case, Contract, Variant

TWO_PAIRS = np.concatenate([EYE, EYE])
# Each row e1 is pulled by its partner e1 and pushed by both rows e2, each as an answer and as an asker; and so on.
_PULL = np.tile([[-1.0, 1.0], [1.0, -1.0]], (2, 1))
_SHARE = 1 / (math.e + 2)  # each rival's
_SHARE_WITH_SELF = 1 / (2 * math.e + 2)
PAIRS = Case("two orthogonal pairs of unit rows, temperature 1", (TWO_PAIRS, 1.0), _SHARE * _PULL)
COLD_PAIRS = Case("two orthogonal pairs of unit rows, temperature 0.5", (TWO_PAIRS, 0.5), 2 / (math.exp(2) + 2) * _PULL)

# Rows e1, e2, e2, e2. The first has three candidates at a right angle; each other row has one of those, with the share
# _FAR, and two copies of itself. What each row is pulled by as the one who asks, and as an answer:
_FAR = 1 / (2 * math.e + 1)
_ASKING = np.array([[0, 0], [_FAR, -_FAR], [_FAR - 1, 1 - _FAR], [_FAR, -_FAR]]) / 4
_ASKED = np.array([[0, 3 * _FAR - 1], [1 / 3, -_FAR], [-2 / 3, 1 - _FAR], [1 / 3, -_FAR]]) / 4
LOPSIDED = Case("unit rows e1, e2, e2, e2, temperature 1", (EYE[[0, 1, 1, 1]], 1.0), _ASKING + _ASKED)

UNITS = np.array([[0.6, 0.8, 0], [0, 0.6, -0.8], [1, 0, 0], [0.8, 0, 0.6], [0.28, 0.96, 0], [-0.6, 0, 0.8]])
GENERAL = Case("six unit rows in general position, temperature 0.4", (UNITS, 0.4))

# The twin of each row is a rival, at a score of 1000.
COLD_AND_WRONG = Case("unit rows e1, e2, e2, e1, temperature 0.001", (EYE[[0, 1, 1, 0]], 0.001), size=1000.0)


def _variant(function: Any, wrong_value: Any, case: Case = PAIRS, report: str = "") -> Variant:
    return Variant(function, case, case.expected, wrong_value, report)


CONTRACT = Contract(
    name="row_gradient",
    parameters=("units", "temperature"),
    task="Gradient of NT-Xent by its rows [view1; view2], which have length one already, in the shape of the rows.",
    oracle=oracles.row_gradient,
    cases=(PAIRS, COLD_PAIRS, LOPSIDED, GENERAL),
    extremes=(COLD_AND_WRONG,),
    probes=(GENERAL.arguments,),
    variants=(
        _variant(wrong.only_asking, _ASKING, LOPSIDED, "facebookresearch/SLIP#31"),
        _variant(wrong.only_asked, _ASKED, LOPSIDED),
        _variant(wrong.asking_twice, 2 * _ASKING, LOPSIDED),
        _variant(wrong.chain_without_temperature, 1 / (math.exp(2) + 2) * _PULL, COLD_PAIRS),
        _variant(wrong.divided_by_pairs, 2 * _SHARE * _PULL),
        _variant(wrong.never_divided, 4 * _SHARE * _PULL),
        _variant(wrong.uphill, -_SHARE * _PULL),
        _variant(wrong.self_in_the_softmax, _SHARE_WITH_SELF * _PULL),
        _variant(wrong.partner_subtracted_once, _SHARE * _PULL + TWO_PAIRS / 4),
    ),
    common="Leaving out the transpose. Each row then learns from its own question only; on symmetric pairs the "
    "gradient is half of what it should be, elsewhere it points another way.",
)
