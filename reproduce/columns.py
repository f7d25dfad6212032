"""One column of the matrix: the notebooks under one JAX release, run by the harness inside that release's environment.

A column has a build folder of its own, so that what is finished there is reused, and an interrupted matrix goes on.
"""

import hashlib
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .checkout import BUILD_VARIABLE, Checkout
from .errors import CANNOT_COMPARE, RUN_FAILED
from .isolated import STRAY
from .results import RunCheck
from .tasks import steering

Cells = dict[str, dict[str, RunCheck]]


@dataclass(frozen=True)
class Column:
    """A release and what came of it. `reason` says why nothing ran, and then there are no cells.

    `departures` are the packages that are not as pinned; `published` says what became of its records.
    """

    release: str
    reason: str = ""
    python: str = ""
    departures: dict[str, str] = field(default_factory=dict)
    cells: Cells = field(default_factory=dict)
    published: str = ""

    @property
    def runs(self) -> list[RunCheck]:
        """All its cells, in both precisions."""
        return [run for pair in self.cells.values() for run in pair.values()]

    @property
    def status(self) -> int:
        """The worst exit status of its cells."""
        return CANNOT_COMPARE if self.reason else max((run.status for run in self.runs), default=CANNOT_COMPARE)


def of_release(checkout: Checkout, release: str) -> Checkout:
    """The checkout with the build folder of one release; runs with settings of the caller's lie in another one."""
    settings = sorted(steering().items())
    mark = f"+settings-{hashlib.sha256(repr(settings).encode()).hexdigest()[:8]}" if settings else ""
    return Checkout(checkout.root, f"build/matrix/{release}{mark}")


def run(column: Checkout, python: Path, arguments: list[str], stdout: int | None = None) -> tuple[int, str]:
    """Run the harness's `run` in an environment; return its exit status and the last line of its errors.

    An interruption is passed on, and waits until that harness has ended its own processes.
    """
    column.build.mkdir(parents=True, exist_ok=True)
    complaints = column.build / "stderr.txt"
    with complaints.open("wb") as errors:
        process = subprocess.Popen(
            [str(python), "-m", "reproduce", "run", *arguments],
            cwd=column.root,
            env=variables(column),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=errors,
            # Its own session: Ctrl-C reaches this harness alone, which then ends the other in order.
            start_new_session=True,
        )
        try:
            status = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    said = complaints.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return status, said[-1] if said else f"exit status {status}"


def variables(column: Checkout) -> dict[str, str]:
    """The environment variables of the harness in a column: the caller's, without what leads to other packages."""
    kept = {name: value for name, value in os.environ.items() if name not in STRAY}
    return {**kept, "REPRODUCE_ROOT": str(column.root), BUILD_VARIABLE: column.build_folder}


def finished(cells: Cells, stem: str) -> bool:
    """Whether a notebook ran to its end in both precisions."""
    return all(run.status not in (CANNOT_COMPARE, RUN_FAILED) for run in cells[stem].values())
