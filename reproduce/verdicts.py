"""A comparison in a few words: what stands in a cell of a table of releases by notebooks. Pure, and needs no JAX."""

import math

from . import noise
from .compare import Difference, Verdict
from .results import RunCheck


def words(run: RunCheck) -> str:
    """A run in a few words: identical, or the largest difference, or the first that noise does not explain."""
    if run.incomplete:
        return f"failed: {run.incomplete.ended}"
    result = run.comparison
    if result is None or result.not_comparable:
        return "cannot compare"
    stale = "stale, " if result.stale else ""
    if result.verdict is Verdict.IDENTICAL:
        return f"{stale}identical"
    if result.verdict is Verdict.WITHIN_NOISE:
        return f"{stale}within noise, {size(run)}"
    if run.explanation.stream_changed and not told(run):
        return f"{stale}random stream changed"
    return f"{stale}{result.verdict} at {(told(run) or result.disagreements)[0].where}"


def size(run: RunCheck) -> str:
    """The difference that comes nearest to the limit, in floors, or in units in the last place where these allow it."""
    assert run.comparison is not None
    differences = [each for entry in run.comparison.entries for each in entry.differences]
    worst = min(differences, key=room)
    return f"{worst.floors:.1f} floors" if worst.floors and worst.floors <= noise.FLOORS else f"{worst.ulps:.1f} ulp"


def room(difference: Difference) -> float:
    """How many times the difference fits into what is allowed."""
    return noise.FLOORS / (difference.floors or math.inf) + noise.ULPS / (difference.ulps or math.inf)


def told(run: RunCheck) -> list[Difference]:
    """The differences beyond noise that another random stream does not excuse."""
    assert run.comparison is not None
    entries = [entry for entry in run.comparison.entries if run.explanation.comparable(entry)]
    return [each for entry in entries for each in entry.differences if not each.verdict.agrees]


def off_by(difference: Difference) -> str:
    """How large a difference is: in floors, or in units in the last place where these are what allows it."""
    few_ulps = difference.verdict is Verdict.WITHIN_NOISE and (difference.floors or 0) > noise.FLOORS
    if difference.floors is not None and not few_ulps:
        return f"{difference.floors:.3g} floors"
    if difference.ulps is not None:
        return f"{difference.ulps:.3g} ulp" + ("" if few_ulps else ", no floor")
    return ""
