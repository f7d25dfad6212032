"""Every exercise by name: what it asks for, and the known ways to get it wrong."""

from collections.abc import Mapping
from types import MappingProxyType

from contrastive_jax.exercises.catalogue import (
    clip,
    collapse,
    diagnose,
    gradient,
    nt_xent,
    paired,
    pairing,
    pile,
    restack,
    retrieval,
    scale,
)
from contrastive_jax.exercises.contracts import Exercise

EXERCISES: Mapping[str, Exercise] = MappingProxyType(
    {
        exercise.name: exercise
        for exercise in (
            # 01_paired_views
            paired.CONTRACT,
            pairing.MISMATCHED_LOSS,
            pairing.DUPLICATE_PENALTY,
            pairing.CENTRED_DIFFERENCE,
            diagnose.BROKEN_RUN_01,
            # 02_nt_xent
            pile.PARTNER_OF,
            pile.MASK_SELF,
            nt_xent.CONTRACT,
            pile.STACK_VIEWS,
            pile.CROSS_VIEW_LOSS,
            gradient.CONTRACT,
            diagnose.BROKEN_RUN_02,
            # 03_clip
            clip.CONTRASTIVE_LOGITS,
            clip.CLIP_LOSS,
            scale.TO_LOG_SCALE,
            retrieval.STRICT_HITS,
            retrieval.EXPECTED_HITS,
            scale.SCALE_GRADIENT,
            diagnose.BROKEN_RUN_03,
            # 04_image_views
            collapse.POSITIVE_ONLY,
            restack.CONTRACT,
            collapse.MEAN_COSINE,
            collapse.FEATURE_SPREAD,
            diagnose.BROKEN_RUN_04,
        )
    }
)
