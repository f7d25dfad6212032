"""Where everything lies in a checkout, named once."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from .errors import HarnessError
from .records import PRECISIONS

# The harness tells another process of its own which build folder to use.
BUILD_VARIABLE = "REPRODUCE_BUILD"


@dataclass(frozen=True)
class RunFolder:
    """What one run of one notebook in one precision leaves under `build/`."""

    path: Path

    @property
    def record(self) -> Path:
        """The record, published once the run has ended well."""
        return self.path / "record.jsonl"

    @property
    def partial(self) -> Path:
        """The record as the kernel writes it; what a failed run had logged stays here."""
        return self.path / "partial.jsonl"

    @property
    def environment(self) -> Path:
        """Versions, flags, processor and probes, taken inside the kernel."""
        return self.path / "environment.json"

    @property
    def status(self) -> Path:
        """How the last attempt ended and what it was made from."""
        return self.path / "status.json"

    @property
    def executed(self) -> Path:
        """The executed notebook, for looking at a failure."""
        return self.path / "executed.ipynb"

    @property
    def stderr(self) -> Path:
        """What the run wrote to standard error."""
        return self.path / "stderr.txt"


@dataclass(frozen=True)
class RecordedRun:
    """The files of one notebook in a folder of `recorded_runs/`."""

    folder: Path
    stem: str

    def record(self, precision: str) -> Path:
        """The record in one precision."""
        return self.folder / f"{self.stem}.{precision}.jsonl"

    @property
    def noise(self) -> Path:
        """The noise floors of both precisions."""
        return self.folder / f"{self.stem}.noise.json"

    @property
    def log(self) -> Path:
        """The float32 record as plain text."""
        return self.folder / f"{self.stem}.log"

    @property
    def files(self) -> tuple[Path, ...]:
        """All files of the notebook."""
        return (*(self.record(precision) for precision in PRECISIONS), self.noise, self.log)


@dataclass(frozen=True)
class Checkout:
    """A checkout of the project. Another build folder than the usual one holds runs of their own."""

    root: Path
    build_folder: str = "build"

    @property
    def build(self) -> Path:
        """Everything that can be made again; ignored by git."""
        return self.root / self.build_folder

    @property
    def figures(self) -> Path:
        """SVGs of the reference record."""
        return self.root / "figures"

    @property
    def recorded_runs(self) -> Path:
        """One folder an environment."""
        return self.root / "recorded_runs"

    def sources(self, nb: str = "") -> list[Path]:
        """Notebook sources whose name starts with `nb`, in the order of their numbers.

        Raises:
            HarnessError: there is none.
        """
        every = sorted((self.root / "notebooks").glob("[0-9][0-9]_*.py"))
        chosen = [path for path in every if path.stem.startswith(nb)]
        if not chosen:
            known = ", ".join(path.stem for path in every) or "none"
            raise HarnessError(f"no notebook starts with {nb!r}; there are: {known}. Use NB=01, for example.")
        return chosen

    def run(self, stem: str, precision: str) -> RunFolder:
        """The folder of a run."""
        return RunFolder(self.build / "runs" / f"{stem}.{precision}")

    def perturbed_run(self, stem: str, precision: str, perturbation: str) -> RunFolder:
        """The folder of a run under a perturbation that changes rounding but not mathematics."""
        return RunFolder(self.build / "noise" / f"{stem}.{precision}.{perturbation}")

    def reference_name(self) -> str:
        """The folder name of the reference record.

        Raises:
            HarnessError: `recorded_runs/REFERENCE` is missing or does not hold one plain name.
        """
        path = self.recorded_runs / "REFERENCE"
        try:
            name = path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            raise HarnessError(f"{path}: missing. It holds one line, the folder name of the reference.") from None
        if not re.fullmatch(r"\w[\w.+-]*", name):
            raise HarnessError(f"{path}: expected the name of a folder beside it, found {name!r}.")
        return name

    def reference(self, stem: str) -> RecordedRun:
        """The reference record of a notebook."""
        return RecordedRun(self.recorded_runs / self.reference_name(), stem)


def folder_name(version: str, backend: str = "cpu") -> str:
    """The folder of an environment below `recorded_runs/`, such as jax-0.9.2_cpu."""
    return f"jax-{version}_{backend}"


def here() -> Checkout:
    """The checkout this package lies in, unless the environment names another."""
    root = Path(os.environ.get("REPRODUCE_ROOT") or Path(__file__).parent.parent).resolve()
    return Checkout(root, os.environ.get(BUILD_VARIABLE) or "build")
