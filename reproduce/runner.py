"""Runs notebooks side by side, each in processes of its own, and publishes a run only when it ended well."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from . import freshness
from .attempt import STOPPED, Attempts
from .checkout import Checkout
from .execute import FINISHED, Outcome
from .tasks import Limits, Task, kernel_environment


@dataclass(frozen=True)
class Event:
    """Something to show while tasks run. `kind` is fresh, started, cell, ended or failed."""

    task: Task
    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Result:
    """How a task went. `ran` is False where the earlier run was still fresh."""

    task: Task
    outcome: Outcome
    seconds: float
    ran: bool


class Runner:
    """Runs tasks over the processors and reports what happens as it happens."""

    def __init__(self, checkout: Checkout, limits: Limits, jobs: int, report: Callable[[Event], None]):
        self._checkout, self._jobs, self._report = checkout, jobs, report
        self._stopping = threading.Event()
        self._attempts = Attempts(checkout, limits, self._at_cell, self._stopping)

    def run(self, tasks: list[Task], *, force: bool = False) -> list[Result]:
        """Run the tasks that are not fresh. An interruption ends every process and leaves nothing published."""
        with ThreadPoolExecutor(max_workers=self._jobs) as pool:
            try:
                futures = [pool.submit(self._in_turn, task, force) for task in tasks]
                return [future.result() for future in futures]
            except BaseException:
                self._stopping.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _in_turn(self, task: Task, force: bool) -> Result:
        """One task, unless another has failed in a way that ends all: a worker takes the next one at once."""
        if self._stopping.is_set():
            return Result(task, STOPPED, 0.0, ran=False)
        try:
            return self._one(task, force)
        except BaseException:
            self._stopping.set()
            raise

    def _one(self, task: Task, force: bool) -> Result:
        variables = kernel_environment(task.xla_flags, task.settings)
        now = freshness.parts(self._checkout, task.source, task.parameters, variables)
        why = ["asked for"] if force else freshness.changed(task.folder, now)
        if not why:
            self._report(Event(task, "fresh"))
            return Result(task, Outcome(FINISHED), 0.0, ran=False)
        self._report(Event(task, "started", ", ".join(why)))
        start = time.monotonic()
        freshness.write_status(task.folder, freshness.Status(STOPPED, now))
        outcome = self._attempts.make(task, variables)
        seconds = time.monotonic() - start
        digest = freshness.file_digest(task.folder.record) if outcome.ended == FINISHED else ""
        freshness.write_status(task.folder, freshness.Status(outcome, now, digest, seconds))
        ended = "ended" if outcome.ended == FINISHED else "failed"
        self._report(Event(task, ended, f"{seconds:.1f} s" if ended == "ended" else outcome.ended))
        return Result(task, outcome, seconds, ran=True)

    def _at_cell(self, task: Task, cell: str) -> None:
        self._report(Event(task, "cell", cell))
