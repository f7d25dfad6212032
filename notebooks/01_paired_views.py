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
# # Paired views: which of these belong together?
#
# You will teach a very small encoder to recognise two views of the same thing, with a loss you derive
# yourself, and you will check every number it reports.
#
# ## What you will be able to do
#
# - mark the positive pairs of a batch before a single vector is computed, and keep them true through every
#   shuffle;
# - derive the symmetric paired loss from cosine similarity, a temperature and cross-entropy;
# - follow its gradient by hand for one row, and catch a gradient that is wrong although the loss is correct;
# - recognise collapse, a broken pairing and false negatives by the numbers they leave behind;
# - say what success on the training pairs proves, and what it does not.
#
# **You need:** JAX arrays, `jax.jit` and `jax.value_and_grad`; softmax and cross-entropy; the matrix product.
# Nothing is downloaded, nothing is random, and a CPU runs every cell in seconds.
#
# **Time:** about 130 minutes, 70 of them for the five exercises. **Lesson:** `pretraining-03`.
#
# ## How to use this notebook
#
# Each step has three beats: **predict, run, compare**. Write your prediction into the notebook before you run
# the cell below it. A prediction that turns out wrong is worth more than one that comes true: it shows you
# what to read again. Words you do not know stand in `GLOSSARY.md` at the top of the repository.
#
# The numbers in the text come from the recorded reference run. Yours may differ in the last digits;
# `make check NB=01` says whether the difference is rounding or a real one.

# %% tags=["parameters"]
PRECISION = "float32"
LOG_PATH = ""
LEARNING_RATE = 0.03
STEPS = 60
TEMPERATURE = 0.2

# %%
import jax

# Both must come before the first array. On a CPU the second changes nothing; an accelerator would otherwise
# multiply float32 matrices with fewer digits.
jax.config.update("jax_enable_x64", PRECISION == "float64")
jax.config.update("jax_default_matmul_precision", "highest")

import math

import jax.numpy as jnp
import numpy as np

import contrastive_jax
from contrastive_jax.exercises import evidence, judge, outcome, predict
from reproduce.log import RunLog

DTYPE = jnp.dtype(PRECISION)
EPS = float(jnp.finfo(DTYPE).eps)
ROUNDING = 32 * EPS / TEMPERATURE

log = RunLog(
    LOG_PATH,
    notebook="pretraining-03",
    stem="01_paired_views",
    precision=PRECISION,
    parameters={"LEARNING_RATE": LEARNING_RATE, "STEPS": STEPS, "TEMPERATURE": TEMPERATURE},
)

# %% [markdown]
# `log` prints each result and, when the notebook is run for the record, also writes it down.
#
# `ROUNDING` is how far apart two correct ways to compute the same loss may lie. A cosine is accurate to a few
# `EPS`, the spacing of numbers near one. Dividing by the temperature magnifies that error. The factor 32
# leaves room for sums in another order, and is still far below anything a real mistake would cause.
#
# ## 1. Four cards, two views each
#
# Take four cards and write the numbers 0 to 3 on their backs. These are the **source ids**. Photograph each
# card twice: a left view and a right view. Now lay out a table. Left views label the rows, right views label
# the columns, and each cell will hold how similar the two views look.
#
# | | right 0 | right 1 | right 2 | right 3 |
# |---|:-:|:-:|:-:|:-:|
# | **left 0** | ✔ | · | · | · |
# | **left 1** | · | ✔ | · | · |
# | **left 2** | · | · | ✔ | · |
# | **left 3** | · | · | · | ✔ |
#
# A row asks: *which right view shows this card?* A column asks the same question the other way round. A tick
# is a **positive**, a dot a **negative**. The ticks form a diagonal only because both piles lie in the same
# order. The source id decides what is correct; the position merely follows it. So the ids must travel with
# the views.
#
# Two assumptions are built into the table.
#
# - **A view keeps its identity.** Turn a card with a 6 upside down and it shows a 9. Such an augmentation
#   makes a *false positive*: two views called the same that no longer are.
# - **Different ids are different things.** If cards 1 and 3 carry the same picture, the table still calls
#   them negatives of each other. That is a *false negative*: the loss pulls apart what belongs together.
#
# **Pause.** You find a high value away from the diagonal. Is it an error?
#
# <details><summary>Compare with our answer</summary>
#
# Not always. It may be a real confusion. It may also be a second valid match that the table failed to mark.
# Only the meaning of the two sources can tell, never their positions.
#
# </details>
#
# ## 2. Two pairs by hand
#
# Start with two pairs, small enough for paper. The left views are the unit vectors $(1, 0)$ and $(0, 1)$, and
# the right views are the same two. Their cosines are
#
# $$S = \begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}.$$
#
# Divide by a positive **temperature** $\tau$ and take the softmax of row 0. The correct answer gets the
# probability
#
# $$p = \frac{e^{1/\tau}}{e^{1/\tau} + e^{0}}, \qquad
# \text{and its cost is}\qquad -\log p = \log\left(1 + e^{-1/\tau}\right).$$
#
# The other row, and both columns, give the same. Now suppose that somebody swapped the right pile and kept
# the ticks on the diagonal. The ticked cosine is 0, its rival's is 1, and the cost becomes
# $\log(1 + e^{1/\tau})$.

# %% [markdown]
# **Predict before running.** The temperature is 0.2<!-- parameter: TEMPERATURE -->, so $1/\tau = 5$. What
# does the correct pairing cost? And the swapped one: twice, ten times, hundreds of times as much?
#
# A prediction that is a number goes into `predict`: put yours in place of the dots, add your reason as
# `because="…"` if you like, and run the cell. The next cell measures, and `outcome` says how far off you were;
# leave the dots, and it shows the number alone.

# %% tags=["prediction"]
predict("cost of a correct pair", ...)
predict("cost of a swapped pair", ...)

# %%
match, rival = math.exp(1 / TEMPERATURE), math.exp(0)
matched_cost, swapped_cost = (-math.log(each / (match + rival)) for each in (match, rival))
log.metric("hand/probability", match / (match + rival))
log.metric("hand/matched_loss", matched_cost, unit="nats")
log.metric("hand/swapped_loss", swapped_cost, unit="nats")
outcome("cost of a correct pair", matched_cost)
outcome("cost of a swapped pair", swapped_cost)

# %% [markdown]
# The correct answer gets the probability 0.9933<!-- record: hand/probability --> and costs
# 0.0067<!-- record: hand/matched_loss --> nats. The swapped one costs
# 5.0067<!-- record: hand/swapped_loss -->: hundreds of times as much, and exactly $1/\tau$ more. A confident
# mistake is expensive.

# %% [markdown]
# ## 3. Similarity, and the views
#
# The **cosine** compares directions. Scale each row to length one, then take dot products. A row of zeros has
# no direction, so the length gets a floor of `1e-6`, and a zero row stays zero.


