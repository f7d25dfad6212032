"""Making a reference: measure the noise floors and publish all files of a recorded run together, or none."""

import shutil
import tempfile
from pathlib import Path

from . import environment, figures, noise, notebooks, plain_log, records
from .checkout import Checkout, RecordedRun
from .errors import HarnessError
from .tasks import steering


def refuse_early(checkout: Checkout, stems: list[str], folder: str, *, replace: bool) -> None:
    """Refuse what would fail after minutes of running.

    Raises:
        HarnessError: flags are set that would be recorded as the normal state, or a record would be overwritten.
    """
    if settings := steering():
        found = ", ".join(f"{name}={value}" for name, value in settings.items())
        raise HarnessError(f"{found} is set. A record is made without flags: unset it and record again.")
    there = [
        stem for stem in stems if any(p.exists() for p in RecordedRun(checkout.recorded_runs / folder, stem).files)
    ]
    if there and not replace:
        raise HarnessError(
            f"recorded_runs/{folder} already holds {', '.join(there)}. Nothing was changed. To overwrite it: "
            "make record REPLACE=1, and say in CHANGELOG.md which numbers changed and why."
        )


def files(checkout: Checkout, source: notebooks.Source) -> dict[str, bytes]:
    """The files of a notebook's recorded run, from its plain and perturbed runs in `build/`.

    Raises:
        HarnessError: a claim is broken, or an exact value depends on rounding.
    """
    precisions = {}
    plain = {precision: records.read(checkout.run(source.stem, precision).record) for precision in records.PRECISIONS}
    for precision, other in zip(records.PRECISIONS, reversed(records.PRECISIONS), strict=True):
        record = plain[precision]
        broken = [e.name for e in record.entries if isinstance(e, records.Claim) and not e.holds]
        if broken:
            raise HarnessError(f"{source.stem} {precision}: claims broken: {', '.join(broken)}. A reference must hold.")
        perturbed = {
            name: records.read(checkout.perturbed_run(source.stem, precision, name).record)
            for name in noise.perturbations()
        }
        floors = noise.measure(record, {**perturbed, noise.OTHER_PRECISION: plain[other]})
        flags = {**noise.perturbations(), noise.OTHER_PRECISION: other}
        precisions[precision] = noise.PrecisionNoise(record.sha256, flags, floors)
    other_stream = records.read(checkout.perturbed_run(source.stem, "float32", noise.OTHER_STREAM).record)
    free = noise.stream_free(plain["float32"], other_stream)
    measured = noise.encode(noise.NoiseFile(noise.SCHEMA, source.stem, precisions, free))
    return {**records_and_log(checkout, source.stem), RecordedRun(Path(), source.stem).noise.name: measured}


def records_and_log(checkout: Checkout, stem: str) -> dict[str, bytes]:
    """The records of a notebook's runs, and the float32 one as plain text."""
    names, run = RecordedRun(Path(), stem), checkout.run(stem, "float32")
    about = environment.describe(environment.read(run.environment))
    return {
        **{names.record(p).name: checkout.run(stem, p).record.read_bytes() for p in records.PRECISIONS},
        names.log.name: plain_log.render(records.read(run.record), about).encode(),
    }


def environments(checkout: Checkout, stems: list[str]) -> dict[str, environment.Environment]:
    """The environment in which all these notebooks ran, one for each precision.

    Raises:
        HarnessError: they ran in different ones.
    """
    found = {}
    for precision in records.PRECISIONS:
        each = [environment.read(checkout.run(stem, precision).environment) for stem in stems]
        if any(not environment.same(each[0], other) for other in each[1:]):
            raise HarnessError("the runs were made in different environments. Run them again: make reproduce FORCE=1.")
        found[precision] = each[0]
    return found


def publish(checkout: Checkout, made: dict[str, bytes], found: dict[str, environment.Environment], folder: str) -> None:
    """Put files and environment into `recorded_runs/<folder>`: all of them, or on any error none.

    Raises:
        HarnessError: notebooks that stay in the folder were recorded in another environment.
        OSError: the disk refuses; the folder is as before.
    """
    target = checkout.recorded_runs / folder
    staying = {p.name for p in target.glob("[!.]*") if p.name not in made and p.name != "ENVIRONMENT.json"}
    if staying:
        before = environment.read_recorded(target)
        if any(not environment.same(before[precision], found[precision]) for precision in found):
            raise HarnessError(
                f"recorded_runs/{folder} holds other notebooks, recorded elsewhere (see its ENVIRONMENT.json). "
                "Nothing was changed. Record all of them together: make record REPLACE=1."
            )
    checkout.recorded_runs.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=checkout.recorded_runs, prefix=".new-") as scratch:
        new = Path(scratch) / folder
        new.mkdir()
        for name in staying:
            shutil.copy2(target / name, new / name)
        for name, content in made.items():
            records.write_atomically(new / name, content)
        records.write_atomically(new / "ENVIRONMENT.json", environment.encode_recorded(found))
        _swap(new, target, Path(scratch) / "old")


def _swap(new: Path, target: Path, old: Path) -> None:
    try:
        if target.exists():
            target.rename(old)
        new.rename(target)
    except BaseException:
        # An interruption, too, must not leave the old record in the scratch folder, which is about to go.
        if old.exists() and not target.exists():
            old.rename(target)
        raise


def draw_figures(record: records.Record, folder: Path, *, write: bool = True) -> list[Path]:
    """Draw a record's figures into a folder; return the files that change, or without `write` that would."""
    changed = []
    for name, data in record.figures.items():
        path, drawn = folder / f"{name}.svg", figures.to_svg(data)
        if not path.exists() or path.read_bytes() != drawn:
            changed.append(path)
            if write:
                records.write_atomically(path, drawn)
    return changed
