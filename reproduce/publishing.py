"""Puts the finished notebooks of a matrix column into `recorded_runs/`, next to the reference and never over it.

Noise floors are not among the files: floors belong to the reference.
"""

from pathlib import Path

from . import environment, recording
from .checkout import Checkout, folder_name
from .columns import Column, finished, of_release
from .errors import HarnessError


def publish(checkout: Checkout, column: Column, *, overwrite: bool) -> str:
    """Publish all that a column finished, or nothing; return what came of it, for a person."""
    folder = folder_name(column.release)
    if folder == checkout.reference_name():
        return "not written: it is the reference, which make record makes"
    stems = [stem for stem in column.cells if finished(column.cells, stem)]
    if not stems:
        return "not written: no notebook was run to its end and compared"
    runs = of_release(checkout, column.release)
    made = {name: content for stem in stems for name, content in recording.records_and_log(runs, stem).items()}
    target = checkout.recorded_runs / folder
    try:
        found = recording.environments(runs, stems)
        changes = _changes(target, made, found)
        if changes and not overwrite:
            what = f"{changes[0]} and {len(changes) - 1} more" if changes[1:] else changes[0]
            return f"left as it is, because {what} would change; REPLACE=1 overwrites it, and CHANGELOG.md says why"
        if not changes and all((target / name).exists() for name in made):
            return "unchanged"
        recording.publish(checkout, made, found, folder)
    except HarnessError as error:
        return f"not written: {error}"
    return "written"


def _changes(target: Path, made: dict[str, bytes], found: dict[str, environment.Environment]) -> list[str]:
    """The files that are there and would be others. A log follows its record, and apart from that names the day."""
    there = [name for name in made if name.endswith(".jsonl") and (target / name).exists()]
    changed = [name for name in there if (target / name).read_bytes() != made[name]]
    if there:
        before = environment.read_recorded(target)
        if any(not environment.same(before[precision], found[precision]) for precision in found):
            changed.append("ENVIRONMENT.json")
    return changed
