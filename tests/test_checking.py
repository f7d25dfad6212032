"""`check` on a whole small checkout: each thing that can be off gives its own answer, and nothing is written."""

import shutil
from pathlib import Path

import msgspec
import pytest
from builders import ENTRIES, STEM, Demo, changed, contents, draw_once, make_demo

from reproduce import checking, environment, figures, noise, records
from reproduce.checkout import Checkout
from reproduce.compare import Verdict
from reproduce.errors import AGREES, CANNOT_COMPARE, DIFFERS, RUN_FAILED, HarnessError
from reproduce.execute import Outcome
from reproduce.results import NotebookCheck

OTHER_LOSS = (changed(ENTRIES[0], value=0.5), *ENTRIES[1:])


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch) -> None:
    """Every test looks at the same figure; that drawing it again gives the same bytes is shown elsewhere."""
    monkeypatch.setattr(figures, "to_svg", draw_once)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Demo:
    return make_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture
def demo(pristine, tmp_path) -> Demo:
    root = tmp_path / "a checkout"
    shutil.copytree(pristine.checkout.root, root)
    return Demo(Checkout(root))


def check(demo: Demo) -> NotebookCheck:
    """The answer, and proof that asking changes nothing."""
    before = contents(demo.checkout.root)
    answer = checking.check_notebook(demo.checkout, demo.source_file)
    assert contents(demo.checkout.root) == before
    return answer


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_checkout_in_order_agrees(demo):
    answer = check(demo)
    assert (answer.status, answer.problems, list(answer.runs)) == (AGREES, [], ["float32", "float64"])
    for run in answer.runs.values():
        assert run.comparison and run.comparison.verdict is Verdict.IDENTICAL


@pytest.mark.parametrize("precision", records.PRECISIONS)
def test_another_number(demo, precision):
    demo.put_run(precision, OTHER_LOSS)
    answer = check(demo)
    assert answer.status == DIFFERS
    assert [run.status for run in answer.runs.values()] == [
        DIFFERS if each == precision else AGREES for each in records.PRECISIONS
    ]


def test_a_number_within_its_floor(demo):
    recorded = noise.read(demo.recorded.noise)
    recorded.precisions["float64"].floors["train/loss"] = {"value": [0.01]}
    demo.recorded.noise.write_bytes(noise.encode(recorded))
    demo.put_run("float64", OTHER_LOSS)
    answer = check(demo)
    assert answer.status == AGREES
    assert answer.runs["float64"].comparison and answer.runs["float64"].comparison.verdict is Verdict.WITHIN_NOISE


def test_another_parameter_is_stale(demo):
    demo.put_run("float32", parameters={"RATE": 0.25, "STEPS": 3})
    run = check(demo).runs["float32"]
    assert run.status == DIFFERS
    assert run.comparison and run.comparison.stale == ("parameter RATE: expected 0.5, found 0.25",)
    assert run.comparison.verdict is Verdict.IDENTICAL


def test_a_run_of_older_package_code_is_not_compared(demo):
    records.write_atomically(demo.checkout.root / "contrastive_jax" / "losses.py", b"# a new formula")
    for run in check(demo).runs.values():
        assert run.status == CANNOT_COMPARE and "older than the code of the packages" in run.cannot


def test_edited_code_is_stale_once_it_has_run(demo):
    edit(demo.source_file, "return 2 * x", "return x * 2")
    for run in check(demo).runs.values():
        assert run.status == CANNOT_COMPARE and "the run is older than the notebook" in run.cannot
    for precision in records.PRECISIONS:
        demo.put_run(precision)
    for run in check(demo).runs.values():
        assert run.status == DIFFERS
        assert run.comparison and run.comparison.stale == ("the notebook's code was edited",)


def test_edited_prose_makes_nothing_stale(demo):
    edit(demo.source_file, "# # A demonstration", "# # A Demonstration")
    answer = check(demo)
    assert [run.status for run in answer.runs.values()] == [AGREES, AGREES]
    assert answer.status == DIFFERS
    assert answer.problems == [f"{STEM}.ipynb: out of step with {STEM}.py; make notebooks makes it again"]


