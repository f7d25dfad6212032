"""Causes: each is named where the two environments show it, and none excuses what it cannot do."""

import io

import pytest
from builders import ENTRIES, an_environment, changed, record
from rich.console import Console

from reproduce import report
from reproduce.causes import Cause, Explanation, Kind, explain
from reproduce.compare import Comparison, compare
from reproduce.environment import Environment
from reproduce.records import Claim, Metric
from reproduce.results import RunCheck

PROBES = {
    **{f"random/{name}": "a" for name in ("bits", "uniform", "normal", "permutation", "randint", "split")},
    **dict.fromkeys(("matmul", "exp", "logsumexp", "softmax", "norm", "long_sum", "convolution"), "a"),
    **{f"contrastive/{name}": "a" for name in ("value", "gradient")},
}
VERSIONS = {"jax": "0.9.2", "jaxlib": "0.9.2", "optax": "0.2.8", "numpy": "2.4.6", "matplotlib": "3.10.8"}
FLOORS = {"train/loss": {"value": [0.01]}}


def environment(*moved: str, **changes) -> Environment:
    """An environment in which the probes `moved` have other fingerprints."""
    probes = {name: "b" if name in moved else digest for name, digest in PROBES.items()}
    return an_environment(**{"probes": probes, "versions": VERSIONS} | changes)


HERE = environment()
NEWER = {"versions": {**VERSIONS, "jax": "0.10.2", "jaxlib": "0.10.2"}}


def moved_by(amount: float, **changes) -> Comparison:
    """The comparison of two records of which one has another training loss; its floor is a hundredth."""
    other = [changed(entry, value=entry.value + amount) if entry.name == "train/loss" else entry for entry in ENTRIES]
    return compare(record(*ENTRIES), record(*other, **changes), FLOORS)


NOISE, DRIFT = moved_by(0.05), moved_by(0.5)


def kinds(result: Comparison, found: Environment, expected: Environment = HERE, free=()) -> list[Kind]:
    return [cause.kind for cause in explain(result, expected, found, free).causes]


def test_no_difference_needs_no_cause():
    assert explain(moved_by(0.0), HERE, environment("long_sum", **NEWER)).causes == ()
    other = compare(record(*ENTRIES), record(*ENTRIES, notebook="other"))
    assert explain(other, HERE, environment("long_sum")).causes == ()


ROUNDING = [
    (
        Kind.REDUCTION,
        environment("long_sum", "logsumexp", **NEWER),
        "JAX 0.9.2 and JAX 0.10.2 round otherwise (logsumexp, long_sum)",
    ),
    (Kind.REDUCTION, environment("matmul"), "two runs with JAX 0.9.2 round otherwise (matmul)"),
    (Kind.REDUCTION, environment("random/normal"), "two runs with JAX 0.9.2 round normal samples otherwise"),
    (Kind.GRADIENT, environment("contrastive/gradient", **NEWER), "the same value, another gradient"),
    (Kind.INSTRUCTIONS, environment("exp", "contrastive/gradient", cpu_features=["fma"]), "could use avx2"),
    (Kind.INSTRUCTIONS, environment(cpu_features=["avx2", "fma", "avx512f"]), "could use avx512f"),
    (Kind.FLAGS, environment("exp", flags={"XLA_FLAGS": "--xla_a=1"}), "none in the one and --xla_a=1 in the other"),
    (Kind.LIBRARIES, environment(versions={**VERSIONS, "numpy": "2.5.0"}), "numpy 2.4.6 and 2.5.0"),
    (Kind.LIBRARIES, environment(versions={**VERSIONS, "matplotlib": "3.11.0"}), "matplotlib 3.10.8 and 3.11.0"),
]


@pytest.mark.parametrize(
    ("kind", "found", "because"), ROUNDING, ids=[f"{kind}-{n}" for n, (kind, *_) in enumerate(ROUNDING)]
)
def test_what_changes_rounding_and_nothing_else(kind, found, because):
    [cause] = explain(NOISE, HERE, found).causes
    assert cause.kind is kind and because in cause.because
    # The same from the other side.
    assert kinds(NOISE, HERE, found) == [kind]


@pytest.mark.parametrize(
    ("kind", "found", "because"), ROUNDING, ids=[f"{kind}-{n}" for n, (kind, *_) in enumerate(ROUNDING)]
)
def test_rounding_never_excuses_a_drift(kind, found, because):
    causes = explain(DRIFT, HERE, found).causes
    assert [cause.kind for cause in causes] == [kind, Kind.UNKNOWN]
    assert causes[-1].because.startswith("1 entry differs by more than rounding explains, the first is train/loss.")


def test_nothing_recorded_differs():
    assert kinds(NOISE, HERE) == [Kind.UNKNOWN]
    assert kinds(DRIFT, HERE) == [Kind.UNKNOWN]
    # Another processor's name alone says nothing.
    assert kinds(NOISE, environment(processor="another", threads=8)) == [Kind.UNKNOWN]


def test_a_flag_that_names_an_instruction_set_is_that_cause_alone():
    narrow = environment("exp", "long_sum", cpu_features=[], flags={"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"})
    assert kinds(NOISE, narrow) == [Kind.INSTRUCTIONS]
    both = environment("exp", cpu_features=[], flags={"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2 --xla_b"})
    assert kinds(NOISE, both) == [Kind.INSTRUCTIONS, Kind.FLAGS]


def test_probes_that_follow_a_flag_are_no_cause_of_their_own():
    moved = ("long_sum", "contrastive/gradient", "random/normal")
    assert kinds(NOISE, environment(*moved, flags={"XLA_FLAGS": "--xla_a"})) == [Kind.FLAGS]
    assert kinds(NOISE, environment(*moved, cpu_features=["fma"])) == [Kind.INSTRUCTIONS]
    assert kinds(NOISE, environment(*moved, x64=True)) == [Kind.PRECISION]


