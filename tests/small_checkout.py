"""A temporary checkout with tiny notebooks, and the command line run on it the way a person runs it.

Every command is held to what must be true of all of them, however they end: no traceback on the terminal, no committed
file changed, and no process or scratch file left behind.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from reproduce.checkout import Checkout, RunFolder

REPOSITORY = Path(__file__).parent.parent
# Inherited by everything a command starts, so that what it left behind can be found.
MARK = "SMALL_CHECKOUT"
# Generous: a loaded machine may take many times longer than an idle one.
PATIENCE = 180
AGREES, DIFFERS, CANNOT_COMPARE, RUN_FAILED = range(4)

HEAD = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: {kernel}
# ---

# %% [markdown]
# # A tiny notebook

# %% tags=["parameters"]
PRECISION = "float32"
LOG_PATH = ""
RATE = 0.5
STEPS = 3
"""

OPEN = """
from reproduce.log import RunLog

log = RunLog(
    LOG_PATH, notebook="tiny", stem="{stem}", precision=PRECISION, parameters={{"RATE": RATE, "STEPS": STEPS}}
)
log.metric("rate", RATE * STEPS)
log.series("halves", [0.5**step for step in range(STEPS)])
log.claim("rate_is_positive", margin=RATE, compared="RATE > 0")
"""

# A run ends with the probes of `reproduce.environment`, and JAX takes seconds to load and compile them. A notebook with
# this cell spares them; those that are to show a whole run go without it.
LIGHT = """
import reproduce.environment

reproduce.environment.capture = lambda: reproduce.environment.Environment(
    date="2020-01-01", python="3", system="", machine="", processor="", cpu_features=[], threads=1,
    versions={"jax": "0"} | reproduce.environment.versions(), flags={}, backend="cpu", device="cpu", x64=False,
    threefry_partitionable=True, matmul_precision="highest", probes={},
)
"""

CLOSE = "log.close()"


def wait_until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Wait for a condition; an AssertionError names it where it never comes."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience} s in vain: {what}"
        time.sleep(0.05)


@dataclass(frozen=True)
class Finished:
    """How a command went."""

    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything a person sees."""
        return self.out + self.err


class SmallCheckout:
    """A checkout in a folder of its own, with a short private folder for temporary files."""

    def __init__(self, root: Path, temporary: Path):
        self.root, self.temporary = root, temporary
        self.paths = Checkout(root)
        for package in ("contrastive_jax", "reproduce"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(REPOSITORY / package, root / package, ignore=ignored, dirs_exist_ok=True)
        for folder in ("notebooks", "figures", "recorded_runs"):
            (root / folder).mkdir(exist_ok=True)

    def notebook(self, stem: str, *cells: str, kernel: str = "python3") -> Path:
        """Write a notebook source with these code cells after its head; without cells it runs well."""
        cells = cells or (LIGHT, OPEN, CLOSE)
        text = HEAD.format(kernel=kernel) + "".join(f"\n# %%\n{cell.strip()}\n" for cell in cells)
        path = self.root / "notebooks" / f"{stem}.py"
        path.write_text(text.replace("{stem}", stem).replace("{{", "{").replace("}}", "}"), encoding="utf-8")
        return path

    def run_folder(self, stem: str, precision: str = "float32") -> RunFolder:
        """Where a run leaves its files."""
        return self.paths.run(stem, precision)

    def environment(self, **changes: str) -> dict[str, str]:
        """The environment of a command: this process's, without what steers JAX or colours."""
        steering = ("JAX_", "XLA_", "REPRODUCE_", "FORCE_COLOR", "NO_COLOR", "PYTEST_", "COLUMNS", "TTY_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
        return {
            **kept,
            "REPRODUCE_ROOT": str(self.root),
            "TMPDIR": str(self.temporary),
            MARK: str(self.root),
            **changes,
        }

    def start(self, *arguments: str, **options) -> subprocess.Popen:
        """Start a command and go on. It may be stopped by signals: none is inherited as ignored."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": self.environment(), **options}
        command = [sys.executable, "-m", "reproduce", *arguments]
        return subprocess.Popen(command, cwd=REPOSITORY, text=True, **options)

    def finish(self, process: subprocess.Popen, *, publishes: bool = False) -> Finished:
        """Wait for a command to end and check what every command owes."""
        out, err = process.communicate(timeout=PATIENCE)
        finished = Finished(process.returncode, out or "", err or "")
        assert "Traceback" not in finished.text, finished.text
        assert "Exception ignored" not in finished.text, finished.text
        self.assert_nothing_left()
        return finished

    def command(self, *arguments: str, publishes: bool = False, **changes: str) -> Finished:
        """Run a command to its end; `changes` are environment variables."""
        before = self.committed()
        finished = self.finish(self.start(*arguments, env=self.environment(**changes)))
        assert publishes or self.committed() == before, "a committed file changed"
        return finished

    def committed(self) -> dict[str, str]:
        """Digest of every file that git would know."""
        files = [path for folder in ("recorded_runs", "figures", "notebooks") for path in self._files(folder)]
        return {str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def _files(self, folder: str) -> list[Path]:
        return [path for path in (self.root / folder).rglob("*") if path.is_file()]

    def processes(self) -> list[psutil.Process]:
        """What is alive of everything started here."""
        alive = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == str(self.root):
                    alive.append(process)
        return alive

    def assert_nothing_left(self) -> None:
        """No process and no scratch file remains; they get a moment to go."""
        wait_until(lambda: not self.processes(), "a process was left behind", 30)
        wait_until(lambda: not list(self.temporary.iterdir()), "a temporary file was left behind", 30)


@contextlib.contextmanager
def small_checkout(root: Path) -> Iterator[SmallCheckout]:
    """A small checkout at `root`; at the end nothing of it is alive, whatever a test did."""
    root.mkdir(parents=True, exist_ok=True)
    # Not below pytest's folder, whose length would decide where a Unix socket can lie.
    temporary = Path(tempfile.mkdtemp(prefix="small-"))
    checkout = SmallCheckout(root, temporary)
    try:
        yield checkout
    finally:
        for process in checkout.processes():
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        shutil.rmtree(temporary, ignore_errors=True)
