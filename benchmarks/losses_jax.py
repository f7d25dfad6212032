"""One JAX contestant of benchmarks/losses.py: python benchmarks/losses_jax.py FORM LOSS PAIRS WIDTH"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from losses_worker import bound_memory, serve

from contrastive_jax import nt_xent, paired_contrastive

TEMPERATURE = 0.2
SIDE = 4096  # of the matrices whose product says how fast the machine multiplies
EXPONENTIALS, PASSES = 2**18, 64  # 1 MB of them, which stays in the cache


def of_library(form: str, loss: str):
    """Loss of the stacked views and the temperature."""
    if form == "optax":

        def by_labels(z, t):
            labels = jnp.tile(jnp.arange(len(z) // 2), 2)
            return optax.losses.ntxent(z, labels, t)

        return by_labels
    if loss == "nt_xent":
        return lambda z, t: nt_xent(z, t, method=form)
    return lambda z, t: paired_contrastive(*jnp.split(z, 2), t, method=form)


def contestant(form: str, loss: str, pairs: int, width: int) -> None:
    z = jnp.asarray(np.random.default_rng(0).normal(size=(2 * pairs, width)), jnp.float32)
    t = jnp.float32(TEMPERATURE)
    compiled = jax.jit(jax.value_and_grad(of_library(form, loss), argnums=(0, 1))).lower(z, t).compile()
    analysis = compiled.memory_analysis()
    bound_memory()
    serve(lambda: jax.block_until_ready(compiled(z, t)), temporaries=analysis.temp_size_in_bytes)


def floor_of_products() -> None:
    """One large matrix product."""
    matrix = jnp.asarray(np.random.default_rng(0).normal(size=(SIDE, SIDE)), jnp.float32)
    product = jax.jit(lambda a: jnp.matmul(a, a, precision=jax.lax.Precision.HIGHEST))
    serve(lambda: jax.block_until_ready(product(matrix)), operations=2 * SIDE**3)


def floor_of_exponentials() -> None:
    """Exponentials of numbers in the cache, each of the one before."""
    numbers = jnp.linspace(0, 1, EXPONENTIALS)
    repeat = jax.jit(lambda x: jax.lax.fori_loop(0, PASSES, lambda _, x: jnp.exp(-x), x))
    serve(lambda: jax.block_until_ready(repeat(numbers)), operations=EXPONENTIALS * PASSES)


if __name__ == "__main__":
    form, loss, pairs, width = sys.argv[1:]
    if form == "products":
        floor_of_products()
    elif form == "exponentials":
        floor_of_exponentials()
    else:
        contestant(form, loss, int(pairs), int(width))
