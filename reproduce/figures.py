"""Figure data to SVG: a pure function, the same bytes each time for one matplotlib release.

Margins are fixed and text stays text, so that the place of a mark never depends on how wide a font is. A dollar sign
is a dollar sign: read as mathematics, a label could fail to parse, long after it was recorded.
"""

import html
import io
import math

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure as Canvas

from . import pictures
from .figure_data import Bar, FigureData, Heatmap, Images, Line, Number, Panel

# Okabe and Ito's palette: told apart with any common form of colour blindness, and by dash pattern as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (3, 1)))
GREY = "#595959"

PANEL_WIDTH, PANEL_HEIGHT = 4.8, 3.9
LEFT, RIGHT, BOTTOM, TOP = 0.85, 0.3, 0.65, 0.5
COLOUR_BAR = 0.95

STYLE = {
    "svg.hashsalt": "contrastive-jax",
    "svg.fonttype": "none",
    "path.simplify": False,
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
    "legend.facecolor": "white",
    "legend.edgecolor": "none",
    "legend.framealpha": 0.9,
    "legend.fancybox": False,
}


def to_svg(data: FigureData) -> bytes:
    """The figure as an SVG file, panels from left to right."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        size = (PANEL_WIDTH * len(data.panels), PANEL_HEIGHT)
        canvas = Canvas(figsize=size)
        FigureCanvasAgg(canvas)
        for place, panel in enumerate(data.panels):
            _draw(canvas, place, panel, size[0])
        file = io.BytesIO()
        canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()


def as_html(data: FigureData) -> str:
    """The figure for a notebook page, with its text alternative."""
    svg = to_svg(data).decode()
    drawing = svg[svg.index("<svg") :]
    return f'<div role="img" aria-label="{html.escape(data.alt)}">{drawing}</div>'


def _draw(canvas: Canvas, place: int, panel: Panel, width: float) -> None:
    right = COLOUR_BAR if isinstance(panel, Heatmap | Images) else RIGHT
    span = PANEL_WIDTH - LEFT - right
    height = PANEL_HEIGHT - BOTTOM - TOP
    left = place * PANEL_WIDTH + LEFT
    axes = canvas.add_axes((left / width, BOTTOM / PANEL_HEIGHT, span / width, height / PANEL_HEIGHT))
    axes.set_xlabel(panel.xlabel, parse_math=False)
    axes.set_ylabel(panel.ylabel, parse_math=False)
    axes.set_title(panel.title, loc="left", wrap=False, parse_math=False)
    if isinstance(panel, Line):
        _line(axes, panel)
    elif isinstance(panel, Bar):
        _bar(axes, panel)
    else:
        bar_at = ((left + span + 0.12) / width, BOTTOM / PANEL_HEIGHT, 0.14 / width, height / PANEL_HEIGHT)
        bar_axes = canvas.add_axes(bar_at)
        colours = _heatmap(axes, panel) if isinstance(panel, Heatmap) else pictures.draw(axes, panel, span, height)
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
        canvas.colorbar(colours, cax=bar_axes)
        bar_axes.set_ylabel(panel.unit, parse_math=False)
        bar_axes.tick_params(labelsize=8)


def _line(axes, panel: Line) -> None:
    for n, curve in enumerate(panel.series):
        axes.plot(
            _floats(curve.x),
            _floats(curve.y),
            label=curve.label,
            color=COLOURS[n % len(COLOURS)],
            linestyle=DASHES[n % len(DASHES)],
            gid=f"curve-{n}",
        )
    if panel.logarithmic:
        axes.set_yscale("log")
    _levels_and_legend(axes, panel)


def _bar(axes, panel: Bar) -> None:
    centres = np.arange(len(panel.categories))
    width = 0.8 / len(panel.series)
    for n, group in enumerate(panel.series):
        shift = (n - (len(panel.series) - 1) / 2) * width
        axes.bar(
            centres + shift,
            [value if math.isfinite(value) else math.nan for value in _floats(group.values)],
            width,
            label=group.label,
            color=COLOURS[n % len(COLOURS)],
            hatch=("", "///", "...", "xxx")[n % 4],
            edgecolor="white",
        )
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set_xticks(centres, panel.categories, parse_math=False)
    # Bars fill their panel from side to side: the legend gets a strip of its own above them.
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.25 * (high - low))
    _levels_and_legend(axes, panel, place="upper center", columns=2)


def _levels_and_legend(axes, panel: Line | Bar, place: str = "best", columns: int = 1) -> None:
    for n, level in enumerate(panel.levels):
        dashes = DASHES[(n + 1) % len(DASHES)]
        axes.axhline(_floats([level.y])[0], color=GREY, linestyle=dashes, linewidth=1, label=level.label)
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        # White paper under the legend of curves: a level may run behind it.
        paper = isinstance(panel, Line)
        for text in axes.legend(handles, labels, loc=place, ncols=columns, frameon=paper).get_texts():
            text.set_parse_math(False)


def _heatmap(axes, panel: Heatmap) -> ScalarMappable:
    values = np.array([_floats(row) for row in panel.values])
    finite = values[np.isfinite(values)]
    if panel.diverging:
        high = float(np.max(np.abs(finite), initial=1e-12))
        low = -high
    else:
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    # 32 steps: the colour bar then stays vector art, and the cells carry their numbers anyway.
    colours = matplotlib.colormaps["PuOr_r" if panel.diverging else "cividis"].resampled(32)
    mesh = axes.pcolormesh(values, cmap=colours, vmin=low, vmax=high, edgecolors="white", linewidth=1)
    axes.invert_yaxis()
    axes.set_xticks(np.arange(len(panel.columns)) + 0.5, panel.columns, parse_math=False)
    axes.set_yticks(np.arange(len(panel.rows)) + 0.5, panel.rows, parse_math=False)
    if values.size <= 100:
        _write_values(axes, mesh, values)
    return mesh


def _write_values(axes, mesh, values: np.ndarray) -> None:
    for (row, column), value in np.ndenumerate(values):
        axes.text(
            column + 0.5,
            row + 0.5,
            f"{value:.2f}".replace("-", "\N{MINUS SIGN}"),
            ha="center",
            va="center",
            color=_readable_on(mesh.cmap(mesh.norm(value))),
            fontsize=9 if values.size <= 36 else 7,
        )


def _readable_on(colour: tuple[float, float, float, float]) -> str:
    """Black or white, whichever stands out more from the colour (contrast ratio of WCAG 2)."""
    if colour[3] == 0:  # NaN has no colour at all: it stands on the white page.
        return "black"
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    # Black has the ratio (luminance + 0.05) / 0.05, white 1.05 / (luminance + 0.05).
    return "black" if (luminance + 0.05) ** 2 >= 1.05 * 0.05 else "white"


def _floats(values: list[Number]) -> list[float]:
    """NaN and the infinities stand as strings in figure data; float() reads them."""
    return [float(value) for value in values]
