"""The exact versions of requirements.txt, and how far an environment is from them. Standard library only."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from .errors import HarnessError

PINNED_FOR = (3, 11)
# They fill .venv. Nothing that makes a number runs with them, so a chosen environment may lack them.
_FILL_VENV = ("pip", "setuptools")
_PACKAGES = ("contrastive_jax", "reproduce")
_PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;]+)\s*(?P<marker>;.*)?")


class Pin(NamedTuple):
    """One line of requirements.txt."""

    name: str
    version: str
    conditional: bool
    """It has a marker such as `sys_platform == 'darwin'`, so it may rightly be absent."""


def read(root: Path) -> list[Pin]:
    """Read the pins of the requirements.txt in `root`.

    Raises:
        HarnessError: a line is something else than `name==version`, with or without a marker.
    """
    pins = []
    for number, line in enumerate((root / "requirements.txt").read_text("utf-8").splitlines(), 1):
        text = line.split("#")[0].strip()
        match = _PIN.fullmatch(text)
        if match:
            pins.append(Pin(match["name"], match["version"], bool(match["marker"])))
        elif text:
            what = f"requirements.txt, line {number}: {text!r} is no exact pin."
            raise HarnessError(f"{what} Run `make lock` to make the file again.")
    return pins


def compare(pins: list[Pin]) -> tuple[list[str], list[str]]:
    """Compare pins with what the running Python has installed.

    Returns:
        The names of absent packages, and a phrase for each package of another version.
    """
    absent, different = [], []
    for pin in pins:
        try:
            found = importlib.metadata.version(pin.name)
        except importlib.metadata.PackageNotFoundError:
            if not pin.conditional:
                absent.append(pin.name)
            continue
        if found != pin.version:
            different.append(f"{pin.name} {found} (pinned {pin.version})")
    return absent, different


def departures(root: Path) -> list[str]:
    """Look over the running Python, which the caller chose, and list what has another version than pinned.

    Raises:
        HarnessError: a package is absent, does not import, or belongs to another checkout.
    """
    absent, different = compare([pin for pin in read(root) if pin.name not in _FILL_VENV])
    if absent:
        named = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more packages" if absent[5:] else "")
        raise HarnessError(f"{sys.executable} lacks {named}. {_pip_line()}")
    for package, place in _imported_from().items():
        if Path(place).resolve().parent.parent != root:
            raise HarnessError(f"{sys.executable} has {package} of another checkout, {place}. {_pip_line()}")
    if sys.version_info[:2] != PINNED_FOR:
        different.insert(0, f"Python {platform.python_version()} (pinned 3.11)")
    return different


def _imported_from() -> dict[str, str]:
    """Import both packages from outside the checkout, as a notebook's kernel does, and return their files."""
    files = ", ".join(f"{package}.__file__" for package in _PACKAGES)
    code = f"import json, {', '.join(_PACKAGES)}; print(json.dumps([{files}]))"
    answer = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    if answer.returncode:
        complaint = (answer.stderr.strip() or "nothing").splitlines()[-1]
        raise HarnessError(f"{sys.executable} cannot import this project: {complaint}. {_pip_line()}")
    return dict(zip(_PACKAGES, json.loads(answer.stdout.splitlines()[-1]), strict=True))


def _pip_line() -> str:
    pip = f"{shlex.quote(sys.executable)} -m pip install"
    return f"Install what is pinned with: {pip} -r requirements.txt && {pip} --no-deps -e ."
