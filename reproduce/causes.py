"""Names why two runs differ, from what each was made with. Pure, and needs no JAX.

A cause is named only for what it can do. Other rounding moves numbers within their noise; another random stream moves
whatever is drawn from it. What is left over stays unknown and is said to be, because a changed formula looks like that.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from .compare import Comparison, EntryResult, Verdict
from .environment import Environment


class Kind(StrEnum):
    """The causes that can be told apart."""

    SOURCE = "notebook source edited"
    PARAMETERS = "parameters changed"
    STREAM = "random stream changed"
    PRECISION = "precision or x64"
    INSTRUCTIONS = "instruction set"
    FLAGS = "fusion or flags"
    REDUCTION = "reduction order"
    GRADIENT = "gradient rewrite"
    LIBRARIES = "NumPy or matplotlib only"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Cause:
    """A cause, and what in the two runs says so."""

    kind: Kind
    because: str


@dataclass(frozen=True)
class Explanation:
    """The causes of a comparison's differences, and the entries that owe nothing to the random stream."""

    causes: tuple[Cause, ...] = ()
    stream_free: frozenset[str] = frozenset()

    @property
    def stream_changed(self) -> bool:
        """Whether numbers that are drawn cannot be compared."""
        return any(cause.kind is Kind.STREAM for cause in self.causes)

    def comparable(self, entry: EntryResult) -> bool:
        """Whether a verdict on this entry says something: whatever the stream, a claim must hold."""
        return not self.stream_changed or entry.key in self.stream_free or entry.verdict is Verdict.CLAIM_BROKEN


# These decide what numbers mean; of all other packages a release may change, but not what JAX computes.
_NUMERIC = ("jax", "jaxlib", "optax")
# Exact on every processor, so that a difference is a difference of the stream. The normal distribution is not: its last
# bits depend on how a logarithm is rounded.
_STREAM_PROBES = ("random/bits", "random/split", "random/uniform", "random/permutation", "random/randint")
_ISA_FLAG = "--xla_cpu_max_isa"


def explain(
    result: Comparison,
    expected: Environment | None,
    found: Environment | None,
    stream_free: Collection[str] = (),
) -> Explanation:
    """The causes of all that is not identical in a comparison, the most telling first; none where all is identical.

    Args:
        result: the comparison of two records.
        expected: what the expected record was made with, None where that is not known.
        found: the same of the found record.
        stream_free: entries that owe nothing to the random stream.
    """
    return Explanation(_causes(result, expected, found, stream_free), frozenset(stream_free))


def _causes(
    result: Comparison, expected: Environment | None, found: Environment | None, stream_free: Collection[str]
) -> tuple[Cause, ...]:
    differing = [entry for entry in result.entries if entry.verdict is not Verdict.IDENTICAL]
    if result.not_comparable or not differing:
        return ()
    edited = tuple(_edits(result))
    if expected is None or found is None:
        side = "either run" if expected is found else "the expected run" if expected is None else "the found run"
        return edited or (Cause(Kind.UNKNOWN, f"what {side} was made with is not recorded beside it"),)
    drawn = tuple(_stream(expected, found))
    precision = tuple(_precision(expected, found))
    left = () if edited or precision else _unexplained(differing, stream_free if drawn else None)
    others = tuple(_rounding(expected, found, stream=bool(drawn))) or tuple(_libraries(expected, found))
    named = edited + drawn + precision + others
    if left:
        return (*named, _beyond(left, others))
    return named or (Cause(Kind.UNKNOWN, "nothing that is recorded of the two runs differs"),)


def _edits(result: Comparison) -> Iterator[Cause]:
    for reason in result.stale:
        yield Cause(Kind.PARAMETERS if reason.startswith("parameter ") else Kind.SOURCE, reason)


def _stream(expected: Environment, found: Environment) -> Iterator[Cause]:
    # In 64-bit mode every draw has other bits; what a key splits into has not.
    moved = _moved(expected, found, _STREAM_PROBES if expected.x64 == found.x64 else ("random/split",))
    settings = expected.threefry_partitionable, found.threefry_partitionable
    if settings[0] != settings[1]:
        yield Cause(
            Kind.STREAM, f"jax_threefry_partitionable is {settings[0]} in the one and {settings[1]} in the other"
        )
    elif moved:
        yield Cause(Kind.STREAM, f"under the same settings {_releases(expected, found)} draw other numbers ({moved})")


