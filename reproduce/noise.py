"""Noise floors: how far each number moves when rounding changes and the mathematics does not.

A notebook is run again under each perturbation; the largest move of a number is its floor. Its run in the other
precision is one more perturbation: the same mathematics, rounded elsewhere. (Flags of the compiler can all miss what
another JAX release rounds differently, a difference of two nearly equal cosines, say.) A difference is allowed up to
`FLOORS` floors plus `ULPS` units in the last place. A floor measured on few perturbations can be small by luck (a
curve of deviations crosses zero), so a number of a list borrows the largest floor of its neighbours.

Once more it is run with JAX's other random stream. That moves no floor; it shows which entries owe nothing to the
stream, and so can be compared with a run that had another.
"""

import hashlib
import math
import platform
from functools import cached_property
from pathlib import Path

import msgspec

from . import nearby, received
from .errors import HarnessError
from .figure_data import Number
from .leaves import label, leaves
from .records import MAX_BYTES, Record, key

FLOORS = 10
ULPS = 4
SCHEMA = 2

# Each changes how XLA's CPU backend rounds: which operations share a loop, which are reordered or contracted, and
# how wide the vectors are that a sum is split into.
PERTURBATIONS = {
    "no-fusion": "--xla_disable_hlo_passes=fusion",
    "unoptimised": "--xla_backend_optimization_level=0",
    "fast-math": "--xla_cpu_enable_fast_math=true",
    "sse4": "--xla_cpu_max_isa=SSE4_2",
}

# How much finer float64 rounds than float32: 52 bits after the point against 23.
FINER = 2.0**-29
OTHER_PRECISION = "other-precision"

# JAX has two random streams, and this says which; the default changed with JAX 0.5.0.
STREAM_SETTING = "JAX_THREEFRY_PARTITIONABLE"
OTHER_STREAM = "other-stream"

Floors = dict[str, dict[str, list[float]]]


class PrecisionNoise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Floors of one record, which it names by the digest of its last line."""

    record_sha256: str
    perturbations: dict[str, str]
    floors: Floors


class NoiseFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Floors of a notebook in both precisions, and the entries that stayed the same with the other random stream.

    It carries a digest of itself, because a floor raised by hand would excuse anything.
    """

    schema: int
    stem: str
    precisions: dict[str, PrecisionNoise]
    stream_free: list[str]
    sha256: str = ""


class _Schema(msgspec.Struct, frozen=True):
    schema: int


