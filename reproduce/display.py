"""Progress of runs: a live table in a terminal, plain lines everywhere else."""

import threading
import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table

from .runner import Event
from .tasks import Task

SYMBOLS = {
    "fresh": "[dim]=[/]",
    "started": "[cyan]>[/]",
    "cell": "[cyan]>[/]",
    "ended": "[green]+[/]",
    "failed": "[red]x[/]",
}


class Display:
    """Takes the runner's events from any thread and shows them."""

    def __init__(self, console: Console, tasks: list[Task]):
        self._console = console
        self._lock = threading.Lock()
        self._started: dict[str, float] = {}
        self._latest: dict[str, Event | None] = {task.name: None for task in tasks}
        # get_renderable is called at each refresh, so that the seconds of running tasks go on counting.
        self._live = Live(get_renderable=self._table, console=console, transient=True, refresh_per_second=4)

    def __enter__(self) -> "Display":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        with self._lock:
            self._latest[event.task.name] = event
            if event.kind == "started":
                self._started[event.task.name] = time.monotonic()
        # Outside the lock: printing waits for the live display, and a refresh of that waits for this lock.
        if event.kind != "cell" and (event.kind != "started" or not self._console.is_terminal):
            self._console.print(_line(event), highlight=False)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        with self._lock:
            for name, event in self._latest.items():
                if event is None:
                    table.add_row(" ", name, "[dim]waiting[/]", "")
                elif event.kind in ("started", "cell"):
                    seconds = time.monotonic() - self._started[name]
                    table.add_row(SYMBOLS[event.kind], name, event.detail, f"{seconds:.0f} s")
        return table


def _line(event: Event) -> str:
    words = {
        "fresh": "nothing it depends on has changed; not run again",
        "started": f"running ({event.detail})",
        "ended": f"done in {event.detail}",
        "failed": f"failed: {event.detail}",
    }
    return f"{SYMBOLS[event.kind]} {event.task.name}: {words[event.kind]}"
