"""What a judgement looks like: short, retypable, and with everything a learner typed escaped."""

import dataclasses
import html.parser

import jax.numpy as jnp
import numpy as np
import pytest
from example_contract import CONTRACT, LEFT, RIGHT

from contrastive_jax.exercises import shown
from contrastive_jax.exercises.contracts import Case, Contract, Variant
from contrastive_jax.exercises.judging import judge_function
from contrastive_jax.exercises.subject import Finding
from contrastive_jax.exercises.wording import Judgement, Printed


def doubled(left, right, weight):
    """The sum of squares is doubled: twice the value, and twice the slope."""


def halved(left, right, weight):
    """Half of it is missing."""


MISTAKES = (
    Variant(doubled, CONTRACT.cases[0], 4.0, 8.0, "group/project#12"),
    Variant(halved, CONTRACT.cases[0], 4.0, 2.0),
)
KNOWING = dataclasses.replace(CONTRACT, variants=MISTAKES)


def failed(**changes):
    finding = Finding(
        "value on one pair",
        "The value is wrong.",
        CONTRACT.cases[0].arguments,
        np.array(8.0, "float32"),
        np.array(4.0),
        numeric=True,
    )
    return Judgement("gap", (Finding("the signature"), finding), contract=KNOWING, **changes)


def test_a_failure_in_full():
    assert repr(failed(diagnoses=MISTAKES[:1])) == (
        "✘ gap does not pass yet: check 2, value on one pair.\n"
        "  The value is wrong.\n"
        "      gap(jnp.array([[2.0, 0.0]]), jnp.zeros((1, 2)), 1.0)\n"
        "      yours       8\n"
        "      expected    4\n"
        "      difference  4\n"
        "  It behaves exactly like a known mistake, `doubled`: The sum of squares is doubled: twice the value, and "
        "twice the slope. Seen in practice: github.com/group/project/issues/12."
    )


def test_two_candidates_are_both_named():
    text = repr(failed(diagnoses=MISTAKES))
    assert "exactly like 2 known mistakes.\n  Either `doubled`: " in text
    assert "\n  or `halved`: Half of it is missing." in text and text.count("Seen in practice:") == 1


def test_an_unknown_mistake_is_called_so():
    assert "It behaves like none of the 2 mistakes known here." in repr(failed())


@pytest.mark.parametrize("change", [{"numeric": False}, {"final": True}])
def test_known_mistakes_are_not_mentioned_where_none_was_looked_for(change):
    judgement = failed()
    judgement = dataclasses.replace(judgement, findings=(judgement.findings[1]._replace(**change),))
    assert "known" not in repr(judgement)


def test_a_pass_is_one_line():
    assert repr(Judgement("gap", (Finding("a"), Finding("b")), contract=CONTRACT)) == "✔ gap passes all 2 checks."


def test_all_checks_if_asked_for():
    text = repr(failed(verbose=True))
    assert text.endswith("      ✔ the signature\n      ✘ value on one pair: The value is wrong.")


def test_prints_are_quoted_and_cut():
    assert repr(failed(printed=Printed(7, "a\tb\x1b[2J"))).endswith(
        "While it was judged it printed 7 characters: 'a\\tb\\x1b[2J'"
    )
    text = repr(failed(printed=Printed(100_000, "x" * 2000)))
    assert text.endswith(f"it printed 100000 characters: '{'x' * 80}' ...")