def perturbations() -> dict[str, str]:
    """The perturbations this processor can show; the narrower instruction set exists on x86 alone."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return {name: flag for name, flag in PERTURBATIONS.items() if x86 or name != "sse4"}


def measure(reference: Record, perturbed: dict[str, Record]) -> Floors:
    """Largest move of every number of `reference` over the perturbed runs.

    Raises:
        HarnessError: a perturbed run has other entries, another exact value, a broken claim or a number that is not
            finite: then the notebook does not hold under a change of rounding, and must be mended first.
    """
    floors: Floors = {}
    for entry in reference.entries:
        parts = leaves(entry)
        floors[key(entry)] = {path: [0.0] * len(values) for path, values in parts.numbers.items()}
    for name, record in perturbed.items():
        if [key(entry) for entry in record.entries] != list(floors):
            raise HarnessError(f"under {name} the notebook logs other entries. Entries may not depend on rounding.")
        # What float32 is off by says what float64 is off by, scaled by how much finer it rounds.
        coarser = reference.header.precision == "float64" and record.header.precision == "float32"
        for entry, other in zip(reference.entries, record.entries, strict=True):
            _widen(floors[key(entry)], entry, other, name, FINER if coarser else 1.0)
    return {entry: paths for entry, paths in floors.items() if paths}


def _widen(floors: dict[str, list[float]], entry, other, perturbation: str, scale: float) -> None:
    here, there = leaves(entry), leaves(other)
    if here.exact != there.exact:
        raise HarnessError(f"{key(entry)}: an exact value or claim changes under {perturbation}; mend the notebook.")
    counts = [{path: len(values) for path, values in parts.numbers.items()} for parts in (here, there)]
    if counts[0] != counts[1]:
        raise HarnessError(f"{key(entry)}: holds another count of numbers under {perturbation}; mend the notebook.")
    for path, values in here.numbers.items():
        for index, (value, moved) in enumerate(zip(values, there.numbers[path], strict=True)):
            where = label(key(entry), path, index)
            if isinstance(value, str) or isinstance(moved, str):
                raise HarnessError(f"{where}: not a finite number in the reference or under {perturbation}.")
            if isinstance(value, int) != isinstance(moved, int) or (isinstance(value, int) and value != moved):
                raise HarnessError(f"{where}: {value} becomes {moved} under {perturbation}; integers may not move.")
            floors[path][index] = max(floors[path][index], _rounded_up(scale * abs(moved - value)))


def stream_free(reference: Record, other_stream: Record) -> list[str]:
    """The entries of `reference` that are the same, to the bit, in a run that differs in its random stream only."""
    there = {key(entry): entry for entry in other_stream.entries}
    return [key(entry) for entry in reference.entries if there.get(key(entry)) == entry]


def _rounded_up(move: float) -> float:
    """Three significant digits, never less than the move: a floor is an estimate, and reads better short."""
    if move == 0:
        return 0.0
    digits = 2 - math.floor(math.log10(move))
    rounded = round(move, digits)
    return rounded if rounded >= move else round(rounded + 10.0**-digits, digits)


class Allowance:
    """What noise allows each number of one list: floors and scale are shared with the numbers near by.

    Args:
        values: the expected numbers.
        floors: the measured floors; without them, or with those of a list of another length, every floor is 0.
        precision: "float32" or "float64".
    """

    def __init__(self, values: list[Number], floors: list[float] | None, precision: str):
        self._values, self._precision = values, precision
        self._floors = floors if floors and len(floors) == len(values) else [0.0] * len(values)

    @cached_property
    def floors(self) -> list[float]:
        """The floor of each number."""
        return nearby.largest(self._floors)

    @cached_property
    def ulps(self) -> list[float]:
        """The unit in the last place of each number, at the largest magnitude near by."""
        sizes = [0.0 if isinstance(value, str) else float(abs(value)) for value in self._values]
        return [unit_in_last_place(size, self._precision) for size in nearby.largest(sizes)]


def unit_in_last_place(size: float, precision: str) -> float:
    """Spacing of floating-point numbers at a magnitude."""
    if precision == "float64":
        return math.ulp(size)
    # float32 has 24 significant bits and no exponent below -125 in frexp's convention; frexp calls that of zero 0.
    exponent = math.frexp(size)[1] if size else -125
    return math.ldexp(1.0, max(exponent, -125) - 24)


def allowed(floor: float, ulp: float) -> float:
    """How far a number with this floor and this unit in the last place may move and still be explained by noise."""
    return FLOORS * floor + ULPS * ulp


def encode(noise: NoiseFile) -> bytes:
    """A noise file, indented so that a change of it can be read."""
    signed = msgspec.structs.replace(noise, sha256=_digest(noise))
    return msgspec.json.format(msgspec.json.encode(signed), indent=1) + b"\n"


def read(path: Path) -> NoiseFile:
    """Read a noise file.

    Raises:
        HarnessError: it is missing, too large, damaged, or of another schema; the message names file and line.
    """
    said = {"what": "not readable noise floors", "then": "Record the notebook again."}
    schema = received.decode(path, _Schema, MAX_BYTES, **said).schema
    if schema != SCHEMA:
        raise HarnessError(f"{path}: noise schema {schema}, expected {SCHEMA}. Record the notebook again.")
    noise = received.decode(path, NoiseFile, MAX_BYTES, **said)
    if noise.sha256 != _digest(noise):
        raise HarnessError(f"{path}: edited after recording: its digest does not fit its floors. Restore the file.")
    return noise


def _digest(noise: NoiseFile) -> str:
    said = [noise.precisions, noise.stream_free]
    return hashlib.sha256(msgspec.json.encode(said, order="deterministic")).hexdigest()
