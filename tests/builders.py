"""Headers, records, environments and a checkout, built by hand, so that a test says only what it changes."""

import dataclasses
import json
from pathlib import Path
from typing import TypeVar

import msgspec

from reproduce import environment, figures, freshness, noise, notebooks, plain_log, records
from reproduce.checkout import Checkout, RecordedRun
from reproduce.execute import FINISHED, Outcome
from reproduce.figure_data import Bar, BarGroup, Curve, FigureData, Heatmap, Level, Line
from reproduce.records import Claim, Entry, Figure, Header, Metric, Record, Series, Text

REPOSITORY = Path(__file__).parent.parent
STEM, NOTEBOOK, FOLDER = "01_demo", "demo-01", "jax-0.0.0_cpu"

LINE = Line(
    series=[Curve("training loss", [0, 1, 2], [1.5, 0.5, 0.25]), Curve("held-out loss", [0, 1, 2], [1.5, 0.75, 0.5])],
    xlabel="updates",
    ylabel="loss (nats)",
    title="Loss",
    levels=[Level("chance", 1.375)],
)
HEATMAP = Heatmap([[1.0, -0.5], [0.25, 1.0]], ["left 0", "left 1"], ["right 0", "right 1"], "cosine", "right", "left")
BAR = Bar(["a", "b"], [BarGroup("before", [0.25, 0.5]), BarGroup("after", [0.75, 1.0])], "encoder", "accuracy")
FIGURE = FigureData([LINE, HEATMAP, BAR], "A falling loss, a table of cosines and rising bars.")

# Every value is a number of float32 too. None is zero, so that each can be changed by a factor.
ENTRIES: tuple[Entry, ...] = (
    Metric("train/loss", 0.56640625, unit="nats"),
    Metric("pairs", 4),
    Metric("accuracy", 0.75, step=10),
    Series("train/curve", [2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, -0.5], unit="nats"),
    Claim("learns", True, 1.5, "first - last loss"),
    Claim("ranks/all_rows", True, 0.75, "own cosine - best rival's"),
    Figure("demo-01", FIGURE),
    Text("pairing", "row i belongs to row i"),
)

SOURCE = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A demonstration
#
# What you will be able to do: nothing. You need nothing, and 1 minute.

# %% tags=["parameters"]
PRECISION = "float32"
LOG_PATH = ""
RATE = 0.5
STEPS = 3

# %%
from contrastive_jax.exercises import judge
from reproduce.log import RunLog

log = RunLog(
    LOG_PATH, notebook="demo-01", stem="01_demo", precision=PRECISION, parameters={"RATE": RATE, "STEPS": STEPS}
)

# %% [markdown]
# The loss ends at 0.5664<!-- record: train/loss --> nats, at a rate of 0.5<!-- parameter: RATE -->.

# %% [markdown]
# **Difficulty** one of three, 5 minutes. Hint 1: think. Hint 2: think again.


# %% tags=["exercise"]
def double(x):
    \"\"\"Twice `x`.\"\"\"
    # TODO 1: return ...
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION


# %%
judge(double)

# %% [markdown]
# **Common mistake.** Squaring.

# %% [markdown]
# <!-- SOLUTION -->

# %%
log.close()
"""


_DRAWN: dict[bytes, bytes] = {}
_draw = figures.to_svg


def draw_once(data: FigureData) -> bytes:
    """`figures.to_svg`, which takes a tenth of a second, with a memory."""
    key = msgspec.json.encode(data)
    if key not in _DRAWN:
        _DRAWN[key] = _draw(data)
    return _DRAWN[key]


def header(**changes) -> Header:
    """The header of a record; `changes` replace fields."""
    fields = {
        "schema": records.SCHEMA,
        "notebook": NOTEBOOK,
        "stem": STEM,
        "source_sha256": "5" * 64,
        "precision": "float64",
        "parameters": {"RATE": 0.5, "STEPS": 3},
    }
    return Header(**(fields | changes))


def record(*entries: Entry, **changes) -> Record:
    """A record that has been to bytes and back; `changes` replace fields of its header."""
    return records.parse(records.encode(header(**changes), list(entries)), "built")


def signed(*lines: bytes | str, head: Header | None = None) -> bytes:
    """A record file of raw lines with a last line that is right for them."""
    raw = [line if isinstance(line, bytes) else line.encode() for line in lines]
    body = records.encode_line(head or header()) + b"".join(line + b"\n" for line in raw)
    return body + records.footer_line(body, len(raw))


Struct = TypeVar("Struct", bound=msgspec.Struct)


def changed(struct: Struct, **changes) -> Struct:
    """An entry or a part of figure data with other fields."""
    return msgspec.structs.replace(struct, **changes)


def floats_changed(entries: tuple[Entry, ...], change) -> list[Entry]:
    """The entries with `change` applied to every float, by way of JSON and so without the harness's own code."""
    numeric = ("value", "values", "x", "y")

    def walk(value, name):
        if isinstance(value, dict) and "black" in value:
            return value  # a picture: its greys have bounds, and none is a result
        if isinstance(value, dict):
            return {key: walk(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, name) for item in value]
        return change(value) if isinstance(value, float) and name in numeric else value

    lines = [json.loads(records.encode_line(entry)) for entry in entries]
    return [msgspec.convert(walk(line, ""), Entry) for line in lines]


