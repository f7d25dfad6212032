"""Calls a function that nobody has seen before, and comes back whatever it does.

The call runs in a thread of its own. What it raises, prints and changes in JAX's settings is caught, and a time limit
ends it. Code that hangs inside compiled mathematics cannot be ended from Python: the call then says that it is stuck.
"""

import contextlib
import ctypes
import importlib
import io
import linecache
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax

PRINTED_LIMIT = 2000
MESSAGE_LIMIT = 300
_NOTHING: Mapping[str, Any] = MappingProxyType({})
# What a thread inherits only if it was set for the whole process.
_SETTINGS = {
    "jax_default_matmul_precision": "default_matmul_precision",
    "jax_numpy_dtype_promotion": "numpy_dtype_promotion",
    "jax_numpy_rank_promotion": "numpy_rank_promotion",
    "jax_debug_nans": "debug_nans",
    "jax_disable_jit": "disable_jit",
}


class Raised(NamedTuple):
    """An exception: its type by name, those it derives from, its message, and the last line of the learner's own code.

    `line` is 0 where no such line is known. `by_itself` says that this line raised it, not a library that it called;
    `helper` is the function of that line if it is not the one that was called, but one of the learner's that it uses.
    """

    kind: str
    family: tuple[str, ...]
    message: str
    line: int = 0
    source: str = ""
    by_itself: bool = False
    helper: str = ""


class Call(NamedTuple):
    """What came of a call.

    Attributes:
        value: What the function returned; None if it did not return.
        raised: What it raised, if it did.
        too_long: It did not end within the time limit.
        stuck: It could not be ended either, and is still running.
        printed: The beginning of what it printed, to stdout or stderr.
        printed_size: How many characters it printed.
        changed: Names of JAX's settings that it changed. They are set back.
        seconds: How long it was waited for.
    """

    value: Any = None
    raised: Raised | None = None
    too_long: bool = False
    stuck: bool = False
    printed: str = ""
    printed_size: int = 0
    changed: tuple[str, ...] = ()
    seconds: float = 0.0


class TimeIsUpError(BaseException):
    """Raised inside a call from outside; no Exception, so that few handlers catch it."""


def call(
    function: Callable, arguments: tuple, keywords: Mapping[str, Any] = _NOTHING, *, limit: int | float = 10.0
) -> Call:
    """Calls `function` and waits for its result, arrays included, at most `limit` seconds.

    Args:
        function: Anything that can be called.
        arguments: Positional arguments.
        keywords: Keyword arguments.
        limit: Seconds.

    Returns:
        What came of it. Nothing that the function does is raised here.

    Raises:
        KeyboardInterrupt: The person in front of the kernel interrupted it; the call is ended first.

    Example:
        >>> print(call(lambda x: 1 / x, (0,)).raised.kind)
        ZeroDivisionError
    """
    before, depth, start = dict(jax.config.values), sys.getrecursionlimit(), time.monotonic()
    printed = _Beginning()
    found: list[Call] = []
    thread = threading.Thread(
        target=_work, args=(function, arguments, keywords, _settings_here(), found), daemon=True, name="judged"
    )
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        thread.start()
        try:
            thread.join(limit)
        except BaseException:
            _end(thread)
            raise
        too_long = thread.is_alive()
        if too_long:
            _end(thread)
    sys.setrecursionlimit(depth)
    result = Call(too_long=True, stuck=thread.is_alive()) if too_long or not found else found[0]
    return result._replace(
        printed=printed.text,
        printed_size=printed.size,
        changed=_set_back(before),
        seconds=time.monotonic() - start,
    )


def _work(
    function: Callable, arguments: tuple, keywords: Mapping[str, Any], settings: Mapping[str, Any], found: list[Call]
) -> None:
    try:
        with _as_set(settings):
            value = function(*arguments, **keywords)
            # Only what JAX made itself is waited for: anything else may answer as it likes.
            if type(value) is type(jax.numpy.zeros(())) or type(value) is tuple:
                value = jax.block_until_ready(value)
        found.append(Call(value=value))
    except TimeIsUpError:
        return
    # Also SystemExit and KeyboardInterrupt: a judged function cannot end the kernel.
    except BaseException as error:
        found.append(Call(raised=_described(error)))


class _Beginning(io.TextIOBase):
    """A stream that remembers its beginning only."""

    def __init__(self) -> None:
        self.text = ""
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, s: str, /) -> int:
        self.text += s[: PRINTED_LIMIT - len(self.text)]
        self.size += len(s)
        return len(s)


def name_of(kind: type) -> str:
    """Name of a class, without asking the class, which may answer as it likes."""
    return type.__dict__["__name__"].__get__(kind)


def _described(error: BaseException) -> Raised:
    try:
        message = str(error)
    except BaseException:  # SystemExit too: a message is no reason to end anything
        message = ""
    family = tuple(name_of(each) for each in type.mro(type(error)))
    raised = Raised(family[0], family, message[:MESSAGE_LIMIT])
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [each for each in frames if _is_own(each[0].f_code.co_filename)]
    if not own:
        return raised
    frame, line = own[-1]
    return raised._replace(
        line=line,
        source=linecache.getline(frame.f_code.co_filename, line).strip(),
        by_itself=own[-1] is frames[-1],
        helper=frame.f_code.co_name if len(own) > 1 else "",
    )


def _is_own(filename: str) -> bool:
    """Whether code is in a cell or a file of the learner's, outside libraries and this package."""
    foreign = {sysconfig.get_path(each) for each in ("stdlib", "platstdlib", "purelib", "platlib")}
    foreign |= {str(Path(jax.__file__).parent), str(Path(__file__).parents[1])}
    return not filename.startswith((*foreign, "<frozen", "<string>", "<__array_function__"))


def _settings_here() -> dict[str, Any]:
    names = ["jax_enable_x64", *_SETTINGS]
    return {name: getattr(jax.config, name) for name in names}


@contextlib.contextmanager
def _as_set(settings: Mapping[str, Any]) -> Iterator[None]:
    """Gives this thread the settings of another, and leaves alone what it has already, or all is compiled anew."""
    with contextlib.ExitStack() as stack:
        for name, value in settings.items():
            if getattr(jax.config, name) != value:
                stack.enter_context(_context(name)(value))
        yield


def _context(name: str) -> Callable:
    if name != "jax_enable_x64":
        return getattr(jax, _SETTINGS[name])
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64
    return importlib.import_module("jax.experimental").enable_x64  # JAX before 0.8


def _set_back(before: Mapping[str, Any]) -> tuple[str, ...]:
    now = dict(jax.config.values)
    changed = tuple(name for name, value in before.items() if now.get(name) != value)
    for name in changed:
        jax.config.update(name, before[name])
    return changed


def _end(thread: threading.Thread) -> None:
    """Raises an exception in the thread, a few times in case that it is caught."""
    for _ in range(5):
        if thread.ident is None or not thread.is_alive():
            return
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(TimeIsUpError))
        thread.join(0.3)
