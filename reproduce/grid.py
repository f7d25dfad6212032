"""What a matrix says to a person and to a machine: releases by notebooks, and one closing sentence."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from . import answers, report
from .columns import Column
from .errors import AGREES, CANNOT_COMPARE, DIFFERS, RUN_FAILED
from .records import PRECISIONS
from .results import RunCheck
from .verdicts import words


def show(console: Console, columns: list[Column], stems: list[str], reference: str) -> int:
    """Print the table, reasons and causes, what was published, and the closing sentence; return the exit status."""
    console.print()
    console.print(_table(columns, stems))
    for column in columns:
        _reasons(console, column)
    for column in columns:
        if column.published:
            line = f"recorded_runs for JAX {column.release}: {column.published}."
            console.print(escape(line), highlight=False)
    status = total(columns)
    console.print(f"\n[bold]{escape(closing_sentence(columns, reference))}[/]", highlight=False)
    return status


def total(columns: list[Column]) -> int:
    """The exit status of all columns together."""
    return max((column.status for column in columns), default=CANNOT_COMPARE)


def closing_sentence(columns: list[Column], reference: str) -> str:
    """The one sentence that says how a matrix went."""
    status = total(columns)
    off = ", ".join(column.release for column in columns if column.status == status)
    agree = f"{sum(column.status == AGREES for column in columns)} of {len(columns)} releases agree"
    if status == AGREES:
        numbers = sum(run.comparison.numbers for column in columns for run in column.runs if run.comparison)
        return f"Agrees: all {numbers} numbers under JAX {off} agree with the reference {reference}."
    if status == DIFFERS:
        return f"Differs from the reference {reference} under JAX {off}; {agree}."
    if status == RUN_FAILED:
        return f"A run failed under JAX {off}; {agree} with the reference {reference}. Finished runs are kept."
    return f"Cannot compare JAX {off} with the reference {reference}; {agree}."


def as_json(columns: list[Column], reference: str) -> bytes:
    """The matrix for a machine: for each release its environment, verdicts, every difference and what was published."""
    answer = {
        "reference": reference,
        "status": total(columns),
        "sentence": closing_sentence(columns, reference),
        "releases": [_column_json(column) for column in columns],
    }
    return answers.encode(answer)


def _column_json(column: Column) -> dict[str, Any]:
    return {
        "release": column.release,
        "status": column.status,
        "reason": column.reason,
        "python": column.python,
        "departures": column.departures,
        "published": column.published,
        "notebooks": {
            stem: {precision: _run_json(run) for precision, run in pair.items()} for stem, pair in column.cells.items()
        },
    }


def _run_json(run: RunCheck) -> dict[str, Any]:
    said = {"status": run.status, "says": words(run)}
    return said | (answers.comparison_json(run) if run.comparison else {})


def _table(columns: list[Column], stems: list[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("JAX", "precision", *stems):
        table.add_column(name, overflow="fold")
    for column in columns:
        for precision in PRECISIONS:
            release = column.release if precision == PRECISIONS[0] else ""
            table.add_row(release, precision, *(_cell(column, stem, precision) for stem in stems))
    return table


def _cell(column: Column, stem: str, precision: str) -> str:
    if column.reason:
        return f"[red]{escape(column.reason.partition(':')[0])}[/]"
    run = column.cells[stem][precision]
    colour = "green" if run.status == AGREES else "red"
    return f"[{colour}]{escape(words(run))}[/]"


def _reasons(console: Console, column: Column) -> None:
    if column.reason:
        console.print(f"\n[red]JAX {column.release}[/]: {escape(column.reason)}", highlight=False)
        return
    runs = {f"{stem} {precision}": run for stem, pair in column.cells.items() for precision, run in pair.items()}
    if any(run.status != AGREES or run.explanation.causes for run in runs.values()):
        moved = ", ".join(f"{name} {version}" for name, version in column.departures.items())
        console.print(f"\n[bold]JAX {column.release}[/] (Python {column.python}; {escape(moved)})", highlight=False)
    for name, run in runs.items():
        if run.status != AGREES:
            report.show_comparison(console, name, run, everything=False)
    report.show_causes(console, runs)
