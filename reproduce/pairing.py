"""Which records of two paths belong together, and what their comparisons say as a whole."""

from pathlib import Path

from . import noise, records
from .compare import Comparison, compare
from .errors import AGREES, CANNOT_COMPARE, DIFFERS, HarnessError

MAX_FILES = 1000


def compare_paths(a: Path, b: Path, nb: str = "") -> dict[str, Comparison]:
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
    ours, theirs = _records(a, nb), _records(b, nb)
    if not set(ours) & set(theirs):
        raise HarnessError(f"{a} and {b} have no record in common: {_names(ours)} against {_names(theirs)}.")
    results = {}
    for name in sorted({*ours, *theirs}):
        if name in ours and name in theirs:
            results[name] = _pair(ours[name], theirs[name])
        else:
            lacking = b if name in ours else a
            results[name] = Comparison(not_comparable=(f"{lacking} has no such record; --nb picks notebooks",))
    return results


def status(results: dict[str, Comparison]) -> int:
    """The exit status of all comparisons together."""
    if any(result.not_comparable for result in results.values()):
        return CANNOT_COMPARE
    return AGREES if all(result.agrees for result in results.values()) else DIFFERS


def closing_sentence(results: dict[str, Comparison], a: Path, b: Path) -> str:
    """The one sentence that says how it went."""
    code = status(results)
    off = ", ".join(name for name, result in results.items() if not result.agrees)
    if code == AGREES:
        numbers = sum(result.numbers for result in results.values())
        return f"Agrees: all {numbers} numbers of {len(results)} record(s) in {b} agree with {a}."
    return f"Cannot compare: {off}." if code == CANNOT_COMPARE else f"{b} differs from {a} in: {off}."


def _records(folder: Path, nb: str) -> dict[str, Path]:
    found = sorted(folder.glob("*.jsonl")) or sorted(folder.glob("*/record.jsonl"))
    if len(found) > MAX_FILES:
        raise HarnessError(f"{folder}: {len(found)} records, at most {MAX_FILES} are compared.")
    names = {(p.parent.name if p.name == "record.jsonl" else p.name.removesuffix(".jsonl")): p for p in found}
    return {name: path for name, path in names.items() if name.startswith(nb)}


def _names(found: dict[str, Path]) -> str:
    return ", ".join(found) or "none"


def _pair(a: Path, b: Path) -> Comparison:
    expected, found = records.read(a), records.read(b)
    return compare(expected, found, _floors(a, expected))


def _floors(path: Path, record: records.Record) -> noise.Floors | None:
    beside = path.parent / f"{record.header.stem}.noise.json"
    if not beside.exists():
        return None
    measured = noise.read(beside).precisions.get(record.header.precision)
    return measured.floors if measured and measured.record_sha256 == record.sha256 else None
