"""A recorded reference: what makes a run stale, what stops `record`, and a reference that has been damaged."""

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from small_checkout import (
    AGREES,
    CANNOT_COMPARE,
    CLOSE,
    DIFFERS,
    FIGURE,
    HOLD,
    LIGHT,
    NO_BYTECODE,
    OPEN,
    RUN_FAILED,
    Finished,
    SmallCheckout,
    small_checkout,
    wait_until,
)

from reproduce import attempt, noise, records
from reproduce.execute import Outcome

STEM = "01_tiny"
# Under a perturbation this does what the file beside the runs asks for.
OBEYS = f"""
import os, pathlib

asked = pathlib.Path(LOG_PATH).parents[2] / "asked"
wish = asked.read_text() if asked.exists() and "XLA_FLAGS" in os.environ else ""
assert wish != "fail", "asked to fail"
if wish == "hold":
{"".join(f"    {line}" for line in HOLD.strip().splitlines(keepends=True))}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Iterator[tuple[SmallCheckout, Finished]]:
    """A checkout whose notebook has been recorded, all eleven runs of it, and what `record` said."""
    with small_checkout(tmp_path_factory.mktemp("record") / "checkout") as made:
        for folder in (made.paths.recorded_runs, made.paths.figures):
            shutil.rmtree(folder)
        made.notebook(STEM, LIGHT, OBEYS, OPEN, FIGURE, CLOSE)
        assert made.command("notebooks", publishes=True).status == AGREES
        yield made, made.command("record", publishes=True)


@pytest.fixture
def checkout(recorded, tmp_path) -> SmallCheckout:
    """The recorded checkout once more, to be spoilt."""
    return recorded[0].copy(tmp_path / "checkout")


@pytest.fixture
def no_kernels(monkeypatch) -> None:
    """Runs end before they start: enough to see whether and why a notebook would be run."""
    monkeypatch.setattr(attempt.Attempts, "make", lambda *_: Outcome("interrupted", "by the test"))


def reference(checkout: SmallCheckout) -> Path:
    return checkout.paths.recorded_runs / checkout.paths.reference_name()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def source(checkout: SmallCheckout) -> Path:
    return checkout.root / "notebooks" / f"{STEM}.py"


def test_a_record_is_made(recorded):
    checkout, said = recorded
    assert said.status == AGREES, said
    name = checkout.paths.reference_name()
    assert f"Recorded {STEM} as recorded_runs/{name}.\nfigures: written: figures/{STEM}.svg.\n" in said.out
    kinds = ("float32.jsonl", "float64.jsonl", "log", "noise.json")
    files = {"ENVIRONMENT.json", *(f"{STEM}.{kind}" for kind in kinds)}
    assert {path.name for path in reference(checkout).iterdir()} == files
    # Two plain runs, then four perturbations of each, and one with the other random stream.
    assert "\n2 run.\n" in said.out and "\n9 run.\n" in said.out


def test_it_agrees_with_itself(recorded):
    answer = recorded[0].here("check")
    assert answer.status == AGREES, answer
    # A product, three halves, and six coordinates of the figure; in two precisions.
    assert answer.out.endswith(
        f"Agrees: all 20 numbers of 1 notebook agree with the reference {recorded[0].paths.reference_name()}.\n"
    )


def test_nothing_changed_and_nothing_is_run_again(checkout, no_kernels):
    answer = checkout.here("run")
    assert answer.status == AGREES and "running" not in answer.out
    assert answer.out.count("nothing it depends on has changed; not run again") == 2
    assert answer.out.endswith("0 run, 2 fresh and not run again.\n")


def test_a_word_of_the_prose_is_no_reason_to_run(checkout, no_kernels):
    edit(source(checkout), "# # A tiny notebook", "# # A very small notebook")
    assert checkout.here("run").out.endswith("0 run, 2 fresh and not run again.\n")
    answer = checkout.here("check")
    assert answer.status == DIFFERS
    assert f"{STEM}.ipynb: out of step with {STEM}.py; make notebooks makes it again" in answer.out
    assert "\nDiffers from the reference " in answer.out


def test_all_is_run_where_that_is_asked_for(checkout, no_kernels):
    answer = checkout.here("run", "--force")
    assert answer.out.count("running (asked for)") == 2 and answer.status == RUN_FAILED


CHANGES: dict[str, Callable[[SmallCheckout], object]] = {
    "source changed": lambda it: edit(source(it), "RATE * STEPS", "STEPS * RATE"),
    "package code changed": lambda it: edit(it.root / "contrastive_jax" / "metrics.py", "\n", "\n\n"),
    "its files were changed or removed": lambda it: edit(it.run_folder(STEM, "float64").record, "0.5", "0.25"),
    "never run": lambda it: shutil.rmtree(it.run_folder(STEM, "float64").path),
}


@pytest.mark.parametrize("reason", CHANGES)
def test_a_change_is_a_reason_to_run_again(checkout, no_kernels, reason):
    CHANGES[reason](checkout)
    answer = checkout.here("run")
    assert answer.status == RUN_FAILED and f"> {STEM} float64: running ({reason})\n" in answer.out


@pytest.mark.parametrize(
    ("arguments", "variables", "reason"),
    [
        (["--parameter", "RATE=0.25"], {}, "parameters changed"),
        ([], {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}, "flags changed"),
        ([], {"JAX_DEFAULT_MATMUL_PRECISION": "highest"}, "flags changed"),
        (["--parameter", "STEPS=4"], {"JAX_PLATFORMS": "cuda"}, "parameters changed, flags changed"),
    ],
)
def test_a_setting_is_a_reason_to_run_again(checkout, no_kernels, arguments, variables, reason):
    answer = checkout.here("run", *arguments, environment=variables)
    assert answer.status == RUN_FAILED and answer.out.count(f"running ({reason})\n") == 2


def test_a_changed_parameter_is_told_from_rounding(checkout):
    assert checkout.command("run", "--parameter", "RATE=0.25").status == AGREES
    answer = checkout.here("check")
    assert answer.status == DIFFERS
    for precision in records.PRECISIONS:
        assert f"{STEM} {precision}: stale: " in answer.out
        assert f"{STEM} {precision}: 1 difference beyond noise" in answer.out
    assert answer.out.count(" product  drift ") == 2 and "If meant: make record REPLACE=1" in answer.out
    last = answer.out.strip().splitlines()[-1]
    assert last.startswith("Differs from the reference ") and last.endswith(f": {STEM}.")


def test_an_edited_notebook_is_not_held_against_its_old_run(checkout):
    edit(source(checkout), "RATE * STEPS", "STEPS * RATE")
    answer = checkout.here("check")
    assert answer.status == CANNOT_COMPARE
    assert "the run is older than the notebook; make reproduce runs it again" in answer.out


# What stops `record`


def test_a_record_is_not_overwritten_unasked(checkout):
    answer = checkout.here("record")
    assert answer.status == CANNOT_COMPARE and answer.out == ""
    assert f"already holds {STEM}. Nothing was changed. To overwrite it: make record REPLACE=1" in answer.err


def test_a_record_is_not_made_with_flags(checkout):
    answer = checkout.here("record", "--replace", environment={"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"})
    assert answer.status == CANNOT_COMPARE and answer.out == ""
    assert "XLA_FLAGS=--xla_cpu_max_isa=SSE4_2 is set" in answer.err and "unset it and record again" in answer.err


def test_recording_again_gives_the_same_files(checkout):
    # `here` compares every committed byte before and after.
    answer = checkout.here("record", "--replace")
    assert answer.status == AGREES and "0 run, 9 fresh and not run again." in answer.out
    assert answer.out.endswith("figures: up to date.\n")


def missing_perturbation(checkout: SmallCheckout, wish: str) -> None:
    """Take one perturbed run away, so that `record` makes it again; it will do what is wished."""
    shutil.rmtree(checkout.paths.build / "noise" / f"{STEM}.float32.no-fusion")
    (checkout.paths.build / "asked").write_text(wish, encoding="utf-8")


def test_record_is_interrupted_while_it_measures(checkout):
    missing_perturbation(checkout, "hold")
    before = checkout.committed()
    process = checkout.start("record", "--replace")
    wait_until(lambda: checkout.holding() or process.poll() is not None, "the perturbed run waits")
    process.send_signal(signal.SIGINT)
    answer = checkout.finish(process)
    assert answer.status == RUN_FAILED and checkout.committed() == before
    assert "0 run, 2 fresh and not run again." in answer.out and "Recorded" not in answer.out
    assert answer.err.startswith("interrupted: every process was ended; no record was changed.")


def test_a_perturbed_run_fails(checkout):
    missing_perturbation(checkout, "fail")
    answer = checkout.command("record", "--replace")
    assert answer.status == RUN_FAILED and "Recorded" not in answer.out
    assert f"\n{STEM} float32 no-fusion: a cell raised in cell 5: AssertionError: asked to fail\n" in answer.out
    assert f"build/noise/{STEM}.float32.no-fusion " in answer.out


def test_the_disk_refuses_the_record(checkout):
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))"
    answer = checkout.command("record", "--replace", before=limit, environment=NO_BYTECODE)
    assert answer.status == RUN_FAILED and "Recorded" not in answer.out
    assert answer.err.startswith("error: the disk refused") and "File too large. No record was changed." in answer.err
    assert [path.name for path in checkout.paths.recorded_runs.iterdir() if path.name.startswith(".")] == []


def test_the_disk_refuses_the_figures(checkout):
    shutil.rmtree(checkout.paths.figures)
    checkout.paths.figures.write_text("in the way", encoding="utf-8")
    answer = checkout.here("record", "--replace")
    assert answer.status == RUN_FAILED and f"Recorded {STEM}" in answer.out
    assert answer.err.startswith("error: the record is written, but the disk refused what belongs to it: ")
    assert answer.err.endswith("and then: make figures\n")


# A reference that has been damaged


def in_record(change: Callable[[bytes], bytes]) -> Callable[[SmallCheckout], Path]:
    def damage(checkout: SmallCheckout) -> Path:
        path = reference(checkout) / f"{STEM}.float64.jsonl"
        path.write_bytes(change(path.read_bytes()))
        return path

    return damage


def removed(checkout: SmallCheckout) -> Path:
    path = reference(checkout) / f"{STEM}.float64.jsonl"
    path.unlink()
    return path


def in_noise(checkout: SmallCheckout) -> Path:
    path = reference(checkout) / f"{STEM}.noise.json"
    path.write_bytes(path.read_bytes()[:-9])
    return path


def other_noise(checkout: SmallCheckout) -> Path:
    path = reference(checkout) / f"{STEM}.noise.json"
    measured = noise.read(path)
    measured.precisions["float64"] = msgspec.structs.replace(measured.precisions["float64"], record_sha256="0" * 64)
    path.write_bytes(noise.encode(measured))
    return path


def edited_noise(checkout: SmallCheckout) -> Path:
    path = reference(checkout) / f"{STEM}.noise.json"
    edit(path, "0.0", "9.9")
    return path


DAMAGES = [
    (in_record(lambda content: content[: content.rindex(b'{"kind":"end"')]), "the record is cut short"),
    (in_record(lambda content: content[:-5]), "the record is cut short"),
    (in_record(lambda content: b""), "empty"),
    (in_record(lambda content: content.replace(b"0.25", b"0.26", 1)), "edited after recording"),
    (
        in_record(lambda content: content.replace(b'"schema":1', b'"schema":2', 1)),
        "schema 2 is newer than the schema 1",
    ),
    (in_record(lambda content: b"not a record\n"), "not JSON"),
    (in_record(lambda content: b"\xff\xfe" + content), "not JSON"),
    (in_record(lambda content: content.replace(b'"product"', b'"../../product"', 1)), "edited after recording"),
    (removed, "cannot be read: No such file or directory"),
    (in_noise, "not readable noise floors"),
    (other_noise, "measured on another record"),
    (edited_noise, "edited after recording"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGES)
def test_a_damaged_reference_is_named(checkout, damage, said):
    path = damage(checkout)
    answer = checkout.here("check")
    assert answer.status == CANNOT_COMPARE
    assert f"\n{STEM} float64: cannot compare: {path}" in answer.out and said in answer.out
    assert answer.out.strip().splitlines()[-1].startswith(f"Cannot compare {STEM} with the reference ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"../outside\n", "expected the name of a folder beside it, found '../outside'"),
        (b"/etc\n", "expected the name of a folder beside it, found '/etc'"),
        (b"..\n", "expected the name of a folder beside it, found '..'"),
        (b"\n", "expected the name of a folder beside it, found ''"),
        (b"\xff\xfe\x00", "expected the name of a folder beside it"),
        (None, "missing. It holds one line, the folder name of the reference."),
    ],
)
def test_a_pointer_that_leads_astray(checkout, content, said):
    pointer = checkout.paths.recorded_runs / "REFERENCE"
    pointer.unlink() if content is None else pointer.write_bytes(content)
    answer = checkout.here("check")
    assert answer.status == CANNOT_COMPARE and answer.out == ""
    assert answer.err.startswith(f"error: {pointer}: ") and said in answer.err


def test_a_readme_in_another_encoding_is_no_reason_to_fail(checkout):
    (checkout.root / "README.md").write_bytes("für 0.5".encode("latin-1"))
    assert checkout.here("check").status == AGREES


def test_a_pointer_to_no_folder(checkout):
    (checkout.paths.recorded_runs / "REFERENCE").write_text("jax-9_cpu\n", encoding="utf-8")
    answer = checkout.here("check")
    assert answer.status == CANNOT_COMPARE
    assert f"{checkout.paths.recorded_runs / 'jax-9_cpu' / STEM}.float32.jsonl: cannot be read" in answer.out
