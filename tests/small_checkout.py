"""A temporary checkout with tiny notebooks, and the command line run on it the way a person runs it.

Every command is held to what must be true of all of them, however they end: no traceback on the terminal, no committed
file changed, and no process or scratch file left behind.
"""

import contextlib
import hashlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import psutil

from reproduce import __main__ as command_line
from reproduce.checkout import Checkout, RunFolder

REPOSITORY = Path(__file__).parent.parent
# Where the disk refuses, it would cut short the bytecode that Python writes beside every module it imports.
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}
# Inherited by everything a command starts, so that what it left behind can be found.
MARK = "SMALL_CHECKOUT"
# Generous: a loaded machine may take many times longer than an idle one.
PATIENCE = 240
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
    LOG_PATH, notebook="tiny", stem="{stem}", precision=PRECISION, parameters={"RATE": RATE, "STEPS": STEPS}
)
log.metric("product", RATE * STEPS)
log.series("halves", [0.5**step for step in range(STEPS)])
log.claim("rate_is_positive", margin=RATE, compared="RATE > 0")
"""

FIGURE = """
log.figure(
    "{stem}",
    panels=[
        {
            "kind": "line",
            "series": [{"label": "halves", "x": [0, 1, 2], "y": [1.0, 0.5, 0.25]}],
            "xlabel": "step",
            "ylabel": "size",
        }
    ],
    alt="A falling line.",
)
"""

CLOSE = "log.close()"

# A run ends with the probes of `reproduce.environment`, and JAX takes seconds to load and to compile them. A notebook
# with this cell spares them; one that is to show a whole run goes without it.
LIGHT = """
import reproduce.environment as environment

environment.capture = lambda: environment.Environment(
    date="2020-01-01",
    python="3",
    system="",
    machine="",
    processor="",
    cpu_features=[],
    threads=1,
    versions=environment.versions(),
    flags={},
    backend="cpu",
    device="cpu",
    x64=False,
    threefry_partitionable=True,
    matmul_precision="highest",
    probes={},
)
"""

# Says that it has come here, and stays until it is let go.
HOLD = """
import pathlib, time

here = pathlib.Path(LOG_PATH).parent
(here / "holding").touch()
while not (here / "go").exists():
    time.sleep(0.05)