def an_environment(**changes) -> environment.Environment:
    """An environment, drawn with the matplotlib that is installed."""
    fields = {
        "date": "2030-01-02",
        "python": "3.11.7",
        "system": "Linux",
        "machine": "x86_64",
        "processor": "A processor",
        "cpu_features": ["avx2", "fma"],
        "threads": 2,
        "versions": {"jax": "0.0.0", "matplotlib": environment.versions()["matplotlib"]},
        "flags": {},
        "backend": "cpu",
        "device": "cpu",
        "x64": False,
        "threefry_partitionable": True,
        "matmul_precision": "highest",
        "probes": {"random/bits": "0123456789ab", "exp": "ba9876543210"},
    }
    return environment.Environment(**(fields | changes))


def both_environments(**changes) -> dict[str, environment.Environment]:
    """An environment for each precision."""
    return {precision: an_environment(x64=precision == "float64", **changes) for precision in records.PRECISIONS}


@dataclasses.dataclass(frozen=True)
class Demo:
    """A checkout with one notebook, and where its parts lie."""

    checkout: Checkout

    @property
    def source_file(self) -> Path:
        return self.checkout.root / "notebooks" / f"{STEM}.py"

    @property
    def source(self) -> notebooks.Source:
        return notebooks.read(self.source_file)

    @property
    def recorded(self) -> RecordedRun:
        return RecordedRun(self.checkout.recorded_runs / FOLDER, STEM)

    def put_reference(self, entries: tuple[Entry, ...] = ENTRIES) -> None:
        """Write a reference with all its files."""
        folder = self.recorded.folder
        precisions = {}
        for precision in records.PRECISIONS:
            content = records.encode(self.header(precision), list(entries))
            records.write_atomically(self.recorded.record(precision), content)
            sha256 = records.parse(content, "built").sha256
            precisions[precision] = noise.PrecisionNoise(sha256, {"no-fusion": "--flag"}, {})
        records.write_atomically(self.recorded.noise, noise.encode(noise.NoiseFile(noise.SCHEMA, STEM, precisions, [])))
        log = plain_log.render(records.read(self.recorded.record("float32")))
        records.write_atomically(self.recorded.log, log.encode())
        records.write_atomically(folder / "ENVIRONMENT.json", environment.encode_recorded(both_environments()))
        records.write_atomically(self.checkout.recorded_runs / "REFERENCE", f"{FOLDER}\n".encode())
        for entry in entries:
            if isinstance(entry, Figure):
                records.write_atomically(self.checkout.figures / f"{entry.name}.svg", draw_once(entry.data))

    def put_run(self, precision: str, entries: tuple[Entry, ...] = ENTRIES, **changes) -> None:
        """Write a finished run."""
        run = self.checkout.run(STEM, precision)
        records.write_atomically(run.record, records.encode(self.header(precision, **changes), list(entries)))
        records.write_atomically(run.environment, environment.encode(both_environments()[precision]))
        self.put_status(precision, Outcome(FINISHED), freshness.file_digest(run.record))

    def put_status(self, precision: str, outcome: Outcome, sha256: str = "") -> None:
        """Write how a run ended."""
        parts = {"package code": freshness.code_digest(self.checkout)}
        freshness.write_status(self.checkout.run(STEM, precision), freshness.Status(outcome, parts, sha256))

    def header(self, precision: str, **changes) -> Header:
        """The header that a run of the notebook writes."""
        return header(precision=precision, source_sha256=self.source.sha256, **changes)


def make_demo(root: Path, *, source: str = SOURCE) -> Demo:
    """A checkout whose runs agree with its reference in everything."""
    demo = Demo(Checkout(root))
    records.write_atomically(demo.source_file, source.encode())
    records.write_atomically(demo.source_file.with_suffix(".ipynb"), notebooks.to_bytes(notebooks.learner(demo.source)))
    demo.put_reference()
    for precision in records.PRECISIONS:
        demo.put_run(precision)
    return demo


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
