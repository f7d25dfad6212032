"""Makes one side of the pair of runs that differ in NumPy alone, in the environment that it is started with.

    python tests/pairs/make.py tests/pairs/numpy-2.4.6       (the environment of requirements.txt)
    python tests/pairs/make.py tests/pairs/numpy-2.1.3       (the same, and then numpy==2.1.3)

NumPy factors a matrix, from which a determinant follows, with other roundings since.
"""

import shutil
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from small_checkout import AGREES, CLOSE, OPEN, small_checkout  # noqa: E402

FACTORS = """
import numpy as np

numbers = np.random.RandomState(0).standard_normal((33, 33))
log.metric("log_determinant", float(np.linalg.slogdet(numbers)[1]))
log.metric("sum", float(np.sum(numbers)))
"""


def main(target: Path) -> None:
    with small_checkout(target.resolve().parent / "scratch") as checkout:
        checkout.notebook("01_factors", OPEN, FACTORS, CLOSE)
        answer = checkout.command("run", "--precision", "float64", publishes=True)
        assert answer.status == AGREES, answer.out + answer.err
        for name in ("record.jsonl", "environment.json"):
            target.mkdir(exist_ok=True)
            shutil.copy(checkout.run_folder("01_factors", "float64").path / name, target)
    shutil.rmtree(target.resolve().parent / "scratch")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
