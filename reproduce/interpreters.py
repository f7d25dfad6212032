"""Finds a Python of a wanted version on this machine. Nothing is ever downloaded."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# What answers with more or less than two lines is none of ours.
_QUESTION = "import sys; print('{}.{}'.format(*sys.version_info)); print(sys.executable)"
_PATIENCE = 20


def find(wanted: tuple[str, ...], uv: str | None = None) -> str | None:
    """The first interpreter that answers and has one of the wanted versions, such as "3.11"; None where there is none.

    Args:
        wanted: versions in the order of preference.
        uv: path of a uv that may have installed interpreters of its own.
    """
    managed = _folder_of(uv) if uv else None
    for version in wanted:
        for candidate in _candidates(version, managed):
            found = _ask(candidate)
            if found and found[0] == version:
                return found[1]
    return None


def _candidates(version: str, managed: Path | None) -> Iterator[str]:
    yield sys.executable
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield str(Path(folder, f"python{version}"))
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    yield from _newest_first(pyenv, f"{version}.*")
    if managed:
        yield from _newest_first(managed, f"cpython-{version}.*")


def _folder_of(uv: str) -> Path | None:
    """Where uv keeps the interpreters that it installed earlier."""
    answer = subprocess.run([uv, "python", "dir"], capture_output=True, text=True, check=False)
    return Path(answer.stdout.strip()) if answer.returncode == 0 and answer.stdout.strip() else None


def _newest_first(folder: Path, pattern: str) -> list[str]:
    def number(path: Path) -> list[int]:
        return [int(part) for part in "".join(c if c.isdigit() else " " for c in path.name).split()]

    return [str(path / "bin" / "python3") for path in sorted(folder.glob(pattern), key=number, reverse=True)]


def _ask(candidate: str) -> list[str] | None:
    """Its version and its true path; None for what does not start or answer, such as a shim that leads nowhere."""
    if not os.access(candidate, os.X_OK):
        return None
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    try:
        answer = subprocess.run(
            [candidate, "-c", _QUESTION],
            env=clean,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    lines = answer.stdout.splitlines()
    return lines if answer.returncode == 0 and len(lines) == 2 else None
