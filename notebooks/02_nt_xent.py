# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # NT-Xent: one pile, every view against all others
#
# You will turn the loss of SimCLR from a written contract into a few lines of code, learn which wrong number
# betrays which mistake, and train vectors with it.
#
# ## What you will be able to do
#
# - name the partner and the negatives of every row in a pile of two views;
# - leave the anchor out of its own candidates in a way that holds at any temperature and precision;
# - say what CLIP's objective leaves out, and show a batch where it matters;
# - bring a loss reported by other code to the scale of yours before you compare;
# - choose test batches that catch the eight usual mistakes, and read training by cosines, not by loss alone.
#
# **You need:** `01_paired_views`, above all cosine, temperature and cross-entropy. Nothing is downloaded, and
# a CPU runs every cell in seconds.
#
# **Time:** about 145 minutes, 85 of them for the seven exercises. **Lesson:** `contrastive-02`.
#
# ## How to use this notebook
#
# As before: **predict, run, compare**. A number goes into `predict("…", ...)`, in place of the dots and with
# `because="…"` if you like; everything else goes into the text. The cell below says how far off you were. Your
# functions go to the judge.
#
# Words you do not know stand in `GLOSSARY.md`. The numbers in the text come from the recorded reference run;
# yours may differ in the last digits, and `make check NB=02` says whether that is rounding.

# %% tags=["parameters"]
PRECISION = "float32"
LOG_PATH = ""
SEED = 0
TEMPERATURE = 0.5
LAB_TEMPERATURE = 0.2
LEARNING_RATE = 0.07
STEPS = 120

# %%
import jax

# Both must come before the first array. On a CPU the second changes nothing; an accelerator would otherwise
# multiply float32 matrices with fewer digits.
jax.config.update("jax_enable_x64", PRECISION == "float64")
jax.config.update("jax_default_matmul_precision", "highest")

import math

import jax.numpy as jnp
import numpy as np
import optax

import contrastive_jax
from contrastive_jax.exercises import evidence, judge, outcome, predict
from reproduce.log import RunLog

DTYPE = jnp.dtype(PRECISION)
EPS = float(jnp.finfo(DTYPE).eps)
ROUNDING = 32 * EPS / min(TEMPERATURE, LAB_TEMPERATURE)

log = RunLog(
    LOG_PATH,
    notebook="contrastive-02",
    stem="02_nt_xent",
    precision=PRECISION,
    parameters={
        "SEED": SEED,
        "TEMPERATURE": TEMPERATURE,
        "LAB_TEMPERATURE": LAB_TEMPERATURE,
        "LEARNING_RATE": LEARNING_RATE,
        "STEPS": STEPS,
    },
)

# %% [markdown]
# `ROUNDING` is, as in `01`, how far apart two correct ways to compute the same loss may lie.
#
# ## 1. From two piles to one
#
# Take the cards of `01` again: each card was photographed twice. There, a left view chose among the right
# views, and a right view among the left ones. Now put all photographs on **one** pile. Every view chooses
# among *all others*, whichever side they come from. For two cards the table is
#
# | | view 1, card 0 | view 1, card 1 | view 2, card 0 | view 2, card 1 |
# |---|:-:|:-:|:-:|:-:|
# | **view 1, card 0** | ✕ | · | ✔ | · |
# | **view 1, card 1** | · | ✕ | · | ✔ |
# | **view 2, card 0** | ✔ | · | ✕ | · |
# | **view 2, card 1** | · | ✔ | · | ✕ |
#
# A tick is the partner, a dot a negative, and a cross a cell that may not be chosen: nobody is asked to find
# itself. With $B$ cards there are $2B$ rows. Each has one partner and $2B - 2$ negatives, twice as many as in
# `01`. The new ones cost nothing: their vectors were computed anyway.
#
# **Pause.** Which dots are new, compared with `01`?
#
# <details><summary>Compare with our answer</summary>
#
# Those between two first views, and those between two second views: the **same-view negatives**.
#
# </details>
#
# ## 2. Two pairs by hand
#
# Let the two cards have the vectors $(1, 0)$ and $(0, 1)$, and let both views of a card be equal. Every row
# then sees its partner at cosine 1 and two negatives at cosine 0. At the temperature $\tau$ its cost is
#
# $$
# -\log \frac{e^{1/\tau}}{e^{1/\tau} + e^{0} + e^{0}} = \log\left(1 + 2e^{-1/\tau}\right).
# $$
#
# In `01` the same two pairs cost $\log(1 + e^{-1/\tau})$.

# %% [markdown]
# **Predict before running.** Here the temperature is 0.5<!-- parameter: TEMPERATURE -->, so $1/\tau = 2$. The
# pile costs how many times as much as the two piles of `01`: a little less than twice, exactly twice, or a
# little more?

# %% tags=["prediction"]
predict("cost of one pile over cost of two", ...)

# %%
one_pile, two_piles = (math.log(1 + rivals * math.exp(-1 / TEMPERATURE)) for rivals in (2, 1))
log.metric("hand/pile", one_pile, unit="nats")
log.metric("hand/two_piles", two_piles, unit="nats")
outcome("cost of one pile over cost of two", one_pile / two_piles)

# %% [markdown]
# The pile costs 0.2395<!-- record: hand/pile --> nats and the two piles of `01` cost
# 0.1269<!-- record: hand/two_piles -->: a little less than twice, because a logarithm grows ever more slowly.
# The vectors are equally good in both. A loss says how hard the *question* was, too.

# %% [markdown]
# ## 3. The contract, and where the partner stands
#
# Write the loss down before you code it. For views `view1` and `view2`, both `[B, D]`:
#
# 1. **Stack** them: first all rows of `view1`, then all rows of `view2`, together `[2B, D]`.
# 2. **Normalise** every row: $z_i = v_i / \max(|v_i|, 10^{-12})$. A zero row stays zero.
# 3. **Score**: $s_{ij} = z_i \cdot z_j / \tau$.
# 4. **Cost of row $i$**, whose partner is $p(i)$: $\ \log \sum_{j \ne i} e^{s_{ij}} - s_{i\,p(i)}$. The sum
#    leaves out the row itself and nothing else; the partner is in it.
# 5. **Loss**: the mean of all $2B$ costs.
# 6. **Refuse** views of different shapes, and a temperature that is not above zero, with a `ValueError`. Any
#    number would be wrong there.
#
# Items 3 and 4 are equation 1 of the SimCLR paper, item 5 is its algorithm 1. The norm floor and the refusals
# are our choice. So is the order of the rows: the paper puts the two views of a card side by side.
#
# You will now write it down in three functions: who is the partner, who may not be chosen, and the loss itself.
#
# ### Exercise 1. Who is whose partner?
#
# **Difficulty** ●○○ · **about 5 minutes**
#
# **Predict before coding.** Three pairs, so rows 0 to 5. Write down the partner of each row.
#
# *Your prediction:* …
#
# **Steps**
#
# 1. Begin with a row of the first view: how far is it to its partner?
# 2. From a row of the second view, the same way leads past the end of the pile. Where must it arrive?
# 3. Find one expression for both.
#
# **Useful**
#
# - `a % n` is the remainder of a division. It works on a whole array of row numbers at once.
#
# <details><summary>Hint 1</summary>
#
# `batch` is the number of *pairs*. How many rows has the pile?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Row 4 of six goes ahead to 7, and should arrive at 1. So you need the remainder by 6.
#
# </details>


# %% tags=["exercise"]
def partner_of(anchor, batch):
    """Row numbers of the partners of the rows `anchor` in a stacked pile of `batch` pairs.

    `anchor` holds row numbers, integers from 0 to 2 * batch - 1. Returns as many.
    """
    # TODO 1: ahead = ...   half a pile further on
    # TODO 2: return ...    back to the start where that is past the end
    ### BEGIN SOLUTION
    ahead = anchor + batch
    return ahead % (2 * batch)
    ### END SOLUTION


# %%
judge(partner_of)

