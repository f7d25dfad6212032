"""What a report says, as plain rows, the same on the page and in Markdown. Texts are cut: they may be a stranger's."""

from dataclasses import dataclass
from typing import Any

from . import deviations, plain_log, surroundings, verdicts
from .causes import Cause
from .compare import Comparison, Difference
from .deviations import Deviation
from .environment import describe
from .errors import AGREES
from .records import PRECISIONS
from .results import count
from .survey import NOT_RECORDED, Cell, Place, Release, Survey

LONGEST = 160
MOST_ROWS = 12
MOST_SERIES = 8
MOST_CAUSES = 10


@dataclass(frozen=True)
class Said:
    """A verdict in words; `tone` is good, bad or quiet. `anchor` leads to its details where there are any."""

    precision: str
    words: str
    tone: str
    anchor: str


@dataclass(frozen=True)
class Row:
    """One release in the table of releases by notebooks."""

    title: str
    notebooks: dict[str, tuple[Said, ...]]
    causes: str
    note: str


@dataclass(frozen=True)
class Detail:
    """All that is said of one cell: its largest differences first."""

    anchor: str
    title: str
    said: Said
    claims: str
    stale: tuple[str, ...]
    causes: tuple[Cause, ...]
    parting: str
    series: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, str, str, str, str], ...]
    left_out: int


@dataclass(frozen=True)
class Section:
    """One release: how its surroundings differ, and the cells that are not identical."""

    title: str
    notes: tuple[str, ...]
    surroundings: tuple[tuple[str, str, str], ...]
    identical: str
    details: tuple[Detail, ...]


def overview(survey: Survey) -> dict[str, Any]:
    """The rows and sentences of a report."""
    known = next((each.environment for each in survey.expected.values() if each.environment), None)
    return {
        "sentence": sentence(survey),
        "reference": survey.reference,
        "made": short(describe(known)) if known else "",
        "stems": survey.stems,
        "rows": [_reference_row(survey)] + [_row(survey, n, each) for n, each in enumerate(survey.releases, 1)],
        "sections": [_section(survey, n, each) for n, each in enumerate(survey.releases, 1) if _worth_telling(each)],
    }


def _worth_telling(release: Release) -> bool:
    return release.recorded or any(cell.reason != NOT_RECORDED for cell in release.cells.values())


def sentence(survey: Survey) -> str:
    """The one sentence that says how it went."""
    recorded = [each for each in survey.releases if each.recorded]
    agreeing = [each for each in recorded if all(cell.agrees for cell in each.cells.values())]
    absent = [each.title for each in survey.releases if not each.recorded]
    verb = "agrees" if len(agreeing) == 1 else "agree"
    said = f"{len(agreeing)} of {len(recorded)} recorded releases {verb} with the reference {survey.reference}"
    if not recorded:
        said = f"Nothing is recorded to hold against the reference {survey.reference}"
    elif len(agreeing) == len(recorded):
        results = [_result(cell) for each in agreeing for cell in each.cells.values()]
        numbers = sum(result.numbers for result in results if result)
        said += f" in all {numbers} numbers"
    off = [each.title for each in recorded if each not in agreeing]
    said += f"; {', '.join(off)} {'does' if len(off) == 1 else 'do'} not" if off else ""
    return short(said + (f". Without a record: {', '.join(absent)}." if absent else "."), 1000)


def short(value: object, longest: int = LONGEST) -> str:
    """A text of bounded length, on one line."""
    text = " ".join(str(value).split())
    return text if len(text) <= longest else text[:longest] + "…"


def _result(cell: Cell) -> Comparison | None:
    return cell.run.comparison if cell.run else None


def _row(survey: Survey, number: int, release: Release) -> Row:
    notebooks = {
        stem: tuple(_said(number, release, (stem, p)) for p in PRECISIONS if (stem, p) in survey.expected)
        for stem in survey.stems
    }
    kinds = dict.fromkeys(
        str(cause.kind) for cell in release.cells.values() if cell.run for cause in cell.run.explanation.causes
    )
    return Row(short(release.title), notebooks, ", ".join(kinds), short(release.problem, 2 * LONGEST))


