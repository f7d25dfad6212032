"""Computes the losses on eight simulated devices and saves what came out: `python tests/sharded_worker.py FILE.npz`.

A program of its own, because the number of devices is fixed when JAX starts. `test_sharded.py` runs it once and judges.
"""

import functools
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

LOSSES = ("paired", "nt_xent", "clip")
PARAMETERS = {"paired": (0.3, 0.01), "nt_xent": (0.3, 0.01), "clip": (1.2, math.log(100), 5.0)}  # CLIP: cap, above it
LEFT_OUT = np.array([0, 4, 5, 6, 11, 12])  # of 13 pairs: with two rows a device on 8 devices, two have none left
MUTATIONS = {
    "sums stay away": ("paired", "return rows, ring.moved(columns), positives", "return rows, columns, positives"),
    "gradients stay away": ("paired", "return by_left, ring.moved(by_right)", "return by_left, by_right"),
    "opposite block served twice": ("nt_xent", "half = (ring.size - 1) // 2", "half = ring.size // 2"),
    "opposite block left out": ("nt_xent", "if ring.size % 2 == 0:", "if False:"),
}


class Case(NamedTuple):
    """What one evaluation is given."""

    name: str
    devices: int
    batch: int
    tile: int
    dtype: str = "float64"
    masked: bool = False  # `where` is given, so that one compilation serves every choice of pairs


SMALL_TILES = [Case(name, devices, 13, 2, masked=True) for devices in (1, 2, 4, 8) for name in LOSSES]
FEW_ROWS = [Case(name, 8, 3, 128) for name in LOSSES]
LARGE_TILES = [Case(name, 4, 16, 128) for name in LOSSES]
SINGLE = [Case(name, 8, 16, 1, "float32") for name in LOSSES]
ON_OTHER_MESHES = Case("nt_xent", 4, 8, 2)
HALF = [Case(name, 2, 6, 2, "bfloat16") for name in ("nt_xent", "clip")]


def rows(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Two sides in float64, whose rows belong together; float32 and bfloat16 hold them exactly."""
    rng = np.random.default_rng(case.batch)
    left = rng.normal(size=(case.batch, 5))
    sides = left, left + 0.5 * rng.normal(size=left.shape)
    return tuple(np.round(side * 16) / 16 for side in sides)


def choices(case: Case) -> dict[str, np.ndarray]:
    """Which pairs count, by name."""
    everyone = np.ones(case.batch, bool)
    if not case.masked:
        return {"all": everyone}
    some = everyone.copy()
    some[LEFT_OUT] = False
    return {"all": everyone, "some": some, "none": ~everyone}


def key(case: Case, choice: str = "all", parameter: float = 0.0) -> str:
    return "/".join(map(str, (*case, choice, parameter)))


def main(file: Path) -> None:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")
    found: dict[str, np.ndarray] = {}
    for case in (*SMALL_TILES, *FEW_ROWS, *LARGE_TILES, *SINGLE, *HALF):
        found.update(results(case, in_line(case.devices)))
    for what, mesh, placed in other_meshes():
        other = results(ON_OTHER_MESHES, mesh, placed)
        found.update((f"{what}/{name}", value) for name, value in other.items())
    found.update(memory())
    for what in MUTATIONS:
        found.update((f"{what}/{name}", value) for name, value in mutated(what).items())
    np.savez(file, **found)


def in_line(devices: int):
    import jax

    return jax.sharding.Mesh(jax.devices()[:devices], ("batch",))


def other_meshes() -> Iterator[tuple]:
    """Other ways in which a mesh of four devices along the batch is made, and how rows are placed on it."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    def cut(mesh):
        return lambda side: jax.device_put(side, NamedSharding(mesh, PartitionSpec("batch")))

    grid = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("model", "batch"))
    made = jax.make_mesh((4,), ("batch",), devices=jax.devices()[:4])  # in new releases with explicit axes
    yield "grid", grid, cut(grid)
    yield "make_mesh", made, lambda side: side
    yield "make_mesh, rows placed", made, cut(made)


def evaluator(case: Case, mesh):
    """Value and three gradients, compiled once."""
    import jax

    from contrastive_jax import sharded

    names = {"paired": "paired_contrastive", "nt_xent": "nt_xent", "clip": "clip_loss"}
    loss = functools.partial(getattr(sharded, names[case.name]), mesh=mesh, tile=case.tile)
    return jax.jit(
        lambda left, right, parameter, where: jax.value_and_grad(loss, argnums=(0, 1, 2))(
            left, right, parameter, where=where
        )
    )


def results(case: Case, mesh, placed=lambda side: side) -> dict[str, np.ndarray]:
    """Value and gradients of every choice of pairs and every parameter, by `key` and part."""
    import jax.numpy as jnp

    evaluate, found = evaluator(case, mesh), {}
    precision = "float32" if case.dtype == "bfloat16" else case.dtype
    for choice, where in choices(case).items():
        for parameter in PARAMETERS[case.name]:
            sides = [side.copy() for side in rows(case)]
            sides[0][~where] = np.nan  # may not matter, and neither may the 50 times as long partners
            sides[1][~where] *= 50
            inputs = *(placed(jnp.asarray(side, case.dtype)) for side in sides), jnp.asarray(parameter, precision)
            value, gradients = evaluate(*inputs, jnp.asarray(where) if case.masked else None)
            for part, x in zip(("value", "left", "right", "parameter"), (value, *gradients), strict=True):
                found[f"{key(case, choice, parameter)}/{part}"] = np.asarray(x, np.float64)
                found[f"{key(case, choice, parameter)}/{part} dtype"] = np.array(str(x.dtype))
    return found


def memory() -> dict[str, np.ndarray]:
    """Bytes of temporaries of one of eight devices, for pairs of 32 numbers in float32."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec

    mesh, found = in_line(8), {}
    cut = NamedSharding(mesh, PartitionSpec("batch"))
    parameter = jax.ShapeDtypeStruct((), jnp.float32, sharding=NamedSharding(mesh, PartitionSpec()))
    for name in ("paired", "nt_xent"):
        for batch in (4096, 8192):
            side = jax.ShapeDtypeStruct((batch, 32), jnp.float32, sharding=cut)
            compiled = evaluator(Case(name, 8, batch, 64), mesh).lower(side, side, parameter, None).compile()
            found[f"memory/{name}/{batch}"] = np.array(compiled.memory_analysis().temp_size_in_bytes)
    return found


def mutated(what: str) -> dict[str, np.ndarray]:
    """The results with one thing wrong in `contrastive_jax.ring`."""
    import jax

    from contrastive_jax import on_devices, ring

    name, right, wrong = MUTATIONS[what]
    names = ("paired_sums", "paired_gradients", "stacked_sums", "stacked_gradients")
    before = {each: getattr(on_devices, each) for each in names}
    source = Path(ring.__file__).read_text(encoding="utf-8")
    assert right in source, f"{what}: ring.py has no line {right!r} any more"
    space = dict(vars(ring))
    exec(compile(source.replace(right, wrong), ring.__file__, "exec"), space)
    try:
        vars(on_devices).update((each, space[each]) for each in names)
        jax.clear_caches()  # else what was compiled before is found again
        return results(Case(name, 4, 13, 3, masked=True), in_line(4))
    finally:
        jax.clear_caches()
        vars(on_devices).update(before)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
