"""A learner's evidence as one HTML file: predictions, code, judgements, figures, and numbers against the reference."""

import datetime
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from . import environment, noise, pages, plain_log, records
from .checkout import Checkout
from .compare import Comparison, EntryResult, compare
from .errors import HarnessError
from .records import Claim, Entry, Record

# A difference of these says that the learner worked on the notebook, which is what it is for.
_EDITED = "the notebook's code was edited"


class Prediction(msgspec.Struct, frozen=True):
    """What was predicted before a result; `said` is the answer the notebook gave."""

    name: str
    predicted: float | None = None
    measured: float | None = None
    because: str = ""
    said: str = ""
    changed_after_the_result: bool = False


class Attempt(msgspec.Struct, frozen=True):
    """A judged exercise: the code as it was, and what the judge said of it."""

    exercise: str
    passed: bool
    source: str
    shown: str


class Evidence(msgspec.Struct, frozen=True):
    """What a notebook passes on of a learner's work."""

    predictions: list[Prediction]
    attempts: list[Attempt]


@dataclass(frozen=True)
class Row:
    """One entry beside the reference's."""

    name: str
    found: str
    expected: str
    verdict: str
    agrees: bool


@dataclass(frozen=True)
class Standing:
    """How a record stands against the reference; no rows where there is none to hold it against."""

    sentence: str
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def off(self) -> bool:
        """Whether a row needs the reader's attention."""
        return not all(row.agrees for row in self.rows)


def write(path: Path, record: Record, evidence: dict[str, Any], checkout: Checkout) -> None:
    """Write the portfolio of a record and the evidence beside it.

    Raises:
        ValueError: the evidence is not of the form of `Evidence`.
    """
    try:
        kept = msgspec.convert(evidence, Evidence)
    except msgspec.ValidationError as error:
        raise ValueError(f"cannot make a portfolio of this evidence: {error}. Pass what evidence() returns.") from None
    records.write_atomically(path, page(record, kept, stand(record, checkout)))


def page(record: Record, evidence: Evidence, standing: Standing) -> bytes:
    """The whole page."""
    exercises: dict[str, list[Attempt]] = {}
    for attempt in evidence.attempts:
        exercises.setdefault(attempt.exercise, []).append(attempt)
    return pages.render(
        "portfolio.html",
        stem=record.header.stem,
        notebook=record.header.notebook,
        precision=record.header.precision,
        date=datetime.date.today().isoformat(),
        summary=_summary(evidence, exercises),
        predictions=evidence.predictions,
        exercises=exercises,
        figures=[{"name": name, "alt": data.alt, "uri": pages.picture(data)} for name, data in record.figures.items()],
        standing=standing,
        made_with=_made_with(record),
    )


def stand(record: Record, checkout: Checkout) -> Standing:
    """Hold a record against the committed reference, as far as there is one."""
    precision = record.header.precision
    try:
        name = checkout.reference_name()
        reference = checkout.reference(record.header.stem)
        expected = records.read(reference.record(precision))
        floors = noise.read(reference.noise).precisions[precision].floors
    except (HarnessError, KeyError):
        # Why not is for maintainers, whom `make check` tells.
        return Standing("There is no reference here to compare with.")
    comparison = compare(expected, record, floors)
    if comparison.not_comparable:
        return Standing("The reference is of something else.", notes=comparison.not_comparable)
    ours, theirs = ({records.key(entry): entry for entry in each.entries} for each in (record, expected))
    rows = tuple(
        Row(
            result.key,
            _shown(ours.get(result.key), precision),
            _shown(theirs.get(result.key), precision),
            _verdict(result),
            result.verdict.agrees,
        )
        for result in comparison.entries
    )
    notes = tuple(each for each in comparison.stale if each != _EDITED)
    return Standing(_sentence(rows, comparison, name), rows, notes)


def _sentence(rows: tuple[Row, ...], comparison: Comparison, reference: str) -> str:
    agreeing = sum(row.agrees for row in rows)
    claims = f"{comparison.holding} of {comparison.claims} claims hold"
    if agreeing == len(rows):
        return f"All {len(rows)} entries agree with the reference {reference}, within its measured noise; {claims}."
    return f"{agreeing} of {len(rows)} entries agree with the reference {reference}; {claims}."


def _verdict(result: EntryResult) -> str:
    measured = [each.floors for each in result.differences if each.floors is not None]
    return f"{result.verdict} ({max(measured):.2g} noise floors)" if measured else str(result.verdict)


def _shown(entry: Entry | None, precision: str) -> str:
    if entry is None:
        return "–"
    if isinstance(entry, Claim):
        return f"{'holds' if entry.holds else 'broken'} ({entry.compared})"
    return plain_log.describe(entry, precision).removeprefix("figure ").removeprefix(f"{records.key(entry)}: ")


def _summary(evidence: Evidence, exercises: dict[str, list[Attempt]]) -> str:
    made = sum(each.predicted is not None for each in evidence.predictions)
    passed = sum(any(attempt.passed for attempt in attempts) for attempts in exercises.values())
    return f"{made} of {len(evidence.predictions)} predictions made, {passed} of {len(exercises)} exercises passed."


def _made_with(record: Record) -> dict[str, str]:
    parameters = ", ".join(f"{name} = {value}" for name, value in record.header.parameters.items())
    flags = ", ".join(f"{name}={value}" for name, value in environment.flags().items())
    return {
        "Python": platform.python_version(),
        **environment.versions(),
        "processor": environment.processor()[0],
        "parameters": parameters or "none",
        "flags": flags or "none",
    }
