"""The commands that run notebooks, hold them against the reference, and make a reference."""

import contextlib
import os
import sys
from typing import Annotated

import typer

from ..checkout import Checkout, folder_name, here
from ..errors import DIFFERS, RUN_FAILED, HarnessError, RunFailed
from .made import figures
from .options import NB, All, CellLimit, Force, Jobs, Json, NotebookLimit, out


def run(
    nb: NB = "",
    force: Force = False,
    jobs: Jobs = None,
    cell_limit: CellLimit = 600,
    notebook_limit: NotebookLimit = 1800,
    parameter: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, to run with another parameter.")] = None,
    precision: Annotated[str, typer.Option(help="Only float32 or float64; default: both.")] = "",
) -> int:
    """Run what is stale, in float32 and float64, and draw the figures of the runs under build/."""
    from .. import notebooks, recording, records
    from ..tasks import Limits, check_overrides, plain_tasks

    checkout = here()
    if precision not in ("", *records.PRECISIONS):
        raise HarnessError(f"--precision {precision!r}: expected {' or '.join(records.PRECISIONS)}. Nothing was run.")
    sources = [notebooks.read(path) for path in checkout.sources(nb)]
    overrides = dict(_parameter(text) for text in parameter or [])
    for source in sources:
        check_overrides(source, overrides)
    tasks = [task for source in sources for task in plain_tasks(checkout, source, overrides)]
    tasks = [task for task in tasks if precision in ("", task.precision)]
    status = run_all(checkout, tasks, Limits(cell_limit, notebook_limit), jobs, force=force)
    for source in sources:
        with contextlib.suppress(records.RecordError):
            record = records.read(checkout.run(source.stem, "float32").record)
            recording.draw_figures(record, checkout.build / "figures")
    return status


def check(nb: NB = "", everything: All = False, json: Json = False) -> int:
    """Compare the runs under build/ with the reference, and the committed files with each other. Runs nothing."""
    from .. import answers, checking, report

    checkout = here()
    reference = checkout.reference_name()
    checks = [checking.check_notebook(checkout, path) for path in checkout.sources(nb)]
    texts = checking.text_problems(checkout)
    if json:
        sys.stdout.buffer.write(answers.as_json(checks, texts, reference))
        return max([each.status for each in checks] + [DIFFERS if texts else 0])
    return report.show_checks(out, checks, texts, reference, everything=everything)


def record(
    nb: NB = "",
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite the record that is there.")] = False,
    force: Force = False,
    jobs: Jobs = None,
    cell_limit: CellLimit = 600,
    notebook_limit: NotebookLimit = 1800,
) -> int:
    """Record a reference: run, measure the noise floors, publish the record and draw its figures."""
    import importlib.metadata

    from .. import notebooks, recording, records
    from ..tasks import Limits, perturbed_tasks, plain_tasks

    checkout = here()
    sources = [notebooks.read(path) for path in checkout.sources(nb)]
    folder = folder_name(importlib.metadata.version("jax"))
    recording.refuse_early(checkout, [source.stem for source in sources], folder, replace=replace)
    # The plain runs first: a notebook that fails there would fail under every perturbation.
    for made in (plain_tasks, perturbed_tasks):
        tasks = [task for source in sources for task in made(checkout, source)]
        status = run_all(checkout, tasks, Limits(cell_limit, notebook_limit), jobs, force=force)
        if status:
            return status
    made = {name: content for source in sources for name, content in recording.files(checkout, source).items()}
    found = recording.environments(checkout, [source.stem for source in sources])
    recording.publish(checkout, made, found, folder)
    out.print(f"Recorded {', '.join(source.stem for source in sources)} as recorded_runs/{folder}.", highlight=False)
    reference = checkout.recorded_runs / "REFERENCE"
    try:
        if not reference.exists():
            records.write_atomically(reference, f"{folder}\n".encode())
        return figures(nb) if checkout.reference_name() == folder else 0
    except OSError as error:
        raise RunFailed(
            f"the record is written, but the disk refused what belongs to it: {error}. Free space or mend the "
            "permissions, and then: make figures"
        ) from None


def run_all(checkout: Checkout, tasks: list, limits, jobs: int | None, *, force: bool) -> int:
    """Run tasks with a display, and say what became of them; return the exit status."""
    from .. import report
    from ..display import Display
    from ..environment import threads
    from ..execute import FINISHED
    from ..lock import only_one
    from ..runner import Runner

    with only_one(checkout.build), Display(out, tasks) as display:
        results = Runner(checkout, limits, jobs or threads(), display).run(tasks, force=force)
    failed = [result for result in results if result.outcome.ended != FINISHED]
    for result in failed:
        folder = os.path.relpath(result.task.folder.path, checkout.root)
        report.show_failure(out, result.task.name, result.outcome, folder)
    ran = sum(result.ran for result in results)
    if not failed:
        rest = len(results) - ran
        out.print(f"{ran} run, {rest} fresh and not run again." if rest else f"{ran} run.", highlight=False)
    return RUN_FAILED if failed else 0


def _parameter(text: str) -> tuple[str, bool | int | float | str]:
    import ast

    name, equals, value = text.partition("=")
    if not equals:
        raise HarnessError(f"--parameter {text!r}: expected NAME=VALUE, such as STEPS=60. Nothing was run.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
