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
# # Image views: collapse, seen and cured
#
# You will train a small convolutional encoder without a single label, watch it collapse under the obvious
# loss, and cure it with the loss of `02`. Not once: over sixteen seeds, none of them chosen.
#
# ## What you will be able to do
#
# - say what two views of a picture teach an encoder, and what they teach it to forget;
# - explain why a loss that only rewards agreement is at its best before training begins;
# - measure collapse by two numbers, and know what each of them cannot see;
# - recognise a *partial* collapse by a value of the loss that you can work out on paper;
# - tell which numbers of a training run deserve to be quoted, and which are decided by rounding.
#
# **You need:** `01_paired_views` for pairing and collapse, `02_nt_xent` for the loss and its stacked layout; a
# rough idea of what a convolution does. Nothing is downloaded. One cell trains for about half a minute on a
# CPU; all others take seconds.
#
# **Time:** about 120 minutes, 55 of them for the five exercises. **Lesson:** `contrastive-04`.
#
# ## How to use this notebook
#
# As before: **predict, run, compare**. Where we ask for a number, type it in place of the `...` of a `predict`
# cell, with `because="your reason"` behind it if you like, and run that cell first. The cell with the result calls
# `outcome`, which says in one line how far off you were. Predictions that are not numbers go into the text,
# where it says *Your prediction*.
#
# After each exercise `judge` tries your function. If it fails, you see the smallest input on which it does, and
# the mistake it looks like, if we know it.
#
# Words you do not know stand in `GLOSSARY.md`. The numbers in the text come from the recorded reference run;
# yours may differ in the last digits, and `make check NB=04` says whether that is rounding.

# %% tags=["parameters"]
PRECISION = "float32"
LOG_PATH = ""
SEED = 0
SEEDS = 16
STEPS = 300
TEMPERATURE = 0.5

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
    notebook="contrastive-04",
    stem="04_image_views",
    precision=PRECISION,
    parameters={"SEED": SEED, "SEEDS": SEEDS, "STEPS": STEPS, "TEMPERATURE": TEMPERATURE},
)

# %% [markdown]
# `ROUNDING` is, as in `01`, how far apart two correct ways to compute the same loss may lie.
#
# ## 1. Why views?
#
# In `01` and `02` the vectors were given, or trained one by one. Now they come from an **encoder**: a function
# with weights that turns any picture into a vector. You have pictures and no labels. What could it learn
# from?
#
# Take one picture and change it twice: move it a little, make it brighter or darker, add noise. You get two
# **views**. You know one thing about them without looking: they come from the same picture. That is the whole
# supervision. An encoder that gives both views the same vector has learnt to ignore how they differ.
#
# So the changes you choose decide what is *forgotten*. Two views that differ in brightness teach the encoder
# that brightness does not matter.
#
# **Pause.** You would like to sort X-ray images by how dense the tissue is, and density shows as brightness.
# Which change should not be among your views?
#
# <details><summary>Compare with our answer</summary>
#
# The change of brightness. The encoder would learn to throw away just what you need. No loss and no amount of
# training brings it back.
#
# </details>
#
# ## 2. Six points by hand
#
# Before any picture, think of three images and give their views by hand, as points in the plane. Image 1 has
# its views near the east, image 2 near the north, image 3 near the west. In the stacked layout of `02`, first
# views on top:
#
# | row | | point | partner |
# |:-:|---|---|:-:|
# | 0 | image 1, view 1 | $(1, \frac{1}{10})$ | 3 |
# | 1 | image 2, view 1 | $(-\frac{1}{10}, 1)$ | 4 |
# | 2 | image 3, view 1 | $(-1, -\frac{1}{10})$ | 5 |
# | 3 | image 1, view 2 | $(1, -\frac{1}{10})$ | 0 |
# | 4 | image 2, view 2 | $(\frac{1}{10}, 1)$ | 1 |
# | 5 | image 3, view 2 | $(-1, \frac{1}{10})$ | 2 |
#
# Take row 0. All six points have the squared length $1 + \frac{1}{100}$. So the cosine with its partner is
# $(1 - \frac{1}{100}) / (1 + \frac{1}{100}) = \frac{99}{101}$, a shade below one.
#
# **Predict before running.** Work out the other four cosines of row 0, for the rows 1, 2, 4 and 5. Which of
# them is the nearest rival of the partner?
#
# *Your prediction:* the nearest rival is …

# %% tags=["prediction"]
predict("cosine of rows 0 and 1", ...)
predict("cosine of rows 0 and 2", ...)
predict("cosine of rows 0 and 4", ...)
predict("cosine of rows 0 and 5", ...)

# %%
points = [[1.0, 0.1], [-0.1, 1.0], [-1.0, -0.1], [1.0, -0.1], [0.1, 1.0], [-1.0, 0.1]]
agree = jnp.array(points, dtype=DTYPE)
cosines_of_row_0 = contrastive_jax.cosine_similarity(agree, agree)[0]
log.series("hand/cosines_with_rows_2_to_5", cosines_of_row_0[2:], unit="cosine similarity")
log.claim(
    "hand/row_1_at_a_right_angle",
    margin=ROUNDING - abs(cosines_of_row_0[1]),
    compared="ROUNDING - |cosine of rows 0 and 1|",
)
for row in (1, 2, 4, 5):
    outcome(f"cosine of rows 0 and {row}", round(float(cosines_of_row_0[row]), 4) + 0.0)  # + 0.0 turns -0 into 0

# %% [markdown]
# Row 1 stands at a right angle, row 2 is the exact opposite, the partner has the cosine
# 0.9802<!-- record: hand/cosines_with_rows_2_to_5[1] -->, row 4 has
# 0.1980<!-- record: hand/cosines_with_rows_2_to_5[2] --> and row 5
# -0.9802<!-- record: hand/cosines_with_rows_2_to_5[3] -->. The nearest rival is row 4, the second view of image
# 2, and even it is almost at a right angle.
#
# ## 3. The loss in plain JAX
#
# You know this loss from `02`. Each row asks which of the *other* rows is its partner, and pays the
# cross-entropy of its answer:
#
# $$
# L = \frac{1}{2B} \sum_i \Big( \log \sum_{j \ne i} e^{u_i \cdot u_j / \tau} - \frac{u_i \cdot u_{p(i)}}{\tau} \Big).
# $$
#
# The $u_i$ are the rows scaled to length one, and $p(i)$ is the partner. Here $B = 3$ and the temperature is
# $\tau$ = 0.5<!-- parameter: TEMPERATURE -->. Row 0 on paper: the partner has the exponent
# $2 \cdot \frac{99}{101}$, about 2, and so contributes about 7 to the sum. The other four contribute about 1,
# $\frac{1}{7}$, $\frac{3}{2}$ and $\frac{1}{7}$. The cost is the logarithm of $\frac{10}{7}$, give or take:
# about a third.
#
# **Predict before running.** What does row 1 in the north cost: more or less than row 0 in the east, and how
# much? North has two neighbours, east and west have one.

# %% tags=["prediction"]
predict("cost of row 1, in the north", ...)