# %%
def unit_rows(x, floor=1e-6):
    """Rows scaled to length one; a row shorter than `floor` is divided by `floor` instead."""
    # The floor stands under the root: the root alone has an infinite derivative at zero, and 0 * inf is nan.
    squares = jnp.sum(x * x, axis=-1, keepdims=True)
    return x / jnp.sqrt(jnp.maximum(squares, floor**2))


def cosine_matrix(left, right):
    """Cosine of each left row with each right row: [N, D] and [M, D] give [N, M]."""
    return unit_rows(left) @ unit_rows(right).T


# %% [markdown]
# Our views are four short vectors and slightly nudged copies of them. Row `i` of both arrays belongs to
# source `i`. Seen from above, the four sources point east, north, west and south.
#
# **Predict before running.** The nudges are at most `0.02` in each coordinate. How low does the cosine of a
# left view with its own right view get: above or below $\frac{99}{100}$?

# %% tags=["prediction"]
predict("lowest cosine of partners", ...)

# %%
left_views = jnp.array(
    [
        [1.0, 0.0, 0.2],
        [0.0, 1.0, -0.2],
        [-1.0, 0.0, 0.1],
        [0.0, -1.0, -0.1],
    ],
    dtype=DTYPE,
)
nudges = jnp.array(
    [
        [0.02, -0.01, 0.0],
        [-0.01, 0.02, 0.0],
        [0.01, 0.01, 0.0],
        [-0.02, -0.01, 0.0],
    ],
    dtype=DTYPE,
)
right_views = left_views + nudges
own_cosines = jnp.diagonal(cosine_matrix(left_views, right_views))
log.metric("views/lowest_positive_cosine", jnp.min(own_cosines))
outcome("lowest cosine of partners", jnp.min(own_cosines))

# %% [markdown]
# The lowest is 0.9998<!-- record: views/lowest_positive_cosine -->: these nudges keep the identity of every
# source. We made the views ourselves, so we know that. With photographs you would have to look.

# %% [markdown]
# ## 4. The loss, for a whole batch
#
# Let $s_{ij}$ be the cosine of left $i$ with right $j$, for $N$ pairs. Each row is a question with $N$
# possible answers, and so is each column. Score both with cross-entropy and take the mean:
#
# $$
# L = \frac{1}{2N} \sum_{i=1}^{N} \left[
# \Big(\log \sum_{j} e^{s_{ij}/\tau} - \frac{s_{ii}}{\tau}\Big)
# + \Big(\log \sum_{j} e^{s_{ji}/\tau} - \frac{s_{ii}}{\tau}\Big)
# \right]
# $$
#
# In the first bracket left $i$ asks and the right views compete. In the second, right $i$ asks and the left
# views compete. Same table, other denominators.

# %% [markdown]
# ### Exercise 1. From the formula to code
#
# **Difficulty** ●●○ · **about 20 minutes**
#
# Write the loss as a function of two arrays of embeddings, left and right. Row `i` of one belongs to row `i` of the
# other.
#
# **Predict before coding.** The smallest batch is a single pair. Read the formula for $N = 1$: what does one
# pair cost, whatever its vectors and its temperature?

# %% tags=["prediction"]
predict("loss of one pair", ...)

# %% [markdown]
# **Steps**
#
# 1. Make the table of cosines and divide it by the temperature.
# 2. Let the rows ask: take the logarithm of the softmax along each row.
# 3. Let the columns ask: the same down each column of the same table.
# 4. Pick the correct answers out of both, and return the mean of all $2N$ costs.
#
# **Useful**
#
# - `cosine_matrix(left, right)` stands in section 3. It minds rows of zeros for you.
# - `jax.nn.log_softmax(table, axis=1)` works along the rows, `axis=0` down the columns. It subtracts the
#   largest logit first, so nothing overflows. `log(softmax(...))` would call a hopeless answer infinitely bad.
# - `jnp.diagonal(table)` are the cells with a tick.
#
# <details><summary>Hint 1</summary>
#
# A logarithm of a probability is never above zero, and a cost is never below. And the ticked cells are the same
# for both directions: only what surrounds them differs.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# With `rows_ask = jax.nn.log_softmax(logits, axis=1)` the first half of the loss is
# `-jnp.mean(jnp.diagonal(rows_ask))`. The second half differs in one character.
#
# </details>


# %% tags=["exercise"]
def paired_contrastive(left, right, temperature=0.2):
    """Symmetric paired loss in nats; row i of `left` belongs to row i of `right`.

    Shapes: left [N, D], right [N, D]. Returns one number.
    """
    # TODO 1: logits = ...        [N, N], cosines over the temperature
    # TODO 2: rows_ask = ...      [N, N], log-probabilities along the rows
    # TODO 3: columns_ask = ...   [N, N], log-probabilities down the columns
    # TODO 4: return ...          mean cost of the correct answers, over both directions
    ### BEGIN SOLUTION
    logits = cosine_matrix(left, right) / temperature
    rows_ask = jax.nn.log_softmax(logits, axis=1)
    columns_ask = jax.nn.log_softmax(logits, axis=0)
    return -jnp.mean(jnp.diagonal(rows_ask) + jnp.diagonal(columns_ask)) / 2
    ### END SOLUTION


# %% [markdown]
# Now hand your function to the **judge**. It tries small batches first, then gradients, then the edges. It
# stops at the first thing that fails and shows the input, your number and the right one. If a mistake we know
# behaves exactly like your function, it says which. Change your function, run both cells again, as often as
# you like. (`judge(paired_contrastive, verbose=True)` lists every check.)

# %%
judge(paired_contrastive)

# %% [markdown]
# **Common mistake.** Asking in one direction only. On your two pairs from paper both directions cost the same,
# so that batch cannot show it. Section 9 has one that can.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# What does a pass tell you? The values are those of slow loops in float64, on batches that treat the two sides
# alike and on others that do not. The gradients into both sides and into the temperature are right, a row of
# zeros and a temperature of 1/1000 do no harm, and lengths do not matter. All that follows runs on our version
# below. To let it run on yours, write `paired_loss = paired_contrastive` after that cell: only last digits may
# move.
#
# </details>

# %% [markdown]
# ### Our version
#
# We keep the two directions apart, because section 9 looks at them one by one.


# %%
def directions(logits):
    """Mean cross-entropy of the diagonal: rows asking, then columns asking."""
    rows_ask = jax.nn.log_softmax(logits, axis=1)
    columns_ask = jax.nn.log_softmax(logits, axis=0)
    return -jnp.mean(jnp.diagonal(rows_ask)), -jnp.mean(jnp.diagonal(columns_ask))