def test_a_release_may_do_several_things():
    found = environment("long_sum", "contrastive/gradient", **NEWER)
    assert kinds(NOISE, found) == [Kind.REDUCTION, Kind.GRADIENT]
    # Where the value moves too, the gradient tells nothing of its own.
    assert kinds(NOISE, environment("long_sum", "contrastive/gradient", "contrastive/value", **NEWER)) == [
        Kind.REDUCTION
    ]


# The random stream

OTHER_STREAM = environment(*(name for name in PROBES if name.startswith("random/")), threefry_partitionable=False)
OTHER_RELEASE = environment("random/split", **NEWER)


@pytest.mark.parametrize("found", [OTHER_STREAM, OTHER_RELEASE])
def test_another_stream_explains_what_is_drawn(found):
    assert kinds(DRIFT, found) == [Kind.STREAM]
    assert kinds(DRIFT, found, free=["pairs", "accuracy@10"]) == [Kind.STREAM]


def test_another_stream_is_said_to_be_of_a_flag_or_of_a_release():
    [flag] = explain(DRIFT, HERE, OTHER_STREAM).causes
    assert flag.because == "jax_threefry_partitionable is True in the one and False in the other"
    [release] = explain(DRIFT, HERE, OTHER_RELEASE).causes
    assert release.because == "under the same settings JAX 0.9.2 and JAX 0.10.2 draw other numbers (split)"


def test_another_stream_excuses_nothing_that_owes_nothing_to_it():
    explanation = explain(DRIFT, HERE, OTHER_STREAM, ["train/loss", "pairs"])
    assert [cause.kind for cause in explanation.causes] == [Kind.STREAM, Kind.UNKNOWN]
    assert "train/loss" in explanation.causes[-1].because


def test_draws_in_64_bit_mode_are_no_other_stream():
    drawn = ("random/bits", "random/uniform", "random/permutation", "random/randint")
    assert kinds(DRIFT, environment(*drawn, x64=True)) == [Kind.PRECISION]
    assert Kind.STREAM in kinds(DRIFT, environment(*drawn, "random/split", x64=True))


def test_normal_samples_alone_are_no_other_stream():
    # Their last bits follow the rounding of a logarithm.
    assert Kind.STREAM not in kinds(NOISE, environment("random/normal", "exp"))


# Edits, and settings that change what is computed


def test_parameters_and_source():
    parameters = moved_by(0.5, parameters={"RATE": 0.25, "STEPS": 3})
    assert kinds(parameters, HERE) == [Kind.PARAMETERS]
    assert kinds(moved_by(0.5, source_sha256="6" * 64), HERE) == [Kind.SOURCE]
    both = moved_by(0.5, source_sha256="6" * 64, parameters={"RATE": 0.25, "STEPS": 3})
    assert kinds(both, environment("long_sum", **NEWER)) == [Kind.SOURCE, Kind.PARAMETERS, Kind.REDUCTION]
    # An edit is known without any environment.
    assert [cause.kind for cause in explain(parameters, None, None).causes] == [Kind.PARAMETERS]


@pytest.mark.parametrize("change", [{"x64": True}, {"matmul_precision": "default"}, {"backend": "gpu"}])
def test_precision(change):
    assert kinds(DRIFT, environment("matmul", **change))[0] is Kind.PRECISION


@pytest.mark.parametrize(
    ("one", "other", "side"), [(None, None, "either"), (None, HERE, "the expected"), (HERE, None, "the found")]
)
def test_without_an_environment(one, other, side):
    [cause] = explain(NOISE, one, other).causes
    assert cause.kind is Kind.UNKNOWN and f"what {side} run was made with is not recorded" in cause.because


# What is shown


def shown(**runs: RunCheck) -> str:
    console = Console(file=io.StringIO(), width=200, soft_wrap=True)
    report.show_causes(console, runs)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_cause_is_said_once():
    run = RunCheck(NOISE, explain(NOISE, HERE, environment("long_sum", **NEWER)))
    said = "cause: reduction order: JAX 0.9.2 and JAX 0.10.2 round otherwise (long_sum)"
    assert shown(one=run, two=run) == f"\n{said}\n"
    assert shown(one=run, two=RunCheck(moved_by(0.0))) == f"\n{said} (one)\n"
    assert shown(two=RunCheck(moved_by(0.0))) == ""


def test_what_another_stream_leaves_to_compare():
    entries = [changed(e, value=1.5) if isinstance(e, Metric) and e.name == "train/loss" else e for e in ENTRIES]
    entries = [changed(e, holds=False) if isinstance(e, Claim) and e.name == "learns" else e for e in entries]
    result = compare(record(*ENTRIES), record(*entries), FLOORS)
    run = RunCheck(result, explain(result, HERE, OTHER_STREAM, ["pairs", "pairing"]))
    text = shown(one=run)
    assert "Of 2 entries that owe nothing to the stream, 2 agree; 1 of 2 claims hold." in text
    console = Console(file=io.StringIO(), width=200, soft_wrap=True)
    report.show_comparison(console, "one", run, everything=False)
    assert isinstance(console.file, io.StringIO)
    details = console.file.getvalue()
    # A number that was drawn is not listed as a difference; a broken claim is.
    assert "train/loss" not in details and "learns" in details and "1 difference beyond noise" in details


def test_markup_in_a_cause_is_not_obeyed():
    run = RunCheck(NOISE, Explanation((Cause(Kind.UNKNOWN, "[red]x[/] [/nope]"),)))
    assert "[red]x[/] [/nope]" in shown(one=run)
