"""Times the shapes training: two ways to write the convolution, two ways to run seeds, beside PyTorch.

    python benchmarks/shapes_training.py                          # JAX alone
    python benchmarks/shapes_training.py --torch PYTHON           # and the PyTorch script, with a Python that has torch
    python benchmarks/shapes_training.py --whole                  # and the study of the notebook: 16 seeds, 300 steps

Prints a Markdown table. The unit is one update of one encoder: milliseconds, the median of the repeats.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax

from contrastive_jax import encoders, nt_xent, positive_only, shapes_study

OBJECTIVES = (positive_only, nt_xent)
PATCHES = encoders.strided_convolution
TORCH_SCRIPT = Path(__file__).with_name("shapes_training_torch.py")


def library_convolution(layer: encoders.Layer, x: jax.Array) -> jax.Array:
    order = ("NHWC", "OIHW", "NHWC")
    product = jax.lax.conv_general_dilated(x, layer.weight, (2, 2), ((1, 1), (1, 1)), dimension_numbers=order)
    return product + layer.bias


def one_by_one(keys: jax.Array, steps: int, dtype: str):
    return shapes_study(keys, OBJECTIVES, steps=steps, dtype=dtype)


def all_at_once(keys: jax.Array, steps: int, dtype: str):
    return jax.vmap(lambda key: shapes_study(key[None], OBJECTIVES, steps=steps, dtype=dtype))(keys)


class Timing(NamedTuple):
    """Seconds: of the compilation, of the whole run on the clock, and of its processor time."""

    compilation: float
    wall: float
    cpu: float


def measure(run: Callable, convolution: Callable, seeds: int, steps: int, dtype: str, repeats: int) -> Timing:
    jax.config.update("jax_enable_x64", dtype == "float64")
    jax.clear_caches()
    encoders.strided_convolution = convolution
    keys = jax.random.split(jax.random.key(0), seeds)
    began = time.process_time()
    compiled = jax.jit(lambda keys: run(keys, steps, dtype)).lower(keys).compile()
    compilation = time.process_time() - began
    walls, cpus = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        jax.block_until_ready(compiled(keys))
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Timing(compilation, statistics.median(walls), statistics.median(cpus))


def row(name: str, dtype: str, timing: Timing, updates: int) -> str:
    per_update = [f"{1e3 * seconds / updates:.2f}" for seconds in (timing.wall, timing.cpu)]
    return f"| {name} | {dtype} | {timing.compilation:.1f} | {' | '.join(per_update)} |"


def torch_row(python: str, dtype: str, seeds: int, steps: int, repeats: int) -> str:
    command = [python, str(TORCH_SCRIPT), f"--seeds={seeds}", f"--steps={steps}", f"--dtype={dtype}", "--time"]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() for _ in range(repeats)]
    wall, cpu = (statistics.median(float(run[i]) for run in runs) for i in (0, 1))
    return row(f"PyTorch {runs[0][2]}", dtype, Timing(0.0, wall, cpu), 2 * seeds * steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", help="a Python that has torch")
    parser.add_argument("--whole", action="store_true", help="also time 16 seeds of 300 steps, compilation included")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    jax.config.update("jax_threefry_partitionable", True)
    updates = len(OBJECTIVES) * options.seeds * options.steps
    print(f"jax {jax.__version__}, {jax.devices()[0].platform}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print("| form | precision | compilation, CPU s | update, wall ms | update, CPU ms |\n|---|---|---|---|---|")
    for dtype in ("float32", "float64"):
        for run, convolution, name in (
            (one_by_one, PATCHES, "patches, seeds one by one"),
            (all_at_once, PATCHES, "patches, seeds at once"),
            (one_by_one, library_convolution, "lax.conv, seeds one by one"),
            (all_at_once, library_convolution, "lax.conv, seeds at once"),
        ):
            timing = measure(run, convolution, options.seeds, options.steps, dtype, options.repeats)
            print(row(name, dtype, timing, updates), flush=True)
        if options.torch:
            print(torch_row(options.torch, dtype, options.seeds, options.steps, options.repeats), flush=True)
        if options.whole:
            began = time.perf_counter()
            timing = measure(one_by_one, PATCHES, 16, 300, dtype, 1)
            whole = f"{time.perf_counter() - began:.0f} s wall, {timing.compilation + timing.cpu:.0f} s CPU"
            print(f"{dtype}: 16 seeds, both objectives, 300 steps, with compilation: {whole}", file=sys.stderr)


if __name__ == "__main__":
    main()
