"""A learner's function on one input: its value, what kind of thing came back, and its gradients."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from contrastive_jax.exercises import guarded
from contrastive_jax.exercises.contracts import Arguments, Contract, Outcome, weighted_sum

TIME_LIMIT = 10.0
PLAIN_NUMBERS = (bool, int, float)
# Programs of a few rows run once or twice: their compilation takes all the time.
QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0}


class Evaluation(NamedTuple):
    """What a function did with one input.

    Attributes:
        outcome: The numbers.
        call: What came of the call for the value.
        gradient_call: What came of that for the gradients; None if it was not made.
        kind: What came back: "array" (of JAX), "number" (of Python or NumPy, or a NumPy array), "nothing", or the name
            of its type.
    """

    outcome: Outcome
    call: guarded.Call
    gradient_call: guarded.Call | None = None
    kind: str = "array"

    @property
    def calls(self) -> tuple[guarded.Call, ...]:
        return (self.call,) if self.gradient_call is None else (self.call, self.gradient_call)


def ambient_dtype() -> str:
    """Name of the floating dtype that JAX works in."""
    return "float64" if jax.config.jax_enable_x64 else "float32"  # pyright: ignore[reportAttributeAccessIssue]


def as_passed(argument: Any, dtype: str, library: Any = jnp) -> Any:
    """An argument of a case as a function gets it: a fresh array of `library`, or the argument itself."""
    if not isinstance(argument, np.ndarray):
        return argument
    kept = np.array(argument, dtype if argument.dtype == np.float64 else argument.dtype)
    return kept if library is np else library.asarray(kept)


def as_numpy(result: Any) -> tuple[np.ndarray | None, str]:
    """The result as a NumPy array, or None; and what kind of thing it was.

    Its type is compared, never asked: what a learner's object says of itself need not be true.
    """
    if type(result) is type(jnp.zeros(())):
        return (None, "array that was deleted") if result.is_deleted() else (np.asarray(result), "array")
    if result is None:
        return None, "nothing"
    kind = type(result)
    module = type.__dict__["__module__"].__get__(kind)
    if kind in PLAIN_NUMBERS or (
        issubclass(kind, np.ndarray | np.generic) and isinstance(module, str) and module == "numpy"
    ):
        value = np.array(result)
        return (value, "number") if value.dtype.kind in "biufc" else (None, f"NumPy array of dtype {value.dtype}")
    return None, guarded.name_of(kind)


def evaluate(
    contract: Contract,
    function: Callable,
    arguments: Arguments,
    dtype: str,
    *,
    gradients: bool = True,
    limit: int | float = TIME_LIMIT,
) -> Evaluation:
    """Calls `function`, without `jit`, on an input of `contract` and, if all is well, differentiates it too.

    Args:
        contract: Says by which arguments to differentiate.
        function: The learner's.
        arguments: As written in a case.
        dtype: Precision of the arrays.
        gradients: Whether gradients are taken at all.
        limit: Seconds for each of the two calls.

    Returns:
        What it did.
    """
    call = guarded.call(function, tuple(as_passed(each, dtype) for each in arguments), limit=limit)
    if call.too_long or call.raised is not None:
        failure = "too long" if call.too_long else "raises"
        return Evaluation(Outcome(None, failure=failure), call, kind="nothing")
    value, kind = as_numpy(call.value)
    if value is None:
        return Evaluation(Outcome(None, failure="not an array"), call, kind=kind)
    if not (gradients and contract.gradients):
        return Evaluation(Outcome(value), call, kind=kind)
    follows = traced(contract, arguments, dtype)
    gradient_call = guarded.call(_with_gradients(contract, function, arguments), (follows,), limit=limit)
    if gradient_call.too_long or gradient_call.raised is not None:
        return Evaluation(Outcome(value), call, gradient_call, kind)
    return Evaluation(Outcome(value, _outcome(contract, gradient_call).gradients), call, gradient_call, kind)


class Compiled:
    """A function under `jit`, with its gradients, compiled once for each shape of its arrays.

    Numbers are traced too, until that fails: then they are constants, and each new one compiles anew.
    """

    def __init__(self, contract: Contract, function: Any, limit: int | float = TIME_LIMIT) -> None:
        self._contract, self._function, self._limit = contract, function, limit
        self._numbers = True
        self._programs: dict[str, Callable] = {}

    def evaluate(self, arguments: Arguments, dtype: str) -> Evaluation | None:
        """What it did; None if it cannot be traced, or did not give back a JAX value."""
        while True:
            follows = traced(self._contract, arguments, dtype, numbers=self._numbers)
            call = guarded.call(self._run, (arguments, follows), limit=self._limit)
            if call.too_long:
                return Evaluation(Outcome(None, failure="too long"), call, kind="nothing")
            if call.raised is None:
                return Evaluation(_outcome(self._contract, call), call)
            if not self._numbers:
                return None
            self._numbers = False

    def _run(self, arguments: Arguments, follows: Mapping[int, Any]) -> Any:
        constants = [each for number, each in enumerate(arguments) if number not in follows]
        key = f"{constants} {[(number, jnp.shape(each), jnp.result_type(each)) for number, each in follows.items()]}"
        if key not in self._programs:
            jitted = jax.jit(_with_gradients(self._contract, self._function, arguments))
            self._programs[key] = jitted.lower(follows).compile(compiler_options=QUICK)
        return self._programs[key](follows)


class _NotOfJaxError(TypeError):
    """The function gave back something that JAX cannot follow."""


def traced(contract: Contract, arguments: Arguments, dtype: str, *, numbers: bool = False) -> dict[int, Any]:
    """The arguments that JAX follows, by number: arrays, numbers that have a gradient and, if asked for, all floats."""
    follows = {}
    for number, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray):
            follows[number] = as_passed(argument, dtype)
        elif number in contract.gradients and isinstance(argument, int | float):
            follows[number] = jnp.asarray(argument, dtype)
        elif numbers and type(argument) is float:
            follows[number] = argument
    return follows


def of_traced(function: Callable, arguments: Arguments) -> Callable:
    """`function` as one of the traced arguments alone, given as a dict by number."""

    def with_constants(follows: Mapping[int, Any]) -> Any:
        result = function(*(follows.get(number, argument) for number, argument in enumerate(arguments)))
        if not isinstance(result, jax.Array):
            raise _NotOfJaxError
        return result

    return with_constants


def outcome_of(contract: Contract, function: Callable, dtype: str | None = None) -> Callable[[Arguments], Outcome]:
    """How `function`, which is not trusted, behaves on any input of `contract`; `dtype` None is JAX's precision."""
    compiled = Compiled(contract, function)

    def outcome(arguments: Arguments) -> Outcome:
        precision = dtype or ambient_dtype()
        found = compiled.evaluate(arguments, precision) if contract.traceable else None
        return (found or evaluate(contract, function, arguments, precision)).outcome

    return outcome


def _with_gradients(contract: Contract, function: Callable, arguments: Arguments) -> Callable:
    """Traced arguments -> result, gradients by number."""
    inner = of_traced(function, arguments)

    def summed(wanted: Mapping[int, Any], rest: Mapping[int, Any]) -> tuple[Any, Any]:
        result = inner({**wanted, **rest})
        return weighted_sum(result, jnp), result

    def both(follows: Mapping[int, Any]) -> tuple[Any, Any]:
        wanted = {number: follows[number] for number in contract.gradients}
        rest = {number: each for number, each in follows.items() if number not in wanted}
        if not wanted:
            return inner(rest), {}
        gradients, result = jax.grad(summed, has_aux=True)(wanted, rest)
        return result, gradients

    return both


def _outcome(contract: Contract, call: guarded.Call) -> Outcome:
    result, gradients = call.value
    return Outcome(np.asarray(result), tuple(np.asarray(gradients[number]) for number in contract.gradients))
