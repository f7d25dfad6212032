"""requirements.txt and its kin, and the comparison of an environment with the pins."""

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from reproduce import bootstrap, pins
from reproduce.errors import HarnessError

ROOT = Path(__file__).parent.parent
SHARED = {"jax": "0.9.2", "jaxlib": "0.9.2", "matplotlib": "3.10.8"}


def _write(root: Path, text: str) -> Path:
    (root / "requirements.txt").write_text(text)
    return root


def test_pins_are_read_with_comments_and_markers(tmp_path: Path) -> None:
    text = "# head\n\na-b==1.0.post1  # via c\nd.e==2 ; sys_platform == 'darwin'  # via f\n"
    assert pins.read(_write(tmp_path, text)) == [pins.Pin("a-b", "1.0.post1", False), pins.Pin("d.e", "2", True)]


NOT_EXACT = [
    "jax",
    "jax>=0.9",
    "jax==0.9.2 --hash=sha256:0",
    "--index-url somewhere",
    "-e .",
    "jax @ file:///jax.whl",
    "<<<<<<< HEAD",
]


@pytest.mark.parametrize("line", NOT_EXACT)
def test_a_line_that_is_no_exact_pin_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    with pytest.raises(HarnessError, match=r"line 2: .* is no exact pin\. Run `make lock`"):
        pins.read(_write(tmp_path, f"numpy==2.4.6\n{line}\n"))


def test_requirements_hold_one_version_of_all_that_the_project_asks_for() -> None:
    found = {pin.name: pin.version for pin in pins.read(ROOT)}
    assert len(found) == len(pins.read(ROOT))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    names = {match[0] for line in asked if (match := re.match(r"[\w.-]+", line))}
    assert len(names) == len(asked) > 15
    assert names <= found.keys()
    assert found.items() >= SHARED.items()


def test_what_the_project_needs_carries_no_marker() -> None:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    conditional = {pin.name for pin in pins.read(ROOT) if pin.conditional}
    assert not conditional & {re.split("[<>=]", line)[0] for line in asked}


def test_the_inputs_of_the_lock_hold_the_same_pins() -> None:
    lines = (ROOT / "requirements.in").read_text().splitlines()
    assert {f"{name}=={number}" for name, number in SHARED.items()} <= set(lines)


def test_conda_takes_its_pins_from_the_same_file() -> None:
    dependencies = (ROOT / "environment.yml").read_text().partition("dependencies:\n")[2]
    assert [line.strip() for line in dependencies.splitlines()] == [
        "- python=3.11",
        "- pip",
        "- pip:",
        "- -r requirements.txt",
        "- -e .",
    ]


def test_comparison_tells_absent_from_different_and_lets_conditional_ones_be() -> None:
    absent, different = pins.compare(
        [
            pins.Pin("pytest", version("pytest"), False),
            pins.Pin("Jax", "0.1", False),
            pins.Pin("nobody-has-this", "1", False),
            pins.Pin("only-on-a-mac", "1", True),
        ]
    )
    assert absent == ["nobody-has-this"]
    assert different == [f"Jax {version('jax')} (pinned 0.1)"]


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that this Python has installed, as far as imports tell."""
    places = {name: str(tmp_path / name / "__init__.py") for name in ("contrastive_jax", "reproduce")}
    monkeypatch.setattr(pins, "_imported_from", lambda: places)
    monkeypatch.setattr(pins, "PINNED_FOR", sys.version_info[:2])
    return tmp_path


def test_a_chosen_environment_with_the_pins_passes_in_silence(chosen: Path, capsys) -> None:
    _write(chosen, f"pytest=={version('pytest')}\npip==0.1\nsetuptools==0.1\n")
    assert bootstrap.main(["--active"], chosen) == 0
    assert capsys.readouterr().err == ""


def test_departures_from_the_pins_make_one_notice(chosen: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "PINNED_FOR", (2, 7))
    _write(chosen, "pytest==0.1\njax==0.2\n")
    assert bootstrap.main(["--active"], chosen) == 0
    notice = " ".join(capsys.readouterr().err.split())
    assert notice.count("notice") == 1
    for name, pinned in (("pytest", "0.1"), ("jax", "0.2")):
        assert f"{name} {version(name)} (pinned {pinned})" in notice
    assert "(pinned 3.11)" in notice


def test_a_chosen_environment_that_lacks_a_package_is_told_the_command(chosen: Path, capsys) -> None:
    _write(chosen, "\n".join(f"nobody-has-{number}==1" for number in range(7)))
    assert bootstrap.main(["--active"], chosen) == 2
    said = capsys.readouterr().err
    assert "lacks nobody-has-0, nobody-has-1, nobody-has-2, nobody-has-3, nobody-has-4 and 2 more packages" in said
    assert "-m pip install -r requirements.txt && " in said and "--no-deps -e ." in said


def test_packages_of_another_checkout_are_refused(chosen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(chosen, "")
    monkeypatch.setattr(pins, "_imported_from", lambda: {"reproduce": "/elsewhere/reproduce/__init__.py"})
    with pytest.raises(HarnessError, match="reproduce of another checkout, /elsewhere"):
        pins.departures(chosen)


def test_packages_are_imported_from_outside_and_from_this_checkout(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "reproduce.py").touch()
    monkeypatch.chdir(tmp_path)
    places = pins._imported_from()
    assert [Path(place).parent for place in places.values()] == [ROOT / "contrastive_jax", ROOT / "reproduce"]


def test_a_project_that_does_not_import_is_told_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pins, "_PACKAGES", ("nobody_has_this",))
    with pytest.raises(HarnessError, match=r"cannot import this project: ModuleNotFoundError: .*nobody_has_this"):
        pins._imported_from()
