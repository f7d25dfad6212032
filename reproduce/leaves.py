"""An entry taken apart: the numbers that are compared within noise, and the rest, which must be the same.

Numbers come in groups, one for each innermost list, because the numbers of a list share a unit and a scale. The
margin of a claim is in neither part: it is there to be read, and a claim is compared by whether it holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from .figure_data import Number
from .records import Claim, Entry, Metric, Series


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
    numbers, exact = {}, {}
    fields = msgspec.to_builtins(entry)
    for path, value in _walk({name: fields[name] for name in fields if name not in ("kind", "name")}, ""):
        (numbers if isinstance(value, list) else exact)[path] = value
    return Leaves(numbers, exact)


def label(key: str, path: str, index: int) -> str:
    """What a person calls a number: `train/loss[3]`, or `figure:panels[0].series[0].y[3]`."""
    if path == "value":
        return key
    if path == "values":
        return f"{key}[{index}]"
    return f"{key}:{path.removeprefix('data.')}[{index}]"


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _walk(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and not _all_numbers(value):
        yield f"{path}.length", len(value)
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]")
    elif isinstance(value, list) or _is_number(value):
        yield path, value if isinstance(value, list) else [value]
    else:
        yield path, value


def _all_numbers(values: list) -> bool:
    # Decoding has checked the types, so strings in a list that holds a number can only be NaN or an infinity.
    return any(_is_number(value) for value in values) and all(isinstance(value, int | float | str) for value in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
