"""Numbers in prose: right ones pass, wrong ones are named, and other people's decimals are left alone."""

import math

import pytest
from builders import FIGURE, record

from reproduce import quoted
from reproduce.records import Claim, Figure, Metric, Series, Text

# A float64 run and a float32 run that differ in the eighth digit.
LOSS = {"float64": 0.56432104, "float32": 0.5643209815025330}


def run(precision: str):
    return record(
        Metric("train/loss", LOSS[precision], unit="nats"),
        Metric("slope", -1.380449),
        Metric("tie", 0.125),
        Metric("edge", 0.4999999 if precision == "float64" else 0.5000001),
        Metric("accuracy", 0.9375),
        Metric("pairs", 1234),
        Metric("steps", 1234567.891),
        Metric("small", 1e-9),
        Metric("bad", "NaN"),
        Metric("loss", 0.25, step=7),
        Series("curve", [0.5, 0.25, 0.125]),
        Claim("learns", True, 0.5, "a"),
        Figure("figure-1", FIGURE),
        Text("word", "0.5"),
        precision=precision,
        parameters={"RATE": 0.03, "STEPS": 60, "FAST": True, "NAME": "0.5"},
    )


RECORDS = {"01": [run("float32"), run("float64")]}


def problems(text: str, *, own: str = "01", strict: bool = True) -> list[str]:
    return list(quoted.problems(text, RECORDS, own, strict=strict))


@pytest.mark.parametrize(
    "text",
    [
        "0.564<!-- record: train/loss -->",
        "0.56432<!-- record: train/loss -->",
        "1<!-- record: train/loss -->",
        "+0.6<!-- record: train/loss -->",
        "-1.380<!-- record: slope -->",
        "\u22121.38<!-- record: slope -->",
        "$-1.4$<!-- record: slope -->",
        "**0.564**<!-- record: train/loss -->",
        "**0.564** <!-- record: train/loss -->",
        "(0.564)<!--record:train/loss-->",
        "0.564<!-- record:\ntrain/loss -->",
        "0.564\n<!-- record: train/loss -->",
        "93.75%<!-- record: accuracy -->",
        "93.8 %<!-- record: accuracy -->",
        "94 %<!-- record: accuracy -->",
        "1,234<!-- record: pairs -->",
        "1234<!-- record: pairs -->",
        "1,234,568<!-- record: steps -->",
        "1,234,567.9<!-- record: steps -->",
        "0.000<!-- record: small -->",
        "0.25<!-- record: loss@7 -->",
        "0.5<!-- record: curve[0] -->",
        "0.125<!-- record: curve[2] -->",
        "0.125<!-- record: curve[-1] -->",
        "0.5<!-- record: curve[-3] -->",
        "-0.5<!-- record: figure-1:panels[1].values[0][1] -->",
        "0.25<!-- record: figure-1:panels[0].series[0].y[2] -->",
        "60<!-- parameter: STEPS -->",
        "0.03<!-- parameter: RATE -->",
        "3%<!-- parameter: RATE -->",
        "0.564<!-- record: 01:train/loss -->",
        "From 0.5<!-- record: curve[0] --> to 0.25<!-- record: curve[1] -->, at 0.03<!-- parameter: RATE -->.",
    ],
)
def test_right(text):
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.565<!-- record: train/loss -->", "train/loss: the text says 0.565, the float32 record 0.56432098"),
        ("0.563<!-- record: train/loss -->", "train/loss"),
        ("0.56431<!-- record: train/loss -->", "train/loss"),
        ("-0.564<!-- record: train/loss -->", "train/loss"),
        ("1.380<!-- record: slope -->", "slope: the text says 1.380"),
        ("+1.380<!-- record: slope -->", "slope"),
        ("0.13<!-- record: tie -->", "tie"),
        ("9.4%<!-- record: accuracy -->", "accuracy"),
        ("0.9375%<!-- record: accuracy -->", "accuracy"),
        ("93.75<!-- record: accuracy -->", "accuracy"),
        ("1,235<!-- record: pairs -->", "pairs"),
        ("234<!-- record: pairs -->", "pairs"),
        ("0.25<!-- record: curve[0] -->", "curve[0]"),
        ("0.5<!-- record: curve[-1] -->", "curve[-1]"),
        ("61<!-- parameter: STEPS -->", "STEPS: the text says 61"),
        ("0.3<!-- parameter: RATE -->", "RATE"),
        ("0.564<!-- record: train/los -->", "no number 'train/los'"),
        ("0.5<!-- record: curve[3] -->", "no number 'curve[3]'"),
        ("0.5<!-- record: curve[-4] -->", "no number 'curve[-4]'"),
        ("0.5<!-- record: curve -->", "no number 'curve'"),
        ("0.25<!-- record: loss -->", "no number 'loss'"),
        ("0.5<!-- record: learns -->", "no number 'learns'"),
        ("0.5<!-- record: word -->", "no number 'word'"),
        ("0.5<!-- record: bad -->", "no number 'bad'"),
        ("0.5<!-- record: RATE -->", "no number 'RATE'"),
        ("60<!-- parameter: steps -->", "no number 'steps'"),
        ("1<!-- parameter: FAST -->", "no number 'FAST'"),
        ("0.5<!-- parameter: NAME -->", "no number 'NAME'"),
        ("0.564<!-- record: 02:train/loss -->", "no record of notebook 02"),
        ("about<!-- record: train/loss -->", "no number stands before"),
        ("`0.564`<!-- record: train/loss -->", "no number stands before"),
        ("<!-- parameter: RATE -->", "no number stands before"),
    ],
)
def test_wrong(text, said):
    found = problems(text)
    assert found and said in found[0]


