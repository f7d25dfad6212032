"""Contrastive losses and metrics in JAX: pure functions of arrays.

Nothing here prints, draws, reads a file or asks for the time.
"""

from contrastive_jax.losses import clip_loss, contrastive_logits, paired_contrastive
from contrastive_jax.metrics import RetrievalAccuracy, retrieval_accuracy
from contrastive_jax.similarity import cosine_similarity, l2_normalize
from contrastive_jax.stacked import nt_xent, nt_xent_loss, positive_only

__all__ = [
    "RetrievalAccuracy",
    "clip_loss",
    "contrastive_logits",
    "cosine_similarity",
    "l2_normalize",
    "nt_xent",
    "nt_xent_loss",
    "paired_contrastive",
    "positive_only",
    "retrieval_accuracy",
]
