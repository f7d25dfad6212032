"""What `check` and `compare` say to a machine, as JSON."""

from typing import Any

import msgspec

from .errors import AGREES, DIFFERS
from .noise import FLOORS, ULPS
from .results import NotebookCheck, RunCheck, closing_sentence


def as_json(checks: list[NotebookCheck], texts: list[str], reference: str) -> bytes:
    """The checks for a machine: verdicts, every difference, problems, status."""
    status = max([check.status for check in checks] + [DIFFERS if texts else AGREES])
    answer: dict[str, Any] = {
        "reference": reference,
        "status": status,
        "sentence": closing_sentence(checks, texts, reference, status),
        "allowed": {"floors": FLOORS, "ulps": ULPS},
        "notebooks": [
            {
                "stem": check.stem,
                "status": check.status,
                "problems": check.problems,
                "runs": {precision: _run_json(run) for precision, run in check.runs.items()},
            }
            for check in checks
        ],
        "problems": texts,
    }
    return encode(answer)


def encode(answer: object) -> bytes:
    """An answer as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n"


def comparison_json(run: RunCheck) -> dict[str, Any]:
    """One comparison, and the causes of its differences, for a machine."""
    result = run.comparison
    assert result is not None
    fields = {name: getattr(result, name) for name in ("not_comparable", "stale", "numbers", "claims", "largest")}
    differences = [each for entry in result.entries for each in entry.differences]
    return {
        **fields,
        "verdict": "not comparable" if result.not_comparable else result.verdict,
        "agrees": result.agrees,
        "causes": [{"cause": cause.kind, "because": cause.because} for cause in run.explanation.causes],
        "stream_free": sorted(run.explanation.stream_free) if run.explanation.stream_changed else [],
        "entries": {entry.key: entry.verdict for entry in result.entries},
        "differences": [msgspec.to_builtins(each) for each in differences],
    }


def _run_json(run: RunCheck) -> dict[str, Any]:
    answer: dict[str, Any] = {"status": run.status}
    if run.incomplete:
        answer["incomplete"] = msgspec.to_builtins(run.incomplete)
    if run.cannot:
        answer["cannot"] = run.cannot
    return answer | (comparison_json(run) if run.comparison else {})
