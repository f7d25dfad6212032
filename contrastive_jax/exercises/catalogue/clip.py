"""`contrastive_logits` and `clip_loss`, and what goes wrong with them."""

import math

import numpy as np

from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue import clip_variants as wrong
from contrastive_jax.exercises.catalogue.parts import (
    ALIKE,
    DEAD,
    EYE,
    FIRST,
    LOG_2,
    LOG_100,
    NINE,
    NINE_OTHERS,
    SECOND,
    SWAPPED,
)
from contrastive_jax.exercises.catalogue.relations import exchanged, rescaled, same_order, turned
from contrastive_jax.exercises.contracts import Case, Contract, Property, Variant

# A negative log scale, so that no mistake with exp, sign or division can hide.
_LOW = -0.7

TABLE = Case("two orthogonal pairs, log scale log 2", (EYE, EYE, LOG_2), 2 * EYE)
LONG_TABLE = Case("(2, 0) and (0, 2) against (1, 0) and (0, 1), log scale 0", (2 * EYE, EYE, 0.0), EYE)
SAME_IMAGE = Case("the same image twice, two texts, log scale 0", (ALIKE, EYE, 0.0), ALIKE)
GENERAL_TABLE = Case("three pairs in general position, log scale -0.7", (FIRST, SECOND, _LOW))
WARM_TABLE = Case("two orthogonal pairs, log scale -log 2", (EYE, EYE, -LOG_2), EYE / 2)
HUGE_TABLE = Case("two orthogonal pairs, log scale 1000", (EYE, EYE, 1000.0), 100 * EYE, size=100.0)
TABLE_AT_THE_CAP = Case("two orthogonal pairs, log scale log 100", (EYE, EYE, LOG_100), 100 * EYE, size=100.0)
TWICE_THE_CAP = Case("two orthogonal pairs, log scale log 200", (EYE, EYE, math.log(200)), 100 * EYE, size=100.0)
DEAD_TABLE = Case(
    "an image feature of zeros, log scale 0", (DEAD, EYE, 0.0), np.array([[0.0, 0.0], [0.0, 1.0]]), differentiated=False
)


def _table_gradients(images: np.ndarray, texts: np.ndarray, logit_scale: float) -> oracles.Gradients:
    weights = np.linspace(1.0, 2.0, len(images) * len(texts)).reshape(len(images), len(texts))
    return oracles.logits_gradients(images, texts, logit_scale, weights)


CONTRASTIVE_LOGITS = Contract(
    name="contrastive_logits",
    parameters=("image_features", "text_features", "logit_scale"),
    task="Cosines times exp(logit_scale), the factor capped at 100; rows are images, columns texts.",
    oracle=oracles.contrastive_logits,
    cases=(TABLE, LONG_TABLE, SAME_IMAGE, WARM_TABLE, GENERAL_TABLE),
    gradients=(0, 1, 2),
    gradient_oracle=_table_gradients,
    properties=(Property("the lengths of the rows do not matter", GENERAL_TABLE.arguments, rescaled),),
    extremes=(HUGE_TABLE, TWICE_THE_CAP, TABLE_AT_THE_CAP, DEAD_TABLE),
    probes=(GENERAL_TABLE.arguments,),
    variants=(
        Variant(wrong.table_of_dot_products, LONG_TABLE, EYE, 2 * EYE, "moein-shariatnia/OpenAI-CLIP#10"),
        Variant(wrong.table_without_exp, TABLE, 2 * EYE, LOG_2 * EYE, "BAAI-DCAI/M3D#52"),
        Variant(wrong.table_divided, TABLE, 2 * EYE, EYE / 2),
        Variant(wrong.table_of_texts, SAME_IMAGE, ALIKE, ALIKE.T),
        Variant(
            wrong.table_without_cap,
            HUGE_TABLE,
            100 * EYE,
            np.array([[np.inf, np.nan], [np.nan, np.inf]]),
            "openai/CLIP#46",
        ),
        Variant(
            wrong.table_capped_after_exp,
            HUGE_TABLE,
            right=0.0,
            wrong=math.nan,
            report="openai/CLIP#46",
            gradient_entry=(2, ()),
        ),
        Variant(wrong.table_held_at_scale_one, WARM_TABLE, EYE / 2, EYE),
        # Of all scores, weighted by 1, 4/3, 5/3 and 2, those on the diagonal move.
        Variant(
            wrong.table_with_half_a_slope_at_the_cap, TABLE_AT_THE_CAP, right=300.0, wrong=150.0, gradient_entry=(2, ())
        ),
        Variant(wrong.table_with_no_slope_at_the_cap, TABLE_AT_THE_CAP, right=300.0, wrong=0.0, gradient_entry=(2, ())),
    ),
    common="Multiplying by the log scale itself. At the usual start it is 2.66 and the scale is 14.3: the loss runs.",
)

