"""HTML pages that stand alone: one file, no network, no script, everything typed by people escaped."""

import base64
import re
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
_MARKDOWN = jinja2.Environment(
    loader=_ENVIRONMENT.loader,
    undefined=jinja2.StrictUndefined,
    finalize=lambda value: escape_markdown(value),
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters["number"] = lambda value: "–" if value is None else f"{value:.4g}"


def render(template: str, **content: Any) -> bytes:
    """Fill a template of `templates/`; a name that is missing is an error, never an empty place."""
    return _ENVIRONMENT.get_template(template).render(**content).encode()


def render_markdown(template: str, **content: Any) -> bytes:
    """Fill a Markdown template of `templates/`; whatever is filled in reads as it is, on one line."""
    return _MARKDOWN.get_template(template).render(**content).encode()


def escape_markdown(value: object) -> str:
    r"""Text that Markdown shows as it is: no mark-up, no cell of a table, no link.

    >>> escape_markdown("a|b *c* train/loss_falls <img>")
    'a\\|b \\*c\\* train/loss_falls &lt;img&gt;'
    """
    text = " ".join(str(value).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # An underscore inside a word is no mark-up, and names are full of them.
    text = re.sub(r"([\\`*\[\]|~$#!]|(?<!\w)_|_(?!\w))", r"\\\1", text)
    # Some renderers make links of bare addresses.
    return re.sub(r"(?i)(www)\.", r"\1&#46;", text.replace("://", "&#58;//"))


def picture(data: FigureData) -> str:
    """A figure as the address of an image that holds its SVG, so that two figures cannot mix up their ids."""
    return f"data:image/svg+xml;base64,{base64.b64encode(figures.to_svg(data)).decode()}"
