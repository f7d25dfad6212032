"""One notebook run by papermill, in a process of its own: `python -m reproduce.execute JOB.json`.

How the run ended is taken from the exception, never from the notebook's metadata: after a dead kernel or a time
limit papermill still writes "completed" there. The answer goes to the file that the job names.
"""

import os
import sys
import threading
from pathlib import Path

import msgspec

from .records import write_atomically

FINISHED = "finished"


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
    job = msgspec.json.decode(Path(path).read_bytes(), type=Job)
    write_atomically(Path(job.outcome), msgspec.json.encode(run(job)))


def run(job: Job) -> Outcome:
    """Run the job's notebook with papermill and say how it ended."""
    # Imported here: the parent imports this module for Job and Outcome alone.
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    progress = _Progress()
    try:
        papermill.execute_notebook(
            job.notebook,
            job.executed,
            parameters=job.parameters,
            kernel_name="python3",
            cwd=job.working_directory,
            progress_bar=False,
            record_timing=False,
            coalesce_streams=True,
            start_timeout=120,
            execution_timeout=job.cell_limit,
            iopub_timeout=60,
            on_cell_start=progress.cell_started,
            config=Config(KernelManager=_transport()),
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


def _transport() -> dict[str, str]:
    """Unix sockets where there are any: no port to collide on, and no warning about unencrypted TCP."""
    folder = os.environ.get("JUPYTER_RUNTIME_DIR")
    # The address is spelled out because its default is a relative path, the same for every kernel.
    return {"transport": "ipc", "ip": f"{folder}/kernel"} if os.name == "posix" and folder else {}


class _Progress:
    """Knows the cell that is running, and tells the parent on standard output."""

    def __init__(self):
        self._cell: int | None = None
        self._code = ""

    def cell_started(self, cell, cell_index: int) -> None:
        self._cell, self._code = cell_index + 1, cell.source
        print(f"cell {self._cell}", flush=True)

    def outcome(self, ended: str, detail: str = "") -> Outcome:
        if ended == FINISHED:
            return Outcome(ended)
        return Outcome(ended, detail, self._cell, self._code)


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
