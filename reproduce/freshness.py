"""Whether a run still stands for what it was made from: by content, never by time stamps."""

import hashlib
import json
import platform
import sys
from pathlib import Path

import msgspec

from . import environment
from .checkout import Checkout, RunFolder
from .execute import FINISHED, Outcome
from .notebooks import Source
from .records import write_atomically

# The part of the harness that runs inside the kernel; the rest cannot move a number.
KERNEL_MODULES = ("log", "plain_log", "records", "figure_data", "environment", "probes")

Parts = dict[str, str]


class Status(msgspec.Struct, frozen=True):
    """How the last attempt at a run ended, what it was made from, and the digest of its record."""

    outcome: Outcome
    parts: Parts
    record_sha256: str = ""
    seconds: float = 0.0


def parts(checkout: Checkout, source: Source, parameters: dict, kernel_environment: dict[str, str]) -> Parts:
    """One digest for each thing that a run depends on, so that a re-run can say which of them changed."""
    steering = {name: value for name, value in kernel_environment.items() if name.startswith(("JAX_", "XLA_"))}
    machine = {
        "python": platform.python_version(),
        "prefix": sys.prefix,
        "versions": environment.versions(),
        "processor": environment.processor(),
        "threads": environment.threads(),
    }
    return {
        "source": source.sha256,
        "parameters": _digest(parameters),
        "package code": code_digest(checkout),
        "flags": _digest(steering),
        "environment": _digest(machine),
    }


def changed(folder: RunFolder, now: Parts) -> list[str]:
    """What keeps the run in `folder` from being fresh; empty where it can stand."""
    status = read_status(folder)
    if status is None:
        return ["never run"]
    if status.outcome.ended != FINISHED:
        return ["the last run did not end well"]
    digest = file_digest(folder.record)
    if not digest or digest != status.record_sha256 or not folder.environment.exists():
        return ["its files were changed or removed"]
    return [f"{name} changed" for name in now if now[name] != status.parts.get(name)]


def read_status(folder: RunFolder) -> Status | None:
    """The status of the last attempt, or None where there is none that can be read."""
    try:
        return msgspec.json.decode(folder.status.read_bytes(), type=Status)
    except (OSError, msgspec.DecodeError):
        return None


def write_status(folder: RunFolder, status: Status) -> None:
    """Keep the status beside the run."""
    write_atomically(folder.status, msgspec.json.encode(status))


def file_digest(path: Path) -> str:
    """SHA-256 of a file, or "" where there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def code_digest(checkout: Checkout) -> str:
    """Digest of all code of ours that runs inside a kernel."""
    files = sorted((checkout.root / "contrastive_jax").rglob("*.py"))
    files += [checkout.root / "reproduce" / f"{module}.py" for module in KERNEL_MODULES]
    return _digest({str(path.relative_to(checkout.root)): file_digest(path) for path in files})


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
