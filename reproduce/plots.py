"""Where the marks of a deviation plot stand: one small panel for each group of releases, all with the same axes.

The upper part has a logarithmic axis. A logarithm has no place for zero, so steps without any difference are ticks on
a strip of their own below.
"""

import itertools
import math
from dataclasses import dataclass

from .deviations import Course, Deviation

WIDTH, HEIGHT = 300, 158
LEFT, RIGHT, TOP, BOTTOM, STRIP = 46, 292, 8, 112, 124
MOST_PANELS = 8
# More steps than the panel has room for: of each bin the step with the largest share of its noise is drawn.
MOST_STEPS = 200


@dataclass(frozen=True)
class Panel:
    """The deviation under some releases; the rest are path data of SVG, empty where there is nothing to draw."""

    titles: tuple[str, ...]
    words: str
    parts: bool
    limit: str
    curve: str
    dots: str
    zeros: str
    beyond: str
    parts_x: float | None


@dataclass(frozen=True)
class Plot:
    """The panels of one series, and the ticks that they share: places upwards with what is written there."""

    panels: tuple[Panel, ...]
    ticks: tuple[tuple[float, str], ...]
    last_step: int
    left_out: int

    @property
    def size(self) -> int:
        """About how many bytes it takes on a page."""
        paths = sum(len(each.limit * 2 + each.curve + each.zeros + each.beyond) for each in self.panels)
        return paths + 900 * len(self.panels) + 200


class _Axes:
    """The scale that all panels of a series share."""

    def __init__(self, deviations: list[Deviation]):
        steps = [len(each.moves) for each in deviations]
        self.last = max(1, *(count - 1 for count in steps))
        sizes = [size for each in deviations for size in (*each.moves, *each.allowed) if size]
        self.low = math.floor(math.log10(min(sizes, default=1.0)))
        self.high = max(math.ceil(math.log10(max(sizes, default=1.0))), self.low + 1)

    def x(self, step: int) -> float:
        return round(LEFT + (RIGHT - LEFT) * step / self.last, 1)

    def y(self, size: float) -> float:
        return self._at(math.log10(size))

    def _at(self, power: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * (power - self.low) / (self.high - self.low), 1)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        every = math.ceil((self.high - self.low) / 3)
        return tuple((self._at(power), f"1e{power}") for power in range(self.high, self.low - 1, -every))


def plot(course: Course) -> Plot:
    """Place the marks of a series whose deviations are not all zero."""
    moved = [(titles, deviation) for titles, deviation in course.groups if not deviation.identical]
    axes = _Axes([deviation for _, deviation in moved])
    panels = tuple(_panel(titles, deviation, axes) for titles, deviation in moved[:MOST_PANELS])
    return Plot(panels, axes.ticks(), axes.last, len(moved) - len(panels))


def _panel(titles: tuple[str, ...], deviation: Deviation, axes: _Axes) -> Panel:
    steps = _shown(deviation)
    beyond = [step for step in steps if deviation.share_at(step) > 1]
    return Panel(
        titles,
        deviation.words,
        deviation.parts_at is not None,
        _limit(deviation, steps, axes),
        *_curve(deviation, steps, axes),
        "".join(f"M{axes.x(step)} {STRIP - 3}v6" for step in steps if deviation.moves[step] == 0),
        "".join(_cross(axes.x(step), deviation.moves[step], axes) for step in beyond),
        None if deviation.parts_at is None else axes.x(min(deviation.parts_at, axes.last)),
    )


def _shown(deviation: Deviation) -> list[int]:
    count = len(deviation.moves)
    if count <= MOST_STEPS:
        return list(range(count))
    edges = [count * n // MOST_STEPS for n in range(MOST_STEPS + 1)]
    worst = {max(range(start, stop), key=deviation.share_at) for start, stop in itertools.pairwise(edges)}
    first = set() if deviation.parts_at is None or deviation.parts_at >= count else {deviation.parts_at}
    return sorted(worst | first)


def _limit(deviation: Deviation, steps: list[int], axes: _Axes) -> str:
    """The upper edge of what noise explains."""
    if not any(deviation.allowed):
        return ""
    tops = [(axes.x(step), axes.y(deviation.allowed[step]) if deviation.allowed[step] else BOTTOM) for step in steps]
    return "M" + "L".join(f"{x} {y}" for x, y in tops)


def _curve(deviation: Deviation, steps: list[int], axes: _Axes) -> tuple[str, str]:
    """Lines through the steps that differ, broken where one does not; and a step between two such as a dot."""
    lines, dots, run = [], [], []
    for step in [*steps, None]:
        move = None if step is None else deviation.moves[step]
        if step is not None and move:
            run.append(f"{axes.x(step)} {axes.y(move)}")
            continue
        if len(run) == 1:
            dots.append(f"M{run[0]}h0")
        elif run:
            lines.append("M" + "L".join(run))
        run = []
    return "".join(lines), "".join(dots)


def _cross(x: float, move: float | None, axes: _Axes) -> str:
    y = axes.y(move) if move else TOP
    return f"M{round(x - 3, 1)} {round(y - 3, 1)}l6 6m0 -6l-6 6"
