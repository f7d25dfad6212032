"""How far a series is from the reference's at each step, and where it leaves its noise. Pure, and needs no JAX.

A step is the place of a number in its series, counted from 0.
"""

import math
from dataclasses import dataclass

from . import noise
from .figure_data import Number
from .records import Series
from .survey import Cell, Expected, Place, Survey

# Shorter lists are no course of anything; their numbers stand in the tables.
SHORTEST = 5


@dataclass(frozen=True)
class Deviation:
    """A series against the reference's.

    `moves` holds None where a number is not finite; `allowed` is what noise explains at each step; `parts_at` is the
    first step that it does not explain.
    """

    moves: tuple[float | None, ...]
    allowed: tuple[float, ...]
    parts_at: int | None

    @property
    def identical(self) -> bool:
        """Whether nothing moved at all."""
        return self.parts_at is None and not any(self.moves)

    @property
    def share(self) -> float:
        """The largest part of the allowed noise that a number uses; infinite beyond counting."""
        return max(map(self.share_at, range(len(self.moves))), default=0.0)

    def share_at(self, step: int) -> float:
        """The same at one step."""
        move, allowed = self.moves[step], self.allowed[step]
        if move is None:
            return math.inf
        return move / allowed if allowed else math.inf if move else 0.0

    @property
    def words(self) -> str:
        """What a person is told of it."""
        if self.identical:
            return "identical at every step"
        if self.parts_at is not None:
            return f"parts from the reference at step {self.parts_at} of {len(self.allowed)}"
        step = max(range(len(self.moves)), key=self.share_at)
        return f"never parts; at most {100 * self.share:.2g} % of the allowed noise, at step {step}"


def of_series(expected: Series, found: Series, floors: list[float] | None, precision: str) -> Deviation:
    """Hold a series against the reference's.

    >>> of_series(Series("a", [1.0, 2.0]), Series("a", [1.0, 2.5]), [0.01, 0.01], "float64").parts_at
    1
    """
    moves: list[float | None] = []
    allowed, parts = [], []
    noise_at = noise.Allowance(expected.values, floors, precision)
    for step, (a, b) in enumerate(zip(expected.values, found.values, strict=False)):
        exact = not (isinstance(a, float) and isinstance(b, float))
        moves.append(_move(a, b))
        allowed.append(0.0 if exact else noise.allowed(noise_at.floors[step], noise_at.ulps[step]))
        parts.append(moves[-1] is None or moves[-1] > allowed[-1] or (exact and type(a) is not type(b)))
    if len(expected.values) != len(found.values):
        parts.append(True)
    return Deviation(tuple(moves), tuple(allowed), parts.index(True) if any(parts) else None)


def _move(a: Number, b: Number) -> float | None:
    if isinstance(a, str) or isinstance(b, str):
        return None
    move = float(abs(a - b))
    return move if math.isfinite(move) else None


@dataclass(frozen=True)
class Course:
    """One series of the reference under all releases; releases that deviate alike stand together."""

    place: Place
    name: str
    unit: str
    groups: tuple[tuple[tuple[str, ...], Deviation], ...]

    @property
    def share(self) -> float:
        """The largest share of the allowed noise under any release."""
        return max((deviation.share for _, deviation in self.groups), default=0.0)

    @property
    def identical(self) -> bool:
        """Whether nothing moved under any release."""
        return all(deviation.identical for _, deviation in self.groups)

    @property
    def words(self) -> str:
        """What is said of the release that is farthest from the reference."""
        return self.groups[0][1].words if self.groups else "nowhere recorded"

    @property
    def parts(self) -> bool:
        """Whether it parts from the reference under any release."""
        return any(deviation.parts_at is not None for _, deviation in self.groups)


def courses(survey: Survey) -> list[Course]:
    """Every series that is long enough, by notebook and precision, the largest share of its noise first."""
    found = []
    for place, expected in sorted(survey.expected.items()):
        moved = {each.title: of_cell(expected, each.cells[place]) for each in survey.releases}
        here = [
            _course(place, entry, moved)
            for entry in expected.record.entries
            if isinstance(entry, Series) and len(entry.values) >= SHORTEST
        ]
        found += sorted(here, key=lambda course: -course.share)
    return found


def of_cell(expected: Expected, cell: Cell) -> dict[str, Deviation]:
    """The deviation of each series of the reference in a cell. What another random stream moved says nothing."""
    if cell.record is None or cell.run is None or cell.run.comparison is None or cell.run.comparison.not_comparable:
        return {}
    told = {entry.key for entry in cell.run.comparison.entries if cell.run.explanation.comparable(entry)}
    floors, precision = expected.floors or {}, expected.record.header.precision
    theirs = {entry.name: entry for entry in cell.record.entries if isinstance(entry, Series)}
    return {
        entry.name: of_series(entry, theirs[entry.name], floors.get(entry.name, {}).get("values"), precision)
        for entry in expected.record.entries
        if isinstance(entry, Series) and entry.name in theirs and entry.name in told
    }


def _course(place: Place, entry: Series, moved: dict[str, dict[str, Deviation]]) -> Course:
    alike: dict[Deviation, list[str]] = {}
    for title, deviations in moved.items():
        if entry.name in deviations:
            alike.setdefault(deviations[entry.name], []).append(title)
    # What parts goes first: a series that is too short can part where no number is too far away.
    groups = sorted(alike.items(), key=lambda item: (item[0].parts_at is None, -item[0].share))
    return Course(place, entry.name, entry.unit, tuple((tuple(titles), deviation) for deviation, titles in groups))
