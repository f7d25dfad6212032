"""What a run was made with, taken inside the kernel that ran it.

None of it stands in the compared lines of a record. It names no host, no user and no path.
"""

import datetime
import importlib.metadata
import os
import platform
import re
import sys
from pathlib import Path

import msgspec

from . import received
from .errors import HarnessError
from .records import PRECISIONS, write_atomically

# The harness tells the kernel where to put the answer, and which installation it should be running in.
TARGET_VARIABLE = "REPRODUCE_ENVIRONMENT"
PREFIX_VARIABLE = "REPRODUCE_PREFIX"
MAX_BYTES = 2**20
PACKAGES = ("jax", "jaxlib", "numpy", "ml_dtypes", "optax", "scipy", "matplotlib", "papermill", "ipykernel")
# The instruction sets XLA chooses between, each with the limit of --xla_cpu_max_isa that first lets it in. Limits stand
# in XLA's own order; other processors than x86 have none.
LIMITS = ("SSE4_2", "AVX", "AVX2", "AVX512", "AVX512_VNNI", "AVX512_BF16", "AMX", "AMX_FP16")
FEATURES = {
    "sse4_2": "SSE4_2",
    "avx": "AVX",
    "avx2": "AVX2",
    "fma": "AVX2",
    "avx512f": "AVX512",
    "avx512_vnni": "AVX512_VNNI",
    "avx512_bf16": "AVX512_BF16",
    "amx_bf16": "AMX",
    "asimd": "",
    "sve": "",
}


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run's environment.

    `cpu_features` are the instruction sets the run could use: those of the processor, within the limit of the flags.
    `probes` are fingerprints of small computations in the run's precision.
    """

    date: str
    python: str
    system: str
    machine: str
    processor: str
    cpu_features: list[str]
    threads: int
    versions: dict[str, str]
    flags: dict[str, str]
    backend: str
    device: str
    x64: bool
    threefry_partitionable: bool
    matmul_precision: str
    probes: dict[str, str]


def versions() -> dict[str, str]:
    """Installed versions of what can move a number or a mark."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def flags() -> dict[str, str]:
    """The variables by which a user steers JAX and XLA."""
    return {name: value for name, value in sorted(os.environ.items()) if re.match(r"(JAX|XLA)_", name) and value}


def processor() -> tuple[str, list[str]]:
    """Processor name and the instruction sets it offers, as far as the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine(), []
    model = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    listed = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    offered = set(listed[1].split()) if listed else set()
    return (model[1] if model else platform.machine()), [name for name in FEATURES if name in offered]


def usable(offered: list[str], xla_flags: str) -> list[str]:
    """The instruction sets that XLA may use: those offered, within the limit that the last such flag sets."""
    named = re.findall(r"--xla_cpu_max_isa=(\S+)", xla_flags)
    if not named or named[-1].upper() not in LIMITS:
        return offered
    allowed = LIMITS[: LIMITS.index(named[-1].upper()) + 1]
    return [name for name in offered if FEATURES[name] in ("", *allowed)]


def threads() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def capture() -> Environment:
    """The environment of this process. Imports JAX, and runs the probes in the precision now set."""
    import jax

    from . import probes

    def setting(option: str):
        # Attributes of the configuration are made at run time, and `config.read` refuses some of them.
        return getattr(jax.config, option)

    name, features = processor()
    device = jax.devices()[0]
    return Environment(
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        python=platform.python_version(),
        system=platform.system(),
        machine=platform.machine(),
        processor=name,
        cpu_features=usable(features, os.environ.get("XLA_FLAGS", "")),
        threads=threads(),
        versions=versions(),
        flags=flags(),
        backend=jax.default_backend(),
        device=device.device_kind,
        x64=bool(setting("jax_enable_x64")),
        threefry_partitionable=bool(setting("jax_threefry_partitionable")),
        matmul_precision=str(setting("jax_default_matmul_precision")),
        probes=probes.fingerprints(),
    )


def write_from_kernel() -> None:
    """The harness's last cell of a run: write this kernel's environment where the harness asked for it.

    Raises:
        HarnessError: the kernel runs in another installation than the harness.
    """
    expected = os.environ[PREFIX_VARIABLE]
    if os.path.realpath(sys.prefix) != os.path.realpath(expected):
        raise HarnessError(
            f"the kernel runs in {sys.prefix}, the harness in {expected}; start both from one environment"
        )
    write_atomically(Path(os.environ[TARGET_VARIABLE]), encode(capture()))


def encode(environment: Environment) -> bytes:
    """An environment as an indented JSON file."""
    return _indented(environment)


def encode_recorded(environments: dict[str, Environment]) -> bytes:
    """`ENVIRONMENT.json` of a folder of records: the environment of each precision."""
    return _indented(environments)


def read(path: Path) -> Environment:
    """Read the environment of one run.

    Raises:
        HarnessError: it is missing or not of this form.
    """
    return _read(path, Environment)


def read_recorded(folder: Path) -> dict[str, Environment]:
    """Read `ENVIRONMENT.json` of a folder of records.

    Raises:
        HarnessError: it is missing, not of this form, or lacks a precision.
    """
    path = folder / "ENVIRONMENT.json"
    found = _read(path, dict[str, Environment])
    if set(found) != set(PRECISIONS):
        names = ", ".join(found) or "nothing"
        raise HarnessError(f"{path}: describes {names}, expected {' and '.join(PRECISIONS)}. Record again.")
    return found


def same(one: Environment, other: Environment) -> bool:
    """Whether two runs were made alike; the day does not count."""
    return msgspec.structs.replace(one, date="") == msgspec.structs.replace(other, date="")


def describe(environment: Environment) -> str:
    """When, on which JAX and on which device."""
    device = f"{environment.device} ({environment.processor})"
    return f"recorded {environment.date} with JAX {environment.versions['jax']} on {device}"


def _indented(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n"


def _read(path: Path, kind):
    return received.decode(path, kind, MAX_BYTES, what="not a readable environment record", then="Record again.")
