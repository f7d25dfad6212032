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
# # CLIP: two piles, and a temperature that learns
#
# You will write the loss that pairs images with captions, let it learn its own temperature, and find out why
# one scalar needs a cap on two sides.
#
# ## What you will be able to do
#
# - tell a temperature, a scale and a log scale apart, and recognise each mix-up by the number it gives;
# - write the score table and its loss in both directions, and build a batch on which the directions differ;
# - cap the scale so that neither the value nor the gradient breaks, below, at and above the cap;
# - keep a learned scale at its cap in training without freezing it there;
# - read from a learned temperature how sure a model is, and whether it has a right to be.
#
# **You need:** `01_paired_views` for the paired loss, and the mask, the scale and the test batches of
# `02_nt_xent`. Nothing is downloaded, and a CPU runs every cell in seconds.
#
# **Time:** about 145 minutes, 90 of them for the seven exercises. **Lesson:** `contrastive-03`.
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
# yours may differ in the last digits, and `make check NB=03` says whether that is rounding.

# %% tags=["parameters"]
PRECISION = "float32"
LOG_PATH = ""
SEED = 0
START_TEMPERATURE = 0.07
LEARNING_RATE = 0.05
STEPS = 80
SCALE_RATE = 0.3

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


def rounding(scale):
    """How far apart two correct losses may lie when `scale` multiplies the cosines."""
    return 32 * EPS * scale


log = RunLog(
    LOG_PATH,
    notebook="contrastive-03",
    stem="03_clip",
    precision=PRECISION,
    parameters={
        "SEED": SEED,
        "START_TEMPERATURE": START_TEMPERATURE,
        "LEARNING_RATE": LEARNING_RATE,
        "STEPS": STEPS,
        "SCALE_RATE": SCALE_RATE,
    },
)

# %% [markdown]
# `rounding` is the tolerance of the earlier notebooks as a function: dividing by a temperature and
# multiplying by a scale magnify the error of a cosine alike.
#
# ## 1. Two towers, one table
#
# A photograph and a caption have nothing in common that a cosine could compare. CLIP gives each kind an
# encoder of its own, two towers, and trains both until their outputs meet. Here the encoders have done their
# work: `images` and `texts` are arrays `[B, D]`, and row `i` of one belongs to row `i` of the other. Images
# label the rows of the table, texts its columns.
#
# | | text 0 | text 1 | text 2 |
# |---|:-:|:-:|:-:|
# | **image 0** | ✔ | · | · |
# | **image 1** | · | ✔ | · |
# | **image 2** | · | · | ✔ |
#
# This is the table of `01`, not the pile of `02`: an image never competes with another image. The new thing
# is the temperature. In `01` and `02` you chose it. Here training does.
#
# ## 2. Three names for one thing
#
# A temperature $\tau$ divides the cosines. So its inverse, the **scale** $1/\tau$, multiplies them. What is
# trained is the logarithm of the scale, the **log scale** $s = \log(1/\tau)$. Whatever a step does to $s$,
# the scale $e^s$ stays positive, and equal steps change it by equal *factors*.
#
# **Predict before running.** CLIP starts at the temperature 0.07<!-- parameter: START_TEMPERATURE -->. What
# are its scale and its log scale, roughly? And what is the log scale of the temperature 1?

# %% tags=["prediction"]
predict("scale at CLIP's start", ...)
predict("log scale at CLIP's start", ...)
predict("log scale of the temperature 1", ...)

# %%
temperatures = [1.0, 0.5, START_TEMPERATURE, 0.01]
log.series("names/scale", [1 / temperature for temperature in temperatures])
log.series("names/log_scale", [math.log(1 / temperature) for temperature in temperatures])
outcome("scale at CLIP's start", 1 / START_TEMPERATURE)
outcome("log scale at CLIP's start", math.log(1 / START_TEMPERATURE))
outcome("log scale of the temperature 1", math.log(1 / 1))

# %% [markdown]
# | temperature | scale | log scale | |
# |---|---|---|---|
# | 1 | 1 | 0 | no scaling |
# | 1/2 | 2 | 0.693<!-- record: names/log_scale[1] --> | the default of `02` |
# | 7/100 | 14.29<!-- record: names/scale[2] --> | 2.659<!-- record: names/log_scale[2] --> | CLIP's start |
# | 1/100 | 100 | 4.605<!-- record: names/log_scale[3] --> | CLIP's limit |
#
# All three are plain numbers, so nothing stops you from passing one for another. And names do not help: in
# released code, `logit_scale` is the log scale in one place and the scale in the next. In this package the
# argument `logit_scale` is always the log scale, as the parameter of that name is in CLIP. In this notebook
# we say `log_scale`.

# %% [markdown]
# ## 3. Two pairs by hand
#
# Two images $(1, 0)$ and $(0, 1)$, two texts with the same vectors, and the log scale $\log 2$.
#
# **Predict before running.** Write down the table of scores. What does image 0 pay for finding its text? Text 0
# pays the same for finding its image. You have met this number in `02`. Where?
#
# *Your prediction:* it stood …

# %% tags=["prediction"]
predict("two pairs, cost of image 0", ...)

# %%
log_two = math.log(2)
right, wrong = math.exp(math.exp(log_two) * 1), math.exp(math.exp(log_two) * 0)
log.metric("hand/probability", right / (right + wrong))
log.metric("hand/loss", -math.log(right / (right + wrong)), unit="nats")
outcome("two pairs, cost of image 0", -math.log(right / (right + wrong)))

# %% [markdown]
# The scores are 2 on the diagonal and 0 beside it. The right answer gets the probability
# 0.8808<!-- record: hand/probability --> and costs $\log(1 + e^{-2})$, or 0.1269<!-- record: hand/loss -->
# nats, in each direction. It is the paired loss at the temperature 1/2, which stood beside NT-Xent in `02`.

# %% [markdown]
# ## 4. From contract to code
#
# You have written the paired loss in `01`, with a temperature. Here is the contract of the same loss with a log
# scale that may be trained. You write it first, in two functions, and see ours afterwards.
#
# - `image_features` and `text_features` are two arrays `[B, D]`, and the rows `i` of both belong together.
#   `logit_scale` is one number, the log scale.
# - **Cosines.** Rows are scaled to length one. A row shorter than $10^{-12}$ is divided by $10^{-12}$ instead, so a
#   row of zeros stays one.
# - **Scores** `[B, B]`: the cosines times the scale. Rows are images, columns are texts.
# - **Cap.** The scale is at most 100, whatever the log scale is, and everything stays finite. Above $\log 100$ the
#   derivative by the log scale is zero. At $\log 100$ exactly it is still the one from below.
# - **Loss.** Each image asks which text is its own, and each text asks for its image. The loss is the mean cost of
#   these $2B$ questions in nats.
#
# `unit_rows` is the function of `02`. `CAP` is $\log 100$.


# %%
def unit_rows(x, floor=1e-12):
    """Rows scaled to length one; a row shorter than `floor` is divided by `floor` instead."""
    squares = jnp.sum(x * x, axis=-1, keepdims=True)
    return x / jnp.sqrt(jnp.maximum(squares, floor**2))


CAP = math.log(100)
two_pairs = jnp.eye(2, dtype=DTYPE)

# %% [markdown]
# ### Exercise 1. The table of scores
#
# **Difficulty** ●○○ · **about 10 minutes**
#
# Write `contrastive_logits`: the scores of the contract, with the cap.
#
# **Predict before coding.** The two pairs of section 3 at the log scale 1000: what is the largest score?

# %% tags=["prediction"]
predict("largest score at the log scale 1000", ...)

