"""The losses, metrics and exercises once more: float64 NumPy inputs, plain scalar loops, no JAX and no cleverness.

Nothing here is shared with what it is compared with. These functions are tested themselves, against values from
other sources.
"""

from contrastive_jax.exercises.oracles.collapse import feature_spread, mean_cosine
from contrastive_jax.exercises.oracles.gradients import (
    Gradients,
    centred_difference,
    clip_gradients,
    logits_gradients,
    nt_xent_gradients,
    paired_gradients,
    slopes,
)
from contrastive_jax.exercises.oracles.losses import (
    clip_loss,
    contrastive_logits,
    nt_xent,
    paired_contrastive,
    partner,
    positive_only,
)
from contrastive_jax.exercises.oracles.ranking import query_credit, retrieval_accuracy
from contrastive_jax.exercises.oracles.rows import cosines, cross_entropy, dot, softmax, transposed, unit_rows
from contrastive_jax.exercises.oracles.steps import (
    cross_view_loss,
    duplicate_penalty,
    mask_self,
    mismatched_loss,
    partner_of,
    restacked,
    row_gradient,
    scale_gradient,
    slope_by_two_steps,
    stack_views,
    to_log_scale,
)

__all__ = [
    "Gradients",
    "centred_difference",
    "clip_gradients",
    "clip_loss",
    "contrastive_logits",
    "cosines",
    "cross_entropy",
    "cross_view_loss",
    "dot",
    "duplicate_penalty",
    "feature_spread",
    "logits_gradients",
    "mask_self",
    "mean_cosine",
    "mismatched_loss",
    "nt_xent",
    "nt_xent_gradients",
    "paired_contrastive",
    "paired_gradients",
    "partner",
    "partner_of",
    "positive_only",
    "query_credit",
    "restacked",
    "retrieval_accuracy",
    "row_gradient",
    "scale_gradient",
    "slope_by_two_steps",
    "slopes",
    "softmax",
    "stack_views",
    "to_log_scale",
    "transposed",
    "unit_rows",
]
