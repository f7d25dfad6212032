"""Freshness: a run stands for as long as everything it was made from is the same, byte by byte."""

import os
import shutil
from pathlib import Path

import pytest
from builders import STEM, Demo, make_demo

from reproduce import environment, freshness
from reproduce.checkout import Checkout
from reproduce.execute import FINISHED, Outcome
from reproduce.freshness import Status
from reproduce.tasks import KERNEL_SETTINGS, check_overrides, kernel_environment, perturbed_tasks, plain_tasks

PARAMETERS = {"RATE": 0.5, "STEPS": 3}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Demo:
    """A checkout with a package, the modules that run in the kernel, and one fresh run."""
    made = make_demo(tmp_path_factory.mktemp("demo"))
    for name in ("contrastive_jax/losses.py", "contrastive_jax/exercises/judge.py"):
        write(made.checkout.root / name, "x = 1\n")
    for module in (*freshness.KERNEL_MODULES, "report"):
        write(made.checkout.root / "reproduce" / f"{module}.py", "x = 1\n")
    finish(made)
    return made


@pytest.fixture
def demo(pristine, tmp_path) -> Demo:
    root = tmp_path / "checkout"
    shutil.copytree(pristine.checkout.root, root)
    return Demo(Checkout(root))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def parts(demo: Demo, parameters=None, variables=None) -> freshness.Parts:
    return freshness.parts(demo.checkout, demo.source, parameters or PARAMETERS, variables or {})


def finish(demo: Demo) -> None:
    """Leave the status of a run that has just ended well."""
    folder = demo.checkout.run(STEM, "float32")
    status = Status(Outcome(FINISHED), parts(demo), freshness.file_digest(folder.record), 1.5)
    freshness.write_status(folder, status)


def changed(demo: Demo, parameters=None, variables=None) -> list[str]:
    """What keeps the run from being fresh."""
    return freshness.changed(demo.checkout.run(STEM, "float32"), parts(demo, parameters, variables))


def test_nothing_changed(demo):
    assert changed(demo) == []


def test_time_stamps_say_nothing(demo):
    for path in demo.checkout.root.rglob("*"):
        os.utime(path, (0, 0))
    assert changed(demo) == []
    os.utime(demo.source_file)
    assert changed(demo) == []


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_code_counts_and_prose_does_not(demo):
    edit(demo.source_file, "# # A demonstration", "# # A Demonstration")
    assert changed(demo) == []
    edit(demo.source_file, "return 2 * x", "return x * 2")
    assert changed(demo) == ["source changed"]


@pytest.mark.parametrize("parameters", [{"RATE": 0.25, "STEPS": 3}, {"RATE": 0.5}, {"RATE": 0.5, "STEPS": 3.0}])
def test_another_parameter(demo, parameters):
    assert changed(demo, parameters=parameters) == ["parameters changed"]


def test_the_order_of_parameters_says_nothing(demo):
    assert changed(demo, parameters={"STEPS": 3, "RATE": 0.5}) == []


@pytest.mark.parametrize(
    "name",
    ["contrastive_jax/losses.py", "contrastive_jax/exercises/judge.py"]
    + [f"reproduce/{module}.py" for module in freshness.KERNEL_MODULES],
)
def test_code_that_runs_in_the_kernel(demo, name):
    edit(demo.checkout.root / name, "x = 1", "x = 2")
    assert changed(demo) == ["package code changed"]


def test_a_module_more_or_less(demo):
    write(demo.checkout.root / "contrastive_jax" / "more.py", "")
    assert changed(demo) == ["package code changed"]
    finish(demo)
    assert changed(demo) == []
    (demo.checkout.root / "contrastive_jax" / "more.py").unlink()
    assert changed(demo) == ["package code changed"]


def test_code_that_never_runs_in_the_kernel(demo):
    edit(demo.checkout.root / "reproduce" / "report.py", "x = 1", "x = 2")
    write(demo.checkout.root / "contrastive_jax" / "notes.txt", "")
    assert changed(demo) == []


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}, ["flags changed"]),
        ({"JAX_THREEFRY_PARTITIONABLE": "0"}, ["flags changed"]),
        ({"HOME": "/elsewhere", "MY_JAX_TOKEN": "a"}, []),
    ],
)
def test_variables_that_steer_jax(demo, variables, said):
    assert changed(demo, variables=variables) == said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("versions", {"jax": "0.0.1"}),
        ("processor", ("Another processor", ["avx2"])),
        ("threads", 99),
    ],
)
def test_another_environment(demo, monkeypatch, name, value):
    monkeypatch.setattr(environment, name, lambda: value)
    assert changed(demo) == ["environment changed"]


def test_everything_that_changed_is_named(demo):
    edit(demo.source_file, "return 2 * x", "return x * 2")
    edit(demo.checkout.root / "contrastive_jax" / "losses.py", "x = 1", "x = 2")
    assert changed(demo, {"RATE": 0.25}, {"XLA_FLAGS": "a"}) == [
        "source changed",
        "parameters changed",
        "package code changed",
        "flags changed",
    ]


