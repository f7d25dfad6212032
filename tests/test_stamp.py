"""The stamp of `.venv`: what it notices, and what it rightly overlooks."""

import platform
from importlib.metadata import version
from pathlib import Path

import pytest

from reproduce import stamp
from reproduce.errors import HarnessError

PYPROJECT = """
[build-system]
requires = ["setuptools"]
[project]
name = "x"
dependencies = ["jax>=0.4.30"]
[tool.setuptools]
packages = ["x"]
[tool.ruff]
line-length = 110
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout whose `.venv` has just been stamped; this Python stands for the one inside."""
    (tmp_path / "requirements.txt").write_text(f"pytest=={version('pytest')}\n")
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / ".venv").mkdir()
    stamp.write(tmp_path)
    return tmp_path


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_new_stamp_is_good_and_alone(root: Path) -> None:
    assert stamp.why_stale(root) == ""
    assert [path.name for path in (root / ".venv").iterdir()] == [stamp.NAME]


INPUTS = {
    "a pin": lambda root: _edit(root / "requirements.txt", "==", "==1!"),
    "one more pin": lambda root: _edit(root / "requirements.txt", "\n", "\njax==0.9.2\n"),
    "a range": lambda root: _edit(root / "pyproject.toml", "0.4.30", "0.4.38"),
    "how it is built": lambda root: _edit(root / "pyproject.toml", '"setuptools"', '"hatchling"'),
    "what is installed": lambda root: _edit(root / "pyproject.toml", '["x"]', '["x", "y"]'),
}


@pytest.mark.parametrize("what", INPUTS)
def test_changed_inputs_are_noticed(root: Path, what: str) -> None:
    INPUTS[what](root)
    assert stamp.why_stale(root) == "requirements.txt or pyproject.toml changed"


def test_the_setting_of_a_tool_is_overlooked(root: Path) -> None:
    _edit(root / "pyproject.toml", "110", "100")
    assert stamp.why_stale(root) == ""


def test_another_python_is_noticed_with_both_versions(root: Path) -> None:
    here = platform.python_version()
    _edit(root / ".venv" / stamp.NAME, f'"{here} at', '"3.11.0 at')
    assert stamp.why_stale(root).startswith("its Python was 3.11.0 at ")
    assert f"and is now {here} at " in stamp.why_stale(root)


def test_a_move_is_noticed(root: Path) -> None:
    moved = root.with_name("moved")
    root.rename(moved)
    assert stamp.why_stale(moved) == f"it was made as {root}/.venv and cannot be moved"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"folder": "x"}', '"folder python inputs"', '{"folder": '])
def test_what_is_no_stamp_counts_as_unfinished(root: Path, text: str) -> None:
    (root / ".venv" / stamp.NAME).write_text(text)
    assert stamp.why_stale(root) == "its set-up did not finish"


def test_no_stamp_counts_as_unfinished(root: Path) -> None:
    (root / ".venv" / stamp.NAME).unlink()
    assert stamp.why_stale(root) == "its set-up did not finish"


@pytest.mark.parametrize(
    ("pins", "said"),
    [
        ("pytest==0.1", f"it departs from requirements.txt: pytest {version('pytest')} (pinned 0.1)"),
        ("nobody-has-this==1.0", "it departs from requirements.txt: no nobody-has-this"),
    ],
)
def test_packages_that_are_not_the_pinned_ones_are_noticed(root: Path, pins: str, said: str) -> None:
    (root / "requirements.txt").write_text(pins)
    stamp.write(root)
    assert stamp.why_stale(root) == said


def test_a_stamp_is_written_whole_or_not_at_all(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError

    before = (root / ".venv" / stamp.NAME).read_text()
    _edit(root / "requirements.txt", "==", "==1!")
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError):
        stamp.write(root)
    assert (root / ".venv" / stamp.NAME).read_text() == before


def test_a_pyproject_that_is_no_toml_is_named(root: Path) -> None:
    (root / "pyproject.toml").write_text("[project")
    with pytest.raises(HarnessError, match=r"pyproject\.toml cannot be read"):
        stamp.current(root)