def paired_loss(left, right, temperature=TEMPERATURE):
    """Symmetric paired loss in nats; row i of `left` belongs to row i of `right`."""
    left_asks, right_asks = directions(cosine_matrix(left, right) / temperature)
    return (left_asks + right_asks) / 2


two_pairs = jnp.eye(2, dtype=DTYPE)
by_hand = math.log1p(math.exp(-1 / TEMPERATURE))
log.claim(
    "hand/function_agrees",
    margin=ROUNDING - abs(float(paired_loss(two_pairs, two_pairs)) - by_hand),
    compared="ROUNDING - |paired_loss - log(1 + exp(-1/t))|",
)
outcome("loss of one pair", abs(paired_loss(two_pairs[:1], two_pairs[:1])))

# %% [markdown]
# The claim holds: the function gives the number from your paper. A claim's **margin** is its distance from
# failing. Here it is nearly all of `ROUNDING`.
#
# One pair costs nothing: with a single candidate there is no wrong choice. So a loss of zero may mean a perfect
# encoder, or a question that could not be answered wrongly.

# %% [markdown]
# ## 5. Before training
#
# One linear encoder maps every view, left or right, to a point in the plane. It is a `3 x 2` matrix. (CLIP
# has two encoders, one for images and one for texts. The bookkeeping you learn here is the same; `03_clip`
# adds the rest.) The two columns of our starting weights are nearly alike, so all embeddings crowd around a
# single line.
#
# **Predict before running.** Guessing among four candidates costs $\log 4$, which is
# 1.386<!-- record: baseline/collapsed_loss --> nats. Does the untrained encoder do better or worse? And how
# many of the four left views already have their own right view as the nearest?

# %% tags=["prediction"]
predict("loss before training", ...)
predict("left views with their partner nearest, of 4", ...)

# %%
initial_weights = jnp.array([[0.2, 0.1], [0.1, 0.1], [0.02, -0.01]], dtype=DTYPE)


def embed(weights):
    """Left and right embeddings, [4, 2] each."""
    return left_views @ weights, right_views @ weights


def objective(weights):
    return paired_loss(*embed(weights))


def leads(scores):
    """How far the correct answer leads its best rival, at worst: over rows, then over columns."""
    own = jnp.diagonal(scores)
    rivals = jnp.where(jnp.eye(len(scores), dtype=bool), -jnp.inf, scores)
    return jnp.min(own - jnp.max(rivals, axis=1)), jnp.min(own - jnp.max(rivals, axis=0))


loss_and_gradient = jax.jit(jax.value_and_grad(objective))
initial_cosines = cosine_matrix(*embed(initial_weights))
log.metric("train/initial_loss", loss_and_gradient(initial_weights)[0], unit="nats")
log.series("start/cosines_of_left_0", initial_cosines[0], unit="cosine similarity")
log.metric("start/lead", min(leads(initial_cosines)), unit="cosine similarity")
outcome("loss before training", loss_and_gradient(initial_weights)[0])
outcome("left views with their partner nearest, of 4", jnp.sum(jnp.argmax(initial_cosines, axis=1) == jnp.arange(4)))

# %% [markdown]
# All four are correct already, in both directions, because even the smallest lead is positive. But that lead
# is only 0.042<!-- record: start/lead -->. Left 0 has the cosine
# 1.000<!-- record: start/cosines_of_left_0[0] --> with its own partner and
# 0.931<!-- record: start/cosines_of_left_0[1] --> with right 1. So the loss is
# 0.564<!-- record: train/initial_loss -->, not far below $\log 2$: two candidates are out of the race, and
# the other two are nearly tied. Retrieval asks who is first. The loss also asks by how much.

# %% [markdown]
# ## 6. One row of the derivative
#
# Write $z_{ij} = s_{ij}/\tau$ for the logits, $p_{ij}$ for the softmax along row $i$, and $q_{ij}$ for the
# softmax down column $j$. The derivative of the loss is short enough to remember:
#
# $$\frac{\partial L}{\partial z_{ij}}
# = \frac{1}{2N}\Big[(p_{ij} - \mathbf{1}[i = j]) + (q_{ij} - \mathbf{1}[i = j])\Big].$$
#
# **Predict before running.** Look at left 0, whose cosines you just saw. Which of its four logits does a step
# of gradient descent push up, which one down, and which does it leave alone?
#
# *Your prediction:* …

# %%
logits = initial_cosines / TEMPERATURE
row_softmax, column_softmax = jax.nn.softmax(logits, axis=1), jax.nn.softmax(logits, axis=0)
own = jnp.eye(len(logits), dtype=DTYPE)
by_formula = ((row_softmax - own) + (column_softmax - own)) / (2 * len(logits))
by_autodiff = jax.grad(lambda z: sum(directions(z)) / 2)(logits)

log.series("derivative/row_0_p", row_softmax[0])
log.series("derivative/row_0_q", column_softmax[0])
log.series("derivative/row_0", by_formula[0])
log.claim(
    "derivative/formula_agrees",
    margin=ROUNDING - jnp.max(jnp.abs(by_formula - by_autodiff)),
    compared="ROUNDING - largest |formula - autodiff| over all 16 logits",
)

# %% [markdown]
# Left 0, with its two softmax values and the derivative, candidate by candidate:
#
# - **right 0, its own partner:** $p$ = 0.585<!-- record: derivative/row_0_p[0] -->, $q$ =
#   0.584<!-- record: derivative/row_0_q[0] -->, derivative -0.104<!-- record: derivative/row_0[0] -->.
#   Descent steps against the derivative, so this logit goes **up**.
# - **right 1, the close rival:** $p$ = 0.415<!-- record: derivative/row_0_p[1] -->, $q$ =
#   0.415<!-- record: derivative/row_0_q[1] -->, derivative 0.104<!-- record: derivative/row_0[1] -->. It goes
#   **down**.
# - **right 2 and right 3, far away:** $p$ = 0.00003<!-- record: derivative/row_0_p[2] --> for both, and both
#   derivatives are 0.00001<!-- record: derivative/row_0[2] -->. They **stay** almost where they are.
#
# Check one entry on paper: $(p_{00} - 1 + q_{00} - 1)/8$. The push goes to the rival that is close. Rivals
# that are already far get almost none.
#
# From the logits the gradient travels on: through $1/\tau$, through the dot product, and through the
# normalisation. For $u = x/|x|$ that last step multiplies by $(I - uu^\top)/|x|$. It removes every push along
# the embedding itself, because length does not change a cosine, and it makes the pushes on short embeddings
# larger. Exercise 4 tests the whole chain.

# %% [markdown]
# ## 7. Train
#
# Plain gradient descent, 60<!-- parameter: STEPS --> updates at a learning rate of
# 0.03<!-- parameter: LEARNING_RATE -->. The loss is recorded *before* each update, so value 0 belongs to the
# starting weights.
#
# **Predict before running.** Sketch the curve. Does it fall steadily or all at once? And where does it end?
# Hint: at best the four sources end at right angles in the plane, so each has two rivals at cosine 0 and one
# at cosine $-1$.
#
# *Your prediction of the shape:* …