# %% [markdown]
# **Steps**
#
# 1. Scale the rows of both inputs to length one, and take the cosine of every image with every text.
# 2. Hold the log scale at or below `CAP`, and turn what is left into the scale.
# 3. Return scale times cosines.
#
# **Useful**
#
# - `unit_rows(x)`, `a @ b.T`, `jnp.exp`.
# - `jnp.where(condition, a, b)` takes `a` where the condition holds, else `b`.
#
# <details><summary>Hint 1</summary>
#
# What is trained is a logarithm. So something has to undo it before it may multiply a cosine.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `jnp.where(logit_scale > CAP, CAP, logit_scale)`, and only then the exponential. That of 1000 is infinite, and
# whatever you do with an infinity comes too late.
#
# </details>


# %% tags=["exercise"]
def contrastive_logits(image_features, text_features, logit_scale):
    """Score of every image with every text, [B, B]: rows are images, columns are texts.

    Shapes: image_features [B, D], text_features [B, D], logit_scale one number, the log scale.
    """
    # TODO 1: cosines = ...   [B, B]
    # TODO 2: scale = ...     one number, at most 100
    # TODO 3: return ...      [B, B]
    ### BEGIN SOLUTION
    cosines = unit_rows(image_features) @ unit_rows(text_features).T
    scale = jnp.exp(jnp.where(logit_scale > CAP, CAP, logit_scale))
    return scale * cosines
    ### END SOLUTION


# %%
judge(contrastive_logits)

# %%
right_scores = contrastive_jax.contrastive_logits(two_pairs, two_pairs, 1000.0)
outcome("largest score at the log scale 1000", jnp.max(right_scores))
log.metric("exercise/largest_score", jnp.max(contrastive_logits(two_pairs, two_pairs, 1000.0)))

# %% [markdown]
# **Common mistake.** Forgetting the exponential. At CLIP's start the cosines are then multiplied by
# 2.659<!-- record: names/log_scale[2] --> instead of 14.29<!-- record: names/scale[2] -->. Nothing complains; the
# model is only far too unsure of everything.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# The largest score is 100<!-- record: exercise/largest_score -->, and it would be the same at any log scale
# above $\log 100$. Keep this table apart from the loss: retrieval reads it too. Why the cap stands before the
# exponential, and why it is written with `where`, is the subject of section 8.
#
# </details>

# %% [markdown]
# ### Exercise 2. The loss, asked both ways
#
# **Difficulty** ●●○ · **about 15 minutes**
#
# Write `clip_loss` on top of your `contrastive_logits`, so finish exercise 1 first.
#
# **Predict before coding.** Along a row of the table one image compares all texts. Along what does a text compare
# all images, and which argument of `log_softmax` says so?
#
# *Your prediction:* …
#
# **Steps**
#
# 1. Take the scores from your `contrastive_logits`.
# 2. Images ask: log-softmax along each row, and of that the diagonal.
# 3. Texts ask: the same down each column.
# 4. Return the mean cost of all $2B$ questions.
#
# **Useful**
#
# - `jax.nn.log_softmax(scores, axis=1)` works along the rows.
# - `jnp.diagonal(table)` has the entries of the pairs, `jnp.mean` their mean.
#
# <details><summary>Hint 1</summary>
#
# A cost is *minus* the log-probability of the right answer, and the right answers stand on the diagonal in
# both directions.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `-jnp.mean(jnp.diagonal(jax.nn.log_softmax(scores, axis=1)))` is one half of the work. If the judge speaks of the
# slope at the cap, the place to look is how exercise 1 caps.
#
# </details>


# %% tags=["exercise"]
def clip_loss(image_features, text_features, logit_scale):
    """Mean cost in nats of images asking for their texts and texts asking for their images; one number.

    Shapes: image_features [B, D], text_features [B, D], logit_scale one number, the log scale.
    """
    # TODO 1: scores = ...       [B, B]
    # TODO 2: images_ask = ...   one number
    # TODO 3: texts_ask = ...    one number
    # TODO 4: return ...         one number
    ### BEGIN SOLUTION
    scores = contrastive_logits(image_features, text_features, logit_scale)
    images_ask = -jnp.mean(jnp.diagonal(jax.nn.log_softmax(scores, axis=1)))
    texts_ask = -jnp.mean(jnp.diagonal(jax.nn.log_softmax(scores, axis=0)))
    return (images_ask + texts_ask) / 2
    ### END SOLUTION


# %%
judge(clip_loss)

# %%
log.metric("exercise/two_pairs", clip_loss(two_pairs, two_pairs, log_two), unit="nats")

# %% [markdown]
# **Common mistake.** Asking in one direction only. On the two pairs both directions cost the same, so the number
# from your paper comes out all the same. The judge has a batch on which it does not.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# 0.1269<!-- record: exercise/two_pairs -->, the number of section 3. The two directions read one table, and
# differ in the axis along which the probabilities add up to one.
#
# </details>

# %% [markdown]
# ### Our code
#
# In small steps, which the next sections need one by one: the cosines, both directions, and the loss, for the
# moment without a cap. Section 8 takes its time for that.
#
# **Predict before running.** The function gets the two pairs, with the texts three times as long. What does it
# give?

# %% tags=["prediction"]
predict("two pairs, texts three times as long", ...)


# %%
def cosine_table(images, texts):
    """Cosine of every image with every text, [B, B]."""
    return unit_rows(images) @ unit_rows(texts).T


def directions(scores):
    """Mean cross-entropy of the diagonal: images asking along rows, texts asking down columns."""
    images_ask = -jnp.mean(jnp.diagonal(jax.nn.log_softmax(scores, axis=1)))
    texts_ask = -jnp.mean(jnp.diagonal(jax.nn.log_softmax(scores, axis=0)))
    return images_ask, texts_ask


def uncapped_loss(images, texts, log_scale):
    """The symmetric loss in nats, still without a cap."""
    return sum(directions(jnp.exp(log_scale) * cosine_table(images, texts))) / 2


three_times = float(uncapped_loss(two_pairs, 3 * two_pairs, log_two))
log.claim(
    "hand/function_agrees",
    margin=rounding(2) - abs(three_times - math.log1p(math.exp(-2))),
    compared="rounding(2) - |uncapped_loss - log(1 + exp(-2))|",
)
outcome("two pairs, texts three times as long", three_times)

# %% [markdown]
# The number of section 3 once more: a cosine does not see lengths.

# %% [markdown]
# ## 5. Two directions, two questions
#
# On the two pairs both directions cost the same, so a loss that forgets one of them passes the test. Make
# them differ. Image 0 shows a dog, at $(2, 0)$, and image 1 a cat, at $(0, 1)$. Caption 1 says "a cat" and
# points straight at its image. But caption 0 only says "an animal" and stands in between, at $(1, 1)$.
#
# **Predict before running.** Which question is the hard one: an image looking for its caption, or a caption
# looking for its image? One of the four costs is exactly $\log 2$. Which?
#
# *Your prediction:* …

# %%
images = jnp.array([[2.0, 0.0], [0.0, 1.0]], dtype=DTYPE)
captions = jnp.array([[1.0, 1.0], [0.0, 0.5]], dtype=DTYPE)
scores = 2 * cosine_table(images, captions)
images_ask, texts_ask = directions(scores)
log.series("captions/image_costs", -jnp.diagonal(jax.nn.log_softmax(scores, axis=1)), unit="nats")
log.series("captions/text_costs", -jnp.diagonal(jax.nn.log_softmax(scores, axis=0)), unit="nats")
log.metric("captions/images_ask", images_ask, unit="nats")
log.metric("captions/texts_ask", texts_ask, unit="nats")
log.claim(
    "captions/directions_differ",
    margin=abs(images_ask - texts_ask) - 0.05,
    compared="|images asking - texts asking| - 0.05",
)

# %% [markdown]
# The captions have the harder question: 0.410<!-- record: captions/texts_ask --> against
# 0.330<!-- record: captions/images_ask -->. "An animal" fits both images equally well and can only guess,
# which costs $\log 2$, or 0.693<!-- record: captions/text_costs[0] -->. Asked the other way, the dog still
# finds it: "an animal" fits the dog better than "a cat" does. The table is one, and the denominators are two.

