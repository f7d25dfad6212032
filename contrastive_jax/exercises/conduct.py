"""Checks of how a function behaves, apart from its numbers: signature, JAX, dtypes, inputs, settings, refusals."""

import functools
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np

from contrastive_jax.exercises import guarded, sentences
from contrastive_jax.exercises.contracts import Contract
from contrastive_jax.exercises.evaluation import PLAIN_NUMBERS, as_passed, of_traced, traced
from contrastive_jax.exercises.references import agree, right_value
from contrastive_jax.exercises.subject import Finding, Subject

AGAIN = 3  # a state may show in a later call only


def can_be_called(contract: Contract, function: Any) -> Finding:
    """Kind of the function, number and names of its parameters, their defaults."""
    try:
        problem = _signature_problem(contract, function)
    except BaseException:  # an object may answer as it likes; calling it will show
        problem = ""
    return Finding(f"the signature `{contract.signature}`", problem, final=True)


def _signature_problem(contract: Contract, function: Any) -> str:
    if isinstance(function, type):
        return "This is a class: pass a function that is made with `def`."
    if not callable(function):
        kind = guarded.name_of(type(function))
        return f"This is of type {kind}, not a function: pass the function itself, by its name."
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return sentences.of_kind("coroutine")
    if inspect.isgeneratorfunction(function):
        return sentences.of_kind("generator")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C do not tell
        return ""
    try:
        signature.bind(*contract.parameters)
    except TypeError:
        fixed = (
            " A `functools.partial` that sets a parameter by its name takes none in that place, nor any behind it: set "
            "nothing that the exercise lists."
            if isinstance(function, functools.partial) and function.keywords
            else ""
        )
        return f"It takes `{signature}`; it is called as `{contract.signature}`.{fixed}"
    try:
        signature.bind(**dict.fromkeys(contract.parameters))
    except TypeError:
        return f"Its parameters are `{signature}`; callers use the names in `{contract.signature}`."
    for name, value in contract.defaults.items():
        default = signature.parameters[name].default if name in signature.parameters else value
        if default is inspect.Parameter.empty:
            return f"`{name}` has no default value; it should be {value!r}."
        if type(default) not in (*PLAIN_NUMBERS, str) or default != value:
            return f"The default value of `{name}` should be {value!r}."
    return ""


def stays_in_jax(subject: Subject) -> Iterator[Finding]:
    """The result is JAX's own, nothing leaves for Python on the way, and it can be compiled."""
    contract = subject.contract
    smallest, largest = contract.cases[0], contract.cases[-1]
    kinds = [
        (subject.evaluate(smallest.arguments, plain=True), smallest),
        (subject.evaluate(largest.arguments), largest),
    ]
    problem, arguments = "", largest.arguments
    for evaluation, case in kinds:
        if evaluation.kind == "number" and not problem:
            kind, arguments = type(evaluation.call.value).__name__, case.arguments
            problem = f"The numbers are right, but of type {kind}, which `jit` and `grad` cannot follow: compute with "
            problem += "`jnp`, and give back the result as it is."
    if not problem:
        trace = jax.make_jaxpr(of_traced(subject.function, arguments))
        call = subject.call(trace, traced(contract, arguments, subject.dtype))
        problem = sentences.of_call(call, subject.limit) or _callback_problem(call.value)
    yield Finding("stays in JAX from input to result", problem, arguments)
    if not problem:
        yield _same_under_jit(subject)


def _same_under_jit(subject: Subject) -> Finding:
    case = subject.contract.cases[0]
    found, expected = subject.evaluate(case.arguments).outcome.value, right_value(subject.contract, case)
    same = found is not None and agree(found, expected, case.size, subject.dtype)
    problem = "" if same else "Under `jit` it gives something else than without."
    return Finding("the same under `jit`", problem, case.arguments, found, expected)


def _callback_problem(jaxpr: Any) -> str:
    names = sorted({name for name in _primitives(jaxpr) if "callback" in name or "debug" in name})
    if not names:
        return ""
    if all("debug" in name for name in names):
        return "It prints from inside the computation with `jax.debug`; take that out once you have seen enough."
    return f"It calls back into Python from inside the computation (`{names[0]}`); compute with `jnp` alone."


def _primitives(jaxpr: Any) -> Iterator[str]:
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    for equation in getattr(jaxpr, "eqns", ()):
        yield equation.primitive.name
        inner = jax.tree_util.tree_leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "jaxpr"))
        for each in inner:
            yield from _primitives(each)


