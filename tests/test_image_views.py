"""Notebook 04 against numbers published elsewhere, and its paper arithmetic against brute force."""

import math
from pathlib import Path

import numpy as np
import pytest

from reproduce import quoted, records
from reproduce.checkout import Checkout
from reproduce.figure_data import Images
from reproduce.records import Claim, Figure, Record

CHECKOUT = Checkout(Path(__file__).parent.parent)

# Four digits, as published, and the closed form where there is one.
PUBLISHED = {
    "hand/agree": 0.3440,
    "hand/scrambled": 3.2219,
    "hand/guess": 1.6094,
    "collapsed/nt_xent": 1.6094,
    "collapsed/positive_only": -1.0,
    "sweep/temperature[0]": 0.0003,
    "sweep/temperature[1]": 0.3440,
    "sweep/temperature[2]": 0.7813,
    "sweep/temperature[3]": 1.5068,
    "exercise/repaired": 0.3440,
}
BATCHES = {"sweep/guess[0]": 8, "sweep/guess[1]": 64, "sweep/guess[2]": 256, "sweep/guess[3]": 4096}
OF_EVERY_SEED = {
    "positive_only/every_seed_points_one_way",
    "positive_only/every_seed_loses_spread",
    "nt_xent/every_seed_beats_guessing",
    "nt_xent/every_seed_gains_spread",
    "nt_xent/every_seed_points_many_ways",
    "nt_xent/half_of_the_seeds_are_balanced",
}


@pytest.fixture(params=records.PRECISIONS)
def record(request) -> Record:
    return records.read(CHECKOUT.reference("04_image_views").record(request.param))


def test_published_values(record):
    values = quoted.values(record)
    for name, published in PUBLISHED.items():
        assert values[name] == pytest.approx(published, abs=5.1e-5), name
    for name, images in BATCHES.items():
        assert values[name] == pytest.approx(math.log(2 * images - 1), rel=1e-12), name


def test_the_claims_of_the_study_are_there_and_are_about_sixteen_seeds(record):
    claims = {entry.name: entry for entry in record.entries if isinstance(entry, Claim)}
    assert set(claims) >= OF_EVERY_SEED
    assert all(claim.holds for claim in claims.values())
    assert record.header.parameters["SEEDS"] >= 16 and record.header.parameters["STEPS"] == 300
    assert len([name for name in quoted.values(record) if name.startswith("positive_only/spread_after[")]) == 32


def batch_of_kinds(rng: np.random.Generator, directions: np.ndarray) -> tuple[float, float]:
    """NT-Xent of 64 random pictures whose encoder knows the kind alone, and the mean cosine of two pictures."""
    units = directions[rng.integers(3, size=64)]
    pile = np.concatenate([units, units])
    logits = pile @ pile.T / 0.5
    logits[np.diag_indices(128)] = -np.inf
    partner = (np.arange(128) + 64) % 128
    loss = np.mean(np.logaddexp.reduce(logits, axis=1) - logits[np.arange(128), partner])
    return float(loss), float((np.sum(units @ units.T) - 64) / (64 * 63))


@pytest.mark.parametrize(
    ("rung", "directions"),
    [
        (0, [[1, 0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]]),
        (1, [[1, 0], [-1, 0], [-1, 0]]),
        (2, [[1, 0], [1, 0], [1, 0]]),
    ],
)
def test_the_rungs_are_what_random_batches_cost_on_average(rung, directions, record):
    rng = np.random.default_rng(rung)
    drawn = np.array([batch_of_kinds(rng, np.array(directions, float)) for _ in range(1000)])
    error = 4 * np.std(drawn, axis=0) / 1000**0.5 + 1e-12
    values = quoted.values(record)
    rungs = np.array([values[f"ladder/{name}[{rung}]"] for name in ("loss", "mean_cosine")])
    assert np.all(np.abs(np.mean(drawn, axis=0) - rungs) <= error)
    # The next rung is far outside: the test can tell them apart.
    other = np.array([values[f"ladder/{name}[{(rung + 1) % 3}]"] for name in ("loss", "mean_cosine")])
    assert np.all(np.abs(np.mean(drawn, axis=0) - other) > error)


def misfit(view: np.ndarray, stroke: np.ndarray) -> float:
    """Sum of squares that is left of a view when the stroke, moved at will and of any brightness, is taken away."""
    moved = [np.roll(stroke, shift, axis=(0, 1)) for shift in np.ndindex(16, 16)]
    return min(float(np.sum((view - np.sum(view * each) / 6 * each) ** 2)) for each in moved)


def test_the_pictures_show_what_their_captions_say(record):
    (figure,) = [e for e in record.entries if isinstance(e, Figure) and e.name == "contrastive-04-views"]
    (panel,) = figure.data.panels
    assert isinstance(panel, Images) and panel.rows == ["bar", "column", "diagonal"]
    shown = np.array(panel.values, dtype=float)
    assert shown.shape == (3, 3, 16, 16)
    for pictures, step in zip(shown, [(0, 1), (1, 0), (1, 1)], strict=True):
        places = np.argwhere(pictures[0] == 1)
        assert np.sum(pictures[0] != 0) == 6 == len(places)
        assert np.all(np.diff(places, axis=0) == step)
    for own, pictures in enumerate(shown):
        for view in pictures[1:]:
            unexplained = [misfit(view, stroke) for stroke in shown[:, 0]]
            assert np.argmin(unexplained) == own
            # What is left is noise: 0.15 squared for each of the 256 pixels.
            assert 0.7 < unexplained[own] / (256 * 0.15**2) < 1.3
    assert np.array_equal(np.round(shown, 2), shown)