# %% [markdown]
# ## 6. One pair, no features, one dead row
#
# Three small batches that break careless code: a single pair; features that are all zero; and one image
# without features among others that have some.
#
# **Predict before running.** What does each of the first two cost, the second with four pairs? In the third the
# loss is finite. How large is the largest entry of its gradient, as a power of ten: 0 for about 1, 3 for about
# a thousand?

# %% tags=["prediction"]
predict("cost of a single pair", ...)
predict("cost of four pairs of zeros", ...)
predict("one dead row, power of ten of the largest slope", ...)

# %%
nothing = jnp.zeros((4, 3), dtype=DTYPE)
single = float(uncapped_loss(images[:1], captions[:1], log_two))
absent = float(uncapped_loss(nothing, nothing, log_two))
log.metric("edge/all_zero", absent, unit="nats")
log.claim(
    "edge/one_pair_is_free_and_zeros_guess",
    margin=rounding(2) - max(abs(single), abs(absent - math.log(4))),
    compared="rounding(2) - larger of |loss of one pair| and |loss of zeros - log 4|",
)
one_dead = images.at[0].set(0.0)
log.metric("edge/one_dead_row", uncapped_loss(one_dead, captions, log_two), unit="nats")
slope_of_dead = jnp.max(jnp.abs(jax.grad(uncapped_loss)(one_dead, captions, log_two)))
log.metric("edge/its_slope", slope_of_dead)
outcome("cost of a single pair", single)
outcome("cost of four pairs of zeros", absent)
outcome("one dead row, power of ten of the largest slope", math.log10(slope_of_dead))

# %% [markdown]
# One pair costs 0, zeros cost $\log 4$, or 1.386<!-- record: edge/all_zero -->. The dead row costs an
# unremarkable 0.724<!-- record: edge/one_dead_row -->. But its gradient has an entry above $10^{11}$: a row
# below the norm floor is divided by $10^{-12}$, and so is every change of it. The derivative is correct. Yet
# if you clip the norm of the whole gradient, this one row shrinks all others to nothing. Look for dead rows
# when training stands still.

# %% [markdown]
# ## 7. Which wrong number is which?
#
# Six mistakes, three batches. `matched` is the two pairs at the log scale $\log 2$; `captions` is section 5,
# at the same. `swapped` is the two pairs with their texts exchanged, at $\log 1000$, far above the cap of 100
# that CLIP sets.
#
# **Predict before running.** How many of the six change the number of `matched`? What does the correct loss
# charge in `swapped`, and what does a loss without the cap charge?

# %% tags=["prediction"]
predict("mistakes that matched shows, of 6", ...)
predict("swapped, correct loss", ...)
predict("swapped, no cap", ...)


# %%
def with_mistakes(images, texts, log_scale):
    """The loss of each version; the first is correct."""
    table, bare = cosine_table(images, texts), images @ texts.T
    scale = math.exp(min(log_scale, math.log(100)))
    tables = {
        "correct": scale * table,
        "not normalised": scale * bare,
        "images ask only": scale * table,
        "log scale without exp": log_scale * table,
        "scale divides": table / scale,
        "temperature passed": math.exp(1 / math.exp(log_scale)) * table,
        "no cap": math.exp(log_scale) * table,
    }
    both = {name: directions(scores) for name, scores in tables.items()}
    return {name: pair[0] if name == "images ask only" else sum(pair) / 2 for name, pair in both.items()}


batches = {
    "matched": (two_pairs, two_pairs, log_two),
    "captions": (images, captions, log_two),
    "swapped": (two_pairs, two_pairs[::-1], math.log(1000)),
}
found = {name: list(with_mistakes(*batch).values()) for name, batch in batches.items()}
for name, values in found.items():
    log.series(f"mistakes/{name}", values, unit="nats")
gaps = np.array([[abs(value - values[0]) for value in values[1:]] for values in found.values()])
log.claim(
    "mistakes/all_six_show",
    margin=np.min(np.max(gaps, axis=0)) - 0.01,
    compared="least clear mistake, on the batch that shows it best: |mistaken - correct| - 0.01",
)
outcome("mistakes that matched shows, of 6", int(np.sum(gaps[0] > 0.01)))
outcome("swapped, correct loss", found["swapped"][0])
outcome("swapped, no cap", found["swapped"][-1])

# %% [markdown]
# | | matched | captions |
# |---|---|---|
# | correct | 0.127<!-- record: mistakes/matched[0] --> | 0.370<!-- record: mistakes/captions[0] --> |
# | not normalised | 0.127<!-- record: mistakes/matched[1] --> | 0.443<!-- record: mistakes/captions[1] --> |
# | images ask only | 0.127<!-- record: mistakes/matched[2] --> | 0.330<!-- record: mistakes/captions[2] --> |
# | log scale, no exp | 0.405<!-- record: mistakes/matched[3] --> | 0.543<!-- record: mistakes/captions[3] --> |
# | scale divides | 0.474<!-- record: mistakes/matched[4] --> | 0.580<!-- record: mistakes/captions[4] --> |
# | temperature passed | 0.176<!-- record: mistakes/matched[5] --> | 0.405<!-- record: mistakes/captions[5] --> |
# | no cap | 0.127<!-- record: mistakes/matched[6] --> | 0.370<!-- record: mistakes/captions[6] --> |
#
# **Read it by columns.** `matched` cannot see normalisation, direction or cap. `captions` sees the first two,
# thanks to its lengths and its lopsidedness. Only `swapped` sees the cap: the correct loss charges
# 100<!-- record: mistakes/swapped[0] --> there, and without the cap it is
# 1000<!-- record: mistakes/swapped[6] -->. A confident mistake costs the scale itself, so without a cap there
# is no limit to what one wrong caption may charge.
#
# The confusions of scales show on every batch, but only to one who knows the right value. None of them
# crashes, and all of them train.

# %% [markdown]
# ## 8. The cap, inside the loss
#
# CLIP never lets the scale exceed 100. It reports that this was needed for stable training. There are several
# ways to write the limit, and they differ where it is hard to see.
#
# **Predict before running.** `minimum(exp(s), 100)`, at $s = 1000$. What is its value, and what is its
# gradient: 0, 100 or something else?
#
# *Your prediction:* …

# %%
far_above = jnp.asarray(1000.0, dtype=DTYPE)
value, slope = jax.value_and_grad(lambda s: jnp.minimum(jnp.exp(s), 100.0))(far_above)
print(f"cap after exp, at s = 1000: value {value}, gradient {slope}")
log.claim("cap/after_exp_gradient_is_nan", margin=float(np.isnan(slope)), compared="1 if the gradient is nan, else 0")

# %% [markdown]
# The value is 100 and the gradient is **`nan`**. The exponential has overflowed to infinity. The minimum
# rejects it and passes a gradient of zero to it, and zero times infinity is `nan`. So cap the *log scale*,
# and take the exponential of what is left.
#
# That still leaves several spellings, and you chose one of them in exercise 1. Here are three that agree on every
# value from 0 up. (This `clamp` also stops at 0, as it does in much of the code you will meet. Our contract does not
# ask for that.)
#
# **Predict before running.** Between 0 and the cap all three have the slope 1, and above it 0. What slope does each
# have exactly at the cap?

# %% tags=["prediction"]
predict("slope of minimum at the cap", ...)
predict("slope of clamp at the cap", ...)
predict("slope of where at the cap", ...)

# %%
rules = {
    "minimum": lambda s: jnp.minimum(s, CAP),
    "clamp": lambda s: jax.lax.clamp(jnp.zeros_like(s), s, jnp.full_like(s, CAP)),
    "where": lambda s: jnp.where(s > CAP, CAP, s),
}
places = jnp.array([CAP - 1, CAP, CAP + 1], dtype=DTYPE)
for name, rule in rules.items():
    slopes = [jax.grad(rule)(place) for place in places]
    log.series(f"cap/{name}", slopes)
    outcome(f"slope of {name} at the cap", slopes[1])

