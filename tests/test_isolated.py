"""Environments of single releases: what is asked of uv, when one is made again, and where an interpreter is found."""

import json
import re
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_checkout import small_checkout
from small_matrix import SmallMatrix

from reproduce import interpreters
from reproduce.errors import HarnessError
from reproduce.isolated import STAMP, Isolated
from reproduce.matrix import Environments, NoInterpreter


@pytest.fixture
def matrix(tmp_path, monkeypatch) -> Iterator[SmallMatrix]:
    with small_checkout(tmp_path / "my checkout") as small:
        made = SmallMatrix(small, tmp_path / "my tools")
        for name, value in made.variables().items():
            monkeypatch.setenv(name, value)
        # The interpreter that runs the tests is no candidate: it may be of any version.
        monkeypatch.setattr(interpreters, "sys", types.SimpleNamespace(executable=""))
        yield made


def ready(matrix: SmallMatrix, release: str = "0.6.2") -> Isolated:
    return Environments(matrix.root, "uv", lambda text: None).ready(release)[0]


def site(isolated: Isolated) -> Path:
    (found,) = isolated.folder.glob("lib/python*/site-packages")
    return found


def test_only_the_release_and_what_must_follow_it_departs_from_the_pins(matrix) -> None:
    isolated = ready(matrix)
    venv, compiled, synced = matrix.uv_calls()
    assert venv == f"venv --python {matrix.tools}/python3.11 {isolated.folder}"
    assert compiled.startswith(f"pip compile --python {isolated.python} --extra notebooks --constraint ")
    assert "--no-emit-index-url" in compiled and compiled.endswith(f" {matrix.root}/pyproject.toml")
    assert synced == f"pip sync --python {isolated.python} {isolated.folder}/requirements.txt"
    orders = (isolated.folder / "constraints.txt").read_text().split()
    assert orders == ["tiny-one==1.0", "jax==0.6.2"]
    wishes = (isolated.folder / "requirements.txt").read_text().splitlines()[4:]
    assert wishes == ["ml-dtypes==0.6.0", "tiny-one==1.0"]
    stamp = isolated.stamp()
    assert stamp and isolated.departures(stamp) == {"jax": "0.6.2", "jaxlib": "0.6.2", "optax": "0.1.6"}


def test_a_finished_environment_is_reused(matrix) -> None:
    first = ready(matrix)
    matrix.uv_calls()
    assert ready(matrix) == first and matrix.uv_calls() == []
    # Neither uv nor an interpreter is needed for it.
    shutil.rmtree(matrix.tools)
    assert ready(matrix) == first


def _no_stamp(isolated: Isolated) -> None:
    (isolated.folder / STAMP).unlink()


def _cut_stamp(isolated: Isolated) -> None:
    path = isolated.folder / STAMP
    path.write_bytes(path.read_bytes()[:-20])


def _no_python(isolated: Isolated) -> None:
    isolated.python.unlink()


def _package_gone(isolated: Isolated) -> None:
    shutil.rmtree(site(isolated) / "jaxlib-0.6.2.dist-info")


def _package_changed(isolated: Isolated) -> None:
    (site(isolated) / "jaxlib-0.6.2.dist-info").rename(site(isolated) / "jaxlib-0.6.1.dist-info")
    path = site(isolated) / "jaxlib-0.6.1.dist-info" / "METADATA"
    path.write_text(path.read_text().replace("0.6.2", "0.6.1"))


def _package_added(isolated: Isolated) -> None:
    folder = site(isolated) / "stray-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: stray\nVersion: 1\n")


def _other_pins(isolated: Isolated) -> None:
    path = isolated.root / "requirements.txt"
    path.write_text(path.read_text().replace("tiny-one==1.0", "tiny-one==1.1"))


def _other_needs(isolated: Isolated) -> None:
    path = isolated.root / "pyproject.toml"
    path.write_text(path.read_text().replace('["tiny-one"]', '["tiny-one>=1"]'))


@pytest.mark.parametrize(
    "spoil",
    [_no_stamp, _cut_stamp, _no_python, _package_gone, _package_changed, _package_added, _other_pins, _other_needs],
)
def test_a_broken_or_outdated_environment_is_made_again(matrix, spoil) -> None:
    isolated = ready(matrix)
    (isolated.folder / "left-over").touch()
    matrix.uv_calls()
    spoil(isolated)
    assert isolated.stamp() is None
    ready(matrix)
    assert len(matrix.uv_calls()) == 3 and isolated.stamp() is not None
    assert not (isolated.folder / "left-over").exists()


def test_another_release_of_the_pins_is_no_reason(matrix) -> None:
    isolated = ready(matrix)
    path = matrix.root / "requirements.txt"
    path.write_text(path.read_text().replace("jax==0.9.2", "jax==0.9.3").replace("# made by hand", "# again"))
    assert isolated.stamp() is not None


