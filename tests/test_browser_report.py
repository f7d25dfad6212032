"""The report in a real browser: at the width of a phone and of a desk, in light and dark, without any request.

Run by `make test-browser`; screenshots are left in build/browser.
"""

import os
import re
import shutil
from collections.abc import Iterator

import pytest
from builders import ENTRIES, REPOSITORY, STEM, changed
from pages_seen import NASTY
from recorded_releases import CURVE, FLOOR, moved, put_release, with_reference
from test_browser import BROWSERS, QUIET

from reproduce import survey, webpage
from reproduce.records import Claim, Text

pytestmark = pytest.mark.browser

LONG = "unbroken" * 60


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report with a drift, a changed stream, a broken file and texts of strangers that never end."""
    demo = with_reference(tmp_path_factory.mktemp("report") / "checkout")
    drift = moved(lambda step, value: value + 25 * FLOOR * (step >= 3))
    strange = [
        changed(each, value=LONG) if isinstance(each, Text) else
        changed(each, holds=False, compared=NASTY + LONG) if isinstance(each, Claim) else each
        for each in ENTRIES
    ]  # fmt: skip
    put_release(demo, "0.4.38", moved(lambda step, value: 2 * value), threefry_partitionable=False)
    put_release(demo, "0.7.2", drift)
    put_release(demo, "0.8.3", strange, folder=NASTY.replace("/", ""), processor=LONG, flags={"XLA_FLAGS": LONG})
    put_release(demo, "0.9.2")
    (demo.checkout.recorded_runs / "jax-0.9.2_cpu" / f"{STEM}.float64.jsonl").write_bytes(b"nothing\n")
    page, _ = webpage.write(demo.checkout.build, survey.gather(demo.checkout))
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator:
    from playwright.sync_api import sync_playwright

    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if named is None:
        pytest.fail(f"no browser: none of {', '.join(BROWSERS)} is on PATH. Install one, or name it: CHROMIUM=/path")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=named, args=["--no-sandbox", *QUIET])
        yield opened
        opened.close()


@pytest.fixture(params=[(390, "light"), (390, "dark"), (1200, "light"), (1200, "dark")], ids=str)
def seen(browser, report, request) -> Iterator:
    """The page with everything opened, and what it asked for."""
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.asked = []
    page.on("request", lambda asked: page.asked.append(asked.url))
    page.on("dialog", lambda dialog: pytest.fail(f"the page ran something: {dialog.message}"))
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    folder = REPOSITORY / "build" / "browser"
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(folder / f"report-{width}-{scheme}.png"), full_page=True)
    yield page
    page.close()


def test_it_is_as_wide_as_the_window_and_no_wider(seen):
    width = seen.viewport_size["width"]
    assert seen.evaluate("document.documentElement.scrollWidth") <= width
    # Nor is any text cut off at the edge.
    beyond = "w => [...document.querySelectorAll('p, li, td, th, summary, svg, img')]"
    beyond += ".filter(e => e.getBoundingClientRect().right > w + 1).map(e => e.outerHTML.slice(0, 80))"
    assert seen.evaluate(beyond, width) == []


def test_nothing_is_fetched(seen, report):
    assert [url for url in seen.asked if not url.startswith("data:")] == [report.as_uri()]


def test_text_stands_out_from_its_ground(seen):
    ground = luminance(seen.evaluate("getComputedStyle(document.body).backgroundColor"))
    dark = seen.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert ground < 0.05 if dark else ground > 0.8
    for selector in ("p", ".good", ".bad", ".quiet", "summary", "td", "code", "li"):
        colour = luminance(seen.evaluate(f"getComputedStyle(document.querySelector('{selector}')).color"))
        lighter, darker = max(colour, ground), min(colour, ground)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, selector


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_cell_leads_to_its_details(seen):
    seen.evaluate("document.querySelectorAll('details').forEach(each => each.open = false)")
    seen.locator(".matrix a", has_text="drift").first.click()
    table = seen.locator("details:target .entries")
    assert table.is_visible() and f"{CURVE}[3]" in table.inner_text()


def test_the_plot_shows_its_marks(seen):
    drawn = seen.locator("svg[aria-label*='parts from']").first
    for mark in ("curve", "limit", "beyond", "parts"):
        box = drawn.locator(f"path.{mark}").bounding_box()
        assert box is not None and box["width"] + box["height"] > 5, mark
    assert drawn.bounding_box()["width"] > 200
