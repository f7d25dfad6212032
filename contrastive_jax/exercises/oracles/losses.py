"""The losses as plain scalar loops, float64."""

import math

import numpy as np

from contrastive_jax.exercises.oracles.rows import cosines, cross_entropy, dot, transposed, unit_rows

LOG_100 = math.log(100)


def paired_contrastive(left: np.ndarray, right: np.ndarray, temperature: float, norm_floor: float = 1e-6) -> float:
    scores = [[cosine / temperature for cosine in row] for row in cosines(left, right, norm_floor)]
    batch = len(scores)
    rows = math.fsum(cross_entropy(scores[i], i) for i in range(batch))
    columns = math.fsum(cross_entropy(transposed(scores)[i], i) for i in range(batch))
    return (rows + columns) / (2 * batch)


def partner(anchor: int, batch: int) -> int:
    return anchor + batch if anchor < batch else anchor - batch


def nt_xent(view1: np.ndarray, view2: np.ndarray, temperature: float, norm_floor: float = 1e-12) -> float:
    batch = len(view1)
    rows = np.concatenate([view1, view2])
    cosine = cosines(rows, rows, norm_floor)
    total = 0.0
    for anchor in range(2 * batch):
        candidates = [row for row in range(2 * batch) if row != anchor]
        logits = [cosine[anchor][row] / temperature for row in candidates]
        total += cross_entropy(logits, candidates.index(partner(anchor, batch)))
    return total / (2 * batch)


def contrastive_logits(images: np.ndarray, texts: np.ndarray, logit_scale: float) -> np.ndarray:
    return np.array(
        [[math.exp(min(logit_scale, LOG_100)) * cosine for cosine in row] for row in cosines(images, texts)]
    )


def clip_loss(images: np.ndarray, texts: np.ndarray, logit_scale: float) -> float:
    return paired_contrastive(images, texts, math.exp(-min(logit_scale, LOG_100)), norm_floor=1e-12)


def positive_only(view1: np.ndarray, view2: np.ndarray) -> float:
    pairs = zip(unit_rows(view1, 1e-12), unit_rows(view2, 1e-12), strict=True)
    return -math.fsum(dot(a, b) for a, b in pairs) / len(view1)
