"""Record files: what a line may hold, and how a record is read, checked and written whole or not at all.

A record is JSON Lines: a header, one line for each entry, and a last line with the count of entries and the SHA-256
of everything above it, so that a cut or an edit shows. Numbers are written with full precision; NaN and the
infinities, which JSON lacks, stand as strings. Nothing in a record names a host, a path or a time.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from .errors import HarnessError
from .figure_data import FigureData, Number

SCHEMA = 1
MAX_BYTES = 16 * 2**20
MAX_ENTRIES = 10_000
PRECISIONS = ("float32", "float64")

# A name may become part of a file name, so it can neither start with a slash nor climb with "..". `\Z`, because `$`
# would let a newline follow.
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_]+([./-][a-z0-9_]+)*\Z", max_length=100)]
Stem = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_]+\Z", max_length=60)]
# What decoding raises: the first also for a value of the wrong type, the last for brackets nested without end.
_BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
Parameter = bool | int | float | str


class RecordError(HarnessError):
    """A record file that cannot be believed; the message names file and line."""


class Incomplete(RecordError):
    """The record stops before its last line."""


class Header(msgspec.Struct, frozen=True, tag_field="kind", tag="header", forbid_unknown_fields=True):
    """First line. `source_sha256` is "" where the notebook was run by hand, outside the harness."""

    schema: int
    notebook: Name
    stem: Stem
    source_sha256: str
    precision: Literal["float32", "float64"]
    parameters: dict[str, Parameter]


class Metric(msgspec.Struct, frozen=True, tag_field="kind", tag="metric", forbid_unknown_fields=True):
    """One number."""

    name: Name
    value: Number
    unit: str = ""
    step: int | None = None


class Series(msgspec.Struct, frozen=True, tag_field="kind", tag="series", forbid_unknown_fields=True):
    """Numbers of one kind in order, such as a loss at each step."""

    name: Name
    values: list[Number]
    unit: str = ""


class Claim(msgspec.Struct, frozen=True, tag_field="kind", tag="claim", forbid_unknown_fields=True):
    """A statement of the lesson. `margin` says how far it is from failing, in the unit of what was compared."""

    name: Name
    holds: bool
    margin: Number
    compared: str


class Figure(msgspec.Struct, frozen=True, tag_field="kind", tag="figure", forbid_unknown_fields=True):
    """A figure as data; its SVG is drawn from this and from nothing else."""

    name: Name
    data: FigureData


class Text(msgspec.Struct, frozen=True, tag_field="kind", tag="text", forbid_unknown_fields=True):
    """A string that must not change."""

    name: Name
    value: str


class Footer(msgspec.Struct, frozen=True, tag_field="kind", tag="end", forbid_unknown_fields=True):
    """Last line: how many entries stand above it, and the SHA-256 of every byte above it."""

    entries: int
    sha256: str


Entry = Metric | Series | Claim | Figure | Text


class Record(msgspec.Struct, frozen=True):
    """A whole record and the digest its last line carries."""

    header: Header
    entries: tuple[Entry, ...]
    sha256: str

    @property
    def figures(self) -> dict[str, FigureData]:
        """The data of its figures by name."""
        return {entry.name: entry.data for entry in self.entries if isinstance(entry, Figure)}


def key(entry: Entry) -> str:
    """The name an entry is found by; a metric logged at several steps has one key for each step."""
    if isinstance(entry, Metric) and entry.step is not None:
        return f"{entry.name}@{entry.step}"
    return entry.name


def encode_line(line: Header | Entry | Footer) -> bytes:
    """One line of a record, newline included."""
    return msgspec.json.encode(line) + b"\n"


def footer_line(body: bytes, entries: int) -> bytes:
    """The last line for a record whose other lines are `body`."""
    return encode_line(Footer(entries, hashlib.sha256(body).hexdigest()))


def encode(header: Header, entries: list[Entry]) -> bytes:
    """A whole record file."""
    body = b"".join(encode_line(line) for line in (header, *entries))
    return body + footer_line(body, len(entries))


def read(path: Path) -> Record:
    """Read and check a record file.

    Raises:
        Incomplete: the last line is missing, so the run that wrote it did not end.
        RecordError: the file is absent, too large, not JSON, of another schema, edited, or holds a bad entry.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}. Give a record file (.jsonl).") from None
    if len(content) > MAX_BYTES:
        raise RecordError(f"{path}: larger than the {MAX_BYTES // 2**20} MiB a record may have.")
    return parse(content, str(path))


def parse(content: bytes, where: str) -> Record:
    """Check the bytes of a record; `where` names them in errors."""
    lines = content.splitlines(keepends=True)
    if not lines:
        raise Incomplete(f"{where}: empty. The run that wrote it did not start; run the notebook again.")
    header = _header(lines[0], where)
    if not lines[-1].endswith(b"\n") or _kind(lines[-1]) != "end":
        raise Incomplete(
            f"{where}:{len(lines)}: the last line should count the entries, and does not: the record is cut short. "
            "Run the notebook again, or restore the file."
        )
    footer = _decode(lines[-1], Footer, where, len(lines))
    _check_digest(lines, footer, where)
    entries = tuple(_decode(line, Entry, where, n) for n, line in enumerate(lines[1:-1], start=2))
    _check_unique(entries, where)
    return Record(header, entries, footer.sha256)


def _header(line: bytes, where: str) -> Header:
    try:
        first = msgspec.json.decode(line)
    except _BAD_JSON:
        raise RecordError(f"{where}:1: not JSON. A record holds one JSON object a line.") from None
    schema = first.get("schema") if isinstance(first, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise RecordError(f"{where}:1: no schema number. This is not a record of this project.")
    if schema != SCHEMA:
        age = "newer" if schema > SCHEMA else "older"
        raise RecordError(
            f"{where}:1: schema {schema} is {age} than the schema {SCHEMA} this harness reads. "
            "Use the harness of the version that wrote it, or record again."
        )
    return _decode(line, Header, where, 1)


def _kind(line: bytes) -> object:
    try:
        decoded = msgspec.json.decode(line)
    except _BAD_JSON:
        return None
    return decoded.get("kind") if isinstance(decoded, dict) else None


def _decode(line: bytes, kind, where: str, number: int):
    try:
        return msgspec.json.decode(line, type=kind)
    except _BAD_JSON as error:
        # The text of a validation error names the field and what was expected there.
        raise RecordError(f"{where}:{number}: {error}. Restore the file or record again.") from None


def _check_digest(lines: list[bytes], footer: Footer, where: str) -> None:
    if footer.entries != len(lines) - 2 or footer.entries > MAX_ENTRIES:
        raise RecordError(
            f"{where}:{len(lines)}: the last line counts {footer.entries} entries, the file holds {len(lines) - 2} "
            f"(at most {MAX_ENTRIES} are read). Lines were lost or added after recording; restore the file."
        )
    found = hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    if found != footer.sha256:
        raise RecordError(
            f"{where}: edited after recording: its last line carries SHA-256 {footer.sha256[:12]}…, the lines above "
            f"give {found[:12]}…. Restore the file, or record again."
        )


def _check_unique(entries: tuple[Entry, ...], where: str) -> None:
    seen: set[str] = set()
    for number, entry in enumerate(entries, start=2):
        if key(entry) in seen:
            raise RecordError(f"{where}:{number}: the entry {key(entry)!r} stands twice. Record again.")
        seen.add(key(entry))


def write_atomically(path: Path, content: bytes) -> None:
    """Put `content` at `path` by a rename, so that a reader sees the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files for their owner alone; a record is for everyone who can read the checkout.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
