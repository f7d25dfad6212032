"""Pictures and views: what they show, how they are spread, and that every machine and both precisions draw the same."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles_shapes as oracles
import pytest

from contrastive_jax import draw_pictures, draw_view_pairs, draw_views
from contrastive_jax.synthetic import KINDS, noise_values

TEMPLATES = list(oracles.all_pictures())
SHIFTS = [(down, right) for down in range(-3, 4) for right in range(-3, 4)]


def key(seed: int):
    return jax.random.key(seed)


@pytest.fixture(scope="module")
def pictures():
    return draw_pictures(key(0), 6000)


def template_numbers(images: np.ndarray) -> np.ndarray:
    """Which of the 192 pictures each is; -1 for none of them."""
    known = {image.tobytes(): number for number, (_, image) in enumerate(TEMPLATES)}
    return np.array([known.get(np.asarray(image, float).tobytes(), -1) for image in images])


def test_every_picture_is_one_of_192_and_its_kind_is_right(pictures):
    numbers = template_numbers(pictures.images)
    assert numbers.min() >= 0
    np.testing.assert_array_equal(pictures.kinds, [TEMPLATES[number][0] for number in numbers])
    assert KINDS == ("bar", "column", "diagonal")
    assert (pictures.images.dtype, pictures.kinds.dtype) == (jnp.float32, jnp.int32)


def test_all_192_are_drawn_equally_often(pictures):
    drawn = np.bincount(template_numbers(pictures.images), minlength=192)
    assert drawn.min() > 0
    # Chi-square with 191 degrees of freedom: its mean is 191, its standard deviation about 20.
    expected = 6000 / 192
    assert abs(np.sum((drawn - expected) ** 2 / expected) - 191) < 4 * 20


@pytest.mark.parametrize(
    "change",
    [
        lambda image: np.roll(image, 1, axis=0) if image[:, 14].any() else np.roll(image, 8, axis=1),
        lambda image: image[::-1],
        lambda image: image * 0.5,
        lambda image: np.maximum(image, np.eye(16)),
    ],
    ids=["outside", "falling diagonal", "grey", "more pixels"],
)
def test_a_wrong_picture_is_noticed(change):
    images = np.stack([change(image) for _, image in TEMPLATES])
    assert template_numbers(images).min() == -1


def crowded(count: int) -> np.ndarray:
    """Pictures whose pixels are all different, so large that the noise of a view hardly shows."""
    return np.random.default_rng(0).permuted(np.tile(np.arange(256.0) * 1e4, (count, 1)), axis=1).reshape(-1, 16, 16)


def shift_and_brightness(view: np.ndarray, image: np.ndarray) -> tuple[tuple[int, int] | None, float]:
    """The shift that explains a view up to its noise, if one alone does, and the brightness."""
    brightness = view.sum() / image.sum()  # rolling leaves the sum alone
    off = [np.max(np.abs(view - brightness * np.roll(image, shift, axis=(0, 1)))) for shift in SHIFTS]
    fitting = [shift for shift, worst in zip(SHIFTS, off, strict=True) if worst < 2.0]
    return (fitting[0] if len(fitting) == 1 else None), brightness


@pytest.fixture(scope="module")
def explained():
    images = crowded(500)
    views = np.asarray(draw_views(key(1), images.astype("float32")), float)
    return [shift_and_brightness(view, image) for view, image in zip(views, images, strict=True)]


def test_a_view_is_the_picture_shifted_with_wrap_around_and_brightened(explained):
    shifts = [shift for shift, _ in explained]
    assert None not in shifts
    assert set(shifts) == set(SHIFTS)
    for axis in (0, 1):
        drawn = np.bincount([shift[axis] + 3 for shift in shifts], minlength=7)
        assert np.all(np.abs(drawn - 500 / 7) < 4 * math.sqrt(500 / 7))


def test_brightness_is_even_from_a_half_to_one_and_a_half(explained):
    brightness = np.sort([brightness for _, brightness in explained])
    assert 0.5 <= brightness[0] < 0.52 and 1.48 < brightness[-1] < 1.5
    # Kolmogorov and Smirnov: the largest gap to the even distribution, at a level of one in a thousand.
    even = brightness - 0.5
    assert np.max(np.abs(even - (np.arange(500) + 0.5) / 500)) < 1.95 / math.sqrt(500)


def test_the_shift_that_explains_a_view_is_the_oracles():
    image = crowded(1)[0]
    for shift in [(-3, 2), (0, 0), (3, -1)]:
        assert shift_and_brightness(0.7 * oracles.rolled(image, *shift), image)[0] == shift


@pytest.mark.parametrize(
    "wrong",
    [
        lambda image: np.roll(image, 4, axis=0),
        lambda image: np.roll(image, 2, axis=0) * (np.arange(16) > 1)[:, None],
        lambda image: np.roll(image.ravel(), 18).reshape(16, 16),
        lambda image: np.roll(image, (1, 2), axis=(0, 1)).T,
        lambda image: image * np.linspace(0.5, 1.5, 16),
        lambda image: image + 2000.0,
    ],
    ids=["too far", "zeros come in", "wraps into the next row", "transposed", "brightness by column", "offset"],
)
def test_a_wrong_view_is_noticed(wrong):
    image = crowded(1)[0]
    assert shift_and_brightness(wrong(image), image)[0] is None


@pytest.fixture(scope="module")
def noise() -> np.ndarray:
    return np.asarray(draw_views(key(2), np.zeros((500, 16, 16), "float32")), float)


def test_noise_is_normal(noise):
    count = noise.size
    share = np.sort(noise.ravel()) / 0.15
    assert abs(share.mean()) < 4 / math.sqrt(count)
    assert abs(share.std() - 1) < 4 / math.sqrt(2 * count)
    assert abs(np.mean(share**3)) < 4 * math.sqrt(15 / count)
    assert abs(np.mean(share**4) - 3) < 4 * math.sqrt(96 / count)
    normal = np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in share[::100]])
    assert np.max(np.abs(normal - np.arange(0, count, 100) / count)) < 1.95 / math.sqrt(count)


def test_noise_of_six_uniforms_would_be_noticed():
    sums = np.random.default_rng(0).uniform(size=(128_000, 6)).sum(axis=1) - 3
    assert abs(np.mean((sums / sums.std()) ** 4) - 3) > 4 * math.sqrt(96 / len(sums))


def shared(noise: np.ndarray) -> float:
    """Mean correlation of the pixels that come from the same random word, half of a picture apart."""
    return np.mean(noise[:, :8] * noise[:, 8:]) / np.mean(noise**2)


def test_pixels_that_share_a_random_word_are_independent(noise):
    assert abs(shared(noise)) < 4 / math.sqrt(noise.size / 2)
    assert abs(np.mean(noise[:, :, 1:] * noise[:, :, :-1])) / 0.15**2 < 4 / math.sqrt(noise.size)
    one_percent_of_the_other_half = noise + 0.02 * np.roll(noise, 8, axis=1)
    assert abs(shared(one_percent_of_the_other_half)) > 4 / math.sqrt(noise.size / 2)


def test_noise_values_are_the_quantiles():
    values = noise_values()
    assert (values.dtype, values.shape) == (np.float32, (65536,))
    assert np.all(np.diff(values) > 0)
    np.testing.assert_array_equal(values, -values[::-1])
    for i in (0, 1, 100, 20_000, 32_767, 40_000, 65_535):
        assert values[i] == np.float32(0.15 * oracles.normal_quantile((i + 0.5) / 65536))


def in_both_precisions(draw) -> list[np.ndarray]:
    results = []
    for x64 in (False, True):
        jax.config.update("jax_enable_x64", x64)
        results.append(np.asarray(draw()))
    jax.config.update("jax_enable_x64", False)
    return results


def test_both_precisions_draw_the_same_bits():
    narrow, wide = in_both_precisions(lambda: draw_view_pairs(key(3), 60))
    assert narrow.dtype == wide.dtype == np.float32
    np.testing.assert_array_equal(narrow, wide)


def test_a_draw_that_follows_the_precision_would_be_noticed():
    narrow, wide = in_both_precisions(lambda: jax.random.normal(key(3), (4,)))
    assert not np.array_equal(narrow, wide)


def test_keys_decide_everything():
    views = draw_view_pairs(key(1), 60)
    np.testing.assert_array_equal(views, draw_view_pairs(key(1), 60))
    assert not np.any(np.all(views == draw_view_pairs(key(2), 60), axis=(1, 2)))


def test_compiled_and_vmapped_equals_one_by_one():
    keys = jax.random.split(key(5), 3)
    loop = np.stack([draw_view_pairs(each, 60) for each in keys])
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda each: draw_view_pairs(each, 60)))(keys), loop)


def test_the_two_views_of_a_row_show_one_picture():
    views = np.asarray(draw_view_pairs(key(6), 60))
    assert views.shape == (120, 16, 16)
    assert not np.any(np.all(views[:60] == views[60:], axis=(1, 2)))
    # A picture is recognised by its kind: its mean over all shifts along its direction is far above the noise.
    kinds = [np.argmax([correlation(view, kind) for kind in range(3)]) for view in views]
    assert np.mean(np.equal(kinds[:60], kinds[60:])) > 0.9
    assert np.mean(np.equal(kinds[:59], kinds[61:])) < 0.6


def correlation(view: np.ndarray, kind: int) -> float:
    """The brightest line of this kind, wherever it is."""
    directions = [(0, 1), (1, 0), (1, 1)]
    return np.max(sum(np.roll(view, [-i * step for step in directions[kind]], axis=(0, 1)) for i in range(6)))


def test_pictures_with_an_odd_number_of_pixels():
    assert draw_views(key(0), np.zeros((3, 5, 7), "float32")).shape == (3, 5, 7)


def test_wrong_counts_and_ranks(as_installed):
    for count in (True, 2.0, "3", None):
        with pytest.raises(TypeError, match=r"^count: expected a Python int, found .*\. Next step: "):
            draw_pictures(key(0), count)
    for count in (0, -1):
        with pytest.raises(ValueError, match=rf"^count: expected at least 1, found {count}\. Next step: "):
            draw_view_pairs(key(0), count)
    with pytest.raises(ValueError, match=r"^images: expected rank 3.*found shape \(16, 16\)\. Next step: "):
        draw_views(key(0), np.zeros((16, 16), "float32"))
    with pytest.raises(TypeError, match=r"^images: expected a dtype among"):
        draw_views(key(0), np.zeros((1, 16, 16), int))
