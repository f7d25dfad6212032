"""Surroundings that a run must not depend on, and requests that cannot be met: refused before anything starts."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_checkout import (
    AGREES,
    CANNOT_COMPARE,
    CLOSE,
    LIGHT,
    OPEN,
    RUN_FAILED,
    Finished,
    SmallCheckout,
    small_checkout,
)

from reproduce import environment, records

# A Unix socket's address has room for about 104 bytes, and papermill reads braces in a path as fields.
ODD = Path("a folder {with} [/red] things ünd " + "a long name " * 8) / "{x}"
SHOWS_ITSELF = """
import os, sys
import contrastive_jax

log.text("prefix_is_the_harness", str(sys.prefix == os.environ["REPRODUCE_PREFIX"]))
log.text("working_directory", os.path.basename(os.getcwd()))
"""


def users_own_jupyter(home: Path) -> dict[str, str]:
    """A home with a start-up file for every kernel, and kernels of its own named python3; each leaves a trace."""
    startup = home / ".ipython" / "profile_default" / "startup" / "00-own.py"
    startup.parent.mkdir(parents=True)
    startup.write_text(f"open({str(home / 'startup was read')!r}, 'w').close()\n", encoding="utf-8")
    places = [home / ".local" / "share" / "jupyter", home / "data", home / "path"]
    for place in places:
        kernel = place / "kernels" / "python3" / "kernel.json"
        kernel.parent.mkdir(parents=True)
        argv = ["touch", str(home / f"kernel of {place.name} was started")]
        kernel.write_text(json.dumps({"argv": argv, "display_name": "own", "language": "python"}), encoding="utf-8")
    (home / "script.py").write_text("raise SystemExit('start-up script was read')\n", encoding="utf-8")
    return {
        "HOME": str(home),
        "JUPYTER_DATA_DIR": str(places[1]),
        "JUPYTER_PATH": str(places[2]),
        "PYTHONSTARTUP": str(home / "script.py"),
        "JUPYTER_PREFER_ENV_PATH": "0",
    }


# The packages of this checkout are run, not those that are installed


def test_the_checkouts_own_package_is_run(tmp_path):
    with small_checkout(tmp_path / "checkout") as made:
        own = made.root / "contrastive_jax" / "__init__.py"
        own.write_text("WHOSE = 'the checkout'\n", encoding="utf-8")
        made.notebook("01_asks", OPEN, "import contrastive_jax\nlog.text('whose', contrastive_jax.WHOSE)", CLOSE)
        elsewhere = {"PYTHONPATH": str(tmp_path / "elsewhere")}
        assert made.command("run", environment=elsewhere).status == AGREES
        own.write_text("WHOSE = 'the changed checkout'\n", encoding="utf-8")
        again = made.command("run", environment=elsewhere)
        assert "package code changed" in again.out
        entries = records.read(made.run_folder("01_asks").record).entries
        assert [entry.value for entry in entries if isinstance(entry, records.Text)] == ["the changed checkout"]


@pytest.fixture(scope="module")
def odd(tmp_path_factory) -> Iterator[tuple[SmallCheckout, Finished, Path]]:
    """A whole run, JAX and all, in a checkout with an odd path and for a user with a Jupyter of her own."""
    folder = tmp_path_factory.mktemp("surroundings")
    with small_checkout(folder / ODD) as made:
        made.notebook("01_whole", OPEN, SHOWS_ITSELF, CLOSE)
        home = folder / "home"
        yield made, made.command("run", environment=users_own_jupyter(home)), home


def test_a_path_with_spaces_and_braces_and_without_end(odd):
    checkout, finished, _ = odd
    assert len(str(checkout.root).encode()) > 108
    assert finished.status == AGREES, finished
    assert finished.out.endswith("2 run.\n")


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_run_is_whole(odd, precision):
    folder = odd[0].run_folder("01_whole", precision)
    record = records.read(folder.record)
    assert record.header.precision == precision and record.header.parameters == {"RATE": 0.5, "STEPS": 3}
    assert record.entries[3:] == (
        records.Text("prefix_is_the_harness", "True"),
        records.Text("working_directory", "notebooks"),
    )
    # Taken in the kernel: the notebook never switched 64-bit mode on, so the parameter alone must not claim it.
    assert not environment.read(folder.environment).x64
    assert environment.read(folder.environment).flags == {"JAX_PLATFORMS": "cpu", "JAX_THREEFRY_PARTITIONABLE": "1"}


def test_the_users_own_jupyter_is_left_alone(odd):
    _, finished, home = odd
    assert finished.status == AGREES
    assert not list(home.glob("*was*"))


def test_the_trap_of_the_users_own_jupyter_works(tmp_path):
    from jupyter_client.kernelspec import KernelSpecManager

    users_own_jupyter(tmp_path)
    (spec,) = (
        KernelSpecManager(kernel_dirs=[str(tmp_path / "path" / "kernels")], ensure_native_kernel=False)
        .get_all_specs()
        .values()
    )
    assert spec["spec"]["argv"][0] == "touch"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Iterator[SmallCheckout]:
    with small_checkout(tmp_path_factory.mktemp("requests") / "checkout") as made:
        yield made


def test_a_temporary_folder_too_long_for_a_socket(checkout):
    checkout.notebook("01_fails", LIGHT, "raise RuntimeError('came here')")
    long = checkout.temporary / ("t" * 120)
    long.mkdir()
    before = checkout.start("run", "--jobs", "2", environment={"TMPDIR": str(long), "PYTHONIOENCODING": "ascii"})
    out, _ = before.communicate()
    assert out.count("a cell raised in cell 5: RuntimeError: came here") == 2
    long.rmdir()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--parameter", "STEP=5"], "01_fails has no parameter 'STEP'; it has RATE, STEPS."),
        (["--parameter", "PRECISION=float64"], "01_fails has no parameter 'PRECISION'; it has RATE, STEPS."),
        (["--parameter", "STEPS=2.5"], "STEPS takes a value like 3, found 2.5."),
        (["--parameter", "STEPS=True"], "STEPS takes a value like 3, found True."),
        (["--parameter", "STEPS=many"], "STEPS takes a value like 3, found 'many'."),
        (["--parameter", "RATE=1e999"], "RATE takes a value like 0.5, found inf."),
        (["--parameter", "RATE=0.1", "--parameter", "rate=0.1"], "has no parameter 'rate'"),
        (["--parameter", "STEPS"], "--parameter 'STEPS': expected NAME=VALUE, such as STEPS=60."),
    ],
)
def test_a_parameter_that_cannot_be_set(checkout, arguments, said):
    checkout.notebook("01_fails")
    answer = checkout.here("run", "--force", *arguments)
    assert answer.status == CANNOT_COMPARE and answer.out == ""
    assert said in answer.err and answer.err.endswith("Nothing was run.\n")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("name: python3", "name: conda-env-mine-py"), "names the kernel 'conda-env-mine-py', expected 'python3'"),
        (("name: python3", "nome: python3"), "not a notebook in percent format: 'name' is a required property"),
        (("name: python3", "name: python3: 3"), "not a notebook in percent format: mapping values are not allowed"),
        (("# jupyter:", "# jupytext:"), "names the kernel None, expected 'python3'"),
        (("STEPS = 3", "STEPS = 1 + int(RATE)"), "the parameter STEPS is computed; a parameter must be a literal"),
        (('LOG_PATH = ""\n', ""), "the parameters cell lacks LOG_PATH"),
        (("RATE = 0.5", "RATE = = 0.5"), "the parameters cell is not Python"),
        ((' tags=["parameters"]', ""), "0 cells are tagged `parameters`, expected one"),
    ],
)
def test_a_source_that_cannot_be_run(checkout, change, said):
    path = checkout.notebook("01_fails")
    path.write_text(path.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    answer = checkout.here("run", "--force")
    assert answer.status == RUN_FAILED and answer.out == ""
    assert answer.err.startswith(f"error: {path}: ") and said in answer.err
    checked = checkout.here("check")
    assert checked.status == RUN_FAILED
    assert "01_fails float32: incomplete: the source cannot be run: " in checked.out and said in checked.out
    assert "Mend the source, and run again." in checked.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--nb", "99"], "no notebook starts with '99'; there are: 01_fails. Use NB=01"),
        (["run", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["run", "--cell-limit", "soon"], "Invalid value for '--cell-limit'"),
        (["reproduce"], "No such command 'reproduce'"),
        (
            ["show", "--nb", "01", "--precision", "float16"],
            "01_fails has no float16 run yet. Run it with: make reproduce",
        ),
    ],
)
def test_a_request_that_cannot_be_met(checkout, arguments, said):
    checkout.notebook("01_fails")
    answer = checkout.here(*arguments)
    assert answer.status == CANNOT_COMPARE and answer.out == ""
    assert said in answer.err


def test_no_grammar_is_built_that_nobody_asks_for(checkout):
    # lark is imported for a check of jsonschema's alone; it takes longer than all other imports together.
    started = checkout.start("run", "--nb", "99", environment={"PYTHONPROFILEIMPORTTIME": "1"})
    _, imported = started.communicate()
    assert "jsonschema" in imported and "lark" not in imported


def test_without_a_command_the_help_is_shown(checkout):
    answer = checkout.here()
    assert answer.status == CANNOT_COMPARE and "Commands:" in answer.out + answer.err


def test_signs_that_the_terminal_lacks(checkout):
    checkout.notebook("01_fails", LIGHT, "raise RuntimeError('→ not ascii')")
    answer = checkout.command("show", "--nb", "09 →", environment={"PYTHONIOENCODING": "ascii"})
    assert answer.status == CANNOT_COMPARE and "no notebook starts with '09 ?'" in answer.err
