"""One environment for each JAX release, made by uv under `.matrix/`, with as little as can be apart from the pins.

What a notebook run needs has the versions of requirements.txt. Only jax, jaxlib and optax follow the release, and three
more packages may where a release leaves no choice. An environment counts only once its stamp is written, which is the
last step; the stamp says what was installed, and from which pins.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from . import pins
from .errors import HarnessError
from .installer import explain
from .records import write_atomically

FOLLOW = ("jax", "jaxlib", "optax")
# uv keeps these as pinned where the release allows it.
MAY_FOLLOW = ("ml-dtypes", "scipy", "opt-einsum")
STAMP = "matrix.json"
# They would lead uv or the new Python away from the environment.
STRAY = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "UV_SYSTEM_PYTHON", "UV_PYTHON", "UV_PROJECT_ENVIRONMENT")
_LIST = (
    "import importlib.metadata, json, platform, re; print(json.dumps([platform.python_version(), "
    "{re.sub('[-_.]+', '-', d.name).lower(): d.version for d in importlib.metadata.distributions()}]))"
)


class Stamp(msgspec.Struct, frozen=True):
    """What a finished environment was made from and holds."""

    folder: str
    inputs: str
    python: str
    installed: dict[str, str]


@dataclass(frozen=True)
class Isolated:
    """The environment of one release in a checkout."""

    root: Path
    release: str

    @property
    def folder(self) -> Path:
        """The virtual environment."""
        return self.root / ".matrix" / self.release

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / "bin" / "python"

    def stamp(self) -> Stamp | None:
        """The stamp where the environment can stand as it is; None where it has to be made."""
        try:
            stamp = msgspec.json.decode((self.folder / STAMP).read_bytes(), type=Stamp)
        except (OSError, msgspec.DecodeError):
            return None
        if (stamp.folder, stamp.inputs) != (str(self.folder), self._inputs()):
            return None
        return stamp if self._answers() == (stamp.python, stamp.installed) else None

    def make(self, uv: str, interpreter: str) -> Stamp:
        """Make it from nothing, with uv and an interpreter that fits.

        Raises:
            HarnessError: it could not be made; the text says why and what to do.
        """
        self._clear()
        self._uv(uv, "venv", "--python", interpreter, str(self.folder))
        constraints, locked = self.folder / "constraints.txt", self.folder / "requirements.txt"
        constraints.write_text("\n".join([*self._pinned(but=FOLLOW + MAY_FOLLOW), f"jax=={self.release}", ""]), "utf-8")
        # uv takes the versions in the file it is to write as wishes, and the constraints as orders.
        locked.write_text("\n".join([*self._pinned(but=FOLLOW), ""]), "utf-8")
        what = ["--extra", "notebooks", "--constraint", str(constraints), "--output-file", str(locked)]
        plain = ["--no-emit-index-url", "--no-annotate", "--no-header"]
        self._uv(uv, "pip", "compile", "--python", str(self.python), *what, *plain, str(self.root / "pyproject.toml"))
        self._uv(uv, "pip", "sync", "--python", str(self.python), str(locked))
        answer = self._answers()
        wanted = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", locked.read_text("utf-8"), re.MULTILINE))
        if answer is None or not wanted or answer[1] != wanted:
            raise HarnessError(f"{self.folder} does not hold what uv was told to install. Remove it and run again.")
        stamp = Stamp(str(self.folder), self._inputs(), *answer)
        write_atomically(self.folder / STAMP, msgspec.json.format(msgspec.json.encode(stamp, order="sorted")))
        return stamp

    def departures(self, stamp: Stamp) -> dict[str, str]:
        """The packages, with their versions, that the pins have otherwise or not at all."""
        pinned = {pin.name: pin.version for pin in pins.read(self.root)}
        return {name: version for name, version in sorted(stamp.installed.items()) if pinned.get(name) != version}

    def _pinned(self, but: tuple[str, ...]) -> list[str]:
        pins.read(self.root)  # speaks up where a line is no pin
        lines = (
            line.split("#")[0].strip() for line in (self.root / "requirements.txt").read_text("utf-8").splitlines()
        )
        return [line for line in lines if line and line.split("==")[0] not in but]

    def _inputs(self) -> str:
        project = tomllib.loads((self.root / "pyproject.toml").read_text("utf-8"))["project"]
        asked = [project.get("dependencies"), project.get("optional-dependencies", {}).get("notebooks")]
        made_from = [asked, self._pinned(but=FOLLOW), FOLLOW, MAY_FOLLOW, self.release]
        return hashlib.sha256(msgspec.json.encode(made_from)).hexdigest()

    def _clear(self) -> None:
        """Remove what is in its place, the stamp first, so that a removal cut short cannot pass for an environment."""
        if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
            raise HarnessError(f"{self.folder} is in the way of an environment. Move it away, then run this again.")
        if self.folder.exists():
            (self.folder / STAMP).unlink(missing_ok=True)
            shutil.rmtree(self.folder)
        self.folder.parent.mkdir(exist_ok=True)

    def _answers(self) -> tuple[str, dict[str, str]] | None:
        """The version of its Python and all that it has installed; None where it does not answer."""
        try:
            command = [str(self.python), "-I", "-c", _LIST]
            answer = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
            return msgspec.json.decode(answer.stdout, type=tuple[str, dict[str, str]])
        except (OSError, msgspec.DecodeError):
            return None

    def _uv(self, uv: str, *arguments: str) -> None:
        variables = {name: value for name, value in os.environ.items() if name not in STRAY}
        done = subprocess.run(
            [uv, *arguments],
            cwd=self.root,
            env={**variables, "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise HarnessError(_why(done.stdout))


def _why(output: str) -> str:
    """What made uv fail, in one sentence: the conclusion that it draws, or else a known cause or its own words."""
    # Older releases of uv draw an arrow before it, newer ones write a word.
    concluded = re.search(r"No solution found[^\n]*\n\s*(?:╰─▶|cause:)(.+?)(?:\n\s*hint:|\Z)", output, re.DOTALL)
    if concluded:
        return f"uv finds no versions that fit together: {' '.join(concluded[1].split()).rstrip('.')}."
    return explain(output)