# %% tags=["prediction"]
predict("loss after training", ...)

# %%
weights, losses = initial_weights, []
for _ in range(STEPS):
    loss, gradient = loss_and_gradient(weights)
    losses.append(loss)
    weights = weights - LEARNING_RATE * gradient

square_loss = math.log(1 + 2 * math.exp(-1 / TEMPERATURE) + math.exp(-2 / TEMPERATURE))
log.series("train/loss", losses, unit="nats")
log.metric("train/final_loss", losses[-1], unit="nats")
log.metric("train/square_loss", square_loss, unit="nats")
log.claim("train/loss_falls", margin=losses[0] - losses[-1], compared="first - last recorded loss")
outcome("loss after training", losses[-1])

# %% [markdown]
# The loss falls from 0.564<!-- record: train/loss[0] --> to 0.0136<!-- record: train/loss[-1] -->, and a
# single update does nearly all of it: the next value is already 0.0137<!-- record: train/loss[1] -->. Then
# the curve is flat, and nothing is wrong. A perfect square of directions costs
# $\log(1 + 2e^{-5} + e^{-10}) = 2\log(1 + e^{-5})$, twice your number from paper:
# 0.0134<!-- record: train/square_loss -->. We know of no better arrangement in the plane: the curve is flat
# because it is nearly at its floor.

# %% [markdown]
# ## 8. Who is nearest now?
#
# **Predict before running.** In the table of final cosines, where does the largest value of each row stand?
# Left 0 began in the east, and right 2 in the west. What is their cosine now?
#
# *Your prediction of the places:* …

# %% tags=["prediction"]
predict("final cosine of left 0 and right 2", ...)

# %%
left_z, right_z = embed(weights)
final_cosines = cosine_matrix(left_z, right_z)
accuracy = contrastive_jax.retrieval_accuracy(final_cosines, k=1, ties="strict")
row_lead, column_lead = leads(final_cosines)

log.metric("retrieval/left_to_right", accuracy.left_to_right)
log.metric("retrieval/right_to_left", accuracy.right_to_left)
log.metric("retrieval/lead", min(row_lead, column_lead), unit="cosine similarity")
log.claim("retrieval/all_rows_correct", margin=row_lead, compared="own cosine - best rival's, worst row")
log.claim("retrieval/all_columns_correct", margin=column_lead, compared="the same, worst column")
outcome("final cosine of left 0 and right 2", final_cosines[0, 2])

# %% [markdown]
# Four of four, both ways, as before training. What has changed is the lead: from
# 0.042<!-- record: start/lead --> to 0.953<!-- record: retrieval/lead -->. `ties="strict"` counts a tie as a
# miss, so a collapsed encoder could not pass. Now look at it.

# %%
log.figure(
    "pretraining-03",
    panels=[
        {
            "kind": "line",
            "series": [{"label": "training loss", "x": range(STEPS), "y": losses}],
            "xlabel": "completed updates",
            "ylabel": "symmetric loss (nats)",
            "title": "Training loss",
        },
        {
            "kind": "heatmap",
            "values": final_cosines,
            "rows": [f"left {i}" for i in range(4)],
            "columns": [f"right {j}" for j in range(4)],
            "unit": "cosine similarity",
            "diverging": True,
            "xlabel": "source id of the right view",
            "ylabel": "source id of the left view",
            "title": "Final cosines, before temperature",
        },
    ],
    alt="Left: the training loss drops sharply at the first update and stays flat near zero. Right: a four "
    "by four table of cosines, close to plus one on the diagonal, close to minus one where sources 0 and 2, "
    "or 1 and 3, meet, and close to zero elsewhere.",
)

# %% [markdown]
# **Read the left panel** as nats, not as an error rate. A low value says that each correct answer gets most
# of the probability among *these four* candidates.
#
# **Read the right panel** along rows and down columns, since both directions were trained. Colour shows the
# cosine before the temperature divides it, and a cosine is not a probability. The diagonal is close to one.
# East and west, north and south have become opposites; neighbours stand at right angles. Temperature never
# touches this table.

# %% [markdown]
# ## 9. Two directions, checked by other means
#
# A loss that checks itself proves little. So compute it again on the host: NumPy instead of JAX, float64
# throughout, and `np.logaddexp` instead of `log_softmax`.
#
# After training the two directions are almost equal, and a mix-up of the two would hardly show. So we also
# check a lopsided batch, in which a bug has overwritten right 1 with a copy of right 0.
#
# **Predict before running.** In the lopsided batch, which suffers more: the left views asking or the right
# views asking?
#
# *Your prediction:* …


# %%
def host_directions(left, right, temperature=TEMPERATURE):
    """The two mean cross-entropies, in float64 NumPy."""
    left, right = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    lengths = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    logits = left @ right.T / lengths / temperature
    left_asks = np.logaddexp.reduce(logits, axis=1) - np.diag(logits)
    right_asks = np.logaddexp.reduce(logits, axis=0) - np.diag(logits)
    return np.array([left_asks.mean(), right_asks.mean()])


overwritten = right_z[jnp.array([0, 0, 2, 3])]
for name, right_side in [("trained", right_z), ("lopsided", overwritten)]:
    pair = np.array(directions(cosine_matrix(left_z, right_side) / TEMPERATURE))
    log.metric(f"{name}/left_asks", pair[0], unit="nats")
    log.metric(f"{name}/right_asks", pair[1], unit="nats")
    log.claim(
        f"{name}/host_agrees",
        margin=ROUNDING - np.max(np.abs(pair - host_directions(left_z, right_side))),
        compared="ROUNDING - larger of the two |JAX - host|",
    )

# %% [markdown]
# Host and JAX agree for both batches. In the lopsided one the left views lose
# 0.476<!-- record: lopsided/left_asks --> nats and the right views 1.304<!-- record: lopsided/right_asks -->.
# Left 0 merely finds two equally good candidates, left 1 three equally poor ones. The overwritten right 1 points
# firmly at left 0, and a confident mistake is expensive. Two directions are two questions.

# %% [markdown]
# ## 10. Shuffle both piles together
#
# **Predict before running.** Put *both* piles into the new order 2, 0, 3, 1. What is the loss then, and what
# happens to the picture?
#
# *Your prediction for the picture:* …

# %% tags=["prediction"]
predict("loss after shuffling both piles", ...)

