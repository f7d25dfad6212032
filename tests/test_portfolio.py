"""The portfolio page: what a learner typed is shown as typed, nothing is fetched or run, and the reference is named."""

from pathlib import Path

import pytest
from builders import ENTRIES, FOLDER, NOTEBOOK, STEM, changed, contents, make_demo, record
from pages_seen import NASTY, Page

from reproduce import log, portfolio
from reproduce.records import Claim, Figure, Metric

EVIDENCE = {
    "predictions": [
        {"name": "collapsed loss", "predicted": 1.4, "measured": 1.386, "because": NASTY, "said": "Off by 0.014."},
        {"name": "left open", "predicted": None, "measured": None, "more": "than is needed"},
        {"name": "late", "predicted": 2.0, "measured": 2.0, "changed_after_the_result": True},
    ],
    "attempts": [
        {
            "exercise": "nt_xent_loss",
            "passed": False,
            "source": f"def f():\n    return {NASTY!r}",
            "shown": "wrong: " + NASTY,
        },
        {"exercise": "nt_xent_loss", "passed": True, "source": "def f():\n    return 3", "shown": "right"},
        {"exercise": "partner_of", "passed": False, "source": "def g(): ...", "shown": "not written yet"},
    ],
}
NOTHING = {"predictions": [], "attempts": []}


@pytest.fixture
def demo(tmp_path):
    return make_demo(tmp_path / "checkout")


def saved(demo, tmp_path, entries=ENTRIES, evidence=EVIDENCE, **changes) -> Page:
    path = tmp_path / "page.html"
    portfolio.write(path, record(*entries, **changes), evidence, demo.checkout)
    return Page(path.read_bytes())


def test_all_evidence_is_there(demo, tmp_path):
    page = saved(demo, tmp_path)
    text = page.flat()
    for expected in (
        f"Portfolio: {STEM}",
        f"{NOTEBOOK} in float64",
        "2 of 3 predictions made, 1 of 2 exercises passed.",
        "collapsed loss 1.4 1.386 Off by 0.014.",
        "left open – –",
        "late 2 2 Changed after the result was seen.",
        "nt_xent_loss: passed",
        "2 attempts, the last one first.",
        "def f(): return 3",
        "partner_of: not passed yet",
        "RATE = 0.5, STEPS = 3",
    ):
        assert expected in text, expected
    again = {**EVIDENCE, "attempts": [*EVIDENCE["attempts"], {**EVIDENCE["attempts"][0], "shown": "wrong again"}]}
    # What was passed once stays passed, whatever was tried afterwards.
    later = saved(demo, tmp_path, evidence=again).flat()
    assert "nt_xent_loss: passed" in later and "1 of 2 exercises passed." in later and "wrong again" in later
    # The attempts of an exercise are numbered as they were made.
    assert text.index("Attempt 2") < text.index("return 3") < text.index("Attempt 1")


def test_what_was_typed_is_shown_as_typed_and_does_nothing(demo, tmp_path):
    page = saved(demo, tmp_path)
    assert page.text.count(NASTY) == 2
    assert f"return {NASTY!r}" in page.text
    assert page.running() == [] and page.outside() == []


def test_a_page_that_runs_or_fetches_is_noticed():
    assert Page(b"<p onclick=x><script></script>").running() == ["onclick", "script"]
    assert Page(b"<img src='http://a/b'><a href='c'>").outside() == ["http://a/b", "c"]


