"""A small checkout with a reference, and stand-ins for uv and for interpreters: a matrix without network or real JAX.

The stand-in for uv makes a true virtual environment, in which jax and its two followers are empty distributions of the
wanted versions; everything else comes from the environment that runs the tests.
"""

import json
import sys
import sysconfig
from pathlib import Path

from builders import both_environments
from small_checkout import CLOSE, LIGHT, OPEN, Finished, SmallCheckout

from reproduce import environment, noise, notebooks, records
from reproduce.records import Claim, Metric, Series

FAKE_UV = """
import os, pathlib, re, sys, time, venv
said = sys.argv[1:]
with open(os.environ["CALLS"], "a") as calls:
    print(*said, file=calls)
def option(name):
    return pathlib.Path(said[said.index(name) + 1])
if said[:2] == ["python", "dir"]:
    print(os.environ.get("MANAGED", "/nowhere"))
elif said[0] == "venv":
    venv.create(said[-1], symlinks=True)
    (site,) = pathlib.Path(said[-1]).glob("lib/python*/site-packages")
    # Where Python is asked for what is installed here, isolated, only this environment counts.
    (site / "tests.pth").write_text("import sys; sys.flags.isolated or sys.path.append(REAL)\\n")
elif said[:2] == ["pip", "compile"]:
    wanted = re.search("jax==(.*)", option("--constraint").read_text())[1]
    if wanted in os.environ.get("REFUSED", "").split():
        sys.exit(f"  × No solution found when resolving:\\n  ╰─▶ Because there is no\\n      jax=={wanted}.")
    if os.environ.get("UV_SAYS"):
        sys.exit(os.environ["UV_SAYS"])
    wishes = option("--output-file")
    follow = f"jax=={wanted}\\njaxlib=={wanted}\\noptax==0.1.{wanted.split('.')[1]}\\n"
    wishes.write_text("# made by uv\\n" + follow + re.sub(" ;.*", "", wishes.read_text()))
elif said[:2] == ["pip", "sync"]:
    if os.environ.get("HOLDS"):
        pathlib.Path(os.environ["HOLDS"]).touch()
        time.sleep(1000)
    (site,) = option("--python").parent.parent.glob("lib/python*/site-packages")
    for name, version in re.findall("^([^#].*)==(.*)$", pathlib.Path(said[-1]).read_text(), re.MULTILINE):
        if name != os.environ.get("FORGETS"):
            folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
"""

PINS = """\
# made by hand
jax==0.9.2           # via us
jaxlib==0.9.2
ml-dtypes==0.6.0
optax==0.2.8
tiny-one==1.0  # via us
"""
PYPROJECT = (
    '[project]\nname = "tiny"\ndependencies = ["jax"]\n[project.optional-dependencies]\nnotebooks = ["tiny-one"]\n'
)

# What a release changes is one number, from JAX 0.7.1 on, by sixteen floors.
FLOOR = 2.0**-14
BY_RELEASE = f"""
import importlib.metadata

release = tuple(int(part) for part in importlib.metadata.version("jax").split("."))
log.metric("moving", 1.0 + {16 * FLOOR} * (release >= (0, 7, 1)))
"""
ENTRIES = (
    Metric("product", 1.5),
    Series("halves", [1.0, 0.5, 0.25]),
    Claim("rate_is_positive", True, 0.5, "RATE > 0"),
    Metric("moving", 1.0),
)
# No interpreter but those that a test puts on PATH: the one that runs the tests may fit, too.
ALONE = "import types\nfrom reproduce import interpreters\ninterpreters.sys = types.SimpleNamespace(executable='')\n"


class SmallMatrix:
    """A small checkout that a matrix can be made of."""

    def __init__(self, small: SmallCheckout, tools: Path):
        self.small, self.root, self.tools, self.calls = small, small.root, tools, tools / "calls"
        tools.mkdir()
        (self.root / "requirements.txt").write_text(PINS)
        (self.root / "pyproject.toml").write_text(PYPROJECT)
        (tools / "uv.py").write_text(FAKE_UV.replace("REAL", repr(sysconfig.get_path("purelib"))))
        self.tool("uv", f'exec "{sys.executable}" "{tools}/uv.py" "$@"')
        self.interpreter("python3.11", "3.11")

    def tool(self, name: str, script: str) -> Path:
        """Put a program on PATH."""
        path = self.tools / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def interpreter(self, name: str, version: str) -> Path:
        """Put an interpreter on PATH that says it has this version."""
        return self.tool(name, f'echo {version}\necho "$0"')

    def notebook(self, stem: str, *cells: str) -> None:
        """Write a notebook that logs what the release changes, and its reference, written by hand."""
        path = self.small.notebook(stem, LIGHT, OPEN, BY_RELEASE, *cells, CLOSE)
        folder = self.small.paths.recorded_runs / "jax-0_cpu"
        measured = {}
        for precision in records.PRECISIONS:
            header = records.Header(
                records.SCHEMA, "tiny", stem, notebooks.read(path).sha256, precision, {"RATE": 0.5, "STEPS": 3}
            )
            content = records.encode(header, list(ENTRIES))
            (folder / f"{stem}.{precision}.jsonl").write_bytes(content)
            digest = json.loads(content.splitlines()[-1])["sha256"]
            measured[precision] = noise.PrecisionNoise(digest, {}, {"moving": {"value": [FLOOR]}})
        (folder / f"{stem}.noise.json").write_bytes(
            noise.encode(noise.NoiseFile(noise.SCHEMA, stem, measured, stream_free=[]))
        )
        (folder / "ENVIRONMENT.json").write_bytes(environment.encode_recorded(both_environments()))

    def variables(self, **more: str) -> dict[str, str]:
        """An environment that leads to nothing but the stand-ins."""
        alone = {"PATH": str(self.tools), "HOME": str(self.tools), "PYENV_ROOT": str(self.tools / "pyenv")}
        return {**alone, "CALLS": str(self.calls), **more}

    def command(self, *arguments: str, before: str = "", publishes: bool = False, **more: str) -> Finished:
        """Run a command of the harness."""
        return self.small.command(
            *arguments, environment=self.variables(**more), before=ALONE + before, publishes=publishes
        )

    def uv_calls(self) -> list[str]:
        """What uv was asked to do since this was last called."""
        found = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return [call for call in found if call != "python dir"]

    def recorded(self, release: str) -> dict[str, bytes]:
        """The files of a recorded run."""
        folder = self.small.paths.recorded_runs / f"jax-{release}_cpu"
        return {path.name: path.read_bytes() for path in folder.glob("*")}