@pytest.mark.parametrize("ended", ["a cell raised", "the kernel died", "interrupted", "something newer"])
def test_a_run_that_did_not_end_well(demo, ended):
    demo.put_status("float64", Outcome(ended, "why", 3, "1 / 0"))
    answer = check(demo)
    assert answer.status == RUN_FAILED
    assert answer.runs["float64"].incomplete == Outcome(ended, "why", 3, "1 / 0")
    # The record of an earlier run is still there and is not taken for this one.
    assert answer.runs["float64"].comparison is None
    assert answer.runs["float32"].status == AGREES


def test_not_run(demo):
    shutil.rmtree(demo.checkout.build)
    answer = check(demo)
    assert answer.status == CANNOT_COMPARE
    assert all("not run yet; make reproduce runs it" in run.cannot for run in answer.runs.values())


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"outcome":{"ended":"finished"}}'])
def test_a_damaged_status_is_no_run(demo, content):
    demo.checkout.run(STEM, "float32").status.write_bytes(content)
    assert "not run yet" in check(demo).runs["float32"].cannot


@pytest.mark.parametrize(
    ("old", "new"), [("name: python3", "name: mine"), ("STEPS = 3", "STEPS = 1 + 2 * n"), ("STEPS = 3", "STEPS = =")]
)
def test_a_source_that_cannot_be_run(demo, old, new):
    edit(demo.source_file, old, new)
    answer = check(demo)
    assert answer.status == RUN_FAILED
    for run in answer.runs.values():
        assert run.incomplete and run.incomplete.ended == "the source cannot be run"


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def alter(path: Path) -> None:
    edit(path, "0.56640625", "0.56640626")


@pytest.mark.parametrize("damage", [remove, cut, alter])
@pytest.mark.parametrize("side", ["reference", "run"])
def test_a_damaged_record(demo, damage, side):
    path = {"reference": demo.recorded.record("float64"), "run": demo.checkout.run(STEM, "float64").record}[side]
    damage(path)
    answer = check(demo)
    assert answer.status == CANNOT_COMPARE
    assert str(path) in answer.runs["float64"].cannot
    assert answer.runs["float32"].status == AGREES


def test_a_record_that_was_put_there_by_hand(demo):
    path = demo.checkout.run(STEM, "float64").record
    path.write_bytes(records.encode(demo.header("float64"), list(ENTRIES[1:])))
    answer = check(demo)
    assert answer.status == CANNOT_COMPARE
    assert f"{path}: changed or removed after the run" in answer.runs["float64"].cannot


@pytest.mark.parametrize("damage", [remove, cut])
def test_damaged_floors(demo, damage):
    damage(demo.recorded.noise)
    answer = check(demo)
    assert answer.status == CANNOT_COMPARE
    assert all(str(demo.recorded.noise) in run.cannot for run in answer.runs.values())


@pytest.mark.parametrize("wrong", ["another record", "no such precision"])
def test_floors_of_something_else(demo, wrong):
    measured = noise.read(demo.recorded.noise)
    one = measured.precisions.pop("float64")
    if wrong == "another record":
        measured.precisions["float64"] = msgspec.structs.replace(one, record_sha256="0" * 64)
    demo.recorded.noise.write_bytes(noise.encode(measured))
    answer = check(demo)
    assert answer.status == CANNOT_COMPARE and answer.runs["float32"].status == AGREES
    assert "measured on another record" in answer.runs["float64"].cannot


def test_no_reference_of_this_notebook(demo):
    shutil.rmtree(demo.recorded.folder)
    answer = check(demo)
    assert answer.status == CANNOT_COMPARE and answer.problems == []
    assert all("cannot be read" in run.cannot for run in answer.runs.values())


@pytest.mark.parametrize("name", ["", "..", "../elsewhere", "/tmp", ".hidden", "a/b", "a\n/b"])
def test_the_reference_is_a_folder_beside_its_file(demo, name):
    (demo.checkout.recorded_runs / "REFERENCE").write_text(f"{name}\n")
    with pytest.raises(HarnessError, match="REFERENCE: expected the name of a folder"):
        demo.checkout.reference_name()
    assert check(demo).status == CANNOT_COMPARE


def test_no_reference_at_all(demo):
    (demo.checkout.recorded_runs / "REFERENCE").unlink()
    with pytest.raises(HarnessError, match="REFERENCE: missing"):
        demo.checkout.reference_name()
    assert check(demo).status == CANNOT_COMPARE


