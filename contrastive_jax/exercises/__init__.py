"""Exercises that are judged: write a function, hand it to `judge`, and read what it says.

Nothing here raises on a learner's mistake or trusts a learner's function.
"""

from contrastive_jax.exercises.journal import evidence, outcome, predict
from contrastive_jax.exercises.judging import judge
from contrastive_jax.exercises.wording import Judgement

__all__ = ["Judgement", "evidence", "judge", "outcome", "predict"]
