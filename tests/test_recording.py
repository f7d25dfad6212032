"""Making a reference: all files or none, nothing mixed, nothing overwritten unasked."""

import os
import shutil
from pathlib import Path

import pytest
from builders import ENTRIES, FOLDER, STEM, Demo, both_environments, changed, contents, draw_once, make_demo, record

from reproduce import environment, figures, noise, plain_log, recording, records
from reproduce.checkout import Checkout, RecordedRun, folder_name
from reproduce.errors import HarnessError
from reproduce.records import Claim, Metric

FILES = {"01_demo.float32.jsonl": b"a", "01_demo.float64.jsonl": b"b", "01_demo.noise.json": b"c", "01_demo.log": b"d"}


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch) -> None:
    """Every test looks at the same figure; that drawing it again gives the same bytes is shown elsewhere."""
    monkeypatch.setattr(figures, "to_svg", draw_once)


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture
def target(checkout) -> Path:
    return checkout.recorded_runs / FOLDER


def test_all_files_are_published(checkout, target):
    recording.publish(checkout, FILES, both_environments(), FOLDER)
    assert contents(checkout.recorded_runs) == {
        **{f"{FOLDER}/{name}": content for name, content in FILES.items()},
        f"{FOLDER}/ENVIRONMENT.json": environment.encode_recorded(both_environments()),
    }
    assert environment.read_recorded(target) == both_environments()


def test_a_second_notebook_joins_the_first(checkout, target):
    recording.publish(checkout, FILES, both_environments(), FOLDER)
    recording.publish(checkout, {"02_b.log": b"e"}, both_environments(date="2031-01-01"), FOLDER)
    assert set(contents(target)) == {*FILES, "02_b.log", "ENVIRONMENT.json"}
    assert environment.read_recorded(target)["float32"].date == "2031-01-01"


@pytest.mark.parametrize("change", [{"threads": 9}, {"versions": {"jax": "0.0.1"}}, {"flags": {"XLA_FLAGS": "a"}}])
def test_environments_are_not_mixed(checkout, target, change):
    recording.publish(checkout, FILES, both_environments(), FOLDER)
    before = contents(checkout.recorded_runs)
    with pytest.raises(HarnessError, match="holds other notebooks, recorded elsewhere"):
        recording.publish(checkout, {"02_b.log": b"e"}, both_environments(**change), FOLDER)
    assert contents(checkout.recorded_runs) == before
    # All of them together may move to another environment.
    recording.publish(checkout, dict.fromkeys(FILES, b"new"), both_environments(**change), FOLDER)
    assert contents(target)["01_demo.log"] == b"new"


@pytest.mark.parametrize("damage", ["gone", "cut", "half"])
def test_a_folder_of_unknown_origin_is_not_added_to(checkout, target, damage):
    recording.publish(checkout, FILES, both_environments(), FOLDER)
    path = target / "ENVIRONMENT.json"
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        path.write_bytes(environment.encode_recorded({"float32": both_environments()["float32"]}))
    before = contents(checkout.recorded_runs)
    with pytest.raises(HarnessError, match=r"ENVIRONMENT\.json"):
        recording.publish(checkout, {"02_b.log": b"e"}, both_environments(), FOLDER)
    assert contents(checkout.recorded_runs) == before


def refuse_from(monkeypatch, name: str, count: int, error: BaseException) -> None:
    """Let a function fail from its `count`-th call on."""
    owner, _, attribute = name.rpartition(".")
    place = {"records": records, "os": os, "shutil": shutil, "Path": Path}[owner]
    original, calls = getattr(place, attribute), []

    def fails(*arguments, **keywords):
        calls.append(arguments)
        if len(calls) >= count:
            raise error
        return original(*arguments, **keywords)

    monkeypatch.setattr(place, attribute, fails)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["disk", "Ctrl-C"])
@pytest.mark.parametrize(
    ("name", "count"),
    [("records.write_atomically", n) for n in range(1, 6)] + [("os.fsync", 3), ("shutil.copy2", 1), ("os.fdopen", 5)],
)
def test_a_publication_that_breaks_off_changes_nothing(checkout, monkeypatch, name, count, error):
    recording.publish(checkout, {**FILES, "02_stays.log": b"as it is"}, both_environments(), FOLDER)
    before = contents(checkout.recorded_runs)
    with monkeypatch.context() as patched, pytest.raises(type(error)):
        refuse_from(patched, name, count, error)
        recording.publish(checkout, dict.fromkeys(FILES, b"new"), both_environments(), FOLDER)
    assert contents(checkout.recorded_runs) == before
    assert [path.name for path in checkout.recorded_runs.iterdir()] == [FOLDER]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_rename_that_fails_is_taken_back(checkout, target, monkeypatch, failing):
    recording.publish(checkout, FILES, both_environments(), FOLDER)
    before, original, calls = contents(checkout.recorded_runs), Path.rename, []

    def rename(path, new):
        calls.append(path)
        if len(calls) == failing:
            raise OSError(5, "Input/output error")
        return original(path, new)

    with monkeypatch.context() as patched, pytest.raises(OSError):
        patched.setattr(Path, "rename", rename)
        recording.publish(checkout, dict.fromkeys(FILES, b"new"), both_environments(), FOLDER)
    assert contents(checkout.recorded_runs) == before
    assert [path.name for path in checkout.recorded_runs.iterdir()] == [target.name]


