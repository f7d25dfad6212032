"""HTML pages that stand alone: one file, no network, no script, everything typed by people escaped."""

import base64
from pathlib import Path
from typing import Any

import jinja2

from . import figures
from .figure_data import FigureData

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters["number"] = lambda value: "–" if value is None else f"{value:.4g}"


def render(template: str, **content: Any) -> bytes:
    """Fill a template of `templates/`; a name that is missing is an error, never an empty place."""
    return _ENVIRONMENT.get_template(template).render(**content).encode()


def picture(data: FigureData) -> str:
    """A figure as the address of an image that holds its SVG, so that two figures cannot mix up their ids."""
    return f"data:image/svg+xml;base64,{base64.b64encode(figures.to_svg(data)).decode()}"
