"""What went wrong in a call, said to the person who wrote the function."""

from contrastive_jax.exercises.evaluation import Evaluation
from contrastive_jax.exercises.guarded import Call, Raised

WRITTEN = "is not written yet."
NOT_WRITTEN = f"It {WRITTEN}"
STUCK = (
    "It did not finish in time and could not be stopped: restart the kernel before you go on. Either a `while_loop` "
    "goes on for ever, or an `except` without a name catches what should end the function."
)
# By the name of an exception or of one it derives from, most special first.
_HINTS = {
    "TracerArrayConversionError": "NumPy cannot follow a JAX value under `jit` or `grad`; use the same function of "
    "`jnp`.",
    "TracerBoolConversionError": "A Python `if`, `while`, `and` or `max` cannot look at a JAX value under `jit` or "
    "`grad`; use `jnp.where` or `jnp.maximum`.",
    "TracerIntegerConversionError": "A JAX value cannot be used as a Python index under `jit`; take sizes from "
    "`.shape` or `len`.",
    "NonConcreteBooleanIndexError": "A mask in square brackets makes a shape that `jit` cannot know; use `jnp.where`.",
    "ConcretizationTypeError": "`float`, `int`, `.item()` or `.tolist()` cannot read a JAX value under `jit` or "
    "`grad`; keep it an array.",
    "UnexpectedTracerError": "A value from an earlier call was kept in a global variable or an attribute; return it "
    "instead.",
    "RecursionError": "The function calls itself without end.",
    "SystemExit": "Nothing in the function should end the program.",
    "KeyboardInterrupt": "Nothing in the function should interrupt the program.",
}
_KINDS = {
    "nothing": "It gave back nothing. Is it written to the end, and does it finish with `return`?",
    "generator": "It gave back a generator, because it says `yield`; use `return`.",
    "async_generator": "It gave back a generator, because it says `yield`; use `return`.",
    "coroutine": "It gave back a coroutine, because it is defined with `async def`; use `def`.",
    "function": "It gave back a function. Are round brackets missing behind a name?",
    "array that was deleted": "It gave back an array that it had deleted.",
}


def of_call(call: Call, limit: int | float) -> str:
    """Why a call gave no result; empty if it gave one."""
    if call.stuck:
        return STUCK
    if call.too_long:
        return f"It did not finish within {limit:g} seconds and was stopped. Is there a loop that never ends?"
    if call.raised is None:
        return ""
    if call.raised.kind == "NotImplementedError" and call.raised.by_itself:
        return f"It calls `{call.raised.helper}`, which {WRITTEN}" if call.raised.helper else NOT_WRITTEN
    return of_exception(call.raised)


def of_exception(raised: Raised) -> str:
    """What was raised, in which line of the learner's, and what it usually means."""
    message = "".join(each if each.isprintable() else " " for each in raised.message.strip().split("\n")[0]).strip()
    said = f"It raised {raised.kind}" + (f": {message}" if message else "")
    parts = [said if said.endswith((".", "!", "?")) else f"{said}."]
    if raised.source:
        parts.append(f"Line {raised.line}: `{raised.source}`.")
    parts += [text for name, text in _HINTS.items() if name in raised.family][:1]
    return " ".join(parts)


def of_kind(kind: str) -> str:
    """Why what came back is no array."""
    if kind == "ellipsis":
        return NOT_WRITTEN
    article = "an" if kind[0] in "aeiouAEIO" else "a"
    return _KINDS.get(kind, f"It gave back {article} {kind}; one array is expected.")


def of_evaluation(evaluation: Evaluation, limit: int | float) -> str:
    """Why there is no value; empty if there is one."""
    if evaluation.outcome.value is not None:
        return ""
    return of_call(evaluation.call, limit) or of_kind(evaluation.kind)


def of_meddling(changed: tuple[str, ...]) -> str:
    """Which of JAX's settings were changed."""
    return f"It changes a setting of JAX for all that follows: {', '.join(changed)}. It was set back."
