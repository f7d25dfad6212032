"""The live display in a terminal: it shows how far the runs are, never gets stuck, and gives the cursor back."""

import io
import os
import pty
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from rich.console import Console
from small_checkout import CLOSE, HOLD, LIGHT, OPEN, RUN_FAILED, SmallCheckout, small_checkout, wait_until

from reproduce.display import Display
from reproduce.runner import Event

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
# Makes the terminal the one whose Ctrl-C reaches this process.
TAKE_TERMINAL = """
import fcntl, os, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
"""


class Terminal:
    """A command in a terminal of its own; what it shows is collected."""

    def __init__(self, checkout: SmallCheckout, *arguments: str):
        self._keyboard, screen = pty.openpty()
        streams = {"stdin": screen, "stdout": screen, "stderr": screen}
        environment = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
        self.process: subprocess.Popen = checkout.start(
            *arguments, environment=environment, before=TAKE_TERMINAL, **streams
        )
        os.close(screen)
        self._seen = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        # Linux ends a terminal that nobody has open any more with an error, macOS with nothing.
        try:
            while some := os.read(self._keyboard, 65536):
                self._seen += some
        except OSError:
            pass

    @property
    def seen(self) -> str:
        return self._seen.decode(errors="replace")

    def press(self, key: bytes) -> None:
        os.write(self._keyboard, key)

    def finish(self) -> int:
        status = self.process.wait(timeout=240)
        self._reader.join(timeout=60)
        os.close(self._keyboard)
        return status


@pytest.fixture
def checkout(tmp_path) -> Iterator[SmallCheckout]:
    with small_checkout(tmp_path / "checkout") as made:
        yield made


def plain(text: str) -> str:
    """Without colours and cursor movements."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_run_in_a_terminal(checkout):
    # What a kernel writes past Python is not taken for progress, and its brackets not for colours.
    writes = "import os\nwritten = os.write(1, b'[/red] cell 99\\n')"
    checkout.notebook("01_held", LIGHT, OPEN, writes + HOLD, CLOSE)
    terminal = Terminal(checkout, "run")
    wait_until(lambda: len(checkout.holding()) == 2, "both runs are in the cell that waits")
    # Before it: the prose, the parameters, the cell that papermill adds, LIGHT and OPEN.
    wait_until(
        lambda: re.search(r"> +01_held float32 +cell 6 of \d+ +\d+ s", plain(terminal.seen)), "progress is shown"
    )
    assert terminal.seen.count(HIDE) == 1 and SHOW not in terminal.seen
    for folder in checkout.holding():
        (folder / "go").touch()
    assert terminal.finish() == 0, terminal.seen
    assert terminal.seen.count(SHOW) == 1 and terminal.seen.index(HIDE) < terminal.seen.index(SHOW)
    after = plain(terminal.seen[terminal.seen.index(SHOW) :])
    assert after.strip() == "2 run."
    assert "+ 01_held float32: done in " in plain(terminal.seen) and "Traceback" not in terminal.seen
    checkout.assert_tidy()


def test_ctrl_c_in_a_terminal(checkout):
    checkout.notebook("01_held", HOLD)
    terminal = Terminal(checkout, "run", "--jobs", "1")
    wait_until(lambda: checkout.holding() and HIDE in terminal.seen, "the cell waits")
    terminal.press(b"\x03")
    assert terminal.finish() == RUN_FAILED, terminal.seen
    assert terminal.seen.rindex(SHOW) > terminal.seen.rindex(HIDE)
    after = plain(terminal.seen[terminal.seen.rindex(SHOW) :]).strip()
    assert after.startswith("interrupted: every process was ended; no record was changed.")
    assert "Traceback" not in terminal.seen
    checkout.assert_tidy()


def test_events_and_refreshes_at_the_same_time_do_not_wait_for_each_other():
    # Printing an event holds the display while the table is drawn; drawing the table reads the events.
    tasks = [SimpleNamespace(name=f"task {n}") for n in range(3)]
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    until = time.monotonic() + 1.5

    def report(display: Display, task) -> None:
        while time.monotonic() < until:
            for kind in ("started", "cell", "ended", "failed", "fresh"):
                display(Event(task, kind, "a word"))

    def show() -> None:
        with Display(console, tasks) as display:  # pyright: ignore[reportArgumentType]
            threads = [threading.Thread(target=report, args=(display, task), daemon=True) for task in tasks]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    whole = threading.Thread(target=show, daemon=True)
    whole.start()
    whole.join(timeout=60)
    assert not whole.is_alive(), "the display is stuck"
