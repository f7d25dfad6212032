"""Proves that a change of the random stream is all that happened: the notebook runs here under the other setting."""

from dataclasses import dataclass
from pathlib import Path

from . import environment, noise, notebooks, pairing, records
from .checkout import Checkout
from .compare import Comparison, compare
from .errors import HarnessError
from .results import RunCheck
from .tasks import Task


@dataclass(frozen=True)
class Proof:
    """A run to be made here with the found run's stream, and the record that it is then held against."""

    name: str
    task: Task
    found: Path
    setting: str


def proofs(checkout: Checkout, results: dict[str, RunCheck], found: Path) -> list[Proof]:
    """The runs that would prove the named changes of the stream.

    Raises:
        HarnessError: no change of the stream is named, or one that no setting makes.
    """
    names = [name for name, run in results.items() if run.explanation.stream_changed]
    if not names:
        raise HarnessError(
            "--explain re-runs a notebook whose random stream changed, and here none did. Nothing was run."
        )
    files = dict.fromkeys(names, found) if found.is_file() else pairing.record_files(found, "")
    return [_proof(checkout, name, files[name]) for name in names]


@dataclass(frozen=True)
class Outcome:
    """A found record held against the run made here, and the claims that are broken in both alike."""

    comparison: Comparison
    broken: tuple[str, ...]


def verdict(checkout: Checkout, proof: Proof) -> Outcome:
    """Hold the run made here against the found record, with the reference's noise floors."""
    here, there = records.read(proof.task.folder.record), records.read(proof.found)
    reference = checkout.reference(proof.task.source.stem)
    measured = noise.read(reference.noise).precisions[proof.task.precision]
    # What breaks in both runs is a matter of the stream that they share, and no difference between them.
    broken = tuple(sorted(_broken(here) & _broken(there)))
    return Outcome(compare(_without(here, broken), _without(there, broken), measured.floors), broken)


def sentence(proof: Proof, outcome: Outcome) -> str:
    """What a proof came to."""
    how, result = f"{proof.name}: run here with {proof.setting}", outcome.comparison
    if result.agrees:
        size = f", largest {result.largest:.1f} floors" if result.largest else ""
        broken = f" Under this stream {', '.join(outcome.broken)} is broken in both runs." if outcome.broken else ""
        return f"{how}, all {result.numbers} numbers agree with the found run{size}. Only the stream changed.{broken}"
    where = result.not_comparable or result.stale or tuple(each.where for each in result.disagreements[:1])
    return f"{how}, it still differs from the found run ({where[0]}). More than the stream changed."


def _broken(record: records.Record) -> set[str]:
    return {entry.name for entry in record.entries if isinstance(entry, records.Claim) and not entry.holds}


def _without(record: records.Record, names: tuple[str, ...]) -> records.Record:
    left = tuple(entry for entry in record.entries if records.key(entry) not in names)
    return records.Record(record.header, left, record.sha256)


def _proof(checkout: Checkout, name: str, path: Path) -> Proof:
    header = records.read(path).header
    made_with = pairing.environment_of(path, header.precision)
    if made_with is None:
        raise HarnessError(f"{path}: what it was made with is not recorded beside it. Nothing was run.")
    setting = "1" if made_with.threefry_partitionable else "0"
    if setting == ("1" if _partitionable_here() else "0"):
        raise HarnessError(
            f"{path}: it has the stream setting that runs have here, so its release draws otherwise. Nothing was run. "
            "make matrix makes runs with other releases."
        )
    [source] = [notebooks.read(each) for each in checkout.sources(header.stem)]
    known = {n: v for n, v in header.parameters.items() if n in source.parameters and source.parameters[n] != v}
    folder = checkout.perturbed_run(header.stem, header.precision, "explain")
    task = Task(source, header.precision, folder, known, settings={noise.STREAM_SETTING: setting})
    return Proof(name, task, path, f"{noise.STREAM_SETTING}={setting}")


def _partitionable_here() -> bool:
    return environment.flags().get(noise.STREAM_SETTING, "1").lower() in ("1", "true")
