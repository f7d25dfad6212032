"""All notebooks under many JAX releases: environments, runs, the comparison with the reference, the recorded runs."""

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from . import checking, columns, interpreters, notebooks, publishing, recording, records, releases
from .checkout import Checkout
from .columns import Column
from .errors import AGREES, RUN_FAILED, HarnessError
from .isolated import Isolated, Stamp


class NoInterpreter(HarnessError):
    """This machine has no Python that a release runs on."""


@dataclass(frozen=True)
class Options:
    """What a matrix is asked for.

    `run` are options handed on to the harness in each column; `publish` says whether records are written, and
    `overwrite` whether over others; `stdout` is where the harness in a column says how its runs go.
    """

    nb: str = ""
    uv: str = "uv"
    run: tuple[str, ...] = ()
    publish: bool = True
    overwrite: bool = False
    stdout: int | None = None


class Environments:
    """The environments of a checkout: found, or else made."""

    def __init__(self, root: Path, uv: str, say: Callable[[str], None]):
        self._root, self._uv, self._say = root, uv, say

    def ready(self, release: str) -> tuple[Isolated, Stamp]:
        """The environment of a release, made first where it is missing, broken or of other pins.

        Raises:
            NoInterpreter: there is no Python for it.
            HarnessError: it could not be made, or uv is missing.
        """
        isolated = Isolated(self._root, release)
        stamp = isolated.stamp()
        if stamp is None:
            interpreter = self.interpreter(release)
            self._say(f"JAX {release}: making .matrix/{release} (a minute where nothing is cached)")
            stamp = isolated.make(self.uv(), interpreter)
        self._say(f"JAX {release}, Python {stamp.python}:")
        return isolated, stamp

    def interpreter(self, release: str) -> str:
        """The Python to make an environment with."""
        wanted = releases.pythons(release)
        found = interpreters.find(wanted, shutil.which(self._uv))
        if found is None:
            raise NoInterpreter(f"no interpreter (needs Python {' or '.join(wanted)})")
        return found

    def uv(self) -> str:
        """The path of uv.

        Raises:
            HarnessError: there is none.
        """
        found = shutil.which(self._uv)
        if found is None:
            raise HarnessError(
                f"{self._uv} is not there, and environments are made with uv. Install it (pip install uv), or name "
                "one: UV=/path/to/uv"
            )
        return found

    def check(self, wanted: list[str]) -> None:
        """Before anything is run for minutes: uv has to be there if any environment is to be made.

        Raises:
            HarnessError: it is not.
        """
        for release in wanted:
            with contextlib.suppress(NoInterpreter):
                if Isolated(self._root, release).stamp() is None and self.interpreter(release):
                    self.uv()


def make(checkout: Checkout, wanted: list[str], options: Options, say: Callable[[str], None]) -> list[Column]:
    """Run and compare every column, one after the other, and then publish what was run.

    Raises:
        HarnessError: nothing can be compared at all, or settings are set that would be recorded as the normal state.
    """
    checkout.reference_name()
    _refuse_settings(checkout, options)
    sources = [notebooks.read(path) for path in checkout.sources(options.nb)]
    environments = Environments(checkout.root, options.uv, say)
    environments.check(wanted)
    made = [_column(checkout, environments, release, sources, options) for release in wanted]
    if not options.publish:
        return [replace(each, published=_where(checkout, each)) if each.cells else each for each in made]
    # All at the end: an interruption leaves every record as it was.
    return [
        replace(each, published=publishing.publish(checkout, each, overwrite=options.overwrite)) if each.cells else each
        for each in made
    ]


def _where(checkout: Checkout, column: Column) -> str:
    runs = columns.of_release(checkout, column.release).build_folder
    return f"not written; for make compare, the runs lie in {runs}/runs"


def _refuse_settings(checkout: Checkout, options: Options) -> None:
    if options.publish:
        try:
            recording.refuse_early(checkout, [], "", replace=True)
        except HarnessError as error:
            raise HarnessError(f"{error} To compare only, and write no record: make matrix ARGS=--no-publish") from None


def _column(
    checkout: Checkout,
    environments: Environments,
    release: str,
    sources: list[notebooks.Source],
    options: Options,
) -> Column:
    try:
        isolated, stamp = environments.ready(release)
    except NoInterpreter as error:
        return Column(release, str(error))
    except HarnessError as error:
        return Column(release, f"no environment: {error}")
    column = columns.of_release(checkout, release)
    only = ["--nb", options.nb] if options.nb else []
    status, complaint = columns.run(column, isolated.python, [*only, *options.run], options.stdout)
    cells = {
        source.stem: {precision: checking.check_run(column, source, precision) for precision in records.PRECISIONS}
        for source in sources
    }
    made = Column(release, "", stamp.python, isolated.departures(stamp), cells)
    # A failed cell has its reason. Where there is none, the harness itself could not run there.
    if status not in (AGREES, RUN_FAILED) or (status and not any(run.incomplete for run in made.runs)):
        return replace(made, reason=f"nothing could be run: {complaint}", cells={})
    return made