"""


def by_precision(float32: str, float64: str) -> str:
    """One cell with two faults, so that the two runs of a notebook show one each."""
    here, there = (textwrap.indent(code.strip(), "    ") for code in (float32, float64))
    return f'if PRECISION == "float32":\n{here}\nelse:\n{there}'


def wait_until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Wait for a condition; an AssertionError names it where it never comes."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience} s in vain: {what}"
        time.sleep(0.05)


@dataclass(frozen=True)
class Finished:
    """How a command went, and what a person saw of it."""

    status: int
    out: str
    err: str

    def block(self, stem: str, precision: str) -> str:
        """What is said of one run that failed, up to the next empty line."""
        head = f"\n{stem} {precision}: "
        assert self.out.count(head) == 1, self.out + self.err
        return self.out.split(head)[1].split("\n\n")[0]


class SmallCheckout:
    """A checkout in a folder of its own, with a short private folder for temporary files."""

    def __init__(self, root: Path, temporary: Path):
        self.root, self.temporary = root, temporary
        self.paths = Checkout(root)

    def fill(self) -> None:
        """Lay the checkout out, with something committed that no fault may touch."""
        for package in ("contrastive_jax", "reproduce"):
            shutil.copytree(REPOSITORY / package, self.root / package, ignore=shutil.ignore_patterns("__pycache__"))
        for file in ("recorded_runs/REFERENCE", "recorded_runs/jax-0_cpu/01_old.log", "figures/old.svg"):
            (self.root / file).parent.mkdir(parents=True, exist_ok=True)
            (self.root / file).write_text("jax-0_cpu\n", encoding="utf-8")
        (self.root / "notebooks").mkdir()

    def notebook(self, stem: str, *cells: str, kernel: str = "python3") -> Path:
        """Write a notebook source with these code cells after its head; without cells it runs well."""
        text = HEAD.replace("{kernel}", kernel)
        for cell in cells or (LIGHT, OPEN, CLOSE):
            text += f"\n# %%\n{cell.strip()}\n"
        path = self.root / "notebooks" / f"{stem}.py"
        path.write_text(text.replace("{stem}", stem), encoding="utf-8")
        return path

    def run_folder(self, stem: str, precision: str = "float32") -> RunFolder:
        """Where a run leaves its files."""
        return self.paths.run(stem, precision)

    def holding(self) -> list[Path]:
        """The folders of the runs that wait in a HOLD cell."""
        return [path.parent for path in self.paths.build.glob("*/*/holding")]

    def environment(self, **changes: str) -> dict[str, str]:
        """The environment of a command: this process's, without what steers JAX, Jupyter or colours."""
        steering = ("JAX_", "XLA_", "JUPYTER", "IPYTHON", "REPRODUCE_", "PYTHON", "FORCE_COLOR", "TTY_", "COLUMNS")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
        own = {"REPRODUCE_ROOT": str(self.root), "TMPDIR": str(self.temporary), MARK: str(self.root)}
        return {**kept, **own, **changes}

    def start(
        self, *arguments: str, environment: dict[str, str] | None = None, before: str = "", **options
    ) -> subprocess.Popen:
        """Start a command in a process of its own, and go on; that process runs the code `before` first."""
        run = "import runpy; runpy.run_module('reproduce', run_name='__main__', alter_sys=True)"
        return subprocess.Popen(
            [sys.executable, *(["-c", f"{before}\n{run}"] if before else ["-m", "reproduce"]), *arguments],
            cwd=REPOSITORY,
            env=self.environment(**environment or {}),
            encoding="utf-8",
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def finish(self, process: subprocess.Popen) -> Finished:
        """Wait for a command to end; hold it to what every command owes."""
        out, err = process.communicate(timeout=PATIENCE)
        self.assert_tidy()
        return self._checked(Finished(process.returncode, out or "", err or ""))

    def command(self, *arguments: str, publishes: bool = False, **options) -> Finished:
        """Run a command in a process of its own; `options` are those of `start`."""
        committed = self.committed()
        finished = self.finish(self.start(*arguments, **options))
        assert publishes or self.committed() == committed, "a committed file changed"
        return finished

    def here(self, *arguments: str, environment: dict[str, str] | None = None) -> Finished:
        """The same command line inside this process, which spares the seconds of its imports: for what runs nothing."""
        before, handler = self.committed(), signal.getsignal(signal.SIGTERM)
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in "oe")
        with (
            mock.patch.dict(os.environ, self.environment(**environment or {}), clear=True),
            mock.patch.object(sys, "argv", ["reproduce", *arguments]),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                command_line.main()
            except SystemExit as ended:
                status = ended.code
            finally:
                signal.signal(signal.SIGTERM, handler)
        assert isinstance(status, int)
        assert self.committed() == before, "a committed file changed"
        said = [stream.buffer.getvalue().decode() for stream in (out, err)]  # pyright: ignore[reportAttributeAccessIssue]
        return self._checked(Finished(status, *said))

    def _checked(self, finished: Finished) -> Finished:
        said = finished.out + finished.err
        for never in ("Traceback", "Exception ignored", "the harness itself failed"):
            assert never not in said, said
        # No colours and no cursor movements where nobody has a terminal.
        assert all(sign.isprintable() or sign == "\n" for sign in said), repr(said)
        crash = self.paths.build / "crash.txt"
        assert not crash.exists(), crash.read_text(encoding="utf-8")
        return finished

    def committed(self) -> dict[str, bytes]:
        """Digest of every file that git would know."""
        folders = [self.root / name for name in ("recorded_runs", "figures", "notebooks")]
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).digest() for path in files}

    def processes(self) -> list[psutil.Process]:
        """What is alive of everything started here, found by the environment it inherited."""
        alive = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == str(self.root) and process.status() != psutil.STATUS_ZOMBIE:
                    alive.append(process)
        return alive

    def assert_tidy(self) -> None:
        """No process and no scratch file remains; they get a moment to go."""
        wait_until(lambda: not self.processes(), f"processes were left behind: {self.processes()}", 30)
        assert not list(self.temporary.iterdir()), "temporary files were left behind"

    def copy(self, root: Path) -> "SmallCheckout":
        """The same checkout once more, its runs included."""
        shutil.copytree(self.root, root)
        return SmallCheckout(root, self.temporary)


@contextlib.contextmanager
def small_checkout(root: Path) -> Iterator[SmallCheckout]:
    """A small checkout at `root`; at the end nothing of it is alive, whatever a test did."""
    # Not below pytest's folder, whose length would decide where a Unix socket can lie.
    temporary = Path(tempfile.mkdtemp(prefix="small-"))
    checkout = SmallCheckout(root, temporary)
    try:
        checkout.fill()
        yield checkout
    finally:
        for process in checkout.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()
        shutil.rmtree(temporary, ignore_errors=True)