def test_the_page_forbids_all_that_comes_from_outside(demo, tmp_path):
    policies = [a["content"] for tag, a in saved(demo, tmp_path).elements if a.get("http-equiv")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_figures_are_in_the_page_with_their_words(demo, tmp_path):
    pictures = [attributes for tag, attributes in saved(demo, tmp_path).elements if tag == "img"]
    [figure] = [entry for entry in ENTRIES if isinstance(entry, Figure)]
    assert [picture["alt"] for picture in pictures] == [figure.data.alt]
    assert pictures[0]["src"].startswith("data:image/svg+xml;base64,")


# Against the reference


def standing(demo, *entries, **changes) -> portfolio.Standing:
    return portfolio.stand(record(*entries, **changes), demo.checkout)


def test_the_same_numbers(demo):
    found = standing(demo, *ENTRIES)
    assert found.sentence == (
        f"All {len(ENTRIES)} entries agree with the reference {FOLDER}, within its measured noise; 2 of 2 claims hold."
    )
    assert [row.verdict for row in found.rows] == ["identical"] * len(ENTRIES) and not found.off


def test_an_edited_notebook_is_what_is_expected_of_a_learner(demo):
    assert standing(demo, *ENTRIES, source_sha256="").notes == ()
    assert standing(demo, *ENTRIES, parameters={"RATE": 0.25, "STEPS": 3}).notes == (
        "parameter RATE: expected 0.5, found 0.25",
    )


def test_other_numbers_and_a_broken_claim(demo, tmp_path):
    entries = [
        changed(entry, value=0.75) if isinstance(entry, Metric) and entry.name == "train/loss" else entry
        for entry in ENTRIES
    ]
    entries = [
        changed(e, holds=False, margin=-1.0) if isinstance(e, Claim) and e.name == "learns" else e for e in entries
    ]
    found = standing(demo, *entries)
    assert found.off
    assert f"{len(ENTRIES) - 2} of {len(ENTRIES)} entries agree" in found.sentence
    assert "1 of 2 claims hold" in found.sentence
    rows = {row.name: row for row in found.rows}
    assert (rows["train/loss"].found, rows["train/loss"].expected) == ("0.75 nats", "0.56640625 nats")
    assert rows["train/loss"].verdict.startswith("drift") and rows["learns"].verdict == "claim broken"
    page = saved(demo, tmp_path, entries)
    assert [a for tag, a in page.elements if tag == "span" and a.get("class") == "bad"]


def test_a_notebook_that_was_run_in_part(demo):
    found = standing(demo, ENTRIES[0])
    missing = [row for row in found.rows if row.found == "–"]
    assert len(missing) == len(ENTRIES) - 1 and {row.verdict for row in missing} == {"missing"}


def test_without_a_reference(demo, tmp_path):
    demo.recorded.noise.unlink()
    found = standing(demo, *ENTRIES)
    # Nothing about files and paths that a learner could do nothing about.
    assert found == portfolio.Standing("There is no reference here to compare with.")
    assert found.sentence in saved(demo, tmp_path).flat()


def test_a_reference_of_something_else(demo):
    found = standing(demo, *ENTRIES, notebook="other-01")
    assert found.sentence == "The reference is of something else." and found.rows == ()


def test_without_any_evidence(demo, tmp_path):
    text = saved(demo, tmp_path, entries=(), evidence=NOTHING).flat()
    for expected in ("None was typed in.", "None was judged.", "None was drawn.", "0 of 0 predictions made"):
        assert expected in text


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ({}, "missing required field `predictions`"),
        ({"predictions": [], "attempts": [{"exercise": "a"}]}, "missing required field `passed`"),
        ({"predictions": [{"name": "a", "predicted": "1.5"}], "attempts": []}, "Expected `float | null`, got `str`"),
    ],
)
def test_what_is_no_evidence_leaves_the_earlier_page(demo, tmp_path, evidence, said):
    saved(demo, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="cannot make a portfolio of this evidence") as error:
        saved(demo, tmp_path, evidence=evidence)
    assert said in str(error.value) and contents(tmp_path) == before


# From a notebook


def a_log(path="") -> log.RunLog:
    made = log.RunLog(path, notebook=NOTEBOOK, stem=STEM, precision="float64", parameters={})
    made.metric("train/loss", 0.56640625, unit="nats")
    return made


def test_by_hand_it_lies_beside_the_notebook(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(log.SOURCE_VARIABLE, raising=False)
    monkeypatch.setenv("REPRODUCE_ROOT", str(demo.checkout.root))
    a_log().portfolio(EVIDENCE)
    path = tmp_path / f"portfolio-{STEM}.html"
    assert capsys.readouterr().out.splitlines()[-1] == f"Saved {path}"
    text = Page(path.read_bytes()).flat()
    assert f"1 of {len(ENTRIES)} entries agree with the reference {FOLDER}" in text


def test_in_the_harness_it_lies_beside_the_record(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(log.SOURCE_VARIABLE, "5" * 64)
    monkeypatch.setenv("REPRODUCE_ROOT", str(demo.checkout.root))
    folder = tmp_path / "run"
    before = sorted(Path().iterdir())
    a_log(folder / "partial.jsonl").portfolio(NOTHING)
    assert (folder / f"portfolio-{STEM}.html").exists() and sorted(Path().iterdir()) == before
    assert capsys.readouterr().out.splitlines()[-1] == f"Saved portfolio-{STEM}.html"