# %% [markdown]
# | | below | at the cap | above |
# |---|---|---|---|
# | `minimum(s, CAP)` | 1 | 0.5<!-- record: cap/minimum[1] --> | 0 |
# | `lax.clamp(0, s, CAP)` | 1 | 0 | 0 |
# | `where(s > CAP, CAP, s)` | 1 | 1 | 0 |
#
# Below and above there is no choice. At the cap the function has a corner, and each spelling picks another of
# its slopes. Does a single point matter? It would not if a parameter came there by chance. But we shall put
# it there.

# %% [markdown]
# ## 9. The cap, in the training loop
#
# Training code usually clips the *parameter* after each update, so that the scale never leaves the allowed
# range. `optax.projections.projection_box` does that. A parameter that wants to grow then stands *exactly* at
# the cap.
#
# Watch one scalar. Four images and four texts are fixed and crowded: a right caption has the cosine 1, a
# wrong one 0.98<!-- record: loop/crowded_cosine -->. Such a batch rewards a large scale. After 40 updates the
# world changes: the captions of images 0 and 1 are exchanged, so **half of the captions are wrong**. Now a
# large scale is punished. Three loops of plain gradient descent:
#
# - `projected`: `where` in the loss, and the parameter projected after each update;
# - `free`: `where` in the loss, and nothing done to the parameter;
# - `clamped`: `lax.clamp` in the loss, and the parameter projected.
#
# **Predict before running.** Sketch the three curves of the log scale. How many of the three loops come down
# again after the captions are exchanged, and which?
#
# *Your prediction:* it is …

# %% tags=["prediction"]
predict("loops that come down again, of 3", ...)

# %%
crowded = jnp.concatenate([jnp.full((4, 1), 7.0), jnp.eye(4)], axis=1).astype(DTYPE)
exchanged = crowded[jnp.array([1, 0, 2, 3])]
log.metric("loop/crowded_cosine", cosine_table(crowded, crowded)[0, 1])


def follow(rule, project):
    """Log scale before each of 80 updates and after the last, and the loss at each of these."""

    @jax.jit
    def slope(log_scale, texts):
        return jax.value_and_grad(lambda s: uncapped_loss(crowded, texts, rule(s)))(log_scale)

    log_scale, path, losses = jnp.asarray(-math.log(START_TEMPERATURE), dtype=DTYPE), [], []
    for update in range(81):
        loss, gradient = slope(log_scale, crowded if update < 40 else exchanged)
        path.append(log_scale)
        losses.append(loss)
        log_scale = log_scale - SCALE_RATE * gradient
        if project:
            log_scale = optax.projections.projection_box(log_scale, 0.0, CAP)
    return path, losses


# %%
loops = {
    "projected": follow(rules["where"], project=True),
    "free": follow(rules["where"], project=False),
    "clamped": follow(rules["clamp"], project=True),
}
best_log_scale, best_loss = math.log(math.log(3) / 0.02), (math.log(2) + math.log(6)) / 2
for name, (path, losses) in loops.items():
    log.series(f"loop/{name}", path[::5])
    log.series(f"loop/{name}_loss", losses[::5], unit="nats")
log.metric("loop/best_log_scale", best_log_scale)
log.metric("loop/best_loss", best_loss, unit="nats")
log.claim(
    "loop/projected_comes_back",
    margin=0.02 - abs(loops["projected"][0][-1] - best_log_scale),
    compared="0.02 - |last log scale, projected - best log scale|",
)
log.claim("loop/free_is_stuck", margin=loops["free"][0][-1] - CAP, compared="last log scale, free - log 100")
log.claim(
    "loop/clamped_is_stuck",
    margin=rounding(1) - abs(loops["clamped"][0][-1] - CAP),
    compared="rounding(1) - |last log scale, clamped - log 100|",
)
outcome("loops that come down again, of 3", sum(int(path[-1] < CAP - 0.1) for path, _ in loops.values()))

# %%
log.figure(
    "contrastive-03-cap",
    panels=[
        {
            "kind": "line",
            "series": [{"label": name, "x": range(81), "y": path} for name, (path, _) in loops.items()],
            "levels": [{"label": "cap, log 100", "y": CAP}, {"label": "best after update 40", "y": best_log_scale}],
            "xlabel": "completed updates",
            "ylabel": "log scale",
            "title": "Captions exchanged after 40 updates",
        },
        {
            "kind": "line",
            "series": [{"label": name, "x": range(81), "y": losses} for name, (_, losses) in loops.items()],
            "levels": [{"label": "best after update 40", "y": best_loss}],
            "xlabel": "completed updates",
            "ylabel": "loss (nats)",
            "title": "What it costs",
        },
    ],
    alt="Left: all three log scales climb to the cap. The free one ends above it and stays there for good, the "
    "clamped one stays exactly on it, and only the projected one falls after update 40, to the best value. "
    "Right: at update 40 all losses jump; only that of the projected loop comes down.",
)

# %% [markdown]
# **Read the left panel** from update 40 on: only `projected` comes down, from
# 4.605<!-- record: loop/projected[8] --> to 4.012<!-- record: loop/projected[-1] -->. `free` overshot the cap
# in its last upward step, to 4.689<!-- record: loop/free[-1] -->. Up there the slope is zero, so nothing ever
# calls it back. `clamped` stands exactly at the cap, where `lax.clamp` has no slope either.
#
# **Read the right panel** as the price: the two frozen loops pay 1.341<!-- record: loop/free_loss[-1] -->, and
# `projected` 1.242<!-- record: loop/projected_loss[-1] -->, the least that half-wrong captions allow.
#
# So the cap has two sides. *Inside the loss* it keeps values finite for any parameter. *In the loop* it keeps
# the parameter where the loss still has a slope. And the slope at the cap itself must be the one from below.
#
# **A learned temperature is a statement.** At the best log scale, the softmax gives the best-matching caption
# the probability 1/2. Half of the captions are right. The loop has no other way to be honest: it can only
# choose how sure to be. A cold learned temperature says: I am sure, on the pairs I was trained on.
#
# <details><summary>Why exactly one half</summary>
#
# Let $d$ be the scale times the lead of 1/50. The best match gets $p = e^d / (e^d + 3)$. A right caption costs
# $-\log p$, and a wrong one costs $d$ more. The mean is $-\log p + d/2$, and the derivative of $-\log p$ by
# $d$ is $-(1 - p)$. So the mean is flat where $1 - p = 1/2$: at $e^d = 3$, or the scale $50 \log 3$.
#
# </details>

# %% [markdown]
# ## 10. The same loss from the package
#
# `contrastive_jax.contrastive_logits` and `contrastive_jax.clip_loss` hold the cap inside.
#
# **Predict before running.** Three inputs, so three gradients: images, texts, log scale. At the cap, which of
# the three slopes of section 8 does the package have?
#
# *Your prediction:* …


# %%
def capped_loss(images, texts, log_scale):
    """The loss of this notebook, complete: the log scale is capped, with the slope of the lower side."""
    return uncapped_loss(images, texts, rules["where"](log_scale))


start_scale = jnp.asarray(-math.log(START_TEMPERATURE), dtype=DTYPE)
cases = [(images, captions, start_scale)] + [(crowded, exchanged, place) for place in places]
value_gaps, slope_gaps = [], []
for case in cases:
    value_gaps.append(abs(capped_loss(*case) - contrastive_jax.clip_loss(*case)))
    ours, theirs = (jax.grad(loss, (0, 1, 2))(*case) for loss in (capped_loss, contrastive_jax.clip_loss))
    slope_gaps += [jnp.max(jnp.abs(a - b)) for a, b in zip(ours, theirs, strict=True)]
