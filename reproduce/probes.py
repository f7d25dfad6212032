"""Small computations whose fingerprints tell one cause of a difference from another.

Two environments with equal `random/*` fingerprints share a random stream; equal `sum` and `logsumexp` mean equal
reduction order; equal loss value with unequal gradient points at how JAX differentiates. The probes use nothing of
the lessons, so that a changed lesson cannot hide behind a changed probe. They run in the precision now set.
"""

import hashlib

import jax
import jax.numpy as jnp
import numpy as np

# Of the random keys, and of the frozen NumPy stream that makes the inputs.
SEED = 2718


def fingerprints() -> dict[str, str]:
    """First 12 hexadecimal digits of the SHA-256 of each probe's bytes."""
    results = {**_random(), **_arithmetic(), **_contrastive()}
    return {
        name: hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:12] for name, value in results.items()
    }


def _random() -> dict[str, np.ndarray]:
    key = jax.random.key(SEED)
    draws = {
        "bits": lambda k: jax.random.bits(k, (64,)),
        "uniform": lambda k: jax.random.uniform(k, (64,)),
        "normal": lambda k: jax.random.normal(k, (64,)),
        "permutation": lambda k: jax.random.permutation(k, 64),
        "randint": lambda k: jax.random.randint(k, (64,), 0, 1000),
        "split": lambda k: jax.random.key_data(jax.random.split(k, 4)),
    }
    return {f"random/{name}": np.asarray(jax.jit(draw)(key)) for name, draw in draws.items()}


def _inputs(rows: int, columns: int) -> jax.Array:
    """Values from a frozen stream that no JAX release can change."""
    return jnp.asarray(np.random.RandomState(SEED).standard_normal((rows, columns)), dtype=jnp.result_type(float))


def _arithmetic() -> dict[str, np.ndarray]:
    x = _inputs(64, 48)
    picture, kernel = _inputs(1, 256).reshape(1, 1, 16, 16), _inputs(4, 9).reshape(4, 1, 3, 3)
    # Every input is an argument: a constant would be folded by the compiler and never reach the kernels probed.
    operations = {
        "matmul": (lambda a: a @ a.T, x),
        "exp": (jnp.exp, x),
        "logsumexp": (lambda a: jax.nn.logsumexp(a, axis=1), x),
        "softmax": (lambda a: jax.nn.softmax(a, axis=1), x),
        "norm": (lambda a: jnp.linalg.norm(a, axis=1), x),
        "long_sum": (jnp.sum, jnp.tile(x.ravel(), 100)),
        "convolution": (lambda a: jax.lax.conv_general_dilated(a, kernel, (2, 2), "SAME"), picture),
    }
    return {name: np.asarray(jax.jit(operation)(argument)) for name, (operation, argument) in operations.items()}


def _contrastive() -> dict[str, np.ndarray]:
    left, right, weights = _inputs(16, 12), _inputs(32, 12)[16:], _inputs(12, 8)

    def loss(w, left, right):
        a, b = (rows @ w for rows in (left, right))
        a, b = (rows / jnp.linalg.norm(rows, axis=1, keepdims=True) for rows in (a, b))
        return -jnp.mean(jnp.diag(jax.nn.log_softmax(a @ b.T / 0.2, axis=1)))

    value, gradient = jax.jit(jax.value_and_grad(loss))(weights, left, right)
    return {"contrastive/value": np.asarray(value), "contrastive/gradient": np.asarray(gradient)}
