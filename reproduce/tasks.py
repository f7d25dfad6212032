"""Which runs there are, and the settings every kernel gets."""

import math
import os
from dataclasses import dataclass, field

from . import environment, noise, notebooks, records
from .checkout import Checkout, RunFolder
from .errors import HarnessError

# Settings of every kernel: they make a run depend on nothing but what is recorded.
KERNEL_SETTINGS = {
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "COLUMNS": "80",
    "MPLBACKEND": "agg",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "JUPYTER_PREFER_ENV_PATH": "1",
}
# Settings a user may change; what was used is recorded.
KERNEL_DEFAULTS = {"JAX_PLATFORMS": "cpu", noise.STREAM_SETTING: "1"}
# A cache of compiled code would let one run inherit another's compiler flags; precision comes from the parameter.
# JUPYTER_PATH would lead to kernels of the user's own.
KERNEL_WITHOUT = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_X64", "JUPYTER_PATH", "PYTHONPATH", "PYTHONSTARTUP")


@dataclass(frozen=True)
class Limits:
    """Seconds that a cell and a whole notebook may take."""

    cell: int = 600
    notebook: int = 1800


@dataclass(frozen=True)
class Task:
    """One run to be made: a notebook in one precision, perhaps with changed parameters, settings or added XLA flags."""

    source: notebooks.Source
    precision: str
    folder: RunFolder
    overrides: dict[str, bool | int | float | str] = field(default_factory=dict)
    xla_flags: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How progress lines call it."""
        return self.folder.path.name.replace(".", " ")

    @property
    def parameters(self) -> dict[str, bool | int | float | str]:
        """What the record calls the parameters: the cell's values with the changes, without the harness's own."""
        merged = {**self.source.parameters, **self.overrides}
        return {name: value for name, value in merged.items() if name not in notebooks.HARNESS_PARAMETERS}


def kernel_environment(xla_flags: str = "", settings: dict[str, str] | None = None) -> dict[str, str]:
    """The environment variables of a kernel: this process's, the settings above, and those of one task."""
    kept = {name: value for name, value in os.environ.items() if name not in KERNEL_WITHOUT}
    merged = {**KERNEL_DEFAULTS, **kept, **KERNEL_SETTINGS, **(settings or {})}
    flags = " ".join(filter(None, [merged.get("XLA_FLAGS", ""), xla_flags]))
    return {**merged, "XLA_FLAGS": flags} if flags else merged


def steering() -> dict[str, str]:
    """The caller's settings of JAX and XLA that differ from how records are made."""
    return {name: value for name, value in environment.flags().items() if KERNEL_DEFAULTS.get(name) != value}


def plain_tasks(checkout: Checkout, source: notebooks.Source, overrides: dict | None = None) -> list[Task]:
    """A notebook's runs as they are compared: one for each precision."""
    return [
        Task(source, precision, checkout.run(source.stem, precision), overrides or {})
        for precision in records.PRECISIONS
    ]


def perturbed_tasks(checkout: Checkout, source: notebooks.Source) -> list[Task]:
    """A notebook's runs under every perturbation, in both precisions, and in float32 one with the other stream."""
    other_stream = {noise.STREAM_SETTING: "0"}
    folder = checkout.perturbed_run(source.stem, "float32", noise.OTHER_STREAM)
    return [
        *(
            Task(source, precision, checkout.perturbed_run(source.stem, precision, name), xla_flags=flag)
            for precision in records.PRECISIONS
            for name, flag in noise.perturbations().items()
        ),
        Task(source, "float32", folder, settings=other_stream),
    ]


def check_overrides(source: notebooks.Source, overrides: dict) -> None:
    """Refuse a parameter the notebook does not have, or a value of another type, before anything starts.

    Raises:
        HarnessError: with the names there are.
    """
    known = {n: v for n, v in source.parameters.items() if n not in notebooks.HARNESS_PARAMETERS}
    for name, value in overrides.items():
        if name not in known:
            raise HarnessError(f"{source.stem} has no parameter {name!r}; it has {', '.join(known)}. Nothing was run.")
        wanted = type(known[name])
        fits = type(value) is wanted or (wanted is float and type(value) is int)
        if not fits or (isinstance(value, float) and not math.isfinite(value)):
            raise HarnessError(
                f"{source.stem}: {name} takes a value like {known[name]!r}, found {value!r}. Nothing was run."
            )
