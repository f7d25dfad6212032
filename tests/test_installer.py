"""The words for a failed installation, and the care with which `.venv` is emptied."""

import shutil
from pathlib import Path

import pytest

from reproduce import installer, stamp

OUTPUTS = {
    "pip without a network": (
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(': Failed to establish a "
        "new connection: [Errno -3] Temporary failure in name resolution')': /simple/absl-py/\n"
        "ERROR: Could not find a version that satisfies the requirement absl-py==2.5.1 (from versions: none)\n"
        "ERROR: No matching distribution found for absl-py==2.5.1",
        "registry cannot be reached",
    ),
    "uv without a network": (
        "error: Request failed after 3 retries in 4.0s\n  cause: error sending request for url\n  cause: client error "
        "(Connect)\n  cause: dns error",
        "registry cannot be reached",
    ),
    "pip with a full disk": (
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        "Free 2 GB",
    ),
    "pip without such a version": (
        "ERROR: Could not find a version that satisfies the requirement jax==99 (from versions: 0.9.2)\n"
        "ERROR: No matching distribution found for jax==99",
        "offers no file for one of the pins",
    ),
    "uv without such a version": (
        "  x No solution found when resolving dependencies:\n  `-> Because there is no version of jax==99 and you "
        "require jax==99, we can conclude that your requirements are unsatisfiable.",
        "offers no file for one of the pins",
    ),
    "an unknown failure": (
        "Collecting a\nerror: subprocess-exited-with-error\n  more",
        "'error: subprocess-exited-with",
    ),
    "a failure without an error": ("something\nlast words\n", "'last words'"),
    "silence": ("", "(no output)"),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_the_cause_of_a_failed_installation_is_named(case: str) -> None:
    output, cause = OUTPUTS[case]
    assert cause in installer.explain(output)


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A folder that looks like a finished `.venv`."""
    folder = tmp_path / ".venv"
    for name in ("bin", "lib"):
        (folder / name).mkdir(parents=True)
    (folder / "lib64").symlink_to("lib")
    (folder / "pyvenv.cfg").write_text("home = /usr/bin")
    (folder / stamp.NAME).write_text("{}")
    return folder


def test_clearing_leaves_nothing_but_the_mark_of_a_venv(venv: Path) -> None:
    installer.clear(venv)
    assert [path.name for path in venv.iterdir()] == ["pyvenv.cfg"]


def test_clearing_takes_the_stamp_first(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    stamp_last = sorted(venv.iterdir(), key=lambda path: path.name == stamp.NAME)
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter(stamp_last))
    monkeypatch.setattr(shutil, "rmtree", interrupt)
    with pytest.raises(KeyboardInterrupt):
        installer.clear(venv)
    assert (venv / "lib").exists() and not (venv / stamp.NAME).exists()
