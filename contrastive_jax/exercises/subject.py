"""The function under judgement, and what a check finds about it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from contrastive_jax.exercises import guarded, sentences
from contrastive_jax.exercises.contracts import Arguments, Contract
from contrastive_jax.exercises.evaluation import TIME_LIMIT, Compiled, Evaluation, evaluate


class Finding(NamedTuple):
    """One check.

    Attributes:
        check: What was checked, in a few words.
        problem: What is wrong, in one or two sentences; empty if nothing is.
        arguments: The input it was found on, as written in the contract.
        found: The function's value or gradient there, if numbers are what is wrong.
        expected: What is right there.
        final: No further check makes sense.
        numeric: The check compares values or gradients, so a known mistake may be behind it.
    """

    check: str
    problem: str = ""
    arguments: Arguments | None = None
    found: np.ndarray | None = None
    expected: np.ndarray | None = None
    final: bool = False
    numeric: bool = False

    @property
    def passed(self) -> bool:
        return not self.problem


@dataclass
class Subject:
    """A function, the contract it is held to, and all calls that were made."""

    contract: Contract
    function: Any
    dtype: str
    limit: int | float = TIME_LIMIT
    calls: list[guarded.Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._compiled = Compiled(self.contract, self.function, self.limit)

    def evaluate(self, arguments: Arguments, *, dtype: str | None = None, plain: bool = False) -> Evaluation:
        """The function on an input of the contract: under `jit` where that works and `plain` does not forbid it."""
        precision = dtype or self.dtype
        found = None if plain or not self.contract.traceable else self._compiled.evaluate(arguments, precision)
        if found is None:
            found = evaluate(self.contract, self.function, arguments, precision, gradients=not plain, limit=self.limit)
        self.calls += found.calls
        return found

    def call(self, function: Callable, *arguments: Any) -> guarded.Call:
        """Any function that calls the one under judgement."""
        found = guarded.call(function, arguments, limit=self.limit)
        self.calls.append(found)
        return found

    def trouble(self, evaluation: Evaluation) -> str:
        """Why there is no value; empty if there is one."""
        return sentences.of_evaluation(evaluation, self.limit)