log.claim(
    "package/loss_agrees",
    margin=rounding(100) - max(value_gaps),
    compared="rounding(100) - |notebook - package|: captions, and a crowded batch below, at and above the cap",
)
# A gradient multiplies by the scale once more than the loss does.
log.claim(
    "package/gradients_agree",
    margin=rounding(100 * 100) - max(slope_gaps),
    compared="rounding(100 * 100) - largest |notebook - package| over all three gradients of these batches",
)
package_slopes = [jax.grad(contrastive_jax.clip_loss, 2)(crowded, exchanged, place) for place in places]
log.metric("package/slope_at_the_cap", package_slopes[1])
log.claim("package/kept_at_the_cap", margin=abs(package_slopes[1]) - 0.1, compared="|slope at the cap| - 0.1")
log.claim("package/none_above", margin=EPS - abs(package_slopes[2]), compared="EPS - |slope above the cap|")
scores_far_above = contrastive_jax.contrastive_logits(two_pairs, two_pairs, 1e30)
log.claim(
    "package/finite_far_above",
    margin=rounding(100) - jnp.max(jnp.abs(scores_far_above - 100 * two_pairs)),
    compared="rounding(100) - largest |scores at the log scale 1e30 - 100 on the diagonal|",
)

# %% [markdown]
# They agree in value and in all three gradients. At the cap the package keeps the slope from below,
# 0.422<!-- record: package/slope_at_the_cap --> here, which is the one that lets a projected parameter come
# back. Above the cap it is zero, and even a log scale of $10^{30}$ gives finite scores.

# %% [markdown]
# ## 11. A toy: eight pairs and a scale
#
# Eight image vectors and eight text vectors, 8 numbers each, drawn at random and independently. All 128
# numbers and the log scale are trained with Adam, learning rate 0.05<!-- parameter: LEARNING_RATE -->, for
# 80<!-- parameter: STEPS --> updates, and the log scale is projected after each.
#
# **Predict before running.** Random vectors at the temperature 0.07<!-- parameter: START_TEMPERATURE -->: what
# is the first loss, if guessing costs $\log 8$ or 2.079<!-- record: toy/guess -->? And the temperature: does
# training first make it colder or warmer?
#
# *Your prediction:* first it gets …

# %% tags=["prediction"]
predict("toy, first loss", ...)


# %%
@jax.jit
def measure(parameters):
    images, texts, log_scale = parameters
    table = cosine_table(images, texts)
    rivals = jnp.where(jnp.eye(len(table), dtype=bool), -jnp.inf, table)
    hits = contrastive_jax.retrieval_accuracy(table, k=1, ties="strict")
    return {
        "loss": contrastive_jax.clip_loss(images, texts, log_scale),
        "pair_cosine": jnp.mean(jnp.diagonal(table)),
        "hardest_text": jnp.mean(jnp.max(rivals, axis=1)),
        "hardest_image": jnp.mean(jnp.max(rivals, axis=0)),
        "image_to_text": hits.left_to_right,
        "text_to_image": hits.right_to_left,
        "log_scale": log_scale,
        "scale_slope": jax.grad(contrastive_jax.clip_loss, 2)(images, texts, log_scale),
    }


def train(parameters):
    """Parameters after STEPS updates, and a measurement every five."""
    optimiser = optax.adam(LEARNING_RATE)

    @jax.jit
    def update(parameters, state):
        slopes = jax.grad(lambda each: contrastive_jax.clip_loss(*each))(parameters)
        steps, state = optimiser.update(slopes, state)
        images, texts, log_scale = optax.apply_updates(parameters, steps)
        return (images, texts, optax.projections.projection_box(log_scale, 0.0, CAP)), state

    state, measured = optimiser.init(parameters), [measure(parameters)]
    for updates in range(1, STEPS + 1):
        parameters, state = update(parameters, state)
        if updates % 5 == 0:
            measured.append(measure(parameters))
    return parameters, measured


# %%
# Drawn in float32 in both precisions, so that both start from the same numbers.
keys = jax.random.split(jax.random.key(SEED))
drawn = [jax.random.uniform(key, (8, 8), jnp.float32, -1, 1).astype(DTYPE) for key in keys]
trained, measured = train((*drawn, start_scale))

curves = {name: [float(each[name]) for each in measured] for name in measured[0]}
updates_done = list(range(0, STEPS + 1, 5))
log.metric("toy/guess", math.log(8), unit="nats")
log.series("toy/updates", updates_done)
for name, values in curves.items():
    log.series(f"toy/{name}", values, unit="nats" if name == "loss" else "")
log.metric("toy/last_temperature", math.exp(-curves["log_scale"][-1]))
log.claim("toy/loss_ends_low", margin=0.05 - curves["loss"][-1], compared="0.05 - last loss")
log.claim(
    "toy/both_retrievals_reach_1",
    margin=min(curves["image_to_text"][-1], curves["text_to_image"][-1]) - 0.999,
    compared="smaller of the two last retrievals - 0.999",
)
log.claim(
    "toy/warms_up_first",
    margin=curves["log_scale"][0] - curves["log_scale"][5],
    compared="log scale at the start - after 25 updates",
)
outcome("toy, first loss", curves["loss"][0])

# %% [markdown]
# The start costs 6.980<!-- record: toy/loss[0] -->, more than three times as much as guessing: a model that
# knows nothing and is sure of it. So the scale goes *down* first. It falls from
# 2.659<!-- record: toy/log_scale[0] --> to 2.222<!-- record: toy/log_scale[6] --> in 30 updates and then
# creeps up again, as the pairs come to deserve it. The end: a loss of 0.0023<!-- record: toy/loss[-1] -->,
# both retrievals at 1, and a temperature of 0.103<!-- record: toy/last_temperature -->.

# %%
log.figure(
    "contrastive-03-curves",
    panels=[
        {
            "kind": "line",
            "series": [{"label": "CLIP loss", "x": updates_done, "y": curves["loss"]}],
            "levels": [{"label": "guessing, log 8", "y": math.log(8)}],
            "logarithmic": True,
            "xlabel": "completed updates",
            "ylabel": "loss (nats, logarithmic)",
            "title": "Training loss",
        },
        {
            "kind": "line",
            "series": [{"label": "log scale", "x": updates_done, "y": curves["log_scale"]}],
            "xlabel": "completed updates",
            "ylabel": "log scale",
            "title": "Learned log scale",
        },
    ],
    alt="Left: the loss falls from above guessing to a few thousandths. Right: the log scale falls for thirty "
    "updates and then rises slowly.",
)

# %% [markdown]
# **Read the left panel** on its logarithmic axis: the loss keeps falling long after every retrieval is right,
# since a lead may always grow.
#
# **Read the right panel** with one caution: the minimum comes late. The slope by the log scale falls from
# 6.347<!-- record: toy/scale_slope[0] --> to -0.020<!-- record: toy/scale_slope[1] --> in five updates, so it
# has already turned. Adam's memory of the large slopes carries the log scale down for 25 updates more.

# %% [markdown]
# ## 12. The cosines
#
# **Predict before running.** The loss is close to zero. What is the mean cosine of the partners: nearly 1? And
# is the final table of cosines symmetric?
#
# *Your prediction:* the table is …

# %% tags=["prediction"]
predict("toy, last mean cosine of partners", ...)