def _reference_row(survey: Survey) -> Row:
    said = {
        stem: tuple(Said(p, "the reference", "quiet", "") for p in PRECISIONS if (stem, p) in survey.expected)
        for stem in survey.stems
    }
    return Row(short(survey.title), said, "", "")


def _said(number: int, release: Release, place: Place) -> Said:
    cell = release.cells[place]
    if cell.run is None:
        tone = "quiet" if cell.reason == NOT_RECORDED else "bad"
        return Said(place[1], short(cell.reason), tone, "")
    words = verdicts.words(cell.run)
    anchor = "" if words == "identical" else f"r{number}-{place[0]}-{place[1]}"
    return Said(place[1], short(words), "good" if cell.run.status == AGREES else "bad", anchor)


def _section(survey: Survey, number: int, release: Release) -> Section:
    expected = {place[1]: each.environment for place, each in survey.expected.items() if each.environment}
    identical, details, notes = [], [], [release.problem] if release.problem else []
    for place, cell in sorted(release.cells.items()):
        said = _said(number, release, place)
        if said.anchor:
            details.append(_detail(survey, place, cell, said))
        elif cell.run:
            identical.append(" ".join(place))
        elif cell.detail:
            notes.append(f"{' '.join(place)} {cell.reason}: {cell.detail}")
    rows = surroundings.differences(expected, release.environments)
    return Section(
        short(release.title),
        tuple(short(note, 3 * LONGEST) for note in notes),
        tuple((short(what), short(ours, 2 * LONGEST), short(theirs, 2 * LONGEST)) for what, ours, theirs in rows[:60]),
        ", ".join(identical),
        tuple(details),
    )


def _detail(survey: Survey, place: Place, cell: Cell, said: Said) -> Detail:
    run, result = cell.run, _result(cell)
    assert run is not None and result is not None
    differences = [each for entry in result.entries if run.explanation.comparable(entry) for each in entry.differences]
    # The worst verdict first, and of one verdict the largest difference.
    differences.sort(key=lambda each: (each.verdict.agrees, verdicts.room(each)))
    moved = {n: d for n, d in deviations.of_cell(survey.expected[place], cell).items() if not d.identical}
    series = sorted(moved.items(), key=lambda item: -item[1].share)[:MOST_SERIES]
    return Detail(
        said.anchor,
        " ".join(place),
        said,
        _claims(cell),
        tuple(short(reason) for reason in (*result.not_comparable, *result.stale)[:MOST_CAUSES]),
        tuple(Cause(each.kind, short(each.because, 2 * LONGEST)) for each in run.explanation.causes[:MOST_CAUSES]),
        _parting(moved),
        tuple((name, deviation.words) for name, deviation in series),
        tuple(_difference(each, place[1]) for each in differences[:MOST_ROWS]),
        max(0, len(differences) - MOST_ROWS),
    )


def _claims(cell: Cell) -> str:
    result = _result(cell)
    said = f"{result.holding} of {count(result.claims, 'claim')} hold." if result and result.claims else ""
    drawn = cell.run is not None and cell.run.explanation.stream_changed
    return f"{said} What may owe something to the random stream is not compared.".strip() if drawn else said


def _parting(moved: dict[str, Deviation]) -> str:
    """The series that leaves the reference first: what came later may follow from it."""
    first = [(deviation.parts_at, name) for name, deviation in moved.items() if deviation.parts_at is not None]
    if not first:
        return "No series parts from the reference." if moved else ""
    step, name = min(first)
    more = f", the first of {len(first)} series that part" if first[1:] else ""
    return f"{name} leaves its allowed noise at step {step}{more}."


def _difference(each: Difference, precision: str) -> tuple[str, str, str, str, str]:
    sides = _value(each.expected, precision), _value(each.found, precision)
    return (short(each.where), str(each.verdict), *sides, verdicts.off_by(each))


def _value(value: object, precision: str) -> str:
    return plain_log.number(value, precision) if isinstance(value, float) else short(value)
