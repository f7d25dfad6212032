"""A small contract for tests of the judge's engine: weight times the mean squared distance of paired rows."""

import numpy as np

from contrastive_jax.exercises.contracts import Case, Contract, Property, Rejection

LEFT = np.array([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]])
RIGHT = np.array([[1.0, 0.5], [-0.5, 1.0], [0.25, -2.0]])
# Differences (-0.5, -1.5), (2.5, -0.75), (-1, 3.5): squares 2.5, 6.8125, 13.25, in all 22.5625.
IN_GENERAL = 3.0 * 22.5625 / 3


def by_loops(left, right, weight):
    return weight * sum((a - b) ** 2 for a, b in zip(left.ravel(), right.ravel(), strict=True)) / len(left)


def gradient_formula(left, right, weight):
    return [2 * weight * (left - right) / len(left), 2 * weight * (right - left) / len(left)]


def exchanged(evaluate, left, right, weight):
    one, other = evaluate(left, right, weight), evaluate(right, left, weight)
    return [(other.value, one.value), (other.gradients[0], one.gradients[1])]


CONTRACT = Contract(
    "gap",
    ("left", "right", "weight"),
    "Weight times the mean squared distance of paired rows.",
    by_loops,
    (
        Case("one pair at distance 2, weight 1", (np.array([[2.0, 0.0]]), np.array([[0.0, 0.0]]), 1.0), 4.0),
        Case("three pairs, weight 3", (LEFT, RIGHT, 3.0), IN_GENERAL),
    ),
    defaults={"weight": 2.0},
    gradients=(0, 1),
    gradient_oracle=gradient_formula,
    properties=(Property("exchanging the sides changes nothing", (LEFT, RIGHT, 2.0), exchanged, size=10.0),),
    extremes=(Case("rows of length 1e12", (1e12 * LEFT, -1e12 * LEFT, 1.0)),),
    rejections=(Rejection("a negative weight", (LEFT, RIGHT, -1.0), (ValueError,)),),
)
