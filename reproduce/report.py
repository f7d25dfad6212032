"""What `run`, `check` and `compare` say to a person in a terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .causes import Cause
from .compare import Difference, Verdict
from .errors import AGREES, CANNOT_COMPARE, DIFFERS, RUN_FAILED
from .execute import Outcome
from .results import NotebookCheck, RunCheck, closing_sentence, count
from .verdicts import off_by, size, told

SHOWN = 8
# A record of a stranger may hold a text without end.
LONGEST = 1000
NEXT_STEP = {
    "a cell raised": "Open the executed notebook at the last cell, mend the source, and run again.",
    "the kernel died": "Free memory or look at stderr.txt beside the executed notebook, and run again.",
    "a cell ran too long": "Run again on a quieter machine, or with a higher --cell-limit.",
    "the notebook ran too long": "Run again on a quieter machine, or with a higher --notebook-limit.",
    "interrupted": "Run again; finished notebooks are not repeated.",
    "no kernel": "Set up the environment again (make setup), and run again.",
    "the run broke off": "Read stderr.txt beside the executed notebook, and run again.",
    "no whole record": "Mend the end of the notebook, and run again.",
    "the record is of something else": "Give RunLog the stem, precision and parameters of its notebook, and run again.",
    "no environment": "Read stderr.txt beside the executed notebook, and run again.",
    "the source cannot be run": "Mend the source, and run again.",
}


def show_checks(
    console: Console, checks: list[NotebookCheck], texts: list[str], reference: str, *, everything: bool
) -> int:
    """Print the table, what is off, and one closing sentence; return the exit status."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("notebook", "float32", "float64", "claims", "verdict"):
        table.add_column(column, overflow="fold")
    for check in checks:
        cells = (_cell(run) for run in check.runs.values())
        table.add_row(escape(check.stem), *cells, _claims(check), _verdict(check.status))
    console.print(table)
    for check in checks:
        for precision, run in check.runs.items():
            _details(console, f"{check.stem} {precision}", run, everything=everything)
        _problems(console, check.problems)
    runs = {f"{check.stem} {precision}": run for check in checks for precision, run in check.runs.items()}
    show_causes(console, runs)
    _problems(console, texts)
    status = max([check.status for check in checks] + [DIFFERS if texts else AGREES])
    console.print(f"\n[bold]{escape(closing_sentence(checks, texts, reference, status))}[/]", highlight=False)
    return status


def show_comparison(console: Console, name: str, run: RunCheck, *, everything: bool) -> None:
    """Print one comparison of two recorded runs."""
    console.print(f"{escape(name)}: {_cell(run)}", highlight=False)
    _details(console, name, run, everything=everything)


def show_failure(console: Console, name: str, outcome: Outcome, folder: str) -> None:
    """Print why a run did not end well and what to do next."""
    where = f" in cell {outcome.cell}" if outcome.cell else ""
    console.print(
        f"\n[red]{escape(name)}: {escape(outcome.ended)}{where}[/]: {escape(outcome.detail)}", highlight=False
    )
    lines = outcome.code.strip().splitlines()
    for line in lines[:6]:
        console.print(f"    {escape(line)}", highlight=False)
    if len(lines) > 6:
        console.print(f"    … {len(lines) - 6} more lines", highlight=False)
    console.print(f"  What there is: {escape(folder)} (executed.ipynb, stderr.txt, partial.jsonl).", highlight=False)
    console.print(f"  {_next_step(outcome)}", highlight=False)


def _next_step(outcome: Outcome) -> str:
    # The status of a run may have been left by another version of the harness.
    return NEXT_STEP.get(outcome.ended, "Run again.")


def _cell(run: RunCheck) -> str:
    if run.incomplete:
        return f"[red]incomplete: {escape(run.incomplete.ended)}[/]"
    if run.comparison is None or run.comparison.not_comparable:
        return "[red]not comparable[/]"
    result = run.comparison
    stale = "[yellow]stale[/], " if result.stale else ""
    if result.verdict is Verdict.IDENTICAL:
        return f"{stale}[green]{result.numbers} numbers identical[/]"
    if result.verdict is Verdict.WITHIN_NOISE:
        return f"{stale}[green]{result.numbers} numbers within noise, largest {size(run)}[/]"
    return f"{stale}[red]{result.verdict}[/]"


def _claims(check: NotebookCheck) -> str:
    results = [run.comparison for run in check.runs.values() if run.comparison]
    total, holding = sum(result.claims for result in results), sum(result.holding for result in results)
    return f"[red]{holding} of {total} hold[/]" if holding < total else f"{total} hold" if total else "-"


