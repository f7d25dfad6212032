"""Right answers to the exercises, in the code styles that people really write."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax

CAP = math.log(100)


def unit(rows, floor=1e-12):
    """Rows of length one; short ones divided by the floor, with the derivative of just that."""
    squares = jnp.sum(rows * rows, axis=1, keepdims=True)
    long = squares > floor**2
    return rows / jnp.where(long, jnp.sqrt(jnp.where(long, squares, 1.0)), floor)


def checked(temperature, *arrays):
    if isinstance(temperature, int | float) and not temperature > 0:
        raise ValueError("the temperature must be positive")
    if len({each.shape for each in arrays}) > 1:
        raise ValueError("the shapes differ")


def both_ways(scores):
    rows = jnp.mean(jax.nn.logsumexp(scores, axis=1) - jnp.diagonal(scores))
    columns = jnp.mean(jax.nn.logsumexp(scores, axis=0) - jnp.diagonal(scores))
    return (rows + columns) / 2


def paired_loss(left, right, temperature=0.2):
    return both_ways(unit(left, 1e-6) @ unit(right, 1e-6).T / temperature)


# paired_contrastive


def paired_log_softmax(left, right, temperature=0.2):
    scores = unit(left, 1e-6) @ unit(right, 1e-6).T / temperature
    rows, columns = jax.nn.log_softmax(scores, axis=1), jax.nn.log_softmax(scores, axis=0)
    return -(jnp.mean(jnp.diagonal(rows)) + jnp.mean(jnp.diagonal(columns))) / 2


def paired_with_optax(left, right, temperature=0.2):
    scores = unit(left, 1e-6) @ unit(right, 1e-6).T / temperature
    labels = jnp.arange(len(scores))
    ours = optax.softmax_cross_entropy_with_integer_labels(scores, labels)
    theirs = optax.softmax_cross_entropy_with_integer_labels(scores.T, labels)
    return jnp.mean(jnp.concatenate([ours, theirs]))


def paired_loops(left, right, temperature=0.2):
    left, right = unit(left, 1e-6), unit(right, 1e-6)
    total = 0.0
    for one, other in ((left, right), (right, left)):
        for i in range(len(one)):
            logits = jnp.stack([jnp.dot(one[i], candidate) / temperature for candidate in other])
            total = total + jax.nn.logsumexp(logits) - logits[i]
    return total / (2 * len(left))


def paired_vmap(left, right, temperature=0.2):
    left, right = unit(left, 1e-6), unit(right, 1e-6)

    def cost(anchor, candidates, i):
        logits = candidates @ anchor / temperature
        return jax.nn.logsumexp(logits) - logits[i]

    index = jnp.arange(len(left))
    by_row = jax.vmap(cost, in_axes=(0, None, 0))
    return (jnp.mean(by_row(left, right, index)) + jnp.mean(by_row(right, left, index))) / 2


# nt_xent_loss


def pile(view1, view2, temperature):
    checked(temperature, view1, view2)
    z = unit(jnp.concatenate([view1, view2]))
    return z @ z.T / temperature


def nt_xent_where(view1, view2, temperature=0.5):
    scores = pile(view1, view2, temperature)
    n = len(scores)
    masked = jnp.where(jnp.eye(n, dtype=bool), -jnp.inf, scores)
    return jnp.mean(jax.nn.logsumexp(masked, axis=1) - scores[jnp.arange(n), (jnp.arange(n) + n // 2) % n])


def nt_xent_optax(view1, view2, temperature=0.5):
    scores = pile(view1, view2, temperature)
    n = len(scores)
    masked = scores.at[jnp.arange(n), jnp.arange(n)].set(-jnp.inf)
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(masked, jnp.roll(jnp.arange(n), n // 2)))


def nt_xent_loops(view1, view2, temperature=0.5):
    checked(temperature, view1, view2)
    rows = [*unit(view1), *unit(view2)]
    n, costs = len(rows), []
    for i in range(n):
        others = jnp.stack([jnp.vdot(rows[i], rows[j]) for j in range(n) if j != i]) / temperature
        partner = (i + n // 2) % n
        costs.append(jax.nn.logsumexp(others) - others[partner - (partner > i)])
    return jnp.mean(jnp.stack(costs))


def nt_xent_vmap(view1, view2, temperature=0.5):
    scores = pile(view1, view2, temperature)
    n = len(scores)

    def cost(i, row):
        return jax.nn.logsumexp(jnp.where(jnp.arange(n) == i, -jnp.inf, row)) - row[(i + n // 2) % n]

    return jnp.mean(jax.vmap(cost)(jnp.arange(n), scores))


def nt_xent_explicit(view1, view2, temperature=0.5):
    scores = pile(view1, view2, temperature)
    n = len(scores)
    off = ~np.eye(n, dtype=bool)
    others = scores[off].reshape(n, n - 1)
    top = jnp.max(others, axis=1, keepdims=True)
    log_sum = top[:, 0] + jnp.log(jnp.sum(jnp.exp(others - top), axis=1))
    return jnp.mean(log_sum - jnp.diagonal(jnp.roll(scores, n // 2, axis=1)))


@functools.partial(jax.jit, static_argnames=("temperature",))
def nt_xent_jitted(view1, view2, temperature=0.5):
    return nt_xent_where(view1, view2, temperature)


# clip_loss and contrastive_logits


def capped(log_scale):
    return jnp.exp(jnp.where(log_scale > CAP, CAP, log_scale))


def logits(image_features, text_features, logit_scale):
    return capped(logit_scale) * (unit(image_features) @ unit(text_features).T)


def logits_einsum(image_features, text_features, logit_scale):
    return jnp.einsum("id,jd->ij", unit(image_features), capped(logit_scale) * unit(text_features))


def clip(image_features, text_features, logit_scale):
    return both_ways(logits(image_features, text_features, logit_scale))


def clip_optax(image_features, text_features, logit_scale):
    scores = logits(image_features, text_features, logit_scale)
    labels = jnp.arange(len(scores))
    return (
        optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()
        + optax.softmax_cross_entropy_with_integer_labels(scores.T, labels).mean()
    ) / 2


# The smaller ones, as the notebooks solve them


def mismatched_loss(left, right, order):
    return paired_loss(left, right[order])


def duplicate_penalty(left, right):
    return paired_loss(jnp.tile(left, (2, 1)), jnp.tile(right, (2, 1))) - paired_loss(left, right)


def duplicate_penalty_concatenated(left, right):
    return paired_loss(jnp.concatenate([left, left]), jnp.concatenate([right, right])) - paired_loss(left, right)


def centred_difference(function, weights, index, step):
    above, below = weights.at[index].add(step), weights.at[index].add(-step)
    return (function(above) - function(below)) / (2 * step)


def partner_of(anchor, batch):
    return (anchor + batch) % (2 * batch)


def partner_of_where(anchor, batch):
    return jnp.where(anchor < batch, anchor + batch, anchor - batch)


def mask_self(scores):
    return jnp.where(jnp.eye(len(scores), dtype=bool), -jnp.inf, scores)


def mask_self_at(scores):
    i = jnp.arange(len(scores))
    return scores.at[i, i].set(-jnp.inf)


def stack_views(interleaved):
    return jnp.concatenate([interleaved[0::2], interleaved[1::2]])


def stack_views_reshaped(interleaved):
    return interleaved.reshape(-1, 2, interleaved.shape[1]).transpose(1, 0, 2).reshape(interleaved.shape)


def cross_view_loss(view1, view2, temperature):
    z = unit(jnp.concatenate([view1, view2]))
    scores = z @ z.T / temperature
    n = len(scores)
    view = jnp.arange(n) // len(view1)
    masked = jnp.where(view[:, None] == view[None, :], -jnp.inf, scores)
    return jnp.mean(-jax.nn.log_softmax(masked, axis=1)[jnp.arange(n), (jnp.arange(n) + n // 2) % n])


def row_gradient(units, temperature):
    n = len(units)
    probability = jax.nn.softmax(mask_self(units @ units.T / temperature), axis=1)
    partner = jnp.eye(n, dtype=units.dtype)[(jnp.arange(n) + n // 2) % n]
    return (probability + probability.T - 2 * partner) @ units / (n * temperature)


def strict_hits(table):
    rival = jnp.max(jnp.where(jnp.eye(len(table), dtype=bool), -jnp.inf, table), axis=1)
    return jnp.mean(jnp.diagonal(table) > rival)


def expected_hits(table):
    own = jnp.diagonal(table)[:, None]
    beaten, level = jnp.any(table > own, axis=1), jnp.sum(table == own, axis=1)
    return jnp.mean(jnp.where(beaten, 0.0, 1.0 / level.astype(table.dtype)))


def to_log_scale(temperature):
    return math.log(1 / temperature)


def to_log_scale_in_jax(temperature):
    return -jnp.log(jnp.asarray(temperature, float))


def scale_gradient(images, texts, log_scale):
    scores = logits(images, texts, log_scale)
    n = len(scores)
    by_score = (jax.nn.softmax(scores, 1) + jax.nn.softmax(scores, 0) - 2 * jnp.eye(n, dtype=scores.dtype)) / (2 * n)
    return jnp.where(log_scale > CAP, 0.0, jnp.sum(by_score * scores))


def positive_only(z):
    first, second = jnp.split(unit(z), 2)
    return -jnp.mean(jnp.sum(first * second, axis=1))


def positive_only_vmap(z):
    z = unit(z)
    return -jnp.mean(jax.vmap(jnp.vdot)(z[: len(z) // 2], z[len(z) // 2 :]))


def mean_cosine(embeddings):
    table = unit(embeddings) @ unit(embeddings).T
    n = len(table)
    return jnp.sum(jnp.where(jnp.eye(n, dtype=bool), 0.0, table)) / (n * (n - 1))


def feature_spread(features):
    return jnp.mean(jnp.std(features, axis=0, ddof=1))


def feature_spread_by_hand(features):
    centred = features - jnp.mean(features, axis=0, keepdims=True)
    return jnp.mean(jnp.sqrt(jnp.sum(centred**2, axis=0) / (len(features) - 1)))


def restacked(pile, source_ids):
    in_order = pile[jnp.argsort(source_ids, stable=True)]
    return jnp.concatenate([in_order[0::2], in_order[1::2]])


def restacked_by_reshaping(pile, source_ids):
    return pile[jnp.argsort(source_ids).reshape(-1, 2).T.ravel()]


SOLUTIONS = {
    "paired_contrastive": (paired_loss, paired_log_softmax, paired_with_optax, paired_loops, paired_vmap),
    "nt_xent_loss": (
        nt_xent_where,
        nt_xent_optax,
        nt_xent_loops,
        nt_xent_vmap,
        nt_xent_explicit,
        nt_xent_jitted,
    ),
    "contrastive_logits": (logits, logits_einsum),
    "clip_loss": (clip, clip_optax),
    "mismatched_loss": (mismatched_loss,),
    "duplicate_penalty": (duplicate_penalty, duplicate_penalty_concatenated),
    "centred_difference": (centred_difference,),
    "partner_of": (partner_of, partner_of_where),
    "mask_self": (mask_self, mask_self_at),
    "stack_views": (stack_views, stack_views_reshaped),
    "cross_view_loss": (cross_view_loss,),
    "row_gradient": (row_gradient,),
    "strict_hits": (strict_hits,),
    "expected_hits": (expected_hits,),
    "to_log_scale": (to_log_scale, to_log_scale_in_jax),
    "scale_gradient": (scale_gradient,),
    "restacked": (restacked, restacked_by_reshaping),
    "positive_only": (positive_only, positive_only_vmap),
    "mean_cosine": (mean_cosine,),
    "feature_spread": (feature_spread, feature_spread_by_hand),
}
