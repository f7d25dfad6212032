"""Fills `.venv`, by uv where that works and by pip where not. Standard library only."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from . import stamp
from .errors import HarnessError

LOG = Path("build", "setup.log")
DISK_FULL = "No space is left on the disk. Free 2 GB, for the packages and temporary files; then run this again."
# The first pattern found in an installer's output names the cause, so the order matters: without a network
# pip complains of a missing version too.
_CAUSES = (
    (r"No space left on device|os error 28|Disk quota exceeded", DISK_FULL),
    (
        r"NewConnectionError|ConnectTimeout|name resolution|Network is unreachable|Connection refused"
        r"|dns error|error sending request|client error \(Connect\)|ProxyError|CERTIFICATE_VERIFY_FAILED",
        "The package registry cannot be reached. Check the network, its proxy and its certificates; then run "
        "this again.",
    ),
    (
        r"No matching distribution|not found in the package registry|no version of|has no wheels",
        "The package registry offers no file for one of the pins that fits Python "
        f"{platform.python_version()} on {platform.system()} {platform.machine()}. "
        "The pins are made for Python 3.11: try with that.",
    ),
)
# Settings of the caller's shell that would lead an installer away from .venv.
_STRAY_SETTINGS = ("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "UV_SYSTEM_PYTHON")
_PROJECT = ("--no-deps", "--no-build-isolation", "-e", ".")


def say(text: str) -> None:
    """Tell the reader one thing, on standard error: `make show > file` holds the record and nothing else."""
    print(f"set-up: {text}", file=sys.stderr, flush=True)


def venv_python(root: Path) -> str:
    """Return the path of the Python inside `.venv`."""
    return str(root / ".venv" / "bin" / "python")


def install(root: Path, lock: int) -> str:
    """Make `.venv` and install the pins and the project; return the installer's name.

    Raises:
        HarnessError: it could not be done; the text says why and what to do.
    """
    (root / LOG).parent.mkdir(exist_ok=True)
    (root / LOG).write_text("", "utf-8")
    create(root)
    uv = shutil.which("uv")
    if uv:
        failure = _run_all(_uv_steps(uv, root), root, lock)
        if failure is None:
            return "uv"
        if explain(failure) == DISK_FULL:
            raise HarnessError(DISK_FULL)
        say(f"notice: going on with pip, because uv said: {complaint(failure)}")
        create(root)
    if importlib.util.find_spec("ensurepip") is None:
        raise HarnessError(_lacks("ensurepip"))
    failure = _run_all(_pip_steps(root), root, lock)
    if failure is not None:
        raise HarnessError(f"{explain(failure)} The full output is in {LOG}.")
    return "pip"


def _uv_steps(uv: str, root: Path) -> list[list[str]]:
    install = [uv, "pip", "install", "--python", venv_python(root)]
    return [[*install, "-r", "requirements.txt"], [*install, *_PROJECT]]


def _pip_steps(root: Path) -> list[list[str]]:
    python = [venv_python(root), "-I", "-m"]
    install = [*python, "pip", "--disable-pip-version-check", "--no-input", "install"]
    return [[*python, "ensurepip"], [*install, "-r", "requirements.txt"], [*install, *_PROJECT]]


def create(root: Path) -> None:
    """Make an empty `.venv`, without pip.

    Raises:
        HarnessError: something else is in its place, or this Python lacks the module venv.
    """
    clear(root / ".venv")
    if importlib.util.find_spec("venv") is None:
        raise HarnessError(_lacks("venv"))
    folder = (root / ".venv").resolve()  # the module venv refuses a link, which people with a small home use
    command = [sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise HarnessError(explain(made.stdout + made.stderr))


def clear(venv: Path) -> None:
    """Empty `.venv`, its stamp first: wherever this is cut off, the rest counts as half built.

    `pyvenv.cfg` stays: it tells a virtual environment, which can be made again, from somebody's own files.

    Raises:
        HarnessError: `.venv` is no virtual environment.
    """
    config = venv / "pyvenv.cfg"
    if venv.is_symlink() and not venv.exists():
        raise HarnessError(f"{venv} is a link that leads nowhere. Remove the link, then run this again.")
    if venv.exists() and not venv.is_dir():
        raise HarnessError(f"{venv} is a file where a folder is needed. Move it away, then run this again.")
    venv.mkdir(exist_ok=True)
    if any(venv.iterdir()) and not config.exists():
        raise HarnessError(f"{venv} is a folder with other things in it. Move it away, then run this again.")
    config.touch()
    (venv / stamp.NAME).unlink(missing_ok=True)
    for path in venv.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != config:
            path.unlink()


def explain(output: str) -> str:
    """Turn the output of a failed installer into a cause and a next step, or else its own words."""
    for pattern, cause in _CAUSES:
        if re.search(pattern, output, re.IGNORECASE):
            return cause
    return f"The installation failed with {complaint(output)!r}."


def complaint(output: str) -> str:
    """Pick the line of an installer's output that says most: its first error, or else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"error\b", line, re.IGNORECASE)]
    return (errors or lines[-1:] or ["(no output)"])[0]


def _lacks(module: str) -> str:
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    return (
        f"{sys.executable} was packaged without its module {module}. "
        f"On Debian and Ubuntu: apt install {package}. "
        "Elsewhere install Python 3.11 from python.org, or uv. Then run this again."
    )


def _run_all(steps: list[list[str]], root: Path, lock: int) -> str | None:
    """Run commands until one fails; return that one's output."""
    for command in steps:
        status, output = _run_logged(command, root, lock)
        if status:
            return output
    return None


def _run_logged(command: list[str], root: Path, lock: int) -> tuple[int, str]:
    """Run a command with its output in the log, and return its status and output.

    The command inherits the lock: where the set-up is killed, others wait until its installer has ended.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _STRAY_SETTINGS}
    pipes = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }
    lines = []
    with (
        (root / LOG).open("a", encoding="utf-8") as log,
        subprocess.Popen(command, cwd=root, env=environment, pass_fds=(lock,), errors="replace", **pipes) as process,
    ):
        output = process.stdout or ()
        try:
            for line in output:
                log.write(line)
                lines.append(line)
                _show_progress(line, lines)
        except BaseException:
            process.terminate()
            list(output)  # ends when the command's own children have ended, too
            raise
    return process.returncode, "".join(lines)


def _show_progress(line: str, lines: list[str]) -> None:
    """On a terminal, show that pip is alive; uv is done before one wonders."""
    if not sys.stderr.isatty():
        return
    found = sum(earlier.startswith("Collecting ") for earlier in lines)
    if line.startswith("Collecting "):
        print(f"\rset-up: {found} packages fetched", end="", file=sys.stderr, flush=True)
    elif found and line.startswith("Installing collected packages"):
        print("\rset-up: putting them in place", file=sys.stderr, flush=True)