def _verdict(status: int) -> str:
    return {
        AGREES: "[green]agrees[/]",
        DIFFERS: "[red]differs[/]",
        CANNOT_COMPARE: "[red]cannot compare[/]",
        RUN_FAILED: "[red]run failed[/]",
    }[status]


def _details(console: Console, name: str, run: RunCheck, *, everything: bool) -> None:
    name = escape(name)
    if run.cannot:
        console.print(f"\n[red]{name}: cannot compare[/]: {escape(run.cannot)}", highlight=False)
    if run.incomplete:
        what = f"{run.incomplete.ended}: {run.incomplete.detail}".removesuffix(".")
        detail = f"{what}. {_next_step(run.incomplete)}"
        console.print(f"\n[red]{name}: incomplete[/]: {escape(detail)}", highlight=False)
    if not run.comparison:
        return
    for reason in run.comparison.not_comparable:
        console.print(f"\n[red]{name}: not comparable[/]: {escape(reason)}", highlight=False)
    if run.comparison.stale:
        reasons = "; ".join(run.comparison.stale)
        console.print(
            f"\n[yellow]{name}: stale[/]: {escape(reasons)}. If meant: make record REPLACE=1", highlight=False
        )
    off = told(run)
    if not off:
        return
    console.print(
        f"\n{name}: {count(len(off), 'difference')} beyond noise, the first at {escape(off[0].where)}:",
        highlight=False,
    )
    console.print(_differences(off if everything else off[:SHOWN]))
    if len(off) > SHOWN and not everything:
        console.print(f"  … {len(off) - SHOWN} more; --all shows them", highlight=False)


def show_causes(console: Console, runs: dict[str, RunCheck]) -> None:
    """Print each cause once, with the runs it holds for, and what a change of the stream leaves to compare."""
    by_cause: dict[Cause, list[str]] = {}
    for name, run in runs.items():
        for cause in run.explanation.causes:
            by_cause.setdefault(cause, []).append(name)
    if by_cause:
        console.print()
    for cause, names in by_cause.items():
        where = "" if len(names) == len(runs) else f" ({', '.join(names)})"
        console.print(f"cause: [yellow]{cause.kind}[/]: {escape(_cut(cause.because) + where)}", highlight=False)
    drawn = [run for run in runs.values() if run.explanation.stream_changed]
    if drawn:
        console.print(f"  {_apart_from_the_stream(drawn)}", highlight=False)
    _what_to_do(console, runs)


def _what_to_do(console: Console, runs: dict[str, RunCheck]) -> None:
    """Print what to do about the first difference that is told; nothing if there is none."""
    off = [(name, each.where) for name, run in runs.items() if run.comparison for each in told(run)]
    if off:
        name, where = off[0]
        nb = name.partition("_")[0]
        console.print(
            f"next step: begin with {escape(where)}. If it was meant to change: make record NB={escape(nb)} REPLACE=1. "
            f"If JAX changed: make bisect ENTRY='{escape(f'{nb}:{where}')}' FROM=... TO=...",
            highlight=False,
            soft_wrap=True,
        )


def _apart_from_the_stream(runs: list[RunCheck]) -> str:
    results = [(run.comparison, run.explanation) for run in runs if run.comparison]
    free = [entry for result, known in results for entry in result.entries if entry.key in known.stream_free]
    agreeing = sum(entry.verdict.agrees for entry in free)
    holding, claims = sum(result.holding for result, _ in results), sum(result.claims for result, _ in results)
    still = count(len(free), "entry", "entries")
    return f"Of {still} that owe nothing to the stream, {agreeing} agree; {holding} of {claims} claims hold."


def _differences(differences: list[Difference]) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 1))
    for column, side in (
        ("entry", "left"),
        ("verdict", "left"),
        ("reference", "right"),
        ("found", "right"),
        ("off by", "right"),
    ):
        table.add_column(column, justify=side, overflow="fold")  # pyright: ignore[reportArgumentType]
    for each in differences:
        table.add_row(escape(each.where), str(each.verdict), _value(each.expected), _value(each.found), off_by(each))
    return table


def _value(value: object) -> str:
    return escape(f"{value:.9g}" if isinstance(value, float) else _cut(str(value)))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _problems(console: Console, problems: list[str]) -> None:
    for problem in problems:
        console.print(f"[red]out of step[/]: {escape(problem)}", highlight=False)