def _precision(expected: Environment, found: Environment) -> Iterator[Cause]:
    for name in ("x64", "matmul_precision", "backend"):
        one, other = getattr(expected, name), getattr(found, name)
        if one != other:
            yield Cause(Kind.PRECISION, f"{name}: {one} in the one and {other} in the other")


def _rounding(expected: Environment, found: Environment, *, stream: bool) -> Iterator[Cause]:
    """What changes rounding and nothing else."""
    apart = [name for name in expected.cpu_features if name not in found.cpu_features]
    apart += [name for name in found.cpu_features if name not in expected.cpu_features]
    if apart:
        yield Cause(Kind.INSTRUCTIONS, f"only one of the runs could use {', '.join(apart)}")
    flags = tuple(" ".join(_flags(each)) or "none" for each in (expected, found))
    if flags[0] != flags[1]:
        yield Cause(Kind.FLAGS, "XLA_FLAGS: {} in the one and {} in the other".format(*flags))
    if apart or flags[0] != flags[1] or any(_precision(expected, found)):
        # Probes that move follow from that, and would name the same thing once more.
        return
    arithmetic = [name for name in expected.probes if not name.startswith(("random/", "contrastive/"))]
    moved = _moved(expected, found, arithmetic)
    if moved:
        yield Cause(Kind.REDUCTION, f"{_releases(expected, found)} round otherwise ({moved})")
    value, gradient = (_moved(expected, found, (f"contrastive/{what}",)) for what in ("value", "gradient"))
    if gradient and not value:
        yield Cause(Kind.GRADIENT, f"{_releases(expected, found)} give one small loss the same value, another gradient")
    normal = _moved(expected, found, ("random/normal",))
    if normal and not (moved or stream):
        yield Cause(Kind.REDUCTION, f"{_releases(expected, found)} round normal samples otherwise")


def _libraries(expected: Environment, found: Environment) -> Iterator[Cause]:
    names = sorted({*expected.versions, *found.versions})
    other = [name for name in names if expected.versions.get(name) != found.versions.get(name)]
    if other and not set(other) & set(_NUMERIC):
        pairs = (
            f"{name} {expected.versions.get(name, 'absent')} and {found.versions.get(name, 'absent')}" for name in other
        )
        yield Cause(Kind.LIBRARIES, "; ".join(pairs))


def _unexplained(differing: list[EntryResult], stream_free: Collection[str] | None) -> tuple[EntryResult, ...]:
    """Entries that differ by more than rounding, without those that another stream may have moved."""
    drifted = (entry for entry in differing if not entry.verdict.agrees)
    return tuple(entry for entry in drifted if stream_free is None or entry.key in stream_free)


def _beyond(left: tuple[EntryResult, ...], rounding: tuple[Cause, ...]) -> Cause:
    count = "1 entry differs" if len(left) == 1 else f"{len(left)} entries differ"
    besides = " Rounding differs too, and cannot move a number so far." if rounding else ""
    return Cause(Kind.UNKNOWN, f"{count} by more than rounding explains, the first is {left[0].key}.{besides}")


def _moved(expected: Environment, found: Environment, names: Collection[str]) -> str:
    """Names of the probes whose fingerprints are not the same; a probe that one side lacks says nothing."""
    both = [name for name in names if name in expected.probes and name in found.probes]
    moved = [name.partition("/")[2] or name for name in both if expected.probes[name] != found.probes[name]]
    return ", ".join(moved)


def _flags(environment: Environment) -> list[str]:
    """XLA's flags without the one that only names an instruction set."""
    return [flag for flag in environment.flags.get("XLA_FLAGS", "").split() if not flag.startswith(_ISA_FLAG)]


def _releases(expected: Environment, found: Environment) -> str:
    one, other = (environment.versions.get("jax", "unknown") for environment in (expected, found))
    return f"two runs with JAX {one}" if one == other else f"JAX {one} and JAX {other}"
