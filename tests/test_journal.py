"""Predictions, outcomes and attempts, and what is kept of them."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from example_contract import CONTRACT

from contrastive_jax.exercises import journal
from contrastive_jax.exercises.journal import Journal
from contrastive_jax.exercises.judging import judge_function


@pytest.fixture
def kernel(monkeypatch):
    fresh = Journal()
    monkeypatch.setattr(journal, "KERNEL", fresh)
    return fresh


@pytest.mark.parametrize(
    ("predicted", "measured", "line"),
    [
        (1.4, 1.25, "you predicted 1.4, measured is 1.25. Off by 0.15, 12 % of the number: too large."),
        (1, 1.25, "you predicted 1, measured is 1.25. Off by 0.25, 20 % of the number: too small."),
        (-1, 1, "you predicted -1, measured is 1. Off by 2, 200 % of the number: the sign is turned round."),
        (-2.0, -4.0, "you predicted -2, measured is -4. Off by 2, 50 % of the number: half as large."),
        (0.505, 0.25, "you predicted 0.505, measured is 0.25. Off by 0.255, 102 % of the number: twice as large."),
        (0.52, 0.25, "you predicted 0.52, measured is 0.25. Off by 0.27, 108 % of the number: too large."),
        (0.5, 0.5, "you predicted 0.5, measured is 0.5. No difference."),
        (0.500001, 0.5, "you predicted 0.5, measured is 0.5. The same, to the digits shown."),
        (0.5, 0.0, "you predicted 0.5, measured is 0. Off by 0.5: too large."),
        (1.4, 0.007, "you predicted 1.4, measured is 0.007. Off by 1.39: 200 times the number."),
        (1.4, -0.007, "you predicted 1.4, measured is -0.007. Off by 1.41: too large."),
        (0.01, 2.0, "you predicted 0.01, measured is 2. Off by 1.99, 99.5 % of the number: too small."),
        (float("inf"), 2.0, "you predicted inf, measured is 2. One of them is not finite."),
        (float("inf"), float("inf"), "you predicted inf, measured is inf. No difference."),
    ],
)  # fmt: skip
def test_how_far_off(kernel, capsys, predicted, measured, line):
    journal.predict("x", predicted)
    capsys.readouterr()
    journal.outcome("x", measured)
    assert capsys.readouterr().out == f"x: {line}\n"
    assert kernel.evidence()["predictions"][0]["said"] == line


@pytest.mark.parametrize(
    "number", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), jnp.asarray(2.0), jnp.asarray(2)]
)
def test_every_kind_of_number_is_a_prediction(kernel, number):
    journal.predict("x", number)
    journal.outcome("x", number)
    entry = kernel.evidence()["predictions"][0]
    assert (entry["predicted"], entry["measured"]) == (2.0, 2.0) and type(entry["predicted"]) is float


class Hostile:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError

    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("1.4", "the text '1.4'"),
        (None, "of type NoneType"),
        (True, "of type bool"),
        (float("nan"), "NaN, which is not a number: something went wrong on the way to it"),
        ([1.0], "of type list"),
        (np.ones(2), "an array of shape (2,): take the mean, or index it"),
        (jnp.ones(1), "an array of shape (1,): take the mean, or index it"),
        (1j, "of type complex"),
        (Hostile(), "of type Hostile"),
    ],
)
def test_what_is_no_number_is_refused_in_words(kernel, capsys, value, said):
    journal.predict("x", value)
    assert capsys.readouterr().out == (
        f"x: a prediction is one number, and this is {said}. Write predict('x', 1.5), for example.\n"
    )
    assert kernel.evidence()["predictions"][0]["predicted"] is None
    journal.outcome("x", value)
    assert f"one measured number is needed, and this is {said}." in capsys.readouterr().out
    assert kernel.evidence()["predictions"][0]["measured"] is None


def test_no_prediction_is_allowed(kernel, capsys):
    journal.predict("x", ...)
    journal.outcome("x", 1.386294)
    journal.outcome("y", 2.0)
    assert capsys.readouterr().out == (
        "x: no prediction yet.\n"
        "x: measured is 1.386; you made no prediction.\n"
        "y: measured is 2; you made no prediction.\n"
    )


def test_a_prediction_is_kept_with_its_reason(kernel):
    journal.predict("x", 1.0, because="guessing costs log 4" + "!" * 10_000)
    (entry,) = kernel.evidence()["predictions"]
    assert entry["because"].startswith("guessing costs log 4!") and len(entry["because"]) == 2000
    assert entry["changed_after_the_result"] is False


def test_a_prediction_may_change_before_the_result_only(kernel):
    journal.predict("x", 1.0)
    journal.predict("x", 2.0)
    journal.outcome("x", 3.0)
    assert kernel.evidence()["predictions"][0]["changed_after_the_result"] is False
    journal.predict("x", 2.0)  # the cell was run again
    assert kernel.evidence()["predictions"][0]["changed_after_the_result"] is False
    journal.predict("x", 3.0)
    (entry,) = kernel.evidence()["predictions"]
    assert (entry["predicted"], entry["changed_after_the_result"]) == (3.0, True)


def gap(left, right, weight=2.0):
    return left  # a line to be found again


def test_an_attempt_is_kept_with_its_source(kernel):
    judgement = judge_function(CONTRACT, gap)
    kernel.attempt(judgement, gap)
    (attempt,) = kernel.evidence()["attempts"]
    assert attempt["source"] == "def gap(left, right, weight=2.0):\n    return left  # a line to be found again\n"
    assert (attempt["exercise"], attempt["passed"], attempt["diagnoses"]) == ("gap", False, [])
    assert attempt["shown"] == repr(judgement) and "✘ gap does not pass yet: check 2" in attempt["shown"]


@pytest.mark.parametrize("wrapped", [jax.jit(gap), functools.partial(gap, weight=1.0)])
def test_the_source_of_a_wrapped_function(wrapped):
    assert "a line to be found again" in journal.source_of(wrapped)


@pytest.mark.parametrize("judged", [len, 3.0, ..., None, np.sum.__call__])
def test_where_there_is_no_source(judged):
    assert journal.source_of(judged) == "source not available"


def test_the_answer_of_a_choice_is_its_source():
    assert journal.source_of("b") == "b"


def test_evidence_is_plain_and_a_copy(kernel):
    journal.predict("x", np.float32(0.5))
    kernel.attempt(judge_function(CONTRACT, gap), gap)
    first = kernel.evidence()
    assert json.loads(json.dumps(first)) == first
    first["predictions"][0]["predicted"] = 7
    first["attempts"][0]["diagnoses"].append("x")
    assert (
        kernel.evidence()["predictions"][0]["predicted"] == 0.5 and kernel.evidence()["attempts"][0]["diagnoses"] == []
    )


@pytest.mark.parametrize(
    ("name", "kept"), [(5, "5"), (None, "None"), ("a\ud800", "a?"), (Hostile(), "of type Hostile")]
)
def test_any_name_and_reason_can_be_written_to_a_file(as_installed, kernel, capsys, name, kept):
    journal.predict(name, 1, because="half a \udc00 pair")
    journal.outcome(name, 2)
    capsys.readouterr().out.encode("utf-8")
    (entry,) = kernel.evidence()["predictions"]
    assert (entry["name"], entry["because"]) == (kept, "half a ? pair")
    assert (entry["predicted"], entry["measured"]) == (1.0, 2.0)
    json.dumps(kernel.evidence(), ensure_ascii=False).encode("utf-8")


def test_any_answer_can_be_written_to_a_file(kernel):
    kernel.attempt(judge_function(CONTRACT, gap), "b\ud800")
    assert kernel.evidence()["attempts"][0]["source"] == "b?"


class Secretive:
    @property
    def __wrapped__(self):
        raise SystemExit


def test_an_object_that_will_not_be_asked_has_no_source():
    assert journal.source_of(Secretive()) == "source not available"
