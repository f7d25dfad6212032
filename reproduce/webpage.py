"""The report as one page that stands alone, and the same as Markdown.

Drawings are made, the most telling first, until their room is used up; what finds no room is named.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import figure_pairs, pages, plots, records
from .deviations import Course, courses
from .figure_pairs import Pair
from .overview import overview, short
from .survey import Place, Survey

# Together less than 3 MB, with the tables.
ROOM_FOR_PLOTS = 1_000_000
ROOM_FOR_FIGURES = 1_400_000


@dataclass(frozen=True)
class Pictures:
    """A pair of figures and their difference as addresses of images; `instead` says why there are none."""

    pair: Pair
    images: tuple[tuple[str, str], ...] = ()
    instead: str = ""


def write(folder: Path, survey: Survey) -> list[Path]:
    """Write the report into a folder, and return the files."""
    words = overview(survey)
    found = [course for course in courses(survey) if course.groups]
    page = pages.render(
        "report.html",
        **words,
        **_drawn(found),
        lists=_lists(found),
        plots=plots,
        figures=_pictures(figure_pairs.pairs(survey)),
        short=short,
    )
    plain = pages.render_markdown("report.md", **words, courses=[each for each in found if not each.identical])
    files = {folder / "report.html": page, folder / "report.md": plain}
    for path, content in files.items():
        records.write_atomically(path, content)
    return list(files)


def _drawn(found: list[Course]) -> dict[str, object]:
    """The plots of each notebook and precision, and the names of the series that found no room."""
    drawn: dict[Place, list[tuple[Course, plots.Plot]]] = {}
    without, room = [], ROOM_FOR_PLOTS
    # What parts from the reference goes first, and then what comes nearest to it.
    moved = [course for course in found if not course.identical]
    for course in sorted(moved, key=lambda each: (not each.parts, -each.share)):
        plot = plots.plot(course)
        room -= plot.size
        if room < 0:
            without.append(f"{' '.join(course.place)} {course.name}")
        else:
            drawn.setdefault(course.place, []).append((course, plot))
    return {"drawn": dict(sorted(drawn.items())), "without": short(", ".join(without), 2000)}


def _lists(found: list[Course]) -> dict[Place, str]:
    """The series that are the same, to the bit, under every release."""
    same: dict[Place, list[str]] = {}
    for course in found:
        if course.identical:
            same.setdefault(course.place, []).append(course.name)
    return {place: short(", ".join(names), 1000) for place, names in same.items()}


def _pictures(pairs: list[Pair]) -> list[Pictures]:
    made, room = [], ROOM_FOR_FIGURES
    for pair in pairs:
        pictures = _drawings(pair) if room > 0 else Pictures(pair, instead="There is no room left for it here.")
        size = sum(len(uri) for _, uri in pictures.images)
        if size > room:
            pictures, size = Pictures(pair, instead="It is too large for the room that is left here."), 0
        room -= size
        made.append(pictures)
    return made


def _drawings(pair: Pair) -> Pictures:
    if not (figure_pairs.drawable(pair.expected) and figure_pairs.drawable(pair.found)):
        return Pictures(pair, instead="It holds too many numbers to be drawn here.")
    try:
        difference = figure_pairs.difference(pair.expected, pair.found)
        sides = [("reference", pair.expected), (pair.title, pair.found)]
        sides += [("difference", difference)] if difference else []
        with np.errstate(over="raise"):
            return Pictures(pair, tuple((short(label), pages.picture(data)) for label, data in sides))
    except (ValueError, ArithmeticError) as error:
        # Numbers at the edge of what floats hold can be recorded and not drawn.
        return Pictures(pair, instead=f"It cannot be drawn: {short(error)}")
