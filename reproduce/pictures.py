"""A panel of pictures as vector marks, one pixel of paper between them.

A bitmap would be shorter, but its bytes depend on the machine's zlib.
"""

import math

import matplotlib
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from .figure_data import Images


def draw(axes, panel: Images, width: float, height: float) -> ScalarMappable:
    """Draw the pictures, and return the scale for a colour bar.

    Args:
        axes: where to; its limits and captions are set.
        panel: the pictures.
        width: the room there is, in inches.
        height: the same upwards.
    """
    pictures = np.array(panel.values, dtype=float)
    rows, columns, lines, pixels = pictures.shape
    down, across = rows * (lines + 1) - 1, columns * (pixels + 1) - 1
    # Square pixels of a multiple of 1/4 point, where that leaves any, so that coordinates are short.
    room = 72 * min(width / across, height / down)
    side = max(math.floor(4 * room) / 4, 1 / 4) if room >= 1 / 4 else room
    axes.set_xlim(0, 72 * width / side)
    axes.set_ylim(down, down - 72 * height / side)
    scale = ScalarMappable(
        Normalize(float(panel.black), float(panel.white)), matplotlib.colormaps["gray"].resampled(32)
    )
    for row, column in np.ndindex(rows, columns):
        left, top = column * (pixels + 1), row * (lines + 1)
        _picture(axes, scale.to_rgba(pictures[row, column])[..., 0], left, top)
    axes.set_xticks(np.arange(columns) * (pixels + 1) + pixels / 2, panel.columns, parse_math=False)
    axes.set_yticks(np.arange(rows) * (lines + 1) + lines / 2, panel.rows, parse_math=False)
    return scale


def _picture(axes, greys: np.ndarray, left: int, top: int) -> None:
    """One picture as a sheet of its commonest grey, and a path for the pixels of every other."""
    shades, counts = np.unique(greys, return_counts=True)
    sheet = shades[np.argmax(counts)]
    _rectangles(axes, np.array([[left, top]]), greys.shape[::-1], sheet)
    for shade in shades[shades != sheet]:
        y, x = np.nonzero(greys == shade)
        _rectangles(axes, np.stack([left + x, top + y], axis=1), (1, 1), shade)


def _rectangles(axes, corners: np.ndarray, size: tuple[int, ...], grey: float) -> None:
    """Rectangles of one size and grey as a single path."""
    outline = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]) * size
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(corners)
    path = Path((corners[:, None] + outline).reshape(-1, 2), codes)
    # The thin edge covers the seams that a viewer's smoothing leaves between neighbours.
    axes.add_patch(PathPatch(path, facecolor=str(grey), edgecolor=str(grey), linewidth=0.25))
