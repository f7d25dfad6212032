"""Two records and the noise floors to the differences between them. Pure, and needs no JAX."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from . import noise
from .figure_data import Number
from .leaves import label, leaves
from .order import out_of_place
from .records import Claim, Entry, Record, key


class Verdict(StrEnum):
    """What is said of an entry, worst last."""

    IDENTICAL = "identical"
    WITHIN_NOISE = "within noise"
    REORDERED = "reordered"
    EXTRA = "extra"
    MISSING = "missing"
    DRIFT = "drift"
    NOT_A_NUMBER = "not a number"
    CLAIM_BROKEN = "claim broken"

    @property
    def agrees(self) -> bool:
        """Whether an entry with this verdict needs no attention."""
        return self in (Verdict.IDENTICAL, Verdict.WITHIN_NOISE)


_ORDER = list(Verdict)


@dataclass(frozen=True)
class Difference:
    """One number or value that is not identical.

    `floors` is the difference in noise floors, None where no floor was measured or the value is compared exactly;
    `ulps` is the difference in units in the last place.
    """

    where: str
    verdict: Verdict
    expected: Any
    found: Any
    floors: float | None = None
    ulps: float | None = None


@dataclass(frozen=True)
class EntryResult:
    """The verdict on one entry and what it rests on."""

    key: str
    verdict: Verdict
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """All that two records have to say to each other.

    Attributes:
        not_comparable: reasons why the entries were not compared at all; empty where they were.
        stale: ways in which the found record was made from something else (source, parameters).
        entries: one result an entry, in the order of the expected record, extras last.
        numbers: how many numbers the expected record holds.
        claims: how many claims the expected record holds.
        holding: how many of these hold in the found record.
        largest: largest difference in floors among the numbers that have one.
    """

    not_comparable: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    entries: tuple[EntryResult, ...] = ()
    numbers: int = 0
    claims: int = 0
    holding: int = 0
    largest: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of any entry."""
        return max((entry.verdict for entry in self.entries), key=_ORDER.index, default=Verdict.IDENTICAL)

    @property
    def disagreements(self) -> list[Difference]:
        """Every difference that noise does not explain, in the order of the record."""
        return [each for entry in self.entries for each in entry.differences if not each.verdict.agrees]

    @property
    def agrees(self) -> bool:
        """Same source, same parameters, every number within noise, every claim holding."""
        return not self.not_comparable and not self.stale and self.verdict.agrees


def compare(expected: Record, found: Record, floors: noise.Floors | None = None) -> Comparison:
    """Hold `found` against `expected`, allowing what the noise floors allow."""
    reasons = _not_comparable(expected, found)
    if reasons:
        return Comparison(not_comparable=reasons)
    here = {key(entry): entry for entry in expected.entries}
    there = {key(entry): entry for entry in found.entries}
    precision = expected.header.precision
    moved = out_of_place(list(here), list(there))
    results = []
    for name, entry in here.items():
        if name not in there:
            results.append(_alone(name, Verdict.MISSING, entry))
        else:
            differences = tuple(_differences(entry, there[name], (floors or {}).get(name, {}), precision))
            if name in moved:
                expected_place, found_place = (f"place {place + 1}" for place in moved[name])
                differences += (Difference(name, Verdict.REORDERED, expected_place, found_place),)
            worst = max((each.verdict for each in differences), key=_ORDER.index, default=Verdict.IDENTICAL)
            results.append(EntryResult(name, worst, differences))
    results += [_alone(name, Verdict.EXTRA, entry) for name, entry in there.items() if name not in here]
    measured = [d.floors for r in results for d in r.differences if d.floors is not None]
    return Comparison(
        stale=_stale(expected, found),
        entries=tuple(results),
        numbers=sum(len(group) for entry in here.values() for group in leaves(entry).numbers.values()),
        claims=sum(isinstance(entry, Claim) for entry in here.values()),
        holding=sum(isinstance(entry, Claim) and _holds(there.get(name)) for name, entry in here.items()),
        largest=max(measured, default=0.0),
    )


def _not_comparable(expected: Record, found: Record) -> tuple[str, ...]:
    pairs = ((name, getattr(expected.header, name), getattr(found.header, name)) for name in ("notebook", "precision"))
    return tuple(f"{name}: expected {a}, found {b}" for name, a, b in pairs if a != b)


def _stale(expected: Record, found: Record) -> tuple[str, ...]:
    reasons = []
    if expected.header.source_sha256 != found.header.source_sha256:
        reasons.append("the notebook's code was edited")
    a, b = expected.header.parameters, found.header.parameters
    reasons += [
        f"parameter {name}: expected {a.get(name, 'none')}, found {b.get(name, 'none')}"
        for name in {**a, **b}
        if a.get(name) != b.get(name) or type(a.get(name)) is not type(b.get(name))
    ]
    return tuple(reasons)


def _alone(name: str, verdict: Verdict, entry: Entry) -> EntryResult:
    kind = type(entry).__name__.lower()
    sides = (kind, "nothing") if verdict is Verdict.MISSING else ("nothing", kind)
    return EntryResult(name, verdict, (Difference(name, verdict, *sides),))


def _differences(entry: Entry, other: Entry, floors: dict[str, list[float]], precision: str) -> Iterator[Difference]:
    name = key(entry)
    if type(entry) is not type(other):
        yield Difference(name, Verdict.DRIFT, type(entry).__name__.lower(), type(other).__name__.lower())
        return
    here, there = leaves(entry), leaves(other)
    for path in {**here.exact, **there.exact}:
        a, b = here.exact.get(path), there.exact.get(path)
        if path == "holds" and b is False:
            yield Difference(name, Verdict.CLAIM_BROKEN, _claim(entry), _claim(other))
        elif a != b:
            yield Difference(f"{name}:{path.removeprefix('data.')}", Verdict.DRIFT, a, b)
    for path in {**here.numbers, **there.numbers}:
        a, b = here.numbers.get(path, []), there.numbers.get(path, [])
        if len(a) != len(b):
            yield Difference(f"{name}:{path}.length", Verdict.DRIFT, len(a), len(b))
        noise_at = noise.Allowance(a, floors.get(path), precision)
        for index, (one, two) in enumerate(zip(a, b, strict=False)):
            yield from _number(label(name, path, index), one, two, index, noise_at)


def _holds(entry: Entry | None) -> bool:
    return isinstance(entry, Claim) and entry.holds


def _claim(entry: Entry) -> str:
    assert isinstance(entry, Claim)
    return f"{'holds' if entry.holds else 'broken'} (margin {entry.margin}; {entry.compared})"


def _number(where: str, a: Number, b: Number, index: int, noise_at: noise.Allowance) -> Iterator[Difference]:
    if isinstance(a, str) or isinstance(b, str):
        yield Difference(where, Verdict.NOT_A_NUMBER, a, b)
    elif isinstance(a, int) or isinstance(b, int):
        if a != b or type(a) is not type(b):
            yield Difference(where, Verdict.DRIFT, a, b)
    elif a != b:
        floor, ulp, move = noise_at.floors[index], noise_at.ulps[index], abs(a - b)
        verdict = Verdict.WITHIN_NOISE if move <= noise.allowed(floor, ulp) else Verdict.DRIFT
        yield Difference(where, verdict, a, b, move / floor if floor else None, move / ulp)
