"""`RunLog`, all that a notebook imports of the harness.

Each call writes one line of the record and prints one line for the reader. Every line is flushed, so a kernel that
dies leaves what it had logged.
"""

import math
import os
from pathlib import Path
from typing import Any

import msgspec

from . import plain_log, records
from .figure_data import FigureData, Number

# Set by the harness for the kernels it starts. Its absence means that a person runs the notebook by hand.
SOURCE_VARIABLE = "REPRODUCE_SOURCE_SHA256"


class Picture:
    """What a figure call returns: Jupyter shows it as the same SVG that the harness draws."""

    def __init__(self, data: FigureData):
        self.data = data

    def _repr_html_(self) -> str:
        # matplotlib is imported only where a picture is looked at: logging alone never needs it.
        from . import figures

        return figures.as_html(self.data)


class RunLog:
    """The record of one run of one notebook.

    Args:
        path: record file to write, or "" to print only.
        notebook: id of the lesson, such as "pretraining-03".
        stem: file name of the notebook without suffix, such as "01_paired_views".
        precision: "float32" or "float64".
        parameters: the values of the parameters cell, without precision and log path.

    Raises:
        ValueError: a name, a parameter or a figure is not of the recorded form, or a name is used twice. Run by hand,
            a name may be used again: running a cell twice replaces what it had logged.

    >>> log = RunLog("", notebook="demo-01", stem="00_demo", precision="float32", parameters={"SEED": 0})
    >>> log.metric("train/loss", 0.25, unit="nats")
    train/loss: 0.25 nats
    >>> log.claim("loss_below_chance", margin=1.386 - 0.25, compared="log 4 - loss > 0")
    claim loss_below_chance: holds (margin 1.14; log 4 - loss > 0)
    >>> log.close()
    PASS: demo-01
    """

    def __init__(self, path: str | Path, *, notebook: str, stem: str, precision: str, parameters: dict[str, Any]):
        self._path = Path(path) if path else None
        self._by_hand = SOURCE_VARIABLE not in os.environ
        self._entries: dict[str, records.Entry] = {}
        self._header = _checked(
            records.Header,
            {
                "schema": records.SCHEMA,
                "notebook": notebook,
                "stem": stem,
                "source_sha256": os.environ.get(SOURCE_VARIABLE, ""),
                "precision": precision,
                "parameters": parameters,
            },
        )
        if self._path:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(records.encode_line(self._header))

    def metric(self, name: str, value: Any, *, unit: str = "", step: int | None = None) -> None:
        """Log one number: a Python number, or an array with one element."""
        self._add({"kind": "metric", "name": name, "value": _number(value, name), "unit": unit, "step": step})

    def series(self, name: str, values: Any, *, unit: str = "") -> None:
        """Log numbers of one kind in order: a sequence or a one-dimensional array."""
        self._add({"kind": "series", "name": name, "values": [_number(value, name) for value in values], "unit": unit})

    def claim(self, name: str, *, margin: Any, compared: str) -> None:
        """Log a statement of the lesson, which holds where `margin` is above zero.

        Args:
            margin: distance to failing; negative, zero or NaN where the statement is broken.
            compared: what the margin is, in words or as a formula.
        """
        value = _number(margin, name)
        holds = (not isinstance(value, str) and value > 0) or value == "Infinity"
        self._add({"kind": "claim", "name": name, "holds": holds, "margin": value, "compared": compared})

    def figure(self, name: str, *, panels: list[dict], alt: str) -> Picture:
        """Log a figure as data (see `figure_data`) and return its picture.

        Args:
            panels: one dictionary a panel: its `kind` and the fields of that kind. Arrays are taken as they are.
            alt: what a reader of the picture sees, in words.
        """
        data = {"panels": [_plain(panel, name) for panel in panels], "alt": alt}
        entry = self._add({"kind": "figure", "name": name, "data": data})
        assert isinstance(entry, records.Figure)
        return Picture(entry.data)

    def text(self, name: str, value: str) -> None:
        """Log a string that must be the same in every run."""
        self._add({"kind": "text", "name": name, "value": value})

    def close(self) -> None:
        """Write the last line; without it the record counts as incomplete."""
        entries = list(self._entries.values())
        if self._path:
            records.write_atomically(self._path, records.encode(self._header, entries))
        print(plain_log.closing(self._header, tuple(entries)))

    def portfolio(self, evidence: dict[str, Any]) -> None:
        """Save what was logged so far, and a learner's evidence, as one HTML file that opens without a network.

        The file is `portfolio-<stem>.html` in the working directory, or lies beside the record where the harness runs.

        Args:
            evidence: what `contrastive_jax.exercises.evidence()` returns.

        Raises:
            ValueError: the evidence is not of that form.
        """
        # The page needs the comparison and matplotlib: nothing that a log needs.
        from . import checkout, portfolio

        folder = Path() if self._by_hand or not self._path else self._path.parent
        path = folder / f"portfolio-{self._header.stem}.html"
        record = records.Record(self._header, tuple(self._entries.values()), "")
        portfolio.write(path, record, evidence, checkout.here())
        print(f"Saved {path.resolve() if self._by_hand else path.name}")

    def _add(self, fields: dict) -> records.Entry:
        entry = _checked(records.Entry, fields)
        name = records.key(entry)
        if name in self._entries and not self._by_hand:
            raise ValueError(f"the entry {name!r} is logged twice; give each entry a name of its own")
        self._entries[name] = entry
        if self._path:
            with self._path.open("ab") as file:
                file.write(records.encode_line(entry))
        print(plain_log.describe(entry, self._header.precision))
        return entry


def _checked(kind, fields: dict):
    try:
        return msgspec.convert(fields, kind, strict=True)
    except msgspec.ValidationError as error:
        raise ValueError(f"cannot log {fields.get('name', 'this run')!r}: {error}") from None


def _number(value: Any, name: str) -> Number:
    if hasattr(value, "item"):
        if getattr(value, "size", 1) != 1:
            raise ValueError(f"{name!r}: expected one number, found an array of shape {value.shape}")
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{name!r}: expected a number, found {value!r} of type {type(value).__name__}")
    if isinstance(value, int) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain(value: Any, name: str) -> Any:
    """Arrays as nested lists of numbers, everything else as it is."""
    if isinstance(value, dict):
        return {field: _plain(item, name) for field, item in value.items()}
    if isinstance(value, str | bool):
        return value
    if getattr(value, "ndim", None) == 0:
        return _number(value, name)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple | range):
        return [_plain(item, name) for item in value]
    return _number(value, name)
