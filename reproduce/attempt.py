"""One attempt at a run: a process that runs the notebook, watched to its end, and the record that it left."""

import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil
from nbformat.v4 import new_code_cell

from . import environment, log, notebooks, records
from .checkout import Checkout
from .execute import FINISHED, Job, Outcome, readable
from .tasks import Limits, Task

# Runs last, so that it sees the settings the notebook made.
HARNESS_CELL = "from reproduce.environment import write_from_kernel\n\nwrite_from_kernel()"
STOPPED = Outcome("interrupted", "the harness was stopped")


@dataclass(frozen=True)
class Attempts:
    """Makes attempts. `report` gets a task and what it has come to; once `stopping` is set, each ends at once."""

    checkout: Checkout
    limits: Limits
    report: Callable[[Task, str], None]
    stopping: threading.Event

    def make(self, task: Task, variables: dict[str, str]) -> Outcome:
        """Run one task in processes of its own; its record is published only when all went well."""
        folder = task.folder
        for stale in (folder.partial, folder.environment, folder.executed):
            stale.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="reproduce-") as scratch:
            variables = {
                **variables,
                # The code that is run is the code whose digest is kept: this checkout's, wherever another is installed.
                "PYTHONPATH": str(self.checkout.root),
                # A kernel must not pick up start-up files, kernels or sockets of the user's own Jupyter.
                "IPYTHONDIR": f"{scratch}/ipython",
                "JUPYTER_DATA_DIR": scratch,
                "JUPYTER_RUNTIME_DIR": scratch,
                log.SOURCE_VARIABLE: task.source.sha256,
                environment.TARGET_VARIABLE: str(folder.environment),
                environment.PREFIX_VARIABLE: sys.prefix,
            }
            outcome = self._execute(task, variables)
        return _publish(task) if outcome.ended == FINISHED else outcome

    def _execute(self, task: Task, variables: dict[str, str]) -> Outcome:
        outcome_file = task.folder.path / "outcome.json"
        outcome_file.unlink(missing_ok=True)
        cells = self._write_job(task, outcome_file)
        with task.folder.stderr.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "reproduce.execute", "job.json"],
                cwd=task.folder.path,
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                # Its own session: Ctrl-C reaches the harness alone, which then ends everything in order.
                start_new_session=True,
            )
            try:
                stopped = self._watch(task, process, cells)
            finally:
                _end_tree(process)
        if stopped:
            return stopped
        try:
            return _explained(msgspec.json.decode(outcome_file.read_bytes(), type=Outcome), task.folder.stderr)
        except (OSError, msgspec.DecodeError):
            return Outcome("the run broke off", f"its process left no outcome (exit status {process.returncode})")

    def _write_job(self, task: Task, outcome_file: Path) -> int:
        """Write the solved notebook and the job; return the count of cells."""
        notebook = notebooks.solved(task.source)
        notebook.cells.append(new_code_cell(HARNESS_CELL, id="harness-environment"))
        folder = task.folder.path
        records.write_atomically(folder / "solved.ipynb", notebooks.to_bytes(notebook))
        job = Job(
            notebook="solved.ipynb",
            executed=task.folder.executed.name,
            outcome=outcome_file.name,
            parameters={**task.overrides, "PRECISION": task.precision, "LOG_PATH": str(task.folder.partial)},
            cell_limit=self.limits.cell,
            working_directory=str(self.checkout.root / "notebooks"),
        )
        records.write_atomically(folder / "job.json", msgspec.json.encode(job))
        # papermill inserts one cell, for the parameters.
        return len(notebook.cells) + 1

    def _watch(self, task: Task, process: subprocess.Popen, cells: int) -> Outcome | None:
        """Pass progress on until the process ends; an Outcome where it had to be stopped."""
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True).start()
        deadline = time.monotonic() + self.limits.notebook
        while True:
            if self.stopping.is_set():
                return STOPPED
            if time.monotonic() > deadline:
                return Outcome("the notebook ran too long", f"its limit is {self.limits.notebook} s")
            try:
                line = lines.get(timeout=0.2)
            except queue.Empty:
                continue
            if line is None:
                process.wait()
                return None
            self.report(task, f"{line.strip()} of {cells}")


def _explained(outcome: Outcome, stderr: Path) -> Outcome:
    """A kernel that died may have said why on standard error, as XLA does of an unknown flag."""
    if outcome.ended != "the kernel died":
        return outcome
    lines = stderr.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    # The last line is nbclient's, and says no more than the outcome does.
    said = [line for line in lines if line.strip() and not line.startswith("Kernel died")]
    return msgspec.structs.replace(outcome, detail=readable(said[-1])) if said else outcome


def _read_lines(stream, lines: queue.Queue) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _end_tree(process: subprocess.Popen) -> None:
    """End a run's process and all below it: the kernel has a session of its own and would outlive its parent."""
    try:
        tree = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    except psutil.NoSuchProcess:
        tree = []
    for member in tree:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream:
            stream.close()


def _publish(task: Task) -> Outcome:
    """Check what the kernel wrote and make it the run's record."""
    folder = task.folder
    try:
        record = records.read(folder.partial)
    except records.RecordError as error:
        return Outcome("no whole record", f"{error} Does the last cell call log.close()?")
    if off := _differences(record.header, task):
        return Outcome("the record is of something else", "; ".join(off))
    if not folder.environment.exists():
        return Outcome("no environment", "the kernel did not write it; see the executed notebook")
    folder.partial.replace(folder.record)
    return Outcome(FINISHED)


def _differences(header: records.Header, task: Task) -> list[str]:
    """What a record's header says otherwise than the task it should come from."""
    pairs = {
        "stem": (header.stem, task.source.stem),
        "SHA-256 of the source": (header.source_sha256 or "none, as when run by hand", task.source.sha256),
        "precision": (header.precision, task.precision),
        "parameters": (header.parameters, task.parameters),
    }
    return [f"{name}: {said}, expected {meant}" for name, (said, meant) in pairs.items() if said != meant]
