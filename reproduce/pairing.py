"""Which records of two paths belong together, and what their comparisons say as a whole."""

from pathlib import Path

from . import environment, noise, received, records
from .compare import Comparison
from .errors import AGREES, CANNOT_COMPARE, HarnessError
from .results import RunCheck, hold

MAX_FILES = 1000


def compare_paths(a: Path, b: Path, nb: str = "") -> dict[str, RunCheck]:
    """Compare two record files, or the records of two folders by name. What one folder lacks is not comparable.

    Raises:
        HarnessError: a path is missing, one is a file and the other a folder, or they share no record.
    """
    for path in (a, b):
        if not path.exists():
            raise HarnessError(f"{path}: there is no such file or folder. Give two records or folders of records.")
    if a.is_file() != b.is_file():
        raise HarnessError(f"{a} and {b}: expected two files or two folders, found one of each.")
    if a.is_file():
        return {f"{a.name} and {b.name}": _pair(a, b)}
    ours, theirs = record_files(a, nb), record_files(b, nb)
    if not set(ours) & set(theirs):
        raise HarnessError(f"{a} and {b} have no record in common: {_names(ours)} against {_names(theirs)}.")
    results = {}
    for name in sorted({*ours, *theirs}):
        if name in ours and name in theirs:
            results[name] = _pair(ours[name], theirs[name])
        else:
            lacking = b if name in ours else a
            missing = Comparison(not_comparable=(f"{lacking} has no such record; --nb picks notebooks",))
            results[name] = RunCheck(comparison=missing)
    return results


def status(results: dict[str, RunCheck]) -> int:
    """The exit status of all comparisons together."""
    return max(result.status for result in results.values())


def closing_sentence(results: dict[str, RunCheck], a: Path, b: Path) -> str:
    """The one sentence that says how it went."""
    code = status(results)
    off = ", ".join(name for name, result in results.items() if result.status != AGREES)
    if code == AGREES:
        numbers = sum(result.comparison.numbers for result in results.values() if result.comparison)
        return f"Agrees: all {numbers} numbers of {len(results)} record(s) in {b} agree with {a}."
    return f"Cannot compare: {off}." if code == CANNOT_COMPARE else f"{b} differs from {a} in: {off}."


def record_files(folder: Path, nb: str) -> dict[str, Path]:
    """The records of a folder by name, of recorded runs or of run folders.

    Raises:
        HarnessError: there are too many, or one leads out of the folder.
    """
    found = received.listed(folder, "*.jsonl", MAX_FILES) or received.listed(folder, "*/record.jsonl", MAX_FILES)
    names = {(p.parent.name if p.name == "record.jsonl" else p.name.removesuffix(".jsonl")): p for p in found}
    return {name: path for name, path in names.items() if name.startswith(nb)}


def _names(found: dict[str, Path]) -> str:
    return ", ".join(found) or "none"


def _pair(a: Path, b: Path) -> RunCheck:
    expected, found = records.read(a), records.read(b)
    floors, stream_free = measured_beside(a, expected)
    made_with = environment_of(a, expected.header.precision), environment_of(b, found.header.precision)
    return hold(expected, found, floors, made_with, stream_free)


def measured_beside(path: Path, record: records.Record) -> tuple[noise.Floors | None, list[str]]:
    """The noise floors of a record, and its entries that owe nothing to the stream, where they lie beside it.

    Raises:
        HarnessError: they are there and cannot be read.
    """
    beside = path.parent / f"{record.header.stem}.noise.json"
    if not beside.is_symlink() and not beside.exists():
        return None, []
    file = noise.read(received.inside(path.parent, beside))
    measured = file.precisions.get(record.header.precision)
    if measured is None or measured.record_sha256 != record.sha256:
        return None, []
    return measured.floors, file.stream_free


def environment_of(path: Path, precision: str) -> environment.Environment | None:
    """What a record was made with, as a recorded run or a run folder has it beside the record; None without it.

    Raises:
        HarnessError: it is there and cannot be read.
    """
    both, one = path.parent / "ENVIRONMENT.json", path.parent / "environment.json"
    for beside in (both, one):
        if beside.is_symlink() or beside.exists():
            received.inside(path.parent, beside)
    if both.exists():
        return environment.read_recorded(path.parent)[precision]
    return environment.read(one) if one.exists() else None
