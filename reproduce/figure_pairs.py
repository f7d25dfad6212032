"""Figures beside the reference's: under which release each differs most, and the difference as a figure of its own."""

import math
from dataclasses import dataclass

import msgspec

from .compare import EntryResult, Verdict
from .figure_data import Bar, FigureData, Heatmap, Line, Number, Panel
from .survey import Place, Survey
from .verdicts import room

# Drawing time and file size grow with the numbers of a figure, and a record may hold a million.
MOST_NUMBERS = 20_000


@dataclass(frozen=True)
class Pair:
    """A figure of the reference, and the same under the release that is farthest from it.

    `room` is how many times the largest difference fits into what noise explains, 0 where no noise explains it.
    """

    place: Place
    name: str
    title: str
    room: float
    agrees: bool
    expected: FigureData
    found: FigureData


def pairs(survey: Survey) -> list[Pair]:
    """One pair for each figure of a notebook that is not the same everywhere, the farthest from the reference first."""
    worst: dict[tuple[str, str], Pair] = {}
    for place, expected in survey.expected.items():
        ours = expected.record.figures
        for release in survey.releases:
            cell = release.cells[place]
            if cell.record is None or cell.run is None or cell.run.comparison is None:
                continue
            theirs = cell.record.figures
            for result in cell.run.comparison.entries:
                if result.key in ours and result.key in theirs and cell.run.explanation.comparable(result):
                    pair = _pair(place, result, release.title, ours, theirs)
                    known = worst.get((place[0], result.key))
                    if pair and (known is None or pair.room < known.room):
                        worst[place[0], result.key] = pair
    return sorted(worst.values(), key=lambda pair: (pair.room, pair.place, pair.name))


def drawable(data: FigureData) -> bool:
    """Whether a figure is small enough to be drawn here."""
    return _count(msgspec.to_builtins(data.panels)) <= MOST_NUMBERS


def difference(expected: FigureData, found: FigureData) -> FigureData | None:
    """Found minus expected, panel by panel; None where the two are not of one form."""
    if [_form(panel) for panel in expected.panels] != [_form(panel) for panel in found.panels]:
        return None
    panels = [_minus(a, b) for a, b in zip(expected.panels, found.panels, strict=True)]
    return FigureData(panels, "The difference of the two figures, number by number.")


def _pair(
    place: Place, result: EntryResult, title: str, ours: dict[str, FigureData], theirs: dict[str, FigureData]
) -> Pair | None:
    if result.verdict is Verdict.IDENTICAL:
        return None
    nearest = min((room(each) for each in result.differences), default=0.0)
    return Pair(place, result.key, title, nearest, result.verdict.agrees, ours[result.key], theirs[result.key])


def _count(value: object) -> int:
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    return sum(map(_count, value)) if isinstance(value, list) else 1


def _form(panel: Panel) -> tuple:
    if isinstance(panel, Line):
        return ("line", [curve.x for curve in panel.series])
    if isinstance(panel, Bar):
        return ("bar", panel.categories, len(panel.series))
    if isinstance(panel, Heatmap):
        return ("heatmap", panel.rows, panel.columns)
    return ("images", panel.rows, panel.columns, len(panel.values[0][0]), len(panel.values[0][0][0]))


def _minus(expected: Panel, found: Panel) -> Panel:
    ours, theirs = _rows(expected), _rows(found)
    moves = [_apart(a, b) for a, b in zip(ours, theirs, strict=True)]
    unit = _unit(moves)
    return _with(expected, [_counted(row, unit) for row in moves], unit)


def _rows(panel: Panel) -> list[list[Number]]:
    """The numbers of a panel that are drawn against its axes, one list for each innermost one."""
    if isinstance(panel, Line):
        return [curve.y for curve in panel.series]
    if isinstance(panel, Bar):
        return [group.values for group in panel.series]
    if isinstance(panel, Heatmap):
        return panel.values
    return [line for row in panel.values for picture in row for line in picture]


def _with(panel: Panel, rows: list[list[Number]], unit: float) -> Panel:
    """The panel with differences in place of its numbers."""
    replace = msgspec.structs.replace
    if isinstance(panel, Line):
        curves = [replace(curve, y=row) for curve, row in zip(panel.series, rows, strict=True)]
        return replace(panel, series=curves, levels=[], logarithmic=False, ylabel=_named(panel.ylabel, unit))
    if isinstance(panel, Bar):
        groups = [replace(group, values=row) for group, row in zip(panel.series, rows, strict=True)]
        return replace(panel, series=groups, levels=[], ylabel=_named(panel.ylabel, unit))
    if isinstance(panel, Heatmap):
        return replace(panel, values=rows, diverging=True, unit=_named(panel.unit, unit))
    lines = iter(rows)
    values = [[[next(lines) for _ in picture] for picture in row] for row in panel.values]
    largest = max(abs(float(grey)) for row in rows for grey in row) or 1.0
    return replace(panel, values=values, black=-largest, white=largest, unit=_named(panel.unit, unit))


def _unit(moves: list[list[float]]) -> float:
    """The power of ten that differences are counted in: in their own unit the axes would all read 0.00."""
    largest = max((abs(move) for row in moves for move in row if math.isfinite(move)), default=0.0)
    return 10.0 ** max(math.floor(math.log10(largest)), -300) if largest else 1.0


def _named(what: str, unit: float) -> str:
    return f"difference / {unit:.0e}: {what}" if what else f"difference / {unit:.0e}"


def _apart(expected: list[Number], found: list[Number]) -> list[float]:
    return [float(b) - float(a) for a, b in zip(expected, found, strict=True)]


def _counted(moves: list[float], unit: float) -> list[Number]:
    return [move / unit if math.isfinite(move) else "NaN" for move in moves]
