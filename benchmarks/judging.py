"""How long a passing judgement takes: processor seconds of the second and later ones, median of three, by exercise.

python benchmarks/judging.py
"""

import functools
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from exercise_solutions import SOLUTIONS

from contrastive_jax.exercises import judge


def seconds(name: str) -> float:
    """Median over three judgements of functions that JAX has not seen, as a learner's next try is."""
    judge(SOLUTIONS[name][0], exercise=name)
    took = []
    for _ in range(3):
        function = functools.partial(SOLUTIONS[name][0])
        start = time.process_time()
        assert judge(function, exercise=name).passed
        took.append(time.process_time() - start)
    return statistics.median(took)


if __name__ == "__main__":
    for name in SOLUTIONS:
        print(f"{name:20s} {seconds(name):5.2f} s")
