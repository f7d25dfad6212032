"""One column of a matrix: how its runs are held against the reference, and which of them are published."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from builders import ENTRIES, FOLDER, STEM, Demo, both_environments, changed, contents, make_demo

from reproduce import checking, columns, environment, noise, publishing, records
from reproduce.checkout import Checkout
from reproduce.columns import Column
from reproduce.compare import Verdict
from reproduce.errors import AGREES, CANNOT_COMPARE, DIFFERS, RUN_FAILED
from reproduce.execute import Outcome

RELEASE = "0.6.2"
TARGET = f"jax-{RELEASE}_cpu"
OTHER_LOSS = (changed(ENTRIES[0], value=0.5), *ENTRIES[1:])


@pytest.fixture(autouse=True)
def no_settings(monkeypatch) -> None:
    for name in environment.flags():
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Demo:
    return make_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture
def demo(pristine, tmp_path) -> Demo:
    """Runs that agree, and lie where those of one release do."""
    root = tmp_path / "a checkout"
    shutil.copytree(pristine.checkout.root, root)
    (root / "build").rename(root / "runs of the release")
    (root / "build" / "matrix").mkdir(parents=True)
    (root / "runs of the release").rename(root / "build" / "matrix" / RELEASE)
    return Demo(columns.of_release(Checkout(root), RELEASE))


def check(demo: Demo, precision: str = "float64"):
    before = contents(demo.checkout.root)
    found = checking.check_run(demo.checkout, demo.source, precision)
    assert contents(demo.checkout.root) == before
    return found


def column(demo: Demo) -> Column:
    cells = {precision: checking.check_run(demo.checkout, demo.source, precision) for precision in records.PRECISIONS}
    return Column(RELEASE, cells={STEM: cells})


def publish(demo: Demo, *, overwrite: bool = False) -> str:
    """Publish, and see that nothing but the release's own folder was touched."""
    outside = {name: data for name, data in contents(demo.checkout.root).items() if TARGET not in name}
    said = publishing.publish(Checkout(demo.checkout.root), column(demo), overwrite=overwrite)
    assert {n: data for n, data in contents(demo.checkout.root).items() if TARGET not in n} == outside
    return said


def published(demo: Demo) -> dict[str, bytes]:
    folder = demo.checkout.recorded_runs / TARGET
    return contents(folder) if folder.exists() else {}


def test_a_run_that_agrees(demo) -> None:
    for precision in records.PRECISIONS:
        found = check(demo, precision)
        assert found.status == AGREES and found.comparison and found.comparison.verdict is Verdict.IDENTICAL


def test_a_run_that_drifts_is_compared_within_the_floors_of_the_reference(demo) -> None:
    demo.put_run("float64", OTHER_LOSS)
    found = check(demo)
    assert (found.status, found.comparison.disagreements[0].where) == (DIFFERS, "train/loss")
    file = noise.read(demo.recorded.noise)
    wide = msgspec.structs.replace(file.precisions["float64"], floors={"train/loss": {"value": [0.01]}})
    both = {**file.precisions, "float64": wide}
    demo.recorded.noise.write_bytes(noise.encode(msgspec.structs.replace(file, precisions=both)))
    found = check(demo)
    assert (found.status, found.comparison.verdict) == (AGREES, Verdict.WITHIN_NOISE)


def _never_ran(demo: Demo) -> None:
    demo.checkout.run(STEM, "float64").status.unlink()


def _older_packages(demo: Demo) -> None:
    (demo.checkout.root / "contrastive_jax").mkdir()
    (demo.checkout.root / "contrastive_jax" / "new.py").touch()


def _older_notebook(demo: Demo) -> None:
    demo.source_file.write_text(demo.source_file.read_text() + "\n# %%\nprint(3)\n")


def _no_floors(demo: Demo) -> None:
    demo.recorded.noise.unlink()


def _floors_of_another_record(demo: Demo) -> None:
    file = noise.read(demo.recorded.noise)
    of_another = {p: msgspec.structs.replace(each, record_sha256="0" * 64) for p, each in file.precisions.items()}
    demo.recorded.noise.write_bytes(noise.encode(msgspec.structs.replace(file, precisions=of_another)))


def _no_reference(demo: Demo) -> None:
    demo.recorded.record("float64").unlink()


def _damaged(demo: Demo) -> None:
    path = demo.checkout.run(STEM, "float64").record
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_never_ran, "not run yet"),
        (_older_packages, "the run is older than the"),
        (_older_notebook, "the run is older than the"),
        (_no_floors, "not readable noise floors"),
        (_floors_of_another_record, "measured on another record than"),
        (_no_reference, f"{STEM}.float64.jsonl"),
        (_damaged, "record.jsonl"),
    ],
)
def test_what_cannot_be_compared_says_so_and_is_not_published(demo, spoil: Callable[[Demo], None], says: str) -> None:
    spoil(demo)
    found = check(demo)
    assert found.status == CANNOT_COMPARE and says in found.cannot
    assert publish(demo) == "not written: no notebook was run to its end and compared"
    assert published(demo) == {}


