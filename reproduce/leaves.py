"""An entry taken apart: the numbers that are compared within noise, and the rest, which must be the same.

Numbers come in groups, one for each innermost list, because the numbers of a list share a unit and a scale. The
margin of a claim is in neither part: it is there to be read, and a claim is compared by whether it holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from .figure_data import Number
from .records import Claim, Entry, Metric, Series, Text

# The fields of figure data that hold numbers. By name, because a row of NaN looks like a row of labels.
NUMBER_FIELDS = ("x", "y", "values")


@dataclass(frozen=True)
class Leaves:
    """`numbers` maps a path inside the entry to a list of numbers; `exact` maps a path to anything else."""

    numbers: dict[str, list[Number]]
    exact: dict[str, Any]


def leaves(entry: Entry) -> Leaves:
    """Take an entry apart.

    >>> from reproduce.records import Metric
    >>> leaves(Metric("train/loss", 0.5, unit="nats"))
    Leaves(numbers={'value': [0.5]}, exact={'unit': 'nats'})
    """
    if isinstance(entry, Claim):
        return Leaves({}, {"holds": entry.holds, "compared": entry.compared})
    if isinstance(entry, Metric):
        return Leaves({"value": [entry.value]}, {"unit": entry.unit})
    if isinstance(entry, Series):
        return Leaves({"values": entry.values}, {"unit": entry.unit})
    if isinstance(entry, Text):
        return Leaves({}, {"value": entry.value})
    numbers, exact = {}, {}
    for path, value in _walk(msgspec.to_builtins(entry.data), "data", numeric=False):
        (numbers if isinstance(value, list) else exact)[path] = value
    return Leaves(numbers, exact)


def label(key: str, path: str, index: int) -> str:
    """What a person calls a number: `train/loss[3]`, or `figure:panels[0].series[0].y[3]`."""
    if path == "value":
        return key
    if path == "values":
        return f"{key}[{index}]"
    return f"{key}:{path.removeprefix('data.')}[{index}]"


def _walk(value: Any, path: str, *, numeric: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _walk(item, f"{path}.{name}", numeric=name in NUMBER_FIELDS)
    elif isinstance(value, list) and (not numeric or any(isinstance(item, list) for item in value)):
        yield f"{path}.length", len(value)
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]", numeric=numeric)
    elif numeric:
        yield path, value if isinstance(value, list) else [value]
    else:
        yield path, value
