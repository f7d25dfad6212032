"""What a learner predicted, measured and tried in this kernel, kept as plain data."""

import copy
import functools
import inspect
import math
from typing import Any

import jax
import numpy as np

from contrastive_jax.exercises.guarded import name_of
from contrastive_jax.exercises.wording import Judgement

NO_SOURCE = "source not available"
SOURCE_LIMIT = 20_000
REASON_LIMIT = 2000
# Slips that are worth a name, if the prediction is within two percent of one.
CLOSE = 0.02
LARGEST_SHARE = 3.0  # beyond, a factor says more than percents
FACTORS = ((-1.0, "the sign is turned round"), (2.0, "twice as large"), (0.5, "half as large"))


class Journal:
    """Predictions by name, with their outcomes, and attempts at exercises in order."""

    def __init__(self) -> None:
        self._predictions: dict[str, dict[str, Any]] = {}
        self._attempts: list[dict[str, Any]] = []

    def predict(self, name: str, value: Any, because: str = "") -> str:
        """Keeps a prediction, and returns one line about it."""
        name = _clean(name)
        entry = self._entry(name)
        entry["because"] = _clean(because)[:REASON_LIMIT]
        if value is ...:
            return f"{name}: no prediction yet."
        number = _as_number(value)
        if number is None:
            return (
                f"{name}: a prediction is one number, and this is {_kind(value)}. Write predict({name!r}, 1.5), "
                "for example."
            )
        if entry["measured"] is not None and entry["predicted"] != number:
            entry["changed_after_the_result"] = True
        entry["predicted"] = number
        return f"{name}: you predict {number:g}."

    def outcome(self, name: str, measured: Any) -> str:
        """Keeps what was measured, and returns one line about how far off the prediction was."""
        name, number = _clean(name), _as_number(measured)
        if number is None:
            return f"{name}: one measured number is needed, and this is {_kind(measured)}."
        entry = self._entry(name)
        entry["measured"] = number
        entry["said"] = _compared(entry["predicted"], number)
        return f"{name}: {entry['said']}"

    def attempt(self, judgement: Judgement, judged: Any) -> None:
        """Keeps a judgement, with the source of what was judged."""
        self._attempts.append(
            {
                "exercise": judgement.name,
                "passed": judgement.passed,
                "shown": _clean(repr(judgement)),
                "diagnoses": [{"name": each.name, "explanation": each.explanation} for each in judgement.diagnoses],
                "source": source_of(judged),
            }
        )

    def evidence(self) -> dict[str, Any]:
        """All of it as plain data that is not shared with the journal."""
        return copy.deepcopy({"predictions": list(self._predictions.values()), "attempts": self._attempts})

    def _entry(self, name: str) -> dict[str, Any]:
        empty = {"name": name, "predicted": None, "because": "", "measured": None, "said": ""}
        return self._predictions.setdefault(name, {**empty, "changed_after_the_result": False})


KERNEL = Journal()


def predict(name: str, value: Any, because: str = "") -> None:
    """Keeps your prediction of a number, before you see it.

    Args:
        name: What is predicted; `outcome` uses the same name.
        value: One number; `...` for none yet. Anything else is not kept, and a line says so.
        because: Your reason, in words.

    Example:
        >>> predict("loss of two pairs", 0.5)
        loss of two pairs: you predict 0.5.
    """
    print(KERNEL.predict(name, value, because))


def outcome(name: str, measured: Any) -> None:
    """Prints how far off your prediction was, in one line.

    Args:
        name: The name that the prediction was kept under.
        measured: The number itself.

    Example:
        >>> predict("loss of four pairs", 1.4)
        loss of four pairs: you predict 1.4.
        >>> outcome("loss of four pairs", 0.7)
        loss of four pairs: you predicted 1.4, measured is 0.7. Off by 0.7, 100 % of the number: twice as large.
    """
    print(KERNEL.outcome(name, measured))


def evidence() -> dict[str, Any]:
    """All predictions, outcomes and judged attempts of this kernel, as dicts, lists, strings, numbers and None.

    Returns:
        "predictions": for each name, as `name`, the numbers `predicted` and `measured` or None, the reason `because`,
        the line that `outcome` said as `said`, and whether the prediction was `changed_after_the_result`;
        "attempts": for each judgement in order, `exercise`, `passed`, its text as `shown`, `diagnoses` with `name` and
        `explanation`, and the learner's `source`.

    Example:
        >>> sorted(evidence())
        ['attempts', 'predictions']
    """
    return KERNEL.evidence()


def source_of(judged: Any) -> str:
    """The code of a function, or the answer itself."""
    if isinstance(judged, str):
        return _clean(judged)[:SOURCE_LIMIT]
    while isinstance(judged, functools.partial):
        judged = judged.func
    try:
        return _clean(inspect.getsource(inspect.unwrap(judged)))[:SOURCE_LIMIT]
    except BaseException:  # no source, or an object that answers as it likes
        return NO_SOURCE


def _clean(text: Any) -> str:
    """A text that can be written to any file, whatever was passed: half a surrogate pair cannot."""
    try:
        return str(text).encode("utf-8", "replace").decode("utf-8")
    except BaseException:  # whatever a learner passes
        return f"of type {name_of(type(text))}"


def _kind(value: Any) -> str:
    """What was given in place of a number, and how to get one out of it."""
    if isinstance(value, str):
        return f"the text {value!r}"
    try:
        array = np.asarray(value) if isinstance(value, float | np.ndarray | np.generic | jax.Array) else None
    except Exception:  # an array that was deleted, for example
        array = None
    if array is None or array.dtype.kind not in "iufb" or (array.dtype.kind == "b" and not array.ndim):
        return f"of type {name_of(type(value))}"
    if array.ndim:
        return f"an array of shape {array.shape}: take the mean, or index it"
    return "NaN, which is not a number: something went wrong on the way to it"


def _compared(predicted: float | None, measured: float) -> str:
    if predicted is None:
        return f"measured is {measured:.4g}; you made no prediction."
    return f"you predicted {predicted:.4g}, measured is {measured:.4g}. {_gap(predicted, measured)}"


def _gap(predicted: float, measured: float) -> str:
    if predicted == measured:
        return "No difference."
    if not (math.isfinite(predicted) and math.isfinite(measured)):
        return "One of them is not finite."
    if f"{predicted:.4g}" == f"{measured:.4g}":
        return "The same, to the digits shown."
    off = predicted - measured
    side = "too large" if off > 0 else "too small"
    if not measured:
        return f"Off by {abs(off):.3g}: {side}."
    for factor, words in FACTORS:
        if abs(predicted - factor * measured) <= CLOSE * abs(factor * measured):
            side = words
    if abs(off / measured) <= LARGEST_SHARE:
        return f"Off by {abs(off):.3g}, {abs(off / measured) * 100:.3g} % of the number: {side}."
    if predicted / measured > 0:
        side = f"{predicted / measured:.3g} times the number"
    return f"Off by {abs(off):.3g}: {side}."


def _as_number(value: Any) -> float | None:
    """One real number that is not NaN, or None; truth values are no numbers."""
    if isinstance(value, str | bytes | bool | np.bool_) or value is None:
        return None
    try:
        array = np.asarray(value)
        if array.shape != () or array.dtype.kind not in "iuf":
            return None
        number = float(array)
    except Exception:  # whatever a learner passes
        return None
    return None if math.isnan(number) else number
