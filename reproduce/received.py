"""Files that someone else may have written: plain files of a bounded size, inside their folder, of one form."""

import errno
import os
import re
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from .errors import HarnessError

Kind = TypeVar("Kind")


def decode(path: Path, kind: type[Kind], most: int, *, what: str, then: str) -> Kind:
    """Read a JSON file of at most `most` bytes.

    Args:
        path: the file.
        kind: what it is to hold.
        most: how many bytes it may have.
        what: what it is not, where it cannot be read.
        then: the next step in that case.

    Raises:
        HarnessError: it is missing, no plain file, too large, no JSON or of another form. The message names the file,
            and the line where it is no JSON.
    """
    content = b""
    try:
        content = _content(path, most)
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        where, why = path, error
    except msgspec.DecodeError as error:
        where, why = f"{path}:{_line(content, str(error))}", error
    except RecursionError:
        where, why = path, "brackets nested without end"
    except OSError as error:
        where, why = path, error.strerror
    raise HarnessError(f"{where}: {what}: {why}. {then}")


def _content(path: Path, most: int) -> bytes:
    # A pipe would keep its reader waiting, a device would never end.
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no plain file")
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than the {most // 2**20} MiB that such a file may have")
    return content


def _line(content: bytes, error: str) -> int:
    """The line that a decoding error means: at the byte it names, at the first byte that is no UTF-8, or the last."""
    named = re.search(r"\(byte (\d+)\)", error)
    place = int(named[1]) if named else len(content)
    if "UTF-8" in error:
        try:
            content.decode()
        except UnicodeDecodeError as wrong:
            place = wrong.start
    return content.count(b"\n", 0, place) + 1


def listed(folder: Path, pattern: str, most: int) -> list[Path]:
    """The files of a folder that fit a pattern, in the order of their names.

    Raises:
        HarnessError: there are more than `most`, or one is not to be read (see `inside`).
    """
    found = sorted(islice(folder.glob(pattern), most + 1))
    if len(found) > most:
        raise HarnessError(
            f"{folder}: more than {most} files {pattern}; at most {most} are read. Compare a part of them."
        )
    return [inside(folder, path) for path in found]


def inside(folder: Path, path: Path) -> Path:
    """The path of a file in a folder, if it stays there and its name can be shown.

    Raises:
        HarnessError: it is a link out of the folder or to nothing, no plain file, or has signs in its name that are
            not printed.
    """
    if not str(path.relative_to(folder)).isprintable():
        raise HarnessError(f"{folder}: a file is called {str(path.relative_to(folder))!r}. Rename it.")
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise HarnessError(f"{path}: a link that leads out of {folder}. Put the file itself there.")
    if not path.is_file():
        raise HarnessError(f"{path}: not a plain file. Put a record there, or remove it.")
    return path
