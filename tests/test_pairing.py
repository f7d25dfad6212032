"""Which records of two paths are compared, with which floors, and the sentence and status at the end."""

from pathlib import Path

import pytest
from builders import ENTRIES, header

from reproduce import noise, pairing, records
from reproduce.compare import Verdict
from reproduce.errors import AGREES, CANNOT_COMPARE, DIFFERS, HarnessError
from reproduce.noise import NoiseFile, PrecisionNoise
from reproduce.records import Entry, Metric

FLOOR = 2.0**-30


def put(path: Path, *entries: Entry, **changes) -> str:
    """Write a record and return its digest."""
    content = records.encode(header(**changes), list(entries))
    records.write_atomically(path, content)
    return records.parse(content, "").sha256


def put_noise(folder: Path, sha256: str, precision: str = "float64", stem: str = "01_demo") -> None:
    floors = {"a": {"value": [FLOOR]}}
    file = NoiseFile(noise.SCHEMA, stem, {precision: PrecisionNoise(sha256, {}, floors)}, [])
    records.write_atomically(folder / f"{stem}.noise.json", noise.encode(file))


def test_two_files(tmp_path):
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    put(a, *ENTRIES)
    put(b, *ENTRIES)
    results = pairing.compare_paths(a, b)
    assert list(results) == ["a.jsonl and b.jsonl"]
    assert pairing.status(results) == AGREES
    assert pairing.closing_sentence(results, a, b) == (f"Agrees: all 32 numbers of 1 record(s) in {b} agree with {a}.")


def test_two_folders(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    for stem in ("01_demo", "02_demo"):
        for precision in records.PRECISIONS:
            about = {"stem": stem, "notebook": stem, "precision": precision}
            put(a / f"{stem}.{precision}.jsonl", Metric("a", 0.5), **about)
            put(b / f"{stem}.{precision}.jsonl", Metric("a", 0.25 if stem == "02_demo" else 0.5), **about)
    results = pairing.compare_paths(a, b)
    assert {name: result.comparison.agrees for name, result in results.items()} == {
        "01_demo.float32": True,
        "01_demo.float64": True,
        "02_demo.float32": False,
        "02_demo.float64": False,
    }
    assert pairing.status(results) == DIFFERS
    assert pairing.closing_sentence(results, a, b) == f"{b} differs from {a} in: 02_demo.float32, 02_demo.float64."
    assert list(pairing.compare_paths(a, b, "01")) == ["01_demo.float32", "01_demo.float64"]


def test_a_record_that_only_one_folder_has_is_not_passed_over(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b):
        put(folder / "01_demo.float32.jsonl", Metric("a", 0.5), precision="float32")
    put(a / "01_demo.float64.jsonl", Metric("a", 0.5))
    for one, other in ((a, b), (b, a)):
        results = pairing.compare_paths(one, other)
        comparisons = {name: result.comparison for name, result in results.items()}
        assert comparisons["01_demo.float32"].agrees
        assert comparisons["01_demo.float64"].not_comparable == (f"{b} has no such record; --nb picks notebooks",)
        assert pairing.status(results) == CANNOT_COMPARE


def test_a_folder_of_runs_against_a_folder_of_records(tmp_path):
    recorded, runs = tmp_path / "recorded", tmp_path / "runs"
    put(recorded / "01_demo.float64.jsonl", Metric("a", 0.5))
    put(runs / "01_demo.float64" / "record.jsonl", Metric("a", 0.5))
    put(runs / "01_demo.float64" / "partial.jsonl", Metric("a", 0.25))
    results = pairing.compare_paths(recorded, runs)
    assert list(results) == ["01_demo.float64"] and pairing.status(results) == AGREES


def test_records_that_cannot_be_compared(tmp_path):
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    put(a, Metric("a", 0.5))
    put(b, Metric("a", 0.5), precision="float32")
    results = pairing.compare_paths(a, b)
    assert pairing.status(results) == CANNOT_COMPARE
    assert pairing.closing_sentence(results, a, b) == "Cannot compare: a.jsonl and b.jsonl."


def test_paths_that_do_not_belong_together(tmp_path):
    file, folder, other = tmp_path / "a.jsonl", tmp_path / "a", tmp_path / "b"
    put(file, Metric("a", 0.5))
    put(folder / "01_demo.float64.jsonl", Metric("a", 0.5))
    put(other / "02_demo.float64.jsonl", Metric("a", 0.5))
    for a, b, said in [
        (file, tmp_path / "absent", "absent: there is no such file"),
        (tmp_path / "absent", folder, "absent: there is no such file"),
        (file, folder, "one of each"),
        (folder, file, "one of each"),
        (folder, other, "no record in common: 01_demo.float64 against 02_demo.float64"),
    ]:
        with pytest.raises(HarnessError, match=said) as caught:
            pairing.compare_paths(a, b)
        assert caught.value.status == CANNOT_COMPARE
    with pytest.raises(HarnessError, match="none against none"):
        pairing.compare_paths(folder, folder, "03")


def test_a_damaged_record_is_named(tmp_path):
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    put(a, Metric("a", 0.5))
    b.write_bytes(a.read_bytes()[:-5])
    with pytest.raises(HarnessError, match=r"b\.jsonl"):
        pairing.compare_paths(a, b)


def test_too_many_records(tmp_path, monkeypatch):
    monkeypatch.setattr(pairing, "MAX_FILES", 1)
    put(tmp_path / "01_demo.float64.jsonl", Metric("a", 0.5))
    pairing.compare_paths(tmp_path, tmp_path)
    put(tmp_path / "02_demo.float64.jsonl", Metric("a", 0.5))
    with pytest.raises(HarnessError, match="at most 1"):
        pairing.compare_paths(tmp_path, tmp_path)


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("measured_on", ["this record", "another record", "another precision"])
def test_floors_are_those_measured_on_the_expected_record(tmp_path, side, measured_on):
    a, b = tmp_path / "a" / "a.jsonl", tmp_path / "b" / "b.jsonl"
    sha256 = {"a": put(a, Metric("a", 0.5)), "b": put(b, Metric("a", 0.5 + 5 * FLOOR))}[side]
    precision = "float32" if measured_on == "another precision" else "float64"
    put_noise(tmp_path / side, "0" * 64 if measured_on == "another record" else sha256, precision)
    (result,) = pairing.compare_paths(a, b).values()
    used = side == "a" and measured_on == "this record"
    assert result.comparison.verdict is (Verdict.WITHIN_NOISE if used else Verdict.DRIFT)
    assert result.comparison.largest == (5.0 if used else 0.0)


def test_damaged_floors_are_not_passed_over(tmp_path):
    a = tmp_path / "a.jsonl"
    put(a, Metric("a", 0.5))
    (tmp_path / "01_demo.noise.json").write_text("{")
    with pytest.raises(HarnessError, match=r"01_demo\.noise\.json"):
        pairing.compare_paths(a, a)
