"""One process of a data-parallel training of the shapes encoder: `distributed_worker.py RANK PROCESSES PORT FILE.npz`.

With one process nothing is distributed: the loss is then that of `contrastive_jax.nt_xent`, without `where`.
"""

import contextlib
import sys
from pathlib import Path

import numpy as np

STEPS, PAIRS, LAST = 10, 24, 22  # the last step has fewer pairs, which two and four processes fill up to 24
LEARNING_RATE, TEMPERATURE = 0.05, 0.5


def main(rank: int, processes: int, port: int, file: Path) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_threefry_partitionable", True)
    if processes > 1:
        with contextlib.suppress(AttributeError):  # not hasattr: JAX 0.4.38 takes the option without showing it
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", processes, rank, initialization_timeout=120)
    losses, leaves = train(rank, processes)
    np.savez(file, losses=losses, **{f"leaf{number}": leaf for number, leaf in enumerate(leaves)})


def train(rank: int, processes: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Losses of all steps, and the final weights as this process holds them."""
    import jax
    import jax.numpy as jnp

    from contrastive_jax import init_encoder

    place, everywhere = placing(rank, processes)
    params = jax.tree.map(everywhere, init_encoder(jax.random.key(0), jnp.float64))
    loss = one_process if processes == 1 else over(processes)

    @jax.jit
    def update(params, view1, view2, where):
        value, gradients = jax.value_and_grad(loss)(params, view1, view2, where)
        return jax.tree.map(lambda w, g: w - LEARNING_RATE * g, params, gradients), value

    losses = []
    for step in range(STEPS):
        params, value = update(params, *map(place, batch(step, padded=processes > 1)))
        losses.append(float(value))
    return np.array(losses), [np.asarray(leaf) for leaf in jax.tree.leaves(params)]


def batch(step: int, padded: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two views, and which pairs count; the last batch is short, and filled with ones where `padded`."""
    import jax

    from contrastive_jax import draw_view_pairs

    count = LAST if step == STEPS - 1 else PAIRS
    views = np.asarray(draw_view_pairs(jax.random.key(step + 1), count), np.float64)
    if not padded:
        return views[:count], views[count:], np.ones(count, bool)
    filling = np.ones((PAIRS - count, *views.shape[1:]))
    view1, view2 = (np.concatenate([view, filling]) for view in (views[:count], views[count:]))
    return view1, view2, np.arange(PAIRS) < count


def placing(rank: int, processes: int):
    """Functions that make global arrays: of rows, of which each process holds its share; of what all hold."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    if processes == 1:
        return jax.numpy.asarray, jax.numpy.asarray
    cut, copied = NamedSharding(mesh(), PartitionSpec("batch")), NamedSharding(mesh(), PartitionSpec())
    own = slice(rank * PAIRS // processes, (rank + 1) * PAIRS // processes)
    return (
        lambda rows: jax.make_array_from_process_local_data(cut, rows[own], rows.shape),
        lambda leaf: jax.make_array_from_process_local_data(copied, np.asarray(leaf), leaf.shape),
    )


def mesh():
    import jax

    return jax.sharding.Mesh(jax.devices(), ("batch",))


def one_process(params, view1, view2, _):
    import jax.numpy as jnp

    from contrastive_jax import encode, nt_xent

    return nt_xent(encode(params, jnp.concatenate([view1, view2])).projection, TEMPERATURE)


def over(processes: int):
    """The loss of the same training over processes of one device each."""
    import jax

    from contrastive_jax import encode, sharded

    assert jax.process_count() == processes == len(jax.devices())

    def loss(params, view1, view2, where):
        rows = (encode(params, view).projection for view in (view1, view2))
        return sharded.nt_xent(*rows, TEMPERATURE, mesh=mesh(), where=where)

    return loss


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), Path(sys.argv[4]))
