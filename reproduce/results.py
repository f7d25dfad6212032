"""What `check` finds of one run and of one notebook, and the exit status that each gives.

Apart from `checking`, which needs matplotlib and jupytext, so that a report can be written where neither is installed.
"""

from dataclasses import dataclass, field

from .compare import Comparison
from .errors import AGREES, CANNOT_COMPARE, DIFFERS, RUN_FAILED
from .execute import Outcome


@dataclass(frozen=True)
class RunCheck:
    """One run against its reference: a comparison, or the reason why there is none."""

    comparison: Comparison | None = None
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
