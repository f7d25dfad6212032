"""Broken runs: what they reported, and which of several causes explains it."""

import math

from contrastive_jax.exercises.contracts import Choice, Option

# Four unit rows at 0, 90, 180 and 270 degrees on both sides, perfectly matched; then the right ones in the order
# 2, 0, 3, 1, which puts two rows beside their opposites and two beside neighbours at a right angle. Temperature 0.2.
_ROOM = math.log(math.exp(5) + 2 + math.exp(-5))

BROKEN_RUN_01 = Choice(
    name="broken_run_01",
    question="A paired loss on 4 pairs at temperature 0.2. The encoder was fine yesterday. What is wrong today?",
    numbers={
        "loss": _ROOM + 2.5,
        "loss of guessing, log 4": math.log(4),
        "left rows whose partner is nearest, of 4": 0.0,
        "largest cosine of a row, in the worst of the 4 rows": 1.0,
        "smallest cosine of a row, in the row where it is highest": -1.0,
    },
    options={
        "a": Option(
            "The encoder has collapsed: all rows point the same way.",
            "A collapsed encoder costs log 4, the cost of guessing, and all its cosines are 1. Here some are -1.",
        ),
        "b": Option(
            "One side is in another order than the other.",
            "Every row has a perfect match, a cosine of 1, but never where the answer key says. Confident and wrong "
            "costs more than guessing.",
        ),
        "c": Option(
            "The temperature is too high.",
            "A high temperature pulls every loss towards log 4. It cannot push one above.",
        ),
        "d": Option(
            "The batch holds every source twice.",
            "Copies cost log 2 on top of a loss that is near 0 here. They do not make partners miss each other.",
        ),
    },
    right="b",
)

BROKEN_RUN_02 = Choice(
    name="broken_run_02",
    question="A new NT-Xent is tried on three batches at temperature 1 before it trains. Which mistake does it have?",
    numbers={
        "one pair of equal rows": math.log(2),
        "two orthogonal pairs": math.log(2 + 2 / math.e),
        "four equal rows": math.log(4),
    },
    options={
        "a": Option(
            "The means of the two views are added, not averaged.",
            "Twice the right value of one pair is twice 0. Here one pair costs log 2.",
        ),
        "b": Option(
            "Rows of the anchor's own view are left out.",
            "Then four equal rows would have two candidates each and cost log 2, and one pair would cost 0.",
        ),
        "c": Option(
            "The views are interleaved, but taken as stacked.",
            "With one pair, or with equal rows, both layouts are the same: 0 and log 3. Here both are wrong.",
        ),
        "d": Option(
            "Each row is a candidate for itself.",
            "One candidate too many, of cosine 1, in every row: log 2 for one pair, log 4 for four equal rows.",
        ),
    },
    right="d",
)

BROKEN_RUN_03 = Choice(
    name="broken_run_03",
    question="A CLIP run caps its scale inside the loss. Since update 200 the log scale has not moved in any digit, "
    "though half of the new captions are wrong. Why?",
    numbers={
        "log scale before update 200": 4.55,
        "log scale from update 200 on": 4.70,
        "log of the largest scale, log 100": math.log(100),
        "gradient of the log scale": 0.0,
        "loss of a batch of two unit pairs, exchanged": 100.0,
    },
    options={
        "a": Option(
            "One step went past the cap, and above it the loss has no slope.",
            "4.70 is above log 100, about 4.61. There the scale is 100 whatever the log scale is, so nothing calls it "
            "back. Project the parameter onto the cap after each update.",
        ),
        "b": Option(
            "The scale has found its best value.",
            "At a best scale the pulls of right and wrong pairs cancel, but never in every digit on every batch; and "
            "4.70 lies above log 100, where nothing pulls at all.",
        ),
        "c": Option(
            "The exponential is missing.",
            "Then two exchanged pairs would cost about the log scale itself, 4.7, and not 100.",
        ),
        "d": Option(
            "The features are not normalised.",
            "Lengths would change the loss, but not make the gradient of the log scale exactly 0.",
        ),
    },
    right="a",
)

BROKEN_RUN_04 = Choice(
    name="broken_run_04",
    question="An encoder of pictures of four kinds, trained with NT-Xent on batches of 64 pairs at temperature 0.5, "
    "ends like this. What happened?",
    numbers={
        "loss": 4.169,
        "loss of guessing, log 127": math.log(127),
        "loss with four kinds as far apart as can be": 3.652,
        "mean cosine between different pictures": 0.0,
    },
    options={
        "a": Option(
            "Nothing: it has converged.",
            "The mean cosine fits, but four kinds as far apart as can be cost 3.65. This run costs more.",
        ),
        "b": Option(
            "Two of the four kinds have become one.",
            "Three groups at 120 degrees, with 1/4, 1/4 and 1/2 of the pictures, have the mean cosine "
            "3/8 - 5/16 = 1/16.",
        ),
        "c": Option(
            "The four kinds have merged in pairs: two groups are left.",
            "Two pictures are in one group with the chance 1/2, with cosine 1, and otherwise in opposite ones, with "
            "cosine -1: 0 in the mean, as in a healthy run. Only the loss shows it: to every picture, half of all "
            "look like the partner.",
        ),
        "d": Option(
            "The partners are shuffled.",
            "Wrong partners that are told apart cost more than guessing, log 127. This is less.",
        ),
    },
    right="c",
)