def test_a_failed_run_keeps_its_reason_and_is_not_published(demo) -> None:
    demo.put_status("float64", Outcome("the kernel died", "out of memory"))
    found = check(demo)
    assert found.status == RUN_FAILED and found.incomplete == Outcome("the kernel died", "out of memory")
    assert publish(demo).startswith("not written: ") and published(demo) == {}


def test_what_differs_is_published_too_without_floors(demo) -> None:
    demo.put_run("float64", OTHER_LOSS)
    assert publish(demo) == "written"
    assert set(published(demo)) == {
        f"{STEM}.float32.jsonl",
        f"{STEM}.float64.jsonl",
        f"{STEM}.log",
        "ENVIRONMENT.json",
    }
    run = demo.checkout.run(STEM, "float64")
    assert published(demo)[f"{STEM}.float64.jsonl"] == run.record.read_bytes()
    assert environment.read_recorded(demo.checkout.recorded_runs / TARGET) == both_environments()
    assert "train/loss: 0.566406" in published(demo)[f"{STEM}.log"].decode()


def put_environment(demo: Demo, **changes) -> None:
    for precision, made in both_environments(**changes).items():
        demo.checkout.run(STEM, precision).environment.write_bytes(environment.encode(made))


def test_the_same_again_on_another_day_is_unchanged(demo) -> None:
    publish(demo)
    before = published(demo)
    put_environment(demo, date="2031-05-06")
    assert publish(demo) == publish(demo, overwrite=True) == "unchanged"
    assert published(demo) == before


@pytest.mark.parametrize("what", ["record", "environment", "both"])
def test_what_would_change_is_left_alone_unless_it_may_be_overwritten(demo, what: str) -> None:
    publish(demo)
    before = published(demo)
    names = []
    if what != "environment":
        demo.put_run("float32", OTHER_LOSS)
        names.append(f"{STEM}.float32.jsonl")
    if what != "record":
        put_environment(demo, threads=64)
        names.append("ENVIRONMENT.json")
    named = names[0] + (" and 1 more" if names[1:] else "")
    assert publish(demo) == (
        f"left as it is, because {named} would change; REPLACE=1 overwrites it, and CHANGELOG.md says why"
    )
    assert published(demo) == before
    assert publish(demo, overwrite=True) == "written"
    assert published(demo) != before and publish(demo) == "unchanged"


def test_a_lost_log_is_written_again(demo) -> None:
    publish(demo)
    before = published(demo)
    (demo.checkout.recorded_runs / TARGET / f"{STEM}.log").unlink()
    assert publish(demo) == "written" and published(demo) == before


def test_other_notebooks_recorded_elsewhere_are_not_mixed_in(demo) -> None:
    publish(demo)
    folder = demo.checkout.recorded_runs / TARGET
    for path in folder.glob(f"{STEM}*"):
        path.rename(folder / path.name.replace(STEM, "02_other"))
    before = published(demo)
    put_environment(demo, threads=64)
    said = publish(demo, overwrite=True)
    assert said.startswith("not written: ") and "holds other notebooks, recorded elsewhere" in said
    assert published(demo) == before
    put_environment(demo)
    assert publish(demo) == "written"
    assert {name.partition(".")[0] for name in published(demo)} == {STEM, "02_other", "ENVIRONMENT"}


def test_a_damaged_environment_is_named_and_left(demo) -> None:
    publish(demo)
    (demo.checkout.recorded_runs / TARGET / "ENVIRONMENT.json").write_text("{")
    before = published(demo)
    assert "not a readable environment record" in publish(demo)
    assert published(demo) == before


def test_the_folder_of_the_reference_is_never_written(demo) -> None:
    demo.put_run("float64", OTHER_LOSS)
    (demo.checkout.recorded_runs / FOLDER).rename(demo.checkout.recorded_runs / TARGET)
    (demo.checkout.recorded_runs / "REFERENCE").write_text(f"{TARGET}\n")
    before = published(demo)
    assert publish(demo, overwrite=True) == "not written: it is the reference, which make record makes"
    assert published(demo) == before


def test_settings_have_a_build_folder_of_their_own(monkeypatch) -> None:
    plain = columns.of_release(Checkout(Path("root")), RELEASE).build_folder
    names = {plain}
    for name, value in {
        "JAX_THREEFRY_PARTITIONABLE": "0",
        "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2",
        "JAX_PLATFORMS": "cuda",
    }.items():
        monkeypatch.setenv(name, value)
        names.add(columns.of_release(Checkout(Path("root")), RELEASE).build_folder)
        monkeypatch.delenv(name)
    assert plain == "build/matrix/0.6.2" and len(names) == 4
    # The settings that every kernel has by default are none.
    monkeypatch.setenv("JAX_THREEFRY_PARTITIONABLE", "1")
    assert columns.of_release(Checkout(Path("root")), RELEASE).build_folder == plain
