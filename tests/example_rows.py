"""Example input of a loss."""

import numpy as np


def related_rows(seed: int, size: int = 4, width: int = 3, dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    """Two sides whose rows belong together but are not equal."""
    rng = np.random.default_rng(seed)
    left = rng.normal(size=(size, width))
    return left.astype(dtype), (left + 0.3 * rng.normal(size=(size, width))).astype(dtype)