# %%
order = jnp.array([2, 0, 3, 1])
trained_loss = paired_loss(left_z, right_z)
shuffled_loss = paired_loss(left_z[order], right_z[order])
log.metric("trained/loss", trained_loss, unit="nats")
log.claim(
    "trained/joint_shuffle_changes_nothing",
    margin=ROUNDING - abs(trained_loss - shuffled_loss),
    compared="ROUNDING - |loss in the new order - loss in the old order|",
)
outcome("loss after shuffling both piles", shuffled_loss)

# %% [markdown]
# Still 0.0136<!-- record: trained/loss -->: every view kept its partner. The cells of the table move, the
# quality of the pairs does not. Shuffling only *one* pile is another story, and it is exercise 2.

# %% [markdown]
# ## 11. The same loss from the package
#
# From now on you need not paste the function. `contrastive_jax.paired_contrastive` is this loss, with its
# input checks and its tests.
#
# **Predict before running.** Two losses can agree in value and differ in gradient. Do these two agree in
# both?
#
# *Your prediction:* …


# %%
def package_objective(weights):
    return contrastive_jax.paired_contrastive(*embed(weights), temperature=TEMPERATURE)


# The lopsided batch tells the two directions apart, which our well-behaved pairs do not.
batches = [embed(initial_weights), (left_z, overwritten)]
gaps = [paired_loss(*batch) - contrastive_jax.paired_contrastive(*batch, TEMPERATURE) for batch in batches]
log.claim(
    "package/loss_agrees",
    margin=ROUNDING - max(abs(gap) for gap in gaps),
    compared="ROUNDING - |notebook - package|, the worse of the starting and the lopsided batch",
)

# The normalisation divides the gradient by the length of an embedding, and the rounding error with it.
shortest = min(jnp.min(jnp.linalg.norm(side, axis=1)) for side in embed(initial_weights))
gradient_gap = jax.grad(objective)(initial_weights) - jax.grad(package_objective)(initial_weights)
log.claim(
    "package/gradient_agrees",
    margin=ROUNDING / shortest - jnp.max(jnp.abs(gradient_gap)),
    compared="ROUNDING / shortest embedding - largest |notebook - package|",
)

# %% [markdown]
# They agree in both. The package has one definition, tested in one place, and the next notebooks build on it.

# %% [markdown]
# ## 12. Experiment: the collapsed baseline
#
# The cheapest way to make two views agree is to send *every* input to the same point. That is **collapse**.
#
# **Predict before running.** All four embeddings are equal. What is the loss? What is its gradient: large,
# because everything is wrong, or small? And what if all embeddings are zero?
#
# *Your prediction for the gradient, and for zeros:* …

# %% tags=["prediction"]
predict("collapsed loss", ...)

# %%
collapsed = jnp.ones((4, 2), dtype=DTYPE)
zeros = jnp.zeros((4, 2), dtype=DTYPE)
log.metric("baseline/collapsed_loss", paired_loss(collapsed, collapsed), unit="nats")
log.metric("baseline/zero_loss", paired_loss(zeros, zeros), unit="nats")
outcome("collapsed loss", paired_loss(collapsed, collapsed))

losses_off = [abs(float(paired_loss(x, x)) - math.log(4)) for x in (collapsed, zeros)]
slopes = [float(jnp.max(jnp.abs(jax.grad(paired_loss)(x, x)))) for x in (collapsed, zeros)]
log.claim(
    "baseline/collapse_costs_log_4",
    margin=ROUNDING - max(losses_off),
    compared="ROUNDING - |loss - log 4|, the worse of equal and zero embeddings",
)
log.claim(
    "baseline/collapse_has_no_slope",
    margin=ROUNDING - max(slopes),
    compared="ROUNDING - largest |gradient|, the worse of equal and zero embeddings",
)

# %% [markdown]
# Each candidate gets a quarter of the probability, so the loss is $\log 4$, or
# 1.386<!-- record: baseline/collapsed_loss -->; zero embeddings cost the same. This baseline is useful. A
# loss that only attracted partners would call collapse perfect, and this one calls it guessing.
#
# But the slope is *zero*. The loss dislikes collapse and yet, exactly there, shows no way out: the pulls and
# pushes all act along the same direction and cancel. Knowing the baseline is no proof that training escapes
# from it.

# %% [markdown]
# ## 13. Experiment: temperature and ranking
#
# **Predict before running.** Back to your two pairs, at the temperatures 1/5, 1 and 2. Which of these change:
# the ranking, the loss of the correct pairing, the loss of the swapped pairing? And what does the swapped
# pairing, which cost 5.007<!-- record: hand/swapped_loss --> at 1/5, cost at 2?
#
# *Your prediction of what changes:* …

# %% tags=["prediction"]
predict("swapped pairing at temperature 2", ...)

# %%
temperatures = (0.2, 1.0, 2.0)
for t in temperatures:
    log.metric(f"temperature/loss_{t}", paired_loss(two_pairs, two_pairs, t), unit="nats")
swapped = [paired_loss(two_pairs, two_pairs[::-1], t) for t in temperatures]
log.series("temperature/swapped", swapped, unit="nats")
outcome("swapped pairing at temperature 2", swapped[-1])

off = [abs(float(paired_loss(two_pairs, two_pairs, t)) - math.log1p(math.exp(-1 / t))) for t in temperatures]
worst_lead = min(min(leads(cosine_matrix(two_pairs, two_pairs) / t)) for t in temperatures)
log.claim(
    "temperature/closed_form",
    margin=ROUNDING - max(off),
    compared="ROUNDING - largest |loss - log(1 + exp(-1/t))|",
)
log.claim("temperature/ranking_unchanged", margin=worst_lead, compared="smallest lead at any temperature")

# %% [markdown]
# | temperature | correct pairing | swapped pairing |
# |---|---|---|
# | 1/5 | 0.0067<!-- record: temperature/loss_0.2 --> | 5.007<!-- record: temperature/swapped[0] --> |
# | 1 | 0.313<!-- record: temperature/loss_1.0 --> | 1.313<!-- record: temperature/swapped[1] --> |
# | 2 | 0.474<!-- record: temperature/loss_2.0 --> | 0.974<!-- record: temperature/swapped[2] --> |
#
# The ranking never moves: dividing by a positive number keeps the order. Both losses do move. A low
# temperature sharpens the comparison: it rewards correct answers, punishes wrong ones, and is not better in
# itself. Compare losses only at equal temperature and equal pool size.

# %% [markdown]
# ## Make it yours: four more exercises
#
# Fill in each function and hand it to the judge. Once the judge is satisfied, run the cell after it: it uses your
# function on the trained embeddings of this notebook. It is the only cell that does, so an exercise you skip stops
# nothing else.

# %% [markdown]
# ### Exercise 2. Shuffle one pile
#
# **Difficulty** ●○○ · **about 10 minutes**
#
# Reorder only the right embeddings, keep the diagonal as the answer key, and measure the damage.
#
# **Predict before coding.** New order 2, 0, 3, 1: left 0 is now paired with right 2, its opposite. Left 1 and
# left 2 are paired with a neighbour at a right angle, left 3 with its opposite. Estimate the loss from
# $1/\tau = 5$ alone: each row costs about 5 minus the logit of its ticked cell.