class Reader(html.parser.HTMLParser):
    """Collects tags and text, and fails on tags that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(judgement):
    reader = Reader()
    reader.feed(judgement._repr_html_())
    reader.close()
    assert reader.open == []
    return reader


def test_what_a_learner_types_is_escaped():
    def angry(left, right, weight=2.0):
        print("<img src=x onerror=alert(1)>")
        raise ValueError("<script>alert('`1`')</script> & \x1b[31m")

    judgement = judge_function(CONTRACT, angry)
    reader = read(judgement)
    assert reader.tags == {"div", "p", "strong", "pre", "code"}
    assert "<script>alert('1')</script> &" in reader.text and "<img src=x" in reader.text
    assert "\x1b" not in judgement._repr_html_() and "\x1b" not in repr(judgement)


def test_html_says_what_the_text_says():
    judgement = failed(diagnoses=MISTAKES, verbose=True, printed=Printed(3, "abc"))
    text = repr(judgement).replace("`", "")
    assert "".join(read(judgement).text.split()) == "".join(text.split())


def test_colours_leave_the_text_alone():
    # The page's own colours, light or dark, stay: only a border is coloured, and the background of code see-through.
    page = failed()._repr_html_()
    assert " color:" not in page and "background: rgba(127, 127, 127, 0.15)" in page
    assert "#d1495b" in page and "#2e9e5b" in Judgement("gap", (Finding("a"),), contract=CONTRACT)._repr_html_()


@pytest.mark.parametrize(
    "argument",
    [
        np.eye(2),
        2 * np.eye(3),
        np.zeros((2, 3)),
        LEFT,
        np.array([0.1, 1 / 3]),
        np.array([2, 0, 1], "int32"),
        np.array([True, False]),
        np.array([1.5, 2.0], "float16"),
        np.zeros((0, 4)),
        np.zeros((2, 0, 3)),
        0.5,
        3,
        (1, 0),
        "strict",
    ],
    ids=repr,
)
def test_what_is_shown_can_be_typed(argument):
    typed = eval(shown.typed(argument), {"jnp": jnp})
    if not isinstance(argument, np.ndarray):
        assert typed == argument and type(typed) is type(argument)
        return
    expected = jnp.asarray(argument)
    assert typed.dtype == expected.dtype and typed.shape == expected.shape
    assert np.array_equal(typed, expected)


def test_a_function_is_shown_by_its_code():
    def cubes(w):
        """lambda w: (w**3).sum()"""

    assert shown.typed(cubes) == "lambda w: (w**3).sum()"
    assert shown.typed(abs) == abs.__doc__.split("\n")[0]
    assert shown.typed(lambda w: w) == "<lambda>"


def test_a_long_call_has_a_line_for_each_argument():
    wide = np.arange(12.0).reshape(3, 4) / 7
    lines = shown.call_lines(CONTRACT, (wide, wide, 1.0))
    assert [line.split(" = ")[0] for line in lines] == ["left", "right", "weight", "gap(left, right, weight)"]
    scope = {"jnp": jnp}
    exec("\n".join(lines[:3]), scope)
    assert np.array_equal(scope["left"], jnp.asarray(wide)) and scope["weight"] == 1.0


def test_a_large_array_is_handed_over_instead():
    contract = Contract("sums", ("x",), "", np.sum, (Case("many", (np.ones((9, 9)),)),))
    judgement = judge_function(contract, lambda x: x)
    text = repr(judgement)
    assert "x = ... (an array of shape (9, 9))" in text
    assert "The input is the attribute `arguments` of what `judge` gives back." in text
    assert judgement.arguments is not None and judgement.arguments[0].shape == (9, 9)


@pytest.mark.parametrize(
    ("found", "expected", "text"),
    [
        (1.5, 1.0, "0.5"),
        (float("nan"), 1.0, "nan"),
        ([1.0, 2.0], [1.0, 4.0], "the largest is -2, at [1]"),
        ([[1.0, float("nan")]], [[1.0, 4.0]], "not finite, at [0, 1]"),
        ([1, 2, 3], [1, 3, 4], "2 entries, the first at [1]"),
        ([True], [True], ""),
        ([1.0], 1.0, ""),
        ([], [], ""),
    ],
)
def test_the_difference(found, expected, text):
    assert shown.difference(np.array(found), np.array(expected)) == text


def test_numbers_are_short():
    assert shown.number(np.array(1 / 3)) == "0.3333333"
    assert shown.number(np.array(True)) == "True"
    assert shown.number(np.array([1 / 3, 2])) == "[0.33333, 2.     ]"
    assert shown.number(jnp.asarray([0.5], jnp.bfloat16).__array__()) == "[0.5]"
    assert len(shown.number(np.ones((100, 100)))) < 600


def test_right_is_never_hidden(capsys):
    # Neither way to show a judgement prints on its own.
    judgement = judge_function(CONTRACT, lambda left, right, weight=2.0: RIGHT)
    repr(judgement), judgement._repr_html_()
    assert capsys.readouterr() == ("", "")