_ORTHOGONAL = math.log1p(math.exp(-2))  # two orthogonal pairs at scale 2
_PAIRED = math.log1p(1 / math.e)  # and at scale 1
# Two images, one text twice: each image sees equal cosines, (1, 1) or (0, 0). Each text sees (1, 0): right for the
# first, wrong for the second.
_BY_IMAGES, _BY_TEXTS = LOG_2, (_PAIRED + math.log1p(math.e)) / 2
_DEAD = (LOG_2 + _PAIRED) / 2  # the dead image sees (0, 0), its text too; the other pair sees (0, 1)

TWO_PAIRS = Case("two orthogonal pairs, log scale log 2", (EYE, EYE, LOG_2), _ORTHOGONAL)
LONG_IMAGES = Case("images of length 2, log scale 0", (2 * EYE, EYE, 0.0), _PAIRED)
SAME_CAPTION = Case("two images with the same caption, log scale 0", (EYE, ALIKE, 0.0), (_BY_IMAGES + _BY_TEXTS) / 2)
GENERAL = Case("three pairs in general position, log scale -0.7", (FIRST, SECOND, _LOW))
NINE_PAIRS = Case("nine pairs of five entries, log scale 1.2", (NINE, NINE_OTHERS, 1.2))
# The wrong candidate leads by the scale, exp(4), and all the rest is below what floats can show.
BELOW_THE_CAP = Case("partners exchanged, log scale 4", (EYE, SWAPPED, 4.0), math.exp(4), size=math.exp(4))
ABOVE_THE_CAP = Case("partners exchanged, log scale log 1000", (EYE, SWAPPED, math.log(1000)), 100.0, size=100.0)
HUGE = Case("partners exchanged, log scale 1000", (EYE, SWAPPED, 1000.0), 100.0, size=100.0)
AT_THE_CAP = Case("partners exchanged, log scale log 100", (EYE, SWAPPED, LOG_100), 100.0, size=100.0)
# Exponentials overflow here too, but no softmax comes near zero.
SURE = Case("two orthogonal pairs, log scale log 1000", (EYE, EYE, math.log(1000)), 0.0, size=100.0)
ZERO_ROW = Case("an image feature of zeros, log scale 0", (DEAD, EYE, 0.0), _DEAD)