def test_a_record_of_another_lesson(demo):
    demo.put_run("float32", notebook="demo-02")
    run = check(demo).runs["float32"]
    assert run.status == CANNOT_COMPARE
    assert run.comparison and run.comparison.not_comparable == ("notebook: expected demo-01, found demo-02",)


# The committed files


def test_a_learner_copy_that_is_gone_or_edited(demo):
    copy_of = demo.source_file.with_suffix(".ipynb")
    edit(copy_of, "A demonstration", "A Demonstration")
    assert check(demo).problems == [f"{STEM}.ipynb: out of step with {STEM}.py; make notebooks makes it again"]
    copy_of.unlink()
    assert len(check(demo).problems) == 1 and check(demo).status == DIFFERS


def test_a_source_whose_solution_is_never_shown(demo):
    edit(demo.source_file, "# <!-- SOLUTION -->\n", "# nothing\n")
    (problem,) = check(demo).problems
    assert "a solution is never shown" in problem


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.5664<!--", "0.5665<!--", "train/loss: the text says 0.5665"),
        ("0.5<!-- parameter: RATE", "0.6<!-- parameter: RATE", "RATE: the text says 0.6"),
        ("0.5664<!-- record: train/loss -->", "0.5664", "0.5664: a decimal without a tie"),
        ("record: train/loss", "record: train/los", "no number 'train/los'"),
    ],
)
def test_a_wrong_number_in_the_prose(demo, old, new, said):
    edit(demo.source_file, old, new)
    edit(demo.source_file.with_suffix(".ipynb"), old, new)
    answer = check(demo)
    assert answer.status == DIFFERS
    found = [problem for problem in answer.problems if "out of step" not in problem]
    assert found and all(problem.startswith(f"{STEM}.py: ") and said in problem for problem in found)


@pytest.mark.parametrize("damage", [remove, lambda path: edit(path, "updates", "steps")])
def test_a_figure_that_is_gone_or_edited(demo, damage):
    damage(demo.checkout.figures / "demo-01.svg")
    answer = check(demo)
    assert answer.status == DIFFERS
    assert answer.problems == ["figures/demo-01.svg: not what the reference record draws; make figures draws it again"]


def test_the_bytes_of_a_figure_are_those_of_one_matplotlib(demo):
    edit(demo.checkout.figures / "demo-01.svg", "updates", "steps")
    edit(demo.recorded.folder / "ENVIRONMENT.json", environment.versions()["matplotlib"], "0.0.1")
    assert check(demo).problems == []


@pytest.mark.parametrize("damage", [remove, cut, lambda path: path.write_text("{}")])
def test_a_damaged_environment_is_a_problem_and_no_end(demo, damage):
    damage(demo.recorded.folder / "ENVIRONMENT.json")
    answer = check(demo)
    assert answer.status == DIFFERS
    assert len(answer.problems) == 1 and "ENVIRONMENT.json" in answer.problems[0]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The loss is 0.566<!-- record: 01:train/loss -->; JAX 0.9, version 1.5.", 0),
        ("The loss is 0.567<!-- record: 01:train/loss -->.", 2),
        ("The loss is 0.566<!-- record: train/loss -->.", 1),
        ("The loss is 0.566<!-- record: 02:train/loss -->.", 1),
    ],
)
def test_numbers_of_the_readme(demo, text, count):
    (demo.checkout.root / "README.md").write_text(text)
    problems = checking.text_problems(demo.checkout)
    assert len(problems) == count and all(problem.startswith("README.md: ") for problem in problems)


def test_without_a_readme_or_a_reference_the_readme_has_no_problem(demo):
    assert checking.text_problems(demo.checkout) == []
    shutil.rmtree(demo.recorded.folder)
    assert checking.text_problems(demo.checkout) == []


# Finding notebooks


def test_notebooks_are_found_by_their_beginning(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name in ("02_b.py", "01_a.py", "10_c.py", "helper.py", "01_a.ipynb", "1_d.py"):
        (folder / name).touch()
    checkout = Checkout(tmp_path)
    assert [path.name for path in checkout.sources()] == ["01_a.py", "02_b.py", "10_c.py"]
    assert [path.name for path in checkout.sources("01")] == ["01_a.py"]
    with pytest.raises(HarnessError, match="no notebook starts with '03'; there are: 01_a, 02_b, 10_c"):
        checkout.sources("03")
    with pytest.raises(HarnessError, match="there are: none"):
        Checkout(tmp_path / "empty").sources()
