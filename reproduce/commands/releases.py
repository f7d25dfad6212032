"""The commands about JAX releases: the matrix, and the search for the release that moved a number."""

import sys
from typing import Annotated

import typer
from rich.markup import escape

from .. import spoken
from ..checkout import here
from .options import NB, CellLimit, Force, Jobs, Json, NotebookLimit, Uv, out


def matrix(
    jax: Annotated[str, typer.Option("--jax", help='Releases, such as "0.8.3 0.10.2"; default: all nine.')] = "",
    nb: NB = "",
    force: Force = False,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite records that would change.")] = False,
    no_publish: Annotated[bool, typer.Option("--no-publish", help="Compare only; write no record.")] = False,
    jobs: Jobs = None,
    cell_limit: CellLimit = 600,
    notebook_limit: NotebookLimit = 1800,
    uv: Uv = "uv",
    json: Json = False,
) -> int:
    """Run the notebooks under each JAX release, in an environment of its own, and compare with the reference."""
    from .. import grid, releases
    from .. import matrix as columns
    from ..lock import only_one

    checkout = here()
    limits = ["--cell-limit", str(cell_limit), "--notebook-limit", str(notebook_limit)]
    asked = (*limits, *(["--force"] if force else []), *(["--jobs", str(jobs)] if jobs else []))
    # An answer for a machine is all that standard output holds; the course of the runs goes to standard error.
    options = columns.Options(nb, uv, asked, not no_publish, replace, sys.stderr.fileno() if json else None)
    console = spoken.err if json else out

    def say(text: str) -> None:
        console.print(escape(text), highlight=False)

    with only_one(checkout.build / "matrix"):
        made = columns.make(checkout, releases.chosen(jax), options, say)
    if json:
        sys.stdout.buffer.write(grid.as_json(made, checkout.reference_name()))
        return grid.total(made)
    stems = [path.stem for path in checkout.sources(nb)]
    return grid.show(out, made, stems, checkout.reference_name())


def bisect(
    entry: Annotated[str, typer.Option("--entry", help="NN:ENTRY, such as 01:train/loss[-1], or probe:NAME.")],
    first: Annotated[str, typer.Option("--from", help="The release whose value the others are held against.")],
    last: Annotated[str, typer.Option("--to", help="A newer release.")],
    precision: Annotated[str, typer.Option(help="float32 or float64.")] = "float64",
    uv: Uv = "uv",
) -> int:
    """Find the first JAX release under which an entry leaves its noise floor, or a probe's fingerprint changes."""
    from .. import hunt, releases, watched
    from ..lock import only_one
    from ..matrix import Environments

    def say(text: str) -> None:
        out.print(escape(text), highlight=False)

    checkout = here()
    among = releases.between(first, last)
    say(f"{len(among)} releases: JAX {', '.join(among)}")
    with only_one(checkout.build / "matrix"):
        target = watched.watch(checkout, entry, precision, first, Environments(checkout.root, uv, say))
        found = hunt.search(among, target.moved, say)
        cause = target.because(found.before, found.after) if found.moved else ""
    if cause:
        say(f"cause: {cause}")
    out.print(f"\n[bold]{escape(found.sentence(target.what))}[/]", highlight=False)
    return found.status
