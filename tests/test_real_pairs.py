"""Each cause is shown by two runs that were really made: here by a tiny notebook, or under other releases of JAX.

What takes another environment is kept in `pairs/`, which `pairs/make.py` makes again.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import REPOSITORY
from small_checkout import AGREES, CLOSE, DIFFERS, OPEN, SmallCheckout, small_checkout

from reproduce import environment, noise, pairing, records
from reproduce.causes import Explanation, Kind, explain
from reproduce.checkout import Checkout
from reproduce.compare import Verdict, compare
from reproduce.results import RunCheck

STEM = "01_training"
TRAINING = """
import sys

import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, "helpers")
import formula

stream = np.random.RandomState(0)
left, right, weights = (jnp.asarray(stream.standard_normal(s)) for s in ((64, 48), (64, 48), (48, 16)))


def loss(w):
    a, b = (jax.nn.softmax(x @ w) for x in (left, right))
    return -jnp.mean(jnp.diag(jax.nn.log_softmax(a @ b.T / 0.2, axis=1))) * formula.FACTOR


step = jax.jit(jax.value_and_grad(loss))
curve = []
for _ in range(20):
    value, slope = step(weights)
    weights = weights - RATE * slope
    curve.append(value)
log.series("curve", curve)
log.series("drawn", jax.random.uniform(jax.random.split(jax.random.key(7))[0], (5,)))
"""
NARROW = {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}
UNFUSED = {"XLA_FLAGS": "--xla_disable_hlo_passes=fusion"}
OLD = {"JAX_THREEFRY_PARTITIONABLE": "0"}
WIDER = TRAINING.replace("import sys\n", "import sys\n\nimport jax\n\njax.config.update('jax_enable_x64', True)\n", 1)

Made = dict[str, Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Iterator[Made]:
    """Run folders by what was changed; `plain` and `again` have nothing changed."""
    folder = tmp_path_factory.mktemp("pairs")
    with small_checkout(folder / "checkout") as checkout:
        yield {
            "plain": run(checkout, folder / "plain"),
            "again": run(checkout, folder / "again"),
            "narrow": run(checkout, folder / "narrow", environment=NARROW),
            "unfused": run(checkout, folder / "unfused", environment=UNFUSED),
            "stream": run(checkout, folder / "stream", environment=OLD),
            "parameter": run(checkout, folder / "parameter", "--parameter", "RATE=0.25"),
            "source": run(checkout, folder / "source", source=TRAINING.replace("0.2,", "0.25,")),
            "x64": run(checkout, folder / "x64", source=WIDER),
            "formula": run(checkout, folder / "formula", factor=1 + 1e-6),
        }


def run(
    checkout: SmallCheckout,
    target: Path,
    *options: str,
    source: str = TRAINING,
    factor: float = 1.0,
    environment: dict[str, str] | None = None,
) -> Path:
    helpers = checkout.root / "notebooks" / "helpers"
    helpers.mkdir(exist_ok=True)
    # No part of the notebook's source: a change of it shows in the numbers alone.
    (helpers / "formula.py").write_text(f"FACTOR = {factor!r}\n")
    checkout.notebook(STEM, OPEN, source, CLOSE)
    shutil.rmtree(checkout.paths.build, ignore_errors=True)
    asked = ("run", "--precision", "float32", "--force", *options)
    answer = checkout.command(*asked, environment=environment, publishes=True)
    assert answer.status == AGREES, answer.out + answer.err
    shutil.copytree(checkout.run_folder(STEM).path, target)
    return target


def explained(made: Made, name: str, floors: noise.Floors | None = None) -> Explanation:
    paths = [made[each] / "record.jsonl" for each in ("plain", name)]
    expected, found = (records.read(path) for path in paths)
    here, there = (pairing.environment_of(path, "float32") for path in paths)
    free = noise.stream_free(expected, records.read(made["stream"] / "record.jsonl"))
    return explain(compare(expected, found, floors), here, there, free)


def kinds(explanation: Explanation) -> list[Kind]:
    return [cause.kind for cause in explanation.causes]


@pytest.fixture(scope="module")
def floors(made) -> noise.Floors:
    """Floors as they are measured for a reference, on the runs whose rounding differs."""
    read = {name: records.read(made[name] / "record.jsonl") for name in ("plain", "narrow", "unfused")}
    return noise.measure(read.pop("plain"), read)


def test_the_same_run_twice_needs_no_cause(made):
    assert kinds(explained(made, "again")) == []


@pytest.mark.skipif("sse4" not in noise.perturbations(), reason="the narrow instruction set is of x86")
def test_another_instruction_set(made, floors):
    explanation = explained(made, "narrow", floors)
    assert kinds(explanation) == [Kind.INSTRUCTIONS]
    assert "avx" in explanation.causes[0].because


def test_another_way_of_compiling(made, floors):
    explanation = explained(made, "unfused", floors)
    assert kinds(explanation) == [Kind.FLAGS]
    assert UNFUSED["XLA_FLAGS"] in explanation.causes[0].because


def test_another_stream(made):
    assert kinds(explained(made, "stream")) == [Kind.STREAM]


def test_another_parameter(made):
    assert kinds(explained(made, "parameter")) == [Kind.PARAMETERS]


def test_an_edited_notebook(made):
    assert kinds(explained(made, "source")) == [Kind.SOURCE]


def test_another_precision(made):
    assert kinds(explained(made, "x64")) == [Kind.SOURCE, Kind.PRECISION]


def test_a_formula_changed_elsewhere_has_no_known_cause(made):
    explanation = explained(made, "formula")
    assert kinds(explanation) == [Kind.UNKNOWN]
    assert "more than rounding explains" in explanation.causes[0].because


def test_another_numpy_alone():
    paths = [REPOSITORY / "tests" / "pairs" / f"numpy-{version}" / "record.jsonl" for version in ("2.4.6", "2.1.3")]
    expected, found = (records.read(path) for path in paths)
    here, there = (pairing.environment_of(path, "float64") for path in paths)
    result = compare(expected, found)
    assert {each.key: each.verdict for each in result.entries}["sum"] is Verdict.IDENTICAL
    assert {each.key: each.verdict for each in result.entries}["log_determinant"] is Verdict.WITHIN_NOISE
    [cause] = explain(result, here, there, frozenset()).causes
    assert cause.kind is Kind.LIBRARIES and cause.because.endswith("numpy 2.4.6 and 2.1.3")


# Other releases, as they are recorded


def recorded() -> dict[str, dict[str, RunCheck]]:
    checkout = Checkout(REPOSITORY)
    reference = checkout.recorded_runs / checkout.reference_name()
    folders = sorted(path for path in checkout.recorded_runs.iterdir() if path.is_dir() and path != reference)
    return {path.name: pairing.compare_paths(reference, path) for path in folders}


@pytest.fixture(scope="module")
def releases() -> dict[str, dict[str, RunCheck]]:
    return recorded()


def test_what_releases_round_otherwise_has_a_cause(releases):
    assert releases, "no other release is recorded; make matrix records them"
    for folder, runs in releases.items():
        for name, run in runs.items():
            found = [cause.kind for cause in run.explanation.causes]
            assert run.comparison is not None
            if run.comparison.verdict is Verdict.IDENTICAL:
                assert found == [], (folder, name)
            else:
                assert found and set(found) <= {Kind.REDUCTION, Kind.GRADIENT}, (folder, name)


@pytest.mark.parametrize("kind", [Kind.REDUCTION, Kind.GRADIENT])
def test_a_pair_of_releases_shows_it(releases, kind):
    causes = [cause for runs in releases.values() for run in runs.values() for cause in run.explanation.causes]
    shown = [cause.because for cause in causes if cause.kind is kind]
    assert shown and all("JAX 0.9.2 and JAX" in because for because in shown)


def test_double_precision_agrees_on_every_release(releases):
    for folder, runs in releases.items():
        doubles = {name: run.status for name, run in runs.items() if name.endswith("float64")}
        assert doubles and set(doubles.values()) == {AGREES}, folder


def test_the_fingerprints_differ_between_the_pairs_and_not_within_one(made):
    read = {name: environment.read(made[name] / "environment.json").probes for name in made}
    assert read["plain"] == read["again"] == read["parameter"] == read["formula"] == read["source"]
    assert len({tuple(read[name].items()) for name in ("plain", "stream", "unfused", "x64")}) == 4


# The loss of the package itself


def test_a_changed_loss_of_the_package_is_never_noise(tmp_path):
    """A lesson in float64 with a loss that is off by a millionth. (The first logs only its own loss.)"""
    stem = "02_nt_xent"
    checkout_here = Checkout(REPOSITORY)
    reference = checkout_here.recorded_runs / checkout_here.reference_name() / f"{stem}.float64.jsonl"
    with small_checkout(tmp_path / "checkout") as checkout:
        shutil.copy(REPOSITORY / "notebooks" / f"{stem}.py", checkout.root / "notebooks")
        losses = checkout.root / "contrastive_jax" / "losses.py"
        right = "    return 0.5 * (diagonal_cross_entropy("
        source = losses.read_text()
        assert source.count(right) == 1
        losses.write_text(source.replace(right, right.replace("0.5 *", "(1 + 1e-6) * 0.5 *")))
        ran = checkout.command("run", "--precision", "float64", publishes=True)
        assert ran.status == AGREES, ran.out + ran.err
        found = checkout.run_folder(stem, "float64").record
        answer = checkout.here("compare", str(reference), str(found))
        (result,) = pairing.compare_paths(reference, found).values()
    assert answer.status == DIFFERS
    assert result.comparison and not result.comparison.stale
    drifting = [each for each in result.comparison.disagreements if each.verdict is Verdict.DRIFT]
    assert drifting and "bundles/across" in [each.where for each in drifting]
    assert Kind.UNKNOWN in [cause.kind for cause in result.explanation.causes]
    assert not result.explanation.stream_changed
