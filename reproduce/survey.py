"""Gathers all that is recorded and holds it against the reference: releases by notebooks by precisions.

One damaged folder takes the table from nobody: its cells say what is wrong and where, and the rest goes on.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from . import columns, freshness, pairing, records, releases
from .checkout import Checkout, folder_name
from .environment import Environment
from .errors import AGREES, HarnessError
from .execute import FINISHED
from .noise import Floors
from .records import PRECISIONS, Record
from .results import RunCheck, hold

MOST_FOLDERS = 60
MOST_NOTEBOOKS = 60
NOT_RECORDED = "not recorded"
UNREADABLE = "cannot be read"
_NAME = re.compile(r"([a-z0-9_]{1,60})\.(float32|float64)")

# A notebook's stem and a precision.
Place = tuple[str, str]


@dataclass(frozen=True)
class Expected:
    """One record of the reference, and what belongs to it."""

    record: Record
    floors: Floors | None
    stream_free: list[str]
    environment: Environment | None


@dataclass(frozen=True)
class Cell:
    """A notebook in one precision under one release. Without a run, `reason` and `detail` say why there is none."""

    reason: str = ""
    detail: str = ""
    run: RunCheck | None = None
    record: Record | None = None

    @property
    def agrees(self) -> bool:
        """Whether it was compared and nothing is off."""
        return self.run is not None and self.run.status == AGREES


@dataclass(frozen=True)
class Release:
    """A folder of recorded runs, or a release of the matrix that has none. `problem` says what is wrong with it."""

    folder: str
    title: str
    cells: dict[Place, Cell]
    environments: dict[str, Environment] = field(default_factory=dict)
    problem: str = ""

    @property
    def recorded(self) -> bool:
        """Whether there is anything to compare."""
        return any(cell.run for cell in self.cells.values())


@dataclass(frozen=True)
class Survey:
    """The reference and everything else, oldest release first."""

    reference: str
    expected: dict[Place, Expected]
    releases: tuple[Release, ...]

    @property
    def title(self) -> str:
        """What the reference is called in a table."""
        known = next((each.environment for each in self.expected.values() if each.environment), None)
        return _title(self.reference, known.versions.get("jax", "") if known else "")

    @property
    def stems(self) -> list[str]:
        """The reference's notebooks, in the order of their numbers."""
        return sorted({stem for stem, _ in self.expected})


def gather(checkout: Checkout) -> Survey:
    """Read and compare everything under `recorded_runs/`.

    Raises:
        HarnessError: the reference is missing or damaged, or there are too many folders or notebooks.
    """
    reference = checkout.reference_name()
    expected = _expected(checkout.recorded_runs / reference)
    folders = sorted(path for path in checkout.recorded_runs.glob("*") if path.is_dir() and path.name != reference)
    if len(folders) > MOST_FOLDERS:
        raise HarnessError(
            f"{checkout.recorded_runs}: {len(folders)} folders; at most {MOST_FOLDERS} fit into a report. Move some out"
        )
    found = [_release(checkout, folder, expected) for folder in folders]
    there = {reference, *(each.folder for each in found)}
    found += [_absent(checkout, release, expected) for release in releases.MATRIX if folder_name(release) not in there]
    return Survey(reference, expected, tuple(sorted(found, key=lambda each: (_age(each.title), each.folder))))


def _expected(folder: Path) -> dict[Place, Expected]:
    found = {}
    for name, path in pairing.record_files(folder, "").items():
        if place := _place(name):
            record = records.read(path)
            floors, free = pairing.measured_beside(path, record)
            found[place] = Expected(record, floors, free, pairing.environment_of(path, place[1]))
    if not found:
        raise HarnessError(f"{folder}: the reference holds no record. Make one: make record")
    if len(found) > MOST_NOTEBOOKS * len(PRECISIONS):
        raise HarnessError(f"{folder}: {len(found)} records; at most {MOST_NOTEBOOKS} notebooks fit into a report.")
    return found


def _place(name: str) -> Place | None:
    matched = _NAME.fullmatch(name)
    return (matched[1], matched[2]) if matched else None


def _release(checkout: Checkout, folder: Path, expected: dict[Place, Expected]) -> Release:
    try:
        files = pairing.record_files(folder, "")
        environments = {p: pairing.environment_of(folder / "any", p) for p in PRECISIONS}
    except HarnessError as error:
        said = _within(checkout, error)
        return Release(folder.name, folder.name, {place: Cell(UNREADABLE) for place in expected}, problem=said)
    version = next((each.versions.get("jax", "") for each in environments.values() if each), "")
    cells = {}
    for place, reference in expected.items():
        path = files.pop(".".join(place), None)
        cells[place] = _cell(checkout, path, reference) if path else _why_absent(checkout, version, place)
    left = f"passed over, because the reference has no such record: {', '.join(files)}" if files else ""
    known = {precision: each for precision, each in environments.items() if each}
    return Release(folder.name, _title(folder.name, version), cells, known, left)


def _cell(checkout: Checkout, path: Path, reference: Expected) -> Cell:
    try:
        found = records.read(path)
        made_with = pairing.environment_of(path, reference.record.header.precision)
    except HarnessError as error:
        return Cell(UNREADABLE, _within(checkout, error))
    environments = reference.environment, made_with
    run = hold(reference.record, found, reference.floors, environments, reference.stream_free)
    return Cell(run=run, record=found)


def _absent(checkout: Checkout, release: str, expected: dict[Place, Expected]) -> Release:
    cells = {place: _why_absent(checkout, release, place) for place in expected}
    needs = " or ".join(releases.pythons(release))
    return Release(
        folder_name(release),
        f"JAX {release}",
        cells,
        problem=f"make matrix JAX={release} records it; it needs Python {needs}",
    )


def _why_absent(checkout: Checkout, version: str, place: Place) -> Cell:
    """What the matrix left of a run that came to no record."""
    if not re.fullmatch(r"[\w.]{1,40}", version):
        return Cell(NOT_RECORDED)
    status = freshness.read_status(columns.of_release(checkout, version).run(*place))
    if status is None or status.outcome.ended == FINISHED:
        return Cell(NOT_RECORDED)
    return Cell(f"failed: {status.outcome.ended}", status.outcome.detail)


def _within(checkout: Checkout, error: HarnessError) -> str:
    """An error without the place of the checkout, which is nobody's business who reads a report."""
    return str(error).replace(f"{checkout.root}/", "")


def _title(folder: str, version: str) -> str:
    if not version:
        return folder
    return f"JAX {version}" if folder == folder_name(version) else f"JAX {version} ({folder})"


def _age(title: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d{1,9}", title.partition(" (")[0])] or [10**9]