CLIP_LOSS = Contract(
    name="clip_loss",
    parameters=("image_features", "text_features", "logit_scale"),
    task="Mean of two costs in nats: images choose among texts, texts among images; exp(logit_scale) is at most 100.",
    oracle=oracles.clip_loss,
    cases=(TWO_PAIRS, LONG_IMAGES, SAME_CAPTION, NINE_PAIRS, GENERAL),
    gradients=(0, 1, 2),
    gradient_oracle=oracles.clip_gradients,
    properties=(
        Property("pairs in another order cost the same", GENERAL.arguments, same_order),
        Property("exchanging images and texts changes nothing", GENERAL.arguments, exchanged),
        Property("the lengths of the rows do not matter", GENERAL.arguments, rescaled),
        Property("turning both sides together changes nothing", GENERAL.arguments, turned),
    ),
    extremes=(ZERO_ROW, BELOW_THE_CAP, ABOVE_THE_CAP, HUGE, AT_THE_CAP, SURE),
    probes=(GENERAL.arguments, (FIRST, SECOND, 0.9)),
    variants=(
        Variant(wrong.features_not_normalised, LONG_IMAGES, _PAIRED, _ORTHOGONAL, "moein-shariatnia/OpenAI-CLIP#10"),
        Variant(
            wrong.images_choose_only,
            SAME_CAPTION,
            (_BY_IMAGES + _BY_TEXTS) / 2,
            _BY_IMAGES,
            "catalyst-team/catalyst#1278",
        ),
        Variant(wrong.texts_choose_only, SAME_CAPTION, (_BY_IMAGES + _BY_TEXTS) / 2, _BY_TEXTS),
        Variant(wrong.directions_not_averaged, TWO_PAIRS, _ORTHOGONAL, 2 * _ORTHOGONAL),
        Variant(wrong.minus_forgotten, TWO_PAIRS, _ORTHOGONAL, -_ORTHOGONAL),
        Variant(wrong.all_cells_averaged, TWO_PAIRS, _ORTHOGONAL, 1 + _ORTHOGONAL),
        Variant(wrong.one_choice_for_all, TWO_PAIRS, _ORTHOGONAL, LOG_2 + _ORTHOGONAL),
        Variant(wrong.own_pair_no_candidate, TWO_PAIRS, _ORTHOGONAL, -2.0, "Shen-Lab/GraphCL#27"),
        Variant(wrong.scale_without_exp, TWO_PAIRS, _ORTHOGONAL, math.log1p(0.5), "BAAI-DCAI/M3D#52"),
        Variant(wrong.scale_as_temperature, TWO_PAIRS, _ORTHOGONAL, math.log1p(math.exp(-1 / LOG_2))),
        Variant(wrong.scale_inverted, TWO_PAIRS, _ORTHOGONAL, math.log1p(math.exp(-0.5))),
        # The slope of log(1 + exp(-exp(s))).
        Variant(
            wrong.scale_detached,
            TWO_PAIRS,
            right=-2 / (math.exp(2) + 1),
            wrong=0.0,
            report="facebookresearch/dinov2#548",
            gradient_entry=(2, ()),
        ),
        Variant(
            wrong.texts_detached,
            TWO_PAIRS,
            right=1 / (math.exp(2) + 1),
            wrong=0.0,
            gradient_entry=(1, (0, 1)),
        ),
        Variant(
            wrong.images_detached,
            TWO_PAIRS,
            right=1 / (math.exp(2) + 1),
            wrong=0.0,
            gradient_entry=(0, (0, 1)),
        ),
        Variant(wrong.scale_without_cap, ABOVE_THE_CAP, 100.0, 1000.0, "openai/CLIP#46"),
        Variant(
            wrong.scale_capped_after_exp,
            HUGE,
            right=0.0,
            wrong=math.nan,
            report="openai/CLIP#46",
            gradient_entry=(2, ()),
        ),
        Variant(wrong.half_a_slope_at_the_cap, AT_THE_CAP, right=100.0, wrong=50.0, gradient_entry=(2, ())),
        Variant(wrong.no_slope_at_the_cap, AT_THE_CAP, right=100.0, wrong=0.0, gradient_entry=(2, ())),
        Variant(wrong.softmax_before_the_logarithm, ABOVE_THE_CAP, 100.0, math.inf, shows_in=("float32",)),
        Variant(wrong.exponentials_of_the_scores, ABOVE_THE_CAP, 100.0, math.inf, shows_in=("float32",)),
        Variant(wrong.dead_feature_is_not_a_number, ZERO_ROW, _DEAD, math.nan, "huggingface/sentence-transformers#625"),
    ),
    common="Asking in one direction only. On matched orthogonal pairs both directions cost the same, so test with a "
    "batch on which they differ.",
)