# %%
final_table = cosine_table(trained[0], trained[1])
rivals = jnp.where(jnp.eye(8, dtype=bool), -jnp.inf, final_table)
own = jnp.diagonal(final_table)
row_lead, column_lead = jnp.min(own - jnp.max(rivals, axis=1)), jnp.min(own - jnp.max(rivals, axis=0))
log.metric("toy/smallest_lead", min(row_lead, column_lead), unit="cosine similarity")
log.claim("toy/every_image_finds_its_text", margin=row_lead, compared="own cosine - best rival's, worst row")
log.claim("toy/every_text_finds_its_image", margin=column_lead, compared="the same, worst column")
outcome("toy, last mean cosine of partners", curves["pair_cosine"][-1])
log.figure(
    "contrastive-03",
    panels=[
        {
            "kind": "line",
            "series": [
                {"label": "pair", "x": updates_done, "y": curves["pair_cosine"]},
                {"label": "hardest text", "x": updates_done, "y": curves["hardest_text"]},
                {"label": "hardest image", "x": updates_done, "y": curves["hardest_image"]},
            ],
            "xlabel": "completed updates",
            "ylabel": "mean cosine similarity",
            "title": "Partners and their hardest rivals",
        },
        {
            "kind": "heatmap",
            "values": final_table,
            "rows": [str(row) for row in range(8)],
            "columns": [str(column) for column in range(8)],
            "unit": "cosine similarity",
            "diverging": True,
            "xlabel": "text",
            "ylabel": "image",
            "title": "Final cosines, before the scale",
        },
    ],
    alt="Left: the pairs' cosine rises from below zero to about 0.8 and the hardest rivals fall below 0.1. "
    "Right: eight by eight table of cosines. The diagonal lies between 0.68 and 0.9; all other cells lie "
    "between -0.7 and 0.2.",
)

# %% [markdown]
# **Read the left panel** as the lead: pairs end at 0.80<!-- record: toy/pair_cosine[-1] -->, their hardest
# rivals at 0.08<!-- record: toy/hardest_text[-1] --> and below, in both directions. Pairs need not *coincide*
# for a loss near zero; they need to lead.
#
# **Read the right panel** along rows for images asking and down columns for texts asking: each diagonal cell
# leads its row and its column, by at least 0.599<!-- record: toy/smallest_lead -->. The table is *not*
# symmetric, since image 2 against text 5 is one question and image 5 against text 2 another.

# %% [markdown]
# ## 13. Measured by other means
#
# **Predict before running.** The loops below count a hit only if the own cosine beats every other. The trained
# vectors hit every time. What would their loss be at the log scale 0, with nothing else changed?

# %% tags=["prediction"]
predict("trained vectors at the log scale 0, loss", ...)


# %%
def scalar_measurement(images, texts, log_scale):
    """Loss and both retrievals in plain Python floats, one number at a time."""

    def units(rows):
        rows = np.asarray(rows, dtype=np.float64).tolist()
        lengths = [max(math.sqrt(sum(x * x for x in row)), 1e-12) for row in rows]
        return [[x / length for x in row] for row, length in zip(rows, lengths, strict=True)]

    scale = math.exp(min(float(log_scale), math.log(100)))
    scores = [[scale * sum(map(float.__mul__, i, t)) for t in units(texts)] for i in units(images)]
    costs, hits = [], []
    for asking in (scores, [list(column) for column in zip(*scores, strict=True)]):
        for k, row in enumerate(asking):
            costs.append(max(row) + math.log(sum(math.exp(x - max(row)) for x in row)) - row[k])
            hits.append(all(row[k] > x for j, x in enumerate(row) if j != k))
    half = len(scores)
    return sum(costs) / len(costs), sum(hits[:half]) / half, sum(hits[half:]) / half


for name, parameters in [("start", (*drawn, start_scale)), ("trained", trained)]:
    loss, image_to_text, text_to_image = scalar_measurement(*parameters)
    log.metric(f"loops/{name}_loss", loss, unit="nats")
    log.series(f"loops/{name}_hits", [image_to_text, text_to_image])
    log.claim(
        f"loops/agree_on_{name}",
        margin=rounding(1 / START_TEMPERATURE) - abs(float(contrastive_jax.clip_loss(*parameters)) - loss),
        compared="rounding(1 / START_TEMPERATURE) - |package in JAX - loops in Python|",
    )

soft = scalar_measurement(*trained[:2], 0.0)[0]
log.metric("loops/trained_at_log_scale_zero", soft, unit="nats")
outcome("trained vectors at the log scale 0, loss", soft)

# %% [markdown]
# The loops find 6.980<!-- record: loops/start_loss --> and 0.0023<!-- record: loops/trained_loss -->, and full
# retrieval both ways at the end. Retrieval and loss may well disagree, because retrieval does not see the
# scale at all. At the log scale zero the same trained vectors rank just as well, and cost
# 1.317<!-- record: loops/trained_at_log_scale_zero -->.

# %% [markdown]
# ## Make it yours: five more exercises
#
# As in section 4: fill in each function, and run the cell that judges it.

# %% [markdown]
# ### Exercise 3. From temperature to log scale
#
# **Difficulty** ●○○ · **about 10 minutes**
#
# A paper reports a temperature. Turn it into the `logit_scale` that `clip_loss` expects.
#
# **Predict before coding.** For a temperature below 1, is the log scale positive or negative?
#
# *Your prediction:* …
#
# **Steps**
#
# 1. Invert the temperature.
# 2. Return its natural logarithm.
#
# **Useful**
#
# - `math.log` is the natural logarithm.
# - Section 2 has four values to compare with.
#
# <details><summary>Hint 1</summary>
#
# The scale multiplies what the temperature divides.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `math.log(1 / temperature)` is the same as `-math.log(temperature)`.
#
# </details>


# %% tags=["exercise"]
def to_log_scale(temperature):
    """The log scale that scores at `temperature`: one positive number in, one number out."""
    # TODO 1: scale = ...   what multiplies the cosines
    # TODO 2: return ...    its logarithm
    ### BEGIN SOLUTION
    scale = 1 / temperature
    return math.log(scale)
    ### END SOLUTION


# %%
judge(to_log_scale)

# %%
converted = contrastive_jax.clip_loss(images, captions, to_log_scale(0.2))
log.metric("exercise/at_one_fifth", converted, unit="nats")
log.claim(
    "exercise/clip_is_the_paired_loss",
    margin=rounding(5) - abs(converted - contrastive_jax.paired_contrastive(images, captions, 0.2)),
    compared="rounding(5) - |clip_loss at your log scale - paired_contrastive at the temperature|",
)
too_cold = contrastive_jax.clip_loss(two_pairs, two_pairs[::-1], to_log_scale(0.001))
log.metric("exercise/too_cold_with_cap", too_cold, unit="nats")
log.metric(
    "exercise/too_cold_without", contrastive_jax.paired_contrastive(two_pairs, two_pairs[::-1], 0.001), unit="nats"
)

# %% [markdown]
# **Common mistake.** Passing the temperature itself. The loss runs, trains and looks reasonable: a log scale of
# 0.07<!-- parameter: START_TEMPERATURE --> is a temperature of nearly one, and everything is too soft.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# With the right conversion, `clip_loss` *is* the paired loss of `01`: both cost
# 0.234<!-- record: exercise/at_one_fifth --> on the captions at the temperature 1/5. They part at 1/100, where
# the cap sets in: at 1/1000 the swapped pairs cost 100<!-- record: exercise/too_cold_with_cap --> here and
# 1000<!-- record: exercise/too_cold_without --> there.
#
# </details>

# %% [markdown]
# ### Exercise 4. Strict retrieval
#
# **Difficulty** ●●○ · **about 15 minutes**
#
# Which share of the images finds its own text? Count strictly: a tie is a miss.
#
# **Predict before coding.** A collapsed model gives every cell of a table of eight rows the same cosine. What
# should a strict share say: 0, 1/8 or 1? And what would `argmax` say?

# %% tags=["prediction"]
predict("collapsed table of 8, strict share", ...)
predict("collapsed table of 8, share by argmax", ...)

# %% [markdown]
# **Steps**
#
# 1. Take the diagonal: each image's own text.
# 2. Hide the diagonal, and take the largest of what remains in each row.
# 3. Return the share of rows in which the first is larger than the second.
#
# **Useful**
#
# - `jnp.diagonal(table)`; `jnp.where(jnp.eye(n, dtype=bool), -jnp.inf, table)` hides it.
# - `jnp.max(table, axis=1)` is the largest of each row.
# - `jnp.mean` of `True` and `False` is the share of `True`.
#
# <details><summary>Hint 1</summary>
#
# If the diagonal stays among the rivals, the own cosine can never be larger than the largest.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `jnp.mean(own > best_rival)`, with `>` and not `>=`.
#
# </details>


