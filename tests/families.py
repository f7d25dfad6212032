"""The three losses of two sides and a parameter, so that what holds for all of them is tested in one place."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from contrastive_jax import clip_loss, nt_xent, paired_contrastive
from contrastive_jax.exercises import oracles


def nt_xent_of_views(view1, view2, temperature, method="auto"):
    return nt_xent(jnp.concatenate([view1, view2]), temperature, method=method)


class Family(NamedTuple):
    """A loss, its scalar loops, and what its parameter means."""

    loss: Callable
    oracle: Callable
    gradients: Callable  # analytic, from the scalar loops
    scale: Callable  # of the parameter: what cosines are multiplied by
    parameter_of: Callable  # the inverse
    norm_floor: float
    compiled: str  # name of what JAX compiles
    keeps_half: bool = False  # else half precision comes back in float32

    def in_jax(self, dtype: str) -> Callable:
        """Value and three gradients of the loss, as NumPy's float64."""
        evaluate = _value_and_gradients(self.loss)

        def evaluated(left, right, parameter):
            value, slopes = evaluate(*(np.asarray(x, dtype) for x in (left, right, parameter)))
            return (float(value), *(np.asarray(slope, float) for slope in slopes))

        return evaluated


_COMPILED: dict[Callable, Callable] = {}


def _value_and_gradients(loss: Callable) -> Callable:
    return _COMPILED.setdefault(loss, jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2))))


def _inverse(parameter: float) -> float:
    return 1 / parameter


PAIRED = Family(
    paired_contrastive,
    oracles.paired_contrastive,
    oracles.paired_gradients,
    scale=_inverse,
    parameter_of=_inverse,
    norm_floor=1e-6,
    compiled="_paired_contrastive",
)
NT_XENT = Family(
    nt_xent_of_views,
    oracles.nt_xent,
    oracles.nt_xent_gradients,
    scale=_inverse,
    parameter_of=_inverse,
    norm_floor=1e-12,
    compiled="_nt_xent",
)
CLIP = Family(
    clip_loss,
    oracles.clip_loss,
    oracles.clip_gradients,
    scale=lambda log_scale: math.exp(min(log_scale, math.log(100))),
    parameter_of=math.log,
    norm_floor=1e-12,
    compiled="_clip_loss",
    keeps_half=True,
)
FAMILIES = {"paired": PAIRED, "nt_xent": NT_XENT, "clip": CLIP}


def in_tiles(family: Family) -> Family:
    """The same loss over tiles."""

    def loss_in_tiles(left, right, parameter):
        return family.loss(left, right, parameter, method="tiled")

    return family._replace(loss=loss_in_tiles, compiled=f"{family.compiled}_tiled")


BOTH_WAYS = FAMILIES | {f"{name} in tiles": in_tiles(family) for name, family in FAMILIES.items()}
