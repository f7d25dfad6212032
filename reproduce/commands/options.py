"""The options that several commands share, and where they all print."""

from typing import Annotated

import typer

from ..terminal import Terminal

# No emoji: a record may say `:x:`, and means it.
out = Terminal(soft_wrap=True, emoji=False)

NB = Annotated[str, typer.Option("--nb", help="Only the notebooks whose name starts so, such as 01.")]
Force = Annotated[bool, typer.Option("--force", help="Run what is fresh, too.")]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, help="Runs at the same time; default: one a core.")]
CellLimit = Annotated[int, typer.Option("--cell-limit", min=1, help="Seconds a cell may take.")]
NotebookLimit = Annotated[int, typer.Option("--notebook-limit", min=1, help="Seconds a notebook may take.")]
Uv = Annotated[str, typer.Option("--uv", help="The uv that makes environments.")]
All = Annotated[bool, typer.Option("--all", help="Show every difference.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
Check = Annotated[bool, typer.Option("--check", help="Change nothing; say whether anything would change.")]
