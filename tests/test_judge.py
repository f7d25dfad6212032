"""The judge on the exercises: every right style passes, every known mistake gets its name, answers are weighed."""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_solutions import SOLUTIONS, nt_xent_where

import contrastive_jax
from contrastive_jax.exercises import evidence, journal, judge
from contrastive_jax.exercises.catalogue import EXERCISES
from contrastive_jax.exercises.contracts import Choice, Contract

CONTRACTS = {name: each for name, each in EXERCISES.items() if isinstance(each, Contract)}
CHOICES = {name: each for name, each in EXERCISES.items() if isinstance(each, Choice)}
# Every style in single precision, one of each exercise in double too: each takes a second or two.
STYLES = [
    pytest.param(name, each, precision, id=f"{name}-{each.__name__}-{precision}")
    for name, styles in SOLUTIONS.items()
    for each, precision in [*((each, "float32") for each in styles), (styles[0], "float64")]
]
VARIANTS = [
    pytest.param(name, each, id=f"{name}-{each.name}") for name in CONTRACTS for each in CONTRACTS[name].variants
]


@pytest.fixture(autouse=True, scope="module")
def forget_compiled_programs():
    """Hundreds of small programs, three gigabytes, that no other test needs."""
    yield
    jax.clear_caches()


@pytest.fixture(autouse=True)
def kernel(monkeypatch):
    monkeypatch.setattr(journal, "KERNEL", journal.Journal())


def test_every_exercise_has_a_right_answer_here():
    assert set(SOLUTIONS) == set(CONTRACTS)
    assert len(SOLUTIONS["nt_xent_loss"]) == 6 and len(SOLUTIONS["paired_contrastive"]) == 5


@pytest.mark.parametrize(("name", "function", "precision"), STYLES, indirect=["precision"])
def test_every_right_style_passes(name, function, precision):
    judgement = judge(function, exercise=name)
    assert judgement.passed, judgement
    assert judgement.diagnoses == ()


def test_the_package_meets_its_own_contracts():
    for name in ("paired_contrastive", "nt_xent_loss", "contrastive_logits", "clip_loss", "positive_only"):
        judgement = judge(getattr(contrastive_jax, name))
        assert judgement.passed, judgement


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_a_known_mistake_gets_its_name(name, variant):
    judgement = judge(variant.function, exercise=name)
    names = [each.name for each in judgement.diagnoses]
    print(f"\n{name:20s} {variant.name:32s} -> {', '.join(names) or '(none)'}")
    assert names == [variant.name], judgement
    assert f"exactly like a known mistake, `{variant.name}`: {variant.explanation}" in repr(judgement)


@pytest.mark.parametrize("name", CONTRACTS)
def test_nothing_passes_unwritten(name):
    def stub(*arguments):
        raise NotImplementedError

    def empty(*arguments):
        return ...

    for function in (stub, empty):
        # The parameters are those of the exercise.
        function.__signature__ = _signature(CONTRACTS[name])
        judgement = judge(function, exercise=name, verbose=True)
        assert not judgement.passed and judgement.diagnoses == ()
        assert judgement.findings[-1].problem == "It is not written yet."


def _signature(contract):
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter(each, kind, default=contract.defaults.get(each, inspect.Parameter.empty))
            for each in contract.parameters
        ]
    )


# The penalty is the same for every batch: nothing tells the function from a constant.
@pytest.mark.parametrize("name", [name for name in CONTRACTS if name != "duplicate_penalty"])
def test_the_right_number_of_one_case_is_not_enough(name):
    contract = CONTRACTS[name]
    case = contract.cases[-1]
    expected = np.asarray(contract.oracle(*case.arguments) if case.expected is None else case.expected)

    def constant(*arguments):
        return jnp.asarray(expected, "float32" if expected.dtype == float else None)

    constant.__signature__ = _signature(contract)
    assert not judge(constant, exercise=name).passed


def nt_xent_loss(view1, view2, temperature=0.5):
    return nt_xent_where(view1, view2, temperature) + 0.01


def test_an_unknown_mistake_is_not_given_a_name():
    judgement = judge(nt_xent_loss)
    assert judgement.name == "nt_xent_loss" and not judgement.passed
    assert judgement.diagnoses == ()
    assert "none of the" in repr(judgement)


def test_the_name_of_the_function_is_the_exercise():
    assert judge(jax.jit(nt_xent_loss)).name == "nt_xent_loss"
    assert judge(functools.partial(nt_xent_loss, temperature=0.5)).name == "nt_xent_loss"


def test_an_unknown_exercise_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"exercise: expected one of .*clip_loss, .*nt_xent_loss") as raised:
        judge(lambda x: x)
    assert "Next step: rename the function to its exercise, or pass the name as exercise=." in str(raised.value)


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("nt_xnet", "nt_xent_loss"),
        ("my_loss", "clip_loss or mismatched_loss or nt_xent_loss"),
        ("expected_hit", "expected_hits"),
    ],
)
def test_of_known_exercises_only_those_of_a_close_name_are_listed(name, close):
    with pytest.raises(
        ValueError, match=rf"exercise: expected the name of an exercise, such as {close}.*, found '{name}'"
    ) as raised:
        judge(nt_xent_loss, exercise=name)
    assert "feature_spread" not in str(raised.value)
    assert "Next step: rename the function" in str(raised.value)


@pytest.mark.parametrize("mistake", [3.0, None, ..., "nt_xent_loss", jnp.zeros(2)])
def test_what_is_no_function_is_refused_in_words(mistake):
    judgement = judge(mistake)
    assert not judgement.passed
    assert "not a function: pass a function by its name, without calling it." in repr(judgement)
    judgement = judge(mistake, exercise="nt_xent_loss")
    assert not judgement.passed and "not a function" in repr(judgement)


def test_judgements_are_kept_as_evidence():
    judge(nt_xent_where, exercise="nt_xent_loss")
    judge(CONTRACTS["nt_xent_loss"].variants[0].function, exercise="nt_xent_loss")
    first, second = evidence()["attempts"]
    assert (first["exercise"], first["passed"], second["passed"]) == ("nt_xent_loss", True, False)
    assert first["source"].startswith("def nt_xent_where(view1, view2, temperature=0.5):\n")
    assert [each["name"] for each in second["diagnoses"]] == [CONTRACTS["nt_xent_loss"].variants[0].name]


@pytest.mark.parametrize("name", CHOICES)
def test_every_answer_is_weighed(name):
    choice = CHOICES[name]
    for letter, option in choice.options.items():
        judgement = judge(letter, exercise=name)
        assert judgement.passed is (letter == choice.right)
        assert option.text in repr(judgement) and option.reason in repr(judgement)
        assert judge(f" {letter.upper()} ", exercise=name).passed is judgement.passed
    assert judge(choice.right, exercise=name).remark and evidence()["attempts"][-1]["source"] == choice.right


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (..., "There is no answer yet: type one of a, b"),
        (None, "There is no answer yet"),
        ("z", "That is none of the answers: type one of a, b"),
        ("", "That is none of the answers"),
        (2, "That is none of the answers"),
        (nt_xent_loss, "That is none of the answers"),
    ],
)
def test_what_is_no_answer(name, answer, said):
    judgement = judge(answer, exercise=name)
    assert not judgement.passed and said in repr(judgement)
