"""One run of the harness at a time in a checkout: two would write the same files."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .errors import HarnessError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


@contextlib.contextmanager
def only_one(build: Path) -> Iterator[None]:
    """Hold the checkout's lock. The system lets go of it when the process ends, however it ends.

    Raises:
        HarnessError: another process holds it.
    """
    build.mkdir(parents=True, exist_ok=True)
    path = build / ".lock"
    with path.open("a+", encoding="utf-8") as file:
        if fcntl:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise HarnessError(
                    f"another run is under way in this checkout (process {file.read().strip() or 'unknown'}). "
                    "Nothing was changed. Wait until it ends, then run again."
                ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