# %% tags=["prediction"]
predict("loss after shuffling one pile", ...)

# %% [markdown]
# **Steps**
#
# 1. Take the rows of `right` in the given order. Leave `left` alone.
# 2. Return the paired loss of the two, at this notebook's temperature of 0.2<!-- parameter: TEMPERATURE -->.
#
# **Useful**
#
# - `rows = array[order]` takes whole rows in a new order; `array[:, order]` would reorder columns.
# - `paired_loss(left, right)` is our function from section 4; it has this temperature as its default.
#
# <details><summary>Hint 1</summary>
#
# The loss never sees source ids. It believes that row 0 belongs to row 0. You need not touch any label, only
# the order of one array.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Two lines: index `right` with `order`, then call `paired_loss` with the unchanged `left`.
#
# </details>


# %% tags=["exercise"]
def mismatched_loss(left, right, order):
    """Loss in nats after only the right rows were put into `order`.

    Shapes: left [N, D], right [N, D], order [N] integers. Returns one number.
    """
    # TODO 1: reordered = ...   the rows of `right`, in the given order
    # TODO 2: return ...        the paired loss of `left` and the reordered rows
    ### BEGIN SOLUTION
    reordered = right[order]
    return paired_loss(left, reordered)
    ### END SOLUTION


# %%
judge(mismatched_loss)

# %%
damage = mismatched_loss(left_z, right_z, order)
outcome("loss after shuffling one pile", damage)
shuffled_accuracy = contrastive_jax.retrieval_accuracy(final_cosines[:, order], k=1, ties="strict")
log.metric("exercise/mismatched_loss", damage, unit="nats")
log.metric("exercise/mismatched_retrieval", shuffled_accuracy.left_to_right)
log.claim(
    "exercise/mismatched_loss_larger",
    margin=damage - trained_loss,
    compared="loss after - before the shuffle",
)

# %% [markdown]
# **Common mistake.** Reordering both piles. The loss then stays at 0.0136<!-- record: trained/loss -->, as in
# section 10, and the bug you wanted to see is not there.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# The loss is 7.49<!-- record: exercise/mismatched_loss -->, far above the
# 1.386<!-- record: baseline/collapsed_loss --> of guessing. Two rows are paired with their opposite and cost
# about 10 each, two with a neighbour and cost about 5: the mean is about 7 and a half. Retrieval by the
# diagonal is now zero of four, although not one vector has changed: the vectors are as good as before, and only
# the answer key is wrong.
#
# Remember the sign: a loss **far above** $\log N$ is not ignorance but confidence in wrong answers. Where vectors
# match perfectly with somebody else, as here, look at the pairing. (Random vectors at a low temperature do it too;
# `03` starts so.)
#
# </details>

# %% [markdown]
# ### Exercise 3. Duplicate every source
#
# **Difficulty** ●●○ · **about 15 minutes**
#
# A batch may hold the same source twice. Put a second copy of all four pairs into the batch, keep only the
# diagonal as positives, and measure the change of the loss.
#
# **Predict before coding.** Each correct answer now has an identical twin that counts as wrong. What does
# that do to its probability, and so by how much does the loss grow?

# %% tags=["prediction"]
predict("penalty of duplicates", ...)

# %% [markdown]
# **Steps**
#
# 1. Stack two copies of the left rows, and two copies of the right rows, in the same way.
# 2. Compute the loss of the doubled batch and that of the original one.
# 3. Return doubled minus original.
#
# **Useful**
#
# - `jnp.tile(array, (2, 1))` repeats an array twice along the rows and once along the columns.
# - `jnp.concatenate([array, array], axis=0)` does the same.
#
# <details><summary>Hint 1</summary>
#
# Write one row of the softmax on paper. Doubling turns the denominator $\sum_j e^{z_{ij}}$ into twice itself.
# What happens to the numerator?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Both sides must be doubled. The doubled table is 8 by 8 and its diagonal still joins partners, because both
# piles were stacked in the same order.
#
# </details>


# %% tags=["exercise"]
def duplicate_penalty(left, right):
    """Increase of the loss, in nats, when every pair stands in the batch twice.

    Shapes: left [N, D], right [N, D]. Returns one number.
    """
    # TODO 1: twice_left, twice_right = ...   two copies of all rows, [2N, D]
    # TODO 2: doubled, original = ...         the two losses
    # TODO 3: return ...                      how much the loss has grown
    ### BEGIN SOLUTION
    twice_left, twice_right = jnp.tile(left, (2, 1)), jnp.tile(right, (2, 1))
    doubled, original = paired_loss(twice_left, twice_right), paired_loss(left, right)
    return doubled - original
    ### END SOLUTION


# %%
judge(duplicate_penalty)

# %%
penalty = duplicate_penalty(left_z, right_z)
outcome("penalty of duplicates", penalty)
log.metric("exercise/duplicate_penalty", penalty, unit="nats")
log.claim(
    "exercise/duplicates_cost_log_2",
    margin=ROUNDING - abs(float(penalty) - math.log(2)),
    compared="ROUNDING - |penalty - log 2|",
)

# %% [markdown]
# **Common mistake.** Doubling one side only. The table becomes 8 by 4, `jnp.diagonal` accepts it without a
# word, and a plausible wrong number comes out.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# The penalty is $\log 2$, or 0.693<!-- record: exercise/duplicate_penalty -->, for every batch. Each
# denominator doubles and each numerator does not, so each probability is halved. No encoder can avoid this,
# since it cannot tell a source from its twin. So a loss is comparable only between batches that are built in
# the same way. And the gradient now spends part of its force on driving identical things apart: a false
# negative at work.
#
# </details>

# %% [markdown]
# The cure is to let the **source id** decide. Mark every cell with equal ids as correct, and add up their
# probabilities.
#
# **Predict before running.** The batch is doubled as before, but both copies count as correct. What is the
# loss now?

# %% tags=["prediction"]
predict("doubled batch, both copies correct", ...)

# %%
source_ids = jnp.array([0, 1, 2, 3, 0, 1, 2, 3])
doubled_logits = cosine_matrix(jnp.tile(left_z, (2, 1)), jnp.tile(right_z, (2, 1))) / TEMPERATURE
same_source = source_ids[:, None] == source_ids[None, :]


def any_copy_loss(axis):
    """Cross-entropy along `axis` where every candidate of the same source is a correct answer."""
    correct = jnp.where(same_source, doubled_logits, -jnp.inf)
    in_favour = jax.nn.logsumexp(correct, axis=axis)
    return jnp.mean(jax.nn.logsumexp(doubled_logits, axis=axis) - in_favour)


