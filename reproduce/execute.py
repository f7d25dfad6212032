"""One notebook run by papermill, in a process of its own: `python -m reproduce.execute JOB.json`.

How the run ended is taken from the exception, never from the notebook's metadata: after a dead kernel or a time
limit papermill still writes "completed" there. The answer goes to the file that the job names.
"""

import os
import re
import sys
import threading
from pathlib import Path
from typing import TextIO

import msgspec

from .records import write_atomically
from .startup import spare_the_slow_import

FINISHED = "finished"
LONGEST_DETAIL = 2000


class Job(msgspec.Struct, frozen=True):
    """What to run. Paths are relative to the working directory, because papermill reads braces in them as fields."""

    notebook: str
    executed: str
    outcome: str
    parameters: dict[str, bool | int | float | str]
    cell_limit: int
    working_directory: str


class Outcome(msgspec.Struct, frozen=True):
    """How a run ended: `finished`, or what stopped it, at which cell, and what there is to read about it."""

    ended: str
    detail: str = ""
    cell: int | None = None
    code: str = ""


def main(path: str) -> None:
    """Run the job and leave the outcome; this process's exit status says nothing more."""
    _stop_with_parent()
    spare_the_slow_import()
    progress = _Progress(_own_standard_output())
    job = msgspec.json.decode(Path(path).read_bytes(), type=Job)
    write_atomically(Path(job.outcome), msgspec.json.encode(run(job, progress)))


def run(job: Job, progress: "_Progress") -> Outcome:
    """Run the job's notebook with papermill and say how it ended."""
    # Imported here: the parent imports this module for Job and Outcome alone.
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    try:
        papermill.execute_notebook(
            job.notebook,
            job.executed,
            parameters=job.parameters,
            kernel_name="python3",
            cwd=job.working_directory,
            progress_bar=False,
            record_timing=False,
            start_timeout=120,
            execution_timeout=job.cell_limit,
            # A flood of output can lose the message that a cell has ended; its reply says so, too.
            iopub_timeout=10,
            raise_on_iopub_timeout=False,
            on_cell_start=progress.cell_started,
            config=Config(KernelManager=_connection(os.environ["JUPYTER_RUNTIME_DIR"])),
        )
    except PapermillExecutionError as error:
        return progress.outcome("a cell raised", f"{error.ename}: {error.evalue}")
    except DeadKernelError:
        return progress.outcome("the kernel died", "killed from outside, out of memory, or crashed")
    except CellTimeoutError:
        return progress.outcome("a cell ran too long", f"its limit is {job.cell_limit} s")
    except NoSuchKernel as error:
        return progress.outcome("no kernel", str(error))
    except (OSError, RuntimeError) as error:
        return progress.outcome("the run broke off", f"{type(error).__name__}: {error}")
    return progress.outcome(FINISHED)


def _connection(folder: str) -> dict[str, str]:
    """Unix sockets where there are any: no port to collide on, and no warning about unencrypted TCP."""
    # The address is spelled out because its default is a relative path, the same for every kernel.
    address = f"{folder}/kernel"
    # A Unix socket's address holds 104 bytes on macOS and 108 on Linux, and ends in "-" and a digit here.
    fits = os.name == "posix" and len(os.fsencode(address)) <= 100
    # The file, too, goes with the folder; by default it would outlive a run that is stopped.
    return {"connection_file": f"{folder}/kernel.json"} | ({"transport": "ipc", "ip": address} if fits else {})


def _own_standard_output() -> TextIO:
    """Standard output for progress alone. What the kernel writes to its own joins standard error instead.

    Children do not inherit it, so it closes with this process, even where the kernel lives on for a moment.
    """
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


class _Progress:
    """Knows the cell that is running, and tells the parent."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._cell: int | None = None
        self._code = ""

    def cell_started(self, cell, cell_index: int) -> None:
        self._cell, self._code = cell_index + 1, cell.source
        print(f"cell {self._cell}", file=self._stream, flush=True)

    def outcome(self, ended: str, detail: str = "") -> Outcome:
        if ended == FINISHED:
            return Outcome(ended)
        return Outcome(ended, readable(detail), self._cell, self._code)


def readable(text: str) -> str:
    """An error's text without control characters, which could do anything to a terminal, and not without end."""
    plain = "".join(each for each in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text) if each.isprintable() or each == "\n")
    return plain if len(plain) <= LONGEST_DETAIL else f"{plain[:LONGEST_DETAIL]} … (the rest is in the notebook)"


def _stop_with_parent() -> None:
    """End this process and its kernel when the parent is gone, however it went: its end of our stdin closes then."""

    def wait() -> None:
        # Not through sys.stdin: the interpreter cannot shut down while a thread holds its lock.
        while os.read(0, 1):
            pass
        import psutil

        for process in psutil.Process().children(recursive=True):
            process.kill()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
