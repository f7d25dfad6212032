"""The command line: `python -m reproduce`. The only part of the harness that prints and exits."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from . import spoken
from .checkout import Checkout, here
from .errors import DIFFERS, RUN_FAILED, HarnessError, RunFailed
from .startup import spare_the_slow_import

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
# No emoji: a record may say `:x:`, and means it.
out = Console(soft_wrap=True, emoji=False)

NB = Annotated[str, typer.Option("--nb", help="Only the notebooks whose name starts so, such as 01.")]
Force = Annotated[bool, typer.Option("--force", help="Run what is fresh, too.")]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, help="Runs at the same time; default: one a core.")]
CellLimit = Annotated[int, typer.Option("--cell-limit", min=1, help="Seconds a cell may take.")]
NotebookLimit = Annotated[int, typer.Option("--notebook-limit", min=1, help="Seconds a notebook may take.")]
All = Annotated[bool, typer.Option("--all", help="Show every difference.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
Check = Annotated[bool, typer.Option("--check", help="Change nothing; say whether anything would change.")]


@app.command()
def run(
    nb: NB = "",
    force: Force = False,
    jobs: Jobs = None,
    cell_limit: CellLimit = 600,
    notebook_limit: NotebookLimit = 1800,
    parameter: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, to run with another parameter.")] = None,
) -> int:
    """Run what is stale, in float32 and float64, and draw the figures of the runs under build/."""
    from . import notebooks, recording, records
    from .tasks import Limits, check_overrides, plain_tasks

    checkout = here()
    sources = [notebooks.read(path) for path in checkout.sources(nb)]
    overrides = dict(_parameter(text) for text in parameter or [])
    for source in sources:
        check_overrides(source, overrides)
    tasks = [task for source in sources for task in plain_tasks(checkout, source, overrides)]
    status = _run_all(checkout, tasks, Limits(cell_limit, notebook_limit), jobs, force=force)
    for source in sources:
        with contextlib.suppress(records.RecordError):
            record = records.read(checkout.run(source.stem, "float32").record)
            recording.draw_figures(record, checkout.build / "figures")
    return status


@app.command()
def check(nb: NB = "", everything: All = False, json: Json = False) -> int:
    """Compare the runs under build/ with the reference, and the committed files with each other. Runs nothing."""
    from . import checking, report

    checkout = here()
    reference = checkout.reference_name()
    checks = [checking.check_notebook(checkout, path) for path in checkout.sources(nb)]
    texts = checking.text_problems(checkout)
    if json:
        sys.stdout.buffer.write(report.as_json(checks, texts, reference))
        return max([each.status for each in checks] + [DIFFERS if texts else 0])
    return report.show_checks(out, checks, texts, reference, everything=everything)


@app.command()
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

    from . import notebooks, recording, records
    from .tasks import Limits, perturbed_tasks, plain_tasks

    checkout = here()
    sources = [notebooks.read(path) for path in checkout.sources(nb)]
    folder = recording.folder_name(importlib.metadata.version("jax"), "cpu")
    recording.refuse_early(checkout, [source.stem for source in sources], folder, replace=replace)
    # The plain runs first: a notebook that fails there would fail under every perturbation.
    for made in (plain_tasks, perturbed_tasks):
        tasks = [task for source in sources for task in made(checkout, source)]
        status = _run_all(checkout, tasks, Limits(cell_limit, notebook_limit), jobs, force=force)
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


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="Record or folder of records: the expected side.")],
    b: Annotated[Path, typer.Argument(help="Record or folder of records: the found side.")],
    nb: NB = "",
    everything: All = False,
    json: Json = False,
) -> int:
    """Compare two recorded runs. Needs no JAX and runs nothing; the noise floors are those beside A."""
    from . import pairing, report

    results = pairing.compare_paths(a, b, nb)
    if json:
        answer = {name: report.comparison_json(result) for name, result in results.items()}
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n")
    else:
        for name, result in results.items():
            report.show_comparison(out, name, result, everything=everything)
        out.print(f"\n[bold]{escape(pairing.closing_sentence(results, a, b))}[/]", highlight=False)
    return pairing.status(results)


@app.command()
def show(
    file: Annotated[Path | None, typer.Argument(help="A record file.")] = None,
    nb: NB = "",
    precision: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    reference: Annotated[bool, typer.Option("--reference", help="The reference record, not your last run.")] = False,
) -> int:
    """Print a record as the plain log."""
    from . import environment, plain_log, records

    checkout = here()
    if file:
        out.print(escape(plain_log.render(records.read(file))), end="", highlight=False)
        return 0
    for path in checkout.sources(nb):
        run_folder = checkout.run(path.stem, precision)
        if reference:
            recorded = checkout.reference(path.stem)
            record_file = recorded.record(precision)
            about = environment.read_recorded(recorded.folder)[precision]
        else:
            if not run_folder.record.exists():
                raise HarnessError(
                    f"{path.stem} has no {precision} run yet. Run it with: make reproduce NB={path.stem[:2]}"
                )
            record_file, about = run_folder.record, environment.read(run_folder.environment)
        text = plain_log.render(records.read(record_file), environment.describe(about))
        out.print(escape(text), end="", highlight=False)
    return 0


@app.command()
def figures(nb: NB = "", check: Check = False) -> int:
    """Draw figures/ from the reference record."""
    from . import recording, records

    checkout = here()
    changed = []
    for path in checkout.sources(nb):
        record = records.read(checkout.reference(path.stem).record("float32"))
        changed += recording.draw_figures(record, checkout.figures, write=not check)
    return _say_changed([f"figures/{path.name}" for path in changed], "figures", check=check)


@app.command()
def notebooks(nb: NB = "", check: Check = False) -> int:
    """Make the learner's copies from notebooks/*.py."""
    from . import notebooks as sources
    from .records import write_atomically

    changed = []
    for path in here().sources(nb):
        copy, made = path.with_suffix(".ipynb"), sources.to_bytes(sources.learner(sources.read(path)))
        if not copy.exists() or copy.read_bytes() != made:
            changed.append(f"notebooks/{copy.name}")
            if not check:
                write_atomically(copy, made)
    return _say_changed(changed, "notebooks", check=check)


def _say_changed(changed: list[str], target: str, *, check: bool) -> int:
    if not changed:
        out.print(f"{target}: up to date.", highlight=False)
        return 0
    out.print(f"{target}: {'out of step' if check else 'written'}: {', '.join(changed)}.", highlight=False)
    if check:
        out.print(f"make {target} makes them again.", highlight=False)
    return DIFFERS if check else 0


def _parameter(text: str) -> tuple[str, bool | int | float | str]:
    import ast

    name, equals, value = text.partition("=")
    if not equals:
        raise RunFailed(f"--parameter {text!r}: expected NAME=VALUE, such as STEPS=60. Nothing was run.")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _run_all(checkout: Checkout, tasks: list, limits, jobs: int | None, *, force: bool) -> int:
    from . import report
    from .display import Display
    from .environment import threads
    from .execute import FINISHED
    from .lock import only_one
    from .runner import Runner

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


def main() -> None:
    """Entry point."""
    spare_the_slow_import()
    spoken.run(app, here().build)


if __name__ == "__main__":
    main()