by_source = (any_copy_loss(1) + any_copy_loss(0)) / 2
log.claim(
    "duplicates/no_penalty_by_source_id",
    margin=ROUNDING - abs(by_source - trained_loss),
    compared="ROUNDING - |doubled batch with all copies correct - original batch|",
)
outcome("doubled batch, both copies correct", by_source)

# %% [markdown]
# The penalty is gone to the last digit that counts: numerator and denominator double together. There are
# other losses with several positives. `06_false_negatives`, which is planned, will take this up.

# %% [markdown]
# ### Exercise 4. Check the gradient through the normalisation
#
# **Difficulty** ●●● · **about 20 minutes**
#
# Is the gradient that trained our encoder correct? Nudge one weight a little up and a little down, and see
# how the loss responds:
#
# $$\frac{\partial L}{\partial w} \approx \frac{L(w + h) - L(w - h)}{2h}.$$
#
# **Predict before coding.** You will use the steps $h$ = `1e-3` and `5e-4`. The formula's own error shrinks
# with $h^2$. The error from rounding the two losses grows as $1/h$. Which of the two steps is the better one
# in float32, and which in float64?
#
# *Your prediction:* …
#
# **Steps**
#
# 1. Make two copies of `weights`: one with `step` added at `index`, one with `step` subtracted there.
# 2. Evaluate `function` at both.
# 3. Return the difference divided by the distance between the two points.
#
# **Useful**
#
# - `array.at[index].add(amount)` gives a changed copy. JAX arrays cannot be changed in place.
# - `jax.grad(function)(weights)[0, 0]` is the derivative the check compares with.
#
# <details><summary>Hint 1</summary>
#
# How far apart are the two points? Not `step`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `above = weights.at[index].add(step)`, and `below` in the same way with `-step`.
#
# </details>


# %% tags=["exercise"]
def centred_difference(function, weights, index, step):
    """Slope of `function` with respect to the one weight at `index`, from a step to each side.

    `function` maps an array like `weights` to a number; `index` is a tuple such as (0, 0).
    """
    # TODO 1: above, below = ...   copies of `weights`, changed at `index` only
    # TODO 2: rise = ...           by how much `function` grows from below to above
    # TODO 3: return ...           rise over distance
    ### BEGIN SOLUTION
    above, below = weights.at[index].add(step), weights.at[index].add(-step)
    rise = function(above) - function(below)
    return rise / (2 * step)
    ### END SOLUTION


# %%
judge(centred_difference)

# %%
autodiff = float(jax.grad(objective)(initial_weights)[0, 0])
log.metric("gradient/autodiff", autodiff)
for step, name in [(1e-3, "1e-3"), (5e-4, "5e-4")]:
    estimate = centred_difference(objective, initial_weights, (0, 0), step)
    allowed = 20 * step**2 + 8 * EPS / step
    log.metric(f"gradient/finite_difference_{name}", estimate)
    log.claim(
        f"gradient/finite_difference_agrees_{name}",
        margin=allowed - abs(float(estimate) - autodiff),
        compared="20 h^2 + 8 EPS / h - |difference quotient - autodiff|",
    )

# %% [markdown]
# **Common mistakes.** A step to one side only: its error shrinks with $h$ instead of $h^2$. Testing at the
# *trained* weights: the slope there is so small that in float32 the rounding of the two losses eats into its
# first digits. Use a fresh matrix.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# The judge tries cubes, $w^3$, with the large step 1/4. There the formula gives $3w^2 + h^2$ and not the slope
# itself, so that every slip shows, and so does autodiff in disguise. Here the steps are small.
#
# All three numbers are close to -1.380<!-- record: gradient/autodiff -->: autodiff, the step `1e-3`
# (-1.380<!-- record: gradient/finite_difference_1e-3 -->) and the step `5e-4`
# (-1.380<!-- record: gradient/finite_difference_5e-4 -->). Set `PRECISION = "float64"` and run again: halving
# the step divides the error by four, so the smaller step wins. In float32 the rounding error rules, and the
# larger step is usually the better one.
#
# Two steps are worth the trouble. If both estimates agree with each other and not with autodiff, the
# derivative is broken. If they differ from each other, the step is at fault. The allowance in the check has
# one term for each source of error: `20 h^2` is about twice the formula's own error for this loss, and
# `8 EPS / h` bounds the rounding.
#
# </details>

# %% [markdown]
# What does such a check catch? Here is a real bug: the length of the embeddings is treated as a constant, as
# a misplaced `stop_gradient` does.
#
# **Predict before running.** Does the loss change? Does the gradient?
#
# *Your prediction:* …


# %%
def frozen_length_objective(weights):
    """The same loss, but no gradient flows through the lengths."""
    left, right = embed(weights)
    left = left / jax.lax.stop_gradient(jnp.linalg.norm(left, axis=1, keepdims=True))
    right = right / jax.lax.stop_gradient(jnp.linalg.norm(right, axis=1, keepdims=True))
    return sum(directions(left @ right.T / TEMPERATURE)) / 2


true_slope = jax.grad(objective)(initial_weights)[0, 0]
frozen_slope = jax.grad(frozen_length_objective)(initial_weights)[0, 0]
log.metric("gradient/frozen_length", frozen_slope)
log.claim(
    "gradient/frozen_length_keeps_the_loss",
    margin=ROUNDING - abs(frozen_length_objective(initial_weights) - objective(initial_weights)),
    compared="ROUNDING - |loss with the bug - loss|",
)
log.claim(
    "gradient/frozen_length_is_caught",
    margin=abs(frozen_slope - true_slope) - (20 * 1e-3**2 + 8 * EPS / 1e-3),
    compared="|slope with the bug - slope| - what the check at step 1e-3 allows",
)

# %% [markdown]
# The loss is the same, and the slope is -1.860<!-- record: gradient/frozen_length --> instead of
# -1.380<!-- record: gradient/autodiff -->. No look at the loss can find this bug. A difference quotient finds
# it at once.

# %% [markdown]
# ### Exercise 5. Diagnose a broken run
#
# **Difficulty** ●●○ · **about 5 minutes**
#
# A paired loss on 4 pairs at temperature `0.2`. The encoder was fine yesterday. What is wrong today?
#
# | reported | value |
# |---|---|
# | loss | `7.513` |
# | loss of guessing, log 4 | `1.386` |
# | left rows whose partner is nearest, of 4 | `0` |
# | largest cosine of a row, in the worst of the 4 rows | `1` |
# | smallest cosine of a row, in the row where it is highest | `-1` |
#
# - **a**: The encoder has collapsed: all rows point the same way.
# - **b**: One side is in another order than the other.
# - **c**: The temperature is too high.
# - **d**: The batch holds every source twice.
#
# **Steps**
#
# 1. Compare the loss with that of guessing.
# 2. Read the last two lines of the table: how good are the vectors themselves?
# 3. Strike out each cause that contradicts a number, and type the letter that is left.
#
# <details><summary>Hint 1</summary>
#
# Which of the four causes can lift a loss *above* that of guessing at all?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Every left row has some right row at cosine 1. It is only never the one that the answer key asks for.
#
# </details>

