"""All checks of a function, from the first thing to look at to the last: values, gradients, conduct, edges."""

from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np

from contrastive_jax.exercises import conduct, sentences
from contrastive_jax.exercises.contracts import Arguments, Case, Outcome, Property
from contrastive_jax.exercises.evaluation import Evaluation, of_traced, traced
from contrastive_jax.exercises.references import agree, gradients_agree, right_gradients, right_slope, right_value
from contrastive_jax.exercises.subject import Finding, Subject

FEW_DIGITS = (
    "Only the first digits are right: the input is float64, and somewhere on the way the dtype has fewer digits, such "
    "as a cast to float32, or a small constant is added. Give new arrays the dtype of the input."
)


def checks(subject: Subject) -> Iterator[Finding]:
    """Checks one after the other, each made when it is asked for; ends after a final one that is not passed."""
    signature = conduct.can_be_called(subject.contract, subject.function)
    yield signature
    if not signature.passed:
        return
    for finding in _after_the_signature(subject):
        stopped = bool(subject.calls) and subject.calls[-1].too_long
        yield finding._replace(final=finding.final or stopped)
        if not finding.passed and (finding.final or stopped):
            return


def _after_the_signature(subject: Subject) -> Iterator[Finding]:
    contract = subject.contract
    # The smallest input without `jit` first: what goes wrong there is easiest to understand.
    yield from _numeric(_value(subject, case, plain=not number) for number, case in enumerate(contract.cases))
    if contract.traceable:
        yield from conduct.stays_in_jax(subject)
    for case in contract.cases:
        yield from _numeric(_gradients(subject, case))
    yield from _numeric(_slopes(subject))
    yield from conduct.dtypes(subject)
    yield conduct.repeats(subject)
    yield from conduct.leaves_alone(subject)
    yield from _numeric(_property(subject, each) for each in contract.properties)
    for case in contract.extremes:
        yield from _numeric([_value(subject, case)])
        yield from _numeric(_gradients(subject, case))
    yield from conduct.refuses(subject)


def _numeric(findings: Iterable[Finding]) -> Iterator[Finding]:
    for finding in findings:
        yield finding._replace(numeric=finding.found is not None)


def _value(subject: Subject, case: Case, *, plain: bool = False) -> Finding:
    evaluation = subject.evaluate(case.arguments, plain=plain)
    check, found = f"value on {case.what}", evaluation.outcome.value
    if found is None:
        problem = subject.trouble(evaluation)
        if problem.endswith(sentences.WRITTEN):
            return Finding(check, problem, final=True)
        return Finding(check, problem, case.arguments)
    expected = right_value(subject.contract, case)
    if found.shape != expected.shape:
        return Finding(check, _shape_problem(subject, case, found, expected), case.arguments, found, expected)
    if agree(found, expected, case.size, subject.dtype):
        return Finding(check, "", case.arguments, found, expected)
    if subject.dtype == "float64" and found.dtype == np.float64 and agree(found, expected, case.size, "float32"):
        return Finding(check, FEW_DIGITS, case.arguments)
    return Finding(check, f"The value is {_wrong(found, expected)}.", case.arguments, found, expected)


def _shape_problem(subject: Subject, case: Case, found: np.ndarray, expected: np.ndarray) -> str:
    numbers = (
        " The numbers in it are right."
        if found.size == expected.size and agree(found.ravel(), expected.ravel(), case.size, subject.dtype)
        else ""
    )
    wanted = "one number, shape ()" if expected.ndim == 0 else f"shape {expected.shape}"
    return f"The result has shape {found.shape}; expected {wanted}.{numbers}"


def _gradients(subject: Subject, case: Case) -> Iterator[Finding]:
    contract = subject.contract
    if not (contract.gradients and case.differentiated):
        return
    check = f"gradient on {case.what}"
    evaluation = subject.evaluate(case.arguments)
    problem = _gradient_problem(subject, evaluation)
    if problem:
        yield Finding(check, problem, case.arguments)
        return
    for number, found, expected in zip(
        contract.gradients, evaluation.outcome.gradients, right_gradients(contract, case.arguments), strict=True
    ):
        finding = _gradient_by(subject, case, number, check, found, expected)
        if not finding.passed:
            yield finding
            return
    yield Finding(check, "", case.arguments)


def _gradient_by(
    subject: Subject, case: Case, number: int, check: str, found: np.ndarray, expected: np.ndarray
) -> Finding:
    problem = ""
    if not gradients_agree(found, expected, case.size, subject.dtype):
        problem = f"The value is right, but the gradient by `{subject.contract.parameters[number]}` is "
        problem += "zero." if not np.any(found) else f"{_wrong(found, expected)}."
    return Finding(check, problem, case.arguments, found, expected)


def _slopes(subject: Subject) -> Iterator[Finding]:
    """Gradients by numbers, where JAX can trace them: to look at one, in order to refuse some, is no mistake."""
    contract, case = subject.contract, subject.contract.cases[-1]
    arrays, run = traced(contract, case.arguments, subject.dtype), of_traced(subject.function, case.arguments)
    for number in contract.slopes:
        call = subject.call(
            jax.grad(lambda value, number=number: run({**arrays, number: value})), case.arguments[number]
        )
        if call.raised is None and not call.too_long:
            check = f"gradient by `{contract.parameters[number]}` on {case.what}"
            expected = right_slope(contract, case.arguments, number)
            yield _gradient_by(subject, case, number, check, np.asarray(call.value), expected)


def _gradient_problem(subject: Subject, evaluation: Evaluation) -> str:
    problem = subject.trouble(evaluation)
    if not problem and evaluation.gradient_call is not None:
        problem = sentences.of_call(evaluation.gradient_call, subject.limit)
        problem = problem and f"The gradient cannot be taken. {problem}"
    return problem


def _wrong(found: np.ndarray, expected: np.ndarray) -> str:
    if np.any(np.isnan(found) & ~np.isnan(expected.astype(complex))):
        return "NaN"
    if np.any(np.isinf(found) & np.isfinite(expected)):
        return "infinite"
    return "wrong"


class _NoOutcomeError(Exception):
    """Carries the reason why a property could not be tried."""


def _property(subject: Subject, each: Property) -> Finding:
    def evaluate(*arguments: Any) -> Outcome:
        evaluation = subject.evaluate(arguments)
        problem = _gradient_problem(subject, evaluation)
        if problem:
            raise _NoOutcomeError(problem)
        return evaluation.outcome

    try:
        return _first_difference(subject, each, each.relation(evaluate, *each.arguments), each.arguments)
    except _NoOutcomeError as error:
        return Finding(each.what, str(error), each.arguments)


def _first_difference(subject: Subject, each: Property, pairs: Any, arguments: Arguments) -> Finding:
    for found, expected in pairs:
        if not gradients_agree(found, expected, each.size, subject.dtype):
            problem = f"This should hold, and does not: {each.what}."
            return Finding(each.what, problem, arguments, np.asarray(found), np.asarray(expected))
    return Finding(each.what, "", arguments)
