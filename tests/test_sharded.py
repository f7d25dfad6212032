"""The losses over several devices: values and gradients of the scalar loops, however the rows are spread."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sharded_worker as worker
from compiling import compilations
from families import FAMILIES
from sharded_worker import Case, choices, key, rows

from contrastive_jax import sharded

REPOSITORY = Path(__file__).resolve().parents[1]
PARTS = ("value", "left", "right", "parameter")
ON_ONE = jax.sharding.Mesh(jax.devices()[:1], ("batch",))
Results = dict[str, np.ndarray]


@pytest.fixture(scope="session")
def on_devices(tmp_path_factory) -> Results:
    """Everything that `sharded_worker.py` computed on eight devices."""
    file = tmp_path_factory.mktemp("sharded") / "results.npz"
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, str(REPOSITORY / "tests" / "sharded_worker.py"), str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(file) as results:
        return dict(results)


@functools.cache
def exact(case: Case, choice: str, parameter: float) -> dict[str, np.ndarray]:
    """What the scalar loops say of the pairs that count; the others have no gradient."""
    family, where = FAMILIES[case.name], choices(case)[choice]
    if not where.any():
        zero = np.zeros_like(rows(case)[0])
        return dict(zip(PARTS, (0.0, zero, zero, 0.0), strict=True))
    kept = [side[where] for side in rows(case)]
    gradients = family.gradients(*kept, parameter)
    sides = [np.zeros_like(side) for side in rows(case)]
    for side, gradient in zip(sides, gradients[:2], strict=True):
        side[where] = gradient
    return dict(zip(PARTS, (family.oracle(*kept, parameter), *sides, gradients.parameter), strict=True))


def faults(results: Results, case: Case, tolerance: float, prefix: str = "") -> list[str]:
    """Parts that are off by more than `tolerance` of their largest entry.

    The slope by a parameter adds up to `scale**2` times what cancels, and no float64 knows that to better than 1e-16.
    """
    found = []
    for choice in choices(case):
        for parameter in worker.PARAMETERS[case.name]:
            for part, expected in exact(case, choice, parameter).items():
                name = f"{prefix}{key(case, choice, parameter)}/{part}"
                off = np.max(np.abs(results[name] - expected))
                rounding = 1e-16 * FAMILIES[case.name].scale(parameter) ** 2 if part == "parameter" else 0
                if not off <= tolerance * np.max(np.abs(expected)) + rounding:
                    found.append(f"{name}: off by {off:.3g} of {np.max(np.abs(expected)):.3g}")
    return found


def named(cases: list[Case]):
    return pytest.mark.parametrize("case", cases, ids=[f"{case.name} on {case.devices}" for case in cases])


@named(worker.SMALL_TILES)
def test_uneven_batch_and_left_out_pairs(case, on_devices):
    assert not faults(on_devices, case, 1e-12)


@named(worker.FEW_ROWS)
def test_fewer_pairs_than_devices(case, on_devices):
    assert not faults(on_devices, case, 1e-12)


@named(worker.LARGE_TILES)
def test_tile_larger_than_the_rows_of_a_device(case, on_devices):
    assert not faults(on_devices, case, 1e-12)


@named(worker.SINGLE)
def test_single_precision_is_that_of_one_device(case, on_devices):
    """To 1e-6 of the largest entry, times the scale where that exceeds 1: the scores are rounded to 6e-8 of it."""
    one_device = FAMILIES[case.name].in_jax("float32")
    for parameter in worker.PARAMETERS[case.name]:
        tolerance = 1e-6 * max(1, FAMILIES[case.name].scale(parameter) / 10)
        for part, expected in zip(PARTS, one_device(*rows(case), parameter), strict=True):
            name = f"{key(case, 'all', parameter)}/{part}"
            assert str(on_devices[f"{name} dtype"]) == "float32"
            off = np.max(np.abs(on_devices[name] - expected))
            assert off <= tolerance * max(np.max(np.abs(expected)), 1e-6), f"{name}: off by {off:.3g}"


@named(worker.HALF)
def test_half_precision_is_summed_in_float32(case, on_devices):
    for parameter in worker.PARAMETERS[case.name]:
        name, expected = key(case, "all", parameter), exact(case, "all", parameter)
        half = FAMILIES[case.name].keeps_half
        dtypes = [str(on_devices[f"{name}/{part} dtype"]) for part in PARTS]
        assert dtypes == ["bfloat16" if half else "float32", "bfloat16", "bfloat16", "float32"]
        tolerance = 4e-3 if half else 1e-5  # bfloat16 keeps eight bits
        np.testing.assert_allclose(on_devices[f"{name}/value"], expected["value"], rtol=tolerance)
        for part in ("left", "right"):
            np.testing.assert_allclose(
                on_devices[f"{name}/{part}"], expected[part], rtol=8e-3, atol=8e-3 * np.max(np.abs(expected[part]))
            )


@pytest.mark.parametrize("mesh", ["grid", "make_mesh", "make_mesh, rows placed"])
def test_other_meshes(mesh, on_devices):
    assert not faults(on_devices, worker.ON_OTHER_MESHES, 1e-12, f"{mesh}/")


@pytest.mark.parametrize("what", worker.MUTATIONS)
def test_a_wrong_ring_is_noticed(what, on_devices):
    case = Case(worker.MUTATIONS[what][0], 4, 13, 3, masked=True)
    found = faults(on_devices, case, 1e-12, f"{what}/")
    if what == "gradients stay away":
        assert all("/right" in fault for fault in found)
    assert found


@pytest.mark.parametrize("name", ["paired", "nt_xent"])
def test_a_device_holds_no_block_of_scores(name, on_devices):
    """In tiles of 64: a few times its own rows, which twice as many rows double, and a few tiles."""
    views = 2 if name == "nt_xent" else 1
    used = {batch: int(on_devices[f"memory/{name}/{batch}"]) for batch in (4096, 8192)}
    for batch, found in used.items():
        own, tile, scores = 2 * batch // 8 * 32 * 4, 64 * 64 * 4, views**2 * batch // 8 * batch * 4
        assert own < found < 12 * own + 8 * tile < scores / 4
    assert used[8192] < 2.1 * used[4096]


LOSSES = {"paired": sharded.paired_contrastive, "nt_xent": sharded.nt_xent, "clip": sharded.clip_loss}
every_loss = pytest.mark.parametrize("name", LOSSES)
PAIR = np.eye(3, 4, dtype=np.float32), np.ones((3, 4), np.float32)


@every_loss
@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"mesh": jax.devices()}, TypeError, r"mesh.*jax\.sharding\.Mesh.*list"),
        ({"axis_name": "rows"}, ValueError, r"axis_name.*'batch'.*'rows'"),
        ({"tile": 0}, ValueError, r"tile.*positive int.*0"),
        ({"tile": True}, ValueError, r"tile.*positive int.*True"),
        ({"where": np.ones(3)}, TypeError, r"where.*bool.*float64"),
        ({"where": [True] * 3}, TypeError, r"where.*bool.*list"),
        ({"where": np.ones(4, bool)}, ValueError, r"where.*\(3,\).*\(4,\)"),
        ({"where": np.ones((3, 1), bool)}, ValueError, r"where.*\(3,\).*\(3, 1\)"),
    ],
)
def test_errors_name_what_is_wrong(name, wrong, error, words, as_installed):
    with pytest.raises(error, match=words):
        LOSSES[name](*PAIR, 0.5, **({"mesh": ON_ONE} | wrong))


@every_loss
def test_another_temperature_does_not_compile_again(name, caplog):
    loss = functools.partial(LOSSES[name], mesh=ON_ONE, tile=2)
    with compilations(FAMILIES[name].compiled, caplog) as found:
        for parameter in (0.5, 0.25, jnp.float32(0.125)):
            loss(*PAIR, parameter)
    assert len(found) == 1, found