def test_never_run(demo):
    folder = demo.checkout.run(STEM, "float32")
    for content in (b"", b"[]", b"\xff", b'{"outcome":{"ended":"finished"}}'):
        folder.status.write_bytes(content)
        assert changed(demo) == ["never run"]
    folder.status.unlink()
    assert changed(demo) == ["never run"] and freshness.read_status(folder) is None


@pytest.mark.parametrize("ended", ["a cell raised", "interrupted", "the kernel died"])
def test_a_run_that_did_not_end_well_is_never_fresh(demo, ended):
    folder = demo.checkout.run(STEM, "float32")
    freshness.write_status(folder, Status(Outcome(ended), parts(demo), freshness.file_digest(folder.record)))
    assert changed(demo) == ["the last run did not end well"]


@pytest.mark.parametrize("damage", ["record edited", "record gone", "environment gone"])
def test_files_of_the_run_that_were_touched(demo, damage):
    folder = demo.checkout.run(STEM, "float32")
    if damage == "record edited":
        folder.record.write_bytes(folder.record.read_bytes() + b"\n")
    else:
        (folder.record if damage == "record gone" else folder.environment).unlink()
    assert changed(demo) == ["its files were changed or removed"]


def test_a_missing_record_is_not_an_empty_digest(demo):
    folder = demo.checkout.run(STEM, "float32")
    folder.record.unlink()
    freshness.write_status(folder, Status(Outcome(FINISHED), parts(demo), ""))
    assert changed(demo) != []


def test_a_status_comes_back(demo):
    folder = demo.checkout.run(STEM, "float64")
    status = Status(Outcome("a cell raised", "why", 3, "1 / 0"), {"source": "a"}, "b", 2.5)
    freshness.write_status(folder, status)
    assert freshness.read_status(folder) == status


# What a run is made with


def test_runs_and_their_parameters(demo):
    plain = plain_tasks(demo.checkout, demo.source, {"STEPS": 60})
    assert [(task.precision, task.parameters, task.xla_flags) for task in plain] == [
        ("float32", {"RATE": 0.5, "STEPS": 60}, ""),
        ("float64", {"RATE": 0.5, "STEPS": 60}, ""),
    ]
    perturbed = perturbed_tasks(demo.checkout, demo.source)
    folders = {task.folder.path for task in [*plain, *perturbed]}
    assert len(folders) == len(plain) + len(perturbed)
    *flagged, other_stream = perturbed
    assert all(task.xla_flags.startswith("--xla_") and not task.settings for task in flagged)
    assert (other_stream.xla_flags, other_stream.settings) == ("", {"JAX_THREEFRY_PARTITIONABLE": "0"})
    assert all(task.parameters == PARAMETERS for task in perturbed)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"STEP": 3}, "no parameter 'STEP'; it has RATE, STEPS"),
        ({"PRECISION": "float64"}, "no parameter 'PRECISION'"),
        ({"LOG_PATH": "a"}, "no parameter 'LOG_PATH'"),
        ({"STEPS": 3.0}, "STEPS takes a value like 3, found 3.0"),
        ({"STEPS": True}, "STEPS takes a value like 3, found True"),
        ({"STEPS": "3"}, "STEPS takes a value like 3, found '3'"),
        ({"RATE": True}, "RATE takes a value like 0.5, found True"),
    ],
)
def test_parameters_that_are_refused(demo, overrides, said):
    from reproduce.errors import HarnessError

    with pytest.raises(HarnessError, match="Nothing was run") as caught:
        check_overrides(demo.source, overrides)
    assert said in str(caught.value)


def test_parameters_that_are_taken(demo):
    check_overrides(demo.source, {"STEPS": 60, "RATE": 1})


def test_the_variables_of_a_kernel(monkeypatch):
    for name in ("JAX_PLATFORMS", "JAX_THREEFRY_PARTITIONABLE", "XLA_FLAGS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_X64", "PYTHONPATH", "PYTHONSTARTUP"):
        monkeypatch.setenv(name, "mine")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    variables = kernel_environment()
    assert (variables["JAX_PLATFORMS"], variables["JAX_THREEFRY_PARTITIONABLE"]) == ("cpu", "1")
    assert "mine" not in variables.values() and "XLA_FLAGS" not in variables
    assert KERNEL_SETTINGS.items() <= variables.items()
    monkeypatch.setenv("JAX_THREEFRY_PARTITIONABLE", "0")
    monkeypatch.setenv("XLA_FLAGS", "--xla_a")
    assert kernel_environment()["JAX_THREEFRY_PARTITIONABLE"] == "0"
    assert kernel_environment("--xla_b")["XLA_FLAGS"] == "--xla_a --xla_b"
    # What one task asks for goes before what the user set.
    assert kernel_environment(settings={"JAX_THREEFRY_PARTITIONABLE": "1"})["JAX_THREEFRY_PARTITIONABLE"] == "1"
