"""A learner's hour in a real browser: JupyterLab, a wrong solution, its misconception, a right one, the portfolio.

Run by `make test-browser`. Needs a Chromium or Chrome that the system provides; screenshots are left in build/browser.
"""

import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from builders import REPOSITORY

pytestmark = pytest.mark.browser

NOTEBOOK = "02_nt_xent.ipynb"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# It looks for nothing outside this machine.
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
PATIENCE = 180
WRONG = '''def partner_of(anchor, batch):
    """Row numbers of the partners."""
    return anchor ^ 1
'''
RIGHT = '''def partner_of(anchor, batch):
    """Row numbers of the partners."""
    return (anchor + batch) % (2 * batch)
'''


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab, and the folder it serves."""

    process: subprocess.Popen
    folder: Path
    port: int
    token: str

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/lab/tree/{NOTEBOOK}?token={self.token}"

    def get(self, path: str) -> int:
        """Status of a request without the token."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Iterator[Lab]:
    """`make lab` on a copy of the learner's notebooks, for a user without settings of her own."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "notebooks"
    folder.mkdir()
    shutil.copy(REPOSITORY / "notebooks" / NOTEBOOK, folder)
    settings = home / "settings" / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    # Cells outside the window would not be in the page at all.
    settings.write_text(json.dumps({"windowingMode": "none"}), encoding="utf-8")
    port, token = free_port(), secrets.token_hex(8)
    arguments = f"--no-browser --allow-root --ServerApp.port={port} --IdentityProvider.token={token}"
    with (home / "lab.log").open("wb") as log:
        process = subprocess.Popen(
            ["make", "lab", f"PYTHON={sys.executable}", f"DIR={folder}", f"ARGS={arguments}"],
            cwd=REPOSITORY,
            env={**os.environ, "HOME": str(home), "JUPYTERLAB_SETTINGS_DIR": str(home / "settings")},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    made = Lab(process, folder, port, token)
    try:
        wait_for(made, home / "lab.log")
        yield made
    finally:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(lab: Lab, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and lab.process.poll() is None:
        try:
            lab.get("/api")
            return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"JupyterLab did not start: {log.read_text(errors='replace')[-2000:]}")


@pytest.fixture(scope="module")
def page(lab) -> Iterator:
    from playwright.sync_api import sync_playwright

    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if named is None:
        pytest.fail(f"no browser: none of {', '.join(BROWSERS)} is on PATH. Install one, or name it: CHROMIUM=/path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=named, args=["--no-sandbox", *QUIET])
        opened = browser.new_page(viewport={"width": 1280, "height": 900})
        opened.set_default_timeout(PATIENCE * 1000)
        yield Notebook(opened)
        browser.close()


class Notebook:
    """The notebook in the browser, used the way a person uses it: mouse, menus and keyboard."""

    def __init__(self, page):
        self.page = page

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        self.until_idle()

    def cell(self, text: str):
        """The code cell that holds this text."""
        return self.page.locator(".jp-CodeCell").filter(has=self.page.locator(".cm-content", has_text=text)).first

    def output(self, text: str):
        """The output below the code cell that holds this text."""
        return self.cell(text).locator(".jp-OutputArea")

    def click(self, text: str) -> None:
        self.cell(text).locator(".cm-content").click()

    def run_all_above(self, text: str) -> None:
        self.click(text)
        self.page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
        self.page.locator(".lm-Menu-itemLabel", has_text="Run All Above Selected Cell").click()
        first = "() => /[0-9*]/.test(document.querySelector('.jp-CodeCell .jp-InputPrompt').textContent)"
        self.page.wait_for_function(first)
        self.until_idle()

    def type_into(self, text: str, code: str) -> None:
        self.click(text)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(code)

    def run(self, text: str) -> None:
        self.click(text)
        prompt = self.cell(text).locator(".jp-InputPrompt")
        before = prompt.inner_text()
        self.page.keyboard.press("Control+Enter")
        # Its number is another one once it has been run.
        again = "([prompt, before]) => /[0-9]/.test(prompt.textContent) && prompt.textContent.trim() !== before.trim()"
        self.page.wait_for_function(again, arg=[prompt.element_handle(), before])
        self.until_idle()

    def answer(self, text: str, expected: str):
        """The output below a cell, once it says what is expected."""
        said = self.output(text)
        said.filter(has_text=expected).wait_for()
        return said

    def until_idle(self) -> None:
        """Until the kernel has nothing left to run, and says so for a moment."""
        self.page.wait_for_timeout(500)
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('.jp-InputPrompt')].every(p => !p.textContent.includes('*'))"
            " && document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle'"
        )

    def picture(self, name: str) -> None:
        folder = REPOSITORY / "build" / "browser"
        folder.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(folder / f"{name}.png"))


@pytest.fixture(scope="module")
def opened(lab, page) -> Notebook:
    """The notebook with all cells above the first exercise run."""
    page.open(lab.address)
    page.run_all_above("def partner_of")
    return page


def test_it_listens_on_this_machine_only_and_asks_for_its_token(lab):
    assert lab.get("/api/contents") == 403
    children = psutil.Process(lab.process.pid).children(recursive=True)
    listening = {
        connection.laddr.ip
        for child in children
        for connection in child.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_the_cells_above_the_first_exercise_run_without_an_error(opened):
    assert opened.page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    assert opened.page.locator(".jp-OutputArea-output", has_text="Error").count() == 0


def test_an_exercise_that_is_not_written_yet(opened):
    opened.run("def partner_of")
    opened.run("judge(partner_of)")
    opened.answer("judge(partner_of)", "not written")


def test_a_wrong_solution_is_told_its_misconception(opened):
    said = judged(opened, WRONG, "It behaves exactly like a known mistake", "wrong")
    assert "It behaves exactly like a known mistake" in said
    assert "partner_of does not pass yet" in said


def test_a_right_solution_passes(opened):
    assert "partner_of passes all" in judged(opened, RIGHT, "partner_of passes all", "right")


def judged(notebook: Notebook, solution: str, expected: str, picture: str) -> str:
    """Type a solution in, hand it to the judge, look at the page, and return what the judge says."""
    notebook.type_into("def partner_of", solution)
    notebook.run("def partner_of")
    notebook.run("judge(partner_of)")
    said = notebook.answer("judge(partner_of)", expected)
    said.scroll_into_view_if_needed()
    notebook.picture(picture)
    assert_well_laid_out(notebook, said)
    return said.inner_text()


def test_the_portfolio_holds_both_attempts(opened, lab):
    opened.run("log.portfolio(evidence())")
    opened.answer("log.portfolio(evidence())", "Saved")
    saved = lab.folder / f"portfolio-{NOTEBOOK.removesuffix('.ipynb')}.html"
    opened.page.goto(saved.as_uri())
    text = opened.page.inner_text("body")
    for expected in ("partner_of: passed", "anchor ^ 1", "(anchor + batch) % (2 * batch)", "known mistake"):
        assert expected in opened.page.content() or expected in text, expected
    opened.picture("portfolio")


def assert_well_laid_out(notebook: Notebook, output) -> None:
    """The answer stands inside the window's width, on several short lines, and can be told from its ground."""
    box, width = output.bounding_box(), notebook.page.viewport_size["width"]
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert 20 < box["height"] < 600
    wider = "e => [...e.querySelectorAll('p, pre')].filter(x => x.scrollWidth > x.clientWidth + 1).length"
    assert output.evaluate(wider) == 0