# %% tags=["exercise"]
answer = ...  # one of "a", "b", "c", "d"
### BEGIN SOLUTION
answer = "b"
### END SOLUTION

# %%
judge(answer, exercise="broken_run_01")

# %% [markdown]
# **Common mistake.** Calling every bad loss a collapse. Collapse costs $\log N$ and not more, and it leaves no
# cosine at $-1$.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# A wrong letter is told which number speaks against it; go through all four, it is worth it. You have seen this
# run before: the loss is that of exercise 2, with a perfect square of directions in place of a nearly perfect
# one. In a real run the cure is not a better encoder. It is to find the line of code that orders the two sides
# apart from each other.
#
# </details>

# %% [markdown]
# ## What have we shown?
#
# **Predict before running.** Drop the encoder. Compare the raw views, three numbers each, by their cosines.
# The trained encoder leads by 0.953<!-- record: retrieval/lead --> in its worst case. By how much do the raw
# views lead?

# %% tags=["prediction"]
predict("smallest lead of the raw views", ...)

# %%
raw_lead = min(leads(cosine_matrix(left_views, right_views)))
log.metric("retrieval/raw_lead", raw_lead, unit="cosine similarity")
outcome("smallest lead of the raw views", raw_lead)

# %% [markdown]
# The raw views lead by 0.990<!-- record: retrieval/raw_lead -->, the trained embeddings by
# 0.953<!-- record: retrieval/lead -->. Perfect retrieval of the training pairs needed no training, and no
# encoder. It shows that loss, gradient and pairing work together. It shows nothing about new data, other
# augmentations or a task somebody cares about. And four pairs that did not collapse do not prove that the
# embeddings mean anything.
#
# ### An evaluation that is more than looking up the training pairs
#
# 1. **Split by source, then augment.** All views of a source go to the same side. Otherwise the test set
#    holds views of sources the encoder has seen.
# 2. **Freeze the encoder and fit a linear probe** on the labels of the training side. Touch the test side
#    once.
# 3. **Compare encoders under one protocol and one budget:** random and frozen, pretrained and frozen,
#    pretrained and adapted, trained from scratch. The random one often surprises.
# 4. **Fix the candidate pool**, and say how ties and several correct answers count. A larger pool makes
#    retrieval harder and raises the baseline $\log N$, with the same weights.
# 5. **Say which vector you measure.** The encoder's representation and the output of a projection head are
#    different things, and the one that suits a probe need not be the one the loss saw.
# 6. **Look at examples:** at least one correct retrieval, and one "error" that may be a false negative.
#
# `05_held_out_evaluation`, which is planned, will take this up.
#
# ## Check your understanding
#
# All four training pairs retrieve each other. What follows?
#
# 1. The encoder solves these pairs, for this pairing and these augmentations.
# 2. A lower temperature would have ranked the candidates better.
# 3. If two sources showed the same thing, the loss would have treated them as one.
#
# <details><summary>Answer</summary>
#
# **The first, and only the first.** It says nothing about other data or another task. The second is false,
# because temperature keeps the order (section 13). The third is false, because the diagonal calls a twin
# wrong, and the twin takes half of the probability (exercise 3).
#
# </details>
#
# ## When a run stalls
#
# | you see | look first at | likely cause |
# |---|---|---|
# | loss stays at $\log N$ | lengths of the rows, spread of the cosines | collapse; its gradient is zero |
# | loss far above $\log N$ | ids of both piles, one row by hand | a broken pairing; at the start, a low temperature |
# | loss flat and low | the best loss the geometry allows | nothing is wrong |
# | loss jumps when batches are built anew | ids within a batch, pool size | false negatives, or another $N$ |
# | loss changes, ranking does not | temperature | only the scale has changed |
# | loss or gradient is `nan` | rows of zeros, the norm floor | derivative of a length at zero |
#
# Lengths and pairing come first, the temperature last. Lowering it makes a wrong pairing louder, not correct.
#
# ## Carry forward
#
# - **The pairing is the supervision.** Keep source ids with the views, and let them decide what is positive.
# - **Two directions, one table.** Rows and columns share their scores and differ in their denominators.
# - **Know your baselines:** $\log N$ for guessing or collapse, more for a wrong key, $\log 2$ for twins.
# - **Compare losses only** at equal temperature, equal pool and equal batch construction.
# - **Judge representations on held-out sources**, never by the pairs they were trained on.
#
# ## References
#
# - T. Chen and others, *A Simple Framework for Contrastive Learning of Visual Representations* (SimCLR):
#   [arxiv.org/abs/2002.05709](https://arxiv.org/abs/2002.05709). Two augmented views; the projection head.
# - A. Radford and others, *Learning Transferable Visual Models From Natural Language Supervision* (CLIP):
#   [arxiv.org/abs/2103.00020](https://arxiv.org/abs/2103.00020). The symmetric loss over pairs.
# - A. van den Oord and others, *Representation Learning with Contrastive Predictive Coding*:
#   [arxiv.org/abs/1807.03748](https://arxiv.org/abs/1807.03748). The InfoNCE loss.
# - T. Wang and P. Isola, *Understanding Contrastive Representation Learning through Alignment and Uniformity
#   on the Hypersphere*: [arxiv.org/abs/2005.10242](https://arxiv.org/abs/2005.10242). Why attraction alone is
#   not enough.
# - P. Khosla and others, *Supervised Contrastive Learning*:
#   [arxiv.org/abs/2004.11362](https://arxiv.org/abs/2004.11362). Several positives for each anchor.
# - C.-Y. Chuang and others, *Debiased Contrastive Learning*:
#   [arxiv.org/abs/2007.00224](https://arxiv.org/abs/2007.00224). False negatives, and a correction.
#
# **Next:** `02_nt_xent` puts both views into one pile, where every view competes with all others.

# %% [markdown]
# ## Keep your evidence
#
# The next cell saves the page `portfolio-01_paired_views.html` beside this notebook. It opens in any browser and
# needs no network: your predictions with their outcomes, your code with what the judge said, the figures, and
# your numbers against the recorded run. Predictions that you wrote as text stay in the notebook, so save that
# too, and add to one prediction that was wrong what you think now.

# %%
passed = sorted({each["exercise"] for each in evidence()["attempts"] if each["passed"]})
log.text("exercises/passed", ", ".join(passed))
log.portfolio(evidence())

# %% [markdown]
# One cell is left: it closes the log.

# %%
log.close()