# %% tags=["exercise"]
def strict_hits(table):
    """Share of rows of the [B, B] table whose diagonal cell beats all others of its row."""
    # TODO 1: own = ...          [B]
    # TODO 2: best_rival = ...   [B], the largest of the others
    # TODO 3: return ...         share of rows with a strict win
    ### BEGIN SOLUTION
    own = jnp.diagonal(table)
    best_rival = jnp.max(jnp.where(jnp.eye(len(table), dtype=bool), -jnp.inf, table), axis=1)
    return jnp.mean(own > best_rival)
    ### END SOLUTION


# %%
judge(strict_hits)

# %%
collapsed = jnp.ones((8, 8), dtype=DTYPE)
by_argmax = float(jnp.mean(jnp.argmax(collapsed, axis=1) == jnp.arange(8)))
outcome("collapsed table of 8, strict share", contrastive_jax.retrieval_accuracy(collapsed).left_to_right)
outcome("collapsed table of 8, share by argmax", by_argmax)
log.metric("exercise/argmax_of_a_collapsed_model", by_argmax)
log.metric("exercise/hits", float(strict_hits(final_table)))
log.metric("exercise/hits_of_a_collapsed_model", float(strict_hits(collapsed)))

# %% [markdown]
# **Common mistake.** `argmax(axis=1) == arange(B)`. Among equals, `argmax` takes the first. So its verdict
# depends on the order in which the batch happened to stand, and a collapsed model scores 1/B or, if the
# layout has the right answer always in column 0, 1.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# The trained toy scores 1<!-- record: exercise/hits --> and a collapsed model
# 0<!-- record: exercise/hits_of_a_collapsed_model -->, as it should. By `argmax` the collapsed model would find one
# in eight, the share of pure luck, and nobody would see that it looks at nothing.
#
# </details>

# %% [markdown]
# ### Exercise 5. Ties, shared out
#
# **Difficulty** ●●○ · **about 15 minutes**
#
# Strict is one honest way to treat ties. The other is the mean over all ways to break them: if `n` cells share the
# first place of a row and the own cell is one of them, that row counts `1/n`.
#
# **Predict before coding.** Two of three images share one caption, which stands in the batch twice. The table is
#
# | | text 0 | text 1 | text 2 |
# |---|:-:|:-:|:-:|
# | **image 0** | `0.9` | `0.9` | `0.1` |
# | **image 1** | `0.8` | `0.8` | `0.2` |
# | **image 2** | `0.0` | `0.0` | `0.7` |
#
# What is the strict share of the images, and what is it if ties are shared out?

# %% tags=["prediction"]
predict("shared caption, strict share", ...)
predict("shared caption, ties shared out", ...)

# %% [markdown]
# **Steps**
#
# 1. Take the diagonal as a column, [B, 1], so that it can be compared with whole rows.
# 2. Is any cell of a row above its own one? Such a row counts 0, whatever else is tied.
# 3. How many cells of a row are level with its own one, itself among them?
# 4. Return the mean over the rows of 0 or one over that number.
#
# **Useful**
#
# - `jnp.diagonal(table)[:, None]` is a column.
# - `jnp.any(condition, axis=1)` says of each row whether the condition holds anywhere in it, and
#   `jnp.sum(condition, axis=1)` how often.
#
# <details><summary>Hint 1</summary>
#
# The own cell is always level with itself. So the number of step 3 is at least 1, and is 1 for a sure hit.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `jnp.mean(jnp.where(beaten, 0.0, 1 / level))`.
#
# </details>


# %% tags=["exercise"]
def expected_hits(table):
    """Share of rows of the [B, B] table that find their diagonal cell, where a tie of n cells counts 1/n."""
    # TODO 1: own = ...      [B, 1]
    # TODO 2: beaten = ...   [B], is any cell of the row above its own?
    # TODO 3: level = ...    [B], how many are level with it, itself included
    # TODO 4: return ...     one number
    ### BEGIN SOLUTION
    own = jnp.diagonal(table)[:, None]
    beaten = jnp.any(table > own, axis=1)
    level = jnp.sum(table == own, axis=1)
    return jnp.mean(jnp.where(beaten, 0.0, 1 / level))
    ### END SOLUTION


# %%
judge(expected_hits)

# %%
shared = jnp.array([[0.9, 0.9, 0.1], [0.8, 0.8, 0.2], [0.0, 0.0, 0.7]], dtype=DTYPE)
shares = {ties: contrastive_jax.retrieval_accuracy(shared, ties=ties) for ties in ("strict", "expected")}
outcome("shared caption, strict share", shares["strict"].left_to_right)
outcome("shared caption, ties shared out", shares["expected"].left_to_right)
log.series("exercise/shared_caption", [float(share.left_to_right) for share in shares.values()])
log.claim(
    "exercise/shared_out_as_in_the_package",
    margin=1e-6 - abs(float(expected_hits(shared)) - float(shares["expected"].left_to_right)),
    compared="1e-6 - |your share - that of the package|",
)
log.metric("exercise/expected_of_a_collapsed_model", float(expected_hits(jnp.ones((8, 8), dtype=DTYPE))))

# %% [markdown]
# **Common mistake.** Giving half a hit to every tie. That is right for two cells. In a collapsed batch of eight, all
# eight share the place, and each has one eighth of it.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# Strictly, one image of three finds its text, or 0.333<!-- record: exercise/shared_caption[0] -->. With ties shared
# out it is 0.667<!-- record: exercise/shared_caption[1] -->: images 0 and 1 get one half each. Neither is wrong, and
# they answer different questions: what is *certain*, and what is *to be expected*. On a collapsed batch of eight
# the second gives 0.125<!-- record: exercise/expected_of_a_collapsed_model -->, what a blind guess would find.
# `contrastive_jax.retrieval_accuracy` has both, in both directions, and the best *k* instead of the best one.
# State with the number how ties were counted.
#
# </details>

# %% [markdown]
# ### Exercise 6. What moves the scale
#
# **Difficulty** ●●● · **about 20 minutes**
#
# In `02` you found the gradient of the rows. Here find that of the log scale. Let $c_{ij}$ be the cosines,
# $z_{ij} = e^s c_{ij}$ the scores, $p_{ij}$ their softmax along the rows and $q_{ij}$ down the columns. From
# `01` you know
#
# $$
# \frac{\partial L}{\partial z_{ij}} = \frac{1}{2B}\Big[(p_{ij} - \mathbf{1}[i = j])
# + (q_{ij} - \mathbf{1}[i = j])\Big].
# $$
#
# **Predict before coding.** If every image is already sure of its own text, does the gradient push the scale
# up, down or nowhere? What if half of the pairs are wrong?
#
# *Your prediction:* …
#
# **Steps**
#
# 1. Compute the scores at the *capped* log scale, and both softmaxes.
# 2. Put together the derivative by the scores, as above.
# 3. Multiply by how each score changes with $s$, add up, and return zero above the cap.
#
# **Useful**
#
# - The derivative of $e^s c$ by $s$ is $e^s c$ itself.
# - `jnp.eye(B)` is $\mathbf{1}[i = j]$; `jnp.where(condition, a, b)` chooses.
# - `CAP` is $\log 100$, from section 4.
#
# <details><summary>Hint 1</summary>
#
# One scalar reaches all $B^2$ scores, so all $B^2$ products are added.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `jnp.sum(by_score * scores)`, where `by_score` is the formula above. Above the cap the scores no longer
# change with $s$.
#
# </details>


