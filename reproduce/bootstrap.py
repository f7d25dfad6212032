"""Makes `.venv` from requirements.txt, or looks over an environment that the caller chose.

A bare Python runs this before anything is installed, so all that it imports is the standard library:

    python3.11 -m reproduce.bootstrap            make .venv; nothing is done where it is up to date
    python3.11 -m reproduce.bootstrap --active   look over the packages of this Python; nothing is installed

`--ready` and `--stamp` are for the Python inside `.venv`, see `stamp`.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import platform
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

from . import pins, stamp
from .errors import HarnessError
from .installer import DISK_FULL, install, say, venv_python

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
INTERRUPTED = 130


def ensure_venv(root: Path) -> None:
    """Make `.venv` unless it is up to date; of two callers at once the second waits.

    Raises:
        HarnessError: it could not be made.
    """
    pins.read(root)  # a mistake in these files is told before .venv is blamed for it
    stamp.current(root)
    with one_at_a_time(root) as lock:
        reason = ask_venv(root)
        if not reason:
            return
        begun = time.monotonic()
        again = f" again, because {reason}" if (root / ".venv" / "pyvenv.cfg").exists() else ""
        say(f"making .venv with Python {platform.python_version()}{again} (about a minute)")
        if sys.version_info[:2] != pins.PINNED_FOR:
            say("notice: pins and reference are made with Python 3.11; with another the numbers are untested")
        installer = install(root, lock)
        finish(root)
        say(f".venv is ready after {time.monotonic() - begun:.0f} s, by {installer}")


def finish(root: Path) -> None:
    """Let the Python of `.venv` write the stamp.

    Raises:
        HarnessError: it could not.
    """
    command = [venv_python(root), "-m", "reproduce.bootstrap", "--stamp"]
    answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise HarnessError(f".venv is filled but could not be marked as finished: {answer.stderr.strip()}")


def ask_venv(root: Path) -> str:
    """Let the Python of `.venv` say why it has to be made again; empty where it can stand."""
    command = [venv_python(root), "-m", "reproduce.bootstrap", "--ready"]
    try:
        answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return "its Python does not start"
    return answer.stdout.strip() or ("its Python does not start" if answer.returncode else "")


@contextlib.contextmanager
def one_at_a_time(root: Path) -> Iterator[int]:
    """Hold the lock of this checkout; yields its descriptor, for the installer to inherit.

    The lock is on the checkout's folder itself: no lock file can be left behind, removed or committed.
    """
    handle = os.open(root, os.O_RDONLY)
    try:
        _lock(handle)
        yield handle
    finally:
        os.close(handle)


def _lock(handle: int) -> None:
    import fcntl  # not on Windows, which `check_python` has turned away by now

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("another make is setting up this checkout; waiting for it")
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        say(f"notice: this file system has no locks ({error.strerror}); do not start a second make meanwhile")


def report_departures(departures: list[str]) -> None:
    """Say in one notice how the caller's environment departs from the pins, if it does."""
    if departures:
        notice = f"notice: {sys.executable} departs from requirements.txt, so numbers may move: "
        text = notice + ", ".join(departures)
        say(textwrap.fill(text, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False))


def check_python() -> None:
    """Refuse an interpreter or a system that the project cannot run on."""
    if os.name == "nt":
        raise HarnessError("The set-up works on Linux and macOS. On Windows use the Windows Subsystem for Linux.")
    if sys.version_info[:2] < OLDEST:
        raise HarnessError(
            f"Python 3.11 or newer is needed; {sys.executable} is {platform.python_version()}. "
            "Install Python 3.11, or name one: make setup PYTHON=/path/to/python3.11"
        )


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.bootstrap", description="Make or check the environment.")
    tasks = parser.add_mutually_exclusive_group()
    tasks.add_argument("--active", action="store_true", help="check this Python's packages; install nothing")
    tasks.add_argument("--ready", action="store_true", help="(inside .venv) say why .venv is stale, if it is")
    tasks.add_argument("--stamp", action="store_true", help="(inside .venv) mark .venv as finished")
    task = parser.parse_args(arguments)
    try:
        check_python()
        if task.ready:
            reason = stamp.why_stale(root)
            print(reason, end="")
            return int(bool(reason))
        if task.stamp:
            stamp.write(root)
        elif task.active:
            report_departures(pins.departures(root))
        else:
            signal.signal(signal.SIGTERM, signal.default_int_handler)  # a kill, too, takes the installer along
            ensure_venv(root)
    except KeyboardInterrupt:
        say("stopped before .venv was finished; the next make will do it again")
        return INTERRUPTED
    except HarnessError as error:
        say(f"{error}")
        return error.status
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        say(
            DISK_FULL
            if full
            else f"{error.filename or 'the installer'}: {error.strerror}. Mend that, then run this again."
        )
        return HarnessError.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
