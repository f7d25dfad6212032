"""Which check catches which wrong loss. The table below is written by hand; run with -s to see the measured one."""

import functools
import json
import math
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contrastive_jax import clip_loss, nt_xent
from contrastive_jax.exercises import oracles
from contrastive_jax.exercises.catalogue import EXERCISES
from contrastive_jax.exercises.contracts import Variant

GOLDEN = Path(__file__).parent / "golden"
ARRAYS = np.load(GOLDEN / "losses.npz")
CASES = {case["key"]: case for case in json.loads((GOLDEN / "losses.json").read_text())["cases"]}

# Three pairs in general position with lengths over several decades; the input of PyTorch's values too.
A, B = ARRAYS["c024_a"], ARRAYS["c024_b"]
ORTHOGONAL, EQUAL = np.eye(3, 5), np.full((3, 5), 2.0)
ORDER = [1, 2, 0]
ROOM = math.log(math.e + 2)  # log of the candidates' sum with one cosine of 1 and two of 0


def close(actual, expected) -> bool:
    """Within 1e-9 of the largest expected entry; NaN is close to nothing."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    return bool(np.max(np.abs(actual - expected)) <= 1e-9 * (np.max(np.abs(expected)) + 1e-3))


def all_close(actual, expected) -> bool:
    return all(close(a, e) for a, e in zip(actual, expected, strict=True))


# A check gets a function (side, side, parameter) -> value, three gradients; and says whether the loss may be right.


def same_value(evaluate: Callable, one: tuple, other: tuple) -> bool:
    return close(evaluate(*one)[0], evaluate(*other)[0])


def costs_and_pulls_nothing(evaluate: Callable) -> bool:
    """One pair of any two rows."""
    value, gradients = evaluate(A[:1], B[:1], 0.7)
    return close(value, 0.0) and all_close(gradients[:2], [np.zeros((1, 5))] * 2)


def agrees_with_pytorch(evaluate: Callable, keys: tuple[str, ...]) -> bool:
    for key in keys:
        inputs = ARRAYS[f"{key}_a"], ARRAYS[f"{key}_b"]
        value, gradients = evaluate(*inputs, CASES[key]["parameter"])
        expected = ARRAYS[f"{key}_grad_a"], ARRAYS[f"{key}_grad_b"]
        if not (close(value, CASES[key]["value"]) and all_close(gradients[:2], expected)):
            return False
    return True


def gradients_are_slopes(evaluate: Callable) -> bool:
    gradients = evaluate(A, B, 0.4)[1][:2]
    slopes = (
        oracles.centred_difference(lambda a: float(evaluate(a, B, 0.4)[0]), A, 1e-5),
        oracles.centred_difference(lambda b: float(evaluate(A, b, 0.4)[0]), B, 1e-5),
    )
    return all(
        np.max(np.abs(gradient - slope)) <= 1e-6 * np.max(np.abs(slope))
        for gradient, slope in zip(gradients, slopes, strict=True)
    )


NT_XENT_CHECKS = {
    "orthogonal pairs": lambda f: close(f(ORTHOGONAL, ORTHOGONAL, 0.5)[0], math.log1p(4 * math.exp(-2))),
    "one pair": costs_and_pulls_nothing,
    "equal rows": lambda f: close(f(EQUAL, EQUAL, 0.5)[0], math.log(5)),
    "scalar loops": lambda f: close(f(A, B, 0.4)[0], oracles.nt_xent(A, B, 0.4)),
    "gradients of the loops": lambda f: all_close(f(A, B, 0.4)[1], oracles.nt_xent_gradients(A, B, 0.4)),
    "differences": gradients_are_slopes,
    "permuted pairs": lambda f: same_value(f, (A, B, 0.4), (A[ORDER], B[ORDER], 0.4)),
    "views swapped": lambda f: same_value(f, (A, B, 0.4), (B, A, 0.4)),
    "rows rescaled": lambda f: same_value(f, (A, B, 0.4), (3 * A, B, 0.4)),
    "PyTorch": lambda f: agrees_with_pytorch(f, ("c024",)),
}

# Images choose among cosines (1, 1, 0), (0, 0, 0) and (0, 0, 1), texts among the columns of these.
SAME_CAPTION = ORTHOGONAL[[0, 0, 2]]
TWO_DIRECTIONS = ((math.log(2 * math.e + 1) - 1) + math.log(3) + (ROOM - 1) + (ROOM - 1) + ROOM + (ROOM - 1)) / 6
WRONG_PAIRS = (ORTHOGONAL, ORTHOGONAL[ORDER], 6.0)


def guesses_at_zero_features(evaluate: Callable) -> bool:
    value, gradients = evaluate(0 * A, B, 1.0)
    return close(value, math.log(3)) and all(np.isfinite(gradient).all() for gradient in gradients)


CLIP_CHECKS = {
    "T0 one pair": costs_and_pulls_nothing,
    "T0 zero features": guesses_at_zero_features,
    "T1 orthogonal pairs": lambda f: close(f(ORTHOGONAL, ORTHOGONAL, math.log(2))[0], math.log1p(2 * math.exp(-2))),
    "T2 two directions": lambda f: close(f(ORTHOGONAL, SAME_CAPTION, 0.0)[0], TWO_DIRECTIONS),
    "T2 scalar loops": lambda f: close(f(A, B, 1.0)[0], oracles.clip_loss(A, B, 1.0)),
    "T2 gradients of the loops": lambda f: all_close(f(A, B, 1.0)[1], oracles.clip_gradients(A, B, 1.0)),
    "T2 rows rescaled": lambda f: same_value(f, (A, B, 1.0), (3 * A, B, 1.0)),
    "T2 sides swapped": lambda f: same_value(f, (A, B, 1.0), (B, A, 1.0)),
    "T2 scale 1/e": lambda f: close(f(ORTHOGONAL, ORTHOGONAL, -1.0)[0], math.log1p(2 * math.exp(-math.exp(-1)))),
    "cap, value": lambda f: close(f(*WRONG_PAIRS)[0], 100.0),
    "cap, gradient": lambda f: close(f(*WRONG_PAIRS)[1][2], 0.0),
    "PyTorch": lambda f: agrees_with_pytorch(f, ("c030", "c032")),
}

# What each check must catch, thought out by hand: there is a reason for every entry, and for every gap too. A loss of
# one pair is right without normalisation, for example, because a single candidate is chosen whatever its score.
LOOPS = {"scalar loops", "gradients of the loops", "PyTorch"}
T2_LOOPS = {"T2 scalar loops", "T2 gradients of the loops", "PyTorch"}
CAP = {"cap, value", "cap, gradient"}
CAUGHT = {
    "lengths_kept": {*LOOPS, "rows rescaled"},
    "self_among_candidates": {*LOOPS, "orthogonal pairs", "one pair", "equal rows"},
    "other_view_only": {*LOOPS, "orthogonal pairs", "equal rows"},
    # The two rows of a single pair are neighbours too, and a batch of equal rows has no wrong partners.
    "neighbour_as_partner": {*LOOPS, "orthogonal pairs", "permuted pairs", "views swapped"},
    # All that is alike in both views hides it.
    "first_view_chooses": {*LOOPS, "views swapped"},
    "directions_added": {*LOOPS, "orthogonal pairs", "equal rows"},
    "temperature_multiplies": {*LOOPS, "orthogonal pairs"},
    # Its values are right.
    "candidates_detached": {"gradients of the loops", "differences", "PyTorch"},
    "features_not_normalised": {*T2_LOOPS, "T2 rows rescaled"},
    "images_choose_only": {*T2_LOOPS, "T2 two directions", "T2 sides swapped"},
    "scale_without_exp": {*T2_LOOPS, *CAP, "T1 orthogonal pairs", "T2 two directions", "T2 scale 1/e"},
    "scale_as_temperature": {*T2_LOOPS, *CAP, "T1 orthogonal pairs", "T2 two directions", "T2 scale 1/e"},
    # Right below the cap.
    "scale_without_cap": {*CAP, "PyTorch"},
}


def in_the_table(exercise: str) -> list[Variant]:
    """Of the known variants of an exercise, those that this file has thought about."""
    return [variant for variant in EXERCISES[exercise].variants if variant.name in CAUGHT]


FAMILIES = {
    "nt_xent": (lambda a, b, t: nt_xent(jnp.concatenate([a, b]), t), in_the_table("nt_xent_loss"), NT_XENT_CHECKS),
    "clip_loss": (clip_loss, in_the_table("clip_loss"), CLIP_CHECKS),
}
VARIANTS = [variant for _, variants, _ in FAMILIES.values() for variant in variants]


def family_of(variant: Variant) -> str:
    return next(
        family for family, (_, variants, _) in FAMILIES.items() if variant.name in [each.name for each in variants]
    )


@functools.cache
def failed_by(loss: Callable, family: str) -> frozenset[str]:
    evaluate = jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))
    return frozenset(name for name, check in FAMILIES[family][2].items() if not check(evaluate))


def table(family: str) -> str:
    """One row for each check, one column for each variant, after one for the right loss."""
    right, variants, checks = FAMILIES[family]
    failures = [failed_by(loss, family) for loss in (right, *(variant.function for variant in variants))]
    head = [f"{i}: {name}" for i, name in enumerate([f"{family} (right)", *(variant.name for variant in variants)])]
    columns = "  ".join(str(i) for i in range(len(failures)))
    lines = [f"{name:26s}" + "  ".join("x" if name in failed else "." for failed in failures) for name in checks]
    return "\n".join(["", *head, f"{'x = caught':26s}{columns}", *lines])


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_what_catches_a_variant(variant, x64):
    assert failed_by(variant.function, family_of(variant)) == CAUGHT[variant.name] != set()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_right_loss_passes_all(family, x64):
    assert failed_by(FAMILIES[family][0], family) == set()
    print(table(family))


def test_the_table_is_complete():
    assert [len(variants) for _, variants, _ in FAMILIES.values()] == [8, 5]
    names = [variant.name for variant in VARIANTS]
    assert len(set(names)) == 13 and set(names) == CAUGHT.keys()
    for _, variants, checks in FAMILIES.values():
        idle = checks.keys() - set().union(*(CAUGHT[variant.name] for variant in variants))
        assert idle <= {"T0 one pair", "T0 zero features"}


def test_t0_catches_what_is_not_finite(x64):
    # None of the five has this mistake, so it is shown on two more.
    def plain_length(a, b, s):
        return clip_loss(a / jnp.linalg.norm(a, axis=1, keepdims=True), b, s)

    def own_pair_not_counted(a, b, s):
        others = jnp.where(np.eye(len(a), dtype=bool), -np.inf, a @ b.T)
        return jnp.mean(jax.scipy.special.logsumexp(others, axis=1) - jnp.diagonal(a @ b.T)) * s

    assert "T0 zero features" in failed_by(plain_length, "clip_loss")
    assert "T0 one pair" in failed_by(own_pair_not_counted, "clip_loss")