def test_a_number_is_held_against_both_precisions():
    assert problems("0.56432104<!-- record: train/loss -->") == [
        "train/loss: the text says 0.56432104, the float32 record 0.564320981502533"
    ]
    assert len(problems("0.56432098<!-- record: train/loss -->")) == 1
    assert problems("0.5643210<!-- record: train/loss -->") == []
    # These two differ in the seventh decimal, and agree in what six decimals show.
    assert problems("0.500000<!-- record: edge -->") == []
    assert len(problems("0.5000000<!-- record: edge -->")) == 2


@pytest.mark.parametrize("value", [0.5, 1.5, 2.675, 1.005, 1 / 3, math.pi * 1e5, -2.5e-3])
@pytest.mark.parametrize("digits", range(6))
def test_rounding_is_that_of_python(value, digits):
    # Python's own formatting rounds the exact binary value too, ties to even.
    records = {"01": [record(Metric("a", value))]}
    tie = "<!-- record: a -->"
    assert list(quoted.problems(f"{value:.{digits}f}{tie}", records, "01")) == []
    assert list(quoted.problems(f"{value + 1.01 * 10**-digits:.{digits}f}{tie}", records, "01")) != []


@pytest.mark.parametrize(
    "text", ["The loss is 0.564.", "$\\tau = 0.2$", "**0.5**", ".5 of all", "| 0.2 | 1 |", "-1.38"]
)
def test_a_decimal_without_a_tie(text):
    (problem,) = problems(text)
    assert "a decimal without a tie" in problem
    assert problems(text, strict=False) == []


@pytest.mark.parametrize(
    "text",
    [
        "Four pairs, 60 steps, $\\log 4$, section 13, 1/5, 1e-6.",
        "The code `0.02` and ``x = 0.5``.",
        "```python\nx = 0.5\n```\nthen 3",
        "[the paper](https://example.org/v1.5/0.5)",
        "See https://example.org/2.5/a.",
        "[arxiv.org/abs/2002.05709](https://arxiv.org/abs/2002.05709), also 1807.03748.",
        "JAX 0.9.2 and NumPy 2.4.6.1",
        "<!-- a remark with 0.5 -->",
    ],
)
def test_what_no_run_produced_is_left_alone(text):
    assert problems(text) == []


def test_a_tie_elsewhere_excuses_no_other_decimal():
    assert problems("0.564<!-- record: train/loss --> or 0.7") == [
        "0.7: a decimal without a tie to a record entry or a parameter"
    ]


def test_outside_a_notebook_a_tie_names_it():
    assert problems("0.564<!-- record: 01:train/loss -->", own="", strict=False) == []
    (problem,) = problems("0.564<!-- record: train/loss -->", own="", strict=False)
    assert "(none named)" in problem
    assert len(problems("0.565<!-- record: 01:train/loss -->", own="", strict=False)) == 2


def test_every_number_can_be_quoted():
    found = quoted.values(run("float64"))
    assert found["train/loss"] == LOSS["float64"]
    assert [found[f"curve[{n}]"] for n in range(-3, 3)] == [0.5, 0.25, 0.125] * 2
    assert found["figure-1:panels[0].levels[0].y[0]"] == 1.375