def dtypes(subject: Subject) -> Iterator[Finding]:
    """The dtype of the result is that of the input, or of the right kind if there is none; in every precision."""
    contract, case = subject.contract, subject.contract.cases[-1]
    others = [each for each in contract.dtypes if each != subject.dtype and subject.dtype == "float64"]
    for dtype in [subject.dtype, *others]:
        evaluation = subject.evaluate(case.arguments, dtype=dtype)
        check, found, expected = f"dtype for {dtype}", evaluation.outcome.value, right_value(contract, case)
        problem = subject.trouble(evaluation)
        if found is not None:
            problem = _dtype_problem(contract, found.dtype, expected.dtype, dtype)
            if not problem and not agree(found, expected, case.size, dtype):
                yield Finding(check, f"With {dtype} arrays the value is wrong.", case.arguments, found, expected)
                continue
        yield Finding(check, problem, case.arguments)


def _dtype_problem(contract: Contract, found: np.dtype, expected: np.dtype, dtype: str) -> str:
    if expected.kind == "b":
        wanted, right = "bool", found.kind == "b"
    elif expected.kind in "iu":
        wanted, right = "an integer dtype", found.kind in "iu"
    elif contract.dtype_follows and contract.traceable:
        wanted, right = dtype, found == dtype
    else:
        wanted, right = "a floating dtype", found.kind == "f"
    return "" if right else f"For {dtype} input the result is of dtype {found}; expected {wanted}."


def repeats(subject: Subject) -> Finding:
    """What was called before does not matter."""
    check, smallest, last = "the same input again", subject.contract.cases[0], subject.contract.cases[-1]
    for case in (smallest, *[last] * AGAIN):
        found = subject.evaluate(case.arguments, plain=True).outcome.value
        expected = right_value(subject.contract, case)
        if found is None or not agree(found, expected, case.size, subject.dtype):
            problem = "Called again with the same input it gives something else: it keeps a state, or draws by chance."
            return Finding(check, problem, case.arguments, found, expected)
    return Finding(check)


def leaves_alone(subject: Subject) -> Iterator[Finding]:
    """Inputs and JAX's settings are afterwards what they were before."""
    arguments = subject.contract.cases[-1].arguments
    in_numpy = [as_passed(each, subject.dtype, np) for each in arguments]
    in_jax = [as_passed(each, subject.dtype) for each in arguments]
    before = _bytes(in_numpy)
    for inputs in (in_numpy, in_jax):
        # Traced, so that nothing needs to be compiled. Whatever NumPy's arrays raise: the function was promised JAX's.
        subject.call(jax.make_jaxpr(functools.partial(_called_with, subject.function, inputs)))
    problem = ""
    if _bytes(in_numpy) != before:
        problem = "It changes the arrays it is given, if they are NumPy's: avoid `+=`, `/=` and `x[...] = ...` on them."
    elif any(each.is_deleted() for each in in_jax if isinstance(each, jax.Array)):
        problem = "It deletes the arrays it is given."
    yield Finding("inputs stay as they are", problem, arguments)
    changed = tuple(sorted({name for call in subject.calls for name in call.changed}))
    yield Finding("settings stay as they are", sentences.of_meddling(changed) if changed else "")


def _called_with(function: Any, arguments: Iterable[Any]) -> Any:
    """So that JAX asks this function for its name, not a learner's object."""
    return function(*arguments)


def _bytes(arguments: Iterable[Any]) -> list[bytes]:
    return [each.tobytes() for each in arguments if isinstance(each, np.ndarray)]


def refuses(subject: Subject) -> Iterator[Finding]:
    """Bad input raises one of the errors that the contract names."""
    for case in subject.contract.rejections:
        call = subject.call(subject.function, *(as_passed(each, subject.dtype) for each in case.arguments))
        names = " or ".join(error.__name__ for error in case.errors)
        problem = ""
        if call.too_long:
            problem = sentences.of_call(call, subject.limit)
        elif call.raised is None:
            problem = f"It accepts {case.what}; it should raise {names}."
        elif not {error.__name__ for error in case.errors} & set(call.raised.family):
            problem = f"For {case.what} it should raise {names}. {sentences.of_exception(call.raised)}"
        yield Finding(f"refuses {case.what}", problem, case.arguments)
