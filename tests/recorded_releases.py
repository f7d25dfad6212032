"""Recorded runs of several releases beside the reference of a small checkout, built by hand."""

from collections.abc import Callable, Sequence

from builders import ENTRIES, STEM, Demo, both_environments, header, make_demo

from reproduce import environment, noise, records
from reproduce.records import Entry, Series

FLOOR = 2.0**-20
CURVE = "train/curve"


def with_reference(root, entries: Sequence[Entry] = ENTRIES) -> Demo:
    """A checkout with a reference whose curve has a measured floor of `FLOOR` at every step."""
    demo = make_demo(root)
    demo.put_reference(tuple(entries))
    measured = {}
    for precision in records.PRECISIONS:
        record = records.read(demo.recorded.record(precision))
        floors = {entry.name: {"values": [FLOOR] * len(entry.values)} for entry in entries if isinstance(entry, Series)}
        measured[precision] = noise.PrecisionNoise(record.sha256, {}, floors)
    file = noise.NoiseFile(noise.SCHEMA, STEM, measured, stream_free=["pairs"])
    records.write_atomically(demo.recorded.noise, noise.encode(file))
    return demo


def put_release(demo: Demo, version: str, entries: Sequence[Entry] = ENTRIES, folder: str = "", **made_with) -> None:
    """Record a release; `made_with` are changes of its environment."""
    target = demo.checkout.recorded_runs / (folder or f"jax-{version}_cpu")
    for precision in records.PRECISIONS:
        head = header(precision=precision, source_sha256=demo.source.sha256)
        records.write_atomically(target / f"{STEM}.{precision}.jsonl", records.encode(head, list(entries)))
    versions = {**both_environments()["float32"].versions, "jax": version}
    environments = both_environments(**{"versions": versions, **made_with})
    records.write_atomically(target / "ENVIRONMENT.json", environment.encode_recorded(environments))


def moved(change: Callable[[int, float], float], name: str = CURVE, entries: Sequence[Entry] = ENTRIES) -> list[Entry]:
    """The entries with one series changed: each number becomes what `change` makes of its step and itself."""
    return [
        Series(entry.name, [change(step, value) for step, value in enumerate(entry.values)], entry.unit)  # pyright: ignore[reportArgumentType]
        if isinstance(entry, Series) and entry.name == name
        else entry
        for entry in entries
    ]
