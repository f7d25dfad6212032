"""Contrastive losses and metrics in JAX: pure functions of arrays.

Nothing here prints, draws, reads a file or asks for the time.
"""

from contrastive_jax.encoders import EncoderParams, Encoding, Layer, encode, init_encoder
from contrastive_jax.losses import clip_loss, contrastive_logits, paired_contrastive
from contrastive_jax.metrics import RetrievalAccuracy, hardest_negatives, retrieval_accuracy
from contrastive_jax.representation import alignment, feature_spread, mean_cosine, uniformity
from contrastive_jax.similarity import cosine_similarity, l2_normalize
from contrastive_jax.stacked import nt_xent, nt_xent_loss, positive_only
from contrastive_jax.synthetic import Pictures, draw_pictures, draw_view_pairs, draw_views
from contrastive_jax.training import Diagnosis, Study, Trained, diagnose, shapes_study, train

__all__ = [
    "Diagnosis",
    "EncoderParams",
    "Encoding",
    "Layer",
    "Pictures",
    "RetrievalAccuracy",
    "Study",
    "Trained",
    "alignment",
    "clip_loss",
    "contrastive_logits",
    "cosine_similarity",
    "diagnose",
    "draw_pictures",
    "draw_view_pairs",
    "draw_views",
    "encode",
    "feature_spread",
    "hardest_negatives",
    "init_encoder",
    "l2_normalize",
    "mean_cosine",
    "nt_xent",
    "nt_xent_loss",
    "paired_contrastive",
    "positive_only",
    "retrieval_accuracy",
    "shapes_study",
    "train",
    "uniformity",
]
