"""Every ending of the command line as a sentence and an exit status, never as a traceback."""

import contextlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import typer
from rich.markup import escape

from .errors import CANNOT_COMPARE, RUN_FAILED, HarnessError
from .terminal import Terminal

err = Terminal(stderr=True, soft_wrap=True, emoji=False)


def run(app: typer.Typer, build: Path) -> None:
    """Run the command line and leave with its exit status. What is unforeseen leaves its traceback in `build`."""
    signal.signal(signal.SIGTERM, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a sign shows a question mark; that is no reason to fail.
            stream.reconfigure(errors="replace")
    with _spoken_errors(build):
        try:
            status = app(standalone_mode=False)
        except typer.Abort:
            raise KeyboardInterrupt from None
        except Exception as error:
            # Typer carries its own copy of click's exceptions in newer releases; what they share is this method.
            if not hasattr(error, "format_message"):
                raise
            _usage(error)
        # Newer releases of Typer turn Ctrl-C into this status, older ones into Abort.
        if status == 130:
            raise KeyboardInterrupt
        # Now, because an error while the interpreter ends could no longer be spoken.
        sys.stdout.flush()
        sys.exit(status)


def _usage(error) -> NoReturn:
    message = escape(error.format_message())
    if not message.startswith("Usage:"):
        message = f"[red]error[/]: {message} See: python -m reproduce --help"
    err.print(message, highlight=False)
    sys.exit(CANNOT_COMPARE)


def _give_up_unwritten_output() -> None:
    """Where standard output itself was refused, what waits to be written is not tried again at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _spoken_errors(build: Path) -> Iterator[None]:
    """Every error as a sentence with an exit status; a traceback goes to a file, never to the terminal."""
    try:
        yield
    except HarnessError as error:
        err.print(f"[red]error[/]: {escape(str(error))}", highlight=False)
        sys.exit(error.status)
    except KeyboardInterrupt:
        err.print("[red]interrupted[/]: every process was ended; no record was changed. Run again when you like.")
        sys.exit(RUN_FAILED)
    except OSError as error:
        _give_up_unwritten_output()
        # Of a rename, the second name is the one that was meant.
        named = error.filename2 or error.filename
        name = f" ({named})" if named else ""
        err.print(
            f"[red]error[/]: the disk refused{escape(name)}: {error.strerror or error}. No record was changed. "
            "Free space or mend the permissions, and run again.",
            highlight=False,
        )
        sys.exit(RUN_FAILED)
    except Exception as error:
        crash = build / "crash.txt"
        with contextlib.suppress(OSError):
            crash.parent.mkdir(exist_ok=True)
            crash.write_text(traceback.format_exc(), encoding="utf-8")
        err.print(
            f"[red]error[/]: the harness itself failed: {type(error).__name__}: {escape(str(error))}. "
            f"No record was changed. Please report it with {crash}.",
            highlight=False,
        )
        sys.exit(RUN_FAILED)
