"""The command line: `python -m reproduce`."""

import typer

from . import spoken
from .checkout import here
from .commands import made, recorded, releases, reporting, running
from .startup import spare_the_slow_import

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
for command in (
    running.run,
    running.check,
    running.record,
    releases.matrix,
    releases.bisect,
    recorded.compare,
    recorded.show,
    reporting.report,
    made.figures,
    made.notebooks,
):
    app.command()(command)


def main() -> None:
    """Entry point."""
    spare_the_slow_import()
    spoken.run(app, here().build)


if __name__ == "__main__":
    main()
