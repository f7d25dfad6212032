"""The command that writes the report."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ..checkout import here
from .options import out


def report(
    folder: Annotated[Path | None, typer.Option("--out", help="Where to; default: the build folder.")] = None,
) -> int:
    """Write a page, and the same as Markdown, on how all recorded runs stand against the reference. Runs nothing."""
    from .. import overview, survey, webpage

    checkout = here()
    found = survey.gather(checkout)
    for path in webpage.write(folder or checkout.build, found):
        shown = path.relative_to(checkout.root) if path.is_relative_to(checkout.root) else path
        out.print(f"{escape(str(shown))}: {path.stat().st_size / 1000:.0f} kB", highlight=False)
    out.print(f"\n[bold]{escape(overview.sentence(found))}[/]", highlight=False)
    return 0
