"""Known misconceptions as other people would write them: loops, vmap, optax, exponentials, NumPy-like plain code."""

import math

import jax
import jax.numpy as jnp
import optax

cross_entropy = optax.softmax_cross_entropy_with_integer_labels


TEMPERATURE = 0.2


def unit_or_zero(x):
    square = jnp.sum(x * x, axis=1, keepdims=True)
    return jnp.where(square > 0, x / jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def unit(x):
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


def stack(view1, view2):
    return unit(jnp.concatenate([view1, view2]))


def dots(z):
    return jnp.einsum("id,jd->ij", z, z)


def partner(row, n):
    return row + n // 2 if row < n // 2 else row - n // 2


def looped(view1, view2, temperature, candidates, answer, denominator=None):
    """NT-Xent one anchor at a time; `candidates` and `answer` of a row number and the number of rows."""
    z = stack(view1, view2)
    n = len(z)
    total = 0.0
    for row in range(n):
        sum_of_terms = sum(jnp.exp(jnp.dot(z[row], z[other]) / temperature) for other in candidates(row, n))
        total = total + jnp.log(sum_of_terms) - jnp.dot(z[row], z[answer(row, n)]) / temperature
    return total / (denominator or n)


def others(row, n):
    return [each for each in range(n) if each != row]


def self_kept_by_vmap(view1, view2, temperature=0.5):
    z = stack(view1, view2)
    own = jnp.roll(z, len(z) // 2, axis=0)

    def cost(anchor, answer):
        return jax.scipy.special.logsumexp(z @ anchor / temperature) - anchor @ answer / temperature

    return jnp.mean(jax.vmap(cost)(z, own))


def self_kept_by_loops(view1, view2, temperature=0.5):
    return looped(view1, view2, temperature, lambda row, n: range(n), partner)


def interleaved_by_optax(view1, view2, temperature=0.5):
    logits = dots(stack(view1, view2)) / temperature
    logits = logits.at[jnp.diag_indices(len(logits))].set(-jnp.inf)
    labels = jnp.arange(len(logits)).reshape(-1, 2)[:, ::-1].reshape(-1)
    return cross_entropy(logits, labels).mean()


def interleaved_by_loops(view1, view2, temperature=0.5):
    return looped(view1, view2, temperature, others, lambda row, n: row + 1 - 2 * (row % 2))


def two_piles_by_optax(view1, view2, temperature=0.5):
    logits = unit(view1) @ unit(view2).T / temperature
    labels = jnp.arange(len(logits))
    return 0.5 * (cross_entropy(logits, labels).mean() + cross_entropy(logits.T, labels).mean())


def two_piles_by_loops(view1, view2, temperature=0.5):
    return looped(
        view1, view2, temperature, lambda row, n: range(n // 2, n) if row < n // 2 else range(n // 2), partner
    )


def added_by_halves(view1, view2, temperature=0.5):
    b = len(view1)
    z = stack(view1, view2)
    logits = jnp.where(jnp.eye(2 * b) == 1, -jnp.inf, dots(z) / temperature)
    labels = jnp.concatenate([jnp.arange(b) + b, jnp.arange(b)])
    costs = cross_entropy(logits, labels)
    return costs[:b].mean() + costs[b:].mean()


def added_by_loops(view1, view2, temperature=0.5):
    return looped(view1, view2, temperature, others, partner, denominator=len(view1))


def detached_by_vmap(view1, view2, temperature=0.5):
    z = stack(view1, view2)
    keys = jax.lax.stop_gradient(z)
    labels = jnp.roll(jnp.arange(len(z)), len(z) // 2)

    def cost(row, label):
        logits = keys @ z[row] / temperature
        return cross_entropy(jnp.where(jnp.arange(len(z)) == row, -jnp.inf, logits), label)

    return jnp.mean(jax.vmap(cost)(jnp.arange(len(z)), labels))


def detached_by_exponentials(view1, view2, temperature=0.5):
    z = stack(view1, view2)
    keys = jax.lax.stop_gradient(stack(view1, view2))
    terms = jnp.exp(z @ keys.T / temperature)
    below = terms.sum(axis=1) - jnp.diagonal(terms)
    above = jnp.diagonal(jnp.roll(terms, len(view1), axis=1))
    return -jnp.log(above / below).mean()


def one_way_by_optax(left, right, temperature=0.2):
    return cross_entropy(unit(left) @ unit(right).T / temperature, jnp.arange(len(left))).mean()


def one_way_by_vmap(left, right, temperature=0.2):
    right = unit(right)

    def probability(row, number):
        return jax.nn.softmax(right @ row / temperature)[number]

    return -jnp.log(jax.vmap(probability)(unit(left), jnp.arange(len(left)))).mean()


def decoupled_by_sums(left, right, temperature=0.2):
    terms = jnp.exp(unit(left) @ unit(right).T / temperature)
    own = jnp.diagonal(terms)
    return jnp.mean(-jnp.log(own / (terms.sum(1) - own)) - jnp.log(own / (terms.sum(0) - own))) / 2


def decoupled_by_loops(left, right, temperature=0.2):
    left, right = unit(left), unit(right)
    total = 0.0
    for i in range(len(left)):
        others = [j for j in range(len(left)) if j != i]
        by_row = sum(jnp.exp(left[i] @ right[j] / temperature) for j in others)
        by_column = sum(jnp.exp(left[j] @ right[i] / temperature) for j in others)
        total += jnp.log(by_row) + jnp.log(by_column) - 2 * (left[i] @ right[i]) / temperature
    return total / (2 * len(left))


def raw_scale_by_optax(image_features, text_features, logit_scale):
    logits = logit_scale * unit(image_features) @ unit(text_features).T
    labels = jnp.arange(len(logits))
    return (cross_entropy(logits, labels).mean() + cross_entropy(logits, labels, axis=0).mean()) / 2


def raw_scale_by_logsumexp(image_features, text_features, logit_scale):
    table = jnp.einsum("id,jd->ij", unit(image_features), unit(text_features)) * logit_scale
    log_sums = jax.scipy.special.logsumexp(table, axis=0) + jax.scipy.special.logsumexp(table, axis=1)
    return 0.5 * log_sums.mean() - jnp.trace(table) / len(table)


def half_a_slope_by_clip(image_features, text_features, logit_scale):
    return jnp.exp(jnp.clip(logit_scale, None, math.log(100))) * (
        unit_or_zero(image_features) @ unit_or_zero(text_features).T
    )


def half_a_slope_by_einsum(image_features, text_features, logit_scale):
    scale = jnp.exp(jnp.minimum(math.log(100), logit_scale))
    return jnp.einsum("id,jd->ij", unit_or_zero(image_features), scale * unit_or_zero(text_features))


def minus_missing_by_log_softmax(left, right, temperature=0.2):
    scores = unit(left) @ unit(right).T / temperature
    by_row, by_column = jax.nn.log_softmax(scores, axis=1), jax.nn.log_softmax(scores, axis=0)
    return (jnp.diagonal(by_row).mean() + jnp.diagonal(by_column).mean()) / 2


def minus_missing_by_sums(left, right, temperature=0.2):
    terms = jnp.exp(unit(left) @ unit(right).T / temperature)
    own = jnp.diagonal(terms)
    return jnp.mean(jnp.log(own / terms.sum(0)) + jnp.log(own / terms.sum(1))) / 2


def fixed_by_optax(left, right, temperature=0.2):
    logits, labels = 5 * unit(left) @ unit(right).T, jnp.arange(len(left))
    return (cross_entropy(logits, labels).mean() + cross_entropy(logits.T, labels).mean()) / 2


def fixed_by_a_global(left, right, temperature=0.2):
    scores = unit(left) @ unit(right).T / TEMPERATURE
    log_sums = jax.scipy.special.logsumexp(scores, axis=0) + jax.scipy.special.logsumexp(scores, axis=1)
    return jnp.mean(log_sums) / 2 - jnp.trace(scores) / len(scores)


def level_less_one(table):
    own = jnp.diagonal(table)[:, None]
    level = jnp.sum(table == own, axis=1) - 1
    return jnp.mean(jnp.where(jnp.any(table > own, axis=1), 0.0, 1 / level))


def level_rivals_only(table):
    credit = 0.0
    for i in range(len(table)):
        rivals = jnp.concatenate([table[i, :i], table[i, i + 1 :]])
        credit += jnp.where(rivals.max() > table[i, i], 0.0, 1 / jnp.sum(rivals == table[i, i]))
    return credit / len(table)


def row_for_column(table):
    own = jnp.diag(table)[None, :]
    better, level = jnp.sum(table > own, axis=1), jnp.sum(table == own, axis=1)
    return jnp.mean(jnp.where(better > 0, 0.0, 1 / level))


def row_for_column_by_loops(table):
    n = len(table)
    shares = []
    for i in range(n):
        beaten = sum(jnp.where(table[i, j] > table[j, j], 1, 0) for j in range(n))
        level = sum(jnp.where(table[i, j] == table[j, j], 1, 0) for j in range(n))
        shares.append(jnp.where(beaten, 0.0, 1 / level))
    return sum(shares) / n


def hits_by_counting(table):
    larger = jnp.sum(table > jnp.diagonal(table)[:, None], axis=1)
    return jnp.mean(jnp.where(larger == 0, 1.0, 0.0))


def hits_by_sorting(table):
    best = jnp.sort(table, axis=1)[:, -1]
    return sum(jnp.where(best[i] == table[i, i], 1.0, 0.0) for i in range(len(table))) / len(table)


def half_of_the_gradient_by_autodiff(units, temperature):
    def loss(rows):
        logits = rows @ units.T / temperature
        logits = jnp.where(jnp.eye(len(units), dtype=bool), -jnp.inf, logits)
        return cross_entropy(logits, (jnp.arange(len(units)) + len(units) // 2) % len(units)).mean()

    return jax.grad(loss)(units)


def half_of_the_gradient_by_loops(units, temperature):
    n = len(units)
    rows = []
    for i in range(n):
        shares = jax.nn.softmax(jnp.stack([units[i] @ units[j] for j in others(i, n)]) / temperature)
        expected = sum(share * units[j] for share, j in zip(shares, others(i, n), strict=True))
        rows.append((expected - units[partner(i, n)]) / (n * temperature))
    return jnp.stack(rows)


def forward_by_copies(function, weights, index, step):
    flat = jnp.zeros_like(weights).at[index].set(step)
    return (function(weights + flat) - function(weights)) / step


def forward_by_mask(function, weights, index, step):
    where = jnp.arange(weights.size).reshape(weights.shape) == jnp.ravel_multi_index(index, weights.shape, mode="clip")
    return function(jnp.where(where, weights + step, weights)) / step - function(weights) / step


# (exercise, misconception) -> two ways to write it.
STYLES = {
    ("nt_xent_loss", "self_among_candidates"): (self_kept_by_vmap, self_kept_by_loops),
    ("nt_xent_loss", "neighbour_as_partner"): (interleaved_by_optax, interleaved_by_loops),
    ("nt_xent_loss", "other_view_only"): (two_piles_by_optax, two_piles_by_loops),
    ("nt_xent_loss", "directions_added"): (added_by_halves, added_by_loops),
    ("nt_xent_loss", "candidates_detached"): (detached_by_vmap, detached_by_exponentials),
    ("paired_contrastive", "only_the_left_chooses"): (one_way_by_optax, one_way_by_vmap),
    ("paired_contrastive", "pair_not_a_candidate"): (decoupled_by_sums, decoupled_by_loops),
    ("paired_contrastive", "minus_missing"): (minus_missing_by_log_softmax, minus_missing_by_sums),
    ("paired_contrastive", "temperature_fixed"): (fixed_by_optax, fixed_by_a_global),
    ("contrastive_logits", "table_with_half_a_slope_at_the_cap"): (half_a_slope_by_clip, half_a_slope_by_einsum),
    ("expected_hits", "own_cell_not_counted"): (level_less_one, level_rivals_only),
    ("expected_hits", "own_cells_along_the_row"): (row_for_column, row_for_column_by_loops),
    ("clip_loss", "scale_without_exp"): (raw_scale_by_optax, raw_scale_by_logsumexp),
    ("strict_hits", "ties_are_hits"): (hits_by_counting, hits_by_sorting),
    ("row_gradient", "only_asking"): (half_of_the_gradient_by_autodiff, half_of_the_gradient_by_loops),
    ("centred_difference", "step_up_only"): (forward_by_copies, forward_by_mask),
}
