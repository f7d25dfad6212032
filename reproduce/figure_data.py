"""Figures as data: panels of lines, heat maps, bars and pictures, with their labels and units.

The data of a figure is recorded and compared; the SVG is drawn from it. Lengths are checked when a figure is made or
read, so a figure that cannot be drawn is never recorded.
"""

import math
from typing import Annotated, Literal

import msgspec

# Integers of 64 bits: a longer one could not be turned into a float to be drawn or compared.
Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | float | Literal["NaN", "Infinity", "-Infinity"]


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Points joined by a line."""

    label: str
    x: list[Number]
    y: list[Number]

    def __post_init__(self):
        if len(self.x) != len(self.y):
            raise ValueError(f"curve {self.label!r} has {len(self.x)} x values and {len(self.y)} y values")


class Level(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A horizontal reference, such as the loss of guessing."""

    label: str
    y: Number


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="line"):
    """Curves over a common x axis."""

    series: list[Curve]
    xlabel: str
    ylabel: str
    title: str = ""
    levels: list[Level] = []
    logarithmic: bool = False


class Heatmap(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="heatmap"):
    """A matrix as colours. `diverging` centres the colours on zero and spans the same range on both sides."""

    values: list[list[Number]]
    rows: list[str]
    columns: list[str]
    unit: str
    xlabel: str
    ylabel: str
    title: str = ""
    diverging: bool = False

    def __post_init__(self):
        if not self.rows or not self.columns:
            raise ValueError("a heatmap needs at least one row and one column")
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise ValueError(f"heatmap values are not {len(self.rows)} rows of {len(self.columns)} columns")


class BarGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One bar for each category."""

    label: str
    values: list[Number]


class Bar(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="bar"):
    """Groups of bars side by side over the same categories."""

    categories: list[str]
    series: list[BarGroup]
    xlabel: str
    ylabel: str
    title: str = ""
    levels: list[Level] = []

    def __post_init__(self):
        if not self.series or not self.categories:
            raise ValueError("a bar panel needs at least one category and one group of bars")
        for group in self.series:
            if len(group.values) != len(self.categories):
                raise ValueError(
                    f"bars {group.label!r} has {len(group.values)} values for {len(self.categories)} categories"
                )


LARGEST_SIDE = 64
MOST_PIXELS = 8192  # Each is a mark in the drawing and a number in the record.


class Images(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="images"):
    """A table of pictures of one size on one grey scale, which runs from `black` to `white`.

    `values` is [rows][columns][height][width].
    """

    values: list[list[list[list[Number]]]]
    rows: list[str]
    columns: list[str]
    black: Number
    white: Number
    unit: str
    xlabel: str
    ylabel: str
    title: str = ""

    def __post_init__(self):
        if not self.rows or not self.columns:
            raise ValueError("pictures need at least one row and one column")
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise ValueError(f"the pictures are not {len(self.rows)} rows of {len(self.columns)} columns")
        self._check_sizes()
        self._check_greys()

    def _check_sizes(self):
        pictures = [picture for row in self.values for picture in row]
        height = len(pictures[0])
        width = len(pictures[0][0]) if height else 0
        if not (0 < height <= LARGEST_SIDE and 0 < width <= LARGEST_SIDE):
            raise ValueError(f"pictures of {height} by {width} pixels; expected 1 to {LARGEST_SIDE} a side")
        if any(len(picture) != height or any(len(line) != width for line in picture) for picture in pictures):
            raise ValueError(f"not every picture has {height} lines of {width} pixels, as the first has")
        if len(pictures) * height * width > MOST_PIXELS:
            raise ValueError(f"{len(pictures) * height * width} pixels; at most {MOST_PIXELS}: show fewer pictures")

    def _check_greys(self):
        ends = [self.black, self.white]
        greys = [grey for row in self.values for picture in row for line in picture for grey in line]
        if any(isinstance(grey, str) or not math.isfinite(grey) for grey in ends + greys):
            raise ValueError("a picture holds a grey that is not finite")
        low, high = map(float, ends)
        if not low < high:
            raise ValueError(f"black {self.black} must lie below white {self.white}")
        outside = [grey for grey in map(float, greys) if not low <= grey <= high]
        if outside:
            raise ValueError(f"a grey of {outside[0]} is outside the scale from {self.black} to {self.white}: clip it")


Panel = Line | Heatmap | Bar | Images


class FigureData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Panels from left to right. `alt` says in words what a reader of the picture sees."""

    panels: list[Panel]
    alt: str

    def __post_init__(self):
        if not self.panels or not self.alt.strip():
            raise ValueError("a figure needs at least one panel and a text alternative (alt)")
