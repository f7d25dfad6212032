"""What `check` finds of one run and of one notebook, and the exit status that each gives.

Apart from `checking`, which needs matplotlib and jupytext, so that a report can be written where neither is installed.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from .causes import Explanation, explain
from .compare import Comparison, compare
from .environment import Environment
from .errors import AGREES, CANNOT_COMPARE, DIFFERS, RUN_FAILED
from .execute import Outcome
from .noise import Floors
from .records import Record


@dataclass(frozen=True)
class RunCheck:
    """One run against its reference: a comparison with the causes of its differences, or why there is none."""

    comparison: Comparison | None = None
    explanation: Explanation = field(default_factory=Explanation)
    incomplete: Outcome | None = None
    cannot: str = ""

    @property
    def status(self) -> int:
        """The exit status this run alone would give."""
        if self.incomplete:
            return RUN_FAILED
        if self.cannot or self.comparison is None or self.comparison.not_comparable:
            return CANNOT_COMPARE
        return AGREES if self.comparison.agrees else DIFFERS


@dataclass(frozen=True)
class NotebookCheck:
    """A notebook in both precisions, and what is wrong with its text, learner's copy and figures."""

    stem: str
    runs: dict[str, RunCheck]
    problems: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        """The worst exit status of its parts."""
        return max([run.status for run in self.runs.values()] + [DIFFERS if self.problems else AGREES])


def hold(
    expected: Record,
    found: Record,
    floors: Floors | None,
    made_with: tuple[Environment | None, Environment | None],
    stream_free: Collection[str],
) -> RunCheck:
    """Hold a record against another and name the causes; `made_with` is of the expected and of the found one."""
    result = compare(expected, found, floors)
    return RunCheck(result, explain(result, *made_with, stream_free))


def closing_sentence(checks: list[NotebookCheck], texts: list[str], reference: str, status: int) -> str:
    """The one sentence that says how a check went."""
    off = ", ".join(check.stem for check in checks if check.status != AGREES) or "README.md"
    numbers = sum(run.comparison.numbers for check in checks for run in check.runs.values() if run.comparison)
    if status == AGREES:
        return (
            f"Agrees: all {numbers} numbers of {count(len(checks), 'notebook')} agree with the reference {reference}."
        )
    if status == RUN_FAILED:
        return f"A run failed, so nothing can be said of all of {off}; the reference {reference} is unchanged."
    if status == CANNOT_COMPARE:
        return f"Cannot compare {off} with the reference {reference}; see above for the next step."
    entries = sum(
        not entry.verdict.agrees
        for check in checks
        for run in check.runs.values()
        if run.comparison
        for entry in run.comparison.entries
    )
    stale = any(run.comparison and run.comparison.stale for check in checks for run in check.runs.values())
    parts = [count(entries, "entry", "entries")] if entries else []
    parts += ["what they were made from"] if stale else []
    parts += ["the files listed"] if any(check.problems for check in checks) or texts else []
    return f"Differs from the reference {reference} in {' and '.join(parts)}: {off}."


def count(number: int, one: str, many: str = "") -> str:
    """A number and the word for what is counted."""
    return f"{number} {one if number == 1 else many or one + 's'}"
