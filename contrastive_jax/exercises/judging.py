"""Holds a learner's function, or an answer, against what an exercise asks for."""

import difflib
import functools
from typing import Any

from contrastive_jax.exercises import diagnosis, guarded, journal
from contrastive_jax.exercises.catalogue import EXERCISES
from contrastive_jax.exercises.checks import checks
from contrastive_jax.exercises.contracts import Choice, Contract, Variant
from contrastive_jax.exercises.evaluation import TIME_LIMIT, ambient_dtype, outcome_of
from contrastive_jax.exercises.subject import Finding, Subject
from contrastive_jax.exercises.wording import Judgement, Printed

BUDGET = 4.0


def judge(fn: Any, *, exercise: str | None = None, verbose: bool = False) -> Judgement:
    """Says whether a function meets its contract and, if not, where first and which known mistake it may be.

    The function is called in JAX's present precision. Nothing it does is raised here; a call that takes longer than ten
    seconds is stopped. Every judgement is kept for `evidence`.

    Args:
        fn: The function; for an exercise with answers to choose from, the letter of one.
        exercise: Name of the exercise; without it, the function's own name.
        verbose: Make and show all checks, not only those up to the first that fails.

    Returns:
        The judgement: `.passed`, `.diagnoses`, and its text.

    Raises:
        ValueError: There is no exercise of that name.

    Example:
        >>> from contrastive_jax import nt_xent_loss
        >>> judge(nt_xent_loss).passed
        True
    """
    name = _name_of(fn) if exercise is None else exercise
    if name is None:
        kind = guarded.name_of(type(fn))
        problem = f"This is of type {kind}, not a function: pass a function by its name, without calling it."
        return Judgement("judge", (Finding("a function", problem),))
    if not isinstance(name, str) or name not in EXERCISES:
        raise ValueError(_unknown(name))
    found = EXERCISES[name]
    judgement = judge_answer(found, fn) if isinstance(found, Choice) else judge_function(found, fn, verbose=verbose)
    journal.KERNEL.attempt(judgement, fn)
    return judgement


def judge_function(
    contract: Contract, function: Any, *, verbose: bool = False, limit: int | float = TIME_LIMIT
) -> Judgement:
    """Holds `function` against `contract`; `limit` is in seconds, for each call."""
    subject = Subject(contract, function, _dtype(contract), limit)
    findings = []
    for finding in checks(subject):
        findings.append(finding)
        if not finding.passed and not verbose:
            break
        if sum(call.seconds for call in subject.calls) > BUDGET * limit:
            problem = f"All checks together take longer than {BUDGET * limit:g} seconds, so the rest was not made."
            findings.append(Finding("done in time", problem, final=True))
            break
    diagnoses, remark = _diagnosed(subject, next((each for each in findings if not each.passed), None))
    return Judgement(
        contract.name, tuple(findings), diagnoses, contract, remark, printed=_printed(subject), verbose=verbose
    )


def _diagnosed(subject: Subject, failing: Finding | None) -> tuple[tuple[Variant, ...], str]:
    """Known mistakes that behave so, and a remark if they could not be compared."""
    if failing is None or not failing.numeric or failing.final:
        return (), ""
    try:
        behaviour = outcome_of(subject.contract, subject.function, subject.dtype)
        return diagnosis.candidates(subject.contract, behaviour), ""
    except Exception as error:  # the catalogue under settings nobody thought of must not stop a learner
        return (), f"Known mistakes could not be compared, because of {type(error).__name__}."


def judge_answer(choice: Choice, answer: Any) -> Judgement:
    """Holds a letter against the right one."""
    letter = answer.strip().strip("().").strip().lower() if isinstance(answer, str) else ""
    letters = ", ".join(choice.options)
    if letter not in choice.options:
        said = "There is no answer yet" if answer is ... or answer is None else "That is none of the answers"
        return Judgement(choice.name, (Finding("the answer", f"{said}: type one of {letters}."),))
    text, reason = choice.options[letter]
    if letter == choice.right:
        return Judgement(choice.name, (Finding("the answer"),), remark=f"{text} {reason}")
    return Judgement(choice.name, (Finding("the answer", f"{text} {reason}"),))


def _unknown(name: Any) -> str:
    close = difflib.get_close_matches(name, EXERCISES, n=4, cutoff=0.5) if isinstance(name, str) else []
    known = (
        f"the name of an exercise, such as {' or '.join(close)}" if close else f"one of {', '.join(sorted(EXERCISES))}"
    )
    return (
        f"exercise: expected {known}, found {name!r}. Next step: rename the function to its exercise, or pass the name "
        "as exercise=."
    )


def _dtype(contract: Contract) -> str:
    ambient = ambient_dtype()
    return ambient if ambient in contract.dtypes else contract.dtypes[0]


def _name_of(fn: Any) -> str | None:
    while isinstance(fn, functools.partial):
        fn = fn.func
    try:
        name = getattr(fn, "__name__", None)
    except BaseException:  # an object may answer as it likes
        return None
    return name if isinstance(name, str) and callable(fn) else None


def _printed(subject: Subject) -> Printed:
    beginnings = [call.printed for call in subject.calls if call.printed]
    return Printed(sum(call.printed_size for call in subject.calls), beginnings[0] if beginnings else "")
