"""`to_log_scale` and `scale_gradient`, and what goes wrong with them."""

import math

from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue import scale_variants as wrong
from contrastive_jax.exercises.catalogue.parts import ALIKE, EYE, FIRST, LOG_2, LOG_100, SECOND, SWAPPED
from contrastive_jax.exercises.contracts import Case, Contract, Variant

HALF = Case("temperature 0.5", (0.5,), LOG_2)
ONE = Case("temperature 1", (1.0,), 0.0)
COLD = Case("temperature 0.2", (0.2,), math.log(5))
WARM = Case("temperature 2", (2.0,), -LOG_2)
USUAL = Case("temperature 0.07", (0.07,), -math.log(0.07))
ICY = Case("temperature 0.001", (0.001,), math.log(1000))

TO_LOG_SCALE = Contract(
    name="to_log_scale",
    parameters=("temperature",),
    task="The log scale, as `clip_loss` takes it, that scores at `temperature`.",
    oracle=oracles.to_log_scale,
    cases=(ONE, HALF, COLD, WARM, USUAL),
    dtype_follows=False,
    traceable=False,
    extremes=(ICY,),
    probes=(COLD.arguments, HALF.arguments),
    variants=(
        Variant(wrong.log_of_the_temperature, HALF, LOG_2, -LOG_2),
        Variant(wrong.temperature_passed_on, HALF, LOG_2, 0.5, "openai/CLIP#46"),
        Variant(wrong.scale_not_its_logarithm, HALF, LOG_2, 2.0, "openai/CLIP#46"),
        Variant(wrong.exponential_for_logarithm, HALF, LOG_2, math.exp(2)),
        Variant(wrong.exponential_of_the_temperature, HALF, LOG_2, math.sqrt(math.e)),
        Variant(wrong.logarithm_to_base_ten, HALF, LOG_2, LOG_2 / math.log(10)),
        Variant(wrong.logarithm_to_base_two, HALF, LOG_2, 1.0),
        Variant(wrong.log_scale_capped, ICY, math.log(1000), LOG_100),
    ),
    common="Passing the temperature itself. The loss runs and trains, but a log scale of 0.07 is a temperature of "
    "nearly 1.",
)

_ORTHOGONAL = -2 / (math.exp(2) + 1)  # of two orthogonal pairs at scale 2: slope of log(1 + exp(-exp(s)))
# Two images alike, two texts: each image sees cosines (1, 0); expected minus own score is -1 / (e + 1) for the first,
# e / (e + 1) for the second. Each text sees two equal scores and does not care.
_BY_IMAGES = (math.e - 1) / (2 * (math.e + 1))

TWO_PAIRS = Case("two orthogonal pairs, log scale log 2", (EYE, EYE, LOG_2), _ORTHOGONAL)
SAME_IMAGE = Case("the same image twice, two texts, log scale 0", (ALIKE, EYE, 0.0), _BY_IMAGES / 2)
GENERAL = Case("three pairs in general position, log scale 0.9", (FIRST, SECOND, 0.9))
LOW = Case("three pairs in general position, log scale -0.7", (FIRST, SECOND, -0.7))
ABOVE_THE_CAP = Case("partners exchanged, log scale log 1000", (EYE, SWAPPED, math.log(1000)), 0.0, size=100.0)
AT_THE_CAP = Case("partners exchanged, log scale log 100", (EYE, SWAPPED, LOG_100), 100.0, size=100.0)

SCALE_GRADIENT = Contract(
    name="scale_gradient",
    parameters=("images", "texts", "log_scale"),
    task="Derivative of the capped loss by `log_scale`: kept at the cap, log 100, and zero above.",
    oracle=oracles.scale_gradient,
    cases=(TWO_PAIRS, SAME_IMAGE, LOW, GENERAL),
    extremes=(ABOVE_THE_CAP, AT_THE_CAP),
    probes=(GENERAL.arguments,),
    variants=(
        Variant(wrong.slope_by_the_scale, TWO_PAIRS, _ORTHOGONAL, _ORTHOGONAL / 2),
        Variant(wrong.images_ask_only, SAME_IMAGE, _BY_IMAGES / 2, _BY_IMAGES, "catalyst-team/catalyst#1278"),
        Variant(wrong.texts_ask_only, SAME_IMAGE, _BY_IMAGES / 2, 0.0),
        Variant(wrong.sum_not_divided, TWO_PAIRS, _ORTHOGONAL, 4 * _ORTHOGONAL, "mlfoundations/open_clip#1211"),
        Variant(wrong.divided_by_b, TWO_PAIRS, _ORTHOGONAL, 2 * _ORTHOGONAL),
        Variant(wrong.mean_over_the_table, TWO_PAIRS, _ORTHOGONAL, _ORTHOGONAL / 4),
        Variant(wrong.sign_turned, TWO_PAIRS, _ORTHOGONAL, -_ORTHOGONAL),
        Variant(wrong.diagonal_subtracted_once, TWO_PAIRS, _ORTHOGONAL, _ORTHOGONAL + 1),
        Variant(wrong.slope_above_the_cap, ABOVE_THE_CAP, 0.0, 100.0),
        Variant(wrong.nothing_capped, ABOVE_THE_CAP, 0.0, 1000.0, "openai/CLIP#46"),
        Variant(wrong.slope_lost_at_the_cap, AT_THE_CAP, 100.0, 0.0),
    ),
    common="Multiplying by the cosines instead of the scores: that is the slope by the scale, not by its logarithm.",
)
