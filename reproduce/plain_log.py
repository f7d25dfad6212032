"""A record as lines for people: what a notebook prints as it goes, and what `show` prints afterwards."""

from .figure_data import Number
from .records import Claim, Entry, Figure, Header, Metric, Record, Series, key

# Enough digits to tell any two numbers of the precision apart.
_DIGITS = {"float32": 9, "float64": 17}


def number(value: Number, precision: str) -> str:
    """A number as text; two different numbers of `precision` never look the same."""
    return (
        value
        if isinstance(value, str)
        else f"{value:.{_DIGITS[precision]}g}"
        if isinstance(value, float)
        else str(value)
    )


def describe(entry: Entry, precision: str) -> str:
    """One line for one entry."""
    if isinstance(entry, Metric):
        return f"{key(entry)}: {number(entry.value, precision)}{_unit(entry.unit)}"
    if isinstance(entry, Series):
        return f"{entry.name}: {_span(entry.values, precision)}{_unit(entry.unit)}"
    if isinstance(entry, Claim):
        word = "holds" if entry.holds else "BROKEN"
        return f"claim {entry.name}: {word} (margin {_short(entry.margin)}; {entry.compared})"
    if isinstance(entry, Figure):
        return f"figure {entry.name}: {', '.join(panel.title or panel.ylabel for panel in entry.data.panels)}"
    return f"{entry.name}: {entry.value}"


def closing(header: Header, entries: tuple[Entry, ...]) -> str:
    """The last line of a log: PASS only where every claim holds."""
    broken = [entry.name for entry in entries if isinstance(entry, Claim) and not entry.holds]
    return f"FAIL: {header.notebook} (broken: {', '.join(broken)})" if broken else f"PASS: {header.notebook}"


def render(record: Record, about_run: str = "") -> str:
    """The whole log of a record; `about_run` says when, on which JAX and which device it was made."""
    header = record.header
    parameters = ", ".join(f"{name} = {value}" for name, value in header.parameters.items())
    lines = [f"{header.stem} in {header.precision}"]
    lines += [about_run] if about_run else []
    lines += [f"parameters: {parameters}"] if parameters else []
    lines += [describe(entry, header.precision) for entry in record.entries]
    return "\n".join([*lines, closing(header, record.entries), ""])


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""


def _short(value: Number) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def _span(values: list[Number], precision: str) -> str:
    if len(values) <= 4:
        return ", ".join(number(value, precision) for value in values)
    return f"{len(values)} values from {number(values[0], precision)} to {number(values[-1], precision)}"