def test_a_first_publication_that_breaks_off_leaves_no_folder(checkout, target, monkeypatch):
    with monkeypatch.context() as patched, pytest.raises(OSError):
        refuse_from(patched, "records.write_atomically", 3, OSError(28, "No space left on device"))
        recording.publish(checkout, FILES, both_environments(), FOLDER)
    assert not target.exists() and list(checkout.recorded_runs.iterdir()) == []


@pytest.fixture
def no_flags(monkeypatch) -> None:
    for name in environment.flags():
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_flags")
@pytest.mark.parametrize("name", FILES)
def test_an_existing_record_is_overwritten_only_when_asked(checkout, target, name):
    recording.refuse_early(checkout, [STEM], FOLDER, replace=False)
    target.mkdir(parents=True)
    (target / name).write_bytes(b"a")
    with pytest.raises(HarnessError, match=r"already holds 01_demo\. Nothing was changed\..*make record REPLACE=1"):
        recording.refuse_early(checkout, [STEM, "02_b"], FOLDER, replace=False)
    recording.refuse_early(checkout, [STEM], FOLDER, replace=True)
    recording.refuse_early(checkout, ["02_b"], FOLDER, replace=False)


@pytest.mark.usefixtures("no_flags")
@pytest.mark.parametrize(("name", "value"), [("XLA_FLAGS", "--xla_a"), ("JAX_THREEFRY_PARTITIONABLE", "0")])
def test_a_reference_is_made_without_flags(checkout, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    for replace in (False, True):
        with pytest.raises(HarnessError, match=rf"{name}={value} is set.*unset it and record again"):
            recording.refuse_early(checkout, [STEM], FOLDER, replace=replace)


@pytest.mark.usefixtures("no_flags")
def test_settings_that_every_run_gets_may_be_set(checkout, monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    recording.refuse_early(checkout, [STEM], FOLDER, replace=False)


# From runs to files


def put_perturbed(demo: Demo, moved: float = 0.0) -> None:
    for precision in records.PRECISIONS:
        for name in noise.perturbations():
            entries = [changed(ENTRIES[0], value=0.56640625 + moved), *ENTRIES[1:]]
            path = demo.checkout.perturbed_run(STEM, precision, name).record
            records.write_atomically(path, records.encode(demo.header(precision), entries))
    put_other_stream(demo, *ENTRIES)


def put_other_stream(demo: Demo, *entries: records.Entry) -> None:
    path = demo.checkout.perturbed_run(STEM, "float32", noise.OTHER_STREAM).record
    records.write_atomically(path, records.encode(demo.header("float32"), list(entries)))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Demo:
    made = make_demo(tmp_path_factory.mktemp("demo"))
    put_perturbed(made)
    return made


@pytest.fixture
def demo(pristine, tmp_path) -> Demo:
    root = tmp_path / "checkout"
    shutil.copytree(pristine.checkout.root, root)
    return Demo(Checkout(root))


def test_the_files_of_a_reference(demo):
    put_perturbed(demo, 0.125)
    made = recording.files(demo.checkout, demo.source)
    assert set(made) == {path.name for path in demo.recorded.files}
    for precision in records.PRECISIONS:
        run = demo.checkout.run(STEM, precision).record
        assert made[f"{STEM}.{precision}.jsonl"] == run.read_bytes()
    (demo.checkout.root / "noise.json").write_bytes(made[f"{STEM}.noise.json"])
    measured = noise.read(demo.checkout.root / "noise.json")
    for precision in records.PRECISIONS:
        one = measured.precisions[precision]
        # The floors name the record they were measured on, and that is the one that is published with them.
        assert one.record_sha256 == records.parse(made[f"{STEM}.{precision}.jsonl"], "").sha256
        assert one.floors["train/loss"] == {"value": [0.125]}
        assert one.floors["train/curve"] == {"values": [0.0] * 8}
        assert noise.perturbations().items() <= one.perturbations.items()
    log = made[f"{STEM}.log"].decode()
    assert log == plain_log.render(
        records.read(demo.checkout.run(STEM, "float32").record), environment.describe(both_environments()["float32"])
    )


def test_the_other_precision_is_a_perturbation_too(demo):
    # The two plain runs differ by 0.25: all of it is float32's, and float64 rounds 2^29 times finer.
    demo.put_run("float32", (changed(ENTRIES[0], value=0.81640625), *ENTRIES[1:]))
    made = recording.files(demo.checkout, demo.source)
    (demo.checkout.root / "noise.json").write_bytes(made[f"{STEM}.noise.json"])
    precisions = noise.read(demo.checkout.root / "noise.json").precisions
    assert precisions["float32"].floors["train/loss"]["value"][0] == 0.25
    # The perturbed runs of float64 did not move.
    assert precisions["float64"].floors["train/loss"]["value"][0] == pytest.approx(0.25 * 2.0**-29, rel=0.01)


@pytest.mark.parametrize("precision", records.PRECISIONS)
def test_a_reference_must_hold(demo, precision):
    broken = [changed(e, holds=False) if isinstance(e, Claim) and e.name == "learns" else e for e in ENTRIES]
    demo.put_run(precision, tuple(broken))
    with pytest.raises(HarnessError, match="learns"):
        recording.files(demo.checkout, demo.source)


def test_a_reference_must_not_depend_on_rounding(demo):
    path = demo.checkout.perturbed_run(STEM, "float64", "fast-math").record
    path.write_bytes(records.encode(demo.header("float64"), [changed(ENTRIES[0], value="NaN"), *ENTRIES[1:]]))
    with pytest.raises(HarnessError, match="train/loss: not a finite number in the reference or under fast-math"):
        recording.files(demo.checkout, demo.source)


def test_a_perturbed_run_that_is_missing_is_named(demo):
    demo.checkout.perturbed_run(STEM, "float32", "no-fusion").record.unlink()
    with pytest.raises(records.RecordError, match="no-fusion"):
        recording.files(demo.checkout, demo.source)


def test_what_owes_nothing_to_the_random_stream(demo):
    # The stream may move numbers, break a claim and leave entries out: that shows what depends on it.
    claim = next(entry for entry in ENTRIES if isinstance(entry, Claim))
    kept = [entry for entry in ENTRIES[1:-1] if entry is not claim]
    put_other_stream(demo, changed(ENTRIES[0], value=0.75), changed(claim, holds=False), *kept)
    path = demo.checkout.root / "noise.json"
    path.write_bytes(recording.files(demo.checkout, demo.source)[f"{STEM}.noise.json"])
    measured = noise.read(path)
    assert measured.stream_free == [records.key(entry) for entry in kept]
    assert measured.precisions["float32"].floors["train/loss"] == {"value": [0.0]}


def test_one_environment_for_all_notebooks(demo):
    found = recording.environments(demo.checkout, [STEM])
    assert found == both_environments()
    for precision in records.PRECISIONS:
        folder = demo.checkout.run("02_b", precision)
        other = both_environments(date="2031-01-01")[precision]
        records.write_atomically(folder.environment, environment.encode(other))
    assert recording.environments(demo.checkout, [STEM, "02_b"]) == both_environments()
    folder = demo.checkout.run("02_b", "float64")
    folder.environment.write_bytes(environment.encode(both_environments(threads=9)["float64"]))
    with pytest.raises(HarnessError, match=r"different environments\. .*make reproduce FORCE=1"):
        recording.environments(demo.checkout, [STEM, "02_b"])


def test_folders_are_called_by_release_and_backend():
    assert folder_name("0.9.2", "cpu") == "jax-0.9.2_cpu"
    run = RecordedRun(Path("a"), STEM)
    assert {path.name for path in run.files} == set(FILES) and run.record("float32").parent == Path("a")


def test_figures_are_drawn_where_they_changed(demo, tmp_path):
    kept = records.read(demo.recorded.record("float32"))
    folder = tmp_path / "drawn"
    path = folder / "demo-01.svg"
    assert recording.draw_figures(kept, folder, write=False) == [path] and not folder.exists()
    assert recording.draw_figures(kept, folder) == [path]
    assert path.read_bytes() == figures.to_svg(kept.figures["demo-01"])
    assert recording.draw_figures(kept, folder) == []
    path.write_bytes(b"changed")
    assert recording.draw_figures(kept, folder, write=False) == [path] and path.read_bytes() == b"changed"
    assert recording.draw_figures(kept, folder) == [path] and path.read_bytes() != b"changed"


def test_a_record_without_figures_draws_none(tmp_path):
    assert recording.draw_figures(record(Metric("a", 0.5)), tmp_path) == [] and list(tmp_path.iterdir()) == []