def test_a_moved_environment_is_made_again(matrix, tmp_path) -> None:
    ready(matrix)
    moved = tmp_path / "elsewhere"
    matrix.root.rename(moved)
    assert Isolated(moved, "0.6.2").stamp() is None
    moved.rename(matrix.root)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("REFUSED", "0.6.2", "uv finds no versions that fit together: Because there is no jax==0.6.2."),
        (
            "UV_SAYS",
            "error: No solution found when resolving\n  cause: Because jaxlib==0.6.2\n  was yanked.\n\n  hint: wait",
            "uv finds no versions that fit together: Because jaxlib==0.6.2 was yanked.",
        ),
        ("UV_SAYS", "error: error sending request", "The package registry cannot be reached."),
        ("UV_SAYS", "error: No space left on device (os error 28)", "No space is left on the disk."),
        ("UV_SAYS", "error: something else", "error: something else"),
        ("FORGETS", "jaxlib", "does not hold what uv was told to install. Remove it and run again."),
    ],
)
def test_what_keeps_it_from_being_made_is_said_and_leaves_no_stamp(matrix, monkeypatch, variable, value, says) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(HarnessError, match=re.escape(says)):
        ready(matrix)
    assert not (matrix.root / ".matrix" / "0.6.2" / STAMP).exists()
    monkeypatch.delenv(variable)
    assert ready(matrix).stamp() is not None


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_in_the_way_is_left_there(matrix, tmp_path, kind) -> None:
    place = matrix.root / ".matrix" / "0.6.2"
    place.parent.mkdir()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis").touch()
    place.symlink_to(mine) if kind == "link" else place.touch()
    with pytest.raises(HarnessError, match="is in the way of an environment"):
        ready(matrix)
    assert place.exists() and (mine / "thesis").exists()


def test_the_shell_leads_uv_nowhere_else(matrix, monkeypatch) -> None:
    matrix.tool(
        "uv", 'echo "$VIRTUAL_ENV$PYTHONPATH$UV_PYTHON$UV_SYSTEM_PYTHON,$UV_PYTHON_DOWNLOADS" >> "$CALLS"; exit 1'
    )
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "UV_PYTHON", "UV_SYSTEM_PYTHON"):
        monkeypatch.setenv(name, "stray")
    with pytest.raises(HarnessError):
        ready(matrix)
    assert matrix.calls.read_text().splitlines()[-1] == ",never"


def test_no_interpreter_is_said_with_the_versions_that_would_do(matrix) -> None:
    with pytest.raises(NoInterpreter, match=re.escape("no interpreter (needs Python 3.12 or 3.13)")):
        ready(matrix, "0.12.0.1")
    assert not (matrix.root / ".matrix").exists()


def test_this_python_is_taken_where_it_fits(matrix, monkeypatch) -> None:
    mine = "{}.{}".format(*sys.version_info)
    matrix.interpreter(f"python{mine}", mine)
    monkeypatch.setattr(interpreters, "sys", sys)
    assert interpreters.find((mine,)) == sys.executable
    assert interpreters.find(("2.6",)) is None


def test_a_shim_that_does_not_answer_is_passed_over(matrix, monkeypatch) -> None:
    shims = matrix.tools / "shims"
    for name, script in {
        "python3.12": "echo 'pyenv: python3.12: command not found' >&2; exit 127",
        "python3.13": "echo 3.12; echo shim of another version",
    }.items():
        matrix.tool(f"shims/{name}", script)
    monkeypatch.setenv("PATH", f"{shims}:{matrix.tools}")
    assert interpreters.find(("3.12", "3.13")) is None
    later = matrix.interpreter("python3.12", "3.12")
    assert interpreters.find(("3.12", "3.13")) == str(later)


def test_what_talks_too_much_or_never_ends_is_no_interpreter(matrix, monkeypatch) -> None:
    monkeypatch.setattr(interpreters, "_PATIENCE", 1)
    matrix.tool("python3.12", "echo welcome; echo 3.12; echo /somewhere")
    assert interpreters.find(("3.12",)) is None
    matrix.tool("python3.12", "while :; do :; done")
    assert interpreters.find(("3.12",)) is None
    (matrix.tools / "python3.12").write_bytes(b"\x7fno program")
    assert interpreters.find(("3.12",)) is None


def test_versions_of_pyenv_and_of_uv_are_found_the_newest_first(matrix, monkeypatch) -> None:
    monkeypatch.setenv("MANAGED", str(matrix.tools / "managed"))
    uv = str(matrix.tools / "uv")
    matrix.interpreter("managed/cpython-3.13.1-linux/bin/python3", "3.13")
    newest = matrix.interpreter("managed/cpython-3.13.12-linux/bin/python3", "3.13")
    assert interpreters.find(("3.12", "3.13"), uv) == str(newest)
    assert interpreters.find(("3.12", "3.13")) is None
    matrix.interpreter("pyenv/versions/3.12.9/bin/python3", "3.12")
    newest = matrix.interpreter("pyenv/versions/3.12.10/bin/python3", "3.12")
    assert interpreters.find(("3.12", "3.13"), uv) == str(newest)


def test_a_line_that_is_no_pin_is_named(matrix) -> None:
    (matrix.root / "requirements.txt").write_text("jax>=0.4\n")
    with pytest.raises(HarnessError, match=re.escape("line 1: 'jax>=0.4' is no exact pin")):
        ready(matrix)


def test_the_stamp_says_what_was_installed(matrix) -> None:
    isolated = ready(matrix)
    said = json.loads((isolated.folder / STAMP).read_text())
    assert said["installed"]["jaxlib"] == "0.6.2" and said["installed"]["tiny-one"] == "1.0"
