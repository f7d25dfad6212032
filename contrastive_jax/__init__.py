"""Contrastive losses and metrics in JAX: pure functions of arrays.

Nothing here prints, draws, reads a file or asks for the time.
"""

from contrastive_jax.losses import paired_contrastive
from contrastive_jax.metrics import RetrievalAccuracy, retrieval_accuracy
from contrastive_jax.similarity import cosine_similarity, l2_normalize

__all__ = [
    "RetrievalAccuracy",
    "cosine_similarity",
    "l2_normalize",
    "paired_contrastive",
    "retrieval_accuracy",
]