# %%
def partner_and_others(pile, temperature):
    """Logit of each row's partner, and the log-sum-exp of all rows but itself; each of shape [2B]."""
    units = pile / jnp.linalg.norm(pile, axis=1, keepdims=True)
    logits = units @ units.T / temperature
    own_cell = jnp.eye(len(pile), dtype=bool)
    partner = jnp.sum(units * jnp.roll(units, len(pile) // 2, axis=0), axis=1) / temperature
    return partner, jax.nn.logsumexp(jnp.where(own_cell, -jnp.inf, logits), axis=1)


def pile_loss(pile, temperature=TEMPERATURE):
    """NT-Xent in nats; row i and row i + B of the [2B, D] pile are the two views of one image."""
    partner, others = partner_and_others(pile, temperature)
    return jnp.mean(others - partner)


partner, others = partner_and_others(agree, TEMPERATURE)
log.series("hand/cost_of_rows_0_and_1", (others - partner)[:2], unit="nats")
log.metric("hand/agree", pile_loss(agree), unit="nats")
outcome("cost of row 1, in the north", (others - partner)[1])

# %% [markdown]
# East costs 0.329<!-- record: hand/cost_of_rows_0_and_1[0] --> and north
# 0.461<!-- record: hand/cost_of_rows_0_and_1[1] -->: in the middle there are more neighbours to be confused
# with. Rows 2 and 3 are a little better off than row 0, since they lean away from north's nearer view. The mean
# over all six rows is 0.3440<!-- record: hand/agree -->.
#
# Is the function right? `contrastive_jax.nt_xent` is the same loss, with its tests.
#
# **Predict before running.** Do they agree in the value, and in the gradient?
#
# *Your prediction:* …

# %%
gap = pile_loss(agree) - contrastive_jax.nt_xent(agree, TEMPERATURE)
slopes = [jax.grad(loss)(agree, TEMPERATURE) for loss in (pile_loss, contrastive_jax.nt_xent)]
log.claim("package/loss_agrees", margin=ROUNDING - abs(gap), compared="ROUNDING - |notebook - package|")
log.claim(
    "package/gradient_agrees",
    margin=ROUNDING - jnp.max(jnp.abs(slopes[0] - slopes[1])),
    compared="ROUNDING - largest |notebook - package| over the gradient",
)

# %% [markdown]
# In both. From here on the package does the work.
#
# ## 4. The same points, the wrong pairs
#
# Now take the same six points in the order 3, 4, 5, 1, 2, 0. Nothing has moved. But row $i$ and row $i + 3$
# are now views of *different* images.
#
# **Predict before running.** With six rows, guessing costs $\log 5$, or 1.609<!-- record: hand/guess -->. On
# which side of it does the loss of the scrambled pile lie, and by how much?

# %% tags=["prediction"]
predict("scrambled pile, loss", ...)

# %%
scrambled = agree[jnp.array([3, 4, 5, 1, 2, 0])]
log.metric("hand/guess", math.log(5), unit="nats")
log.metric("hand/scrambled", contrastive_jax.nt_xent(scrambled, TEMPERATURE), unit="nats")
outcome("scrambled pile, loss", contrastive_jax.nt_xent(scrambled, TEMPERATURE))

# %% [markdown]
# 3.2219<!-- record: hand/scrambled -->, twice what guessing costs. You have seen this sign in `01` and `02`: a
# loss **far above** guessing means confidence in wrong answers. These vectors agree perfectly somewhere, so look for a
# wrong answer key. (In `03` random vectors at a low temperature started there too.)
#
# ## 5. How sharp, and against how many?
#
# **Predict before running.** Two sweeps. First the temperature, from $\frac{1}{20}$ to 10, for the pile that
# agrees: does the loss rise or fall, and how far has it come at 10? Then the number of images $N$ in a batch, from
# 8 to 4096, for an encoder that knows nothing: what does guessing cost with 64?
#
# *Your prediction:* with the temperature, the loss …

# %% tags=["prediction"]
predict("loss at the temperature 10", ...)
predict("guessing among 64 images, loss", ...)

# %%
temperatures = [0.1, 0.5, 1.0, 10.0]
log.series("sweep/temperature", [contrastive_jax.nt_xent(agree, t) for t in temperatures], unit="nats")
coldest = contrastive_jax.nt_xent(agree, 0.05)
log.claim("sweep/nothing_left_when_cold", margin=5e-5 - coldest, compared="0.00005 - loss at the temperature 0.05")
log.series("sweep/guess", [math.log(2 * images - 1) for images in (8, 64, 256, 4096)], unit="nats")
outcome("loss at the temperature 10", contrastive_jax.nt_xent(agree, 10.0))
outcome("guessing among 64 images, loss", math.log(127))

# %% [markdown]
# | temperature | loss | | images in the batch | guessing costs |
# |---|---|---|---|---|
# | $\frac{1}{20}$ | 0 to four digits | | 8 | 2.708<!-- record: sweep/guess[0] --> |
# | $\frac{1}{10}$ | 0.0003<!-- record: sweep/temperature[0] --> | | 64 | 4.844<!-- record: sweep/guess[1] --> |
# | $\frac{1}{2}$ | 0.3440<!-- record: sweep/temperature[1] --> | | 256 | 6.236<!-- record: sweep/guess[2] --> |
# | 1 | 0.7813<!-- record: sweep/temperature[2] --> | | 4096 | 9.011<!-- record: sweep/guess[3] --> |
# | 10 | 1.5068<!-- record: sweep/temperature[3] --> | | | |
#
# The hotter, the more all candidates look alike; the limit is the $\log 5$ of guessing. The points were the
# same all along, so a low loss at a low temperature says little about them.
#
# More candidates, a harder question. Remember 4.844<!-- record: sweep/guess[1] -->: our batches will hold 64
# images, so 127 candidates, and this is where an encoder starts that knows nothing.
#
# ## 6. Two losses look at a collapsed pile
#
# The encoder may **collapse**: it answers every picture with the same vector. Ask two losses what they think
# of that. One is NT-Xent. The other, `positive_only`, is the loss everybody thinks of first: partners should
# agree, so take *minus the mean cosine of the partners* and make it small.
#
# **Predict before running.** All six rows are $(1, 1)$. What does each of the two say, as a number? And is that
# its best value, its worst, or something between?

# %% tags=["prediction"]
predict("collapsed pile, NT-Xent", ...)
predict("collapsed pile, positive only", ...)

# %%
collapsed = jnp.ones((6, 2), dtype=DTYPE)
log.metric("collapsed/nt_xent", contrastive_jax.nt_xent(collapsed, TEMPERATURE), unit="nats")
log.metric("collapsed/positive_only", contrastive_jax.positive_only(collapsed))
log.metric("hand/positive_only", contrastive_jax.positive_only(agree))
outcome("collapsed pile, NT-Xent", contrastive_jax.nt_xent(collapsed, TEMPERATURE))
outcome("collapsed pile, positive only", contrastive_jax.positive_only(collapsed))

# %% [markdown]
# NT-Xent says 1.6094<!-- record: collapsed/nt_xent -->: guessing. `positive_only` says
# -1.0000<!-- record: collapsed/positive_only -->, its best possible value, and better than the
# -0.9802<!-- record: hand/positive_only --> of the pile that agrees. A mean partner cosine of one is *perfect*
# and *worthless*. Whether a training falls into that hole is another question, and we can try.
#
# ## 7. Pictures and their views
#
# Our pictures are small: 16 by 16 pixels, black, with one white stroke of six pixels. It is a bar, a column
# or a diagonal, and it starts anywhere from row and column 2 to 9. A view is the picture moved by up to three
# pixels each way (what leaves on one side comes back on the other), with its brightness multiplied by
# anything from a half to one and a half, and with noise on every pixel.
#
# All of it is drawn from an explicit key. The same key gives the same pictures, to
# the last bit, on any machine.
#
# **Predict before running.** Imagine the two views of one picture side by side. What do you still recognise in
# both: the kind of stroke, its place, its brightness?
#
# *Your prediction:* …

# %%
picture_key, *view_keys = jax.random.split(jax.random.key(SEED), 3)
pictures = contrastive_jax.draw_pictures(picture_key, 64)
shown = [int(np.argmax(np.asarray(pictures.kinds) == kind)) for kind in range(3)]  # the first of each kind
originals = pictures.images[jnp.array(shown)]
views = [contrastive_jax.draw_views(key, originals) for key in view_keys]
columns = np.stack([np.asarray(each, dtype=np.float64) for each in (originals, *views)], axis=1)
log.figure(
    "contrastive-04-views",
    panels=[
        {
            "kind": "images",
            "values": np.round(np.clip(columns, -0.5, 2.0), 2),
            "rows": ["bar", "column", "diagonal"],
            "columns": ["picture", "view 1", "view 2"],
            "black": -0.5,
            "white": 2.0,
            "unit": "brightness of a pixel",
            "xlabel": "",
            "ylabel": "kind, never shown to the encoder",
            "title": "One picture of each kind, two views each",
        }
    ],
    alt="Three rows of three small pictures. Left: a clean horizontal bar, a vertical column and a diagonal. Middle "
    "and right: two noisy views of each, in which the same stroke lies elsewhere and is brighter or darker.",
)

# %% [markdown]
# **Read a row** from left to right: brightness changes, the place moves, the kind of stroke stays. So the kind is
# what an encoder can still agree on. (The place is blurred more than lost: strokes start anywhere, and a view moves
# them by three pixels at most. But our encoder will average over all places, and so cannot say where.) Nobody told
# it that there are kinds.
#
# ## 8. How low can the loss go?
#
# **Pause** before you train. A batch holds 64 pictures of three kinds, and each view has 127 candidates. An
# encoder that knows the kind, and nothing else, gives the same vector to all pictures of a kind. How many
# candidates look exactly like the partner?
#
# <details><summary>Compare with our answer</summary>
#
# The partner itself, and both views of every other picture of the same kind. Of the 63 other pictures, 21 are
# of that kind on average. So about 43 candidates are equally good, and 42 of them count as wrong. They are
# **false negatives**, as in the exercise of `01` in which every source stood twice.
#
# </details>
#
# So the best loss of such an encoder is far from zero. Let the three kinds point in three directions at 120
# degrees, as far apart as three can be, with a cosine of $-\frac{1}{2}$. A row with $k$ other pictures of its
# kind in the batch pays
#
# $$
# \log\Big( 1 + 2k + (126 - 2k)\, e^{(c - 1)/\tau} \Big), \qquad c = -\tfrac{1}{2}.
# $$
#
# Now suppose that the encoder confuses two kinds, and sees a single large one. Then there are two directions
# left, and they can be opposite: $c = -1$. A third of the rows have small company, two thirds have large
# company. And if it confuses all three, every candidate looks the same.
#
# **Predict before running.** Three rungs of a ladder: three kinds apart, two kinds merged, all collapsed. The
# last costs $\log 127$, or 4.844<!-- record: sweep/guess[1] -->. Where are the other two? For the first, put
# $k = 21$ into the formula.

# %% tags=["prediction"]
predict("three kinds apart, loss", ...)
predict("two kinds merged, loss", ...)


# %%
def typical_cost(share, cosine):
    """Mean cost of a row whose group holds `share` of all pictures and sees every other group at `cosine`."""
    rival = math.exp((cosine - 1) / TEMPERATURE)
    costs = [math.log(1 + 2 * k + (126 - 2 * k) * rival) for k in range(64)]
    chances = [math.comb(63, k) * share**k * (1 - share) ** (63 - k) for k in range(64)]
    return sum(chance * cost for chance, cost in zip(chances, costs, strict=True))


ladder = {
    "three kinds apart": typical_cost(1 / 3, -1 / 2),
    "two kinds merged": typical_cost(1 / 3, -1) / 3 + typical_cost(2 / 3, -1) * 2 / 3,
    "collapsed": math.log(127),
}
log.series("ladder/loss", list(ladder.values()), unit="nats")
log.metric("ladder/wrong_key", ladder["three kinds apart"] + 1 / TEMPERATURE, unit="nats")
log.metric("ladder/with_21_others", math.log(43 + 84 * math.exp(-1.5 / TEMPERATURE)), unit="nats")
log.series("ladder/mean_cosine", [0.0, 1 / 9, 1.0], unit="cosine similarity")
outcome("three kinds apart, loss", ladder["three kinds apart"])
outcome("two kinds merged, loss", ladder["two kinds merged"])

# %% [markdown]
# | | loss | mean cosine of two pictures |
# |---|---|---|
# | three kinds apart | 3.842<!-- record: ladder/loss[0] --> | 0 |
# | two kinds merged | 4.226<!-- record: ladder/loss[1] --> | 0.111<!-- record: ladder/mean_cosine[1] --> |
# | collapsed | 4.844<!-- record: ladder/loss[2] --> | 1 |
#
# The right column is quickly derived. Two pictures are of the same kind with the chance $\frac{1}{3}$; then
# their cosine is 1, otherwise $-\frac{1}{2}$: the mean is zero. With two kinds merged, the groups hold
# $\frac{1}{3}$ and $\frac{2}{3}$ of the pictures. Two pictures are both in the small one with the chance
# $\frac{1}{9}$, both in the large one with $\frac{4}{9}$, and apart, at the cosine $-1$, with $\frac{4}{9}$.
# That leaves $\frac{1}{9}$.
#
# Your value for the first rung, 3.854<!-- record: ladder/with_21_others --> at $k = 21$, was a little high. The
# number $k$ varies from row to row and from batch to batch; `typical_cost` averages over it, and the mean of
# the logarithms is smaller than the logarithm of the mean.
#
# ## 9. The encoder, before training
#
# Two convolutions, each with a ReLU, and the mean over all places give 32 **features**. A small head, two
# layers with a ReLU between, turns them into a **projection** of 16 numbers. The loss sees the projection
# only. What you keep for later work are the features. Keep the two apart in your code and in your head: the
# head may throw away what the loss does not need, and the features may still have it.
#
# Two measures tell how far an encoder is from collapse, over 300 pictures it was not trained on:
#
# - the **spread**: the standard deviation of each feature over the pictures, averaged over the 32 features. It
#   is zero if all pictures get the same features;
# - the **mean cosine** between the projections of different pictures. It is one if all point the same way.
#
# **Predict before running.** The weights are random. Are the vectors of different pictures scattered, with a
# mean cosine near zero, or not? What do the two losses say about a first batch?

# %% tags=["prediction"]
predict("untrained, mean cosine", ...)
predict("untrained, NT-Xent", ...)
predict("untrained, positive only", ...)

# %%
init_key, judge_key, batch_key = jax.random.split(jax.random.key(SEED), 3)
params = contrastive_jax.init_encoder(init_key, DTYPE)
unseen = contrastive_jax.draw_pictures(judge_key, 300).images
batch = contrastive_jax.draw_view_pairs(batch_key, 64)
batch_features, batch_projection = contrastive_jax.encode(params, batch)
print("views", batch.shape, "-> features", batch_features.shape, "-> projection", batch_projection.shape)

spread, cosine = contrastive_jax.diagnose(params, unseen)
log.metric("untrained/weights", sum(array.size for array in jax.tree.leaves(params)))
log.metric("untrained/spread", spread)
log.metric("untrained/mean_cosine", cosine, unit="cosine similarity")
log.metric("untrained/positive_only", contrastive_jax.positive_only(batch_projection))
log.metric("untrained/nt_xent", contrastive_jax.nt_xent(batch_projection, TEMPERATURE), unit="nats")
outcome("untrained, mean cosine", cosine)
outcome("untrained, NT-Xent", contrastive_jax.nt_xent(batch_projection, TEMPERATURE))
outcome("untrained, positive only", contrastive_jax.positive_only(batch_projection))

# %% [markdown]
# Not scattered at all: the mean cosine is 0.9999<!-- record: untrained/mean_cosine --> and the spread only
# 0.0043<!-- record: untrained/spread -->. Nearly all pixels of all pictures are black, the mean over all
# places averages the rest away, and what remains is what the biases say, the same for every picture. **An
# untrained encoder is nearly collapsed.**
#
# So NT-Xent starts at 4.844<!-- record: untrained/nt_xent -->, guessing. And `positive_only` starts at
# -0.9998<!-- record: untrained/positive_only -->: all but perfect, before it has learnt anything.
#
# ## 10. Train with both
#
# Sixteen seeds. Each seed starts one encoder, and trains it twice from the same weights, on the same pictures
# and the same views, for 300<!-- parameter: STEPS --> updates of Adam with 64 new pictures each: once with
# `positive_only`, once with NT-Xent. So whatever differs at the end, the loss has done.
#
# **Predict before running**, for both losses: does it fall? Does the spread grow or shrink? Where does the
# mean cosine go? And in how many of the sixteen seeds does the spread grow?
#
# *Your prediction:* positive only …, NT-Xent …

# %% tags=["prediction"]
predict("seeds whose spread grows, positive only, of 16", ...)
predict("seeds whose spread grows, NT-Xent, of 16", ...)


# %%
def with_negatives(projection):
    return contrastive_jax.nt_xent(projection, TEMPERATURE)


# This is the long cell: about half a minute.
objectives = (contrastive_jax.positive_only, with_negatives)
keys = jax.random.split(jax.random.key(SEED), SEEDS)
study = contrastive_jax.shapes_study(keys, objectives, steps=STEPS, dtype=DTYPE)
losses = np.asarray(study.losses, dtype=np.float64)  # [seeds, objectives, steps]
spread_before, cosine_before = (np.asarray(each, dtype=np.float64) for each in study.before)  # [seeds]
spread_after, cosine_after = (np.asarray(each, dtype=np.float64) for each in study.after)  # [seeds, objectives]
growth = spread_after / spread_before[:, None]

# %% [markdown]
# ## 11. The trap
#
# First the positive-only encoders. The claims are about the *worst* of the seeds.

# %%
log.metric("positive_only/last_loss", np.mean(losses[:, 0, -1]))
log.series("positive_only/spread_before", spread_before)
log.series("positive_only/spread_after", spread_after[:, 0])
log.metric("positive_only/median_growth", np.median(growth[:, 0]))
log.claim(
    "positive_only/every_seed_points_one_way",
    margin=np.min(cosine_after[:, 0]) - 0.999,
    compared="lowest mean cosine of any seed - 0.999",
)
log.claim(
    "positive_only/every_seed_loses_spread",
    margin=1 - np.max(growth[:, 0]),
    compared="1 - largest growth of the spread of any seed",
)
outcome("seeds whose spread grows, positive only, of 16", int(np.sum(growth[:, 0] > 1)))

# %% [markdown]
# All of them collapse. The mean loss ends at -1.0000<!-- record: positive_only/last_loss -->, the best there
# is, and the spread shrinks, in the median to 0.10<!-- record: positive_only/median_growth --> of what it was.
# The encoder has found the cheapest way to make two views agree: it stops looking at the picture.
#
# Notice which measure tells you so. The cosine was near 0.9999<!-- record: untrained/mean_cosine --> before and
# is at 1 after: no alarm. The loss falls, as it should: no alarm. Only the spread, *compared with the start*,
# shows that something is dying.

# %% [markdown]
# ## 12. The cure
#
# NT-Xent makes the same two views agree, and in the same breath asks that they can be told from all others.

# %%
late_loss = np.mean(losses[:, 1, -50:], axis=1)
log.metric("nt_xent/mean_last_loss", np.mean(losses[:, 1, -1]), unit="nats")
log.metric("nt_xent/mean_spread_after", np.mean(spread_after[:, 1]))
log.metric("nt_xent/mean_growth", np.mean(growth[:, 1]))
log.claim(
    "nt_xent/every_seed_beats_guessing",
    margin=math.log(127) - np.max(losses[:, 1, -1]),
    compared="log 127 - highest last loss of any seed",
)
log.claim(
    "nt_xent/every_seed_gains_spread",
    margin=np.min(growth[:, 1]) - 3,
    compared="smallest growth of the spread of any seed - 3",
)
log.claim(
    "nt_xent/every_seed_points_many_ways",
    margin=0.5 - np.max(np.abs(cosine_after[:, 1])),
    compared="0.5 - largest |mean cosine| of any seed",
)
log.claim(
    "nt_xent/half_of_the_seeds_are_balanced",
    margin=0.05 - np.sort(np.abs(cosine_after[:, 1]))[SEEDS // 2 - 1],
    compared="0.05 - |mean cosine| of the seed in the middle",
)
outcome("seeds whose spread grows, NT-Xent, of 16", int(np.sum(growth[:, 1] > 1)))

# %% [markdown]
# Every seed escapes from where all of them started. The spread does not shrink, it grows: to
# 6<!-- record: nt_xent/mean_growth --> times the start on average. In `01` you found that the loss has no
# slope at a *perfect* collapse. From a nearly perfect one there is a way out.
#
# Look at the last claim, though: it is about the seed in the *middle*, because not all seeds would pass it. We
# come back to this.

# %%
marks = [*range(0, STEPS, 20), STEPS - 1]
# A mean over seeds always holds those few that rounding decides, so the noise measured of it is honest. A median
# is quiet until one of them crosses it.
log.figure(
    "contrastive-04-curves",
    panels=[
        {
            "kind": "line",
            "series": [{"label": "positive only", "x": marks, "y": np.mean(losses[:, 0], axis=0)[marks]}],
            "levels": [{"label": "views at right angles, 0", "y": 0}, {"label": "best possible, -1", "y": -1}],
            "xlabel": "completed updates",
            "ylabel": "minus the mean cosine of partners",
            "title": "The trap: nothing to see",
        },
        {
            "kind": "line",
            "series": [{"label": "NT-Xent", "x": marks, "y": np.mean(losses[:, 1], axis=0)[marks]}],
            "levels": [{"label": name, "y": value} for name, value in ladder.items()],
            "xlabel": "completed updates",
            "ylabel": "loss (nats)",
            "title": "The cure: down the ladder",
        },
    ],
    alt="Two curves, each the mean over all seeds. Left: the positive-only loss is a flat line at minus one from the "
    "first update to the last. Right: NT-Xent stays at the level of collapse for some twenty updates, then falls past "
    "the level of two merged kinds and ends a little above that of three kinds apart.",
)

# %% [markdown]
# **Read the left panel:** there is nothing to read. The loss is at its best from the first update on, and the
# collapse happens below its resolution. Whoever watches only this curve sees a training that went perfectly.
#
# **Read the right panel** from the left: flat for some twenty updates, because near a collapse the slope is
# small; then a fall. It does not end *on* the lowest rung, though, and it is a mean over seeds. What is in
# it?

# %% [markdown]
# ## 13. Seed by seed
#
# **Predict before running.** How many of the sixteen encoders end nearer to the rung of two merged kinds than to
# the lowest one? What mean cosine would those have?

# %% tags=["prediction"]
predict("seeds that merge two kinds, of 16", ...)

# %%
print("seed  spread grows to        mean cosine  loss of the     nearest rung")
print("      positive only NT-Xent  (NT-Xent)   last 50 steps")
for seed in range(SEEDS):
    rung = min(ladder, key=lambda name: abs(ladder[name] - late_loss[seed]))
    growths = f"{growth[seed, 0]:8.3f} {growth[seed, 1]:10.2f}"
    print(f"{seed:3d} {growths} {cosine_after[seed, 1]:13.3f} {late_loss[seed]:12.3f}       {rung}")
halfway = (ladder["three kinds apart"] + ladder["two kinds merged"]) / 2
outcome("seeds that merge two kinds, of 16", int(np.sum(late_loss > halfway)))

by_loss = np.argsort(late_loss)
quarter = SEEDS // 4
lowest, highest = by_loss[:quarter], by_loss[-quarter:]
log.claim(
    "seeds/a_higher_loss_means_a_higher_cosine",
    margin=np.mean(cosine_after[highest, 1]) - np.mean(cosine_after[lowest, 1]),
    compared="mean cosine of the quarter of seeds with the highest loss - that with the lowest",
)
log.claim(
    "seeds/the_lowest_reach_the_lowest_rung",
    margin=ladder["two kinds merged"] - np.mean(late_loss[lowest]) - 0.25,
    compared="the rung of two merged kinds - mean late loss of the quarter of seeds with the lowest - 0.25",
)

# %% [markdown]
# Most seeds end near the lowest rung, with a mean cosine close to zero. Some, from three to six of the sixteen by our
# count, end near the middle rung or between the two, with a cosine around $\frac{1}{9}$: they never learnt to tell
# two of the three kinds apart. This is a **partial collapse**. The spread did not show it, for it grew in every seed.
# The loss did, once you knew the rungs, and the cosine did, once you knew what to expect.
#
# We could have shown you one seed that works, and you would have believed it. Show all of them.
#
# **Which numbers are worth quoting?** The table above is *printed*, and not part of the record. Run the
# notebook in the other precision, and some seeds change rungs: near the start of the fall, the last digit of
# a sum decides where an encoder goes, and the difference doubles every few updates. In float32 it is large
# after 30 updates. In float64 it takes longer, and for most seeds training ends first. So the record holds
# what rounding cannot decide: the collapsed runs, which are forgiving; means over all seeds, with measured
# noise; and claims with a margin for the worst seed. A single late loss to five digits, here, would be a
# story about one processor.

# %%
seed_numbers = list(range(SEEDS))
cosines = [cosine_before, cosine_after[:, 0], cosine_after[:, 1]]
log.figure(
    "contrastive-04",
    panels=[
        {
            "kind": "line",
            "series": [
                {"label": "before", "x": seed_numbers, "y": spread_before},
                {"label": "after positive only", "x": seed_numbers, "y": spread_after[:, 0]},
            ],
            "levels": [{"label": "after NT-Xent (mean)", "y": np.mean(spread_after[:, 1])}],
            "logarithmic": True,
            "xlabel": "seed",
            "ylabel": "spread of the features (logarithmic)",
            "title": "Do features differ between pictures?",
        },
        {
            "kind": "bar",
            "categories": ["before", "after positive only", "after NT-Xent"],
            "series": [{"label": "mean over the seeds", "values": np.mean(cosines, axis=1)}],
            "levels": [{"label": "two kinds merged, 1/9", "y": 1 / 9}],
            "xlabel": "",
            "ylabel": "mean cosine of two pictures",
            "title": "Do they point different ways?",
        },
    ],
    alt="Left, over sixteen seeds and on a logarithmic axis: the spread before training, below it the much smaller and "
    "uneven spread after positive-only training, and far above both the mean spread after NT-Xent. Right: three bars. "
    "The mean cosine is one before and after positive-only training, and close to zero after NT-Xent.",
)

# %% [markdown]
# **Read the left panel** for the distance between the curves: the positive-only encoders lost a factor between 4 and
# 70 of their spread, and NT-Xent gained one of about 6. (Seeds have no order; the lines only help the eye.)
#
# **Read the right panel** as a warning. The first two bars are alike: this measure cannot tell a collapsed
# encoder from an untrained one.

# %% [markdown]
# ## 14. Seven runs, four verdicts
#
# Somebody hands you three numbers of the last batch of a training with 64 pictures and our three kinds: the
# **loss**, the mean cosine of the **partners**, and that of the **others**, which are different pictures. Which loss it
# was you are not told. Four verdicts are possible, and one run deserves two of them: the run is *healthy*, two kinds
# have *merged*, the encoder has *collapsed*, or the pairing has the *wrong key*.
#
# **Predict before running.** Sketch what each of the four would report. For one number you have all you need: a
# healthy encoder, judged by NT-Xent with the wrong key, so that every partner is just some other picture. Its
# denominators stay the same. What is its loss, on average over all wrong keys? (The second cell below measures
# one batch with one wrong key, so expect to be a tenth or two off. Its code calls the encoders p, q and r, and gives
# the answers away to those who work it out: look first at what it prints.)
#
# *Your prediction:* partners and others are …

# %% tags=["prediction"]
predict("healthy encoder, wrong key, NT-Xent", ...)


# %%
def three_numbers(first, second, loss=with_negatives):
    """What a run reports of its last batch."""
    units = [view / jnp.linalg.norm(view, axis=1, keepdims=True) for view in (first, second)]
    partners = jnp.mean(jnp.sum(units[0] * units[1], axis=1))
    return float(loss(jnp.concatenate([first, second]))), float(partners), float(contrastive_jax.mean_cosine(first))


# 64 pictures, a third of each kind, seen by encoders that know the kind and nothing else: a direction for each.
kinds = jax.random.permutation(jax.random.key(SEED), jnp.arange(64) % 3)
angles = jnp.radians(jnp.array([[0, 180, 180], [0, 120, 240], [45, 45, 45]], DTYPE))[:, kinds]
p, q, r = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=2)
runs = [
    three_numbers(p, p),
    three_numbers(*jnp.split(batch_projection, 2)),
    three_numbers(q, jnp.roll(q, 1, axis=0)),
    three_numbers(q, q),
    three_numbers(r, r, contrastive_jax.positive_only),
    three_numbers(q, q + 0.1 * q[:, ::-1]),
    three_numbers(p, jnp.roll(p, 1, axis=0)),
]
log.series("runs/loss", [loss for loss, _, _ in runs])
for number, (loss, partners, others) in enumerate(runs, start=1):
    print(f"run {number}: loss {loss:6.3f}, partners {partners:6.3f}, others {others:6.3f}")
outcome("healthy encoder, wrong key, NT-Xent", runs[2][0])

# %% [markdown]
# **Pause.** Give your verdict on each of the seven.
#
# <details><summary>Compare with our answer</summary>
#
# | runs | | NT-Xent | partners | others |
# |---|---|---|---|---|
# | 4, 6 | healthy | near 3.842<!-- record: ladder/loss[0] --> | near 1 | near 0 |
# | 1 | merged | near 4.226<!-- record: ladder/loss[1] --> | near 1 | near 1/9 |
# | 2, 5 | collapsed | 4.844<!-- record: ladder/loss[2] -->; not run 5, see below | near 1 | near 1 |
# | 3 | wrong key, the rest healthy | 5.84<!-- record: ladder/wrong_key --> on average | near 0 | near 0 |
# | 7 | wrong key, and merged | $\frac{16}{9}$ above *merged* on average | near 1/9 on average | near 1/9 |
#
# Run 5 has the lowest loss of all, -1, and is dead: it trained on `positive_only`, and only the cosine of the others
# tells. So look at that first, then at the partners, and at the loss last. With the wrong key the loss says
# nothing about the encoder: a healthy one pays $1/\tau = 2$ more on average, since the cosine of its alleged
# partner fell from 1 to the 0 of two strangers. With merged kinds strangers have the cosine 1/9, so that the key costs
# $\frac{8}{9} \cdot 2$ there. Runs 3 and 7, with 5.70<!-- record: runs/loss[2] --> and
# 5.71<!-- record: runs/loss[6] -->, lie below these averages: their wrong key is a shift by one place, which happens to
# pair more pictures of one kind than chance would. That is also why run 7 reports a quarter for its partners. The
# cosines of the others lie slightly below the table's, because no picture is compared with itself.
#
# With your own data you will not know the lower rungs. You can still know the top one, $\log(2B - 1)$, and you can
# always look at the two cosines.
#
# </details>

# %% [markdown]
# ## Make it yours: five exercises
#
# As in the other notebooks: fill in each function, and run the cell that judges it. The cell after it uses your
# function, so run that one once the judge is satisfied.

# %% [markdown]
# ### Exercise 1. Write the trap
#
# **Difficulty** ●○○ · **about 10 minutes**
#
# Write the positive-only loss of a stacked pile: minus the mean cosine of the partners.
#
# **Predict before coding.** Order three piles by this loss, best first: the six points that agree, the same points
# scrambled, six equal points. And what is the number of the scrambled ones?
#
# *Your prediction:* best are …

# %% tags=["prediction"]
predict("scrambled pile, positive only", ...)

# %% [markdown]
# **Steps**
#
# 1. Scale every row to length one.
# 2. Cut the pile into its two halves.
# 3. Take the cosine of each row of the first half with the row at the same place of the second half.
# 4. Return minus their mean.
#
# **Useful**
#
# - `contrastive_jax.l2_normalize(z)` scales rows to length one, and leaves a row of zeros as it is.
# - `first, second = jnp.split(z, 2)` cuts an array into two halves along the rows.
#
# <details><summary>Hint 1</summary>
#
# No row is compared with any row but its partner: you need no table.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `jnp.sum(first * second, axis=1)` gives the B dot products.
#
# </details>


# %% tags=["exercise"]
def positive_only(z):
    """Minus the mean cosine of partners; row i and row i + B of the [2B, D] pile z are partners. One number."""
    # TODO 1: units = ...           the rows, scaled to length one
    # TODO 2: first, second = ...   the two halves of the pile
    # TODO 3: return ...            minus the mean of the B cosines
    ### BEGIN SOLUTION
    units = contrastive_jax.l2_normalize(z)
    first, second = jnp.split(units, 2)
    return -jnp.mean(jnp.sum(first * second, axis=1))
    ### END SOLUTION


# %%
judge(positive_only)

# %%
outcome("scrambled pile, positive only", contrastive_jax.positive_only(scrambled))
piles = {"agree": agree, "scrambled": scrambled, "equal": collapsed}
yours = {name: positive_only(pile) for name, pile in piles.items()}
log.series("exercise/positive_only", list(yours.values()))
print("The three piles, best first:", sorted(yours, key=lambda name: float(yours[name])))

# %% [markdown]
# **Common mistake.** `jnp.mean(first * second)` instead of the mean of row sums. It divides by the width of the
# rows as well. The training looks the same, because Adam does not mind a factor, and no value can be compared
# with anyone else's.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# Equal points are best with -1.000<!-- record: exercise/positive_only[2] -->, the points that agree follow
# with -0.980<!-- record: exercise/positive_only[0] -->, and the scrambled ones are far behind with
# 0.459<!-- record: exercise/positive_only[1] -->. So the loss does see a wrong key. What it cannot see is
# whether the vectors say anything: the sum has no term in which two different pictures meet. No encoder beats
# the one that ignores its input.
#
# </details>

# %% [markdown]
# ### Exercise 2. Put the pairs together again
#
# **Difficulty** ●●○ · **about 15 minutes**
#
# Somebody shuffled a pile, but was kind enough to shuffle the source ids with it. Restore the stacked layout, with
# the sources in ascending order. Of the two views of a source, the one that comes first in the shuffled pile goes
# on top.
#
# **Predict before coding.** The scrambled pile of section 4 has the source ids 0, 1, 2, 1, 2, 0. What is its NT-Xent
# once it is put together? And does it matter for the loss which of the two views of an image lands on top?
#
# *Your prediction:* it matters …

# %% tags=["prediction"]
predict("scrambled pile put together, NT-Xent", ...)

# %% [markdown]
# **Steps**
#
# 1. Find the order of the rows that sorts them by source id.
# 2. Take the rows in that order. Now the two views of a source are neighbours.
# 3. Every second row is one view of each source; put those on top of the others.
#
# **Useful**
#
# - `jnp.argsort(ids)` gives the places of the entries from the smallest to the largest.
# - `rows[0::2]`, `rows[1::2]`, and `jnp.concatenate([a, b])`.
#
# <details><summary>Hint 1</summary>
#
# Sorting gives the *interleaved* layout of `02`: neighbours are partners. The loss wants them half a pile
# apart. You have written that translation before.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `pile[jnp.argsort(source_ids)]` takes whole rows. Sorting the ids themselves moves no row.
#
# </details>


# %% tags=["exercise"]
def restacked(pile, source_ids):
    """The rows in stacked layout, sources in ascending order; of each source the earlier row is on top.

    Shapes: pile [2B, D], source_ids [2B], where each id occurs twice. Returns [2B, D].
    """
    # TODO 1: order = ...        the places of the rows, sorted by their source id
    # TODO 2: interleaved = ...  the rows in that order
    # TODO 3: return ...         one view of each source on top of the other views
    ### BEGIN SOLUTION
    order = jnp.argsort(source_ids)
    interleaved = pile[order]
    return jnp.concatenate([interleaved[0::2], interleaved[1::2]])
    ### END SOLUTION


# %%
judge(restacked)

# %%
outcome("scrambled pile put together, NT-Xent", contrastive_jax.nt_xent(agree, TEMPERATURE))
repaired = contrastive_jax.nt_xent(restacked(scrambled, jnp.array([0, 1, 2, 1, 2, 0])), TEMPERATURE)
log.metric("exercise/repaired", repaired, unit="nats")
log.claim(
    "exercise/repaired_as_before",
    margin=ROUNDING - abs(repaired - contrastive_jax.nt_xent(agree, TEMPERATURE)),
    compared="ROUNDING - |loss after your repair - loss of the pile that agrees|",
)

# %% [markdown]
# **Common mistake.** Sorting `source_ids` and forgetting the rows, or sorting the pile by its *values*. Only the
# order that sorts the ids, applied to whole rows, keeps every view with its name.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# 0.3440<!-- record: exercise/repaired -->, as for the pile that agrees, down from
# 3.2219<!-- record: hand/scrambled -->. Which view lands on top does not matter: NT-Xent treats both alike. A
# data loader that shuffles *after* it has made the views needs this line, or must never shuffle there.
#
# </details>

# %% [markdown]
# ### Exercise 3. Do they point one way?
#
# **Difficulty** ●●○ · **about 12 minutes**
#
# Write the second measure of section 9: the mean cosine between *different* rows of a table.
#
# **Predict before coding.** What is it for the six points of section 2, all rows with all others? Now add 5 to both
# coordinates of every point. What is it then?

# %% tags=["prediction"]
predict("six points, mean cosine", ...)
predict("six points plus 5, mean cosine", ...)

# %% [markdown]
# **Steps**
#
# 1. Take the table of cosines of all rows with all rows.
# 2. Add up its cells without the diagonal.
# 3. Divide by the number of the cells that you added up.
#
# **Useful**
#
# - `contrastive_jax.cosine_similarity(rows, rows)` gives the table [n, n].
# - `jnp.trace(table)` sums its diagonal.
#
# <details><summary>Hint 1</summary>
#
# The table has $n^2$ cells, and $n$ of them compare a row with itself. They are all one, and would make any
# encoder look a little collapsed.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Sum of the table minus its trace, divided by `n * (n - 1)`.
#
# </details>


# %% tags=["exercise"]
def mean_cosine(embeddings):
    """Mean cosine similarity between different rows of `embeddings`, [n, D]; one number."""
    # TODO 1: cosines = ...   [n, n], every row with every row
    # TODO 2: return ...      their mean, without the n cells of the diagonal
    ### BEGIN SOLUTION
    cosines = contrastive_jax.cosine_similarity(embeddings, embeddings)
    count = len(embeddings)
    return (jnp.sum(cosines) - jnp.trace(cosines)) / (count * (count - 1))
    ### END SOLUTION


# %%
judge(mean_cosine)

# %%
outcome("six points, mean cosine", contrastive_jax.mean_cosine(agree))
outcome("six points plus 5, mean cosine", contrastive_jax.mean_cosine(agree + 5))
features, projection = contrastive_jax.encode(params, unseen)
log.series("exercise/cosine_of_points", [mean_cosine(agree), mean_cosine(agree + 5)], unit="cosine similarity")
log.metric("exercise/cosine_of_features", mean_cosine(features), unit="cosine similarity")
# 300 times 300 cosines are added up, and each of them is rounded.
log.claim(
    "exercise/cosine_agrees",
    margin=1e4 * EPS - abs(mean_cosine(projection) - cosine),
    compared="10000 EPS - |your mean cosine - that of section 9|",
)

# %% [markdown]
# **Common mistake.** Leaving the diagonal in. With 300 pictures it adds at most a third of a percent, and nobody
# notices; with a batch of eight it can add an eighth.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# The six points have -0.068<!-- record: exercise/cosine_of_points[0] -->: scattered. With 5 added they have
# 0.990<!-- record: exercise/cosine_of_points[1] -->, as close to collapse as one may wish, although their
# differences are what they were. All rows now share a large common part. The biases of an untrained encoder do
# just that: its *features* have the mean cosine 0.990<!-- record: exercise/cosine_of_features -->.
#
# </details>

# %% [markdown]
# ### Exercise 4. Do they differ at all?
#
# **Difficulty** ●○○ · **about 8 minutes**
#
# Write the first measure of section 9: the spread of the features.
#
# **Predict before coding.** To what multiple does the spread grow if all features are multiplied by 10? To what
# multiple, if 5 is added to each feature of each picture?

# %% tags=["prediction"]
predict("features times 10, spread grows to this multiple", ...)
predict("features plus 5, spread grows to this multiple", ...)

# %% [markdown]
# **Steps**
#
# 1. Take the standard deviation of each column over the rows, with the divisor $n - 1$ and not $n$.
# 2. Return its mean over the columns.
#
# **Useful**
#
# - `jnp.std(rows, axis=...)`: the axis named is the one that disappears.
# - Its argument `ddof=1` divides by $n - 1$.
#
# <details><summary>Hint 1</summary>
#
# One row is one picture. You ask how much a feature changes from picture to picture, so the axis of the pictures is
# the one that disappears.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `jnp.std(features, axis=0, ddof=1)` has one number for each feature.
#
# </details>


# %% tags=["exercise"]
def feature_spread(features):
    """Standard deviation of each feature over the rows of `features`, [n, D], averaged over the features."""
    # TODO 1: deviations = ...   [D], one for each feature
    # TODO 2: return ...         their mean
    ### BEGIN SOLUTION
    deviations = jnp.std(features, axis=0, ddof=1)
    return jnp.mean(deviations)
    ### END SOLUTION


# %%
judge(feature_spread)

# %%
features = contrastive_jax.encode(params, unseen).features
changed_spreads = [contrastive_jax.feature_spread(changed) for changed in (10 * features, features + 5)]
outcome("features times 10, spread grows to this multiple", round(float(changed_spreads[0] / spread), 3))
outcome("features plus 5, spread grows to this multiple", round(float(changed_spreads[1] / spread), 3))
log.claim(
    "exercise/spread_agrees",
    margin=1e4 * EPS - abs(feature_spread(features) - spread) / spread,
    compared="10000 EPS - |your spread - that of section 9|, relative",
)
log.metric("exercise/spread_of_tenfold_features", feature_spread(10 * features))

# %% [markdown]
# **Common mistake.** Taking the deviation along the rows. The features of one picture may differ a lot from each other
# while all pictures get the same ones.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# Ten times the features, ten times the spread: from 0.0043<!-- record: untrained/spread --> to
# 0.043<!-- record: exercise/spread_of_tenfold_features -->, with the same cosine as before. So a spread means
# something against the same encoder's start, and nothing against another encoder's. Five added to everything: the same
# spread, and by exercise 3 a cosine close to one. Each measure is blind where the other one sees. Use both.
#
# </details>

# %% [markdown]
# ### Exercise 5. Diagnose a broken run
#
# **Difficulty** ●●○ · **about 10 minutes**
#
# An encoder of pictures of four kinds, trained with NT-Xent on batches of 64 pairs at temperature
# 0.5<!-- parameter: TEMPERATURE -->, ends like this. What happened?
#
# | reported | value |
# |---|---|
# | loss | 4.169<!-- record: exercise/four_kinds[1] --> |
# | loss of guessing, log 127 | 4.844<!-- record: ladder/loss[2] --> |
# | loss with four kinds as far apart as can be | 3.652<!-- record: exercise/four_kinds[0] --> |
# | mean cosine between different pictures | 0 |
#
# - **a**: Nothing: it has converged.
# - **b**: Two of the four kinds have become one.
# - **c**: The four kinds have merged in pairs: two groups are left.
# - **d**: The partners are shuffled.
#
# **Steps**
#
# 1. For each answer, work out the mean cosine that it would report, and the loss where you can.
# 2. Keep the one that gives both numbers of the table.
#
# **Useful**
#
# - Section 8: `typical_cost`, and how the mean cosine of different pictures comes about. Four directions as far apart
#   as can be, the corners of a tetrahedron, have the cosine $-\frac{1}{3}$.
#
# <details><summary>Hint 1</summary>
#
# A mean cosine of 0 is what a healthy encoder of four kinds reports, $\frac{1}{4} - \frac{3}{4} \cdot \frac{1}{3}$.
# Which other groups give 0 as well?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Let the kinds merge into fewer groups: with what chance are two pictures of the same group, how far apart can the
# groups point, and what does `typical_cost` say?
#
# </details>

# %% tags=["exercise"]
answer = ...  # one of "a", "b", "c", "d"
### BEGIN SOLUTION
answer = "c"
### END SOLUTION

# %%
judge(answer, exercise="broken_run_04")

# %% [markdown]
# **Common mistake.** Taking a loss that has stopped falling, well below guessing, for the end of the road. It is a
# rung, and you know of a lower one.

# %% [markdown]
# <!-- SOLUTION -->

# %%
log.series("exercise/four_kinds", [typical_cost(1 / 4, -1 / 3), typical_cost(1 / 2, -1)], unit="nats")

# %% [markdown]
# <details><summary>Read the result</summary>
#
# Nothing here looks broken: the loss is far below guessing, and the mean cosine is the very number that a healthy
# encoder reports. In section 13 one merged pair of kinds showed in that cosine; when all merge in pairs, it does not.
# Only someone who knew how many kinds there are could notice that half of them are missing.
#
# </details>

# %% [markdown]
# ## What have we shown?
#
# On three kinds of strokes, one encoder and one optimiser: agreement alone collapses in every seed, agreement
# with negatives does in none. The negatives are what holds the vectors apart. (There are methods that avoid
# collapse without negatives, by a stopped gradient or a slowly moving copy of the encoder. They need such a
# device; a plain positive-only loss has none.)
#
# What we have *not* shown is that the features are good for anything. Nobody has used them yet. That a few
# encoders merged two kinds should make you ask, and the loss alone could hardly have told you. That is for
# `05_held_out_evaluation`. And our batches were full of false negatives, 42 in 126, which kept even the best
# loss far from zero: that is for `06_false_negatives`. Both notebooks are planned.
#
# ## Check your understanding
#
# A colleague trains with two views and a new loss of her own. The loss falls to its lowest possible value
# within an epoch, and partners have the cosine 1. What do you ask her first?
#
# 1. For a longer training, to see whether the loss stays there.
# 2. For the mean cosine between different pictures, and the spread, before and after.
# 3. For a lower temperature.
#
# <details><summary>Answer</summary>
#
# **The second.** Everything she reports fits a perfect encoder and a dead one alike. A longer training will
# not tell them apart: a collapsed encoder stays where it is. And her loss may not even have a temperature.
#
# </details>
#
# ## When views do not work
#
# | you see | look first at | likely cause |
# |---|---|---|
# | loss at its best from the start | cosine between different pictures | no term holds pictures apart |
# | spread falls below its start | the loss, its negatives | collapse |
# | cosine near 1, spread at its start | the number of updates | an untrained encoder |
# | loss at $\log(2B - 1)$ for long | the spread: is it growing? | a slow start near collapse; wait, or warm up |
# | loss stuck on a plateau below that | groups of pictures with equal vectors | partial collapse |
# | loss far above $\log(2B - 1)$ | source ids of the two views | a wrong key; at the start, a low temperature |
# | loss low, features useless | what the two views still share | views too alike, or a shortcut |
# | one seed works, the next does not | all of the seeds | luck was quoted |
#
# ## Carry forward
#
# - **Views are the supervision:** what differs between them is forgotten, what they share is kept.
# - **Agreement alone is a trap.** Its best value is reached by an encoder that looks at nothing.
# - **Two measures:** spread against its own start, cosine between different pictures. Each is blind alone.
# - **Know the rungs.** $\log(2B - 1)$ is always one. If you know how many things can be told apart, you know
#   more.
# - **Features and projection are two things.** Say which one you measure.
# - **All seeds, or none.** And ask of every quoted number whether rounding could have decided it.
#
# ## References
#
# - T. Chen and others, *A Simple Framework for Contrastive Learning of Visual Representations* (SimCLR):
#   [arxiv.org/abs/2002.05709](https://arxiv.org/abs/2002.05709). Two views, features and projection.
# - T. Wang and P. Isola, *Understanding Contrastive Representation Learning through Alignment and Uniformity
#   on the Hypersphere*: [arxiv.org/abs/2005.10242](https://arxiv.org/abs/2005.10242). What agreement lacks.
# - L. Jing and others, *Understanding Dimensional Collapse in Contrastive Self-supervised Learning*:
#   [arxiv.org/abs/2110.09348](https://arxiv.org/abs/2110.09348). Partial collapse of another kind, and the
#   role of the head.
# - X. Chen and K. He, *Exploring Simple Siamese Representation Learning* (SimSiam):
#   [arxiv.org/abs/2011.10566](https://arxiv.org/abs/2011.10566). No negatives, and what prevents collapse.
# - A. Bardes and others, *VICReg: Variance-Invariance-Covariance Regularization for Self-Supervised
#   Learning*: [arxiv.org/abs/2105.04906](https://arxiv.org/abs/2105.04906). The spread as part of the loss.
#
# **Back:** `01_paired_views` for collapse and its zero slope, `02_nt_xent` for the loss and its layout,
# `03_clip` for two encoders instead of two views. **Next**, and planned: `05_held_out_evaluation` will ask what the
# features are good for.
#
# ## Keep your evidence
#
# The next cell writes the file `portfolio-04_image_views.html` beside this notebook: your predictions and how far off
# they were, your code and what the judge said of it, the figures, and your numbers against the reference. It opens in
# any browser. The last cell closes the log.

# %%
passed = sorted({each["exercise"] for each in evidence()["attempts"] if each["passed"]})
log.text("exercises/passed", ", ".join(passed))
log.portfolio(evidence())

# %%
log.close()