# %% [markdown]
# **Common mistake.** Going ahead without coming back. The rows of the second view have partners too. JAX does
# not complain about a row number past the end: it takes the last row instead.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# Half a pile ahead, or half a pile back: on a ring of $2B$ rows this is the same place. So one line serves both
# views, and the partner of the partner is the row you began with.
#
# </details>

# %% [markdown]
# Here is ours, for all rows at once.


# %%
def partners(count):
    """Row number of each row's partner in a stacked pile of `count` rows."""
    return jnp.roll(jnp.arange(count), count // 2)


log.series("partners/of_six_rows", partners(6))

# %% [markdown]
# 3, 4, 5, then 0, 1, 2: the partner is always half a pile away. Rolling the row numbers by half their count
# says this without a case for each half.

# %% [markdown]
# ## 4. In code
#
# Items 2 and 3 you know from `01`; only the norm floor is lower. We give them to you.


# %%
def unit_rows(x, floor=1e-12):
    """Rows scaled to length one; a row shorter than `floor` is divided by `floor` instead."""
    squares = jnp.sum(x * x, axis=-1, keepdims=True)
    return x / jnp.sqrt(jnp.maximum(squares, floor**2))


def cosine_table(rows):
    """Cosine of every row with every row, [2B, 2B]."""
    return unit_rows(rows) @ unit_rows(rows).T


# %% [markdown]
# ### Exercise 2. Not myself
#
# **Difficulty** ●○○ · **about 5 minutes**
#
# Take the crosses out of the race: give every row's score with itself the value minus infinity, and leave all
# others as they are.
#
# **Predict before coding.** Which probability does a softmax give to a score of minus infinity? And would a
# score of zero do as well?
#
# *Your prediction:* …
#
# **Steps**
#
# 1. Mark the cells on the diagonal.
# 2. Put minus infinity there, and the scores everywhere else.
#
# **Useful**
#
# - `jnp.eye(n, dtype=bool)` is true on the diagonal and false elsewhere.
# - `jnp.where(mask, a, b)` takes `a` where the mask is true, and `b` where it is not.
#
# <details><summary>Hint 1</summary>
#
# Arithmetic cannot do it: zero times infinity is not a number. Choosing can.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `-jnp.inf` may stand in `where` in place of an array.
#
# </details>


# %% tags=["exercise"]
def mask_self(scores):
    """The scores with every row's score with itself at minus infinity.

    Shape in and out: [2B, 2B].
    """
    # TODO 1: own = ...    [2B, 2B], true where row and column are the same
    # TODO 2: return ...   minus infinity there, the scores elsewhere
    ### BEGIN SOLUTION
    own = jnp.eye(len(scores), dtype=bool)
    return jnp.where(own, -jnp.inf, scores)
    ### END SOLUTION


# %%
judge(mask_self)

# %% [markdown]
# **Common mistake.** Multiplying the own score by zero. A score of zero is a candidate like any other.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# A softmax gives the probability zero to minus infinity, since $e^{-\infty} = 0$: such a cell cannot be chosen.
# A score of zero gives $e^0 = 1$, which is something. Section 6 measures what that costs.
#
# </details>

# %% [markdown]
# ### Exercise 3. The whole contract
#
# **Difficulty** ●●○ · **about 20 minutes**
#
# Now all six items in one function.
#
# **Predict before coding.** On paper you had the two pairs at the temperature
# 0.5<!-- parameter: TEMPERATURE -->. What do they cost at 1?

# %% tags=["prediction"]
predict("two pairs at temperature 1", ...)

# %% [markdown]
# **Steps**
#
# 1. Refuse what item 6 names.
# 2. Stack the views, the first on top.
# 3. Score: cosines over the temperature, then without the own cells.
# 4. Find the partner of every row.
# 5. Return the mean cost at which the rows find their partners.
#
# **Useful**
#
# - `partner_of` and `mask_self` are yours; `cosine_table` stands above.
# - `jax.nn.logsumexp(scores, axis=1)` is the logarithm of the sum in item 4, for every row, and cannot overflow.
#   Or start from `jax.nn.log_softmax(scores, axis=1)`.
# - `scores[jnp.arange(n), columns]` picks one cell from each of the `n` rows.
# - `view1.shape != view2.shape` compares shapes; `raise ValueError("…")` refuses.
#
# <details><summary>Hint 1</summary>
#
# Divide first, mask afterwards: that order is right for every kind of mask, and for the derivative by the
# temperature. And there are $2B$ rows to ask, not $B$. The temperature is a plain Python number here, so `if` may
# look at it.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# All row numbers are `jnp.arange(len(rows))`, and `partner_of(jnp.arange(len(rows)), len(view1))` are the columns
# of the correct answers. A row's cost is its `logsumexp` minus its score in that column.
#
# </details>


# %% tags=["exercise"]
def nt_xent_loss(view1, view2, temperature=0.5):
    """NT-Xent in nats; row i of `view1` and row i of `view2` are partners.

    Shapes: view1 [B, D], view2 [B, D]. Returns one number.
    """
    # TODO 1: if ...: raise ValueError("...")   for other shapes, and for a temperature not above zero
    # TODO 2: rows = ...                        [2B, D], the stacked views
    # TODO 3: scores = ...                      [2B, 2B], over the temperature, own cells masked
    # TODO 4: answers = ...                     [2B], the partner of each row
    # TODO 5: return ...                        mean cost of the partners
    ### BEGIN SOLUTION
    if view1.shape != view2.shape:
        raise ValueError(f"views of one shape are needed, found {view1.shape} and {view2.shape}")
    if temperature <= 0:
        raise ValueError(f"a temperature above zero is needed, found {temperature}")
    rows = jnp.concatenate([view1, view2])
    scores = mask_self(cosine_table(rows) / temperature)
    numbers = jnp.arange(len(rows))
    answers = partner_of(numbers, len(view1))
    return jnp.mean(jax.nn.logsumexp(scores, axis=1) - scores[numbers, answers])
    ### END SOLUTION


# %%
judge(nt_xent_loss)

# %% [markdown]
# **Common mistake.** Stacking the views in one order and marking the partners in another. One pair cannot show
# it, and neither can a batch of equal rows.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# Five lines besides the refusals, and each says one item of the contract or two. A pass means that the values agree
# with loops in float64, that the gradients into *both* views do, that long rows, a row of zeros and the
# temperature 1/1000 change nothing they should not, and that wrong input is refused.
#
# </details>

# %% [markdown]
# ### Our version
#
# What follows takes the pile as it is, `[2B, D]`, and keeps the costs of the rows apart, because later sections
# look at them one by one. `log_softmax` gives the logarithm of the probability and subtracts the largest logit
# first. The mask comes *after* the division by the temperature.


# %%
def without_self(logits):
    """The logits with every row's own cell at minus infinity."""
    return jnp.where(jnp.eye(len(logits), dtype=bool), -jnp.inf, logits)


def costs(logits, answers):
    """Cross-entropy of each row: what it costs row i that `answers[i]` is the right column."""
    log_probability = jax.nn.log_softmax(logits, axis=1)
    return -jnp.take_along_axis(log_probability, answers[:, None], axis=1)[:, 0]


def pile_loss(rows, temperature=TEMPERATURE):
    """NT-Xent in nats; row i and row i + B of the [2B, D] pile are partners."""
    return jnp.mean(costs(without_self(cosine_table(rows) / temperature), partners(len(rows))))


two_pairs = jnp.tile(jnp.eye(2, dtype=DTYPE), (2, 1))
by_hand = math.log1p(2 * math.exp(-1 / TEMPERATURE))
log.claim(
    "hand/function_agrees",
    margin=ROUNDING - abs(float(pile_loss(two_pairs)) - by_hand),
    compared="ROUNDING - |pile_loss - log(1 + 2 exp(-1/t))|",
)
log.metric("hand/pile_at_1", pile_loss(two_pairs, 1.0), unit="nats")
outcome("two pairs at temperature 1", pile_loss(two_pairs, 1.0))

# %% [markdown]
# The function gives the number from your paper. At the temperature 1 the same two pairs cost
# 0.5514<!-- record: hand/pile_at_1 -->, that is $\log(1 + 2/e)$: warmer, so the partner stands out less.

# %% [markdown]
# ## 5. Two more numbers to know
#
# **Predict before running.** First: a pile of a *single* pair, pointing in two different directions. What is
# its loss, and what does its gradient do? Second: four pairs, and all eight rows are equal. What is the loss?
#
# *Your prediction for the gradient:* …

# %% tags=["prediction"]
predict("loss of one pair", ...)
predict("loss of eight equal rows", ...)

# %%
one_pair = jnp.array([[3.0, 4.0], [1.0, 0.0]], dtype=DTYPE)
equal_rows = jnp.ones((8, 3), dtype=DTYPE)
log.metric("closed/equal_rows", pile_loss(equal_rows), unit="nats")

off = max(abs(float(pile_loss(one_pair))), abs(float(pile_loss(equal_rows)) - math.log(7)))
log.claim(
    "closed/both_values",
    margin=ROUNDING - off,
    compared="ROUNDING - larger of |loss of one pair| and |loss of equal rows - log 7|",
)
log.claim(
    "closed/one_pair_has_no_slope",
    margin=ROUNDING - jnp.max(jnp.abs(jax.grad(pile_loss)(one_pair))),
    compared="ROUNDING - largest |gradient| of one pair",
)
outcome("loss of one pair", abs(pile_loss(one_pair)))
outcome("loss of eight equal rows", pile_loss(equal_rows))

# %% [markdown]
# A single pair costs nothing and moves nowhere: with one candidate there is no choice. Equal rows cost
# $\log(2B - 1)$, here $\log 7$ or 1.946<!-- record: closed/equal_rows -->, because each row guesses among all
# others. This is the baseline of a collapsed encoder. It depends on the batch size, so know it before you
# call a loss high or low.

# %% [markdown]
# ## 6. Four ways to mask badly
#
# The cosine of a row with itself is 1, the highest there is. If that cell stays in the race, it takes
# probability from the partner for ever. People have removed it in many ways.
#
# **Predict before running.** The first three attempts get our two pairs, which cost
# 0.2395<!-- record: hand/pile -->. Which comes closest to the right value, and why is close not good enough?
# And which loss does the fourth give, where the right one is 0?
#
# 1. Leave the cell as it is.
# 2. Multiply its logit by zero.
# 3. Set its *cosine* to $-1$, the lowest, and divide by the temperature afterwards.
# 4. Set its logit to $-100$. This one gets a single pair of opposite vectors at the temperature 1/200.
#
# *Your prediction for the first three:* …

# %% tags=["prediction"]
predict("mask of -100 on a cold pair", ...)

# %%
table, own_cell = cosine_table(two_pairs), jnp.eye(4, dtype=bool)
attempts = {
    "as_it_is": table / TEMPERATURE,
    "times_zero": jnp.where(own_cell, 0.0, table / TEMPERATURE),
    "cosine_minus_one": jnp.where(own_cell, -1.0, table) / TEMPERATURE,
}
for name, logits in attempts.items():
    log.metric(f"mask/{name}", jnp.mean(costs(logits, partners(4))), unit="nats")

opposite = jnp.array([[1.0, 0.0], [-1.0, 0.0]], dtype=DTYPE)
logits = cosine_table(opposite) * 200
constant = jnp.where(jnp.eye(2, dtype=bool), -100.0, logits)
log.metric("mask/constant", jnp.mean(costs(constant, partners(2))), unit="nats")
outcome("mask of -100 on a cold pair", jnp.mean(costs(constant, partners(2))))

# %% [markdown]
# 1. **As it is**: 0.8201<!-- record: mask/as_it_is -->. At best the partner ties with the row itself.
# 2. **Times zero**: 0.3408<!-- record: mask/times_zero -->. A logit of zero is not nothing, since $e^0 = 1$:
#    the cell still counts as a candidate at a right angle.
# 3. **Cosine $-1$**: 0.2539<!-- record: mask/cosine_minus_one -->, close enough to pass a sloppy test. The
#    warmer the temperature, the worse it gets.
# 4. **A constant**: 100<!-- record: mask/constant -->, where a single pair must cost 0. At a cold temperature
#    honest logits fall below a constant that looked safe. A larger constant only moves the cliff, and float16
#    ends at 65504: there a constant of $10^9$ is infinite, and a mask that multiplies it by zero fills the
#    row with `nan`.
#
# Minus infinity has no cliff. `where` puts it there without arithmetic, and lets no gradient through the
# cell. No row is ever masked completely, because its partner remains.

# %% [markdown]
# ## 7. The wrong neighbour
#
# Other code keeps the two views of a card side by side: rows 0 and 1 are the first card, rows 2 and 3 the
# second. This **interleaved** layout is as good as ours. Trouble comes when the rows have one layout and the
# loss expects the other.
#
# **Predict before running.** The two pairs, interleaved, go into our loss. Each row's alleged partner is now
# the other card, at cosine 0, and its true partner a rival at cosine 1. By how much does the loss grow?

# %% tags=["prediction"]
predict("growth in the wrong layout", ...)

# %%
interleaved = two_pairs[jnp.array([0, 2, 1, 3])]
log.metric("layout/mixed_up", pile_loss(interleaved), unit="nats")
outcome("growth in the wrong layout", pile_loss(interleaved) - pile_loss(two_pairs))
log.claim(
    "layout/costs_one_over_t",
    margin=ROUNDING - abs(pile_loss(interleaved) - pile_loss(two_pairs) - 1 / TEMPERATURE),
    compared="ROUNDING - |growth of the loss - 1/t|",
)

# %% [markdown]
# 2.2395<!-- record: layout/mixed_up -->, that is $1/\tau = 2$ more: the denominator is the same and the
# numerator fell from $e^{1/\tau}$ to $e^0$. This value was once proposed as the expected answer of a public exercise
# on these very vectors (Open-Deep-ML/DML-OpenProblem#578), and a reviewer caught it. A printed number proves
# little until you can derive it.
#
# Nothing crashes, the loss falls in training, and the encoder learns to confuse neighbours. Say in the
# signature which layout a function expects. Ours says *stacked*, always.

# %% [markdown]
# ## 8. What CLIP's objective leaves out
#
# The loss of `01`, which CLIP also uses, asks only *across* the views. Does it matter that same-view pairs
# are never compared? Build a batch where it does. Three first views all point roughly north, three second
# views all point roughly east. Within its bundle, each leans towards its own corner of a triangle, and
# partners lean the same way.
#
# The cosines can be worked out: partners have 1/5, strangers across the views $-1/10$, and strangers in the
# same view 7/10.
#
# **Predict before running.** Guessing costs $\log 3$, or 1.099<!-- record: bundles/guess_across -->, across
# the views, and $\log 5$, or 1.609<!-- record: bundles/guess_pile -->, in the pile. On which side of guessing
# does each loss lie? And in the pile, how many of the six rows have their partner nearest?
#
# *Your prediction for the two losses:* …

# %% tags=["prediction"]
predict("rows with their partner nearest, of 6", ...)


# %%
def positive_and_hardest(rows):
    """For each row: the cosine of its partner, and the highest cosine among its negatives."""
    anchors, answers = jnp.arange(len(rows)), partners(len(rows))
    positive = cosine_table(rows)[anchors, answers]
    negatives = without_self(cosine_table(rows)).at[anchors, answers].set(-jnp.inf)
    return positive, jnp.max(negatives, axis=1)


corners = [[0.5, 0.0], [-0.25, math.sqrt(3) / 4], [-0.25, -math.sqrt(3) / 4]]
north = jnp.array([[1.0, 0.0, *corner] for corner in corners], dtype=DTYPE)
east = jnp.array([[0.0, 1.0, *corner] for corner in corners], dtype=DTYPE)
bundles = jnp.concatenate([north, east])
log.metric("bundles/across", contrastive_jax.paired_contrastive(north, east, TEMPERATURE), unit="nats")
log.metric("bundles/pile", pile_loss(bundles), unit="nats")
log.metric("bundles/guess_across", math.log(3), unit="nats")
log.metric("bundles/guess_pile", math.log(5), unit="nats")

across = contrastive_jax.retrieval_accuracy(contrastive_jax.cosine_similarity(north, east), ties="strict")
positive, hardest = positive_and_hardest(bundles)
log.metric("bundles/hits_across", across.left_to_right)
log.metric("bundles/hits_in_the_pile", jnp.mean((positive > hardest).astype(DTYPE)))
outcome("rows with their partner nearest, of 6", jnp.sum(positive > hardest))

# %% [markdown]
# Across the views the loss is 0.741<!-- record: bundles/across -->, better than guessing, and every row finds
# its partner. In the pile it is 2.019<!-- record: bundles/pile -->, worse than guessing, and no row does:
# each mistakes a stranger of its own bundle for its partner.
#
# Neither loss is wrong. For a photograph and its caption, two bundles do no harm as long as the search goes
# across; trained models of that kind do show such a gap (Liang and others, in the references). For two views of one
# photograph you want *one* space, and only the pile asks for it. There is a second difference: NT-Xent is given its
# temperature, and CLIP learns it. That is `03_clip`.

# %% [markdown]
# ## 9. Twice the loss
#
# The pile has two halves. The authors' released TensorFlow code takes the mean cost over the first views, the
# mean cost over the second views, and **adds** the two. The paper, and we, average over all $2B$ rows.
#
# Here are three pairs of unequal length, placed so that the two halves differ.
#
# **Predict before running.** By which number must you divide the loss that the released code prints before
# you compare it with yours? What about a learning rate?
#
# *Your prediction for the learning rate:* …

# %% tags=["prediction"]
predict("released loss over ours", ...)

# %%
view1 = jnp.array([[2.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], dtype=DTYPE)
view2 = jnp.array([[1.0, 0.5], [-0.5, 1.0], [0.0, -2.0]], dtype=DTYPE)
lopsided = jnp.concatenate([view1, view2])
row_costs = costs(without_self(cosine_table(lopsided) / TEMPERATURE), partners(6))
first_half, second_half = jnp.mean(row_costs[:3]), jnp.mean(row_costs[3:])

log.metric("scale/first_views_ask", first_half, unit="nats")
log.metric("scale/second_views_ask", second_half, unit="nats")
log.metric("scale/released", first_half + second_half, unit="nats")
log.metric("scale/ours", pile_loss(lopsided), unit="nats")
log.claim(
    "scale/aligned",
    margin=ROUNDING - abs((first_half + second_half) / 2 - pile_loss(lopsided)),
    compared="ROUNDING - |released value / 2 - our value|",
)
outcome("released loss over ours", (first_half + second_half) / pile_loss(lopsided))

# %% [markdown]
# 0.370<!-- record: scale/first_views_ask --> and 0.387<!-- record: scale/second_views_ask --> make
# 0.758<!-- record: scale/released --> in the released scale and 0.379<!-- record: scale/ours --> in ours:
# divide by two. Check the baseline first, and such a factor shows at once. Equal rows must cost
# $\log(2B - 1)$; code that says twice that is on the other scale. What happens to a learning rate is measured
# in section 15.
#
# The three objectives side by side:
#
# | | candidates of a row | its own cell | temperature | the two halves | equal rows cost |
# |---|---|---|---|---|---|
# | CLIP | $B$ | not in the table | learned, scale at most 100 | averaged | $\log B$ |
# | NT-Xent, the paper and we | $2B - 1$ | left out | given | averaged | $\log(2B - 1)$ |
# | NT-Xent, released TensorFlow | $2B - 1$ | lowered by $10^9$ | given | **added** | $2 \log(2B - 1)$ |

# %% [markdown]
# ## 10. The same loss from the package
#
# `contrastive_jax.nt_xent` takes the pile, and `contrastive_jax.nt_xent_loss` takes the two views and holds
# the whole contract: it refuses what it cannot mean.
#
# **Predict before running.** Two losses can agree in value and not in gradient. Do ours agree in both? And
# what does the strict function say when a view is one row short?
#
# *Your prediction:* …

# %%
batches = (two_pairs, equal_rows, bundles, lopsided)
gaps = [pile_loss(rows) - contrastive_jax.nt_xent(rows, TEMPERATURE) for rows in batches]
gaps.append(pile_loss(lopsided) - contrastive_jax.nt_xent_loss(view1, view2, TEMPERATURE))
log.claim(
    "package/loss_agrees",
    margin=ROUNDING - max(abs(gap) for gap in gaps),
    compared="ROUNDING - largest |notebook - package| over five calls",
)
gradient_gap = jax.grad(pile_loss)(lopsided) - jax.grad(contrastive_jax.nt_xent)(lopsided, TEMPERATURE)
log.claim(
    "package/gradient_agrees",
    margin=ROUNDING - jnp.max(jnp.abs(gradient_gap)),
    compared="ROUNDING - largest |notebook - package| over the gradient",
)
try:
    contrastive_jax.nt_xent_loss(view1, view2[:2], TEMPERATURE)
except ValueError as refusal:
    print(refusal)

# %% [markdown]
# They agree in both. The refusal names the argument, what was expected, what was found, and what to do next.

# %% [markdown]
# ## 11. Which batch catches which mistake?
#
# Eight mistakes, most of them known from public bug reports, and four batches to test with. The mistakes:
#
# | short name | what is wrong |
# |---|---|
# | length | rows are not normalised |
# | self | the anchor's own cell stays in |
# | pool | only the other view competes |
# | partner | the row next door counts as the partner |
# | one way | only the first views ask |
# | sum | the two halves are added |
# | times t | the cosine is multiplied by the temperature |
# | stopped | no gradient flows into the second view |
#
# The batches: the two pairs by hand, one pair, three pairs of equal rows, and the lopsided one.
#
# **Predict before running.** Which single batch catches the most, and how many of the eight? Which mistake
# escapes all four? Does a mistake always make the loss *larger*?
#
# *Your prediction, besides the number:* …

# %% tags=["prediction"]
predict("mistakes the best batch catches, of 8", ...)


# %%
def with_mistakes(rows, t=TEMPERATURE):
    """The loss of each mistaken version, by its short name."""
    half, answers = len(rows) // 2, partners(len(rows))
    table, neighbours = cosine_table(rows), jnp.arange(len(rows)) ^ 1
    logits = without_self(table / t)
    stopped = jnp.concatenate([rows[:half], jax.lax.stop_gradient(rows[half:])])
    return {
        "length": jnp.mean(costs(without_self(rows @ rows.T / t), answers)),
        "self": jnp.mean(costs(table / t, answers)),
        "pool": contrastive_jax.paired_contrastive(rows[:half], rows[half:], t),
        "partner": jnp.mean(costs(logits, neighbours)),
        "one way": jnp.mean(costs(logits, answers)[:half]),
        "sum": jnp.mean(costs(logits, answers)[:half]) + jnp.mean(costs(logits, answers)[half:]),
        "times t": jnp.mean(costs(without_self(table * t), answers)),
        "stopped": pile_loss(stopped, t),
    }


# %%
tests = {"two pairs": two_pairs, "one pair": one_pair, "equal": equal_rows[:6], "lopsided": lopsided}
mistakes = list(with_mistakes(lopsided))
errors = {name: np.array(list(with_mistakes(rows).values())) - pile_loss(rows) for name, rows in tests.items()}
# What rounding explains counts as no difference at all.
errors = {name: np.where(np.abs(column) < ROUNDING, 0.0, column) for name, column in errors.items()}
outcome("mistakes the best batch catches, of 8", max(np.count_nonzero(column) for column in errors.values()))
log.figure(
    "contrastive-02-mistakes",
    panels=[
        {
            "kind": "heatmap",
            "values": np.stack(list(errors.values()), axis=1),
            "rows": mistakes,
            "columns": list(tests),
            "unit": "mistaken loss - correct loss (nats)",
            "diverging": True,
            "xlabel": "test batch",
            "ylabel": "mistake",
            "title": "What each batch reveals",
        }
    ],
    alt="Eight rows of mistakes against four columns of test batches. The lopsided batch differs from zero in "
    "every row except the last, stopped, which is zero everywhere. Two pairs reveal five mistakes, equal rows "
    "three, one pair only one. In the lopsided column length, pool and one way are below zero.",
)

# %% [markdown]
# **Read the table** down its columns: a zero means that this batch cannot see this mistake.
#
# The lopsided batch catches seven of eight. The two pairs, the closed form everybody tests, miss `length`,
# because their rows have length one already, and `one way`, because their halves are alike. And three
# mistakes make the lopsided loss *smaller*: a low loss is no evidence of correct code.
#
# `stopped` leaves no trace in any value. It needs its gradient looked at.
#
# **Predict before running.** With `stopped`, the gradient into the second view is zero. Is the gradient into
# the first view still right?
#
# *Your prediction:* …

# %%
true_slope = jax.grad(pile_loss)(lopsided)
stopped_slope = jax.grad(lambda rows: with_mistakes(rows)["stopped"])(lopsided)
log.metric("mistakes/true_slope_in_view_2", jnp.max(jnp.abs(true_slope[3:])))
log.claim(
    "mistakes/value_shows_seven",
    margin=np.sort(np.abs(errors["lopsided"]))[1] - ROUNDING,
    compared="second smallest |mistaken - correct| on the lopsided batch - ROUNDING",
)
log.claim(
    "mistakes/gradient_shows_the_eighth",
    margin=jnp.max(jnp.abs(true_slope - stopped_slope)[3:]) - ROUNDING,
    compared="largest |true - stopped| slope in view 2 - ROUNDING",
)
log.claim(
    "mistakes/first_view_looks_right",
    margin=ROUNDING - jnp.max(jnp.abs(true_slope - stopped_slope)[:3]),
    compared="ROUNDING - largest |true - stopped| slope in view 1",
)

# %% [markdown]
# It is: a test that looks at one input only would pass. The true gradient reaches
# 0.232<!-- record: mistakes/true_slope_in_view_2 --> in the second view and the stopped one is zero there.
# Test the gradient with respect to **both** inputs.

# %% [markdown]
# ## 12. The lab: train the vectors themselves
#
# No encoder, no pictures. Two tables of 6 rows and 8 columns hold random numbers, drawn independently of each
# other. Row `i` of one is *declared* the partner of row `i` of the other, and all 96 numbers are trained,
# with Adam at the learning rate 0.07<!-- parameter: LEARNING_RATE --> and the temperature
# 0.2<!-- parameter: LAB_TEMPERATURE -->, for 120<!-- parameter: STEPS --> updates. Every ten updates we
# measure
#
# - the **loss**;
# - the mean cosine of the **partners**, and the mean cosine of the **hardest negatives**;
# - **strict hits**: the share of rows whose partner beats *all* other candidates; a tie is a miss;
# - the mean **length** of a row, before normalisation.
#
# **Predict before running.** Guessing among 11 candidates costs $\log 11$, which is
# 2.398<!-- record: lab/guess -->. What do random vectors cost: less, more, or just as much? And the lengths: the
# loss cannot see them, so do they stay as they are?
#
# *Your prediction for the lengths:* …

# %% tags=["prediction"]
predict("loss of random vectors", ...)


# %%
@jax.jit
def measure(rows):
    positive, hardest = positive_and_hardest(rows)
    return {
        "loss": contrastive_jax.nt_xent(rows, LAB_TEMPERATURE),
        "partner_cosine": jnp.mean(positive),
        "hardest_cosine": jnp.mean(hardest),
        "strict_hits": jnp.mean((positive > hardest).astype(DTYPE)),
        "length": jnp.mean(jnp.linalg.norm(rows, axis=1)),
    }


def train(optimiser, rows, weight=1.0):
    """The rows after STEPS updates on `weight` times the loss, and a measurement every ten updates."""

    @jax.jit
    def update(rows, state):
        slope = jax.grad(lambda rows: weight * contrastive_jax.nt_xent(rows, LAB_TEMPERATURE))(rows)
        step, state = optimiser.update(slope, state)
        return optax.apply_updates(rows, step), state

    state, measured = optimiser.init(rows), [measure(rows)]
    for updates in range(1, STEPS + 1):
        rows, state = update(rows, state)
        if updates % 10 == 0:
            measured.append(measure(rows))
    return rows, measured


# %%
# Drawn in float32 in both precisions, so that both start from the same numbers.
draws = [jax.random.uniform(key, (6, 8), jnp.float32, -1, 1) for key in jax.random.split(jax.random.key(SEED))]
start = jnp.concatenate(draws).astype(DTYPE)
trained, measured = train(optax.adam(LEARNING_RATE), start)

curves = {name: [float(each[name]) for each in measured] for name in measured[0]}
updates_done = list(range(0, STEPS + 1, 10))
lowest_possible = math.log(1 + 10 * math.exp(-1.2 / LAB_TEMPERATURE))
log.metric("lab/guess", math.log(11), unit="nats")
log.metric("lab/lowest_possible", lowest_possible, unit="nats")
log.series("lab/updates", updates_done)
for name, values in curves.items():
    log.series(f"lab/{name}", values, unit={"loss": "nats", "strict_hits": "share"}.get(name, ""))
outcome("loss of random vectors", curves["loss"][0])
log.claim("lab/starts_worse_than_guessing", margin=curves["loss"][0] - math.log(11), compared="first loss - log 11")
log.claim("lab/loss_falls", margin=curves["loss"][0] - curves["loss"][-1], compared="first loss - last loss")
log.claim(
    "lab/ends_near_the_lowest",
    margin=1.2 * lowest_possible - curves["loss"][-1],
    compared="1.2 times the lowest possible loss - last loss",
)

# %% [markdown]
# Random vectors do **worse** than guessing: 3.846<!-- record: lab/loss[0] -->. At this temperature a chance
# cosine is already a strong opinion, and most of them are wrong. Ten updates later the loss is
# 0.138<!-- record: lab/loss[1] --> and every row finds its partner; at the end it is
# 0.0257<!-- record: lab/loss[-1] -->.
#
# Can it reach zero? If partners coincide and the six pairs spread as evenly as they can, each pair has the
# cosine $-1/5$ with all others, and a row costs $\log(1 + 10e^{-6})$, or
# 0.0245<!-- record: lab/lowest_possible -->. Nothing is lower.
#
# <details><summary>Why nothing is lower</summary>
#
# Let $c$ be the mean partner cosine and $n$ the mean of all 120 negative ones. The sum of the twelve unit
# vectors has the squared length $12 + 12c + 120n$, which is not below zero, so $n \ge -(1 + c)/10$. A cost is
# $\log(1 + \sum e^{d/\tau})$ over ten differences $d$ of a negative and the partner, and it is convex in
# them. So the mean cost is at least the cost at the mean difference, $\log(1 + 10e^{(n - c)/\tau})$. That is
# least at $c = 1$ and $n = -1/5$.
#
# </details>
#
# The lengths grow from 1.83<!-- record: lab/length[0] --> to 2.92<!-- record: lab/length[-1] -->, although
# the loss ignores them. The gradient of a row stands at a right angle to it, so a plain gradient step leads away from
# the origin, but only a little. Most of this growth is Adam's doing: it rescales every coordinate by itself, and
# the step that comes out points partly outwards. A longer row turns less for the same step. Keep this in mind
# when a learning rate seems to fade.

# %%
log.figure(
    "contrastive-02-curves",
    panels=[
        {
            "kind": "line",
            "series": [{"label": "NT-Xent", "x": updates_done, "y": curves["loss"]}],
            "levels": [
                {"label": "guessing, log 11", "y": math.log(11)},
                {"label": "lowest possible", "y": lowest_possible},
            ],
            "logarithmic": True,
            "xlabel": "completed updates",
            "ylabel": "loss (nats, logarithmic)",
            "title": "Training loss",
        },
        {
            "kind": "line",
            "series": [
                {"label": "partner", "x": updates_done, "y": curves["partner_cosine"]},
                {"label": "hardest negative", "x": updates_done, "y": curves["hardest_cosine"]},
                {"label": "strict hits (share)", "x": updates_done, "y": curves["strict_hits"]},
            ],
            "levels": [{"label": "even spread, -1/5", "y": -0.2}],
            "xlabel": "completed updates",
            "ylabel": "mean cosine similarity, or share",
            "title": "What the loss is made of",
        },
    ],
    alt="Left: the loss falls from above the level of guessing to just above the lowest possible value, most of it "
    "in the first ten updates. Right: the partner's cosine and the strict hits rise to nearly one within ten "
    "updates, while the hardest negative's cosine falls slowly towards minus one fifth.",
)

# %% [markdown]
# **Read the left panel** on its logarithmic axis: a steep fall, then a slow approach to a level that is not
# zero.
#
# **Read the right panel** from left to right: partners meet within ten updates, and the rest of the training
# pushes negatives apart. Look closely between 20 and 30 updates. The partners' cosine *falls*, from
# 0.966<!-- record: lab/partner_cosine[2] --> to 0.961<!-- record: lab/partner_cosine[3] -->, while the loss
# falls too: the spread bought more than the closeness cost.

# %% [markdown]
# ## 13. Anchor by anchor
#
# A mean hides its worst case. Compare every anchor's partner with its hardest negative.
#
# **Predict before running.** Twelve anchors, two bars each. How close do the two bars of an anchor come, at
# worst? How far below zero can the hardest negatives go?
#
# *Your prediction for the hardest negatives:* …

# %% tags=["prediction"]
predict("smallest lead of a partner", ...)

# %%
positive, hardest = positive_and_hardest(trained)
log.metric("lab/smallest_lead", jnp.min(positive - hardest), unit="cosine similarity")
outcome("smallest lead of a partner", jnp.min(positive - hardest))
log.claim("lab/every_anchor_hits", margin=jnp.min(positive - hardest), compared="partner - hardest, worst anchor")
log.figure(
    "contrastive-02",
    panels=[
        {
            "kind": "bar",
            "categories": [str(anchor) for anchor in range(12)],
            "series": [
                {"label": "partner", "values": positive},
                {"label": "hardest negative", "values": hardest},
            ],
            "levels": [{"label": "even spread, -1/5", "y": -0.2}],
            "xlabel": "anchor (0 to 5: first table, 6 to 11: second)",
            "ylabel": "cosine similarity",
            "title": "After training",
        }
    ],
    alt="Twelve anchors with two bars each. Every partner's bar is close to plus one; every hardest "
    "negative's bar lies between minus one tenth and minus one fifth.",
)

# %% [markdown]
# **Read the bars** in pairs: each anchor's partner is near 1, and its hardest negative below 0, so the
# smallest lead is 1.113<!-- record: lab/smallest_lead -->. They can hardly go lower. Their mean cannot fall
# below $-1/5$, the level of the even spread: twelve vectors cannot all point away from each other.

# %% [markdown]
# ## 14. Measured by other means
#
# A loss that checks itself proves little. Compute it again as the contract reads: plain Python, one scalar at
# a time, float64. No arrays, no mask, no softmax. The sum simply skips the anchor.
#
# **Predict before running.** On how many digits will JAX and the loops agree, in the precision you run?
#
# *Your prediction:* …


# %%
def scalar_loss(rows, temperature):
    """NT-Xent in plain Python floats, by the five items of the contract."""
    rows = np.asarray(rows, dtype=np.float64).tolist()
    units = []
    for row in rows:
        length = max(math.sqrt(sum(x * x for x in row)), 1e-12)
        units.append([x / length for x in row])
    half, total = len(rows) // 2, 0.0
    for i, anchor in enumerate(units):
        scores = [sum(a * b for a, b in zip(anchor, other, strict=True)) / temperature for other in units]
        partner = i + half if i < half else i - half
        highest = max(score for j, score in enumerate(scores) if j != i)
        rest = sum(math.exp(score - highest) for j, score in enumerate(scores) if j != i)
        total += highest + math.log(rest) - scores[partner]
    return total / len(rows)


for name, rows in [("start", start), ("trained", trained)]:
    by_loops = scalar_loss(rows, LAB_TEMPERATURE)
    log.metric(f"loops/{name}", by_loops, unit="nats")
    log.claim(
        f"loops/agree_on_{name}",
        margin=ROUNDING - abs(float(contrastive_jax.nt_xent(rows, LAB_TEMPERATURE)) - by_loops),
        compared="ROUNDING - |package in JAX - loops in Python|",
    )

# %% [markdown]
# The loops say 3.846<!-- record: loops/start --> and 0.0257<!-- record: loops/trained -->, as JAX does. They
# share no line with the code they check, and that is what makes their agreement worth something.

# %% [markdown]
# ## 15. Experiment: does twice the loss train differently?
#
# Back to the scale of section 9. Train once more on *twice* the loss, with every setting unchanged: Adam as before, and
# plain gradient descent with the rate 1.
#
# **Predict before running.** Where do you end with plain gradient descent: at the same vectors or at others?
# Where with Adam? And what setting brings plain gradient descent back to the first run?
#
# *Your prediction:* …

# %%
descent, twice, aligned = (
    train(optax.sgd(rate), start, weight)[1][-1]["loss"] for rate, weight in [(1.0, 1.0), (1.0, 2.0), (0.5, 2.0)]
)
adam_twice = train(optax.adam(LEARNING_RATE), start, 2.0)[1][-1]["loss"]
log.metric("twice/descent", descent, unit="nats")
log.metric("twice/descent_on_twice_the_loss", twice, unit="nats")
log.metric("twice/adam_on_twice_the_loss", adam_twice, unit="nats")
log.claim(
    "twice/descent_goes_elsewhere",
    margin=abs(descent - twice) - 1e-4,
    compared="|descent on the loss - descent on twice the loss| - 1e-4",
)
log.claim(
    "twice/half_the_rate_aligns_descent",
    margin=ROUNDING - abs(descent - aligned),
    compared="ROUNDING - |descent on the loss - descent on twice the loss at half the rate|",
)
log.claim(
    "twice/adam_hardly_notices",
    margin=1e-5 - abs(adam_twice - curves["loss"][-1]),
    compared="1e-5 - |Adam on twice the loss - Adam on the loss|",
)

# %% [markdown]
# Measured on our scale, gradient descent ends at 0.0275<!-- record: twice/descent --> and, on twice the loss,
# at 0.0252<!-- record: twice/descent_on_twice_the_loss -->: twice the loss is twice the step. Halve the
# learning rate and both runs agree. Adam ends at 0.0257<!-- record: twice/adam_on_twice_the_loss -->, as
# before: it divides each step by the size of recent gradients, so a constant factor cancels, except for the
# small constant that guards the division. So whether a learning rate carries over from other code depends on
# the scale of its loss *and* on its optimiser.

# %% [markdown]
# ## Make it yours: four more exercises
#
# As in `01`: fill in each function and hand it to the judge. Once the judge is satisfied, run the cell after it. That
# one uses your function on this notebook's own batch, and no other cell needs it.

# %% [markdown]
# ### Exercise 4. Translate the layout
#
# **Difficulty** ●○○ · **about 10 minutes**
#
# You get a batch from other code: interleaved, the two views of a card side by side. Stack it.
#
# **Predict before coding.** Six rows, named 1 to 6 as they arrive. In which order must they leave?
#
# *Your prediction:* …
#
# **Steps**
#
# 1. Collect the first views: every second row, from the first one on.
# 2. Collect the second views in the same order.
# 3. Put the first pile on top of the second.
#
# **Useful**
#
# - `rows[start::2]` takes every second row from `start` on.
# - `jnp.concatenate([a, b])` stacks along the rows.
#
# <details><summary>Hint 1</summary>
#
# Rows 1 and 2 are partners when they arrive. When they leave, they must be half a pile apart.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `reshape` alone cannot do it: it never changes the order in which the numbers stand.
#
# </details>


# %% tags=["exercise"]
def stack_views(interleaved):
    """Rows first0, second0, first1, second1, … in the order first0, first1, …, second0, second1, …

    Shape in and out: [2B, D].
    """
    # TODO 1: first = ...    the first views
    # TODO 2: second = ...   the second views
    # TODO 3: return ...     first on top of second
    ### BEGIN SOLUTION
    first = interleaved[0::2]
    second = interleaved[1::2]
    return jnp.concatenate([first, second])
    ### END SOLUTION


# %%
judge(stack_views)

# %%
arrived = jnp.stack([view1, view2], axis=1).reshape(6, 2)
log.metric("exercise/unstacked", pile_loss(arrived), unit="nats")
log.metric("exercise/stacked", pile_loss(stack_views(arrived)), unit="nats")
log.claim(
    "exercise/layout_restored",
    margin=ROUNDING - abs(pile_loss(stack_views(arrived)) - pile_loss(lopsided)),
    compared="ROUNDING - |loss after your translation - loss of the stacked batch|",
)

# %% [markdown]
# **Common mistake.** `interleaved.reshape(2, B, D)` looks like two views, one above the other. But it cuts the
# batch in the middle, between cards, and pulls no views apart: flattened again, it is the batch as it arrived.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# The lopsided batch costs 3.640<!-- record: exercise/unstacked --> as it arrives, more than twice what guessing
# costs, and 0.379<!-- record: exercise/stacked --> once it is stacked. The same sign as in `01`: a loss far
# above guessing means that the answer key is wrong, not that the vectors are bad.
#
# </details>

# %% [markdown]
# ### Exercise 5. Cut CLIP's objective out of the pile
#
# **Difficulty** ●●○ · **about 15 minutes**
#
# The pile holds all the cosines that CLIP's objective needs, and more. Forbid the cells it does not ask
# about.
#
# **Predict before coding.** Of the 36 cells of a pile of six rows, how many remain? And the partners: do any
# of them get lost?
#
# *Your prediction for the partners:* …

# %% tags=["prediction"]
predict("cells that remain, of 36", ...)

# %% [markdown]
# **Steps**
#
# 1. Number the views: 0 for every row of `view1`, 1 for every row of `view2`.
# 2. Mark the cells whose row and column come from the same view. An anchor's own cell is among them.
# 3. Set these to minus infinity, and return the mean cost of the partners.
#
# **Useful**
#
# - `a[:, None] == a[None, :]` compares every entry of `a` with every other.
# - `jnp.where(forbidden, -jnp.inf, logits)` masks; `costs` and `partners` stand in sections 3 and 4.
#
# <details><summary>Hint 1</summary>
#
# The layout is stacked. So the view of a row is told by which *half* of the pile it lies in, not by whether
# its number is even.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `view = jnp.arange(len(logits)) // len(view1)` counts 0, 0, …, 1, 1, …
#
# </details>


# %% tags=["exercise"]
def cross_view_loss(view1, view2, temperature):
    """CLIP's symmetric objective in nats, computed from the stacked table.

    Shapes: view1 [B, D], view2 [B, D]. Returns one number.
    """
    logits = cosine_table(jnp.concatenate([view1, view2])) / temperature
    # TODO 1: view = ...        which view each of the 2B rows belongs to
    # TODO 2: same_view = ...   [2B, 2B], True where row and column belong to the same view
    # TODO 3: return ...        mean cost of the partners with those cells forbidden
    ### BEGIN SOLUTION
    view = jnp.arange(len(logits)) // len(view1)
    same_view = view[:, None] == view[None, :]
    return jnp.mean(costs(jnp.where(same_view, -jnp.inf, logits), partners(len(logits))))
    ### END SOLUTION


# %%
judge(cross_view_loss)

# %%
view_of_row = jnp.arange(6) // 3
outcome("cells that remain, of 36", jnp.sum(view_of_row[:, None] != view_of_row[None, :]))
across = cross_view_loss(view1, view2, TEMPERATURE)
log.metric("exercise/across", across, unit="nats")
log.claim(
    "exercise/across_is_the_paired_loss",
    margin=ROUNDING - abs(across - contrastive_jax.paired_contrastive(view1, view2, TEMPERATURE)),
    compared="ROUNDING - |your loss - paired_contrastive|",
)

# %% [markdown]
# **Common mistake.** Numbering the views by `arange % 2`. That is the interleaved layout again. With two
# pairs it forbids the partners, and the loss is infinite; with three it gives a plausible number.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# The lopsided batch costs 0.246<!-- record: exercise/across --> across the views and
# 0.379<!-- record: scale/ours --> in the pile. In each row the same-view cells only ever *add* to the
# denominator, so CLIP's objective is never above NT-Xent on the same vectors and temperature. Half of the
# cells remain, 18 of 36, and every partner is among them.
#
# </details>

# %% [markdown]
# ### Exercise 6. The gradient in one line
#
# **Difficulty** ●●● · **about 20 minutes**
#
# In `01` you followed the gradient of one logit. Here follow it to the rows. Let $u_i$ be the rows after
# normalisation, $p_{ij}$ the softmax along row $i$ (with $p_{ii} = 0$), and $y_{ij}$ one where $j$ is the
# partner of $i$, else zero. One cell gives
#
# $$
# \frac{\partial L}{\partial s_{ij}} = \frac{1}{2B}\,(p_{ij} - y_{ij}),
# \qquad s_{ij} = \frac{u_i \cdot u_j}{\tau}.
# $$
#
# **Predict before coding.** Take six rows, and leave out the diagonal. In how many of the 30 cells does row
# $u_0$ occur: in the five of its own row, or in more?

# %% tags=["prediction"]
predict("cells with row 0, of 30", ...)

# %% [markdown]
# **Steps**
#
# 1. Compute the softmax along every row, with the row's own cell left out.
# 2. Write the partners as a `[2B, 2B]` table of zeros and ones.
# 3. Collect, for each row $k$, what its cells pass on: those where it *asks*, and those where it is *asked
#    about*.
#
# **Useful**
#
# - `jax.nn.softmax(logits, axis=1)`; `without_self` from section 4.
# - `jnp.eye(n, dtype=units.dtype)[answers]` puts a one into column `answers[i]` of row `i`.
# - `table.T` turns "i asks about j" into "j asks about i".
#
# <details><summary>Hint 1</summary>
#
# The cell $(k, j)$ passes $u_j$ to row $k$, and so does the cell $(j, k)$, with $p_{jk}$ instead of $p_{kj}$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Add the table of $p_{ij} - y_{ij}$ to its own transpose, multiply by the rows, and do not forget
# $1/(2B\tau)$. The partner table is its own transpose.
#
# </details>


# %% tags=["exercise"]
def row_gradient(units, temperature):
    """Gradient of NT-Xent with respect to its normalised rows.

    Shape in and out: [2B, D], stacked. The rows have length one.
    """
    # TODO 1: probability = ...   [2B, 2B], softmax along each row without its own cell
    # TODO 2: partner = ...       [2B, 2B], one where the column is the row's partner
    # TODO 3: return ...          [2B, D], what both kinds of cells pass on to each row
    ### BEGIN SOLUTION
    probability = jax.nn.softmax(without_self(units @ units.T / temperature), axis=1)
    partner = jnp.eye(len(units), dtype=units.dtype)[partners(len(units))]
    return (probability + probability.T - 2 * partner) @ units / (len(units) * temperature)
    ### END SOLUTION


# %%
judge(row_gradient)


# %%
def unit_loss(units, temperature):
    """The loss of rows that are already normalised."""
    return jnp.mean(costs(without_self(units @ units.T / temperature), partners(len(units))))


units = unit_rows(lopsided)
by_autodiff = jax.grad(unit_loss)(units, 0.5)
off_diagonal = ~jnp.eye(6, dtype=bool)
outcome("cells with row 0, of 30", jnp.sum(off_diagonal[0]) + jnp.sum(off_diagonal[:, 0]))
yours = row_gradient(units, 0.5)
log.series("exercise/row_0", [*yours[0], jax.grad(pile_loss)(lopsided, 0.5)[0, 1]])
log.claim(
    "exercise/gradient_agrees",
    margin=ROUNDING - jnp.max(jnp.abs(yours - by_autodiff)),
    compared="ROUNDING - largest |your gradient - autodiff|",
)

# %% [markdown]
# **Common mistake.** Leaving out the transpose. Each row then learns from its own question only, as if the
# others did not ask about it. The numbers have the right size, and nothing but a comparison shows the gap.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# Row $u_k$ occurs in $4B - 2$ cells that count, ten of 30 here: the $2B - 1$ of its own row and the $2B - 1$ of
# its column. One table, read along its rows and down its columns, moves every row, with no second softmax. It also
# tells who is pushed how hard. A rival counts by its probability twice, as answer to my question and as asker of
# its own, and a close rival gets nearly all of the force.
#
# The step through the normalisation follows, as in section 6 of `01`. Row 0 of the batch is $(2, 0)$, and
# your gradient for it is -0.243<!-- record: exercise/row_0[0] --> along the row and
# -0.117<!-- record: exercise/row_0[1] --> across. The part along the row is removed. The part across is
# divided by the length 2, which leaves -0.059<!-- record: exercise/row_0[2] -->. So a plain gradient step stands
# at a right angle to its row, and can only make it longer.
#
# With your line the loss can even be trained without ever holding the whole table. `07_scaling`, a notebook that is
# planned, will build on it.
#
# </details>

# %% [markdown]
# ### Exercise 7. Diagnose a broken run
#
# **Difficulty** ●●○ · **about 10 minutes**
#
# A new NT-Xent is tried on three batches at temperature 1 before it trains. Which mistake does it have?
#
# | reported | value |
# |---|---|
# | one pair of equal rows | `0.693` |
# | two orthogonal pairs | `1.006` |
# | four equal rows | `1.386` |
#
# - **a**: The means of the two views are added, not averaged.
# - **b**: Rows of the anchor's own view are left out.
# - **c**: The views are interleaved, but taken as stacked.
# - **d**: Each row is a candidate for itself.
#
# **Steps**
#
# 1. Work out by hand what each batch should cost. Section 5 has two of the three, section 4 has the other.
# 2. For each cause, work out what *it* would report for one pair.
# 3. Check what is left against the other two lines, and type its letter.
#
# <details><summary>Hint 1</summary>
#
# One pair, done right, has no rival and costs 0. Twice 0 is 0, and a change of order among two equal rows changes
# nothing.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `0.693` is $\log 2$ and `1.386` is $\log 4$: guessing among two, and among four. How many candidates should there
# have been?
#
# </details>

# %% tags=["exercise"]
answer = ...  # one of "a", "b", "c", "d"
### BEGIN SOLUTION
answer = "d"
### END SOLUTION

# %%
judge(answer, exercise="broken_run_02")

# %% [markdown]
# **Common mistake.** Testing with the two orthogonal pairs alone. Their value is too large, and many mistakes make
# it so. The two degenerate batches tell which.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# Both degenerate batches report the logarithm of one candidate too many. Two orthogonal pairs agree: the sum holds
# $e$ twice, once for the partner and once for the row itself, and $2e^0$, so each row costs
# $\log(2e + 2) - 1 = \log(2 + 2/e)$. This mistake is named `self` in the table of section 11, and one pair was
# enough to catch it there.
#
# </details>

# %% [markdown]
# ## What have we shown?
#
# The lab ends with every partner found among eleven candidates. What has it learnt? **Nothing about the
# world.** The two tables had nothing in common at the start; a row is near its partner because we declared
# them partners and trained them. There was no picture, no view, no encoder, and no row that was held back. It
# shows that loss, gradient and optimiser work together, and that 96 free numbers can satisfy any pairing you
# like. That is a warning, too: whatever can memorise the pairing needs a test on sources it has not seen.
#
# ## Check your understanding
#
# Your loss and a colleague's differ on the same vectors. Hers is exactly twice yours for every batch you try.
# What do you do?
#
# 1. Look for same-view negatives that one of you leaves out.
# 2. Agree on the scale, then compare again.
# 3. Compare the two training curves, since an optimiser does not care about a factor.
#
# <details><summary>Answer</summary>
#
# **The second.** Left-out negatives give another factor on every batch: 0.127<!-- record: hand/two_piles -->
# against 0.240<!-- record: hand/pile --> on the two pairs, 0.246<!-- record: exercise/across --> against
# 0.379<!-- record: scale/ours --> on the lopsided batch. Exactly two, always, is the sum of two means
# (section 9). The third is true of Adam only, and nearly (section 15).
#
# </details>
#
# ## When a value looks wrong
#
# | you see | look first at | likely cause |
# |---|---|---|
# | exactly twice your value | equal rows: $\log(2B - 1)$ or twice that | two halves added |
# | far above $\log(2B - 1)$ | the layout, the partner of row 0 | stacked against interleaved |
# | equal rows cost $\log 2B$ | the diagonal of the logits | the anchor is among its candidates |
# | equal rows cost $\log B$ | the width of the table | same-view negatives left out |
# | one pair costs more than 0 | the mask | a constant, a zero, or a mask before scaling |
# | the loss depends on the lengths of the rows | normalisation | missing, or in one view only |
# | value right, training odd | the gradient into each view | a detached view |
# | `nan` in half precision | the mask | zero times infinity |
#
# ## Carry forward
#
# - **One pile, one cross.** Every view competes with all others; only the anchor itself is left out.
# - **Stacked or interleaved:** say it, and test it with a batch where it matters.
# - **Minus infinity, after scaling, with `where`.** Any constant has a temperature at which it is wrong.
# - **Three closed forms** cost nothing to test: $\log(1 + 2e^{-1/\tau})$, 0 for one pair, $\log(2B - 1)$.
# - **They are not enough.** A lopsided batch of uneven lengths catches what symmetric ones cannot, and
#   gradients catch what values cannot.
# - **Compare losses** only at equal temperature, equal pool and equal scale.
#
# ## References
#
# - T. Chen and others, *A Simple Framework for Contrastive Learning of Visual Representations* (SimCLR):
#   [arxiv.org/abs/2002.05709](https://arxiv.org/abs/2002.05709). Equation 1 is the loss, algorithm 1 has the
#   mean over $2B$ rows. Their code is
#   [github.com/google-research/simclr](https://github.com/google-research/simclr).
# - K. Sohn, *Improved Deep Metric Learning with Multi-class N-pair Loss Objective* (NIPS 2016). An early form
#   of one positive against all others of the batch.
# - A. Radford and others, *Learning Transferable Visual Models From Natural Language Supervision* (CLIP):
#   [arxiv.org/abs/2103.00020](https://arxiv.org/abs/2103.00020). The objective across two kinds of input.
# - W. Liang and others, *Mind the Gap: Understanding the Modality Gap in Multi-modal Contrastive
#   Representation Learning*: [arxiv.org/abs/2203.02053](https://arxiv.org/abs/2203.02053). The two bundles of
#   section 8, in trained models.
#
# **Back:** `01_paired_views` has the pairing, the temperature and collapse at length. **Next:** `03_clip`
# goes back to two piles, an image and a text each, and learns the temperature. `04_image_views` trains an
# encoder on real views with the loss you have just written.

# %% [markdown]
# ## Keep your evidence
#
# The next cell saves `portfolio-02_nt_xent.html` beside this notebook: one page for any browser, without a network,
# with your predictions and their outcomes, your code and what the judge said to it, the figures, and your numbers
# against the recorded run. Save the notebook as well, with a line on one mistake you now recognise by its number.

# %%
passed = sorted({each["exercise"] for each in evidence()["attempts"] if each["passed"]})
log.text("exercises/passed", ", ".join(passed))
log.portfolio(evidence())

# %% [markdown]
# One cell is left: it closes the log.

# %%
log.close()
