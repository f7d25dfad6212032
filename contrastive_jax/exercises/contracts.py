"""What an exercise asks for, as data: its cases, gradients, properties, refusals and known wrong answers.

How arguments are written here and arrive at a function: NumPy arrays of float64 become JAX arrays of the precision that
is judged, NumPy arrays of another dtype become JAX arrays of that dtype; everything else (numbers, tuples, strings,
functions) is passed as it is. Under `jit` arrays are traced and the rest is constant; a number with a gradient is
traced too. A function among the arguments takes NumPy and JAX arrays, and its docstring is its code, as a learner
would type it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

Arguments = tuple[Any, ...]


class Case(NamedTuple):
    """One input, in the order of the signature, with the result where a closed form gives it.

    Attributes:
        what: The input in words, such as "two orthogonal pairs, temperature 1".
        arguments: See the head of this module.
        expected: The result as float64; None asks the contract's oracle.
        size: Size of the largest terms that are added up on the way, such as scores of 100 at temperature 0.01:
            rounding follows it. Gradients may be wrong by rounding of that size too.
        differentiated: Whether gradients are compared on this input, if the contract has any.
    """

    what: str
    arguments: Arguments
    expected: Any = None
    size: float = 1.0
    differentiated: bool = True


class Outcome(NamedTuple):
    """What a function did with one input: a value, or the kind of its failure.

    Attributes:
        value: The result as a NumPy array of its own dtype and shape; None if there is none.
        gradients: One array for each argument number in the contract's `gradients`; () if the contract has none, or
            if they could not be taken. Of a result that is not a scalar: gradients of `weighted_sum(result)`.
        failure: None, or one of "raises", "too long", "not an array".
    """

    value: np.ndarray | None
    gradients: tuple[np.ndarray, ...] = ()
    failure: str | None = None


Evaluate = Callable[..., Outcome]


class Property(NamedTuple):
    """What holds whatever the exact values are, such as: exchanging the views changes nothing.

    Attributes:
        what: The property as a sentence without a full stop.
        arguments: The input it is tried on.
        relation: Gets a function `evaluate(*arguments) -> Outcome`, then the arguments, and gives pairs (found,
            expected) of arrays that must agree. `evaluate` only ever returns outcomes without a failure.
        size: As in `Case`.
    """

    what: str
    arguments: Arguments
    relation: Callable[..., Iterable[tuple[Any, Any]]]
    size: float = 1.0


class Rejection(NamedTuple):
    """An input that must raise one of `errors`; `what` says in words what is wrong with it."""

    what: str
    arguments: Arguments
    errors: tuple[type[Exception], ...] = (TypeError, ValueError)


class Variant(NamedTuple):
    """A named misconception: a function that is wrong in one way.

    Attributes:
        function: Takes what the contract's function takes; its docstring is the explanation, in one line.
        case: The smallest input that shows the mistake.
        right: What the contract gives there.
        wrong: What `function` gives there.
        report: The public report on GitHub it stands for, as "owner/project#number"; empty if it stands for none.
        gradient_entry: None if values differ on `case`; else (argument number, index) of the entry of the gradient
            that `right` and `wrong` are.
        shows_in: Precisions of the input in which it is wrong; in the other it is as good as right.
    """

    function: Callable
    case: Case
    right: Any
    wrong: Any
    report: str = ""
    gradient_entry: tuple[int, tuple[int, ...]] | None = None
    shows_in: tuple[str, ...] = ("float32", "float64")

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def explanation(self) -> str:
        return self.function.__doc__ or ""


@dataclass(frozen=True, eq=False)
class Contract:
    """Everything the judge needs to know of one function that a learner writes.

    Attributes:
        name: Name of the function.
        parameters: Names of its parameters, in order.
        task: What it returns, in one sentence.
        oracle: The same function in float64 NumPy loops; takes the arguments as written in the cases.
        cases: From the smallest to the largest. The smallest is also run without `jit`; the last one is in general
            position, and is also given as NumPy arrays.
        defaults: Default values of parameters.
        gradients: Numbers of the arguments whose gradients are compared.
        gradient_oracle: Takes the arguments and returns one float64 gradient for each entry of `gradients`; without
            it they are centred differences of the oracle, which need smooth functions and rows other than zero.
        slopes: Numbers of the arguments whose gradients are compared only if JAX can trace them: a function may look
            at such a number, to refuse it, and is then constant in it. Centred differences are right for them.
        properties: What holds for every input.
        extremes: Cases at the edge of what floats can hold: zero rows, tiny temperatures. Values and gradients must
            be finite unless the oracle's are not.
        rejections: Inputs that must raise.
        dtypes: Precisions of the input that the function is judged in.
        dtype_follows: Whether a floating result must have the dtype of the input, or may have any floating one.
        traceable: Whether the function must work under `jit` and return a JAX value. If not, Python and NumPy
            numbers are accepted.
        probes: Inputs on which the variants, and the right function, all behave differently.
        variants: The known wrong functions.
        common: The common mistake, in one or two sentences.
    """

    name: str
    parameters: tuple[str, ...]
    task: str
    oracle: Callable
    cases: tuple[Case, ...]
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    gradients: tuple[int, ...] = ()
    gradient_oracle: Callable | None = None
    slopes: tuple[int, ...] = ()
    properties: tuple[Property, ...] = ()
    extremes: tuple[Case, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    dtypes: tuple[str, ...] = ("float32", "float64")
    dtype_follows: bool = True
    traceable: bool = True
    probes: tuple[Arguments, ...] = ()
    variants: tuple[Variant, ...] = ()
    common: str = ""

    @property
    def signature(self) -> str:
        """The head of the function, without `def`."""
        shown = [f"{name}={self.defaults[name]!r}" if name in self.defaults else name for name in self.parameters]
        return f"{self.name}({', '.join(shown)})"


class Option(NamedTuple):
    """One answer to choose, and one sentence on why it is right, or why not."""

    text: str
    reason: str


@dataclass(frozen=True, eq=False)
class Choice:
    """A broken run, and several causes to choose from.

    Attributes:
        name: Name of the exercise.
        question: What is asked.
        numbers: What the broken run reported, by name.
        options: By the letter that a learner types: "a", "b", ...
        right: The letter of the right one.
    """

    name: str
    question: str
    numbers: Mapping[str, float]
    options: Mapping[str, Option]
    right: str


Exercise = Contract | Choice


def weighted_sum(result: Any, numpy: Any = np) -> Any:
    """One number out of an array, with another weight for each entry, so that no entry hides behind another.

    Args:
        result: An array of any shape; a scalar is returned as it is.
        numpy: `numpy`, or `jax.numpy` to differentiate it.

    Returns:
        The sum of the entries in row order, weighted by 1 to 2 in equal steps.
    """
    if numpy.ndim(result) == 0:
        return result
    weights = np.linspace(1.0, 2.0, np.size(result)).reshape(np.shape(result))
    return numpy.sum(result * numpy.asarray(weights, result.dtype))
