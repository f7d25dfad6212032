"""Times the losses beside other libraries' and writes benchmarks/losses.md and losses.svg.

    python benchmarks/losses.py --torch PYTHON         # a Python that has benchmarks/requirements.txt
    python benchmarks/losses.py --rounds 2 --sizes 64 256 --largest 2048 --out build

Value and gradients, float32. Each contestant is a process of its own that waits for its turn: all contestants of a
size take turns, one at a time, in another order each round, so that whatever else the machine does meets all of
them. The median is reported.
"""

import argparse
import contextlib
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import losses_report as report

FOLDER = Path(__file__).parent
WIDTH = 128
SIZES = (64, 256, 1024, 4096)
ENOUGH = 30.0  # seconds of one contestant at one size; a slow one sits out the rounds after that
LADDER = (1024, 2048, 4096, 8192, 16384, 32768)
LIBRARIES = {
    "nt_xent": ("tiled", "dense", "optax", "eager", "compiled", "lightly", "pytorch-metric-learning"),
    "paired": ("tiled", "dense", "eager", "compiled", "open_clip"),
}
IN_JAX = ("tiled", "dense", "auto", "optax", "products", "exponentials")
OUT_OF_MEMORY = (
    "RESOURCE_EXHAUSTED",
    "Out of memory",
    "can't allocate memory",
    "bad_alloc",
    "MemoryError",
    "std::length",
)


class Result(NamedTuple):
    """Medians; temporaries by XLA's analysis, None for the others. `failed` says why there are none."""

    seconds: float = float("nan")
    rise: float = float("nan")
    temporaries: int | None = None
    operations: int | None = None
    failed: str | None = None


class Worker:
    """A contestant's process, warmed up, or why it could not be."""

    def __init__(self, python: str, form: str, loss: str, pairs: int):
        script = "losses_jax.py" if form in IN_JAX else "losses_torch.py"
        command = [python, str(FOLDER / script), form, loss, str(pairs), str(WIDTH)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.answers: list[dict] = []
        self.failed: str | None = None
        self.known = self._answer() or {}

    def _answer(self) -> dict | None:
        assert self.process.stdout and self.process.stderr
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        said = self.process.stderr.read()
        self.process.wait()
        short = any(words in said for words in OUT_OF_MEMORY) or self.process.returncode in (-9, 137)
        self.failed = "out of memory" if short else (said.strip().splitlines() or ["no answer"])[-1][:80]
        return None

    def turn(self) -> None:
        if self.failed or sum(each["seconds"] for each in self.answers) > ENOUGH:
            return
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self._answer()
        self.answers += [answer] if answer else []

    def result(self) -> Result:
        if self.failed or not self.answers:
            return Result(failed=self.failed or "not run")
        seconds, rise = (statistics.median(each[key] for each in self.answers) for key in ("seconds", "rise"))
        return Result(seconds, rise, self.known.get("temporaries"), self.known.get("operations"))

    def end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()


def contest(contestants: list[tuple[str, str, str, int]], rounds: int) -> dict[str, Result]:
    """Results by form; each contestant is (python, form, loss, pairs)."""
    workers = {form: Worker(python, form, loss, pairs) for python, form, loss, pairs in contestants}
    shuffle = random.Random(0).sample  # nobody has the same one before it each time: threads of that may still spin
    try:
        for _ in range(rounds):
            for worker in shuffle(list(workers.values()), len(workers)):
                worker.turn()
        return {form: worker.result() for form, worker in workers.items()}
    finally:
        for worker in workers.values():
            worker.end()


def say(loss: str, pairs: int, results: dict[str, Result]) -> None:
    print(loss, pairs, {form: each.failed or round(each.seconds, 4) for form, each in results.items()}, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", metavar="PYTHON", help="a Python with benchmarks/requirements.txt")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of pairs for the contest")
    parser.add_argument("--largest", type=int, default=LADDER[-1], help="number of pairs to stop at")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for losses.md and losses.svg")
    options = parser.parse_args()
    if options.largest < LADDER[0]:
        parser.error(f"--largest: expected at least {LADDER[0]}, where the picture starts, found {options.largest}.")
    if min(options.sizes) < 1 or options.rounds < 1:
        parser.error("--sizes and --rounds: expected positive numbers.")

    def who(form: str, loss: str, pairs: int) -> list[tuple[str, str, str, int]]:
        python = sys.executable if form in IN_JAX else options.torch
        return [(python, form, loss, pairs)] if python else []

    tables, ladder = {}, {}
    for loss, forms in LIBRARIES.items():
        for pairs in options.sizes:
            forms_and_floor = (*forms, "auto", "products", "exponentials")
            contestants = [each for form in forms_and_floor for each in who(form, loss, pairs)]
            tables[loss, pairs] = contest(contestants, options.rounds if pairs >= 1024 else 3 * options.rounds)
            say(loss, pairs, tables[loss, pairs])
        for pairs in [each for each in LADDER if each <= options.largest]:
            contestants = who("tiled", loss, pairs) + who("dense", loss, pairs)
            ladder[loss, pairs] = contest(contestants, options.rounds if pairs <= 8192 else min(options.rounds, 3))
            say(loss, pairs, ladder[loss, pairs])
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "losses.md").write_text(report.text(tables, ladder, WIDTH, options.torch, options.rounds))
    report.draw(ladder, options.out / "losses.svg")


if __name__ == "__main__":
    main()
