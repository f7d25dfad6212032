"""The stamp that tells a finished `.venv` from a stale or half-built one. Standard library only.

The stamp is written last, and both written and read by the Python inside `.venv`: whichever Python built it,
the two ends see the same interpreter.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from pathlib import Path

from . import pins
from .errors import HarnessError

NAME = "setup-finished.json"


def current(root: Path) -> dict[str, str]:
    """Describe what `.venv` would now be made from, by the Python that runs this.

    Raises:
        HarnessError: pyproject.toml is no TOML.
    """
    import tomllib  # an older Python must get as far as the sentence that asks for a newer one

    try:
        project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise HarnessError(f"pyproject.toml cannot be read: {error}. Mend it, then run this again.") from None
    # Only what decides the installation: a new linter setting is no reason to install everything again.
    installation = [
        project.get("build-system"),
        project.get("project"),
        project.get("tool", {}).get("setuptools"),
    ]
    inputs = (root / "requirements.txt").read_bytes() + json.dumps(installation, sort_keys=True).encode()
    return {
        "folder": str(root / ".venv"),
        "python": f"{platform.python_version()} at {Path(sys.executable).resolve()}",
        "inputs": hashlib.sha256(inputs).hexdigest(),
    }


def write(root: Path) -> None:
    """Mark `.venv` as finished, whole or not at all."""
    draft = root / ".venv" / f"{NAME}.{os.getpid()}"
    draft.write_text(json.dumps(current(root), indent=2) + "\n", "utf-8")
    draft.replace(root / ".venv" / NAME)


def why_stale(root: Path) -> str:
    """Say why `.venv`, whose Python runs this, has to be made again; empty where it can stand."""
    try:
        stamp = json.loads((root / ".venv" / NAME).read_text("utf-8"))
        written = {key: str(stamp[key]) for key in ("folder", "python", "inputs")}
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        return "its set-up did not finish"
    now = current(root)
    if written["folder"] != now["folder"]:
        return f"it was made as {written['folder']} and cannot be moved"
    if written["python"] != now["python"]:
        return f"its Python was {written['python']} and is now {now['python']}"
    if written["inputs"] != now["inputs"]:
        return "requirements.txt or pyproject.toml changed"
    absent, different = pins.compare(pins.read(root))
    if absent or different:
        return "it departs from requirements.txt: " + ", ".join([f"no {name}" for name in absent] + different)
    return ""