# %% tags=["exercise"]
def scale_gradient(images, texts, log_scale):
    """Derivative of the capped loss by `log_scale`; zero above the cap.

    Shapes: images [B, D], texts [B, D], log_scale one number. Returns one number.
    """
    # TODO 1: scores = ...     [B, B], at the capped log scale
    # TODO 2: by_score = ...   [B, B], derivative of the loss by each score
    # TODO 3: return ...       the sum over all scores, or zero above the cap
    ### BEGIN SOLUTION
    scores = jnp.exp(jnp.minimum(log_scale, CAP)) * cosine_table(images, texts)
    own = jnp.eye(len(scores), dtype=scores.dtype)
    by_score = (jax.nn.softmax(scores, axis=1) + jax.nn.softmax(scores, axis=0) - 2 * own) / (2 * len(scores))
    return jnp.where(log_scale > CAP, 0.0, jnp.sum(by_score * scores))
    ### END SOLUTION


# %%
judge(scale_gradient)

# %%
log.metric("exercise/slope_of_captions", scale_gradient(images, captions, jnp.asarray(log_two, dtype=DTYPE)))
log.metric("exercise/slope_of_exchanged", scale_gradient(crowded, exchanged, CAP))
log.claim(
    "exercise/zero_at_the_best",
    margin=rounding(100) - abs(scale_gradient(crowded, exchanged, jnp.asarray(best_log_scale, dtype=DTYPE))),
    compared="rounding(100) - |slope at the best log scale of section 9|",
)

# %% [markdown]
# **Common mistake.** Multiplying by the cosines instead of the scores. That is the derivative by the *scale*,
# smaller by the factor $e^s$, and with it the log scale would crawl.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# Sorted by rows and columns, the sum says: *expected score minus own score*, averaged over all questions. A
# model whose own score is above what its softmax expects has a slope below zero, and descent raises the scale.
# On the captions it is -0.181<!-- record: exercise/slope_of_captions -->. With half of the captions exchanged,
# at the cap, it is 0.422<!-- record: exercise/slope_of_exchanged -->, and the scale must come down. Where both
# balance, the slope is zero: the best log scale of section 9. Nobody told the loop what share was right. It
# read that off its own table.
#
# </details>

# %% [markdown]
# ### Exercise 7. Diagnose a broken run
#
# **Difficulty** ●●○ · **about 5 minutes**
#
# A CLIP run caps its scale inside the loss. Since update 200 the log scale has not moved in any digit, though half of
# the new captions are wrong. Why?
#
# | reported | value |
# |---|---|
# | log scale before update 200 | `4.55` |
# | log scale from update 200 on | `4.7` |
# | log of the largest scale, log 100 | `4.605` |
# | gradient of the log scale | `0` |
# | loss of a batch of two unit pairs, exchanged | `100` |
#
# - **a**: One step went past the cap, and above it the loss has no slope.
# - **b**: The scale has found its best value.
# - **c**: The exponential is missing.
# - **d**: The features are not normalised.
#
# **Steps**
#
# 1. For each answer, say which of the five numbers it would have to explain, and what that number would be.
# 2. Keep the answer that all five numbers allow.
#
# **Useful**
#
# - Section 7 has what missing exponentials and lengths do to a loss, section 9 has three loops that stand still.
#
# <details><summary>Hint 1</summary>
#
# Compare the second number with the third.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# At a best value the pulls of many pairs cancel, but only just. What makes a gradient vanish in every digit,
# whatever the batch is?
#
# </details>

# %% tags=["exercise"]
answer = ...  # one of "a", "b", "c", "d"
### BEGIN SOLUTION
answer = "a"
### END SOLUTION

# %%
judge(answer, exercise="broken_run_03")

# %% [markdown]
# **Common mistake.** Taking a parameter that stands still for one that has arrived. Its gradient on a batch that it
# gets badly wrong tells the two apart.

# %% [markdown]
# <!-- SOLUTION -->

# %% [markdown]
# <details><summary>Read the result</summary>
#
# This is the loop `free` of section 9, met in somebody else's log. The repair belongs into the training loop, not
# into the loss: project the parameter onto the cap after each update.
#
# </details>

# %% [markdown]
# ## What have we shown?
#
# Both retrievals reach 1, on the very pairs that were trained, with vectors free to go anywhere. As in `02`,
# this proves that loss, gradient and optimiser work together. It says nothing about images or language. One
# thing carries over to real towers, though: what the scale learns is how far the *training* pairs can be told
# apart. On new data a cold temperature may be plain overconfidence.
#
# ## Check your understanding
#
# A training log shows the log scale at 4.605<!-- record: names/log_scale[3] --> from update 3000 on, without a
# change in any digit. What do you conclude?
#
# 1. The model is well calibrated at the temperature 1/100.
# 2. The parameter is frozen, and the loss has no slope there.
# 3. It stands at the cap. Whether it could leave depends on how the cap is written, so look at its gradient.
#
# <details><summary>Answer</summary>
#
# **The third.** A projected parameter whose batches all reward a larger scale stands at the cap in every
# update, and that is as it should be. A clamped one stands there for ever. The value alone cannot tell them
# apart; the gradient can (section 9). Calibration is a question for held-out pairs.
#
# </details>
#
# ## When the scale or the loss looks wrong
#
# | you see | look first at | likely cause |
# |---|---|---|
# | two matched pairs at $\log 2$ cost $\log(3/2)$ | the scale in the table of scores | no exponential |
# | loss near $\log B$ and hardly moving | temperature, scale, log scale | one taken for another |
# | one direction much worse | hits by row and by column | generic captions, duplicates, or one direction missing |
# | loss `nan` after a good start | the order of cap and exp | `minimum(exp(s), 100)` |
# | log scale frozen at the cap | its gradient there | a clamp with no slope at its edge |
# | log scale frozen above the cap | the training loop | capped in the loss, not projected in the loop |
# | gradient norm of $10^{11}$ | lengths of the rows | a dead row under the norm floor |
# | scale falls at the start | the first losses against $\log B$ | nothing wrong: the start was overconfident |
#
# ## Carry forward
#
# - **Say which of the three you mean:** temperature, scale, log scale. Convert in one place.
# - **One table, two questions.** Test with a batch on which they differ.
# - **Cap the log scale before the exponential,** with the slope of the lower side at the cap.
# - **Project the parameter after the update,** so that it stays where the loss can still call it back.
# - **A learned temperature reports confidence on the training pairs,** and nothing else.
#
# ## References
#
# - A. Radford and others, *Learning Transferable Visual Models From Natural Language Supervision* (CLIP):
#   [arxiv.org/abs/2103.00020](https://arxiv.org/abs/2103.00020). Figure 3 has the loss in a few lines, the
#   section on training the start of the temperature and its limit. Their code, for inference above all, is
#   [github.com/openai/CLIP](https://github.com/openai/CLIP).
# - T. Chen and others, *A Simple Framework for Contrastive Learning of Visual Representations* (SimCLR):
#   [arxiv.org/abs/2002.05709](https://arxiv.org/abs/2002.05709). The loss of `02`, with a fixed temperature.
# - Y. Zhang and others, *Contrastive Learning of Medical Visual Representations from Paired Images and Text*
#   (ConVIRT): [arxiv.org/abs/2010.00747](https://arxiv.org/abs/2010.00747). The two-direction loss that CLIP
#   took up.
# - C. Guo and others, *On Calibration of Modern Neural Networks*:
#   [arxiv.org/abs/1706.04599](https://arxiv.org/abs/1706.04599). A single temperature, and what it says about
#   confidence.
#
# **Back:** `02_nt_xent` has the loss of one pile. **Next:** `04_image_views` trains an encoder on pictures,
# shows collapse happening, and cures it.
#
# ## Keep your evidence
#
# The next cell writes the file `portfolio-03_clip.html` beside this notebook: your predictions and how far off they
# were, your code and what the judge said of it, the figures, and your numbers against the reference. It opens in any
# browser. Keep your sketch of section 9 with it, above all if it was wrong. The last cell closes the log.

# %%
passed = sorted({each["exercise"] for each in evidence()["attempts"] if each["passed"]})
log.text("exercises/passed", ", ".join(passed))
log.portfolio(evidence())

# %%
log.close()
